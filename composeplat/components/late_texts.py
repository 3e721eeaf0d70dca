"""The arguments of a ``ComposeStack`` that are outputs of other resources.

Owns the values of placeholders: the plan is made when the program runs, with placeholders, and each object gets the
values in their places, with their secretness. Must not know the purpose of an argument.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pulumi

from composeplat.compose.placeholders import (
    PLACEHOLDER_START,
    join_values,
    make_placeholder,
    name_of,
    placeholders_in,
    random_part,
    split_text,
)
from composeplat.plan.arguments import escape

#: What a program gives for the value of a variable: configurations and outputs have numbers, booleans and None too.
VariableValue = pulumi.Input[str | float | bool | None]


class LateTexts:
    def __init__(self) -> None:
        self._values: dict[str, pulumi.Output[Any]] = {}
        self._checks: dict[str, Callable[[str], str]] = {}
        """What makes the text of a value where an object has it, or raises an error."""

    def add(
        self,
        name: str,
        value: pulumi.Input[Any],
        *,
        is_secret: bool = False,
        check: Callable[[str], str] | None = None,
    ) -> str:
        """Return a plain value as it is, and a placeholder for an output; with ``is_secret``, it becomes a secret."""
        if isinstance(value, str | int | float) or value is None:
            return as_text(value)
        placeholder = make_placeholder(name)
        output: pulumi.Output[Any] = pulumi.Output.from_input(value).apply(partial(check_value, name))
        self._values[placeholder] = pulumi.Output.secret(output) if is_secret else output
        if check is not None:
            self._checks[placeholder] = check
        return placeholder

    @property
    def names(self) -> list[str]:
        return [name_of(placeholder) for placeholder in self._values]

    def is_late(self, text: str) -> bool:
        return any(placeholder in self._values for placeholder in placeholders_in(text))

    def damaged_in(self, value: Any) -> Iterator[str]:
        """Yield the arguments whose placeholders are in keys of an object, or changed: no value can be put there."""
        match value:
            case dict():
                for key, item in value.items():
                    yield from self._random_in(key)
                    yield from self.damaged_in(item)
            case list():
                for item in value:
                    yield from self.damaged_in(item)
            case str() if value:
                yield from self._random_in("".join(part for part in split_text(value) if part not in self._values))

    def _random_in(self, text: str) -> Iterator[str]:
        lower = text.lower()
        return (name_of(found) for found in self._values if random_part(found) in lower)

    def names_in_part(self, name: str) -> Iterator[str]:
        """Yield the arguments of which the name of an object is made, in whatever form."""
        return (name_of(placeholder) for placeholder in self._values if random_part(placeholder) in name)

    def values_of(self, placeholders: tuple[str, ...]) -> pulumi.Output[list[str]]:
        found = [self._values[placeholder] for placeholder in placeholders if placeholder in self._values]
        return pulumi.Output.all(*found).apply(lambda values: [as_text(value) for value in values])

    def text(self, text: str, *, escapes: bool = False) -> pulumi.Input[str]:
        """Put the values in; with ``escapes``, Kubernetes expands nothing in them."""
        if not self.is_late(text):
            return text
        parts = split_text(text)

        def joined(values: list[Any]) -> str:
            texts = [
                self._known_text(part, value, escapes=escapes) if part in self._values else part
                for part, value in zip(parts, values, strict=True)
            ]
            return join_values(parts, texts)

        return pulumi.Output.all(*(self._values.get(part, part) for part in parts)).apply(joined)

    def _known_text(self, placeholder: str, value: Any, *, escapes: bool) -> str:
        check = self._checks.get(placeholder)
        text = check(as_text(value)) if check else as_text(value)
        return escape(text) if escapes else text

    def number(self, placeholder: str) -> pulumi.Input[int]:
        value = self._values[placeholder]
        return value.apply(lambda found: as_number(found, name_of(placeholder)))

    def data(self, encoded: str) -> pulumi.Input[str]:
        """Put the values into a text in Base64, as a Secret has it."""
        content = base64.b64decode(encoded)
        if PLACEHOLDER_START not in content:
            return encoded
        late = self.text(content.decode(errors="surrogateescape"))
        return encoded if isinstance(late, str) else pulumi.Output.all(late).apply(lambda texts: _encode(texts[0]))

    def docker_config(self, encoded: str) -> pulumi.Input[str]:
        """Put the values into the logins of a pull secret."""
        logins: dict[str, dict[str, str]] = json.loads(base64.b64decode(encoded))["auths"]
        if not any(self.is_late(text) for login in logins.values() for text in login.values()):
            return encoded
        late: pulumi.Output[Any] = pulumi.Output.from_input(
            {
                address: self.all({"username": login["username"], "password": login["password"]})
                for address, login in logins.items()
            }
        )
        return late.apply(_encode_logins)

    def all(self, value: Any) -> Any:
        """Put the values into all texts of a value."""
        match value:
            case dict():
                return {key: self.all(item) for key, item in value.items()}
            case list():
                return [self.all(item) for item in value]
            case str():
                return self.text(value)
            case _:
                return value

    def report_unknown(self, resource: pulumi.Resource) -> None:
        """Say in a preview which arguments are not known yet."""
        if self._values and pulumi.runtime.is_dry_run():
            done: pulumi.Output[Any] = pulumi.Output.from_input(self._report_unknown(resource))
            done.apply(lambda _: None)

    async def _report_unknown(self, resource: pulumi.Resource) -> None:
        unknown = [name_of(placeholder) for placeholder, value in self._values.items() if not await value.is_known()]
        if unknown:
            verb = "is" if len(unknown) == 1 else "are"
            text = (
                f"{', '.join(sorted(unknown))} {verb} not known before the update; objects that have it show no value"
            )
            pulumi.log.info(text, resource=resource)


def check_value(name: str, value: Any) -> Any:
    if isinstance(value, str | int | float) or value is None:
        return value
    # The message leaves out the value, which may be confidential.
    kind = type(value).__name__
    raise pulumi.RunError(f"the value of {name} must be a text, a number or a boolean, not a {kind}")


def as_text(value: Any) -> str:
    """Return a value as a variable would have it; all numbers of Pulumi come as floating point."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


def as_number(value: Any, name: str) -> int:
    text = as_text(value)
    if not text.isdecimal():
        # The message leaves out the value, which may be confidential.
        raise pulumi.RunError(f"the value of {name} must be a whole number")
    return int(text)


def _encode(text: str) -> str:
    return base64.b64encode(text.encode(errors="surrogateescape")).decode("ascii")


def _encode_logins(logins: dict[str, dict[str, str]]) -> str:
    entries = {
        address: {**login, "auth": _encode(f"{login['username']}:{login['password']}")}
        for address, login in logins.items()
    }
    return _encode(json.dumps({"auths": entries}, sort_keys=True))
