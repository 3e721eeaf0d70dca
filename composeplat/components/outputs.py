"""The values that programs read of a stack: addresses, ports and variables, as outputs of its objects.

Owns how they are made of objects that are registered with the classes of Pulumi's SDK. They are made when a program
reads them: a deploy reads none.
Must not register anything, and none of it is in the state: the objects have these values there.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Mapping
from typing import Any, TypeVar

import pulumi

from composeplat.components.late_texts import LateTexts

T = TypeVar("T")


def after(value: pulumi.Input[T], resource: pulumi.Resource) -> pulumi.Output[T]:
    """Let the users of a value come after a resource; unlike an output of the resource, a preview knows the value."""
    output: pulumi.Output[T] = pulumi.Output.from_input(value)

    async def resources() -> set[pulumi.Resource]:
        return {*await output.resources(), resource}

    future: Any = output.future(with_unknowns=True)
    return pulumi.Output(resources(), future, output.is_known(), output.is_secret())


def read_name(resource: pulumi.CustomResource) -> pulumi.Output[str]:
    metadata: pulumi.Output[Any] = resource.metadata  # type: ignore[attr-defined]
    name: pulumi.Output[str] = metadata["name"]
    return name


def read_address(service: pulumi.CustomResource) -> pulumi.Output[str]:
    """Return the DNS name of a Kubernetes Service that every pod of the cluster resolves."""
    metadata: pulumi.Output[Any] = service.metadata  # type: ignore[attr-defined]
    return pulumi.Output.concat(metadata["name"], ".", metadata["namespace"], ".svc")


def read_ports(service: pulumi.CustomResource) -> pulumi.Output[list[int]]:
    spec: pulumi.Output[Any] = service.spec  # type: ignore[attr-defined]
    return spec.apply(lambda found: list(dict.fromkeys(int(port["port"]) for port in found.get("ports") or ())))


def read_digest(image: pulumi.Output[str]) -> pulumi.Output[str]:
    return image.apply(lambda reference: reference.partition("@")[2])


def read_variables(
    data: Mapping[str, str], secret: pulumi.CustomResource, texts: LateTexts
) -> dict[str, pulumi.Output[str]]:
    """Return the variables of a Secret, each as a secret; a patch may have set some that are no text."""
    decoded = {name: _decode(text) for name, text in sorted(data.items())}
    return {
        name: pulumi.Output.secret(after(texts.text(text), secret))
        for name, text in decoded.items()
        if text is not None
    }


def _decode(text: str) -> str | None:
    with contextlib.suppress(ValueError):
        return base64.b64decode(text).decode()
    return None
