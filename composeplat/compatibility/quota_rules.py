"""Rules about the quotas and limit ranges of a namespace: the needs of an environment, and what is left of a quota.

Owns how much an environment needs. What it uses already is not counted against it: a deploy replaces that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from composeplat.cluster.quotas import COMPUTE, Amounts, LimitRange, Quota
from composeplat.compose.model import ANONYMOUS, Project, Service
from composeplat.compose.origins import Checker
from composeplat.compose.values import show_cpus, show_size

_GIB = 1024**3
_SECTIONS = {"requests": "request", "limits": "limit"}
_RESOURCES = ("cpu", "memory")


def check_quota(checker: Checker, quota: Quota, own: Amounts, ranges: tuple[LimitRange, ...] | None) -> None:
    """Check what is wanted in all against what is left of a quota, with what the environment itself uses."""
    for resource, hard in quota.hard.items():
        wanted = _wanted(resource, ranges or ())
        if wanted is None:
            continue
        total, others = sum(wanted(checker.project)), max(0, quota.used.get(resource, 0) - own.get(resource, 0))
        if total > hard - others:
            by_others = f", and others use {_shown(resource, others)} of it" if others else ""
            message = f"need {_shown(resource, total)} of {resource}; quota '{quota.name}' has {_shown(resource, hard)}"
            checker.add("over-quota", ("services",), message + by_others, "use less, or have the quota raised")
        if resource in COMPUTE and ranges is not None:
            _check_is_set(checker, quota.name, resource, ranges)


def _check_is_set(checker: Checker, quota: str, resource: str, ranges: tuple[LimitRange, ...]) -> None:
    """A quota for CPUs or memory refuses pods that set none and get none from a limit range."""
    for service in checker.project.services.values():
        if _amount(service, *COMPUTE[resource], ranges) is None:
            message = f"sets no {resource}, which quota '{quota}' requires of each pod"
            hint = "set it under 'resources'"
            checker.add("over-quota", ("services", service.name), message, hint, at_key=True)


def check_limit_ranges(checker: Checker, ranges: tuple[LimitRange, ...]) -> None:
    for service in checker.project.services.values():
        for found in ranges:
            _check_bounds(checker, service, found, ranges)
        defaults = {
            resource: value
            for resource in _RESOURCES
            if _own(service, "limits", resource) is None
            and (value := _amount(service, "limits", resource, ranges)) is not None
        }
        if defaults:
            listed = ", ".join(f"{resource} {_shown(resource, value)}" for resource, value in defaults.items())
            message = f"sets no limit, and gets one from a limit range of the namespace: {listed}"
            hint = "set limits under 'resources' if it needs more"
            checker.add("default-limit", ("services", service.name), message, hint, at_key=True)


def _check_bounds(checker: Checker, service: Service, found: LimitRange, ranges: tuple[LimitRange, ...]) -> None:
    for resource in _RESOURCES:
        for section, noun in _SECTIONS.items():
            is_limit_too = section == "requests" and _own(service, section, resource) is None
            amount = None if is_limit_too else _amount(service, section, resource, ranges)
            least, most = found.minimum.get(resource), found.maximum.get(resource)
            if amount is None or (least or 0) <= amount <= (amount if most is None else most):
                continue
            is_low = least is not None and amount < least
            bound = f"at least {_shown(resource, least or 0)}" if is_low else f"at most {_shown(resource, most or 0)}"
            message = f"has a {resource} {noun} of {_shown(resource, amount)}; limit range '{found.name}' allows"
            hint = "change it under 'resources'"
            checker.add("limit-range", ("services", service.name), f"{message} {bound}", hint, at_key=True)


# needs ----------------------------------------------------------------------------------------------------------------


def _own(service: Service, section: str, resource: str) -> int | None:
    amount: int | None = getattr(service.resources, f"{_SECTIONS[section]}_{resource}")
    return amount


def _amount(service: Service, section: str, resource: str, ranges: tuple[LimitRange, ...]) -> int | None:
    """Return a request or limit with the defaults of limit ranges; a request that is not set is the limit, if set."""
    limit = _own(service, "limits", resource)
    if section == "limits":
        return limit if limit is not None else _default([found.limit for found in ranges], resource)
    own = _own(service, "requests", resource)
    if own is not None or limit is not None:
        return limit if own is None else own
    return _default([found.request for found in ranges] + [found.limit for found in ranges], resource)


def _default(defaults: Iterable[Amounts], resource: str) -> int | None:
    return next((amounts[resource] for amounts in defaults if resource in amounts), None)


def _wanted(resource: str, ranges: tuple[LimitRange, ...]) -> Callable[[Project], Iterable[int]] | None:
    if resource not in COMPUTE:
        return _COUNTED.get(resource)
    return lambda project: (
        (_amount(service, *COMPUTE[resource], ranges) or 0) * _pods_of(project.services[service.pod_owner])
        for service in project.services.values()
    )


def _pods_of(service: Service) -> int:
    """Return the least number of pods; those of a Job all run at once."""
    autoscale = service.extensions.autoscale
    return service.replicas if autoscale is None else autoscale.lowest


def _pods(project: Project) -> Iterator[int]:
    yield from (_pods_of(service) for service in project.services.values() if not service.runs_elsewhere)


def _names(project: Project) -> Iterator[int]:
    """The numbers of Services: of names, and of what is exposed."""
    for service in project.services.values():
        yield 1 + len(service.networking.aliases) + (service.extensions.expose is not None)


def _claims(project: Project) -> Iterator[int]:
    """The sizes of all claims."""
    yield from (project.volumes[name].size for name in project.mounted_volumes if name in project.volumes)
    for service in project.services.values():
        if not service.is_job:
            yield from (_GIB * service.replicas for mount in service.mounts if mount.kind == ANONYMOUS)


_COUNTED: dict[str, Callable[[Project], Iterable[int]]] = {
    "pods": _pods,
    "services": _names,
    "persistentvolumeclaims": lambda project: (1 for _ in _claims(project)),
    "requests.storage": _claims,
}


def _shown(resource: str, amount: int) -> str:
    if resource.endswith("cpu"):
        return show_cpus(amount)
    return show_size(amount) if resource.endswith(("memory", "storage")) else str(amount)
