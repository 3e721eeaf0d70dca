"""The published schemas: each is one, each is named in the docs, and what does not keep to one is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

from tests.conftest import ROOT, Project
from tests.in_process import run_here
from tests.schemas import FOLDER, checked, schema

SCHEMAS = sorted(FOLDER.glob("*.json"))
SLEPT = {
    "schema": "platform/sleep/1", "environment": "shop", "namespace": "team", "status": "done", "services": ["web"],
    "in_development": [], "failures": [], "seconds": 1.5,
}  # fmt: skip


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_schema(path: Path) -> None:
    """A schema is sound, and the page of the commands names it."""
    Draft202012Validator.check_schema(json.loads(path.read_text()))

    assert f"(schemas/{path.name})" in (ROOT / "docs" / "commands.md").read_text()


def test_what_keeps_to_it() -> None:
    """A document is given back as it is."""
    assert checked(SLEPT) is SLEPT


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"services": "web"}, id="another-type"),
        pytest.param({"status": "asleep"}, id="a-word-it-does-not-know"),
        pytest.param({"more": 1}, id="a-field-that-is-not-documented"),
        pytest.param({"failures": [{"service": "web"}]}, id="a-field-missing-within"),
    ],
)
def test_what_does_not(change: dict[str, object]) -> None:
    """A document that says something else is refused."""
    with pytest.raises(ValidationError):
        checked({**SLEPT, **change})


def test_readers_live_with_new_fields() -> None:
    """As it is published, a schema lets fields be added."""
    Draft202012Validator(json.loads((FOLDER / "sleep.json").read_text())).validate({**SLEPT, "more": 1})


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            {"compose.yaml": "services:\n  web:\n    image: nginx\n    container_name: x\n"}, id="with-a-place"
        ),
        pytest.param({}, id="without"),
    ],
)
def test_messages(project: Project, files: dict[str, str]) -> None:
    """Messages as JSON are as their schema says."""
    said = run_here("render", "--json-diagnostics", folder=project(files).path).stderr.splitlines()

    assert len(said) == 1
    Draft202012Validator(schema("message")).validate(json.loads(said[0]))
