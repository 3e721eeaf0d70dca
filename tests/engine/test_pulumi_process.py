"""Pulumi's command line is followed while it runs, ended as asked, and leaves nothing running behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.engine.own_processes import OwnProcess
from composeplat.engine.pulumi_process import (
    Interrupted,
    Interrupts,
    PulumiResult,
    PulumiRunner,
    end_leftovers,
    read_note,
)
from composeplat.system.processes import ProcessId, kill_session, session_members, start_time
from tests.conftest import VARIABLES
from tests.engine.fakes import comes_true, fake, full_disk

FLAGS = ["--non-interactive", "--color", "never"]
#: A child that ends by no signal but the last.
CHILD = """
waits = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-IS", "-c", waits], stdout=subprocess.PIPE)
child.stdout.readline()
"""


def runner(folder: Path, body: str, **variables: str) -> PulumiRunner:
    """A runner of a fake program, which has nothing in its environment but what is given."""
    return PulumiRunner(program=fake(folder / "bin" / "pulumi", body), folder=folder, variables=variables)


def nothing() -> None:
    """Do nothing between events."""


def is_gone(pid: int) -> bool:
    return comes_true(lambda: start_time(pid) is None)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that lead groups; all are ended after the test."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        kill_session(process.pid)
        process.communicate()


# asking ---------------------------------------------------------------------------------------------------------------


def test_ask(tmp_path: Path) -> None:
    """A question's answer is what is written to standard output."""
    asked = runner(tmp_path, "print('answer'); print('noise', file=sys.stderr)").query("stack", "export")

    assert PulumiResult(0, "answer\n") == asked


def test_ask_that_fails(tmp_path: Path) -> None:
    """Where a question fails, its errors come first, and then what else was written."""
    asked = runner(tmp_path, "print('half'); print('error: x', file=sys.stderr); sys.exit(255)").query("stack")

    assert PulumiResult(255, "error: x\nhalf\n") == asked


def test_a_server_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that hangs, as with a backend that does not answer, hung for ever; it is ended, and reported."""
    monkeypatch.setattr("composeplat.engine.pulumi_process._COMMAND_TIMEOUT_S", 0.5)
    body = """
    open("pid", "w").write(str(os.getpid()))
    time.sleep(60)
    """
    with pytest.raises(MissingPiece, match=r"^'pulumi stack export' did not finish within \d s$") as caught:
        runner(tmp_path, body).query("stack", "export", "--stack", "team")

    assert caught.value.hint.startswith("check that the state backend answers: pulumi whoami --verbose")
    assert is_gone(int((tmp_path / "pid").read_text()))


def _press_when(path: Path) -> None:
    comes_true(path.exists)
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_while_a_question_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Ctrl-C shortens the wait for a short command: what writes the state may end by itself, what hangs is ended."""
    monkeypatch.setattr("composeplat.engine.pulumi_process._GRACE_PERIOD_S", 0.5)
    asked = runner(tmp_path, 'open("there", "w"); time.sleep(60)')
    press = threading.Thread(target=_press_when, args=(tmp_path / "there",))
    with asked.interrupts:
        press.start()
        with pytest.raises(Interrupted) as caught:
            asked.query("stack", "import")

    assert caught.value.hint == "'pulumi stack import' was stopped; the next run continues from there"


def test_how_a_question_is_asked(tmp_path: Path) -> None:
    """The program runs in the stack's folder, in a group of its own, with the variables given and no input."""
    body = """
    found = {"args": args, "folder": os.getcwd(), "input": sys.stdin.read(), "variables": dict(os.environ)}
    print(json.dumps({**found, "leads": os.getpid() == os.getpgrp()}))
    """
    asked = json.loads(runner(tmp_path, body, A="b").query("stack", "init").output)
    asked["variables"].pop("LC_CTYPE", None)

    assert asked == {
        "args": ["stack", "init", *FLAGS],
        "folder": str(tmp_path),
        "input": "",
        "variables": {"A": "b"},
        "leads": True,
    }


def test_an_answer_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are no text stand as such, and end nothing."""
    asked = runner(tmp_path, r"sys.stdout.buffer.write(b'a\xffb')").query("stack")

    assert PulumiResult(0, "a\ufffdb") == asked


@pytest.mark.parametrize("reads", [True, False])
def test_a_large_input(tmp_path: Path, *, reads: bool) -> None:
    """All of an input arrives, also where the program begins to read late; one that does not read it ends at once."""
    body = "time.sleep(0.3); print(len(sys.stdin.read()))" if reads else "print(3000000)"

    assert PulumiResult(0, "3000000\n") == runner(tmp_path, body).run_locked("stack", "import", given="x" * 3_000_000)


# following ------------------------------------------------------------------------------------------------------------


def test_how_an_operation_is_run(tmp_path: Path) -> None:
    """An operation gets the same, with a log for its events, and variables for this once."""
    body = """
    tell(args=args[:-1], folder=os.getcwd(), a=os.environ.get("A"), b=os.environ.get("B"), input=sys.stdin.read())
    """
    events: list[dict[str, Any]] = []

    runner(tmp_path, body, A="1").follow(["up", "--yes"], events.append, nothing, {"B": "2"})

    expected = {"args": ["up", "--yes", *FLAGS, "--event-log"], "folder": str(tmp_path), "a": "1", "b": "2"}
    assert [{**expected, "input": ""}] == events


def test_events_come_while_it_runs(tmp_path: Path) -> None:
    """Each event is reported when it is written, not at the end: the program here waits for that."""
    body = """
    for number in range(3):
        tell(number=number)
        wait_for(f"seen-{number}")
    """
    events: list[int] = []

    def take(event: dict[str, Any]) -> None:
        events.append(event["number"])
        (tmp_path / f"seen-{event['number']}").touch()

    ended = runner(tmp_path, body).follow(["up"], take, nothing, {})

    assert (events, ended.status) == ([0, 1, 2], 0)


def test_half_lines_are_waited_for(tmp_path: Path) -> None:
    """An event that is only half written is not reported before the rest is there."""
    body = """
    write('{"number": 1}\\n\\n{"num')
    open("half", "w").close()
    wait_for("go")
    write('ber": 2}\\n')
    """
    events: list[int] = []
    before: list[list[int]] = []

    def tick() -> None:
        if (tmp_path / "half").exists():
            before.append(list(events))
            if len(before) == 3:
                (tmp_path / "go").touch()

    runner(tmp_path, body).follow(["up"], lambda event: events.append(event["number"]), tick, {})

    assert before[1:3] == [[1], [1]]
    assert events == [1, 2]


def test_a_line_without_an_end(tmp_path: Path) -> None:
    """What a program was cut off in the middle of is no event."""
    events: list[dict[str, Any]] = []

    runner(tmp_path, """write('{"number": 1}\\n{"number": 2')""").follow(["up"], events.append, nothing, {})

    assert events == [{"number": 1}]


def test_a_line_that_was_cut(tmp_path: Path) -> None:
    """A disk that was full for a moment has taken a part of an event, and the next one after it."""
    events: list[dict[str, Any]] = []

    runner(tmp_path, """write('{"number": 1}\\n{"num{"number": 3}\\n{"number": 4}\\n')""").follow(
        ["up"], events.append, nothing, {}
    )

    assert events == [{"number": 1}, {"number": 4}]


def test_no_events(tmp_path: Path) -> None:
    """A program that fails before it has anything to show is followed all the same."""
    events: list[dict[str, Any]] = []

    ended = runner(tmp_path, "print('error: unknown flag'); sys.exit(255)").follow(["up"], events.append, nothing, {})

    assert (PulumiResult(255, "error: unknown flag\n"), []) == (ended, events)


def test_output(tmp_path: Path) -> None:
    """What is written to either stream is the output, in its order."""
    body = """
    for number in range(4):
        print(number, file=[sys.stdout, sys.stderr][number % 2], flush=True)
    """
    assert PulumiResult(0, "0\n1\n2\n3\n") == runner(tmp_path, body).follow(["up"], lambda _: None, nothing, {})


def test_many_events_and_much_output(tmp_path: Path) -> None:
    """However much is reported at the last moment, all of it arrives."""
    body = """
    write("".join(json.dumps({"number": number, "text": "x" * 100}) + "\\n" for number in range(20_000)))
    sys.stdout.write("y" * 1_000_000)
    """
    numbers: list[int] = []

    ended = runner(tmp_path, body).follow(["up"], lambda event: numbers.append(event["number"]), nothing, {})

    assert list(range(20_000)) == numbers
    assert len(ended.output) == 1_000_000


def test_ticks(tmp_path: Path) -> None:
    """Between events there is time for other things, also while nothing is reported for long."""
    body = """
    wait_for("go")
    """
    ticks: list[float] = []

    def tick() -> None:
        ticks.append(time.monotonic())
        if len(ticks) == 5:
            (tmp_path / "go").touch()

    ended = runner(tmp_path, body).follow(["up"], lambda _: None, tick, {})

    assert ended.status == 0
    assert len(ticks) > 5


# what is left ---------------------------------------------------------------------------------------------------------


def test_children_end_with_it(tmp_path: Path) -> None:
    """A provider that outlives the command line is ended, whatever it makes of signals."""
    body = f"{CHILD}\ntell(group=os.getpgrp(), child=child.pid)\nos._exit(1)\n"
    events: list[dict[str, int]] = []

    ended = runner(tmp_path, body).follow(["up"], events.append, nothing, {})

    assert ended.status == 1
    assert is_gone(events[0]["child"])
    assert comes_true(lambda: session_members(events[0]["group"]) == [])


def test_it_is_noted_while_it_runs(tmp_path: Path) -> None:
    """While an operation runs a private file names its group, for anyone who comes after a kill; then it is gone."""
    note = tmp_path / "running.json"
    seen: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        noted = json.loads(note.read_text())
        age = time.time() - noted.pop("at")
        assert Path(noted.pop("temporary")).is_dir()
        seen.append({**noted, "mode": stat.S_IMODE(note.stat().st_mode), "is-new": 0 <= age < 60, "told": event})
        seen[-1]["is-its"] = ProcessId.from_pid(event["group"]).to_data() == noted
        (tmp_path / "seen").touch()

    runner(tmp_path, "tell(group=os.getpid()); wait_for('seen')").follow(["up"], take, nothing, {})

    group = seen[0]["told"]["group"]
    assert (group, 0o600, True, True) == tuple(seen[0][key] for key in ("pid", "mode", "is-new", "is-its"))
    assert not note.exists()


def test_a_listener_that_fails(tmp_path: Path) -> None:
    """Where the one who listens fails, the operation is ended, and no note of it stays."""
    groups: list[int] = []

    def take(event: dict[str, Any]) -> None:
        groups.append(event["group"])
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        runner(tmp_path, "tell(group=os.getpid()); time.sleep(60)").follow(["up"], take, nothing, {})

    assert session_members(groups[0]) == []
    assert not (tmp_path / "running.json").exists()


# interrupts -----------------------------------------------------------------------------------------------------------


def test_the_first_interrupt_is_passed_on(tmp_path: Path) -> None:
    """The first interrupt lets Pulumi end in order, and show so; its children are not disturbed."""
    body = """
    child = subprocess.Popen(["sleep", "60"])

    def end(*_):
        time.sleep(0.2)
        tell(step="cancelled", child=child.poll())
        sys.exit(255)

    signal.signal(signal.SIGINT, end)
    tell(step="ready")
    time.sleep(60)
    """
    followed = runner(tmp_path, body)
    events: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        events.append(event)
        followed.interrupts.count = 1

    assert PulumiResult(255, "", interrupted=True) == followed.follow(["up"], take, nothing, {})
    assert events == [{"step": "ready"}, {"step": "cancelled", "child": None}]


def test_the_second_interrupt_kills(tmp_path: Path) -> None:
    """A Pulumi that does not end in order is killed at the second interrupt, with its children."""
    body = f"""{CHILD}
signal.signal(signal.SIGINT, lambda *_: tell(step="asked"))
tell(step="ready", child=child.pid)
while True:
    time.sleep(60)
"""
    followed = runner(tmp_path, body)
    events: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        events.append(event)
        followed.interrupts.count += 1

    ended = followed.follow(["up"], take, nothing, {})

    assert (ended.status, ended.interrupted) == (-signal.SIGKILL, True)
    assert [event["step"] for event in events] == ["ready", "asked"]
    assert is_gone(events[0]["child"])


def test_an_interrupt_that_does_not_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Pulumi that continues after an interrupt, as where it hangs on a cluster, is killed after a time."""
    monkeypatch.setattr("composeplat.engine.pulumi_process._INTERRUPT_TIMEOUT_S", 0.2)
    followed = runner(tmp_path, "signal.signal(signal.SIGINT, signal.SIG_IGN)\ntell(step='ready')\ntime.sleep(60)\n")

    def take(_: dict[str, Any]) -> None:
        followed.interrupts.count = 1

    ended = followed.follow(["up"], take, nothing, {})

    assert (ended.status, ended.interrupted) == (-signal.SIGKILL, True)


def test_interrupted_before(tmp_path: Path) -> None:
    """After an interrupt nothing is begun any more."""
    followed = runner(tmp_path, "open('began', 'w').close()")
    followed.interrupts.count = 1

    with pytest.raises(Interrupted, match=r"^interrupted$"):
        followed.follow(["up"], lambda _: None, nothing, {})

    assert not (tmp_path / "began").exists()


def test_a_listener_that_gives_up(tmp_path: Path) -> None:
    """Where the one who listens gives up, Pulumi may end in order, and is killed where it does not do so soon."""
    body = """
    def end(*_):
        open("in-order", "w").close()
        time.sleep(60)

    signal.signal(signal.SIGINT, end)
    tell(group=os.getpid())
    time.sleep(60)
    """
    groups: list[int] = []

    def take(event: dict[str, Any]) -> None:
        groups.append(event["group"])
        raise MissingPiece("no answer")

    followed = runner(tmp_path, body)
    waits = threading.Thread(target=followed.interrupts.cancelled.wait, daemon=True)
    waits.start()
    with pytest.raises(MissingPiece, match=r"^no answer$"):
        followed.follow(["up"], take, nothing, {})

    waits.join(10)
    assert not waits.is_alive(), "the hooks of the program still wait"
    assert not followed.interrupts.cancelled.is_set(), "the next run would not wait"
    assert (tmp_path / "in-order").exists()
    assert session_members(groups[0]) == []
    assert not (tmp_path / "running.json").exists()


def test_no_place_for_the_note(tmp_path: Path) -> None:
    """Where it can't be noted that Pulumi runs, it does not."""
    followed = runner(tmp_path, "time.sleep(60)")

    message = r"^can't write '.*running\.json\..*': no space left on device$"
    with full_disk(), pytest.raises(ComposeplatError, match=message):
        followed.follow(["up"], lambda _: None, nothing, {})


def test_no_interrupt(tmp_path: Path) -> None:
    """A run that nobody interrupts says so."""
    assert not runner(tmp_path, "").follow(["up"], lambda _: None, nothing, {}).interrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupts_are_counted(number: signal.Signals) -> None:
    """Ctrl-C, SIGTERM and a closed terminal break nothing while an operation runs: waiting gets of them."""
    before = signal.getsignal(number)

    with Interrupts() as interrupts:
        assert (interrupts.count, interrupts.cancelled.is_set()) == (0, False)
        os.kill(os.getpid(), number)
        assert comes_true(lambda: interrupts.count)
        counted, cancelled = interrupts.count, interrupts.cancelled.is_set()

    assert (counted, cancelled) == (1, True)
    assert before == signal.getsignal(number)


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_interrupt_breaks(second: signal.Signals) -> None:
    """The second ends whatever is under way, such as a wait for an answer, at once; a third is only counted."""
    listening, client = socket.create_server(("127.0.0.1", 0)), socket.socket()
    with listening, client, Interrupts() as interrupts:
        client.connect(listening.getsockname())
        os.kill(os.getpid(), signal.SIGINT)
        assert comes_true(lambda: interrupts.count)
        timer = threading.Timer(0.1, os.kill, [os.getpid(), second])
        timer.start()
        with pytest.raises(Interrupted, match=r"^interrupted at once$") as caught:
            client.recv(1)
        os.kill(os.getpid(), signal.SIGINT)
        assert comes_true(lambda: interrupts.count == 3)

    assert caught.value.hint == "the next run ends the processes that are left, and continues"
    assert caught.value.exit_code == 130


def test_a_closed_terminal_is_one_interrupt() -> None:
    """Its shell reports it, and the kernel again: the second report must not end an operation within a step."""
    with Interrupts() as interrupts:
        for _ in range(2):
            signal.raise_signal(signal.SIGHUP)
        counts = [interrupts.count]
        with pytest.raises(Interrupted, match=r"^interrupted at once$"):
            signal.raise_signal(signal.SIGTERM)
        counts.append(interrupts.count)

    assert counts == [1, 2]


def test_a_closed_terminal_under_nohup() -> None:
    """What nohup started continues."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)

    assert interrupts.count == 0


def test_interrupts_in_another_thread() -> None:
    """In a thread, which can't have handlers, an operation runs without them."""
    handlers: list[Any] = []

    def operate() -> None:
        with Interrupts():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=operate)
    thread.start()
    thread.join()

    assert [signal.getsignal(signal.SIGINT)] == handlers


def test_ctrl_c_while_it_runs(tmp_path: Path) -> None:
    """A real Ctrl-C reaches Pulumi once, and the one who runs it continues."""
    body = """
    signal.signal(signal.SIGINT, lambda *_: (tell(step="asked"), sys.exit(3)))
    tell(step="ready")
    time.sleep(60)
    """
    followed = runner(tmp_path, body)
    steps: list[str] = []

    def take(event: dict[str, Any]) -> None:
        steps.append(event["step"])
        if event["step"] == "ready":
            os.kill(os.getpid(), signal.SIGINT)

    with followed.interrupts:
        ended = followed.follow(["up"], take, nothing, {})

    assert PulumiResult(3, "", interrupted=True) == ended
    assert steps == ["ready", "asked"]


# leftovers ------------------------------------------------------------------------------------------------------------

FOLLOW = """
import sys
from pathlib import Path
from composeplat.engine.pulumi_process import PulumiRunner

folder = Path(sys.argv[1])
runner = PulumiRunner(program=folder / "bin" / "pulumi", folder=folder, variables={})
runner.follow(["up"], lambda event: print(event["pid"], event["child"], flush=True), lambda: None, {})
"""


def note(folder: Path, group: int, **other: str) -> Path:
    """Note a running group, as an operation does; what is given is there instead."""
    path = folder / "running.json"
    path.write_text(json.dumps({**ProcessId.from_pid(group).to_data(), "at": time.time(), **other}))
    return path


def lead(folder: Path, name: str, started: list[subprocess.Popen[bytes]]) -> int:
    """Start a program of a name that leads a group, with a child in it; gives the group."""
    program = fake(folder / "bin" / name, f"{CHILD}\nprint('up', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen([program], stdout=subprocess.PIPE, start_new_session=True)
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process.pid


def test_after_a_kill(tmp_path: Path) -> None:
    """What a killed run left running is found by its note, and ended with its children; so are its events."""
    fake(tmp_path / "bin" / "pulumi", f"{CHILD}\ntell(pid=os.getpid(), child=child.pid)\ntime.sleep(60)\n")
    command, temporary = [sys.executable, "-c", FOLLOW, str(tmp_path)], tmp_path / "tmp"
    temporary.mkdir()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**VARIABLES, "TMPDIR": str(temporary)}) as killed:
        assert killed.stdout is not None
        pid, child = map(int, killed.stdout.readline().split())
        killed.kill()

    assert len(session_members(pid)) == 2
    assert sorted(path.name for path in temporary.glob("*/*")) == ["events", "output"]
    assert end_leftovers(tmp_path / "running.json")
    assert is_gone(pid)
    assert is_gone(child)
    assert not (tmp_path / "running.json").exists()
    assert not list(temporary.iterdir())


def test_another_folder_in_a_note(tmp_path: Path) -> None:
    """Nothing is deleted that is no folder of a run; a link leads to none."""
    for name in ("work", "composeplat-work"):
        (tmp_path / name).mkdir()
    (tmp_path / "composeplat-link").symlink_to(tmp_path / "composeplat-work")

    for folder in (str(tmp_path / "work"), str(tmp_path / "composeplat-link"), str(tmp_path / "composeplat-none")):
        assert end_leftovers(note(tmp_path, os.getpid(), started="1", temporary=folder))

    assert (tmp_path / "work").is_dir()
    assert (tmp_path / "composeplat-work").is_dir()


def test_a_provider_that_was_left(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    """Where the command line is gone and a provider still runs, in a group of its own, the provider is ended."""
    body = "if os.fork():\n    os._exit(0)\nos.setpgid(0, 0)\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n"
    program = fake(tmp_path / "bin" / "pulumi-resource-kubernetes", body)
    process = subprocess.Popen([program], stdout=subprocess.PIPE, start_new_session=True)
    started.append(process)
    assert process.stdout is not None
    provider = int(process.stdout.readline())
    noted = note(tmp_path, process.pid)
    process.wait()

    assert [provider] == session_members(process.pid)
    assert end_leftovers(noted)
    assert is_gone(provider)


def test_a_number_that_was_reused(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    """A group of others that has the number now is left alone; the note goes, as the run it names is over."""
    group = lead(tmp_path, "database", started)
    path = note(tmp_path, group, started="1")

    assert end_leftovers(path)
    assert len(session_members(group)) == 2
    assert not path.exists()


def test_a_run_that_has_ended_meanwhile(tmp_path: Path) -> None:
    """A note whose group has ended by itself says that a run was cut off, and goes."""
    with subprocess.Popen([sys.executable, "-IS", "-c", ""], start_new_session=True) as process:
        process.wait()
    path = note(tmp_path, process.pid, started="1")

    assert end_leftovers(path)
    assert not path.exists()


def test_no_leftovers(tmp_path: Path) -> None:
    """Without a note no run was cut off."""
    assert not end_leftovers(tmp_path / "running.json")
    assert read_note(tmp_path / "running.json") is None


@pytest.mark.parametrize("place", ["machine", "boot", "pid_namespace"])
def test_a_note_from_elsewhere(tmp_path: Path, started: list[subprocess.Popen[bytes]], place: str) -> None:
    """A number that was noted on a cloned machine, before a reboot or in another container is another's here.

    It used to be ended all the same, where a Pulumi happened to have it.
    """
    group = lead(tmp_path, "pulumi", started)
    path = note(tmp_path, group, **{place: "other"})

    assert end_leftovers(path)
    assert len(session_members(group)) == 2
    assert not path.exists()


def test_read_note(tmp_path: Path) -> None:
    """A note names the process that led the run which left it."""
    found = read_note(note(tmp_path, os.getpid()))

    assert found is not None
    assert found.process == ProcessId.from_pid(os.getpid())


def test_processes_that_may_lock_are_recorded(tmp_path: Path) -> None:
    """A command that changes the state is noted while it runs and afterwards; one that only asks is not."""
    asking = runner(tmp_path, "print(os.getpid())")

    asking.query("stack", "export")
    pid = int(asking.run_locked("stack", "import").output)

    assert [own.process.pid for own in asking.own_processes.read()] == [pid]
    assert stat.S_IMODE(asking.own_processes.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("way", ["change", "follow"])
def test_a_process_that_met_a_lock_has_none(tmp_path: Path, way: str) -> None:
    """A process that met a lock never had it; in another container the holder may have the same number."""
    locked = runner(tmp_path, "print('error: the stack is currently locked by 1 lock(s).'); sys.exit(1)")

    if way == "change":
        locked.run_locked("stack", "import")
    else:
        locked.follow(["up"], lambda _: None, nothing, {})

    assert locked.own_processes.read() == ()


def test_not_every_process_is_kept(tmp_path: Path) -> None:
    """The notes of processes don't grow for ever: the last hundred stay."""
    own = runner(tmp_path, "").own_processes
    for number in range(102):
        own.add(OwnProcess(ProcessId.from_pid(os.getpid()), float(number)))

    assert [item.at for item in own.read()] == [float(number) for number in range(2, 102)]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": "x", "at": 1}', '{"pid": null, "at": null}'])
def test_a_note_that_can_not_be_read(tmp_path: Path, text: str) -> None:
    """A note that names nothing still says that a run was cut off."""
    (tmp_path / "running.json").write_text(text)

    assert end_leftovers(tmp_path / "running.json")
