"""Parse ``jobs``: services that run to completion when a schedule or a person starts them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from composeplat.compose.model import NEVER, Service
from composeplat.compose.nodes import Mapping, Scalar
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.schedule import parse_expression, parse_times
from composeplat.compose.parse.service import parse_service
from composeplat.compose.rollout_model import Concurrency, Schedule

_TRIGGERS = "jobs.*.triggers"
#: The keys of services that Compose refuses in a job, and ours.
_EXCLUDED = (
    *("attach", "container_name", "deploy", "develop", "extends", "external_links", "links", "post_start", "pre_start"),
    *("pre_stop", "provider", "restart", "scale", "x-schedule"),
)


def parse_jobs(section: Section, services: Collection[str]) -> dict[str, Service]:
    whole = section.get("jobs")
    jobs: dict[str, Service] = {}
    for name, place in whole.members() if whole else ():
        if name in services:
            place.report("name-conflict", "has the name of a service", "rename one of them")
            continue
        schedule = _triggers(place)
        # A job that can't be read is kept as an empty one, as a service is.
        service = parse_service(name, _without_triggers(place)) or Service(name=name)
        jobs[name] = replace(service, restart=NEVER, scheduling=replace(service.scheduling, schedule=schedule))
    return jobs


def _without_triggers(place: Field) -> Field:
    """Return the part of a job that a service has too, and report what a job can't have."""
    if not isinstance(place.node, Mapping):
        return place
    entries = {}
    for name, (key, value) in place.node.entries.items():
        if name in _EXCLUDED:
            found = place.child(name, value, key)
            found.report("conflicting-keys", "can't be there in a job, which runs to completion", "leave it out")
        elif name != "triggers":
            entries[name] = (key, value)
    return Field(place.ctx, Mapping(place.node.span, entries, place.node.tag, place.node.size), place.path)


def _triggers(place: Field) -> Schedule:
    found = place.node.get("triggers") if isinstance(place.node, Mapping) else None
    if found is None or not isinstance(place.node, Mapping):
        if isinstance(place.node, Mapping):
            place.report("missing-key", "must have 'triggers'", "write triggers: {manual: true}, or a schedule")
        return Schedule(cron="")
    section = place.child("triggers", found, place.node.key("triggers")).section(_TRIGGERS)
    if section is None:
        return Schedule(cron="")
    if not section.fields:
        section.whole.report("missing-key", "must have 'manual' or 'schedule'", "write manual: true")
    listed, manual = section.get("schedule"), section.get("manual")
    is_manual = manual.boolean() if manual else None
    schedule = _schedules(listed) if listed else Schedule(cron="")
    if manual and is_manual and listed:
        message = "can't be true beside 'schedule', with which a job can be started by hand anyway"
        manual.report("conflicting-keys", message, "leave it out")
    if manual and is_manual is False and not listed:
        manual.report("no-effect", "makes a job that never runs: it has no schedule", "give it one, or write true")
    return replace(schedule, is_manual=is_manual is not False)


def _schedules(listed: Field) -> Schedule:
    items = list(listed.items("a list of schedules", suggests_list=False))
    for more in items[1:]:
        more.report(
            "invalid-value", "is one schedule too many: a job has one", "use a list in the expression: 0 3,15 * * *"
        )
    found = _schedule(items[0]) if items else None
    return found or Schedule(cron="")


def _schedule(item: Field) -> Schedule | None:
    if isinstance(item.node, Scalar):
        cron = item.value(parse_expression)
        return Schedule(cron=cron, concurrency=Concurrency.FORBID) if cron else None
    section = item.section(f"{_TRIGGERS}.schedule.*")
    if section is None:
        return None
    schedule = parse_times(section)
    # A cluster has one deadline for runs that it could not start and for those that were due during another one.
    starts_late = "queue" in _choice(section, "concurrency", "forbid", "queue")
    starts_late = "one" in _choice(section, "missed_fires", "one", "skip") or starts_late
    if schedule is None:
        return None
    schedule = replace(schedule, concurrency=Concurrency.FORBID)
    return replace(schedule, max_delay_s=None) if starts_late else schedule


def _choice(section: Section, key: str, *allowed: str) -> tuple[str, ...]:
    found = section.get(key)
    chosen = found.choice(*allowed) if found else None
    return (chosen,) if chosen else ()
