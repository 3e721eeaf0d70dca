"""The help of commands besides their options: sections of commands, examples, and the page of the documentation.

Owns these texts and their layout. ``docs/generate.py`` makes the reference from the same texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shutil import get_terminal_size
from typing import Any

from typer.core import TyperGroup

from composeplat.system.records import record

#: The sections of the list of commands, in order.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Deploy": (
        "check",
        "init",
        "deploy",
        "import",
        "preview",
        "build",
        "render",
        "config",
        "graph",
        "refresh",
        "rollback",
        "restart",
        "sleep",
        "wake",
        "destroy",
        "eject",
    ),
    "Inspect": ("status", "ui", "logs", "events", "history", "endpoints", "open", "port", "images", "top"),
    "Develop in the cluster": ("up", "watch", "exec", "run", "cp", "down"),
    "Set up": ("setup", "cluster", "variables", "state", "completion", "bug-report"),
}


@record
class Guide:
    """Examples of a command, by their purpose, and the page of the documentation."""

    examples: Mapping[str, str]
    page: str

    @property
    def epilog(self) -> str:
        lines = [line for purpose, command in self.examples.items() for line in (f"  # {purpose}", f"  {command}")]
        # The first line keeps click from wrapping the others.
        return "\n".join(("\b", "Examples:", *lines, "", f"See docs/{self.page}."))


#: The context of typer, without one of its private names.
_LIBRARY: Any = TyperGroup.context_class
_MAX_COLUMNS = 80
#: Below this width, the help of an option is on the next line.
_NARROW_COLUMNS = 60
_MIN_COLUMNS = 30


class _Fitting(_LIBRARY.formatter_class):  # type: ignore[misc]
    """Help that fits the terminal; click's own has at least 50 columns."""

    def __init__(self, width: int | None = None, max_width: int | None = None) -> None:
        columns = min(get_terminal_size().columns, max_width or _MAX_COLUMNS)
        super().__init__(width=width or max(columns - 2, _MIN_COLUMNS))

    def write_dl(self, rows: Iterable[Sequence[str]], col_max: int = 30, col_spacing: int = 2) -> None:
        narrow = self.width < _NARROW_COLUMNS
        pairs = [(name.rstrip() if narrow else name, text) for name, text in rows]
        super().write_dl(pairs, 0 if narrow else col_max, col_spacing)


class FittingContext(_LIBRARY):  # type: ignore[misc]
    formatter_class = _Fitting


class Guided(TyperGroup):
    """A group whose help fits the terminal, and has the whole first sentence of each command."""

    context_class = FittingContext

    def format_commands(self, _: Any, formatter: Any) -> None:
        self.write_section(formatter, "Commands", {name: _summary(command) for name, command in self.commands.items()})

    def write_section(self, formatter: Any, title: str, summaries: Mapping[str, str]) -> None:
        width = max(map(len, self.commands))
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), summary) for name, summary in summaries.items()])


def _summary(command: Any) -> str:
    return str(command.get_short_help_str(_MAX_SUMMARY_CHARS))


_MAX_SUMMARY_CHARS = 500
