"""Compose's own schema: every key it knows has a row in our table, and what it accepts we accept.

The schema says which types a key takes, not which texts: those are given here by key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from composeplat.compose.full_keys import SERVICE
from composeplat.compose.keys import SECTIONS
from composeplat.compose.load import Request, load
from composeplat.diagnostics import Severity
from tests.conftest import SHARED, lines

Schema = Mapping[str, Any]

_PATH = SHARED / "conformance" / "compose-spec.json"


@cache
def schema() -> Any:
    return json.loads(_PATH.read_text()) if _PATH.exists() else {"properties": {}}


def resolved(node: Schema) -> Schema:
    reference = node.get("$ref")
    return schema()["$defs"][reference.rpartition("/")[2]] if reference else node


# rows -----------------------------------------------------------------------------------------------------------------


#: Mappings of full mode that a module of their own reads, whose cases are in tests/keys/full.
READ_WITHOUT_ROWS = {
    "services.*.extends",
    "services.*.post_start.*",
    "services.*.pre_start.*",
    "services.*.pre_stop.*",
    "services.*.ulimits.*",
}


def sections(name: str, node: Schema) -> Iterator[tuple[str, Schema]]:
    """Each mapping of known keys at or below a value that we use, under the name our table gives it."""
    node = resolved(node)
    for choice in node.get("oneOf", []):
        yield from sections(name, choice)
    for inner in [node["items"]] if "items" in node else []:
        yield from sections(f"{name}.*", inner)
    for pattern, inner in node.get("patternProperties", {}).items():
        if not pattern.startswith("^x-"):
            yield from sections(f"{name}.*", inner)
    if "properties" not in node:
        return
    yield name, node["properties"]
    for key, inner in node["properties"].items():
        row = SECTIONS.get(name, {}).get(key)
        if row is not None and (row.handling.is_used or (row.full is not None and row.full.is_used)):
            yield from sections(f"{name}.{key}".lstrip("."), inner)


@pytest.mark.shared
def test_every_key_of_the_schema_has_a_row() -> None:
    """A key that Compose knows is used, warned of or ignored by decision, never taken for a typo."""
    known = list(sections("", schema()))

    assert {name for name, _ in known if name not in SECTIONS} == READ_WITHOUT_ROWS
    assert [f"{name}.{key}" for name, keys in known for key in keys if key not in SECTIONS.get(name, keys)] == []


@pytest.mark.shared
def test_every_section_of_the_table_is_in_the_schema_or_ours() -> None:
    """What our table knows and the schema does not is an extension: else it is a key under a wrong name."""
    assert set(SECTIONS) - {name for name, _ in sections("", schema())} == {
        "endpoints",
        "endpoints.*",
        "x-platform",
        "services.*.healthcheck.http",
        "services.*.resources",
        "services.*.resources.limits",
        "services.*.resources.requests",
        "volumes.*.driver_opts",
        "services.*.x-autoscale",
        "services.*.x-kubernetes",
        "volumes.*.x-kubernetes",
        "endpoints.x-kubernetes",
        "services.*.x-schedule",
        # of a version after that of the schema here
        "jobs.*",
        "jobs.*.triggers",
        "jobs.*.triggers.schedule.*",
        "services.*.x-expose",
    }


# values ---------------------------------------------------------------------------------------------------------------


def samples(key: str, node: Schema) -> Iterator[Any]:
    """One value of each form that the schema takes for a key."""
    node = resolved(node)
    for choice in node.get("oneOf", []):
        yield from samples(key, choice)
    if "enum" in node:
        yield from node["enum"]
        return
    types = node.get("type", [])
    types = [types] if isinstance(types, str) else types
    for item in types:
        yield from _of_type(item, types, key, node)


def _of_type(entry: str, types: list[str], key: str, node: Schema) -> Iterator[Any]:
    match entry:
        case "null":
            yield None
        case "boolean":
            yield True
        case "integer" | "number":
            yield 2
        case "string" if "boolean" in types:
            yield "true"
        case "string" if "integer" in types or "number" in types:
            yield "2"
        case "string":
            yield TEXTS.get(key, "text")
        case "array":
            yield from ([item] for item in samples(key, node["items"]))
        case "object":
            yield from _objects(key, node)


def _objects(key: str, node: Schema) -> Iterator[Any]:
    known = node.get("properties", {})
    needed: dict[str, Any] = {name: next(samples(name, known[name])) for name in node.get("required", [])}
    needed.update(NEEDED.get(key, {}))
    if not known and "patternProperties" not in node:
        yield needed
    for name, inner in known.items():
        yield from ({**needed, name: value} for value in samples(name, inner))
    for pattern, inner in node.get("patternProperties", {}).items():
        if not pattern.startswith("^x-"):
            yield from ({TEXTS.get(key, "text"): value} for value in samples(key, inner))


#: What a text must be where not any text will do.
TEXTS = {
    "condition": "any",
    "context": "./here",
    "cpu_count": "2",
    "depends_on": "other",
    "endpoint_mode": "vip",
    "env_file": "shared.yaml",
    "format": "raw",
    "top-level include": "shared.yaml",
    "interval": "10s",
    "memory": "64m",
    "path": "shared.yaml",
    "ports": "8080:80",
    "project_directory": "./here",
    "protocol": "udp",
    "restart": "always",
    "source": "here",
    "start_period": "10s",
    "stop_grace_period": "10s",
    "target": "/data",
    "test": "NONE",
    "timeout": "10s",
    "volumes": "/data",
    "working_dir": "/app",
}

#: What a mapping of a list needs although the schema does not say so.
NEEDED: dict[str, dict[str, Any]] = {
    "top-level include": {"path": "shared.yaml"},
    "ports": {"target": 80},
    "secrets": {"source": "token"},
    "volumes": {"source": "here", "target": "/data"},
}


def definitions(key: str) -> list[Any]:
    """A definition for each form of a key, which is written ``services.*.key`` or ``key``."""
    properties = schema()["properties"]
    services = {"web": {"image": "example/web"}, "other": {"image": "example/other", "restart": "no"}}
    section, _, name = key.rpartition(".")
    if section != SERVICE:
        return [{"services": services, key: form} for form in samples(f"top-level {key}", properties[key])]
    (node,) = properties["services"]["patternProperties"].values()
    forms = samples(name, resolved(node)["properties"][name])
    webs = ({"image": "example/web", name: form} for form in forms)
    declared = {"volumes": {"here": {}}, "secrets": {name: {"file": "a"} for name in ("text", "here", "token")}}
    return [{"services": {**services, "web": web}, **declared} for web in webs]


def every_key() -> list[str]:
    known = dict(sections("", schema()))
    return [f"{SERVICE}.{key}" for key in known.get(SERVICE, ())] + [key for key in known[""] if key != "services"]


@pytest.mark.shared
@pytest.mark.parametrize("key", every_key() or ["absent"])
def test_every_form_of_a_key_is_accepted(key: str, tmp_path: Path) -> None:
    """No form that the schema takes is an error."""
    (tmp_path / "here").mkdir()
    (tmp_path / "shared.yaml").write_text('x-shared: "an env file and a definition at once"\n')
    forms = definitions(key)

    assert forms
    assert {json.dumps(form): found for form in forms if (found := errors(form, tmp_path))} == {}


def errors(definition: Any, folder: Path) -> list[str]:
    (folder / "compose.yaml").write_text(json.dumps(definition))
    loaded = load(Request(files=("compose.yaml",), folder=folder))
    return lines(loaded.report.at_least(Severity.ERROR))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("image", ["x"], id="list-for-text"),
        pytest.param("scale", "text", id="text-for-number"),
        pytest.param("deploy", {"resources": []}, id="list-for-mapping"),
    ],
)
def test_a_form_the_schema_refuses_is_refused(key: str, value: Any, tmp_path: Path) -> None:
    """The test above can fail: what is of a wrong type is an error."""
    assert errors({"services": {"web": {"image": "example/web", key: value}}}, tmp_path)
