"""The log of the operation that runs on a stack, or ran last; other processes follow it.

Owns one private file in the stack's folder, with a line for each event, and following it from another process.
Must not know the operations, nor who watches; :mod:`~composeplat.engine.operation_document` knows what lines mean.

A killed operation writes no end; readers look for its process. The file stays small: one that has grown too much is
replaced by the fewest lines that add up to the same. A disk that is full ends the log, and never the operation; then no
file is left, as one without an end would show an operation that runs.
"""

from __future__ import annotations

import contextlib
import math
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from composeplat import progress
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.operation_document import (
    Entry,
    Operation,
    OperationState,
    add_lines,
    entry_line,
    entry_of,
    time_text,
)
from composeplat.engine.outcomes import Refused
from composeplat.engine.pulumi_process import Interrupted
from composeplat.system.atomic import open_private
from composeplat.system.machine import user_name
from composeplat.system.processes import ProcessId
from composeplat.system.records import mutable

MAX_BYTES = 1024 * 1024
#: Even the fewest lines of very many services may need more than ``MAX_BYTES``.
_MAX_READ_BYTES = 16 * MAX_BYTES
_MAX_REASONS = 20
#: On macOS, looking for a process starts others.
_PROCESS_INTERVAL_S = 2.0
_LOGGED = frozenset(("build", "deploy", "destroy", "import", "refresh", "restart", "rollback", "sleep", "wake"))


def _log_file(folder: Path) -> Path:
    return folder / "operation.jsonl"


# writing --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def log_operation(folder: Path, what: str, is_interrupted: Callable[[], bool]) -> Iterator[None]:
    """Log the events of an operation, while the lock of its stack is held; one that changes nothing has no log."""
    if what not in _LOGGED:
        yield
        return
    log = OperationLog(_log_file(folder), what)
    with progress.use_observer(log.handle):
        try:
            yield
        except (Interrupted, KeyboardInterrupt):
            log.end(OperationState.INTERRUPTED)
            raise
        except BaseException as error:
            log.end(OperationState.INTERRUPTED if is_interrupted() else OperationState.FAILED, _reasons(error))
            raise
        log.end(OperationState.INTERRUPTED if is_interrupted() else log.outcome)


def _reasons(error: BaseException) -> list[str]:
    """Return the messages of an error, masked: it did not come through the sink of events."""
    if not isinstance(error, ComposeplatError):
        return [type(error).__name__]
    found = [diagnostic.message for diagnostic in error.report.sorted()] if isinstance(error, Refused) else []
    return [progress.masked_text(text) for text in (*found[:_MAX_REASONS], str(error), error.hint) if text]


class OperationLog:
    """The log of one operation. Events come from several threads."""

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self._operation = Operation(what, user_name(), _now(), ProcessId.from_pid(os.getpid()))
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._bytes = self._max_bytes = 0
        self._is_behind = False
        """Whether the file lacks something."""
        self._replace()

    @property
    def outcome(self) -> OperationState:
        """How the operation has ended, if no error ended it."""
        return OperationState.FAILED if self._operation.failures else OperationState.DONE

    def handle(self, event: progress.Event) -> None:
        entry = entry_of(event)
        if entry is not None:
            with self._lock:
                self._add({**entry, "updated": _now()})

    def end(self, state: OperationState, reasons: Iterable[str] = ()) -> None:
        with self._lock:
            self._add({"event": "end", "state": state, "ended": _now(), "error": list(reasons)})
            if self._is_behind:
                self._replace()
            if self._is_behind:
                with contextlib.suppress(OSError):
                    self.path.unlink(missing_ok=True)
            self._close()

    def _add(self, entry: Entry) -> None:
        self._operation.add(entry)
        line = entry_line(entry)
        if self._is_behind:
            return
        if self._bytes + len(line) > self._max_bytes:
            self._replace()
        else:
            self._write(line)

    def _replace(self) -> None:
        """Write a new file with the fewest lines, and let it take the place of the old one."""
        lines = b"".join(map(entry_line, self._operation.entries()))
        self._close()
        try:
            self._descriptor = open_private(self.path, lines)
        except OSError:
            self._is_behind = True
        else:
            self._is_behind = False
            self._bytes, self._max_bytes = len(lines), max(MAX_BYTES, 2 * len(lines))

    def _write(self, line: bytes) -> None:
        self._bytes += len(line)
        try:
            self._is_behind = self._descriptor is None or os.write(self._descriptor, line) < len(line)
        except OSError:
            self._is_behind = True

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _now() -> str:
    return time_text(datetime.now(UTC))


# reading --------------------------------------------------------------------------------------------------------------

_Stamp = tuple[int, ...]
_UNREAD: _Stamp = (0,)
_MISSING: _Stamp = ()


def read_operation(folder: Path) -> dict[str, object] | None:
    """Return the document of the operation that runs on the stack with this folder, or ran last; None without one."""
    follower = OperationFollower(folder)
    follower.update()
    return follower.document


@mutable
class OperationFollower:
    """Follows the operations on the stack with a folder. While nothing happens, an update takes microseconds."""

    folder: Path
    document: dict[str, object] | None = None
    _operation: Operation | None = None
    _stamp: _Stamp = _UNREAD
    _content: bytes = b""
    """The lines that the operation is made of."""
    _looked_at: float = -math.inf
    """When the process of the operation was looked for."""

    def update(self) -> bool:
        """Look whether something has happened; return whether the document has changed."""
        if self._stamp == _stamp_of(_log_file(self.folder)) and not self._must_look(self._operation):
            return False
        before, is_first = self.document, self._stamp == _UNREAD
        self._operation = self._find_operation()
        self.document = self._operation.document() if self._operation is not None else None
        return is_first or self.document != before

    def _find_operation(self) -> Operation | None:
        operation = self._operation = self._read()
        if self._must_look(operation):
            self._looked_at = time.monotonic()
            if _was_cut_off(operation):
                # It may have written its end before its process ended, and after the file was read.
                operation = self._read()
            if operation is not None and _was_cut_off(operation):
                operation.state = OperationState.INTERRUPTED
        return operation

    def _must_look(self, operation: Operation | None) -> bool:
        """Whether it is time to look if the process of a running operation has ended."""
        is_running = operation is not None and operation.is_running
        return is_running and time.monotonic() - self._looked_at > _PROCESS_INTERVAL_S

    def _read(self) -> Operation | None:
        """Add the lines that are new; all of them where another file took the place of the one before."""
        self._stamp, content = _read_file(_log_file(self.folder))
        whole = content[: content.rfind(b"\n") + 1]
        operation = self._operation if whole.startswith(self._content) else None
        new = whole if operation is None else whole.removeprefix(self._content)
        self._content = whole
        return add_lines(new.split(b"\n"), operation)


def _was_cut_off(operation: Operation | None) -> bool:
    """Whether the process of a running operation has ended."""
    if operation is None or not operation.is_running:
        return False
    return operation.process.has_ended or operation.process.was_before_reboot


def _read_file(path: Path) -> tuple[_Stamp, bytes]:
    """Read a file, and what shows a later change of it; one that is no file of ours is empty."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return _stamp_of(path), b""
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return _stamp(found), b""
        with open(descriptor, "rb", closefd=False) as stream:
            return _stamp(found), stream.read(_MAX_READ_BYTES)
    finally:
        os.close(descriptor)


def _stamp_of(path: Path) -> _Stamp:
    try:
        return _stamp(os.lstat(path))
    except OSError:
        return _MISSING


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
