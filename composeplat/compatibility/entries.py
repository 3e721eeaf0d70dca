"""An entry of ``compose.platform.yaml``: a line below its keys, with the reason for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)*\Z", re.ASCII)
_NOT_TEXT = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a text that the definition has, and how an entry is made of the changed text."""

    before: str
    apply: Callable[[str], str]
    write: Callable[[str], str]
    is_last: bool = False
    """Made after the other changes of the same text, as it applies to what these leave."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of ``compose.platform.yaml``, below the keys of ``parent``; ``reason`` is its comment."""

    parent: tuple[str, ...]
    line: str
    reason: str
    change: Change | None = field(default=None, compare=False, repr=False)
    """If it has a text of the definition again, with a change."""

    @property
    def key(self) -> str:
        """The key that the line sets; empty for an item of a list."""
        if self.line.startswith('"'):
            return str(json.JSONDecoder().raw_decode(self.line)[0])
        return "" if self.line.startswith("- ") else re.split(r":(?= |\Z)", self.line, maxsplit=1)[0]


def changed_text(parent: tuple[str, ...], change: Change, reason: str) -> tuple[Entry, ...]:
    """Return the entry with a changed text; none if it stays the same."""
    after = change.apply(change.before)
    return (Entry(parent, change.write(after), reason, change),) if after != change.before else ()


def join_changes(entries: Iterable[Entry]) -> dict[Entry, Entry]:
    """Return for each entry with a changed text the one that has all changes of this text."""
    found: dict[tuple[tuple[str, ...], str, str], list[tuple[Entry, Change]]] = {}
    for entry in dict.fromkeys(entries):
        if entry.change is not None:
            found.setdefault((entry.parent, entry.key, entry.change.before), []).append((entry, entry.change))
    joined = {entries: _with_all_changes(entries) for entries in map(tuple, found.values())}
    return {entry: whole for entries, whole in joined.items() for entry, _ in entries}


def _with_all_changes(entries: tuple[tuple[Entry, Change], ...]) -> Entry:
    first, change = entries[0]
    text = change.before
    for _, other in sorted(entries, key=lambda found: found[1].is_last):
        text = other.apply(text)
    return Entry(first.parent, change.write(text), " ".join(dict.fromkeys(entry.reason for entry, _ in entries)))


def yaml_text(text: str) -> str:
    """Write a text as a YAML scalar, in quotes if need be."""
    is_plain = _PLAIN.match(text) is not None and text.lower() not in _NOT_TEXT
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def expose_entries(service: str, ports: Mapping[int, str]) -> tuple[Entry, ...]:
    """List ports of a service, each with its user."""
    return tuple(Entry(("services", service, "expose"), f'- "{port}"', f"For {user}.") for port, user in ports.items())


def mount_item(name: str, target: str, sub_path: str = "", *, read_only: bool = False) -> str:
    """Write the item of ``volumes`` that mounts a named volume, or a folder of it."""
    if not sub_path:
        mode = ":ro" if read_only else ""
        return yaml_text(f"{name}:{target}{mode}")
    mode = "read_only: true, " if read_only else ""
    folder = f"volume: {{subpath: {yaml_text(sub_path)}}}"
    return f"{{type: volume, source: {yaml_text(name)}, target: {yaml_text(target)}, {mode}{folder}}}"
