"""Serve a program of this process to Pulumi, as the Automation API does for its inline programs.

The Automation API's own ``Stack.up`` starts the command line three times more than is needed, to read back what its
events have told already; so its server is used here, and its command line is run by
:mod:`composeplat.engine.pulumi_process`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pulumi.log
import pulumi.runtime.resource
from pulumi.automation._server import LanguageServer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import language_pb2_grpc, source_pb2
from pulumi.runtime.settings import SETTINGS


@contextlib.contextmanager
def serve(program: Callable[[], None]) -> Iterator[str]:
    """Serve a program on loopback until the block ends; gives the address."""

    def run() -> Awaitable[None]:
        program()
        return _until_settled()

    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), options=_GRPC_CHANNEL_OPTIONS)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageServer(run), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with _without_stack_traces(), _without_debugging():
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(0)


async def _until_settled() -> None:
    """Wait for all outputs at once.

    The SDK does so too, but turns to all of them again after each: with a thousand objects, half of the time.
    An output that fails is left to it.
    """
    while outputs := [task for task in SETTINGS.outputs if not task.done()]:
        done, _ = await asyncio.wait(outputs, return_when=asyncio.FIRST_EXCEPTION)
        if any(task.cancelled() or task.exception() for task in done):
            return


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


@contextlib.contextmanager
def _without_debugging() -> Iterator[None]:
    """Spare the engine what the SDK says of its own doings: five calls for each resource, a third of a preview."""
    before = pulumi.log.debug
    pulumi.log.debug = _say_nothing
    try:
        yield
    finally:
        pulumi.log.debug = before


def _say_nothing(*_: object, **__: object) -> None:
    """Stand in for a log that nobody reads."""
