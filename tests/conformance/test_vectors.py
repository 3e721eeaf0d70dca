"""Compose's own vectors: what its reference implementation reads, we read alike.

The vectors lie beside the project and are read there.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from composeplat.compose.dotenv import read_env
from composeplat.compose.merge import apply_tags, merge
from composeplat.compose.nodes import Node, to_plain
from composeplat.compose.template import BadTemplate, Outcome, evaluate, parse_template
from composeplat.compose.variables import Variables
from composeplat.compose.yaml_reader import read_nodes
from composeplat.diagnostics import Report, Source
from tests.conftest import SHARED, shared

ENVIRONMENT = {"FOO": "first", "BAR": "", "JSON": '{"json":2}'}


def vectors(name: str) -> list[Any]:
    """The vectors of a file, each a case with a name."""
    path = SHARED / "conformance" / f"{name}.json"
    if not path.exists():
        return [pytest.param({}, id="absent")]
    cases = json.loads(path.read_text())
    return [pytest.param(case, id=f"{case['test']}-{index}") for index, case in enumerate(cases)]


def nodes(text: str, name: str = "compose.yaml") -> list[Node]:
    report = Report()
    read = read_nodes(Source(name, Path(), text), report)
    assert not report.errors, [d.message for d in report.sorted()]
    return read


@pytest.mark.shared
@pytest.mark.parametrize("case", vectors("interpolation"))
def test_interpolation(case: dict[str, Any]) -> None:
    """A template gives the expected text, or is refused."""
    outcome = Outcome()
    try:
        text = evaluate(parse_template(case["template"]), ENVIRONMENT.get, outcome)
    except BadTemplate:
        assert "error" in case
        return

    assert bool(outcome.required) == ("error" in case)
    if "error" not in case:
        assert case["expected"] == text


@pytest.mark.shared
@pytest.mark.parametrize("case", vectors("dotenv"))
def test_dotenv(case: dict[str, Any]) -> None:
    """An env file, or one line, gives the expected variables."""
    folder = shared("conformance", "dotenv")
    text = (folder / case["file"]).read_bytes().decode("utf-8-sig") if "file" in case else case["line"]
    environment = case.get("env") or {}
    report = Report()

    values = read_env(Source("file.env", Path(), text), environment.get, report)

    if "error" in case:
        assert report.errors
        return
    assert not report.errors, [d.message for d in report.sorted()]
    if case["test"] == "TestLoadDoesNotOverride":
        seen = {name: Variables.from_layers(environment, values).lookup(name) for name in case["expected"]}
        assert case["expected"] == seen
    else:
        # The vectors of whole files name a part of what is in them.
        assert case["expected"] == {name: values.get(name) for name in case["expected"]}
        assert "file" in case or case["expected"] == values


@pytest.mark.shared
@pytest.mark.parametrize("case", vectors("merge"))
def test_merge(case: dict[str, Any]) -> None:
    """One definition over another gives the expected one."""
    base, over, expected = (nodes(case[key])[0] for key in ("base", "override", "expected"))
    report = Report()

    merged = apply_tags(merge(base, over, report))

    assert not report.errors
    assert to_plain(expected) == to_plain(merged)


@pytest.mark.shared
@pytest.mark.parametrize("case", vectors("unicity"))
def test_unicity(case: dict[str, Any]) -> None:
    """Entries that name the same thing are one."""
    is_stable = apply_tags(nodes(case["before"])[0])

    assert to_plain(nodes(case["expected"])[0]) == to_plain(is_stable)


def test_the_reader_agrees_with_the_library_on_plain_yaml() -> None:
    """What is the same in YAML 1.1 and 1.2 is read as the YAML library reads it: the reader below could lie."""
    text = "a: [1, 'x', true, null]\nb: {c: 1.5, d: ~}\ne: |\n  two\n  lines\n"

    assert yaml.safe_load(io.StringIO(text)) == to_plain(nodes(text)[0])
