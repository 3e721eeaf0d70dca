"""The folders of this user: for data that stays, and for what can be made again.

Owns where they are, and the variables that name others. Must not know what is kept in them.
It is apart because all rooms that keep something must agree, on every system.

``XDG_DATA_HOME``, ``XDG_CACHE_HOME`` and ``HOME`` are those of the given environment: a program that embeds this one,
or a test, names them without changing its process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_NAME = "composeplat"


def data_folder(environment: Mapping[str, str]) -> Path:
    """``COMPOSEPLAT_DATA``, else a folder of ours in the user's data folder."""
    named = environment.get("COMPOSEPLAT_DATA")
    return Path(named) if named else user_data_folder(environment)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """``COMPOSEPLAT_CACHE``, else a folder of ours in the user's cache folder."""
    named, base = environment.get("COMPOSEPLAT_CACHE"), environment.get("XDG_CACHE_HOME")
    if named or base:
        return Path(named) if named else Path(base or "", _NAME)
    # Few commands come here, and importing it takes 3 ms.
    import platformdirs

    return _in_home(platformdirs.user_cache_path(_NAME), environment)


def user_data_folder(environment: Mapping[str, str]) -> Path:
    """Our folder in the user's data folder."""
    base = environment.get("XDG_DATA_HOME")
    if base:
        return Path(base, _NAME)
    import platformdirs

    return _in_home(platformdirs.user_data_path(_NAME), environment)


def home_folder(environment: Mapping[str, str]) -> Path:
    """``HOME``, else the home folder of the account."""
    return Path(environment.get("HOME") or os.path.expanduser("~"))


def _in_home(folder: Path, environment: Mapping[str, str]) -> Path:
    """Put a folder of this process's home into that of the environment."""
    here = Path(os.path.expanduser("~"))
    return home_folder(environment) / folder.relative_to(here) if folder.is_relative_to(here) else folder
