"""Laying definitions over one another: nothing over something changes nothing, and nothing raises."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given, strategies as st

from composeplat.compose.merge import apply_tags, merge
from composeplat.compose.nodes import Mapping, Node, to_plain
from composeplat.compose.yaml_reader import read_nodes
from composeplat.diagnostics import Report, Source, Span
from composeplat.render.manifests import to_yaml
from tests.fuzz.trees import section
from tests.properties.trees import trees

keys = st.sampled_from(("services", "web", "ports", "volumes", "environment", "build", "a", "networks", "depends_on"))
any_trees = st.recursive(
    trees,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)


def made(random: Random) -> dict[str, Any]:
    return section(random, "")


definitions = st.randoms(use_true_random=False).map(made)


def node(tree: Any) -> Node:
    report = Report()
    (read,) = read_nodes(Source("a.yaml", Path(), to_yaml(tree)), report)
    assert not report.errors
    return read


EMPTY = Mapping(Span(Source("b.yaml", Path())))


@given(definitions)
def test_nothing_over_a_definition(definition: dict[str, Any]) -> None:
    """Laying nothing over a definition leaves it as it is, and so does laying it over nothing."""
    report = Report()
    alone = to_plain(apply_tags(node(definition)))

    assert alone == to_plain(apply_tags(merge(node(definition), EMPTY, report)))
    assert alone == to_plain(apply_tags(merge(EMPTY, node(definition), report)))
    assert not report.errors


@given(definitions)
def test_a_definition_over_itself(definition: dict[str, Any]) -> None:
    """Laying a definition over itself adds no key and no item, and loses none."""
    report = Report()
    once = merge(node(definition), node(definition), report)
    twice = merge(once, node(definition), report)

    assert not report.errors
    assert shape(to_plain(apply_tags(once))) == shape(to_plain(apply_tags(twice)))
    assert paths(to_plain(node(definition))) <= paths(to_plain(apply_tags(twice)))


def shape(tree: Any) -> Any:
    """A tree with its lists as sets: what is appended may come several times."""
    match tree:
        case dict():
            return {key: shape(value) for key, value in tree.items()}
        case list():
            return {repr(shape(item)) for item in tree}
        case _:
            return tree


def paths(tree: Any, levels: int = 3) -> set[str]:
    """The keys of a tree's mappings, down to a service's own: below them, some mappings become lists."""
    if not isinstance(tree, dict) or not levels:
        return set()
    return set(tree) | {f"{key}.{path}" for key, value in tree.items() for path in paths(value, levels - 1)}


@given(any_trees, any_trees)
def test_any_tree_over_any_other(base: Any, over: Any) -> None:
    """Two trees give one, or an error in the report."""
    report = Report()

    apply_tags(merge(node(base), node(over), report))

    assert all(diagnostic.message.isprintable() for diagnostic in report.sorted())


@given(definitions, definitions)
def test_what_comes_later_is_there(base: dict[str, Any], over: dict[str, Any]) -> None:
    """Every top-level key of both is in the result of them, and in the order of the first."""
    merged = to_plain(apply_tags(merge(node(base), node(over), Report())))

    assert list(merged) == [*base, *(key for key in over if key not in base)]
