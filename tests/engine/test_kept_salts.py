"""The salts that a plan takes from the cluster: those of objects that the state does not know."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.components.manifests import add_salt
from composeplat.engine.kept_salts import with_kept_salts
from composeplat.engine.preflight import LiveState
from composeplat.plan.desired import DesiredObject, Plan, ServicePlan
from composeplat.plan.fingerprint import HASH_ANNOTATION, SALT_ANNOTATION, Fingerprint
from composeplat.plan.identity import Identity
from composeplat.plan.resource_keys import ResourceKey, ResourceKind

IDENTITY = Identity(environment="shop", namespace="team")
SECRET, WORKLOAD = (ResourceKey(kind, "web") for kind in (ResourceKind.ENVIRONMENT, ResourceKind.WORKLOAD))
HASH = Fingerprint(SECRET, "digest")
SALT = "0123456789abcdef" * 2


def plan() -> Plan:
    template = {"metadata": {"annotations": {HASH_ANNOTATION: HASH}}, "spec": {}}
    workload = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": template}}
    secret = {"kind": "Secret", "metadata": {"name": "web-env", "annotations": {"a": "b"}}}
    objects = (DesiredObject(key=SECRET, manifest=secret), DesiredObject(key=WORKLOAD, manifest=workload))
    service = ServicePlan(name="web", cluster_name="web", workload_kind="Deployment", image="x", objects=objects)
    return Plan(environment="shop", namespace="team", services=(service,))


def live(salt: str) -> LiveState:
    metadata = {"name": "web-env", "labels": IDENTITY.labels("web"), "annotations": {SALT_ANNOTATION: salt}}
    return LiveState(object_metadata={("Secret", "web-env"): {"metadata": metadata}})


def test_a_salt_that_the_state_does_not_know() -> None:
    """The Secret keeps it, and the hash of the workload is the one that the cluster has."""
    secret, workload = (desired.manifest for desired in with_kept_salts(plan(), {}, live(SALT)).objects)
    found = workload["spec"]["template"]["metadata"]["annotations"][HASH_ANNOTATION]

    assert add_salt(secret)["metadata"]["annotations"] == {"a": "b", SALT_ANNOTATION: SALT}
    assert str(found) == HASH.keyed(SALT)
    assert str(HASH) != str(found)


@pytest.mark.parametrize("salt", ["", "short", SALT.upper()])
def test_no_salt(salt: str) -> None:
    """A text that is no salt of ours is not kept."""
    assert with_kept_salts(plan(), {}, live(salt)) == plan()


def test_a_salt_that_the_state_knows() -> None:
    """It stays by itself."""
    inputs: dict[str, Any] = {"kind": "Secret", "metadata": {"name": "web-env"}}
    state = {"resources": [{"type": "kubernetes:core/v1:Secret", "urn": "x", "inputs": inputs}]}

    assert with_kept_salts(plan(), state, live(SALT)) == plan()
