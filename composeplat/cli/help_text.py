"""What help says beyond the options: commands in groups by what they are for, examples, and the page that tells more.

Owns these words, and where they stand in the help.
The reference in the documentation is made of them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Any

from typer.core import TyperGroup

#: In this order the commands are listed.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Deploy": ("deploy", "preview", "build", "render", "config", "refresh", "sleep", "wake", "destroy", "eject"),
    "Inspect": ("status", "logs", "events", "endpoints", "open"),
    "Develop in the cluster": ("up", "exec", "down"),
    "Set up": ("setup", "cluster", "variables", "completion", "bug-report"),
}


@dataclass(frozen=True, slots=True)
class Guide:
    """Command lines, each under what it does, and the page of the documentation."""

    examples: Mapping[str, str]
    page: str

    @property
    def epilog(self) -> str:
        lines = [line for what, command in self.examples.items() for line in (f"  # {what}", f"  {command}")]
        # The mark keeps the lines as they are.
        return "\n".join(("\b", "Examples:", *lines, "", f"See docs/{self.page}."))


#: The library's own, by no name that is private.
_LIBRARY: Any = TyperGroup.context_class
_WIDEST = 80
#: Narrower than this, a text stands under what it explains.
_NARROW = 60
_NARROWEST = 30


class _Fitting(_LIBRARY.formatter_class):  # type: ignore[misc]
    """Help in the width that the terminal has; the library's own is never narrower than 50 columns."""

    def __init__(self, width: int | None = None, max_width: int | None = None) -> None:
        columns = min(get_terminal_size().columns, max_width or _WIDEST)
        super().__init__(width=width or max(columns - 2, _NARROWEST))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        if self.width < _NARROW:
            rows, col_max = [(name.rstrip(), text) for name, text in rows], 0
        super().write_dl(list(rows), col_max, col_spacing)


class FittingContext(_LIBRARY):  # type: ignore[misc]
    formatter_class = _Fitting


class Guided(TyperGroup):
    """A group whose help fits the terminal, and lists its commands each with its whole first sentence."""

    context_class = FittingContext

    def format_commands(self, _: Any, formatter: Any) -> None:
        self.write_section(formatter, "Commands", {name: _summary(one) for name, one in self.commands.items()})

    def write_section(self, formatter: Any, title: str, summaries: Mapping[str, str]) -> None:
        width = max(map(len, self.commands))
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), summary) for name, summary in summaries.items()])


def _summary(command: Any) -> str:
    return str(command.get_short_help_str(_ANY_LENGTH))


_ANY_LENGTH = 500
