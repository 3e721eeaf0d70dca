"""A state is in order if each resource comes after all that it refers to."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.engine.state_references import is_in_order

STACK, PROVIDER, DB = "urn:pulumi:s", "urn:pulumi:p::cluster", "urn:pulumi:db"
WEB = "urn:pulumi:web"


@pytest.mark.parametrize(
    "web",
    [
        pytest.param({"dependencies": [DB]}, id="dependency"),
        pytest.param({"propertyDependencies": {"spec": [DB], "data": None}}, id="property"),
        pytest.param({"deletedWith": DB}, id="deleted with"),
        pytest.param({"replaceWith": [DB]}, id="replaced with"),
        pytest.param({"parent": DB}, id="parent"),
        pytest.param({"provider": f"{DB}::some-id"}, id="provider"),
    ],
)
def test_references(web: dict[str, Any]) -> None:
    """A resource that comes before what it refers to is out of order; so is one whose reference leads nowhere."""
    first = {"urn": STACK}, {"urn": PROVIDER, "parent": STACK}
    resources: tuple[dict[str, Any], dict[str, Any]] = (
        {"urn": DB, "provider": f"{PROVIDER}::id", "parent": STACK, "dependencies": None},
        {"urn": WEB, "provider": "", **web},
    )

    assert is_in_order({"resources": [*first, *resources]})
    assert not is_in_order({"resources": [*first, *reversed(resources)]})
    assert not is_in_order({"resources": [*first, resources[1]]})


@pytest.mark.parametrize(
    "web",
    [
        pytest.param({"provider": f"{DB}::some-id", "pendingReplacement": True}, id="to be replaced"),
        pytest.param({"dependencies": [""], "propertyDependencies": {"spec": [""]}, "deletedWith": ""}, id="empty"),
    ],
)
def test_references_that_lead_nowhere(web: dict[str, Any]) -> None:
    """Pulumi accepts an empty reference, and a resource without its provider that is to be replaced."""
    assert is_in_order({"resources": [{"urn": WEB, **web}]})


@pytest.mark.parametrize("state", [{}, {"resources": None}, {"resources": []}])
def test_a_state_without_resources(state: dict[str, Any]) -> None:
    """Nothing is in order."""
    assert is_in_order(state)
