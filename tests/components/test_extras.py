"""Objects of a program beside a service, and its transforms: how they are registered."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from composeplat.components.stack import ComposeStack
from tests.components.test_stack import SECRET, Registered, folder, run
from tests.conftest import Folder

__all__ = ["folder"]
BUDGET: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": 1}}


def registered(folder: Folder, extras: Any, **more: Any) -> Registered:
    """The resources of the shop with extras, which are made when the program runs."""

    def program() -> None:
        arguments = {"file": folder.path / "compose.yaml", "namespace": "team", "variables": {}, "waits": False}
        made = {name: make() for name, make in more.items()}
        ComposeStack("shop", extras=extras(), **{**arguments, **made})

    return run(program)


def test_an_extra(folder: Folder) -> None:
    """It is below its service, after the workload, with a name that state hangs on."""
    found = registered(folder, lambda: {"web": [BUDGET]})

    request = found.request("PodDisruptionBudget")
    assert (request.type, request.name) == ("kubernetes:policy/v1:PodDisruptionBudget", "shop-extra/web")
    assert request.parent.rpartition("::")[2] == "shop-service/web"
    assert [urn.rpartition("::")[2] for urn in request.dependencies] == ["shop-workload/web"]
    assert request.deleteBeforeReplace
    assert found.inputs("PodDisruptionBudget")["metadata"] == {
        "name": "web",
        "namespace": "team",
        "labels": {"app.kubernetes.io/part-of": "shop", "app.kubernetes.io/component": "web"},
    }


def test_outputs_in_extras(folder: Folder) -> None:
    """Its values may be outputs, and so may the namespace; the data of a Secret is secret."""
    found = registered(
        folder,
        lambda: {
            "web": [
                {**BUDGET, "spec": {"minAvailable": pulumi.Output.from_input(2)}},
                {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "more"}, "stringData": {"a": "b"}},
            ]
        },
        namespace=lambda: pulumi.Output.from_input("late"),
    )

    budget = found.inputs("PodDisruptionBudget")
    assert budget["spec"]["minAvailable"] == 2
    assert budget["spec"]["selector"]["matchLabels"]["dev.platform.com/service"] == "web"
    assert budget["metadata"]["namespace"] == "late"
    assert found.request("Secret", "extra/more").type == "kubernetes:core/v1:Secret"
    assert found.inputs("Secret", "extra/more")["stringData"] == {**SECRET, "value": {"a": "b"}}


def test_a_confidential_value(folder: Folder) -> None:
    """A value that only Secrets may show is a secret here too."""
    folder.write({"compose.yaml": "services: {web: {image: x, environment: ['TOKEN=${TOKEN}']}}"})
    found = registered(
        folder,
        lambda: {"web": [{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "with open sesame in it"}}]},
        variables=lambda: {"TOKEN": "open sesame"},
    )

    assert found.inputs("ConfigMap")["data"]["a"] == {**SECRET, "value": "with open sesame in it"}


def test_objects_with_extras(folder: Folder) -> None:
    found: dict[str, Any] = {}

    def program() -> None:
        file = folder.path / "compose.yaml"
        stack = ComposeStack("shop", file=file, namespace="team", variables={}, waits=False, extras={"web": [BUDGET]})
        budget = stack.services["web"].objects["PodDisruptionBudget/web"]
        found["same"] = stack.objects["PodDisruptionBudget/web"] is budget
        budget.metadata["name"].apply(lambda name: found.update(name=name))

    run(program)

    assert found == {"same": True, "name": "web"}


@pytest.mark.parametrize("argument", ["extras", "transforms"])
def test_no_such_service(folder: Folder, argument: str) -> None:
    def program() -> None:
        arguments: Any = {argument: {"wbe": [BUDGET]}}
        ComposeStack(
            "shop", file=folder.path / "compose.yaml", namespace="team", variables={}, waits=False, **arguments
        )

    with pytest.raises(pulumi.RunError) as caught:
        run(program)

    assert str(caught.value) == (
        f"'{argument}' names a service that the definition does not have: 'wbe'\n  hint: services are: db, web"
    )


def test_transforms_of_a_service(folder: Folder) -> None:
    """Each service's component has its transforms, so that Pulumi calls them for all of its resources."""

    def leave(_: pulumi.ResourceTransformArgs) -> None:
        return None

    def counts(given: Any) -> list[int]:
        found = registered(folder, dict, transforms=lambda: {"web": given})
        return [len(found.request("index:Service", name).transforms) for name in ("web", "db")]

    assert counts(leave) == [1, 0]
    assert counts([leave, leave]) == [2, 0]
