"""The sources of the page: as plain as the Python, formatted, and without a way to read a text as markup or code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.node_packages import node_modules
from tests.ui.test_accessibility import needs_npm

PAGE = ROOT / "composeplat" / "ui" / "page"
SCRIPTS = sorted((PAGE / "js").glob("*.js"))
MAX_LINES, MAX_FUNCTION_LINES, MAX_LINE_CHARS = 300, 40, 120
FORBIDDEN = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "eval(",
    "new Function",
    "document.write",
    "srcdoc",
    "import(",
)
_FUNCTION = re.compile(r"(?m)^(  (?:static |get |async )*(?:function )?\w+\([^\n]*\) \{)\n(.*?)^  \}", re.DOTALL)


def functions(source: str) -> dict[str, int]:
    """Return the number of lines of each function of a file."""
    return {found[1].strip(): found[0].count("\n") + 1 for found in _FUNCTION.finditer(source)}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    """A script says first what it owns, is strict, small, and has short functions."""
    source = path.read_text()

    assert re.match(r"// (?:Owns|Takes) ", source)
    assert '\n"use strict";\n' in source.partition("\n\n")[0] + "\n"
    assert len(source.splitlines()) <= MAX_LINES
    assert max(map(len, source.splitlines())) <= MAX_LINE_CHARS
    assert {name: lines for name, lines in functions(source).items() if lines > MAX_FUNCTION_LINES} == {}
    assert [word for word in FORBIDDEN if word in source] == []


def test_functions_are_found() -> None:
    """The lines of functions and methods are counted."""
    source = "class A {\n  b(c) {\n    d();\n  }\n}\n  function e() {\n    if (f) {\n      g();\n    }\n  }\n"

    assert functions(source) == {"b(c) {": 3, "function e() {": 5}


def test_names() -> None:
    """Every function is called, and every name that a script offers is used by another."""
    sources = {path: re.sub(r"(?m)//.*$", "", path.read_text()) for path in SCRIPTS}
    code = "\n".join(sources.values())
    names = {name for name in re.findall(r"(?:function|const|let|class) (\w+)", code) if name}

    assert len(names) > 300
    assert [name for name in sorted(names) if len(re.findall(rf"\b{name}\b", code)) < 2] == []


def test_nothing_from_elsewhere() -> None:
    """Neither the markup nor the style has an address of another host."""
    for path in (PAGE / "index.html", PAGE / "page.css"):
        assert re.findall(r"(?:https?:)?//[\w.]+|url\(|@import", path.read_text()) == []


def test_styles_are_used() -> None:
    """Every class of the style is one that the page gives to an element."""
    style = re.sub(r"(?s)/\*.*?\*/|\{[^{}]*\}", " ", (PAGE / "page.css").read_text())
    given = " ".join(path.read_text() for path in (*SCRIPTS, PAGE / "index.html"))
    made = r"(?:kind|tint|view)-\w+"
    classes = {name for name in re.findall(r"\.([a-z][\w-]*)", style) if not re.fullmatch(made, name)}

    assert len(classes) > 80
    assert [name for name in sorted(classes) if not re.search(rf"(?<![\w-]){name}(?![\w-])", given)] == []


# colors ---------------------------------------------------------------------------------------------------------------

_MIN_CONTRAST = 4.5
_TONES = ("good", "busy", "bad", "info", "idle")


def palettes() -> list[dict[str, str]]:
    """Return the colors for light and for dark, by their names."""
    blocks = re.findall(r":root \{(.*?)\n *\}", (PAGE / "page.css").read_text(), re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks)
    return [light, {**light, **dark}]


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colors, as WCAG 2 defines it."""
    darker, lighter = sorted(map(_luminance, (first, second)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("palette", palettes(), ids=["light", "dark"])
def test_contrast(palette: dict[str, str]) -> None:
    """Texts have a contrast of at least 4.5 on every ground that they are on; axe reads none of pictures."""
    texts = ["ink", "muted", "accent", "warn", *_TONES, *(f"tint-{number}" for number in range(8))]
    pairs = [(text, ground) for text in texts for ground in ("surface", "sunken", "ground")]
    pairs += [(tone, f"{tone}-ground") for tone in _TONES]
    pairs += [(text, f"{tone}-ground") for text in ("ink", "muted") for tone in _TONES]
    pairs += [("ink", "marked"), ("tint-4", "marked"), ("on-accent", "accent-ground")]
    low = {
        pair: round(found, 2)
        for pair in pairs
        if (found := contrast(palette[pair[0]], palette[pair[1]])) < _MIN_CONTRAST
    }

    assert low == {}


def test_low_contrast_is_found() -> None:
    """The measure is that of WCAG: black on white has 21."""
    assert round(contrast("#000000", "#ffffff"), 1) == 21.0
    assert contrast("#777777", "#ffffff") < _MIN_CONTRAST


@needs_npm
def test_format() -> None:
    """The scripts and the style are formatted by Prettier, as `.editorconfig` has it."""
    program = node_modules(ROOT / "tests" / "ui" / "packages") / "prettier" / "bin" / "prettier.cjs"
    args = ["node", str(program), "--check", "composeplat/ui/page/js/*.js", "composeplat/ui/page/page.css"]
    done = subprocess.run(args, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
