"""Load a definition: from files to a checked project.

Owns the order of the stages and the reading of files:

1. find the files, read the env files, resolve the settings (:mod:`~composeplat.compose.load.reading`);
2. each file: bytes -> text -> nodes -> variables substituted -> includes merged
   (:mod:`~composeplat.compose.load.documents`);
3. merge the files, apply ``!reset``; in full mode, drop the services of inactive profiles
   (:mod:`~composeplat.compose.load.profiles`);
4. nodes -> model, by the table of keys (:mod:`composeplat.compose.parse`);
5. put services into shared pods (:mod:`composeplat.compose.shared_pods`); check rules for the whole project
   (:mod:`composeplat.compose.check`);
6. env files of services and content of host volumes, last, as only the model names them
   (:mod:`~composeplat.compose.load.content`), and labels of files (:mod:`~composeplat.compose.load.label_files`); files
   of configs and secrets (:mod:`~composeplat.compose.load.file_objects`); paths outside the project
   (:mod:`~composeplat.compose.load.outside_paths`).

Must not know Kubernetes objects or Pulumi.
Variables are substituted before files are merged, as each file may have an env file of its own, and after YAML is
parsed, as a value must never become structure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from composeplat.compose.load.reading import NoDefinition, Reading, read
from composeplat.compose.nodes import Node
from composeplat.compose.options import Request, Settings
from composeplat.compose.origins import Checker, Origins
from composeplat.compose.placeholders import has_late_registry
from composeplat.compose.variables import VariableReferences, Variables, worth_hiding
from composeplat.diagnostics import InvalidDefinition, Report
from composeplat.registry.credentials import Login, find_login
from composeplat.registry.image_reference import ImageReference, registry_of_prefix
from composeplat.system.project_root import ProjectRoot
from composeplat.system.records import record

if TYPE_CHECKING:
    from composeplat.compose.file_model import FileObject
    from composeplat.compose.model import Project, Service

__all__ = ["Loaded", "NoDefinition", "Reading", "Request", "find_logins", "load", "load_definition", "read"]

_CODES_OF_VALUES = {"invalid-name", "invalid-type", "invalid-value", "unknown-key"}


@record(kw_only=True)
class Loaded:
    project: Project
    settings: Settings
    origins: Origins
    report: Report
    document: Node
    """The definition as one tree, merged and substituted."""
    variables: Variables
    references: VariableReferences
    folder: Path
    """The folder that relative paths are relative to."""
    root: ProjectRoot
    """The folder that must contain all files of the definition."""
    files: tuple[str, ...]
    """The definition's files; ``-`` is standard input."""

    @property
    def confidential(self) -> tuple[str, ...]:
        """Values that only the cluster's Secrets may show."""
        passwords = tuple(login.password for login in self.settings.logins.values())
        secrets = worth_hiding(_texts_of(self.project.secrets.values()))
        return tuple(dict.fromkeys((*self.references.confidential, *passwords, *secrets)))


def load(request: Request) -> Loaded:
    """Load and check the project; the report has all findings, errors included."""
    from composeplat.compose.check import check_project
    from composeplat.compose.init_jobs import with_init_jobs
    from composeplat.compose.load.content import with_content
    from composeplat.compose.load.file_objects import with_file_contents
    from composeplat.compose.load.label_files import with_label_files
    from composeplat.compose.load.line_ends import check_mounted_scripts
    from composeplat.compose.load.outside_paths import check_builds_inside
    from composeplat.compose.model import Project
    from composeplat.compose.model_variables import with_model_variables
    from composeplat.compose.parse import Context, parse_project
    from composeplat.compose.shared_images import with_shared_images
    from composeplat.compose.shared_pods import with_shared_pods

    reading = read(request)
    origins = Origins()
    project = Project(services={}, volumes={})
    found = reading.report if reading.complete else reading.report.copy()
    home = reading.variables.lookup("HOME") or ""
    ctx = Context(
        found,
        reading.variables,
        origins,
        home,
        references=reading.references,
        full=reading.settings.full,
        inactive=reading.inactive,
        of_sources=reading.of_sources,
    )
    parsed = parse_project(reading.document, ctx)
    if reading.complete:
        project = with_shared_pods(Checker(parsed, origins, reading.report))
        project = with_model_variables(Checker(project, origins, reading.report))
        check_project(project, origins, reading.report)
        project = with_content(with_label_files(project, origins, reading), origins, reading)
        project = with_file_contents(project, origins, reading)
        if reading.publishes:
            check_builds_inside(project, origins, reading.report, reading.root)
            check_mounted_scripts(Checker(project, origins, reading.report))
        project = with_shared_images(with_init_jobs(Checker(project, origins, reading.report)))
    else:
        _add_errors_of_values(found, reading.report)
    settings = reading.settings
    if settings.pull_secret:
        settings = replace(settings, logins=find_logins(project, settings, request))
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


def _add_errors_of_values(found: Report, report: Report) -> None:
    """Add what no other file can be the reason for: where one could not be read, other findings may be false."""
    for error in found.sorted():
        if error.code in _CODES_OF_VALUES:
            report.add(error.code, error.span, error.path, error.message, error.hint)


def _texts_of(secrets: Iterable[FileObject]) -> Iterator[str]:
    """Yield the contents that are text, as messages could have them."""
    for secret in secrets:
        with contextlib.suppress(UnicodeDecodeError):
            yield (secret.content or b"").decode().strip()


def find_logins(project: Project, settings: Settings, request: Request) -> dict[str, Login]:
    """Find the logins for the registries of all images; the registry of an image that is an output may be any."""
    images = [image for service in project.services.values() for image in (*_images_of(service), settings.fill_image)]
    known = [image for image in images if image and not has_late_registry(image)]
    registries = {ImageReference.parse(image).registry for image in known}
    if settings.registry:
        registries.add(registry_of_prefix(settings.registry))
    if any(map(has_late_registry, images)):
        registries |= request.logins.keys()
    process = request.process or request.shell
    found = {name: request.logins.get(name) or find_login(name, process) for name in sorted(registries)}
    return {registry: login for registry, login in found.items() if login is not None}


def _images_of(service: Service) -> Iterator[str]:
    """Yield the images that the pods of a service pull."""
    from composeplat.compose.model import IMAGE

    yield service.image
    yield from (hook.image for hook in service.container.pre_start)
    yield from (mount.source for mount in service.mounts if mount.kind == IMAGE)


def load_definition(request: Request) -> Loaded:
    """Load a valid project for a program; raise :class:`InvalidDefinition` otherwise."""
    loaded = load(request)
    if loaded.report.errors:
        raise InvalidDefinition(loaded.report)
    return loaded
