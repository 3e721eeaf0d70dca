"""The network of the cluster: its devices, its packet filter, and what leads from it to other machines.

Pure, but for ``find_slirp4netns``. Owns why there is no egress. The addresses of this machine are blocked by
``frontdoor egress``, which sees when they change; here are the chains that jump to its rules.
"""

from __future__ import annotations

import os
import shutil

from composeplat import progress
from composeplat.local.layout import HOST_NETWORK, NODE_ADDRESS, Layout
from composeplat.local.packages import SLIRP4NETNS
from composeplat.local.policies import packet_filter_commands

#: slirp4netns wants this device, which some containers don't have.
_TUN = "/dev/net/tun"
#: The device that leads out, and the chain with the rules for it; both are known to ``frontdoor egress``.
_UPLINK, _CHAIN = "tap0", "PLATFORM-EGRESS"
#: The network of the supervisor, as the parts see it.
_NAMESPACE = "/proc/1/ns/net"


def network_commands() -> list[list[str]]:
    """Return the commands that prepare the network before the first part."""
    return [
        ["ip", "link", "set", "lo", "up"],
        ["ip", "link", "add", "node", "type", "bridge"],
        ["ip", "address", "add", f"{NODE_ADDRESS}/32", "dev", "node"],
        ["ip", "link", "set", "node", "up"],
        # Services need a default route; the one of the uplink comes before it.
        ["ip", "route", "add", "default", "dev", "node", "metric", "4096"],
        *_uplink_filter(),
        *packet_filter_commands(),
        ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"],
        ["sh", "-c", "echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables || true"],
    ]


def _uplink_filter() -> list[list[str]]:
    """From outside come answers alone."""
    answers = ["-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "RETURN"]
    return [
        ["iptables", "-N", _CHAIN],
        *(["iptables", "-A", chain, "-o", _UPLINK, "-j", _CHAIN] for chain in ("FORWARD", "OUTPUT")),
        ["iptables", "-N", f"{_CHAIN}-IN"],
        ["iptables", "-A", f"{_CHAIN}-IN", *answers],
        ["iptables", "-A", f"{_CHAIN}-IN", "-j", "DROP"],
        *(["iptables", "-A", chain, "-i", _UPLINK, "-j", f"{_CHAIN}-IN"] for chain in ("FORWARD", "INPUT")),
    ]


def egress_arguments(frontdoor: str, slirp4netns: str) -> tuple[str, ...]:
    return (frontdoor, "egress", slirp4netns, _NAMESPACE)


def egress_problem(search_path: str) -> str:
    """Why nothing can lead out, with the fix; empty if something can."""
    if not os.path.exists(_TUN):
        return f"there is no {_TUN}: modprobe tun, then restart the cluster"
    if shutil.which(SLIRP4NETNS, path=search_path) is None:
        return "slirp4netns is not installed: platform setup --cluster --install, then restart the cluster"
    return ""


def find_slirp4netns(layout: Layout, search_path: str) -> str:
    """The program that leads pods and the steps of builds out, where there is one and it can run."""
    lacking = [
        *(["build steps have no network"] if layout.build_network != HOST_NETWORK else []),
        *(["pods reach no other machine"] if layout.egress else []),
    ]
    problem = egress_problem(search_path) if lacking else ""
    if problem:
        progress.note(f"{', and '.join(lacking)}: {problem}")
    return "" if problem else shutil.which(SLIRP4NETNS, path=search_path) or ""
