"""Rules that need the whole project: references, cycles, name conflicts, and limits of each kind of workload.

Owns these rules; each adds its findings to the report.
Must not read nodes: it reads the model, and gets places from the origins.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, islice, pairwise

from composeplat.compose.check_extensions import check_extensions
from composeplat.compose.check_files import check_files
from composeplat.compose.check_modes import check_mode, why_never_complete
from composeplat.compose.check_networks import check_networks
from composeplat.compose.check_providers import check_providers
from composeplat.compose.check_watch import check_watch
from composeplat.compose.cycles import find_cycles
from composeplat.compose.model import DEFAULT_NETWORKS, HOST, NAMED, DependencyCondition, Project, Service
from composeplat.compose.origins import Checker, Origins, annotation_path, mount_path, request_path
from composeplat.diagnostics import PathKey, Report, join_some
from composeplat.names import (
    MAX_LABEL_LENGTH,
    MAX_NAME_LENGTHS,
    UPDATE_LABEL,
    clean,
    is_dns_label,
    is_service_name,
    label_hint,
    shorten,
)

_POLICIES = {
    "Deployment": ("rolling", "recreate"),
    "StatefulSet": ("rolling", "on-delete"),
    "DaemonSet": ("rolling", "on-delete"),
    "Job": (),
    "CronJob": (),
}


_MAX_NETWORK_PAIRS = 10_000
_MAX_LISTED_SERVICES = 8
#: More are reported when some of these are gone.
_MAX_CYCLES = 1000
_MAX_SHOWN_CYCLE = 12
#: So many names of a longer one are shown at its start and at its end.
_CYCLE_START, _CYCLE_END = 8, 3


def check_project(project: Project, origins: Origins, report: Report) -> None:
    checker = Checker(project, origins, report)
    _check_names(checker, "services", {**project.services, **project.providers})
    _check_names(checker, "volumes", project.volumes)
    for service in project.services.values():
        _check_dependencies(checker, service)
        _check_mounts(checker, service)
        _check_update_policy(checker, service)
        _check_resources(checker, service)
        _check_command(checker, service)
        _check_length(checker, service)
        check_mode(checker, service)
        check_watch(checker, service)
    for provider in project.providers.values():
        for name, is_required in provider.depends_on.items():
            _check_exists(checker, provider.name, name, is_required=is_required)
    _check_cycles(checker)
    if project.networks:
        check_networks(checker)
    else:
        _check_isolation(checker)
    _check_unused_volumes(checker)
    check_files(checker)
    check_providers(checker)
    check_extensions(checker)


def _check_names(checker: Checker, kind: str, names: Mapping[str, object]) -> None:
    originals: dict[str, str] = {}
    is_valid = is_service_name if kind == "services" else is_dns_label
    first = "a letter" if kind == "services" else "a letter or digit"
    for name in names:
        cleaned = clean(name)
        path = (kind, name)
        if not is_valid(cleaned):
            hint = label_hint(name, first)
            checker.add("invalid-name", path, "can't be converted to a Kubernetes name", hint, at_key=True)
            continue
        if cleaned != name:
            role = "its DNS name" if kind == "services" else "its name in the cluster"
            checker.add(
                "name-normalized",
                path,
                f"becomes '{cleaned}', which is {role}",
                f"name it '{cleaned}'",
                at_key=True,
            )
        if cleaned in originals:
            checker.add(
                "name-conflict",
                path,
                f"and {kind}.{originals[cleaned]} would both be named '{cleaned}'",
                "rename one of them",
                at_key=True,
            )
        originals.setdefault(cleaned, name)


def _check_length(checker: Checker, service: Service) -> None:
    cleaned = clean(service.name)
    kind = service.workload_kind
    longest = MAX_NAME_LENGTHS.get(kind, MAX_LABEL_LENGTH)
    if longest < len(cleaned) <= MAX_LABEL_LENGTH:
        shorter = shorten(cleaned, longest)
        hint = f"use at most {longest} characters, such as '{shorter}'"
        does = "runs on a schedule" if kind == "CronJob" else "keeps data"
        checker.add(
            "invalid-name",
            ("services", service.name),
            f"is too long a name for a service that {does}",
            hint,
            at_key=True,
        )


# dependencies ---------------------------------------------------------------------------------------------------------


def _check_dependencies(checker: Checker, service: Service) -> None:
    for dependency in service.depends_on:
        path = ("services", service.name, "depends_on", dependency.service)
        found = checker.project.services.get(dependency.service)
        if found is not None:
            shown = checker.shown(dependency.service, path)
            _check_condition(checker, dependency.condition, found, path, shown)
        else:
            _check_exists(checker, service.name, dependency.service, is_required=dependency.required)


def _check_exists(checker: Checker, service: str, name: str, *, is_required: bool) -> None:
    known = {**checker.project.services, **checker.project.providers}
    path = ("services", service, "depends_on", name)
    shown = checker.shown(name, path)
    message = f"names {shown}, which is not a service of the definition"
    if name in known:
        return
    if is_required:
        if not report_inactive(checker, path, name, shown):
            checker.add("undefined-service", path, message, _near(checker, name, known), at_key=True)
    elif name not in checker.project.inactive:
        hint = f"correct the name, or remove it: Docker Compose rejects it; {_near(checker, name, known)}"
        checker.add("optional-service", path, f"{message}: nothing waits for it", hint, at_key=True)


def report_inactive(checker: Checker, path: PathKey, name: str, shown: str) -> bool:
    """Report that a service is needed whose profile is off; return whether it is one."""
    profiles = checker.project.inactive.get(name)
    if profiles is None:
        return False
    optional = ", or write required: false" if "depends_on" in checker.origins.written_at(path) else ""
    hint = f"turn it on with --profile {profiles[0]} or COMPOSE_PROFILES={profiles[0]}{optional}"
    checker.add("inactive-service", path, f"names {shown}, whose profile is off: {', '.join(profiles)}", hint)
    return True


def _missing_for_health(service: Service) -> str:
    """Return what a service lacks that would decide whether it is healthy; empty if it has a part of it."""
    check = service.health_check
    if (check and check.readiness) or any(port.protocol == "tcp" for port in service.ports):
        return ""
    return f"no {'readiness probe' if check else 'health check'} and no {'TCP port' if service.ports else 'port'}"


def _check_condition(
    checker: Checker, condition: DependencyCondition, dependency: Service, path: PathKey, shown: str
) -> None:
    """Check that a dependency can meet the condition, as far as its keys could be read."""
    if condition is DependencyCondition.HEALTHY and (missing := _missing_for_health(dependency)):
        message = f"waits for {shown} to be healthy, which has {missing}: it counts as healthy once it runs"
        if not _is_unread(checker, dependency, "ports", "expose", "healthcheck"):
            checker.add("no-effect", path, message, f"give {shown} a health check")
    elif (
        condition is DependencyCondition.COMPLETED
        and (reason := why_never_complete(dependency))
        and not _is_unread(checker, dependency, "restart", "deploy")
    ):
        state, fix = reason
        checker.add(
            "not-a-job", path, f"waits for {shown} to complete, but that service {state}", f"give {shown} {fix}"
        )


def _is_unread(checker: Checker, service: Service, *keys: str) -> bool:
    """Whether a service, or one of its keys, could not be read; references to it are then not reported."""
    return service == Service(name=service.name) or checker.is_unread(service.name, *keys)


def _near(checker: Checker, name: str, services: Mapping[str, object]) -> str:
    listed = f"services are: {join_some(services, _MAX_LISTED_SERVICES)}"
    return " ".join(filter(None, (checker.report.near(name, services), listed)))


def _check_cycles(checker: Checker) -> None:
    """Report each cycle once, at the dependency that closes it; if all depend on all, their number is a square."""
    needed = {name: _paths_to_pods(checker, name) for name in checker.project.services}
    for cycle in islice(find_cycles(needed), _MAX_CYCLES):
        _report_cycle(checker, [needed[pod][other] for pod, other in pairwise(cycle)])


def _paths_to_pods(checker: Checker, pod: str) -> dict[str, PathKey]:
    """Return the pods that start before one, each with the path of the first dependency on it."""
    services = checker.project.services
    found: dict[str, PathKey] = {}
    for dependency in services[pod].depends_on:
        if dependency.service in services:
            path = ("services", pod, "depends_on", dependency.service)
            found.setdefault(services[dependency.service].pod_owner, path)
    return found


def _report_cycle(checker: Checker, paths: list[PathKey]) -> None:
    """Report a cycle of pods by the services that have the dependencies: several may be in one pod."""

    def having(index: int) -> str:
        return str(checker.origins.written_at(paths[index % len(paths)])[1])

    def shown(index: int) -> str:
        named = str(paths[index - 1][-1]) if index else having(index)
        return named if named == having(index) else f"{named} (in one pod with {having(index)})"

    count = len(paths) + 1
    if count <= _MAX_SHOWN_CYCLE:
        cycle = [shown(index) for index in range(count)]
    else:
        cycle = [*map(shown, range(_CYCLE_START)), "…", *map(shown, range(count - _CYCLE_END, count))]
    message = f"closes a cycle: {' -> '.join(cycle)}"
    checker.add("dependency-cycle", paths[-1], message, "remove one of these dependencies")


def _check_isolation(checker: Checker) -> None:
    """Report once, for one pair of services, that networks do not isolate services here as they do in Compose."""
    on = {service.name: service.networks for service in checker.project.services.values() if service.networks}
    groups = {networks: name for name, networks in reversed(on.items())}
    pairs = islice(combinations(reversed(groups), 2), _MAX_NETWORK_PAIRS)
    for first, second in islice(((groups[a], groups[b]) for a, b in pairs if not a & b), 1):
        # A service without networks is on the default network, and has no place in the file.
        named, other = (first, second) if on[first] != DEFAULT_NETWORKS else (second, first)
        message = f"keeps it apart from '{other}' in Compose; here every service reaches every other"
        hint = "a NetworkPolicy of your own keeps them apart"
        checker.add("no-network-isolation", ("services", named, "networks"), message, hint, at_key=True)


# mounts ---------------------------------------------------------------------------------------------------------------


def check_omitted_mounts(checker: Checker, service: Service) -> None:
    """Report the host volumes that the container of a built service does not have."""
    if service.build is None:
        return
    for index, mount in enumerate(service.mounts):
        if mount.kind == HOST:
            path = mount_path(service.name, index)
            message = "is a host volume of a service that is built: it is for development, and not deployed"
            checker.add("not-deployed", path, message, "copy it into the image: COPY in the Dockerfile")


def _check_mounts(checker: Checker, service: Service) -> None:
    check_omitted_mounts(checker, service)
    for index, mount in enumerate(service.mounts):
        path = mount_path(service.name, index)
        if mount.kind == NAMED and checker.is_undefined("volumes", mount.source, checker.project.volumes):
            shown = checker.origins.shown(*path, "source")
            hint = "declare the volume under the top-level 'volumes', or write './…' for a host path"
            if len(mount.source) == 1:
                hint += "; a drive of Windows is on no other machine"
            checker.add("undefined-volume", path, f"mounts a volume that 'volumes' does not declare: {shown}", hint)


def _check_unused_volumes(checker: Checker) -> None:
    mounted = checker.project.mounted_volumes
    for name in checker.project.volumes:
        if name not in mounted:
            checker.add("unused-volume", ("volumes", name), "is mounted by no service, and not created", at_key=True)


# workloads ------------------------------------------------------------------------------------------------------------


def _check_update_policy(checker: Checker, service: Service) -> None:
    if not service.update_policy and service.labels.get(UPDATE_LABEL) != "":
        return
    kind = service.workload_kind
    allowed = _POLICIES[kind]
    if service.update_policy in allowed or _is_kind_unread(checker, service):
        return
    path = annotation_path(("services", service.name), UPDATE_LABEL)
    shown = checker.origins.shown(*path)
    if allowed:
        message = f"must be '{allowed[0]}' or '{allowed[1]}' on a {kind}, not {shown}"
        checker.add("unsupported-update-policy", path, message, _why_kind(service))
    else:
        message = f"is {shown}, which a {kind} does not support: it is replaced as a whole"
        checker.add("unsupported-update-policy", path, message, "remove the label, or set restart: always")


def _is_kind_unread(checker: Checker, service: Service) -> bool:
    """Whether a key that decides the kind could not be read; a volume makes a StatefulSet of a Deployment alone."""
    volumes = ("volumes",) if service.workload_kind == "Deployment" else ()
    in_deploy = (("services", service.name, "deploy", key) for key in ("mode", "restart_policy"))
    return checker.is_unread(service.name, "restart", "x-schedule", *volumes) or any(
        checker.report.has_error(*path) for path in in_deploy
    )


def _why_kind(service: Service) -> str:
    """Explain the kind of a service's workload, if its update policy belongs to another kind."""
    if service.is_global:
        return "a service with mode: global is a DaemonSet; 'on-delete' waits for the pods to be deleted"
    if service.keeps_data and service.update_policy == "recreate":
        return (
            "a service with a named or anonymous volume is a StatefulSet; 'on-delete' waits for the pod to be deleted"
        )
    if not service.keeps_data and service.update_policy == "on-delete":
        return "a service without a named or anonymous volume is a Deployment; 'recreate' ends its pods first"
    return ""


def _check_resources(checker: Checker, service: Service) -> None:
    r = service.resources
    for resource, request, limit in (("cpu", r.request_cpu, r.limit_cpu), ("memory", r.request_memory, r.limit_memory)):
        if request is not None and limit is not None and request > limit:
            path = request_path(service.name, resource)
            checker.add(
                "request-above-limit", path, "is above the limit of the same resource", "lower it, or raise the limit"
            )


def _check_command(checker: Checker, service: Service) -> None:
    path = ("services", service.name)
    if service.command == () and not service.entrypoint:
        checker.add(
            "no-effect",
            (*path, "command"),
            "is empty; Kubernetes can't clear an image's command, so the image's command runs",
        )
    if service.entrypoint == () and not service.command:
        message = (
            "is empty without a command; Kubernetes can't clear an image's entrypoint, so the image's entrypoint runs"
        )
        checker.add("no-effect", (*path, "entrypoint"), message, "give a command")
