"""The schema of the provider, which every SDK is made of: the components with their inputs and outputs.

Owns how ``schema.json`` is made of the types in :mod:`~composeplat.components.provider_types`; ``make docs`` writes it.
It is apart from the provider, which only reads the file: the analyzer of Pulumi's SDK and its imports would double the
time of each start.
"""

from __future__ import annotations

import json
from typing import Any

from pulumi.provider.experimental.analyzer import Analyzer, ComponentDefinition
from pulumi.provider.experimental.schema import generate_schema

from composeplat import __version__
from composeplat.components.provider_inputs import snake_case
from composeplat.components.provider_types import ComposeStackArgs, ComposeStackResult
from composeplat.components.resource_names import STACK_TYPE
from composeplat.compose.options import SETTINGS

_COMPONENTS: dict[str, tuple[type, type]] = {STACK_TYPE: (ComposeStackArgs, ComposeStackResult)}
_PACKAGE = "composeplat"
_SECRETS = {"password", "env"}
_LANGUAGES = {
    "go": {"importBasePath": "composeplat/sdk/go/composeplat", "respectSchemaVersion": True},
    "nodejs": {"packageName": "composeplat", "respectSchemaVersion": True},
}


def make_schema() -> str:
    analyzer, components = Analyzer(_PACKAGE), {}
    for token, (inputs, result) in _COMPONENTS.items():
        arguments, argument_names = analyzer.analyze_type(inputs, is_component_output=False)
        outputs, output_names = analyzer.analyze_type(result, is_component_output=True)
        name = token.rpartition(":")[2]
        components[name] = ComponentDefinition(
            name=name,
            inputs=arguments,
            outputs=outputs,
            inputs_mapping=argument_names,
            outputs_mapping=output_names,
            module=None,
            description=result.__doc__,
        )
    package = generate_schema(_PACKAGE, __version__, None, components, analyzer.type_definitions, [])
    schema = {**package.to_json(), "language": _LANGUAGES}
    for resource in schema["resources"].values():
        _describe_settings(resource["inputProperties"])
    for described in (*schema["resources"].values(), *schema["types"].values()):
        for group in ("inputProperties", "properties"):
            for name, found in described.get(group, {}).items():
                _tidy(name, found)
    return json.dumps(schema, indent=2) + "\n"


def _describe_settings(properties: dict[str, Any]) -> None:
    """Describe each setting as its option of the command line does."""
    rows = {row.argument: row for row in SETTINGS.values()}
    for name, found in properties.items():
        if "description" not in found:
            found["description"] = rows[snake_case(name)].help


def _tidy(name: str, found: dict[str, Any]) -> None:
    """Mark secrets, and describe a property once: the analyzer repeats its text for the items."""
    if name in _SECRETS:
        found["secret"] = True
    found["description"] = " ".join(found["description"].split())
    items = found
    while items := items.get("items") or items.get("additionalProperties") or {}:
        items.pop("description", None)
