"""The causes of a service's failure.

Owns their names, which the JSON output has: scripts match on them, so renaming one breaks users.
"""

from __future__ import annotations

from enum import StrEnum


class CauseCode(StrEnum):
    """The causes of a service's failure, as the JSON output names them."""

    BUILD = "build"
    CRASH_LOOP = "crash-loop"
    DELETED = "deleted"
    """Someone else has deleted the workload during the deploy."""
    DEPENDENCY = "dependency"
    """Another service failed, and this one depends on it."""
    IMAGE_NOT_PULLED = "image-not-pulled"
    JOB_FAILED = "job-failed"
    JOB_RETRIED = "job-retried"
    NOT_STARTED = "not-started"
    OVER_QUOTA = "over-quota"
    POD_REFUSED = "pod-refused"
    REFUSED = "refused"
    """Pulumi or the API server refused an object."""
    TIMEOUT = "timeout"
    UNHEALTHY = "unhealthy"
    UNSCHEDULABLE = "unschedulable"
    VOLUME_NOT_BOUND = "volume-not-bound"
    VOLUME_NOT_FILLED = "volume-not-filled"
    WRONG_PORT = "wrong-port"
