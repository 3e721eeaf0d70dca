"""The texts of the project, split into kinds, and the words that they must not use.

Owns which text is of which kind, and how a banned word is searched for; ``tests/language.toml`` has the words.
``python -m tests.language`` prints each banned word with its place, and the measured figures.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "tests" / "language.toml"
MAX_EXCERPT_LENGTH = 100
GO_MODULES = ("composeplat/dev/link", "composeplat/local/frontdoor", "composeplat/local/mirror")


class Kind(StrEnum):
    IDENTIFIERS = "identifiers"
    """Names in the code of composeplat/ in all languages, split into words, and names of its files; in tests/ too."""
    COMMENTS = "comments"
    """Comments and docstrings of the same code. What ``--help`` prints is among them."""
    MESSAGES = "messages"
    """Other texts in the Python code of composeplat/ with a space in them: messages, hints, the help of options."""
    DOCS = "docs"
    """The pages in docs/, README, CONTRIBUTING and the examples, without code."""


@dataclass(frozen=True, slots=True)
class Text:
    kind: Kind
    path: Path
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    text: Text
    word: str
    use: str

    def __str__(self) -> str:
        path = self.text.path.relative_to(ROOT) if self.text.path.is_relative_to(ROOT) else self.text.path
        excerpt = " ".join(self.text.text.split())[:MAX_EXCERPT_LENGTH]
        return f"{path}:{self.text.line}: '{self.word}' in {self.text.kind}: use {self.use}: {excerpt}"


@dataclass(frozen=True)
class Rule:
    """A banned word or phrase, the words to use instead, and the kinds of text that it is banned in."""

    word: str
    use: str
    kinds: frozenset[Kind]
    unless: str = ""
    """A pattern of what the word is allowed in, such as a term of Kubernetes."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w-])(?:{self.word})(?![\w-])", re.IGNORECASE)

    def finding(self, text: Text) -> Finding | None:
        if text.kind not in self.kinds:
            return None
        rest = re.sub(self.unless, "", text.text) if self.unless else text.text
        found = self.pattern.search(rest)
        return Finding(text, found[0], self.use) if found else None


def rules(path: Path = RULES) -> list[Rule]:
    tables = tomllib.loads(path.read_text())
    return [
        Rule(word, entry["use"], frozenset(map(Kind, entry["in"])), entry.get("unless", ""))
        for entry in tables["rules"]
        for word in entry["words"]
    ]


@cache
def suspects(root: Path = ROOT) -> tuple[Text, ...]:
    """List the texts that some rule may find a word in: one search is faster than one for each rule."""
    any_word = re.compile("|".join(rule.pattern.pattern for rule in rules()), re.IGNORECASE)
    return tuple(text for text in all_texts(root) if any_word.search(text.text))


def findings(rule: Rule, texts: Iterable[Text]) -> dict[Kind, list[Finding]]:
    found: dict[Kind, list[Finding]] = {}
    for text in texts:
        if finding := rule.finding(text):
            found.setdefault(text.kind, []).append(finding)
    return found


# the texts ------------------------------------------------------------------------------------------------------------


@cache
def all_texts(root: Path = ROOT) -> tuple[Text, ...]:
    python = [text for path in sorted((root / "composeplat").rglob("*.py")) for text in python_texts(path)]
    tests = [text for path in files_of_tests(root) for text in python_texts(path) if text.kind is not Kind.MESSAGES]
    benchmarks = [text for path in sorted((root / "benchmarks").rglob("*.py")) for text in python_texts(path)]
    go = [text for path in go_files(root) for text in go_texts(path)]
    js = [text for path in js_files(root) for text in js_texts(path)]
    docs = [text for path in doc_files(root) for text in doc_texts(path)]
    return (*python, *tests, *benchmarks, *go, *js, *docs)


def files_of_tests(root: Path) -> list[Path]:
    """List the Python files of the tests, except those that quote banned words."""
    quoting = ("language.py", "test_language.py")
    return [path for path in sorted((root / "tests").rglob("*.py")) if path.name not in quoting]


def doc_files(root: Path) -> list[Path]:
    pages = [path for path in sorted((root / "docs").glob("*.md")) if path.name != "PLAN.md"]
    first = [root / "README.md", root / "CONTRIBUTING.md", root / "benchmarks" / "README.md"]
    return [*first, *pages, *sorted(root.glob("examples/*/README.md"))]


def go_files(root: Path) -> list[Path]:
    found = [path for module in GO_MODULES for path in (root / module).rglob("*.go")]
    return sorted(path for path in found if not path.stem.endswith("_test"))


def js_files(root: Path) -> list[Path]:
    return sorted((root / "composeplat" / "ui" / "page" / "js").glob("*.js"))


def python_texts(path: Path) -> Iterator[Text]:
    source = path.read_text()
    tree = ast.parse(source)
    docstrings = set(_docstrings(tree))
    yield Text(Kind.IDENTIFIERS, path, 1, _split(path.stem))
    for node in ast.walk(tree):
        yield from (Text(Kind.IDENTIFIERS, path, line, _split(name)) for name, line in _names(node))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings:
                lines = enumerate(node.value.splitlines(), node.lineno)
                yield from (Text(Kind.COMMENTS, path, line, without_code(text)) for line, text in lines)
            elif " " in node.value:
                yield Text(Kind.MESSAGES, path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(Kind.COMMENTS, path, token.start[0], without_code(token.string))


def _names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """List the names that a node defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, node.lineno
        case ast.arg(arg=name):
            yield name, node.lineno
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name, node.lineno
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name, node.lineno
        case ast.alias(asname=str(name)):
            yield name, node.lineno


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """List texts that stand alone as a statement: docstrings, also those of fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _split(name: str) -> str:
    """Split ``MAX_WAIT``, ``max_wait`` and ``maxWait`` into words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name).strip().lower()


_GO_COMMENT = re.compile(r"(?:^|\s)//(.*)$")
_GO_NAME = re.compile(r"\b(?:func(?: \([^)]*\))?|type|var|const) (\w+)|\b(\w+(?:, \w+)*) :=")
_GO_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`')


_JS_NAME = re.compile(r"\b(?:function|class|const|let) (\w+)|^  (?:static |get |async )*(\w+)\([^)]*\) \{")


def go_texts(path: Path) -> Iterator[Text]:
    return _line_texts(path, _GO_NAME)


def js_texts(path: Path) -> Iterator[Text]:
    # Strings of this language have the same quotes.
    return _line_texts(path, _JS_NAME)


def _line_texts(path: Path, names: re.Pattern[str]) -> Iterator[Text]:
    """Split code with ``//`` comments line by line; its names are what a pattern finds."""
    yield Text(Kind.IDENTIFIERS, path, 1, _split(path.stem))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = _GO_STRING.sub('""', line)
        yield from (Text(Kind.MESSAGES, path, number, text) for text in _GO_STRING.findall(line) if " " in text)
        if comment := _GO_COMMENT.search(code):
            yield Text(Kind.COMMENTS, path, number, comment[1])
            code = code[: comment.start()]
        for found in names.finditer(code):
            yield from (
                Text(Kind.IDENTIFIERS, path, number, _split(name)) for name in (found[1] or found[2]).split(", ")
            )


def doc_texts(path: Path) -> Iterator[Text]:
    """Yield the prose of a page, a line each."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and line.strip() and not line.startswith("<!--"):
            yield Text(Kind.DOCS, path, number, without_code(line))


_CODE = re.compile(r"``[^`]+``|`[^`]+`|:\w+:`[^`]+`|https?://\S+|\]\([^)]*\)")


def without_code(text: str) -> str:
    return _CODE.sub("…", text)


# figures --------------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


def per_thousand(word: str, texts: Iterable[Text]) -> float:
    """Count a word in 1,000 words of texts."""
    counts = Counter(found.lower() for text in texts for found in _WORD.findall(text.text))
    return 1000 * counts[word] / max(1, counts.total())


def figures(root: Path) -> dict[str, float]:
    """Measure the package and the pages, without the tests."""
    texts = [text for text in all_texts(root) if not text.path.is_relative_to(root / "tests")]
    docs = [text for text in texts if text.kind is Kind.DOCS]
    prose = [*docs, *(text for text in texts if text.kind is Kind.COMMENTS)]
    names = Counter(word for text in texts if text.kind is Kind.IDENTIFIERS for word in text.text.split())
    return {
        "'what' in 1,000 words of comments and docs": round(per_thousand("what", prose), 1),
        "'what' in 1,000 words of docs": round(per_thousand("what", docs), 1),
        **{f"identifiers with '{word}'": names[word] for word in ("one", "words", "told")},
    }


def main() -> None:
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    for rule in rules():
        for found in findings(rule, suspects(root)).values():
            print(*found, sep="\n")
    for name, value in figures(root).items():
        print(f"{name}: {value:g}")


if __name__ == "__main__":
    main()
