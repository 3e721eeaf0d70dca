"""Rules for ``deploy.mode``, ``x-schedule`` and the order of updates: the limits of each kind of workload.

Owns these rules, which only full mode has something for.
Must not read nodes, as :mod:`composeplat.compose.check`, from which it is apart for its size.
"""

from __future__ import annotations

from composeplat.compose.model import ALWAYS, ANONYMOUS, NAMED, Service
from composeplat.compose.origins import Checker, mount_path
from composeplat.compose.rollout_model import Mode

_COUNTS = (("scale",), ("deploy", "replicas"))
_SPREADING = (("deploy", "placement", "preferences"), ("deploy", "placement", "max_replicas_per_node"))


def why_never_complete(service: Service) -> tuple[str, str] | None:
    """Return why a deploy can't wait for the end of a service, and what it needs for that; None if it can."""
    if service.scheduling.schedule:
        return (
            ("runs on a schedule", "no schedule") if service.scheduling.schedule.cron else ("is a job", "no triggers")
        )
    if service.is_global:
        return "runs always, on each node", "mode: replicated-job"
    return ("is always restarted", "restart: 'no' or on-failure") if service.restart == ALWAYS else None


def _is_of_jobs(checker: Checker, name: str) -> bool:
    return checker.origins.written_at(("services", name))[0] == "jobs"


def _check_dependencies(checker: Checker, service: Service) -> None:
    """Report a service that waits for a job; a job may wait for services."""
    for dependency in service.depends_on:
        if _is_of_jobs(checker, dependency.service) and not _is_of_jobs(checker, service.name):
            path = ("services", service.name, "depends_on", dependency.service)
            message = f"names a job, '{dependency.service}', which starts by its triggers alone"
            checker.add("conflicting-keys", path, message, "make it a service with restart: 'no', or leave it out")


def check_mode(checker: Checker, service: Service) -> None:
    _check_dependencies(checker, service)
    mode = service.scheduling.mode
    if service.scheduling.schedule and mode.is_global:
        path = ("services", service.name, "x-schedule")
        message = f"can't be there beside deploy.mode: {mode}"
        checker.add("conflicting-keys", path, message, "use mode: replicated-job", at_key=True)
        return
    _check_order(checker, service)
    if mode is Mode.GLOBAL:
        _check_volumes(checker, service)
        _report_without_effect(checker, service, (*_COUNTS, *_SPREADING), "a pod runs on each node")
    elif mode is Mode.GLOBAL_JOB:
        _check_global_job(checker, service)


def _check_order(checker: Checker, service: Service) -> None:
    reason = _why_not_first(service) if service.scheduling.update.start_first and not service.runs_elsewhere else None
    if reason is not None:
        path = ("services", service.name, "deploy", "update_config", "order")
        why, fix = reason
        checker.add("no-effect", path, f"has no effect {why}", fix)


def _why_not_first(service: Service) -> tuple[str, str] | None:
    """Return why a new pod can't start before the old one ends, and the fix; None if it can."""
    kind = service.workload_kind
    if service.is_job:
        return f"on a {kind}: it is replaced as a whole", "leave it out"
    if kind == "StatefulSet":
        return "on a StatefulSet: the new pod has the name and the volumes of the old one", "write stop-first"
    if service.update_policy in ("recreate", "on-delete"):
        return "with an update policy that ends the old pods first", "leave one of them out"
    if service.has_port_of_node:
        return "with network_mode: host: two pods of a node can't have the same ports", "write stop-first"
    return None


def _check_volumes(checker: Checker, service: Service) -> None:
    for index, mount in enumerate(service.mounts):
        if mount.kind in (NAMED, ANONYMOUS):
            message = "keeps data, which a service with mode: global can't: its pods have no claims of their own"
            hint = "use a tmpfs, or mode: replicated"
            checker.add("conflicting-keys", mount_path(service.name, index), message, hint)


def _report_without_effect(checker: Checker, service: Service, keys: tuple[tuple[str, ...], ...], why: str) -> None:
    for key in keys:
        path = ("services", service.name, *key)
        if checker.origins.has(*path):
            checker.add("no-effect", path, f"has no effect with mode: {service.scheduling.mode}: {why}", "leave it out")


def _check_global_job(checker: Checker, service: Service) -> None:
    path = ("services", service.name, "deploy", "mode")
    message = "makes a Job with one pod, on one node: a definition does not know the number of nodes"
    hint = "use replicated-job, the number of nodes as deploy.replicas, and placement.max_replicas_per_node: 1"
    checker.add("no-effect", path, message, hint)
    _report_without_effect(checker, service, _COUNTS, "it has one pod")
