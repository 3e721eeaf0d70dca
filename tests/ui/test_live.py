"""The page in a real browser, served by the real server, with documents that change while it shows them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from tests.devtools import Tab
from tests.ui import documents
from tests.ui.axe import violations
from tests.ui.conftest import MAIN, LivePage, live_page
from tests.ui.live import FakeEnvironment
from tests.ui.served import serving, site_of
from tests.ui.test_accessibility import needs_npm

CONNECTION = "document.querySelector('.connection').innerText"


# signing in -----------------------------------------------------------------------------------------------------------


def enter_code(tab: Tab, code: str) -> None:
    tab.call("Input.insertText", text=code)
    tab.press("Enter", 13, "\r")


def test_signing_in(live: LivePage, tab: Tab) -> None:
    """Without a code the page asks for it; a wrong one is refused, the right one shows the environment."""
    tab.open(f"{live.client.url}/#/history")
    tab.wait_for("document.activeElement.id === 'code'")
    enter_code(tab, "wrong")
    tab.wait_for(f"{MAIN}.includes('This code is not right')")
    assert tab.run("document.getElementById('code').value") == "wrong"

    tab.run("document.getElementById('code').value = ''")
    enter_code(tab, live.client.gate.token)

    tab.wait_for(f"{MAIN}.includes('ann@laptop')")
    assert live.client.gate.token not in tab.run("location.href")
    assert tab.run("document.cookie + JSON.stringify(localStorage)") == "{}"
    tab.errors.clear()


def test_a_code_in_other_letters(live: LivePage, tab: Tab) -> None:
    """A code that no header can have is refused like every wrong one."""
    tab.open(live.client.url)
    tab.wait_for("document.activeElement.id === 'code'")
    enter_code(tab, "ключ…")

    tab.wait_for(f"{MAIN}.includes('This code is not right')")
    tab.errors.clear()


def test_signing_in_without_a_server(tab: Tab) -> None:
    """The form says that there is no answer, and keeps the code that is typed."""
    with live_page_that_ends(tab) as live:
        tab.open(live.client.url)
        tab.wait_for("document.activeElement.id === 'code'")
    enter_code(tab, "a code")

    tab.wait_for(f'{MAIN}.includes("The page can\'t be read: ")')
    assert tab.run("document.activeElement.value") == "a code"
    tab.open("about:blank")
    tab.errors.clear()


def test_signing_in_at_the_second_try(live: LivePage, tab: Tab) -> None:
    """The retry that waits after a failure does not read the page again once somebody has signed in."""
    tab.open(live.client.url)
    tab.wait_for("document.activeElement.id === 'code'")
    tab.run("""(fetch => {
        window.fetch = (...request) => {
            window.fetch = fetch;
            return Promise.reject(new TypeError("no network"));
        };
    })(fetch)""")
    enter_code(tab, live.client.gate.token)
    tab.wait_for(f"{MAIN}.includes('no network')")
    tab.press("Enter", 13, "\r")
    tab.wait_for(f"{MAIN}.includes('worker')")
    time.sleep(2.5)

    tab.run("0")
    assert len([url for url in tab.requests if url.endswith("/shop/stream")]) == 1
    tab.errors.clear()


def test_a_server_of_another_run(live: LivePage, tab: Tab) -> None:
    """A page whose code is that of an earlier run asks for the new one, and then continues where it was."""
    live.open("logs")
    live.fake.log.append(("2026-11-25T09:30:00Z", "web", "web-1", "a line", False, ""))
    tab.run("sessionStorage.setItem('token', 'earlier')")
    tab.open("about:blank")
    tab.open(f"{live.client.url}/#/logs")
    tab.wait_for(f"{MAIN}.includes('of an earlier run')")
    tab.run(f"document.getElementById('code').value = '{live.client.gate.token}'")
    live.press("Sign in")

    tab.wait_for(f"{MAIN}.includes('a line')")
    tab.errors.clear()


@needs_npm
@contextlib.contextmanager
def beside(tab: Tab, url: str) -> Iterator[None]:
    """Let a tab be another one, which has no code of its own; the first one stays open."""
    first, tab.session = tab.session, ""
    target = tab.call("Target.createTarget", url="about:blank")["targetId"]
    try:
        tab.session = tab.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab.call("Page.enable")
        tab.open(url)
        yield
    finally:
        tab.session = ""
        tab.call("Target.closeTarget", targetId=target)
        tab.session = first


def test_a_link_in_another_tab(live: LivePage, tab: Tab) -> None:
    """A tab gets the code from one of the same server that is signed in, and shows the place of its address."""
    live.open()
    with beside(tab, f"{live.client.url}/#/service/worker"):
        tab.wait_for(f"{MAIN}.startsWith('worker')")
        assert tab.run("sessionStorage.getItem('token')") == live.client.gate.token


def test_signing_in_once_for_all_tabs(live: LivePage, tab: Tab) -> None:
    """Tabs that wait for a code get the one that the server has accepted in another tab, and none that is wrong."""
    tab.open(live.client.url)
    tab.wait_for("document.getElementById('code') !== null")
    tab.errors.clear()
    with beside(tab, f"{live.client.url}/#/history"):
        enter = "document.getElementById('code').value = {!r}; document.querySelector('form button').click()"
        tab.wait_for("document.getElementById('code') !== null")
        tab.run(enter.format("wrong"))
        tab.wait_for("document.getElementById('wrong-code') !== null")
        tab.run(enter.format(live.client.gate.token))
        tab.wait_for("document.querySelector('nav') !== null")
    tab.wait_for("document.querySelector('nav') !== null")


def test_a_stranger_gets_no_code(live: LivePage, tab: Tab) -> None:
    """A page of another port of this machine asks for the code in vain."""
    live.open()
    with serving(site_of(live.fake.environment())) as other, beside(tab, other.url):
        tab.wait_for("document.getElementById('code') !== null")
        tab.run("new BroadcastChannel('code').postMessage({isAsking: true})")
        time.sleep(0.5)
        assert tab.run("sessionStorage.getItem('token')") is None
        assert tab.run("document.getElementById('code') !== null")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe(live: LivePage, tab: Tab, scheme: str) -> None:
    """Axe finds nothing in what only a live page has: signing in, buttons, a question."""
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.open(f"{live.client.url}/")
    tab.wait_for("document.getElementById('code') !== null")
    assert violations(tab) == []
    tab.errors.clear()
    for route in ("", "service/web", "logs", "changes"):
        live.open(route)
        tab.wait_for("document.querySelector('#header button') !== null")
        assert violations(tab) == []
    live.press("Restart…")
    assert violations(tab) == []


# documents that change ------------------------------------------------------------------------------------------------


def test_a_change_is_shown(live: LivePage, tab: Tab) -> None:
    """A service that fails is shown in the table, the graph and the count, and read out; the focus stays."""
    live.open()
    tab.wait_for("document.querySelector('tbody tr[data-key=web]') !== null")
    tab.run("document.querySelector('tbody tr[data-key=web] a').focus()")
    live.fake.change("web", state="failing", ready=0, problem="its image can't be pulled")

    tab.wait_for(f'{MAIN}.includes("its image can\'t be pulled")')
    assert tab.run("document.querySelector('tr[data-key=web] .state').innerText") == "failing"
    assert tab.run("document.querySelector('.graph [data-key=\"service/web\"]').classList.contains('bad')")
    assert tab.run("document.querySelector('.badge').innerText").startswith("2")
    assert tab.run("document.activeElement.closest('tr').dataset.key") == "web"


def test_only_changed_elements_are_written(live: LivePage, tab: Tab) -> None:
    """An update leaves every element that did not change: nothing else would keep a selection or a scrolled place."""
    live.open()
    tab.wait_for("document.querySelector('tbody tr[data-key=web]') !== null")
    tab.run("""
        var written = 0;
        new MutationObserver(found => { written += found.length; }).observe(
            document.getElementById("main"), {subtree: true, childList: true, attributes: true, characterData: true}); 0
    """)
    live.fake.change("web", restarts=7)

    tab.wait_for("document.querySelector('tr[data-key=web]').innerText.includes('7')")
    assert tab.run("written") <= 4


def test_the_focus_when_something_above_goes(live: LivePage, tab: Tab) -> None:
    """What is below a part that goes stays, with its focus and what is selected in it."""
    live.open("service/worker")
    tab.run("document.querySelector('.facts .place').focus()")
    tab.run("getSelection().selectAllChildren(document.querySelector('.facts dd'))")
    selected = tab.run("getSelection().toString()")
    live.fake.change("worker", problem="", state="ready")

    tab.wait_for("document.querySelector('#problem') === null")
    assert tab.run("document.activeElement.className") == "place"
    assert selected
    assert tab.run("getSelection().toString()") == selected


def test_an_operation(live: LivePage, tab: Tab) -> None:
    """A deploy from a terminal is shown with the phase of each service, until it ends.

    The buttons do nothing meanwhile, and keep the focus.
    """
    live.open()
    tab.wait_for("document.querySelector('#header button') !== null")
    tab.run("document.querySelector('#header button').focus()")
    live.fake.documents["operation"] = documents.operation()
    tab.wait_for(f"{MAIN}.includes('Deploy by ann')")
    assert "1 of 2 pods are ready" in tab.run("document.querySelector('.phases').innerText")
    assert tab.run("[...document.querySelectorAll('#header button')].every(b => b.ariaDisabled === 'true')")
    assert tab.run("document.activeElement === document.querySelector('#header button')")
    tab.run("document.activeElement.click()")
    assert tab.run("document.querySelector('dialog')") is None

    live.fake.documents["operation"] = documents.operation("failed") | {"ended": "2000-01-01T00:00:00Z"}
    tab.wait_for(f"!{MAIN}.includes('Deploy by ann')")


def test_a_problem_of_the_cluster(live: LivePage, tab: Tab) -> None:
    """What keeps the page from reading is shown above what was read last, and goes when it does."""
    live.fake.failure = "the cluster does not answer"
    live.open()
    tab.wait_for("document.getElementById('header').innerText.includes('the cluster does not answer')")

    live.fake.failure = ""
    tab.wait_for("!document.getElementById('header').innerText.includes('the cluster does not answer')")
    tab.wait_for(f"{MAIN}.includes('worker')")


# the connection -------------------------------------------------------------------------------------------------------


def test_hidden(live: LivePage, tab: Tab) -> None:
    """While nobody looks nothing is read; afterwards the page has the newest documents."""
    live.open("logs")
    live.fake.log.append(("2026-11-25T09:30:00.1Z", "web", "web-1", "line 1", False, ""))
    tab.wait_for(f"{MAIN}.includes('line 1')")
    _hide(tab, is_hidden=True)
    tab.wait_for(f"{CONNECTION}.includes('Paused')")
    _wait_until(lambda: live.fake.reading == 0 and live.fake.readers[-1].stopped.is_set())

    live.fake.log.append(("2026-11-25T09:30:00.2Z", "web", "web-1", "line 2", False, ""))
    _hide(tab, is_hidden=False)

    tab.wait_for(f"{MAIN}.includes('line 2')")
    tab.wait_for(f"{CONNECTION}.includes('Live')")
    # The lines before are asked for again, and shown once.
    assert live.fake.readers[-1].request.tail == 2000
    assert tab.run("[...document.querySelectorAll('.log-text')].map(e => e.textContent)") == ["line 1", "line 2"]


def test_changes_without_a_frame(live: LivePage, tab: Tab) -> None:
    """A hidden tab has no frames: it is drawn once when it is shown, however often its timers ran meanwhile."""
    live.open()
    tab.run("var frames = 0; window.requestAnimationFrame = () => { frames += 1; }; store.changed()")
    tab.wait_for("frames === 1")
    tab.run("""(setTimeout => {
        window.setTimeout = callback => callback();
        for (let hour = 0; hour < 5; hour += 1) store.changed();
        window.setTimeout = setTimeout;
    })(setTimeout)""")

    assert tab.run("frames") == 1


def test_the_containers_of_a_pod(live: LivePage, tab: Tab) -> None:
    """A line of a hook or a sidecar has the container's name; each container is continued by its own last line."""
    live.open("logs")
    own = ("2026-11-25T09:30:00.3Z", "web", "web-1", "served", False, "")
    live.fake.log += [("2026-11-25T09:30:00.1Z", "web", "web-1", "prepared", False, "pre-start-0"), own]
    tab.wait_for(f"{MAIN}.includes('web-1/pre-start-0') && {MAIN}.includes('served')")
    _hide(tab, is_hidden=True)
    tab.wait_for(f"{CONNECTION}.includes('Paused')")
    live.fake.log.insert(1, ("2026-11-25T09:30:00.2Z", "web", "web-1", "done", False, "pre-start-0"))
    _hide(tab, is_hidden=False)

    tab.wait_for(f"{MAIN}.includes('done')")
    assert tab.run("[...document.querySelectorAll('.log-text')].map(e => e.textContent)") == [
        "prepared",
        "served",
        "done",
    ]


def test_lines_that_may_be_missing(live: LivePage, tab: Tab) -> None:
    """After a reconnection, a pod whose known lines did not come again has a note at its first new line."""
    live.open("logs")
    live.fake.log.append(("2026-11-25T09:30:00.1Z", "web", "web-1", "line 1", False, ""))
    tab.wait_for(f"{MAIN}.includes('line 1')")
    _hide(tab, is_hidden=True)
    tab.wait_for(f"{CONNECTION}.includes('Paused')")
    live.fake.log[:] = [("2026-11-25T09:30:00.3Z", "web", "web-1", "line 3", False, "")]
    _hide(tab, is_hidden=False)

    tab.wait_for(f"{MAIN}.includes('line 3')")
    shown = tab.run("[...document.querySelectorAll('.log-text')].map(e => e.textContent)")
    assert shown == ["line 1", "lines of web-1 may be missing here", "line 3"]


def _hide(tab: Tab, *, is_hidden: bool) -> None:
    tab.run(f"""
        Object.defineProperty(document, "hidden", {{configurable: true, get: () => {str(is_hidden).lower()}}});
        document.dispatchEvent(new Event("visibilitychange"))
    """)


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_server_that_ends(tab: Tab) -> None:
    """The page says that it is not connected, and keeps what it showed."""
    with live_page_that_ends(tab) as live:
        live.open()
        tab.wait_for(f"{MAIN}.includes('worker')")

    tab.wait_for(f"{CONNECTION}.includes('trying again')")
    assert "worker" in tab.run(MAIN)
    assert tab.run("document.querySelector('[role=status]').innerText") == "Not connected, trying again."
    tab.open("about:blank")
    tab.errors.clear()


@contextlib.contextmanager
def live_page_that_ends(tab: Tab) -> Iterator[LivePage]:
    fake = FakeEnvironment()
    with serving(site_of(fake.environment())) as client:
        yield LivePage(tab, fake, client)


# actions --------------------------------------------------------------------------------------------------------------


def test_an_action_is_asked_for_again(live: LivePage, tab: Tab) -> None:
    """Cancel and Escape start nothing; the question names the services, the namespace and the cluster."""
    live.open("service/web")
    live.press("Restart web…")
    asked = tab.run("document.querySelector('dialog').innerText")
    assert "Restart web?" in asked
    assert "Namespace shop-dev, cluster staging" in asked
    live.press("Cancel")
    live.press("Restart web…")
    tab.press("Escape", 27)
    tab.wait_for("document.querySelector('dialog') === null")
    assert live.fake.commands == []


def test_a_question_by_keyboard(live: LivePage, tab: Tab) -> None:
    """A question holds the focus, Cancel first, and Escape gives it back to the button that asked."""
    live.open()
    tab.wait_for("document.querySelector('#header button:not([aria-disabled])') !== null")
    tab.run("document.querySelector('#header button').focus()")
    tab.press("Enter", 13, "\r")
    tab.wait_for("document.querySelector('dialog') !== null")
    reached = []
    for _ in range(2):
        reached.append(tab.run("document.activeElement.innerText"))
        tab.press("Tab", 9)
    assert reached == ["Cancel", "Restart"]
    assert not tab.run("document.getElementById('main').contains(document.activeElement)")
    tab.press("Escape", 27)

    tab.wait_for("document.querySelector('dialog') === null")
    assert tab.run("document.activeElement.innerText") == "Restart…"
    assert live.fake.commands == []


def test_back_from_a_question(live: LivePage, tab: Tab) -> None:
    """A question goes with the view that it was asked on; nothing is started."""
    live.open("events")
    tab.run("location.hash = '#/service/web'")
    live.press("Restart web…")
    tab.wait_for("document.querySelector('dialog') !== null")
    tab.run("history.back()")
    tab.wait_for(f"{MAIN}.startsWith('Events') && document.querySelector('dialog') === null")

    assert tab.run("document.activeElement.innerText") == "Events"
    assert live.fake.commands == []


@pytest.mark.parametrize("route", ["", "service/web", "logs", "changes"])
def test_keyboard(live: LivePage, tab: Tab, route: str) -> None:
    """The Tab key reaches every button of a live page."""
    live.open(route)
    tab.wait_for("document.querySelector('#header button') !== null")
    tab.run("var reached = new Set()")
    for _ in range(tab.run("document.querySelectorAll('a, button, input, summary, [tabindex]').length")):
        tab.press("Tab", 9)
        tab.run("reached.add(document.activeElement)")

    missed = (
        "[...document.querySelectorAll('button, input')].filter(e => e.checkVisibility() && !reached.has(e)).length"
    )
    assert tab.run(missed) == 0


@pytest.mark.parametrize(
    ("label", "about", "route", "command"),
    [
        ("Restart", " web", "service/web", ["restart", "web"]),
        ("Sleep", "", "", ["sleep"]),
        ("Wake", "", "service/web", ["wake"]),
    ],
)
def test_actions(live: LivePage, tab: Tab, label: str, about: str, route: str, command: list[str]) -> None:
    """A confirmed action runs for its services, and its failure is shown."""
    live.fake.command_error = "the cluster refuses it"
    live.open(route)
    live.press(f"{label}{about}…")
    live.press(label)

    tab.wait_for(f"{MAIN}.includes('the cluster refuses it')")
    assert live.fake.commands == [command]


def test_an_action_beside_other_windows(live: LivePage, tab: Tab) -> None:
    """Three windows with logs use all six connections of the browser: an action starts, and the logs continue."""
    live.fake.log.append(("2026-01-01T00:00:00Z", "web", "web-1", "the first line", False, ""))
    live.open()
    path = "connection.environmentPath(store.session.environment)"
    for topic in ("stream", "logs", "stream", "logs"):
        tab.run(f"void new connection.Stream({path} + '/{topic}', {{ document() {{}}, state() {{}} }})")
    _wait_until(lambda: len(live.fake.readers) == 2)
    tab.run("location.hash = '#/logs'")
    tab.wait_for(f"{MAIN}.includes('the first line')")

    tab.run("void actions.start('restart', {services: ['web']})")
    _wait_until(lambda: live.fake.commands == [["restart", "web"]])
    live.fake.log.append(("2026-01-01T00:00:01Z", "web", "web-1", "a later line", False, ""))
    tab.wait_for(f"{MAIN}.includes('a later line')")
    assert tab.run("document.querySelector('.log-count').innerText") == "2 lines"


def test_a_deploy(live: LivePage, tab: Tab) -> None:
    """A deploy is possible only from a preview that is shown, and is asked for with its changes."""
    live.fake.command_output = documents.preview()
    live.open("changes")
    assert "Deploy these changes…" not in tab.run(MAIN)
    live.press("Compare with the cluster")
    tab.wait_for(f"{MAIN}.includes('1 to create, 1 to update, 1 to replace')")
    live.press("Deploy these changes…")
    assert "1 to create, 1 to update, 1 to replace; 17 unchanged" in tab.run(
        "document.querySelector('dialog').innerText"
    )
    live.press("Deploy")

    tab.wait_for(f"{MAIN}.includes('The changes were deployed')")
    assert tab.run("document.querySelector('[role=status]').innerText") == "Deploy: done."
    _wait_until(lambda: live.fake.commands == [["preview"], ["deploy"]])


def test_a_refused_action(live: LivePage, tab: Tab) -> None:
    """The server's refusal is shown with its hint."""
    live.fake.command_output = documents.preview()
    live.open("changes")
    live.press("Compare with the cluster")
    live.press("Deploy these changes…")
    tab.run("actions.start('deploy', {services: [], preview_id: 'another'})")

    tab.wait_for("document.querySelector('dialog:last-of-type').innerText.includes('a deploy needs a preview')")
    assert "look at the changes first" in tab.run("document.querySelector('dialog:last-of-type').innerText")
    tab.errors.clear()


def test_read_only(tab: Tab) -> None:
    """A page that only shows offers no action."""
    with live_page(tab, read_only=True) as live:
        for route in ("", "service/web", "changes"):
            live.open(route)
            tab.wait_for(f"{MAIN}.length > 20")
            assert tab.run("document.querySelectorAll('button').length") == 0
        assert "read-only" in tab.run(CONNECTION)
