"""How far a container's log has been read: the API selects lines by the second, so that some come twice.

Owns which lines are new. Must not read a log.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from composeplat.cluster.log_lines import LogPart, split_lines

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
    _time: str = ""
    """The timestamp of the line whose further parts are read."""
    _unfinished: tuple[str, int] = ("", 0)
    """The timestamp of a line that had no end yet, and how many of its characters were read."""
    _to_skip: float | None = None
    """How many characters more of the current line are dropped; None for one that is new."""

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

    def take(self, part: LogPart) -> tuple[str, str] | None:
        """Return the timestamp and the text of a line or a part; None if it was read before, or is no container's."""
        if not part.is_first:
            return self._take_further(part)
        self._time, _, text = part.text.partition(" ")
        parsed = parse_time(self._time)
        # Without a time it is the kubelet's own message, for a log that it does not have.
        if parsed is None or self._was_read(parsed, part.text):
            self._to_skip = self._read_before(parsed) - len(text)
            return None
        self._to_skip = None
        self._note(parsed, part.text)
        self._unfinished = ("", 0) if part.is_last else (self._time, len(text))
        return self._time, text

    def _take_further(self, part: LogPart) -> tuple[str, str] | None:
        """Continue a line: one that had no end when it was read before is new from there on."""
        text = part.text
        if self._to_skip is not None:
            if self._to_skip >= len(text):
                self._to_skip -= len(text)
                return None
            text = text[int(max(self._to_skip, 0)) :]
            self._to_skip = None
        time, read = self._unfinished
        self._unfinished = ("", 0) if part.is_last else (time or self._time, read + len(text))
        return self._time, text

    def _read_before(self, time: LogTime | None) -> float:
        """How much was read of a line that begins as one that is dropped.

        A read may begin in the middle of a line without an end: then its timestamp is new, and before the floor.
        """
        own, read = self._unfinished
        return read if own and (own == self._time or self._is_below_floor(time)) else math.inf

    def _was_read(self, time: LogTime, line: str) -> bool:
        if not self._again:
            return False
        known = self._again.get(time[0])
        if known and known[line]:
            known[line] -= 1
            return True
        return self._is_below_floor(time)

    def _is_below_floor(self, time: LogTime | None) -> bool:
        return self._floor is not None and time is not None and time < self._floor

    def _note(self, time: LogTime, line: str) -> None:
        if self.latest is None or time > self.latest:
            if self.latest is None or time[0] != self.latest[0]:
                self._seen = {s: lines for s, lines in self._seen.items() if s >= time[0] - _MAX_DISORDER_S}
            self.latest = time
        if time[0] >= self.latest[0] - _MAX_DISORDER_S:
            self._seen.setdefault(time[0], Counter())[line] += 1


def take_all(cursor: Cursor, text: str, last: str, since: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a log since a time, if one is given; then the cursor is at its end, which ``last`` has."""
    # The API selects by whole seconds.
    earliest = parse_time(since) or NEVER
    first: LogTime | None = None
    for entry in filter(None, map(cursor.take, split_lines(text))):
        time = parse_time(entry[0]) or NEVER
        if time >= earliest:
            first = first or time
            yield entry
    if cursor.latest is None and last:
        for part in split_lines(last):
            cursor.take(part)
    first = first or cursor.latest
    if first is not None:
        cursor.leave_out_before(first)
