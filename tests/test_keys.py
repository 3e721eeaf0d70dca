"""The table of keys against ../shared/specification.md: the same keys, handled the same way.

What each key does is shown by the files of ``tests/keys``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from composeplat.keys import ROWS, SERVICE, Handling, Origin
from composeplat.plan.endpoints import NEVER_PUBLIC
from tests.keys.specification import code_words, listed, table, tables

Key = tuple[str, str]
"""A section of the table of keys, and a key of it."""

USED = "used"
"""What a table of fields says of its keys: they are supported, or an extension."""

WORDS = {
    Handling.SUPPORTED: {"supported", USED},
    Handling.EXTENSION: {"extension", USED},
    Handling.WARNED: {"warned"},
    Handling.DEEP: {"warned"},
    Handling.IGNORED: {"ignored"},
}

#: Where the specification contradicts itself, and who decides.
CONTRADICTIONS = {
    ("volumes.*", "driver_opts"): (
        {"warned", USED},
        "warned as a volume's key, but its size and class are fields: the rulings read these and warn of the others",
    ),
    (SERVICE, "scale"): (
        {"supported", "extension", USED},
        "Compose's own key, listed as an extension too, as the alias of deploy.replicas: both are used",
    ),
}

#: Sections of lists and free names, where the specification writes the key alone.
_WITH_ITEMS = {"services.*.volumes": "services.*.volumes.*"}


def key_of(section: str, dotted: str) -> Key:
    """Find a key of the specification, such as ``deploy.resources.limits``, in the table's terms."""
    *parents, key = dotted.removesuffix(".*").split(".")
    where = ".".join([section, *parents] if section else parents)
    return _WITH_ITEMS.get(where, where), key


def words_of_the_specification() -> dict[Key, set[str]]:
    """Every key of the specification's tables, with what they say of it."""
    found: dict[Key, set[str]] = {}
    for section, dotted, word in _statements():
        found.setdefault(key_of(section, dotted), set()).add(word)
        parents = dotted.split(".")[:-1]
        if word in ("supported", "extension", USED):
            for length in range(1, len(parents) + 1):
                found.setdefault(key_of(section, ".".join(parents[:length])), set()).add(USED)
    return found


def _statements() -> Iterator[tuple[str, str, str]]:
    """Section, key and word, row by row."""
    for cell, handling in table("Top-level keys"):
        yield from (("", key, _first_word(handling)) for key in code_words(cell) if key != "x-*")
    for handling, cell in table("Service keys"):
        named = re.sub(r"\([^)]*\)", "", cell)
        yield from ((SERVICE, key.removesuffix(": true"), handling) for key in code_words(named))
    for cell, handling in table("Volume section keys"):
        yield from (("volumes.*", key, _first_word(handling)) for key in code_words(cell))
    for row in table("Service fields"):
        yield SERVICE, code_words(row[0])[0], USED
    for row in table("Top-level volume fields"):
        yield "volumes.*", code_words(row[0])[0], USED
    for row in table("Healthcheck object"):
        yield "services.*.healthcheck", code_words(row[0])[0], USED
    for row in tables("Endpoints key")[1]:
        yield "endpoints.*", code_words(row[0])[0], USED
    yield from _fields_within_rows()


def _fields_within_rows() -> Iterator[tuple[str, str, str]]:
    """The keys that a row names in its words rather than by rows of their own."""
    fields = {code_words(row[0])[0]: row for row in table("Service fields")}
    for field in ("deploy.resources", "resources"):
        for name, inner in re.findall(r"`(\w+)` \{([^}]*)\}", fields[field][3]):
            yield from ((SERVICE, f"{field}.{name}.{key}", USED) for key in code_words(inner))
    for key in re.findall(r"`(\w+)` \(", fields["deploy.restart_policy"][3]):
        yield SERVICE, f"deploy.restart_policy.{key}", USED
    for key in re.findall(r"\{(\w+)\}", fields["depends_on"][1]):
        yield "services.*.depends_on.*", key, USED
    checks = {code_words(row[0])[0]: row for row in table("Healthcheck object")}
    yield from (("services.*.healthcheck.http", key, USED) for key in code_words(checks["http"][1]))
    shapes = {row[0]: row for row in table("Endpoints key")}
    yield from (("endpoints", key, USED) for key in code_words(shapes["Extended"][1]))


def _first_word(handling: str) -> str:
    return re.split(r"\W", handling, maxsplit=1)[0]


SPECIFIED = [row for row in ROWS if row.origin is Origin.SPECIFICATION]


def test_the_tables_are_read_whole() -> None:
    """The reader could lie: it finds as many keys as there are, by hand, in the longest rows."""
    words = words_of_the_specification()

    assert len(_said("warned")) == 56
    assert len(_said("ignored")) == 11
    assert {"warned"} == words["", "secrets"]
    assert {USED} == words["services.*.deploy.resources.limits", "memory"]


def _said(word: str) -> list[Key]:
    return [key for key, said in words_of_the_specification().items() if key[0] == SERVICE and word in said]


def test_every_key_of_the_specification_is_in_the_table_as_it_says() -> None:
    """Each key that the specification names has a row, with its handling and from there."""
    rows = {(row.section, row.key): WORDS[row.handling] for row in SPECIFIED}
    expected = {key: said for key, said in words_of_the_specification().items() if key not in CONTRADICTIONS}

    assert sorted(expected) == sorted(key for key in rows if key not in CONTRADICTIONS)
    assert not [(key, said, rows[key]) for key, said in expected.items() if not said <= rows[key]]


@pytest.mark.parametrize("key", CONTRADICTIONS, ids=".".join)
def test_a_contradiction_is_still_one(key: Key) -> None:
    """What is listed as a contradiction is one, and the key is used."""
    said, _ = CONTRADICTIONS[key]
    row = next(row for row in ROWS if (row.section, row.key) == key)

    assert said == words_of_the_specification()[key]
    assert row.handling.is_used


def test_blocks_that_are_warned_with_each_field() -> None:
    """The blocks of which the specification has every sub-field warned are the deep ones."""
    cells = [cell for cell, handling in table("Top-level keys") if "every sub-field is warned" in handling]

    assert sorted(("", key) for cell in cells for key in code_words(cell)) == sorted(
        (row.section, row.key) for row in ROWS if row.handling is Handling.DEEP
    )


def test_no_key_has_two_rows() -> None:
    """A key stands once in its section."""
    names = [(row.section, row.key) for row in ROWS]

    assert sorted(set(names)) == sorted(names)


def test_ports_that_are_never_public() -> None:
    """The list is the specification's, with the two ports that the rulings add."""
    numbers = {int(number) for number in re.findall(r"\d+", listed("Limits", 1).split(": ")[1].split(". ")[0])}

    assert len(numbers) == 34
    assert numbers | {7474, 8098} == NEVER_PUBLIC
