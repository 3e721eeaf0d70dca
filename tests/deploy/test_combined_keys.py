"""Keys of several cases at random in one definition: the API server accepts each object of it.

The definitions are those of ``tests/keys``, which have each key alone; here its values meet those of others.
"""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from functools import cache
from typing import Any

import pytest
import yaml

from composeplat.cluster.api import Api, ApiError
from composeplat.diagnostics import Severity
from composeplat.local.cluster import LocalCluster
from composeplat.render.manifests import render_yaml, to_yaml
from tests.conftest import ENDURANCE, Project, Reading, has_long_round
from tests.keys.cases import Case, case_files

SEEDS = range(3000) if ENDURANCE else range(40)
NAMESPACE = "combined"
_SECTIONS = ("volumes", "networks", "configs", "secrets", "models")
_SHELL = {"KEY": "k", "TOKEN": "t"}
#: A service has an image, and no patch: that of a case is for the containers of its own definition.
_LEFT_OUT = {"image", "build", "extends", "provider", "x-kubernetes"}
_MAX_READINGS = 6


@cache
def definitions() -> list[dict[str, Any]]:
    cases = [case for file in case_files() for case in file.cases if _is_sound(case)]
    return [yaml.safe_load(case.data["definition"]) for case in cases]


def _is_sound(case: Case) -> bool:
    """Whether a case has a definition without errors, and without Compose's tags."""
    messages, definition = case.data.get("messages", ()), case.data.get("definition", "!")
    return "!" not in definition and not any(": error: " in text for text in messages)


@cache
def values_by_key() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    services = [service for each in definitions() for service in (each.get("services") or {}).values()]
    for service in services:
        for key, value in (service or {}).items():
            found[key].append(value)
    return {key: values for key, values in found.items() if key not in _LEFT_OUT}


def combined(pick: random.Random) -> dict[str, Any]:
    """Make a definition of one to three services, with what the cases have in the other sections."""
    values = values_by_key()
    services = {}
    for name in ("web", "db", "app")[: pick.randint(1, 3)]:
        keys = pick.sample(sorted(values), pick.choice((2, 5, 9, 16, 25)))
        services[name] = {"image": "nginx", **{key: pick.choice(values[key]) for key in keys}}
    others = {section: _entries(pick, section) for section in _SECTIONS}
    return copy.deepcopy({"x-platform": {"full": True}, "services": services, **others})


def _entries(pick: random.Random, section: str) -> dict[str, Any]:
    found = [entry for each in definitions() for entry in (each.get(section) or {}).items()]
    return dict(pick.sample(found, len(found)))


def read_without_errors(project: Project, definition: dict[str, Any], pick: random.Random) -> Reading | None:
    """Read a definition, and take out what an error names until there is none; None if there always is one."""
    for _ in range(_MAX_READINGS):
        reading = project(to_yaml(definition), **_SHELL).read()
        if reading.plan is not None and not reading.loaded.report.errors:
            return reading
        for found in reading.loaded.report.at_least(Severity.ERROR):
            _take_out(definition, found.path, pick)
    return None


def _files(case: Case) -> dict[str, str]:
    found = case.data.get("files", {})
    return {name: text for name, text in found.items() if isinstance(text, str) and ".." not in name and name != ".env"}


def _take_out(definition: dict[str, Any], path: tuple[str | int, ...], pick: random.Random) -> None:
    section, name, *rest = (*path, "", "")[:3]
    entries = definition.get(str(section), {})
    if section != "services":
        entries.pop(name, None)
    elif name in entries:
        service = entries[name]
        key = rest[0] if rest[0] in service and rest[0] != "image" else pick.choice([*(service.keys() - {"image"}), ""])
        service.pop(key, None)


@pytest.fixture(scope="module")
def api(cluster: LocalCluster) -> Any:
    with Api(cluster.access) as found:
        found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield found
        found.delete(f"/api/v1/namespaces/{NAMESPACE}")


@has_long_round
def test_combined_keys(api: Api, project: Project) -> None:
    accepted = 0
    for case in (case for file in case_files() for case in file.cases):
        project(_files(case))
    for seed in SEEDS:
        pick = random.Random(seed)  # noqa: S311 -- nothing is kept secret by it
        definition = combined(pick)
        reading = read_without_errors(project, definition, pick)
        if reading is None or reading.plan is None:
            continue
        for manifest in filter(None, yaml.safe_load_all(render_yaml(reading.plan))):
            manifest["metadata"]["namespace"] = NAMESPACE
            try:
                api.create(manifest, dry_run=True)
            except ApiError as error:
                name = f"{manifest['kind']} {manifest['metadata']['name']}"
                pytest.fail(f"seed {seed}: {name}: {error}\n{to_yaml(definition['services'])}")
            accepted += 1

    assert accepted > len(SEEDS) * 3
