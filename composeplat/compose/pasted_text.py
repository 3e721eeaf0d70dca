"""Characters that come with text from a web page, a word processor or a merge, and mean nothing in a Compose file.

Owns how they are recognized, and the hints about them. Must not know YAML or a key: its callers ask about text that
they refuse, since the same characters may be wanted in a value.
"""

from __future__ import annotations

import re
import unicodedata

_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u201a\u00ab\u00bb"
_WITHOUT_WIDTH = "\u200b\u2060\ufeff"
_CONFLICT = re.compile(r"^(?:<{7} |={7}\r?$|>{7} )", re.MULTILINE)
CONFLICT = "git marked a merge conflict here"
CONFLICT_HINT = "keep the lines that are wanted; delete the others, and git's marks"


def pasted_hint(text: str) -> str:
    """Return what to write instead of such characters around a text; empty if there are none."""
    quote = next((char for char in (text[:1], text[-1:]) if char and char in _QUOTES), "")
    return f"write ' or \" instead of {quote}, which is no quote in YAML" if quote else space_hint(text[:1] + text[-1:])


def space_hint(text: str) -> str:
    """Return what to write instead of the first space in a text that YAML takes for a letter; empty if it has none."""
    if text.isascii():
        return ""
    found = next((char for char in text if _is_other_space(char)), "")
    return f"write a plain space, or none, instead of U+{ord(found):04X}, '{unicodedata.name(found)}'" if found else ""


def _is_other_space(char: str) -> bool:
    return char in _WITHOUT_WIDTH or (char != " " and unicodedata.category(char) == "Zs")


def conflict_line(text: str) -> int:
    """Return the number of the first line that git wrote to mark a conflict; 0 if there is none."""
    found = _CONFLICT.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else 0
