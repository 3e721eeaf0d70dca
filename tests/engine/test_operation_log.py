"""The log of an operation: written while it runs, followed from elsewhere, and never in its way."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from composeplat import progress
from composeplat.diagnostics import ComposeplatError, Report, Source, Span
from composeplat.engine import operation_log
from composeplat.engine.operation_document import Operation, add_lines, entry_line
from composeplat.engine.operation_log import MAX_BYTES, OperationFollower, log_operation, read_operation
from composeplat.engine.outcomes import Refused
from composeplat.engine.pulumi_process import Interrupted
from composeplat.progress import Phase, ServiceProgress
from composeplat.system.atomic import open_private
from composeplat.system.processes import ProcessId
from tests.conftest import ROOT
from tests.engine.fakes import comes_true

Document = dict[str, Any]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with progress.use_handler(lambda _: None), progress.forget_values():
        yield


def never() -> bool:
    return False


def read(folder: Path) -> Document:
    found = read_operation(folder)
    assert found is not None
    return found


def emit(service: str, phase: Phase, message: str = "") -> None:
    progress.emit(ServiceProgress(service=service, phase=phase, message=message))


def log_file(folder: Path) -> Path:
    return folder / "operation.jsonl"


# writing --------------------------------------------------------------------------------------------------------------


def test_a_log_is_read_while_it_is_written(tmp_path: Path) -> None:
    assert read_operation(tmp_path) is None
    with log_operation(tmp_path, "deploy", never):
        begun = read(tmp_path)
        emit("web", Phase.WAITING, "starts")
        progress.note("created namespace team")
        running = read(tmp_path)
        emit("web", Phase.READY)
    emit("web", Phase.FAILED, "of something else")
    done = read(tmp_path)

    assert (begun["operation"], begun["state"], begun["pid"]) == ("deploy", "running", os.getpid())
    assert begun["user"]
    assert (running["services"]["web"]["message"], running["notes"]) == ("starts", ["created namespace team"])
    assert running["services"]["web"]["updated"] >= begun["started"]
    assert (done["state"], done["services"]["web"]["phase"]) == ("done", "ready")
    assert done["ended"] >= done["started"]


@pytest.mark.parametrize("what", ["preview", "down", "refresh --preview", "state move"])
def test_what_changes_no_environment_has_no_log(tmp_path: Path, what: str) -> None:
    with log_operation(tmp_path, "wake", never):
        pass
    with log_operation(tmp_path, what, never):
        emit("web", Phase.FAILED)

    assert (read(tmp_path)["operation"], read(tmp_path)["state"]) == ("wake", "done")


def test_the_file_is_private_and_follows_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    log_file(tmp_path).symlink_to(victim)
    before = os.umask(0)
    try:
        with log_operation(tmp_path, "deploy", never):
            emit("web", Phase.READY)
    finally:
        os.umask(before)

    found = log_file(tmp_path).lstat()
    assert (stat.S_ISREG(found.st_mode), stat.S_IMODE(found.st_mode)) == (True, 0o600)
    assert victim.read_text() == "kept"


def test_secrets_are_masked(tmp_path: Path) -> None:
    progress.hide(["hunter2-secret"])

    def fail() -> None:
        with log_operation(tmp_path, "deploy", never):
            emit("web", Phase.FAILED, "can't log in with hunter2-secret")
            progress.note("the password is hunter2-secret")
            raise ComposeplatError("refused: hunter2-secret", "not hunter2-secret")

    with pytest.raises(ComposeplatError):
        fail()

    assert b"hunter2" not in log_file(tmp_path).read_bytes()
    assert read(tmp_path)["notes"] == [
        "the password is [secret]",
        "web: can't log in with [secret]",
        "refused: [secret]",
        "not [secret]",
    ]


def refused() -> Refused:
    report = Report()
    span = Span(Source("compose.yaml", Path()))
    report.add("deploy-failed", span, ("services", "web"), "services.web is of another project", "rename it")
    return Refused(report)


@pytest.mark.parametrize(
    ("error", "state", "notes"),
    [
        (ComposeplatError("no such cluster", "start it"), "failed", ["no such cluster", "start it"]),
        (refused(), "failed", ["services.web is of another project", "nothing was changed"]),
        (KeyError("secret in an internal error"), "failed", ["KeyError"]),
        (SystemExit(1), "failed", ["SystemExit"]),
        (Interrupted("interrupted"), "interrupted", []),
        (KeyboardInterrupt(), "interrupted", []),
    ],
    ids=["a message", "refused", "a bug", "exit", "interrupted", "Ctrl-C"],
)
def test_an_error_ends_it(tmp_path: Path, error: BaseException, state: str, notes: list[str]) -> None:
    with pytest.raises(type(error)), log_operation(tmp_path, "deploy", never):
        raise error

    found = read(tmp_path)
    assert (found["state"], found["notes"]) == (state, notes)
    assert found["ended"]


def test_an_interrupt_that_is_raised_later(tmp_path: Path) -> None:
    """The lock may be released before the interrupt becomes an error, or another error hides it."""
    with log_operation(tmp_path, "refresh", lambda: True):
        pass
    assert read(tmp_path)["state"] == "interrupted"

    with pytest.raises(ComposeplatError), log_operation(tmp_path, "refresh", lambda: True):
        raise ComposeplatError("Pulumi was cut off")
    assert (read(tmp_path)["state"], read(tmp_path)["notes"]) == ("interrupted", ["Pulumi was cut off"])


def test_a_failed_service_fails_it(tmp_path: Path) -> None:
    with log_operation(tmp_path, "deploy", never):
        emit("web", Phase.FAILED, "no such image")
        emit("web", Phase.READY, "rolled back")

    assert (read(tmp_path)["state"], read(tmp_path)["notes"]) == ("failed", ["web: no such image"])


def test_many_events_leave_a_small_file(tmp_path: Path) -> None:
    largest = 0
    with log_operation(tmp_path, "deploy", never):
        for number in range(20_000):
            emit(f"service-{number % 50}", Phase.WAITING, f"{number} " + "x" * 200)
            if number % 100 == 0:
                largest = max(largest, log_file(tmp_path).stat().st_size)
        emit("service-0", Phase.FAILED, "at last")
        running = read(tmp_path)

    assert largest <= MAX_BYTES
    assert len(running["services"]) == 50
    assert running["services"]["service-49"]["message"].startswith("19999 ")
    assert read(tmp_path)["notes"] == ["service-0: at last"]
    assert list(tmp_path.iterdir()) == [log_file(tmp_path)]


def test_many_services_are_read_whole(tmp_path: Path) -> None:
    """More services than fit in the usual size: the file is at most twice what they need."""
    with log_operation(tmp_path, "deploy", never):
        for number in range(6000):
            emit(f"service-{number % 3000}", Phase.WAITING, "x" * 1000)
    assert len(read(tmp_path)["services"]) == 3000
    assert log_file(tmp_path).stat().st_size < 2 * 3000 * 1300


def test_events_of_many_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is written at a time: the file may be replaced meanwhile, and the descriptor be another file's."""
    writing, overlaps = threading.Lock(), []

    def slow_line(entry: Mapping[str, Any]) -> bytes:
        if not writing.acquire(blocking=False):
            overlaps.append(entry)
            return entry_line(entry)
        try:
            time.sleep(0.0001)
            return entry_line(entry)
        finally:
            writing.release()

    monkeypatch.setattr(operation_log, "entry_line", slow_line)

    def work(name: str) -> None:
        for number in range(200):
            emit(name, Phase.WAITING, str(number))

    threads = [threading.Thread(target=work, args=(f"service-{number}",)) for number in range(8)]
    with log_operation(tmp_path, "deploy", never):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert overlaps == []
    lines = log_file(tmp_path).read_bytes().splitlines()
    assert len([json.loads(line) for line in lines]) == 8 * 200 + 2
    assert {row["message"] for row in read(tmp_path)["services"].values()} == {"199"}


# a full disk ----------------------------------------------------------------------------------------------------------


class FullDisk:
    """Lets a write of the log fail, or write only a part, while ``is_full``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, partial: bool = False) -> None:
        self.is_full = False
        write = os.write

        def limited_write(descriptor: int, data: bytes) -> int:
            if not self.is_full:
                return write(descriptor, data)
            if partial:
                return write(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

        def limited_open(path: Path, content: bytes) -> int:
            if self.is_full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return open_private(path, content)

        monkeypatch.setattr(os, "write", limited_write)
        monkeypatch.setattr("composeplat.engine.operation_log.open_private", limited_open)


@pytest.mark.parametrize("partial", [False, True], ids=["nothing fits", "half a line fits"])
def test_a_disk_that_is_full_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, partial: bool) -> None:
    disk = FullDisk(monkeypatch, partial=partial)
    with log_operation(tmp_path, "deploy", never):
        emit("web", Phase.WAITING)
        disk.is_full = True
        emit("web", Phase.READY)
        emit("db", Phase.READY)
        assert read(tmp_path)["services"]["web"]["phase"] == "waiting"
        disk.is_full = False

    found = read(tmp_path)
    assert (found["state"], {row["phase"] for row in found["services"].values()}) == ("done", {"ready"})


def test_a_disk_that_stays_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No log is better than one that shows an operation as running for ever."""
    disk = FullDisk(monkeypatch)
    with log_operation(tmp_path, "deploy", never):
        disk.is_full = True
        emit("web", Phase.READY)

    assert read_operation(tmp_path) is None


def test_a_disk_that_is_full_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with log_operation(tmp_path, "wake", never):
        pass
    FullDisk(monkeypatch).is_full = True
    with log_operation(tmp_path, "deploy", never):
        emit("web", Phase.READY)

    assert read_operation(tmp_path) is None, "the operation before is not the last one"


def test_a_folder_that_can_not_be_written(tmp_path: Path) -> None:
    with log_operation(tmp_path / "missing", "deploy", never):
        emit("web", Phase.READY)

    assert not (tmp_path / "missing").exists()


# following ------------------------------------------------------------------------------------------------------------


def test_a_follower_sees_each_change_once(tmp_path: Path) -> None:
    follower = OperationFollower(tmp_path)
    assert (follower.update(), follower.document) == (True, None)
    assert not follower.update()

    with log_operation(tmp_path, "deploy", never):
        assert follower.update()
        assert not follower.update()
        emit("web", Phase.WAITING)
        assert follower.update()
        assert follower.document is not None
        assert follower.document["services"]
        assert not follower.update()
    assert follower.update()
    assert follower.document["state"] == "done"
    assert not follower.update()

    with log_operation(tmp_path, "sleep", never):
        assert follower.update()
        assert (follower.document["operation"], follower.document["services"]) == ("sleep", {})


def test_half_a_line_is_no_change(tmp_path: Path) -> None:
    follower = OperationFollower(tmp_path)
    with log_operation(tmp_path, "deploy", never):
        emit("web", Phase.WAITING)
        assert follower.update()
        with log_file(tmp_path).open("ab") as stream:
            stream.write(b'{"event":"service","service":"web","pha')
        assert not follower.update()
        with log_file(tmp_path).open("ab") as stream:
            stream.write(b'se":"ready"}\n')
        assert follower.update()


def test_only_new_lines_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of an operation with thousands costs as much as the first; a new file is parsed whole."""
    parsed: list[int] = []

    def counted(lines: list[bytes], operation: Operation | None = None) -> Operation | None:
        parsed.append(len([line for line in lines if line]))
        return add_lines(lines, operation)

    monkeypatch.setattr(operation_log, "add_lines", counted)
    follower = OperationFollower(tmp_path)
    with log_operation(tmp_path, "deploy", never):
        for number in range(3):
            for _ in range(100):
                emit("web", Phase.WAITING, str(number))
            follower.update()
    follower.update()
    assert parsed == [101, 100, 100, 1]

    with log_operation(tmp_path, "wake", never):
        emit("db", Phase.READY)
        follower.update()
        assert follower.document == read_operation(tmp_path)
    log_file(tmp_path).write_bytes(b"not a log\n")
    follower.update()
    assert follower.document is None
    with log_file(tmp_path).open("ab") as stream:
        stream.write(entry_line({"event": "note", "message": "of no operation"}))
    assert not follower.update()


def test_a_follower_of_a_file_that_is_replaced_by_fewer_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_log, "MAX_BYTES", 2000)
    follower = OperationFollower(tmp_path)
    with log_operation(tmp_path, "deploy", never):
        for number in range(200):
            emit(f"service-{number % 3}", Phase.WAITING, str(number))
            assert follower.update()
            assert follower.document == read_operation(tmp_path)


def test_an_update_without_a_change_is_cheap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with log_operation(tmp_path, "deploy", never):
        follower = OperationFollower(tmp_path)
        assert follower.update()
        for name in ("_read_file", "_was_cut_off"):
            monkeypatch.setattr(operation_log, name, lambda *_: pytest.fail("nothing has changed"))
        assert not any(follower.update() for _ in range(100))


ENDLESS = """
import sys, time
from pathlib import Path
from composeplat.engine.operation_log import log_operation
from composeplat import progress
with log_operation(Path(sys.argv[1]), "deploy", lambda: False):
    progress.emit(progress.ServiceProgress(service="web", phase=progress.Phase.WAITING))
    print("runs", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, whose operation runs."""
    command = [sys.executable, "-c", ENDLESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        yield process
        process.kill()


def test_a_killed_operation(tmp_path: Path, other: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_log, "_PROCESS_INTERVAL_S", 0.01)
    follower = OperationFollower(tmp_path)
    assert follower.update()
    assert follower.document is not None
    assert (follower.document["state"], follower.document["pid"]) == ("running", other.pid)

    other.send_signal(signal.SIGKILL)
    other.wait()

    assert comes_true(follower.update, seconds=2)
    assert (follower.document["state"], follower.document["ended"]) == ("interrupted", "")
    assert read(tmp_path)["state"] == "interrupted"
    assert not follower.update()


def test_an_end_that_comes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that writes its end and exits, right after its log was read, was not interrupted."""
    ended = replace(ProcessId.from_pid(os.getpid()), started="0")
    with log_operation(tmp_path, "deploy", never):
        pass
    first, *_, end, _ = log_file(tmp_path).read_bytes().split(b"\n")
    head = json.loads(first) | {"process": ended.to_data()}
    running = entry_line(head)
    assert add_lines([running]) is not None
    contents = iter([running, running + end + b"\n"])
    read_file: Callable[[Path], Any] = lambda _: ((1,), next(contents))  # noqa: E731
    monkeypatch.setattr(operation_log, "_read_file", read_file)

    assert read(tmp_path)["state"] == "done"


def write_begin(folder: Path, process: ProcessId) -> None:
    begin = {"event": "begin", "operation": "deploy", "user": "ann", "started": "", "process": process.to_data()}
    log_file(folder).write_bytes(entry_line(begin))


def test_processes_elsewhere_and_before(tmp_path: Path) -> None:
    """One of another container may be running; none is that a reboot has ended."""
    here = ProcessId.from_pid(os.getpid())
    write_begin(tmp_path, replace(here, pid_namespace="pid:[1]"))
    assert read(tmp_path)["state"] == "running"
    write_begin(tmp_path, replace(here, boot="an-earlier-boot"))
    assert read(tmp_path)["state"] == "interrupted"
    write_begin(tmp_path, replace(here, started="1"))
    assert read(tmp_path)["state"] == "interrupted", "another process has its number now"


def test_what_is_no_log(tmp_path: Path) -> None:
    path = log_file(tmp_path)
    os.mkfifo(path)
    assert read_operation(tmp_path) is None
    path.unlink()
    path.mkdir()
    assert read_operation(tmp_path) is None
    path.rmdir()
    with log_operation(tmp_path / "..", "deploy", never):
        pass
    (tmp_path / ".." / "operation.jsonl").rename(tmp_path / "real")
    path.symlink_to("real")
    assert read_operation(tmp_path) is None
    path.unlink()
    path.write_bytes(b"\x00" * 1024)
    assert read_operation(tmp_path) is None


def test_the_cost_of_an_event(tmp_path: Path) -> None:
    """It is lost in the time of any operation: some 20 microseconds."""
    with log_operation(tmp_path, "deploy", never):
        started = time.perf_counter()
        for _ in range(2000):
            emit("web", Phase.WAITING, "starts")
        assert time.perf_counter() - started < 2
