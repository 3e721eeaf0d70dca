"""What the page may start: commands of the command line, as processes of their own, one at a time.

Owns which may run when, and the document about the last one. A deploy needs a preview that was shown, of the same
definition. Must not know what a command does: it ends with its exit status and writes JSON.
A process of its own is as safe against a page that goes away as the command in a terminal, and behaves the same.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import IO

from composeplat.diagnostics import ComposeplatError
from composeplat.system.records import record
from composeplat.system.threads import start_thread

_MAX_MESSAGES = 200
_STOP_TIMEOUT_S = 60.0


class Name(StrEnum):
    PREVIEW = "preview"
    DEPLOY = "deploy"
    SLEEP = "sleep"
    WAKE = "wake"
    RESTART = "restart"


#: Their commands name no services.
_OF_ALL_SERVICES = (Name.SLEEP, Name.WAKE)


class ActionRefused(ComposeplatError):
    """An action that can't be started now."""


@record(kw_only=True)
class Action:
    """An action that was started, and what is known of it so far."""

    name: Name
    services: tuple[str, ...] = ()
    state: str = "running"
    exit_status: int | None = None
    messages: tuple[str, ...] = ()
    diagnostics: tuple[Mapping[str, object], ...] = ()
    preview_id: str = ""
    preview: Mapping[str, object] | None = None

    def to_data(self) -> dict[str, object]:
        return {
            "action": self.name,
            "services": list(self.services),
            "state": self.state,
            "exit_status": self.exit_status,
            "messages": list(self.messages),
            "diagnostics": list(self.diagnostics),
            "preview_id": self.preview_id,
            "preview": self.preview,
        }

    def with_line(self, line: str) -> Action:
        """Add a line that the command wrote to standard error: JSON, or a message for people."""
        data = _parse(line)
        if data is None:
            return replace(self, messages=(*self.messages, line)[-_MAX_MESSAGES:]) if line else self
        if "severity" in data:
            return replace(self, diagnostics=(*self.diagnostics, data)[-_MAX_MESSAGES:])
        text = str(data.get("message") or "")
        return self if "event" in data or not text else self.with_line(text)

    def ended(self, exit_status: int, output: str) -> Action:
        """Return the action with the end of its process; the output of a preview is its document."""
        done = replace(self, exit_status=exit_status, state="failed" if exit_status else "done")
        return replace(done, preview=_parse(output)) if self.name is Name.PREVIEW else done


def _parse(text: str) -> dict[str, object] | None:
    try:
        data = json.loads(text)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


@record(kw_only=True)
class Commands:
    """The command line, as the actions use it."""

    arguments: Callable[[str, Sequence[str]], Sequence[str]]
    """Returns the arguments of a process for a command and its services."""
    read_stamp: Callable[[], str]
    """Returns a text that differs when the definition does."""
    publish: Callable[[object], None]
    """Takes the document of the last action; called in threads."""


class Actions:
    """The actions of one environment."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        """That of the action that runs."""
        self._shown_preview = ""
        self._has_ended = False

    def start(self, name: Name, services: Sequence[str], preview_id: str) -> None:
        """Start an action, or raise :class:`ActionRefused`."""
        if services and name in _OF_ALL_SERVICES:
            raise ActionRefused(f"{name} is for the whole environment", "leave out the services")
        stamp = self._commands.read_stamp() if name in (Name.PREVIEW, Name.DEPLOY) else ""
        action = Action(name=name, services=tuple(services), preview_id=stamp if name is Name.PREVIEW else "")
        with self._lock:
            self._check(name, stamp, preview_id)
            self._shown_preview = ""
            self._process = process = _start_process(self._commands.arguments(name, services))
        self._commands.publish(action.to_data())
        start_thread(f"ui-{name}", lambda: self._follow(process, action), lambda _: self._finish(action.ended(1, "")))

    def _check(self, name: Name, stamp: str, preview_id: str) -> None:
        # Reading the definition takes seconds, in which Ctrl-C may have ended the page.
        if self._has_ended:
            raise ActionRefused("platform ui is ending", "start it again")
        if self._process is not None:
            raise ActionRefused("another action of this page is running", "wait until it has ended")
        if name is not Name.DEPLOY:
            return
        if not preview_id or preview_id != self._shown_preview:
            raise ActionRefused("a deploy needs a preview that this page shows", "look at the changes first")
        if preview_id != stamp:
            raise ActionRefused("the definition has changed since the preview", "look at the changes again")

    def stop(self) -> None:
        """Interrupt the running command as Ctrl-C does, and wait until it has ended; a second Ctrl-C is for it too.

        No other one starts from now on.
        """
        with self._lock:
            self._has_ended = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            process.send_signal(signal.SIGINT)
            process.wait(_STOP_TIMEOUT_S)

    def _follow(self, process: subprocess.Popen[str], action: Action) -> None:
        output: list[str] = []
        with process:
            reader = threading.Thread(target=_read_all, args=(process.stdout, output), daemon=True)
            reader.start()
            for line in process.stderr or ():
                before, action = action, action.with_line(line.rstrip("\n"))
                if action is not before:
                    self._commands.publish(action.to_data())
            reader.join()
        self._finish(action.ended(process.returncode, "".join(output)))

    def _finish(self, action: Action) -> None:
        with self._lock:
            self._process = None
            if action.preview is not None and action.state == "done":
                self._shown_preview = action.preview_id
        self._commands.publish(action.to_data())


def _start_process(arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        # Ctrl-C in the terminal would interrupt it too, and a second time is a kill.
        start_new_session=True,
    )


def _read_all(stream: IO[str], parts: list[str]) -> None:
    parts.append(stream.read())
