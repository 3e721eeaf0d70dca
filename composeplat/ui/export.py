"""The page as files that need no server: its markup with the data of an environment inside, its style and scripts.

Owns the files of an exported page, and which files in a folder are those of an earlier export.
Must not know where the data comes from; a page that only shows has no code to sign in with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from composeplat.diagnostics import ComposeplatError
from composeplat.system.atomic import write_files

_INDEX = "index.html"
_MARK = "<!-- export -->"
#: Pages that are opened as files have no origin: 'self' alone is then not enough for every browser.
_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; connect-src 'none'; "
    "form-action 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEAD = (
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n<meta name="generator" content="platform ui">'
)
_EXPORTED = '<meta name="generator" content="platform ui">'
#: Of the page's own files, from its markup.
_FILE = re.compile(r' (?:src|href)="((?:js/)?\w+\.(?:js|css|svg))"')


def read_page() -> dict[str, str]:
    """Read the files of the page: their texts by their paths below it."""
    page = files(__package__) / "page"
    index = (page / _INDEX).read_text(encoding="utf-8")
    return {path: (page / path).read_text(encoding="utf-8") for path in (*_FILE.findall(index), _INDEX)}


def render_index(index: str, data: Mapping[str, object]) -> str:
    """Put the data into the page, as text that ends no script and has no character that a browser would change."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return index.replace(_MARK, f'{_HEAD}\n<script type="application/json" id="data">{text}</script>')


def write_page(folder: Path, data: Mapping[str, object]) -> None:
    """Write the page into a folder that is new, empty, or has an earlier export, whose files it replaces."""
    page = read_page()
    page[_INDEX] = render_index(page[_INDEX], data)
    try:
        earlier = _earlier_files(folder)
        # The markup comes last: it names the others.
        write_files({folder / path: text for path, text in page.items()})
        for path in earlier - set(page):
            (folder / path).unlink(missing_ok=True)
    except OSError as error:
        raise ComposeplatError(
            f"can't write the page to '{folder}': {error.strerror or error}", "name another folder with --export"
        ) from error


def _earlier_files(folder: Path) -> set[str]:
    """List the files of an earlier export; refuse a folder that has others."""
    if not folder.is_dir():
        return set()
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    index = folder / _INDEX
    text = index.read_text(encoding="utf-8", errors="replace") if index.is_file() and not index.is_symlink() else ""
    known = {_INDEX, *_FILE.findall(text)} if _EXPORTED in text else set()
    others = [name for name, path in found.items() if name not in known and (path.is_symlink() or not path.is_dir())]
    if others:
        raise ComposeplatError(
            f"'{folder}' has files that are no earlier export: '{min(others)}'",
            "name a folder that is empty or not there yet, or that of an earlier export",
        )
    return set(found) & known
