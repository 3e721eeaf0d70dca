"""Progress: a table that stays in its place on a terminal, a line for each change elsewhere, JSON for programs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from composeplat import progress
from composeplat.cli import progress_output
from composeplat.cli.console import raw_terminal, show_error, write_message
from composeplat.cli.options import ProgressMode
from composeplat.cli.progress_output import JsonLines, Lines, Screen, Table
from composeplat.diagnostics import ComposeplatError
from composeplat.progress import Event, Phase, ServiceProgress
from tests.conftest import ROOT, VARIABLES
from tests.schemas import checked_event
from tests.terminal import Terminal

#: What is shown, one after the other: a note, a pause in seconds, or the kind of an event and its fields.
Step = str | float | dict[str, Any]

SHOW = """
import json, sys, time
from composeplat import progress
from composeplat.cli.options import ProgressMode
from composeplat.cli.progress_output import Screen

with Screen(ProgressMode(sys.argv[1])):
    for step in json.loads(sys.argv[2]):
        if isinstance(step, str):
            progress.note(step)
        elif isinstance(step, dict):
            if "phase" in step:
                step["phase"] = progress.Phase(step["phase"])
            progress.emit(getattr(progress, step.pop("kind"))(**step))
        else:
            time.sleep(step)
"""
ENVIRONMENT = {**VARIABLES, "TERM": "xterm"}
#: Enough for the table to be drawn a few times.
DRAWN = 0.5


@dataclass
class Drawn:
    """What is on a terminal, as far as the sequences go that the table is drawn with."""

    columns: int
    rows: int
    lines: list[str] = field(default_factory=lambda: [""])
    row: int = 0
    screens: list[list[str]] = field(default_factory=list)
    """What stood there each time before something was erased, and at the end."""

    def feed(self, output: str) -> list[list[str]]:
        for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|[^\x1b]", output):
            if part.endswith("A") and part.startswith("\x1b"):
                self.screens.append(self.shown)
                self.row = max(self.row - int(part[2:-1]), len(self.lines) - self.rows, 0)
            elif part == "\x1b[J":
                self.lines[self.row :] = [""]
            elif part == "\n":
                self._next_line()
            elif not part.startswith("\x1b") and part != "\r":
                if len(self.lines[self.row]) == self.columns:
                    self._next_line()
                self.lines[self.row] += part
        self.screens.append(self.shown)
        return self.screens

    def _next_line(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    @property
    def shown(self) -> list[str]:
        return [line for line in self.lines if line]


def on_terminal(*steps: Step, columns: int = 80, rows: int = 24, mode: str = "auto", **variables: str) -> str:
    """What is written to a terminal."""
    args = [sys.executable, "-c", SHOW, mode, json.dumps(steps)]
    terminal = Terminal(args, folder=ROOT, env={**ENVIRONMENT, **variables}, columns=columns, rows=rows)
    shown = terminal.rest()
    assert terminal.status() == 0, shown
    return shown


def screens(*steps: Step, columns: int = 80, rows: int = 24, **variables: str) -> list[list[str]]:
    """What is on a terminal, each time before it is drawn again, and at the end."""
    return Drawn(columns, rows).feed(on_terminal(*steps, columns=columns, rows=rows, **variables))


def elsewhere(*steps: Step, mode: str = "auto", **variables: str) -> str:
    """What is written where no terminal is: all of it to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, mode, json.dumps(steps)],
        env={**ENVIRONMENT, **variables},
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == b""
    return done.stderr.decode()


def step(name: str, phase: str = "started", **more: Any) -> dict[str, Any]:
    return {"kind": "Step", "name": name, "phase": phase, **more}


def at(service: str, phase: str, message: str = "", seconds: float = 0) -> dict[str, Any]:
    return {"kind": "ServiceProgress", "service": service, "phase": phase, "message": message, "seconds": seconds}


SHOP: Sequence[Step] = (
    at("db", "applying"),
    at("web", "waiting", "waits for db: 0 of 1 ready"),
    "made namespace team",
    at("db", "ready", "1 of 1 ready", 12.4),
    at("web", "failed", "image 'x' can't be pulled", 0.6),
    at("cache", "unchanged"),
)

# lines ----------------------------------------------------------------------------------------------------------------

LINES = """\
db: applying
web: waits for db: 0 of 1 ready
made namespace team
db: 1 of 1 ready
web: failed: image 'x' can't be pulled
cache: unchanged
"""


def test_lines() -> None:
    """Where no terminal is, each change is a line on standard error, as it comes."""
    assert elsewhere(*SHOP) == LINES


def test_a_terminal_that_can_not_move() -> None:
    """A terminal without cursor movement gets lines."""
    assert on_terminal(*SHOP, TERM="dumb").replace("\r\n", "\n") == LINES


def test_a_terminal_of_a_build() -> None:
    """What a CI takes for a terminal is a log, and gets lines."""
    assert on_terminal(*SHOP, CI="true").replace("\r\n", "\n") == LINES


def test_lines_on_a_terminal() -> None:
    """Lines are for anyone who asks for them, on a terminal too."""
    assert on_terminal(*SHOP, mode="plain").replace("\r\n", "\n") == LINES


def test_quiet() -> None:
    """Where no progress is to be shown, only the result is."""
    assert elsewhere(*SHOP, {"kind": "Conclusion", "message": "deployed"}, mode="quiet") == "deployed\n"


def session_event(kind: str, message: str, *, is_important: bool = False) -> dict[str, Any]:
    return {"kind": "SessionEvent", "data": {"event": kind}, "message": message, "is_important": is_important}


IMPORTANT = session_event("conflict", "changed on both sides", is_important=True)
MINOR = session_event("again", "connected again")
SILENT = session_event("idle", "")


@pytest.mark.parametrize(
    ("mode", "output"),
    [
        pytest.param("plain", "changed on both sides\nconnected again\n", id="lines"),
        pytest.param("tty", "changed on both sides\nconnected again\n", id="table"),
        pytest.param("quiet", "changed on both sides\n", id="quiet"),
        pytest.param("json", '{"event": "conflict"}\n{"event": "again"}\n{"event": "idle"}\n', id="json"),
    ],
)
def test_session_events(mode: str, output: str) -> None:
    """--progress quiet shows important events alone; programs get all of them."""
    assert elsewhere(IMPORTANT, MINOR, SILENT, mode=mode) == output


def service(name: str, phase: str, message: str = "", seconds: float = 0) -> dict[str, Any]:
    return {"event": "service", "service": name, "phase": phase, "message": message, "seconds": seconds}


def test_json() -> None:
    """For programs each event is an object on a line, and nothing else is written."""
    result = {"kind": "Result", "data": {"schema": "platform/deploy/1", "status": "done"}}
    output = elsewhere(
        *SHOP, step("starting", "done", seconds=1.26), {"kind": "Conclusion", "message": "x"}, result, mode="json"
    )

    assert [checked_event(line) for line in output.splitlines()] == [
        service("db", "applying"),
        service("web", "waiting", "waits for db: 0 of 1 ready"),
        {"event": "note", "message": "made namespace team"},
        service("db", "ready", "1 of 1 ready", 12.4),
        service("web", "failed", "image 'x' can't be pulled", 0.6),
        service("cache", "unchanged"),
        {"event": "step", "name": "starting", "phase": "done", "seconds": 1.3},
        {"event": "result", "schema": "platform/deploy/1", "status": "done"},
    ]


def test_json_on_a_terminal() -> None:
    """JSON stays JSON on a terminal."""
    output = on_terminal(*SHOP, mode="json")

    assert [json.loads(line)["event"] for line in output.splitlines()].count("service") == 5


def test_controls_in_an_error(hide: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]) -> None:
    """The answer of a server may be in a message: no controls reach a terminal, and a secret with some is masked."""
    hide(["pass\x1b[1mword"])
    show_error(ComposeplatError("it answers '\x1b]0;title\x07 pass\x1b[1mword'", "see\x9b2J\nthe log"))

    assert capsys.readouterr().err == "error: it answers '\\x1b]0;title\\x07 [secret]'\n  hint: see\\x9b2J\nthe log\n"


def test_json_with_odd_secrets(hide: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]) -> None:
    """A secret that is a word of JSON, a number or a field is masked in texts, and the lines stay JSON."""
    hide(["null", "12345", "message"])
    show = JsonLines().handle
    show(progress.Transfer(name="null", done_bytes=12345))
    show(progress.Note("the message 12345"))
    show_error(ComposeplatError("no message"), as_json=True)

    assert [json.loads(line) for line in capsys.readouterr().err.splitlines()] == [
        {"event": "download", "name": "[secret]", "bytes": 12345, "total_bytes": None},
        {"event": "note", "message": "the [secret] [secret]"},
        {"severity": "error", "code": "", "message": "no [secret]", "hint": ""},
    ]


def test_nobody_reads() -> None:
    """Where the reader of it has gone, the operation continues."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", SHOW, "json", json.dumps(SHOP)]

    done = subprocess.run(command, env=ENVIRONMENT, stderr=writer, stdout=subprocess.PIPE, timeout=30, check=False)
    os.close(writer)

    assert (done.returncode, done.stdout) == (0, b"")


# steps ----------------------------------------------------------------------------------------------------------------


def test_steps_as_lines() -> None:
    """What is slow and is no service's is a line when it begins, and one when it has ended."""
    output = elsewhere(
        step("building pulumi", usual_seconds=280), step("building pulumi", "done", seconds=271.2),
        step("starting", "failed", seconds=3.14),
    )  # fmt: skip

    assert output == (
        "building pulumi …, usually 4 min 40 s\nbuilding pulumi: 4 min 31 s\nstarting: failed after 3.1 s\n"
    )


def test_a_passing_step() -> None:
    """What is of no interest once it is done has a line only where it takes long."""
    brief = (step("asking", is_transient=True), step("asking", "done", is_transient=True))
    long = (step("reading", is_transient=True), 2.3, step("reading", "done", is_transient=True))

    assert elsewhere(*brief, *long) == "reading …\n"


def test_steps_on_a_terminal() -> None:
    """There it is a line that counts its time, and stays once it has ended, unless it was but transient."""
    building = (step("building", usual_seconds=280), 1.3, step("building", "done", seconds=1.3))
    shown = screens(
        *building, step("asking", is_transient=True), DRAWN, step("asking", "done", is_transient=True), DRAWN
    )

    assert "⠋ building  1 s of about 4 min 40 s" in [calm(screen)[0] for screen in shown if screen]
    assert ["✓ building: 1.3 s", "⠋ asking"] in [calm(screen) for screen in shown]
    assert shown[-1] == ["✓ building: 1.3 s"]


def test_a_question_after_a_passing_step(capsys: pytest.CaptureFixture[str]) -> None:
    """The row of a step is erased with its end: a question that follows at once would be erased along with it."""
    table = Table()
    table.handle(progress.Step(name="reading", is_transient=True))
    table.tick()
    table.handle(progress.Step(name="reading", phase=Phase.DONE, is_transient=True))
    sys.stderr.write("Delete this? ")
    table.tick()

    assert Drawn(80, 24).feed(capsys.readouterr().err)[-1] == ["Delete this? "]


def test_a_message_that_is_no_event(capsys: pytest.CaptureFixture[str]) -> None:
    """Such as a diagnostic while a deploy runs: the table is drawn again below it, and erases none of its lines."""
    with Screen(ProgressMode.TTY), progress.step("deploying", is_transient=True):
        time.sleep(DRAWN)
        write_message("web: error\n1 error\n")
        time.sleep(DRAWN)
        progress.note("the end")

    shown = Drawn(80, 24).feed(capsys.readouterr().err)
    assert [line[2:] for line in shown[0]] == ["deploying"]
    assert shown[-1] == ["web: error", "1 error", "the end"]


def test_steps_stand_below_the_services() -> None:
    """A step that continues has the last line."""
    assert calm(screens(step("asking"), at("db", "ready"), DRAWN)[-2]) == ["✓ db  ready", "⠋ asking"]


def test_a_program_has_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """What a program shows is not drawn over; a note goes back to the first column."""
    table = Table()
    with raw_terminal():
        table.handle(progress.Step(name="waiting", is_transient=True))
        table.tick()
        table.handle(progress.Note("connected again"))
    during = capsys.readouterr().err
    table.tick()

    assert during == "connected again\r\n"
    assert "waiting" in capsys.readouterr().err


def test_stable() -> None:
    """After the end of the work, messages are below the table."""
    shown = screens(
        at("db", "ready"), DRAWN, {"kind": "Finished"}, {"kind": "Conclusion", "message": "deployed"}, DRAWN
    )

    assert shown[-1] == ["✓ db  ready", "deployed"]


# a line -------------------------------------------------------------------------------------------------------


def still(capsys: pytest.CaptureFixture[str], *steps: Event) -> str:
    """The message after some silence."""
    with Screen():
        for step in steps:
            progress.emit(step)
        capsys.readouterr()
        deadline = time.monotonic() + 20
        output = ""
        while not output.endswith("\n") and time.monotonic() < deadline:
            time.sleep(0.02)
            output += capsys.readouterr().err
    return output.partition("\n")[0]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a line come sooner than for people."""
    monkeypatch.setattr(progress_output, "_STILL_INTERVAL_S", 0.05)


@pytest.mark.usefixtures("soon")
def test_a_sign_of_life(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing changes for long, a line says what is waited for, so that a log does not seem dead."""
    output = still(
        capsys,
        ServiceProgress(service="db", phase=Phase.WAITING, message="0 of 1 ready"),
        ServiceProgress(service="web", phase=Phase.APPLYING),
        ServiceProgress(service="cache", phase=Phase.READY, message="1 of 1 ready"),
    )

    assert output == "still waiting for db (0 of 1 ready), web (applying), 0 s"


@pytest.mark.usefixtures("soon")
def test_a_sign_of_life_of_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    """A step that continues is named."""
    output = still(capsys, progress.Step(name="asking the cluster", is_transient=True))

    assert output == "still asking the cluster, 0 s"


def test_a_sign_of_life_counts_from_the_start_of_its_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the usual time of a build, a line had the time since the start of the whole run."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    shown = progress_output.Lines(_started=now, _last_line_at=now)
    now += 200
    for phase in (Phase.STARTED, Phase.DONE):
        shown.handle(progress.Step(name="building a", phase=phase))
    shown.handle(progress.Step(name="building b"))
    now += 16
    shown.tick()
    shown.handle(ServiceProgress(service="web", phase=Phase.APPLYING))
    now += 20
    shown.tick()
    lines = capsys.readouterr().err.splitlines()

    assert [line for line in lines if line.startswith("still ")] == [
        "still building b, 16 s", "still building b, waiting for web (applying), 236 s",
    ]  # fmt: skip


@pytest.mark.usefixtures("soon")
def test_a_sign_of_life_without_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    """The same where no service is at work, as while Pulumi starts."""
    assert still(capsys) == "still running, 0 s"


@pytest.mark.usefixtures("soon")
def test_no_sign_of_life_in_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    """A program runs or files are watched, so nothing is waited for until the next step: a line came every 15 s."""
    with Screen():
        progress.emit(progress.SessionEvent({"event": "watching"}, "watching", is_important=False))
        time.sleep(0.5)
        assert capsys.readouterr().err == "watching\n"
    session = progress.SessionEvent({"event": "watching"}, "watching", is_important=False)
    assert still(capsys, session, progress.Step(name="building", is_transient=True)) == "still building, 0 s"
    publication = progress.SessionEvent({"event": "publish"}, "", is_important=False, is_in_session=False)
    assert still(capsys, publication) == "still running, 0 s"


def test_no_sign_of_life_while_things_change() -> None:
    """Shortly after a change nothing is reported."""
    assert elsewhere("made namespace team", DRAWN) == "made namespace team\n"


# the table ------------------------------------------------------------------------------------------------------------

BUSY: Sequence[Step] = (
    at("db", "ready", "1 of 1 ready", 12.4),
    at("web", "waiting", "waits for db: 0 of 1 ready", 100),
    at("a-service-with-a-very-long-name", "applying"),
    at("cache", "failed", "image 'registry.example.com/team/cache:1' can't be pulled: not found", 3),
)


def calm(screen: list[str]) -> list[str]:
    """A screen at a fixed moment: what turns and counts on it stands still."""
    return [re.sub("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "⠋", re.sub(r"10\d s$", "100 s", line)) for line in screen]


def test_table() -> None:
    """While an operation runs each service has its line: a mark, its name, what it is at, and for how long."""
    assert calm(screens(*BUSY, DRAWN)[-2]) == [
        "✓ db                        1 of 1 ready  12 s",
        "⠋ web                       waits for db: 0 of 1 ready  100 s",
        "⠋ a-service-with-a-very-lo  applying",
        "✗ cache                     image 'registry.example.com/team/cache:1' ca…  3 s",
    ]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_width(columns: int) -> None:
    """Whatever the width of the terminal, no line of the table takes two of its lines."""
    for screen in screens(*BUSY, DRAWN, columns=columns)[-2:]:
        assert len(screen) == len(BUSY)
        assert max(map(len, screen)) < columns


def test_wide_letters() -> None:
    """Letters that take two columns count as two, so that no line of the table takes two of the terminal's."""
    for screen in screens(at("web", "waiting", "健康检查失败" * 20), DRAWN)[-2:]:
        (line,) = screen
        assert 77 <= len(line) + len(re.findall("[健康检查失败]", line)) < 80


#: What a health check wrote: a color, a title of the window, lines.
WRITTEN = "its health check failed: \x1b[31mred\x1b]0;title\x07\nand more"
ESCAPED = r"its health check failed: \x1b[31mred\x1b]0;title\x07 and more"


def test_controls_in_a_message() -> None:
    """What a container wrote can't control the terminal, nor take more than one line of the table."""
    assert ESCAPED in on_terminal(at("web", "failed", WRITTEN), DRAWN, columns=200)
    assert elsewhere(at("web", "waiting", WRITTEN), at("web", "failed", WRITTEN)) == (
        f"web: {ESCAPED}\nweb: failed: {ESCAPED}\n"
    )


@pytest.mark.parametrize("kind", ["Note", "Conclusion"])
def test_controls_in_a_note(kind: str) -> None:
    """A note and a conclusion can name what a container or the cluster wrote: no control of it reaches a terminal."""
    written = {"kind": kind, "message": "web: \x1b]0;title\x07 \x9b31mred\u202e\r"}
    escaped = r"web: \x1b]0;title\x07 \x9b31mred\u202e\r"

    assert on_terminal(dict(written)).replace("\r\n", "\n") == f"{escaped}\n"
    assert elsewhere(dict(written)) == f"{escaped}\n"


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        pytest.param(40, "✗ cache                     imag…  3 s", id="narrow"),
        pytest.param(
            200,
            "✗ cache                     image 'registry.example.com/team/cache:1' can't be pulled: not found  3 s",
            id="wide",
        ),
    ],
)
def test_shortened_output(columns: int, line: str) -> None:
    """Of what does not fit the end is left out, never the time."""
    assert line == screens(*BUSY, DRAWN, columns=columns)[-1][-1]


def test_a_slow_step_on_a_narrow_terminal() -> None:
    """How long it took the last time is left out there: a line that is wrapped would not be erased as a whole."""
    shown = screens(step("building kube", usual_seconds=360.0), 1.3, columns=24)

    assert [len(screen) for screen in shown[:-1]] == [1] * (len(shown) - 1)
    assert shown[-2][0][2:] == "building kube  1 s"


def test_the_last_table() -> None:
    """At the end the table stands once, with the notes above it, and says what became of each service."""
    assert screens(*SHOP[:3], DRAWN, *SHOP[3:], DRAWN)[-1] == [
        "made namespace team",
        "✓ db     1 of 1 ready  12 s",
        "✗ web    image 'x' can't be pulled",
        "✓ cache  unchanged",
    ]


def test_an_end_before_the_first_drawing() -> None:
    """An operation that ends at once shows its last table all the same."""
    assert screens(at("db", "unchanged")) == [["✓ db  unchanged"]]


def test_no_services() -> None:
    """Without a service there is no table, and nothing is erased."""
    assert on_terminal("nothing to do", DRAWN) == "nothing to do\r\n"


def test_notes_below_the_table() -> None:
    """A note is above the table, which is drawn below it again."""
    shown = screens(at("db", "ready"), DRAWN, "first", DRAWN, "second", DRAWN)

    assert shown[-1] == ["first", "second", "✓ db  ready"]
    assert ["first", "✓ db  ready"] in shown


def test_time_continues() -> None:
    """The time of what is under way continues between changes; that of what has ended does not."""
    shown = screens(at("db", "ready", "", 5), at("web", "waiting", "", 8), 1.3)[:-1]

    clocks = [[int(clock) for clock in re.findall(r"(\d+) s$", "\n".join(item), re.MULTILINE)] for item in shown]
    assert {db for db, *_ in clocks} == {5}
    assert clocks[-1][1] > clocks[0][1]


def test_colors() -> None:
    """Marks have colors: green for what is done, red for what failed, others for what is under way."""
    output = on_terminal(at("a", "ready"), at("b", "failed"), at("c", "waiting"), at("d", "pending"))

    assert "\x1b[32m✓\x1b[0m a  ready" in output
    assert "\x1b[31m✗\x1b[0m b  failed" in output
    assert re.search("\x1b\\[33m.\x1b\\[0m c  waiting", output)
    assert "\n· d  pending" in output


def test_no_color() -> None:
    """With NO_COLOR the table is drawn in its place all the same."""
    output = on_terminal(*SHOP, DRAWN, NO_COLOR="1")

    assert re.findall(r"\x1b\[[0-9;]*m", output) == []
    assert "\x1b[3A\x1b[J" in output


def test_what_is_typed_leaves_no_rest() -> None:
    """A terminal shows a ^C at the cursor: the table is erased from the first column on, or two characters stay."""
    output = on_terminal(*SHOP, DRAWN)

    moves = re.findall(r".?\x1b\[\d+A\x1b\[J", output, re.DOTALL)
    assert len(moves) > 1
    assert {move[0] for move in moves} == {"\r"}


def test_no_utf8() -> None:
    """A terminal that shows ASCII alone gets marks that it can show, in as little room."""
    shown = screens(*BUSY, at("last", "pending"), DRAWN, columns=40, PYTHONIOENCODING="ascii")

    assert calm(shown[-2]) == [
        "+ db                        1 o>  12 s",
        "- web                       wa>  100 s",
        "- a-service-with-a-very-lo  applying",
        "! cache                     imag>  3 s",
        ". last                      pending",
    ]


MANY: Sequence[Step] = [at(f"s{number}", "ready" if number % 3 == 0 else "waiting") for number in range(12)]


def test_more_services_than_lines() -> None:
    """Where not all have room, those under way are shown, as many as fit, and the others are counted."""
    table = screens(*MANY, DRAWN, rows=8)[-2]

    assert [line.split()[1] for line in table[:-1]] == ["s1", "s2", "s4", "s5", "s7"]
    assert table[-1] == "… 4 done, 3 more under way"


def test_all_services_at_the_end() -> None:
    """The last table has all services, whatever the terminal's height."""
    assert [line.split()[1] for line in screens(*MANY, DRAWN, rows=8)[-1]] == [f"s{number}" for number in range(12)]


@pytest.mark.parametrize(("rows", "columns"), [pytest.param(1, 5, id="tiny"), pytest.param(0, 0, id="of-no-size")])
def test_a_terminal_without_room(rows: int, columns: int) -> None:
    """A terminal that says it has no room breaks nothing."""
    assert "s11" in on_terminal(*MANY, DRAWN, rows=rows, columns=columns)


def transfer(done: int) -> dict[str, Any]:
    return {"kind": "Transfer", "name": "downloading it, 5.0 MiB", "done_bytes": done * 2**20, "total_bytes": 5 * 2**20}


DOWNLOAD = "downloading it, 5.0 MiB"


def test_a_download_on_a_terminal() -> None:
    """The line of its step says how far it is, and is the step's own again once it has ended."""
    shown = screens(step(DOWNLOAD), transfer(1), DRAWN, transfer(3), DRAWN, step(DOWNLOAD, "done", seconds=2))

    rows = [line[2:].partition("  ")[0] for lines in shown for line in lines]
    assert f"{DOWNLOAD}: 1.0 MiB, 20 %" in rows
    assert f"{DOWNLOAD}: 3.0 MiB, 60 %" in rows
    assert rows[-1] == f"{DOWNLOAD}: 2.0 s"


def test_a_download_as_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A line says how far it is once nothing was printed for ten seconds."""
    lines = Lines()
    monkeypatch.setattr(progress_output, "_TRANSFER_INTERVAL_S", 0.2)
    lines.handle(progress.Step(name=DOWNLOAD))
    lines.handle(progress.Transfer(name=DOWNLOAD, done_bytes=2**20, total_bytes=5 * 2**20))
    time.sleep(0.3)
    lines.handle(progress.Transfer(name=DOWNLOAD, done_bytes=2 * 2**20, total_bytes=5 * 2**20))

    assert capsys.readouterr().err == f"{DOWNLOAD} …\n{DOWNLOAD}: 2.0 MiB, 40 %\n"
