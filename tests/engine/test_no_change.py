"""When a run needs no Pulumi to say that nothing changed: the record, what must still hold, and what never does."""

from __future__ import annotations

import contextlib
import copy
import errno
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import ApiError
from composeplat.cluster.conditions import service_status
from composeplat.cluster.snapshot import Snapshot
from composeplat.compose.project_id import ProjectId
from composeplat.engine.backend import DataFolder
from composeplat.engine.no_change import (
    Digester,
    Record,
    digest_objects,
    doubt_about_digests,
    doubt_about_inputs,
    doubt_about_objects,
    doubt_about_options,
    doubt_about_plan,
    doubt_about_state,
    unchanged_resources,
)
from composeplat.engine.no_change_check import NoChangeCheck
from composeplat.engine.no_change_inputs import _variables, _versions
from composeplat.engine.no_change_look import Look, find_silent_ports, take_look
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import LiveState, object_keys
from composeplat.engine.provenance import Claim
from composeplat.engine.target import Target
from composeplat.plan import Plan
from composeplat.registry.exposed_ports import ExposedPorts
from tests.cluster.objects import Answer, Server, given, refusal
from tests.conftest import Project

DIGESTER = Digester(b"key")
RECORD = Record(
    inputs={"plan": "a", "versions": "b"},
    parts={"service-web": "p"},
    state="s",
    objects={"Service/web": "c"},
    resources=7,
)
OURS = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "demo"}


def planned(project: Project, service: str = "", more: str = "", **options: Any) -> Plan:
    text = f"services:\n  web: {{image: nginx, expose: [80]{service}}}\n{more}"
    reading = project({"compose.yaml": text}).read(**options)
    plan = reading.plan
    assert plan is not None, reading.messages
    return plan


def live(plan: Plan) -> dict[tuple[str, str], dict[str, Any]]:
    more = {"labels": OURS, "uid": "1", "resourceVersion": "1"}
    return {key: {"metadata": {"name": key[1], **more}} for key in object_keys(plan.objects)}


def test_a_record_is_read_as_it_was_written() -> None:
    """A record is text; one of another form is none."""
    assert Record.from_text(RECORD.to_text()) == RECORD
    assert Record.from_text(RECORD.to_text().replace('"format": 3', '"format": 0')) is None
    assert Record.from_text(RECORD.to_text().replace("resources", "other")) is None
    assert [Record.from_text(text) for text in ("", "[]", "{}", "null", '{"format": 3}')] == [None] * 5


def test_a_digest_needs_the_key() -> None:
    """The same value has another digest with another key, so that nobody can guess a value."""
    value = {"password": "a"}
    assert DIGESTER.digest(value) == Digester(b"key").digest({"password": "a"})
    assert DIGESTER.digest(value) != Digester(b"other").digest(value)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": None}, {}),
        ([1, 2], [2, 1]),
        (frozenset({"a"}), ["a"]),
        (b"a", "a"),
        ("\udcff", "?"),
        (MappingProxyType({"a": 1}), MappingProxyType({"a": 2})),
        (frozenset({"a"}), frozenset({"b"})),
        (Path("a"), Path("b")),
        (Path("a"), "a"),
        (RECORD, replace(RECORD, resources=8)),
    ],
    ids=["type", "absence", "order", "set", "bytes", "no-text", "mapping", "member", "path", "path-or-text", "record"],
)
def test_different_values_have_different_digests(value: object, other: object) -> None:
    """A digest has the types of values, and their order where that counts."""
    assert DIGESTER.digest(value) != DIGESTER.digest(other)


def test_a_set_has_no_order() -> None:
    """Nor has it a digest of its own in each process, which hashes texts in another way."""
    assert DIGESTER.digest(frozenset({0, 8})) == DIGESTER.digest(frozenset({8, 0}))


def test_a_plan_has_a_digest(project: Project) -> None:
    """The same file gives the same digest; a variable, an image, a port or a file gives another."""
    same = DIGESTER.digest(planned(project, ", environment: {A: b}"))
    assert DIGESTER.digest(planned(project, ", environment: {A: b}")) == same
    for change in (
        ", environment: {A: c}",
        ", environment: {A: b}, ports: ['81:80']",
        ", environment: {A: b}, user: '1'",
    ):
        assert DIGESTER.digest(planned(project, change)) != same
    assert DIGESTER.digest(planned(project, ", environment: {A: b}").with_confidential(("b",))) != same


def test_inputs_that_changed_are_named() -> None:
    """The reason names each input that is another, new or missing."""
    assert doubt_about_inputs(RECORD, {"plan": "a", "versions": "b"}) == ""
    assert doubt_about_inputs(RECORD, {"plan": "x", "more": "b"}) == "changed since the last run: more, plan, versions"


def test_an_object_that_changed_is_named() -> None:
    """An object that is missing, new or other is a reason."""
    assert doubt_about_digests(RECORD, {"Service/web": "c"}) == ""
    for found in ({}, {"Service/web": "d"}, {"Service/web": "c", "Service/other": "c"}):
        assert doubt_about_digests(RECORD, found).startswith("changed in the cluster: Service/")


DEPLOYMENT = {
    "metadata": {
        "name": "web",
        "uid": "1",
        "generation": 1,
        "resourceVersion": "10",
        "labels": OURS,
        "annotations": {"a": "b"},
        "managedFields": [
            {"manager": "composeplat", "operation": "Apply", "time": "T1", "fieldsV1": {"f:spec": {}}},
            {"manager": "kube", "operation": "Update", "subresource": "status", "time": "T1"},
        ],
    }
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("uid",), "2"),
        (("generation",), 2),
        (("labels",), {}),
        (("annotations",), {"a": "c"}),
        (("finalizers",), ["x"]),
        (("deletionTimestamp",), "T"),
        (("ownerReferences",), [{"uid": "3"}]),
        (("managedFields", 0, "time"), "T2"),
        (("managedFields", 0, "fieldsV1"), {}),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_workload_that_somebody_changed(path: tuple[Any, ...], value: object) -> None:
    """Everything but its status counts for a workload."""
    changed = copy.deepcopy(DEPLOYMENT)
    place: Any = changed["metadata"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    digests = [digest_objects(DIGESTER, {("Deployment", "web"): item}) for item in (DEPLOYMENT, changed)]
    assert digests[0] != digests[1]


def test_a_run_of_a_schedule_is_no_change() -> None:
    """The Jobs that a CronJob makes come and go; one with the labels of a deploy would be deleted by the next one."""
    owner = {"ownerReferences": [{"kind": "CronJob", "uid": "7", "controller": True}]}
    job = {"metadata": {"name": "web-1", "uid": "8", "labels": {"dev.platform.com/environment": "demo"}, **owner}}
    ours = {"metadata": {**job["metadata"], "labels": OURS}}
    before, run, other = (
        digest_objects(DIGESTER, {("CronJob", "web"): DEPLOYMENT, **more})
        for more in ({}, {("Job", "web-1"): job}, {("Job", "web-1"): ours})
    )

    assert run == before
    assert other.keys() == {"CronJob/web", "Job/web-1"}


def test_a_status_is_no_change() -> None:
    """A new status gives a workload another version and time, and no other digest; of a Secret each version counts."""
    changed = copy.deepcopy(DEPLOYMENT)
    changed["metadata"]["resourceVersion"] = "11"
    changed["metadata"]["managedFields"][1]["time"] = "T2"  # type: ignore[index]
    for kind, is_same in (("Deployment", True), ("StatefulSet", True), ("Secret", False), ("Service", False)):
        before, after = (digest_objects(DIGESTER, {(kind, "web"): item}) for item in (DEPLOYMENT, changed))
        assert (before == after) is is_same, kind


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (DeployOptions(services=("web",)), "services"),
        (DeployOptions(wait=False), "wait"),
        (DeployOptions(rerun_jobs=True), "rerun_jobs"),
        (DeployOptions(refresh=True), "refresh"),
        (DeployOptions(replaced_volumes=("data",)), "replaced_volumes"),
        (DeployOptions(take_over=True), "take_over"),
        (DeployOptions(build=True), "build"),
        (DeployOptions(build=False), "build"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_that_need_pulumi(options: DeployOptions, name: str) -> None:
    """Each option that can change an object needs Pulumi."""
    assert doubt_about_options(options) == f"the option {name} is given"


def test_options_that_do_not() -> None:
    """A deploy without options does not, whatever its timeout is, nor how often it writes the state."""
    assert doubt_about_options(DeployOptions()) == ""
    assert doubt_about_options(DeployOptions(timeout=1, safe_checkpoints=True)) == ""


@pytest.mark.parametrize(
    ("service", "more", "reason"),
    [
        ("", "", ""),
        (", pull_policy: daily", "", "the image of web may be newer in its registry"),
        (
            ", cpus: 1, x-autoscale: {max: 3, cpu: 50}",
            "",
            "the cluster decides on a part of HorizontalPodAutoscaler 'web'",
        ),
        (", volumes: ['data:/data']", "volumes: {data: {external: true}}", "'data' of somebody else is used"),
    ],
    ids=["plain", "pull-policy", "autoscale", "external"],
)
def test_plans_that_need_pulumi(project: Project, service: str, more: str, reason: str) -> None:
    """What the cluster or a registry decides is asked each time."""
    found = doubt_about_plan(planned(project, service, more, full=True))
    assert found.endswith(reason)
    assert bool(found) is bool(reason)


def test_objects_that_are_as_they_were_left(project: Project) -> None:
    """A record is written if each planned object is there, and none more."""
    plan = planned(project)
    assert doubt_about_objects(plan, LiveState(object_metadata=live(plan))) == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({("Service", "web"): None}, "Service 'web' is missing, or not of this environment"),
        ({("Service", "web"): {"labels": {}}}, "Service 'web' is missing, or not of this environment"),
        ({("Service", "web"): {"labels": OURS, "deletionTimestamp": "T"}}, "Service 'web' is being deleted"),
        ({("Secret", "old"): {"labels": OURS}}, "Secret 'old' is in no plan"),
        (
            {("Deployment", "web-up"): {"labels": {**OURS, "dev.platform.com/up": "web"}, "name": "web-up"}},
            "Deployment 'web-up' is in no plan",
        ),
        (
            {("Deployment", "web"): {"labels": OURS, "annotations": {"dev.platform.com/asleep": "1"}}},
            "a service is asleep",
        ),
    ],
    ids=["missing", "label", "deleting", "leftover", "development", "asleep"],
)
def test_objects_that_are_not(project: Project, change: dict[tuple[str, str], Any], reason: str) -> None:
    """Anything else in the namespace prevents a record."""
    plan = planned(project)
    objects = {key: value for key, value in live(plan).items() if key not in change}
    objects.update({key: {"metadata": value} for key, value in change.items() if value is not None})
    assert doubt_about_objects(plan, LiveState(object_metadata=objects)) == reason


def state(outputs: object, **more: object) -> dict[str, Any]:
    inputs = {"spec": {"replicas": 1, "ports": [{"port": 80}]}, "data": {"4dabf18193072939515e22adb298388d": "x"}}
    return {"resources": [{"urn": "u", "type": "kubernetes:v1:X", "inputs": inputs, "outputs": outputs, **more}]}


def test_a_state_after_changes() -> None:
    """After changes, each live object must have what was asked for; it may have more."""
    asked = {"spec": {"replicas": 1, "ports": [{"port": 80, "name": "x"}], "more": 1}, "data": "?"}
    assert doubt_about_state(state(asked), has_changes=True) == ""
    for spec in ({"replicas": 2, "ports": [{"port": 80}]}, {"replicas": 1, "ports": []}, {"replicas": 1}, None):
        changed = state({**asked, "spec": spec})
        assert doubt_about_state(changed, has_changes=True) == "the cluster has changed a field of u"
        assert doubt_about_state(changed, has_changes=False) == ""
    assert doubt_about_state(state(asked, delete=True), has_changes=True) == "u is still to be deleted"


def test_a_state_with_pending_operations() -> None:
    """What a killed run left prevents a record."""
    pending: dict[str, Any] = {"pending_operations": [{}]}
    assert doubt_about_state(pending, has_changes=False) == "the state has pending operations"


def test_the_number_of_unchanged_resources() -> None:
    """After changes, all resources but the deleted ones are unchanged."""
    assert unchanged_resources({"same": 3, "create": 2, "update": 1, "replace": 1, "delete": 4}) == 7


# inputs ---------------------------------------------------------------------------------------------------------------


def test_variables_that_count() -> None:
    """Variables of Pulumi, of builders and of the platform count; those of a terminal and the switch do not."""
    environment = {
        "PULUMI_X": "1", "https_proxy": "p", "DOCKER_HOST": "d", "TERM": "x", "PLATFORM_SKIP_UNCHANGED": "1",
    }  # fmt: skip
    assert _variables(environment) == [("DOCKER_HOST", "d"), ("PULUMI_X", "1"), ("https_proxy", "p")]


def test_another_version_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of Pulumi's SDK, of a provider or of the platform is another input."""
    before = _versions()
    (tmp_path / "pulumi_kubernetes-99.0.0.dist-info").mkdir()
    assert _versions() == before
    monkeypatch.syspath_prepend(str(tmp_path))
    assert _versions() != before


def begun_check(project: Project, folder: Path) -> tuple[NoChangeCheck, str]:
    """The check of a run whose state is in a file, and a digest of it."""
    plan = planned(project)
    workspace = SimpleNamespace(
        folder=folder / "stack", state_file=folder / "state.json", data_folder=DataFolder(folder), cluster="c",
        backend=SimpleNamespace(url="file://x", variables={}), builder={},
    )  # fmt: skip
    target = Target(access=Access(host="h", port=1), kubeconfig="/k")
    stack: Any = SimpleNamespace(workspace=workspace, target=target, claim=None, variables={"HOME": str(folder)})
    check = NoChangeCheck.begin(stack, plan, DeployOptions())
    return check, check.digester.digest("a")


def test_a_passphrase_of_another_user(project: Project, tmp_path: Path) -> None:
    """As after ``sudo``: no record can be read or left, and what needs the passphrase says that it can't be read."""
    (tmp_path / "passphrase").mkdir()

    assert begun_check(project, tmp_path)[1] != begun_check(project, tmp_path)[1]
    (tmp_path / "passphrase").rmdir()
    (tmp_path / "passphrase").write_text("phrase")
    assert begun_check(project, tmp_path)[1] == begun_check(project, tmp_path)[1]


def test_a_folder_of_packages_that_can_not_be_listed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python imports from it all the same; what is in it is not known, so that Pulumi runs."""
    (tmp_path / "passphrase").write_text("phrase")
    closed, listdir = tmp_path / "closed", os.listdir
    closed.mkdir()

    def refuse(folder: str) -> list[str]:
        if folder == str(closed):
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return listdir(folder)

    assert begun_check(project, tmp_path)[0].inputs
    monkeypatch.syspath_prepend(str(closed))
    monkeypatch.setattr(os, "listdir", refuse)
    assert not begun_check(project, tmp_path)[0].inputs


def test_ports_of_images_are_known_for_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ports that have to be read again from a registry are not known; those of a digest stay known."""
    exposed, pinned = ExposedPorts(tmp_path, {}), f"nginx@sha256:{'0' * 64}"
    assert exposed.find_known("nginx") is None
    for image in ("nginx", pinned):
        exposed.remember(image, ((80, "tcp"),))
    tomorrow = time.time() + 25 * 3600

    found = exposed.find_known("nginx")
    assert found is not None
    assert found.ports == ((80, "tcp"),)
    monkeypatch.setattr(time, "time", lambda: tomorrow)
    assert exposed.find_known("nginx") is None
    assert exposed.find_known(pinned) is not None


# one look at the cluster ----------------------------------------------------------------------------------------------


def owned(name: str, owner: str, **more: Any) -> dict[str, Any]:
    references = [{"controller": True, "uid": owner}]
    return {
        "metadata": {"name": name, "uid": name, "ownerReferences": references, **more},
        "spec": {"containers": [{"name": "app"}]},
    }


def test_the_status_of_services(project: Project) -> None:
    """Each service has the status that it has among all pods."""
    text = "services:\n  web: {image: nginx}\n  api: {image: nginx}\n  once: {image: nginx, restart: 'no'}\n"
    plan = project(text).read().plan
    assert plan is not None
    look, revision = Look(), {"deployment.kubernetes.io/revision": "1"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for service in plan.services:
        kind, name = service.workload
        status = {"updatedReplicas": 1, "replicas": 1, "conditions": [{"type": "Complete", "status": "True"}]}
        metadata = {"name": name, "uid": name, "annotations": revision}
        look.objects[kind, name] = {"metadata": metadata, "spec": {"replicas": 1}, "status": status}
        look.replica_sets.append(owned(f"{name}-rs", name, annotations=revision))
        owner = name if kind == "Job" else f"{name}-rs"
        look.pods.append({**owned(f"{name}-pod", owner), "status": {} if name == "api" else ready})
    everything = Snapshot(workloads=look.objects, replica_sets=look.replica_sets, pods=look.pods)

    found = look.statuses(plan.services)

    assert {name: str(status.message) for name, status in found.items()} == {
        "web": "1/1 ready", "api": "0/1 ready, creating its pod", "once": "completed",
    }  # fmt: skip
    for service in plan.services:
        assert found[service.name] == service_status(*service.workload, service.cluster_name, everything)


def keep_record(
    project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch, found: dict[tuple[str, str], dict[str, Any]]
) -> bool:
    """Whether a run without changes leaves a record, where a namespace has these objects beside those of the plan."""
    plan = planned(project)
    claim = Claim(project=ProjectId("this", "the project"), name_from_folder=False)
    record = folder / "unchanged.json"
    workspace = SimpleNamespace(record_file=record, state_file=folder / "a/b/c/d/state.json")
    workspace.state_file.parent.mkdir(parents=True)
    workspace.state_file.write_text("{}")
    stack: Any = SimpleNamespace(
        claim=claim, is_interrupted=False, state={}, environment_name="demo", namespace="team", workspace=workspace
    )
    monkeypatch.setattr(NoChangeCheck, "_look", lambda *_, **__: Look(objects={**live(plan), **found}))
    check = NoChangeCheck(stack=stack, plan=plan, digester=DIGESTER, began_ns=0, inputs={"plan": "a"}, parts={})
    check.keep({"same": 1}, has_changes=False)
    return record.exists()


@pytest.mark.parametrize(("key", "expected"), [("this", True), ("other", False), ("", False)])
def test_the_project_of_an_environment(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, *, expected: bool
) -> None:
    """After a preview from another project, the next deploy still has to make the environment its own."""
    annotations = {"dev.platform.com/project": key}
    name = "platform-project.demo"
    found = {("ConfigMap", name): {"metadata": {"name": name, "annotations": annotations, "resourceVersion": "1"}}}

    assert keep_record(project, tmp_path, monkeypatch, found if key else {}) is expected


# the look -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "is_refused"), [("httproutes", False), ("services", True)])
def test_a_look_of_a_user_with_few_rights(project: Project, kind: str, *, is_refused: bool) -> None:
    """The role ``edit`` has no routes of gateways: a plan without one needs no Pulumi all the same."""
    group = {"httproutes": "apis/gateway.networking.k8s.io/v1", "services": "api/v1"}[kind]
    plan = planned(project)
    answers = {f"/{group}/namespaces/{plan.namespace}/{kind}": refusal(403, f"{kind} is forbidden")}
    with Server(answers, otherwise=given()) as server, contextlib.ExitStack() as expected:
        if is_refused:
            expected.enter_context(pytest.raises(ApiError, match="forbidden"))
        assert take_look(server.access, plan, (), pods=True).objects == {}


def test_a_look_at_objects_by_name(project: Project) -> None:
    """Those that have no label of the environment are got by their names; what is not there is left out."""
    secrets = f"/api/v1/namespaces/{planned(project).namespace}/secrets"
    record = {"metadata": {"name": "record", "uid": "1"}}
    answers = {f"{secrets}/record": Answer(json.dumps(record).encode()), f"{secrets}/none": refusal(404, "none")}
    with Server(answers, otherwise=given()) as server:
        look = take_look(server.access, planned(project), [("Secret", "record"), ("Secret", "none")], pods=False)

    assert look.objects == {("Secret", "record"): record}


def test_ports_on_which_nothing_listens() -> None:
    """A refused connection says so; any answer, and none that could be had, does not."""
    pods = "/api/v1/namespaces/team/pods"
    refused = refusal(503, "error trying to reach service: dial tcp 10.0.0.1:80: connect: connection refused")
    answers = {
        f"{pods}/closed:80/proxy/": refused,
        f"{pods}/hidden:80/proxy/": refusal(403, "cannot get resource pods/proxy"),
    }
    asked = [("closed", 80), ("open", 80), ("hidden", 80)]
    with Server(answers, otherwise=given()) as server:
        assert find_silent_ports(server.access, "team", asked) == [("closed", 80)]
        assert find_silent_ports(server.access, "team", asked[1:]) == []
