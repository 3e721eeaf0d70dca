"""What is deleted beside Pulumi: only what can't be taken up, only ours, and waited for until it is gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from composeplat import progress
from composeplat.cluster.api import Api
from composeplat.diagnostics import ComposeplatError
from composeplat.engine import deletion
from composeplat.engine.deletion import (
    delete,
    delete_conflicting,
    delete_leftovers,
    delete_volume,
    wait_for_namespace,
    wait_for_pods,
    wait_until_deleted,
    wait_until_no_pods,
)
from composeplat.engine.events import Operation
from composeplat.engine.live_state import read_live_state
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import LiveState
from composeplat.engine.stack import Stack
from composeplat.engine.target import Target
from composeplat.plan.desired import DesiredObject, Plan, ServicePlan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from tests.cluster.objects import NAMESPACE, Answer, Server, deployment, given, lost, pod, refusal, replica_set, running
from tests.conftest import Project

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
JOB = f"{JOBS}/task"
GONE = refusal(404, "not found")
LABELS = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "shop"}


class Later:
    """An image's name that is known once it is built."""

    def __str__(self) -> str:
        return "r.example.com/task:built"


def manifest(kind: str = "Job", name: str = "task") -> dict[str, Any]:
    containers = [{"name": "task", "image": Later(), "args": ["a", 1, True, None]}]
    return {
        "apiVersion": "batch/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


def plan(wanted: dict[str, Any]) -> Plan:
    wanted_object = DesiredObject(key=ResourceKey(ResourceKind.WORKLOAD, "task"), manifest=wanted)
    task = ServicePlan(
        name="task", cluster_name="task", workload_kind=wanted["kind"], image="x", objects=(wanted_object,)
    )
    return Plan(environment="shop", namespace=NAMESPACE, services=(task,))


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(otherwise=given()) as server:
        yield server


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    with Api(server.access) as api:
        yield api


@pytest.fixture
def stack(server: Server) -> Stack:
    return Stack(
        environment_name="shop", namespace=NAMESPACE, target=Target(access=server.access, kubeconfig=""), variables={}
    )


def asked(server: Server, method: str) -> list[str]:
    return [request.path.partition("?")[0] for request in server.asked if request.method == method]


THERE = LiveState(object_metadata={("Job", "task"): {"metadata": {"name": "task", "labels": LABELS}}})


def test_existing_objects_are_previewed(server: Server, api: Api, stack: Stack) -> None:
    """The server is asked with the whole manifest, lists and all, and the name an image will have."""
    server.answers[JOB] = Answer(b"{}")
    delete_conflicting(stack, api, plan(manifest()), THERE, {}, DeployOptions())
    (sent,) = (json.loads(request.body) for request in server.asked if request.method == "PATCH")

    assert sent["spec"]["template"]["spec"]["containers"] == [
        {"name": "task", "image": "r.example.com/task:built", "args": ["a", 1, True, None]}
    ]
    assert asked(server, "DELETE") == []


@pytest.mark.parametrize(("status", "deleted"), [(422, [JOB]), (400, [JOB]), (403, []), (409, [])])
def test_objects_that_can_not_be_adopted_are_deleted(
    server: Server, api: Api, stack: Stack, status: int, deleted: list[str]
) -> None:
    """Only what the server refuses to make what is wanted is deleted."""
    server.first = [refusal(status, "no")]
    server.answers[JOB] = GONE
    delete_conflicting(stack, api, plan(manifest()), THERE, {}, DeployOptions())

    assert asked(server, "DELETE") == deleted


DENIED = 'admission webhook "policy.example.com" denied the request: no'


@pytest.mark.parametrize(
    ("status", "reason", "deleted"),
    [
        pytest.param(400, DENIED, [], id="webhook"),
        pytest.param(403, DENIED, [], id="webhook-with-a-status"),
        pytest.param(422, "spec is invalid", [], id="policy-or-schema"),
        pytest.param(403, "forbidden: exceeded quota: small", [JOB], id="quota"),
        pytest.param(422, "nodePort: Invalid value: provided port is already allocated", [JOB], id="port"),
        pytest.param(409, "already exists", [JOB], id="name"),
    ],
)
def test_objects_that_could_not_be_created_again(
    server: Server, api: Api, stack: Stack, status: int, reason: str, deleted: list[str]
) -> None:
    """What runs stays if the server would refuse the new one too; its place in a quota becomes free."""
    server.first = [refusal(422, "immutable"), refusal(status, reason)]
    server.answers[JOB] = GONE
    delete_conflicting(stack, api, plan(manifest()), THERE, {}, DeployOptions())

    assert asked(server, "DELETE") == deleted
    (created,) = (request for request in server.asked if request.method == "POST")
    assert created.path == f"{JOBS}?fieldValidation=Strict&dryRun=All"
    assert json.loads(created.body)["metadata"]["name"] == "task-check"


def test_objects_of_other_services_stay(server: Server, api: Api, stack: Stack) -> None:
    """A deploy of some services deletes nothing of the others: it would not make it again."""
    server.otherwise = refusal(422, "immutable")
    web = ServicePlan(name="web", cluster_name="web", workload_kind="Deployment", image="x", objects=())
    both = plan(manifest())
    both = replace(both, services=(*both.services, web))
    delete_conflicting(stack, api, both, THERE, {}, DeployOptions(services=("web",)))

    assert server.asked == []


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("Job", {"resources": [{"type": "kubernetes:batch/v1:Job", "inputs": manifest()}]}),
        ("Deployment", {}),
    ],
    ids=["known", "changeable"],
)
def test_replaceable_objects_are_kept(server: Server, api: Api, stack: Stack, kind: str, state: dict[str, Any]) -> None:
    """What the state knows Pulumi replaces, and what can be changed is changed."""
    live_state = LiveState(object_metadata={(kind, "task"): {"metadata": {"name": "task", "labels": LABELS}}})
    delete_conflicting(stack, api, plan(manifest(kind)), live_state, state, DeployOptions())

    assert server.asked == []


def test_a_volume_is_deleted_with_its_users(
    server: Server, api: Api, stack: Stack, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only they go: other volumes, and the services that have those, stay; a note names the volume before."""
    notes: list[str] = []
    monkeypatch.setattr(stack, "note", notes.append)
    text = """
services:
  web: {image: x, volumes: ["uploads:/up"]}
  worker: {image: x, volumes: ["uploads:/up"], restart: "no"}
  db: {image: x, volumes: ["data:/data"]}
volumes: {data: {}, uploads: {}}
"""
    plan = project(text).read().plan
    assert plan is not None
    server.otherwise = GONE

    delete_volume(stack, api, plan, "uploads")

    assert {path.partition(f"{NAMESPACE}/")[2] for path in asked(server, "DELETE")} == {
        "statefulsets/web", "jobs/worker", "persistentvolumeclaims/uploads",
    }  # fmt: skip
    assert notes == ["deleting volume uploads and its data"]


def test_a_deletion_is_waited_for(server: Server, api: Api, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """It continues once the object is gone."""
    monkeypatch.setattr(Stack, "pause", lambda _: None)
    there = Answer(json.dumps(manifest(), default=str).encode())
    server.first = [there, there, there]
    server.answers[JOB] = GONE
    delete(stack, api, [("Job", "task")], "of before")

    assert (asked(server, "DELETE"), len(asked(server, "GET"))) == ([JOB], 3)


def test_many_deletions_are_waited_for_with_a_list(server: Server, api: Api, stack: Stack) -> None:
    """Objects of one kind that are gone take one request, and only what is left is asked for by name."""
    left = {"metadata": {"name": "task-7"}}
    server.answers[JOBS] = Answer(json.dumps({"items": [left]}).encode())
    server.answers[f"{JOBS}/task-7"] = GONE
    wait_until_deleted(stack, api, [("Job", f"task-{number}") for number in range(1000)], "that is destroyed")

    assert asked(server, "GET") == [JOBS, f"{JOBS}/task-7"]


def test_many_deletions_without_the_right_to_list(server: Server, api: Api, stack: Stack) -> None:
    """Where objects may not be listed, each is asked for by name."""
    server.answers[JOBS] = refusal(403, "no")
    server.otherwise = GONE
    wait_until_deleted(stack, api, [("Job", "a"), ("Job", "b")], "that is destroyed")

    assert asked(server, "GET") == [JOBS, f"{JOBS}/a", f"{JOBS}/b"]


def test_objects_that_are_kept(server: Server, api: Api, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """What something holds is reported, and how to see by what."""
    monkeypatch.setattr(deletion, "_DELETION_TIMEOUT_S", 0.0)
    monkeypatch.setattr(Stack, "pause", lambda _: None)
    held = manifest()
    held["metadata"]["finalizers"] = ["example.com/keep", "foregroundDeletion"]
    server.otherwise = Answer(json.dumps(held, default=str).encode())
    with pytest.raises(ComposeplatError) as caught:
        delete(stack, api, [("Job", "task")], "of before")

    why = "held by the finalizers example.com/keep, foregroundDeletion"
    assert str(caught.value) == f"Job 'task' of before still exists after 0 s, {why}"
    assert caught.value.hint == f"see what sets them: kubectl -n {NAMESPACE} get job task -o yaml"


def test_leftovers(server: Server, api: Api, stack: Stack) -> None:
    """What is ours and in no plan goes; claims, what is wanted, what goes already and what is others' stays."""

    def head(name: str, labels: dict[str, str] = LABELS, **more: str) -> dict[str, Any]:
        return {"kind": "Job", "metadata": {"name": name, "uid": f"of-{name}", "labels": labels, **more}}

    server.answers[JOBS] = given(
        head("task"),
        head("stray"),
        head("ending", deletionTimestamp="2025-06-01T12:00:00Z"),
        head("other", {**LABELS, "dev.platform.com/environment": "mail"}),
    )
    claims = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
    server.answers[claims] = given(
        {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "uid": "d", "labels": LABELS}}
    )

    (change,) = delete_leftovers(stack, api, plan(manifest()), read_live_state(api, NAMESPACE))
    assert (change.operation, change.kind, change.name) == (Operation.DELETE, "Job", "stray")
    assert asked(server, "DELETE") == [f"{JOBS}/stray"]


def test_objects_of_a_deploy_that_began_meanwhile(server: Server, api: Api, stack: Stack) -> None:
    """Another machine's deploy with a newer file may create a service, or replace one, while this one waits."""

    def head(name: str, uid: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "uid": uid, "labels": LABELS}}

    up = {"metadata": {**head("new-platform-up", "5")["metadata"], "labels": {**LABELS, "dev.platform.com/up": "new"}}}
    deployments = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    server.answers[JOBS] = given(head("stray", "1"), head("again", "2"))
    before = read_live_state(api, NAMESPACE)
    server.answers[JOBS] = given(head("stray", "1"), head("again", "3"), head("new", "4"))
    server.answers[deployments] = given(up)

    assert [change.name for change in delete_leftovers(stack, api, plan(manifest()), before)] == ["stray"]
    assert asked(server, "DELETE") == [f"{JOBS}/stray"]


def test_the_development_of_a_service_that_is_gone(server: Server, api: Api, stack: Stack) -> None:
    """Its container goes with the service, with a note; that of a service of the plan stays."""
    notes: list[str] = []
    stack.note = notes.append
    deployments = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    server.answers[deployments] = given(
        {"metadata": {"name": "task-platform-up", "uid": "1", "labels": {**LABELS, "dev.platform.com/up": "task"}}},
        {"metadata": {"name": "old-platform-up", "uid": "2", "labels": {**LABELS, "dev.platform.com/up": "old"}}},
    )

    assert delete_leftovers(stack, api, plan(manifest()), read_live_state(api, NAMESPACE)) == []
    assert asked(server, "DELETE") == [f"{deployments}/old-platform-up"]
    assert notes == ["the development of old has ended: this deploy has no such service"]


def test_pods_that_do_not_end(server: Server, api: Api, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a node that is gone stay; they are named, and those of others are not waited for."""
    monkeypatch.setattr(deletion, "_DELETION_TIMEOUT_S", 0.2)
    notes: list[str] = []
    stack.note = notes.append
    other = {"metadata": {"name": "other", "labels": {**LABELS, "dev.platform.com/environment": "else"}}}
    ending = pod(replica_set(deployment("task")), state=running(), going=True)
    ending["metadata"]["labels"] = LABELS
    server.otherwise = given(ending, other)
    wait_until_no_pods(stack, api)
    server.otherwise = given(lost(ending), other)
    wait_until_no_pods(stack, api)

    first = f"pods have not ended after 0 s, and may still run: {ending['metadata']['name']}"
    hint = "kubectl describe node node-1 says since when; if it is gone for good, kubectl delete node node-1 lets its"
    assert notes == [first, f"{first}; {hint} pods go"]


def test_pods_that_are_waited_for_are_named() -> None:
    """The progress has the names of the pods that still run, and each list of names once."""
    seen: list[progress.Event] = []
    pods = [{"metadata": {"name": f"web-{n}"}} for n in range(7)]
    with progress.use_handler(seen.append), wait_for_pods() as show:
        for left in (pods, pods, pods[:1], []):
            show(left)

    assert [(step.name, step.phase) for step in seen if isinstance(step, progress.Step)] == [
        ("waiting until all pods have ended", "started"),
        ("waiting for web-0, web-1, web-2, web-3, web-4 and 2 more", "started"),
        ("waiting for web-0, web-1, web-2, web-3, web-4 and 2 more", "done"),
        ("waiting for web-0", "started"),
        ("waiting for web-0", "done"),
        ("waiting until all pods have ended", "done"),
    ]


# namespaces -----------------------------------------------------------------------------------------------------------

ENDING = Answer(json.dumps({"metadata": {"name": NAMESPACE, "deletionTimestamp": "2025-06-01T12:00:00Z"}}).encode())


def test_a_namespace_that_is_being_deleted(server: Server, api: Api, stack: Stack) -> None:
    """A deploy waits until it is gone, as it accepts no new objects."""
    server.first = [ENDING, ENDING, GONE]

    wait_for_namespace(stack, api)

    assert len(server.asked) == 3


def test_a_namespace_that_is_not_deleted_in_time(
    server: Server, api: Api, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finalizer may hold it, which nobody can wait for."""
    monkeypatch.setattr(deletion, "_DELETION_TIMEOUT_S", 0.2)
    server.otherwise = ENDING

    with pytest.raises(ComposeplatError, match="is being deleted and still exists after 0 s") as caught:
        wait_for_namespace(stack, api)

    assert f"kubectl get namespace {NAMESPACE}" in caught.value.hint


def test_a_namespace_that_may_not_be_seen(server: Server, api: Api, stack: Stack) -> None:
    server.otherwise = refusal(403, "namespaces is forbidden")

    wait_for_namespace(stack, api)

    assert len(server.asked) == 1
