"""The table of settings, against each place where a setting can be given."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pulumi
import pytest
import typer.main
from pulumi.runtime import set_all_config

from composeplat.cli.app import app
from composeplat.cli.selection import Choice
from composeplat.components.program import read_settings
from composeplat.components.stack import ComposeStack
from composeplat.compose.load import load
from composeplat.compose.options import SETTINGS, Options, Request, Setting, Settings, Value
from composeplat.engine.eject import ejected_files
from tests.conftest import ROOT, Project

DEPLOYING = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")

#: A valid value of each setting that is not its default.
VALUES: dict[str, Value] = {
    "allow_outside": True,
    "namespace": "team",
    "full": True,
    "profile": ("debug", "tools"),
    "domain": "example.com",
    "ingress_class": "nginx",
    "gateway": "infra/edge",
    "tls_secret": "certificate",
    "tls_issuer": "letsencrypt",
    "pod_security": "restricted",
    "fill_image": "registry.example.com/busybox:musl",
    "registry": "registry.example.com/team",
    "builder": "remote",
    "pull_secret": True,
    "timeout": 7.5,
}


def test_each_setting_is_a_field() -> None:
    """Requests, resolved settings and the options of commands have every row of the table, with its default."""
    assert set(VALUES) == set(SETTINGS)
    for cls in (Options, Request, Settings, Choice):
        defaults = {field.name: field.default for field in fields(cls) if field.name in SETTINGS}
        assert defaults == {name: row.default for name, row in SETTINGS.items()}


def test_each_setting_is_an_option_of_a_command() -> None:
    """Some command has the option, with the names, the help and the default of the row; all commands agree."""
    whole = typer.main.get_command(app)
    options = [option for command in whole.commands.values() for option in command.params]  # type: ignore[attr-defined]
    for row in SETTINGS.values():
        found = {(tuple(option.opts), option.help, option.default) for option in options if row.option in option.opts}
        names = (row.option, row.short_option) if row.short_option else (row.option,)
        assert found == {(names, row.help, row.default)}


def test_each_setting_is_an_argument_of_a_stack() -> None:
    """``ComposeStack`` has an argument for each row, with its type and default."""
    parameters = inspect.signature(ComposeStack.__init__, eval_str=True).parameters
    found = {
        row.name: (parameters[row.argument].annotation, parameters[row.argument].default) for row in SETTINGS.values()
    }

    assert found == {name: (_argument_type(row), row.default) for name, row in SETTINGS.items()}


def _argument_type(setting: Setting) -> object:
    """Return the type of a value, or None: a configuration returns that for a key that it lacks."""
    if setting.may_be_output:
        return pulumi.Input[str] | None  # type: ignore[misc]
    return (Sequence[str] if isinstance(setting.default, tuple) else type(setting.default)) | None


def test_each_setting_is_read_from_the_configuration() -> None:
    """Plain Pulumi reads each key, and takes the default where it is not set."""
    keys = {f"composeplat:{row.config_key}": VALUES[name] for name, row in SETTINGS.items()}
    try:
        set_all_config({key: value if isinstance(value, str) else json.dumps(value) for key, value in keys.items()})
        assert read_settings() == {SETTINGS[name].argument: value for name, value in VALUES.items()}
        set_all_config({})
        assert read_settings() == {row.argument: row.default for row in SETTINGS.values()}
    finally:
        set_all_config({})


def test_eject_writes_each_setting(project: Project) -> None:
    """The ejected configuration has each setting but the namespace, which is the stack's name, and no default."""
    folder = project("services: {web: {image: nginx}}")

    def ejected(**settings: Value) -> dict[str, object]:
        request = folder.request(**{"domain": "", **settings})
        files = ejected_files(
            request,
            load(request),
            Path("/out"),
            definition=[],
            builder=str(settings.get("builder", "")),
            cluster="",
            secrets={},
        )
        config = json.loads(next(text for name, text in files.items() if re.fullmatch(r"Pulumi\..+\.yaml", name)))[
            "config"
        ]
        return {key: value for key, value in config.items() if key != "composeplat:files"}

    given = {name: value for name, value in VALUES.items() if name not in ("gateway", "namespace")}
    assert ejected() == {}
    written = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    assert ejected(**given) == {f"composeplat:{SETTINGS[name].config_key}": value for name, value in written.items()}
    assert ejected(gateway="infra/edge") == {"composeplat:gateway": "infra/edge"}


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_resolves(project: Project, name: str) -> None:
    """A setting is what is given, else what its variable says."""
    row, value = SETTINGS[name], VALUES[name]
    text = str(value).lower() if isinstance(value, bool) else ",".join(value) if isinstance(value, tuple) else value
    reading = project("services: {web: {image: nginx}}", **({row.variable: str(text)} if row.variable else {}))
    # Profiles have an effect in full mode alone.
    usual: dict[str, Value] = {"domain": "", **({"full": True} if name == "profile" else {})}

    assert getattr(reading.read(**{**usual, name: value}).loaded.settings, name) == value
    if row.variable:
        assert getattr(reading.read(**usual).loaded.settings, name) == value


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_is_documented(name: str) -> None:
    """The pages name the variable, the configuration key and the argument of each setting."""
    row = SETTINGS[name]

    assert f"| `composeplat:{row.config_key}` |" in DEPLOYING
    assert f"| `{row.argument}` |" in DEPLOYING
    assert not row.variable or f"| `{row.variable}` |" in COMMANDS
