"""Hostile texts in every field of every document: they are shown as texts, and run nothing."""

from __future__ import annotations

import pytest

from tests.devtools import Tab
from tests.ui import documents
from tests.ui.conftest import Exported
from tests.ui.test_page import ROUTES

MARKUP = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
TEXTS = {
    "markup": MARKUP,
    "end-of-script": "</script><script>document.title='run'</script><!--",
    "address": "javascript:document.title='run'",
    "terminal": "\x1b]0;title\x07\x1b[31mred\x1b[0m\x9b2J",
    "direction": "\u202egpj.exe\u2066 \u200f",
    "long": "long" * 25_000,
    "broken": "\ud800 \u2028 \x00 \ufeff",
}
_KEPT = {"ready", "error", "warning", "running", "deploy", "create", "update", "replace", "delete", "service"}
#: What no text can do: a new element, an attribute that runs, a link to a script.
FOREIGN = """[...document.querySelectorAll("*")].filter(e =>
    ["img", "iframe", "object", "embed", "base"].includes(e.localName)
    || (e.localName === "script" && !/^js\\/\\w+\\.js$/.test(e.getAttribute("src")) && e.id !== "data")
    || [...e.attributes].some(a => a.name.startsWith("on") || (a.name === "style" && !e.matches(".graph, .log-view *")))
    || (e.hasAttribute("href") && !/^(#|https?:|js\\/|page.css$|icon.svg$)/.test(e.getAttribute("href")))
).map(e => e.outerHTML.slice(0, 300))"""


def hostile_data(text: str) -> dict[str, object]:
    """Put a text after every text of every document; states keep their names."""

    def change(found: str) -> str:
        return found if found in _KEPT else f"{found}{text}"

    data = documents.replace_texts(documents.exported(), change)
    operation = data["operation"]
    operation["services"] = {f"{name}{text}": row for name, row in operation["services"].items()}
    data["page"] = documents.page(exported=True, notes=[text])
    return dict(data)


@pytest.mark.parametrize("kind", TEXTS)
def test_texts(exported: Exported, tab: Tab, kind: str) -> None:
    """No text becomes an element, an attribute or a script, in any view."""
    data = hostile_data(TEXTS[kind])
    tab.resize(360)
    for route in ROUTES:
        exported.open(route, data)
        assert tab.run(FOREIGN) == []
        assert tab.run("document.title") != "run"
        assert tab.run("document.documentElement.scrollWidth") <= 360, route


def test_texts_are_replaced() -> None:
    """The documents of these tests have the text in them, in names too."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    documents.replace_texts(hostile_data(MARKUP), note)
    assert sum(text.endswith(MARKUP) for text in found) > 500


def test_service_with_a_hostile_name(exported: Exported, tab: Tab) -> None:
    """A link leads to the view of a service whatever its name, and the name is shown as it is."""
    exported.open("", hostile_data(f"/../?#%{MARKUP}"))
    tab.run("[...document.querySelectorAll('tbody a')].find(a => a.innerText.startsWith('worker')).click()")

    tab.wait_for("document.querySelector('h1').innerText.startsWith('worker')")
    assert tab.run("document.querySelector('h1').innerText") == f"worker/../?#%{MARKUP}"


def test_invisible_characters_are_shown(exported: Exported, tab: Tab) -> None:
    """A character that hides or reorders others is shown by its number."""
    exported.open("", hostile_data(TEXTS["direction"]))

    assert tab.run("document.querySelector('tbody th').innerText").endswith("\\u202egpj.exe\\u2066 \\u200f")


def test_control_characters_of_log_lines_are_removed(exported: Exported, tab: Tab) -> None:
    """Log lines lose the sequences for terminals, as `platform logs` removes them."""
    line = documents.log_line(1, content="a\x1b[1;31mb\x1b[0m\tc\x1b]0;t\x07d\u202ee\x9b2Jf\x00g\ud800h")
    exported.open("logs", documents.exported(logs=[line]))

    tab.wait_for("document.querySelector('.log-text') !== null")
    assert tab.run("document.querySelector('.log-text').textContent") == "ab\tcdefgh"


def test_a_link_that_is_no_web_address(exported: Exported, tab: Tab) -> None:
    """An address of another scheme is text, not a link."""
    row = documents.service_row("web", urls=["javascript:alert(1)", "data:text/html,x", "https://shop.example.com/"])
    exported.open("", documents.exported(status=documents.status([row])))

    links = tab.run("[...document.querySelectorAll('.addresses a')].map(a => [a.href, a.rel])")
    assert links == [["https://shop.example.com/", "noopener noreferrer"]]
    assert "javascript:alert(1)" in tab.run("document.querySelector('.addresses').innerText")


def test_elements_have_no_other_links(exported: Exported, tab: Tab) -> None:
    """No element gets a link of another kind, or a handler from a text."""
    exported.open()
    made = "dom.element('a', {href: 'javascript:alert(1)', onclick: 'alert(1)'})"

    assert tab.run(f"(a => [a.hasAttribute('href'), a.onclick])({made})") == [False, None]


@pytest.mark.parametrize(
    "attempt",
    [
        "document.body.insertAdjacentHTML('beforeend', '<p>')",
        "document.body.innerHTML = '<p>'",
        "document.createElement('script').src = 'data:text/javascript,1'",
        "document.createElement('script').text = '1'",
        "document.body.setAttribute('onclick', '1')",
        "setTimeout('1')",
    ],
)
def test_the_policy_stops_scripts(exported: Exported, tab: Tab, attempt: str) -> None:
    """Nothing that would read a text as markup or as a script is possible on the page."""
    exported.open()
    result = tab.run(f"(() => {{ try {{ {attempt}; return 'done'; }} catch (error) {{ return error.name; }} }})()")

    assert result == "TypeError"
    tab.errors.clear()


def test_many_problems(exported: Exported, tab: Tab) -> None:
    """Of many problems ten are shown at once, and the others when they are asked for."""
    rows = [documents.service_row(f"service-{number}", "failing", problem="it fails") for number in range(40)]
    exported.open("", documents.exported(status=documents.status(rows)))
    shown = "[...document.querySelectorAll('.problem')].filter(e => e.checkVisibility()).length"
    assert tab.run(shown) == 10
    tab.run("document.querySelector('.more summary').click()")

    assert tab.run(shown) == 40


def test_many_services(exported: Exported, tab: Tab) -> None:
    """A hundred services are shown, each in the table and in the graph."""
    exported.open("", documents.large())

    assert tab.run("document.querySelectorAll('tbody tr').length") == 100
    assert tab.run("document.querySelectorAll('.graph a').length") == 100
    assert tab.run("document.querySelectorAll('.counts li').length") == 4
