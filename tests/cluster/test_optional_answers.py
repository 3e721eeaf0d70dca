"""What a cluster may keep from a user: only a refusal means that it is not known; a failure is an error."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from composeplat.cluster.announced_registry import HOSTING_PATH, read_announced_registry
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.endpoint_defaults import read_endpoint_defaults
from composeplat.cluster.node_processors import node_processors
from composeplat.cluster.other_clusters import PRODUCTS, EndpointDefaults, OtherCluster
from tests.cluster.objects import Answer, Server, refusal

ORBSTACK = OtherCluster(PRODUCTS[-1], "orbstack")
QUESTIONS = pytest.mark.parametrize(
    ("ask", "unknown"),
    [
        pytest.param(node_processors, (), id="processors"),
        pytest.param(lambda api: read_announced_registry(api, "127.0.0.1"), "", id="registry"),
        pytest.param(lambda api: read_endpoint_defaults(api, ORBSTACK), EndpointDefaults(), id="domain-and-class"),
    ],
)


@QUESTIONS
def test_a_refusal(server: Server, ask: Callable[[Api], object], unknown: object) -> None:
    server.otherwise = refusal(403, "forbidden")

    with Api(server.access) as api:
        assert ask(api) == unknown


@pytest.mark.usefixtures("no_pauses")
@QUESTIONS
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure(server: Server, ask: Callable[[Api], object], unknown: object, status: int) -> None:
    """A deploy that takes a failure for "unknown" removes endpoints, or builds for other processors."""
    server.otherwise = refusal(status, f"not {unknown}")

    with Api(server.access) as api, pytest.raises(ApiError) as caught:
        ask(api)

    assert caught.value.status == status


def test_no_announcement(server: Server) -> None:
    server.answers = {HOSTING_PATH: Answer(b"{}", 404)}

    with Api(server.access) as api:
        assert read_announced_registry(api, "127.0.0.1") == ""
