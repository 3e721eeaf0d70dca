"""The figures that the code keeps: short functions, small modules, no cycle, no copies, few exceptions to the rules.

A limit here may be lowered; raising one needs a reason in the commit message.
``python -m tests.test_numbers`` prints the figures.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import tokenize
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

MAX_MEDIAN_LINES = 8
LONG_FUNCTION_LINES = 30
#: Of the package, and of each room: one may be a table.
MAX_LONG_FUNCTIONS_PERCENT, MAX_LONG_FUNCTIONS_OF_ROOM_PERCENT = 1.2, 2.0
MAX_MODULE_LINES = 400
COPY_LINES = 6
#: The page has a room of its own: it knows neither Compose nor Kubernetes.
MAX_ROOMS, MAX_ARROWS = 19, 91

#: No module is too long and nothing is there twice: that stays.
LARGE_MODULES: frozenset[str] = frozenset()
MAX_COPIES = 0
MAX_NOQA = 23
MAX_FMT_SKIP = 8

PACKAGE = ROOT / "composeplat"
FILES = sorted(PACKAGE.rglob("*.py"))


class Function(NamedTuple):
    place: str
    lines: int


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions() -> list[Function]:
    return [
        Function(f"{name_of(path)}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def long_functions() -> list[Function]:
    return [function for function in functions() if function.lines > LONG_FUNCTION_LINES]


def room(function: Function) -> str:
    return function.place.partition(":")[0].split("/")[1]


def long_functions_of_rooms() -> dict[str, float]:
    """Return the percentage of long functions, for each room that has one."""
    counts = Counter(room(function) for function in functions())
    return {name: 100 * count / counts[name] for name, count in Counter(map(room, long_functions())).items()}


def large_modules() -> dict[str, int]:
    lines = {name_of(path): len(path.read_text().splitlines()) for path in FILES}
    return {name: count for name, count in lines.items() if count > MAX_MODULE_LINES}


def comments(pattern: str) -> list[str]:
    """List the places of comments that match a pattern."""
    return [
        f"{name_of(path)}:{token.start[0]}"
        for path in FILES
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        if token.type == tokenize.COMMENT and re.search(pattern, token.string)
    ]


NOQA, FMT_SKIP = r"#\s*noqa\b", r"#\s*fmt:\s*(skip|off)"

# copies ---------------------------------------------------------------------------------------------------------------


def code_lines(source: str) -> list[tuple[int, str]]:
    """List the lines of a module with their numbers, without imports, comments, docstrings and indents."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and (is_text or isinstance(node, ast.Import | ast.ImportFrom)):
            skipped |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    stripped = ((number, re.sub(r"\s+# .*$", "", line.strip())) for number, line in enumerate(source.splitlines(), 1))
    return [(number, line) for number, line in stripped if line and number not in skipped and line[0] != "#"]


def copies(sources: dict[str, str]) -> list[str]:
    """List the places that have the same lines; places that follow each other are one copy."""
    places: defaultdict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, source in sources.items():
        lines = code_lines(source)
        for start in range(len(lines) - COPY_LINES + 1):
            block = lines[start : start + COPY_LINES]
            places[tuple(line for _, line in block)].append((name, block[0][0]))
    return [" and ".join(f"{name}:{line}" for name, line in found) for found in places.values() if len(found) > 1]


def package_copies() -> list[str]:
    return copies({name_of(path): path.read_text() for path in FILES})


# imports --------------------------------------------------------------------------------------------------------------


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports() -> dict[str, set[str]]:
    """List which module imports which of the package; imports within functions count too."""
    names = {module_name(path) for path in FILES}
    found: dict[str, set[str]] = {}
    for path in FILES:
        targets: set[str] = set()
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                whole = {f"{node.module}.{alias.name}" for alias in node.names} & names
                targets |= whole or ({node.module} & names)
            elif isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names} & names
        found[module_name(path)] = targets - {module_name(path)}
    return found


def room_arrows() -> set[tuple[str, str]]:
    """List which room imports which."""
    pairs = (
        (source.split(".")[1:2], target.split(".")[1:2]) for source, found in imports().items() for target in found
    )
    return {(source[0], target[0]) for source, target in pairs if source and target and source != target}


def cycle(arrows: dict[str, set[str]]) -> list[str]:
    """Return the modules that are in a cycle, or behind one; none if there is none."""
    left = {name: set(targets) for name, targets in arrows.items()}
    while free := [name for name, targets in left.items() if not targets & set(left)]:
        for name in free:
            del left[name]
    return sorted(left)


# the figures ----------------------------------------------------------------------------------------------------------


def test_functions_are_short() -> None:
    """Half of the functions have at most 8 lines, and few more than 30."""
    lines = [function.lines for function in functions()]

    assert statistics.median(lines) <= MAX_MEDIAN_LINES
    assert 100 * len(long_functions()) / len(lines) <= MAX_LONG_FUNCTIONS_PERCENT, long_functions()


def test_no_room_has_many_long_functions() -> None:
    """The short functions of one room are no leave for another."""
    found = long_functions_of_rooms()

    assert {name: percent for name, percent in found.items() if percent > MAX_LONG_FUNCTIONS_OF_ROOM_PERCENT} == {}


def test_modules_are_small() -> None:
    """No module has more than 400 lines."""
    assert set(large_modules()) <= LARGE_MODULES


def test_no_copies() -> None:
    """No two places have the same six lines."""
    found = package_copies()

    assert len(found) <= MAX_COPIES, found


def test_no_cycle() -> None:
    """No module imports itself through others; which room may import which is held by lint-imports."""
    assert cycle(imports()) == []


def test_rooms_are_few() -> None:
    """The rooms and the arrows between them stay as few as docs/architecture.md draws them."""
    arrows = room_arrows()
    rooms = {room for arrow in arrows for room in arrow}

    assert len(rooms) <= MAX_ROOMS, sorted(rooms)
    assert len(arrows) <= MAX_ARROWS, sorted(arrows)
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert f"Now there are {len(rooms)} with {len(arrows)}." in page


@pytest.mark.parametrize(("pattern", "limit"), [(NOQA, MAX_NOQA), (FMT_SKIP, MAX_FMT_SKIP)], ids=["noqa", "fmt-skip"])
def test_exceptions(pattern: str, limit: int) -> None:
    """Exceptions to the linter and the formatter are rare."""
    found = comments(pattern)

    assert len(found) <= limit, found


# the measuring itself -------------------------------------------------------------------------------------------------

BLOCK = '''\
def f():
    """Do it."""
    a = 1  # once
    b = 2

    c = 3
    # more
    d = 4
    return a + b + c + d
'''


def test_a_copy_is_found() -> None:
    """Comments, docstrings, empty lines and indents make no difference."""
    other = "class A:\n    " + BLOCK.replace("# once", "# twice").replace("\n", "\n    ").rstrip() + "\n"

    assert copies({"a.py": BLOCK, "b.py": other}) == ["a.py:1 and b.py:2"]
    assert copies({"a.py": BLOCK, "b.py": other.replace("b = 2", "b = 3")}) == []


def test_imports_are_no_copies() -> None:
    """Modules may import the same things."""
    lines = "from x import (\n    a,\n    b,\n    c,\n    d,\n    e,\n)\nimport f\n"

    assert copies({"a.py": lines, "b.py": lines}) == []


def test_a_cycle_is_found() -> None:
    """A cycle is found, however long it is."""
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


def main() -> None:
    lines = [function.lines for function in functions()]
    print(f"modules: {len(FILES)}; over {MAX_MODULE_LINES} lines: {large_modules()}")
    print(f"functions: {len(lines)}; median {statistics.median(lines):g} lines")
    print(
        f"over {LONG_FUNCTION_LINES} lines: {len(long_functions())} ({100 * len(long_functions()) / len(lines):.1f} %)"
    )
    print("of each room:", {name: f"{percent:.1f} %" for name, percent in long_functions_of_rooms().items()})
    arrows = room_arrows()
    print(f"rooms: {len({room for arrow in arrows for room in arrow})}; arrows: {len(arrows)}")
    print(f"noqa: {len(comments(NOQA))}; fmt: skip: {len(comments(FMT_SKIP))}")
    print("modules in a cycle:", *cycle(imports()))
    print(*(f"copy: {copy}" for copy in package_copies()), sep="\n")


if __name__ == "__main__":
    main()
