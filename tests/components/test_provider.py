"""The provider without an engine: its schema, the arguments that it makes of inputs, and its start."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.output import UNKNOWN

from composeplat import __version__
from composeplat.components.dependency_gate import PROGRAM_CANCELLED
from composeplat.components.provider import ComponentProvider
from composeplat.components.provider_inputs import read_arguments
from composeplat.components.resource_types import snake_case
from composeplat.components.service import Service
from composeplat.components.stack import ComposeStack
from composeplat.compose.options import SETTINGS

SCHEMA: dict[str, Any] = json.loads(ComponentProvider().schema or "")
STACK, SERVICE = "composeplat:index:ComposeStack", "composeplat:index:Service"
#: Arguments of the class that programs in other languages have not: those of ``platform``, options of a resource, and
#: functions and objects of a program, which has transforms and resources of its own. In Python alone,
#: resources that a program had before move into a stack.
OF_PYTHON_ALONE = {
    "plan", "gate", "loader", "building", "needed", "rewritten", "opts", "name", "self", "transforms", "extras",
    "aliases", "selectors",
}  # fmt: skip


def test_each_argument_is_an_input() -> None:
    """The inputs are the arguments of the class, and ``files``; what may be an output there may be one here."""
    parameters = inspect.signature(ComposeStack.__init__, eval_str=True).parameters
    inputs = {snake_case(name): found for name, found in SCHEMA["resources"][STACK]["inputProperties"].items()}

    assert set(inputs) == parameters.keys() - OF_PYTHON_ALONE | {"files"}
    may_be_outputs = {name for name, found in inputs.items() if not found.get("plain")}
    assert may_be_outputs == {row.argument for row in SETTINGS.values() if row.may_be_output}
    assert {name for name in inputs if "description" not in inputs[name]} == set()


def test_each_argument_of_a_service_alone_is_an_input() -> None:
    """The inputs are the arguments of the class, and the settings that have an effect on a service alone."""
    parameters = inspect.signature(Service.__init__, eval_str=True).parameters.keys() - {
        "self",
        "name",
        "opts",
        "settings",
    }
    inputs = {snake_case(name) for name in SCHEMA["resources"][SERVICE]["inputProperties"]}

    assert inputs == parameters | {row.argument for row in SETTINGS.values()} - {"timeout"}
    assert SCHEMA["resources"][SERVICE]["requiredInputs"] == ["compose"]
    assert read(dict, SERVICE) == ({}, ["compose is missing"])


def test_passwords_are_secrets() -> None:
    """A program that gives a password in plain has it encrypted in the state."""
    login = SCHEMA["types"]["composeplat:index:RegistryLogin"]["properties"]
    assert {name for name, found in login.items() if found.get("secret")} == {"password"}


def test_the_version_is_the_packages() -> None:
    """An SDK that is made of the schema asks for the provider of this version."""
    assert SCHEMA["version"] == ComponentProvider().version == __version__


def read(make: Callable[[], dict[str, Any]], token: str = STACK) -> tuple[dict[str, Any], list[str]]:
    """The arguments that are made of inputs, outputs as their values; and the errors."""

    async def within() -> tuple[dict[str, Any], list[str]]:
        arguments, errors = await read_arguments(make(), SCHEMA, token)
        return {name: await shown(value) for name, value in arguments.items()}, errors

    return contextvars.Context().run(asyncio.run, within())


async def shown(value: Any) -> Any:
    """Show an output as whether it is known, whether it is secret, and its value."""
    if isinstance(value, pulumi.Output):
        return await value.is_known(), await value.is_secret(), await value.future()
    if isinstance(value, dict):
        return {name: await shown(item) for name, item in value.items()}
    return [await shown(item) for item in value] if isinstance(value, list) else value


def output(value: Any) -> pulumi.Output[Any]:
    return pulumi.Output.from_input(value)


def test_plain_inputs() -> None:
    """Plain values stay as they are, under the names that Python has."""
    inputs = {"environmentName": "shop", "full": True, "timeout": 7.0, "profiles": ["a"], "variables": {"A": 8080.0}}
    assert read(lambda: inputs) == (
        {"environment_name": "shop", "full": True, "timeout": 7.0, "profiles": ["a"], "variables": {"A": 8080.0}},
        [],
    )


def test_inputs_with_outputs() -> None:
    """Each value of a mapping or list is an output of its own, also where the whole comes as one."""
    logins = [{"address": "a.example", "username": "u", "password": "p"}]
    arguments, errors = read(
        lambda: {
            "namespace": output("team"),
            "variables": output({"A": "b", "LATE": UNKNOWN}),
            "images": {"web": UNKNOWN, "db": output("db:1")},
            "registries": pulumi.Output.secret(logins),
        }
    )

    assert errors == []
    assert arguments == {
        "namespace": (True, False, "team"),
        "variables": {"A": (True, False, "b"), "LATE": (False, False, None)},
        "images": {"web": (False, False, None), "db": (True, False, "db:1")},
        "registries": [{"address": "a.example", "username": (True, True, "u"), "password": (True, True, "p")}],
    }


def test_wrong_inputs() -> None:
    """Every wrong input is reported with its path, and no message has a value."""
    _, errors = read(
        lambda: {
            "fle": "x",
            "full": "open sesame",
            "timeout": True,
            "profiles": "open sesame",
            "envFiles": [output(UNKNOWN)],
            "variables": UNKNOWN,
            "gateway": pulumi.Output.secret("open sesame"),
            "registries": [{"address": "a.example", "username": 1, "pasword": "open sesame"}],
        }
    )

    unknown = "is not known before the update, and decides the plan: give a plain value"
    assert errors == [
        "fle is not an input of this resource; did you mean 'file'?",
        "full must be true or false",
        "profiles must be a list",
        "gateway is a secret, and objects would show it: give a plain value",
        f"variables {unknown}",
        "registries[0].pasword is not an input of this resource; did you mean 'password'?",
        "registries[0].password is missing",
        f"envFiles[0] {unknown}",
        "timeout must be a number",
    ]


def test_another_type() -> None:
    """A type that the provider doesn't have is refused."""
    with pytest.raises(pulumi.InputPropertiesError, match="composeplat:index:Stack is no component of this provider"):
        ComponentProvider().construct("shop", "composeplat:index:Stack", {})


def test_cancelled() -> None:
    """When the engine cancels a run, the waits of its stacks are to end."""
    assert not PROGRAM_CANCELLED.is_set()
    ComponentProvider().cancel()
    try:
        assert PROGRAM_CANCELLED.is_set()
    finally:
        PROGRAM_CANCELLED.clear()


def test_a_start_loads_no_component() -> None:
    """Most starts only ask for the schema: what makes components, and the SDKs of providers, are not imported."""
    code = (
        "import sys; from composeplat.components.provider import ComponentProvider; ComponentProvider();"
        "print([name for name in ('composeplat.components.stack', 'composeplat.plan', 'pulumi_kubernetes')"
        " if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_program_is_installed() -> None:
    """The engine finds the provider by this name, beside the command."""
    program = Path(sys.executable).parent / "pulumi-resource-composeplat"
    with subprocess.Popen([program, "127.0.0.1:1"], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        port = started.stdout.readline()
        started.kill()
    assert port.strip().isdecimal()
