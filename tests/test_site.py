"""The site of the documentation, as `make site` builds it: links, and what a reader sees in a real browser.

Without a browser, which `make extras` installs, the tests that need one are skipped.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

from tests.conftest import ROOT
from tests.devtools import Tab, open_tab_or_skip

SIDEBAR: dict[str, list[str]] = tomllib.loads((ROOT / "docs" / "site" / "sidebar.toml").read_text())
PAGES = ["README.html", *(page.removesuffix(".md") + ".html" for pages in SIDEBAR.values() for page in pages)]
#: A narrow phone, and a small laptop.
WIDTHS = [360, 1280]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all processes of this run."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "site"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build_site(folder)
    return folder


def build_site(folder: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    args = ["make", "--silent", "site", f"SITE={folder}"]
    done = subprocess.run(args, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.fail(done.stdout + done.stderr)


# links ----------------------------------------------------------------------------------------------------------------


@dataclass
class Page(HTMLParser):
    """A page's links, the places that links can lead to, and how it describes itself."""

    text: str
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    """What is loaded with the page: images, styles and scripts."""
    anchors: set[str] = field(default_factory=set)
    title: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.loaded += [values[name] for name in ("src", "href") if name in values and tag not in ("a", "use")]
        if values.get("name") == "description":
            self.description = values.get("content", "")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "title":
            self.title = self.title or data.strip()


def read_pages(folder: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}


def find_dead_links(folder: Path) -> list[str]:
    """Find links within a site that lead to no file, or to no place in it."""
    pages = read_pages(folder)
    dead = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            if "://" in link:
                continue
            target, anchor = urldefrag(unquote(link).partition("?")[0] if "#" not in link else unquote(link))
            file = (path.parent / target).resolve() if target else path
            if not file.is_file() or (anchor and anchor not in pages[file].anchors):
                dead.append(f"{path.relative_to(folder.resolve())}: {link}")
    return dead


def test_links(site: Path) -> None:
    """Each link within the site leads to a file that is there, and to a place on its page."""
    assert find_dead_links(site) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    """A link to a missing file or place is found, and no other."""
    (tmp_path / "a.html").write_text(
        "<h1 id=top></h1><a href='b.html#top'>b</a><a href='#top'>a</a><a href='c.html'>c</a>"
    )
    (tmp_path / "b.html").write_text("<a href='a.html'>a</a><img src='c.png'>")

    assert find_dead_links(tmp_path) == ["a.html: b.html#top", "a.html: c.html", "b.html: c.png"]


def test_every_page_is_built(site: Path) -> None:
    """The site has a page for each line of the sidebar, the front page, which is its index too, and the search."""
    built = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))

    assert built == sorted([*PAGES, "index.html", "search.html"])


def test_titles_and_descriptions(site: Path) -> None:
    """Each page has a title and a description of its own."""
    pages = [Page((site / page).read_text()) for page in PAGES]

    assert all(page.title.endswith("platform") and page.description for page in pages)
    assert len({page.title for page in pages}) == len({page.description for page in pages}) == len(PAGES)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Images, styles, scripts and fonts are the site's own."""
    loaded = {link for page in read_pages(site).values() for link in page.loaded}
    styles = [path.name for path in site.rglob("*.css") if "url(http" in path.read_text().replace('"', "")]

    assert loaded
    assert [link for link in loaded if "://" in link] == styles == []


def test_recordings(site: Path) -> None:
    """Each recording is shown, and can be downloaded to be played."""
    recordings = sorted(path.stem for path in (ROOT / "docs").glob("*.cast"))

    assert recordings
    # The pages of the benchmarks have plots beside them.
    assert {path.stem for path in (site / "_images").glob("*.svg")} >= set(recordings)
    assert sorted(path.stem for path in (site / "_downloads").rglob("*.cast")) == recordings


# in a browser ---------------------------------------------------------------------------------------------------------


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing of requests."""


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    handler = functools.partial(_Handler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with open_tab_or_skip(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture
def tab(browser: Tab, served: str) -> Iterator[Tab]:
    """A tab, in which no page asks for anything elsewhere or complains."""
    browser.requests.clear()
    browser.errors.clear()
    browser.call("Emulation.setEmulatedMedia", features=[])
    yield browser
    assert [url for url in browser.requests if not url.startswith((served, "file:", "data:"))] == []
    assert browser.errors == []


#: Where the page itself scrolls sideways, or a part of it that is not there to be scrolled.
OVERFLOW = """
[...document.querySelectorAll("html, body *")].filter(e =>
    e.scrollWidth > e.clientWidth + 1
    && (e === document.documentElement || /auto|scroll/.test(getComputedStyle(e).overflowX))
    && !e.matches("pre, .highlight, .table-wrapper, .recording")
).map(e => `${e.localName}.${e.className}`)
"""


def test_pages_fit(tab: Tab, served: str) -> None:
    """No page scrolls sideways: tables, code and recordings do by themselves."""
    wide = []
    for page in [*PAGES, "search.html"]:
        tab.open(f"{served}/{page}")
        for width in WIDTHS:
            tab.resize(width)
            wide += [f"{page}, {width}: {element}" for element in tab.run(OVERFLOW)]

    assert wide == []


def test_overflow_is_noticed(tab: Tab, served: str) -> None:
    """A paragraph that is wider than the screen is found."""
    tab.resize(360)
    tab.open(f"{served}/index.html")
    tab.run("document.querySelector('article p').style.width = '400px'")

    assert tab.run(OVERFLOW) == ["div.content"]


IS_SIDEBAR_SHOWN = """
(sidebar => sidebar.getBoundingClientRect().left === 0 && getComputedStyle(sidebar).visibility === "visible")(
    document.querySelector(".sidebar-drawer"))
"""
CAPTIONS = "[...document.querySelectorAll('.sidebar-tree .caption')].map(p => p.textContent)"
SIDEBAR_LINKS = "[...document.querySelectorAll('.sidebar-tree a')].map(a => a.href)"


def test_sidebar_on_a_wide_screen(tab: Tab, served: str) -> None:
    """The sidebar is there, with the pages of each task."""
    tab.resize(1280)
    tab.open(f"{served}/index.html")

    assert tab.run(IS_SIDEBAR_SHOWN)
    assert tab.run(CAPTIONS) == [*SIDEBAR]
    assert tab.run(SIDEBAR_LINKS) == [f"{served}/{page}" for page in PAGES[1:]]


def test_sidebar_on_a_narrow_screen(tab: Tab, served: str) -> None:
    """The keyboard opens the sidebar, and a link of it leads to its page; closed, it accepts no focus."""
    tab.resize(360)
    tab.open(f"{served}/index.html")
    assert not tab.run(IS_SIDEBAR_SHOWN)

    tab.press("Tab", 9)
    tab.press(" ", 32, " ")
    tab.wait_for(IS_SIDEBAR_SHOWN)

    tab.run("document.querySelector('.sidebar-tree a').focus()")
    tab.press("Enter", 13, "\r")
    tab.wait_for(f"location.href === '{served}/{PAGES[1]}' && document.readyState === 'complete'")
    assert not tab.run(IS_SIDEBAR_SHOWN)
    tab.run("document.querySelector('.sidebar-tree a').focus()")
    assert tab.run("document.activeElement === document.body")


@pytest.mark.parametrize(("width", "scheme"), [(360, "http"), (1280, "http"), (1280, "file")])
def test_search(width: int, scheme: str, tab: Tab, served: str, site: Path) -> None:
    """A search for a word finds its page, also where the site is opened as files."""
    base = served if scheme == "http" else site.as_uri()
    tab.resize(width)
    tab.open(f"{base}/docs/tutorial.html")
    if not tab.run(IS_SIDEBAR_SHOWN):
        tab.run("document.querySelector('.nav-overlay-icon').click()")
        tab.wait_for(IS_SIDEBAR_SHOWN)
    tab.run("document.querySelector('.sidebar-search').focus()")
    tab.call("Input.insertText", text="kompose")
    tab.press("Enter", 13, "\r")

    tab.wait_for("document.querySelector('.search-summary')?.innerText.includes('finished')")
    found = tab.wait_for("[...document.querySelectorAll('ul.search li a')].map(a => a.href.split(/[?#]/)[0])")
    assert f"{base}/docs/from-kompose.html" in found
    assert tab.run(OVERFLOW) == []


def test_dark_and_light(tab: Tab, served: str) -> None:
    """The colors are those that the system asks for, until the reader chooses others."""
    tab.resize(1280)
    colors = []
    for scheme in ("light", "dark"):
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        tab.open(f"{served}/index.html")
        colors.append(tab.run("getComputedStyle(document.body).backgroundColor"))
    tab.run("document.querySelector('.theme-toggle-content button').click()")
    colors.append(tab.run("getComputedStyle(document.body).backgroundColor"))

    assert colors[0] != colors[1]
    assert colors[2] == colors[0]
