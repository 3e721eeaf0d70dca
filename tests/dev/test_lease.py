"""The lease of `platform up` on a service: by whose clock it ends, and the messages if it can't be renewed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.live_list import LiveList
from composeplat.dev.lease import LEASE_ANNOTATION, LEASE_DURATION_S, LeaseRenewal, lease_holder
from composeplat.dev.replacement import Replacement
from tests.cluster.objects import Server, deployment, given

#: The clock of the API server: that of this machine is years ahead.
SERVER_TIME = 1577880000


def dev_workload(**held: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {LEASE_ANNOTATION: json.dumps(held)}}}


def test_a_lease_is_by_the_servers_clock() -> None:
    """Where the clocks of two machines were half a minute apart, a live `up` was not seen, and both had the service."""
    with Server(date="Wed, 01 Jan 2020 12:00:00 GMT") as server, Api(server.access) as api:
        replacement = Replacement(api=api, namespace="team", environment="shop", kind="Deployment", name="web")
        api.get("/version")
        replacement.renew_lease({"id": "mine"}, {"metadata": {"resourceVersion": "1"}})
        written = json.loads(json.loads(server.asked[-1].body)["metadata"]["annotations"][LEASE_ANNOTATION])
        held = lease_holder(dev_workload(**written), api.server_time)

    assert written["id"] == "mine"
    assert 0 <= written["seen"] - SERVER_TIME < 5
    assert held == written


@pytest.mark.parametrize(("age", "is_held"), [(LEASE_DURATION_S - 1, True), (LEASE_DURATION_S + 1, False)])
def test_a_lease_that_is_not_renewed(age: float, *, is_held: bool) -> None:
    """A holder that has not been received of for half a minute has gone."""
    assert is_held is (lease_holder(dev_workload(seen=SERVER_TIME), SERVER_TIME + age) is not None)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"seen": 1e999}', id="infinite"),
        pytest.param('{"seen": NaN}', id="no-number"),
        pytest.param('{"seen": ' + "9" * 400 + "}", id="large"),
        pytest.param('["seen"]', id="list"),
    ],
)
def test_a_lease_that_no_session_has_written(text: str) -> None:
    """Everyone who may change Deployments can write the annotation: without a moment it is no lease, and no error."""
    assert lease_holder({"metadata": {"annotations": {LEASE_ANNOTATION: text}}}, SERVER_TIME) is None


def test_a_lease_that_someone_else_has_now() -> None:
    """A lease is renewed only on the dev workload as it was seen: the API server refuses it after a takeover."""
    with Server() as server, Api(server.access) as api:
        replacement = Replacement(api=api, namespace="team", environment="shop", kind="Deployment", name="web")
        replacement.renew_lease({"id": "mine"}, {"metadata": {"name": "web-dev", "resourceVersion": "17"}})
        body = json.loads(server.asked[-1].body)

    assert body["metadata"]["resourceVersion"] == "17"


def test_workloads_of_a_list() -> None:
    """With lists, workloads are read from them, and nothing is asked for each."""
    path = "/apis/apps/v1/namespaces/team/deployments"
    web = {key: value for key, value in deployment("web").items() if key not in ("apiVersion", "kind")}
    with (
        Server(otherwise=given(web, deployment("api"), version="5")) as server,
        Api(server.access) as api,
    ):
        live = LiveList(server.access, path)
        replacement = Replacement(
            api=api, namespace="team", environment="shop", kind="Deployment", name="web", lists={"Deployment": live}
        )
        found, missing = replacement.workload(), replacement.dev_workload()
        live.stop()
        paths = [path for path in server.paths if "watch=1" not in path]

    assert found == {**web, "kind": "Deployment"}
    assert missing is None
    assert set(paths) == {path}


def test_a_lease_that_can_not_be_renewed_is_reported() -> None:
    """`up` lost its lease without a message; there is one, and once more when it is renewed."""
    notes: list[str] = []
    moments = iter((0.0, 10.0, 29.0, 31.0, 40.0, 41.0))
    renewal = LeaseRenewal("web", notes.append, now=lambda: next(moments))
    for _ in range(3):
        renewal.fail(ApiError(401, "the API server does not accept the credentials"))
    renewal.succeed()
    renewal.succeed()

    reason = "the API server does not accept the credentials"
    assert notes == [
        f"the lease on web can't be renewed, and others may take it over: {reason}",
        "the lease on web is renewed again",
    ]
