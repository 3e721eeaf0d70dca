"""The grammar of ``.dockerignore``: which paths of a build context BuildKit leaves out.

Owns the names of the file, its lines, and how a pattern matches. Must not open files.
"""

from __future__ import annotations

import posixpath
import re
import warnings
from collections.abc import Iterable, Sequence

from composeplat.compose.model import Build
from composeplat.system.records import record

#: BuildKit takes these as parts of a regular expression of Go, braces and bars by mistake.
_UNCERTAIN = re.compile(r"[\[\]\\^{|}]")
_TOKENS = re.compile(r"\*\*/?|\*|\?|\[[^\]]*\]|\\.|.", re.DOTALL)
_ANY_NAME = {"*": "[^/]*", "?": "[^/]"}

Matches = Sequence[bool]
"""Which rules match a path, or a folder above it."""


def dockerignore_names(build: Build) -> tuple[str, ...]:
    """Return the names of the ignore file in the context: the first that exists counts, as for BuildKit."""
    own = f"{build.dockerfile or 'Dockerfile'}.dockerignore"
    return (own, ".dockerignore") if not build.dockerfile_inline else (".dockerignore",)


def read_dockerignore(text: str) -> list[str]:
    lines = (line for line in text.removeprefix("\ufeff").split("\n") if not line.startswith("#"))
    return [line.strip() for line in lines if line.strip()]


def clean_pattern(pattern: str) -> str:
    """Return a pattern without steps such as ``..``; BuildKit takes the mark of an exception as a part of its path."""
    negated = pattern.startswith("!")
    path = posixpath.normpath(pattern.removeprefix("!").strip()).lstrip("/")
    return posixpath.normpath(f"!{path}") if negated else path


@record
class IgnoreRules:
    """The patterns of an ignore file; the last that matches a path, or a folder above it, wins."""

    rules: tuple[tuple[re.Pattern[str], bool], ...] = ()
    """Each with whether it is an exception: ``!keep``."""

    @classmethod
    def parse(cls, patterns: Iterable[str]) -> IgnoreRules:
        return cls._from_clean(map(clean_pattern, patterns))

    @classmethod
    def parse_certain(cls, patterns: Iterable[str]) -> IgnoreRules:
        """Parse the rules of which it is certain what they leave out: those without character classes and escapes.

        Beside an exception, a rule that is left out here could have decided on more paths than it matches.
        """
        found = [clean_pattern(pattern) for pattern in patterns]
        certain = [each for each in found if not _UNCERTAIN.search(each)]
        has_exceptions = any(each.startswith("!") for each in found)
        return cls() if has_exceptions and len(certain) < len(found) else cls._from_clean(certain)

    @classmethod
    def _from_clean(cls, patterns: Iterable[str]) -> IgnoreRules:
        return cls(tuple((_compile(each.removeprefix("!")), each.startswith("!")) for each in patterns))

    @property
    def has_exceptions(self) -> bool:
        return any(is_exception for _, is_exception in self.rules)

    def match(self, path: str, above: Matches = ()) -> Matches:
        """Match a path that is relative to the context; ``above`` are the matches of its folder."""
        found, is_ignored = [], False
        for is_match, (rule, is_exception) in zip(above or [False] * len(self.rules), self.rules, strict=True):
            # BuildKit does not try a rule that would change nothing: it counts as no match also below the path.
            is_found = is_match or (is_exception is is_ignored and rule.fullmatch(path) is not None)
            is_ignored = not is_exception if is_found else is_ignored
            found.append(is_found)
        return found

    def ignores(self, matches: Matches) -> bool:
        found = (is_exception for is_match, (_, is_exception) in zip(matches, self.rules, strict=True) if is_match)
        return not ([True, *found][-1])


def _compile(pattern: str) -> re.Pattern[str]:
    tokens = [token[0] for token in _TOKENS.finditer(pattern)]
    text = "".join(_expression(token, is_last=index == len(tokens) - 1) for index, token in enumerate(tokens))
    if tokens[:1] == ["**"] and not any(token[0] in "*?[\\" for token in tokens[1:]):
        # Alone, it begins any path that ends so.
        text = f".*{re.escape(pattern[2:])}"
    try:
        with warnings.catch_warnings():
            # Of two signs such as "--" in brackets: some day they may be an operation on sets.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(text, re.DOTALL)
    except re.error:
        # The builder reports it.
        return re.compile(r"(?!)")


def _expression(token: str, *, is_last: bool) -> str:
    if token.startswith("**"):
        return ".*" if is_last else "(?:.*/)?"
    if token in _ANY_NAME:
        return _ANY_NAME[token]
    if token.startswith("[") and len(token) > 1:
        return "[" + token[1:].replace("[", r"\[")
    return re.escape(token[1:] if len(token) > 1 else token)
