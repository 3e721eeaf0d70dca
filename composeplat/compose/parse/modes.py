"""Parse the modes of files and folders, which are texts or numbers."""

from __future__ import annotations

import re
from functools import partial

from composeplat.compose.nodes import Node, Scalar
from composeplat.compose.parse.fields import Field
from composeplat.compose.values import BadValue, parse_mode

_MAX_FILE_MODE = 0o777
_DECIMAL = re.compile(r"[1-9][0-9]{0,4}\Z", re.ASCII)


def mode_of(node: Node, text: str) -> int:
    """Read a mode: octal as a text or with a leading zero, and decimal as a number without one, as YAML says.

    The value of a variable is a text, as in Compose.
    """
    is_number = isinstance(node, Scalar) and node.plain and not node.is_substituted
    return parse_mode(f"{int(text):o}" if is_number and _DECIMAL.match(text) else text)


def _file_mode_of(node: Node, text: str) -> int:
    try:
        mode = mode_of(node, text)
    except BadValue:
        mode = _MAX_FILE_MODE + 1
    if mode > _MAX_FILE_MODE:
        raise BadValue("must be the mode of a file, as in 0440")
    return mode


def read_mode(place: Field) -> int | None:
    return place.value(partial(mode_of, place.node))


def read_file_mode(place: Field) -> int | None:
    return place.value(partial(_file_mode_of, place.node))
