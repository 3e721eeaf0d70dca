"""An environment of a cluster on the page, without its definition."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Queue
from typing import Any

import pytest

from composeplat.cli.ui_cluster import ClusterEnvironment
from composeplat.cli.ui_sources import Place
from composeplat.cluster.api import ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import Object
from composeplat.engine.target import Target
from tests.cluster.objects import Answer, Server, given, refusal
from tests.cluster.test_environment_list import FORBIDDEN, PATHS, path_in
from tests.cluster.test_environments import service

INGRESSES = kind_path("networking.k8s.io/v1", "Ingress", "team")
ROUTES = kind_path("gateway.networking.k8s.io/v1", "HTTPRoute", "team")


@pytest.fixture
def server() -> Iterator[Server]:
    """A cluster with the service ``web``, in which everything may be listed."""
    with Server(otherwise=given(version="5")) as server:
        for kind in PATHS:
            items = (item for item in service() if item["kind"] == kind)
            server.answers[path_in("team", kind)] = given(*items, version="5")
        yield server


def environment(server: Server) -> ClusterEnvironment:
    target = Target(access=server.access, kubeconfig="")
    return ClusterEnvironment(target, Place(server.access, "team", "shop"))


def test_a_read_that_fails_leaves_no_watch(server: Server) -> None:
    """It is tried again for as long as it fails, as where the webhook of a kind does not answer."""
    events: Queue[Object | None] = Queue()
    server.watches = {INGRESSES: Answer(events=events)}
    server.answers[ROUTES] = refusal(500, "conversion webhook failed")
    before = set(threading.enumerate())
    with pytest.raises(ApiError, match="webhook"):
        environment(server).read_status(lambda *_: None, threading.Event())
    left = [thread for thread in threading.enumerate() if thread not in before and thread.name == "watch"]
    events.put(None)
    assert left == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [(INGRESSES, "addresses are not shown"), (path_in("team", "CronJob"), ""), (path_in("team", "Job"), "")],
)
def test_a_kind_that_may_not_be_listed(server: Server, path: str, problem: str) -> None:
    """The others are shown, as by platform status and in the list of environments."""
    server.answers[path] = FORBIDDEN
    found: dict[str, Any] = {}
    ended = threading.Event()

    def publish(topic: str, document: Any) -> None:
        if topic == "problem" and document["message"]:
            found.setdefault(topic, document["message"])
        elif topic != "problem":
            found[topic] = document
        if "status" in found and bool(problem) == ("problem" in found):
            ended.set()

    environment(server).read_status(publish, ended)
    assert [(row["service"], row["state"]) for row in found["status"]["services"]] == [("web", "ready")]
    assert problem in found.get("problem", "")
