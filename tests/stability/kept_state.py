"""Pulumi's state of the environment with an object of each kind, as the release before left it.

``state_before.json`` has the type, URN and inputs of each resource, with fixed names for all that differs from cluster
to cluster, and without secrets. ``pytest tests/deploy/test_release_before.py --bless`` writes it from a real deploy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.stability.release_before import BEFORE

PATH = Path(__file__).with_name("state_before.json")
SECRET_MARK = "4dabf18193072939515e22adb298388d"  # noqa: S105 -- how Pulumi marks an encrypted value
#: They depend on values that are new with each deploy of a new environment.
_NEW_EACH_TIME = ("config-hash", "dependencies-hash", "salt")
_IMAGE = re.compile(r"^\S+@sha256:[0-9a-f]+$")


def comparable(resources: list[dict[str, Any]], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the inputs by URN, with fixed names."""
    return dict(sorted(_rows(resources, names)))


def _rows(resources: list[dict[str, Any]], names: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for resource in resources:
        kind = str(resource["urn"]).split("::")[2].rpartition("$")[2]
        # The engine makes the stack, and providers that no program names.
        if kind != "pulumi:pulumi:Stack" and "::default_" not in resource["urn"]:
            # The inputs of a build are paths and addresses of a machine.
            inputs = resource.get("inputs") or {} if kind.startswith("kubernetes:") else {}
            yield _named(str(resource["urn"]), names), _plain(inputs, names)


def _named(text: str, names: Mapping[str, str]) -> str:
    for found, name in names.items():
        text = text.replace(found, name)
    return text


def _plain(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        if SECRET_MARK in value:
            return "[secret]"
        return {key: _plain(found, names) for key, found in value.items() if not _is_new(key)}
    if isinstance(value, list):
        return [_plain(found, names) for found in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return "[image]" if _IMAGE.match(value) else _named(value, names)
    return value


def _is_new(key: str) -> bool:
    # What begins so is a note of the SDK or the provider on how a resource was made.
    return key.startswith("__") or key.rpartition("/")[2] in _NEW_EACH_TIME


def write_state(resources: list[dict[str, Any]], names: Mapping[str, str]) -> None:
    document = {"release": BEFORE.version, "resources": comparable(resources, names)}
    PATH.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_state() -> dict[str, Any]:
    document = json.loads(PATH.read_text(encoding="utf-8"))
    assert document["release"] == BEFORE.version
    resources: dict[str, Any] = document["resources"]
    return resources
