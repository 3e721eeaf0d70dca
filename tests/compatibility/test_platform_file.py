"""The text of ``compose.platform.yaml``: a new one, and entries added to what the user wrote."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from composeplat.compatibility.entries import Entry
from composeplat.compatibility.platform_file import HEADER, CannotMerge, add_entries, entry_lines

MOUNT = Entry(("services", "db", "volumes"), "- data:/d", "Why.")
VOLUME = Entry(("volumes",), "data:", "One gibibyte.")


def test_new_file() -> None:
    """Without a file, each entry is written below its keys, with its reason."""
    assert add_entries("", [VOLUME, MOUNT, MOUNT], "f") == HEADER + (
        "services:\n  db:\n    volumes:\n      # Why.\n      - data:/d\nvolumes:\n  # One gibibyte.\n  data:\n"
    )


def test_each_key_is_written_once() -> None:
    """Entries below one key are together, also where entries of other keys come between them."""
    route = Entry(("endpoints", "a"), "- {path: /}", "A.")
    other = Entry(("endpoints", "b"), "- {path: /}", "B.")
    image = Entry(("services", "db"), "image: x", "An image.")

    assert entry_lines([route, VOLUME, MOUNT, other, image]) == [
        "services:",
        "  db:",
        "    volumes:",
        "      - data:/d",
        "    image: x",
        "endpoints:",
        "  a:",
        "    - {path: /}",
        "  b:",
        "    - {path: /}",
        "volumes:",
        "  data:",
    ]


def test_nothing_to_add() -> None:
    """Without an entry the text stays, byte for byte."""
    assert add_entries("a:   1\n\n", [], "f") == "a:   1\n\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "services:\n  db:\n    volumes:\n      - x:/x  # mine\n\n# the end\n",
            "services:\n  db:\n    volumes:\n      - x:/x  # mine\n      # Why.\n      - data:/d\n\n# the end\n"
            "volumes:\n  # One gibibyte.\n  data:\n",
            id="a-list",
        ),
        pytest.param(
            "services:\n    db:\n        volumes:\n        - x:/x\n    web:\n        scale: 2\nvolumes:\n    other:\n",
            "services:\n    db:\n        volumes:\n        - x:/x\n        # Why.\n        - data:/d\n    web:\n"
            "        scale: 2\nvolumes:\n    other:\n    # One gibibyte.\n    data:\n",
            id="other-indents",
        ),
        pytest.param(
            "# mine\nvolumes:\n  data: {size: 5Gi}\nservices:\n  db:\n    scale: 1\n",
            "# mine\nvolumes:\n  data: {size: 5Gi}\nservices:\n  db:\n    scale: 1\n    volumes:\n      # Why.\n"
            "      - data:/d\n",
            id="an-entry-of-the-user-stays",
        ),
        pytest.param(
            "services:\n  db:\n    volumes: !override\n      - x:/x\nvolumes:\n",
            "services:\n  db:\n    volumes: !override\n      - x:/x\n      # Why.\n      - data:/d\nvolumes:\n"
            "  # One gibibyte.\n  data:\n",
            id="a-tag-and-an-empty-key",
        ),
        pytest.param(
            "services:\n  'db':  # the database\n    image: |\n      x\n",
            "services:\n  'db':  # the database\n    image: |\n      x\n    volumes:\n      # Why.\n      - data:/d\n"
            "volumes:\n  # One gibibyte.\n  data:\n",
            id="quotes-and-a-block-text",
        ),
    ],
)
def test_merge(before: str, after: str) -> None:
    """Entries go to the end of their block; lines, comments and entries of the user stay."""
    assert add_entries(before, [MOUNT, VOLUME], "f") == after


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("services: {db: {image: x}}\n", id="flow-style"),
        pytest.param("services:\n  db:\n    volumes: [x:/x]\n", id="a-flow-list"),
        pytest.param("x: &db {image: y}\nservices:\n  db: *db\n", id="an-alias"),
        pytest.param("services: [\n", id="no-yaml"),
        pytest.param("services:\n  db: {image: x}\n---\nvolumes:\n", id="two-documents"),
        pytest.param("{services: }\n", id="all-in-flow-style"),
        pytest.param("services:\n  db:\n    volumes:\n      a: b\n", id="no-list"),
    ],
)
def test_cannot_merge(text: str) -> None:
    """Where an entry has no place, the message has the line to add."""
    with pytest.raises(CannotMerge) as error:
        add_entries(text, [MOUNT], "compose.platform.yaml")

    assert "- data:/d" in error.value.hint


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "x-own: &own\n  volumes:\n    - x:/x\nservices:\n  db:\n    <<: *own\n    scale: 1\n", id="a-merged-block"
        ),
        pytest.param(
            "services:\n  web: &web\n    volumes:\n      - x:/x\n  db: *web\n", id="a-service-that-is-an-alias"
        ),
        pytest.param("services:\n  db: &db\n    scale: 1\n  web: *db\n", id="a-service-with-an-alias"),
    ],
)
def test_a_block_of_several_keys(text: str) -> None:
    """Nothing is added to a block that another key has too: that would get the entry as well."""
    with pytest.raises(CannotMerge, match=r"can't add to services\.db\.volumes in f: another key has the same block"):
        add_entries(text, [VOLUME, MOUNT], "f")


def test_a_block_with_an_anchor_that_another_key_replaces() -> None:
    """A block with an anchor gets an entry where no other key gets it too."""
    text = "services:\n  db: &db\n    volumes:\n      - x:/x\n  web:\n    <<: *db\n    volumes: []\n"
    added = "      # Why.\n      - data:/d\n"

    assert add_entries(text, [MOUNT], "f") == text.replace("x:/x\n", f"x:/x\n{added}")


def test_line_ends() -> None:
    """The line ends of the file stay."""
    assert add_entries("# mine\r\n", [VOLUME], "f") == "# mine\r\nvolumes:\r\n  # One gibibyte.\r\n  data:\r\n"


def test_comments_alone() -> None:
    """A file of comments is extended below them."""
    assert add_entries("# mine\n", [VOLUME], "f") == "# mine\nvolumes:\n  # One gibibyte.\n  data:\n"


_KEYS = st.sampled_from(["services", "volumes", "db", "web", "data", "image", "x-mine", "'quoted key'"])
_VALUES = st.sampled_from(["", " x", " 1", " [a, b]", " {a: b}", " # why", " !override", " &anchor", " |", " 'a: b'"])


@st.composite
def files(draw: st.DrawFn) -> str:
    """Lines as a user could write them, not all of them YAML."""
    lines: list[str] = []
    for _ in range(draw(st.integers(0, 12))):
        indent = " " * draw(st.sampled_from([0, 0, 2, 2, 4, 4, 6]))
        content = draw(st.sampled_from(["key", "item", "comment", "blank"]))
        key = f"{draw(_KEYS)}:{draw(_VALUES)}"
        lines.append(
            {"key": indent + key, "item": f"{indent}- {key}", "comment": f"{indent}# mine", "blank": ""}[content]
        )
    return "\n".join(lines) + "\n"


@given(files())
@settings(deadline=None, max_examples=300)
def test_any_file(text: str) -> None:
    """Whatever the user wrote, every line of it stays in its order, or nothing is written."""
    try:
        after = add_entries(text, [MOUNT, VOLUME], "f")
    except CannotMerge:
        return
    rest = iter(after.splitlines())

    assert all(line in rest for line in text.rstrip().splitlines())
    assert add_entries(after, [VOLUME], "f") == after
