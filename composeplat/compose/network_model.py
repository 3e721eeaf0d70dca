"""The part of the model for networks: what full mode reads of them, and the names that a service has in them.

Owns which services a network keeps apart, as Compose defines it.
Must not know YAML, files or Kubernetes, as :mod:`composeplat.compose.model`, which has these as fields.
"""

from __future__ import annotations

from composeplat.system.records import record

NO_NETWORK, HOST_NETWORK = "none", "host"


@record(kw_only=True)
class Network:
    name: str
    """The name in the definition."""
    shared_name: str = ""
    """The name that other projects know an external network by; empty for a network of the project's own."""
    internal: bool = False
    """Its services reach nothing outside."""


@record(kw_only=True)
class Networking:
    """What full mode reads for the network of a service; by default nothing."""

    mode: str = ""
    """``none``, ``host`` or empty."""
    aliases: tuple[str, ...] = ()
    """More names that others reach the service by: its aliases, its container's name, and those of others' links.

    In small letters, as DNS knows no case.
    """
    hostname: str = ""
    """The container's own name, by which others reach it too: an alias, unless it means another service."""
    links: tuple[tuple[str, str], ...] = ()
    """Other services, and the names that this one knows them by."""
