"""JSON that can be shown in a terminal: a name must not send an escape sequence, nor turn the order of a line around.

Owns which characters are escaped. Must not know the document.
"""

from __future__ import annotations

import re

_CONTROLS = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def printable_json(text: str) -> str:
    """Escape the control characters that a text in JSON may have as they are; its values stay the same."""
    return text if text.isascii() and "\x7f" not in text else _CONTROLS.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
