"""The environments of a cluster, by the labels of its objects: no definition is needed.

Owns which workloads make an environment, which services these have, and how many of them are in which state.
Must not know the API: lists come in. Their objects may be anyone's, so that a label may have any value; an object with
one that is no name of ours is not shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from composeplat.cluster.snapshot import WORKLOAD_KINDS, Object, Snapshot, others_in_pods
from composeplat.cluster.status import STATES, ServiceQuery, status_rows
from composeplat.names import (
    DEV_WORKLOAD_LABEL,
    ENVIRONMENT_LABEL,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    SERVICE_LABEL,
    is_dns_label,
)
from composeplat.system.records import record

Place = tuple[str, str]
"""The namespace and the name of an environment."""


@record(kw_only=True)
class DeployedEnvironment:
    namespace: str
    environment: str
    services: tuple[ServiceQuery, ...]
    snapshot: Snapshot

    @property
    def place(self) -> Place:
        return self.namespace, self.environment

    def count_states(self, now: datetime) -> dict[str, int]:
        """Return how many services are in each state, by the names that ``platform status`` has for them."""
        counts = dict.fromkeys(STATES, 0)
        for row in status_rows(self.services, self.snapshot, now):
            counts[row.state] += 1
        return counts


def find_environments(lists: Mapping[str, Iterable[Object]]) -> list[DeployedEnvironment]:
    """Return the environments of which objects, by their kind, are the workloads, ReplicaSets and pods."""
    found: defaultdict[Place, defaultdict[str, list[Object]]] = defaultdict(lambda: defaultdict(list))
    for kind, items in lists.items():
        for place, item in _placed(items):
            found[place][kind].append(item)
    environments = (_environment(*place, objects) for place, objects in sorted(found.items()))
    return [environment for environment in environments if environment.services]


def _placed(items: Iterable[Object]) -> Iterator[tuple[Place, Object]]:
    for item in items:
        namespace, name = item["metadata"].get("namespace"), _name_in(item, ENVIRONMENT_LABEL)
        if namespace and name:
            yield (namespace, name), item


def _environment(namespace: str, name: str, objects: Mapping[str, list[Object]]) -> DeployedEnvironment:
    snapshot = Snapshot(
        workloads={(kind, item["metadata"]["name"]): item for kind in WORKLOAD_KINDS for item in objects.get(kind, ())},
        replica_sets=objects.get("ReplicaSet", []),
        pods=objects.get("Pod", []),
    )
    return DeployedEnvironment(
        namespace=namespace, environment=name, services=deployed_services(snapshot), snapshot=snapshot
    )


def deployed_services(snapshot: Snapshot) -> tuple[ServiceQuery, ...]:
    """Return the services of an environment, in the order of their names."""
    developed = {
        service: name
        for (kind, name), item in snapshot.workloads.items()
        if kind == "Deployment" and _is_ours(item) and (service := _name_in(item, DEV_WORKLOAD_LABEL))
    }
    found: dict[str, ServiceQuery] = {}
    for query in sorted(_queries(snapshot, developed), key=lambda query: query.name):
        found.setdefault(query.name, query)
    return tuple(found.values())


def _queries(snapshot: Snapshot, developed: Mapping[str, str]) -> Iterator[ServiceQuery]:
    """Yield the services of each workload; one that changes its kind may be there twice, once as it is deleted."""
    ours = [(key, item) for key, item in snapshot.workloads.items() if _is_ours(item) and _is_service(item)]
    kinds = list(WORKLOAD_KINDS)
    ours.sort(key=lambda entry: ("deletionTimestamp" in entry[1]["metadata"], kinds.index(entry[0][0])))
    for (kind, name), item in ours:
        for service in (name, *others_in_pods(item)):
            yield ServiceQuery(
                name=service,
                cluster_name=service,
                kind=kind,
                pod_of="" if service == name else name,
                dev_workload=developed.get(name, ""),
            )


def _is_ours(item: Object) -> bool:
    return bool((item["metadata"].get("labels") or {}).get(MANAGED_BY_LABEL) == MANAGED_BY)


def _is_service(item: Object) -> bool:
    """Whether it is the workload of a service itself, and not its dev workload."""
    return _name_in(item, SERVICE_LABEL) == str(item["metadata"]["name"])


def _name_in(item: Object, label: str) -> str:
    """The value of a label, if it can be a name of ours."""
    value = (item["metadata"].get("labels") or {}).get(label)
    return value if isinstance(value, str) and is_dns_label(value) else ""
