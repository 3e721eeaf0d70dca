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

from composeplat.components.provider_types import (
    ComposeStackArgs,
    ComposeStackResult,
    RequiredServiceArgs,
    ServiceArgs,
    ServiceResult,
    SettingArgs,
    SingleServiceResult,
)
from composeplat.components.resource_names import SERVICE_TYPE, STACK_TYPE
from composeplat.compose.options import SETTINGS

_COMPONENTS: dict[str, tuple[type, type]] = {
    STACK_TYPE: (ComposeStackArgs, ComposeStackResult),
    SERVICE_TYPE: (ServiceArgs, SingleServiceResult),
}
#: Types that others inherit: the analyzer leaves out the descriptions of inherited properties.
_BASES = (SettingArgs, RequiredServiceArgs, ServiceResult)
_PACKAGE = "composeplat"
_SECRETS = {"password", "env"}
_LANGUAGES = {
    "go": {"importBasePath": "composeplat/sdk/go/composeplat", "respectSchemaVersion": True},
    "nodejs": {"packageName": "composeplat", "respectSchemaVersion": True},
}


def make_schema(version: str) -> str:
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
    package = generate_schema(_PACKAGE, version, None, components, analyzer.type_definitions, [])
    schema = {**package.to_json(), "language": _LANGUAGES}
    inherited = _inherited_descriptions(analyzer)
    for described in (*schema["resources"].values(), *schema["types"].values()):
        for group in ("inputProperties", "properties"):
            for name, found in described.get(group, {}).items():
                found.setdefault("description", inherited.get(name, ""))
                _tidy(name, found)
    return json.dumps(schema, indent=2) + "\n"


def _inherited_descriptions(analyzer: Analyzer) -> dict[str, str]:
    """Describe each setting as its option of the command line does, unless its type has a description."""
    found = {argument: row.help for row in SETTINGS.values() if (argument := row.argument)}
    for base in _BASES:
        properties, names = analyzer.analyze_type(base, is_component_output=base is ServiceResult)
        found |= {names[name]: text for name, item in properties.items() if (text := item.description)}
    return {_camel_case(name): text for name, text in found.items()}


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _tidy(name: str, found: dict[str, Any]) -> None:
    """Mark secrets, and describe a property once: the analyzer repeats its text for the items."""
    if name in _SECRETS:
        found["secret"] = True
    found["description"] = " ".join(found["description"].split())
    items = found
    while items := items.get("items") or items.get("additionalProperties") or {}:
        items.pop("description", None)
