"""The inputs of a component, as Pulumi's engine sends them, made arguments of the Python class.

Owns the check of names and types by the schema, and dividing a mapping or list into its values: each may be an output,
and the engine may send one output for all of them.
Must not know the purpose of an input. Messages leave out values, which may be secrets.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.output import Unknown

from composeplat.components.resource_types import snake_case
from composeplat.diagnostics import quoted

Schema = Mapping[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    # A number is as good as a text, as for a variable of the shell.
    "string": (str, int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_REQUIREMENTS = {
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}


async def read_arguments(inputs: Mapping[str, Any], schema: Schema, token: str) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments by their names in Python, and all errors."""
    reader = _Reader(schema["types"])
    resource = schema["resources"][token]
    read = await reader.read_properties("", inputs, resource["inputProperties"], resource["requiredInputs"])
    return {snake_case(name): value for name, value in read.items()}, reader.errors


class _Reader:
    def __init__(self, types: Schema) -> None:
        self.errors: list[str] = []
        self._types = types

    async def read_properties(
        self, path: str, values: Mapping[str, Any], properties: Schema, required: list[str]
    ) -> dict[str, Any]:
        for name in sorted(values.keys() - properties.keys()):
            close = difflib.get_close_matches(name, properties, 1)
            hint = f"; did you mean {quoted(close[0])}?" if close else ""
            self.errors.append(f"{_join(path, name)} is not an input of this resource{hint}")
        given = {name: values[name] for name in properties if values.get(name) is not None}
        self.errors += [f"{_join(path, name)} is missing" for name in required if name not in given]
        # What is beside a secret may come as a part of it.
        may_be_secret = any(found.get("secret") for found in properties.values())
        return {
            name: await self._read(_join(path, name), value, properties[name], may_be_secret=may_be_secret)
            for name, value in given.items()
        }

    async def _read(self, path: str, value: Any, schema: Schema, *, may_be_secret: bool = False) -> Any:
        if "$ref" in schema:
            schema = {"type": "object", **self._types[schema["$ref"].removeprefix("#/types/")]}
        if schema["type"] in ("array", "object"):
            return await self._read_items(path, value, schema)
        if schema.get("plain"):
            value = await self._known(path, value, may_be_secret=may_be_secret)
        elif isinstance(value, Unknown):
            value = pulumi.Output.from_input(value)
        if not isinstance(value, pulumi.Output):
            self._check(path, value, schema["type"])
        return value

    async def _read_items(self, path: str, value: Any, schema: Schema) -> Any:
        items = await self._divide(value)
        if not self._check(path, items, schema["type"]):
            return items
        if isinstance(items, list):
            return [await self._read(f"{path}[{index}]", item, schema["items"]) for index, item in enumerate(items)]
        if "properties" in schema:
            return await self.read_properties(path, items, schema["properties"], schema["required"])
        of_items = schema["additionalProperties"]
        return {name: await self._read(_join(path, name), item, of_items) for name, item in items.items()}

    async def _divide(self, value: Any) -> Any:
        """Make outputs of the items of an output, each with its secretness and dependencies."""
        if not isinstance(value, pulumi.Output):
            return value
        whole: Any = await value.future(with_unknowns=True)
        if not isinstance(whole, (list, dict)):
            return whole
        keys = range(len(whole)) if isinstance(whole, list) else whole
        items = {key: _pick(value, key) for key in keys}
        return list(items.values()) if isinstance(whole, list) else items

    async def _known(self, path: str, value: Any, *, may_be_secret: bool) -> Any:
        """Return the value of an output that is known already: it decides the plan."""
        if isinstance(value, pulumi.Output):
            if not may_be_secret and await value.is_secret():
                self.errors.append(f"{path} is a secret, and objects would show it: give a plain value")
            value = await value.future(with_unknowns=True)
        return value

    def _check(self, path: str, value: Any, kind: str) -> bool:
        if value is None or isinstance(value, Unknown):
            self.errors.append(f"{path} is not known before the update, and decides the plan: give a plain value")
            return False
        is_right = isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "boolean")
        if not is_right:
            self.errors.append(f"{path} must be {_REQUIREMENTS[kind]}")
        return is_right


def _pick(whole: pulumi.Output[Any], key: str | int) -> pulumi.Output[Any]:
    return whole.apply(lambda found: found[key], run_with_unknowns=True)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
