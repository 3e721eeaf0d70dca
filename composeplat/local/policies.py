"""NetworkPolicies on the local cluster: rules of the kernel's packet filter that enforce them.

Owns the meaning of NetworkPolicies for the pods of one node, as text for ``iptables-restore``; and the thread that
applies it.
It is our own because the node's network plugin enforces no policies, and the one enforcer that could be built here
needs a queue that many kernels lack.

Packets are filtered in the table ``mangle``, after a Service's address became a pod's, and apart from the chains of
kube-proxy. What comes from the node itself, such as health checks and the ingress, passes no such chain. A packet that
is not admitted is dropped: a pod that is admitted a moment later connects with its next attempt.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.label_selectors import matches
from composeplat.cluster.snapshot import Object
from composeplat.local.layout import SERVICE_RANGE
from composeplat.local.live_objects import LiveObjects
from composeplat.system.records import record

CHAIN = "PLATFORM-POLICIES"
_POLICIES = kind_path("networking.k8s.io/v1", "NetworkPolicy")
_PODS = kind_path("v1", "Pod")
_NAMESPACES = kind_path("v1", "Namespace")
_RETRY_INTERVAL_S = 1.0
_TIMEOUT_S = 30.0
_NO_RULES = f"*mangle\n:{CHAIN} - [0:0]\nCOMMIT\n"
_LEADING_ZEROS = re.compile(r"\b0+(?=\d)")


@record
class Direction:
    """One of the two directions of traffic, with the fields and options that it has."""

    type: str
    rules: str
    peers: str
    own: str
    other: str


_INGRESS = Direction("Ingress", "ingress", "from", "-d", "-s")
_EGRESS = Direction("Egress", "egress", "to", "-s", "-d")


def filter_rules(policies: list[Object], pods: list[Object], namespaces: list[Object]) -> str:
    """Return the rules that enforce all policies, as ``iptables-restore`` reads them; they replace those before."""
    known = {n["metadata"]["name"]: n["metadata"].get("labels") or {} for n in namespaces}
    placed = [pod for pod in pods if _address(pod)]
    chains: list[str] = []
    lines = [f"-A {CHAIN} -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN"]
    for pod in placed:
        for direction in (_INGRESS, _EGRESS):
            chosen = [policy for policy in policies if _selects(policy, pod, direction)]
            if chosen:
                name = _chain_name(pod, direction)
                chains.append(name)
                lines.append(f"-A {CHAIN} {direction.own} {_address(pod)} -j {name}")
                lines += [f"-A {name} {rule}" for rule in _pod_rules(chosen, pod, direction, placed, known)]
    declared = [f":{name} - [0:0]" for name in (CHAIN, *chains)]
    return "\n".join(["*mangle", *declared, *lines, "COMMIT", ""])


def _address(pod: Object) -> str:
    """Return the address of a pod with a network of its own; that of an ended pod may be another one's by now."""
    status = pod.get("status", {})
    if pod["spec"].get("hostNetwork") or status.get("phase") in ("Succeeded", "Failed"):
        return ""
    return str(status.get("podIP") or "")


def _chain_name(pod: Object, direction: Direction) -> str:
    digest = hashlib.sha256(str(pod["metadata"]["uid"]).encode()).hexdigest()[:16]
    return f"POD-{direction.type[:2].upper()}-{digest}"


def _selects(policy: Object, pod: Object, direction: Direction) -> bool:
    if policy["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return False
    spec = policy.get("spec", {})
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return direction.type in types and matches(spec.get("podSelector"), pod["metadata"].get("labels") or {})


def _pod_rules(
    policies: Iterable[Object], pod: Object, direction: Direction, pods: list[Object], namespaces: Mapping[str, Any]
) -> Iterator[str]:
    """The rules of one pod: what is admitted, and that all else is dropped."""
    own = f"{direction.other} {_address(pod)} -j RETURN"
    yield own
    seen = {own}
    for policy in policies:
        for rule in policy["spec"].get(direction.rules) or ():
            places = _places(rule.get(direction.peers), policy, direction, pods, namespaces)
            for place in places:
                for match in _with_ports(place, rule.get("ports"), pod, direction, pods):
                    text = " ".join(filter(None, (match, "-j RETURN")))
                    if text not in seen:
                        seen.add(text)
                        yield text
    yield "-j DROP"


def _places(
    peers: list[Object] | None, policy: Object, direction: Direction, pods: list[Object], namespaces: Mapping[str, Any]
) -> list[str]:
    """The matches of addresses; without peers, of every address."""
    if not peers:
        return [""]
    found: list[str] = []
    for peer in peers:
        block = peer.get("ipBlock")
        if block is not None:
            found += _block(block, direction)
            continue
        found += [f"{direction.other} {_address(pod)}" for pod in pods if _is_peer(peer, pod, policy, namespaces)]
    return found


def _block(block: Object, direction: Direction) -> list[str]:
    """The match of a range; its exceptions are left out by the kernel's sets only, so the range is split."""
    if ":" in block["cidr"]:
        return []
    return [f"{direction.other} {part}" for part in _without(block["cidr"], block.get("except") or ())]


def _without(cidr: str, exceptions: Iterable[str]) -> list[str]:
    parts = [_network(cidr)]
    for text in exceptions:
        taken = _network(text)
        parts = [
            rest
            for part in parts
            for rest in (
                part.address_exclude(taken) if taken.subnet_of(part) else () if part.subnet_of(taken) else (part,)
            )
        ]
    return [str(part) for part in sorted(parts)]


def _network(cidr: str) -> IPv4Network:
    """Parse a range as the API server does, to which zeros in front mean nothing."""
    return IPv4Network(_LEADING_ZEROS.sub("", cidr), strict=False)


def _is_peer(peer: Object, pod: Object, policy: Object, namespaces: Mapping[str, Any]) -> bool:
    namespace = pod["metadata"]["namespace"]
    if "namespaceSelector" in peer:
        if not matches(peer["namespaceSelector"], namespaces.get(namespace, {})):
            return False
    elif namespace != policy["metadata"]["namespace"]:
        return False
    return matches(peer.get("podSelector"), pod["metadata"].get("labels") or {})


def _with_ports(
    place: str, ports: list[Object] | None, pod: Object, direction: Direction, pods: list[Object]
) -> Iterator[str]:
    """The matches of a place with ports; without ports, of all. A name is a port of the pod that receives packets."""
    for port in ports or ():
        protocol = str(port.get("protocol") or "TCP").lower()
        number, end = port.get("port"), port.get("endPort")
        if isinstance(number, str):
            targets = [pod] if direction is _INGRESS else [found for found in pods if _includes(place, found)]
            for target in targets:
                where = place if direction is _INGRESS else f"{direction.other} {_address(target)}"
                for found in _numbers(target, number, protocol):
                    yield f"{where} -p {protocol} --dport {found}".lstrip()
        else:
            numbers = f" --dport {number}" if number is not None else ""
            yield f"{place} -p {protocol}{numbers}".lstrip() + (f":{end}" if end else "")
    if not ports:
        yield place


def _includes(place: str, pod: Object) -> bool:
    """Whether the match of an address is one of a pod; without a match, it is one of every pod."""
    return not place or IPv4Address(_address(pod)) in IPv4Network(place.rpartition(" ")[2])


def _numbers(pod: Object, name: str, protocol: str) -> list[int]:
    """The ports of a pod with a name; several containers may have it."""
    spec = pod["spec"]
    ports = [
        port for found in (*spec["containers"], *spec.get("initContainers", ())) for port in found.get("ports") or ()
    ]
    named = [port for port in ports if port.get("name") == name and port.get("protocol", "TCP").lower() == protocol]
    return sorted({port["containerPort"] for port in named})


# acting ---------------------------------------------------------------------------------------------------------------

#: Chains that a packet to a Service passes after kube-proxy's translation. While kube-proxy has no rule yet for a new
#: Service, its packets are dropped here: the sender repeats them, and the first of them that meets a rule connects.
#: Elsewhere they would end as "No route to host".
_SERVICE_CHAINS = ("FORWARD", "OUTPUT")


def packet_filter_commands() -> list[list[str]]:
    """Return the commands that prepare the packet filter before the first pod."""
    return [
        *(["iptables", "-A", chain, "-d", SERVICE_RANGE, "-j", "DROP"] for chain in _SERVICE_CHAINS),
        ["iptables", "-t", "mangle", "-N", CHAIN],
        ["iptables", "-t", "mangle", "-A", "FORWARD", "-j", CHAIN],
    ]


class PolicyKeeper:
    """Applies the rules whenever a policy, a pod or a namespace changes."""

    def __init__(self, api: Api) -> None:
        self.objects = LiveObjects(api)
        self._applied = ""

    def run(self) -> None:
        """Run for as long as the cluster does."""
        while True:
            try:
                self.apply()
            except (ApiError, OSError, subprocess.SubprocessError) as error:
                sys.stderr.write(f"policies: {error}\n")
                time.sleep(_RETRY_INTERVAL_S)
            else:
                self.objects.wait()

    def apply(self) -> None:
        policies = self.objects.items(_POLICIES)
        # Also where there is none from the beginning: a process before may have ended while the last one was deleted.
        text = _NO_RULES
        if policies:
            text = filter_rules(policies, self.objects.items(_PODS), self.objects.items(_NAMESPACES))
        if text != self._applied:
            # Atomic: between the rules before and these, there is no moment without any.
            subprocess.run(
                [shutil.which("iptables-restore") or "", "--noflush", "--wait"],
                input=text.encode(),
                timeout=_TIMEOUT_S,
                check=True,
                capture_output=True,
            )
            self._applied = text
