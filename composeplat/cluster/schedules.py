"""The runs of a service with a schedule: those that its Jobs show, and the next ones.

Owns how a run is described. The CronJob keeps the last few Jobs, so the history is as long as that.
Must not know the API: a snapshot comes in.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from composeplat.cluster.cause import Cause
from composeplat.cluster.conditions import WorkloadState, workload_status
from composeplat.cluster.snapshot import Object, Snapshot, last_termination, owner_uid
from composeplat.compose.cron import NEVER, parse_cron
from composeplat.compose.values import BadValue
from composeplat.system.records import record

#: The annotation of a Job that a person started from a CronJob, as kubectl sets it too.
MANUAL_ANNOTATION, MANUAL = "cronjob.kubernetes.io/instantiate", "manual"
_MAX_NEXT = 3
#: A machine without files of time zones, such as a small container, does not know these by name either.
_OF_UTC = ("Etc/UTC", "UTC")
_RESULTS = {
    WorkloadState.COMPLETED: "completed",
    WorkloadState.FAILED: "failed",
    WorkloadState.STARTED: "running",
}


@record(kw_only=True)
class ScheduledRun:
    job: str
    started: str
    """As the cluster writes it; empty before."""
    ended: str
    """Empty while it lasts."""
    result: str
    exit_status: int | None
    """Of its last pod; None if it has not ended, or if the pod is gone."""
    is_manual: bool
    cause: Cause | None = None
    """Why it failed."""


@record(kw_only=True)
class ScheduleStatus:
    cron: str
    """Empty if only a person starts a run."""
    timezone: str
    runs: tuple[ScheduledRun, ...]
    """Latest first."""
    next_runs: tuple[str, ...]
    """Empty while it sleeps."""

    @property
    def last_ended(self) -> ScheduledRun | None:
        return next((run for run in self.runs if run.ended), None)


def schedule_status(cron_job: Object, snapshot: Snapshot, now: datetime) -> ScheduleStatus:
    spec = cron_job["spec"]
    cron, timezone = str(spec.get("schedule", "")), str(spec.get("timeZone") or _OF_UTC[0])
    cron = "" if cron == NEVER else cron
    moments = [] if spec.get("suspend") else next_moments(cron, timezone, now, _MAX_NEXT)
    return ScheduleStatus(
        cron=cron,
        timezone=timezone,
        runs=tuple(_run(job, snapshot) for job in _jobs(cron_job, snapshot)),
        next_runs=tuple(f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in moments),
    )


def next_moments(text: str, timezone: str, after: datetime, count: int) -> list[datetime]:
    """Return the next moments of an expression; none if this machine does not know the zone."""
    try:
        zone = UTC if timezone in _OF_UTC else ZoneInfo(timezone)
        return list(islice(parse_cron(text).moments(after, zone), count))
    except (BadValue, ValueError, OSError, KeyError):
        return []


def _jobs(cron_job: Object, snapshot: Snapshot) -> list[Object]:
    """Return the Jobs of a CronJob, latest first."""
    uid = cron_job["metadata"]["uid"]
    jobs = [item for (kind, _), item in snapshot.workloads.items() if kind == "Job" and owner_uid(item) == uid]
    return sorted(jobs, key=lambda job: str(job["metadata"].get("creationTimestamp", "")), reverse=True)


def _run(job: Object, snapshot: Snapshot) -> ScheduledRun:
    head, status = job["metadata"], job.get("status", {})
    found = workload_status("Job", head["name"], snapshot)
    has_ended = found.state in (WorkloadState.COMPLETED, WorkloadState.FAILED)
    return ScheduledRun(
        job=str(head["name"]),
        started=str(status.get("startTime") or ""),
        ended=_end(status) if has_ended else "",
        result=_RESULTS.get(found.state, "starting"),
        exit_status=_exit_status(found.pods, snapshot) if has_ended else None,
        is_manual=(head.get("annotations") or {}).get(MANUAL_ANNOTATION) == MANUAL,
        cause=found.cause,
    )


def _end(status: Object) -> str:
    """Return when a Job ended; a failed one has the time in its condition alone."""
    times = [
        str(c.get("lastTransitionTime") or "") for c in status.get("conditions") or [] if c.get("status") == "True"
    ]
    return str(status.get("completionTime") or max(times, default=""))


def _exit_status(names: tuple[str, ...], snapshot: Snapshot) -> int | None:
    pods = [pod for pod in snapshot.pods if pod["metadata"]["name"] in names]
    last = max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), default=None)
    end = last_termination(last) if last else None
    return None if end is None else int(end.get("exitCode", 0))
