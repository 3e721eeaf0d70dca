"""The page of a whole cluster: the list of its environments, and each of them at an address of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from composeplat.ui.site import Site
from composeplat.ui.topics import Publish
from tests.devtools import Tab
from tests.ui import documents
from tests.ui.axe import violations
from tests.ui.conftest import MAIN, LivePage
from tests.ui.live import FakeEnvironment
from tests.ui.served import serving
from tests.ui.test_accessibility import needs_npm

LISTED: list[dict[str, Any]] = [
    {"namespace": "shop-dev", "environment": "shop", "services": {"ready": 5, "failing": 1}},
    {"namespace": "blog", "environment": "blog", "services": {"asleep": 2}},
]


def publish_list(publish: Publish, ended: threading.Event) -> None:
    publish("environments", LISTED)
    ended.wait()


@pytest.fixture
def cluster(tab: Tab) -> Iterator[LivePage]:
    """Two environments without a definition: the first has a service that fails, the second has none."""
    fake = FakeEnvironment({"status": documents.status(), "events": documents.events()})
    blog = FakeEnvironment({"status": documents.status([documents.service_row("blog")])})
    environments = {
        ("shop-dev", "shop"): fake.environment(read_only=True),
        ("blog", "blog"): replace(blog.environment(read_only=True), namespace="blog", name="blog"),
    }
    listed = [{**row, "has_definition": False} for row in LISTED]
    site = Site(
        page=lambda: documents.page(environments=listed),
        find=lambda *place: environments.get(place),
        sources={"environments": publish_list},
    )
    with serving(site) as client:
        yield LivePage(tab, fake, client)
        tab.open("about:blank")


@needs_npm
def test_list(cluster: LivePage, tab: Tab) -> None:
    """The first view lists the environments with their services by state, and links to each."""
    cluster.open()
    tab.wait_for(f"{MAIN}.includes('1 failing')")

    assert tab.run("[...document.querySelectorAll('tbody a')].map(a => a.getAttribute('href'))") == [
        "#/e/shop-dev/shop/",
        "#/e/blog/blog/",
    ]
    assert violations(tab) == []


def test_environment(cluster: LivePage, tab: Tab) -> None:
    """An environment has its views, but those of a definition; their addresses name it, and a link leads back."""
    cluster.open()
    tab.wait_for("document.querySelector('tbody a') !== null")
    tab.run("document.querySelector('tbody a').click()")
    tab.wait_for(f"{MAIN}.includes('its container exits')")
    assert tab.run("[...document.querySelectorAll('.views a')].map(a => a.getAttribute('href'))") == [
        "#/e/shop-dev/shop/",
        "#/e/shop-dev/shop/logs",
        "#/e/shop-dev/shop/history",
        "#/e/shop-dev/shop/events",
    ]
    tab.run("document.querySelector('.graph a, tbody a').click()")
    tab.wait_for("document.querySelector('h1').innerText === 'worker'")
    assert tab.run("location.hash") == "#/e/shop-dev/shop/service/worker"

    tab.run("document.querySelector('.crumb').click()")
    tab.wait_for(f"{MAIN}.includes('blog')")


def test_failing_services_of_another_environment(cluster: LivePage, tab: Tab) -> None:
    """That a service fails is read out, and not that it no longer does where another environment is shown."""
    status = "document.querySelector('[role=status]').innerText"
    cluster.open("e/shop-dev/shop/")
    tab.wait_for(f"{status} === 'Failing: worker'")
    # Changes are read out at most each 10 s.
    tab.run("(now => { Date.now = () => now() + 60000; })(Date.now)")
    tab.run("location.hash = '#/e/blog/blog/'")
    tab.wait_for("document.querySelector('tbody tr[data-key=blog]') !== null")

    assert tab.run(status) == "Failing: worker"


def test_an_environment_that_is_gone(cluster: LivePage, tab: Tab) -> None:
    """The page says that there is no such environment."""
    cluster.open()
    tab.run("location.hash = '#/e/gone/gone/'")

    tab.wait_for("document.getElementById('header').innerText.includes('there is no such environment')")
    tab.open("about:blank")
    tab.errors.clear()
