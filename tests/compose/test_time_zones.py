"""The names of time zones, which a definition may give a schedule."""

from __future__ import annotations

import zoneinfo
from pathlib import Path

import pytest

from composeplat.compose.time_zones import is_time_zone, time_zones
from tests.conftest import Project


@pytest.mark.parametrize("name", ["Etc/UTC", "UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "GMT+0"])
def test_names(name: str) -> None:
    """A name is known with its region, which may have parts, and some without."""
    assert is_time_zone(name)
    assert name in time_zones()


@pytest.mark.parametrize("name", ["", "Europe", "Berlin", "Europe/", "/Berlin", "Europe/Berlin Paris", "Mars/Olympus"])
def test_other_texts(name: str) -> None:
    """A region or a place alone is no name."""
    assert not is_time_zone(name)


def test_a_zone_that_is_newer_than_the_list(tmp_path: Path) -> None:
    """What this machine knows is a zone too."""
    source = next(path for root in zoneinfo.TZPATH if (path := Path(root) / "UTC").exists())
    (tmp_path / "Moon").mkdir()
    (tmp_path / "Moon" / "Tycho").write_bytes(source.read_bytes())
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(tmp_path)])
    try:
        assert is_time_zone("Moon/Tycho")
        assert not is_time_zone("Moon/Copernicus")
    finally:
        zoneinfo.reset_tzpath(before)


def test_a_message_suggests_a_name(project: Project) -> None:
    """A misspelled name gets the nearest one; a value that comes from a variable is not quoted there."""
    service = "  {}: {{image: busybox, x-schedule: {{cron: '@daily', timezone: {}}}}}\n"
    text = "services:\n" + service.format("a", "Europe/Berln") + service.format("b", "'${ZONE}'")

    read = project(text, ZONE="Europe/Berln").read(full=True)

    assert [found.hint for found in read.loaded.report.sorted()] == ["did you mean 'Europe/Berlin'?", ""]
