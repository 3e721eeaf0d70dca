"""The log of one run: everything that helps to find out afterwards why a command failed.

Owns the file below the data folder, its mode, its size and which older files go, and ``--debug``, which prints the same
lines to standard error.
Must not be loaded by commands that need no cluster: importing ``logging`` would slow them down.
It is apart from the progress output because a log has all events of all levels, and nobody watches it.

Rooms write to it with the standard ``logging``, below the logger ``composeplat``; events come from the sink of
:mod:`composeplat.progress`. Lines are held back until the confidential values of the run are known, as the definition
has to be read first; then each line is masked and written at once, so that a killed run leaves its log.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from composeplat import __version__, progress
from composeplat.compose.variables import looks_secret
from composeplat.diagnostics import MissingPiece
from composeplat.engine.backend import find_data_folder
from composeplat.engine.backend_url import secrets_of, secrets_of_azure
from composeplat.system.atomic import make_protected_folder

MAX_FILES = 20
MAX_FOLDER_BYTES = 20 * 1024 * 1024
MAX_FILE_BYTES = 4 * 1024 * 1024
_MAX_HELD_LINES = 2000
_MIN_SECRET_CHARS = 4
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9.+-]*://")

logger = logging.getLogger("composeplat")


def log_folder(environment: Mapping[str, str]) -> Path:
    return find_data_folder(environment).path / "logs"


def log_files(folder: Path) -> list[Path]:
    """List the logs of a folder, the newest first: their names begin with the time."""
    return sorted(folder.glob("*.log"), reverse=True)


class LogFile:
    """A private file, made with its first line. A disk that is full or read-only ends the log and not the run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bytes_left = MAX_FILE_BYTES
        self._descriptor: int | None = None

    @property
    def exists(self) -> bool:
        return self._descriptor is not None

    def write(self, line: str) -> None:
        data = f"{line}\n".encode(errors="backslashreplace")
        if self._bytes_left <= 0:
            return
        self._bytes_left -= len(data)
        if self._bytes_left <= 0:
            data = b"the log is full: further lines are left out\n"
        try:
            if self._descriptor is None:
                self._descriptor = self._create()
            os.write(self._descriptor, data)
        except OSError:
            self._bytes_left = 0

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def discard(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
            self.close()
            self._descriptor = None

    def _create(self) -> int:
        logs = self.path.parent
        logs.parent.parent.mkdir(parents=True, exist_ok=True)
        for folder in (logs.parent, logs):
            make_protected_folder(folder)
        remove_old_logs(logs)
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)


def remove_old_logs(folder: Path) -> None:
    """Make room for one more log: at most ``MAX_FILES`` files and ``MAX_FOLDER_BYTES`` bytes stay."""
    kept_bytes = MAX_FILE_BYTES
    for number, path in enumerate(log_files(folder), start=2):
        with contextlib.suppress(OSError):
            kept_bytes += path.stat().st_size
            if number > MAX_FILES or kept_bytes > MAX_FOLDER_BYTES:
                path.unlink()


class _MaskedHandler(logging.Handler):
    """Masks each line and writes it; before the confidential values are known it holds lines back."""

    def __init__(self, write: Callable[[str], None], mask: progress.Mask, *, is_kept: bool) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(_Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
        self._write, self._mask = write, mask
        self.is_kept = is_kept
        self._held: deque[str] = deque(maxlen=_MAX_HELD_LINES)
        self._line_lock = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        with self._line_lock:
            self._held.append(self.format(record))
            if self.is_kept and progress.values_are_known():
                self._write_held()

    def close(self) -> None:
        with self._line_lock:
            if self.is_kept:
                self._write_held()
        super().close()

    def _write_held(self) -> None:
        while self._held:
            line = progress.masked_text(self._held.popleft(), for_log=True)
            self._write(self._mask.text(line))


class RunLog:
    """The log of a run in progress, and whether it is kept."""

    def __init__(self, file: LogFile, handler: _MaskedHandler) -> None:
        self._file, self._handler = file, handler

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def exists(self) -> bool:
        return self._file.exists

    def keep(self) -> None:
        self._handler.is_kept = True

    def discard(self) -> None:
        """Keep no log, and remove what was written of it."""
        self._handler.is_kept = False
        self._file.discard()

    def record_error(self, error: BaseException) -> None:
        logger.error("%s", type(error).__name__, exc_info=error)


class _Formatter(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 -- inherited
        return f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def environment_mask(environment: Mapping[str, str], options: Mapping[str, object] | None = None) -> progress.Mask:
    """Mask the values of variables whose names look secret, and logins within URLs, such as a proxy's.

    An argument can have a login too: it is refused, and the run that refuses it has a log.
    """
    values = {value for name, value in environment.items() if looks_secret(name)} | secrets_of_azure(environment)
    given = (value for value in (options or {}).values() if isinstance(value, str))
    for url in (url for text in (*environment.values(), *given) for url in _urls_in(text)):
        values |= {*secrets_of(url), *([_login_of(url)] if "@" in url else [])}
    return progress.Mask(value for value in values if len(value) >= _MIN_SECRET_CHARS)


def _urls_in(text: str) -> Iterator[str]:
    """Yield a text with URLs, and each of these, as far as the next one begins and as far as the next space."""
    starts = [found.start() for found in _SCHEME.finditer(text)]
    if "://" in text:
        yield text
    for start, end in pairwise([*starts, len(text)]):
        yield from (text[start:end], text[start:end].split(maxsplit=1)[0])


def _login_of(url: str) -> str:
    return url.partition("://")[2].rpartition("@")[0].rpartition(":")[2]


@contextlib.contextmanager
def run_log(
    command: str,
    options: Mapping[str, object],
    *,
    debug: Callable[[str], None] | None = None,
    is_kept: bool = False,
) -> Iterator[RunLog]:
    """Log a run to its file, and to ``debug``; without ``is_kept`` the file is made only if the log is kept later."""
    file = LogFile(_folder_for_log() / _file_name(command))
    mask = environment_mask(os.environ, options)
    handler = _MaskedHandler(file.write, mask, is_kept=is_kept)
    handlers = [handler, *([_MaskedHandler(debug, mask, is_kept=True)] if debug else [])]
    with _attached(handlers), progress.use_observer(_log_event):
        start_time = time.monotonic()
        _log_start(command, options)
        try:
            yield RunLog(file, handler)
        finally:
            logger.info("ended after %.1f s", time.monotonic() - start_time)
    file.close()


def _folder_for_log() -> Path:
    try:
        return log_folder(os.environ)
    except MissingPiece:
        # A user without a home folder has no log; the command says what is missing, if it needs more than that.
        return Path(os.devnull)


def _file_name(command: str) -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z-{command.replace(' ', '-')}-{os.getpid()}.log"


@contextlib.contextmanager
def _attached(handlers: list[_MaskedHandler]) -> Iterator[None]:
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    for handler in handlers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


def _log_start(command: str, options: Mapping[str, object]) -> None:
    given = " ".join(f"{name}={value!r}" for name, value in options.items())
    logger.info("platform %s %s", command, given)
    logger.info(
        "platform %s, Python %s, %s %s %s",
        __version__,
        platform.python_version(),
        sys.platform,
        platform.release(),
        platform.machine(),
    )


def _log_event(event: progress.Event) -> None:
    data = progress.event_data(event)
    if data is not None:
        logger.debug("event %s", json.dumps(data, default=str, ensure_ascii=False))
    elif message := progress.event_message(event):
        logger.info("%s", message)
