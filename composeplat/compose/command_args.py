"""How a command in a string is split into arguments, as a POSIX shell does without variables and globs.

Owns the grammar of quotes and backslashes. Must not know which keys have commands, nor their limits.
:func:`shlex.split` gives the same, and adds every character to the argument before it by a copy: an argument of 1 MiB
took it a minute.
"""

from __future__ import annotations

import re

_SPACE = " \t\r\n"
#: A part of an argument, or the space between two. Its repeats are possessive, so that an open quotation is found fast.
_PART = re.compile(
    rf"(?P<space>[{_SPACE}]++)"
    rf"|(?P<plain>[^{_SPACE}'\"\\]++)"
    r"|'(?P<single>[^']*+)'"
    r'|"(?P<double>(?:[^"\\]++|\\.)*+)"'
    r"|\\(?P<escaped>.)",
    re.DOTALL,
)
_ESCAPED_IN_QUOTES = re.compile(r'\\(["\\])')
_ENDS_WITH_BACKSLASH = re.compile(r'(?:"(?:[^"\\]++|\\.)*+)?\\\Z', re.DOTALL)


def split_args(text: str) -> tuple[str, ...]:
    """Split a command into arguments; a ``ValueError`` says what is not closed."""
    args: list[str] = []
    parts: list[str] = []
    position, is_arg = 0, False
    while position < len(text):
        found = _PART.match(text, position)
        if found is None:
            is_escape = _ENDS_WITH_BACKSLASH.match(text, position) is not None
            raise ValueError("no escaped character" if is_escape else "no closing quotation")
        position, kind = found.end(), found.lastgroup
        if kind != "space":
            part = found[kind or 0]
            parts.append(_ESCAPED_IN_QUOTES.sub(r"\1", part) if kind == "double" else part)
            is_arg = True
        if is_arg and (kind == "space" or position == len(text)):
            args.append("".join(parts))
            parts, is_arg = [], False
    return tuple(args)
