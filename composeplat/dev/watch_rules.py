"""The rules of ``develop.watch`` as folders to watch: what of them counts, and where it is in a container.

Owns the patterns of a folder, in the order in which they count, and the paths in a container.
Must not open files, nor know how a folder is watched: :mod:`composeplat.dev.watch_paths` reads them, and
:mod:`composeplat.dev.folder_watch` runs the watcher.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterable

from composeplat.compose.check_watch import mounted_targets
from composeplat.compose.dockerignore import clean_pattern, read_dockerignore
from composeplat.compose.model import Service
from composeplat.compose.watch_model import WatchRule
from composeplat.dev.sync_rules import DEFAULT_IGNORES, escape_pattern, path_below
from composeplat.system.records import record

#: What editors write beside the file that is being edited.
_OF_EDITORS = ("**/*~", "**/.*.sw?", "**/4913", "**/.#*", "**/#*#", "**/*___jb_???___", "**/.idea")
_EVERYTHING = "**"


@record(kw_only=True)
class WatchedFolder:
    """A folder of this machine with the part of it that a rule means."""

    service: str
    """The name in the definition."""
    rule: WatchRule
    local: str
    within: str = ""
    """No link below this folder is followed, as a container may have created it; empty if none can have."""
    file: str = ""
    """The only file that counts; empty for the whole folder."""
    ignores: tuple[str, ...] = ()
    """Patterns as in ``.dockerignore``; the last that matches wins."""
    includes: tuple[str, ...] = ()

    def in_container(self, path: str) -> str:
        """Return the path in the container for one that is relative to the folder."""
        if self.file and not self.rule.target.endswith("/"):
            return self.rule.target
        return posixpath.join(self.rule.target, path)


def make_watched_folder(
    service: Service, rule: WatchRule, *, is_file: bool, dockerignore: str = "", project: Iterable[str] = ()
) -> WatchedFolder:
    """Make the folder of a rule; ``dockerignore`` is the text of the file in the service's build context.

    ``project`` are the folders of the project: a container may have created any file in them.
    """
    local, name = posixpath.split(rule.path) if is_file else (rule.path, "")
    built = service.build
    patterns = relocate_patterns(read_dockerignore(dockerignore), built.context, local) if built else []
    own = [] if is_file else [clean_pattern(pattern) for pattern in rule.ignore]
    only = [_EVERYTHING, f"!{escape_pattern(name)}"] if is_file else []
    return WatchedFolder(
        service=service.name,
        rule=rule,
        local=local,
        within=next((folder for folder in project if local == folder or path_below(local, folder)), ""),
        file=name,
        ignores=(
            *only,
            *([] if is_file else patterns),
            *own,
            *_volumes_below(service, rule),
            *_OF_EDITORS,
            *DEFAULT_IGNORES,
        ),
        includes=() if is_file else tuple(clean_pattern(pattern) for pattern in rule.include),
    )


def _volumes_below(service: Service, rule: WatchRule) -> list[str]:
    """Return the patterns of the volumes below a target, which a sync must not overwrite."""
    target = rule.target.rstrip("/") or "/"
    if not rule.target:
        return []
    below = (path_below(posixpath.normpath(mount), target) for mount in sorted(mounted_targets(service)))
    return [escape_pattern(path) for path in below if path]


# patterns of another folder -------------------------------------------------------------------------------------------


def relocate_patterns(patterns: Iterable[str], context: str, folder: str) -> list[str]:
    """Convert patterns that are relative to a build context to patterns that are relative to another folder."""
    context = context.rstrip("/")
    if folder == context:
        return [clean_pattern(pattern) for pattern in patterns]
    inner = path_below(context, folder)
    if inner:
        return [_prefixed(pattern, escape_pattern(inner)) for pattern in patterns]
    steps = path_below(folder, context).split("/")
    if steps == [""]:
        return []
    return [found for pattern in patterns for found in _descended(pattern, steps)]


def _prefixed(pattern: str, folder: str) -> str:
    negated = pattern.startswith("!")
    return ("!" if negated else "") + posixpath.join(folder, clean_pattern(pattern).removeprefix("!"))


def _descended(pattern: str, steps: Iterable[str]) -> list[str]:
    """Return what is left of a pattern in a folder, whose steps its first parts match; nothing if they don't."""
    sign = "!" if pattern.startswith("!") else ""
    rests = {tuple(clean_pattern(pattern).removeprefix("!").split("/"))}
    for step in steps:
        rests = {rest for found in rests for rest in _after(found, step)}
    return [f"{sign}{'/'.join(rest) or _EVERYTHING}" for rest in sorted(rests)]


def _after(parts: tuple[str, ...], step: str) -> list[tuple[str, ...]]:
    """Return what is left of a pattern after a folder; nothing is left of one that matches the folder itself."""
    if not parts:
        return [()]
    first, rest = parts[0], parts[1:]
    if first == _EVERYTHING:
        return [parts, *(_after(rest, step) if rest else [()])]
    return [rest] if fnmatch.fnmatchcase(step, first) else []
