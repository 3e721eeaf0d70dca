"""How smooth the page stays, measured in the browser: the time between its frames while much arrives.

10,000 log lines a minute, and ten times a second a new status of 100 services, ten of which have changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.devtools import Tab
from tests.ui import documents
from tests.ui.conftest import LivePage
from tests.ui.test_logs import COUNT, line

LINES_PER_MINUTE = 10_000
_INTERVAL_S = 0.1
_MEASURED_S = 10
MAX_GAP_MS = 50
_MEASURE = """
var gaps = [], isMeasured = true;
requestAnimationFrame(function note(before) {
    requestAnimationFrame(now => { gaps.push(now - before); if (isMeasured) note(now); });
}); 0
"""
_STATES = ("ready", "starting", "failing")


@contextmanager
def arriving(page: LivePage) -> Iterator[None]:
    """Let lines and changes arrive in a thread."""
    ended = threading.Event()
    names = [row["service"] for row in page.fake.documents["status"]["services"]]

    def run() -> None:
        number = step = 0
        while not ended.wait(_INTERVAL_S):
            step += 1
            due = int(step * _INTERVAL_S * LINES_PER_MINUTE / 60)
            page.fake.log += [line(n, names[n % len(names)], f"GET /products/{n} 200") for n in range(number, due)]
            number = due
            page.fake.documents["status"] = documents.status(
                documents.service_row(name, _STATES[(step - index % 10) // 10 % 3], restarts=(step - index % 10) // 10)
                for index, name in enumerate(names)
            )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("route", ["logs", ""])
def test_frames(live: LivePage, tab: Tab, route: str) -> None:
    """95 % of the frames come within 50 ms."""
    live.fake.documents |= {topic: documents.large()[topic] for topic in ("definition", "status")}
    live.open(route)
    with arriving(live):
        ready = f"parseInt({COUNT}) > 20" if route else "document.querySelectorAll('tbody tr').length === 100"
        tab.wait_for(ready)
        tab.run(_MEASURE)
        threading.Event().wait(_MEASURED_S)
        tab.run("isMeasured = false")
        gaps: list[float] = sorted(tab.run("gaps"))

    slow = [gap for gap in gaps if gap >= MAX_GAP_MS]
    middle, nearly_all = gaps[len(gaps) // 2], gaps[len(gaps) * 95 // 100]
    print(f"{route or 'overview'}: {len(gaps)} frames, median {middle:.0f} ms, 95 % within {nearly_all:.0f} ms, "
          f"longest {gaps[-1]:.0f} ms")  # fmt: skip
    assert len(gaps) > _MEASURED_S * 10
    assert len(slow) <= len(gaps) * 0.05, slow
