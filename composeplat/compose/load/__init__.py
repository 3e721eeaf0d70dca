"""From files to a checked project: the stages in their order, and the files they need.

Owns the order and the reading of files it takes:

1. find the files, read the env files, settle the names (:mod:`~composeplat.compose.load.reading`);
2. each file: bytes -> text -> nodes -> variables in -> its includes under it
   (:mod:`~composeplat.compose.load.documents`);
3. files over one another, ``!reset`` carried out;
4. nodes -> model, by the table of keys (:mod:`composeplat.compose.parse`);
5. rules over the whole (:mod:`composeplat.compose.check`);
6. env files of services and content of host volumes, last, as only the model knows which
   (:mod:`~composeplat.compose.load.content`); paths outside the project
   (:mod:`~composeplat.compose.load.outside_paths`).

Must not know Kubernetes objects or Pulumi.
Variables are substituted before files are merged, as each file may have an env file of its own, and after YAML is
parsed, as a value must never become structure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from composeplat.compose.load.reading import NoDefinition, Reading, read
from composeplat.compose.nodes import Node
from composeplat.compose.options import Request, Settings
from composeplat.compose.origins import Origins
from composeplat.compose.variables import VariableReferences, Variables
from composeplat.diagnostics import InvalidDefinition, Report
from composeplat.registry.credentials import Login, find_login
from composeplat.registry.image_reference import ImageReference, registry_of_prefix
from composeplat.system.project_root import ProjectRoot

if TYPE_CHECKING:
    from composeplat.compose.model import Project

__all__ = ["Loaded", "NoDefinition", "Reading", "Request", "load", "load_definition", "read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    project: Project
    settings: Settings
    origins: Origins
    report: Report
    document: Node
    """The definition as one tree: files merged, variables in."""
    variables: Variables
    references: VariableReferences
    folder: Path
    """What relative paths are relative to."""
    root: ProjectRoot
    """What the files that the definition names lie in."""
    files: tuple[str, ...]
    """The definition's files; ``-`` is standard input."""

    @property
    def confidential(self) -> tuple[str, ...]:
        """Values that are to be seen nowhere but in the cluster's Secrets."""
        passwords = tuple(login.password for login in self.settings.logins.values())
        return tuple(dict.fromkeys((*self.references.confidential, *passwords)))


def load(request: Request) -> Loaded:
    """Read, check and give the project; the report has what was found, errors included."""
    from composeplat.compose.check import check_project  # noqa: PLC0415 -- reading alone is quick, as a shell's completion waits
    from composeplat.compose.load.content import with_content  # noqa: PLC0415 -- the same
    from composeplat.compose.load.outside_paths import check_builds_inside  # noqa: PLC0415 -- the same
    from composeplat.compose.model import Project  # noqa: PLC0415 -- the same
    from composeplat.compose.parse import Context, parse_project  # noqa: PLC0415 -- the same

    reading = read(request)
    origins = Origins()
    project = Project(services={}, volumes={})
    # Where a file could not be read as a whole, checking the rest would report the wrong places.
    if reading.complete:
        home = reading.variables.lookup("HOME") or ""
        ctx = Context(reading.report, reading.variables, origins, home, references=reading.references)
        project = parse_project(reading.document, ctx)
        check_project(project, origins, reading.report)
        project = with_content(project, origins, reading)
        if reading.publishes:
            check_builds_inside(project, origins, reading.report, reading.root)
    settings = reading.settings
    if settings.pull_secret:
        settings = replace(settings, logins=_find_logins(project, settings, request))
    return Loaded(
        project=project,
        settings=settings,
        origins=origins,
        report=reading.report,
        document=reading.document,
        variables=reading.variables,
        references=reading.references,
        folder=reading.folder,
        root=reading.root,
        files=reading.files,
    )


def _find_logins(project: Project, settings: Settings, request: Request) -> dict[str, Login]:
    images = [service.image for service in project.services.values() if service.image]
    registries = {ImageReference.parse(image).registry for image in images}
    if settings.registry:
        registries.add(registry_of_prefix(settings.registry))
    found = {one: request.logins.get(one) or find_login(one, request.shell) for one in sorted(registries)}
    return {registry: login for registry, login in found.items() if login is not None}


def load_definition(request: Request) -> Loaded:
    """Load for a program: a sound project, or an exception that carries the report."""
    loaded = load(request)
    if loaded.report.errors:
        raise InvalidDefinition(loaded.report)
    return loaded
