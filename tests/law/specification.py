"""The tables of ../shared/specification.md, read from its Markdown.

Must not know the project's own table: tests compare the two.
"""

from __future__ import annotations

import re

from tests.conftest import shared


def sections() -> dict[str, str]:
    """The text under each heading, up to the next one; a heading goes without what it has in parentheses."""
    text = shared("specification.md").read_text()
    parts = re.split(r"^#+ +(.*)$", text, flags=re.MULTILINE)
    headings = (plain(heading).split(" (")[0] for heading in parts[1::2])
    return dict(zip(headings, parts[2::2], strict=True))


def tables(heading: str) -> list[list[list[str]]]:
    """The tables under a heading, each a list of rows of cells, without the head."""
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", sections()[heading], flags=re.MULTILINE)
    return [[_cells(line) for line in block.splitlines()[2:]] for block in blocks]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def table(heading: str) -> list[list[str]]:
    """The first table under a heading."""
    return tables(heading)[0]


def code_names(cell: str) -> list[str]:
    """What a cell has between backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def listed(heading: str, number: int) -> str:
    """An item of the numbered list under a heading."""
    found = re.search(rf"^{number}\. (.*)$", sections()[heading], flags=re.MULTILINE)
    assert found, (heading, number)
    return found[1]


def plain(text: str) -> str:
    """A text without its backquotes."""
    return text.replace("`", "").strip()
