"""The servers of states: a server that was killed starts again at once, whatever it was doing."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.state_servers import Postgres, children

#: Keeps a process of the server busy, so that it does not notice that its server has ended.
BUSY = "select count(*) from generate_series(1, 2000000000);"


@pytest.fixture
def busy() -> Iterator[Postgres]:
    """A server with a connection that computes."""
    with Postgres() as server:
        client = subprocess.Popen(
            ["psql", "-q", "-c", BUSY, server.url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        while not computing(server):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield server
        client.kill()
        client.wait()


def computing(server: Postgres) -> bool:
    """Whether a process of the server runs the statement; PostgreSQL names it in its command line."""
    assert server.process is not None
    return any("SELECT" in command_line(Path(f"/proc/{pid}/cmdline")) for pid in children(server.process.pid))


def command_line(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def test_a_busy_server_starts_again(busy: Postgres) -> None:
    busy.kill()
    busy.start()
    busy.execute("select 1;")
