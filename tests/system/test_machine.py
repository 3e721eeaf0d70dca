"""Which machine this is, and whether a process that was noted earlier has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from composeplat.system import machine
from composeplat.system.machine import ProcessId, start_time, system_machine_id

PLACES = ("machine", "boot", "pid_namespace")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs until it is killed."""
    with subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def test_this_process() -> None:
    """A process knows its own note, and nothing in it is the machine's own id."""
    here = ProcessId.of(os.getpid())

    assert here.is_running
    assert here.is_this_one
    assert not here.has_ended
    assert all(getattr(here, place) for place in PLACES)
    assert here == ProcessId.from_data(here.to_data())
    assert Path("/etc/machine-id").read_text().strip() not in str(here.to_data())


def test_a_process_that_ends(sleeper: subprocess.Popen[bytes]) -> None:
    """A process runs until it has ended, and has then ended for good."""
    noted = ProcessId.of(sleeper.pid)
    assert (noted.is_running, noted.has_ended, noted.is_this_one) == (True, False, False)

    sleeper.kill()
    sleeper.wait()

    assert (noted.is_running, noted.has_ended) == (False, True)


def test_a_number_given_anew(sleeper: subprocess.Popen[bytes]) -> None:
    """A process that began at another time is another, whatever its number."""
    noted = replace(ProcessId.of(sleeper.pid), started="1")

    assert (noted.is_running, noted.has_ended) == (False, True)


def test_noted_when_it_had_ended(sleeper: subprocess.Popen[bytes]) -> None:
    """A process that had ended before it could be noted has ended."""
    sleeper.kill()
    sleeper.wait()
    noted = ProcessId.of(sleeper.pid)

    assert noted.started is None
    assert (noted.is_running, noted.has_ended) == (False, True)


@pytest.mark.parametrize("place", PLACES)
def test_a_process_elsewhere(sleeper: subprocess.Popen[bytes], place: str) -> None:
    """Of a process on a cloned machine, of another boot or in another container nothing is known."""
    noted = ProcessId.of(sleeper.pid)
    sleeper.kill()
    sleeper.wait()

    elsewhere = replace(noted, **{place: "other"})  # type: ignore[arg-type]

    assert (elsewhere.is_running, elsewhere.has_ended) == (False, False)


def test_the_same_number_elsewhere() -> None:
    """In two containers both may be number 7; neither is the other."""
    assert not replace(ProcessId.of(os.getpid()), pid_namespace="other").is_this_one


@pytest.mark.parametrize(
    ("other", "expected"),
    [({}, False), ({"boot": "other"}, True), ({"boot": ""}, False), ({"boot": "other", "machine": "other"}, False)],
    ids=["now", "before", "unknown", "another-machine"],
)
def test_before_a_reboot(other: dict[str, str], *, expected: bool) -> None:
    """This machine has started anew since, where its boot has another id now."""
    noted = replace(ProcessId.of(os.getpid()), **other)  # type: ignore[arg-type]

    assert noted.was_before_reboot is expected


def test_a_machine_that_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no ids, no process is proven to run or to have ended."""
    monkeypatch.setattr(machine, "_BOOT_ID_FILE", Path("/nowhere"))
    noted = ProcessId.of(os.getpid())

    assert (noted.is_running, noted.has_ended, noted.was_before_reboot) == (False, False, False)


def test_machine_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first id that the system gives counts, and differs from machine to machine; none is none."""
    files = [tmp_path / name for name in ("first", "second")]
    monkeypatch.setattr(machine, "_MACHINE_ID_FILES", tuple(files))
    found = [system_machine_id()]
    for text, path in (("b\n", files[1]), ("", files[0]), ("a\n", files[0])):
        path.write_text(text)
        found.append(system_machine_id())

    assert found[0] == ""
    assert found[1] == found[2] != found[3]
    assert len(found[1]) == 32


@pytest.mark.parametrize("data", [None, [], {}, {"pid": 1}, {"pid": "1", "machine": "", "boot": "", "started": None}])
def test_what_is_no_note(data: object) -> None:
    """What an older version or somebody else wrote is no note of a process."""
    assert ProcessId.from_data(data) is None


def test_no_such_process() -> None:
    """A number that nobody has began at no time."""
    assert start_time(2**22 + 1) is None
