"""Parse nodes into the typed model; Compose's short and long forms become one form here.

Owns a module for each section of the definition; :mod:`composeplat.compose.parse.fields` has their shared code.
Must not know files, Kubernetes or the other services: rules for the whole project are in
:mod:`composeplat.compose.check`.
An invalid key affects only that key: the report has the reason, and parsing continues with its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from composeplat.compose.nodes import Node
from composeplat.compose.parse.fields import Context

if TYPE_CHECKING:
    from composeplat.compose.model import Project

__all__ = ["Context", "parse_project"]


def parse_project(document: Node, ctx: Context) -> Project:
    """Parse the whole definition."""
    from composeplat.compose.parse import project

    return project.parse_project(document, ctx)
