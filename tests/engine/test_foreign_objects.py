"""Objects of the state that are someone else's now: found by labels and uid, and forgotten with what refers to them."""

from __future__ import annotations

from typing import Any

from composeplat.engine.foreign_objects import find_foreign
from composeplat.engine.preflight import LiveState
from composeplat.engine.state_references import without_resources

OURS = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "env"}


def resource(name: str, uid: str = "1", **more: Any) -> dict[str, Any]:
    return {
        "urn": f"urn:{name}",
        "type": "kubernetes:apps/v1:Deployment",
        "inputs": {"kind": "Deployment", "metadata": {"name": name}},
        "outputs": {"metadata": {"uid": uid}},
        **more,
    }


def live(uid: str, labels: dict[str, str]) -> LiveState:
    return LiveState(
        object_metadata={("Deployment", "web"): {"metadata": {"name": "web", "uid": uid, "labels": labels}}}
    )


def test_found() -> None:
    """It has another uid and no labels of the environment."""
    state = {"resources": [resource("web"), resource("api"), {"urn": "urn:stack", "type": "pulumi:pulumi:Stack"}]}

    assert find_foreign(state, live("2", {}), "env") == {"urn:web": ("Deployment", "web")}
    assert find_foreign(state, live("2", {**OURS, "dev.platform.com/environment": "b"}), "env")
    assert not find_foreign(state, live("1", {}), "env")
    assert not find_foreign(state, live("2", OURS), "env")
    assert not find_foreign(state, LiveState(), "env")
    assert not find_foreign({}, live("2", {}), "env")


def test_forgotten() -> None:
    """Nothing refers to it, so that Pulumi takes the state; the rest is as it was."""
    api = resource(
        "api",
        dependencies=["urn:web", "urn:db"],
        propertyDependencies={"spec": ["urn:web"], "metadata": None},
        deletedWith="urn:web",
    )
    state = {"secrets_providers": {}, "resources": [resource("web"), api, resource("db")]}

    found = without_resources(state, {"urn:web"})

    assert found == {
        "secrets_providers": {},
        "resources": [
            {
                **api,
                "dependencies": ["urn:db"],
                "propertyDependencies": {"spec": [], "metadata": []},
                "deletedWith": "",
            },
            resource("db"),
        ],
    }
    assert without_resources(state, {"urn:gone"}) is None
    assert without_resources({}, {"urn:web"}) is None
