"""Which files belong to a project: those in its root folder, links resolved.

Owns the project root, and the one rule whether a path lies in it.
Must not open a file, nor know which key names a path: every reader of paths asks here first.
It is apart, so that each place that takes a path of the definition applies the same rule: a file of a stranger must not
publish what else is on this machine.
"""

from __future__ import annotations

import os
from pathlib import Path

from composeplat.system.records import record


@record
class ProjectRoot:
    """The folder that holds every file a definition may name."""

    path: str
    """Without links."""
    allow_outside: bool = False
    """Whether files anywhere may be named: the user has said so."""
    option: str = ""
    """The option that allows them; messages name it."""

    def allows(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a path may be opened; it need not exist, and is not opened for this."""
        return self.allow_outside or is_inside(self.path, resolve(path))

    @property
    def fix(self) -> str:
        allow = f", or allow it with {self.option}" if self.option else ""
        return f"the project is '{self.path}': move the file there{allow}"


def is_inside(root: str, path: str) -> bool:
    """Return whether a path is a folder or lies below it; both absolute and without links."""
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")


def resolve(path: str | os.PathLike[str]) -> str:
    """Follow every link; what is no possible path stays as it is, and is refused when it is opened."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return os.fspath(path).replace("\0", "")


def find_project_root(folder: Path, home: str) -> str:
    """The enclosing git work tree, else the folder itself.

    A work tree that is the home folder or the whole machine is one of settings, not of this project; one of another
    user, as in a folder that all may write to, is not this project's either.
    """
    start = resolve(folder)
    for path in (start, *map(str, Path(start).parents)):
        if os.path.lexists(os.path.join(path, ".git")):
            is_too_wide = path in ("/", resolve(home) if home else "/")
            return path if not is_too_wide and _is_trusted(os.path.join(path, ".git"), start) else start
    return start


def _is_trusted(git: str, start: str) -> bool:
    try:
        return os.lstat(git).st_uid in (0, os.geteuid(), os.stat(start).st_uid)
    except OSError:
        return False
