"""Examples of files that a project leaves to its users to make, such as ``.env.example`` and ``config.yml.dist``.

Owns the names of such files, and the fixes that name one in place of a missing file or an unset variable.
It is apart because a fresh clone lacks these files, while what to copy lies beside them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from composeplat.diagnostics import quoted

_MARKS = ("example", "sample", "template", "dist", "default")


def find_example(path: str | os.PathLike[str]) -> str:
    """Return the path of the example beside a missing file; else nothing."""
    place = Path(path)
    plain = place.name.lstrip(".")
    for mark in _MARKS:
        behind = (f"{place.name}.{mark}", f"{place.name}-{mark}", f"{place.stem}.{mark}{place.suffix}")
        for name in (*behind, f"{plain}.{mark}", f".{mark}.{plain}", f"{mark}.{plain}"):
            if os.path.isfile(place.parent / name):
                return str(place.parent / name)
    return ""


def example_hint(path: str | os.PathLike[str]) -> str:
    """Return the fix for a missing file that has an example beside it; else nothing."""
    found = find_example(path)
    names = quoted(os.path.basename(found)), quoted(os.path.basename(path))
    return f"copy {names[0]} to {names[1]}, and set its values" if found else ""


def hints_for_variables(
    env_files: Iterable[str], unread: str, shown: Callable[[str], str], read: Callable[[str], Mapping[str, str]]
) -> Callable[[str], str]:
    """Return a function that has the fix for an unset variable, if a file sets it that no option names.

    Such as the example of a missing env file, or the ``unread`` one of the current folder.
    The files are read at the first call: most definitions have no such variable.
    """

    @cache
    def hints() -> dict[str, str]:
        found: dict[str, str] = {}
        for path in env_files:
            if example := find_example(path):
                hint = f"copy {quoted(shown(example))} to {quoted(shown(path))}, and set it there"
                found.update(dict.fromkeys(read(example), hint))
        if unread:
            hint = f"give --env-file {shown(unread)}, which sets it: with -f, the one beside the Compose file is read"
            found.update(dict.fromkeys(read(unread), hint))
        return found

    return lambda name: hints().get(name, "")
