"""An environment whose documents and log lines a test changes while the real server serves them."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from composeplat.diagnostics import ComposeplatError
from composeplat.ui.log_batches import Line
from composeplat.ui.site import Environment, LogRequest
from composeplat.ui.topics import Publish, Source
from tests.ui import documents

_INTERVAL_S = 0.02


@dataclass
class FakeLines:
    """The log lines that there are, from the one that was asked for, and those that are added."""

    all_lines: list[Line | str]
    request: LogRequest
    failure: str
    stopped: threading.Event = field(default_factory=threading.Event)

    def lines(self) -> Iterator[Line | str]:
        if self.failure:
            raise ComposeplatError(self.failure)
        tail = self.request.tail
        index = 0 if tail is None else max(0, len(self.all_lines) - tail)
        while not self.stopped.is_set():
            while index < len(self.all_lines) and not self.stopped.is_set():
                line = self.all_lines[index]
                index += 1
                if isinstance(line, str) or not self.request.services or line[1] in self.request.services:
                    yield line
            self.stopped.wait(_INTERVAL_S)

    def stop(self) -> None:
        self.stopped.set()


@dataclass
class FakeEnvironment:
    documents: dict[str, Any] = field(
        default_factory=lambda: {
            "definition": documents.definition(),
            "status": documents.status(),
            "events": documents.events(),
            "history": documents.history(),
            "operation": None,
        }
    )
    log: list[Line | str] = field(default_factory=list)
    readers: list[FakeLines] = field(default_factory=list)
    """One for each stream of log lines that was opened."""
    commands: list[list[str]] = field(default_factory=list)
    """The commands that the page started, with their services."""
    command_output: Any = None
    """What the next command prints as JSON."""
    command_error: str = ""
    """What it writes to standard error, after which it fails."""
    failure: str = ""
    """Why the status can't be read."""
    log_failure: str = ""
    """Why no log lines can be read."""
    reading: int = 0
    """The number of topics that are read."""

    def environment(self, *, read_only: bool = False) -> Environment:
        return Environment(
            namespace=documents.NAMESPACE,
            name=documents.ENVIRONMENT,
            sources={topic: self._source(topic) for topic in self.documents},
            open_logs=self._open_logs,
            arguments=None if read_only else self._arguments,
            read_stamp=lambda: "stamp",
        )

    def _source(self, topic: str) -> Source:
        def run(publish: Publish, ended: threading.Event) -> None:
            if topic == "status" and self.failure:
                raise ComposeplatError(self.failure, "try again later")
            self.reading += 1
            published = object()
            while not ended.is_set():
                if self.documents[topic] is not published:
                    published = self.documents[topic]
                    publish(topic, published)
                ended.wait(_INTERVAL_S)
            self.reading -= 1

        return run

    def _open_logs(self, request: LogRequest) -> FakeLines:
        self.readers.append(FakeLines(self.log, request, self.log_failure))
        return self.readers[-1]

    def _arguments(self, command: str, services: Sequence[str]) -> list[str]:
        self.commands.append([command, *services])
        script = f"import sys, time; time.sleep(0.3); print({json.dumps(self.command_output)!r})"
        if self.command_error:
            script += f"; print({self.command_error!r}, file=sys.stderr); sys.exit(1)"
        return [sys.executable, "-c", script]

    def change(self, service: str, **changes: Any) -> None:
        """Change the status of a service."""
        rows = self.documents["status"]["services"]
        changed = [row | changes if row["service"] == service else row for row in rows]
        self.documents["status"] = documents.status(changed)
