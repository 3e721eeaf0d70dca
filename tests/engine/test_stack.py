"""What an operation refuses of a state, before it runs Pulumi."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import ApiError
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.stack import Stack
from composeplat.engine.target import Target
from composeplat.engine.workspace import Workspace
from composeplat.system.deadline import Deadline

STACK = "composeplat:index:ComposeStack"
WORKLOAD = f"{STACK}$composeplat:index:Service$kubernetes:apps/v1:Deployment"


def stack_with(*resources: str) -> Stack:
    """The stack of environment ``shop``; resources are types and names."""
    rows: list[dict[str, Any]] = [
        {"urn": f"urn:pulumi:team::shop::{text}", "type": text.partition("::")[0].rpartition("$")[2]}
        for text in resources
    ]
    target = Target(access=Access(host="127.0.0.1", port=1, plain=True), kubeconfig="")
    workspace = cast("Workspace", SimpleNamespace(read_state=lambda: {"resources": rows}, cluster="uid"))
    return Stack(environment_name="shop", namespace="team", target=target, variables={}, _workspace=workspace)


OURS = (
    "pulumi:pulumi:Stack::shop-team",
    "pulumi:providers:kubernetes::cluster",
    "pulumi:providers:docker-build::default_0_0_22",
    f"{STACK}::shop",
    f"{STACK}$composeplat:index:Service::shop-service/web",
    f"{WORKLOAD}::shop-workload/web",
)


def test_resources_of_platform() -> None:
    """A state of nothing but our own resources is accepted."""
    stack_with(*OURS).check_cluster()
    stack_with().check_cluster()


@pytest.mark.parametrize(
    ("resource", "shown"),
    [
        pytest.param("aws:rds/instance:Instance::orders", "aws:rds/instance:Instance 'orders'", id="another-provider"),
        pytest.param("kubernetes:core/v1:Namespace::team", "kubernetes:core/v1:Namespace 'team'", id="an-object"),
        pytest.param("my:infra:Network::vpc", "my:infra:Network 'vpc'", id="a-component"),
        pytest.param("my:infra:Net$composeplat:index:ComposeStack::shop", f"{STACK} 'shop'", id="below-another"),
        pytest.param(f"{STACK}::blog", f"{STACK} 'blog'", id="a-second-environment"),
        pytest.param(
            f"{WORKLOAD}::blog-workload/web", "kubernetes:apps/v1:Deployment 'blog-workload/web'", id="a-part-of-it"
        ),
    ],
)
def test_resources_of_another_program(resource: str, shown: str) -> None:
    """A stack that another program has resources in is refused: a deploy, a build or a destroy would delete them."""
    with pytest.raises(ComposeplatError) as caught:
        stack_with(*OURS, resource).check_cluster()

    assert f"{caught.value}" == (
        "the state of environment 'shop' in namespace 'team' has resources of another Pulumi program, which would be"
        f" deleted: {shown}"
    )


def test_a_wait_while_the_cluster_does_not_answer() -> None:
    """A request without an answer is sent again; one that is refused ends the wait."""
    answers: list[ApiError | bool] = [ApiError(0, "no data"), ApiError(500, "etcd is ill"), False, True]

    def check() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    assert stack_with().poll(check, Deadline(60))
    assert answers == []
    answers = [ApiError(403, "you may not")]
    with pytest.raises(ApiError, match="you may not"):
        stack_with().poll(check, Deadline(60))


def test_a_wait_for_a_silent_cluster_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait ends before its deadline where the cluster has not answered for too long."""
    monkeypatch.setattr("composeplat.cluster.health._MAX_SILENCE_S", 0.3)

    def check() -> bool:
        raise ApiError(0, "no data")

    with pytest.raises(ApiError, match="has not answered for"):
        stack_with().poll(check, Deadline(60))
