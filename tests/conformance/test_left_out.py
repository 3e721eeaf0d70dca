"""Where ../shared is not there, a run says how many tests it left out."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.left_out import COLLECTED, RECORD

_TEST = '''
import pytest

@pytest.mark.shared
@pytest.mark.parametrize("case", [1, 2])
def test_reads(case):
    assert False

def test_needs_nothing():
    """Runs everywhere."""
'''


@pytest.mark.shared
def test_the_record_is_true(request: pytest.FixtureRequest) -> None:
    """Each module has as many tests that read ../shared as the record says of it."""
    config = request.config
    # Where a single test of a module is named, the module can't be counted.
    named = {argument.partition("::")[0].rpartition("tests/")[2] for argument in config.args if "::" in argument}
    found = {module: count for module, count in config.stash[COLLECTED].items() if module not in named}
    recorded = json.loads(RECORD.read_text())
    if config.getoption("--bless"):
        RECORD.write_text(json.dumps(dict(sorted({**recorded, **found}.items())), indent=2) + "\n")
    else:
        assert found == {module: count for module, count in recorded.items() if module in found}


def test_the_record_names_modules() -> None:
    """No module of the record is gone."""
    assert [module for module in json.loads(RECORD.read_text()) if not (RECORD.parent / module).exists()] == []


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "workers"])
def test_a_run_without_it_reports_it(tmp_path: Path, workers: list[str]) -> None:
    """A clone with nothing beside it runs the rest, and says how many tests read ../shared."""
    tests = tmp_path / "clone" / "tests"
    (tests / "made").mkdir(parents=True)
    for name in ("__init__.py", "conftest.py", "left_out.py", "own_data.py"):
        shutil.copy(ROOT / "tests" / name, tests / name)
    (tests / "made" / "test_made.py").write_text(_TEST)
    (tests / "left_out.json").write_text('{"made/test_made.py": 17, "test_other.py": 5}')
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "clone")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *workers, "tests"],
        cwd=tmp_path / "clone", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout
    assert "17 tests that read ../shared are left out: it is not there\n" in done.stdout
    assert "1 passed" in done.stdout
