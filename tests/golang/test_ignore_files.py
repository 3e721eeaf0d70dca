"""What an ignore file leaves out of a context, beside the library with which Pulumi's provider for builds reads it."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from composeplat.compose.dockerignore import IgnoreRules, read_dockerignore
from composeplat.toolchain.tools import DOCKER_BUILD_PROVIDER
from tests.compose.test_dockerignore import ignores
from tests.conftest import ENDURANCE, has_long_round
from tests.golang.modules import go

FILES = 200_000 if ENDURANCE else 2_000
PATHS_OF_EACH = 40
PARTS = (
    *("a", "b", "ab", "a.log", "a b", "@a", "a-b", "~", "#a", "%", "a=b", "é", "$a", "a+", "(a)", "!", ".", ".."),
    *("*", "**", "***", "?", "a*", "a?", "*.log", "**b", "b**", "[ab]", "[^a]", "a{1,2}", "a|b", "^a", "\\*", "\\b"),
)
NAMES = ("a", "b", "ab", "aa", "a.log", "b.log", "a b", "a+", "(a)", "#a", "@a", "a-b", "~", "é", "c", "!", "x*", "%")
#: Beside these, the rules are the same.
UNCERTAIN = "[]\\^{|}"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of this folder, with the versions of the provider."""
    module = tmp_path_factory.mktemp("ignorefile")
    for source in (DOCKER_BUILD_PROVIDER.module / "go.mod", DOCKER_BUILD_PROVIDER.module / "go.sum"):
        shutil.copy(source, module)
    shutil.copy(Path(__file__).parent / "ignorefile" / "main.go", module)
    done = go(module, "build", "-o", "program", ".")
    assert done.returncode == 0, done.stderr
    return module / "program"


def a_pattern(pick: random.Random) -> str:
    pattern = "/".join(pick.choice(PARTS) for _ in range(pick.randint(1, 4)))
    before = pick.choices(("", "/", "!", "! ", " "), (10, 2, 4, 1, 1))[0]
    return before + pattern + ("/" if pick.random() < 0.1 else "")


def questions(pick: random.Random) -> Iterator[tuple[str, list[str]]]:
    for _ in range(FILES):
        text = "\n".join(a_pattern(pick) for _ in range(pick.randint(1, 4))) + "\n"
        yield text, ["/".join(pick.choices(NAMES, k=pick.randint(1, 4))) for _ in range(PATHS_OF_EACH)]


@has_long_round
def test_ignore_files_as_buildkit_reads_them(library: Path) -> None:
    """All without regular expressions are read alike; of the others, the certain rules leave out nothing more."""
    asked = list(questions(random.Random(1)))  # noqa: S311 -- nothing is kept secret by it
    text = "".join(json.dumps({"text": each, "paths": paths}) + "\n" for each, paths in asked)
    done = subprocess.run([library], input=text, capture_output=True, text=True, check=True, timeout=600)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked)

    compared, odd = {True: 0, False: 0}, []
    for (each, paths), answer in zip(asked, answers, strict=True):
        if answer is None:
            continue
        is_plain = not any(sign in each for sign in UNCERTAIN)
        patterns = read_dockerignore(each)
        rules, certain = IgnoreRules.parse(patterns), IgnoreRules.parse_certain(patterns)
        for path, expected in zip(paths, answer, strict=True):
            compared[expected] += 1
            if (ignores(certain, path) and not expected) or (is_plain and ignores(rules, path) != expected):
                odd.append((each, path, expected))
    assert odd == []
    assert min(compared.values()) > FILES
