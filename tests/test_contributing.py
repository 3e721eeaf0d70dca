"""CONTRIBUTING.md answers "where do I change …": the files and symbols that it names exist."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
TABLE = PAGE.partition("## Where do I change …")[2].partition("\n## ")[0]
ROWS = [row.strip("| ").split(" | ") for row in TABLE.splitlines() if row.startswith("| ")][1:]
QUESTIONS = (
    "PersistentVolumeClaim", "text of a diagnostic", "timeout", "backend", "ignore rules", "key of the Compose file",
    "setting", "JSON", "program", "retried",
)  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_question(question: str) -> None:
    """The table answers each of the questions that newcomers were tested with."""
    assert any(question in row[0] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_row(row: list[str]) -> None:
    """Each file of a row exists, and one of them at least has the symbol."""
    _, files, symbols = row
    paths = [ROOT / name for name in re.findall(r"`([\w./]+)`", files) if "/" in name]
    sources = [path for path in paths if path.is_file()]

    assert [path for path in paths if not path.exists()] == []
    for symbol in re.findall(r"`([^`]+)`", symbols) if sources else ():
        assert any(symbol in path.read_text() for path in sources), symbol


def test_each_target_of_make() -> None:
    """The page names each target that ``make`` lists, and no other."""
    listed = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert {*re.findall(r"`make ([a-z]+)`", PAGE)} == {*listed} - {"help"}


def test_symbols_of_settings() -> None:
    """A setting is in each of the files that its row names."""
    (row,) = (row for row in ROWS if row[0].startswith("a setting"))

    for name in re.findall(r"`(composeplat/[\w./]+)`", row[1]):
        assert "tls_issuer" in (ROOT / name).read_text()
