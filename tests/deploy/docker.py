"""A Docker configuration of a user's, for tests: builders, logins and a credential helper."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

from tests.deploy.conftest import Environment

USER, PASSWORD = "shop", "pass-word-1"


def users_builder(environment: Environment, config: dict[str, Any] | None = None) -> Path:
    """Give the user a configuration, with a builder named ``mine``, which is the local cluster's."""
    folder = environment.folder.parent / "docker"
    (folder / "buildx" / "instances").mkdir(parents=True)
    configure(folder, config or {})
    endpoint = f"unix://{environment.cluster.layout.buildkit_socket}"
    node = {"Name": "mine0", "Endpoint": endpoint, "Platforms": None, "DriverOpts": None, "Flags": None, "Files": None}
    instance = {"Name": "mine", "Driver": "remote", "Nodes": [node], "Dynamic": False}
    (folder / "buildx" / "instances" / "mine").write_text(json.dumps(instance))
    environment.variables["DOCKER_CONFIG"] = str(folder)
    return folder


def configure(folder: Path, config: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps(config))


def login(registry: str, password: str) -> dict[str, Any]:
    return {"auths": {registry: {"auth": base64.b64encode(f"{USER}:{password}".encode()).decode()}}}


def add_helper(environment: Environment, registry: str) -> None:
    """Put a credential helper named ``mine`` on PATH, which knows the password."""
    helper = environment.folder.parent / "bin" / "docker-credential-mine"
    helper.parent.mkdir()
    helper.write_text(
        f'#!/bin/sh\nif [ "$1" = list ]; then echo \'{{"{registry}":"{USER}"}}\'; exit; fi\n'
        f'echo \'{{"ServerURL":"","Username":"{USER}","Secret":"{PASSWORD}"}}\'\n'
    )
    helper.chmod(0o755)
    environment.variables["PATH"] = f"{helper.parent}{os.pathsep}{environment.variables['PATH']}"
