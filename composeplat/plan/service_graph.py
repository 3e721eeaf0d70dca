"""The services of a plan and what ties them together: endpoints, dependencies, volumes and networks, as a graph.

Owns which nodes and edges there are, and their labels.
Must not know the formats: :mod:`~composeplat.render.graph_text` and its neighbors write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from composeplat.compose.model import NAMED, Dependency, Project, Service
from composeplat.compose.values import show_size
from composeplat.names import make_label
from composeplat.plan.desired import BuiltImage, EndpointPlan, Plan, ServicePlan
from composeplat.system.records import record


class NodeKind(StrEnum):
    ENDPOINT = "endpoint"
    SERVICE = "service"
    PROVIDER = "provider"
    VOLUME = "volume"
    NETWORK = "network"


@record(kw_only=True)
class Node:
    kind: NodeKind
    name: str
    """The name in the definition."""
    details: tuple[str, ...] = ()
    """Short lines about it: the workload and the image of a service, the URL of an endpoint, the size of a volume."""

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.name}"


@record
class GraphEdge:
    source: str
    """The key of the node that needs the other."""
    target: str
    label: str = ""


@record(kw_only=True)
class Graph:
    title: str
    nodes: tuple[Node, ...]
    edges: tuple[GraphEdge, ...]


def make_graph(project: Project, plan: Plan, *, with_urls: bool = True) -> Graph:
    """Make the graph of a plan, which may have some services only; without a domain, endpoints have no URLs."""
    services = {service.name: project.services[service.name] for service in plan.services}
    nodes = {node.key: node for node in _nodes(project, plan, services, with_urls=with_urls)}
    edges = _merged(edge for edge in _edges(project, plan, services) if edge.source in nodes and edge.target in nodes)
    return Graph(title=f"{plan.environment} in namespace {plan.namespace}", nodes=tuple(nodes.values()), edges=edges)


def _nodes(project: Project, plan: Plan, services: Mapping[str, Service], *, with_urls: bool) -> Iterator[Node]:
    for endpoint in plan.endpoints:
        yield Node(kind=NodeKind.ENDPOINT, name=endpoint.name, details=endpoint.urls[:with_urls])
    for planned in plan.services:
        details = _service_details(services[planned.name], planned)
        yield Node(kind=NodeKind.SERVICE, name=planned.name, details=details)
    for name in plan.providers:
        yield Node(kind=NodeKind.PROVIDER, name=name, details=("set up by a provider",))
    for volume in plan.volumes:
        yield Node(kind=NodeKind.VOLUME, name=volume.name, details=_volume_details(project, volume.name))
    for network in plan.networks:
        yield Node(kind=NodeKind.NETWORK, name=network.name)


def _service_details(service: Service, planned: ServicePlan) -> tuple[str, ...]:
    if service.runs_elsewhere:
        workload = f"in the pods of {service.pod_owner}"
    elif service.is_global or service.is_job or service.replicas == 1:
        workload = service.workload_kind
    else:
        workload = f"{service.workload_kind}, {service.replicas} replicas"
    return (workload, f"{planned.image}, built" if isinstance(planned.image, BuiltImage) else str(planned.image))


def _volume_details(project: Project, name: str) -> tuple[str, ...]:
    volume = project.volumes.get(name)
    if volume is None or volume.external:
        return ("external",)
    return (show_size(volume.size),)


def _edges(project: Project, plan: Plan, services: Mapping[str, Service]) -> Iterator[GraphEdge]:
    for endpoint in plan.endpoints:
        for routed, label in _routes(project, endpoint, plan.environment):
            yield GraphEdge(f"{NodeKind.ENDPOINT}/{endpoint.name}", f"{NodeKind.SERVICE}/{routed}", label)
    for service in services.values():
        yield from _service_edges(service, plan)


def _routes(project: Project, endpoint: EndpointPlan, environment: str) -> Iterator[tuple[str, str]]:
    """Yield the services of an endpoint, with the paths and ports of their routes; that of a public port is ``/``."""
    written = [
        (route.service, f"{route.path} to :{route.port}")
        for found in project.endpoints
        if (make_label(found.name) if found.name else environment) == endpoint.name
        for route in found.routes
        if (route.service, route.port) in endpoint.routes
    ]
    yield from written or ((service, f"/ to :{port}") for service, port in endpoint.routes)


def _service_edges(service: Service, plan: Plan) -> Iterator[GraphEdge]:
    source = f"{NodeKind.SERVICE}/{service.name}"
    for dependency in service.depends_on:
        yield GraphEdge(source, f"{NodeKind.SERVICE}/{dependency.service}", _condition(dependency))
    for provider in service.provided:
        yield GraphEdge(source, f"{NodeKind.PROVIDER}/{provider}", "variables")
    if service.runs_elsewhere:
        yield GraphEdge(source, f"{NodeKind.SERVICE}/{service.pod_owner}", "same pod")
    for mount in service.mounts:
        if mount.kind == NAMED:
            read_only = ", read-only" if mount.read_only else ""
            yield GraphEdge(source, f"{NodeKind.VOLUME}/{mount.source}", f"{mount.target}{read_only}")
    # Without a policy of its own, a network keeps no service apart.
    for network in sorted(service.networks or ()):
        if any(network == planned.name for planned in plan.networks):
            yield GraphEdge(source, f"{NodeKind.NETWORK}/{network}")


def _condition(dependency: Dependency) -> str:
    return dependency.condition.removeprefix("service_").replace("_", " ")


def _merged(edges: Iterable[GraphEdge]) -> tuple[GraphEdge, ...]:
    """Join the labels of edges between the same nodes."""
    labels: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        labels.setdefault((edge.source, edge.target), []).append(edge.label)
    return tuple(GraphEdge(*ends, ", ".join(dict.fromkeys(filter(None, found)))) for ends, found in labels.items())
