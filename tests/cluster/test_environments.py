"""The environments of a cluster, by the labels of objects that may be anyone's."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from composeplat.cluster.environments import DeployedEnvironment, find_environments
from composeplat.cluster.snapshot import Object
from composeplat.cluster.status import ServiceQuery
from composeplat.names import (
    DEV_WORKLOAD_LABEL,
    ENVIRONMENT_LABEL,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    SERVICE_LABEL,
    SERVICES_ANNOTATION,
)
from tests.cluster.objects import (
    MOMENT,
    cron_job,
    daemon_set,
    deployment,
    ended,
    job,
    pod,
    replica_set,
    running,
    stateful_set,
    waiting,
)

NOW = datetime(2025, 6, 1, 12, 10, tzinfo=UTC)


def labeled(item: Object, *, environment: str = "shop", namespace: str = "team", **more: str | None) -> Object:
    """An object with the labels of ours; ``more`` sets or removes some: ``service``, ``manager``, ``up``."""
    keys = {"service": SERVICE_LABEL, "manager": MANAGED_BY_LABEL, "up": DEV_WORKLOAD_LABEL}
    given = {"service": item["metadata"]["name"], "manager": MANAGED_BY, **more}
    labels = {keys[name]: value for name, value in given.items() if value is not None}
    old = item["metadata"].get("labels") or {}
    metadata = {**item["metadata"], "namespace": namespace, "labels": {**old, **labels, ENVIRONMENT_LABEL: environment}}
    return {**item, "metadata": metadata}


def listed(*items: Object) -> dict[str, list[Object]]:
    """Objects as lists of the API have them: by kind, and without it."""
    found: dict[str, list[Object]] = {}
    for item in items:
        rest = {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}
        found.setdefault(item["kind"], []).append(rest)
    return found


def service(
    name: str = "web", *, ready: bool = True, namespace: str = "team", environment: str = "shop"
) -> list[Object]:
    """A Deployment with its ReplicaSet and pod, which crashes if it is not ready."""
    workload = deployment(name)
    owner = replica_set(workload)
    crash = ended(3)
    state = running() if ready else waiting("CrashLoopBackOff")
    made = pod(owner, state=state, ready=ready, restarts=0 if ready else 4, last=None if ready else crash)
    return [
        labeled(item, namespace=namespace, environment=environment, service=name, manager=manager)
        for item, manager in ((workload, MANAGED_BY), (owner, None), (made, None))
    ]


def shared_pod(workload: Object, services: str, *containers: str) -> Object:
    template = {
        "metadata": {"annotations": {SERVICES_ANNOTATION: services}},
        "spec": {"containers": [{"name": name} for name in containers]},
    }
    return {**workload, "spec": {**workload["spec"], "template": template}}


def queries(*items: Object) -> tuple[ServiceQuery, ...]:
    (found,) = find_environments(listed(*items))
    return found.services


def counts(environment: DeployedEnvironment) -> Mapping[str, int]:
    return {state: count for state, count in environment.count_states(NOW).items() if count}


# environments ---------------------------------------------------------------------------------------------------------


def test_environments_of_two_namespaces() -> None:
    """The same names in two namespaces are two environments, each with its own pods."""
    found = find_environments(
        listed(
            *service("web"),
            *service("api", ready=False),
            *service("web", ready=False, namespace="other"),
            *service("web", environment="blog"),
        )
    )

    assert [environment.place for environment in found] == [("other", "shop"), ("team", "blog"), ("team", "shop")]
    assert [counts(environment) for environment in found] == [{"failing": 1}, {"ready": 1}, {"failing": 1, "ready": 1}]


def test_each_state_is_counted() -> None:
    (found,) = find_environments(listed(*service("web")))

    assert found.count_states(NOW) == {
        "absent": 0,
        "starting": 0,
        "started": 0,
        "ready": 1,
        "completed": 0,
        "failing": 0,
        "asleep": 0,
        "in-development": 0,
        "scheduled": 0,
        "manual": 0,
    }


def test_each_kind_of_workload() -> None:
    items = (
        labeled(deployment("asleep", replicas=0)),
        labeled(stateful_set("db", replicas=1)),
        labeled(daemon_set("agent", nodes=0)),
        labeled(job("migrate", condition="Complete")),
        labeled(cron_job("0 3 * * *", "backup")),
    )

    (found,) = find_environments(listed(*items))

    assert [(query.name, query.kind) for query in found.services] == [
        ("agent", "DaemonSet"),
        ("asleep", "Deployment"),
        ("backup", "CronJob"),
        ("db", "StatefulSet"),
        ("migrate", "Job"),
    ]
    assert counts(found) == {"ready": 1, "asleep": 1, "scheduled": 1, "starting": 1, "completed": 1}


def test_the_jobs_of_a_schedule_are_no_services() -> None:
    """Nobody manages them, but they show how the last run ended."""
    schedule = labeled(cron_job("0 3 * * *", "backup"))
    run = job("backup-29", condition="Failed", reason="BackoffLimitExceeded")
    run["metadata"]["ownerReferences"] = [{"uid": schedule["metadata"]["uid"], "controller": True}]
    run["metadata"]["creationTimestamp"] = MOMENT

    (found,) = find_environments(listed(schedule, labeled(run, service="backup", manager=None)))

    assert [query.name for query in found.services] == ["backup"]
    assert ("Job", "backup-29") in found.snapshot.workloads


def test_services_in_one_pod() -> None:
    """Of those that the pod lists, only containers are services."""
    workload = shared_pod(labeled(deployment("web")), "web,proxy,web,absent,../../x,,", "web", "proxy", "injected")

    assert [(query.name, query.kind, query.pod_of) for query in queries(workload)] == [
        ("proxy", "Deployment", "web"),
        ("web", "Deployment", ""),
    ]


def test_a_service_under_development() -> None:
    own = shared_pod(labeled(deployment("web", replicas=0)), "web,proxy", "web", "proxy")
    dev_workload = labeled(deployment("web-platform-up"), service="web", up="web")
    others = labeled(deployment("mine"), service="api", up="api", manager="someone")

    (found,) = find_environments(listed(own, dev_workload, others, labeled(deployment("api"))))

    assert {query.name: query.dev_workload for query in found.services} == {
        "web": "web-platform-up",
        "proxy": "web-platform-up",
        "api": "",
    }
    assert counts(found)["in-development"] == 2


def test_a_service_that_changes_its_kind() -> None:
    old, new = labeled(deployment("db")), labeled(stateful_set("db"))
    old["metadata"]["deletionTimestamp"] = MOMENT

    assert [(query.name, query.kind) for query in queries(old, new)] == [("db", "StatefulSet")]


# other people's objects -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [
        labeled(deployment("web"), manager="Helm"),
        labeled(deployment("web"), manager=None),
        labeled(deployment("web"), service="other"),
        labeled(deployment("web"), service=None),
        labeled(deployment("web"), environment="Not.A_Name"),
        labeled(deployment("web"), environment=""),
        labeled(deployment("web"), namespace=""),
        {**deployment("web"), "metadata": {"name": "web", "namespace": "team", "labels": None}},
        deployment("web"),
    ],
    ids=["manager", "no manager", "service", "no service", "environment", "empty", "no namespace", "null", "no labels"],
)
def test_an_object_that_is_no_service(item: Object) -> None:
    assert find_environments(listed(item)) == []
    assert [query.name for query in queries(item, *service("api"))] == ["api"]


LABELS = st.dictionaries(
    st.sampled_from([ENVIRONMENT_LABEL, SERVICE_LABEL, MANAGED_BY_LABEL, DEV_WORKLOAD_LABEL]),
    st.sampled_from(["shop", "web", "api", MANAGED_BY, "", "A.B_C", "-", "x" * 63]) | st.text(max_size=8),
)
NAMED = st.sampled_from(["web", "api", "web-platform-up", "shop"])
ITEMS = st.builds(
    lambda make, name, labels, annotation: _with_labels(shared_pod(make(name), annotation, "web", "api"), labels),
    st.sampled_from([deployment, stateful_set, daemon_set, job]),
    NAMED,
    LABELS | st.none(),
    st.sampled_from(["web,api", ",", "web", "../x,api"]) | st.text(max_size=12),
)


def _with_labels(item: Object, labels: Any) -> Object:
    return {**item, "metadata": {**item["metadata"], "labels": labels}}


@given(st.lists(ITEMS, max_size=12), st.lists(LABELS, max_size=4))
def test_any_labels(items: list[Object], of_pods: list[dict[str, str]]) -> None:
    """Nothing breaks, and an environment that is ours is counted as it is without the others."""
    pods = [
        _with_labels(pod(replica_set(deployment(f"x{number}")), state=running()), labels)
        for number, labels in enumerate(of_pods)
    ]
    found = find_environments(listed(*items, *pods, *service("own", environment="own")))

    for environment in found:
        names = [query.name for query in environment.services]
        assert len(set(names)) == len(names)
        assert sum(environment.count_states(NOW).values()) == len(names) > 0
    assert [counts(environment) for environment in found if environment.environment == "own"] == [{"ready": 1}]
