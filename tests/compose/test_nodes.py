"""Nodes: YAML 1.2 scalars, places, anchors and merge keys, duplicates and tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence, kind_of, rewrite, to_plain
from composeplat.compose.yaml_reader import (
    ALIASED_PER_NODE,
    MAX_ALIASED,
    MAX_DEPTH,
    MAX_NODES,
    StopReading,
    decode,
    read_nodes,
)
from composeplat.diagnostics import Report, Source
from tests.conftest import lines


def read(text: str) -> tuple[list[Node], list[str]]:
    """Give the documents of a file, and the messages."""
    report = Report()
    nodes = read_nodes(Source("compose.yaml", Path(), text), report)
    return nodes, lines(report.sorted())


def only(text: str) -> Node:
    """The one document of a text without mistakes."""
    nodes, messages = read(text)
    assert messages == []
    assert len(nodes) == 1
    return nodes[0]


def plain(text: str) -> Any:
    return to_plain(only(text))


def stopped(text: str) -> list[str]:
    """The messages of a text that can't be read."""
    report = Report()
    with pytest.raises(StopReading):
        read_nodes(Source("compose.yaml", Path(), text), report)
    return lines(report.sorted())


def value(text: str, *steps: str) -> Node:
    node = only(text)
    for step in steps:
        assert isinstance(node, Mapping)
        found = node.get(step)
        assert found is not None
        node = found
    return node


# scalars --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("no", "no", id="no-is-text"),
        pytest.param("yes", "yes", id="yes-is-text"),
        pytest.param("on", "on", id="on-is-text"),
        pytest.param("off", "off", id="off-is-text"),
        pytest.param("22:22", "22:22", id="no-sexagesimal"),
        pytest.param("1_000", "1_000", id="no-underscores"),
        pytest.param("0123", "0123", id="leading-zero-stays"),
        pytest.param("2024-01-02", "2024-01-02", id="no-dates"),
        pytest.param("3.10", "3.10", id="trailing-zero-stays"),
        pytest.param("1e3", "1e3", id="exponent-stays"),
        pytest.param("0x1F", "0x1F", id="hexadecimal-stays"),
        pytest.param("0o17", "0o17", id="octal-stays"),
        pytest.param(".inf", ".inf", id="infinity-stays"),
        pytest.param("true", True, id="true"),
        pytest.param("false", False, id="false"),
        pytest.param("False", False, id="capitalized"),
        pytest.param("tRue", "tRue", id="odd-case"),
        pytest.param("null", None, id="null"),
        pytest.param("~", None, id="tilde"),
        pytest.param("'~'", "~", id="quoted-tilde"),
        pytest.param('"null"', "null", id="quoted-null"),
        pytest.param("12", 12, id="number"),
        pytest.param("'12'", "12", id="quoted-number"),
        pytest.param("!!str 12", "12", id="number-tagged-as-text"),
        pytest.param("-1", -1, id="negative"),
        pytest.param("0.5", 0.5, id="fraction"),
        pytest.param("12345678901234567890", "12345678901234567890", id="beyond-64-bits"),
        pytest.param("|\n  a\n  b\n", "a\nb\n", id="literal-block"),
        pytest.param(">\n  a\n  b\n", "a b\n", id="folded-block"),
    ],
)
def test_scalar(text: str, expected: object) -> None:
    """A scalar is what YAML 1.2 says, and is written back as it stands where a number would lose something."""
    seen = plain(f"a: {text}")["a"]

    assert (type(expected), expected) == (type(seen), seen)


def test_keys_that_yaml_1_1_would_change() -> None:
    """A key ``on`` or ``no`` is text."""
    assert plain("on: 1\nno: 2\ny: 3") == {"on": 1, "no": 2, "y": 3}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("1", "compose.yaml:2:1: error: a key must be text, not '1' [non-string-key]"),
        ("true", "compose.yaml:2:1: error: a key must be text, not 'true' [non-string-key]"),
        ("~", "compose.yaml:2:1: error: a key must be text, not '~' [non-string-key]"),
        ("[x]", "compose.yaml:2:1: error: a key must be text, not a list [non-string-key]"),
        ("{x: y}", "compose.yaml:2:1: error: a key must be text, not a mapping [non-string-key]"),
    ],
)
def test_keys_that_are_no_text(key: str, expected: str) -> None:
    """A key that is no text is reported, left out with its value, and reading continues."""
    nodes, messages = read(f"a: 1\n{key}: {{b: c}}\nd: 2")

    assert [expected] == messages
    assert [to_plain(node) for node in nodes] == [{"a": 1, "d": 2}]


def test_quoted_key() -> None:
    """Quoted, a number may be a key."""
    assert plain('"1": a') == {"1": "a"}


def test_documents() -> None:
    """A file may hold several documents."""
    nodes, _ = read("a: 1\n---\nb: 2\n")

    assert [to_plain(node) for node in nodes] == [{"a": 1}, {"b": 2}]


# places ---------------------------------------------------------------------------------------------------------------


TEXT = """\
services:
  web:
    image: nginx:1.27
    command: ["a", 'b c']
    environment:
      A: |
        text
"""


@pytest.mark.parametrize(
    ("steps", "place"),
    [
        pytest.param(("services",), (2, 3, 1), id="mapping"),
        pytest.param(("services", "web", "image"), (3, 12, 10), id="plain"),
        pytest.param(("services", "web", "command"), (4, 14, 1), id="list"),
        pytest.param(("services", "web", "environment", "A"), (6, 10, 1), id="block"),
    ],
)
def test_place_of_a_value(steps: tuple[str, ...], place: tuple[int, int, int]) -> None:
    """A value's span is its line, column and length; what spans lines is marked at its beginning."""
    span = value(TEXT, *steps).span

    assert place == (span.line, span.column, span.length)


def test_place_of_a_key() -> None:
    """A key has a place of its own."""
    web = value(TEXT, "services", "web")
    assert isinstance(web, Mapping)

    span = web.key("image").span

    assert (span.line, span.column, span.length) == (3, 5, 5)


def test_place_of_an_item() -> None:
    """A quoted item is marked with its quotes."""
    command = value(TEXT, "services", "web", "command")
    assert isinstance(command, Sequence)

    assert [(i.span.line, i.span.column, i.span.length) for i in command] == [(4, 15, 3), (4, 20, 5)]


# anchors and merge keys -----------------------------------------------------------------------------------------------


def test_an_alias_is_the_node_itself() -> None:
    """An aliased value is one node, and so one place to blame."""
    node = only("a: &x {b: c}\nd: *x")
    assert isinstance(node, Mapping)

    assert node.get("a") is node.get("d")


def test_anchors_end_with_their_document() -> None:
    """An alias names an anchor of its own document."""
    assert stopped("a: &x 1\n---\nb: *x") == [
        "compose.yaml:3:4: error: not YAML: the alias '*x' refers to no anchor above it [invalid-yaml]"
    ]


def test_an_anchor_may_be_set_again() -> None:
    """The latest anchor of a name is meant."""
    assert plain("a: &x 1\nb: &x 2\nc: *x") == {"a": 1, "b": 2, "c": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("<<: *x\n  c: 3", {"a": 1, "b": 2, "c": 3}, id="one"),
        pytest.param("<<: [*x, *y]", {"a": 1, "b": 2, "z": 9}, id="list"),
        pytest.param("<<: [*y, *x]", {"a": 8, "z": 9, "b": 2}, id="earlier-in-the-list-wins"),
        pytest.param("a: 5\n  <<: *x", {"a": 5, "b": 2}, id="own-key-above"),
        pytest.param("<<: *x\n  a: 5", {"a": 5, "b": 2}, id="own-key-below"),
        pytest.param("<<: {a: 7}", {"a": 7}, id="written-out"),
        pytest.param("<<: *x\n  <<: *y", {"a": 1, "b": 2, "z": 9}, id="two-merge-keys"),
        pytest.param("'<<': 1", {"<<": 1}, id="quoted-is-a-key"),
    ],
)
def test_merge_key(text: str, expected: dict[str, int]) -> None:
    """A merge key puts a mapping under this one; what is written here wins, wherever it stands."""
    assert expected == plain(f"x: &x {{a: 1, b: 2}}\ny: &y {{a: 8, z: 9}}\nm:\n  {text}\n")["m"]


def test_merge_keys_nest() -> None:
    """What a merged mapping has merged comes along."""
    assert plain("x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nm: {<<: *y}")["m"] == {"b": 2, "a": 1}


def test_place_of_a_merged_value() -> None:
    """A merged key is blamed where it is written."""
    assert value("x: &x\n  a: 1\nm:\n  <<: *x", "m", "a").span.line == 2


def test_merge_of_no_mapping() -> None:
    """A merge key takes mappings; anything else is reported, and the rest is read."""
    nodes, messages = read("x: &x [1]\nm:\n  <<: [*x, text]\n  <<: {a: 1}\n  b: 2")

    assert messages == [
        (
            "compose.yaml:3:3: error: the merge key '<<' needs a mapping or a list of mappings, not a list"
            " [invalid-merge-key]"
        )
    ]
    assert to_plain(nodes[0])["m"] == {"b": 2, "a": 1}


def test_alias_of_itself() -> None:
    """A cycle of aliases ends the reading."""
    assert stopped("a: &x\n  b: *x") == [
        "compose.yaml:2:6: error: the anchor 'x' contains an alias to itself [recursive-alias]"
    ]


def test_alias_bomb() -> None:
    """Aliases that unfold to far more than is written end the reading before they are unfolded."""
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    (message,) = stopped("\n".join(rows))

    assert message.endswith("error: aliases unfold to far more than the file has (an alias bomb) [too-many-aliases]")


def test_many_uses_of_one_anchor() -> None:
    """A template for very many services is no bomb."""
    template = "x: &x {a: 1, b: 2, c: 3, d: 4, e: 5}\n"

    assert len(plain(template + "".join(f"s{n}: *x\n" for n in range(5000)))) == 5001


# mistakes -------------------------------------------------------------------------------------------------------------


def test_duplicate_key() -> None:
    """A key set twice is reported with the line of the first, which holds."""
    nodes, messages = read("a: 1\nb: 2\na: 3")

    assert messages == ["compose.yaml:3:1: error: key 'a' is already set on line 1 [duplicate-key]"]
    assert [to_plain(node) for node in nodes] == [{"a": 1, "b": 2}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: !reset null", [], id="reset"),
        pytest.param("a: !override [1]", [], id="override"),
        pytest.param("a: !!str 1", [], id="core"),
        pytest.param("a: ! x", [], id="non-specific"),
        pytest.param(
            "a: !secret x",
            ["compose.yaml:1:4: warning: the tag '!secret' has no meaning here [unknown-tag]"],
            id="unknown",
        ),
        pytest.param(
            "a: !!python/x y",
            ["compose.yaml:1:4: warning: the tag 'tag:yaml.org,2002:python/x' has no meaning here [unknown-tag]"],
            id="python",
        ),
    ],
)
def test_tags(text: str, expected: list[str]) -> None:
    """Compose's two tags and YAML's own are known; another one means nothing, and that is reported."""
    assert expected == read(text)[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a: b: c",
            "compose.yaml:1:5: error: not YAML: mapping values are not allowed in this context [invalid-yaml]",
            id="colon",
        ),
        pytest.param(
            "a:\n\tb: c",
            "compose.yaml:2:1: error: not YAML: the line is indented with a tab [invalid-yaml]",
            id="tab",
        ),
    ],
)
def test_no_yaml(text: str, expected: str) -> None:
    """What is no YAML ends the reading at its place."""
    assert [expected] == stopped(text)


def test_depth() -> None:
    """Collections nested deeper than any definition end the reading, however deep they are."""
    assert stopped("[" * 20_000) == [
        f"compose.yaml:1:{MAX_DEPTH + 1}: error: collections are nested deeper than 100 levels [too-deep]"
    ]


def test_size() -> None:
    """More nodes than is allowed end the reading."""
    (message,) = stopped("[" + "a," * MAX_NODES + "]")

    assert message.endswith(f"error: the definition has more than {MAX_NODES} nodes [too-large]")


def test_an_alias_is_a_node() -> None:
    """However short what it is for, an alias counts as a node that is written."""
    (message,) = stopped("[&a x," + "*a ," * MAX_NODES + "]")

    assert message.endswith(f"error: the definition has more than {MAX_NODES} nodes [too-large]")


@pytest.mark.parametrize(
    "anchored",
    [
        pytest.param("{" + ", ".join(f"k{n}: v" for n in range(100)) + "}", id="a mapping"),
        pytest.param("[" + ", ".join("v" for _ in range(200)) + "]", id="a list"),
    ],
)
def test_how_much_aliases_may_unfold_to(anchored: str) -> None:
    """An alias counts as all that it is for: of 201 nodes so many, and not one more."""
    most = (MAX_ALIASED + ALIASED_PER_NODE * 201) // (201 - ALIASED_PER_NODE)

    read(f"[&a {anchored}, " + "*a, " * most + "]")
    (message,) = stopped(f"[&a {anchored}, " + "*a, " * (most + 1) + "]")

    assert message.endswith("[too-many-aliases]")


# bytes ----------------------------------------------------------------------------------------------------------------


def decoded(content: bytes) -> tuple[str | None, list[str]]:
    report = Report()
    try:
        source = decode(content, lambda text: Source("compose.yaml", Path(), text), report)
    except StopReading:
        return None, lines(report.sorted())
    return source.text, lines(report.sorted())


@pytest.mark.parametrize(
    ("content", "text", "messages"),
    [
        pytest.param("a: é".encode(), "a: é", [], id="utf-8"),
        pytest.param(b"\xef\xbb\xbfa: b", "a: b", [], id="byte-order-mark"),
        pytest.param(
            b"a: b\nc: \xff",
            None,
            ["compose.yaml:2:4: error: a byte here is not UTF-8 text [invalid-utf8]"],
            id="other-encoding",
        ),
        pytest.param(
            "a: b".encode("utf-16"),
            None,
            ["compose.yaml:1:1: error: the file is UTF-16 text, not UTF-8 [invalid-utf8]"],
            id="utf-16",
        ),
        pytest.param(
            b"a: b\nc: \x07",
            None,
            ["compose.yaml:2:4: error: a control character (U+0007) is not allowed in the file [invalid-character]"],
            id="control-character",
        ),
    ],
)
def test_decode(content: bytes, text: str | None, messages: list[str]) -> None:
    """Bytes are UTF-8 text, or are refused with their place."""
    assert (text, messages) == decoded(content)


# nodes ----------------------------------------------------------------------------------------------------------------


def test_rewriting_keeps_shared_nodes_shared() -> None:
    """A node that is used often is rewritten once."""
    seen: list[str] = []

    def capitalize(scalar: Scalar) -> Scalar:
        seen.append(scalar.text)
        return Scalar(scalar.span, scalar.text.upper(), scalar.written)

    made = rewrite(only("a: &x [p, q]\nb: *x\nc: r"), capitalize, {})

    assert to_plain(made) == {"a": ["P", "Q"], "b": ["P", "Q"], "c": "R"}
    assert seen == ["p", "q", "r"]
    assert isinstance(made, Mapping)
    assert made.get("a") is made.get("b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("{}", "a mapping"), ("[]", "a list"), ("~", "nothing"), ("x", "the text 'x'"), ("'~'", "the text '~'")],
)
def test_kind(text: str, expected: str) -> None:
    """A node is named by its kind in a message."""
    assert expected == kind_of(only(text))
