"""Which tests run which lines, and which of them to ask first about a change.

Owns the order: tests of few lines and little time first, and not many of one function in a row.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conftest import ROOT
from tests.mutants.changes import Change

_LINES_A_SECOND = 4000
"""What a second weighs against lines that a test runs."""


@dataclass(frozen=True, slots=True)
class Coverage:
    names: list[str]
    seconds: list[float]
    tests: Mapping[str, Mapping[int, int]]
    """By file and line, the tests as the bits of a number."""
    usable: int
    weights: list[float]

    @classmethod
    def read(cls, path: Path) -> Coverage:
        document = json.loads(path.read_text())
        tests = {
            name: {int(number): int(bits, 16) for number, bits in lines.items()}
            for name, lines in document["tests"].items()
        }
        names, failed = document["names"], set(document["failed"])
        weights = [seconds * _LINES_A_SECOND for seconds in document["seconds"]]
        for lines in tests.values():
            for bits in lines.values():
                for index in _indices(bits):
                    weights[index] += 1
        usable = sum(1 << index for index, name in enumerate(names) if name not in failed)
        return cls(names, document["seconds"], tests, usable, weights)

    def tests_of(self, name: str, change: Change) -> list[int]:
        """The tests that run a line of the changed statement, those to ask first at the beginning.

        What runs when a module is imported may be noticed by any test that runs something of the module, or names it.
        """
        own = own_tests(name)
        lines = self.tests.get(name, {})
        bits = 0
        for number in lines if change.imported else range(change.first, change.last + 1):
            bits |= lines.get(number, 0)
        if change.imported:
            bits |= sum(1 << index for index, test in enumerate(self.names) if test.startswith(own))
        return self._in_order(_indices(bits & self.usable), own)

    def _in_order(self, tests: Iterable[int], own: tuple[str, ...]) -> list[int]:
        by_function: dict[str, list[int]] = defaultdict(list)
        for index in sorted(tests, key=lambda index: (not self.names[index].startswith(own), self.weights[index])):
            by_function[self.names[index].partition("[")[0]].append(index)
        order = {
            index: (place, turn)
            for turn, indexes in enumerate(by_function.values())
            for place, index in enumerate(indexes)
        }
        return sorted(order, key=lambda index: order[index])

    def is_imported_only(self, name: str, change: Change) -> bool:
        """Return whether no test runs the statement itself: it runs when the module is imported, if ever."""
        lines = self.tests.get(name, {})
        return not any(lines.get(number, 0) & self.usable for number in range(change.first, change.last + 1))


@cache
def own_tests(name: str) -> tuple[str, ...]:
    """Where the tests of a module stand: in the files that name it."""
    args = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    folder, _, module = args.rpartition(".")
    named = re.compile(rf"{re.escape(args)}\b|from {re.escape(folder)} import [^\n]*\b{module}\b")
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return tuple(f"{file.relative_to(ROOT).as_posix()}::" for file in files if named.search(file.read_text()))


def _indices(bits: int) -> list[int]:
    text = bin(bits)[:1:-1]
    found, index = [], text.find("1")
    while index >= 0:
        found.append(index)
        index = text.find("1", index + 1)
    return found
