"""An environment as a folder of plain Pulumi: its project file, its configuration and a program of five lines.

Owns the contents of these files. Pure: texts by file name, so that the command line alone writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from composeplat import __version__
from composeplat.compose.load import Loaded
from composeplat.compose.load.variables import env_files_to_name
from composeplat.compose.options import SETTINGS, Request, Settings

PROGRAM = '''\
"""A Compose file as a Pulumi program."""

from pathlib import Path

from composeplat.components.program import declare_configured

declare_configured(Path(__file__).parent)
'''


def ejected_files(
    request: Request,
    loaded: Loaded,
    folder: Path,
    *,
    definition: list[str],
    builder: str,
    cluster: str,
    secrets: Mapping[str, str],
) -> dict[str, str]:
    settings = loaded.settings
    project = {
        "name": settings.environment,
        "description": f"The Compose environment {settings.environment}.",
        "runtime": "python",
    }
    config = _configuration(settings, builder, cluster)
    config["composeplat:files"] = [_relative(path, folder) for path in definition]
    if env_files := env_files_to_name(request, loaded.folder):
        config["composeplat:envFiles"] = [_relative(path, folder) for path in env_files]
    stack = {**secrets, "config": config}
    return {
        "Pulumi.yaml": _yaml(project),
        f"Pulumi.{settings.namespace}.yaml": _yaml(stack),
        "__main__.py": PROGRAM,
        "requirements.txt": f"composeplat=={__version__}\n",
    }


def _configuration(settings: Settings, builder: str, cluster: str) -> dict[str, object]:
    """The settings that differ from their defaults; the namespace is the name of the stack."""
    resolved = replace(settings, namespace="", builder=builder)
    config = {
        f"composeplat:{row.config_key}": value
        for name, row in SETTINGS.items()
        if (value := getattr(resolved, name)) != row.default
    }
    return config | ({"composeplat:cluster": cluster} if cluster else {})


def _relative(path: str, folder: Path) -> str:
    return os.path.relpath(path, folder)


def _yaml(value: object) -> str:
    """JSON is YAML, and needs no writer."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
