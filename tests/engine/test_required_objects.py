"""The objects that a plan requires: what is reported about each, and never with the value of a variable."""

from __future__ import annotations

import http.client
from typing import Any, cast

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.diagnostics import MissingPiece, Report
from composeplat.engine.required_objects import check_required, check_routes
from composeplat.plan import make_plan
from composeplat.plan.desired import Plan
from tests.conftest import Project

OURS = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "demo"}
TEXT = "services: {web: {image: x, SERVICE}}\nsecrets: {s: {external: true, name: $HIDDEN, x-key: $HIDDEN}}\n"
SECRET = TEXT.replace("SERVICE", "secrets: [s]")
RUNTIME = TEXT.replace("SERVICE", "runtime: $HIDDEN")


class Cluster:
    """Finds one object for every path, and lists the runtime classes."""

    def __init__(self, found: dict[str, Any] | None, status: int = 0) -> None:
        self.found, self.status = found, status

    def find(self, path: str) -> dict[str, Any] | None:
        assert "planted" in path
        if self.status:
            raise ApiError(self.status, "no")
        return self.found

    def items(self, _path: str) -> list[dict[str, Any]]:
        return [{"metadata": {"name": "gvisor"}}]


@pytest.mark.parametrize(
    ("text", "found", "message", "hint"),
    [
        pytest.param(SECRET, None, "external, and Secret '$HIDDEN' (after", "create it: kubectl", id="missing"),
        pytest.param(
            SECRET, {"metadata": {}, "data": {"a": ""}}, "reads the key '$HIDDEN' (after", "x-key: a", id="other-key"
        ),
        pytest.param(SECRET, {"metadata": {"labels": OURS}}, "is of this environment, whose", "another", id="its-own"),
        pytest.param(RUNTIME, None, "needs RuntimeClass '$HIDDEN' (after", "classes are: gvisor", id="runtime"),
    ],
)
def test_messages(project: Project, text: str, found: dict[str, Any] | None, message: str, hint: str) -> None:
    """A message has the name as the file has it."""
    (reported,) = check(project, text, Cluster(found)).sorted()

    assert (reported.code, message in reported.message, hint in reported.hint) == ("missing-object", True, True)
    assert "planted" not in reported.message + reported.hint


def test_an_object_that_may_not_be_read(project: Project) -> None:
    """The kubelet may read it; another failure is an error."""
    assert check(project, SECRET, Cluster(None, http.client.FORBIDDEN)).sorted() == []
    with pytest.raises(ApiError):
        check(project, SECRET, Cluster(None, http.client.BAD_GATEWAY))


def check(project: Project, text: str, cluster: Cluster) -> Report:
    loaded = project(text, HIDDEN="planted").read(full=True).loaded
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    report = Report()
    check_required(cast("Api", cluster), plan, loaded.origins, report)
    return report


class Discovery:
    """Answers which kinds of a group there are."""

    def __init__(self, *kinds: str, status: int = 0) -> None:
        self.kinds, self.status = kinds, status
        self.asked: list[str] = []

    def find(self, path: str) -> dict[str, Any] | None:
        self.asked.append(path)
        if self.status:
            raise ApiError(self.status, "no")
        return {"resources": [{"kind": kind} for kind in self.kinds]} if self.kinds else None


def planned(project: Project, **settings: str) -> Plan:
    text = "services: {web: {image: x, ports: ['80:80']}}"
    plan = project(text).read(default_domain="example.com", **settings).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize("kinds", [(), ("GRPCRoute",)])
def test_a_cluster_without_routes(project: Project, kinds: tuple[str, ...]) -> None:
    """Without the group, or without the kind in it, endpoints can't be routes."""
    with pytest.raises(MissingPiece, match="endpoints are routes of Gateway 'front', and the cluster lacks their kind"):
        check_routes(cast("Api", Discovery(*kinds)), planned(project, gateway="front"))


def test_a_cluster_with_routes(project: Project) -> None:
    """Where the kind is there, or can't be asked for, nothing is reported; without routes nothing is asked."""
    plan = planned(project, gateway="front")
    check_routes(cast("Api", Discovery("HTTPRoute")), plan)
    check_routes(cast("Api", Discovery(status=http.client.FORBIDDEN)), plan)
    with pytest.raises(ApiError):
        check_routes(cast("Api", Discovery(status=http.client.BAD_GATEWAY)), plan)

    unasked = Discovery()
    check_routes(cast("Api", unasked), planned(project))
    assert unasked.asked == []
