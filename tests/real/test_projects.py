"""Each project goes the way of its user: deployed, used, killed, redeployed, asleep, destroyed, deployed again.

What was written must be there after each step.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from _pytest.mark import ParameterSet

from composeplat.local.cluster import LocalCluster
from tests.browser import Browser, find_browser
from tests.conftest import DOMAIN, ROOT
from tests.deploy.conftest import Environment, an_environment
from tests.real.conftest import HERE

#: The one that every run of the tests deploys.
QUICK = "shop"
#: The one with keys that only full mode honors, which `init` turns on.
FULL = "ledger"
_REAL = [pytest.mark.cluster, pytest.mark.real]


def cases() -> list[ParameterSet]:
    own = (QUICK, *(folder.name for folder in (HERE / "projects").iterdir()))
    corpus = (folder.name for folder in (HERE / "corpus").iterdir())
    return [
        *(pytest.param(name, marks=[pytest.mark.cluster] if name == QUICK else _REAL) for name in sorted(own)),
        *(pytest.param(name, marks=[*_REAL, pytest.mark.shared]) for name in sorted(corpus)),
    ]


_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Site:
    """A public address of the cluster, asked as a browser does: by name, with a certificate that must hold."""

    environment: Environment
    url: str

    def ask(self, path: str, body: str | None = None, kind: str = "text/plain") -> tuple[int, str]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        context = ssl.create_default_context(cafile=str(self.environment.cluster.layout.keys / "ca.crt"))
        plain = socket.create_connection(("127.0.0.1", parts.port or 443), timeout=20)
        with contextlib.closing(http.client.HTTPConnection(parts.netloc)) as connection, plain:
            connection.sock = context.wrap_socket(plain, server_hostname=parts.hostname)
            method = "GET" if body is None else "POST"
            connection.request(method, path, None if body is None else body.encode(), {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        return answer.status, text

    def until(self, path: str, is_right: Callable[[int, str], bool], body: str | None = None) -> str:
        """Ask again until the answer is right."""
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                status, text = self.ask(path, body)
            except OSError as error:
                status, text = 0, str(error)
            if is_right(status, text):
                return text
            assert time.monotonic() < deadline, f"{path}: {status} {text[:500]}"
            time.sleep(0.5)


class Items:
    """Projects that store a line by POST /items and give all by GET, maybe at another address."""

    def __init__(self, writer: Site, reader: Site) -> None:
        self._writer, self._reader = writer, reader
        self._items: list[str] = []

    def write(self, item: str) -> None:
        self._writer.until("/items", lambda status, _: status in (200, 202), item)
        self._items.append(item)

    def check(self) -> None:
        self._reader.until("/items", lambda status, text: status == 200 and set(self._items) <= set(text.split()))


class Shop:
    """The example of `make demo`: orders in PostgreSQL, visits in Redis, and the page that nginx serves."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._orders = 0
        self._visits = 0

    def write(self, item: str) -> None:
        answer = self.site.until("/api/orders/pear", lambda status, _: status == 200, item)
        self._orders += 1
        assert json.loads(answer) == {"product": "pear", "ordered": self._orders}

    def check(self) -> None:
        self.site.until("/", lambda status, text: status == 200 and "shop.js" in text)
        shop = json.loads(self.site.until("/api/shop", lambda status, _: status == 200))
        assert {"name": "pear", "ordered": self._orders} in shop["products"]
        assert shop["visits"] > self._visits
        self._visits = shop["visits"]


class Blog:
    """WordPress: installed by its own form, then its feed has the title."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._titles: list[str] = []

    def write(self, item: str) -> None:
        if self._titles:
            return
        self._site.until("/wp-admin/install.php", lambda status, text: status == 200 and "weblog_title" in text)
        form = {
            "weblog_title": item, "user_name": "author", "admin_password": "a-long-password-of-nobody",
            "admin_password2": "a-long-password-of-nobody", "admin_email": "author@example.com", "language": "",
        }  # fmt: skip
        status, text = self._site.ask(
            "/wp-admin/install.php?step=2", urlencode(form), "application/x-www-form-urlencoded"
        )
        assert status == 200, text[:1000]
        self._titles.append(item)

    def check(self) -> None:
        self._site.until(
            "/?feed=rss2", lambda status, text: status == 200 and all(title in text for title in self._titles)
        )


def user_of(environment: Environment, output: str) -> Items | Shop | Blog:
    """Give the user of the addresses that a deploy printed."""
    sites = [Site(environment, line) for line in output.splitlines() if line.startswith("https://")]
    if environment.name == QUICK:
        return Shop(sites[0])
    if environment.name == "blog":
        return Blog(sites[0])
    by_service = {site.url.removeprefix("https://").split("-")[0]: site for site in sites}
    return Items(by_service.get("vote", sites[0]), by_service.get("result", sites[0]))


def kill_all_pods(environment: Environment) -> None:
    """Kill the containers' first processes as a crash does, by deleting pods without grace."""
    with environment.api() as api:
        for pod in environment.pods():
            name = pod["metadata"]["name"]
            api.delete(f"/api/v1/namespaces/{environment.namespace}/pods/{name}?gracePeriodSeconds=0")


@contextlib.contextmanager
def shown_on_failure(environment: Environment) -> Iterator[None]:
    try:
        yield
    except AssertionError:
        print(environment.platform("status").stdout, environment.platform("logs", "--tail", "30").stdout)
        raise


def check_page(environment: Environment, url: str, folder: Path) -> None:
    """The page in a browser: what PostgreSQL and Redis have, and which servers there are."""
    program = find_browser()
    if not program:
        pytest.skip("needs a browser that can be told what to trust: make extras")
    browser = Browser(program, folder, environment.cluster.layout.keys / "ca.crt", f"*.{DOMAIN}")
    *products, state = browser.open(url).texts
    assert products == ["Welcome", *(text for name, count in ORDERED for text in (name, f"ordered {count}", "Order"))]
    assert re.fullmatch(r"Visit \d+\. Served by nginx/[\d.]+, PostgreSQL 15\.\d+, Redis 7\.[\d.]+\.", state)


ORDERED = (("apple", 0), ("pear", 1), ("plum", 0))


def check_isolation(environment: Environment) -> None:
    """The proxy reaches the program by its alias, and never the database, whose port is open to the program."""
    pods = {service: environment.pods(service)[0]["metadata"]["name"] for service in ("proxy", "app")}
    assert environment.pods("console") == []
    reach = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3); print('reached')"
    assert environment.exec(pods["app"], "python", "-c", reach, "db", "5432") == "reached\n"
    connect = "timeout 3 bash -c '</dev/tcp/$0/$1' $0 $1 && echo reached || echo refused"
    assert environment.exec(pods["proxy"], "sh", "-c", connect, "ledger-app", "8000") == "reached\n"
    assert environment.exec(pods["proxy"], "sh", "-c", connect, "db", "5432") == "refused\n"


def left_after_init(environment: Environment) -> list[str]:
    """Check a project, move it in, and return what a second check finds that can't run or is lost."""
    environment.platform("check")
    environment.platform("init", "--yes").expect()
    found = json.loads(environment.platform("check", "--json").stdout)
    return [service["service"] for service in found["services"] if service["verdict"] not in ("as-written", "changed")]


def live(environment: Environment, folder: Path) -> None:
    assert left_after_init(environment) == []
    user = user_of(environment, environment.platform("deploy", "--timeout", "240").expect().stdout)
    user.write("first")
    user.check()
    if environment.name == FULL:
        check_isolation(environment)
    if isinstance(user, Shop):
        check_page(environment, user.site.url, folder)

    kill_all_pods(environment)
    user.check()

    environment.platform("deploy", "--timeout", "240").expect()
    user.check()

    environment.platform("restart").expect()
    user.write("second")
    user.check()

    environment.platform("sleep").expect()
    environment.platform("wake").expect()
    user.check()

    environment.platform("destroy", "--yes").expect()
    environment.platform("deploy", "--timeout", "240").expect()
    user.check()


@pytest.mark.parametrize("real_environment", cases(), indirect=True)
def test_a_project_keeps_its_data(real_environment: Environment, tmp_path: Path) -> None:
    environment = real_environment
    for variable in ("PGPASSWORD", "DB_PASSWORD"):
        os.environ.pop(variable, None)
    with shown_on_failure(environment):
        live(environment, tmp_path)


@pytest.mark.cluster
def test_the_first_example_of_the_readme(real_cluster: LocalCluster, tmp_path: Path) -> None:
    """It runs with nginx and PostgreSQL, unchanged, by the command of the page."""
    example = (ROOT / "README.md").read_text().split("## You write, you get", 1)[1]
    (tmp_path / "compose.yaml").write_text(example.split("```yaml\n", 1)[1].split("```", 1)[0])
    command = example.split("```sh\nplatform ", 1)[1].split("\n", 1)[0]
    with an_environment(real_cluster, tmp_path, tmp_path / "private") as environment, shown_on_failure(environment):
        (url,) = environment.platform(*command.split()).expect().stdout.split()
        Site(environment, url).until("/", lambda status, text: status == 200 and "nginx" in text)
        (pod,) = environment.pods("db")
        # Until the database is made, psql can't connect.
        ask = "PGPASSWORD=$POSTGRES_PASSWORD psql -U postgres -h 127.0.0.1 -Atc 'SELECT 6 * 7' 2>/dev/null"
        name = pod["metadata"]["name"]
        assert environment.exec(name, "sh", "-c", f"until {ask}; do sleep 0.5; done") == "42\n"
