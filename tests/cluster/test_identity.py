"""The identity of a cluster is the same in every run, as another one would be that of another cluster."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import ApiError
from composeplat.cluster.identity import address_identity, cluster_identity
from tests.cluster.objects import Answer, Server, refusal

PATH = "/api/v1/namespaces/kube-system"


def test_the_namespace_has_it(server: Server) -> None:
    server.answers = {PATH: Answer(b'{"metadata": {"uid": "4f1c"}}')}

    assert cluster_identity(server.access) == "4f1c"


@pytest.mark.parametrize("status", [403, 404])
def test_without_the_right_to_read_it(server: Server, status: int) -> None:
    """The address is the identity then."""
    server.answers = {PATH: refusal(status, "no")}

    assert cluster_identity(server.access) == f"http---127.0.0.1-{server.port}"


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("status", [401, 429, 500, 503, 504])
def test_a_server_that_fails(server: Server, status: int) -> None:
    """A failure is an error: with the address, Pulumi would replace every object."""
    server.answers = {PATH: refusal(status, "etcdserver: mvcc: database space exceeded")}

    with pytest.raises(ApiError) as caught:
        cluster_identity(server.access)

    assert caught.value.status == status


@pytest.mark.parametrize(
    "answer",
    [{"metadata": {"uid": uid}} for uid in ("../../.ssh", "/etc", "..", "", "a\nb", 7)] + [{"ok": 1}, {"metadata": []}],
    ids=str,
)
def test_a_server_of_something_else(server: Server, answer: object) -> None:
    """The identity is the name of a folder: a server that is none of Kubernetes, or hostile, chooses no other place."""
    server.answers = {PATH: Answer(json.dumps(answer).encode())}

    with pytest.raises(ApiError, match=r"is not an API server: its namespace kube-system has no valid UID$"):
        cluster_identity(server.access)


def test_addresses() -> None:
    """They are as states have them."""
    access = Access(host="fd00::1", port=6443, prefix="/k8s")

    assert address_identity(access) == "https---fd00--1-6443-k8s"
    assert address_identity(replace(access, host="api.example.com")) == "https---api.example.com-6443-k8s"
