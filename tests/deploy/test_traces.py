"""Pulumi's OpenTelemetry traces of a real deploy, as a collector gets them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages, trace_service_pb2_grpc as service

from tests.deploy.conftest import SLEEP, Environment
from tests.deploy.test_no_change import asks_pulumi

FILE = f"""\
services: {{web: {{image: 'busybox:1.37', command: "{SLEEP}", environment: {{KEY: planted-value}}}}}}
"""


@dataclass
class Collector(service.TraceServiceServicer):
    """Keeps what is exported to it."""

    requests: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 -- the protocol's word
        self.keep(request, dict(context.invocation_metadata()))
        return messages.ExportTraceServiceResponse()

    def keep(self, request: Any, headers: dict[str, str]) -> None:
        self.requests.append(request)
        self.headers.append(headers)

    @property
    def names(self) -> set[str]:
        """The names of all spans."""
        scopes = [scope for request in self.requests for spans in request.resource_spans for scope in spans.scope_spans]
        return {span.name for scope in scopes for span in scope.spans}


@pytest.fixture
def by_grpc() -> Iterator[tuple[Collector, str]]:
    """A collector by gRPC, and its address."""
    server, collector = grpc.server(futures.ThreadPoolExecutor(2)), Collector()
    service.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield collector, f"grpc://127.0.0.1:{port}"
    server.stop(None)


@pytest.fixture
def by_http() -> Iterator[tuple[Collector, str]]:
    """A collector by HTTP, and its address."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                collector.keep(messages.ExportTraceServiceRequest.FromString(body), dict(self.headers.items()))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield collector, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_spans_of_a_deploy(environment: Environment, by_grpc: tuple[Collector, str]) -> None:
    """The collector gets the spans of the engine, down to the creation of objects, and no value of the definition."""
    collector, address = by_grpc
    environment.deploy(FILE, "--otel-traces", address).expect()

    expected = {
        "pulumi",
        "run-program",
        "pulumirpc.ResourceMonitor/RegisterResource",
        "pulumirpc.ResourceProvider/Create",
    }
    assert expected <= collector.names
    assert all(b"planted-value" not in request.SerializeToString() for request in collector.requests)


def test_spans_by_http(environment: Environment, by_http: tuple[Collector, str]) -> None:
    """The variable of Pulumi does the same; the key in the address is sent, and is in no log and no process list."""
    collector, address = by_http
    environment.write(FILE)
    ran = environment.platform("preview", "--debug", PULUMI_OPTION_OTEL_TRACES=f"{address}?x-key=planted-key").expect()
    assert "pulumi" in collector.names
    assert {headers.get("X-Key") or headers.get("x-key") for headers in collector.headers} == {"planted-key"}
    assert "planted-key" not in ran.stderr
    given = environment.platform("preview", "--debug", "--otel-traces", f"{address}?x-key=planted-key").expect()
    assert "planted-key" not in given.stderr


def test_other_commands(environment: Environment, by_grpc: tuple[Collector, str]) -> None:
    """With the variable, each command that runs Pulumi sends traces; a file has those of the last run."""
    collector, address = by_grpc
    environment.deploy(FILE, "--otel-traces", f"file://{environment.folder}/traces.json").expect()
    assert '"run-program"' in (environment.folder / "traces.json").read_text()

    environment.platform("refresh", PULUMI_OPTION_OTEL_TRACES=address).expect()
    assert "pulumirpc.ResourceProvider/Read" in collector.names
    environment.platform("destroy", "--yes", PULUMI_OPTION_OTEL_TRACES=address).expect()
    assert "pulumirpc.ResourceProvider/Delete" in collector.names


def test_no_collector(environment: Environment) -> None:
    """A deploy does not depend on a collector that answers; Pulumi runs for its traces, also without a change."""
    environment.deploy(FILE, "--otel-traces", "grpc://127.0.0.1:1").expect()
    environment.platform("preview", "--expect-no-changes").expect()
    assert not asks_pulumi(environment.platform("preview", "--debug").expect())

    assert asks_pulumi(environment.platform("preview", "--debug", "--otel-traces", "grpc://127.0.0.1:1").expect())
