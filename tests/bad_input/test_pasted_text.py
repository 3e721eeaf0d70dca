"""Characters that a paste or a merge left in a file: the message has their place, and what to write instead."""

from __future__ import annotations

import pytest

from tests.conftest import Project

QUOTE = "write ' or \" instead of \u201c, which is no quote in YAML"
SPACE = "write a plain space, or none, instead of U+00A0, 'NO-BREAK SPACE'"
CONFLICT = "keep the lines that are wanted; delete the others, and git's marks"
TWO_SIDES = "<<<<<<< HEAD{end}    scale: 1{end}======={end}    scale: 2{end}>>>>>>> other{end}"
MARKED = "error: not YAML: git marked a merge conflict here [invalid-yaml]"


def _found(project: Project, files: str | dict[str, str]) -> list[tuple[str, str]]:
    """Return the messages with their hints."""
    report = project(files).read().loaded.report
    return [(str(diagnostic), diagnostic.hint) for diagnostic in report.sorted()]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_merge_conflict(project: Project, end: str) -> None:
    """The first mark of git is the place, not where YAML is no longer understood."""
    text = f"services:{end}  web:{end}    image: x{end}" + TWO_SIDES.format(end=end)

    assert _found(project, text) == [(f"compose.yaml:4:1: {MARKED}", CONFLICT)]


def test_half_of_a_merge_conflict(project: Project) -> None:
    """A mark that was left behind is named too."""
    found = _found(project, "services:\n  web:\n    image: x\n=======\n    scale: 2\n")

    assert found == [(f"compose.yaml:4:1: {MARKED}", CONFLICT)]


def test_lines_that_only_look_like_it(project: Project) -> None:
    """A text of several lines may have such lines, if it is indented as YAML wants."""
    assert not _found(project, "services:\n  web:\n    image: x\n    command: |\n      =======\n      >>>>>>> x\n")


def test_a_merge_conflict_of_variables(project: Project) -> None:
    """In .env each line that git wrote is reported."""
    variables = TWO_SIDES.format(end="\n").replace("    scale: ", "A=")
    found = _found(project, {"compose.yaml": "services: {web: {image: x}}", ".env": variables})

    message = "error: git marked a merge conflict here [invalid-env-file]"
    assert found == [(f".env:{line}:1: {message}", CONFLICT) for line in (1, 3, 5)]


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("image: \u201cnginx\u201d", 12),
        ("scale: \u201c3\u201d", 12),
        ("ports: [\u201c80:80\u201d]", 13),
        ("environment: {\u201cA\u201d: b}", 24),
        ("\u201ccommand\u201d: ls", 5),
    ],
)
def test_typographic_quotes(project: Project, key: str, column: int) -> None:
    """Word processors write them; YAML takes them for letters."""
    image = "" if key.startswith("image") else "    image: x\n"
    ((message, hint),) = _found(project, f"services:\n  web:\n    {key}\n{image}")

    assert message.startswith(f"compose.yaml:3:{column}: ")
    assert hint == QUOTE


def test_quotes_that_are_wanted(project: Project) -> None:
    """In a value that may be any text they are letters."""
    assert not _found(project, "services: {web: {image: x, environment: {TITLE: \u201cx\u201d}}}")


@pytest.mark.parametrize(
    ("lines", "place", "message"),
    [
        ("\u00a0\u00a0image: x\n", "3:1", "the line is indented with another kind of space"),
        ("    image: x\n    scale:\u00a03\n", "5:1", "could not find expected ':'"),
        ("    scale:\u00a03\n    image: x\n", "4:10", "mapping values are not allowed in this context"),
    ],
)
def test_spaces_that_are_none(project: Project, lines: str, place: str, message: str) -> None:
    """Web pages have spaces that YAML takes for letters, and that nobody sees."""
    found = _found(project, f"services:\n  web:\n{lines}")

    assert (f"compose.yaml:{place}: error: not YAML: {message} [invalid-yaml]", SPACE) in found


def test_spaces_of_a_comment(project: Project) -> None:
    """They are no cause of an error beside them."""
    ((_, hint),) = _found(project, "services:\n  web:\n    image: x\n    scale 3  # a\u00a0: b\n    command: x\n")

    assert hint.startswith("look for a missing ':'")


def test_a_space_without_width(project: Project) -> None:
    """It is named where it makes a value another one."""
    ((_, hint),) = _found(project, "services: {web: {image: nginx\u200b}}")

    assert hint == "write a plain space, or none, instead of U+200B, 'ZERO WIDTH SPACE'"
