"""Networks of full mode: the NetworkPolicies that keep services apart, and the Services of their further names.

Owns the labels of networks and the policies; a policy admits pods by label, so that a service that joins a network
changes no object of the others.
Must not decide which ports are public: the routes of endpoints come in.

Policies are made only if the definition isolates something, since most files have networks that keep no one apart.
A NetworkPolicy never keeps out the node of a pod, and so no probe.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, islice

from composeplat.compose.model import Project, Service
from composeplat.compose.network_model import NO_NETWORK, Network
from composeplat.names import ENVIRONMENT_LABEL, LABEL_PREFIX, clean, is_service_name, shorten
from composeplat.plan.desired import DesiredObject, Manifest, NetworkPlan
from composeplat.plan.expose import exposed_ports
from composeplat.plan.identity import Identity
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.services import service_ports

_SERVICE_PODS = (ENVIRONMENT_LABEL, "app.kubernetes.io/component")
_MAX_PAIRS = 100_000
_DNS_PORTS = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]


def isolates(project: Project) -> bool:
    """Check whether some service is kept apart from another, or from outside."""
    if any(service.networking.mode == NO_NETWORK for service in project.services.values()):
        return True
    groups = {names for service in project.services.values() if (names := networks_of(service, project))}
    if not groups:
        return False
    if any(project.networks[name].internal for name in set().union(*groups)):
        return True
    return not frozenset.intersection(*groups) and _some_are_apart(groups)


def _some_are_apart(groups: set[frozenset[str]]) -> bool:
    """Check for two groups of networks that share none; too many groups to compare count as that."""
    pairs = combinations(groups, 2)
    return any(not a & b for a, b in islice(pairs, _MAX_PAIRS)) or next(pairs, None) is not None


def networks_of(service: Service, project: Project) -> frozenset[str]:
    return frozenset(name for name in service.networks or () if name in project.networks)


def network_labels(service: Service, project: Project, identity: Identity) -> dict[str, str]:
    """Return the labels of a service's pods, one for each of its networks."""
    names = sorted(networks_of(service, project))
    return dict(_label(project.networks[name], identity) for name in names)


def _label(network: Network, identity: Identity) -> tuple[str, str]:
    if network.shared_name:
        return f"{LABEL_PREFIX}/{shorten(f'shared-network-{clean(network.shared_name)}')}", "true"
    return f"{LABEL_PREFIX}/{shorten(f'network-{clean(network.name)}')}", identity.environment


def plan_networks(project: Project, identity: Identity) -> tuple[NetworkPlan, ...]:
    used = set().union(*(networks_of(service, project) for service in project.services.values()))
    return tuple(_plan_network(network, identity) for name, network in project.networks.items() if name in used)


def _plan_network(network: Network, identity: Identity) -> NetworkPlan:
    name = clean(network.name)
    members = {"podSelector": {"matchLabels": dict([_label(network, identity)])}}
    spec = {**members, "policyTypes": ["Ingress"], "ingress": [{"from": [members]}]}
    metadata = identity.metadata(shorten(f"{identity.environment}-network-{name}"), name)
    desired = DesiredObject(key=_policy_key(network.name), manifest=_policy(metadata, spec))
    return NetworkPlan(name=network.name, cluster_name=name, objects=(desired,))


def network_policies(service: Service, project: Project) -> list[ResourceKey]:
    """Return the policies that must be there before a service's pods."""
    return [_policy_key(name) for name in sorted(networks_of(service, project))]


def _policy_key(network: str) -> ResourceKey:
    return ResourceKey(ResourceKind.NETWORK, clean(network))


def plan_service_policy(
    service: Service, project: Project, identity: Identity, public: Iterable[int]
) -> DesiredObject | None:
    """Plan what is special about a service: its public ports, and that it reaches nothing outside."""
    if service.networking.mode == NO_NETWORK:
        rules: Manifest = {"policyTypes": ["Ingress", "Egress"]}
    else:
        rules = _service_rules(service, project, identity, frozenset(public))
    if not rules["policyTypes"]:
        return None
    name = clean(service.name)
    # The pods of `platform run` have these labels too, unlike those of the Service's selector.
    labels = identity.labels(clean(service.pod_owner))
    pods = {key: labels[key] for key in _SERVICE_PODS}
    spec = {"podSelector": {"matchLabels": pods}, **rules}
    metadata = identity.service_metadata(name, name)
    return DesiredObject(key=ResourceKey(ResourceKind.POLICY, name), manifest=_policy(metadata, spec))


def _service_rules(service: Service, project: Project, identity: Identity, public: frozenset[int]) -> Manifest:
    rules: Manifest = {"policyTypes": []}
    found = {("TCP", port.target) for (number, _), port in service_ports(service).items() if number in public}
    found |= {(port.protocol.upper(), port.target) for port in exposed_ports(service)}
    if found:
        # These are open to everyone, wherever the controller of the Ingresses runs.
        rules["policyTypes"].append("Ingress")
        rules["ingress"] = [{"ports": [{"protocol": protocol, "port": target} for protocol, target in sorted(found)]}]
    networks = [project.networks[name] for name in sorted(networks_of(service, project))]
    if networks and all(network.internal for network in networks):
        members = [{"podSelector": {"matchLabels": dict([_label(network, identity)])}} for network in networks]
        rules["policyTypes"].append("Egress")
        rules["egress"] = [{"to": members}, {"ports": _DNS_PORTS}]
    return rules


def _policy(metadata: Manifest, spec: Manifest) -> Manifest:
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def plan_aliases(service: Service, cluster_service: DesiredObject) -> list[DesiredObject]:
    """Plan a Service for each further name, like the service's own."""
    own = cluster_service.manifest
    return [
        DesiredObject(
            key=ResourceKey(ResourceKind.ALIAS, alias),
            manifest={**own, "metadata": {**own["metadata"], "name": alias}},
            ports_of=cluster_service.ports_of,
        )
        for alias in service.networking.aliases
        if is_service_name(alias) and alias != own["metadata"]["name"]
    ]
