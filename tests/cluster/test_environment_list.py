"""The environments of a cluster are listed once and watched, in as many namespaces as the user may list."""

from __future__ import annotations

from queue import Queue

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.environment_list import EnvironmentList
from composeplat.cluster.environments import Place
from composeplat.cluster.snapshot import Object
from tests.cluster.objects import Answer, Server, deployment, given, no_server, pod, refusal, replica_set, until
from tests.cluster.test_environments import labeled, service

APPS, BATCH, CORE = "/apis/apps/v1", "/apis/batch/v1", "/api/v1"
PATHS = {
    "Deployment": f"{APPS}/deployments",
    "StatefulSet": f"{APPS}/statefulsets",
    "DaemonSet": f"{APPS}/daemonsets",
    "ReplicaSet": f"{APPS}/replicasets",
    "Job": f"{BATCH}/jobs",
    "CronJob": f"{BATCH}/cronjobs",
    "Pod": f"{CORE}/pods",
}
FORBIDDEN = refusal(403, 'deployments.apps is forbidden: User "ann" cannot list resource')
QUERY = "?labelSelector=dev.platform.com/environment"


def path_in(namespace: str, kind: str) -> str:
    root, _, plural = PATHS[kind].rpartition("/")
    return f"{root}/namespaces/{namespace}/{plural}"


def fill(server: Server, *items: Object, namespace: str = "") -> None:
    """Let the server have these objects and no others, in all namespaces or in one."""
    for kind, path in PATHS.items():
        held = [item for item in items if item["kind"] == kind]
        server.answers[path_in(namespace, kind) if namespace else path] = given(*held, version="5")


def places(environments: EnvironmentList, api: Api) -> list[Place]:
    return [found.place for found in environments.read(api)]


@pytest.fixture
def events(server: Server) -> dict[str, Queue[Object | None]]:
    """Empty watches of all namespaces, by kind."""
    found: dict[str, Queue[Object | None]] = {kind: Queue() for kind in PATHS}
    server.watches = {PATHS[kind]: Answer(events=queue) for kind, queue in found.items()}
    return found


def end(events: dict[str, Queue[Object | None]], environments: EnvironmentList) -> None:
    environments.stop()
    for queue in events.values():
        queue.put(None)


def test_each_kind_is_listed_once(server: Server, events: dict[str, Queue[Object | None]]) -> None:
    """What changes comes by a watch; objects with one name in two namespaces are two."""
    fill(server, *service("web"), *service("web", namespace="other"))
    environments = EnvironmentList(server.access, ["team"])
    with Api(server.access) as api:
        assert places(environments, api) == [("other", "shop"), ("team", "shop")]
        gone = labeled(deployment("web"), namespace="other")
        gone["metadata"]["resourceVersion"] = "6"
        events["Deployment"].put({"type": "DELETED", "object": gone})

        def is_gone() -> bool:
            environments.wait()
            return places(environments, api) == [("team", "shop")]

        until(is_gone)
    end(events, environments)

    lists = [path for path in server.paths if "watch=1" not in path]
    assert sorted(lists) == sorted(f"{path}{QUERY}" for path in PATHS.values())
    assert environments.notice == ""


def test_who_may_not_list_all_namespaces(server: Server) -> None:
    """The objects of the user's own namespaces are shown, and which right is missing."""
    server.otherwise = FORBIDDEN
    fill(server, *service("web"), namespace="team")
    fill(server, *service("web", namespace="shop"), namespace="shop")
    environments = EnvironmentList(server.access, ["team", "shop"])
    with Api(server.access) as api:
        assert places(environments, api) == [("shop", "shop"), ("team", "shop")]
        notice = environments.notice
        asked = len(server.paths)
        assert places(environments, api) == [("shop", "shop"), ("team", "shop")]
    environments.stop()

    plurals = "deployments, statefulsets, jobs, daemonsets, cronjobs, replicasets, pods"
    assert notice == (
        f"you may not list {plurals} in all namespaces: of these, only team, shop is shown; to see all:"
        " kubectl create clusterrole list-environments --verb=list,watch"
        f" --resource={plurals.replace(', ', ',')}, and bind it"
    )
    assert not [path for path in server.paths[asked:] if path in {f"{found}{QUERY}" for found in PATHS.values()}]


def test_who_may_not_list_some_kinds(server: Server, events: dict[str, Queue[Object | None]]) -> None:
    fill(server, *service("web"), *service("web", namespace="other"))
    server.answers[PATHS["CronJob"]] = server.answers[path_in("team", "CronJob")] = FORBIDDEN
    environments = EnvironmentList(server.access, ["team"])
    with Api(server.access) as api:
        assert places(environments, api) == [("other", "shop"), ("team", "shop")]
    end(events, environments)

    assert environments.notice.startswith(
        "you may not list cronjobs in all namespaces: of these, only team is shown;"
        " you may not list cronjobs in namespace team either; to see all: "
    )


def test_who_may_list_nothing(server: Server) -> None:
    server.otherwise = FORBIDDEN
    environments = EnvironmentList(server.access, ["team"])
    with Api(server.access) as api:
        assert places(environments, api) == []
    assert "in namespace team either" in environments.notice


def test_other_failures(server: Server) -> None:
    """A cluster that does not answer, or answers something else, has no environments to show."""
    with no_server() as access, Api(access) as api, pytest.raises(ApiError, match="connection refused"):
        EnvironmentList(access, ["team"]).read(api)
    server.otherwise = refusal(500, "the storage timed out")
    with Api(server.access) as api, pytest.raises(ApiError, match="timed out"):
        EnvironmentList(server.access, ["team"]).read(api)


def test_a_pod_that_no_node_can_run(server: Server, events: dict[str, Queue[Object | None]]) -> None:
    """Whether a node may still come is asked once, and for how long it has been so counts from read to read."""
    workload = deployment("web")
    owner = replica_set(workload)
    refused = pod(owner, scheduling_failure="0/1 nodes are available: 1 Insufficient cpu.")
    fill(server, *(labeled(item, service="web") for item in (workload, owner, refused)))
    environments = EnvironmentList(server.access, ["team"])
    with Api(server.access) as api:
        (found,) = environments.read(api)
        assert found.snapshot.has_autoscaler is True
        assert found.snapshot.age("unschedulable") == 0
        (found,) = environments.read(api)
        assert found.snapshot.age("unschedulable") > 0
    end(events, environments)

    assert server.paths.count("/apis/karpenter.sh") == 1
