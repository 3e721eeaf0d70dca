"""Paths of Windows: recognised, and refused with the path to write instead.

Owns their grammar.
Must not read files: a path with a backslash is one of Windows, whatever lies there. It is apart because Compose reads
such a path as a volume's name, or as a file of that very name, and both are wrong on any other system.
"""

from __future__ import annotations

import re

from composeplat.compose.nodes import Scalar
from composeplat.compose.parse.fields import Field
from composeplat.diagnostics import quoted
from composeplat.names import suggest_volume

_ABSOLUTE = r"[a-zA-Z]:[\\/]|//[a-zA-Z]/|\\\\"
# Without a path after it, a single letter is the name of a volume: a:/data:ro.
_VOLUME = r"((?:[a-zA-Z]:(?=\\|/.*:[/\\]))?[^:]*)(?::((?:[a-zA-Z]:(?=[\\/]))?[^:]*))?"
_PIPE = "\\\\.\\pipe\\"


def is_windows_path(text: str) -> bool:
    return "\\" in text or re.match(_ABSOLUTE, text) is not None


def refuse_windows_path(place: Field, text: str) -> bool:
    """Report a path of Windows that names a file or folder; return whether it is one."""
    if not is_windows_path(text):
        return False
    meant = meant_path(text)
    fix = f"write {quoted(meant)}" if meant else "move it into the project"
    _report(place, fix if not _is_substituted(place) else "write '/' between folders, and a path in the project")
    return True


def meant_path(text: str) -> str:
    """Return the path that a relative one of Windows stands for; empty for one of a drive or a server."""
    return "" if re.match(_ABSOLUTE, text) else _slashed(text)


def refuse_windows_volume(place: Field, text: str) -> bool:
    """Report a volume in its short form with a path of Windows; return whether it has one."""
    found = re.match(_VOLUME, text)
    source, target = (found[1], found[2] or "") if found else ("", "")
    if not is_windows_path(source) and not _is_windows_target(target):
        return False
    _report(place, _volume_fix(source, target, hidden=_is_substituted(place)))
    return True


def _is_windows_target(path: str) -> bool:
    return "\\" in path or re.match("[a-zA-Z]:/", path) is not None


def _volume_fix(source: str, target: str, *, hidden: bool) -> str:
    if source.startswith(_PIPE):
        return "there is no Docker engine in a cluster"
    if _is_windows_target(target) or not target:
        return "pods run Linux containers: mount it at a path such as /data"
    if hidden:
        return "write '/' between folders, and a path in the project"
    if re.match(_ABSOLUTE, source):
        name = re.split(r"[\\/]", source.rstrip("\\/"))[-1] or "data"
        keep = suggest_volume(name, target)
        return f"to keep data: {keep}; to ship files: move them into the project, './{name}:{target}'"
    return f"write {quoted(f'{_slashed(source)}:{target}')}"


def _slashed(text: str) -> str:
    path = text.replace("\\", "/")
    return path if path.startswith((".", "/", "~")) else f"./{path}"


def _is_substituted(place: Field) -> bool:
    return isinstance(place.node, Scalar) and place.node.is_substituted


def _report(place: Field, fix: str) -> None:
    shown = place.node.shown if isinstance(place.node, Scalar) else ""
    place.report("windows-path", f"has a path of Windows: {shown}", fix)
