"""The state of a new stack, as ``pulumi stack init`` would leave it in a folder of files.

Owns its text, where it may be written without Pulumi (a process of Pulumi takes half a second of a first deploy), and
the settings of a stack by which Pulumi finds the key of its secrets.
Must not replace a state. It is apart from the workspace since the form of the file is Pulumi's, of one version of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from composeplat.system.atomic import create_private

#: The layout of a folder in which each project has a folder for its stacks.
_LAYOUT = "version: 1"
_SETTING = re.compile(r'^(encryptionsalt|secretsprovider|encryptedkey): "?([^\s"]+)', re.MULTILINE)


def new_state(environment: str, namespace: str) -> str:
    """The text of the state; Pulumi adds the salt of its secrets with the first run."""
    return json.dumps(
        {"version": 3, "checkpoint": {"stack": f"organization/{environment}/{namespace}", "latest": None}}
    )


def is_known_layout(metadata: str, variables: Mapping[str, str]) -> bool:
    """Return whether Pulumi keeps its states as plain files, in the layout that :func:`new_state` is for."""
    is_old = any(name.endswith("_LEGACY_LAYOUT") for name in variables)
    return metadata.strip() == _LAYOUT and not is_old and not packs_states(variables)


def packs_states(variables: Mapping[str, str]) -> bool:
    """Return whether a variable makes Pulumi pack the states that it writes, such as PULUMI_DIY_BACKEND_GZIP."""
    return any(name.startswith("PULUMI_") and name.endswith("_GZIP") for name in variables)


def write_new_state(path: Path | None, environment: str, namespace: str, variables: Mapping[str, str]) -> bool:
    """Write the state of a stack that does not exist; return whether it was written.

    A new folder gets the layout first, as Pulumi would choose it. Of one without any, Pulumi finds out which it has.
    """
    if path is None:
        return False
    layout = path.parents[2] / "meta.yaml"
    if not layout.parent.exists() and is_known_layout(_LAYOUT, variables):
        create_private(layout, f"{_LAYOUT}\n")
    try:
        metadata = layout.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return is_known_layout(metadata, variables) and create_private(path, new_state(environment, namespace))


def read_salt(settings: Path) -> str:
    """Return the salt in a stack's settings file; empty without one."""
    return read_settings(settings).get("encryptionsalt", "")


def read_settings(settings: Path) -> dict[str, str]:
    """Return what a stack's settings file says of the provider of secrets; empty without one."""
    try:
        return dict(_SETTING.findall(settings.read_text(encoding="utf-8")))
    except OSError:
        return {}


def settings_text(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in settings.items()) or "{}\n"
