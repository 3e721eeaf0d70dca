"""What an input of a test shows, to compare others' vectors with our own cases: no rule is held by the former alone.

Owns how inputs are taken apart, without the project's own readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from composeplat.compose.keys import SECTIONS

Trait = tuple[str, ...]


class AnyTag(yaml.SafeLoader):
    """Reads Compose's own tags as what they are before."""


def _untagged(loader: AnyTag, _suffix: str, node: Any) -> Any:
    match node:
        case yaml.MappingNode():
            return loader.construct_mapping(node, deep=True)
        case yaml.SequenceNode():
            return loader.construct_sequence(node, deep=True)
        case _:
            return loader.construct_scalar(node)


AnyTag.add_multi_constructor("!", _untagged)


def tree(text: str) -> Any:
    return yaml.load(text, Loader=AnyTag)  # noqa: S506 -- a subclass of the safe loader


def kind(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text" if value else "empty text"
        case list():
            return "list"
        case _:
            return "mapping"


# definitions ----------------------------------------------------------------------------------------------------------


def of_definition(value: Any, section: str = "") -> Iterator[Trait]:
    """Each known key with the kind of its value."""
    keys = SECTIONS.get(section, {})
    match value:
        case list():
            for item in value:
                yield f"{section}[]", kind(item)
                yield from of_definition(item, f"{section}.*")
        case dict():
            for key, inner in value.items():
                name = f"{section}.{key}".lstrip(".") if key in keys else f"{section}.*"
                if key in keys or name in SECTIONS:
                    yield name, kind(inner)
                    yield from of_definition(inner, name)


# templates ------------------------------------------------------------------------------------------------------------

_VARIABLE = re.compile(r"\$(\{?)([A-Za-z_]\w*)?(:-|:\+|:\?|[-+?]|.|$)(.?)")


def of_template(text: str, variables: Mapping[str, str]) -> Iterator[Trait]:
    """How each variable of a template is written, whether it has a value, and how its default begins."""
    for brace, name, operator, word in _VARIABLE.findall(text):
        state = "none" if not name else {None: "unset", "": "empty"}.get(variables.get(name), "set")
        in_braces = bool(brace and name) and operator[-1:] in ("-", "+", "?")
        begins = {"$": "variable", "}": "nothing"}.get(word, "text") if in_braces else ""
        yield brace, state, operator if in_braces or not operator.isalnum() else "letter", begins


# env files ------------------------------------------------------------------------------------------------------------

_LINE = r"^[ \t]*(?:export )?[\w.-]+ ?[=:] ?"
_ENV_FILE = {
    "export": r"^export \w",
    "export after a tab": r"^\t+export",
    "export and single quotes": r"^export \w+='",
    "export in quotes": r'"export ',
    "a name that begins with export": r"^export[\w.]",
    "a blank before the name": r"^ +\w",
    "a tab before the name": r"^\t+\w",
    "a blank before the sign": r"^\w+ +=",
    "a blank after the sign": r"^\w+ *= +\S",
    "a blank before and after the sign": r"^\w+ = \S",
    "a blank at the end": _LINE + r"\w+ $",
    "a colon": r"^\w+: ?\w",
    "a colon, and the sign in the value": r"^\w+: \w+=",
    "a digit at the start of a name": r"^\d\w* *=",
    "a dot in a name": r"^\w+\.\w+ ?=",
    "a small letter in a name": r"^[a-z.]+ ?=",
    "nothing": _LINE + r"$",
    "single quotes": _LINE + "'",
    "double quotes": _LINE + '"',
    "nothing in single quotes": _LINE + "''$",
    "nothing in double quotes": _LINE + '""$',
    "the sign in a value": _LINE + r"\w+=",
    "the sign in quotes": _LINE + r"'[^'\n]*=",
    "words": _LINE + r"\w+ \w+",
    "words in quotes": _LINE + '"\\w+ \\w+',
    "a letter that is not ASCII": r"[^\x00-\x7f]",
    "a comment": _LINE + r"[\w ]+ #\w*",
    "an empty comment": _LINE + r"\w+ #$",
    "a comment after single quotes": _LINE + r"'[^'\n]*' #",
    "a comment after double quotes": _LINE + r'"[^"\n]*" #',
    "a hash in a word": _LINE + r"\w+#",
    "a hash in single quotes": _LINE + r"'[^'\n]*#",
    "a hash in double quotes": _LINE + r'"[^"\n]*#',
    "several hashes in quotes": _LINE + r'"[^"\n]*#[^"\n]*#',
    "single quotes in double ones": _LINE + r"\"[^\"\n]*'",
    "single quotes that are escaped": r"\\'",
    "double quotes that are escaped": r"\\\"",
    "lines in single quotes": _LINE + r"'[^'\n]*\n",
    "a backslash without quotes": _LINE + r"\w*\\",
    "a backslash in single quotes": _LINE + r"'[^'\n]*\\[^']",
    "a backslash before a letter": r"\\\\[a-z]",
    "a backslash before an escape": r"\\\\\\[a-z]",
    "a backslash at the end of quotes": r'\\\\"$',
    "a variable": r"\$\w",
    "a variable in braces": r"\$\{",
    "two variables": r"\$\{\w+\}[^\n]*\$",
    "a default": r"\$\{\w+:?-",
}  # fmt: skip


def of_env_file(text: str) -> Iterator[Trait]:
    """What a file has of the grammar's parts."""
    yield from (("has", name) for name, pattern in _ENV_FILE.items() if re.search(pattern, text, re.MULTILINE))
    for quoted in re.findall(r'"((?:\\.|[^"\\])*)"', text):
        yield from (("escape", letter) for letter in re.findall(r"\\(.)", quoted))


# merging --------------------------------------------------------------------------------------------------------------

#: Mappings whose keys are names that users give.
_NAMED = frozenset((
    "additional_contexts", "annotations", "args", "environment", "extra_hosts", "labels", "models", "networks",
    "options", "services", "sysctls", "volumes",
))  # fmt: skip


def of_merge(base: Any, over: Any, path: str = "", *, names: bool = False) -> Iterator[Trait]:
    """Each place where both have something: its path, and the kind of either; and what comes with the later one."""
    yield path, kind(base), kind(over)
    below = base if isinstance(base, dict) else {}
    for key, value in over.items() if isinstance(over, dict) else ():
        inner = f"{path}.{'*' if names else key}".lstrip(".")
        if key in below:
            yield from of_merge(below[key], value, inner, names=not names and key in _NAMED)
        else:
            yield inner, "nothing yet", kind(value)


def of_repeats(definition: Any) -> Iterator[Trait]:
    """The lists of a service of which one entry may be for another, with the kinds of their entries."""
    for service in definition["services"].values():
        for key, value in service.items():
            if isinstance(value, list):
                yield from ((key, kind(item)) for item in value)
