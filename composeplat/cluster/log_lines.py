"""Lines of logs in parts that fit in memory and on a screen: a program may write without ever ending a line.

Owns the length of a part, and that a line has the same parts whether its log is read or followed.
Must not read a log, nor know which lines are new: :mod:`~composeplat.cluster.log_cursor` does.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: Container runtimes write longer lines in parts of this size, too.
MAX_PART_BYTES = 16 * 1024

_MAX_UTF8_BYTES = 4


class LogPart(NamedTuple):
    """A line of a log, or a part of a long one; the first part begins with the timestamp."""

    text: str
    is_first: bool = True
    is_last: bool = True


def join_parts(pieces: Iterable[bytes]) -> Iterator[LogPart]:
    """Decode lines that come in pieces of any size, of which none is of two lines."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    is_first = True
    for part in _same_size(pieces):
        is_last = part.endswith(b"\n")
        yield LogPart(decoder.decode(part, final=is_last).rstrip("\n"), is_first, is_last)
        is_first = is_last


def split_lines(text: str) -> Iterator[LogPart]:
    """Yield the lines of a log that was read as a whole, as :func:`join_parts` would."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield from _split_line(text[start:end], "\n")
        start = end + 1
    if start < len(text):
        yield from _split_line(text[start:], "")


def _split_line(line: str, end: str) -> Iterator[LogPart]:
    if len(line) < MAX_PART_BYTES // _MAX_UTF8_BYTES:
        yield LogPart(line, is_last=bool(end))
    else:
        yield from join_parts([f"{line}{end}".encode()])


def _same_size(pieces: Iterable[bytes]) -> Iterator[bytes]:
    held = b""
    for piece in pieces:
        held += piece
        whole = max(len(held) - 1, 0) // MAX_PART_BYTES * MAX_PART_BYTES
        for start in range(0, whole, MAX_PART_BYTES):
            yield held[start : start + MAX_PART_BYTES]
        held = held[whole:]
        if held.endswith(b"\n"):
            yield held
            held = b""
    if held:
        yield held
