"""Poll an environment and keep the latest snapshot; monitor whether the cluster answers; probe logs and ports.

Owns the one watcher that every wait shares: however many services wait, each object is listed once a round.
Must not judge a snapshot: :mod:`composeplat.cluster.conditions` does.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Self
from urllib.parse import quote

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.snapshot import Snapshot, is_ready_or_completed, scheduling_failure
from composeplat.names import ENVIRONMENT_LABEL
from composeplat.system.threads import start_thread

WORKLOADS = (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"))
#: Few environments have these, and not everyone may list them.
FURTHER_WORKLOADS = (("apps/v1", "DaemonSet"), ("batch/v1", "CronJob"))
FURTHER_KINDS = tuple(kind for _, kind in FURTHER_WORKLOADS)
_MIN_POLL_INTERVAL_S = 0.4
#: A slow cluster is polled less often.
_MAX_POLL_INTERVAL_S = 3.0
#: A stopped watcher may be waiting for a response that never comes.
_STOP_TIMEOUT_S = 0.3
_MAX_LOG_LINES = 20
#: Ages are kept for a few rounds, as their readers run at their own pace.
_ROUNDS_PER_CLEANUP = 4
#: The API of Karpenter, and the status of cluster-autoscaler.
_AUTOSCALERS = ("/apis/karpenter.sh", "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status")
_PING_INTERVAL_S = 2.0
_WARN_AFTER_S = 5.0
_MAX_SILENCE_S = 60.0


def environment_selector(environment: str) -> str:
    """Return the query of a list that selects the objects of an environment."""
    return f"?labelSelector={quote(f'{ENVIRONMENT_LABEL}={environment}')}"


class Watcher:
    """Takes snapshots of an environment, from the first use of :attr:`latest` until :meth:`stop`."""

    def __init__(self, access: Access, namespace: str, environment: str, kinds: Collection[str] = ()) -> None:
        """Make a watcher; ``kinds`` are those of the workloads, as some are listed only if there are any."""
        self.access = access
        self.namespace = namespace
        self._kinds = (*WORKLOADS, *(found for found in FURTHER_WORKLOADS if found[1] in kinds))
        self._selector = environment_selector(environment)
        self._first_seen: dict[str, float] = {}
        self._requested: set[str] = set()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._latest: Snapshot | None = None
        self._failure: Exception | None = None
        self._rounds = 0
        self._autoscaler: bool | None = None
        self._knows_autoscaler = False
        self.unreachable = ""
        """Why the last snapshot failed; empty if it did not."""
        self.unreachable_since = 0.0

    @property
    def latest(self) -> Snapshot | None:
        """The latest snapshot; None before the first. The first use starts the watcher."""
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = start_thread("watcher", self._run, self._fail)
        if self._failure is not None:
            raise self._failure
        return self._latest

    def _fail(self, error: Exception) -> None:
        self._failure = error

    @property
    def rounds(self) -> int:
        """The number of snapshots so far: a change shows in a later one only."""
        return self._rounds

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=_STOP_TIMEOUT_S)

    def _run(self) -> None:
        with Api(self.access) as api:
            while not self._ended.is_set():
                began = time.monotonic()
                try:
                    self._latest = self.take_snapshot(api)
                    self._rounds += 1
                    self.unreachable = ""
                except ApiError as error:
                    if not self.unreachable:
                        self.unreachable_since = began
                    self.unreachable = str(error)
                self._ended.wait(min(max(_MIN_POLL_INTERVAL_S, 2 * (time.monotonic() - began)), _MAX_POLL_INTERVAL_S))

    def take_snapshot(self, api: Api) -> Snapshot:
        workloads: dict[tuple[str, str], Any] = {}
        for version, kind in self._kinds:
            for item in self._items(api, version, kind):
                workloads[kind, item["metadata"]["name"]] = item
        replica_sets = self._items(api, "apps/v1", "ReplicaSet")
        pods = self._items(api, "v1", "Pod")
        troubled = not workloads or not all(map(is_ready_or_completed, pods)) or _lacks_pods(workloads)
        snapshot = Snapshot(workloads=workloads, replica_sets=replica_sets, pods=pods, age=self._age)
        if troubled:
            snapshot.claims = api.items(kind_path("v1", "PersistentVolumeClaim", self.namespace))
            snapshot.events = api.items(kind_path("v1", "Event", self.namespace))
        if any(scheduling_failure(pod) is not None for pod in pods):
            snapshot.has_autoscaler = self._has_autoscaler(api)
        self._drop_ages()
        return snapshot

    def _items(self, api: Api, version: str, kind: str) -> list[dict[str, Any]]:
        return api.items(kind_path(version, kind, self.namespace) + self._selector)

    def _has_autoscaler(self, api: Api) -> bool | None:
        """Return whether the cluster has an autoscaler; it is looked up once."""
        if not self._knows_autoscaler:
            self._autoscaler = find_autoscaler(api)
            self._knows_autoscaler = True
        return self._autoscaler

    def _age(self, condition: str) -> float:
        self._requested.add(condition)
        return time.monotonic() - self._first_seen.setdefault(condition, time.monotonic())

    def _drop_ages(self) -> None:
        """Drop the ages that nobody requested lately: their conditions have ended."""
        if self._rounds % _ROUNDS_PER_CLEANUP == _ROUNDS_PER_CLEANUP - 1:
            self._first_seen = {key: at for key, at in self._first_seen.items() if key in self._requested}
            self._requested = set()


class HealthMonitor:
    """Monitors whether a cluster answers, beside work that would wait for its answer without end.

    Use it in a ``with`` block, and call :meth:`check` now and then.
    """

    def __init__(self, access: Access, namespace: str, note: Callable[[str], None]) -> None:
        self.access = access
        # Reading an object needs the server's storage too; it need not exist.
        self._path = f"/api/v1/namespaces/{namespace}"
        self._note = note
        self._asked: float | None = None
        """When the first ping was sent that has no answer yet."""
        self._has_warned = False
        self._failure: Exception | None = None
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._ended.clear()
        self._asked, self._has_warned = None, False
        start_thread("health-monitor", self._run, self._fail)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _fail(self, error: Exception) -> None:
        self._failure = error

    @property
    def silence(self) -> float:
        """For how many seconds the cluster has not answered."""
        asked = self._asked
        return 0.0 if asked is None else time.monotonic() - asked

    def mark_silent(self) -> None:
        """Count the cluster as silent until its next answer: another request got none."""
        self._asked = self._asked or time.monotonic()

    def check(self) -> None:
        """Report a cluster that does not answer, and raise if it has been silent for too long."""
        if self._failure is not None:
            raise self._failure
        silence = self.silence
        if silence > _MAX_SILENCE_S:
            raise ApiError(
                0,
                f"the API server at {self.access.address} has not answered for {_MAX_SILENCE_S:.0f} s",
                "repair the cluster, then run this again: finished work is recorded",
            )
        if silence > _WARN_AFTER_S and not self._has_warned:
            self._has_warned = True
            most = f"{_MAX_SILENCE_S:.0f} s at most"
            self._note(f"the API server at {self.access.address} does not answer; waiting for it, {most}")
        elif self._has_warned and not silence:
            self._has_warned = False
            self._note("the API server answers again")

    def _run(self) -> None:
        with Api(self.access) as api:
            while not self._ended.wait(_PING_INTERVAL_S):
                self.mark_silent()
                if _answers(api, self._path):
                    self._asked = None


def _answers(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError as error:
        return 0 < error.status < http.client.INTERNAL_SERVER_ERROR
    return True


def find_autoscaler(api: Api) -> bool | None:
    """Return whether a cluster has an autoscaler, by the objects of each kind; None if they may not be read."""
    known = True
    for path in _AUTOSCALERS:
        try:
            api.get(path)
        except ApiError as error:
            known = known and error.status == http.client.NOT_FOUND
        else:
            return True
    return False if known else None


def _lacks_pods(workloads: Mapping[tuple[str, str], Any]) -> bool:
    return any(_lacks_pod(kind, item) for (kind, _), item in workloads.items() if kind not in ("Job", "CronJob"))


def _lacks_pod(kind: str, workload: Any) -> bool:
    status = workload.get("status", {})
    if kind == "DaemonSet":
        return bool(status.get("desiredNumberScheduled", 0) > status.get("numberReady", 0))
    return bool(workload["spec"].get("replicas", 1) > status.get("readyReplicas", 0))


def read_last_lines(api: Api, namespace: str, pod: str, container: str, *, previous: bool) -> list[str]:
    """Read the last lines of a container's log; empty without a log."""
    path = f"{kind_path('v1', 'Pod', namespace)}/{pod}/log?container={container}&tailLines={_MAX_LOG_LINES}"
    for query in ([f"{path}&previous=true"] if previous else []) + [path]:
        try:
            lines = api.text(query).splitlines()
        except ApiError:
            continue
        # The kubelet's message for a container that it has removed comes in place of the log.
        if lines and not lines[0].startswith("unable to retrieve container logs"):
            return lines
    return []


def probe_port(api: Api, namespace: str, pod: str, port: int) -> bool | None:
    """Return whether something listens on a pod's port; None if that can't be found out.

    The API server proxies an HTTP request to it: any response, even of another protocol, means that something listens.
    """
    try:
        api.text(f"{kind_path('v1', 'Pod', namespace)}/{pod}:{port}/proxy/")
    except ApiError as error:
        text = str(error).lower()
        if error.status in (http.client.FORBIDDEN, http.client.UNAUTHORIZED) and "pods/proxy" in text:
            return None
        if error.status == 0 or "connection refused" in text:
            return False
        return not any(word in text for word in ("no route to host", "i/o timeout", "timed out", "no such host"))
    return True
