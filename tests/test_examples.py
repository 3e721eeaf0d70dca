"""The examples hold what their pages say: the commands shown there work, and warn only where that is reported."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, Outcome
from tests.in_process import run_here

EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())

_COMMAND = re.compile(r"^platform render .+$", re.MULTILINE)
_OUTPUT_BLOCK = re.compile(r"<!-- says -->\n```text\n(.*?)```", re.DOTALL)

CASES = [
    pytest.param(folder, command, id=f"{folder.name}: {command}")
    for folder in EXAMPLES
    for command in _COMMAND.findall((folder / "README.md").read_text())
]


def _run(command: str, folder: Path) -> Outcome:
    return run_here(*shlex.split(command)[1:], folder=folder)


@pytest.mark.parametrize(("folder", "command"), CASES)
def test_renders(folder: Path, command: str) -> None:
    """A command on an example's page gives objects, and says what the page says it says: as a rule, nothing."""
    outcome = _run(command, folder).assert_success()

    assert outcome.stderr == "".join(_OUTPUT_BLOCK.findall((folder / "README.md").read_text()))
    assert all(document["kind"] for document in yaml.safe_load_all(outcome.stdout))


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_every_example_shows_a_command(folder: Path) -> None:
    """An example that shows no command would not be tested."""
    assert "platform render" in " ".join(_COMMAND.findall((folder / "README.md").read_text()))


def test_demo() -> None:
    """The example that `make demo` runs gives these objects, and nothing is reported about it."""
    outcome = _run("platform render -f examples/shop/compose.yaml --domain localhost", ROOT).assert_success()

    assert outcome.stderr == ""
    assert [(o["kind"], o["metadata"]["name"]) for o in yaml.safe_load_all(outcome.stdout)] == [
        ("PersistentVolumeClaim", "data"),
        ("PersistentVolumeClaim", "visits"),
        ("Service", "cache"),
        ("StatefulSet", "cache"),
        ("Secret", "db-env"),
        ("Service", "db"),
        ("StatefulSet", "db"),
        ("Secret", "migrate-env"),
        ("Secret", "migrate-files"),
        ("Service", "migrate"),
        ("Job", "migrate"),
        ("Secret", "api-env"),
        ("Service", "api"),
        ("Deployment", "api"),
        ("Secret", "web-files"),
        ("Service", "web"),
        ("Deployment", "web"),
        ("Ingress", "shop"),
    ]


def test_make_demo() -> None:
    """`make demo` runs the program of the example shop."""
    (recipe,) = re.findall(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert recipe == "\t@$(BIN)/python -m examples.shop.demo\n"
    assert (ROOT / "examples" / "shop" / "demo.py").is_file()
