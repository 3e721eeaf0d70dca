"""Serve a program of this process to Pulumi, as the Automation API does for its inline programs.

Owns the server's lifetime and what it suppresses of the SDK's own output.
Must not run the command line: :mod:`~composeplat.engine.pulumi_process` does. The Automation API's ``Stack.up`` would
start it three more times, to read again what the events have reported.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from concurrent import futures

import grpc

from composeplat.engine import pulumi_sdk

_MAX_WORKERS = 4


@contextlib.contextmanager
def serve(program: Callable[[], None]) -> Iterator[str]:
    """Serve a program on loopback until the block ends, and return the address."""

    def run() -> Awaitable[None]:
        program()
        return _wait_for_outputs()

    executor = futures.ThreadPoolExecutor(max_workers=_MAX_WORKERS)
    server = grpc.server(executor, options=pulumi_sdk.CHANNEL_OPTIONS.find())
    pulumi_sdk.ADD_LANGUAGE_SERVER.find()(pulumi_sdk.LANGUAGE_SERVER.find()(run), server)
    port = server.add_insecure_port("127.0.0.1:0")
    with _without_stack_traces(), _without_debug_log(), _without_proxies():
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(0)


async def _wait_for_outputs() -> None:
    """Wait for all outputs at once.

    The SDK does so too, but visits all of them again after each: with a thousand objects, half of the time.
    An output that fails is left to the SDK.
    """
    while outputs := pulumi_sdk.pending_outputs():
        done, _ = await asyncio.wait(outputs, return_when=asyncio.FIRST_EXCEPTION)
        if any(task.cancelled() or task.exception() for task in done):
            return


def _without_stack_traces() -> contextlib.AbstractContextManager[None]:
    """Keep the paths of our own code out of the state: they would be half of it, and differ by machine."""
    return _replaced(pulumi_sdk.GET_STACK_TRACE, pulumi_sdk.STACK_TRACE.find())


def _without_debug_log() -> contextlib.AbstractContextManager[None]:
    """Suppress the SDK's debug log: five calls to the engine for each resource, a third of a preview."""
    return _replaced(pulumi_sdk.LOG_DEBUG, _ignore)


def _without_proxies() -> contextlib.AbstractContextManager[None]:
    """Connect to Pulumi directly: gRPC would ask the proxy of ``http_proxy`` for an address of this machine."""
    return _replaced(pulumi_sdk.CLIENT_OPTIONS, [*pulumi_sdk.CLIENT_OPTIONS.find(), ("grpc.enable_http_proxy", 0)])


@contextlib.contextmanager
def _replaced(name: pulumi_sdk.SdkName, value: object) -> Iterator[None]:
    before = name.replace(value)
    try:
        yield
    finally:
        name.replace(before)


def _ignore(*_: object, **__: object) -> None:
    """Replace a log that nobody reads."""
