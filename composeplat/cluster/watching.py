"""Keep the latest snapshot of an environment, by lists and watches.

Owns the one watcher that every wait shares: however many services wait, each kind is watched once.
Must not judge a snapshot: :mod:`composeplat.cluster.conditions` does.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.object_cache import ObjectCache
from composeplat.cluster.snapshot import Snapshot, end_of_job, scheduling_failure
from composeplat.cluster.watch_stream import WatchStream
from composeplat.names import ENVIRONMENT_LABEL
from composeplat.system.threads import await_end, start_thread

WORKLOADS = (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"))
#: Few environments have these, and not everyone may list them.
FURTHER_WORKLOADS = (("apps/v1", "DaemonSet"), ("batch/v1", "CronJob"))
FURTHER_KINDS = tuple(kind for _, kind in FURTHER_WORKLOADS)
OF_WORKLOADS = (("apps/v1", "ReplicaSet"), ("v1", "Pod"))
_KINDS_OF_WORKLOADS = tuple(kind for _, kind in OF_WORKLOADS)
#: They explain why something is not ready; those of the whole namespace, since they have no label.
_EXPLAINING = ("PersistentVolumeClaim", "Event")
#: Reasons of events that come with every pod and explain nothing: a busy namespace has thousands of these.
_USUAL_REASONS = (
    "Scheduled",
    "Created",
    "Started",
    "Killing",
    "SuccessfulCreate",
    "SuccessfulDelete",
    "ScalingReplicaSet",
    "Completed",
)
#: For kinds that can't be watched. A slow cluster is polled less often.
_MIN_POLL_INTERVAL_S = 0.4
_MAX_POLL_INTERVAL_S = 3.0
#: Between rounds that are asked for.
_MIN_ROUND_INTERVAL_S = 0.1
#: The next round waits this many times as long as the last one took.
_PAUSE_PER_ROUND = 2
#: The same if nobody waits for it.
_PAUSE_IF_NOT_NEEDED = 10
#: A snapshot of many objects takes long to make and to judge, so the next one waits this many times its processor time.
_PAUSE_PER_SNAPSHOT = 20
#: Ages are kept for so long, as their readers run at their own pace; each has to read more often than that.
AGE_KEPT_S = 3.0
#: The API of Karpenter, and the status of cluster-autoscaler.
_AUTOSCALERS = ("/apis/karpenter.sh", "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status")


def environment_selector(environment: str) -> str:
    """Return the query of a list that selects the objects of an environment."""
    return f"?labelSelector={quote(f'{ENVIRONMENT_LABEL}={environment}')}"


def pods_path(namespace: str, environment: str) -> str:
    """Return the path of the pods of an environment."""
    return kind_path("v1", "Pod", namespace) + environment_selector(environment)


@dataclass(slots=True)
class Ages:
    """For how long conditions have been seen; one that nobody asks for has ended."""

    _first_seen: dict[str, float] = field(default_factory=dict)
    _requested: dict[str, float] = field(default_factory=dict)

    def age(self, condition: str) -> float:
        now = time.monotonic()
        if now - self._requested.get(condition, now) > AGE_KEPT_S:
            del self._first_seen[condition]
        self._requested[condition] = now
        return now - self._first_seen.setdefault(condition, now)


class Watcher:
    """Keeps a snapshot of an environment current, from the first use of :attr:`latest` until :meth:`stop`.

    A round lists every kind. From the first round on, a watch of each kind brings what changes; further rounds are
    those that somebody asks for, and those for kinds that can't be watched.
    """

    def __init__(
        self,
        access: Access,
        namespace: str,
        environment: str,
        kinds: Collection[str] = (),
        *,
        others_too: bool = False,
        since_creation: bool = False,
    ) -> None:
        """Make a watcher; ``kinds`` are those of the workloads, as some are listed only if there are any.

        Others need not be listable, nor what explains: a role for deploys often lacks events and jobs.
        With ``others_too`` every kind is listed, as the workloads may be of another definition.
        With ``since_creation``, a condition of a pod or claim counts from when that was created, so that a single
        snapshot shows it; a wait counts from when it has seen the condition first.
        """
        self.access = access
        self.namespace = namespace
        further = tuple(found for found in FURTHER_WORKLOADS if others_too or found[1] in kinds)
        selector = environment_selector(environment)
        listed = (*WORKLOADS, *further, *OF_WORKLOADS)
        self._paths = {kind: kind_path(version, kind, namespace) + selector for version, kind in listed}
        self._explaining_paths = {kind: kind_path("v1", kind, namespace) for kind in _EXPLAINING}
        unusual = ",".join(f"reason!={reason}" for reason in _USUAL_REASONS)
        self._explaining_paths["Event"] += f"?fieldSelector={quote(unusual)}"
        unused = [kind for _, kind in (*WORKLOADS, *further) if kinds and kind not in kinds]
        self._optional = frozenset((*unused, *_EXPLAINING))
        self._refused: set[str] = set()
        """Those of the optional kinds that this user may not list."""
        self._caches: dict[str, ObjectCache] = {}
        self._streams: dict[str, WatchStream] = {}
        self._ages = Ages()
        self._since_creation = since_creation
        self._ended = threading.Event()
        self._woken = threading.Event()
        """Set when a round may be due."""
        self._needed = threading.Event()
        """Set when somebody waits for the next round."""
        self._hurried = threading.Event()
        """Set when the pause after a round is to end."""
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._latest: Snapshot | None = None
        self._latest_changes = 0
        self._next_snapshot_at = 0.0
        self._failure: Exception | None = None
        self._begun = self._rounds = self._wanted = 0
        self._autoscaler: bool | None = None
        self._knows_autoscaler = False
        self._clock_offset = 0.0
        """The clock of the API server less that of this machine."""
        self.unreachable = ""
        """Why the last round failed; empty if it did not."""
        self.unreachable_since = 0.0

    @property
    def latest(self) -> Snapshot | None:
        """The latest snapshot; None before the first. The first use starts the watcher."""
        self._start()
        if self._failure is not None:
            raise self._failure
        self._update()
        return self._latest

    @property
    def rounds(self) -> int:
        """The number of the last round that is complete; read before :attr:`latest`, which then shows it."""
        return self._rounds

    def request_round(self, *, may_wait: bool = False) -> int:
        """Ask for a round that begins from now on, and return its number: it shows every change until now.

        One that may wait costs less: the objects of many services are not listed again as soon as they can be.
        """
        with self._lock:
            return self._request_round(may_wait=may_wait)

    def _request_round(self, *, may_wait: bool = False) -> int:
        """Do the same with the lock held."""
        if not may_wait:
            self._needed.set()
        self._wanted = self._begun + 1
        self._woken.set()
        return self._wanted

    def hurry(self) -> None:
        """End the pause before the next round, if one is asked for: somebody waits for nothing else."""
        self._hurried.set()
        self._needed.set()

    def stop(self) -> None:
        self._ended.set()
        self.hurry()
        self._woken.set()
        await_end([self._thread])
        streams = list(self._streams.values())
        for stream in streams:
            stream.stop()
        await_end(stream.thread for stream in streams)

    @property
    def now(self) -> datetime:
        """The time by the clock of the API server, as the times in objects; before a list, by that of this machine."""
        return datetime.fromtimestamp(time.time() + self._clock_offset, UTC)

    def take_snapshot(self, api: Api) -> Snapshot:
        """Take one snapshot, without a watch."""
        return self._make_snapshot(self._list_all(api))

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = start_thread("watcher", self._run, self._fail)

    def _fail(self, error: Exception) -> None:
        self._failure = error

    def _run(self) -> None:
        with Api(self.access) as api:
            while not self._ended.is_set():
                began = time.monotonic()
                self._run_round(api, began)
                self._pause(time.monotonic() - began)
                while not self._ended.is_set() and not self._is_round_due(began):
                    self._woken.wait(_MIN_POLL_INTERVAL_S if self._needs_attention else None)
                    self._woken.clear()

    def _pause(self, seconds: float) -> None:
        """Wait after a round of so many seconds, longer if nobody needs the next one."""
        least_s = _MIN_POLL_INTERVAL_S if self.unreachable else _MIN_ROUND_INTERVAL_S
        needed_s, else_s = (
            min(max(least_s, times * seconds), _MAX_POLL_INTERVAL_S)
            for times in (_PAUSE_PER_ROUND, _PAUSE_IF_NOT_NEEDED)
        )
        if not self._hurried.wait(needed_s):
            self._needed.wait(else_s - needed_s)
        self._hurried.clear()

    def _run_round(self, api: Api, began: float) -> None:
        with self._lock:
            self._needed.clear()
            self._begun += 1
            number = self._begun
        try:
            caches = self._list_all(api)
        except ApiError as error:
            if not self.unreachable:
                self.unreachable_since = began
            self.unreachable = str(error)
            return
        with self._lock:
            self._latest_changes = _count_changes(caches)
            self._caches, self._latest = caches, self._make_snapshot(caches)
            self._rounds, self.unreachable = number, ""
        self._watch(caches)

    def _is_round_due(self, began: float) -> bool:
        for kind, stream in self._streams.items():
            if self._caches[kind].is_behind:
                stream.give_up()
        polls = bool(self.unreachable) or any(stream.is_broken for stream in self._streams.values())
        return self._wanted > self._rounds or (polls and time.monotonic() - began >= _MIN_POLL_INTERVAL_S)

    @property
    def _needs_attention(self) -> bool:
        """Whether a round may become due by time alone."""
        streams = self._streams.items()
        return bool(self.unreachable) or any(s.is_broken or self._caches[kind].is_awaited for kind, s in streams)

    def _list_all(self, api: Api) -> dict[str, ObjectCache]:
        """List every kind into its cache, and find out what only trouble needs; return all caches, old and new."""
        caches = dict(self._caches)
        for kind, path in self._paths.items():
            self._list(api, caches, kind, path)
        self._clock_offset = api.server_time - time.time()
        snapshot = self._make_snapshot(caches)
        if _is_troubled(snapshot):
            for kind, path in self._explaining_paths.items():
                self._list(api, caches, kind, path)
        if self._lacks_autoscaler(snapshot):
            self._autoscaler, self._knows_autoscaler = find_autoscaler(api), True
        return caches

    def _list(self, api: Api, caches: dict[str, ObjectCache], kind: str, path: str) -> None:
        stream = self._streams.get(kind)
        cache = caches.setdefault(kind, ObjectCache())
        if kind in self._refused:
            return
        try:
            listed = api.list_with_version(path)
        except ApiError as error:
            if kind not in self._optional or error.status != http.client.FORBIDDEN:
                raise
            self._refused.add(kind)
            return
        cache.replace(*listed, is_watched=stream is not None and not stream.is_broken)

    def _watch(self, caches: Mapping[str, ObjectCache]) -> None:
        """Start to watch each kind that was listed and is not watched yet."""
        paths = {**self._paths, **self._explaining_paths}
        for kind in caches.keys() - self._streams.keys() - self._refused:
            stream = WatchStream(
                access=self.access,
                path=paths[kind],
                cache=caches[kind],
                on_broken=self._woken.set,
                on_failure=self._fail,
            )
            self._streams[kind] = stream
            if not self._ended.is_set():
                stream.start()

    def _update(self) -> None:
        """Make a new snapshot if something has changed since the latest; what only a round can find is asked for."""
        with self._lock:
            changes = _count_changes(self._caches)
            if not self._rounds or changes == self._latest_changes or time.monotonic() < self._next_snapshot_at:
                return
            began = time.thread_time()
            snapshot = self._make_snapshot(self._caches)
            self._next_snapshot_at = time.monotonic() + _PAUSE_PER_SNAPSHOT * (time.thread_time() - began)
            if self._lacks_events(self._caches, snapshot) or self._lacks_autoscaler(snapshot):
                self._request_round()
            else:
                self._latest, self._latest_changes = snapshot, changes

    def _make_snapshot(self, caches: Mapping[str, ObjectCache]) -> Snapshot:
        kinds = [kind for kind in self._paths if kind not in _KINDS_OF_WORKLOADS]
        workloads = {(kind, item["metadata"]["name"]): item for kind in kinds for item in caches[kind].objects}
        snapshot = Snapshot(
            workloads=workloads,
            replica_sets=caches["ReplicaSet"].objects,
            pods=caches["Pod"].objects,
            age=self._ages.age,
            time=time.time() + self._clock_offset,
        )
        if _is_troubled(snapshot) and "Event" in caches:
            snapshot.claims, snapshot.events = caches["PersistentVolumeClaim"].objects, caches["Event"].objects
        if self._since_creation:
            seen = self._ages.age
            snapshot.age = lambda condition: max(seen(condition), snapshot.age_of(condition.partition("/")[2]))
        if _has_unscheduled(snapshot):
            snapshot.has_autoscaler = self._autoscaler
        return snapshot

    def _lacks_events(self, caches: Mapping[str, ObjectCache], snapshot: Snapshot) -> bool:
        return "Event" not in caches and _is_troubled(snapshot)

    def _lacks_autoscaler(self, snapshot: Snapshot) -> bool:
        return not self._knows_autoscaler and _has_unscheduled(snapshot)


def _is_troubled(snapshot: Snapshot) -> bool:
    """Return whether something may have to be explained: nothing is there yet, or a pod is missing or not ready."""
    return not snapshot.workloads or bool(snapshot.unready_pods) or _lacks_pods(snapshot)


def _has_unscheduled(snapshot: Snapshot) -> bool:
    return any(scheduling_failure(pod) is not None for pod in snapshot.unready_pods)


def _count_changes(caches: Mapping[str, ObjectCache]) -> int:
    return sum(cache.changes for cache in caches.values())


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


def _lacks_pods(snapshot: Snapshot) -> bool:
    return any(_lacks_pod(kind, item, snapshot) for (kind, _), item in snapshot.workloads.items())


def _lacks_pod(kind: str, workload: Any, snapshot: Snapshot) -> bool:
    status = workload.get("status", {})
    if kind == "DaemonSet":
        return bool(status.get("desiredNumberScheduled", 0) > status.get("numberReady", 0))
    if kind == "Job":
        is_idle = end_of_job(workload) or workload["spec"].get("suspend")
        return not (is_idle or snapshot.pods_of(workload["metadata"]["uid"]))
    if kind == "CronJob":
        return False
    return bool(workload["spec"].get("replicas", 1) > status.get("readyReplicas", 0))
