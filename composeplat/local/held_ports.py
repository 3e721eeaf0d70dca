"""The cluster's ports on this machine: which are taken, and holding them for as long as the cluster runs.

Owns the sockets that hold a port. A socket that is bound and doesn't listen keeps a port from other users, also while
the part that listens is restarted; with ``SO_REUSEPORT`` the kernel lets a process of the same user listen beside it.
The ports of ``::1`` are held too, where nothing listens: clients that connect to ``localhost`` try it first.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Mapping

from composeplat.diagnostics import MissingPiece

_Address = tuple[str, socket.AddressFamily]
_ADDRESSES: tuple[_Address, ...] = (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))
#: Without IPv6 there is no ``::1`` to hold.
_NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def check_ports(ports: Mapping[str, int]) -> None:
    """Raise an error that names the ports that are the same, or that other programs have, with their options."""
    numbers = list(ports.values())
    same = [name for name, port in ports.items() if numbers.count(port) > 1]
    if same:
        # The programs of one user could both listen there: each would get some of the connections.
        raise MissingPiece(f"ports of the cluster must differ: {_with_options(ports, same)}", "choose another one")
    taken = [name for name, port in ports.items() for address in _ADDRESSES if _is_taken(address, port)]
    if taken:
        raise _in_use(ports, taken)


def hold_ports(ports: Mapping[str, int], strict_host: str) -> list[socket.socket]:
    """Bind sockets to the ports, on loopback and on another address of it; they are held until the last is closed."""
    held: list[socket.socket] = []
    strict: tuple[_Address, bool] = ((strict_host, socket.AF_INET), False)
    places = [strict, *((address, True) for address in _ADDRESSES)]
    for name, port, (address, relaxed) in ((*pair, place) for pair in ports.items() for place in places):
        try:
            held.append(_hold(address, port, relaxed=relaxed))
        except OSError as error:
            if error.errno in _NO_SUCH_ADDRESS:
                continue
            close_all(held)
            raise _in_use(ports, [name]) from error
    return held


def _hold(address: _Address, port: int, *, relaxed: bool) -> socket.socket:
    """Hold a port; a relaxed socket can be bound while closed connections of an earlier program linger there.

    It is strict from then on. But the kernel remembers that all sockets of a port were relaxed, and would let relaxed
    ones of other users in: so a strict one, where nothing lingers, comes before.
    """
    options = (socket.SO_REUSEPORT, socket.SO_REUSEADDR) if relaxed else (socket.SO_REUSEPORT,)
    held = _bind(address, port, *options)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return held


def close_all(sockets: Iterable[socket.socket]) -> None:
    for held in sockets:
        held.close()


def _is_taken(address: _Address, port: int) -> bool:
    try:
        _bind(address, port, socket.SO_REUSEADDR).close()
    except OSError as error:
        return error.errno not in _NO_SUCH_ADDRESS
    return False


def _bind(address: _Address, port: int, *options: int) -> socket.socket:
    host, family = address
    made = socket.socket(family)
    try:
        for option in options:
            made.setsockopt(socket.SOL_SOCKET, option, 1)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def _in_use(ports: Mapping[str, int], names: Iterable[str]) -> MissingPiece:
    return MissingPiece(
        f"ports of this machine are in use by other programs: {_with_options(ports, names)}",
        "stop those programs, or choose other ports with these options",
    )


def _with_options(ports: Mapping[str, int], names: Iterable[str]) -> str:
    return ", ".join(f"{ports[name]} (--{name}-port)" for name in dict.fromkeys(names))
