"""Report paths outside the project that other programs open: BuildKit, the sync of ``platform up``.

Owns the list of a build's local paths.
Must not open any: files that this package reads are checked when they are read (:mod:`composeplat.system.files`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from composeplat.compose.model import HOST, Build, Project, Service
from composeplat.compose.origins import Checker, Origins, mount_path
from composeplat.compose.parse.build import OCI_LAYOUT, cache_folders, is_remote
from composeplat.diagnostics import PathKey, Report
from composeplat.system.files import is_system_path
from composeplat.system.project_root import ProjectRoot


def check_builds_inside(project: Project, origins: Origins, report: Report, root: ProjectRoot) -> None:
    """Report build paths outside the project."""
    checker = Checker(project, origins, report)
    for service in project.services.values():
        if service.build is not None:
            for keys, path in build_paths(service.build):
                place = ("services", service.name, "build", *keys)
                of_file = (*place, "file")  # of a secret, which the build only names
                shown = origins.shown(*(of_file if origins.has(*of_file) else place))
                _check(checker, root, place, path, f"names a path outside the project: {shown}")


def check_synced_inside(
    project: Project, service: Service, origins: Origins, report: Report, root: ProjectRoot
) -> None:
    """Report synced host paths outside the project."""
    checker = Checker(project, origins, report)
    for index, mount in enumerate(service.mounts):
        place = mount_path(service.name, index)
        if mount.kind == HOST and not is_system_path(Path(mount.source), (root.path,)):
            shown = origins.shown(*place, "source")
            _check(checker, root, place, mount.source, f"mounts a host path that is outside the project: {shown}")


def _check(checker: Checker, root: ProjectRoot, place: PathKey, path: str, message: str) -> None:
    if not root.allows(path):
        checker.add("outside-project", place, message, root.fix)


def build_paths(build: Build) -> Iterator[tuple[PathKey, str]]:
    """The local paths that a build reads or writes, with their keys below ``build``."""
    yield from _contexts(build)
    for index, secret in enumerate(build.secrets):
        if secret.file:
            yield ("secrets", index), secret.file
    for index, text in enumerate(build.ssh):
        for path in filter(None, text.partition("=")[2].split(",")):
            yield ("ssh", index), path
    for key, caches in (("cache_from", build.cache_from), ("cache_to", build.cache_to)):
        for index, text in enumerate(caches):
            yield from (((key, index), folder) for folder in cache_folders(text))


def _contexts(build: Build) -> Iterator[tuple[PathKey, str]]:
    if build.context and not is_remote(build.context):
        yield ("context",), build.context
        if not build.dockerfile_inline:
            keys = ("dockerfile",) if build.dockerfile else ("context",)
            yield keys, os.path.join(build.context, build.dockerfile or "Dockerfile")
    for name, context in build.additional_contexts.items():
        if context.startswith(OCI_LAYOUT):
            yield ("additional_contexts", name), re.split("[@:]", context.removeprefix(OCI_LAYOUT))[0]
        elif not is_remote(context):
            yield ("additional_contexts", name), context
