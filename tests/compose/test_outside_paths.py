"""Paths outside the project that the sync of `platform up` would open."""

from __future__ import annotations

import pytest

from composeplat.compose.load.outside_paths import check_synced_inside
from composeplat.diagnostics import Report
from composeplat.system.project_root import ProjectRoot
from tests.conftest import Project


@pytest.mark.parametrize(
    ("source", "is_refused"),
    [
        pytest.param("./src", False, id="inside"),
        pytest.param("../other", True, id="outside"),
        pytest.param("/var/run/app.sock", False, id="a system path is never synced"),
    ],
)
def test_synced_paths(project: Project, source: str, *, is_refused: bool) -> None:
    """A host path outside the project is refused at its place; one of the system is not synced at all."""
    folder = project({"compose.yaml": f"services: {{web: {{image: nginx, volumes: ['{source}:/app']}}}}", "src/a": ""})
    loaded = folder.read().loaded
    report = Report()

    check_synced_inside(
        loaded.project, loaded.project.services["web"], loaded.origins, report, ProjectRoot(str(folder.path))
    )

    assert [(diagnostic.span.line, diagnostic.span.column, diagnostic.code) for diagnostic in report.sorted()] == (
        [(1, 42, "outside-project")] if is_refused else []
    )
