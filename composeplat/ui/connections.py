"""The connections that stay open: everybody on this machine can open some, and send nothing or very slowly.

Owns how many there are, and which one makes room. A request with the code is never ended for others, and those without
end before this process has no descriptors left for its own requests to the cluster.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable

from uvicorn.protocols.http.h11_impl import H11Protocol

from composeplat.ui.access import Gate

#: A browser opens six.
MAX_OPEN = 100
#: As many are accepted at once.
BACKLOG = 50


def protocol_for(gate: Gate) -> type[asyncio.Protocol]:
    """Return the protocol of a server, by which its connections are known."""
    numbers = itertools.count()

    class Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            self.number = next(numbers)
            super().connection_made(transport)
            still_open = [found for found in self.connections if not found.transport.is_closing()]
            if len(still_open) > MAX_OPEN:
                _close_oldest(still_open)

    def _close_oldest(connections: Iterable[object]) -> None:
        spare = [found for found in connections if isinstance(found, Protocol) and not _is_in_use(found, gate)]
        if spare:
            min(spare, key=lambda found: found.number).transport.abort()

    return Protocol


def _is_in_use(connection: H11Protocol, gate: Gate) -> bool:
    """Return whether a request with the code is being answered."""
    if connection.cycle is None or connection.cycle.response_complete:
        return False
    headers = dict(connection.scope["headers"])
    return gate.admits(headers.get(b"authorization", b"").decode("latin-1"))
