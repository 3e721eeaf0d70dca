"""The arguments that decide the plan are plain values of the right type: others are errors."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import pulumi
import pytest
from pulumi.runtime.config import set_all_config

from composeplat.components.late_texts import VariableValue
from composeplat.components.program import declare_configured
from composeplat.components.service import Service, ServiceSettings
from composeplat.components.stack import ComposeStack
from composeplat.compose.options import SETTINGS
from tests.components.test_stack import folder, run, stack
from tests.conftest import Folder

__all__ = ["folder"]

NO_OUTPUT = "must be a plain value, not an output, as it decides the plan"


def error(folder: Folder, name: str, value: Any) -> str:
    """The error of an argument; outputs belong to the program that makes them."""
    with pytest.raises(pulumi.RunError) as caught:
        run(lambda: stack(folder, **{name: value() if callable(value) else value}))
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        *("file", "environment_name", "full", "profiles", "ingress_class", "gateway", "tls_secret", "tls_issuer"),
        *("pod_security", "fill_image", "pull_secret", "allow_outside", "env_files", "builder", "timeout"),
        *("registries", "waits"),
    ],
)
def test_an_output(folder: Folder, name: str) -> None:
    """An output is an error that names the argument: it was true, or a text without its value."""
    assert error(folder, name, lambda: pulumi.Output.from_input("x")) == f"'{name}' {NO_OUTPUT}"


def test_an_output_in_a_list(folder: Folder) -> None:
    """So is an output in a list."""
    assert error(folder, "file", lambda: ["a.yaml", pulumi.Output.from_input("b.yaml")]) == f"'file[1]' {NO_OUTPUT}"


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("extras", lambda made: made, "extras"),
        ("extras", lambda made: {"web": made}, "extras[web]"),
        ("selectors", lambda made: {"web": {"app": made}}, "selectors[web][app]"),
        ("aliases", lambda made: {"Deployment/web": made}, "aliases[Deployment/web]"),
    ],
)
def test_an_output_of_objects(folder: Folder, name: str, value: Callable[[Any], Any], place: str) -> None:
    """What an object is, and what it was, is plain, too."""
    assert error(folder, name, lambda: value(pulumi.Output.from_input("x"))) == f"'{place}' {NO_OUTPUT}"


@pytest.mark.parametrize("name", ["variables", "images"])
def test_an_output_of_many(folder: Folder, name: str) -> None:
    """Names of variables and services are plain, and their values may be outputs: the error says so."""
    found = error(folder, name, lambda: pulumi.Output.from_input({"web": "x"}))

    assert found == f"'{name}' must be a dictionary, not an output; its values may be outputs"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("file", {"services": {}}, "'file' must be a path or a list of paths, not of type dict"),
        ("file", 5, "'file' must be a path or a list of paths, not of type int"),
        ("file", [5], "'file[0]' must be a path, not of type int"),
        (
            "file",
            "services: {web: {image: nginx}}\n",
            "'file' must be the path of a Compose file, not its text\n  hint: write it to a file",
        ),
        ("full", "false", "'full' must be True or False, not 'false'"),
        ("waits", "false", "'waits' must be True or False, not 'false'"),
        ("allow_outside", 1, "'allow_outside' must be True or False, not of type int"),
        ("profiles", "dev", "'profiles' must be a list, not 'dev'"),
        ("env_files", ".env", "'env_files' must be a list, not '.env'"),
        ("env_files", [1], "'env_files[0]' must be a path, not of type int"),
        ("timeout", "5m", "'timeout' must be a number, not '5m'"),
        ("timeout", 0, "'timeout' must be at least 1, not 0"),
        ("timeout", float("nan"), "'timeout' must be at least 1, not nan"),
        ("tls_secret", ["a"], "'tls_secret' must be a text, not of type list"),
        ("variables", ["A=b"], "'variables' must be a dictionary, not of type list"),
        ("selectors", {"web": "app"}, "'selectors[web]' must be a dictionary, not 'app'"),
        ("registries", ["a"], "'registries[0]' must be a dictionary, not 'a'"),
        ("variables", {1: "a"}, "the keys of 'variables' must be texts, not '1'"),
        ("selectors", {"web": {"app": 5}}, "'selectors[web][app]' must be a text, not of type int"),
        ("extras", [{"kind": "ConfigMap"}], "'extras' must be a dictionary, not of type list"),
        ("extras", {"web": {"kind": "ConfigMap"}}, "'extras[web]' must be a list, not of type dict"),
        ("extras", {"web": ["web.yaml"]}, "'extras[web][0]' must be a dictionary, not 'web.yaml'"),
        ("transforms", [print], "'transforms' must be a dictionary, not of type list"),
        ("transforms", {"web": 5}, "'transforms[web]' must be a function or a list of functions, not of type int"),
        ("transforms", {"web": ["x"]}, "'transforms[web]' must be a function or a list of functions, not 'x'"),
        ("aliases", ["web"], "'aliases' must be a dictionary, not of type list"),
        ("aliases", {"Deployment/web": {"name": "web"}}, "'aliases[Deployment/web]' must be a list, not of type dict"),
        (
            "aliases",
            {"Deployment/web": [5]},
            "'aliases[Deployment/web][0]' must be a text or a pulumi.Alias, not of type int",
        ),
    ],
)
def test_another_type(folder: Folder, name: str, value: Any, message: str) -> None:
    """A value of another type is an error: a text such as "false", as a configuration returns it, would be true."""
    assert error(folder, name, value) == message


def test_none(folder: Folder) -> None:
    """None is what a configuration returns for a key that it lacks: it is as if the argument were not given."""
    names = (
        "profiles",
        "ingress_class",
        "gateway",
        "tls_secret",
        "tls_issuer",
        "registry",
        "builder",
        "timeout",
        "full",
    )
    nothing: dict[str, Any] = dict.fromkeys((*names, "env_files", "images", "environment_name", "registries"))

    assert run(lambda: stack(folder, **nothing)).everything == run(lambda: stack(folder)).everything
    assert run(lambda: stack(folder, images={"web": None})).everything == run(lambda: stack(folder)).everything


@pytest.mark.parametrize("component", [ComposeStack, Service])
def test_types_of_arguments(component: type) -> None:
    """Type checkers allow what a program may give: None for an argument, and other values than texts for variables."""
    parameters = inspect.signature(component, eval_str=True).parameters
    types = {name: found.annotation for name, found in parameters.items() if name != "settings"}

    assert {name for name, found in types.items() if type(None) not in get_args(found)} <= {"name", "compose"}
    assert types["variables"] == Mapping[str, VariableValue] | None
    assert {str, float, bool, type(None)} < set(get_args(VariableValue))


def test_settings_of_a_service_alone() -> None:
    """They are those of a stack, but for the timeout: no hook waits for a condition."""
    annotations = ServiceSettings.__annotations__

    assert annotations.keys() == {row.argument for row in SETTINGS.values()} - {"timeout"}
    assert all(found.__forward_arg__.endswith(" | None") for found in annotations.values())


def test_a_service_alone() -> None:
    """The settings of a service alone are checked alike."""

    def message(**more: Any) -> str:
        with pytest.raises(pulumi.RunError) as caught:
            run(lambda: Service("web", variables={}, **{"compose": "image: nginx", **more}))
        return str(caught.value)

    assert message(full="no") == "'full' must be True or False, not 'no'"
    assert message(compose={"image": "nginx"}) == "'compose' must be a text, not of type dict"


@pytest.mark.parametrize("key", ["profiles", "files", "envFiles"])
def test_a_text_in_the_configuration(folder: Folder, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """Where the configuration has a list, a text is an error: each of its characters was an item."""
    monkeypatch.chdir(folder.path)

    def program() -> None:
        set_all_config({f"composeplat:{key}": json.dumps("dev"), "composeplat:cluster": "x"})
        declare_configured(Path())

    with pytest.raises(pulumi.RunError, match=f"^'composeplat:{key}' must be a list, not 'dev'$"):
        run(program, preview=True)
