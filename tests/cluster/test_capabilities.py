"""What a cluster offers, read from its API."""

from __future__ import annotations

import pytest

from composeplat.cluster.api import Api
from composeplat.cluster.capabilities import Capabilities, Classes, read_capabilities
from composeplat.cluster.quotas import LimitRange, Quota
from tests.cluster.objects import Answer, Server, given, refusal

STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
INGRESS = "/apis/networking.k8s.io/v1/ingressclasses"
DEFAULT = "storageclass.kubernetes.io/is-default-class"


def read(answers: dict[str, Answer], otherwise: Answer | None = None) -> Capabilities:
    with Server(answers=answers, otherwise=otherwise or given()) as server, Api(server.access) as api:
        return read_capabilities(api, "team")


def test_answers() -> None:
    """Classes with their defaults, architectures, the level and the quotas of the namespace."""
    found = read(
        {
            STORAGE: given(
                {"metadata": {"name": "slow"}}, {"metadata": {"name": "fast", "annotations": {DEFAULT: "true"}}}
            ),
            INGRESS: given({"metadata": {"name": "nginx"}}),
            "/api/v1/nodes": given({"status": {"nodeInfo": {"architecture": "arm64"}}}),
            "/api/v1/namespaces/team": Answer(
                b'{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}'
            ),
            "/api/v1/namespaces/team/resourcequotas": given(
                {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "4"}}, "status": {"used": {"pods": "3"}}}
            ),
            "/api/v1/namespaces/team/limitranges": given(
                {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}
            ),
            "/api/v1/namespaces/team/services?labelSelector=dev.platform.com/environment": given(
                {"metadata": {"labels": {"dev.platform.com/environment": "shop"}}}
            ),
        }
    )

    assert found == Capabilities(
        storage=Classes(names=("fast", "slow"), default="fast"),
        ingress=Classes(names=("nginx",)),
        architectures=frozenset(("arm64",)),
        pod_security="baseline",
        quotas=(Quota(name="q", hard={"pods": 4}, used={"pods": 3}),),
        limit_ranges=(LimitRange(name="l", maximum={"cpu": 1000}),),
        has_metrics=True,
        has_load_balancers=False,
        usage={"shop": {"services": 1}},
    )


@pytest.mark.parametrize(("answer", "expected"), [(404, False), (403, True), (503, True), (500, None)])
def test_metrics(answer: int, *, expected: bool | None) -> None:
    """A metrics server that is starting is there, and one that this user may not ask may be."""
    assert read({"/apis/metrics.k8s.io/v1beta1": refusal(answer, "no")}).has_metrics is expected


def test_missing_namespace() -> None:
    """A namespace that a deploy is to create has no level."""
    assert read({"/api/v1/namespaces/team": refusal(404, "no")}).pod_security == ""


def test_refused_questions() -> None:
    """A question that may not be asked has no answer but a note; the others have theirs."""
    found = read({STORAGE: refusal(403, "forbidden")})

    assert found.storage is None
    assert found.ingress == Classes()
    assert found.notes == ("storage classes could not be read: forbidden",)


def test_lost_connection() -> None:
    """After a lost connection, no further question is asked."""
    with Server() as server:
        access = server.access
    with Api(access) as api:
        found = read_capabilities(api, "team")

    assert (found.storage, found.quotas, len(found.notes)) == (None, None, 1)
