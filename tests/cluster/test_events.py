"""Which events are an environment's, and in what order they are reported."""

from __future__ import annotations

import pytest

from composeplat.cluster.events import EnvironmentEvent, read_events
from composeplat.cluster.snapshot import Object
from composeplat.cluster.status import ServiceQuery
from tests.cluster.objects import MOMENT, deployment, event

WEB = ServiceQuery(name="Web", cluster_name="web", kind="Deployment")
API = ServiceQuery(name="web-api", cluster_name="web-api", kind="Deployment", dev_workload="web-api-platform-up")
DB = ServiceQuery(name="db", cluster_name="db", kind="StatefulSet")
MIGRATE = ServiceQuery(name="migrate", cluster_name="migrate", kind="Job")
OTHERS = {"PersistentVolumeClaim/data": "", "Ingress/site": "Web"}


def about(name: str, moment: str = MOMENT) -> Object:
    kind, _, name = name.partition("/")
    return event({"kind": kind, "metadata": {"name": name, "uid": "1"}}, "Because", lastTimestamp=moment)


@pytest.mark.parametrize(
    ("name", "service"),
    [
        pytest.param("Deployment/web", "Web", id="workload"),
        pytest.param("ReplicaSet/web-7d4b9c6f58", "Web", id="replica-set"),
        pytest.param("Pod/web-7d4b9c6f58-x7k2p", "Web", id="pod"),
        pytest.param("Pod/web-api-7d4b9c6f58-x7k2p", "web-api", id="pod-of-a-longer-name"),
        pytest.param("Pod/web-api-platform-up-7d4b9c6f58-x7k2p", "web-api", id="pod-under-development"),
        pytest.param("Pod/db-0", "db", id="pod-of-a-stateful-set"),
        pytest.param("PersistentVolumeClaim/anonymous-db-0", "db", id="claim-of-a-stateful-set"),
        pytest.param("Pod/migrate-x7k2p", "migrate", id="pod-of-a-job"),
        pytest.param("Ingress/site", "Web", id="endpoint"),
        pytest.param("PersistentVolumeClaim/data", "", id="volume"),
    ],
)
def test_the_service_of_an_event(name: str, service: str) -> None:
    """An event belongs to the service whose object it is about, even if that object is gone."""
    (found,) = read_events([about(name)], [WEB, API, DB, MIGRATE], OTHERS)
    assert (service, name) == (found.service, found.object)


@pytest.mark.parametrize(
    "name", ["Pod/other-7d4b9c6f58-x7k2p", "Pod/web", "Deployment/web-api-2", "Node/web", "Pod/db-x"]
)
def test_of_others(name: str) -> None:
    """Events about objects of others are left out."""
    assert read_events([about(name)], [WEB, API, DB, MIGRATE], OTHERS) == []


@pytest.mark.parametrize(
    ("other", "kinds", "name"),
    [
        ("shop", ("Deployment", "Job"), "Pod/shop-seed-x7k2p"),
        ("shop", ("Deployment", "DaemonSet"), "Pod/shop-seed-x7k2p"),
        ("seed", ("StatefulSet", "StatefulSet"), "PersistentVolumeClaim/anonymous-shop-seed-0"),
    ],
)
def test_the_name_of_another_service_in_a_name(other: str, kinds: tuple[str, str], name: str) -> None:
    """An object belongs to the service with the longer name: a hash may be a word, and so may a volume."""
    pairs = zip((other, "shop-seed"), kinds, strict=True)
    services = [ServiceQuery(name=service, cluster_name=service, kind=kind) for service, kind in pairs]

    for order in (services, services[::-1]):
        assert [found.service for found in read_events([about(name)], order, {})] == ["shop-seed"]


def test_the_order() -> None:
    """The oldest comes first, whichever field says when."""
    late = {**about("Deployment/web", ""), "eventTime": "2025-06-01T12:00:02.000001Z"}
    series = {**about("Deployment/web"), "series": {"count": 7, "lastObservedTime": "2025-06-01T12:00:03.5Z"}}
    found = read_events([series, late, about("Deployment/web", "2025-06-01T12:00:01Z")], [WEB], {})
    assert [(item.time[-3:], item.count) for item in found] == [("01Z", 1), ("02Z", 1), ("03Z", 7)]


def test_all_of_an_event() -> None:
    """Kind, reason and message come along, and how often it happened."""
    item = event(deployment("web"), "FailedCreate", " no quota\n", lastTimestamp=MOMENT, count=3)
    assert read_events([item], [WEB], {}) == [
        EnvironmentEvent(
            time=MOMENT, count=3, warning=True, service="Web", object="Deployment/web", reason="FailedCreate",
            message="no quota",
        )
    ]  # fmt: skip
