"""The page for everybody: axe finds nothing, the keyboard reaches everything, and narrow screens scroll one way."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from tests.devtools import Tab
from tests.ui import documents
from tests.ui.axe import violations
from tests.ui.conftest import Exported
from tests.ui.test_page import ROUTES

WIDTHS = (360, 1280)
SCHEMES = ("light", "dark")
#: Everything that a person can use, in the order of the page; the graph and the log list are single stops each.
USABLE = "a[href], button:not([aria-disabled]), input, summary, [tabindex='0']"
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm: make extras installs it")


def prefer(tab: Tab, name: str, value: str) -> None:
    tab.call("Emulation.setEmulatedMedia", features=[{"name": name, "value": value}])


@needs_npm
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_axe(exported: Exported, tab: Tab, width: int, scheme: str) -> None:
    """No rule of axe is violated by any view."""
    tab.resize(width)
    prefer(tab, "prefers-color-scheme", scheme)
    found = {}
    for route in ROUTES:
        exported.open(route)
        found[route] = violations(tab)

    assert {route: rules for route, rules in found.items() if rules} == {}


@needs_npm
def test_axe_finds_something(exported: Exported, tab: Tab) -> None:
    """A text that is hard to read, and a picture without a name, are found."""
    exported.open()
    tab.run("document.documentElement.style.setProperty('--muted', '#ccc')")
    tab.run("document.getElementById('status').append(document.createElement('img'))")

    assert [rule.split(":")[0] for rule in violations(tab)] == ["color-contrast", "image-alt"]


@pytest.mark.parametrize("data", ["small", "large"])
@pytest.mark.parametrize("route", ROUTES)
def test_narrow(exported: Exported, tab: Tab, route: str, data: str) -> None:
    """On a narrow phone nothing but tables, graphs, logs and files scrolls sideways."""
    tab.resize(360)
    exported.open(route.replace("worker", "service-002") if data == "large" else route, _DATA[data]())

    assert tab.run("document.documentElement.scrollWidth") <= 360


_DATA: dict[str, Callable[[], dict[str, Any]]] = {"small": documents.exported, "large": documents.large}


def test_wide_regions_are_reached(exported: Exported, tab: Tab) -> None:
    """Whatever scrolls sideways can be reached by the keyboard, and has a name."""
    tab.resize(360)
    for route in ROUTES:
        exported.open(route)
        hidden = tab.run("""[...document.querySelectorAll("main *")].filter(e =>
            e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(e).overflowX)
            && !(e.tabIndex === 0 && e.getAttribute("aria-label"))).map(e => `${e.localName}.${e.className}`)""")
        assert hidden == []


@pytest.mark.parametrize("route", ROUTES)
def test_keyboard(exported: Exported, tab: Tab, route: str) -> None:
    """The Tab key reaches everything that can be used, and each shows that it has the focus."""
    exported.open(route)
    tab.run(_WATCH_FOCUS)
    for _ in range(tab.run("usable().length")):
        tab.press("Tab", 9)
        tab.run("note(document.activeElement)")

    assert tab.run("usable().filter(e => !reached.has(e)).map(e => e.outerHTML)") == []
    assert tab.run("unseen") == []


_WATCH_FOCUS = f"""
var reached = new Set(), unseen = [];
function usable() {{ return [...document.querySelectorAll({USABLE!r})].filter(e => e.checkVisibility()); }}
function isSeen(e) {{
    const style = getComputedStyle(e);
    return style.outlineStyle !== "none" || parseFloat(style.strokeWidth) > 3;
}}
function note(e) {{
    reached.add(e);
    if (![e, ...e.querySelectorAll(".box")].some(isSeen)) unseen.push(e.outerHTML);
}}
"""


def test_skip_link(exported: Exported, tab: Tab) -> None:
    """The first stop leads past the header."""
    exported.open("history")
    tab.press("Tab", 9)
    tab.press("Enter", 13, "\r")

    assert tab.run("document.activeElement.id") == "main"
    assert tab.run("location.hash") == "#/history"


def test_focus_moves_with_the_view(exported: Exported, tab: Tab) -> None:
    """A link moves the focus to the heading of its view, which a screen reader then reads out."""
    exported.open()
    tab.run("document.querySelector('tbody a').focus()")
    tab.press("Enter", 13, "\r")

    tab.wait_for("document.activeElement.localName === 'h1'")
    assert tab.run("document.activeElement.innerText") == "worker"
    assert tab.run("document.title") == "worker - shop - platform"


def test_structure(exported: Exported, tab: Tab) -> None:
    """Each view has one first heading, landmarks, and no level of headings left out."""
    for route in ROUTES:
        exported.open(route)
        levels = tab.run("[...document.querySelectorAll('h1, h2, h3')].map(h => Number(h.localName[1]))")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert tab.run("document.querySelectorAll('header, nav, main').length") >= 3
        assert tab.run("document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log]').length") == 1


def test_reduced_motion(exported: Exported, tab: Tab) -> None:
    """Nothing moves for a person who asked for that."""
    prefer(tab, "prefers-reduced-motion", "reduce")
    exported.open()

    assert (
        tab.run("""[...document.querySelectorAll("*")].filter(e => {
        const style = getComputedStyle(e);
        return style.transitionDuration !== "0s" || style.animationName !== "none";
    }).length""")
        == 0
    )


def test_forced_colors(exported: Exported, tab: Tab) -> None:
    """With the colors of a contrast theme, the view that is shown, a marked line and a selected one can be seen."""
    prefer(tab, "forced-colors", "active")
    exported.open("file/compose.yaml?line=3")
    tabs = tab.run("""[...document.querySelectorAll(".views a")].map(e => [e.hasAttribute("aria-current"),
        getComputedStyle(e).borderBottomColor !== getComputedStyle(document.body).backgroundColor])""")
    assert dict(tabs) == {True: True, False: False}
    outline = "getComputedStyle(document.querySelector({!r})).outlineStyle"
    assert tab.run(outline.format(".line.is-marked")) == "solid"

    exported.open("logs")
    tab.wait_for("document.querySelector('.log-row') !== null")
    tab.run("document.querySelector('.log-list').focus()")
    tab.press("ArrowUp", 38)
    tab.wait_for("document.querySelector('.log-row.is-selected') !== null")
    assert tab.run(outline.format(".log-row.is-selected")) == "solid"


@pytest.mark.parametrize("route", ROUTES)
def test_reflow(exported: Exported, tab: Tab, route: str) -> None:
    """A screen of 1280 pixels at a zoom of 400 % is 320 wide: the page fits."""
    tab.resize(320)
    exported.open(route)

    assert tab.run("document.documentElement.scrollWidth") <= 320


def test_zoom(exported: Exported, tab: Tab) -> None:
    """The page can be zoomed, and a text of twice the size does not widen it."""
    tab.resize(360)
    exported.open()
    assert "maximum-scale" not in tab.run("document.querySelector('meta[name=viewport]').content")
    tab.run("document.body.style.fontSize = '28px'; 0")

    assert tab.run("document.documentElement.scrollWidth") <= 360
