"""How far a container's log has been read: the API selects lines by the second, so that some come twice.

Owns which lines are new. Must not read a log.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

#: A container's two streams are timestamped apart, so that a line may be older than the line before it.
_MAX_DISORDER_S = 1
_NANOSECONDS = 9

LogTime = tuple[int, str]
"""Seconds since 1970, and nine digits of the fraction."""
NEVER: LogTime = (0, "")


def parse_time(text: str) -> LogTime | None:
    """Parse a timestamp whose fraction may be finer than Python's; None if it is invalid."""
    head, _, rest = text.partition(".")
    digits = rest.rstrip("Z").partition("+")[0].partition("-")[0] if rest else ""
    try:
        seconds = datetime.fromisoformat(head + rest[len(digits) :])
    except ValueError:
        return None
    if seconds.tzinfo is None or not (digits.isdigit() or not rest):
        return None
    return int(seconds.timestamp()), f"{digits:0<{_NANOSECONDS}}"


@dataclass(slots=True)
class Cursor:
    """How far a container's log has been read: lines that come again are dropped, each as often as it was read."""

    latest: LogTime | None = None
    _floor: LogTime | None = None
    """Older lines were not requested."""
    _seen: dict[int, Counter[str]] = field(default_factory=dict)
    """The lines of the last seconds, by second."""
    _again: dict[int, Counter[str]] = field(default_factory=dict)

    @property
    def since(self) -> str:
        """The start of the next read, so that no line is missed; empty before the first line."""
        if self.latest is None:
            return ""
        return f"{datetime.fromtimestamp(self.latest[0] - _MAX_DISORDER_S, UTC):%Y-%m-%dT%H:%M:%SZ}"

    def begin(self) -> None:
        """Start a read from :attr:`since`: its first lines may be known."""
        self._again = {second: counter.copy() for second, counter in self._seen.items()}

    def leave_out_before(self, time: LogTime) -> None:
        """Drop lines before a time, which were not requested, in later reads."""
        self._floor = time

    def take(self, line: str) -> tuple[str, str] | None:
        """Return the timestamp and the text of a line; None if it was read before, or is not the container's."""
        time, _, text = line.partition(" ")
        parsed = parse_time(time)
        if parsed is None:
            # The kubelet's own message, for a log that it does not have.
            return None
        if self._again:
            known = self._again.get(parsed[0])
            if known and known[line]:
                known[line] -= 1
                return None
            if self._floor is not None and parsed < self._floor:
                return None
        self._note(parsed, line)
        return time, text

    def _note(self, time: LogTime, line: str) -> None:
        if self.latest is None or time > self.latest:
            if self.latest is None or time[0] != self.latest[0]:
                self._seen = {s: lines for s, lines in self._seen.items() if s >= time[0] - _MAX_DISORDER_S}
            self.latest = time
        if time[0] >= self.latest[0] - _MAX_DISORDER_S:
            self._seen.setdefault(time[0], Counter())[line] += 1
