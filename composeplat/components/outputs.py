"""The values that programs read of a stack: addresses, ports and variables, as outputs of its objects.

Owns how they are made of objects that are registered with the classes of Pulumi's SDK. They are made when a program
reads them: a deploy reads none.
Must not register anything, and none of it is in the state: the objects have these values there.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from typing import Any, TypeVar

import pulumi

from composeplat.components.late_texts import LateTexts

T = TypeVar("T")


def after(value: pulumi.Input[T], resource: pulumi.Resource) -> pulumi.Output[T]:
    """Let the users of a value come after a resource; unlike an output of the resource, a preview knows the value."""
    output: pulumi.Output[T] = pulumi.Output.from_input(value)

    async def resources() -> set[pulumi.Resource]:
        return {*await output.resources(), resource}

    return _with_resources(output, _Deferred(resources))


def independent(output: pulumi.Output[T]) -> pulumi.Output[T]:
    """Leave out the resources that a value is of: its users come after them by other means, or not at all."""
    return _with_resources(output, set())


def _with_resources(output: pulumi.Output[T], resources: Any) -> pulumi.Output[T]:
    future: Any = _Deferred(partial(output.future, with_unknowns=True))
    return pulumi.Output(resources, future, _Deferred(output.is_known), _Deferred(output.is_secret))


class _Deferred:
    """Awaits what is made only then: Python would warn of a coroutine that a program, as it fails, never awaits."""

    def __init__(self, make: Callable[[], Awaitable[Any]]) -> None:
        self._make = make

    def __await__(self) -> Generator[Any, None, Any]:
        return self._make().__await__()


def read_name(resource: pulumi.CustomResource) -> pulumi.Output[str]:
    metadata: pulumi.Output[Any] = resource.metadata  # type: ignore[attr-defined]
    name: pulumi.Output[str] = metadata["name"]
    return name


def read_address(service: pulumi.CustomResource, namespace: pulumi.Input[str]) -> pulumi.Output[str]:
    """Return the DNS name of a Kubernetes Service that every pod of the cluster resolves.

    While its namespace is not known, it is not: in a preview, the provider answers with 'default' then.
    """
    metadata: pulumi.Output[Any] = service.metadata  # type: ignore[attr-defined]
    known = pulumi.Output.all(metadata, namespace)
    return known.apply(lambda found: f"{found[0]['name']}.{found[0]['namespace']}.svc")


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
