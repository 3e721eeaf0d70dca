"""The logs in a real browser: 100,000 lines, searched, followed, of some services, from the start."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.ui.log_batches import Line
from tests.devtools import Tab
from tests.ui import documents
from tests.ui.conftest import Exported, LivePage

COUNT = "document.querySelector('.log-count').innerText"
SHOWN = "[...document.querySelectorAll('.log-text')].map(e => e.textContent)"
BOX = "document.querySelector('.log-list')"
IS_AT_END = f"(b => b.scrollHeight - b.scrollTop - b.clientHeight < 2)({BOX})"
FOLLOW = "document.querySelector('.log-tools > [data-key=Follow] input')"


def lines_of(*texts: str, service: str = "web") -> list[list[Any]]:
    return [documents.log_line(number, service, text) for number, text in enumerate(texts)]


def line(number: int, service: str = "web", text: str = "") -> Line:
    time, name, pod, content, is_one_off, container = documents.log_line(number, service, text or f"line {number}")
    return time, name, pod, content, is_one_off, container


def search(tab: Tab, query: str) -> None:
    tab.run("(e => { e.focus(); e.select(); })(document.querySelector('input[type=search]'))")
    tab.call("Input.insertText", text=query)


@pytest.mark.timeout(300)
def test_many_lines(exported: Exported, tab: Tab) -> None:
    """The last 100,000 lines are kept, few of them are elements, and the search through all is fast."""
    exported.open("logs", documents.exported(logs=documents.log_lines(101_000)))

    tab.wait_for(f"{COUNT} === '100,000 lines'")
    assert tab.run(SHOWN)[-1].find("GET /products/100999 ") > 0
    assert tab.run("document.querySelectorAll('.log-row').length") < 100
    tab.run(f"{BOX}.scrollTop = 0")
    tab.wait_for(f"{SHOWN}[0].includes('GET /products/1000 ')")

    search(tab, "products/55555 ")
    tab.wait_for(f"{COUNT} === '1 of 100,000 lines'")
    # A machine that does much else has more than one attempt.
    durations = tab.run("""[1, 2, 3, 4, 5].map(() => {
        const started = performance.now();
        logs.buffer.filter("a text that is in no line", []);
        return performance.now() - started;
    })""")
    assert min(durations) < 500


def test_search(exported: Exported, tab: Tab) -> None:
    """Lines with the text are shown, whatever the case, with it marked; its characters have no other meaning."""
    exported.open("logs", documents.exported(logs=lines_of("Error: a+b", "fine", "an error: A+B and a+b", "aab")))
    search(tab, "A+b")

    tab.wait_for(f"{COUNT} === '2 of 4 lines'")
    assert tab.run(SHOWN) == ["Error: a+b", "an error: A+B and a+b"]
    assert tab.run("[...document.querySelectorAll('mark')].map(e => e.textContent)") == ["a+b", "A+B", "a+b"]

    search(tab, "nothing like this")
    tab.wait_for(f"{COUNT} === '0 of 4 lines'")
    search(tab, "")
    tab.run("document.querySelector('input[type=search]').value = ''")
    tab.run("document.querySelector('input[type=search]').dispatchEvent(new Event('input'))")
    tab.wait_for(f"{COUNT} === '4 lines'")


def test_search_is_kept(exported: Exported, tab: Tab) -> None:
    """A search stays when another view was shown in between."""
    exported.open("logs", documents.exported(logs=lines_of("error", "fine")))
    search(tab, "error")
    tab.wait_for(f"{COUNT} === '1 of 2 lines'")
    for place in ("#/history", "#/logs"):
        tab.run(f"location.hash = {place!r}")
        tab.wait_for(f"document.querySelector('nav [aria-current=page]').getAttribute('href') === {place!r}")

    tab.wait_for(f"{COUNT} === '1 of 2 lines'")
    assert tab.run("document.querySelector('input[type=search]').value") == "error"


def test_services(exported: Exported, tab: Tab) -> None:
    """A link shows the lines of one service, and the list of services adds another."""
    exported.open("logs?service=db")
    tab.wait_for(f"{COUNT} === '75 of 300 lines'")
    assert tab.run("document.querySelector('h1').innerText") == "Logs of db"
    tab.run("document.querySelector('.picker summary').focus()")
    tab.press("Enter", 13, "\r")
    tab.run("document.querySelector('.picker [data-key=web] input').focus()")
    tab.press(" ", 32, " ")

    tab.wait_for(f"{COUNT} === '150 of 300 lines'")
    assert tab.run("location.hash") == "#/logs?service=db&service=web"
    assert tab.run("document.querySelector('.picker').open")
    tab.press("Escape", 27)
    assert not tab.run("document.querySelector('.picker').open")


def test_a_line_as_a_whole(exported: Exported, tab: Tab) -> None:
    """The arrow keys select a line, which is then shown whole; Escape ends that."""
    exported.open("logs", documents.exported(logs=lines_of("first", "long " * 3000, "last")))
    tab.wait_for(f"{SHOWN}.length === 3")
    assert "select the line to see them" in tab.run(SHOWN)[1]
    tab.run(f"{BOX}.focus()")
    for _ in range(2):
        tab.press("ArrowUp", 38)

    assert tab.run("document.querySelector('.log-whole pre').textContent") == "long " * 3000
    tab.wait_for(f"document.querySelector('[aria-selected=true]')?.id === {BOX}.getAttribute('aria-activedescendant')")
    tab.press("Escape", 27)
    assert tab.run("document.querySelector('.log-whole').hidden")


def test_times(exported: Exported, tab: Tab) -> None:
    """Times are shown on a wide screen, and can be switched off."""
    exported.open("logs")
    tab.wait_for("document.querySelectorAll('.log-time').length > 0")
    tab.run("document.querySelector('.log-tools > [data-key=Times] input').click()")

    tab.wait_for("document.querySelectorAll('.log-time').length === 0")


def test_follow(live: LivePage, tab: Tab) -> None:
    """New lines stay in sight until one scrolls up; then the lines in sight stay."""
    live.fake.log += [line(number) for number in range(400)]
    live.open("logs")
    tab.wait_for(f"{SHOWN}.at(-1) === 'line 399'")
    live.fake.log += [line(number) for number in range(400, 600)]
    tab.wait_for(f"{SHOWN}.at(-1) === 'line 599'")
    assert tab.run(IS_AT_END)

    tab.run(f"{BOX}.scrollTop -= 2000")
    tab.wait_for(f"!{FOLLOW}.checked")
    top = tab.run(f"{BOX}.scrollTop")
    live.fake.log += [line(number) for number in range(600, 800)]
    tab.wait_for(f"{COUNT} === '800 lines'")
    assert tab.run(f"{BOX}.scrollTop") == top

    tab.run(f"{FOLLOW}.click()")
    tab.wait_for(f"{SHOWN}.at(-1) === 'line 799'")
    tab.wait_for(IS_AT_END)


def test_dropped_lines(live: LivePage, tab: Tab) -> None:
    """While the oldest lines are dropped, the lines in sight stay where they are."""
    live.fake.log += [line(number) for number in range(500)]
    live.open("logs")
    tab.wait_for(f"{COUNT} === '500 lines'")
    tab.run("LogBuffer.MAX_LINES = 500")
    tab.run(f"{BOX}.scrollTop -= 2000")
    tab.wait_for(f"!{FOLLOW}.checked")
    # Between scrolling and drawing there is no row.
    top = "document.elementFromPoint(640, 400).closest('.log-row')?.innerText"
    before = tab.wait_for(top)
    live.fake.log += [line(number) for number in range(500, 520)]

    tab.wait_for(f"{SHOWN}.length > 0 && logs.buffer.lines.at(-1).text === 'line 519'")
    tab.wait_for(f"{top} === {before!r}")
    assert tab.run(COUNT) == "500 lines"


def test_dropped_long_lines(live: LivePage, tab: Tab) -> None:
    """The oldest lines are also dropped for their length: 100,000 long ones would fill the memory of the tab."""
    live.fake.log += [line(number, text=f"{number:03} {'x' * 996}") for number in range(100)]
    live.open("logs")
    tab.wait_for(f"{COUNT} === '100 lines'")
    tab.run("LogBuffer.MAX_CHARS = 50000")
    live.fake.log += [line(100, text="the last")]

    tab.wait_for(f"{COUNT} === '50 lines'")
    tab.wait_for(f"{SHOWN}.at(-1) === 'the last'")


def test_from_the_start(live: LivePage, tab: Tab) -> None:
    """At first the last lines are read; a button reads all, from the first on."""
    live.fake.log += [line(number) for number in range(3000)]
    live.open("logs")
    tab.wait_for(f"{COUNT} === '500 lines'")
    live.press("From the start")

    tab.wait_for(f"{COUNT} === '3,000 lines'")
    tab.wait_for(f"{SHOWN}[0] === 'line 0'")
    assert [reader.request.tail for reader in live.fake.readers] == [500, None]


def test_from_the_start_at_once(live: LivePage, tab: Tab) -> None:
    """The first line is shown, also where all lines come before the list is drawn."""
    live.fake.log += [line(number) for number in range(3000)]
    live.open("logs")
    tab.wait_for(f"{SHOWN}.at(-1) === 'line 2999'")
    tab.run("logs.list.draw = () => {}")
    live.press("From the start")
    tab.wait_for("logs.buffer.lines.length === 3000")
    tab.run("delete logs.list.draw; logs.list.draw()")

    tab.wait_for(f"{SHOWN}[0] === 'line 0'")
    assert not tab.run(f"{FOLLOW}.checked")


def test_from_the_start_at_the_second_try(live: LivePage, tab: Tab) -> None:
    """All lines are read also where the first request fails."""
    live.fake.log += [line(number) for number in range(3000)]
    live.open("logs")
    tab.wait_for(f"{COUNT} === '500 lines'")
    tab.run("""(fetch => {
        window.fetch = (...request) => {
            window.fetch = fetch;
            return Promise.reject(new TypeError("no network"));
        };
    })(fetch)""")
    live.press("From the start")

    tab.wait_for(f"{COUNT} === '3,000 lines'")


def test_logs_that_cannot_be_read(live: LivePage, tab: Tab) -> None:
    """Why they can't is shown once, and they are asked for less and less often."""
    live.fake.log_failure = "you may not read logs"
    live.open("logs")
    asked = "performance.getEntriesByType('resource').filter(entry => entry.name.includes('/logs?'))"
    tab.wait_for(f"{asked}.length === 4")

    assert tab.run(SHOWN) == ["you may not read logs"]
    assert tab.run(f"(([,, third, fourth]) => fourth.startTime - third.responseEnd)({asked})") > 1900


def test_services_of_a_stream(live: LivePage, tab: Tab) -> None:
    """Only the lines of the chosen services are read, and the stream before is closed."""
    live.fake.log += [line(1, "web"), line(2, "db"), "db has no pods: it is asleep"]
    live.open("logs")
    tab.wait_for(f"{SHOWN}.length === 3")
    tab.run("location.hash = '#/logs?service=db'")

    tab.wait_for(f"{SHOWN}.length === 2")
    assert tab.run(SHOWN) == ["line 2", "db has no pods: it is asleep"]
    assert live.fake.readers[-1].request.services == ("db",)
    tab.run("location.hash = '#/history'")
    tab.wait_for("document.querySelector('h1').innerText === 'History'")
    assert all(reader.stopped.wait(10) for reader in live.fake.readers)
