"""Running the server, and opening the page in a browser.

Owns the port, and the private file that gives the browser the code: it is sent by a form, so that it is in no address
and in no list of processes. Must not know what is served.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import webbrowser
from collections.abc import Iterator
from html import escape
from pathlib import Path

import uvicorn

from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.system.atomic import make_protected_folder, write_private
from composeplat.system.threads import start_thread
from composeplat.ui.access import SIGN_IN_PATH, Gate, make_token
from composeplat.ui.connections import BACKLOG, protocol_for
from composeplat.ui.server import Server
from composeplat.ui.site import Site

_HOST = "127.0.0.1"
_SHUTDOWN_S = 1


@contextlib.contextmanager
def listen(port: int) -> Iterator[socket.socket]:
    """Open a port of the loopback interface; 0 is any free one."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((_HOST, port))
            # From now on the browser can connect, and waits until the server accepts.
            sock.listen()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise MissingPiece(
                f"can't listen at {_HOST}:{port}: {reason}", "give another port with --port, or 0 for any free one"
            ) from error
        yield sock


def gate_of(sock: socket.socket) -> Gate:
    return Gate(sock.getsockname()[1], make_token())


def address_of(gate: Gate) -> str:
    return f"http://{_HOST}:{gate.port}/"


def serve(site: Site, gate: Gate, sock: socket.socket) -> None:
    """Answer requests until the process is interrupted."""
    # At the end it reports each stream of an open page as an error: that belongs in the log of the run.
    logging.getLogger("uvicorn.error").parent = logging.getLogger(__name__)
    server = Server(site, gate)
    try:
        uvicorn.Server(config_of(server)).run(sockets=[sock])
    finally:
        server.stop()


def config_of(server: Server) -> uvicorn.Config:
    return uvicorn.Config(
        server.app,
        http=protocol_for(server.gate),
        backlog=BACKLOG,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )


@contextlib.contextmanager
def sign_in_file(folder: Path, gate: Gate) -> Iterator[Path]:
    """Write a private file with a form that sends the code, and remove it at the end."""
    path = folder / f"sign-in-{gate.port}.html"
    form = _FORM.format(url=f"{address_of(gate).rstrip('/')}{SIGN_IN_PATH}", code=escape(gate.token))
    try:
        make_protected_folder(folder)
        write_private(path, form)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ComposeplatError(f"can't write '{path}': {reason}", f"make '{folder}' a folder of your own") from error
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def open_browser(path: Path) -> None:
    """Open a file in a browser, which may run until the user closes it."""

    def show() -> None:
        webbrowser.open(path.as_uri())

    start_thread("ui-browser", show, lambda _: None)


_FORM = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>platform</title>
<form method="post" action="{url}">
<input type="hidden" name="code" value="{code}">
<button>Open the page</button>
</form>
<script>document.forms[0].submit();</script>
"""
