"""Services in one pod: whose pod a service joins by ``network_mode``, ``pid`` or ``ipc``, and what follows for each.

Owns the resolution of chains to the one service whose pod it is, and what its members take from it: replicas, restart
policy and networks are the pod's, and a pod starts after what any of its members depends on.
Must not know Kubernetes: whether containers fit into one pod, :mod:`composeplat.plan.shared_pods` decides.
It comes before the other rules, as they are about the services that result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from composeplat.compose.check import report_inactive
from composeplat.compose.model import NAMED, Dependency, DependencyCondition, Project, Service
from composeplat.compose.origins import Checker, annotation_path
from composeplat.compose.pod_model import SharedPod
from composeplat.diagnostics import PathKey, join_some
from composeplat.names import UPDATE_LABEL

_MAX_LISTED = 8
_NETWORK, _PID = "network_mode", "pid"
#: What a pod has once: it is that of the service that others join.
_OF_THE_POD = (
    ("restart",),
    ("deploy", "restart_policy"),
    ("scale",),
    ("deploy", "replicas"),
    ("deploy", "update_config"),
    ("deploy", "mode"),
    ("x-autoscale",),
    ("networks",),
    ("shm_size",),
    (_NETWORK,),
)


def with_shared_pods(checker: Checker) -> Project:
    """Return the project whose services know their pods; what can't be in one pod is reported and stays alone."""
    project = checker.project
    owners = dict(_owners(checker))
    if not owners:
        return project
    members: dict[str, list[str]] = {}
    for name, owner in owners.items():
        members.setdefault(owner, []).append(name)
    services = dict(project.services)
    for owner, names in members.items():
        services.update(_pod(checker, services[owner], [services[name] for name in names]))
    return replace(project, services=services)


def _owners(checker: Checker) -> Iterator[tuple[str, str]]:
    """Yield each service that joins another with the one whose pod it is."""
    joined = {name: service.pod.joined for name, service in checker.project.services.items() if service.pod.joined}
    for name, targets in joined.items():
        if _reports_schedule(checker, name, targets):
            continue
        found = {key: _owner(checker, (name, key), target, joined) for key, target in targets.items()}
        owners = {owner for owner in found.values() if owner}
        if len(owners) > 1:
            first, second = list(found)[:2]
            message = f"is the pod of '{found[second]}', but {first} that of '{found[first]}': a pod is of one service"
            checker.add("pod-conflict", ("services", name, second), message, "join one service only")
        elif owners and all(found.values()):
            yield name, owners.pop()


def _reports_schedule(checker: Checker, name: str, targets: Iterable[str]) -> bool:
    """Report a job that joins another: in a pod that runs always, it would start with each deploy, again and again."""
    if checker.project.services[name].scheduling.schedule is None:
        return False
    message = "joins a pod that runs always, and a job with a schedule or triggers has pods that end"
    checker.add("pod-conflict", ("services", name, next(iter(targets))), message, "leave it out, and use service names")
    return True


def _owner(checker: Checker, place: tuple[str, str], target: str, joined: Mapping[str, Mapping[str, str]]) -> str:
    """Follow a chain to the service that joins no other; empty if there is none, which is reported."""
    name, key = place
    path = ("services", name, key)
    trail = [name]
    while target in joined and target not in trail:
        trail.append(target)
        target = next(iter(joined[target].values()))
    if target in trail:
        if name == next(first for first in joined if first in trail) == target:
            cycle = " -> ".join([*trail, target])
            checker.add("pod-conflict", path, f"closes a cycle: {cycle}", "let one of them have a pod of its own")
        return ""
    found = checker.project.services.get(target)
    if found is None:
        if len(trail) == 1:
            _report_missing(checker, path, target)
        return ""
    if found.is_job and not checker.is_unread(target, "restart", "deploy"):
        message = f"joins '{target}', a job, whose pod ends with it"
        checker.add("pod-conflict", path, message, f"give '{target}' restart: always")
        return ""
    return target


def _report_missing(checker: Checker, path: PathKey, target: str) -> None:
    shown = checker.shown(target, path)
    if not report_inactive(checker, path, target, shown):
        listed = join_some(checker.project.services, _MAX_LISTED)
        is_provided = target in checker.project.providers
        message = f"names {shown}, which {'has no pod' if is_provided else 'is not a service of the definition'}"
        checker.add("undefined-service", path, message, f"services are: {listed}")


# what the members of a pod have ---------------------------------------------------------------------------------------


def _pod(checker: Checker, owner: Service, joining: list[Service]) -> Iterator[tuple[str, Service]]:
    everyone = [owner, *joining]
    names = tuple(service.name for service in everyone)
    shared = SharedPod(
        owner=owner.name,
        members=names,
        keeps_data=any(service.keeps_data for service in everyone),
        groups=frozenset(mount.gid for service in everyone for mount in service.file_mounts if mount.gid),
        volumes=frozenset(m.source for service in everyone for m in service.mounts if m.kind == NAMED),
        has_ports=any(service.ports for service in everyone),
        shares_processes=any(_PID in each.pod.joined or each.container.sees_processes for each in everyone),
    )
    for service in joining:
        _report_own(checker, service, owner)
        yield (
            service.name,
            replace(
                service,
                pod=replace(shared, joined=service.pod.joined),
                replicas=owner.replicas,
                restart=owner.restart,
                max_attempts=owner.max_attempts,
                update_policy="",
                networks=None,
                networking=replace(service.networking, mode=""),
                scheduling=replace(service.scheduling, mode=owner.scheduling.mode, schedule=None),
                extensions=replace(service.extensions, autoscale=None),
                depends_on=(),
            ),
        )
    depends_on = tuple(_dependencies(checker, owner.name, everyone, names))
    yield owner.name, replace(owner, pod=shared, depends_on=depends_on)


def _report_own(checker: Checker, service: Service, owner: Service) -> None:
    """Report what a service says about its pod, which is another's."""
    if _NETWORK not in service.pod.joined:
        key = next(iter(service.pod.joined))
        message = f"joins the pod of '{owner.name}', and so shares its network and ports too"
        checker.add("no-effect", ("services", service.name, key), message, "write network_mode as well: it says so")
    same = {
        "restart": (service.restart, service.max_attempts) == (owner.restart, owner.max_attempts),
        "restart_policy": (service.restart, service.max_attempts) == (owner.restart, owner.max_attempts),
        "scale": service.replicas == owner.replicas,
        "replicas": service.replicas == owner.replicas,
        "update_config": service.scheduling.update == owner.scheduling.update,
        "mode": service.scheduling.mode is owner.scheduling.mode,
        "x-autoscale": service.extensions.autoscale is None,
        "networks": service.networks == owner.networks,
        "shm_size": "ipc" not in service.pod.joined,
        _NETWORK: _NETWORK in service.pod.joined or service.networking.mode == owner.networking.mode,
    }
    different = [("services", service.name, *keys) for keys in _OF_THE_POD if not same[keys[-1]]]
    if service.update_policy and service.update_policy != owner.update_policy:
        different.append(annotation_path(("services", service.name), UPDATE_LABEL))
    for path in different:
        if checker.origins.has(*path):
            message = f"has no effect: the service runs in the pod of '{owner.name}', whose own counts"
            checker.add("no-effect", path, message, f"give it to '{owner.name}', or leave it out")


def _dependencies(
    checker: Checker, owner: str, everyone: Iterable[Service], names: tuple[str, ...]
) -> Iterator[Dependency]:
    """Yield what the pod waits for: the dependencies of all its services, except for each other."""
    found: dict[tuple[str, DependencyCondition], Dependency] = {}
    for service in everyone:
        for dependency in service.depends_on:
            path = ("services", service.name, "depends_on", dependency.service)
            if dependency.service in names:
                _report_inner(checker, dependency, path)
            elif service.name != owner and _is_dropped(checker.project, service, dependency, names):
                message = f"has no effect: '{dependency.service}' waits for the pod of '{owner}', which this is in"
                hint = "let the program try again until the other service answers"
                checker.add("no-effect", path, message, hint)
            else:
                own = ("services", owner, "depends_on", dependency.service)
                if not checker.origins.has(*own) and checker.origins.has(*path):
                    checker.origins.copy(own, path)
                key = (dependency.service, dependency.condition)
                found[key] = _merged(found.get(key, dependency), dependency)
    yield from found.values()


def _merged(first: Dependency, second: Dependency) -> Dependency:
    """Join the same wait of two services of a pod: it is required, and restarts the pod, if one of them says so."""
    return replace(first, required=first.required or second.required, restart=first.restart or second.restart)


def _is_dropped(project: Project, service: Service, dependency: Dependency, names: Iterable[str]) -> bool:
    """Whether a wait would be a cycle of pods alone; one of services is an error."""
    needed = dependency.service
    return _waits_for(project, needed, names) and not _waits_for(project, needed, (service.name,))


def _waits_for(project: Project, start: str, names: Iterable[str]) -> bool:
    """Whether a service waits for one of these, itself or by others."""
    pending, seen = [start], {start}
    while pending:
        service = project.services.get(pending.pop())
        following = {dependency.service for dependency in service.depends_on} - seen if service else set()
        if following & set(names):
            return True
        seen |= following
        pending += following
    return False


def _report_inner(checker: Checker, dependency: Dependency, path: PathKey) -> None:
    """Report a condition between containers of one pod, which start one after the other, without a wait."""
    if dependency.condition is not DependencyCondition.STARTED:
        message = f"waits for '{dependency.service}', which is in the same pod: both start together"
        checker.add("no-effect", path, message, "let the program try again until the other one answers")
