"""Real projects, moved in: what ``platform init`` alone makes of them.

The projects lie beside this one and are read there, as in ``test_corpus``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_corpus import RUN_SETS, complete_copy, each_project, errors
from tests.conftest import ROOT
from tests.in_process import run_here
from tests.schemas import checked

pytestmark = pytest.mark.shared

MENDED = {"host-data", "forbidden-path", "outside-project"}
NAME = "compose.platform.yaml"
#: The projects with keys that full mode honors, and which lose nothing by it.
IN_FULL_MODE = {
    "ac-elasticsearch-logstash-kibana",
    "ac-nginx-golang-postgres",
    "ac-react-express-mongodb",
    "nextcloud-nginx-proxy",
    "penpot",
    "ragflow",
    "sock-shop",
    "temporal",
    "voting-app",
}


class Moved:
    """A copy of a project, with stand-ins for the files that are not with it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.copy = complete_copy(name, folder)
        self.files = [word for file in RUN_SETS[name] for word in ("-f", str(self.copy / file))]
        self.folder = (self.copy / RUN_SETS[name][0]).parent

    def run(self, *args: str, after: bool = False) -> Any:
        added = ["-f", str(self.folder / NAME)] if after and (self.folder / NAME).exists() else []
        return run_here(*args, *self.files, *added, folder=self.folder)

    def check(self, *, after: bool = False) -> Any:
        return checked(json.loads(self.run("check", "--offline", "--json", after=after).stdout))


def codes_of(found: Any) -> set[str]:
    findings = [*found["findings"], *(finding for service in found["services"] for finding in service["findings"])]
    return {finding["code"] for finding in findings if finding["effect"] in ("lost", "cannot-run")}


def names_of(found: Any) -> set[str]:
    return {service["service"] for service in found["services"]}


def errors_but_contexts(found: Any) -> list[Any]:
    """The errors but those of build contexts, which the corpus does not have."""
    findings = [*found["findings"], *(finding for service in found["services"] for finding in service["findings"])]
    return [finding for finding in findings if finding["severity"] == "error" and ".build" not in finding["path"]]


def left_out(found: Any) -> set[str]:
    """The services of profiles, which Docker Compose does not start either."""
    services = found["services"]
    return {
        s["service"]
        for s in services
        for f in s["findings"]
        if any("!reset null" in line and s["service"] in line for line in f["fix"])
    }


@each_project
def test_after_init(name: str, tmp_path: Path) -> None:
    """After `init` alone a project is rendered, and nothing is left that it mends; another run adds nothing."""
    project = Moved(name, tmp_path)
    before = project.check()
    project.run("init", "--offline", "--yes").assert_success()
    rendered = project.run("render", "--domain=example.com", after=True).assert_success()
    after = project.check(after=True)

    assert errors(rendered) == set()
    assert codes_of(after) & MENDED == set()
    assert names_of(after) == names_of(before) - left_out(before)
    assert after["full"] == (name in IN_FULL_MODE)
    assert project.run("init", "--offline", "--yes").stdout == ""


@each_project
def test_losses_have_warnings(name: str, tmp_path: Path) -> None:
    """Without `init`, each loss is a warning or an error: it is shown without being asked for."""
    found = Moved(name, tmp_path).check()
    findings = [finding for service in found["services"] for finding in service["findings"]]

    assert [f for f in findings if f["effect"] in ("lost", "cannot-run") and f["severity"] == "note"] == []


def test_how_many_need_no_init(tmp_path: Path) -> None:
    """The page about moving in has the number of projects that have no error as they are."""
    valid = [name for name in RUN_SETS if not errors_but_contexts(Moved(name, tmp_path / name).check())]

    page = (ROOT / "docs" / "moving-in.md").read_text()
    assert f"Of {len(RUN_SETS)} public projects" in page
    assert f", {len(valid)} have no error as they are, and all {len(RUN_SETS)} have none after" in page
