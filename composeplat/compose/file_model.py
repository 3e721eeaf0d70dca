"""The configs and secrets of a definition, and the files that they are in containers: the part of full mode.

Owns their dataclasses, and the folders that Compose puts such files into.
Must not know YAML or Kubernetes, as :mod:`composeplat.compose.model`, which has them as fields.
A config and a secret differ in who may read them, so that each has a table of its own, with the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum, auto

from composeplat.system.records import record

DEFAULT_FILE_MODE = 0o444
#: The most that an object of Kubernetes holds, with room for its metadata.
MAX_FILE_BYTES = 1_000_000


class FileKind(StrEnum):
    CONFIG = auto()
    SECRET = auto()

    @property
    def section(self) -> str:
        """The key of the definition and of a service."""
        return f"{self}s"

    @property
    def folder(self) -> str:
        """The folder in a container for targets that are not absolute."""
        return "/" if self is FileKind.CONFIG else "/run/secrets/"


@record(kw_only=True)
class FileObject:
    """A config or secret of the definition, with its content."""

    kind: FileKind
    name: str
    object_name: str = ""
    """The name that the definition gives to the object; empty for that of the entry."""
    file: str = ""
    """Absolute."""
    variable: str = ""
    external: bool = False
    """The object is someone else's, and must exist."""
    key: str = ""
    """The key of an external object that has the file; empty for the name of the entry."""
    labels: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = field(default=None, repr=False)
    """None if the content is not known: of an external object, an unset variable, a file that is not read."""


@record(kw_only=True)
class FileMount:
    """The file of a config or secret in a service's container."""

    kind: FileKind
    source: str
    target: str
    uid: int = 0
    gid: int = 0
    mode: int = DEFAULT_FILE_MODE
