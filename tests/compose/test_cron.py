"""Cron expressions: which moments they mean, and that nothing else is accepted."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime

import pytest

from composeplat.cluster.schedules import next_moments
from composeplat.compose.cron import parse_cron
from composeplat.compose.values import BadValue

#: A Thursday.
NOW = datetime(2026, 1, 1, 12, 30, 20, tzinfo=UTC)


def moments(text: str, zone: str = "UTC", *, count: int = 2, now: datetime = NOW) -> list[str]:
    return [f"{moment:%Y-%m-%d %H:%M}" for moment in next_moments(text, zone, now, count)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*/20 * * * *", ["2026-01-01 12:40", "2026-01-01 13:00"]),
        ("30 12 * * *", ["2026-01-02 12:30", "2026-01-03 12:30"]),
        ("5/25 1-3/2 * * *", ["2026-01-02 01:05", "2026-01-02 01:30"]),
        ("0 0 29 feb *", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 0 * * MON,wed", ["2026-01-05 00:00", "2026-01-07 00:00"]),
        ("0 0 * * 7", ["2026-01-04 00:00", "2026-01-11 00:00"]),
        ("@monthly", ["2026-02-01 00:00", "2026-03-01 00:00"]),
        ("@weekly", ["2026-01-04 00:00", "2026-01-11 00:00"]),
    ],
)
def test_moments(text: str, expected: list[str]) -> None:
    assert moments(text) == expected


def test_names() -> None:
    """Months, weekdays and whole expressions have names."""
    months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    assert [moments(f"0 0 1 {name} *") for name in months] == [moments(f"0 0 1 {month} *") for month in range(1, 13)]
    weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    assert [moments(f"0 0 * * {name}") for name in weekdays] == [moments(f"0 0 * * {day}") for day in range(7)]
    assert moments("@yearly") == moments("@annually") == ["2027-01-01 00:00", "2028-01-01 00:00"]
    assert moments("@midnight") == moments("@daily") == ["2026-01-02 00:00", "2026-01-03 00:00"]
    assert moments("@hourly") == ["2026-01-01 13:00", "2026-01-01 14:00"]


def test_a_day_of_the_month_or_of_the_week() -> None:
    """With both, one of them is enough; with a `*` in one of them, the other decides."""
    assert moments("0 0 13 * fri", count=4) == [
        "2026-01-02 00:00",
        "2026-01-09 00:00",
        "2026-01-13 00:00",
        "2026-01-16 00:00",
    ]
    assert moments("0 0 13 * ?") == ["2026-01-13 00:00", "2026-02-13 00:00"]
    assert moments("0 0 */10 * fri") == ["2026-01-02 00:00", "2026-01-09 00:00"]


def test_time_zones() -> None:
    """A moment is one of the zone; an hour that its clock skips has none, one that it repeats two."""
    assert moments("0 3 * * *", "Europe/Berlin") == ["2026-01-02 02:00", "2026-01-03 02:00"]
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert moments("30 2 * * *", "Europe/Berlin", now=spring) == ["2026-03-30 00:30", "2026-03-31 00:30"]
    autumn = datetime(2026, 10, 24, 23, 45, tzinfo=UTC)
    assert moments("30 2 * * *", "Europe/Berlin", count=3, now=autumn) == [
        "2026-10-25 00:30",
        "2026-10-25 01:30",
        "2026-10-26 01:30",
    ]
    assert moments("*/30 2 * * *", "Europe/Berlin", count=4, now=autumn) == [
        "2026-10-25 00:00",
        "2026-10-25 00:30",
        "2026-10-25 01:00",
        "2026-10-25 01:30",
    ]
    assert moments("@daily", "Europe/Nowhere") == []
    assert moments("@daily", "../../etc/passwd") == []


@pytest.mark.parametrize(
    "text",
    ["", "daily", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8",
     "*/x * * * *", "*/0 * * * *", "3-1 * * * *", "1-2-3 * * * *", "-1 * * * *", "1, * * * *", "mon * * * *",
     "0 0 30 2 *", "@every 5m", "CRON_TZ=UTC @daily", "*-5 * * * *", f"{'1,' * 200}1 * * * *", "\u0661 * * * *"],
)  # fmt: skip
def test_what_is_none(text: str) -> None:
    """The API server would refuse each, or never start it."""
    with pytest.raises(BadValue, match="must be a cron expression"):
        parse_cron(text)


def test_a_machine_without_time_zones() -> None:
    """A small container has no files of them: UTC is known all the same."""
    zoneinfo.ZoneInfo.clear_cache()
    zoneinfo.reset_tzpath([])
    try:
        assert moments("@daily", "Etc/UTC", count=1) == moments("@daily", "UTC", count=1) == ["2026-01-02 00:00"]
    finally:
        zoneinfo.reset_tzpath()
