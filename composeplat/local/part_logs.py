"""The logs of the cluster's parts, as the supervisor keeps them: the last lines of one, and those that follow.

Must not know the format of a line: each part is another program.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from composeplat.diagnostics import ComposeplatError

_POLL_INTERVAL_S = 0.2
_SUFFIX = ".log"


def logged_parts(logs: Path) -> list[str]:
    """List the names of the parts that have a log."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in logs.glob(f"*{_SUFFIX}"))


def find_log(logs: Path, part: str) -> Path:
    known = logged_parts(logs)
    if part not in known:
        fix = f"parts are: {', '.join(known)}" if known else "start it: platform cluster start"
        raise ComposeplatError(f"the cluster has no log of a part '{part}'", fix)
    return logs / f"{part}{_SUFFIX}"


def read_lines(log: Path, count: int | None, *, follow: bool) -> Iterator[str]:
    """Yield the last lines of a log, or all; then, to follow it, each line that its part writes."""
    with log.open(encoding="utf-8", errors="replace") as stream:
        yield from _last(stream, count)
        position = stream.tell()
    while follow:
        time.sleep(_POLL_INTERVAL_S)
        lines, position = _new_lines(log, position)
        yield from lines


def _last(stream: Iterable[str], count: int | None) -> Iterable[str]:
    return stream if count is None else deque(stream, count)


def _new_lines(log: Path, position: int) -> tuple[list[str], int]:
    """Return the lines from a position on, and the next position; a log that was moved away starts again."""
    try:
        stream = log.open("rb")
    except FileNotFoundError:
        # It was moved away just now, or deleted with the cluster's data; the next start makes a new one.
        return [], 0
    with stream:
        size = stream.seek(0, 2)
        stream.seek(position if position <= size else 0)
        text = stream.read()
        whole = text[: text.rfind(b"\n") + 1]
        return whole.decode("utf-8", "replace").splitlines(keepends=True), stream.tell() - len(text) + len(whole)
