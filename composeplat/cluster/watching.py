"""Look at one environment in a cluster, again and again, and keep the last view; and see whether it answers at all.

Owns the one reader that everything waiting shares: however many services wait, the cluster is asked once a round.
Must not judge: what a view means is :mod:`composeplat.cluster.conditions`' to say.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import quote

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.snapshot import Snapshot, scheduling_failure
from composeplat.names import ENVIRONMENT_LABEL
from composeplat.system.threads import start_thread

WORKLOADS = (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"))
_EVERY = 0.4
#: A slow cluster is asked less often, but no less than that.
_SELDOM = 3.0
#: Whoever stops a reader does not wait for an answer that may never come.
_LAST_WORD = 0.3
_LOG_LINES = 20
#: The API of Karpenter, and the status of cluster-autoscaler.
_AUTOSCALERS = ("/apis/karpenter.sh", "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status")
_PULSE = 2.0
_TOLD_AFTER = 5.0
_LONGEST_SILENCE = 60.0


def environment_selector(environment: str) -> str:
    """What is put behind the path of a list to get only what belongs to an environment."""
    return f"?labelSelector={quote(f'{ENVIRONMENT_LABEL}={environment}')}"


class Watcher:
    """Views of an environment; started with the first wish for one, and ended with :meth:`stop`."""

    def __init__(self, access: Access, namespace: str, environment: str) -> None:
        self.access = access
        self.namespace = namespace
        self._selector = environment_selector(environment)
        self._first_seen: dict[str, float] = {}
        self._asked: set[str] = set()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._latest: Snapshot | None = None
        self._failure: Exception | None = None
        self._rounds = 0
        self._autoscaler: bool | None = None
        self._looked_for_autoscaler = False
        self.unreachable = ""
        """Why the cluster could not be asked the last time; empty where it could."""
        self.unreachable_since = 0.0

    @property
    def latest(self) -> Snapshot | None:
        """The last view, begun now if none was; nothing until the first has come."""
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
        """How many views there have been: who changed something waits for a later one."""
        return self._rounds

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=_LAST_WORD)

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
                self._ended.wait(min(max(_EVERY, 2 * (time.monotonic() - began)), _SELDOM))

    def take_snapshot(self, api: Api) -> Snapshot:
        workloads: dict[tuple[str, str], Any] = {}
        for version, kind in WORKLOADS:
            for item in self._items(api, version, kind):
                workloads[kind, item["metadata"]["name"]] = item
        replica_sets = self._items(api, "apps/v1", "ReplicaSet")
        pods = self._items(api, "v1", "Pod")
        troubled = not workloads or any(not _is_fine(pod) for pod in pods) or _is_short(workloads)
        snapshot = Snapshot(workloads=workloads, replica_sets=replica_sets, pods=pods, age=self._age)
        if troubled:
            snapshot.claims = api.items(kind_path("v1", "PersistentVolumeClaim", self.namespace))
            snapshot.events = api.items(kind_path("v1", "Event", self.namespace))
        if any(scheduling_failure(pod) is not None for pod in pods):
            snapshot.has_autoscaler = self._has_autoscaler(api)
        self._forget()
        return snapshot

    def _items(self, api: Api, version: str, kind: str) -> list[dict[str, Any]]:
        return api.items(kind_path(version, kind, self.namespace) + self._selector)

    def _has_autoscaler(self, api: Api) -> bool | None:
        """Say whether the cluster has an autoscaler, as far as it is known by then: it is asked once."""
        if not self._looked_for_autoscaler:
            self._autoscaler = find_autoscaler(api)
            self._looked_for_autoscaler = True
        return self._autoscaler

    def _age(self, what: str) -> float:
        self._asked.add(what)
        return time.monotonic() - self._first_seen.setdefault(what, time.monotonic())

    def _forget(self) -> None:
        """A count that nobody asked for in a round has ended: what it counted is not so any more."""
        if self._rounds % 4 == 3:  # noqa: PLR2004 -- every few rounds, as askers come at their own pace
            self._first_seen = {key: at for key, at in self._first_seen.items() if key in self._asked}
            self._asked = set()


class HealthMonitor:
    """Whether a cluster answers, asked all the time beside what would wait for its answer without end.

    To be used in a ``with`` block, in which :meth:`check` is called now and then.
    """

    def __init__(self, access: Access, namespace: str, say: Callable[[str], None]) -> None:
        self.access = access
        # Reading an object needs the server's storage too; whether there is one is no matter.
        self._path = f"/api/v1/namespaces/{namespace}"
        self._say = say
        self._asked: float | None = None
        """When the first question was asked that has no answer yet."""
        self._told = False
        self._failure: Exception | None = None
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._ended.clear()
        self._asked, self._told = None, False
        start_thread("health-monitor", self._run, self._fail)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _fail(self, error: Exception) -> None:
        self._failure = error

    @property
    def silence(self) -> float:
        """For how many seconds an answer has been owed."""
        asked = self._asked
        return 0.0 if asked is None else time.monotonic() - asked

    def mark_silent(self) -> None:
        """Take the cluster for silent until it has answered once more: someone else got no answer from it."""
        self._asked = self._asked or time.monotonic()

    def check(self) -> None:
        """Tell of a cluster that does not answer, and raise where it has been silent for too long."""
        if self._failure is not None:
            raise self._failure
        silence = self.silence
        if silence > _LONGEST_SILENCE:
            raise ApiError(
                0,
                f"the API server at {self.access.address} has not answered for {_LONGEST_SILENCE:.0f} s",
                "see to the cluster, then run this again: what was done is noted",
            )
        if silence > _TOLD_AFTER and not self._told:
            self._told = True
            most = f"{_LONGEST_SILENCE:.0f} s at most"
            self._say(f"the API server at {self.access.address} does not answer; waiting for it, {most}")
        elif self._told and not silence:
            self._told = False
            self._say("the API server answers again")

    def _run(self) -> None:
        with Api(self.access) as api:
            while not self._ended.wait(_PULSE):
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
    """Say whether a cluster has an autoscaler, by what each leaves there; None where that may not be read."""
    known = True
    for path in _AUTOSCALERS:
        try:
            api.get(path)
        except ApiError as error:
            known = known and error.status == http.client.NOT_FOUND
        else:
            return True
    return False if known else None


def _is_fine(pod: Mapping[str, Any]) -> bool:
    status = pod.get("status", {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or []}
    return conditions.get("Ready") == "True" or status.get("phase") == "Succeeded"


def _is_short(workloads: Mapping[tuple[str, str], Any]) -> bool:
    return any(
        item["spec"].get("replicas", 1) > item.get("status", {}).get("readyReplicas", 0)
        for (kind, _), item in workloads.items()
        if kind != "Job"
    )


def read_last_lines(api: Api, namespace: str, pod: str, container: str, *, previous: bool) -> list[str]:
    """The end of a container's log; nothing where there is none."""
    path = f"{kind_path('v1', 'Pod', namespace)}/{pod}/log?container={container}&tailLines={_LOG_LINES}"
    for query in ([f"{path}&previous=true"] if previous else []) + [path]:
        try:
            lines = api.text(query).splitlines()
        except ApiError:
            continue
        # So says the kubelet of a container that it has forgotten, as if it were the log.
        if lines and not lines[0].startswith("unable to retrieve container logs"):
            return lines
    return []


def probe_port(api: Api, namespace: str, pod: str, port: int) -> bool | None:
    """Say whether something listens on a pod's port; None where that can't be found out.

    The API server is asked to speak HTTP with it: any answer, or one that is no HTTP, means that something listens.
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
