"""How smooth the page stays, measured in the browser: the time between its frames while much arrives.

10,000 log lines a minute, and ten times a second a new status of 100 services, ten of which have changed; the file that
is shown has 3,500 lines.
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
MAX_GAP_MS, MIN_SHARE = 50, 0.95
_ATTEMPTS = 3
_MEASURE = """
var gaps = [];
(gaps => requestAnimationFrame(function note(before) {
    requestAnimationFrame(now => { gaps.push(now - before); if (!gaps.isDone) note(now); });
}))(gaps); 0
"""
_READY = {
    "logs": f"parseInt({COUNT}) > 20",
    "": "document.querySelectorAll('tbody tr').length === 100",
    "file/compose.yaml": "document.querySelectorAll('.line').length > 3000",
}
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


@pytest.mark.parametrize("route", ["logs", "", "file/compose.yaml"])
def test_frames(live: LivePage, tab: Tab, route: str) -> None:
    """95 % of the frames come within 50 ms; a machine that does much else has more than one attempt."""
    live.fake.documents |= {topic: documents.large()[topic] for topic in ("definition", "status")}
    live.fake.documents["definition"]["files"] = [{"path": "compose.yaml", "text": documents.COMPOSE * 100}]
    live.open(route)
    shares: list[float] = []
    with arriving(live):
        tab.wait_for(_READY[route])
        while len(shares) < _ATTEMPTS and (not shares or shares[-1] < MIN_SHARE):
            gaps = measured_gaps(tab)
            shares.append(sum(gap < MAX_GAP_MS for gap in gaps) / len(gaps))
            print(f"{route or 'overview'}: {describe(gaps)}")

    assert max(shares) >= MIN_SHARE


def measured_gaps(tab: Tab) -> list[float]:
    """Return the milliseconds between the frames of some seconds, in order of length."""
    tab.run(_MEASURE)
    threading.Event().wait(_MEASURED_S)
    tab.run("gaps.isDone = true")
    gaps: list[float] = sorted(tab.run("gaps"))
    return gaps


def describe(gaps: list[float]) -> str:
    share = sum(gap < MAX_GAP_MS for gap in gaps) / len(gaps)
    middle, nearly_all = (gaps[int(len(gaps) * part)] for part in (0.5, 0.95))
    return (
        f"{len(gaps)} frames in {_MEASURED_S} s, {share:.1%} in less than {MAX_GAP_MS} ms;"
        f" median {middle:.0f} ms, 95 % within {nearly_all:.0f} ms, longest {gaps[-1]:.0f} ms"
    )
