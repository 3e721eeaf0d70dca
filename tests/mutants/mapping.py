"""A plugin of pytest: which lines each test runs, and how long it takes, written to a file.

The file is named by the variable ``MUTANTS_MAP``, and the folder of what processes note by ``MUTANTS_NOTES``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.mutants.lines import Collector, taken_from

NOTES = Path(os.environ["MUTANTS_NOTES"])
ROOT = Path(__file__).resolve().parent.parent.parent


class Mapping:
    def __init__(self) -> None:
        self._collector = Collector(ROOT)
        self._seconds: list[float] = []
        self._names: list[str] = []
        self._tests: dict[str, dict[int, int]] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._collector.take()
        begun = time.perf_counter()
        self._collector.start()
        result = yield
        self._names.append(item.nodeid)
        self._seconds.append(time.perf_counter() - begun)
        bit = 1 << (len(self._names) - 1)
        for lines in (self._collector.take(), taken_from(NOTES)):
            for name, numbers in lines.items():
                tests = self._tests.setdefault(name, {})
                for number in numbers:
                    tests[number] = tests.get(number, 0) | bit
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        document = {
            "names": self._names, "seconds": self._seconds, "failed": sorted(self._failed),
            "tests": {
                name: {number: f"{bits:x}" for number, bits in lines.items()} for name, lines in self._tests.items()
            },
        }  # fmt: skip
        Path(os.environ["MUTANTS_MAP"]).write_text(json.dumps(document))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Mapping())
