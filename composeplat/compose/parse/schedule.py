"""Parse ``x-schedule``: when the runs of a service start."""

from __future__ import annotations

import re

from composeplat.compose.cron import kubernetes_text
from composeplat.compose.nodes import Mapping
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.rollout_model import UTC_ZONE, Concurrency, Schedule
from composeplat.compose.values import BadValue

_SECTION = "services.*.x-schedule"
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", re.ASCII)


def parse_schedule(service: Section) -> Schedule | None:
    found = service.get("x-schedule")
    if found is None:
        return None
    if not isinstance(found.node, Mapping):
        cron = found.value(parse_expression)
        return Schedule(cron=cron) if cron else None
    section = found.section(_SECTION)
    return _long_form(found, section) if section else None


def _long_form(whole: Field, section: Section) -> Schedule | None:
    written = section.get("cron")
    if written is None:
        whole.report("missing-key", "must have 'cron'", "write cron: '0 3 * * *'")
        return None
    cron = written.value(parse_expression)
    timezone = section.value("timezone", parse_timezone, UTC_ZONE)
    concurrency = section.get("concurrency")
    chosen = concurrency.choice(*Concurrency) if concurrency else None
    return Schedule(cron=cron, timezone=timezone, concurrency=Concurrency(chosen or "allow")) if cron else None


def parse_expression(text: str) -> str:
    """Check a cron expression, and write it in one form."""
    return kubernetes_text(text)


def parse_timezone(text: str) -> str:
    """Check the form of a time zone's name; the cluster knows which zones there are."""
    if not _ZONE.fullmatch(text) or text.lower() == "local":
        raise BadValue("must be the name of a time zone such as Europe/Berlin")
    return text
