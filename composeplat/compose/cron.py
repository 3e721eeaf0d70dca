"""Cron expressions as Kubernetes reads them, and the moments that they mean.

Owns the grammar: five fields, or a name such as ``@daily``. What it refuses, the API server would refuse too.
Must not know what is scheduled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from composeplat.compose.values import BadValue
from composeplat.system.records import record

_NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAYS = 7
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: A leap day comes after eight years at most.
_MAX_DAYS = 8 * 366 + 1
#: A moment that never comes.
NEVER = "0 0 31 2 *"
_ANY = ("*", "?")
_MAX_CHARS = 200


@record
class _Unit:
    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()
    last: int = -1
    """The highest value of ``*``, if another one is accepted too."""

    def number(self, text: str) -> int:
        if text.lower() in self.names:
            return self.names.index(text.lower()) + self.lowest
        if not text.isascii() or not text.isdigit() or not self.lowest <= int(text) <= self.highest:
            raise self.error
        return int(text)

    @property
    def error(self) -> BadValue:
        hint = ", where 0 and 7 are Sunday" if self.names == _WEEKDAYS else ""
        return BadValue(f"must be a cron expression whose {self.name} is from {self.lowest} to {self.highest}{hint}")


_UNITS = (
    _Unit("minute", 0, 59),
    _Unit("hour", 0, 23),
    _Unit("day of the month", 1, 31),
    _Unit("month", 1, 12, _MONTHS),
    _Unit("day of the week", 0, 7, _WEEKDAYS, last=6),
)


@record
class Cron:
    """A cron expression: the values of its fields."""

    minutes: Sequence[int]
    hours: Sequence[int]
    days: Sequence[int]
    months: Sequence[int]
    weekdays: Sequence[int]
    needs_both: bool
    """Whether a day must be one of the days and of the weekdays; otherwise one of them is enough."""

    def includes(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        found = (day.day in self.days, day.isoweekday() % 7 in self.weekdays)
        return all(found) if self.needs_both else any(found)

    def moments(self, after: datetime, zone: tzinfo) -> Iterator[datetime]:
        """Yield the moments after another one, in UTC; an hour that a clock skips has none, one that it repeats two."""
        first = after.astimezone(zone).date()
        for day in (first + timedelta(days=number) for number in range(_MAX_DAYS)):
            yield from (moment for moment in self._moments_of(day, zone) if moment > after)

    def _moments_of(self, day: date, zone: tzinfo) -> Iterable[datetime]:
        if not self.includes(day):
            return ()
        shown = (datetime.combine(day, time(hour, minute), zone) for hour in self.hours for minute in self.minutes)
        if _offset(day, zone) == _offset(day + timedelta(days=1), zone):
            return (clock.astimezone(UTC) for clock in shown)
        both = {(clock, clock.replace(fold=fold).astimezone(UTC)) for clock in shown for fold in (0, 1)}
        return sorted({moment for clock, moment in both if moment.astimezone(zone).time() == clock.time()})


def _offset(day: date, zone: tzinfo) -> timedelta | None:
    return datetime.combine(day, time(), zone).utcoffset()


def parse_cron(text: str) -> Cron:
    fields = _NAMES.get(text, text).split()
    if len(fields) != len(_UNITS) or len(text) > _MAX_CHARS:
        names = ", ".join(unit.name for unit in _UNITS)
        raise BadValue(f"must be a cron expression with five fields ({names}), or a name such as @daily")
    minutes, hours, days, months, weekdays = (_values(part, unit) for part, unit in zip(fields, _UNITS, strict=True))
    is_any = [any(part in _ANY or part in ("*/1", "?/1") for part in field.split(",")) for field in fields]
    cron = Cron(
        minutes, hours, days, months, sorted({day % _DAYS for day in weekdays}), needs_both=is_any[2] or is_any[4]
    )
    if next(cron.moments(datetime(2024, 1, 1, tzinfo=UTC), UTC), None) is None:
        raise BadValue("must be a cron expression whose day is in one of its months")
    return cron


def kubernetes_text(text: str) -> str:
    """Check an expression, and write it as Kubernetes accepts it: Sunday is 0 there, not 7."""
    cron, fields = parse_cron(text), text.split()
    if str(_DAYS) in fields[-1] and len(fields) == len(_UNITS):
        fields[-1] = ",".join(map(str, cron.weekdays))
    return " ".join(fields)


def _values(field: str, unit: _Unit) -> list[int]:
    return sorted({value for part in field.split(",") for value in _part(part, unit)})


def _part(part: str, unit: _Unit) -> range:
    """Parse ``5``, ``1-5``, ``*``, and each of them with a step: ``*/15``."""
    whole, slash, step = part.partition("/")
    if slash and not (step.isascii() and step.isdigit() and int(step) > 0):
        raise BadValue(f"must be a cron expression whose {unit.name} has a step above 0")
    first, dash, last = whole.partition("-")
    lowest = unit.lowest if whole in _ANY else unit.number(first)
    end = unit.highest if unit.last < 0 else unit.last
    highest = unit.number(last) if dash else end if slash or whole in _ANY else lowest
    if highest < lowest:
        raise BadValue(f"must be a cron expression whose {unit.name} has a range from low to high")
    return range(lowest, highest + 1, int(step) if slash else 1)
