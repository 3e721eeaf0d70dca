"""Placeholders: texts in a plan for values that only Pulumi knows, such as the outputs of another resource.

Owns their form, and how texts are searched for them.
Must not know Pulumi: a plan has placeholders in it, and the components put the values in their places.

A placeholder has characters that no name, number or path may have, so a grammar that does not ask for placeholders
refuses them, with the place in the file. Its random part can't be guessed: content of the project that was written by
someone else can't ask for a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Self

_OPEN, _CLOSE = "\ue000", "\ue001"
#: In bytes, where a text is not decoded for nothing.
PLACEHOLDER_START = _OPEN.encode()
#: After a placeholder between the single quotes of a shell's script.
_QUOTED = "\ue002"
_RANDOM_BYTES = 8
_PLACEHOLDER = re.compile(f"({_OPEN}[0-9a-f]{{{2 * _RANDOM_BYTES}}}-[^{_OPEN}{_CLOSE}]*{_CLOSE})")
_RANDOM_PART = re.compile(f"(?<={_OPEN})[0-9a-f]{{{2 * _RANDOM_BYTES}}}(?=-[^{_OPEN}{_CLOSE}]*{_CLOSE})")
#: In messages, characters that a terminal can't show are escaped.
_ESCAPED_OPEN, _ESCAPED_CLOSE = r"\ue000", r"\ue001"
_SHOWN = (
    f"(?:{_OPEN}|{re.escape(_ESCAPED_OPEN)})[0-9a-f]{{{2 * _RANDOM_BYTES}}}-"
    f"([^{_OPEN}{_CLOSE}\\\\]*)(?:{_CLOSE}|{re.escape(_ESCAPED_CLOSE)})"
)
#: One that a message has cut, as a text is too long for it.
_CUT = f"(?:{_OPEN}|{re.escape(_ESCAPED_OPEN)})[^{_OPEN}{_CLOSE}\\\\…]*…"


def make_placeholder(name: str) -> str:
    """Make a placeholder; the name is for messages."""
    return f"{_OPEN}{os.urandom(_RANDOM_BYTES).hex()}-{name}{_CLOSE}"


def mark_quoted(text: str) -> str:
    """Mark the placeholders of a text that is put between the single quotes of a shell."""
    return _PLACEHOLDER.sub(lambda found: f"{found[0]}{_QUOTED}", text) if _OPEN in text else text


def join_values(parts: list[str], values: list[str]) -> str:
    """Join the parts of a text, with values for its placeholders; those between quotes of a shell stay there."""
    joined: list[str] = []
    for part, value, following in zip(parts, values, [*parts[1:], ""], strict=True):
        if is_placeholder(part):
            joined.append(value.replace("'", "'\"'\"'") if following.startswith(_QUOTED) else value)
        else:
            joined.append(value.removeprefix(_QUOTED) if joined else value)
    return "".join(joined)


def has_placeholder(text: str) -> bool:
    return _OPEN in text and _PLACEHOLDER.search(text) is not None


def has_late_registry(image: str) -> bool:
    """Check for an image whose registry is not known: the part of its name that may be a host has a placeholder."""
    first, slash, _ = image.partition("/")
    return has_placeholder(first if slash else image.partition(":")[0])


def is_placeholder(text: str) -> bool:
    return _PLACEHOLDER.fullmatch(text) is not None


def placeholders_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(text))) if _OPEN in text else ()


def split_text(text: str) -> list[str]:
    """Divide a text into placeholders and the texts between them."""
    return [part for part in _PLACEHOLDER.split(text) if part]


def replace_placeholders(text: str, other: str) -> str:
    """Put another text in the place of each."""
    return _PLACEHOLDER.sub(other, text) if _OPEN in text else text


def without_random(text: str) -> str:
    """Return a text that is the same in every run."""
    return _RANDOM_PART.sub("", text) if _OPEN in text else text


def random_part(placeholder: str) -> str:
    return placeholder[1 : 1 + 2 * _RANDOM_BYTES]


def show_placeholders(text: str) -> str:
    """Name the placeholders of a text as its file does."""
    if _OPEN not in text and _ESCAPED_OPEN not in text:
        return text
    return re.sub(_CUT, "…", re.sub(_SHOWN, r"${\1}", text))


def name_of(placeholder: str) -> str:
    return placeholder[2 + 2 * _RANDOM_BYTES : -1]


def late_hint(names: Iterable[str]) -> str:
    """Return the hint for a place where the plan can't be made without a value."""
    listed = list(dict.fromkeys(names))
    verb, is_what = ("is", "an output") if len(listed) == 1 else ("are", "outputs")
    return f"{', '.join(listed)} {verb} {is_what}, which the plan can't wait for here: give a plain value"


class LateNumber(int):
    """A number that only Pulumi knows; as text it is its placeholder.

    Rules that ask for its size see the number that it is made with.
    """

    placeholder: str

    def __new__(cls, size: int, placeholder: str) -> Self:
        made = super().__new__(cls, size)
        made.placeholder = placeholder
        return made

    def __str__(self) -> str:
        return self.placeholder

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self.placeholder, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LateNumber) and other.placeholder == self.placeholder

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.placeholder)
