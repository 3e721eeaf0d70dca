"""Rules about a cluster: what an environment needs, compared with what the cluster offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from composeplat.cluster.capabilities import Capabilities, Classes, Quota
from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.compose.model import ANONYMOUS, NAMED, Project, Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker, mount_path
from composeplat.compose.values import BadValue, parse_cpus, parse_size, show_size
from composeplat.plan import Plan
from composeplat.registry.image_config import ImageFacts

_GIB = 1024**3
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
    for quota in offered.quotas or ():
        _check_quota(checker, quota, needs_limits=offered.has_limit_range is False)


# storage and routes ---------------------------------------------------------------------------------------------------


def _check_storage(checker: Checker, service: Service, classes: Classes) -> None:
    """Check that the storage class of each volume exists."""
    listed = f"classes are: {_listed(classes.names)}" if classes.names else "the cluster has no storage class"
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
    listed = f"choose one with --ingress-class: {_listed(classes.names)}" if classes.names else "install a controller"
    for name in dict.fromkeys(service for endpoint in plan.endpoints for service, _ in endpoint.routes):
        message = f"has a URL that no one answers: the cluster has no {has}"
        checker.add("no-ingress-class", ("services", name), message, listed, at_key=True)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_MAX_LISTED]) + (" …" if len(names) > _MAX_LISTED else "")


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
        found = images.get(service.image) if service.build is None else None
        if isinstance(found, ImageFacts) and found.architectures and not found.architectures & nodes:
            message = f"names an image for {_listed(tuple(sorted(found.architectures)))}, and the nodes are"
            message += f" {_listed(tuple(sorted(nodes)))}"
            checker.add("wrong-architecture", ("services", service.name, "image"), message, "use another image")


# quotas ---------------------------------------------------------------------------------------------------------------


def _check_quota(checker: Checker, quota: Quota, *, needs_limits: bool) -> None:
    """Check what is wanted in all against a quota; what others use of it is not known for the next deploy."""
    for resource, hard in quota.hard.items():
        wanted = _WANTED.get(resource)
        limit = _parse(resource, hard)
        if wanted is not None and limit is not None and (total := sum(wanted(checker.project))) > limit:
            message = f"need {_shown(resource, total)} of {resource}; quota '{quota.name}' has {hard}"
            checker.add("over-quota", ("services",), message, "use less, or have the quota raised")
        if needs_limits and resource in _FIELDS:
            _check_limits(checker, quota.name, resource)


def _check_limits(checker: Checker, quota: str, resource: str) -> None:
    """Without a limit range, a quota for CPUs or memory refuses pods that set none."""
    for service in checker.project.services.values():
        if _amount(service, _FIELDS[resource]) is None:
            message = f"sets no {resource}, which quota '{quota}' requires of each pod"
            hint = "set it under 'resources'"
            checker.add("over-quota", ("services", service.name), message, hint, at_key=True)


_FIELDS = {
    "requests.cpu": "request_cpu",
    "requests.memory": "request_memory",
    "limits.cpu": "limit_cpu",
    "limits.memory": "limit_memory",
    "cpu": "request_cpu",
    "memory": "request_memory",
}


def _amount(service: Service, field: str) -> int | None:
    """Return a request or limit; a request that is not set is the limit."""
    own: int | None = getattr(service.resources, field)
    limit: int | None = getattr(service.resources, field.replace("request", "limit"))
    return limit if own is None else own


def _sum_of(name: str) -> Callable[[Project], Iterable[int]]:
    return lambda project: ((_amount(s, name) or 0) * s.replicas for s in project.services.values())


def _pods(project: Project) -> Iterator[int]:
    return (1 if service.is_job else service.replicas for service in project.services.values())


def _claims(project: Project) -> Iterator[int]:
    """The sizes of all claims."""
    yield from (project.volumes[name].size for name in project.mounted_volumes if name in project.volumes)
    for service in project.services.values():
        if not service.is_job:
            yield from (_GIB * service.replicas for mount in service.mounts if mount.kind == ANONYMOUS)


_WANTED: dict[str, Callable[[Project], Iterable[int]]] = {
    **{resource: _sum_of(name) for resource, name in _FIELDS.items()},
    "pods": _pods,
    "services": lambda project: (1 for _ in project.services),
    "persistentvolumeclaims": lambda project: (1 for _ in _claims(project)),
    "requests.storage": _claims,
}


def _parse(resource: str, text: str) -> int | None:
    try:
        return parse_cpus(text) if resource.endswith("cpu") else parse_size(text, decimal=True)
    except BadValue:
        return None


def _shown(resource: str, amount: int) -> str:
    if resource.endswith("cpu"):
        return f"{amount}m"
    return show_size(amount) if resource.endswith(("memory", "storage")) else str(amount)
