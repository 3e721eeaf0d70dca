"""Rules for ``deploy.mode`` and ``x-schedule``: what a pod on each node can't have, and runs that nobody waits for.

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
    if mode is Mode.GLOBAL:
        _check_volumes(checker, service)
        _report_without_effect(checker, service, (*_COUNTS, *_SPREADING), "a pod runs on each node")
        _check_order(checker, service)
    elif mode is Mode.GLOBAL_JOB:
        _check_global_job(checker, service)


def _check_order(checker: Checker, service: Service) -> None:
    if service.has_port_of_node and service.scheduling.update.start_first:
        path = ("services", service.name, "deploy", "update_config", "order")
        message = "has no effect with network_mode: host: two pods of a node can't have the same ports"
        checker.add("no-effect", path, message, "write stop-first")


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
