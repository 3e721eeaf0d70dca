"""Parse ``external`` and ``name`` of a network, volume, config or secret that someone else owns.

Owns both forms of ``external``; what an external object means is the reader's of each block.
"""

from __future__ import annotations

from composeplat.compose.nodes import Scalar
from composeplat.compose.parse.fields import Section


def parse_external(section: Section, block: str) -> tuple[bool, str]:
    """Return whether the object is someone else's, and its name; in old files the name is a field of ``external``."""
    found, given = section.get("external"), section.text("name")
    if found is None or isinstance(found.node, Scalar):
        return section.boolean("external", default=False), given
    inner = found.section(f"{block}.*.external")
    return inner is not None, given or (inner.text("name") if inner else "")
