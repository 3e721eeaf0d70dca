"""What a cluster lacks for a plan, as notes of a deploy: a metrics server, addresses of LoadBalancers, ingress classes.

Beside these, what others did that may be why a service fails: NetworkPolicies, and changed fields of its pods.

Owns these notes. Nothing waits for either: an autoscaler begins, and an address appears, whenever the cluster has them.
"""

from __future__ import annotations

import http.client
from collections.abc import Container, Iterator, Mapping, Sequence

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.capabilities import read_ingress_classes
from composeplat.cluster.exposed_services import find_exposed, has_load_balancers
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.label_selectors import matches
from composeplat.diagnostics import join_some
from composeplat.engine.adoption_fields import lost_fields
from composeplat.engine.autoscaling import describe_missing_metrics
from composeplat.engine.outcomes import Failure
from composeplat.engine.preflight import belongs_to
from composeplat.plan.desired import DesiredObject, Manifest, Plan, ServicePlan
from composeplat.plan.resource_keys import ResourceKind
from composeplat.plan.templates import pod_template

_OLD_CLASS = "kubernetes.io/ingress.class"
_MAX_LISTED = 8
_MAX_FIELDS = 3
#: The fields of a workload's pods: others may set the rest, such as replicas.
_OF_PODS = ("spec.template.", "spec.jobTemplate.")


def notes_before(api: Api, plan: Plan) -> Iterator[str]:
    """Describe what a cluster lacks, before a deploy."""
    if lacks := describe_missing_metrics(api, plan):
        yield lacks
    if lacks := _describe_missing_class(api, plan):
        yield lacks
    balanced = [name for name, desired in _exposed(plan).items() if desired.manifest["spec"]["type"] == "LoadBalancer"]
    if balanced and not has_load_balancers(api):
        yield (
            f"{', '.join(balanced)}: no cloud or program of this cluster is known to give addresses to LoadBalancers,"
            " so x-expose may stay without one; type: NodePort needs none"
        )


def _describe_missing_class(api: Api, plan: Plan) -> str:
    """Describe Ingresses that no controller of the cluster may serve; empty where that is not known.

    A cluster without classes may serve all Ingresses, as that of some clouds does.
    """
    ingresses = [desired.manifest for desired in plan.objects if desired.kind == "Ingress"]
    wanted = {str(found["spec"].get("ingressClassName", "")) for found in ingresses if not _has_old_class(found)}
    if not wanted:
        return ""
    try:
        classes = read_ingress_classes(api)
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        return ""
    missing = sorted(name for name in wanted if name not in classes.names and not (classes.default and not name))
    if not classes.names or not missing:
        return ""
    has = f"ingress class '{missing[-1]}'" if missing[-1] else "default ingress class"
    names = join_some(classes.names, _MAX_LISTED)
    return f"the cluster has no {has}, so nothing may answer at the addresses: choose one with --ingress-class: {names}"


def _has_old_class(ingress: Manifest) -> bool:
    """Return whether an Ingress names its class as before Kubernetes had classes; controllers still read that."""
    return _OLD_CLASS in (ingress["metadata"].get("annotations") or {})


def notes_after(api: Api, plan: Plan) -> Iterator[str]:
    """Describe where exposed ports are reached, after a deploy."""
    exposed = _exposed(plan)
    found = find_exposed(api, plan.namespace, plan.environment) if exposed else []
    for name, desired in exposed.items():
        urls = [address.url for address in found if address.endpoint == desired.name]
        yield (
            f"{name}: {' '.join(urls)}"
            if urls
            else f"{name}: its LoadBalancer has no address yet: platform port {name}"
        )


def notes_of_failures(api: Api, plan: Plan, failures: Sequence[Failure]) -> Iterator[str]:
    """Describe what others have in the cluster that may be why services fail."""
    yield from _describe_lost_fields(api, plan, {failure.service for failure in failures})
    yield from _describe_policies(api, plan, {failure.service for failure in failures if failure.cause.logs})


def _describe_lost_fields(api: Api, plan: Plan, failed: Container[str]) -> Iterator[str]:
    """Describe fields of the failed services' pods that others have changed: no deploy sees them without a refresh."""
    workloads = [
        desired.manifest
        for service in plan.services
        for desired in service.objects
        if service.name in failed and desired.key.kind is ResourceKind.WORKLOAD
    ]
    for version, kind in dict.fromkeys((workload["apiVersion"], workload["kind"]) for workload in workloads):
        manifests = {found["metadata"]["name"]: found for found in workloads if found["kind"] == kind}
        try:
            listed = api.object_metadata(kind_path(version, kind, plan.namespace))
        except ApiError:
            continue
        for metadata in (found["metadata"] for found in listed):
            found = lost_fields(metadata, manifests.get(metadata["name"], {}))
            lost = {path: manager for path, manager in found.items() if path.startswith(_OF_PODS)}
            if lost:
                shown, by = join_some(list(lost), _MAX_FIELDS), join_some(sorted({*lost.values()}), _MAX_FIELDS)
                yield f"{kind} '{metadata['name']}' was changed by {by}: {shown}; platform deploy --refresh undoes that"


def _describe_policies(api: Api, plan: Plan, failed: Container[str]) -> Iterator[str]:
    """Describe the NetworkPolicies of others that hold for services whose containers ran, and failed."""
    services = [service for service in plan.services if service.name in failed]
    try:
        listed = api.items(kind_path("networking.k8s.io/v1", "NetworkPolicy", plan.namespace)) if services else []
    except ApiError:
        return
    for policy in listed:
        selector, name = policy["spec"].get("podSelector"), policy["metadata"]["name"]
        held = [service.name for service in services if matches(selector, _pod_labels(service))]
        if held and not belongs_to(policy, plan.environment):
            command = f"kubectl --namespace {plan.namespace} describe networkpolicy {name}"
            yield f"NetworkPolicy '{name}' of others limits the connections of {', '.join(held)}: {command}"


def _pod_labels(service: ServicePlan) -> Mapping[str, str]:
    workloads = [desired.manifest for desired in service.objects if desired.key.kind is ResourceKind.WORKLOAD]
    templates = [pod_template(workload) for workload in workloads]
    return {key: value for found in templates for key, value in (found["metadata"].get("labels") or {}).items()}


def _exposed(plan: Plan) -> dict[str, DesiredObject]:
    return {
        service.name: desired
        for service in plan.services
        for desired in service.objects
        if desired.key.kind is ResourceKind.EXPOSED
    }
