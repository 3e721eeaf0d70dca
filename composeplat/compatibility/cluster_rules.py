"""Rules about a cluster: what an environment needs, compared with what the cluster offers."""

from __future__ import annotations

from dataclasses import replace

from composeplat.cluster.capabilities import Capabilities, Classes
from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.compatibility.quota_rules import check_limit_ranges, check_quota
from composeplat.compose.extension_model import ExposeType
from composeplat.compose.model import ANONYMOUS, NAMED, Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker, mount_path
from composeplat.diagnostics import join_some
from composeplat.plan import Plan
from composeplat.registry.image_config import ImageFacts

_MAX_LISTED = 8
#: The capabilities that the Pod Security level 'baseline' allows.
_BASELINE = (
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT"
)


def check_cluster(
    checker: Checker, plan: Plan, settings: Settings, images: ImageAnswers, offered: Capabilities
) -> None:
    if offered.storage is not None:
        for service in checker.project.services.values():
            _check_storage(checker, service, offered.storage)
    if offered.ingress is not None and not settings.gateway:
        _check_ingress(checker, plan, settings.ingress_class, offered.ingress)
    if offered.pod_security and not settings.pod_security:
        _check_pod_security(checker, settings.namespace, offered.pod_security)
    if offered.architectures:
        _check_architectures(checker, images, offered.architectures)
    if offered.has_metrics is False:
        _check_metrics(checker)
    if offered.has_load_balancers is False:
        _check_load_balancers(checker)
    own = (offered.usage or {}).get(plan.environment, {})
    for quota in offered.quotas or ():
        check_quota(checker, quota if offered.usage is not None else replace(quota, used={}), own, offered.limit_ranges)
    check_limit_ranges(checker, offered.limit_ranges or ())


# storage and routes ---------------------------------------------------------------------------------------------------


def _check_storage(checker: Checker, service: Service, classes: Classes) -> None:
    """Check that the storage class of each volume exists."""
    listed = (
        f"classes are: {join_some(classes.names, _MAX_LISTED)}" if classes.names else "the cluster has no storage class"
    )
    for index, mount in enumerate(service.mounts):
        volume = checker.project.volumes.get(mount.source) if mount.kind == NAMED else None
        if volume is None and (mount.kind != ANONYMOUS or service.is_job):
            continue
        wanted = volume.storage_class if volume else ""
        path = mount_path(service.name, index)
        if wanted and wanted not in classes.names:
            message = f"needs storage class '{wanted}', which the cluster does not have"
            checker.add("no-storage-class", path, message, listed)
        elif not wanted and not classes.default:
            message = "needs a default storage class, which the cluster does not have"
            checker.add("no-storage-class", path, message, f"set 'class' of the volume; {listed}")


def _check_ingress(checker: Checker, plan: Plan, wanted: str, classes: Classes) -> None:
    """Check that an ingress controller serves the endpoints."""
    if not plan.endpoints or wanted in classes.names or (not wanted and classes.default):
        return
    has = f"ingress class '{wanted}'" if wanted else "default ingress class"
    listed = (
        f"choose one with --ingress-class: {join_some(classes.names, _MAX_LISTED)}"
        if classes.names
        else "install a controller"
    )
    for name in dict.fromkeys(service for endpoint in plan.endpoints for service, _ in endpoint.routes):
        message = f"has a URL that no one answers: the cluster has no {has}"
        checker.add("no-ingress-class", ("services", name), message, listed, at_key=True)


def _check_metrics(checker: Checker) -> None:
    for service in checker.project.services.values():
        if service.extensions.autoscale is not None:
            message = "needs a metrics server, which the cluster does not have: the number of pods stays the smallest"
            path = ("services", service.name, "x-autoscale")
            checker.add("no-metrics-server", path, message, "install metrics-server", at_key=True)


def _check_load_balancers(checker: Checker) -> None:
    for service in checker.project.services.values():
        expose = service.extensions.expose
        if expose is not None and expose.type is ExposeType.LOAD_BALANCER:
            message = "may get no address: no cloud or program of this cluster is known to give any to LoadBalancers"
            path = ("services", service.name, "x-expose")
            checker.add("no-load-balancer", path, message, "use type: NodePort, which needs none", at_key=True)


# pods -----------------------------------------------------------------------------------------------------------------


def _check_pod_security(checker: Checker, namespace: str, level: str) -> None:
    for service in checker.project.services.values():
        refused = sorted(name for name in service.cap_add if name.removeprefix("CAP_").upper() not in _BASELINE.split())
        if level == "restricted":
            message = f"is refused by namespace '{namespace}', whose Pod Security level is 'restricted'"
            hint = "deploy with --pod-security restricted"
            checker.add("pod-security-level", ("services", service.name), message, hint, at_key=True)
        elif level == "baseline" and refused:
            message = f"adds {refused[0]}, which namespace '{namespace}' refuses: its Pod Security level is 'baseline'"
            checker.add("pod-security-level", ("services", service.name, "cap_add"), message, "leave it out")


def _check_architectures(checker: Checker, images: ImageAnswers, nodes: frozenset[str]) -> None:
    for service in checker.project.services.values():
        found = images.get(service.image) if service.is_pulled else None
        if isinstance(found, ImageFacts) and found.architectures and not found.architectures & nodes:
            message = f"names an image for {join_some(sorted(found.architectures), _MAX_LISTED)}, and the nodes are"
            message += f" {join_some(sorted(nodes), _MAX_LISTED)}"
            checker.add("wrong-architecture", ("services", service.name, "image"), message, "use another image")
