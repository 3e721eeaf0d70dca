"""One look at an environment in the cluster: its objects as metadata, and for a deploy its pods and open ports.

Owns the requests of a look, which several connections share.
Must not judge what it finds: :mod:`~composeplat.engine.no_change` and :mod:`~composeplat.cluster.conditions` do.
"""

from __future__ import annotations

import http.client
import queue
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.conditions import ServiceStatus, service_status
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.probes import probe_port
from composeplat.cluster.snapshot import Object, Snapshot, owner_uid
from composeplat.cluster.watching import FURTHER_KINDS, WORKLOADS, environment_selector
from composeplat.engine.preflight import KINDS, Key, api_path
from composeplat.plan.desired import Plan, ServicePlan
from composeplat.system.threads import start_thread

_CONNECTIONS = 4
_WATCHED = {*FURTHER_KINDS, *(kind for _, kind in WORKLOADS)}

Request = Callable[[Api], None]


@dataclass(slots=True)
class Look:
    """What was found of an environment."""

    objects: dict[Key, Object] = field(default_factory=dict)
    """By kind and name; workloads are whole if pods were asked for, all others are metadata."""
    replica_sets: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)

    def statuses(self, services: Iterable[ServicePlan]) -> dict[str, ServiceStatus]:
        """Return the status of each service, by its name."""
        replica_sets, pods = _by_owner(self.replica_sets), _by_owner(self.pods)
        workloads = {key: item for key, item in self.objects.items() if key[0] in _WATCHED}
        found = {}
        for service in services:
            uid = workloads.get(service.workload, {"metadata": {}})["metadata"].get("uid", "")
            owned = replica_sets.get(uid, [])
            own_pods = [pod for owner in (uid, *_uids(owned)) for pod in pods.get(owner, [])]
            # All pods for each service would take the square of their number.
            snapshot = Snapshot(workloads=workloads, replica_sets=owned, pods=own_pods)
            found[service.name] = service_status(*service.workload, service.cluster_name, snapshot)
        return found


def _by_owner(items: Iterable[Object]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for item in items:
        found.setdefault(owner_uid(item), []).append(item)
    return found


def _uids(items: Iterable[Object]) -> list[str]:
    return [str(item["metadata"]["uid"]) for item in items]


def take_look(access: Access, plan: Plan, more: Iterable[Key], *, pods: bool) -> Look:
    """List the objects of an environment, and get ``more`` by name; with ``pods``, list these too."""
    namespace, look, selector = plan.namespace, Look(), environment_selector(plan.environment)
    planned = {desired.kind for desired in plan.objects}

    def list_kind(api: Api, kind: str, version: str) -> None:
        path = kind_path(version, kind, namespace) + selector
        items = _listed(api, path, is_whole=pods and kind in _WATCHED, is_planned=kind in planned)
        look.objects.update({(kind, item["metadata"]["name"]): item for item in items})

    def get(api: Api, key: Key) -> None:
        found = api.find(api_path(key[0], namespace, key[1]))
        look.objects.update({} if found is None else {key: found})

    def list_pods(api: Api) -> None:
        look.pods = api.items(kind_path("v1", "Pod", namespace) + selector)

    def list_replica_sets(api: Api) -> None:
        look.replica_sets = api.items(kind_path("apps/v1", "ReplicaSet", namespace) + selector)

    requests: list[Request] = [list_pods, list_replica_sets] if pods else []
    requests += [partial(list_kind, kind=kind, version=version) for kind, version in KINDS.items()]
    requests += [partial(get, key=key) for key in more]
    share_requests(access, requests)
    return look


def _listed(api: Api, path: str, *, is_whole: bool, is_planned: bool) -> list[Object]:
    """List objects of a kind, which a cluster need not know, nor let this user list if the plan has none."""
    try:
        return api.items(path) if is_whole else api.object_metadata(path)
    except ApiError as error:
        is_left_out = error.status == http.client.FORBIDDEN and not is_planned
        if error.status == http.client.NOT_FOUND or is_left_out:
            return []
        raise


def find_silent_ports(access: Access, namespace: str, ports: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return those of some pods' ports on which nothing listens."""
    silent: list[tuple[str, int]] = []

    def probe(api: Api, pod: str, port: int) -> None:
        if probe_port(api, namespace, pod, port) is False:
            silent.append((pod, port))

    share_requests(access, [partial(probe, pod=pod, port=port) for pod, port in ports])
    return silent


def share_requests(access: Access, requests: Iterable[Request]) -> None:
    """Send requests over a few connections; raise the first failure."""
    waiting: queue.SimpleQueue[Request] = queue.SimpleQueue()
    failures: list[Exception] = []
    for request in requests:
        waiting.put(request)

    def work() -> None:
        with Api(access) as api:
            while not failures:
                try:
                    request = waiting.get_nowait()
                except queue.Empty:
                    return
                request(api)

    connections = min(_CONNECTIONS, waiting.qsize())
    threads = [start_thread(f"look-{number}", work, failures.append) for number in range(connections)]
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
