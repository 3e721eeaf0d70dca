"""Every key of the table, every row of the specification's other tables, every ruling: one file of cases each.

The files lie beside this module, and :mod:`tests.keys.cases` shows how they are written.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from composeplat.compose.keys import Handling
from composeplat.diagnostics import Severity
from composeplat.plan import Plan
from composeplat.render.manifests import render_json, render_yaml
from tests.conftest import Folder, Project, Reading
from tests.keys.cases import (
    EXPECTATIONS,
    FULL_ROW_OF,
    ROW_OF,
    Absent,
    Case,
    CaseFile,
    Exactly,
    case_files,
    differences,
    found_in,
    has_key,
    without,
)
from tests.law import tables

FILES = case_files()
KEY_FILES = [file for file in FILES if file.path.parent.name not in ("values", "rulings") and not file.is_full]
FULL_FILES = [file for file in FILES if file.is_full]


def name_of(file: CaseFile, case: Case) -> str:
    return f"{file.id}: {case.title}" if len(file.cases) > 1 else file.id


def marks_of(case: Case) -> list[pytest.MarkDecorator]:
    """A case that the code is known to deviate from fails, and says so when it no longer does."""
    reason = case.data.get("deviates")
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


EVERY_CASE = [pytest.param(case, id=name_of(file, case), marks=marks_of(case)) for file in FILES for case in file.cases]
WITHOUT_EFFECT = [
    pytest.param(file, case, id=name_of(file, case))
    for file in KEY_FILES
    for case in file.cases
    if file.id in ROW_OF and (not ROW_OF[file.id].handling.is_used or "no_effect" in file.data)
]
USED = [
    pytest.param(file, id=file.id)
    for file in KEY_FILES
    if file.id in ROW_OF and ROW_OF[file.id].handling.is_used and "no_effect" not in file.data
]


def files_with(*handlings: Handling) -> list[Any]:
    chosen = [file for file in KEY_FILES if file.id in ROW_OF and ROW_OF[file.id].handling in handlings]
    return [pytest.param(file, id=file.id) for file in chosen]


@pytest.mark.parametrize("case", EVERY_CASE)
def test_case(case: Case, project: Project) -> None:
    """What a case says of a definition is the result."""
    folder = project({})

    reading = case.read(folder)

    assert case.data.get("messages", []) == reading.messages
    assert case.data.get("notes", []) == reading.notes
    expected = {name: case.data[name] for name in EXPECTATIONS if name in case.data}
    if expected:
        assert not list(differences(expected, found_in(reading, folder.path), ""))


@pytest.mark.parametrize(("file", "case"), WITHOUT_EFFECT)
def test_a_key_without_effect_changes_nothing(file: CaseFile, case: Case, project: Project) -> None:
    """A definition with a warned or ignored key renders to the same bytes as one without it."""
    folder = project({})
    definition, row = case.data["definition"], ROW_OF[file.id]
    assert has_key(definition, row)

    with_it, without_it = case.read(folder), case.read(folder, definition=without(definition, row))

    assert with_it.plan is not None, with_it.messages
    assert without_it.plan is not None, without_it.messages
    assert render_yaml(without_it.plan) == render_yaml(with_it.plan)


@pytest.mark.parametrize("file", USED)
def test_a_used_key_has_an_effect(file: CaseFile, project: Project) -> None:
    """Some case of a used key comes out otherwise when the key is taken out."""
    folder = project({})

    assert any(_differs_without(file, case, folder) for case in file.cases)


def _differs_without(file: CaseFile, case: Case, folder: Folder) -> bool:
    with_it = case.read(folder)
    if with_it.plan is None:
        return False
    definition, row = case.data["definition"], {**ROW_OF, **FULL_ROW_OF}[file.id]
    if not has_key(definition, row):
        return False
    return _outcome(with_it) != _outcome(case.read(folder, definition=without(definition, row)))


def _outcome(reading: Reading) -> object:
    return (
        None
        if reading.plan is None
        else (
            render_json(reading.plan),
            reading.plan.images,
            reading.plan.edges,
            _rules_of(reading),
            _rolling(reading.plan),
        )
    )


def _rolling(plan: Plan) -> set[str]:
    """Return the services that go back if a deploy fails, which no object shows."""
    return {service.name for service in plan.services if service.rolls_back}


def _rules_of(reading: Reading) -> object:
    return {name: service.watch for name, service in reading.loaded.project.services.items()}


HONORED = {name: row for name, row in FULL_ROW_OF.items() if row.full is not None and row.full.is_used}
FULL_CASES = [
    pytest.param(file, case, id=name_of(file, case))
    for file in FULL_FILES
    for case in file.cases
    if file.id in HONORED and has_key(case.data["definition"], HONORED[file.id])
]


EFFECTIVE = [
    pytest.param(file, id=file.id) for file in FULL_FILES if file.id in HONORED and "no_effect" not in file.data
]


@pytest.mark.parametrize("file", EFFECTIVE)
def test_a_key_of_full_mode_has_an_effect_there(file: CaseFile, project: Project) -> None:
    """Some case of a key of full mode comes out otherwise when the key is taken out."""
    folder = project({})

    assert any(_differs_without(file, case, folder) for case in file.cases)


@pytest.mark.parametrize(("file", "case"), FULL_CASES)
def test_a_key_of_full_mode_changes_nothing_in_the_default_mode(file: CaseFile, case: Case, project: Project) -> None:
    """Without full mode, a definition with the key renders to the same bytes as one without it, and says why."""
    folder = project({})
    definition, row = case.data["definition"], FULL_ROW_OF[file.id]

    with_it = case.read(folder, full=False)
    without_it = case.read(folder, definition=without(definition, row), full=False)

    assert _rendered(with_it) == _rendered(without_it)
    assert any("full mode (--full)" in diagnostic.hint for diagnostic in with_it.loaded.report.sorted())


def _rendered(reading: Reading) -> str:
    """Return the objects, or the errors of a definition that has some."""
    if reading.plan is not None:
        return render_yaml(reading.plan)
    return "\n".join(diagnostic.message for diagnostic in reading.loaded.report.at_least(Severity.ERROR))


def test_every_row_of_full_mode_has_a_file() -> None:
    """Each row with another handling in full mode has a file that says it, and no other file is there."""
    expected = {name: row.full.value for name, row in FULL_ROW_OF.items() if row.full}

    assert expected == {file.id: file.data.get("handling") for file in FULL_FILES}


@pytest.mark.parametrize("file", files_with(Handling.IGNORED))
def test_an_ignored_key_is_noted_once(file: CaseFile) -> None:
    """A key that is ignored says nothing to the user but one note under -v."""
    assert [(0, 1)] * len(file.cases) == [
        (len(c.data.get("messages", [])), len(c.data.get("notes", []))) for c in file.cases
    ]


@pytest.mark.parametrize("file", files_with(Handling.WARNED, Handling.DEEP))
def test_a_warned_key_is_warned_once(file: CaseFile) -> None:
    """A key that is warned is named in one warning; or in one note that is summed up for all, where nothing is lost."""
    key = re.escape(ROW_OF[file.id].key)
    for case in file.cases:
        output = [*case.data["messages"], *case.data.get("notes", [])]
        warned = [m for m in output if re.search(rf" warning: .*[ .]?{key} is not supported and has no effect", m)]
        noted = [m for m in output if re.search(rf" note: .*[ .]?{key} has no effect here, .* \[redundant-key\]$", m)]
        assert len(warned) + len(noted) == 1


def test_every_row_has_a_file() -> None:
    """Each row of the table of keys has its file, and no file is without a row."""
    assert sorted(ROW_OF) == sorted(file.id for file in KEY_FILES)


def test_files_name_the_handling_of_their_row() -> None:
    """A file says of its key what the table says of it."""
    expected = {name: row.handling.value for name, row in ROW_OF.items()}

    assert expected == {file.id: file.data.get("handling") for file in KEY_FILES}


def test_every_row_of_the_other_tables_has_a_file() -> None:
    """Each row of the tables of values, forms, translations and limits has one file under values/."""
    rows = [(name, row) for name, rows in tables.OTHER_ROWS.items() for row in rows]
    files = [file for file in FILES if file.path.parent.name == "values"]

    assert sorted(rows) == sorted((file.data["table"], file.data["row"]) for file in files)


def test_files_are_well_formed() -> None:
    """No file has a field that nothing looks at, and no case expects nothing but silence."""
    unknown = {file.id: file.unknown_fields() for file in FILES if file.unknown_fields()}
    looked_at = {*EXPECTATIONS, "messages", "notes"}

    assert not unknown
    silent = [file.id for file in FILES for case in file.cases if not looked_at & set(case.data)]
    assert silent == ["top-level/version"]


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        pytest.param({"a": 1}, {"a": 2}, id="another value"),
        pytest.param({"a": 1}, {"a": True}, id="another type"),
        pytest.param({"a": 1}, {}, id="missing"),
        pytest.param({"a": Absent()}, {"a": None}, id="should be absent"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, id="a longer list"),
        pytest.param({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, id="within a list"),
        pytest.param({"a": {"b": 1}}, {"a": [1]}, id="another kind"),
        pytest.param({"a": Exactly({"b": 1})}, {"a": {"b": 1, "c": 2}}, id="more than exactly"),
        pytest.param({"a": Exactly({"b": 1})}, {"a": {}}, id="less than exactly"),
    ],
)
def test_a_difference_is_seen(expected: Any, found: Any) -> None:
    """The comparison of the case files could lie: it shows each kind of difference."""
    assert list(differences(expected, found, ""))


def test_what_is_found_is_no_difference() -> None:
    """A mapping may have more entries than are expected."""
    expected = {"a": {"b": [{"c": 1}]}, "d": Absent(), "e": Exactly({"f": "x"})}

    assert not list(differences(expected, {"a": {"b": [{"c": 1, "g": 2}], "h": 3}, "e": {"f": "x"}}, ""))
