"""Fuzz for a short while with every run of the tests, for long under ``make endurance``, and replay what was found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.conftest import ROOT, SHARED
from tests.fuzz.target import read_to_the_end
from tests.fuzz.trees import definitions

FINDS = sorted(path for path in (Path(__file__).parent / "finds").iterdir() if not path.name.startswith("."))


def fuzz(seconds: int, folder: Path) -> None:
    corpora = [str(path) for path in (SHARED / "corpus", SHARED / "conformance" / "loader_testdata") if path.exists()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.harness", str(seconds), str(folder), *corpora],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds + 100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "stat::number_of_executed_units" in done.stderr


def test_a_short_round(tmp_path: Path) -> None:
    """Ten seconds of bytes and trees end in no exception."""
    fuzz(10, tmp_path / "work")


@pytest.mark.endurance
def test_a_long_round(tmp_path: Path) -> None:
    """Nor do ten minutes of them."""
    fuzz(600, tmp_path / "work")


def test_what_was_found(tmp_path: Path) -> None:
    """What was once an exception is none any more."""
    for find in FINDS:
        read_to_the_end(find.read_bytes(), tmp_path)


def test_made_definitions_get_far(tmp_path: Path) -> None:
    """Definitions made of keys differ, and some are sound: otherwise they would not reach the plan."""
    made = {definitions(Random(seed)) for seed in range(100)}  # noqa: S311 -- the same each time

    assert len(made) > 90
    for content in made:
        read_to_the_end(content, tmp_path)
