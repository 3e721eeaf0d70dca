"""Serve a program of this process to Pulumi, as the Automation API does for its inline programs.

The Automation API's own ``Stack.up`` starts the command line three times more than is needed, to read back what its
events have told already; so its server is used here, and its command line is run by :mod:`composeplat.engine.process`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pulumi.runtime.resource
from pulumi.automation._server import LanguageServer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import language_pb2_grpc, source_pb2


@contextlib.contextmanager
def serve(program: Callable[[], None]) -> Iterator[str]:
    """Serve a program on loopback until the block ends; gives the address."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), options=_GRPC_CHANNEL_OPTIONS)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageServer(program), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with _without_stack_traces():
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(0)


@contextlib.contextmanager
def _without_stack_traces() -> Iterator[None]:
    """Keep where our own code lies on this machine out of the state: it would be half of it, and differ by machine."""
    module: Any = pulumi.runtime.resource
    before = module._get_stack_trace  # noqa: SLF001 -- there is no setting for it
    module._get_stack_trace = source_pb2.StackTrace  # noqa: SLF001
    try:
        yield
    finally:
        module._get_stack_trace = before  # noqa: SLF001
