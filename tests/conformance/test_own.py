"""Compose's rules by cases of the project's own: they run in any clone, and hold every rule that the vectors show.

The cases are in the files of ``own/``, whose names say what each is about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from composeplat.compose.dotenv import read_env
from composeplat.compose.keys import SECTIONS
from composeplat.compose.merge import apply_tags, merge
from composeplat.compose.nodes import Node, to_plain
from composeplat.compose.template import BadTemplate, Outcome, evaluate, parse_template
from composeplat.compose.variables import Variables
from composeplat.compose.yaml_reader import read_nodes
from composeplat.diagnostics import Report, Severity, Source
from tests.conformance import test_schema, traits
from tests.conformance.traits import Trait
from tests.conftest import ROOT, Project, Reading, shared
from tests.keys.cases import case_files

KEYS = {key for keys in SECTIONS.values() for key in keys}
OWN = Path(__file__).parent / "own"
PLACES = {"TOWN": "Oslo", "BLANK": ""}

Case = dict[str, Any]


@cache
def own(name: str) -> list[Any]:
    read: list[Any] = yaml.safe_load((OWN / f"{name}.yaml").read_text())
    return read


def each(name: str) -> list[Any]:
    return [pytest.param(case, id=f"{number}-{case['says']}") for number, case in enumerate(own(name), start=1)]


@cache
def vectors(name: str) -> list[Case]:
    read: list[Case] = json.loads(shared("conformance", f"{name}.json").read_text())
    return read


# variables in values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", each("interpolation"))
def test_interpolation(case: Case) -> None:
    """A template gives its text, or is refused: as it is written, or for want of a variable."""
    outcome = Outcome()
    try:
        text = evaluate(parse_template(case["text"]), PLACES.get, outcome)
    except BadTemplate:
        assert case.get("refused")
        return

    assert bool(outcome.required) == case.get("refused", False)
    assert outcome.required or text == case["gives"]


@pytest.mark.shared
def test_every_rule_of_interpolation_has_a_case() -> None:
    """No vector has a variable written in a way, or in a state, that no case of ours has."""
    theirs = {"FOO": "first", "BAR": "", "JSON": "{}"}
    shown = {trait for case in vectors("interpolation") for trait in traits.of_template(case["template"], theirs)}

    assert (
        shown - {trait for case in own("interpolation") for trait in traits.of_template(case["text"], PLACES)} == set()
    )


# env files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", each("dotenv"))
def test_dotenv(case: Case) -> None:
    """An env file gives its variables, or is refused at a line."""
    report, environment = Report(), case.get("environment", {})

    values = read_env(Source("a.env", Path(), case["text"].removeprefix("\ufeff")), environment.get, report)

    assert bool(report.errors) == case.get("refused", False)
    assert bool(report.sorted()) == (case.get("refused", False) or case.get("warns", False))
    if "gives" in case:
        assert values == case["gives"]
    if "seen" in case:
        assert {name: Variables.from_layers(environment, values).lookup(name) for name in case["seen"]} == case["seen"]


@pytest.mark.shared
def test_every_rule_of_env_files_has_a_case() -> None:
    """No vector has a part of the grammar that no case of ours has."""
    folder = shared("conformance", "dotenv")
    texts = [(folder / case["file"]).read_text() if "file" in case else case["line"] for case in vectors("dotenv")]
    texts += [path.read_text() for path in folder.iterdir()]
    shown = {trait for text in texts for trait in traits.of_env_file(text)}

    assert shown - {trait for case in own("dotenv") for trait in traits.of_env_file(case["text"])} == set()


# files over one another -----------------------------------------------------------------------------------------------


def merges() -> Iterator[tuple[str, str, str, str]]:
    """What each case says, and its base, what is laid over it, and the result of them, as whole definitions."""
    for case in own("merge"):
        title = case["says"]
        if "whole" in case:
            yield title, case["whole"]["base"], case["whole"]["over"], case["whole"]["gives"]
        for key in case.get("keys", ()):
            over = _within(key, case["over"]) if "over" in case else "{}"
            yield f"{key}: {title}", _within(key, case["base"]), over, _within(key, case["gives"])


def _within(key: str, value: str) -> str:
    """A definition with a value at a key of its one service, such as ``build.args``."""
    for name in reversed(("services", "web", *key.split("."))):
        value = f"{{{name}: {value}}}"
    return value


def node(text: str) -> Node:
    report = Report()
    (read,) = read_nodes(Source("compose.yaml", Path(), text), report)
    assert not report.errors, text
    return read


@pytest.mark.parametrize(("base", "over", "gives"), [pytest.param(*texts, id=title) for title, *texts in merges()])
def test_merge(base: str, over: str, gives: str) -> None:
    """One definition over another gives the expected one; entries that name the same thing are one."""
    report = Report()

    merged = apply_tags(merge(node(base), node(over), report))

    assert not report.errors
    assert to_plain(merged) == to_plain(node(gives))


@pytest.mark.shared
def test_every_rule_of_merging_has_a_case() -> None:
    """No vector lays a kind of value over another, at a place where no case of ours does."""
    theirs = [(traits.tree(case["base"]), traits.tree(case["override"])) for case in vectors("merge")]
    ours = [(traits.tree(base), traits.tree(over)) for _, base, over, _ in merges()]
    shown = {trait for base, over in theirs for trait in traits.of_merge(base, over)}

    assert shown - {trait for base, over in ours for trait in traits.of_merge(base, over)} == set()


@pytest.mark.shared
def test_every_rule_of_equal_entries_has_a_case() -> None:
    """No vector repeats entries of a list that no case of ours repeats."""
    shown = {trait for case in vectors("unicity") for trait in traits.of_repeats(traits.tree(case["before"]))}
    ours = [traits.tree(base) for _, base, over, _ in merges() if over == "{}"]

    assert shown - {trait for definition in ours for trait in traits.of_repeats(definition)} == set()


# whole definitions ----------------------------------------------------------------------------------------------------


def bomb() -> str:
    """Nine lists, each of the one before nine times."""
    lines = [f"x-{number}: &x{number} [{', '.join([f'*x{number - 1}'] * 9)}]" for number in range(1, 10)]
    return "\n".join(["x-0: &x0 {k: v}", *lines, "services: {web: {image: a}}"])


def read(project: Project, text: str) -> Reading:
    folder = project({"compose.yaml": text, "part.yaml": "services: {part: {image: p}}", "part.env": "A=1"})
    (folder.path / "site").mkdir(exist_ok=True)
    return folder.read()


def places(reading: Reading) -> set[Trait]:
    """The code of each error, and the last key on the way to what it is about."""
    errors = [d for d in reading.loaded.report.sorted() if d.severity is Severity.ERROR]
    return {(d.code, next((str(step) for step in reversed(d.path) if step in KEYS), "")) for d in errors}


@pytest.mark.parametrize("case", each("refused"))
def test_refused(case: Case, project: Project) -> None:
    """What Compose refuses is refused, with a place."""
    reading = read(project, bomb() if "bomb" in case else case["text"])

    assert [list(place) for place in sorted(places(reading))] == [case["error"]]


@pytest.mark.parametrize("text", own("forms"))
def test_taken(text: str, project: Project) -> None:
    """Every form that Compose takes is no error."""
    reading = read(project, text)

    assert places(reading) == set()


def own_traits() -> set[Trait]:
    cases = [case.data.get("definition", "") for file in case_files() for case in file.cases]
    golden = [path.read_text() for path in sorted((ROOT / "tests" / "golden").glob("*/compose.yaml"))]
    trees = []
    for text in (*own("forms"), *cases, *golden):
        try:
            trees.append(traits.tree(text))
        except yaml.YAMLError:
            continue  # A case of what is no YAML.
    return {trait for tree in trees for trait in traits.of_definition(tree)}


@pytest.mark.shared
def test_every_form_has_a_case() -> None:
    """No vector that is taken, and nothing that the schema takes, has a value of a kind that no case of ours has."""
    accepted = [case["yaml"] for case in vectors("loader_inputs") if not case["errors"] and "%" not in case["yaml"]]
    shown = {trait for text in accepted for document in _documents(text) for trait in traits.of_definition(document)}
    forms = [form for key in test_schema.every_key() for form in test_schema.definitions(key)]
    shown |= {trait for form in forms for trait in traits.of_definition(form)}

    assert sorted(shown - own_traits()) == []


def _documents(text: str) -> Iterator[Any]:
    yield from yaml.load_all(text, Loader=traits.AnyTag)


@pytest.mark.shared
def test_every_refusal_has_a_case(project: Project) -> None:
    """No vector is refused by a code, at a key, that no case of ours is refused by."""
    shown = set()
    for case in vectors("loader_inputs"):
        if case["errors"]:
            shown |= places(read(project, case["yaml"]))

    assert sorted(shown - {tuple(case["error"]) for case in own("refused")}) == []
