"""Run ``platform-link``: the program with one connection to the container, for files, ports and the terminal.

Owns its configuration, its events and its exit status. The program is in the Go module beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from composeplat.dev.dev_workload import AGENT, SOCKET
from composeplat.dev.sync_rules import SyncPath
from composeplat.engine.pulumi_process import Interrupted
from composeplat.system.atomic import write_private
from composeplat.system.records import record
from composeplat.system.signals import pass_on_interrupt

Event = dict[str, Any]
_LOOPBACK = "127.0.0.1"


@record(kw_only=True)
class Session:
    """The command to run in the container, and the ports to forward."""

    command: tuple[str, ...] = ()
    """Empty means a shell."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    terminal: bool = False
    forwards: tuple[tuple[int, int], ...] = ()
    """Pairs of a local port and a port of the container."""
    reverse: tuple[tuple[int, int], ...] = ()
    """Pairs of a port of the container and a local port."""


@record(kw_only=True)
class Place:
    """The container of a session, and the folder for its sync state on this machine."""

    namespace: str
    selector: str
    container: str
    state: Path
    kubeconfig: str


def make_configuration(place: Place, paths: Iterable[SyncPath], session: Session) -> dict[str, Any]:
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
    """One run of the program, with the standard streams of this process."""

    def __init__(self, program: Path, place: Place, paths: Iterable[SyncPath], session: Session) -> None:
        self.program = program
        self.place = place
        self._config = make_configuration(place, paths, session)
        self._process: subprocess.Popen[bytes] | None = None
        self._must_end = False
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
        thread = threading.Thread(target=_read_events, args=(reader, on_event), daemon=True)
        thread.start()
        if self._must_end or self._is_interrupted:
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
        """Pass a Ctrl-C on to the running program; a later start of the program ends at once."""
        if self._process is None:
            self._is_interrupted = True
        else:
            pass_on_interrupt(self._process)

    def end(self) -> None:
        """End the program; if it does not run yet, as soon as it is started."""
        self._must_end = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()


def _read_events(reader: int, on_event: Callable[[Event], None]) -> None:
    with os.fdopen(reader, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                on_event(event)
