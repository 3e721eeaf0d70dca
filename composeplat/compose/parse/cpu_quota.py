"""Parse the keys of a service for the CPU scheduler: ``cpu_quota``, ``cpu_period`` and ``cpu_shares``.

They have an effect in full mode alone.
"""

from __future__ import annotations

from collections.abc import Callable

from composeplat.compose.parse.fields import Section
from composeplat.compose.values import BadValue, parse_duration, parse_int

_DEFAULT_PERIOD_US = 100_000
_SHARES_OF_A_CPU = 1024


def quota_parser(service: Section) -> Callable[[str], int]:
    """Return the reader of a quota, in thousandths of a CPU; without a quota, a period has no effect."""
    period = service.value("cpu_period", _parse_microseconds, 0) or _DEFAULT_PERIOD_US
    found = service.get("cpu_period")
    if found and not service.get("cpu_quota"):
        found.report("no-effect", "has no effect without cpu_quota")
    return lambda text: 0 if text == "-1" else -(-1000 * _parse_microseconds(text) // period)


def _parse_microseconds(text: str) -> int:
    """Read microseconds; Compose allows a duration too."""
    if text.isdecimal():
        return parse_int(text)
    try:
        return parse_duration(text) // 1000
    except BadValue as error:
        raise BadValue("must be a number of microseconds") from error


def shares_parser(service: Section, limit: int | None) -> Callable[[str], int]:
    """Return the reader of shares, in thousandths of a CPU, as Kubernetes makes shares of a request.

    Shares are a weight in Docker, and may be above the limit, which a request must not.
    """

    def parse(text: str) -> int:
        shares = -(-1000 * parse_int(text) // _SHARES_OF_A_CPU)
        if limit and shares > limit:
            service.fields["cpu_shares"].report(
                "overridden-key", "asks for more than the service's limit, which wins", "keep one of them"
            )
            return limit
        return shares

    return parse
