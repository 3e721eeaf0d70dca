"""Texts and trees to try things on."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

#: Texts that some reader of YAML takes for something else.
TRAPS = (
    "", " ", "~", "null", "Null", "yes", "no", "on", "off", "y", "n", "true", "False", "1", "-1", "+1", "007", "0o17",
    "0x1f", "0b1", "1_000", "1e3", "1.5", ".5", "5.", "-.inf", ".nan", "nan", "inf", "12:30:45", "22:22", "190:20:30",
    "2001-01-01", "2001-12-14t21:59:43.10-05:00", "=", "<<", "*a", "&a", "!a", "|", ">", "-", "- a", "?", "? a", ":",
    ": a", "a: b", "a:", "a #b", "#a", "@a", "`a", "%a", "{", "}", "[", "]", ",", "a,b", "'", '"', "\\", "\\n", "---",
    "...", "--- a", " lead", "trail ", "\ttab", "tab\t", "a\tb", "a\nb", "a\nb\n", "a\n\nb", "\na", "a\n", "\n", "\n\n",
    "a\n ", " a\nb", "a\n  b\n c", "a\n\n", "a\r\nb", "a\rb", "a\x85b", "a\u2028b", "\ufeffa", "a\ufeff", "\0",
    "\x1b[0m",    "\x7f", "é", "日本", "🐳", "a\u200bb", "\u202e", "512Mi", "250m", "30s", "0s",
    "1h", "/a/b:ro", "./a", "http://a/b?c#d",
    "key: [a, b]", "a" * 200, "a b " * 60, "# a\n# b\n", "a:\n  b\n", "- a\n- b", "|\n a", "\U0001fffe", "\ufffe",
)  # fmt: skip

texts = st.one_of(st.sampled_from(TRAPS), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
lines = st.lists(texts, max_size=5).map("\n".join)
args = st.text(st.sampled_from("ab$(){}:-=/.,'\"\\ \n\té日0189"), max_size=12)

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(10**15), max_value=10**15),
    st.integers(min_value=-(10**6), max_value=10**6).map(lambda thousandths: thousandths / 1000),
    texts,
    lines,
)
trees: st.SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=20,
)
