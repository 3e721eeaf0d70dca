"""Find the Compose files of a folder.

Owns the default file names, their order, and how large the files of a definition may be.
Must not read a file. It is apart from :mod:`composeplat.compose.load` so that shell completion can use it alone.
"""

from __future__ import annotations

from pathlib import Path

from composeplat.system.files import exists
from composeplat.system.records import record

DEFAULT_NAMES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
#: In Compose's order, which is not that of the others.
OVERRIDE_NAMES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)
#: Laid over the others: it has what only `platform` knows, and `docker compose` does not read it.
PLATFORM_NAMES = ("compose.platform.yaml", "compose.platform.yml")
MAX_DEFINITION_BYTES = 4 * 1024 * 1024
MAX_ENV_FILE_BYTES = 1024 * 1024


@record
class ComposeFiles:
    """The Compose file of a folder, with its override file and its platform file; other files of a default name."""

    files: tuple[Path, ...]
    ignored: tuple[Path, ...] = ()


def find_compose_files(start: Path) -> ComposeFiles | None:
    """Look for a Compose file in ``start``, then in its parents."""
    for folder in (start, *start.parents):
        present = [folder / name for name in DEFAULT_NAMES if exists(folder / name)]
        if present:
            overrides = [folder / name for name in OVERRIDE_NAMES if exists(folder / name)]
            platform = [folder / name for name in PLATFORM_NAMES if exists(folder / name)]
            files = (present[0], *overrides[:1], *platform[:1])
            return ComposeFiles(files=files, ignored=(*present[1:], *overrides[1:], *platform[1:]))
    return None
