"""The plan: the desired objects, as data.

Owns the data of a plan, which is rendered as YAML, registered with Pulumi, and compared with a cluster.
Must not know Compose's keys, Pulumi or a cluster: a plan can be printed, compared and stored.

It has late values, which only a deploy knows: :class:`BuiltImage`, the reference of an image that is not built yet,
and :class:`~composeplat.plan.fingerprint.Fingerprint`. As text, each has the value that is known before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from composeplat.compose.model import Build, DependencyCondition
from composeplat.diagnostics import PathKey
from composeplat.plan.fingerprint import Fingerprint
from composeplat.plan.identity import Identity
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.selection import no_such_service
from composeplat.plan.templates import pod_template
from composeplat.system.records import record

Manifest = dict[str, Any]


@record
class BuiltImage:
    """The late value of a service's built image; ``name`` is its name in the registry."""

    service: str
    name: str
    is_loaded: bool = False
    """In the nodes of the cluster, and in no registry."""

    def __str__(self) -> str:
        return self.name


@record(kw_only=True)
class DesiredObject:
    """One Kubernetes object, exactly as kubectl would show it."""

    key: ResourceKey
    """Stable, since Pulumi's resources are named by it."""
    manifest: Manifest
    needs: tuple[ResourceKey, ...] = ()
    """The keys of objects that must be created before."""
    ports_of: BuiltImage | str = ""
    """The image whose exposed ports a cluster service lists; empty if the service has ports of its own."""
    patched_at: PathKey = ()
    """The place of its patch in the definition; empty without one."""
    unpatched: Manifest | None = None
    """The manifest before its patch."""

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


@record(kw_only=True)
class ImageBuild:
    """An image to build, and to push or load, before the service that runs it."""

    service: str
    reference: str
    build: Build
    is_loaded: bool = False
    derived: bool = False
    """Built for host content that is too large for a Secret, without a ``build`` section."""
    contents: tuple[str, ...] = ()
    left_out: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """The host paths whose content it has, and what it leaves out of each; the build context has their numbers."""
    bases: Mapping[str, BuiltImage | str] = field(default_factory=dict)
    """Images of other services that its build uses, by the name of the context."""


@record(kw_only=True)
class Edge:
    """``service`` waits until ``dependency`` meets ``condition``."""

    service: str
    dependency: str
    condition: DependencyCondition
    required: bool = True
    restart: bool = False
    """Whether a change of the dependency replaces the pods of the service too."""


@record(kw_only=True)
class ServicePlan:
    name: str
    """The name in the definition."""
    cluster_name: str
    workload_kind: str
    image: BuiltImage | str
    objects: tuple[DesiredObject, ...]
    ports: tuple[int, ...] = ()
    """The TCP ports its container listens on."""
    has_health_check: bool = False
    start_period: int = 0
    """The seconds before its first health check."""
    rolls_back: bool = False
    """Whether what ran before runs again if a deploy fails."""
    pull_period_s: int | None = None
    """How old an image may be before a deploy looks for a newer one; None keeps it."""
    pod_of: str = ""
    """The service in whose pods it runs, by its cluster name; empty if it has its own."""

    @property
    def images(self) -> Iterator[BuiltImage | str]:
        """The image of its container, and those that its pods have before it or in volumes."""
        yield self.image
        for desired in self.objects:
            if desired.key.kind is ResourceKind.WORKLOAD:
                spec = pod_template(desired.manifest)["spec"]
                yield from (found.get("image", "") for found in spec.get("initContainers") or ())
                yield from ((found.get("image") or {}).get("reference", "") for found in spec.get("volumes") or ())

    @property
    def group(self) -> str:
        """The name of the group of its objects in the plan."""
        return f"service-{self.cluster_name}"

    @property
    def workload_name(self) -> str:
        return self.pod_of or self.cluster_name

    @property
    def workload(self) -> tuple[str, str]:
        """Kind and name of its workload."""
        return self.workload_kind, self.workload_name

    @property
    def keys(self) -> tuple[ResourceKey, ...]:
        return tuple(desired.key for desired in self.objects)

    @property
    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """The annotations of its pods that change with the variables and files of each service in them."""
        templates = (pod_template(d.manifest) for d in self.objects if d.key.kind is ResourceKind.WORKLOAD)
        annotations = (template["metadata"].get("annotations", {}) for template in templates)
        return tuple(value for found in annotations for value in found.values() if isinstance(value, Fingerprint))

    def ports_to_probe(self, condition: DependencyCondition) -> tuple[int, ...]:
        """Return the ports that decide a condition: without a health check, healthy means that one of them answers."""
        return self.ports if condition is DependencyCondition.HEALTHY and not self.has_health_check else ()

    def container_port(self, number: int) -> int:
        """Return the container port that a port of the cluster service forwards to."""
        for desired in self.objects:
            if desired.kind == "Service":
                for port in desired.manifest["spec"].get("ports") or []:
                    if port["port"] == number and isinstance(port["targetPort"], int):
                        return port["targetPort"]
        return number


@record(kw_only=True)
class VolumePlan:
    name: str
    cluster_name: str
    objects: tuple[DesiredObject, ...]


@record(kw_only=True)
class NetworkPlan:
    name: str
    cluster_name: str
    objects: tuple[DesiredObject, ...]


@record(kw_only=True)
class FilePlan:
    """A config or secret with its object, which all its users share."""

    section: str
    """``configs`` or ``secrets``."""
    name: str
    objects: tuple[DesiredObject, ...]


#: The kind that the runtime of a service needs; it is of the whole cluster.
RUNTIME_CLASS = "RuntimeClass"


@record(kw_only=True)
class RequiredObject:
    """An object of someone else that services use: it must exist, and is never changed."""

    kind: str
    name: str
    path: PathKey
    """Where the definition names it."""
    services: frozenset[str]
    key: str = ""
    """The key that the object must have."""


@record(kw_only=True)
class EndpointPlan:
    name: str
    service: str = ""
    """The service whose public port it is for; empty for an endpoint of the key ``endpoints``."""
    urls: tuple[str, ...]
    objects: tuple[DesiredObject, ...]
    routes: tuple[tuple[str, int], ...] = ()
    """The services and ports of the routes."""
    urls_by_service: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    addresses: tuple[tuple[str, str, int], ...] = ()
    """The URL, service and port of each route."""


@record(kw_only=True)
class Plan:
    environment: str
    namespace: str
    volumes: tuple[VolumePlan, ...] = ()
    services: tuple[ServicePlan, ...] = ()
    """Dependencies first."""
    endpoints: tuple[EndpointPlan, ...] = ()
    images: tuple[ImageBuild, ...] = ()
    edges: tuple[Edge, ...] = ()
    inactive: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The services that are left out as their profiles are off, by name in the cluster, with their profiles."""
    networks: tuple[NetworkPlan, ...] = ()
    files: tuple[FilePlan, ...] = ()
    providers: tuple[str, ...] = ()
    """The services that providers give: they have no pods."""
    required: tuple[RequiredObject, ...] = ()
    confidential: tuple[str, ...] = field(default=(), repr=False)
    """Values that only the Secrets of the cluster may show."""

    def with_confidential(self, values: tuple[str, ...]) -> Plan:
        return replace(self, confidential=values)

    @property
    def identity(self) -> Identity:
        return Identity(environment=self.environment, namespace=self.namespace)

    @property
    def workload_kinds(self) -> frozenset[str]:
        return frozenset(service.workload_kind for service in self.services)

    def select_services(self, names: Collection[str]) -> frozenset[str]:
        """Return the named services and all their dependencies; without a name, all services."""
        known = {service.name for service in self.services}
        if not names:
            return frozenset(known)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise no_such_service(unknown[0], known, self.providers)
        chosen = self.with_pods_of(names)
        while more := {edge.dependency for edge in self.edges if edge.service in chosen} - chosen:
            chosen |= self.with_pods_of(more)
        return frozenset(chosen)

    def with_pods_of(self, names: Collection[str]) -> set[str]:
        """Return the named services, and those that run in the same pods."""
        workloads = {service.workload for service in self.services if service.name in names}
        return {*names, *(service.name for service in self.services if service.workload in workloads)}

    def aliases_of(self, name: str) -> list[str]:
        """Return the further names of a service, and of those that run in the same pods."""
        names = self.with_pods_of((name,))
        objects = (desired for service in self.services if service.name in names for desired in service.objects)
        return [desired.name for desired in objects if desired.key.kind is ResourceKind.ALIAS]

    def with_restarted(self, names: Collection[str]) -> frozenset[str]:
        """Return the named services, and those that restart with them."""
        chosen = set(names)
        while more := {edge.service for edge in self.edges if edge.restart and edge.dependency in chosen} - chosen:
            chosen |= more
        return frozenset(chosen)

    def limited_to(self, names: Collection[str]) -> Plan:
        """Return the part of the plan for some services: with their volumes, images and endpoints."""
        chosen = self.select_services(names)
        services = tuple(service for service in self.services if service.name in chosen)
        needed = {need for service in services for desired in service.objects for need in desired.needs}
        return replace(
            self,
            services=services,
            volumes=tuple(plan for plan in self.volumes if any(desired.key in needed for desired in plan.objects)),
            endpoints=tuple(
                endpoint for endpoint in self.endpoints if any(service in chosen for service, _ in endpoint.routes)
            ),
            networks=tuple(
                network for network in self.networks if any(desired.key in needed for desired in network.objects)
            ),
            files=tuple(plan for plan in self.files if any(desired.key in needed for desired in plan.objects)),
            required=tuple(found for found in self.required if found.services & chosen),
            images=self.images_for(chosen),
            edges=tuple(edge for edge in self.edges if edge.service in chosen),
        )

    def images_for(self, names: Collection[str]) -> tuple[ImageBuild, ...]:
        """Return the images that some services run, and the images that their builds use."""
        images = (image for service in self.services if service.name in names for image in service.images)
        # In a plan of an earlier revision, services run images by digest, and the images of the state are kept.
        needed = {*names, *(image.service for image in images if isinstance(image, BuiltImage))}
        for image in reversed(self.images):
            if image.service in needed:
                needed |= {base.service for base in image.bases.values() if isinstance(base, BuiltImage)}
        return tuple(image for image in self.images if image.service in needed)

    def users_of(self, volume: str) -> tuple[ServicePlan, ...]:
        """Return the services that mount a volume."""
        claims = {desired.key for plan in self.volumes if plan.name == volume for desired in plan.objects}
        return tuple(user for user in self.services if any(claims & set(desired.needs) for desired in user.objects))

    @property
    def images_only(self) -> Plan:
        """The plan for a build: with the images, and without objects, so that nothing waits for a service."""
        services = tuple(replace(service, objects=()) for service in self.services)
        endpoints = tuple(replace(endpoint, objects=()) for endpoint in self.endpoints)
        return replace(self, services=services, endpoints=endpoints, volumes=(), networks=(), files=(), edges=())

    @property
    def start_delays(self) -> dict[str, float]:
        """The seconds before each service can be ready: its own start period and those of its dependencies."""
        periods = {service.name: service.start_period for service in self.services}
        before = dict.fromkeys(periods, 0.0)
        delays: dict[str, float] = {}
        following: dict[str, list[Edge]] = {}
        for edge in self.edges:
            following.setdefault(edge.dependency, []).append(edge)
        for name, period in periods.items():
            delays[name] = before[name] + period
            for edge in following.get(name, ()):
                delay = before[name] if edge.condition is DependencyCondition.STARTED else delays[name]
                before[edge.service] = max(before.get(edge.service, 0.0), delay)
        return delays

    @property
    def own_builds(self) -> dict[str, Build]:
        """The builds that the definition asks for, by service."""
        return {image.service: image.build for image in self.images if not image.derived}

    @property
    def objects(self) -> tuple[DesiredObject, ...]:
        return tuple(desired for group in self.groups.values() for desired in group)

    @property
    def groups(self) -> Mapping[str, tuple[DesiredObject, ...]]:
        """The objects by group; the name of a group is a valid file name."""
        named: dict[str, tuple[DesiredObject, ...]] = {}
        for volume in self.volumes:
            named[f"volume-{volume.cluster_name}"] = volume.objects
        for network in self.networks:
            named[f"network-{network.cluster_name}"] = network.objects
        for file in self.files:
            named.update((str(desired.key).replace("/", "-"), (desired,)) for desired in file.objects)
        for service in self.services:
            named[service.group] = service.objects
        for endpoint in self.endpoints:
            named[f"endpoint-{endpoint.name}"] = endpoint.objects
        return named
