"""The version of this work, and the release before it."""

from __future__ import annotations

import re

import pytest

from composeplat import __version__
from tests.conftest import ROOT
from tests.stability.release_before import BEFORE, file_before, has_history

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
_UNRELEASED = "## [Unreleased]\n"


def test_version_is_after_the_release_before() -> None:
    """A release has a version of its own; the next version begins right after it."""
    assert _numbers(BEFORE.version) < _numbers(__version__)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


@pytest.mark.parametrize("page", ["docs/ci.md", "ci/github/action.yml"])
def test_pages_name_the_version(page: str) -> None:
    """The commands that users copy install this version."""
    text = (ROOT / page).read_text(encoding="utf-8")

    assert {__version__} == set(re.findall(r"composeplat==([\d.]+\d)", text))


@pytest.mark.skipif(not has_history(), reason=f"the history lacks release {BEFORE.version}: git fetch --unshallow")
def test_changelog_of_the_release_before() -> None:
    """Its section stays as it was released: a new line belongs under Unreleased, which is above it."""
    released = file_before("CHANGELOG.md").partition(_UNRELEASED)[2]
    unreleased, _, section = CHANGELOG.partition(f"## [{BEFORE.version}] - ")

    assert unreleased.partition(_UNRELEASED)[2].strip()
    assert released.splitlines() == section.splitlines()[1:]
