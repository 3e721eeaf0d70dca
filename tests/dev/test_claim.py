"""The claim of `platform up` on a service: by whose clock it ends, and what is told where it can't be renewed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.dev.dev_workload import HELD_BY
from composeplat.dev.session import Claim
from composeplat.dev.swap import HOLDER_GONE_AFTER, Swap, holder_of
from tests.cluster.objects import Server

#: The clock of the API server: that of this machine is years ahead.
SERVER_TIME = 1577880000


def dev_workload(**held: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {HELD_BY: json.dumps(held)}}}


def test_a_claim_is_by_the_servers_clock() -> None:
    """Where the clocks of two machines were half a minute apart, a live `up` was not seen, and both had the service."""
    with Server(date="Wed, 01 Jan 2020 12:00:00 GMT") as server, Api(server.access) as api:
        swap = Swap(api=api, namespace="team", environment="shop", kind="Deployment", name="web")
        api.get("/version")
        swap.hold({"id": "mine"})
        written = json.loads(json.loads(server.asked[-1].body)["metadata"]["annotations"][HELD_BY])
        held = holder_of(dev_workload(**written), api.server_time)

    assert written["id"] == "mine"
    assert 0 <= written["seen"] - SERVER_TIME < 5
    assert held == written


@pytest.mark.parametrize(("age", "is_held"), [(HOLDER_GONE_AFTER - 1, True), (HOLDER_GONE_AFTER + 1, False)])
def test_a_claim_that_is_not_renewed(age: float, *, is_held: bool) -> None:
    """A holder that has not been heard of for half a minute has gone."""
    assert is_held is (holder_of(dev_workload(seen=SERVER_TIME), SERVER_TIME + age) is not None)


def test_a_claim_that_can_not_be_renewed_is_told() -> None:
    """`up` lost its claim without a word; it is told once, and once more when it is renewed."""
    said: list[str] = []
    moments = iter((0.0, 10.0, 29.0, 31.0, 40.0, 41.0))
    claim = Claim("web", said.append, now=lambda: next(moments))
    for _ in range(3):
        claim.fail(ApiError(401, "the API server does not accept the credentials"))
    claim.renew()
    claim.renew()

    reason = "the API server does not accept the credentials"
    assert said == [
        f"the claim on web can't be renewed, and others may take it over: {reason}",
        "the claim on web is renewed again",
    ]
