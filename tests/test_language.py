"""The code and the pages use the words of docs/glossary.md.

``tests/language.toml`` has the banned words, ``tests/language_debt.json`` how many of them are left: a number there may
only go down, and ``pytest tests/test_language.py --bless`` writes it again.
The tests' own names, comments and docstrings are checked too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.language import (
    Kind,
    Rule,
    Text,
    doc_texts,
    figures,
    findings,
    go_texts,
    js_texts,
    python_texts,
    rules,
    suspects,
)

DEBT = ROOT / "tests" / "language_debt.json"
MAX_WHAT_IN_THOUSAND_WORDS = 4


def counted() -> dict[str, dict[str, int]]:
    """Count the findings of each word and kind."""
    counts: dict[str, dict[str, int]] = {}
    for rule in rules():
        for kind, found in findings(rule, suspects()).items():
            counts.setdefault(rule.word, {})[kind] = len(found)
    return counts


def test_the_debt_goes_down(request: pytest.FixtureRequest) -> None:
    """The record has no rule that is gone."""
    if request.config.getoption("--bless"):
        DEBT.write_text(json.dumps(counted(), indent=1, sort_keys=True) + "\n")

    assert set(json.loads(DEBT.read_text())) <= {rule.word for rule in rules()}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.word)
def test_banned_words(rule: Rule) -> None:
    """A banned word is in no text of its kinds; the message names file, line, the word and the word to use."""
    allowed = json.loads(DEBT.read_text()).get(rule.word, {})

    excess = [found for kind, found in findings(rule, suspects()).items() if len(found) > allowed.get(kind, 0)]

    assert [str(finding) for found in excess for finding in found] == []


def test_what() -> None:
    """Sentences name things: 'what' is rare."""
    assert figures(ROOT)["'what' in 1,000 words of comments and docs"] <= MAX_WHAT_IN_THOUSAND_WORDS


def test_no_rule_twice() -> None:
    """Each word has one rule for each kind of text."""
    rows = [(rule.word, kind) for rule in rules() for kind in rule.kinds]

    assert len(rows) == len(set(rows))


# the check itself -----------------------------------------------------------------------------------------------------

PYTHON = '''\
"""Owns the words."""
WAIT = 1  # told once

def tell(one):
    """Say ``told`` in code."""
    firstWord = "was told so" + "told"
'''


def texts_of(path: Path, content: str) -> list[tuple[Kind, int, str]]:
    path.write_text(content)
    read = {".py": python_texts, ".go": go_texts, ".js": js_texts, ".md": doc_texts}[path.suffix]
    return sorted((text.kind, text.line, text.text) for text in read(path))


def test_python_texts(tmp_path: Path) -> None:
    """Python code is split into names, comments with docstrings, and messages; quoted code is left out."""
    assert texts_of(tmp_path / "first_wait.py", PYTHON) == [
        (Kind.COMMENTS, 1, "Owns the words."),
        (Kind.COMMENTS, 2, "# told once"),
        (Kind.COMMENTS, 5, "Say … in code."),
        (Kind.IDENTIFIERS, 1, "first wait"),
        (Kind.IDENTIFIERS, 2, "wait"),
        (Kind.IDENTIFIERS, 4, "one"),
        (Kind.IDENTIFIERS, 4, "tell"),
        (Kind.IDENTIFIERS, 6, "first word"),
        (Kind.MESSAGES, 6, "was told so"),
    ]


def test_go_texts(tmp_path: Path) -> None:
    """Go code is split in the same way."""
    code = 'package main\n// One says so.\nfunc (e *Events) tellAll() {\n\told, kept := "a b", 1 // http\n}\n'

    assert texts_of(tmp_path / "a.go", code) == [
        (Kind.COMMENTS, 2, " One says so."),
        (Kind.COMMENTS, 4, " http"),
        (Kind.IDENTIFIERS, 1, "a"),
        (Kind.IDENTIFIERS, 3, "tell all"),
        (Kind.IDENTIFIERS, 4, "kept"),
        (Kind.IDENTIFIERS, 4, "old"),
        (Kind.MESSAGES, 4, '"a b"'),
    ]


def test_js_texts(tmp_path: Path) -> None:
    """JavaScript code is split in the same way."""
    code = "// One says so.\nclass Log {\n  tellAll(old) {\n    const kept = `a ${old}`; // http\n  }\n}\n"

    assert texts_of(tmp_path / "a.js", code) == [
        (Kind.COMMENTS, 1, " One says so."),
        (Kind.COMMENTS, 4, " http"),
        (Kind.IDENTIFIERS, 1, "a"),
        (Kind.IDENTIFIERS, 2, "log"),
        (Kind.IDENTIFIERS, 3, "tell all"),
        (Kind.IDENTIFIERS, 4, "kept"),
        (Kind.MESSAGES, 4, "`a ${old}`"),
    ]


def test_doc_texts(tmp_path: Path) -> None:
    """Of a page the prose is read, without code, commands and links."""
    page = "# A title\n\nThe `told` [word](told.md).\n\n```sh\ntold\n```\n<!-- told -->\n"

    assert texts_of(tmp_path / "a.md", page) == [(Kind.DOCS, 1, "# A title"), (Kind.DOCS, 3, "The … [word….")]


def test_finding() -> None:
    """A finding names the file, the line, the word and the word to use."""
    rule = Rule("goes on", "continues", frozenset({Kind.DOCS}))
    text = Text(Kind.DOCS, ROOT / "README.md", 3, "It Goes on there.")

    (found,) = findings(rule, [text])[Kind.DOCS]

    assert str(found) == "README.md:3: 'Goes on' in docs: use continues: It Goes on there."


@pytest.mark.parametrize("text", ["it undergoes on", "goes-on", "goes only"])
def test_whole_words(text: str) -> None:
    """Only whole words count."""
    rule = Rule("goes on", "continues", frozenset({Kind.DOCS}))

    assert rule.finding(Text(Kind.DOCS, ROOT / "a.md", 1, text)) is None


def test_allowed_uses() -> None:
    """A pattern of allowed uses is left out of the search."""
    rule = Rule("told", "reported", frozenset({Kind.DOCS}), unless="told apart")

    assert rule.finding(Text(Kind.DOCS, ROOT / "a.md", 1, "they are told apart")) is None
    assert rule.finding(Text(Kind.DOCS, ROOT / "a.md", 1, "told that they are told apart")) is not None


# the glossary ---------------------------------------------------------------------------------------------------------


def test_the_glossary_is_sorted() -> None:
    """Each word has one row, in the order of the alphabet."""
    page = (ROOT / "docs" / "glossary.md").read_text()
    tables = re.findall(r"(?m)^(?:\| .*\n)+", page)
    words = [re.findall(r"(?m)^\| \*\*(.+?)\*\*", table) for table in tables]

    assert sum(map(len, words)) > 20
    for column in words:
        assert column == sorted(column, key=str.lower)
    assert len(set().union(*words)) == sum(map(len, words))
