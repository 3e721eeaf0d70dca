"""What is written as YAML is read back as it was, by the library everyone has and by our own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, strategies as st

from composeplat.compose.nodes import to_plain
from composeplat.compose.yaml_reader import StopReading, decode, read_nodes
from composeplat.diagnostics import Report, Source
from composeplat.render.manifests import to_yaml
from tests.properties.trees import TRAPS, texts, trees


def read_back(text: str) -> Any:
    report = Report()
    source = decode(text.encode(), lambda read: Source("a.yaml", Path(), read), report)
    (node,) = read_nodes(source, report)
    assert not report.errors, report.sorted()
    return to_plain(node)


@pytest.mark.parametrize("text", TRAPS)
@pytest.mark.parametrize(
    "around", [lambda t: t, lambda t: {"a": t}, lambda t: [t], lambda t: {t: 1}, lambda t: [[{t: [t]}]]]
)
def test_traps(around: Any, text: str) -> None:
    """A text that looks like something else comes back as the text."""
    tree = around(text)

    assert tree == yaml.safe_load(to_yaml(tree))
    assert tree == read_back(to_yaml(tree))


@given(trees)
def test_round_trip(tree: Any) -> None:
    """Any tree comes back, anyone who reads it."""
    written = to_yaml(tree)

    assert tree == yaml.safe_load(written)
    assert tree == read_back(written)


@given(trees)
def test_types_come_back(tree: Any) -> None:
    """A number stays a number and a text a text, which equality alone would not show."""
    assert repr(tree) == repr(yaml.safe_load(to_yaml(tree)))


@given(trees)
def test_written_the_same_again(tree: Any) -> None:
    """What was read back is written as before."""
    written = to_yaml(tree)

    assert written == to_yaml(yaml.safe_load(written))


@given(texts.filter(bool), st.integers(min_value=900, max_value=1200))
@example("a", 1023)
def test_long_keys(text: str, length: int) -> None:
    """A key of any length is read back: the library takes a simple key of at most 1024 characters."""
    key = (text * length)[:length]
    tree = {"a": [{key: {key: 1}, "b": [key]}], key: []}

    assert tree == yaml.safe_load(to_yaml(tree))
    assert tree == read_back(to_yaml(tree))


@given(st.one_of(st.binary(max_size=200), texts.map(str.encode)))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """Reading ends with documents or with an error in the report."""
    report = Report()
    try:
        nodes = read_nodes(decode(content, lambda read: Source("a.yaml", Path(), read), report), report)
    except StopReading:
        assert report.errors
    else:
        for node in nodes:
            to_plain(node)


@given(st.text(st.sampled_from("ab: -[]{}&*!<|>\n'\"#,?%~\t"), max_size=40))
def test_any_marks_are_read_or_refused(text: str) -> None:
    """The same for texts of the characters that mean something; what the library reads, we read or refuse by name."""
    report = Report()
    try:
        nodes = read_nodes(Source("a.yaml", Path(), text), report)
    except StopReading:
        assert report.errors
    else:
        for node in nodes:
            to_plain(node)
