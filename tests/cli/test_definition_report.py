"""The line below the errors of a definition: how many of them `platform init` mends."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.in_process import run_here

DATA = "volumes: [./data:/data]"
HOW = ", in compose.platform.yaml; 'platform check' shows how\n"


@pytest.mark.parametrize("command", [("config",), ("render",), ("deploy", "--dry-run")], ids=" ".join)
@pytest.mark.parametrize(
    ("services", "which"),
    [
        pytest.param(f"web: {{image: x, {DATA}}}", "the error", id="one"),
        pytest.param(f"web: {{image: x, {DATA}}}, db: {{image: x, {DATA}}}", "all 2 errors", id="all"),
        pytest.param(f"web: {{image: x, {DATA}}}, db: {{}}", "1 of the 2 errors", id="some"),
        pytest.param("web: {extends: {service: db}}, db: {image: x}", "the error", id="by full mode"),
        pytest.param(f"web: {{extends: {{service: db}}}}, db: {{image: x, {DATA}}}", "all 2 errors", id="by both"),
        pytest.param("web: {extends: {service: none}}, db: {image: x}", "", id="not by full mode"),
        pytest.param("web: {}", "", id="none"),
        pytest.param(f"a: &a {{image: 'x:', {DATA}}}, b: {{<<: *a}}", "1 of the 2 errors", id="some of shared lines"),
        pytest.param(f"a: &a {{image: x, {DATA}}}, b: {{<<: *a}}", "the error", id="all of a shared line"),
        pytest.param("web: {image: x}, db: {image: x, container_name: x}", "", id="no error"),
    ],
)
def test_what_is_mended(project: Project, command: tuple[str, ...], services: str, which: str) -> None:
    """Commands that read a definition say it after the number of errors."""
    folder = project(f"services: {{{services}}}")
    outcome = run_here(*command, folder=folder.path)
    last = outcome.stderr.splitlines(keepends=True)[-1]

    assert last == f"'platform init' mends {which}{HOW}" if which else "init" not in outcome.stderr


def test_programs_get_messages_alone(project: Project) -> None:
    """With --json-diagnostics each line is a message."""
    folder = project(f"services: {{web: {{image: x, {DATA}}}}}")

    assert len(run_here("config", "--json-diagnostics", folder=folder.path).stderr.splitlines()) == 1
