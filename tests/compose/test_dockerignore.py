"""The grammar of `.dockerignore`: its names, its lines, and the paths that it leaves out."""

from __future__ import annotations

import pytest

from composeplat.compose.dockerignore import IgnoreRules, Matches, dockerignore_names, read_dockerignore
from composeplat.compose.model import Build


def ignores(rules: IgnoreRules, path: str) -> bool:
    """Whether rules leave a path out, asked from the uppermost folder down."""
    matches: Matches = ()
    steps = path.split("/")
    for count in range(1, len(steps) + 1):
        matches = rules.match("/".join(steps[:count]), matches)
    return rules.ignores(matches)


def test_the_ignore_file_of_a_build() -> None:
    """The ignore file of a Dockerfile wins over that of the context."""
    assert dockerignore_names(Build(dockerfile="docker/Web")) == ("docker/Web.dockerignore", ".dockerignore")
    assert dockerignore_names(Build(dockerfile_inline="FROM scratch")) == (".dockerignore",)


def test_dockerignore_lines_are_taken_as_they_are() -> None:
    """Comments and empty lines are dropped, and a mark of the encoding too."""
    assert read_dockerignore("\ufeff*.log\n\n# note\n  !keep.log  \n") == ["*.log", "!keep.log"]
    assert read_dockerignore("*.log\r\n# note\r\n!keep.log\r\n") == ["*.log", "!keep.log"]


@pytest.mark.parametrize(
    ("text", "ignored", "kept"),
    [
        pytest.param("", [], ["a", "a/b"], id="nothing"),
        pytest.param("a\n", ["a", "a/b/c"], ["b/a", "ab"], id="a name in the context alone, with all below it"),
        pytest.param("/a/\n./c/../d\n", ["a", "a/b", "d"], ["c"], id="paths are cleaned"),
        pytest.param("/../a\n", ["a"], ["b"], id="the context is the root"),
        pytest.param("*.log\n", ["a.log"], ["b/a.log", "alog"], id="a star stays in its folder"),
        pytest.param("**/*.log\n", ["a.log", "b/c/a.log"], ["a.txt"], id="two stars are any folders, or none"),
        pytest.param("a/**\n", ["a/b", "a/b/c"], ["a", "b"], id="all below a folder"),
        pytest.param("**b\n", ["b", "ab", "a/cb"], ["bc", "a"], id="two stars and an end"),
        pytest.param("b**\n", ["b", "bc", "b/c"], ["ab", "a/b"], id="a beginning and two stars"),
        pytest.param("**b*\n", ["bc", "a/bc"], ["ab"], id="two stars and more"),
        pytest.param("a+(b)\n", ["a+(b)"], ["aab"], id="signs that stand for themselves"),
        pytest.param(" # a\n", ["# a"], ["a"], id="no comment, as it does not begin the line"),
        pytest.param("a/**/b\n", ["a/b", "a/x/y/b"], ["a/bb", "b"], id="in the middle"),
        pytest.param("?.[a-c]\n[^x]\n", ["x.a", "y"], ["xx.a", "x.d", "x"], id="one letter"),
        pytest.param("\\*.log\na$\n", ["*.log", "a$"], ["a.log", "a"], id="letters that stand for themselves"),
        pytest.param("*\n!a\n", ["b", "b/c"], ["a", "a/b"], id="an exception"),
        pytest.param("a\n!a/b\n", ["a", "a/c"], ["a/b", "a/b/c"], id="an exception in a folder"),
        pytest.param("a?\n!a?/*\n*\n", ["aa", "b/c"], ["aa/b/c"], id="a rule that changes nothing does not match"),
        pytest.param("!../../a\n", ["a"], ["b"], id="steps that take the mark of an exception with them"),
        pytest.param("!a\na\n", ["a"], ["b"], id="the last that matches wins"),
        pytest.param("[+--]\n[a&&b]\n", ["+", ",", "-", "&"], [".", "c"], id="signs of which Python warns"),
        pytest.param("[z-a]\nb\n", ["b"], ["a", "z"], id="a pattern that is none"),
    ],
)
def test_what_is_left_out(text: str, ignored: list[str], kept: list[str]) -> None:
    """Each pattern leaves out as BuildKit does."""
    rules = IgnoreRules.parse(read_dockerignore(text))

    assert [path for path in (*ignored, *kept) if ignores(rules, path)] == ignored


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        pytest.param("b\n**/*.log\n/a b/?.ts\n!x/@y~1.0", True, id="plain"),
        pytest.param("b\n!**/c", True, id="an exception"),
        pytest.param("[a-b]", False, id="a class"),
        pytest.param("\\\\b", False, id="an escape"),
        pytest.param("b|x", False, id="a bar"),
        pytest.param("b{1}", False, id="braces"),
        pytest.param("^b", False, id="an anchor"),
        pytest.param("b\na|x", True, id="a bar beside it"),
        pytest.param("b\na|x\n!c", False, id="an exception beside a bar"),
        pytest.param("b\n![c]", False, id="an exception of a class"),
        pytest.param("b\n./!c|d", False, id="an exception behind a step"),
    ],
)
def test_certain_rules(text: str, ignored: bool) -> None:  # noqa: FBT001
    """Patterns count if it is certain what they leave out; beside exceptions, all have to be."""
    rules = IgnoreRules.parse_certain(read_dockerignore(text))

    assert rules.ignores(rules.match("b")) is ignored
