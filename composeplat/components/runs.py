"""The run of a program in which a component is made: what is remembered of components is of one run.

Owns what distinguishes runs. One process can run several programs, each with a client of its engine. The provider for
other languages has a client for each component, and those of one run have the address of one engine.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar
from typing import Any

import pulumi
from pulumi.runtime.settings import get_monitor

#: The attribute of a Kubernetes provider of another process with its URN: each component has another object for it.
_URN_ELSEWHERE = "_urn_elsewhere"
_FIRST_CLIENT: ContextVar[Any] = ContextVar("first_client")


def current_run() -> Any:
    """Return an object that is the same one for all components of a run."""
    return _FIRST_CLIENT.get(None) or get_monitor()


class ProviderRuns:
    """The runs that a provider makes components for."""

    def __init__(self) -> None:
        self._clients: dict[Hashable, Any] = {}

    def join(self) -> None:
        """Let the component that this task makes be of the same run as the others with its engine."""
        client = get_monitor()
        _FIRST_CLIENT.set(self._clients.setdefault(_address(client), client))


def _address(client: Any) -> Hashable:
    """Return the address of a client's engine, which gRPC has in no public attribute; else the client itself."""
    channel: Any = getattr(getattr(client, "RegisterResource", None), "_channel", None)
    address: Hashable = channel.target() if hasattr(channel, "target") else client
    return address


async def keep_identity(provider: pulumi.ProviderResource) -> None:
    """Remember which Kubernetes provider an object stands for that has a URN alone."""
    vars(provider)[_URN_ELSEWHERE] = await provider.urn.future()


def provider_identity(provider: pulumi.ProviderResource | None) -> Hashable:
    """Return what is the same for one Kubernetes provider in all components of a run."""
    identity: Hashable = getattr(provider, _URN_ELSEWHERE, provider)
    return identity
