"""Pods that an earlier deploy could not start, for a cause outside of the definition: they are tried again at once.

Owns which pods these are, and how a controller or a node is made to try. Both try by themselves only after pauses: a
controller whose pods a quota or policy refuses waits for up to a quarter of an hour, and a node that did not get an
image for up to five minutes. Until then a deploy of an unchanged workload would fail with the answer of before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from datetime import UTC, datetime

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.pull_retries import replace_pod, waits_to_pull
from composeplat.cluster.refused_pods import refused_owners
from composeplat.cluster.snapshot import Snapshot, services_of
from composeplat.cluster.watching import FURTHER_WORKLOADS, OF_WORKLOADS, WORKLOADS, Watcher
from composeplat.engine.preflight import belongs_to
from composeplat.engine.stack import Stack
from composeplat.names import LABEL_PREFIX
from composeplat.plan.desired import Plan

_VERSIONS = {kind: version for version, kind in (*WORKLOADS, *FURTHER_WORKLOADS, *OF_WORKLOADS)}
_ANNOTATION = f"{LABEL_PREFIX}/tried-again-at"


def retry_pods(stack: Stack, api: Api, plan: Plan, chosen: Collection[str]) -> None:
    """Let the pods of some services be tried again; what this user may not change waits as long as it does anyway."""
    names = {service.cluster_name: service.name for service in plan.services if service.name in chosen}
    watcher = Watcher(stack.target.access, plan.namespace, plan.environment, plan.workload_kinds)
    snapshot = watcher.take_snapshot(api)
    _retry_refused(api, plan.namespace, snapshot)
    own = [pod for pod in snapshot.pods if belongs_to(pod, plan.environment)]
    waiting = [pod for pod in own if waits_to_pull(pod) and not names.keys().isdisjoint(services_of(pod))]
    deleted = [pod for pod in waiting if replace_pod(api, pod)]
    for name in dict.fromkeys(names[service] for pod in deleted for service in services_of(pod) if service in names):
        stack.note(f"{name}: its image could not be pulled before, and is asked for again")


def _retry_refused(api: Api, namespace: str, snapshot: Snapshot) -> None:
    """Change an annotation of each owner of refused pods, which makes its controller look at it."""
    change = {"metadata": {"annotations": {_ANNOTATION: datetime.now(UTC).isoformat(timespec="seconds")}}}
    for kind, name in refused_owners(snapshot):
        with contextlib.suppress(ApiError):
            api.patch(f"{kind_path(_VERSIONS[kind], kind, namespace)}/{name}", change)
