"""A running server of the page, with documents that a test makes, and a client that speaks plain HTTP to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import uvicorn

from composeplat.ui.access import Gate
from composeplat.ui.server import Server
from composeplat.ui.serving import config_of, gate_of, listen
from composeplat.ui.site import Environment, Site

_TIMEOUT_S = 10


@dataclass(frozen=True)
class Client:
    gate: Gate

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.gate.port}"

    @contextlib.contextmanager
    def open(
        self, path: str, method: str = "GET", body: object = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.gate.port, timeout=_TIMEOUT_S)
        ours = {"Authorization": f"Bearer {self.gate.token}"}
        if body is not None:
            ours["Content-Type"] = "application/json"
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        with contextlib.closing(connection):
            connection.request(method, path, data, {**ours, **(headers or {})})
            with connection.getresponse() as answer:
                yield answer

    def get(self, path: str) -> Any:
        with self.open(path) as answer:
            assert answer.status == http.HTTPStatus.OK, answer.read()
            return json.loads(answer.read())

    def post(self, path: str, body: object) -> tuple[int, Any]:
        with self.open(path, "POST", body) as answer:
            return answer.status, json.loads(answer.read() or b"null")

    @contextlib.contextmanager
    def stream(self, path: str) -> Iterator[Iterator[Any]]:
        """Yield the documents of a stream as they come."""
        with self.open(path) as answer:
            assert answer.status == http.HTTPStatus.OK, answer.read()
            yield (json.loads(line) for line in iter(answer.readline, b""))


def site_of(environment: Environment, **page: object) -> Site:
    shown = {"namespace": environment.namespace, "environment": environment.name, "has_definition": True}
    document = {"version": "1.0.0", "read_only": environment.arguments is None, "exported": False, "written": "",
                "notes": [], "environments": [shown], **page}  # fmt: skip
    return Site(
        page=lambda: document,
        find=lambda namespace, name: environment if (namespace, name) == environment.key else None,
        sources={},
    )


@contextlib.contextmanager
def serving(site: Site) -> Iterator[Client]:
    """Serve a site at a free port, in a thread, and end it."""
    with listen(0) as sock:
        gate = gate_of(sock)
        server = Server(site, gate)
        runner = uvicorn.Server(config_of(server))
        thread = threading.Thread(target=runner.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            yield Client(gate)
        finally:
            server.stop()
            runner.should_exit = True
            thread.join(_TIMEOUT_S)
            assert not thread.is_alive()


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait until something is so; a test that waits longer than its limit fails."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.01)
