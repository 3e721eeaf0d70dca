"""The text of ``compose.platform.yaml``: a new one, or entries added to the user's.

Owns where a line goes, and the check that nothing of the user's is lost.
Must not read or write the file. It works on the text, so that comments and the order of lines stay; an entry that the
file already has stays as the user wrote it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from composeplat.compatibility.entries import Entry, yaml_text
from composeplat.compose.nodes import Mapping, Node, Sequence, to_plain
from composeplat.compose.yaml_reader import StopReading, read_nodes
from composeplat.diagnostics import ComposeplatError, Report, Source

HEADER = """\
# Laid over the Compose file by `platform`; `docker compose` does not read it.
# `platform init` wrote it. Edit it: another run adds what is missing, and keeps the rest.
"""
_INDENT = 2
_ORDER: dict[tuple[str, ...], int] = {("x-platform",): 0, ("services",): 1}
#: A key with its block on the following lines: nothing after the colon but a tag, an anchor or a comment.
_OPENS_BLOCK = re.compile(r"\s*(?:- )?[^#]*?:\s*(?:!override\s*)?(?:&\S+\s*)?(?:#.*)?\Z")


class CannotMerge(ComposeplatError):
    """An entry can't be added to the file as it is written."""

    def __init__(self, name: str, entry: Entry, *, is_shared: bool = False) -> None:
        reason = "another key has the same block" if is_shared else "the line before is not the start of a block"
        fix = "write it without an anchor" if is_shared else "write it in block style"
        super().__init__(
            f"can't add to {'.'.join(entry.parent)} in {name}: {reason}", f"{fix}, or add it yourself: {entry.line}"
        )


def entry_lines(entries: Iterable[Entry], *, comments: bool = False) -> list[str]:
    """Write entries as lines of YAML, each below its keys."""
    lines: list[str] = []
    before: tuple[str, ...] = ()
    for entry in _grouped(list(entries)):
        shared = next((i for i, (a, b) in enumerate(zip(before, entry.parent, strict=False)) if a != b), None)
        shared = min(len(before), len(entry.parent)) if shared is None else shared
        lines += [
            f"{' ' * _INDENT * depth}{yaml_text(entry.parent[depth])}:" for depth in range(shared, len(entry.parent))
        ]
        indent = " " * _INDENT * len(entry.parent)
        lines += [f"{indent}# {entry.reason}"] * comments
        lines.append(indent + entry.line)
        before = entry.parent
    return lines


def _grouped(entries: list[Entry]) -> list[Entry]:
    """Put the entries below each key together, in the order of the file, and of the first entry of each key."""
    first: dict[tuple[str, ...], int] = {}
    first_own: dict[tuple[str, ...], int] = {}
    for number, entry in enumerate(entries):
        first_own.setdefault(entry.parent, number)
        for depth in range(len(entry.parent)):
            first.setdefault(entry.parent[: depth + 1], number)

    def place(entry: Entry) -> tuple[int, ...]:
        keys = (first[entry.parent[: depth + 1]] for depth in range(len(entry.parent)))
        return (_ORDER.get(entry.parent[:1], len(_ORDER)), *keys, first_own[entry.parent])

    return sorted(entries, key=place)


def add_entries(text: str, entries: Iterable[Entry], name: str) -> str:
    """Add entries to the text of the file; without a text, write a new one.

    Of entries with the same key, the first counts.
    """
    by_key: dict[object, Entry] = {}
    for entry in entries:
        by_key.setdefault((entry.parent, entry.key) if entry.key else entry, entry)
    wanted = list(by_key.values())
    if not wanted:
        return text
    if not text.strip():
        return HEADER + "\n".join(entry_lines(wanted, comments=True)) + "\n"
    lines = text.rstrip().splitlines()
    if not _is_readable(text):
        raise CannotMerge(name, wanted[0])
    root = _read(text)
    expected = _plain(root)
    for entry in wanted:
        _add(lines, root, entry, name)
        root = _read("\n".join(lines) + "\n")
        expected = _with_entry(expected, entry)
        if (found := _plain(root)) != expected:
            raise CannotMerge(name, entry, is_shared=_contains(found, expected))
    added = "\n".join(lines) + "\n"
    return added.replace("\n", "\r\n") if "\r\n" in text else added


def _add(lines: list[str], root: Node | None, entry: Entry, name: str) -> None:
    node = root
    depth = 0
    while depth < len(entry.parent) and isinstance(node, Mapping) and entry.parent[depth] in node:
        node = node.get(entry.parent[depth])
        depth += 1
    if isinstance(node, Mapping) and entry.key and depth == len(entry.parent) and entry.key in node:
        return
    place = _end_of(lines, root, entry.parent[:depth], node)
    if place is None:
        raise CannotMerge(name, entry)
    at, indent = place
    inner = Entry(entry.parent[depth:], entry.line, entry.reason)
    lines[at:at] = [" " * indent + line for line in entry_lines([inner], comments=True)]


def _end_of(lines: list[str], root: Node | None, path: tuple[str, ...], node: Node | None) -> tuple[int, int] | None:
    """Return the line after the block of a key, and the indent of its entries; None if it is not a block."""
    if not path:
        return len(lines), 0
    key = _key_line(root, path)
    if key is None or not _OPENS_BLOCK.match(lines[key]):
        return None
    indent = len(lines[key]) - len(lines[key].lstrip(" "))
    block = _block(lines, key, indent, items=isinstance(node, Sequence))
    if not block:
        return key + 1, indent + _INDENT
    first = lines[block[0]]
    return block[-1] + 1, len(first) - len(first.lstrip(" "))


def _key_line(root: Node | None, path: tuple[str, ...]) -> int | None:
    node = root
    for step in path[:-1]:
        node = node.get(step) if isinstance(node, Mapping) else None
    return node.key(path[-1]).span.line - 1 if isinstance(node, Mapping) and path[-1] in node else None


def _block(lines: list[str], key: int, indent: int, *, items: bool) -> list[int]:
    """Return the lines of the block below a key, without blank lines and comments."""
    found: list[int] = []
    for number in range(key + 1, len(lines)):
        content = lines[number].lstrip(" ")
        if not content or content.startswith("#"):
            continue
        column = len(lines[number]) - len(content)
        if column <= indent and not (items and column == indent and content.startswith("- ")):
            break
        found.append(number)
    return found


def _is_readable(text: str) -> bool:
    report = Report()
    with contextlib.suppress(StopReading):
        read_nodes(Source(name="", base=Path(), text=text), report)
    return report.errors == 0


def _read(text: str) -> Node | None:
    try:
        nodes = read_nodes(Source(name="", base=Path(), text=text), Report())
    except StopReading:
        return None
    return nodes[0] if nodes else None


def _plain(node: Node | None) -> Any:
    return None if node is None else to_plain(node)


def _with_entry(tree: Any, entry: Entry, depth: int = 0) -> Any:
    """Return a tree with an entry, and nothing else, added to it."""
    if depth < len(entry.parent):
        key, inner = entry.parent[depth], tree if isinstance(tree, dict) else {}
        return {**inner, key: _with_entry(inner.get(key), entry, depth + 1)}
    added = _plain(_read(entry.line + "\n"))
    if entry.key:
        return {**added, **(tree if isinstance(tree, dict) else {})}
    return [*(tree if isinstance(tree, list) else []), *added]


def _contains(new: Any, old: Any) -> bool:
    """Whether a tree has everything of another one."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and _contains(new[key], value) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return new[: len(old)] == old
    return bool(new == old)
