"""Tests that read ``../shared``: left out where that is not there, and counted all the same.

Owns the marker ``shared``, and the record of how many such tests each module has: where the data is not there its
cases can't be counted.
A test beside the record holds it true where the data is there, and writes it under ``--bless``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
RECORD = HERE / "left_out.json"

COLLECTED = pytest.StashKey[dict[str, int]]()
"""The tests marked ``shared`` that were collected, by module."""
_LEFT_OUT = pytest.StashKey[int]()


def note_collected(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    config.stash[COLLECTED] = dict(Counter(_module(item) for item in items if item.get_closest_marker("shared")))


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take tests that read the data out of a run, and note how many they would be."""
    recorded = json.loads(RECORD.read_text())
    config.stash[_LEFT_OUT] = sum(recorded[module] for module in config.stash[COLLECTED])
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = config.stash[_LEFT_OUT]
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("shared")])
    items[:] = [item for item in items if not item.get_closest_marker("shared")]


def receive_from_worker(node: Any) -> None:
    """Every worker collects everything, so what one says holds for all."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def report(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    count = config.stash.get(_LEFT_OUT, 0)
    if count:
        reporter.write_line(f"{count} tests that read ../shared are left out: it is not there", yellow=True)


def _module(item: pytest.Item) -> str:
    return item.path.relative_to(HERE).as_posix()
