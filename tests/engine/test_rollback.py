"""The inputs of an exported state, as a plan has them again."""

from __future__ import annotations

import pytest

from composeplat.engine.recorded_plan import images_of, reveal
from composeplat.plan.desired import DesiredObject
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.revealed import Revealed

MARK = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


def test_secrets_stay_secrets() -> None:
    """A secret is its value, marked, wherever it is; anything else is as it was, and nothing shows a secret."""
    inputs = {
        "kind": "Secret",
        "data": {**MARK, "plaintext": '{"A": "eA=="}'},
        "list": [1, {**MARK, "plaintext": '"x"'}],
    }

    found = reveal(inputs)

    assert found == {"kind": "Secret", "data": Revealed({"A": "eA=="}), "list": [1, Revealed("x")]}
    assert "eA==" not in repr(found)


def test_a_text_that_looks_like_a_secret() -> None:
    """Without Pulumi's mark it is data."""
    assert reveal({"plaintext": "x"}) == {"plaintext": "x"}


@pytest.mark.parametrize("is_scheduled", [False, True])
def test_images(*, is_scheduled: bool) -> None:
    """A CronJob has its pod template elsewhere than a Deployment."""
    pods = {"template": {"spec": {"containers": [{"image": "a:1"}, {"image": "b:2"}]}}}
    spec = {"jobTemplate": {"spec": pods}} if is_scheduled else pods
    workload = DesiredObject(key=ResourceKey(ResourceKind.WORKLOAD, "web"), manifest={"spec": spec})

    assert images_of((workload,)) == ["a:1", "b:2"]
