"""``pulumi-resource-composeplat``: the components for Pulumi programs in every language.

Owns the program that Pulumi's engine finds on PATH and starts in the working folder of a program, and how a Python
component becomes the answer to a request of the engine.
Must not know what a component does: it has the class, the type and the children of a Python program, so a program can
change its language and keep its state.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from typing import Any

import pulumi
from pulumi.provider import ConstructResult, Provider, main as serve

from composeplat.components.provider_inputs import read_arguments
from composeplat.components.runs import ProviderRuns, keep_identity


class ComponentProvider(Provider):
    def __init__(self) -> None:
        schema = files("composeplat.components").joinpath("schema.json").read_text(encoding="utf-8")
        self._schema: Mapping[str, Any] = json.loads(schema)
        self._runs = ProviderRuns()
        super().__init__(self._schema["version"], schema)

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        if resource_type not in self._schema["resources"]:
            raise failure(f"{resource_type} is no component of this provider")
        outputs: dict[str, Any] = {}
        # The server reads the outputs when it has the URN.
        urn: asyncio.Future[Any] = asyncio.ensure_future(self._construct(name, resource_type, inputs, options, outputs))
        return ConstructResult(pulumi.Output.from_input(urn), outputs)

    def cancel(self) -> None:
        """End the waits for dependencies: after Ctrl-C, Pulumi waits until they have ended."""
        import_module("composeplat.components.dependency_gate").PROGRAM_CANCELLED.set()

    async def _construct(
        self,
        name: str,
        token: str,
        inputs: Mapping[str, Any],
        options: pulumi.ResourceOptions | None,
        outputs: dict[str, Any],
    ) -> pulumi.Output[str]:
        arguments, errors = await read_arguments(inputs, self._schema, token)
        if errors:
            raise failure("\n".join(errors))
        if options is not None:
            await _describe_others(options)
        self._runs.join()
        make = import_module("composeplat.components.provider_components").CONSTRUCTORS[token]
        try:
            component, found = make(name, arguments, options)
        except pulumi.RunError as error:
            raise failure(str(error)) from error
        outputs.update(found)
        urn: pulumi.Output[str] = component.urn
        return urn


async def _describe_others(options: pulumi.ResourceOptions) -> None:
    """Describe resources of another process: here they have a URN alone, and another object for each component."""
    if options.parent is not None:
        await _name_parent(options.parent)
    providers = options.providers if isinstance(options.providers, Mapping) else {}
    for provider in providers.values():
        await keep_identity(provider)


async def _name_parent(parent: pulumi.Resource) -> None:
    """Give the parent, which is of another process and has a URN alone, the name and type that this has."""
    urn = str(await parent.urn.future())
    types, name = urn.split("::", 3)[2:]
    vars(parent).update(_name=name, _type=types.rpartition("$")[2])


def failure(text: str) -> pulumi.InputPropertiesError:
    """Return the error of a resource, which ends the program: the text alone, without the place in this code."""
    return pulumi.InputPropertiesError(f"\n{text}" if "\n" in text else text, [])


def main() -> None:
    serve(ComponentProvider(), sys.argv[1:])
