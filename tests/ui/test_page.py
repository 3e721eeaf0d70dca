"""The page in a real browser, opened as files: what each view shows."""

from __future__ import annotations

import json

import pytest

from composeplat.cli.ui_documents import definition_document
from composeplat.compose.load import load
from composeplat.compose.options import Request
from composeplat.plan import make_plan
from tests.conftest import Project
from tests.devtools import Tab
from tests.ui import documents
from tests.ui.conftest import MAIN, Exported

#: Every view, and a text that it shows.
ROUTES = {
    "": "its container exits with status 1 again and again",
    "service/worker": 'fatal: role "worker" does not exist',
    "service/report": "0 6 * * * (Europe/Berlin)",
    "logs": "GET /products/299",
    "changes": "spec.template.spec.containers[0].image",
    "history": "shop/web:1.8.1 → shop/web:1.8.2",
    "events": "Back-off restarting failed container",
    "file/compose.yaml?line=25": "registry.example.com/shop/worker:1.8.2",
    "variables": "secrets.env",
}


@pytest.mark.parametrize("route", ROUTES)
def test_views(exported: Exported, route: str) -> None:
    """Each view shows its documents, and asks for nothing but the page's own files."""
    exported.open(route)

    exported.tab.wait_for(f"{MAIN}.includes({ROUTES[route]!r})")
    assert [url for url in exported.tab.requests if not url.startswith((exported.folder.as_uri(), "about:"))] == []


def test_overview(exported: Exported, tab: Tab) -> None:
    """Problems come first, in the table too, with their place in the file."""
    exported.open()

    assert tab.run("document.querySelector('tbody th').innerText") == "worker"
    assert tab.run("document.querySelector('.problem .place').innerText") == "compose.yaml:25"
    assert tab.run("document.title") == "Overview - shop - platform"


def test_graph(exported: Exported, tab: Tab) -> None:
    """Each service is a link whose name has its state."""
    exported.open()

    tab.call("Accessibility.enable")
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    names = [node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == "link"]
    assert "worker, service, failing, 0 of 1, Deployment, registry.example.com/shop/worker:1.8.2" in names
    assert "web, service, ready, 2 of 2, Deployment, registry.example.com/shop/web:1.8.2" in names


def test_marks_in_the_graph(exported: Exported, tab: Tab, project: Project) -> None:
    """The mark of a state covers no part of the name of its service, however long that is."""
    names = ["a", "payments", "payments-of-customers-from-abroad"]
    folder = project({"compose.yaml": json.dumps({"services": {name: {"image": "x"} for name in names}})}).path
    loaded = load(Request(folder=folder, shell={}))
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    definition = definition_document(loaded, plan, cluster="", strict=False)
    rows = [documents.service_row(name, "failing") for name in names]

    exported.open(data=documents.exported(definition=definition, status=documents.status(rows)))

    covered = tab.run("""[...document.querySelectorAll(".node")].map((node) => {
        const [name, mark] = [".name", ".mark"].map((part) => node.querySelector(part).getBoundingClientRect());
        return mark.left < name.right && mark.top < name.bottom && name.left < mark.right && name.top < mark.bottom;
    })""")
    assert covered == [False] * len(names)


@pytest.mark.parametrize("route", ["", "service/worker"])
def test_excerpt(exported: Exported, tab: Tab, route: str) -> None:
    """The lines around the place of a problem are beside it, with its own marked."""
    exported.open(route)

    tab.wait_for("document.querySelector('.problem .excerpt') !== null")
    assert "image: registry.example.com/shop/worker" in tab.run("document.querySelector('.is-marked').innerText")
    numbers = tab.run("[...document.querySelectorAll('.problem .line-number')].map((cell) => cell.dataset.line)")
    assert numbers == ["23", "24", "25", "26", "27"]


def test_marked_line(exported: Exported, tab: Tab) -> None:
    """A place leads to its file, with the line marked, in sight, and its messages beside it."""
    exported.open()
    tab.run("document.querySelector('.problem .place').click()")

    tab.wait_for("document.querySelector('.line.is-marked') !== null")
    assert tab.run("document.querySelector('.line.is-marked').id") == "L25"
    assert tab.run(
        "(r => r.top >= 0 && r.bottom <= innerHeight)(document.getElementById('L25').getBoundingClientRect())"
    )
    shown = tab.run("document.querySelector('.line.is-marked + .line-messages').innerText")
    assert "worker: its container exits with status 1 again and again [crash-loop]" in shown


def test_no_actions(exported: Exported, tab: Tab) -> None:
    """An exported page starts nothing."""
    for route in ("", "service/web", "changes"):
        exported.open(route)
        assert tab.run("document.querySelectorAll('button').length") == 0


def test_documents_that_were_not_read(exported: Exported, tab: Tab) -> None:
    """A view says that its document was not read."""
    page = {"version": "", "read_only": True, "exported": True, "written": "", "notes": ["the cluster does not answer"]}
    listed = [{"namespace": "a", "environment": "b", "has_definition": True}]
    for route in ("", "service/web", "logs", "changes", "history", "events", "file", "variables"):
        exported.open(route, {"page": page | {"environments": listed}})
        assert "not read" in tab.run(MAIN)
        assert "the cluster does not answer" in tab.run("document.getElementById('header').innerText")


def test_a_definition_without_a_cluster(exported: Exported, tab: Tab) -> None:
    """Without a status, the services of the definition are listed with their places, and the graph has no states."""
    exported.open("", documents.exported(status=None, operation=None))

    assert tab.run("document.querySelectorAll('tbody tr').length") == 7
    assert "compose.yaml:24" in tab.run("document.querySelector('tr[data-key=worker]').innerText")
    assert tab.run("document.querySelectorAll('.graph .mark, .problem').length") == 0


def test_warnings(exported: Exported, tab: Tab) -> None:
    """Warnings about the definition are listed when they are asked for."""
    exported.open()
    assert "has no healthcheck" not in tab.run(MAIN)
    tab.run("document.querySelector('details summary').click()")

    assert "web has no healthcheck" in tab.run(MAIN)


def test_unknown_places(exported: Exported, tab: Tab) -> None:
    """An address without a view, or of a service or file that is gone, is explained."""
    for route, message in {
        "nothing": "The page has no such place",
        "service/gone": "There is no service gone",
        "file/gone.yaml": "The definition has no file gone.yaml",
        "service/%E0%A4": "There is no service %E0%A4",
    }.items():
        exported.open(route)
        assert message in tab.run(MAIN)


def open_scrolled(exported: Exported, tab: Tab) -> None:
    """Open a long overview, and scroll down."""
    exported.open(data=documents.large())
    tab.run("scrollTo(0, 900)")
    tab.wait_for("scrollY === 900")


def test_back_to_where_it_was_scrolled(exported: Exported, tab: Tab) -> None:
    """A link leads to the top of its view; "back" and "forward" lead to where the reader was."""
    open_scrolled(exported, tab)
    tab.run("document.querySelectorAll('tbody th a')[20].click()")
    tab.wait_for("location.hash.startsWith('#/service/') && document.querySelector('h1').innerText !== 'Overview'")
    assert tab.run("scrollY") == 0

    tab.run("history.back()")
    tab.wait_for("document.querySelector('h1').innerText === 'Overview' && scrollY === 900")
    tab.run("history.forward()")
    tab.wait_for("location.hash.startsWith('#/service/') && scrollY === 0")


def test_a_change_between_an_address_and_its_event(exported: Exported, tab: Tab) -> None:
    """A page that is drawn when the address has changed, but its event has not come, shows the place before."""
    open_scrolled(exported, tab)
    tab.run("history.pushState(null, '', document.querySelectorAll('tbody th a')[20].hash)")
    tab.run("document.title = ''")
    tab.run("store.set('status', store.documents.status)")
    tab.wait_for("document.title !== ''")
    assert tab.run("document.querySelector('h1').innerText") == "Overview"

    tab.run("dispatchEvent(new HashChangeEvent('hashchange'))")
    tab.wait_for("document.activeElement.innerText === 'service-001'")
    assert tab.run("scrollY") == 0
    tab.run("history.back()")
    tab.wait_for("document.querySelector('h1').innerText === 'Overview' && scrollY === 900")
