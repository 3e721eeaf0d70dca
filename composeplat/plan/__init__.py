"""From the project to a plan of Kubernetes objects: pure, so the same input gives the same bytes.

Owns all decisions about Kubernetes objects, with a module for each topic; this module combines them.
Must not read nodes or files, nor know Pulumi: a rule whose test needs a cluster or an engine belongs elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from composeplat.compose.model import Project, Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker, Origins
from composeplat.diagnostics import Report
from composeplat.names import clean
from composeplat.plan.autoscale import plan_autoscaler
from composeplat.plan.clusters import find_members
from composeplat.plan.container_options import check_container_options
from composeplat.plan.desired import (
    BuiltImage,
    DesiredObject,
    Edge,
    EndpointPlan,
    ImageBuild,
    Plan,
    ServicePlan,
    VolumePlan,
)
from composeplat.plan.endpoints import plan_endpoints
from composeplat.plan.expose import check_exposed, plan_exposed
from composeplat.plan.file_objects import add_file_mounts, plan_file_objects, required_objects
from composeplat.plan.identity import Identity
from composeplat.plan.images import (
    image_with_ports,
    images_by_identity,
    plan_images,
    references_of_builds,
    service_image,
)
from composeplat.plan.limits import check_limits
from composeplat.plan.networks import (
    isolates,
    network_labels,
    network_policies,
    plan_aliases,
    plan_networks,
    plan_service_policy,
)
from composeplat.plan.order import plan_edges, pods_before, sort_services
from composeplat.plan.patches import patch_endpoints, patch_services, patch_volumes
from composeplat.plan.pods import PodInputs, plan_environment, plan_pod, plan_pull_secret, pod_logins
from composeplat.plan.providers import add_provided, plan_provided
from composeplat.plan.proxy_routes import check_proxy_routes
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.restarts import add_restarts
from composeplat.plan.scheduling import check_pods_fit
from composeplat.plan.security import check_security
from composeplat.plan.services import (
    check_ports,
    check_ports_of_nodes,
    container_ports,
    has_early_name,
    has_readiness_check,
    plan_cluster_service,
)
from composeplat.plan.shared_pods import PodPart, check_container_names, check_shared_pod, join_parts
from composeplat.plan.storage import Storage, plan_files, plan_storage, plan_volumes, shared_volumes
from composeplat.plan.workloads import plan_workload
from composeplat.registry.credentials import Login
from composeplat.system.records import record

__all__ = [
    "BuiltImage",
    "DesiredObject",
    "Edge",
    "EndpointPlan",
    "ImageBuild",
    "Plan",
    "ServicePlan",
    "VolumePlan",
    "make_plan",
]


@record(kw_only=True)
class _Common:
    """What the plans of all services have in common."""

    project: Project
    identity: Identity
    settings: Settings
    shared: Mapping[str, tuple[str, ...]]
    """The volumes that decide the node of each service."""
    references: frozenset[str]
    """The names under which built images are pushed."""
    built: Mapping[tuple[str, ...], BuiltImage]
    early: frozenset[str]
    """The services whose names lead to pods that are not ready too."""
    routed: Mapping[str, tuple[int, ...]] | None
    """The public ports of each service; None if no networks keep services apart."""


def make_plan(project: Project, settings: Settings, origins: Origins, report: Report) -> Plan:
    """Make the plan, and add the errors of this stage to the report; with an error, the plan must not be used.

    A project with errors is planned too, so that one run reports all errors.
    """
    checker = Checker(project, origins, report)
    identity = Identity(environment=settings.environment, namespace=settings.namespace)
    shared = shared_volumes(project) if settings.volume_affinity else {}
    ordered = sort_services(project.services)
    _check_services(checker, settings)
    endpoints = plan_endpoints(checker, settings, identity)
    check_proxy_routes(checker, endpoints)
    routed = _routed_ports(endpoints)
    is_isolated = bool(project.networks) and isolates(project)
    common = _Common(
        project=project,
        identity=identity,
        settings=settings,
        shared=shared,
        references=references_of_builds(ordered, settings),
        built=images_by_identity(project, settings),
        early=_early_names(project, routed),
        routed=routed if is_isolated else None,
    )
    planned = _plan_services(ordered, common)
    check_container_names(checker, planned)
    services = patch_services(checker, planned, endpoints)
    edges = plan_edges(project)
    return Plan(
        environment=settings.environment,
        namespace=settings.namespace,
        volumes=patch_volumes(checker, plan_volumes(checker, identity)),
        services=add_restarts(services, edges),
        endpoints=patch_endpoints(checker, endpoints, settings.environment),
        images=plan_images(checker, ordered, settings),
        edges=edges,
        inactive={clean(name): profiles for name, profiles in project.inactive.items()},
        networks=plan_networks(project, identity) if is_isolated else (),
        files=(*plan_file_objects(checker, identity, endpoints), *plan_provided(project, identity)),
        providers=tuple(project.providers),
        required=tuple(required_objects(project)),
    )


def _check_services(checker: Checker, settings: Settings) -> None:
    check_pods_fit(checker, settings)
    check_ports_of_nodes(checker)
    check_exposed(checker)
    for service in checker.project.services.values():
        if service.container.hook_of:
            continue
        check_ports(checker, service)
        check_limits(checker, service)
        check_security(checker, service, settings)
        check_container_options(checker, service, settings)
        check_shared_pod(checker, service)


def _routed_ports(endpoints: tuple[EndpointPlan, ...]) -> dict[str, tuple[int, ...]]:
    """The ports of services that endpoints route to."""
    routed: dict[str, tuple[int, ...]] = {}
    for endpoint in endpoints:
        for name, port in endpoint.routes:
            routed[name] = (*routed.get(name, ()), port)
    return routed


def _early_names(project: Project, routed: Collection[str]) -> frozenset[str]:
    """The services whose names lead to pods that are not ready too."""
    members = find_members(project)
    return frozenset(
        name
        for name, service in project.services.items()
        if has_early_name(service, has_endpoint=name in routed, is_member=name in members)
    )


def _plan_services(ordered: list[Service], common: _Common) -> tuple[ServicePlan, ...]:
    """Plan the services; those that run in the pods of another come before it."""
    parts: dict[str, list[PodPart]] = {}
    return tuple(_plan_service(service, common, parts.setdefault(service.pod_owner, [])) for service in ordered)


def _plan_service(service: Service, common: _Common, parts: list[PodPart]) -> ServicePlan:
    name = clean(service.name)
    image = service_image(service, common.project.services, common.settings)
    storage = plan_storage(service, common.project, common.identity)
    add_file_mounts(service, common.project, storage)
    add_provided(service, common.project, storage)
    inputs = PodInputs(
        identity=common.identity,
        settings=common.settings,
        image=image,
        storage=storage,
        shared=common.shared.get(service.name, ()),
        container_ports=container_ports(service),
        has_early_name=service.name in common.early,
        read_only_volumes=common.project.read_only_volumes,
        network_labels={} if common.routed is None else network_labels(service, common.project, common.identity),
        built=common.built,
    )
    template = plan_pod(service, inputs)
    logins = pod_logins(template["spec"], common.settings)
    objects = [*_plan_secrets(service, common.identity, storage, logins), *_plan_names(service, image, common)]
    objects += _plan_policies(service, common)
    part = PodPart(
        service=service,
        template=template,
        claim_templates=storage.claim_templates,
        needs=_needs(service, common, objects, storage),
    )
    if service.runs_elsewhere:
        parts.append(part)
    else:
        objects.append(_plan_workload(join_parts(part, parts), common.identity))
        objects += plan_autoscaler(service, common.identity)
    return ServicePlan(
        name=service.name,
        cluster_name=name,
        workload_kind=service.workload_kind,
        image=image,
        objects=tuple(objects),
        ports=tuple(port for port, protocol in inputs.container_ports if protocol == "tcp"),
        has_health_check=has_readiness_check(service),
        start_period=_start_period(service),
        rolls_back=service.scheduling.update.rolls_back,
        pull_period_s=service.container.pull_period_s,
        pod_of=clean(service.pod_owner) if service.runs_elsewhere else "",
    )


def _plan_workload(part: PodPart, identity: Identity) -> DesiredObject:
    manifest = plan_workload(part.service, identity, part.template, part.claim_templates)
    key = ResourceKey(ResourceKind.WORKLOAD, clean(part.service.name))
    return DesiredObject(key=key, manifest=manifest, needs=part.needs)


def _plan_names(service: Service, image: BuiltImage | str, common: _Common) -> list[DesiredObject]:
    """Plan the Service of a service, and those of its further names."""
    own = DesiredObject(
        key=ResourceKey(ResourceKind.SERVICE, clean(service.name)),
        manifest=plan_cluster_service(service, common.identity, has_early_name=service.name in common.early),
        ports_of=image_with_ports(service, image, common.references),
    )
    return [own, *plan_aliases(service, own), *plan_exposed(service, common.identity)]


def _plan_policies(service: Service, common: _Common) -> list[DesiredObject]:
    if common.routed is None:
        return []
    own = plan_service_policy(service, common.project, common.identity, common.routed.get(service.name, ()))
    return [own] if own else []


def _needs(
    service: Service, common: _Common, objects: list[DesiredObject], storage: Storage
) -> tuple[ResourceKey, ...]:
    """Return the keys of the objects that a workload comes after."""
    policies = [] if common.routed is None else network_policies(service, common.project)
    dependencies = pods_before(service, common.project.services)
    return (
        *(desired.key for desired in objects),
        *policies,
        *(ResourceKey(ResourceKind.CLAIM, claim) for claim in storage.claims),
        *storage.objects,
        *(ResourceKey(ResourceKind.WORKLOAD, clean(dependency)) for dependency in dependencies),
    )


def _plan_secrets(
    service: Service, identity: Identity, storage: Storage, logins: tuple[Login, ...]
) -> list[DesiredObject]:
    manifests = {
        ResourceKind.ENVIRONMENT: plan_environment(service, identity) if service.variables else None,
        ResourceKind.FILES: plan_files(service, identity, storage.files) if storage.files else None,
        ResourceKind.PULL_SECRET: plan_pull_secret(service, identity, logins) if logins else None,
    }
    name = clean(service.name)
    return [
        DesiredObject(key=ResourceKey(kind, name), manifest=manifest)
        for kind, manifest in manifests.items()
        if manifest
    ]


def _start_period(service: Service) -> int:
    """Return the seconds before the first health check; a Job has none."""
    check = service.health_check
    return check.start_period if check is not None and has_readiness_check(service) and not service.is_job else 0
