"""Real projects: each is rendered, or refused with reasons that have a place.

The projects lie beside this one and are read there; what to run is read from their own README, so no list is repeated.
Some name files that are not with them: those are run again on a copy with empty stand-ins.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from composeplat.compose.load import Loaded, Request, load
from composeplat.compose.model import HOST
from composeplat.system.files import is_system_path
from tests.conformance.traits import tree
from tests.conftest import SHARED, Outcome, shared
from tests.in_process import run_here
from tests.kubernetes_schema import problems_of

pytestmark = pytest.mark.shared

CORPUS = SHARED / "corpus"

_SOCKET = "mounts the socket of the machine's Docker"

#: Why a project is refused though every file it names is there: code -> reason.
REFUSED = {
    "ac-traefik-golang": {"forbidden-path": _SOCKET},
    "mailcow": {"forbidden-path": f"{_SOCKET}, and the machine's kernel modules"},
    "nextcloud-nginx-proxy": {"forbidden-path": _SOCKET},
    "ragflow": {"forbidden-path": _SOCKET},
    "sock-shop": {"forbidden-path": _SOCKET},
    "todo-watch": {"forbidden-path": _SOCKET},
}

_HEADING = re.compile(r"^### (.+)$", re.MULTILINE)
_RUN_WITH = re.compile(r"^- run with: (.+)$", re.MULTILINE)
_DIAGNOSTIC = re.compile(r"([^:\n]+):([1-9][0-9]*):[1-9][0-9]*: (error|warning|note): \S.* \[([a-z0-9-]+)\]")
_SUMMARY = re.compile(r"[0-9]+ (error|warning|note)s?(, [0-9]+ (error|warning|note)s?)*")
_WORKLOADS = ("Deployment", "StatefulSet", "Job")


def run_sets() -> dict[str, list[str]]:
    """Each project with the files that its README says to run it with."""
    readme = CORPUS / "README.md"
    if not readme.exists():
        return {}
    parts = _HEADING.split(readme.read_text())
    found = {name: _RUN_WITH.search(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    return {name: re.findall(r"-f ([^`\s]+)", line[1]) for name, line in found.items() if line}


RUN_SETS = run_sets()
each_project = pytest.mark.parametrize("name", sorted(RUN_SETS) or ["absent"])


def render(name: str, folder: Path) -> Outcome:
    files = [word for file in RUN_SETS[name] for word in ("-f", file)]
    return run_here("render", "-v", "--domain=example.com", *files, folder=folder)


def test_the_readme_names_every_project() -> None:
    """The list of what to run is not shorter than the corpus: a heading that changed its form would empty it."""
    folders = sorted(path.name for path in shared("corpus").iterdir() if path.is_dir())

    assert folders == sorted(RUN_SETS)
    assert all(RUN_SETS.values())


@each_project
def test_renders_or_is_refused_with_reasons(name: str) -> None:
    """The status is 0 or 3, every line has a place and a code, and a second run gives the same bytes."""
    outcome = render(name, shared("corpus", name))

    check(outcome)
    assert outcome == render(name, shared("corpus", name))


@each_project
def test_with_every_file_there_only_listed_reasons_refuse_it(name: str, tmp_path: Path) -> None:
    """With stand-ins for absent files a project is rendered, or refused for what is listed and nothing else."""
    outcome = render(name, complete_copy(name, tmp_path))

    check(outcome)
    assert set(REFUSED.get(name, {})) == {code for _, _, code in errors(outcome)}


@each_project
def test_without_the_refused_lines_each_service_yields_a_workload(name: str, tmp_path: Path) -> None:
    """Once the lines that an error names are gone everything is rendered, and an API server would take it."""
    copy = complete_copy(name, tmp_path)
    for file, line, _ in errors(render(name, copy)):
        remove_line(copy / file, line)

    outcome = render(name, copy)

    check(outcome)
    objects = list(yaml.load_all(outcome.stdout, Loader=yaml.CSafeLoader))
    workloads = {manifest["metadata"]["name"] for manifest in objects if manifest["kind"] in _WORKLOADS}
    assert {service.lower().replace("_", "-") for service in services_of(copy, RUN_SETS[name])} == workloads
    assert problems_of(objects) == []


@each_project
def test_an_api_server_would_take_the_objects(name: str) -> None:
    """Every object of a project as it lies there passes the API server's schemas and rules."""
    objects = list(yaml.load_all(render(name, shared("corpus", name)).stdout, Loader=yaml.CSafeLoader))

    assert problems_of(objects) == []


def check(outcome: Outcome) -> None:
    assert outcome.status in (0, 3)
    output = [line for line in outcome.stderr.splitlines() if not line.startswith(("  hint: ", "'platform init' "))]
    assert [line for line in output[:-1] if not _DIAGNOSTIC.fullmatch(line)] == []
    assert not output or _SUMMARY.fullmatch(output[-1])
    assert bool(errors(outcome)) == (outcome.status == 3)
    assert bool(outcome.stdout) == (outcome.status == 0)


def errors(outcome: Outcome) -> set[tuple[str, int, str]]:
    """File, line and code of each error."""
    found = (_DIAGNOSTIC.fullmatch(line) for line in outcome.stderr.splitlines())
    return {(line[1], int(line[2]), line[4]) for line in found if line and line[3] == "error"}


def remove_line(path: Path, number: int) -> None:
    lines = path.read_text().split("\n")
    path.write_text("\n".join("" if count == number else line for count, line in enumerate(lines, start=1)))


# what the files say, read without the project's own reader ------------------------------------------------------------


def services_of(folder: Path, files: list[str]) -> set[str]:
    """Every service that the files and what they include name."""
    names: set[str] = set()
    for file in files:
        path = folder / file
        definition = tree(path.read_text())
        names |= set(definition.get("services") or {})
        included = [row if isinstance(row, str) else row["path"] for row in definition.get("include") or []]
        names |= services_of(path.parent, included)
    return names


# stand-ins ------------------------------------------------------------------------------------------------------------


def complete_copy(name: str, folder: Path) -> Path:
    """Copy a project, a git work tree again, and create what the diagnostics miss, until nothing more can be."""
    copy = folder / name
    shutil.copytree(shared("corpus", name), copy, copy_function=shutil.copyfile)
    (copy / ".git").mkdir()
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    while True:
        loaded = load(Request(files=tuple(RUN_SETS[name]), folder=copy, domain="example.com"))
        missed = {d.code for d in loaded.report.sorted()} & {"missing-path", "unreadable-file"}
        absent = absent_files(loaded, copy) if missed else []
        for path in absent:
            make_stand_in(path)
        if not absent:
            return copy


def absent_files(loaded: Loaded, copy: Path) -> list[Path]:
    services = loaded.project.services.values()
    named = {mount.source for s in services if s.build is None for mount in s.mounts if mount.kind == HOST}
    named |= {file.path for service in services for file in service.env_files if file.required}
    paths = sorted(Path(path) for path in named)
    return [p for p in paths if not is_system_path(p) and p.is_relative_to(copy) and not p.exists()]


def make_stand_in(path: Path) -> None:
    """Make an empty file where the name has an ending, else an empty folder."""
    if path.suffix or path.name.startswith("."):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    else:
        path.mkdir(parents=True)
