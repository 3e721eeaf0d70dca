"""Parse ``ulimits``, which have an effect in full mode alone."""

from __future__ import annotations

from composeplat.compose.nodes import Mapping
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.pod_model import LIMITS, UNLIMITED, ProcessLimit
from composeplat.compose.values import BadValue, parse_int

_MAX_LIMIT = 2**63 - 1


def parse_process_limits(service: Section) -> tuple[ProcessLimit, ...]:
    found = service.get("ulimits")
    read = [_limit(name, place) for name, place in found.members()] if found else []
    return tuple(limit for limit in read if limit is not None)


def _limit(name: str, place: Field) -> ProcessLimit | None:
    if name not in LIMITS:
        place.report("no-effect", "has no effect: only a node sets it", f"limits that work: {', '.join(LIMITS)}")
        return None
    soft, hard = _pair(place) if isinstance(place.node, Mapping) else (place.value(_parse_limit),) * 2
    if soft is None or hard is None:
        return None
    if hard != UNLIMITED and (soft > hard or soft == UNLIMITED):
        place.report("invalid-value", "must have a soft limit of at most the hard one")
        return None
    return ProcessLimit(name=name, soft=soft, hard=hard)


def _pair(place: Field) -> tuple[int | None, int | None]:
    fields = dict(place.members())
    for key in ("soft", "hard"):
        if key not in fields:
            place.report("missing-key", f"must have '{key}'")
    soft, hard = (fields[key].value(_parse_limit) if key in fields else None for key in ("soft", "hard"))
    return soft, hard


def _parse_limit(text: str) -> int:
    if text in ("-1", "unlimited"):
        return UNLIMITED
    try:
        return parse_int(text, highest=_MAX_LIMIT)
    except BadValue as error:
        raise BadValue("must be a whole number of at least 0, or -1 for no limit") from error
