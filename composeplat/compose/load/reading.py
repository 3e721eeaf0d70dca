"""Read a definition as one tree of nodes: find files, substitute variables, merge.

Owns the order of the stages that know no keys.
Must not know the model: :mod:`composeplat.compose.load` parses the tree.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from composeplat.compose.load.documents import Documents
from composeplat.compose.load.profiles import Profiles, Selection, select
from composeplat.compose.load.sources import Sources
from composeplat.compose.load.variables import (
    NoDefinition,
    definition_files,
    definition_root,
    first_variables,
    project_root,
    project_variables,
    resolve_settings,
)
from composeplat.compose.merge import apply_tags
from composeplat.compose.nodes import Node
from composeplat.compose.options import Request, Settings
from composeplat.compose.variables import VariableReferences, Variables
from composeplat.diagnostics import Report
from composeplat.system.project_root import ProjectRoot
from composeplat.system.records import record

__all__ = ["NoDefinition", "Reading", "read"]


@record(kw_only=True)
class Reading:
    """A definition after the stages that know no keys."""

    folder: Path
    root: ProjectRoot
    files: tuple[str, ...]
    """The definition's files; ``-`` is standard input."""
    sources: Sources
    variables: Variables
    settings: Settings
    document: Node
    references: VariableReferences
    of_sources: Mapping[int, Variables] = field(default_factory=dict)
    """The variables of each file, by the number of its source."""
    inactive: Profiles = field(default_factory=dict)
    """The services whose profiles are off, which the document does not have, with their profiles."""
    publishes: bool = True

    @property
    def report(self) -> Report:
        return self.sources.report

    @property
    def complete(self) -> bool:
        return self.sources.complete


def read(request: Request, *, substitute: bool = True) -> Reading:
    sources = Sources(request, Report())
    variables = first_variables(request, sources)
    names = definition_files(request, variables, sources)
    folder = request.folder if names[0] == "-" else Path(os.path.dirname(names[0]))
    root, own_root = project_root(request, folder), definition_root(request, variables, folder)
    variables = project_variables(request, variables, folder, sources)
    texts = [(name, sources.nodes(name, folder, own_root)) for name in names]
    documents = [node for _, nodes in texts for node in nodes]
    settings = resolve_settings(request, variables, documents, folder, sources.report)
    variables = variables.with_built_in(settings.environment, settings.namespace, settings.domain)
    references = VariableReferences()
    documents_of = Documents(sources, references, root, substitute=substitute, extends=settings.full)
    whole = documents_of.join(texts, variables)
    selection = Selection(apply_tags(whole, sources.report))
    if settings.full:
        selection = select(selection.document, settings.profile, request.named_services, sources.report)
    return Reading(
        folder=folder,
        root=root,
        files=tuple(names),
        sources=sources,
        variables=variables,
        settings=settings,
        document=selection.document,
        references=references,
        of_sources=documents_of.of_sources,
        inactive=selection.inactive,
        publishes=request.publishes,
    )
