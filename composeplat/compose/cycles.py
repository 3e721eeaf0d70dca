"""Cycles among names that depend on each other.

Owns the search, which needs no recursion, so that thousands of names are no problem. Must not know what a name is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def find_cycles(needed: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Yield each cycle once, with the name that closes it at both ends; every name that is needed is a key too."""
    ended: set[str] = set()
    for start in needed:
        trail: list[str] = []
        known: set[str] = set()
        pending = [iter([start])]
        while pending:
            name = next(pending[-1], None)
            if name is None:
                pending.pop()
                ended.update(trail[-1:])
                known.difference_update(trail[-1:])
                del trail[-1:]
            elif name in known:
                yield [*trail[trail.index(name) :], name]
            elif name not in ended:
                trail.append(name)
                known.add(name)
                pending.append(iter(needed[name]))
