"""The facts of ``tests/law/tables.py`` against the text of ../shared/specification.md, where that is there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.law import tables
from tests.law.specification import code_names, listed, plain, table, tables as tables_of

pytestmark = pytest.mark.shared

#: Sections of lists and free names, where the specification writes the key alone.
_WITH_ITEMS = {"services.*.volumes": "services.*.volumes.*"}


def key_of(section: str, dotted: str) -> tables.Key:
    """Find a key of the specification, such as ``deploy.resources.limits``, in the table's terms."""
    *parents, key = dotted.removesuffix(".*").split(".")
    where = ".".join([section, *parents] if section else parents)
    return _WITH_ITEMS.get(where, where), key


def handling_in_the_specification() -> dict[tables.Key, set[str]]:
    """Every key of the specification's tables, with what they say of it."""
    found: dict[tables.Key, set[str]] = {}
    for section, dotted, word in _statements():
        found.setdefault(key_of(section, dotted), set()).add(word)
        parents = dotted.split(".")[:-1]
        if word in ("supported", "extension", tables.USED):
            for length in range(1, len(parents) + 1):
                found.setdefault(key_of(section, ".".join(parents[:length])), set()).add(tables.USED)
    return found


def _statements() -> Iterator[tuple[str, str, str]]:
    """Section, key and word, row by row."""
    for cell, handling in table("Top-level keys"):
        yield from (("", key, _first_word(handling)) for key in code_names(cell) if key != "x-*")
    for handling, cell in table("Service keys"):
        named = re.sub(r"\([^)]*\)", "", cell)
        yield from ((tables.SERVICE, key.removesuffix(": true"), handling) for key in code_names(named))
    for cell, handling in table("Volume section keys"):
        yield from (("volumes.*", key, _first_word(handling)) for key in code_names(cell))
    for row in table("Service fields"):
        yield tables.SERVICE, code_names(row[0])[0], tables.USED
    for row in table("Top-level volume fields"):
        yield "volumes.*", code_names(row[0])[0], tables.USED
    for row in table("Healthcheck object"):
        yield "services.*.healthcheck", code_names(row[0])[0], tables.USED
    for row in tables_of("Endpoints key")[1]:
        yield "endpoints.*", code_names(row[0])[0], tables.USED
    yield from _fields_within_rows()


def _fields_within_rows() -> Iterator[tuple[str, str, str]]:
    """The keys that a row names in its words rather than by rows of their own."""
    fields = {code_names(row[0])[0]: row for row in table("Service fields")}
    for field in ("deploy.resources", "resources"):
        for name, inner in re.findall(r"`(\w+)` \{([^}]*)\}", fields[field][3]):
            yield from ((tables.SERVICE, f"{field}.{name}.{key}", tables.USED) for key in code_names(inner))
    for key in re.findall(r"`(\w+)` \(", fields["deploy.restart_policy"][3]):
        yield tables.SERVICE, f"deploy.restart_policy.{key}", tables.USED
    for key in re.findall(r"\{(\w+)\}", fields["depends_on"][1]):
        yield "services.*.depends_on.*", key, tables.USED
    checks = {code_names(row[0])[0]: row for row in table("Healthcheck object")}
    yield from (("services.*.healthcheck.http", key, tables.USED) for key in code_names(checks["http"][1]))
    shapes = {row[0]: row for row in table("Endpoints key")}
    yield from (("endpoints", key, tables.USED) for key in code_names(shapes["Extended"][1]))


def _first_word(handling: str) -> str:
    return re.split(r"\W", handling, maxsplit=1)[0]


def test_the_tables_are_read_whole() -> None:
    """The reader could lie: it finds as many keys as there are, by hand, in the longest rows."""
    args = handling_in_the_specification()

    assert len(_keys_handled("warned")) == 56
    assert len(_keys_handled("ignored")) == 11
    assert {"warned"} == args["", "secrets"]
    assert {tables.USED} == args["services.*.deploy.resources.limits", "memory"]


def _keys_handled(word: str) -> list[tables.Key]:
    return [
        key for key, output in handling_in_the_specification().items() if key[0] == tables.SERVICE and word in output
    ]


def test_every_key_is_held_as_in_the_specification() -> None:
    """The keys of our tables are the specification's, with all that it says of each."""
    assert {key: set(output) for key, output in tables.KEYS.items()} == handling_in_the_specification()


def test_the_blocks_that_are_warned_with_each_field() -> None:
    """The deep blocks are those of which the specification has every sub-field warned."""
    cells = [cell for cell, handling in table("Top-level keys") if "every sub-field is warned" in handling]

    assert {("", key) for cell in cells for key in code_names(cell)} == tables.DEEP


def test_the_rows_of_the_other_tables() -> None:
    """The rows that are about no key are the specification's, table by table."""
    assert {name: sorted(rows) for name, rows in tables.OTHER_ROWS.items()} == {
        name: sorted(rows)
        for name, rows in {
            "Top-level keys": [plain(cell) for cell, _ in table("Top-level keys") if cell.startswith("`x-*`")],
            "What the service does": [plain(cell) for cell, _ in tables_of("What the service does")[1]],
            "Dependency conditions": _names("Dependency conditions"),
            "Update-policy label values": [plain(row[0]) for row in table("Update-policy label values")],
            "Restart policy values": _names("Restart policy values"),
            "Service volume forms": [plain(cell) for cell, _ in table("Service volume forms")],
            "Endpoints key": [plain(row[0]) for row in table("Endpoints key")],
            "Limits": _limits(),
        }.items()
    }


def _names(heading: str) -> list[str]:
    return [word for row in table(heading) for word in code_names(row[0])]


def _limits() -> list[str]:
    """What the list of limits says, apart from the limits that are not shown."""
    never_public = listed("Limits", 1).split(" (")[0]
    others = [plain(sentence) for number in (2, 3, 4) for sentence in listed("Limits", number).split(". ")]
    return [plain(never_public), *(_bare(sentence) for sentence in others)]


def _bare(sentence: str) -> str:
    """A sentence without its full stop; the path that is a full stop keeps it."""
    return sentence if sentence.endswith(" .") else sentence.removesuffix(".")


def test_the_ports_that_are_never_public() -> None:
    """The numbers are those of the list."""
    numbers = {int(number) for number in re.findall(r"\d+", listed("Limits", 1).split(": ")[1].split(". ")[0])}

    assert numbers == tables.NEVER_PUBLIC


def test_the_families_of_restart_policies() -> None:
    """Which policies restart for ever, never and on failure."""
    assert [set(code_names(cell)) for cell, _ in table("Restart policy values")] == [
        tables.ALWAYS,
        tables.NEVER,
        {tables.ON_FAILURE},
    ]


def test_the_kinds_that_take_an_update_policy() -> None:
    """Which workloads a policy is allowed on, and on which label."""
    kinds = {"deployments": "Deployment", "stateful sets": "StatefulSet"}
    rows = table("Update-policy label values")

    assert {plain(row[0]): {kinds[word] for word in kinds if word in row[2].lower()} for row in rows} == (
        tables.UPDATE_KINDS
    )
    assert tables.UPDATE_LABEL in "".join(row[3] for row in table("Service fields"))


def test_the_names_of_keys() -> None:
    """The conditions, the endpoint modes, what a test begins with, and the default size of a volume."""
    fields = {plain(row[0]): row for row in table("Service fields")}
    checks = {plain(row[0]): row for row in table("Healthcheck object")}
    volumes = {plain(row[0]): row for row in table("Top-level volume fields")}

    assert _names("Dependency conditions") == list(tables.CONDITIONS)
    assert code_names(fields["deploy.endpoint_mode"][3]) == list(tables.ENDPOINT_MODES)
    assert tuple(code_names(checks["test"][2])[:3]) == tables.TEST_FORMS
    assert tables.VOLUME_SIZE in code_names(volumes["driver_opts.size"][3])


def test_where_variables_are_taken_from() -> None:
    """The order of the sources of a variable."""
    output = listed("Environment variables and substitution", 4)

    assert [output.index(plain_or_code) for plain_or_code in map(_as_written, tables.PRECEDENCE)] == sorted(
        output.index(_as_written(source)) for source in tables.PRECEDENCE
    )


def _as_written(source: str) -> str:
    return f"`{source}`" if source.startswith(".") else source
