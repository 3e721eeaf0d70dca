"""Read nodes into the typed model: the one place where Compose's short and long forms are settled.

One module a section of the definition; :mod:`composeplat.compose.parse.fields` holds what they share.
Must not know files, Kubernetes or the other services: what needs the whole project is
:mod:`composeplat.compose.check`'s.
A bad key ends only that key: the report has the reason, and reading goes on with its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from composeplat.compose.nodes import Node
from composeplat.compose.parse.fields import Context

if TYPE_CHECKING:
    from composeplat.compose.model import Project

__all__ = ["Context", "parse_project"]


def parse_project(document: Node, ctx: Context) -> Project:
    """Read the whole definition."""
    from composeplat.compose.parse import project  # noqa: PLC0415 -- who wants the fields alone does not wait for the rest

    return project.parse_project(document, ctx)
