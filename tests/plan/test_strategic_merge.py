"""Strategic merge patches of plain data."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from composeplat.plan.strategic_merge import BadPatch, merge

NAMES = st.sampled_from(("a", "b", "c"))
SCALARS = st.none() | st.text(max_size=2)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    entries = st.builds(lambda name, rest: {**rest, "name": name}, NAMES, st.dictionaries(NAMES, inner, max_size=2))
    deletions = st.builds(lambda name: {"name": name, "$patch": "delete"}, NAMES)
    listed = st.lists(entries | deletions, max_size=3, unique_by=lambda entry: str(entry["name"]))
    return st.fixed_dictionaries({}, optional={"containers": listed, "env": listed, "metadata": inner})


def patches() -> st.SearchStrategy[Any]:
    replaced = st.just({"$patch": "replace"})
    return st.recursive(SCALARS | replaced, objects, max_leaves=8).filter(lambda patch: isinstance(patch, dict))


@given(target=patches(), patch=patches())
def test_a_patch_that_is_applied_again_changes_nothing(target: Any, patch: Any) -> None:
    """And neither the target nor the patch is changed by it."""
    target = merge({}, target)
    before = copy.deepcopy((target, patch))
    try:
        merged = merge(target, patch)
    except BadPatch:
        return

    assert merge(merged, patch) == merged
    assert (target, patch) == before


@given(patch=patches())
def test_nothing_of_a_patch_is_left(patch: Any) -> None:
    """No directive, and no key without a value, is in the result."""

    def check(value: Any) -> None:
        assert value is not None
        for key, inner in (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        ):
            assert key != "$patch"
            check(inner)

    check(merge({}, patch))


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {}),
        ({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}),
        (
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "2"}]},
            {"env": [{"name": "A", "value": "2"}]},
        ),
        (
            {"env": [{"name": "A"}, {"name": "B"}]},
            {"env": [{"name": "A", "$patch": "delete"}]},
            {"env": [{"name": "B"}]},
        ),
        ({"env": [{"name": "A"}]}, {"env": [{"$patch": "replace"}, {"name": "B"}]}, {"env": [{"name": "B"}]}),
        (
            {"ports": [{"port": 80, "protocol": "TCP"}]},
            {"ports": [{"port": 80, "name": "x"}]},
            {"ports": [{"port": 80, "protocol": "TCP", "name": "x"}]},
        ),
        (
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 80, "protocol": "UDP"}]},
            {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]},
        ),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        ({"maxSurge": 1}, {"maxSurge": "25%"}, {"maxSurge": "25%"}),
        ({"cpu": "500m"}, {"cpu": 1}, {"cpu": 1}),
    ],
)
def test_rules(target: Any, patch: Any, expected: Any) -> None:
    """Each rule of strategic merging."""
    assert merge(target, patch) == expected


@pytest.mark.parametrize(
    ("target", "patch", "path", "message"),
    [
        ({"a": {"b": {}}}, {"a": {"b": 1}}, ("a", "b"), "must be a mapping"),
        ({"a": []}, {"a": {}}, ("a",), "must be a list"),
        ({"a": True}, {"a": "yes"}, ("a",), "must be true or false"),
        ({"a": 1}, {"a": "1"}, ("a",), "must be a whole number"),
        ({"a": "x"}, {"a": {}}, ("a",), "must be a text"),
        (
            {},
            {"env": [{"name": "A"}, {"value": "1"}]},
            ("env", 1),
            "must have 'name', by which the entries of this list are merged",
        ),
    ],
)
def test_what_does_not_fit(target: Any, patch: Any, path: tuple[str | int, ...], message: str) -> None:
    """A value of another kind, or an entry without its key, is refused at its place."""
    with pytest.raises(BadPatch) as error:
        merge(target, patch)

    assert (error.value.path, str(error.value)) == (path, message)
