"""The runs of a CronJob, as its row shows them."""

from __future__ import annotations

from datetime import UTC, datetime

from composeplat.cli.schedules import schedule_fields, schedule_line
from composeplat.cluster.snapshot import Object
from composeplat.cluster.status import ServiceQuery, StatusRow, status_rows
from tests.cluster.objects import MOMENT, cron_job, ended, job, pod, snapshot

NOW = datetime(2025, 6, 1, 12, 10, tzinfo=UTC)
BACKUP = ServiceQuery(name="backup", cluster_name="backup", kind="CronJob")


def row_of(*held: Object) -> StatusRow:
    (row,) = status_rows([BACKUP], snapshot(*held), NOW)
    return row


def line_of(row: StatusRow) -> str:
    assert row.schedule is not None
    return schedule_line(row.service, row.schedule, NOW)


def run_of(owner: Object, name: str, condition: str = "", *, created: str = MOMENT, manual: bool = False) -> Object:
    made = job(name, condition=condition)
    head = {**made["metadata"], "creationTimestamp": created}
    head["ownerReferences"] = [{"uid": owner["metadata"]["uid"], "controller": True}]
    if manual:
        head["annotations"] = {"cronjob.kubernetes.io/instantiate": "manual"}
    conditions = [{**found, "lastTransitionTime": MOMENT} for found in made["status"].get("conditions", [])]
    return {**made, "metadata": head, "status": {"startTime": created, "conditions": conditions}}


def test_no_run_yet() -> None:
    """A schedule that has not run is scheduled, and its next runs are known."""
    row = row_of(cron_job("*/15 * * * *"))
    assert (row.state, row.problem, row.ready, row.desired) == ("scheduled", "", 0, 0)
    assert row.schedule is not None
    times = ("2025-06-01T12:15:00Z", "2025-06-01T12:30:00Z", "2025-06-01T12:45:00Z")
    assert row.schedule.next_runs == times
    assert line_of(row) == "  backup: */15 * * * * (Etc/UTC), no run yet, next in 5m"


def test_asleep() -> None:
    """While it sleeps, no run is next."""
    row = row_of(cron_job("@daily", suspended=True))
    assert row.state == "asleep"
    assert line_of(row) == "  backup: @daily (Etc/UTC), no run yet"


def test_the_last_run_failed() -> None:
    """The latest run comes first; the reason of a failure is a problem, until a later run completes."""
    owner = cron_job("@daily")
    failed = run_of(owner, "backup-2", "Failed", created="2025-06-01T12:00:01Z", manual=True)
    before = run_of(owner, "backup-1", "Complete")
    row = row_of(owner, before, failed, pod(failed, state=ended(3)))
    assert row.problem == "its last run failed with exit status 3"
    assert row.schedule is not None
    runs = schedule_fields(row.schedule)["runs"]
    assert runs == [
        {
            "job": "backup-2",
            "started": "2025-06-01T12:00:01Z",
            "ended": MOMENT,
            "result": "failed",
            "exit_status": 3,
            "manual": True,
        },
        {
            "job": "backup-1",
            "started": MOMENT,
            "ended": MOMENT,
            "result": "completed",
            "exit_status": None,
            "manual": False,
        },
    ]
    assert "last run failed 10m ago" in line_of(row)
    assert row_of(owner, failed, run_of(owner, "backup-3", "Complete", created="2025-06-01T12:01:00Z")).problem == ""


def test_a_run_lasts() -> None:
    """A run that lasts is shown with its time; the end before it still counts."""
    owner = cron_job("@daily")
    failed = run_of(owner, "backup-1", "Failed")
    second = run_of(owner, "backup-2", created="2025-06-01T12:05:00Z")
    row = row_of(owner, failed, second)
    assert "last run starting for 5m" in line_of(row)
    assert row.problem.startswith("its last run failed")


def test_absent() -> None:
    """A schedule that is not deployed has none."""
    row = row_of()
    assert (row.state, row.schedule) == ("absent", None)
