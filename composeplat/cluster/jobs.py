"""Why a Job failed: how its last try ended, how many tries there were, and whether another follows.

Must not know the API: objects of a snapshot come in, a cause goes out.
Apart from :mod:`~composeplat.cluster.failure_causes`, as a Job's failed pods stay, each with its own end and log.
"""

from __future__ import annotations

from dataclasses import replace

from composeplat.cluster.cause import Cause
from composeplat.cluster.failure_causes import describe_termination, fill_failure_cause
from composeplat.cluster.snapshot import Object, last_termination, main_container
from composeplat.codes.causes import CauseCode

_DEFAULT_BACKOFF_LIMIT = 6


def job_failure_cause(job: Object, condition: Object, pods: list[Object]) -> Cause:
    """Return why a Job failed for good."""
    last = _newest(_failed(pods) or pods)
    tries = max(int(job.get("status", {}).get("failed") or 0), len(pods))
    after = f", after {tries} tries" if tries > 1 else ""
    if condition.get("reason") == "DeadlineExceeded":
        message = "took longer than it may"
        end = Cause(code=CauseCode.JOB_FAILED, message=message, origin=("command",), logs=True)
    else:
        end = describe_attempt(last, CauseCode.JOB_FAILED)
        end = replace(end, message=f"{end.message}{after}")
    if last is None:
        message = f"{end.message}; its pods are gone, and their logs with them"
        return replace(end, message=message, logs=False, hint="run it again with --rerun-jobs")
    return _of_pod(end, last)


def job_retry_cause(job: Object, pods: list[Object]) -> Cause | None:
    """Return why the last try of a Job failed that tries again; None if no try failed, or none is left."""
    failed = _failed(pods)
    last = _newest(failed)
    tries = int(job["spec"].get("backoffLimit", _DEFAULT_BACKOFF_LIMIT)) + 1
    if last is None or len(failed) >= tries:
        return None
    end = describe_attempt(last, CauseCode.JOB_RETRIED)
    message = f"{end.message} in try {len(failed)} of {tries}, and tries again"
    return _of_pod(replace(end, message=message), last)


def describe_attempt(pod: Object | None, code: CauseCode) -> Cause:
    """Describe how a try ended: its container with an exit status, or its pod without one."""
    unfilled = fill_failure_cause(pod) if pod is not None else None
    if unfilled is not None:
        return replace(unfilled, code=code)
    end = last_termination(pod) if pod is not None else None
    if end is not None:
        return describe_termination(end, "failed", code)
    status = pod.get("status", {}) if pod is not None else {}
    reason = f": {status['reason']}: {status.get('message') or 'no message'}" if status.get("reason") else ""
    return Cause(code=code, message=f"failed{reason}", origin=("command",), logs=True)


def _of_pod(end: Cause, pod: Object) -> Cause:
    return replace(end, pod=pod["metadata"]["name"], container=end.container or main_container(pod))


def _failed(pods: list[Object]) -> list[Object]:
    return [pod for pod in pods if pod.get("status", {}).get("phase") == "Failed"]


def _newest(pods: list[Object]) -> Object | None:
    return max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), default=None)
