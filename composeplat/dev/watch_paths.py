"""Read the paths of ``develop.watch`` from the disk: their kinds, the ignore files, and what a watch must not open.

Owns which rules a watch can't begin with, and their messages.
It is apart from :mod:`composeplat.dev.watch_rules`, which decides on the data alone.
"""

from __future__ import annotations

import os
from pathlib import Path

from composeplat.compose.check_watch import find_obstacle
from composeplat.compose.dockerignore import dockerignore_names
from composeplat.compose.model import Build, Service
from composeplat.compose.origins import Checker, watch_rule_path
from composeplat.compose.parse.build import is_remote
from composeplat.compose.watch_model import WatchRule
from composeplat.dev.sync_paths import MAX_IGNORE_FILE_BYTES, first_link
from composeplat.dev.watch_rules import WatchedFolder, make_watched_folder
from composeplat.diagnostics import ComposeplatError, quoted
from composeplat.system import files
from composeplat.system.project_root import ProjectRoot


def find_watched_folders(checker: Checker, service: Service, root: ProjectRoot, folder: str) -> list[WatchedFolder]:
    """Return the folders of the rules that can have an effect; report those that must not be watched."""
    found: list[WatchedFolder] = []
    for index, rule in enumerate(service.watch):
        if any(find_obstacle(service, rule)):
            continue
        if _is_refused(checker, rule, (service.name, index), root, folder):
            continue
        is_file = os.path.isfile(rule.path)
        text = _dockerignore(service.build) if service.build else ""
        project = (root.path, folder)
        found.append(make_watched_folder(service, rule, is_file=is_file, dockerignore=text, project=project))
    return found


def _is_refused(checker: Checker, rule: WatchRule, place: tuple[str, int], root: ProjectRoot, folder: str) -> bool:
    path = (*watch_rule_path(*place), "path")
    shown = checker.origins.shown(*path)
    if files.is_system_path(Path(rule.path), (root.path,)):
        checker.add(
            "forbidden-path", path, f"watches a system path of this machine: {shown}", "watch files of the project"
        )
    elif not root.allows(rule.path):
        checker.add("outside-project", path, f"watches a path outside the project: {shown}", root.fix)
    elif link := next((found for top in (root.path, folder) if (found := first_link(rule.path, top))), ""):
        message = f"watches a link, or a path behind one, which is not followed: {shown}"
        hint = f"name what the link {quoted(os.path.relpath(link, folder))} leads to by its own path"
        checker.add("forbidden-path", path, message, hint)
    elif not os.path.lexists(rule.path):
        checker.add("missing-path", path, f"watches a path that does not exist: {shown}", "create it")
    else:
        return False
    return True


def _dockerignore(build: Build) -> str:
    if not build.context or is_remote(build.context):
        return ""
    for path in (Path(build.context) / name for name in dockerignore_names(build)):
        try:
            return files.read_bytes(path, limit=MAX_IGNORE_FILE_BYTES).decode("utf-8", "replace")
        except files.Unreadable as error:
            if not error.missing:
                raise ComposeplatError(f"the ignore file '{path}' {error.reason}") from error
    return ""
