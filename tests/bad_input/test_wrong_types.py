"""Every key with every kind of value, where it fits and where it does not: never an exception, and always a place."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.compose.keys import SECTIONS
from composeplat.diagnostics import Diagnostic, Severity
from composeplat.render.manifests import render_json, render_yaml, to_yaml
from tests.conftest import Folder, Project

VALUES: dict[str, Any] = {
    "nothing": None,
    "a number": 3,
    "a negative number": -1,
    "a number with a point": 0.5,
    "a boolean": True,
    "a text": "a b",
    "an empty text": "",
    "a path": "/a",
    "a list": ["a"],
    "an empty list": [],
    "a list of numbers": [1, 2],
    "a list of nothing": [None],
    "a nested list": [[["a"]]],
    "a list of mappings": [{"a": "b"}, {}],
    "a mapping": {"a": "b"},
    "an empty mapping": {},
    "a mapping of nothing": {"a": None},
    "a mapping of lists": {"a": ["b"], "rules": [1]},
    "a nested mapping": {"a": {"a": {"a": [{}]}}},
}

#: Keys whose section is in a list, not under names.
LISTS = ("env_file", "ports", "volumes", "endpoints", "include")
PLACES = [(section, key) for section, keys in SECTIONS.items() for key in keys]
ENTRIES = sorted(section for section in SECTIONS if section.endswith(".*"))


def definition(section: str, key: str | None, value: Any) -> Any:
    """Build a definition that has nothing but this value, under what must be above it."""
    made = value if key is None else {key: value}
    steps = section.split(".") if section else []
    while steps:
        step = steps.pop()
        if step != "*":
            made = {step: made}
        elif steps[-1] in LISTS and steps != ["volumes"]:
            made = [made]
        else:
            made = {"web": made}
    if section.startswith("services.*.") or (section == "services.*" and key is not None):
        made["services"]["web"].setdefault("image", "nginx")
    elif isinstance(made, dict):
        made.setdefault("services", {"web": {"image": "nginx"}})
    return made


def assert_has_a_place(diagnostic: Diagnostic) -> None:
    lines = diagnostic.span.source.text.split("\n")
    assert 1 <= diagnostic.span.line <= len(lines)
    assert 1 <= diagnostic.span.column <= len(lines[diagnostic.span.line - 1]) + 1
    assert diagnostic.message


def assert_is_read(folder: Folder, content: Any) -> None:
    """Read a definition to the end, and look at all that is reported about it."""
    reading = folder.write({"compose.yaml": to_yaml(content)}).read()
    for diagnostic in reading.loaded.report.at_least(Severity.NOTE):
        assert_has_a_place(diagnostic)
    if reading.plan is not None:
        render_yaml(reading.plan)
        render_json(reading.plan)


@pytest.mark.parametrize(("section", "key"), PLACES, ids=[f"{section}:{key}" for section, key in PLACES])
def test_key(section: str, key: str, project: Project) -> None:
    """The key takes the value, or is an error with a place inside the file."""
    folder = project({})
    for value in VALUES.values():
        assert_is_read(folder, definition(section, key, value))


@pytest.mark.parametrize("section", ENTRIES)
def test_entry(section: str, project: Project) -> None:
    """The same for an entry that should be a mapping of such keys."""
    folder = project({})
    for value in VALUES.values():
        assert_is_read(folder, definition(section, None, value))


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_definition(value: Any, project: Project) -> None:
    """The same for the whole definition."""
    assert_is_read(project({}), value)


@pytest.mark.parametrize("key", ["name", *SECTIONS["services.*"]])
def test_key_in_two_files(key: str, project: Project) -> None:
    """A value laid over one of another kind is an error too, not an exception."""
    folder = project({})
    values: tuple[Any, ...] = (None, 3, "a", ["a"], {"a": "b"}, [[{}]])
    for value in values:
        for other in ("a", ["a"], {"a": "b"}):
            base, over = definition("services.*", key, value), definition("services.*", key, other)
            files = {"compose.yaml": to_yaml(base), "compose.override.yaml": to_yaml(over)}
            for diagnostic in folder.write(files).read().loaded.report.at_least(Severity.NOTE):
                assert_has_a_place(diagnostic)


def test_the_definitions_are_what_they_should_be() -> None:
    """The builder of this test stands the key where its section is: otherwise nothing would be tested."""
    assert definition("services.*.ports.*", "target", 3) == {
        "services": {"web": {"ports": [{"target": 3}], "image": "nginx"}}
    }
    assert definition("volumes.*.driver_opts", "size", 3) == {
        "volumes": {"web": {"driver_opts": {"size": 3}}},
        "services": {"web": {"image": "nginx"}},
    }
    assert definition("endpoints.*", "path", 3) == {
        "endpoints": [{"path": 3}],
        "services": {"web": {"image": "nginx"}},
    }
    assert definition("services.*", None, 3) == {"services": {"web": 3}}
    assert definition("", "services", 3) == {"services": 3}
