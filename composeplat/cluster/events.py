"""The events of an environment, oldest first.

Owns which events belong to an environment: their objects may be gone, so that only their names are left.
Must not know the API: events come in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from composeplat.cluster.snapshot import Object, event_time
from composeplat.cluster.status import ServiceQuery
from composeplat.system.records import record

_HASH, _END = "[a-z0-9]{4,10}", "[a-z0-9]{5}"
#: A run of a CronJob: the minute that it was due, or one that `platform run` started.
_RUN = "(?:[0-9]+|run-[0-9a-f]{6})"
#: Kind of a workload -> kinds of what it owns -> what follows its name there.
_OWNED: Mapping[str, Mapping[str, str]] = {
    "Deployment": {"Deployment": "", "ReplicaSet": f"-{_HASH}", "Pod": f"-{_HASH}-{_END}"},
    "StatefulSet": {"StatefulSet": "", "Pod": "-[0-9]+"},
    "DaemonSet": {"DaemonSet": "", "Pod": f"-{_END}"},
    "CronJob": {"CronJob": "", "Job": f"-{_RUN}", "Pod": f"-{_RUN}-{_END}"},
    "Job": {"Job": "", "Pod": f"-{_END}"},
}


@record(kw_only=True)
class EnvironmentEvent:
    time: str
    """When it happened last."""
    count: int
    warning: bool
    service: str
    object: str
    """``Pod/web-7d4b9c6f-x7k2p``."""
    reason: str
    message: str


def read_events(
    events: Iterable[Object], services: Iterable[ServiceQuery], others: Mapping[str, str]
) -> list[EnvironmentEvent]:
    """The events of these services, oldest first; ``others`` has further objects and whose they are.

    The services have to be all of the environment: the name of a pod can be that of several.
    """
    # A name may begin or end with that of another service: the longest one counts.
    longest_first = sorted(services, key=lambda service: -len(service.cluster_name))
    patterns = [(service.name, _pattern(service)) for service in longest_first]
    found = [
        _environment_event(event, owner)
        for event in events
        if (owner := _owner(_about(event), patterns, others)) is not None
    ]
    return sorted(found, key=lambda event: event.time)


def _pattern(service: ServiceQuery) -> re.Pattern[str]:
    name = re.escape(service.cluster_name)
    kinds = [*_OWNED.get(service.kind, {}).items(), ("Service", ""), ("Endpoints", "")]
    forms = [f"{kind}/{name}{rest}" for kind, rest in kinds]
    if service.kind == "StatefulSet":
        forms.append(f"PersistentVolumeClaim/.+-{name}-[0-9]+")
    if service.dev_workload:
        forms += [f"{kind}/{re.escape(service.dev_workload)}{rest}" for kind, rest in _OWNED["Deployment"].items()]
    return re.compile("|".join(forms))


def _owner(about: str, patterns: list[tuple[str, re.Pattern[str]]], others: Mapping[str, str]) -> str | None:
    for service, pattern in patterns:
        if pattern.fullmatch(about):
            return service
    return others.get(about)


def _about(event: Object) -> str:
    involved = event.get("involvedObject") or {}
    return f"{involved.get('kind', '')}/{involved.get('name', '')}"


def _environment_event(event: Object, service: str) -> EnvironmentEvent:
    series = event.get("series") or {}
    return EnvironmentEvent(
        time=event_time(event),
        count=int(series.get("count") or event.get("count") or 1),
        warning=event.get("type") == "Warning",
        service=service,
        object=_about(event),
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or "").strip(),
    )
