"""The server in a process of its own: how it ends with a page that is open, the browser, and the file with the code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.ui.access import Gate
from composeplat.ui.serving import open_browser, sign_in_file
from tests.ui.served import Client, wait_until

GATE = Gate(8222, "the-code")
#: Notes each Ctrl-C, and ends a moment after the last one.
ACTION = """
import pathlib, signal, sys, time
pressed = pathlib.Path(sys.argv[1])
def note(*_):
    with pressed.open("a") as stream: stream.write("x")
    print("interrupted", file=sys.stderr, flush=True)
signal.signal(signal.SIGINT, note)
pressed.touch()
while not pressed.read_text(): time.sleep(0.01)
time.sleep(2.5)
print("ended", file=sys.stderr, flush=True)
"""
SERVER = """
import logging, sys
from composeplat.cli.interrupts import listen as listen_to_signals
from composeplat.ui.serving import gate_of, listen, serve
from tests.ui.served import site_of
from tests.ui.test_server import environment

listen_to_signals()
logging.getLogger("composeplat").addHandler(logging.NullHandler())  # in the place of the log of the run
arguments = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
sources = {"status": lambda publish, ended: (publish("status", {}), ended.wait())}
with listen(0) as sock:
    gate = gate_of(sock)
    print(gate.port, gate.token, flush=True)
    try:
        serve(site_of(environment(sources=sources, arguments=lambda *_: arguments)), gate, sock)
    except KeyboardInterrupt:
        sys.exit(130)
"""
BASE = "/api/environments/team/shop"


def test_ctrl_c(tmp_path: Path) -> None:
    """A Ctrl-C, which a terminal sends to all processes, interrupts an action once; the terminal shows no errors."""
    pressed = tmp_path / "pressed"
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, ACTION, str(pressed)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        port, token = process.stdout.readline().split()
        client = Client(Gate(int(port), token))
        with client.stream(f"{BASE}/stream") as topics, client.stream(f"{BASE}/logs") as lines:
            assert next(topics)["topic"] == "status"
            assert next(lines)["lines"]
            assert client.post(f"{BASE}/actions/sleep", {})[0] == 202
            wait_until(pressed.exists)
            os.killpg(process.pid, signal.SIGINT)
            _, shown = process.communicate(timeout=30)

    assert (process.returncode, shown, pressed.read_text()) == (130, "", "x")


def test_a_browser_that_stays_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A browser that ends with its window does not keep the server from answering it."""
    is_closed, has_ended = threading.Event(), threading.Event()

    def show(_: str) -> bool:
        is_closed.wait(5)
        has_ended.set()
        return True

    monkeypatch.setattr("webbrowser.open", show)
    open_browser(tmp_path / "sign-in.html")
    assert not has_ended.is_set()
    is_closed.set()
    assert has_ended.wait(10)


def test_a_folder_of_others(tmp_path: Path) -> None:
    """The code is not written where others can write; the message says what to do."""
    folder = tmp_path / "ui"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ComposeplatError, match="other users can write in it") as error, sign_in_file(folder, GATE):
        pass
    assert str(folder) in error.value.hint
    assert list(folder.iterdir()) == []
