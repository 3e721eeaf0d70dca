"""How messages look: on a real terminal, with an excerpt and colors; anywhere else, plain lines."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.conftest import VARIABLES, Folder, Project
from tests.terminal import Terminal

BOLD_RED, BOLD_YELLOW, BOLD_CYAN, BOLD, RESET = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;36m", "\x1b[1m", "\x1b[0m"


def on_terminal(folder: Folder, *args: str, columns: int = 100, **shell: str) -> tuple[int, list[str]]:
    """Run the command on a terminal, and give its exit status and the lines on it."""
    environment = {**VARIABLES, "TERM": "xterm", **shell}
    command = [sys.executable, "-c", "from composeplat.cli.app import main; main()", *args]
    terminal = Terminal(command, folder=folder.path, env=environment, columns=columns)
    shown = terminal.rest()
    return terminal.status(), shown.replace("\r\n", "\n").splitlines()


INVALID = """\
services:
  web:
    image: nginx
    scale: two
    isolation: x
    uts: host
"""
SCALE = "services.web.scale must be a whole number from 0 to 10000, not 'two' [invalid-value]"
ISOLATION = "services.web.isolation is not supported and has no effect [unsupported-key]"


def test_excerpt(project: Project) -> None:
    """On a terminal each message shows the line, with a mark under the place; errors are red, warnings yellow."""
    status, lines = on_terminal(project(INVALID), "render")

    assert status == 3
    assert lines == [
        f"compose.yaml:4:12: {BOLD_RED}error{RESET}: {SCALE}",
        "    4 |     scale: two",
        f"      |            {BOLD}^^^{RESET}",
        f"compose.yaml:5:5: {BOLD_YELLOW}warning{RESET}: {ISOLATION}",
        "    5 |     isolation: x",
        f"      |     {BOLD}^^^^^^^^^{RESET}",
        "  hint: it is for containers of Windows",
        "1 error, 1 warning",
    ]


def test_notes_are_cyan(project: Project) -> None:
    """Notes have a color of their own."""
    _, lines = on_terminal(project("services: {web: {image: nginx, uts: host}}"), "config", "-q", "-v")

    assert lines[0] == f"compose.yaml:1:32: {BOLD_CYAN}note{RESET}: services.web.uts is ignored [ignored-key]"


@pytest.mark.parametrize("shell", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color(project: Project, shell: dict[str, Any]) -> None:
    """Without color the excerpt stays, and not one escape byte is written."""
    _, lines = on_terminal(project(INVALID), "render", **shell)

    assert lines == [
        f"compose.yaml:4:12: error: {SCALE}",
        "    4 |     scale: two",
        "      |            ^^^",
        f"compose.yaml:5:5: warning: {ISOLATION}",
        "    5 |     isolation: x",
        "      |     ^^^^^^^^^",
        "  hint: it is for containers of Windows",
        "1 error, 1 warning",
    ]


def test_empty_no_color_is_none(project: Project) -> None:
    """An empty NO_COLOR asks for nothing."""
    _, lines = on_terminal(project(INVALID), "render", NO_COLOR="")

    assert BOLD_RED in lines[0]


def test_no_terminal(project: Project) -> None:
    """Where no terminal listens, messages are plain lines without excerpts."""
    outcome = project(INVALID).run("render", TERM="xterm")

    assert outcome.stderr.splitlines() == [
        f"compose.yaml:4:12: error: {SCALE}",
        f"compose.yaml:5:5: warning: {ISOLATION}",
        "  hint: it is for containers of Windows",
        "1 error, 1 warning",
    ]
    assert "\x1b" not in outcome.stderr


def test_json_diagnostics_on_a_terminal(project: Project) -> None:
    """JSON stays JSON on a terminal."""
    _, lines = on_terminal(project(INVALID), "render", "--json-diagnostics", columns=400)

    assert [line[:24] for line in lines] == ['{"file": "compose.yaml",'] * 2


def excerpt(lines: list[str]) -> tuple[str, str]:
    """The line shown under the first message, and what is marked in it."""
    shown, mark = lines[1], lines[2]
    start = mark.index("^")
    return shown, shown[start : start + mark.count("^")]


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_long_line(project: Project, columns: int) -> None:
    """A long line is cut around the place, so that it fits the terminal and the mark still stands under it."""
    args = ", ".join(f"'word{number}'" for number in range(40))
    folder = project(f"services: {{web: {{image: nginx, command: [{args}], scale: two, labels: [{args}]}}}}")

    _, lines = on_terminal(folder, "render", columns=columns, NO_COLOR="1")

    # The message itself may take several of the terminal's lines; the file has it as one.
    shown, marked = excerpt(lines)
    assert marked == "two"
    assert len(shown) < columns


def test_a_very_narrow_terminal(project: Project) -> None:
    """However narrow the terminal is, some of the line is shown."""
    folder = project("services: {web: {image: nginx, command: [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa], scale: two}}")

    _, lines = on_terminal(folder, "render", columns=10, NO_COLOR="1")

    assert excerpt(lines)[1] == "two"


def test_a_mark_that_reaches_beyond_the_line(project: Project) -> None:
    """What is longer than what is shown is marked as far as it is shown."""
    folder = project(f"services: {{web: {{image: '{'A' * 300}'}}}}")

    _, lines = on_terminal(folder, "render", columns=80, NO_COLOR="1")

    shown, marked = excerpt(lines)
    assert set(marked) <= {"'", "A"}
    assert len(lines[2]) <= len(shown)


def test_tabs_and_control_characters(project: Project) -> None:
    """A tab in the line counts as one place, so that the mark stands under what is meant."""
    folder = project("services: {web: {image:\t\tnginx, scale:\ttwo}}")

    _, lines = on_terminal(folder, "render", NO_COLOR="1")

    assert excerpt(lines)[1] == "two"


def test_a_message_about_a_whole_file(project: Project) -> None:
    """Where there is no line to show, none is shown."""
    _, lines = on_terminal(project({}), "render", "-f", "none.yaml", NO_COLOR="1")

    assert lines == ["none.yaml:1:1: error: 'none.yaml' does not exist [unreadable-file]", "1 error"]


def test_an_error_without_a_place(project: Project) -> None:
    """An error that has no place is red too."""
    _, lines = on_terminal(project({}), "render", columns=400)

    assert lines[0].startswith(f"{BOLD_RED}error{RESET}: no Compose file here or in a folder above")


def test_the_result_has_no_color(project: Project) -> None:
    """The objects are plain text on a terminal too."""
    status, lines = on_terminal(project("services: {web: {image: nginx}}"), "render")

    assert status == 0
    assert lines[:3] == ["---", "apiVersion: v1", "kind: Service"]
    assert not any("\x1b" in line for line in lines)


def test_names_can_not_steer_the_terminal(project: Project) -> None:
    """An escape sequence in a file's name reaches no terminal."""
    folder = project({"a\x1b[2Jb.yaml": "services: {web: {image: nginx, scale: two}}"})

    _, lines = on_terminal(folder, "render", "-f", "a\x1b[2Jb.yaml", NO_COLOR="1")

    assert lines[0].startswith("a\\x1b[2Jb.yaml:1:39: error: ")
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(
    "command", [("config", "--variables", "--format=json"), ("render", "--json")], ids=["config", "render"]
)
def test_json_can_not_steer_the_terminal(command: tuple[str, ...], project: Project) -> None:
    """Results in JSON have no control character as it is, and the same values; other letters stay readable."""
    text = "\u00fc\x1b[31m\x7f\x9b31m\u2028\u202eX"
    folder = project("services: {web: {image: nginx, command: [$A]}}\n")

    written = folder.run(*command, A=text).stdout

    assert [c for c in written if not c.isprintable() and c != "\n"] == []
    assert '"\u00fc\\u001b[31m\\u007f\\u009b31m\\u2028\\u202eX"' in written


def test_counts(project: Project) -> None:
    """The last line counts what was reported."""
    text = "services: {a: {image: x, scale: -, uts: x}, b: {scale: -, isolation: x, dns: x}}"

    assert project(text).run("render").stderr.splitlines()[-1] == "3 errors, 2 warnings"
    assert project(text).run("render", "-v").stderr.splitlines()[-1] == "3 errors, 2 warnings, 1 note"
