"""Pods that do nothing but wait for an image that could not be pulled: a new one asks for it at once.

Owns which pods these are, and their replacement: a node that did not get an image asks again only after pauses of up to
five minutes.
Must not know services, nor when a retry is wanted: a deploy and a program decide that.
"""

from __future__ import annotations

import contextlib

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import Object, container_statuses, init_container_statuses

_FAILED_PULLS = {"ErrImagePull", "ImagePullBackOff"}


def waits_to_pull(pod: Object) -> bool:
    """Whether a pod does no work but to wait for an image; not that of a Job, as its end counts as a failed try."""
    metadata = pod["metadata"]
    owners = {owner["kind"] for owner in metadata.get("ownerReferences") or []}
    states = [status.get("state") or {} for status in (*init_container_statuses(pod), *container_statuses(pod))]
    reasons = {(state.get("waiting") or {}).get("reason") for state in states}
    is_replaced = "deletionTimestamp" not in metadata and bool(owners) and "Job" not in owners
    return is_replaced and bool(reasons & _FAILED_PULLS) and not any("running" in state for state in states)


def replace_pod(api: Api, pod: Object) -> bool:
    """Delete a pod, and return whether it was: that may not be allowed, or another one has its name by now."""
    metadata = pod["metadata"]
    with contextlib.suppress(ApiError):
        api.delete(f"{kind_path('v1', 'Pod', metadata['namespace'])}/{metadata['name']}", uid=metadata["uid"])
        return True
    return False
