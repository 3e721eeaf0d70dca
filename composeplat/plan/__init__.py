"""From the project to a plan of Kubernetes objects: pure, so the same input gives the same bytes.

Owns all decisions about Kubernetes objects, with a module for each topic; this module combines them.
Must not read nodes or files, nor know Pulumi: a rule whose test needs a cluster or an engine belongs elsewhere.
"""

from __future__ import annotations

from composeplat.compose.model import Project, Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker, Origins
from composeplat.diagnostics import Report
from composeplat.names import clean
from composeplat.plan.clusters import find_members
from composeplat.plan.container_options import check_container_options
from composeplat.plan.desired import (
    BuiltImage,
    DesiredObject,
    Edge,
    EndpointPlan,
    Identity,
    ImageBuild,
    Plan,
    ServicePlan,
    VolumePlan,
)
from composeplat.plan.endpoints import plan_endpoints
from composeplat.plan.images import image_with_ports, plan_images, references_of_builds, service_image
from composeplat.plan.limits import check_limits
from composeplat.plan.order import plan_edges, sort_services
from composeplat.plan.pods import PodInputs, plan_environment, plan_pod, plan_pull_secret
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.security import check_security
from composeplat.plan.services import (
    check_ports,
    container_ports,
    has_early_name,
    has_readiness_check,
    plan_cluster_service,
)
from composeplat.plan.storage import Storage, plan_files, plan_storage, plan_volume, shared_volumes
from composeplat.plan.workloads import plan_workload
from composeplat.registry.credentials import Login
from composeplat.registry.image_reference import ImageReference

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


def make_plan(project: Project, settings: Settings, origins: Origins, report: Report) -> Plan:
    """Make the plan, and add the errors of this stage to the report; with an error, the plan must not be used.

    A project with errors is planned too, so that one run reports all errors.
    """
    checker = Checker(project, origins, report)
    identity = Identity(environment=settings.environment, namespace=settings.namespace)
    shared = shared_volumes(project) if settings.volume_affinity else {}
    mounted = project.mounted_volumes
    ordered = sort_services(project.services)
    built = references_of_builds(ordered, settings)
    for service in project.services.values():
        check_ports(checker, service)
        check_limits(checker, service)
        check_security(checker, service, settings)
        check_container_options(checker, service, settings)
    endpoints = plan_endpoints(checker, settings, identity)
    early = _early_names(project, endpoints)
    return Plan(
        environment=settings.environment,
        namespace=settings.namespace,
        volumes=tuple(plan_volume(v, identity) for name, v in project.volumes.items() if name in mounted),
        services=tuple(
            _plan_service(s, project, identity, settings, shared.get(s.name, ()), built, is_early=s.name in early)
            for s in ordered
        ),
        endpoints=endpoints,
        images=plan_images(checker, ordered, settings),
        edges=plan_edges(project),
        inactive={clean(name): profiles for name, profiles in project.inactive.items()},
    )


def _early_names(project: Project, endpoints: tuple[EndpointPlan, ...]) -> frozenset[str]:
    """The services whose names lead to pods that are not ready too."""
    routed = {name for endpoint in endpoints for name, _ in endpoint.routes}
    members = find_members(project)
    return frozenset(
        name
        for name, service in project.services.items()
        if has_early_name(service, has_endpoint=name in routed, is_member=name in members)
    )


def _plan_service(
    service: Service,
    project: Project,
    identity: Identity,
    settings: Settings,
    shared: tuple[str, ...],
    built: frozenset[str],
    *,
    is_early: bool,
) -> ServicePlan:
    name = clean(service.name)
    image = service_image(service, settings)
    storage = plan_storage(service, identity)
    login = settings.logins.get(ImageReference.parse(str(image)).registry)
    inputs = PodInputs(
        identity=identity,
        settings=settings,
        image=image,
        storage=storage,
        shared=shared,
        container_ports=container_ports(service),
        has_pull_secret=login is not None,
        has_early_name=is_early,
        read_only_volumes=project.read_only_volumes,
    )
    objects = _plan_secrets(service, identity, storage, login)
    image_for_ports = image_with_ports(service, built, settings)
    cluster_service = plan_cluster_service(service, identity, has_early_name=is_early)
    service_key = ResourceKey(ResourceKind.SERVICE, name)
    objects.append(DesiredObject(key=service_key, manifest=cluster_service, ports_of=image_for_ports))
    workload = plan_workload(service, identity, plan_pod(service, inputs), storage.claim_templates)
    needs = [desired.key for desired in objects]
    needs += [ResourceKey(ResourceKind.CLAIM, claim) for claim in storage.claims]
    dependencies = [dependency.service for dependency in service.depends_on if dependency.service in project.services]
    needs += [ResourceKey(ResourceKind.WORKLOAD, clean(dependency)) for dependency in dependencies]
    workload_key = ResourceKey(ResourceKind.WORKLOAD, name)
    objects.append(DesiredObject(key=workload_key, manifest=workload, needs=tuple(needs)))
    return ServicePlan(
        name=service.name,
        cluster_name=name,
        workload_kind=service.workload_kind,
        image=image,
        objects=tuple(objects),
        ports=tuple(port for port, protocol in inputs.container_ports if protocol == "tcp"),
        has_health_check=has_readiness_check(service),
        start_period=_start_period(service),
    )


def _plan_secrets(service: Service, identity: Identity, storage: Storage, login: Login | None) -> list[DesiredObject]:
    manifests = {
        ResourceKind.ENVIRONMENT: plan_environment(service, identity) if service.variables else None,
        ResourceKind.FILES: plan_files(service, identity, storage.files) if storage.files else None,
        ResourceKind.PULL_SECRET: plan_pull_secret(service, identity, login) if login is not None else None,
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
