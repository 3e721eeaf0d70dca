"""Whether a process that was noted earlier has ended, and ending it with all that it started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from composeplat.system import processes
from composeplat.system.deadline import Deadline, poll
from composeplat.system.process_status import ProcessTable, ProcFiles, PsCommand, process_table
from composeplat.system.processes import ProcessId, kill_session, may_descend, session_members, start_time, wait_for_end


class PsOnLinux(PsCommand):
    """What other systems have, but for the id of the boot: Linux has it elsewhere."""

    def boot_id(self) -> str:
        return ProcFiles().boot_id()


@pytest.fixture(params=[ProcFiles(), PsOnLinux()], ids=["proc", "ps"], autouse=True)
def table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ProcessTable:
    """Linux reads files, and every other system asks ``ps``: all of it holds for both."""
    table: ProcessTable = request.param
    monkeypatch.setattr(processes, "_TABLE", table)
    return table


PLACES = ("machine", "boot", "pid_namespace")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs until it is killed."""
    with subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def test_this_process() -> None:
    """A process knows its own note, and nothing in it is the machine's own id."""
    here = ProcessId.from_pid(os.getpid())

    assert here.is_running
    assert here.is_current
    assert not here.has_ended
    assert all(getattr(here, place) for place in PLACES)
    assert here == ProcessId.from_data(here.to_data())
    assert Path("/etc/machine-id").read_text().strip() not in str(here.to_data())


def test_a_process_that_ends(sleeper: subprocess.Popen[bytes]) -> None:
    """A process runs until it has ended, and has then ended for good."""
    noted = ProcessId.from_pid(sleeper.pid)
    assert (noted.is_running, noted.has_ended, noted.is_current) == (True, False, False)

    sleeper.kill()
    sleeper.wait()

    assert (noted.is_running, noted.has_ended) == (False, True)


def test_a_number_reused(sleeper: subprocess.Popen[bytes]) -> None:
    """A process that began at another time is another, whatever its number."""
    noted = replace(ProcessId.from_pid(sleeper.pid), started="1")

    assert (noted.is_running, noted.has_ended) == (False, True)


def test_noted_when_it_had_ended(sleeper: subprocess.Popen[bytes]) -> None:
    """A process that had ended before it could be noted has ended."""
    sleeper.kill()
    sleeper.wait()
    noted = ProcessId.from_pid(sleeper.pid)

    assert noted.started is None
    assert (noted.is_running, noted.has_ended) == (False, True)


@pytest.mark.parametrize("place", PLACES)
def test_a_process_elsewhere(sleeper: subprocess.Popen[bytes], place: str) -> None:
    """Of a process on a cloned machine, of another boot or in another container nothing is known."""
    noted = ProcessId.from_pid(sleeper.pid)
    sleeper.kill()
    sleeper.wait()

    elsewhere = replace(noted, **{place: "other"})  # type: ignore[arg-type]

    assert (elsewhere.is_running, elsewhere.has_ended) == (False, False)


def test_the_same_number_elsewhere() -> None:
    """In two containers both may be number 7; neither is the other."""
    assert not replace(ProcessId.from_pid(os.getpid()), pid_namespace="other").is_current


@pytest.mark.parametrize(
    ("other", "expected"),
    [({}, False), ({"boot": "other"}, True), ({"boot": ""}, False), ({"boot": "other", "machine": "other"}, False)],
    ids=["now", "before", "unknown", "another-machine"],
)
def test_before_a_reboot(other: dict[str, str], *, expected: bool) -> None:
    """This machine has started again since, where its boot has another id now."""
    noted = replace(ProcessId.from_pid(os.getpid()), **other)  # type: ignore[arg-type]

    assert noted.was_before_reboot is expected


def test_a_machine_that_reports_nothing(monkeypatch: pytest.MonkeyPatch, table: ProcessTable) -> None:
    """Where the system has no ids, no process is proven to run or to have ended."""
    monkeypatch.setattr(type(table), "boot_id", lambda _: "")
    noted = ProcessId.from_pid(os.getpid())

    assert (noted.is_running, noted.has_ended, noted.was_before_reboot) == (False, False, False)


@pytest.mark.parametrize("data", [None, [], {}, {"pid": 1}, {"pid": "1", "machine": "", "boot": "", "started": None}])
def test_what_is_no_note(data: object) -> None:
    """What an older version or somebody else wrote is no note of a process."""
    assert ProcessId.from_data(data) is None


def test_no_such_process() -> None:
    """A number that nobody has began at no time."""
    assert start_time(2**22 + 1) is None


def test_start_time(tmp_path: Path, started: Start, table: ProcessTable) -> None:
    """The start time is read whatever the name of the program; of two processes the second has the later one."""
    program = tmp_path / "a) S 1 (b"
    program.write_text(f"#!{sys.executable} -IS\nimport time\nprint('up', flush=True)\ntime.sleep(60)\n")
    program.chmod(0o755)
    first = started(str(program))
    # The clock of `ps` shows seconds.
    time.sleep(1.1 if isinstance(table, PsCommand) else 0.05)
    second = started(sys.executable, "-IS", "-c", "import time; print('up', flush=True); time.sleep(60)")
    times = [start_time(first.pid), start_time(second.pid)]

    assert times == [start_time(first.pid), start_time(second.pid)]
    assert None not in times
    assert times[0] != times[1]
    assert table.order(times[0] or "") < table.order(times[1] or "")
    first.kill()
    # It has ended, though nobody has taken note of its end yet.
    assert poll(lambda: start_time(first.pid) is None, Deadline(10), interval_s=0.01)


def test_may_descend(sleeper: subprocess.Popen[bytes], started: Start, table: ProcessTable) -> None:
    """A process of a session is recognized by its program, and by its age: it is not older than the session."""
    name = Path(sys.executable).resolve().name[:3]
    time.sleep(1.1 if isinstance(table, PsCommand) else 0.05)
    younger = ProcessId.from_pid(started(sys.executable, "-IS", "-c", POLITE).pid)

    assert may_descend(younger.pid, ProcessId.from_pid(sleeper.pid), name)
    assert may_descend(younger.pid, younger, name)
    assert not may_descend(younger.pid, younger, "pulumi")
    assert not may_descend(sleeper.pid, younger, name)
    assert may_descend(sleeper.pid, replace(younger, started=None), name)
    assert not may_descend(sleeper.pid, replace(younger, started="another version"), name)
    assert not may_descend(2**22 + 1, younger, "")


@pytest.mark.parametrize(("system", "expected"), [("linux", ProcFiles), ("darwin", PsCommand), ("freebsd", PsCommand)])
def test_process_table(system: str, expected: type[ProcessTable]) -> None:
    assert isinstance(process_table(system), expected)


# ending ---------------------------------------------------------------------------------------------------------------

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
POLITE = "import time; print('up', flush=True); time.sleep(60)"
#: Begins a session with a child in a process group of its own.
FAMILY = """
import os, time
if os.fork() == 0:
    os.setpgid(0, 0)
    print("up", flush=True)
time.sleep(60)
"""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def started() -> Iterator[Start]:
    """Start programs that say when they are up; each leads a session, which is ended with the test."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    yield start
    for process in processes:
        kill_session(process.pid)
        process.communicate()


@pytest.mark.parametrize(("script", "has_ended"), [(POLITE, True), (STUBBORN, False)], ids=["ends", "stays"])
def test_terminate(started: Start, script: str, *, has_ended: bool) -> None:
    """A process is asked to end, and it is reported whether it did so in time; a kill ends it in any case."""
    process = started(sys.executable, "-IS", "-c", script)
    noted = ProcessId.from_pid(process.pid)

    assert noted.terminate(grace_s=10 if has_ended else 0.2) is has_ended

    noted.kill()
    assert poll(lambda: noted.has_ended, Deadline(10), interval_s=0.01)


def test_terminate_another(sleeper: subprocess.Popen[bytes]) -> None:
    """A process that has the number of one that ended is neither asked to end nor killed."""
    noted = replace(ProcessId.from_pid(sleeper.pid), started="1")

    assert noted.terminate(grace_s=10)
    noted.kill()

    assert sleeper.poll() is None


def test_kill_session(started: Start) -> None:
    """A session is ended with children in process groups of their own, which the kill of one group leaves."""
    process = started(sys.executable, "-IS", "-c", FAMILY)
    assert len(session_members(process.pid)) == 2

    kill_session(process.pid)

    assert wait_for_end(process.pid, Deadline(10))
    assert session_members(process.pid) == []


def test_wait_for_end_of_a_session_that_stays(started: Start) -> None:
    """A session that does not end in time is no success."""
    process = started(sys.executable, "-IS", "-c", FAMILY)

    assert not wait_for_end(process.pid, Deadline(0.1))


def test_members_after_the_leader_ended(started: Start) -> None:
    """A session has the number of its leader, though that has ended."""
    process = started(sys.executable, "-IS", "-c", FAMILY)
    [child] = [pid for pid in session_members(process.pid) if pid != process.pid]

    process.kill()

    assert poll(lambda: session_members(process.pid) == [child], Deadline(10), interval_s=0.01)
