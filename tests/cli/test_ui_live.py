"""What the page reads while it is open."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

from composeplat.cli.ui_sources import Place, follow_status
from composeplat.cluster.access import Access
from composeplat.cluster.snapshot import Snapshot
from composeplat.cluster.watching import Ages


def test_a_failure_that_counts_only_after_a_while() -> None:
    """The status is read so often, also without a change, that nothing seen before is forgotten."""
    ages, ended, seen = Ages(), threading.Event(), []
    snapshot = Snapshot(age=ages.age)

    def read(_: object = None) -> list[Any]:
        seen.append((time.monotonic(), snapshot.age("unscheduled/uid")))
        if len(seen) == 4:
            ended.set()
        return []

    reader: Any = SimpleNamespace(read=read, read_again=read, latest=snapshot, problem="", stop=lambda: None)
    follow_status(Place(Access(host="127.0.0.1", port=1), "team", "shop"), reader, lambda *_: None, ended)

    (first, _), *_, (last, age) = seen
    assert age >= 0.9 * (last - first)
