"""Run the Pulumi command line, follow its events, and end it as asked.

Owns the process group that it and its providers form: interrupts are passed on by us, once to end in order and a second
time to stop, and what a killed run left behind is found by that group again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from composeplat.diagnostics import ComposeplatError, Exit, MissingPiece
from composeplat.engine.backend import writing
from composeplat.engine.own_processes import OwnProcess, OwnProcesses, is_locked_out
from composeplat.system.atomic import write_private
from composeplat.system.deadline import Deadline
from composeplat.system.processes import ProcessId, kill_session, session_members, wait_for_end

Event = dict[str, Any]

logger = logging.getLogger(__name__)

_TICK = 0.05
_GRACE = 2.0
#: A short command asks the backend of the state, which may be far away, or gone.
_ASKED_WITHIN = 120.0
#: For so long Pulumi may go on after an interrupt: a step that is under way may hang on a cluster that does not answer.
_END_WITHIN = 20.0
#: The interrupt that asks no more.
_AT_ONCE = 2


class Interrupted(ComposeplatError):
    exit_code = Exit.INTERRUPTED


@dataclass(slots=True)
class Interrupts:
    """Counts Ctrl-C and SIGTERM while an operation runs, instead of letting them break it in the middle.

    The second breaks it all the same, wherever it is; later ones don't disturb that.
    """

    count: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)
    _before: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, *_: object) -> None:
        self.count += 1
        self.cancelled.set()
        if self.count == _AT_ONCE:
            raise Interrupted("interrupted at once", "the next run ends and takes up what was under way")


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    output: str
    interrupted: bool = False


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs the command line in a stack's folder."""

    program: Path
    folder: Path
    variables: Mapping[str, str]
    interrupts: Interrupts = field(default_factory=Interrupts)

    @property
    def note(self) -> Path:
        """The file that names the running group, for whoever comes after a kill."""
        return self.folder / "running.json"

    @property
    def own_processes(self) -> OwnProcesses:
        """Every process of Pulumi that was started here and may have left a lock."""
        return OwnProcesses(self.folder)

    def ask(self, *words: str) -> Ended:
        """Run a short command that takes no lock, and give its output; one that hangs is ended."""
        return self._run_short(words, takes_lock=False)

    def change(self, *words: str) -> Ended:
        """Run a short command that changes the state, and so holds its lock meanwhile."""
        return self._run_short(words, takes_lock=True)

    def _run_short(self, words: tuple[str, ...], *, takes_lock: bool) -> Ended:
        command = [str(self.program), *words, "--non-interactive", "--color", "never"]
        logger.info("running %s", shlex.join(command))
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=dict(self.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                own = OwnProcess(ProcessId.from_pid(process.pid), time.time()) if takes_lock else None
                if own is not None:
                    self.own_processes.add(own)
                output, errors = self._collect(process, " ".join(["pulumi", *words[:2]]))
            except BaseException:
                kill_session(process.pid)
                raise
        logger.info("pulumi ended with status %d", process.returncode)
        ended = Ended(process.returncode, output if process.returncode == 0 else errors + output)
        self._forget_locked_out(own, ended)
        return ended

    def _collect(self, process: subprocess.Popen[str], name: str) -> tuple[str, str]:
        """Wait for a command's output: an interrupt shortens the wait, as what writes the state is better not cut."""
        began = time.monotonic()
        ends_by = began + _ASKED_WITHIN
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=_TICK)
            if self.interrupts.count:
                ends_by = min(ends_by, time.monotonic() + _GRACE)
            if time.monotonic() < ends_by:
                continue
            if self.interrupts.count:
                raise Interrupted("interrupted", f"'{name}' was ended; the next run takes up what was under way")
            raise MissingPiece(
                f"'{name}' has not ended within {time.monotonic() - began:.0f} s",
                "see whether the backend of the state answers: pulumi whoami --verbose; then run this again",
            )

    def follow(
        self, words: list[str], on_event: Callable[[Event], None], on_tick: Callable[[], None], more: Mapping[str, str]
    ) -> Ended:
        """Run an operation; its events are told as they come, and ``on_tick`` is called between them."""
        if self.interrupts.count:
            raise Interrupted("interrupted")
        with writing(self.note):
            aside = tempfile.TemporaryDirectory(prefix="composeplat-")
        with aside as folder:
            events, output = Path(folder) / "events", Path(folder) / "output"
            command = [str(self.program), *words, "--non-interactive", "--color", "never", "--event-log", str(events)]
            logger.info("running %s", shlex.join(command))
            own: OwnProcess | None = None
            with output.open("wb") as stream:
                process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env={**self.variables, **more},
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    start_new_session=True,
                )
                tail = _Tail(events)
                try:
                    own = OwnProcess(ProcessId.from_pid(process.pid), time.time())
                    self._leave_note(own)
                    self._tend(process, tail, on_event, on_tick)
                except ComposeplatError:
                    # Whoever listens has given up.
                    if self.interrupts.count < _AT_ONCE:
                        _ask_to_end(process)
                    raise
                finally:
                    tail.close()
                    kill_session(process.pid)
                    process.wait()
                    self.note.unlink(missing_ok=True)
            logger.info("pulumi ended with status %d", process.returncode)
            ended = Ended(
                process.returncode, output.read_text(encoding="utf-8", errors="replace"), self.interrupts.count > 0
            )
            self._forget_locked_out(own, ended)
            return ended

    def _forget_locked_out(self, own: OwnProcess | None, ended: Ended) -> None:
        if own is not None and is_locked_out(ended.output):
            self.own_processes.remove(own)

    def _leave_note(self, own: OwnProcess) -> None:
        with writing(self.note):
            write_private(self.note, json.dumps(own.to_data()))
        self.own_processes.add(own)

    def _tend(
        self,
        process: subprocess.Popen[bytes],
        tail: _Tail,
        on_event: Callable[[Event], None],
        on_tick: Callable[[], None],
    ) -> None:
        passed_on, ends_by = 0, float("inf")
        while True:
            ended = process.poll() is not None
            for event in tail.read():
                on_event(event)
            on_tick()
            if ended:
                return
            while passed_on < self.interrupts.count:
                passed_on += 1
                if passed_on < _AT_ONCE:
                    process.send_signal(signal.SIGINT)
                    ends_by = time.monotonic() + _END_WITHIN
                else:
                    kill_session(process.pid)
            if time.monotonic() > ends_by:
                kill_session(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_TICK)


def _ask_to_end(process: subprocess.Popen[bytes]) -> None:
    """Let Pulumi write its state, if it does so soon."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


class _Tail:
    """Reads whole lines of a file that is still being written."""

    def __init__(self, path: Path) -> None:
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
            if line.strip():
                yield json.loads(line)


def read_note(note: Path) -> OwnProcess | None:
    """The run that was noted and not seen to its end; none where there is no note, or one that can't be read."""
    try:
        return OwnProcess.from_data(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def end_leftovers(note: Path) -> bool:
    """End what a killed run left behind; gives whether a run had been cut off."""
    if not note.exists():
        return False
    noted = read_note(note)
    # A number that was noted on another machine, or in another container, is somebody else's process here.
    if noted is not None and noted.process.is_visible and _is_that_group(noted):
        kill_session(noted.process.pid)
        wait_for_end(noted.process.pid, Deadline(_GRACE))
    note.unlink(missing_ok=True)
    return True


def _is_that_group(noted: OwnProcess) -> bool:
    """A group's number may be used again; then its processes are others, and none of them is Pulumi."""
    for pid in session_members(noted.process.pid):
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
            if name.startswith("pulumi") and Path(f"/proc/{pid}").stat().st_ctime >= noted.at - 5:
                return True
    return False
