"""Services under development, as a deploy sees them."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.engine.dev_workloads import (
    OriginalWorkload,
    dev_workloads_by_service,
    is_dev_workload,
    planned_original,
    planned_replicas,
    read_replicas,
    replicas_patch,
    without_pods,
    workloads_without_pods,
)
from composeplat.plan.desired import DesiredObject, Plan, ServicePlan
from composeplat.plan.identity import Identity
from composeplat.plan.resource_keys import ResourceKey, ResourceKind

IDENTITY = Identity(environment="shop", namespace="dev")


def service(name: str, kind: str = "Deployment", **spec: Any) -> ServicePlan:
    workload = {"kind": kind, "metadata": {"name": name}, "spec": spec}
    address = {"kind": "Service", "metadata": {"name": name}, "spec": {}}
    objects = (
        DesiredObject(key=ResourceKey(ResourceKind.WORKLOAD, name), manifest=workload),
        DesiredObject(key=ResourceKey(ResourceKind.SERVICE, name), manifest=address),
    )
    return ServicePlan(name=name, cluster_name=name, workload_kind=kind, image="i", objects=objects)


def plan(*services: ServicePlan) -> Plan:
    return Plan(environment="shop", namespace="dev", services=services)


def head(name: str, environment: str = "shop", **labels: str) -> dict[str, Any]:
    identity = Identity(environment=environment, namespace="dev")
    return {"metadata": {"name": name, "labels": {**identity.labels("web"), **labels}}}


UP = {"dev.platform.com/up": "web"}


def test_a_dev_workload_is_found_by_its_label() -> None:
    """The Deployment that is marked is in for the service it names; the claim beside it does not."""
    object_metadata = {
        ("Deployment", "web-platform-up"): head("web-platform-up", **UP),
        ("PersistentVolumeClaim", "web-platform-files"): head("web-platform-files", **UP),
        ("Deployment", "web"): head("web"),
    }
    assert dev_workloads_by_service(object_metadata, "shop") == {"web": "web-platform-up"}


def test_a_dev_workload_of_another_environment() -> None:
    """Two environments in one namespace do not hold each other's pods back."""
    object_metadata = {("Deployment", "x"): head("x", "other", **UP)}
    assert dev_workloads_by_service(object_metadata, "shop") == {}


def test_a_workload_without_labels_is_no_dev_workload() -> None:
    """An object of someone else may carry no labels at all."""
    assert not is_dev_workload({"metadata": {"name": "x"}})


@pytest.mark.parametrize(
    ("kind", "spec", "held"),
    [
        pytest.param("Deployment", {"replicas": 3}, {"replicas": 0}, id="deployment"),
        pytest.param("StatefulSet", {"replicas": 1}, {"replicas": 0}, id="stateful-set"),
        pytest.param("Job", {}, {"suspend": True}, id="job"),
    ],
)
def test_a_service_under_development_has_no_pods(kind: str, spec: dict[str, Any], held: dict[str, Any]) -> None:
    """Its workload is deployed with none; its other objects are as they were."""
    made = without_pods(plan(service("web", kind, **spec)), {"web"}).services[0]
    assert [desired.manifest["spec"] for desired in made.objects] == [held, {}]


def test_other_services_have_theirs() -> None:
    """What is not developed is deployed as ever."""
    whole = plan(service("api", replicas=2))
    assert whole == without_pods(whole, {"web"})


@pytest.mark.parametrize(
    ("workload", "count"),
    [
        pytest.param({"kind": "Deployment", "spec": {"replicas": 2}}, 2, id="said"),
        pytest.param({"kind": "Deployment", "spec": {}}, 1, id="unsaid"),
        pytest.param({"kind": "Job", "spec": {}}, 1, id="job"),
        pytest.param({"kind": "Job", "spec": {"suspend": True}}, 0, id="suspended"),
    ],
)
def test_how_many_pods(workload: dict[str, Any], count: int) -> None:
    """A Job counts as one pod while it may run."""
    assert read_replicas(workload) == count


def test_a_job_is_given_back_by_letting_it_run() -> None:
    """It has no number of replicas."""
    assert [replicas_patch("Job", 1), replicas_patch("Deployment", 2)] == [
        {"spec": {"suspend": False}},
        {"spec": {"replicas": 2}},
    ]


def test_the_original_that_a_dev_workload_records() -> None:
    """The kind and the number of pods, as the file has them now."""
    web = service("web", "StatefulSet", replicas=4)

    assert planned_original(plan(web), web) == OriginalWorkload(kind="StatefulSet", name="web", replicas=4)


def test_services_that_the_state_has_no_pods_for() -> None:
    """After a deploy during development; one that is going away, and other services, are not meant."""

    def resource(name: str, replicas: int, **more: Any) -> dict[str, Any]:
        inputs = {"kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": replicas}}
        return {"urn": f"urn::{name}", "inputs": inputs, **more}

    state = {"resources": [resource("web", 0), resource("api", 0), resource("db", 1), resource("old", 0, delete=True)]}
    assert workloads_without_pods(state, {"web", "db", "old"}) == {"web": "urn::web"}


def test_the_number_of_pods_by_the_plan() -> None:
    """A workload has what the plan says; one that no plan has counts as one."""
    planned = plan(service("web", replicas=3), service("job", "Job", suspend=True))

    assert [planned_replicas(planned, name) for name in ("web", "job", "gone")] == [3, 0, 1]
