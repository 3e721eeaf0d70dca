"""The cluster's ports are held against other programs and users, and a program of the same user can listen on them."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from composeplat.diagnostics import MissingPiece
from composeplat.local.held_ports import check_ports, close_all, hold_ports
from tests.own_cluster import free_row

STRICT = "127.0.0.2"
ALL_OPTIONS = (socket.SO_REUSEADDR, socket.SO_REUSEPORT)

#: Without IPv6 a machine has the first alone.
LOOPBACK = ("127.0.0.1", "::1") if Path("/proc/net/if_inet6").exists() else ("127.0.0.1",)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local cluster runs on Linux only")


def bound(host: str, port: int, *options: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    for option in options:
        made.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


@pytest.fixture
def port() -> int:
    """A port that is free, as the next one is."""
    return free_row()


def test_free_ports_are_held(port: int) -> None:
    """No other program gets a held port, whatever its options; when it is released, it is free again."""
    check_ports({"registry": port})
    held = hold_ports({"registry": port}, STRICT)

    for host in ("127.0.0.1", "::1", STRICT, "", "::"):
        with pytest.raises(OSError, match=r"already in use|Cannot assign|not supported"):
            bound(host, port, socket.SO_REUSEADDR)
    with pytest.raises(
        MissingPiece, match=rf"^ports of this machine are in use by other programs: {port} \(--api-port\)$"
    ):
        check_ports({"https": port + 1, "api": port})
    close_all(held)
    check_ports({"registry": port})


def test_ports_that_are_the_same(port: int) -> None:
    """Two parts that listen at one port would each get some of the connections to both."""
    with pytest.raises(MissingPiece) as caught:
        check_ports({"api": port, "registry": port + 1, "https": port})

    assert str(caught.value) == f"ports of the cluster must differ: {port} (--api-port), {port} (--https-port)"


def test_a_program_of_the_same_user_listens(port: int) -> None:
    """All connections get to it, as the socket that holds the port does not listen."""
    held = hold_ports({"registry": port}, STRICT)

    with bound("127.0.0.1", port, *ALL_OPTIONS) as server:
        server.listen()
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                server.accept()[0].close()
    close_all(held)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user: run the tests as root")
def test_a_program_of_another_user_does_not(port: int) -> None:
    """Before and after something listens, with each combination of options."""
    held = hold_ports({"registry": port}, STRICT)

    assert bound_by_other_user(port) == 0
    with bound("127.0.0.1", port, *ALL_OPTIONS) as server:
        server.listen()
        assert bound_by_other_user(port) == 0
    assert bound_by_other_user(port) == 0
    close_all(held)
    assert bound_by_other_user(port) > 0


def bound_by_other_user(port: int) -> int:
    """How many ways another user has to bind the port."""
    child = os.fork()
    if not child:
        os.setuid(65534)
        count = 0
        for host in ("127.0.0.1", "::1", ""):
            for options in ((), ALL_OPTIONS[:1], ALL_OPTIONS[1:], ALL_OPTIONS):
                try:
                    bound(host, port, *options).close()
                    count += 1
                except OSError:
                    pass
        os._exit(count)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_connections_of_an_earlier_program_linger(port: int) -> None:
    """A port that a program has just left can be held at once, and is held as well as any other."""
    for host in LOOPBACK:
        with bound(host, port, socket.SO_REUSEADDR) as server:
            server.listen()
            with socket.create_connection((host, port), timeout=5) as client:
                server.accept()[0].close()
                client.recv(1)
    with pytest.raises(OSError, match="already in use"):
        bound("127.0.0.1", port, socket.SO_REUSEPORT)

    held = hold_ports({"registry": port}, STRICT)

    with pytest.raises(OSError, match="already in use"):
        bound("127.0.0.1", port, socket.SO_REUSEADDR)
    if os.geteuid() == 0:
        assert bound_by_other_user(port) == 0
    close_all(held)


def test_a_port_that_is_taken_meanwhile(port: int) -> None:
    """It is named, and those that were held are free again."""
    with bound("127.0.0.1", port) as taken:
        taken.listen()
        with pytest.raises(MissingPiece, match=rf"in use by other programs: {port} \(--http-port\)$"):
            hold_ports({"https": port + 1, "http": port}, STRICT)
    check_ports({"https": port + 1, "http": port})
