"""The shape of a diagnostic code, its severity and its effect."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Severity(IntEnum):
    ERROR = 0
    WARNING = 1
    NOTE = 2

    def __str__(self) -> str:
        return self.name.lower()


class Effect(StrEnum):
    """What a diagnostic means for a service, compared with what Compose does; the least first."""

    NONE = "as-written"
    CHANGED = "changed"
    LOST = "lost"
    """A part of the definition has no effect, and nothing takes its place."""
    CANNOT_RUN = "cannot-run"

    @property
    def rank(self) -> int:
        return list(Effect).index(self)


@dataclass(frozen=True, slots=True)
class Code:
    severity: Severity
    meaning: str
    fix: str
    effect: Effect = Effect.NONE
    """Of a warning or a note; with an error, no service runs. The keys of Compose have effects of their own."""
    many: bool = False
    """Several messages of this code can have the same place; their text distinguishes them."""
    once: bool = False
    """A run reports a message of this code once, at the first of its places."""
    summary: tuple[str, str] | None = None
    """The summary of a note that is shown without ``-v``: for one message, and for several.

    ``{count}`` is the number of messages, ``{keys}`` the keys that they are about.
    """
