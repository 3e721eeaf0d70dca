"""Variables in layers, and the flags among them."""

from __future__ import annotations

import pytest

from composeplat.compose.variables import (
    VariableReferences,
    Variables,
    is_variable_name,
    looks_secret,
    storable,
    worth_hiding,
)

LAYERS = Variables.from_layers(
    {"A": "shell"}, {"A": "file", "B": "file"}, {"A": "platform", "B": "platform", "C": "platform"}
)


@pytest.mark.parametrize(
    ("name", "value", "layer"),
    [("A", "shell", "shell"), ("B", "file", ".env"), ("C", "platform", "platform"), ("D", None, None)],
)
def test_precedence(name: str, value: str | None, layer: str | None) -> None:
    """The shell hides the env file, and both hide the platform."""
    assert (value, layer) == (LAYERS.lookup(name), LAYERS.layer_of(name))


def test_an_empty_value_hides_too() -> None:
    """A variable that is set to nothing is set."""
    assert Variables.from_layers({"A": ""}, {"A": "file"}).lookup("A") == ""


def test_defaults_stand_above_the_platform() -> None:
    """What an included file's env file says is below ours, and above the platform's."""
    more = LAYERS.with_defaults("include", {"A": "include", "B": "include", "C": "include", "D": "include"})

    assert [more.layer_of(name) for name in "ABCD"] == ["shell", ".env", "include", "include"]


@pytest.mark.parametrize(
    ("text", "default", "expected"),
    [
        ("true", False, True),
        ("True", False, True),
        ("1", False, True),
        ("on", False, True),
        (" yes ", False, True),
        ("false", True, False),
        ("0", True, False),
        ("off", True, False),
        ("", True, True),
        ("", False, False),
        ("maybe", True, True),
        ("maybe", False, False),
        (None, True, True),
        (None, False, False),
    ],
)
def test_flag(text: str | None, default: bool, expected: bool) -> None:  # noqa: FBT001 -- the expected values
    """A flag is a boolean; what is none counts as the default."""
    variables = Variables.from_layers({} if text is None else {"FLAG": text})

    assert expected is variables.flag("FLAG", default=default)


def test_uses() -> None:
    """Each variable is kept once, in the order of first use, with its value there and its first default."""
    uses = VariableReferences()
    uses.add("B", LAYERS, default=None, required=False)
    uses.add("A", LAYERS, default="1", required=False)
    uses.add("B", Variables(), default="2", required=True)
    uses.add("B", LAYERS, default="3", required=False)

    assert [(use.name, use.value, use.layer, use.default, use.required) for use in uses] == [
        ("B", "file", ".env", "2", True),
        ("A", "shell", "shell", "1", False),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A", True),
        ("_a1", True),
        ("1A", False),
        ("a-b", False),
        ("a.b", False),
        ("", False),
        ("A\n", False),
        ("Ä", False),
    ],
)
def test_names(name: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """A variable's name is letters, digits and underscores."""
    assert expected is is_variable_name(name)


def test_what_can_be_kept_in_a_namespace() -> None:
    """What settles the namespace, the name or the files can't, nor what `${}` can't name."""
    kept = {"A": "1", "PLATFORM_DOMAIN": "d", "PLATFORM_NAMES": "n"}
    left = {"a-b": "1", "COMPOSE_FILE": "f", "PLATFORM_NAME": "n", "PLATFORM_NAMESPACE": "n"}
    assert kept == storable({**left, **kept})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("DB_PASSWORD", True, id="password"),
        pytest.param("API_KEY", True, id="key"),
        pytest.param("TLS_SECRET", True, id="secret"),
        pytest.param("PLATFORM_TLS_SECRET", False, id="names-an-object"),
        pytest.param("PLATFORM_PULL_SECRET", False, id="says-yes-or-no"),
        pytest.param("DB_PASSWORD_FILE", False, id="path-of-a-secret"),
        pytest.param("TAG", False, id="other"),
    ],
)
def test_names_of_secrets(name: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """What is secret is reported by a variable's name; of our own settings none holds one."""
    assert expected is looks_secret(name)


def test_values_worth_hiding() -> None:
    """To hide a short one would hide what is no secret."""
    assert worth_hiding(["abc", "abcd"]) == ("abcd",)


def test_lines_worth_hiding() -> None:
    """A log shows a key of several lines line by line; a short line may be in anything."""
    key = "{\nabcdefgh\n12345678\n}\n"
    assert worth_hiding([key]) == (key, "abcdefgh", "12345678")
