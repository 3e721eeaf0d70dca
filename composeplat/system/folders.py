"""The folders of this user: for data that stays, and for what can be made again.

Owns where they are, and the variables that name others. Must not know what is kept in them.
It is apart because all rooms that keep something must agree, on every system.

``XDG_DATA_HOME``, ``XDG_CACHE_HOME`` and ``HOME`` are those of the given environment: a program that embeds this one,
or a test, names them without changing its process. A relative path is one from the current folder: programs that get it
run in other folders.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from composeplat.diagnostics import MissingPiece

_NAME = "composeplat"


def data_folder(environment: Mapping[str, str]) -> Path:
    """``COMPOSEPLAT_DATA``, else a folder of ours in the user's data folder."""
    named = environment.get("COMPOSEPLAT_DATA")
    return Path(named).absolute() if named else user_data_folder(environment)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """``COMPOSEPLAT_CACHE``, else a folder of ours in the user's cache folder."""
    named, base = environment.get("COMPOSEPLAT_CACHE"), environment.get("XDG_CACHE_HOME")
    if named or base:
        return (Path(named) if named else Path(base or "", _NAME)).absolute()
    return _in_home(_default("user_cache_dir"), environment)


def user_data_folder(environment: Mapping[str, str]) -> Path:
    """Our folder in the user's data folder."""
    base = environment.get("XDG_DATA_HOME")
    if base:
        return Path(base, _NAME).absolute()
    return _in_home(_default("user_data_dir"), environment)


def home_folder(environment: Mapping[str, str]) -> Path:
    """``HOME``, else the home folder of the account."""
    return Path(environment.get("HOME") or os.path.expanduser("~"))


def _default(name: str) -> Path:
    """The system's folder; the library's own answer would have the variables of this process in it."""
    # Few commands come here, and importing it takes 3 ms.
    import platformdirs

    folders = platformdirs.PlatformDirs(_NAME)
    # The last base has the folders of the system, the first one reads the variables.
    read = getattr(vars(type(folders).__bases__[-1]).get(name), "fget", None)
    try:
        return Path((read(folders) if read else "") or getattr(folders, name))
    except RuntimeError as error:
        # As in a container whose user has no entry.
        raise MissingPiece("this user has no home folder", "set HOME to a folder that can be written") from error


def _in_home(folder: Path, environment: Mapping[str, str]) -> Path:
    """Put a folder of this process's home into that of the environment."""
    here = Path(os.path.expanduser("~"))
    return home_folder(environment) / folder.relative_to(here) if folder.is_relative_to(here) else folder
