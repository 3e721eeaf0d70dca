"""Run ``platform-link``: the program that holds one stream to the container for files, ports and the terminal.

Owns its configuration, its events and its exit status. The Go module beside it has the program.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from composeplat.dev.dev_workload import AGENT, SOCKET
from composeplat.dev.sync_rules import SyncPath
from composeplat.engine.pulumi_process import Interrupted
from composeplat.system.atomic import write_private

Event = dict[str, Any]
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The command to run in the container, and the ports to forward."""

    command: tuple[str, ...] = ()
    """Empty means a shell."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    terminal: bool = False
    forwards: tuple[tuple[int, int], ...] = ()
    """Port here -> port of the container."""
    reverse: tuple[tuple[int, int], ...] = ()
    """Port of the container -> port here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the container is found, and where on this machine its bases are kept."""

    namespace: str
    selector: str
    container: str
    state: Path
    kubeconfig: str


def configuration(place: Place, paths: Iterable[SyncPath], session: Session) -> dict[str, Any]:
    return {
        "namespace": place.namespace,
        "selector": place.selector,
        "container": place.container,
        "agent": AGENT,
        "socket": SOCKET,
        "state": str(place.state),
        "folders": [
            {
                "local": path.local,
                "remote": path.remote,
                "within": path.within,
                "file": path.is_file,
                "one_way": path.one_way,
                "ignores": list(path.ignores),
            }
            for path in paths
        ],
        "forwards": [{"listen": f"{_LOOPBACK}:{here}", "port": there} for here, there in session.forwards],
        "reverse": [{"port": there, "to": f"{_LOOPBACK}:{here}"} for there, here in session.reverse],
        "command": list(session.command),
        "environment": dict(session.environment),
        "terminal": session.terminal,
    }


class Link:
    """One run of the program; it has this process's own standard streams."""

    def __init__(self, program: Path, place: Place, paths: Iterable[SyncPath], session: Session) -> None:
        self.program = program
        self.place = place
        self._config = configuration(place, paths, session)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_to_end = False
        self._is_interrupted = False

    def run(self, environment: Mapping[str, str], on_event: Callable[[Event], None]) -> int:
        """Start the program, pass its events on, and return its exit status."""
        config = self.place.state / f"link-{os.getpid()}.json"
        write_private(config, json.dumps(self._config))
        reader, writer = os.pipe()
        try:
            self._process = subprocess.Popen(
                [str(self.program), "up", "--config", str(config), "--events", str(writer)],
                env={**environment, "KUBECONFIG": self.place.kubeconfig},
                pass_fds=(writer,),
            )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        thread = threading.Thread(target=_read, args=(reader, on_event), daemon=True)
        thread.start()
        if self._is_to_end or self._is_interrupted:
            self._process.terminate()
        try:
            status = self._process.wait()
        finally:
            config.unlink(missing_ok=True)
        thread.join(timeout=5)
        if self._is_interrupted:
            raise Interrupted("interrupted")
        return 128 - status if status < 0 else status

    def interrupt(self) -> None:
        """Take a Ctrl-C: it is the program's in the container, and before that is there, a wish to end."""
        self._is_interrupted = self._process is None or self._is_interrupted

    def end(self) -> None:
        """End it; where it has not begun yet, as soon as it has."""
        self._is_to_end = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()


def _read(reader: int, on_event: Callable[[Event], None]) -> None:
    with os.fdopen(reader, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                on_event(event)
