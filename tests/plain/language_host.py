"""Runs Python programs for the engine, where the upstreams' own ``pulumi-language-python`` is not to be had.

The engine starts the program of that name on PATH, reads a port from its first line, and asks it to run a program.
Only tests use this; with the official command line Pulumi brings its own.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2_grpc


class Host(LanguageServer):
    """Serves the one request that plain Pulumi makes: run the project's program."""

    def __init__(self, engine: str) -> None:
        super().__init__(lambda: None)
        self._engine = engine

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802 -- the protocol's name
        folder = Path(request.info.program_directory or request.pwd)
        entry = folder / request.info.entry_point if request.info.entry_point not in ("", ".") else folder
        os.chdir(request.pwd or folder)

        def program() -> None:
            runpy.run_path(str(entry), run_name="__main__")

        self.program = program
        request.args[:] = [self._engine]
        return super().Run(request, context)  # type: ignore[no-untyped-call]


def main() -> None:
    engine = next(word for word in reversed(sys.argv[1:]) if not word.startswith("-"))
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(Host(engine), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    signal.signal(signal.SIGINT, lambda *_: server.stop(0))
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
