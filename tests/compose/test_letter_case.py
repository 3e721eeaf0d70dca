"""Paths whose case is another one on the disk: they work on macOS, and not on Linux."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from composeplat.compose.load.build_inputs import check_builds
from composeplat.compose.load.letter_case import case_hint, other_case
from composeplat.diagnostics import Severity
from tests.conftest import Project


def test_another_case(tmp_path: Path) -> None:
    """The first part of a path that is missing counts; two names that fit are none."""
    (tmp_path / "Data" / "Sub").mkdir(parents=True)
    for name in ("one", "ONE", "stra\u00dfe"):
        (tmp_path / name).touch()

    found = [
        other_case(tmp_path / path) for path in ("data", "data/Sub", "Data/sub", "Data/Sub", "One", "gone", "STRASSE")
    ]
    assert found == ["Data", "Data", "Sub", "", "", "", "stra\u00dfe"]
    assert case_hint(tmp_path / "data") == "write 'Data', which is there: case matters on Linux"
    assert case_hint(tmp_path / "gone") == ""
    assert other_case("/") == ""


@pytest.mark.parametrize(
    ("files", "message", "hint"),
    [
        pytest.param(
            {"compose.yaml": "services: {web: {image: nginx, volumes: ['./Data:/a', './data:/b']}}", "data/x": ""},
            "services.web.volumes[0] mounts a host path that does not exist: './Data:/a'",
            "write 'data', which is there: case matters on Linux",
            id="a-host-volume",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {image: nginx, env_file: Web.env}}", "web.env": ""},
            "services.web.env_file names a file that does not exist: 'Web.env'",
            "write 'web.env', which is there: case matters on Linux",
            id="an-env-file",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {build: ./app}}", "App/Dockerfile": ""},
            "services.web.build names a folder that does not exist: './app'",
            "write 'App', which is there: case matters on Linux",
            id="a-build-context",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {build: .}}", "dockerfile": ""},
            "services.web.build names a folder whose Dockerfile does not exist",
            "rename 'dockerfile': case matters on Linux",
            id="a-dockerfile",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {build: {context: ., dockerfile: docker/Web}}}", "docker/web": ""},
            "services.web.build.dockerfile names a file that does not exist: 'docker/Web'",
            "write 'web', which is there: case matters on Linux",
            id="a-named-dockerfile",
        ),
    ],
)
def test_fixes(project: Project, files: Mapping[str, str], message: str, hint: str) -> None:
    """The fix names what is there, for each kind of path."""
    loaded = project(files).read().loaded
    builds = {name: service.build for name, service in loaded.project.services.items() if service.build}
    check_builds(builds, loaded.origins, loaded.report)

    assert [(found.message, found.hint) for found in loaded.report.at_least(Severity.ERROR)] == [(message, hint)]
