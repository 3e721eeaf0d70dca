"""The schedules of services as ``platform status`` shows them: a line for people, fields for programs."""

from __future__ import annotations

from datetime import datetime

from composeplat.cluster.schedules import ScheduledRun, ScheduleStatus
from composeplat.cluster.status import age
from composeplat.diagnostics import printable


def schedule_line(service: str, schedule: ScheduleStatus, now: datetime) -> str:
    """Describe a schedule in a line: its expression, the last run and the next one."""
    when = f"{schedule.cron} ({schedule.timezone})" if schedule.cron else "started by platform run"
    parts = [when, _last(schedule, now)]
    if schedule.next_runs:
        # How long until then is how old now is then.
        parts.append(f"next in {age(now.isoformat(), datetime.fromisoformat(schedule.next_runs[0]))}")
    return printable(f"  {service}: {', '.join(parts)}").replace("\n", " ")


def _last(schedule: ScheduleStatus, now: datetime) -> str:
    if not schedule.runs:
        return "no run yet"
    run = schedule.runs[0]
    moment = run.ended or run.started
    when = f" {age(moment, now)} ago" if run.ended else f" for {age(moment, now)}" if moment else ""
    return f"last run {run.result}{when}"


def schedule_fields(schedule: ScheduleStatus) -> dict[str, object]:
    return {
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "runs": [_run_fields(run) for run in schedule.runs],
        "next_runs": list(schedule.next_runs),
    }


def _run_fields(run: ScheduledRun) -> dict[str, object]:
    return {
        "job": run.job,
        "started": run.started,
        "ended": run.ended,
        "result": run.result,
        "exit_status": run.exit_status,
        "manual": run.is_manual,
    }
