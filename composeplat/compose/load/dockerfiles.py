"""The Dockerfile of a build for checks: its text, its logical lines, and its stages.

Owns how it is found and read. Must not report: a Dockerfile that is missing or can't be read is reported by
:mod:`composeplat.compose.load.build_inputs`, and has no text here.
"""

from __future__ import annotations

import re
from pathlib import Path

from composeplat.compose.model import Build
from composeplat.compose.parse.build import is_remote
from composeplat.system import files
from composeplat.system.project_root import ProjectRoot

MAX_BYTES = 1024 * 1024
FROM = re.compile(
    r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*(\S+)(?:[ \t]+AS[ \t]+(\S+))?[ \t\r]*$", re.IGNORECASE | re.MULTILINE
)
"""The image and the name of a stage, which may be empty."""


def read_dockerfile(build: Build, root: ProjectRoot) -> str:
    """Return the text of a Dockerfile in the definition or the project; empty if it is elsewhere."""
    if not build.context or is_remote(build.context):
        return ""
    text = build.dockerfile_inline or read_text(Path(build.context, build.dockerfile or "Dockerfile"), root)
    # BuildKit passes over a byte order mark, which editors of Windows write.
    return text.removeprefix("\ufeff")


def read_text(path: Path, root: ProjectRoot) -> str:
    """Read a file, if there is one in the project."""
    try:
        return files.read_bytes(path, limit=MAX_BYTES, root=root).decode(errors="replace")
    except files.Unreadable:
        return ""


def join_lines(dockerfile: str) -> str:
    """Join lines that are continued with a backslash."""
    return re.sub(r"\\[ \t]*\r?\n", " ", dockerfile)
