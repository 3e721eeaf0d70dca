"""The changes that make mutants: what is changed into what, and what is left alone."""

from __future__ import annotations

import ast

import pytest

from tests.conftest import ROOT
from tests.mutants.changes import find_changes


def made(text: str) -> list[str]:
    return [change.apply(text) for change in find_changes(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a == b", ["x = a != b"]),
        ("x = a <= b < c", ["x = a < b < c", "x = a <= b <= c"]),
        ("x = a not in b", ["x = a  in b"]),
        ("x = (a) in b", ["x = (a) not in b"]),
        ("x = a is not b", ["x = a is  b"]),
        ("x = a and (b or c)", ["x = a or (b or c)", "x = a and (b and c)"]),
        ("x = not a", ["x =  a"]),
        ("x = True", ["x = False"]),
        ("x = 7", ["x = 8"]),
        ("x = 'é' + a - 1", ["x = 'é' - a - 1", "x = 'é' + a + 1", "x = 'é' + a - 2"]),
        ("x += a", ["x -= a"]),
        ("a()", ["pass"]),
        ("raise A", ["pass"]),
        ("def f(a: int = 1) -> 2: pass", ["def f(a: int = 2) -> 2: pass"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("while a:\n    break", ["while not a:\n    break", "while a:\n    continue"]),
        ("x = b if a.c else d", ["x = b if not a.c else d"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if not a]"]),
    ],
)  # fmt: skip
def test_what_is_changed(text: str, expected: list[str]) -> None:
    """Each operator, condition, number and statement becomes its opposite or its neighbor."""
    assert made(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "x: dict[1, 2]",
        "@a(1)\nclass B:\n    x: int",
        "if TYPE_CHECKING:\n    import a",
        "assert a == b",
        "x = f'{a == 1}'",
        "'a text'",
        "return_ = None",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    """What no run could show is not changed."""
    assert made(text) == []


def test_a_change_knows_its_statement() -> None:
    """A test that runs any line of a statement is asked about it; a body is a statement of its own."""
    text = "def f():\n    if (\n        a\n        and b\n    ):\n        return (\n            1\n        )\n"

    assert [(change.line, change.first, change.last) for change in find_changes(text)] == [
        (4, 2, 5),
        (6, 6, 8),
        (7, 6, 8),
    ]
    assert [change.imported for change in find_changes("a = 1\ndef f(b=1):\n    return b")] == [True, True, False]


def test_every_change_of_the_product_is_python() -> None:
    """Whatever is changed in our modules, it is a module still, and another one."""
    for path in sorted((ROOT / "composeplat" / "load").rglob("*.py")):
        text = path.read_text()
        for change in find_changes(text):
            assert change.apply(text) != text
            ast.parse(change.apply(text))
