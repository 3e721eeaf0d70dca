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

_ADDRESSES = (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))
#: Without IPv6 there is no ``::1`` to hold.
_NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def check_ports(ports: Mapping[str, int]) -> None:
    """Raise an error that names the ports that other programs have, with their options."""
    taken = [name for name, port in ports.items() for address in _ADDRESSES if _is_taken(address, port)]
    if taken:
        raise _in_use(ports, taken)


def hold_ports(ports: Mapping[str, int], others: Iterable[tuple[str, int]] = ()) -> list[socket.socket]:
    """Bind sockets to the ports of loopback, and to other addresses of IPv4; they are held until the last is closed."""
    held: list[socket.socket] = []
    places = [(name, host, family, port) for name, port in ports.items() for host, family in _ADDRESSES]
    places += [("registry", host, socket.AF_INET, port) for host, port in others]
    for name, host, family, port in places:
        try:
            held.append(_bind((host, family), port, socket.SO_REUSEPORT))
        except OSError as error:
            if error.errno in _NO_SUCH_ADDRESS:
                continue
            close_all(held)
            raise _in_use(ports, [name]) from error
    return held


def close_all(sockets: Iterable[socket.socket]) -> None:
    for held in sockets:
        held.close()


def _is_taken(address: tuple[str, socket.AddressFamily], port: int) -> bool:
    try:
        _bind(address, port, socket.SO_REUSEADDR).close()
    except OSError as error:
        return error.errno not in _NO_SUCH_ADDRESS
    return False


def _bind(address: tuple[str, socket.AddressFamily], port: int, option: int) -> socket.socket:
    host, family = address
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, option, 1)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def _in_use(ports: Mapping[str, int], names: Iterable[str]) -> MissingPiece:
    taken = ", ".join(f"{ports[name]} (--{name}-port)" for name in dict.fromkeys(names))
    return MissingPiece(
        f"ports of this machine are in use by other programs: {taken}",
        "stop those programs, or choose other ports with these options",
    )
