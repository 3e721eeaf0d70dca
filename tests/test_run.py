"""Which files of tests get a second try, and that every run has a part of each."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.run import FOLDERS, files_to_repeat, read_failed


@pytest.mark.parametrize(
    ("failed", "files"),
    [
        ([], []),
        (["tests/a.py::test_one[x::y]", "tests/a.py::test_two"], ["tests/a.py"]),
        (["tests/b.py::test_one", "tests/a.py::test_one"], ["tests/a.py", "tests/b.py"]),
        (["tests/a.py::test_one", "tests/b.py::test_one", "tests/c.py::test_one"], []),
        (["tests/a.py"], ["tests/a.py"]),
    ],
)
def test_files_to_repeat(failed: list[str], files: list[str]) -> None:
    """At most two files, each whole and once."""
    assert files_to_repeat(failed) == files


def test_what_pytest_noted(pytester_folder: Path) -> None:
    """The failed tests are those that pytest itself notes in its cache."""
    assert read_failed(pytester_folder / "cache") == ["test_it.py::test_wrong"]
    assert read_failed(pytester_folder) == []


def test_no_test_of_the_cluster_is_elsewhere() -> None:
    """The run collects two folders; `make real` and `make vm` run the others."""
    files = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    marked = {str(path.parent) for path in files if "mark.cluster" in (ROOT / path).read_text()}

    assert marked - {"tests/real", "tests/vm"} == set(FOLDERS)


@pytest.fixture
def pytester_folder(tmp_path: Path) -> Path:
    """A folder in which pytest ran a test that passes and one that fails."""
    (tmp_path / "test_it.py").write_text("def test_right(): pass\ndef test_wrong(): assert 0\n")
    command = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={tmp_path / 'cache'}", "test_it.py"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1
    return tmp_path


#: Machines that have nothing else: tests of other files take the same steps one by one.
_FOR_ENDURANCE_ALONE = {"test_ci_image.py", "test_first_deploy.py"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_file_of_cluster_tests_has_a_part_in_every_run(folder: str) -> None:
    """`make endurance` has variants and rounds, and no subject of its own."""
    alone = {
        path.name
        for path in (ROOT / folder).glob("test_*.py")
        if all("pytest.mark.endurance" in decorators for decorators in decorators_of_tests(path))
    }
    assert alone <= _FOR_ENDURANCE_ALONE


def decorators_of_tests(path: Path) -> Iterator[list[str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield [ast.unparse(decorator) for decorator in node.decorator_list]
