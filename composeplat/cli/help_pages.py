"""The help of a command from ``help_pages.json``, which ``make docs`` writes from the commands themselves.

Owns which command lines ask for help alone, and how a page of help is written to fit the terminal.
Must not import the modules of commands: each imports what its command runs, and help runs nothing.
Every other line is read by the commands, which show the same text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Names of the option for help.
HELP_OPTIONS = ("-h", "--help")
#: Methods of click's formatter, each of which writes a part of a page.
_PARTS = ("write_usage", "write_heading", "write_paragraph", "write_text", "write_dl", "indent", "dedent")

#: Calls of the formatter: the method, and its arguments.
Page = list[list[Any]]


def page_for(args: Sequence[str]) -> Page | None:
    """Return the page that a command line asks for; None if it has anything besides a command and one such option."""
    if not args or args[-1] not in HELP_OPTIONS or any(" " in word for word in args):
        return None
    pages: dict[str, Page] = json.loads(Path(__file__).with_name("help_pages.json").read_text(encoding="utf-8"))
    return pages.get(" ".join(("platform", *args[:-1])))


def write_page(page: Page, formatter: Any) -> str:
    for part, *args in page:
        getattr(formatter, part)(*args)
    return str(formatter.getvalue()).rstrip("\n")


def record_page(command: Any, context: Any) -> Page:
    """Return the calls by which a command writes its help, whatever the width of the terminal."""
    page: Page = []
    formatter = context.make_formatter()
    for part in _PARTS:
        setattr(formatter, part, _recorder(page, part))
    command.format_help(context, formatter)
    return page


def _recorder(page: Page, part: str) -> Any:
    def record(*args: Any) -> None:
        page.append([part, *args])

    return record
