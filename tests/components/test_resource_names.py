"""The names of Pulumi's resources: how they are made, and how they are parsed again."""

from __future__ import annotations

import pytest

from composeplat.components.resource_names import ResourceName, Urns
from composeplat.plan.resource_keys import ResourceKey, ResourceKind


@pytest.mark.parametrize("kind", ResourceKind)
@pytest.mark.parametrize(("stack", "name"), [("shop", "web"), ("my-shop", "my-web-8080")])
def test_parsing_a_name_returns_its_parts(stack: str, kind: ResourceKind, name: str) -> None:
    """Dashes in a stack or a name don't shift the parts."""
    made = ResourceName.make(stack, kind, name)

    assert made == ResourceName.parse(str(made))
    assert ResourceKey(kind, name) == made.key


@pytest.mark.parametrize("text", ["shop", "cluster", "", "shop-web", "shop-workload", "shop-other/web", "workload/web"])
def test_other_names_have_no_key(text: str) -> None:
    """A stack, a provider and other people's resources are none of a plan."""
    assert ResourceName.parse(text) is None


def test_urns() -> None:
    """A URN has the types of the components above the resource, and is parsed to its name."""
    urns = Urns("team", "shop")
    chain = "urn:pulumi:team::shop::composeplat:index:ComposeStack$composeplat:index:Service"

    image = urns.child(ResourceKind.SERVICE, ResourceKind.IMAGE, "web", "docker-build:index:Image")

    assert f"{chain}::shop-service/web" == urns.component(ResourceKind.SERVICE, "web")
    assert f"{chain}$docker-build:index:Image::shop-image/web" == image
    assert ResourceName.make("shop", ResourceKind.IMAGE, "web") == ResourceName.from_urn(image)
