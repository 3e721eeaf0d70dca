"""Names: whatever goes in, what comes out is taken by Kubernetes, and two things do not become one."""

from __future__ import annotations

import re

from hypothesis import example, given, strategies as st

from composeplat.names import (
    MAX_LABEL_LENGTH,
    clean,
    endpoint_host,
    is_dns_label,
    is_dns_name,
    make_file_key,
    make_label,
    shorten,
    slug,
)
from tests.properties.trees import texts

names = st.one_of(
    texts, st.text(st.sampled_from("abAB01-_. /é"), max_size=80), st.text("ab", min_size=60, max_size=130)
)
labels = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,150}[a-z0-9])?\Z")
limits = st.integers(min_value=20, max_value=MAX_LABEL_LENGTH)
paths = st.lists(st.text(st.sampled_from("abAB-_.é "), min_size=1, max_size=12), min_size=1, max_size=5).map(
    lambda steps: "/" + "/".join(steps)
)
CONFIG_KEY = re.compile(r"(?!\.\.|\.\Z)[-._a-zA-Z0-9]{1,253}\Z")


@given(names)
def test_labels_are_labels(name: str) -> None:
    """A label is made of any text that has a letter or digit for it, and of no other."""
    label = make_label(name)

    assert is_dns_label(label) or label == ""
    assert (label == "") == (re.search("[a-z0-9]", name.lower()) is None)


@given(names)
def test_names_stay_as_they_are_once_made(name: str) -> None:
    """What was made a name is left alone when it is made one again."""
    assert make_label(name) == make_label(make_label(name))
    assert clean(name) == clean(clean(name)) or not is_dns_label(clean(name))


@given(st.from_regex(r"\A[A-Za-z][A-Za-z0-9_. -]{0,61}[A-Za-z0-9]\Z"))
def test_what_compose_allows_is_cleaned(name: str) -> None:
    """A name of the characters that Compose allows is a label once it is clean."""
    assert is_dns_label(clean(name))


@given(labels, limits)
def test_shortened_labels_are_labels(label: str, limit: int) -> None:
    """A label that is cut is a label that fits, and one that fits is not cut."""
    short = shorten(label, limit)

    assert is_dns_label(short)
    assert len(short) <= limit
    assert (short == label) == (len(label) <= limit)


@given(st.sets(labels, max_size=8), limits)
@example({"a" * 100, "a" * 101}, 20)
def test_shortened_labels_stay_apart(several: set[str], limit: int) -> None:
    """Two labels that are cut stay two."""
    assert len(several) == len({shorten(label, limit) for label in several})


@given(st.sets(paths, max_size=8))
@example({"/a/b", "/a-b"})
@example({"/a", "/A"})
@example({"/a_b", "/a.b", "/a b", "/a-b", "/a/b"})
@example({"/é", "/è"})
def test_slugs_stay_apart(several: set[str]) -> None:
    """Two paths become two labels."""
    slugs = {slug(path, limit=50) for path in several}

    assert len(several) == len(slugs)
    assert all(is_dns_label(item) and len(item) <= 50 for item in slugs)


@given(st.sets(st.one_of(paths, texts.filter(bool), st.text(".a", min_size=1)), max_size=8))
@example({"a" * 253, "a" * 254, "a" * 300})
@example({".", "..", "...", "..a", ".a"})
def test_config_keys_stay_apart(several: set[str]) -> None:
    """Two paths become two keys, which a Secret takes."""
    keys = {make_file_key(path) for path in several}

    assert len(several) == len(keys)
    assert all(CONFIG_KEY.match(key) for key in keys)


@given(labels, labels)
def test_hosts_are_hosts(endpoint: str, namespace: str) -> None:
    """A host of any endpoint and namespace is valid for DNS, with the information whether it was cut."""
    host, shortened = endpoint_host(endpoint[:63].strip("-"), namespace[:63].strip("-"), "apps.example.com")

    assert is_dns_name(host)
    assert host.endswith(".apps.example.com")
    assert shortened == (len(f"{endpoint[:63].strip('-')}-{namespace[:63].strip('-')}") > MAX_LABEL_LENGTH)
