"""A tab of a real browser, and pages in it as files or served; skipped where `make extras` was not run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from composeplat.ui.export import write_page
from tests.devtools import Tab, open_tab_or_skip
from tests.ui import documents
from tests.ui.live import FakeEnvironment
from tests.ui.served import Client, serving, site_of

WIDTH = 1280
MAIN = "document.getElementById('main').innerText"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with open_tab_or_skip(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture
def tab(browser: Tab) -> Iterator[Tab]:
    """A tab of a wide, light screen, in which no page complains."""
    browser.open("about:blank")
    browser.requests.clear()
    browser.errors.clear()
    browser.resize(WIDTH)
    browser.call("Emulation.setEmulatedMedia", features=[])
    yield browser
    assert browser.errors == []


@dataclass
class Exported:
    """Exported pages, opened from their folder."""

    tab: Tab
    folder: Path

    def open(self, route: str = "", data: Mapping[str, object] | None = None) -> None:
        """Write a page, and open a place of it."""
        write_page(self.folder, documents.exported() if data is None else data)
        # Another fragment alone would not load the page again.
        self.tab.open("about:blank")
        self.tab.open(f"{(self.folder / 'index.html').as_uri()}#/{route}")
        self.tab.wait_for("document.querySelector('h1') !== null")


@pytest.fixture
def exported(tab: Tab, tmp_path: Path) -> Exported:
    return Exported(tab, tmp_path / "page")


@dataclass
class LivePage:
    tab: Tab
    fake: FakeEnvironment
    client: Client

    def open(self, route: str = "") -> None:
        """Open a place of the page, signed in, and wait until it shows all documents of its environment."""
        self.tab.open(self.client.url)
        self.tab.wait_for("document.getElementById('code') !== null || document.querySelector('nav') !== null")
        self.tab.run(f"sessionStorage.setItem('token', '{self.client.gate.token}')")
        self.tab.open("about:blank")
        # The first page had no code, which the browser reports.
        self.tab.errors.clear()
        self.tab.open(f"{self.client.url}/#/{route}")
        self.tab.wait_for("document.querySelector('.connection')?.innerText.includes('Live')")
        topics = [topic for topic in self.fake.documents if not (topic == "status" and self.fake.failure)]
        self.tab.wait_for(f"!store.session.environment || {topics}.every(topic => topic in store.documents)")
        self.tab.run("app.routeChanged(false)")

    def press(self, label: str) -> None:
        """Press a button by its label."""
        button = f"[...document.querySelectorAll('button')].findLast(b => b.innerText === {label!r} && !b.ariaDisabled)"
        self.tab.wait_for(f"{button} !== undefined")
        self.tab.run(f"{button}.click()")


@contextlib.contextmanager
def live_page(tab: Tab, *, read_only: bool = False) -> Iterator[LivePage]:
    fake = FakeEnvironment()
    with serving(site_of(fake.environment(read_only=read_only))) as client:
        yield LivePage(tab, fake, client)
        tab.open("about:blank")


@pytest.fixture
def live(tab: Tab) -> Iterator[LivePage]:
    with live_page(tab) as page:
        yield page
