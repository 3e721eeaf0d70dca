"""Let controllers create pods again at once that were refused before this run, by a quota or a policy.

Owns how a controller is made to try. It tries by itself after pauses of up to a quarter of an hour, and a workload that
is deployed unchanged is no reason for it: the deploy would report the old refusal although the quota was raised.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.refused_pods import refused_owners
from composeplat.cluster.watching import FURTHER_WORKLOADS, OF_WORKLOADS, WORKLOADS, Watcher
from composeplat.engine.stack import Stack
from composeplat.names import LABEL_PREFIX
from composeplat.plan.desired import Plan

_VERSIONS = {kind: version for version, kind in (*WORKLOADS, *FURTHER_WORKLOADS, *OF_WORKLOADS)}
_ANNOTATION = f"{LABEL_PREFIX}/tried-again-at"


def retry_refused(stack: Stack, api: Api, plan: Plan) -> None:
    """Change an annotation of each owner of refused pods, which makes its controller look at it."""
    watcher = Watcher(stack.target.access, plan.namespace, plan.environment, plan.workload_kinds)
    change = {"metadata": {"annotations": {_ANNOTATION: datetime.now(UTC).isoformat(timespec="seconds")}}}
    for kind, name in refused_owners(watcher.take_snapshot(api)):
        # Without the right to change ReplicaSets the controller tries by itself.
        with contextlib.suppress(ApiError):
            api.patch(f"{kind_path(_VERSIONS[kind], kind, plan.namespace)}/{name}", change)
