"""The BuildKit that builds images: the user's builder, Docker's, or the local cluster's.

Owns the Docker host that a state has for builds, and the configuration folder of buildx. buildx writes into its folder,
so it gets a copy of the user's builders: the user's own folder never changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from composeplat.diagnostics import MissingPiece
from composeplat.engine.backend import DataFolder, writing
from composeplat.engine.target import Target
from composeplat.local.builder_cache import BUILDER_NAME, buildx_instance
from composeplat.local.layout import make_layout
from composeplat.registry.docker_folder import docker_folder
from composeplat.system.atomic import remove_tree, write_private
from composeplat.system.locks import hold_lock

#: The variable that carries the builder's name to the program.
BUILDER = "COMPOSEPLAT_BUILDER"
_FOLDERS = ("instances", "defaults", "activity")
_COPY = "buildx-user"
#: The file with the path of the configuration that a copy is of.
_SOURCE = "copy-of"
_DOCKER_SOCKET = Path("/var/run/docker.sock")
_UNIX = "unix://"
DOCKER_HOST = "DOCKER_HOST"
_PROVIDER = "pulumi:providers:docker-build"


def builder_variables(
    environment: Mapping[str, str], target: Target, data_folder: DataFolder, *, docker_socket: Path = _DOCKER_SOCKET
) -> dict[str, str]:
    """The variables with which Pulumi's build provider finds the builder."""
    named = environment.get("BUILDX_BUILDER", "")
    users = _users_folder(environment)
    if named:
        return _of_user(named, users, environment, data_folder)
    if target.layout is not None:
        return _of_local_cluster(target.layout.buildkit_socket, data_folder)
    if environment.get(DOCKER_HOST) or docker_socket.exists() or _has_current(users):
        return _of_user("", users, environment, data_folder)
    socket = make_layout(environment).buildkit_socket
    if socket.exists():
        return _of_local_cluster(socket, data_folder)
    raise MissingPiece(
        "no builder for images: no builder of buildx, no Docker, and no local cluster",
        "start Docker, name a builder with --builder, or start the local cluster, which has one",
    )


def _users_folder(environment: Mapping[str, str]) -> Path:
    """Where buildx keeps what it knows of builders."""
    if environment.get("BUILDX_CONFIG"):
        return Path(environment["BUILDX_CONFIG"])
    return docker_folder(environment) / "buildx"


def _has_current(users: Path) -> bool:
    """Whether a builder is chosen that can be there: buildx notes Docker for the choice where there is none, too."""
    try:
        chosen = json.loads((users / "current").read_text(encoding="utf-8"))
        name, endpoint = str(chosen.get("Name", "")), str(chosen.get("Key", ""))
    except (OSError, ValueError, AttributeError):
        return False
    return bool(name) or not endpoint.startswith(_UNIX) or Path(endpoint.removeprefix(_UNIX)).exists()


def _docker_contexts(environment: Mapping[str, str]) -> list[str]:
    """The contexts of Docker, each of which is a builder for buildx too."""
    names = ["default"]
    for path in (docker_folder(environment) / "contexts" / "meta").glob("*/meta.json"):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            names.append(str(json.loads(path.read_text(encoding="utf-8")).get("Name")))
    return names


def _of_user(name: str, users: Path, environment: Mapping[str, str], data_folder: DataFolder) -> dict[str, str]:
    known = sorted(path.name for path in (users / "instances").glob("*")) if users.exists() else []
    if name and name not in (*known, *_docker_contexts(environment)):
        listed = f"builders are: {', '.join(known)}" if known else "make one with docker buildx create"
        raise MissingPiece(f"buildx has no builder '{name}'", listed)
    folder = data_folder.path / _name_of_copy(users, environment)
    # Each run removes what the user has not, which would be files that another one is writing.
    with writing(folder), hold_lock(folder.with_name("buildx-user.lock"), lambda: None):
        _remove_old_copies(folder)
        _prepare(folder)
        if folder.name != _COPY:
            write_private(folder / _SOURCE, json.dumps(str(users.absolute())))
        for path in (*(users / "instances").glob("*"), *(users / "defaults").glob("*"), users / "current"):
            if path.is_file() and not path.name.startswith("."):
                write_private(folder / path.relative_to(users), path.read_text(encoding="utf-8"))
        for stale in set(os.listdir(folder / "instances")) - set(known):
            (folder / "instances" / stale).unlink()
        if (users / "certs").is_dir():
            shutil.copytree(users / "certs", folder / "certs", dirs_exist_ok=True)
    return {BUILDER: name, "BUILDX_CONFIG": str(folder)}


def _name_of_copy(users: Path, environment: Mapping[str, str]) -> str:
    """Return the name of the folder: runs with other configurations, as jobs of a CI system have, may build at once."""
    if not (environment.get("BUILDX_CONFIG") or environment.get("DOCKER_CONFIG")):
        return _COPY
    return f"{_COPY}-{hashlib.sha256(os.fsencode(users.absolute())).hexdigest()[:12]}"


def _remove_old_copies(folder: Path) -> None:
    """Remove the copies of configurations that are gone, such as those of jobs."""
    for source in folder.parent.glob(f"{_COPY}-*/{_SOURCE}"):
        if not Path(json.loads(source.read_text(encoding="utf-8"))).exists():
            remove_tree(source.parent)


def _of_local_cluster(socket: Path, data_folder: DataFolder) -> dict[str, str]:
    folder = data_folder.path / "buildx"
    with writing(folder):
        _prepare(folder)
        write_private(folder / "instances" / BUILDER_NAME, buildx_instance(socket))
    return {BUILDER: BUILDER_NAME, "BUILDX_CONFIG": str(folder)}


def _prepare(folder: Path) -> None:
    for name in _FOLDERS:
        os.makedirs(folder / name, exist_ok=True)


def docker_host_of(state: Mapping[str, Any]) -> str | None:
    """The Docker host in the configuration of the provider for builds, which may be empty; None without one."""
    providers = (resource for resource in state.get("resources") or () if _is_provider(resource))
    return next((str((provider.get("inputs") or {}).get("host") or "") for provider in providers), None)


def with_docker_host(state: Mapping[str, Any], host: str) -> dict[str, Any] | None:
    """The state with another Docker host in that configuration; None if it has this one already.

    Pulumi would replace the provider, and with it each image. After a run that leaves some of these alone, such as one
    of named services, it could not read the state any more.
    """
    if docker_host_of(state) in (None, host):
        return None
    resources = [_with_host(found, host) if _is_provider(found) else found for found in state["resources"]]
    return {**state, "resources": resources}


def _is_provider(resource: Mapping[str, Any]) -> bool:
    return resource.get("type") == _PROVIDER and not resource.get("delete")


def _with_host(provider: Mapping[str, Any], host: str) -> dict[str, Any]:
    values = {part: {**(provider.get(part) or {}), "host": host} for part in ("inputs", "outputs")}
    return {**provider, **values}
