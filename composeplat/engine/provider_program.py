"""Run the program of a provider, by Compose's protocol for these: a line of JSON for each message on its output.

Owns where the program is looked for, its command line, environment and input, its limits, and its end: with all
processes that it started, if it fails, takes too long or is interrupted.
Must not know services or the plan, nor print: messages go to a handler. No text of the program that may have a value is
part of an error, but for its own messages.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from composeplat.names import is_env_name
from composeplat.registry.docker_folder import docker_folder
from composeplat.system.deadline import Deadline
from composeplat.system.processes import kill_session, wait_for_end
from composeplat.system.records import record

#: Docker's folders of plugins, below the user's configuration and of the system.
_PLUGIN_FOLDERS = (
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
)
#: Variables that are for Pulumi, such as the passphrase of the state.
_NOT_PASSED = "PULUMI_"
MAX_OUTPUT_BYTES = 1024 * 1024
_MAX_LINE_BYTES = 64 * 1024
_MAX_UNREAD_BYTES = 1024 * 1024
_MAX_ERROR_BYTES = 4096
_MAX_ERROR_LINES = 5
_METADATA_TIMEOUT_S = 10.0
_POLL_INTERVAL_S = 0.1
#: A program that has ended may have left others that hold its output open.
_DRAIN_S = 0.5
_GRACE_PERIOD_S = 5.0


class ProviderError(Exception):
    """A program failed; ``lines`` are the last lines of its standard error."""

    def __init__(self, reason: str, lines: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.lines = tuple(lines)


class ProviderInterrupted(Exception):
    """The user interrupted the run of a program, which has ended."""


@record
class Message:
    """A message of a program; for a variable, its name and value."""

    type: str
    text: str = field(repr=False)
    name: str = ""


@record(kw_only=True)
class Metadata:
    """What a program says of its options: the names that a command knows, and those that it needs."""

    known: Mapping[str, frozenset[str]] = field(default_factory=dict)
    required: Mapping[str, frozenset[str]] = field(default_factory=dict)


@record(kw_only=True)
class Program:
    """The program of a provider, and how it is run."""

    path: Path
    environment: Mapping[str, str] = field(repr=False)
    timeout_s: float
    is_interrupted: Callable[[], bool]

    def run(self, args: Sequence[str], handle: Callable[[Message], str | None]) -> None:
        """Run the program to its end; an error if it fails, says so, or breaks the protocol.

        What the handler of a message returns is the answer: a line that the program can read from its input.
        """
        with self._started(["compose", *args], self.timeout_s, stdin=subprocess.PIPE) as streams:
            for number, line in enumerate(streams.lines(), start=1):
                answer = handle(_parse_message(line, number)) if line.strip() else None
                if answer is not None:
                    streams.answer(answer)
            streams.check_status()

    def metadata(self) -> Metadata | None:
        """Ask the program for its options; None if it does not say, which it need not."""
        try:
            with self._started(["compose", "metadata"], _METADATA_TIMEOUT_S, stdin=subprocess.DEVNULL) as streams:
                text = b"".join(streams.lines())
                streams.check_status()
            return _parse_metadata(json.loads(text))
        except (ProviderError, ValueError, RecursionError):
            return None

    @contextlib.contextmanager
    def _started(self, args: Sequence[str], timeout_s: float, *, stdin: int) -> Iterator[_Streams]:
        try:
            process = subprocess.Popen(
                [str(self.path), *args],
                env={name: text for name, text in self.environment.items() if not name.startswith(_NOT_PASSED)},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C is for this process, which ends the program.
                start_new_session=True,
            )
        except OSError as error:
            raise ProviderError(f"can't be started: {(error.strerror or str(error)).lower()}") from error
        with _ending(process), selectors.DefaultSelector() as selector:
            yield _Streams(process, selector, Deadline(timeout_s), self.is_interrupted)


@contextlib.contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End the program with all that it started, unless it came to its own end."""
    try:
        yield
    except BaseException:
        try:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_PERIOD_S)
        finally:
            # The second Ctrl-C is raised here.
            kill_session(process.pid)
            process.wait()
            wait_for_end(process.pid, Deadline(_GRACE_PERIOD_S))
        raise
    finally:
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


class _Streams:
    """The input and output of a program while it runs, and the end of its standard error."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        selector: selectors.BaseSelector,
        deadline: Deadline,
        is_interrupted: Callable[[], bool],
    ) -> None:
        self._process, self._selector = process, selector
        self._deadline, self._is_interrupted = deadline, is_interrupted
        self._errors = bytearray()
        self._answers = bytearray()
        self._size = 0
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
        for stream in filter(None, (process.stdout, process.stderr)):
            selector.register(stream, selectors.EVENT_READ)

    def answer(self, line: str) -> None:
        """Write a line to the input of the program, as soon as it reads."""
        stdin = self._process.stdin
        if stdin is None:
            return
        self._answers += line.encode() + b"\n"
        if len(self._answers) > _MAX_UNREAD_BYTES:
            raise self._error("does not read the answers that it asks for")
        if stdin not in self._selector.get_map():
            self._selector.register(stdin, selectors.EVENT_WRITE)

    def lines(self) -> Iterator[bytes]:
        rest = b""
        for part in self._parts():
            self._size += len(part)
            if self._size > MAX_OUTPUT_BYTES:
                raise self._error(f"wrote more than {MAX_OUTPUT_BYTES // 1024} KiB to its output")
            *whole, rest = (rest + part).split(b"\n")
            yield from whole
            if len(rest) > _MAX_LINE_BYTES:
                raise self._error(f"wrote a line of more than {_MAX_LINE_BYTES // 1024} KiB")
        if rest:
            yield rest

    def _parts(self) -> Iterator[bytes]:
        """Yield what the program writes, until it has ended or closed its output."""
        drained: Deadline | None = None
        while self._selector.get_map() and not (drained and drained.has_passed):
            self._check()
            for key, _ in self._selector.select(_POLL_INTERVAL_S):
                if key.fileobj is self._process.stdin:
                    self._write(key.fileobj)
                else:
                    yield from self._read(key.fileobj)
            if drained is None and self._process.poll() is not None:
                drained = Deadline(_DRAIN_S)

    def _read(self, stream: Any) -> Iterator[bytes]:
        part = os.read(stream.fileno(), 65536)
        if not part:
            self._selector.unregister(stream)
        elif stream is self._process.stdout:
            yield part
        else:
            self._errors = (self._errors + part)[-_MAX_ERROR_BYTES:]

    def _write(self, stream: Any) -> None:
        try:
            del self._answers[: os.write(stream.fileno(), self._answers)]
        except BlockingIOError:
            return
        except OSError:  # the program has closed its input
            self._answers.clear()
        if not self._answers:
            self._selector.unregister(stream)

    def _check(self) -> None:
        if self._is_interrupted():
            raise ProviderInterrupted
        if self._deadline.has_passed:
            raise self._error(f"did not end within {self._deadline.seconds:g} s")

    def check_status(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        while self._process.poll() is None:
            self._check()
            time.sleep(_POLL_INTERVAL_S)
        status = self._process.returncode
        if status:
            how = f"ended with status {status}" if status > 0 else f"was killed by signal {-status}"
            raise self._error(how)

    def _error(self, reason: str) -> ProviderError:
        lines = self._errors.decode(errors="replace").splitlines()
        return ProviderError(reason, deque(filter(str.strip, lines), _MAX_ERROR_LINES))


# messages -------------------------------------------------------------------------------------------------------------


def _parse_message(line: bytes, number: int) -> Message:
    """Read a message; what breaks the protocol may have a value, so that errors name its line alone."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise ProviderError(f"wrote a line to its output that is no JSON object with a type: line {number}")
    text = found.get("message") or ""
    if not isinstance(text, str):
        raise ProviderError(f"wrote a message that is no text: line {number}")
    if found["type"] in ("setenv", "rawsetenv"):
        return _parse_variable(found["type"], text, number)
    return Message(found["type"], text)


def _parse_variable(kind: str, text: str, number: int) -> Message:
    name, equals, value = text.partition("=")
    if not equals or not is_env_name(name) or "\0" in value or _is_broken(value):
        raise ProviderError(
            f"set a variable that is not NAME=VALUE, or has a name that Kubernetes refuses: line {number}"
        )
    return Message(kind, value, name)


def _is_broken(value: str) -> bool:
    """Check for half a character, which no container could get."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def _parse_metadata(found: object) -> Metadata | None:
    if not isinstance(found, dict):
        return None
    commands = {name: list(_parameters(found.get(name))) for name in ("up", "down")}
    if not found.get("description") and not any(commands.values()):
        return None
    return Metadata(
        known={command: frozenset(name for name, _ in listed) for command, listed in commands.items()},
        required={
            command: frozenset(name for name, needed in listed if needed) for command, listed in commands.items()
        },
    )


def _parameters(command: object) -> Iterator[tuple[str, bool]]:
    listed = command.get("parameters") if isinstance(command, dict) else None
    for row in listed if isinstance(listed, list) else ():
        if isinstance(row, dict) and isinstance(row.get("name"), str):
            yield row["name"], row.get("required") is True


# the program ----------------------------------------------------------------------------------------------------------


def find_program(name: str, environment: Mapping[str, str]) -> Path | None:
    """Find Docker's plugin of a name, else a program on the path; never one in a folder that depends on the current."""
    own = docker_folder(environment) / "cli-plugins"
    plugins = [Path(folder, f"docker-{name}") for folder in (own, *_PLUGIN_FOLDERS)]
    programs = [Path(folder, name) for folder in environment.get("PATH", "").split(os.pathsep)]
    return next((path for path in (*plugins, *programs) if path.is_absolute() and _is_program(path)), None)


def need_program(name: str, environment: Mapping[str, str]) -> Path:
    found = find_program(name, environment)
    if found is None:
        raise ProviderError("is not there")
    return found


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
