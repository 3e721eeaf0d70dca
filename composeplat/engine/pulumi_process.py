"""Run the Pulumi command line, follow its events, interrupt it and kill it.

Owns the process group of Pulumi and its providers. Signals reach that group only through this module: the first
interrupt lets Pulumi finish its step, the second one kills it, and the group has the processes that a killed run left.
Must not know the meaning of an event: callbacks get them as they are.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

from composeplat.diagnostics import ComposeplatError, Exit, MissingPiece
from composeplat.engine.backend import writing
from composeplat.engine.backend_health import BackendHealth, Silence
from composeplat.engine.backend_url import URL_VARIABLE, redact
from composeplat.engine.own_processes import OwnProcess, OwnProcesses, is_locked_out
from composeplat.system.atomic import write_private
from composeplat.system.deadline import Deadline
from composeplat.system.processes import ProcessId, kill_session, may_descend, session_members, wait_for_end
from composeplat.system.records import record
from composeplat.system.signals import handle_signals
from composeplat.system.threads import start_thread

Event = dict[str, Any]
_PLAIN_OUTPUT = ("--non-interactive", "--color", "never")

logger = logging.getLogger(__name__)

_FOLDER_PREFIX = "composeplat-"
_POLL_INTERVAL_S = 0.05
_GRACE_PERIOD_S = 2.0
#: A short command asks the backend, which may be slow or unreachable.
_COMMAND_TIMEOUT_S = 120.0
#: A step may hang on an unreachable cluster, so Pulumi is killed this long after an interrupt.
_INTERRUPT_TIMEOUT_S = 20.0
#: The number of interrupts that kills Pulumi.
_FORCED = 2


class Interrupted(ComposeplatError):
    exit_code = Exit.INTERRUPTED


@dataclass(slots=True)
class Interrupts:
    """Counts Ctrl-C, SIGTERM and SIGHUP while an operation runs, so that the first one does not stop it within a step.

    The second one raises at once; later ones have no effect. SIGHUP is never the second: where a terminal is closed,
    its shell sends it, and the kernel again.
    """

    count: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)
    _handling: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _raises_first: bool = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            self._handling.enter_context(handle_signals(dict.fromkeys(handled, self._note)))
        return self

    def __exit__(self, *_: object) -> None:
        self._handling.close()

    @contextlib.contextmanager
    def raised_at_once(self) -> Iterator[None]:
        """Let the first one raise too: the block changes nothing, and may wait for minutes."""
        if self.count:
            raise Interrupted("interrupted")
        self._raises_first = True
        try:
            yield
        finally:
            self._raises_first = False

    @contextlib.contextmanager
    def waits_ended(self) -> Iterator[None]:
        """End the waits of the block, as an interrupt does."""
        self.cancelled.set()
        try:
            yield
        finally:
            self.cancelled.clear()
            # A signal may come in between.
            if self.count:
                self.cancelled.set()

    def stop_waits(self) -> None:
        """Raise in a wait of another thread that has to end; the process would wait for the thread."""
        if self.cancelled.is_set():
            raise Interrupted("interrupted")

    def _note(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP and self.count:
            return
        self.count += 1
        self.cancelled.set()
        if self._raises_first and self.count < _FORCED:
            raise Interrupted("interrupted")
        if self.count == _FORCED:
            raise Interrupted("interrupted at once", "the next run ends the processes that are left, and continues")


@record
class PulumiResult:
    status: int
    output: str
    interrupted: bool = False


@dataclass(slots=True, kw_only=True)
class PulumiRunner:
    """Runs the command line in the folder of a stack."""

    program: Path
    folder: Path
    variables: Mapping[str, str]
    interrupts: Interrupts = field(default_factory=Interrupts)
    health: BackendHealth = field(default_factory=BackendHealth)

    @property
    def note(self) -> Path:
        """The file that names the running process group: after a kill, the next run finds the group by it."""
        return self.folder / "running.json"

    @property
    def own_processes(self) -> OwnProcesses:
        """The Pulumi processes that may have left a lock."""
        return OwnProcesses(self.folder)

    def query(self, *args: str) -> PulumiResult:
        """Run a short command without a lock; a command that hangs is killed."""
        return self._run_command(args, takes_lock=False)

    def run_locked(self, *args: str, given: str | None = None) -> PulumiResult:
        """Run a short command that changes the state, and so holds its lock; ``given`` is its standard input."""
        return self._run_command(args, takes_lock=True, given=given)

    def _redacted(self, output: str) -> str:
        """Hide the login in the URL of the backend, which Pulumi quotes in its errors."""
        return redact(output, self.variables.get(URL_VARIABLE, ""))

    def _run_command(self, args: tuple[str, ...], *, takes_lock: bool, given: str | None = None) -> PulumiResult:
        command = [str(self.program), *args, *_PLAIN_OUTPUT]
        logger.info("running %s", shlex.join(command))
        with (
            _as_input(given) as stdin,
            subprocess.Popen(
                command,
                cwd=self.folder,
                env=dict(self.variables),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            ) as process,
        ):
            try:
                own = OwnProcess(ProcessId.from_pid(process.pid), time.time()) if takes_lock else None
                if own is not None:
                    self.own_processes.add(own)
                output, errors = self._wait_for_output(process, " ".join(["pulumi", *args[:2]]))
            except BaseException:
                kill_session(process.pid)
                raise
        logger.info("pulumi ended with status %d", process.returncode)
        result = PulumiResult(process.returncode, output)
        if process.returncode:
            result = PulumiResult(process.returncode, self._redacted(errors + output))
        self._forget_locked_out(own, result)
        return result

    def _wait_for_output(self, process: subprocess.Popen[str], name: str) -> tuple[str, str]:
        """Wait for the output of a command. An interrupt shortens the wait: a write of the state should finish.

        The command's own end breaks off each pause.
        """
        deadline = Deadline(_COMMAND_TIMEOUT_S)
        with self.health.watch() as silence:
            while not deadline.has_passed:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.communicate(timeout=_POLL_INTERVAL_S)
                silence.check()
                if self.interrupts.count:
                    deadline = deadline.at_most(_GRACE_PERIOD_S)
        if self.interrupts.count:
            raise Interrupted("interrupted", f"'{name}' was stopped; the next run continues from there")
        raise MissingPiece(
            f"'{name}' did not finish within {_COMMAND_TIMEOUT_S:.0f} s",
            "check that the state backend answers: pulumi whoami --verbose; then run this again",
        )

    def follow(
        self, args: list[str], on_event: Callable[[Event], None], on_tick: Callable[[], None], more: Mapping[str, str]
    ) -> PulumiResult:
        """Run an operation; calls ``on_event`` for each of its events, and ``on_tick`` between them."""
        if self.interrupts.count:
            raise Interrupted("interrupted")
        with writing(self.note):
            temporary = tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX)
        with temporary as folder:
            events, output = Path(folder) / "events", Path(folder) / "output"
            with output.open("wb") as stream:
                process = self._start([*args, *_PLAIN_OUTPUT, "--event-log", str(events)], stream, more)
                own = self._follow_to_end(process, _Tail(events), on_event, on_tick)
            text = output.read_text(encoding="utf-8", errors="replace")
        logger.info("pulumi ended with status %d", process.returncode)
        result = PulumiResult(process.returncode, self._redacted(text), self.interrupts.count > 0)
        self._forget_locked_out(own, result)
        return result

    def _start(self, args: list[str], output: BinaryIO, more: Mapping[str, str]) -> subprocess.Popen[bytes]:
        command = [str(self.program), *args]
        logger.info("running %s", shlex.join(command))
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**self.variables, **more},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def _follow_to_end(
        self,
        process: subprocess.Popen[bytes],
        tail: _Tail,
        on_event: Callable[[Event], None],
        on_tick: Callable[[], None],
    ) -> OwnProcess:
        try:
            own = OwnProcess(ProcessId.from_pid(process.pid), time.time())
            self._leave_note(own, tail.folder)
            with self.health.watch() as silence:
                self._follow_process(process, tail, on_event, _checking(silence, on_tick))
        except ComposeplatError:
            # A callback has given up. Pulumi ends with its state written if no hook of the program waits.
            if self.interrupts.count < _FORCED:
                with self.interrupts.waits_ended():
                    _interrupt(process)
            raise
        finally:
            tail.close()
            kill_session(process.pid)
            process.wait()
            self.note.unlink(missing_ok=True)
        return own

    def _forget_locked_out(self, own: OwnProcess | None, result: PulumiResult) -> None:
        if own is not None and is_locked_out(result.output):
            self.own_processes.remove(own)

    def _leave_note(self, own: OwnProcess, folder: Path) -> None:
        with writing(self.note):
            write_private(self.note, json.dumps({**own.to_data(), "temporary": str(folder)}))
        self.own_processes.add(own)

    def _follow_process(
        self,
        process: subprocess.Popen[bytes],
        tail: _Tail,
        on_event: Callable[[Event], None],
        on_tick: Callable[[], None],
    ) -> None:
        """Pass on events until the process has ended, which it must only some time after an interrupt."""
        passed_on, deadline = 0, Deadline(math.inf)
        while True:
            result = process.poll() is not None
            for event in tail.read():
                on_event(event)
            on_tick()
            if result:
                return
            while passed_on < self.interrupts.count:
                passed_on += 1
                if passed_on < _FORCED:
                    process.send_signal(signal.SIGINT)
                    deadline = Deadline(_INTERRUPT_TIMEOUT_S)
                else:
                    kill_session(process.pid)
            if deadline.has_passed:
                kill_session(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_INTERVAL_S)


@contextlib.contextmanager
def _as_input(text: str | None) -> Iterator[int]:
    """Yield the standard input of a command. A thread writes to it: ``communicate`` does not after its timeout."""
    if text is None:
        yield subprocess.DEVNULL
        return
    reader, writer = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(writer, "wb") as stream:
            stream.write(text.encode())

    start_thread("pulumi-input", write, lambda _: None)
    try:
        yield reader
    finally:
        # A command that has ended without reading all of it lets the thread end.
        os.close(reader)


def _checking(silence: Silence, on_tick: Callable[[], None]) -> Callable[[], None]:
    def check() -> None:
        silence.check()
        on_tick()

    return check


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """Interrupt Pulumi and give it a short time to write its state."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_PERIOD_S)


class _Tail:
    """Reads complete lines of a file that another process is writing."""

    def __init__(self, path: Path) -> None:
        self.folder = path.parent
        self._path = path
        self._stream: Any = None
        self._rest = b""

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def read(self) -> Iterator[Event]:
        if self._stream is None:
            try:
                self._stream = self._path.open("rb")
            except OSError:
                return
        content = self._rest + self._stream.read()
        *lines, self._rest = content.split(b"\n")
        for line in lines:
            # On a full disk, lines are cut; their events have numbers, which show that some are missing.
            with contextlib.suppress(ValueError):
                yield json.loads(line)


def read_note(note: Path) -> OwnProcess | None:
    """Read the note of a run that did not end; none without a note, or if it can't be read."""
    try:
        return OwnProcess.from_data(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def end_leftovers(note: Path) -> bool:
    """End what a killed run left behind, and return whether a run was cut off."""
    if not note.exists():
        return False
    noted = read_note(note)
    # A number that was noted on another machine, or in another container, is somebody else's process here.
    if noted is not None and noted.process.is_visible and _is_that_group(noted):
        kill_session(noted.process.pid)
        wait_for_end(noted.process.pid, Deadline(_GRACE_PERIOD_S))
    _remove_folder(note)
    note.unlink(missing_ok=True)
    return True


def _remove_folder(note: Path) -> None:
    """Remove the events and the output of the run, which have what was deployed; never a folder of somebody else."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        folder = Path(json.loads(note.read_text(encoding="utf-8"))["temporary"])
        if folder.name.startswith(_FOLDER_PREFIX) and folder.lstat().st_uid == os.geteuid():
            shutil.rmtree(folder)


def _is_that_group(noted: OwnProcess) -> bool:
    """A group's number may be used again; then its processes are others, and none of them is Pulumi."""
    return any(may_descend(pid, noted.process, "pulumi") for pid in session_members(noted.process.pid))
