"""Parse ``x-schedule``: when the runs of a service start."""

from __future__ import annotations

import re
from dataclasses import replace

from composeplat.compose.cron import kubernetes_text
from composeplat.compose.nodes import Mapping
from composeplat.compose.parse.fields import Section
from composeplat.compose.rollout_model import UTC_ZONE, Concurrency, Schedule
from composeplat.compose.values import BadValue

_SECTION = "services.*.x-schedule"
_ZONE = r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*"


def parse_schedule(service: Section) -> Schedule | None:
    found = service.get("x-schedule")
    if found is None:
        return None
    if not isinstance(found.node, Mapping):
        cron = found.value(parse_expression)
        return Schedule(cron=cron) if cron else None
    section = found.section(_SECTION)
    return _long_form(section) if section else None


def _long_form(section: Section) -> Schedule | None:
    schedule = parse_times(section)
    concurrency = section.get("concurrency")
    chosen = concurrency.choice(*Concurrency) if concurrency else None
    return replace(schedule, concurrency=Concurrency(chosen or "allow")) if schedule else None


def parse_times(section: Section) -> Schedule | None:
    """Parse the expression and its time zone; return None without an expression that is valid."""
    written = section.get("cron")
    if written is None:
        section.whole.report("missing-key", "must have 'cron'", "write cron: '0 3 * * *'")
    cron = written.value(parse_expression) if written else None
    timezone = _timezone(section)
    return Schedule(cron=cron, timezone=timezone) if cron else None


def _timezone(section: Section) -> str:
    """Read a time zone, and report one that the API server does not know."""
    found = section.get("timezone")
    name = found.value(_parse_timezone) if found else None
    if found is None or name is None:
        return UTC_ZONE
    from composeplat.compose.time_zones import is_time_zone, time_zones

    if not is_time_zone(name):
        scalar = found.scalar()
        is_hidden, shown = (scalar.is_substituted, scalar.shown) if scalar else (True, "")
        hint = "" if is_hidden else found.ctx.report.near(name, time_zones())
        found.report("invalid-value", f"must be the name of a time zone such as Europe/Berlin, not {shown}", hint)
    return name


def parse_expression(text: str) -> str:
    """Check a cron expression, and write it in one form."""
    return kubernetes_text(text)


def _parse_timezone(text: str) -> str:
    """Check the form of a time zone's name."""
    if not re.fullmatch(_ZONE, text, flags=re.ASCII) or text.lower() == "local":
        raise BadValue("must be the name of a time zone such as Europe/Berlin")
    return text
