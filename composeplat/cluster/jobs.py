"""Why a Job failed: how its last try ended, how many tries there were, and whether another follows.

Owns too which tries were ended from outside, as by the drain of a node: that is no failure of the program.
Must not know the API: objects of a snapshot come in, a cause goes out.
Apart from :mod:`~composeplat.cluster.failure_causes`, as a Job's failed pods stay, each with its own end and log.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from composeplat.cluster.cause import Cause
from composeplat.cluster.failure_causes import describe_termination, fill_failure_cause
from composeplat.cluster.snapshot import Object, condition_of, last_termination, main_container, parse_time
from composeplat.codes.causes import CauseCode

_DEFAULT_BACKOFF_LIMIT = 6
_RERUN = "run it again with --rerun-jobs"
#: The reasons of the condition ``DisruptionTarget``.
_DISRUPTIONS = {
    "EvictionByEvictionAPI": "was evicted from its node",
    "DeletionByTaintManager": "was evicted from its node, for a taint",
    "PreemptionByScheduler": "was evicted from its node, for a pod of higher priority",
    "TerminationByKubelet": "was ended by its node",
    "DeletionByPodGC": "was lost with its node",
}


def job_failure_cause(job: Object, condition: Object, pods: list[Object]) -> Cause:
    """Return why a Job failed for good."""
    last = _newest(_failed_alone(pods) or _failed(pods) or pods)
    tries = max(int(job.get("status", {}).get("failed") or 0), len(pods))
    after = f", after {tries} tries" if tries > 1 else ""
    disruption = _disruption(last) if last is not None else ""
    if condition.get("reason") == "DeadlineExceeded":
        message = "took longer than it may"
        end = Cause(code=CauseCode.JOB_FAILED, message=message, origin=("command",), logs=True)
    elif disruption:
        end = Cause(code=CauseCode.JOB_FAILED, message=f"{disruption}{after}", hint=_RERUN, logs=True)
    else:
        end = describe_attempt(last, CauseCode.JOB_FAILED)
        end = replace(end, message=f"{end.message}{after}")
    if last is None:
        message = f"{end.message}; its pods are gone, and their logs with them"
        return replace(end, message=message, logs=False, hint=_RERUN)
    return _of_pod(end, last)


def job_retry_cause(job: Object, pods: list[Object]) -> Cause | None:
    """Return why the last try of a Job failed that tries again; None if no try failed, or none is left."""
    ended = _failed(pods)
    last = _newest(_failed_alone(pods))
    tries = int(job["spec"].get("backoffLimit", _DEFAULT_BACKOFF_LIMIT)) + 1
    if last is None or len(ended) >= tries:
        return None
    number = sum(_created(pod) <= _created(last) for pod in ended)
    end = describe_attempt(last, CauseCode.JOB_RETRIED)
    message = f"{end.message} in try {number} of {tries}, and tries again"
    return _of_pod(replace(end, message=message), last)


def describe_disruption(pods: list[Object]) -> str:
    """Describe what ended, or ends, the newest of some pods from outside; empty if nothing did."""
    pod = _newest(pods)
    return _disruption(pod) if pod is not None else ""


def _disruption(pod: Object) -> str:
    if not (_failed([pod]) or "deletionTimestamp" in pod["metadata"]):
        return ""
    found = condition_of(pod, "DisruptionTarget")
    if found is None:
        return "was deleted while it ran" if _ran_when_deleted(pod) else ""
    text = pod["status"].get("message")
    return f"{_DISRUPTIONS.get(str(found.get('reason')), 'was ended from outside')}{f': {text}' if text else ''}"


def _ran_when_deleted(pod: Object) -> bool:
    """Whether a pod is deleted that had not ended by itself before; its deletion lasts as long as it may take."""
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata:
        return False
    grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
    end = last_termination(pod) or {}
    requested = parse_time(metadata["deletionTimestamp"]) - grace
    return not end.get("finishedAt") or parse_time(end["finishedAt"]) >= requested


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


def _failed_alone(pods: list[Object]) -> list[Object]:
    """Return the pods that failed, without those that something ended from outside."""
    return [pod for pod in _failed(pods) if not _disruption(pod)]


def _newest(pods: list[Object]) -> Object | None:
    return max(pods, key=_created, default=None)


def _created(pod: Object) -> str:
    return str(pod["metadata"].get("creationTimestamp", ""))
