"""The time after which a deploy looks for a newer image."""

from __future__ import annotations

import pytest

from tests.conftest import Project


@pytest.mark.parametrize(
    ("keys", "seconds"),
    [
        ("pull_policy: daily", 24 * 3600),
        ("pull_policy: weekly", 7 * 24 * 3600),
        ("pull_policy: every_12h", 12 * 3600),
        ("pull_policy: every_1w2d", 9 * 24 * 3600),
        ("pull_policy: refresh, pull_refresh_after: 90m", 90 * 60),
        ("pull_policy: always", None),
        ("pull_policy: missing", None),
        ("tty: true", None),
    ],
)
def test_pull_period(project: Project, keys: str, seconds: int | None) -> None:
    """A policy with a time has it in seconds; another one has none."""
    read = project(f"services: {{web: {{image: nginx, {keys}}}}}").read(full=True)

    assert read.messages == []
    assert read.plan is not None
    assert [service.pull_period_s for service in read.plan.services] == [seconds]


@pytest.mark.parametrize("keys", ["every_day", "sometimes", "refresh", "[daily]", "12h"])
def test_no_period(project: Project, keys: str) -> None:
    """A policy that can't be read is an error, and has no time."""
    read = project(f"services: {{web: {{image: nginx, pull_policy: {keys}}}}}").read(full=True)

    assert read.loaded.report.errors == 1
    assert read.loaded.project.services["web"].container.pull_period_s is None
