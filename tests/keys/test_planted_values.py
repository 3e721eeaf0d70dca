"""The value of a variable is in no message, whatever key it is the value of: messages quote the text of the file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.conftest import Project
from tests.keys.cases import Case, CaseFile, case_files

PLANTED = "plantedvalue"
FILES = [file for file in case_files() if file.is_full]


def planted(definition: str) -> Iterator[tuple[str, str]]:
    """Yield the definition with a variable in the place of each value, with two values for it."""
    root = yaml.compose(definition, Loader=yaml.SafeLoader)
    for node in _values(root):
        start, end = node.start_mark.index, node.end_mark.index
        if node.style not in ("|", ">") and start != end:
            text = f'{definition[:start]}"${{HIDDEN}}"{definition[end:]}'
            yield text, PLANTED
            yield text, f"{node.value}{PLANTED}"


def _values(node: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            yield from _values(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _values(value)


def leaks(project: Project, case: Case) -> Iterator[str]:
    for text, value in planted(case.data.get("definition", "")):
        folder = case.write(project({}), definition=text)
        folder = type(folder)(folder.path, {**folder.shell, "HIDDEN": value})
        settings = {"full": True, **case.data.get("settings", {})}
        report = folder.read(*case.data.get("use", ()), **settings).loaded.report
        for found in report.sorted():
            if PLANTED in f"{found.message} {found.hint} {found.path}":
                yield f"{text}\n{value}\n{found}\n  {found.hint}"


@pytest.mark.parametrize("file", [pytest.param(file, id=file.id) for file in FILES])
def test_no_value_of_a_variable_is_in_a_message(project: Project, file: CaseFile) -> None:
    """For each value of each case of full mode, one at a time."""
    assert [leak for case in file.cases for leak in leaks(project, case)][:1] == []
