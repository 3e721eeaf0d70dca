"""Names that differ in the case of their letters only: on macOS and Windows they are usually the same file.

Owns the search for such a name in place of a missing one, and the fix that names it.
It is apart because every path of a definition can be written so: it works on one machine, and not on the next.
"""

from __future__ import annotations

import os
from pathlib import Path

from composeplat.diagnostics import quoted


def other_case(path: str | os.PathLike[str]) -> str:
    """Return the name that is there in place of a missing one, if it differs in case only; else nothing.

    On macOS and Windows both are usually the same file.
    """
    place = Path(path)
    while not os.path.isdir(place.parent) and place.parent != place:
        place = place.parent
    try:
        found = [name for name in os.listdir(place.parent) if name.casefold() == place.name.casefold()]
    except OSError:
        return ""
    return found[0] if len(found) == 1 and found[0] != place.name else ""


def case_hint(path: str | os.PathLike[str]) -> str:
    """Return the fix for a missing path that is there in another case; else nothing."""
    other = other_case(path)
    return f"write {quoted(other)}, which is there: case matters on Linux" if other else ""
