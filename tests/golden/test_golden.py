"""Each folder here is a case: a small project, what ``platform render -v`` prints, and what it says.

- ``compose.yaml`` and whatever belongs to it;
- ``options.txt``: options of the command, one a line; absent is ``--domain example.com``;
- ``expected.yaml``: the exact standard output; absent where the definition is invalid;
- ``messages.txt``: the exact standard error; absent where nothing is reported.

``pytest tests/golden --bless`` writes the last two again; the difference is then read before it is kept.
Depth comes from direct assertions elsewhere: a case shows one behavior as a whole.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml

from tests.conftest import Outcome, run
from tests.in_process import run_here
from tests.kubernetes_schema import problems_of

HERE = Path(__file__).parent
CASES = sorted(path.parent.name for path in HERE.glob("*/compose.yaml"))
EXPECTED, MESSAGES, OPTIONS = "expected.yaml", "messages.txt", "options.txt"


def args_of(case: str) -> list[str]:
    options = HERE / case / OPTIONS
    given = options.read_text().splitlines() if options.exists() else ["--domain=example.com"]
    return ["render", "-v", *given]


def copy_of(case: str, folder: Path) -> Path:
    """Copy the project alone, with modes that don't hang on how the repository was checked out."""
    copy = folder / case
    shutil.copytree(HERE / case, copy, ignore=shutil.ignore_patterns(EXPECTED, MESSAGES, OPTIONS))
    for path in copy.rglob("*"):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    return copy


def text_of(path: Path) -> str:
    return path.read_bytes().decode() if path.exists() else ""


def bless(case: str, outcome: Outcome) -> None:
    for name, text in ((EXPECTED, outcome.stdout), (MESSAGES, outcome.stderr)):
        path = HERE / case / name
        if text:
            path.write_bytes(text.encode())
        else:
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The command prints exactly what is expected, says exactly what is expected, and ends with the status of both."""
    outcome = run_here(*args_of(case), folder=copy_of(case, tmp_path))
    if request.config.getoption("--bless"):
        bless(case, outcome)

    assert text_of(HERE / case / MESSAGES) == outcome.stderr
    assert text_of(HERE / case / EXPECTED) == outcome.stdout
    assert outcome.status == (0 if (HERE / case / EXPECTED).exists() else 3)


@pytest.mark.parametrize("case", CASES)
def test_a_second_render_gives_the_same_bytes(case: str, tmp_path: Path) -> None:
    """Nothing of a run is left to chance: another folder and another run give the same."""
    first = run_here(*args_of(case), folder=copy_of(case, tmp_path / "first"))
    second = run_here(*args_of(case), folder=copy_of(case, tmp_path / "second"))

    assert first == second


@pytest.mark.parametrize("case", CASES)
def test_an_api_server_would_take_the_objects(case: str) -> None:
    """What is expected is sound: read back as YAML, every object passes the schemas and the server's rules."""
    objects = list(yaml.safe_load_all(text_of(HERE / case / EXPECTED)))

    assert problems_of(objects) == []


@pytest.mark.parametrize("case", ["web-and-database", "invalid-everything-reported-at-once"])
def test_a_process_of_its_own_gives_the_same(case: str, tmp_path: Path) -> None:
    """The cases run in the test's process: a real one, hash seed and all, differs in nothing."""
    folder = copy_of(case, tmp_path)

    assert run(*args_of(case), folder=folder, PYTHONHASHSEED="7") == run_here(*args_of(case), folder=folder)


def test_there_are_cases() -> None:
    """A glob that finds nothing would pass everything above."""
    assert 20 <= len(CASES) <= 40
