"""Every example is deployed as its page says, and does what it is there to show.

The local cluster does not reach Docker Hub.
What runs on busybox runs unchanged; for the other images there are stand-ins in the cluster's registry, under the same
names, made of busybox: they do as much of the same as the example needs, such as serving ``/usr/share/nginx/html``.
Pages are opened in a real browser too, which trusts the cluster's authority; where there is no browser that is skipped.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import inspect
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from composeplat.local.cluster import LocalCluster
from composeplat.local.images import File, Image, push
from composeplat.local.packages import search_path
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import REGISTRY
from tests.browser import Browser, NotShownError, Page, find_browser
from tests.conftest import DOMAIN, ROOT
from tests.deploy import test_embedded
from tests.deploy.conftest import PORTS, Environment, Ran, an_environment, until
from tests.deploy.docker import PASSWORD, USER, configure, login
from tests.deploy.test_build_registries import HASH
from tests.real import test_projects

FOLDER = ROOT / "examples"

#: A private registry as it is filled from this machine, and as the node sees it.
OPEN, CLOSED = PORTS["api"] + 11, PORTS["api"] + 12

_COMMAND = re.compile(r"^(?:\$ )?((?:[A-Z_]+=\S+ )*platform deploy.*)$", re.MULTILINE)


# images ---------------------------------------------------------------------------------------------------------------

_SERVE = "exec httpd -f -p {} -h {}"


@dataclass(frozen=True, slots=True)
class StandIn:
    """An image that runs a script, by the name that the example has for it where it names one."""

    script: str
    program: str = "start"
    answer: str = ""
    """What ``/answer`` is: a script that talks to each connection."""

    def image(self) -> Image:
        busybox = shutil.which("busybox", path=search_path(os.environ))
        assert busybox is not None
        files = {
            "bin/busybox": File(Path(busybox).read_bytes()),
            **{f"bin/{item}": File(link="busybox") for item in ("sh", "httpd", "nc", "cat", "sleep")},
            **{name: File() for name in ("tmp/", "var/www/html/", "usr/share/nginx/html/")},
            self.program: File(f"#!/bin/sh\n{self.script}\n".encode()),
            "answer": File(f"#!/bin/sh\n{self.answer}\n".encode()),
        }
        return Image(files=files, command=(f"/{self.program}",))


#: Adds to a page what the database says, whose answer is not there at once.
_WORDPRESS = """
until answer=$(echo "$WORDPRESS_DB_USER" | nc "$WORDPRESS_DB_HOST" 3306) && [ "$answer" ]; do sleep 0.2; done
echo "$answer" > /var/www/html/index.html
"""
_MARIADB = 'read -r user; echo "database $MARIADB_DATABASE of $user"'
_PONG = "while read -r _; do echo +PONG; done"

STAND_INS = {
    "library/nginx:1.27-alpine": StandIn(_SERVE.format(80, "/usr/share/nginx/html")),
    "library/wordpress:6.8-apache": StandIn(_WORDPRESS + _SERVE.format(80, "/var/www/html")),
    "library/mariadb:11.4": StandIn("exec nc -ll -p 3306 -e /answer", answer=_MARIADB),
    "library/python:3.13-alpine": StandIn(_SERVE.format('"$5"', '"$4"'), "bin/python"),
    "valkey/valkey:8-alpine": StandIn("exec nc -ll -p 6379 -e /answer", "bin/valkey-server", answer=_PONG),
}


@pytest.fixture(scope="module")
def stocked(cluster: LocalCluster) -> LocalCluster:
    """The cluster, with the stand-ins in its registry."""
    for name, server in STAND_INS.items():
        push(server.image(), name, ("127.0.0.1", cluster.layout.host_ports.registry))
    return cluster


# what tests have ------------------------------------------------------------------------------------------------------


@dataclass
class Example:
    """An example's folder, and a namespace for it."""

    environment: Environment
    commands: list[str]
    """Those on its page that deploy, in their order."""

    @cached_property
    def urls(self) -> list[str]:
        """The addresses, from the first of them, which is run once."""
        return self.deploy(0)

    def deploy(self, number: int) -> list[str]:
        """Run one of them as it is there, and give the addresses."""
        return self.run(self.commands[number]).expect().stdout.split()

    def run(self, command: str, **more: str) -> Ran:
        before, _, after = command.partition("platform ")
        variables = dict(part.split("=", 1) for part in before.split())
        return self.environment.platform(*shlex.split(after), **{**variables, **more})

    def states(self) -> dict[str, str]:
        rows = self.environment.platform("status", "--json").expect().json["services"]
        return {row["service"]: row["state"] for row in rows}

    def workloads(self) -> set[str]:
        kinds = ("Deployment/", "StatefulSet/", "Job/")
        return {name for name in self.environment.names() if name.startswith(kinds)}

    def address(self, endpoint: str, domain: str = DOMAIN) -> str:
        return f"https://{endpoint}-{self.environment.namespace}.{domain}:{PORTS['https']}"

    def fetch(self, url: str) -> str:
        """What an address gives over HTTPS, once it does; its certificate holds for its host."""
        authority = self.environment.cluster.layout.keys / "ca.crt"
        return str(until(lambda: fetch(url, authority)))


def fetch(url: str, authority: Path) -> str:
    host, _, path = url.removeprefix("https://").partition("/")
    context = ssl.create_default_context(cafile=str(authority))
    with (
        socket.create_connection(("127.0.0.1", PORTS["https"]), timeout=10) as plain,
        contextlib.closing(http.client.HTTPConnection(host)) as connection,
    ):
        connection.sock = context.wrap_socket(plain, server_hostname=host.partition(":")[0])
        connection.request("GET", f"/{path}")
        answer = connection.getresponse()
        text = answer.read().decode()
    return text if answer.status == http.client.OK else ""


def example(name: str) -> Any:
    """A fixture: the example, nothing of which is deployed yet."""

    @pytest.fixture(scope="module", name=name.replace("-", "_"))
    def made(stocked: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Example]:
        folder = FOLDER / name
        with an_environment(stocked, folder, tmp_path_factory.mktemp(name)) as environment:
            environment.name = yaml.safe_load((folder / "compose.yaml").read_text())["name"]
            yield Example(environment, _COMMAND.findall((folder / "README.md").read_text()))

    return made


wordpress = example("wordpress")
develop = example("develop")
worker_queue = example("worker-queue")
overrides = example("overrides")
one_off_job = example("one-off-job")
shared_volume = example("shared-volume")
endpoints = example("endpoints")
private_registry = example("private-registry")


@pytest.fixture(scope="module")
def browser(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    program = find_browser()
    if not program:
        pytest.skip("needs a browser that can be told what to trust: make extras")
    return Browser(program, tmp_path_factory.mktemp("browser"), cluster.layout.keys / "ca.crt", f"*.{DOMAIN}")


def test_no_example_is_left_out() -> None:
    """Each example has a test here; those of a program, and of the shop with its real images, are elsewhere."""
    tests = [item for name, item in globals().items() if name.startswith("test_") and callable(item)]
    deployed = {name.replace("_", "-") for function in tests for name in inspect.signature(function).parameters}

    elsewhere = [test_embedded.EXAMPLE.name, test_projects.QUICK]
    assert sorted(p.name for p in FOLDER.iterdir() if p.name not in deployed) == elsewhere


# wordpress ------------------------------------------------------------------------------------------------------------


def test_wordpress(wordpress: Example) -> None:
    """The page is what the database says; the database has no address, and each keeps a volume."""
    (page,) = wordpress.urls

    assert page == wordpress.address("wordpress")
    assert wordpress.fetch(page) == "database wordpress of wordpress\n"
    names = wordpress.environment.names()
    assert {"PersistentVolumeClaim/site", "PersistentVolumeClaim/database"} <= names
    assert [name for name in names if name.startswith("Ingress/")] == ["Ingress/wordpress"]


def test_wordpress_in_a_browser(wordpress: Example, browser: Browser, tmp_path: Path) -> None:
    """A browser that trusts the cluster's authority shows the page; another one shows nothing of it."""
    (page,) = wordpress.urls
    wordpress.fetch(page)

    assert browser.open(page).texts == ["database wordpress of wordpress"]
    with pytest.raises(NotShownError, match="ERR_CERT_AUTHORITY_INVALID"):
        Browser(browser.args[0], tmp_path, hosts=f"*.{DOMAIN}").open(page)


# develop --------------------------------------------------------------------------------------------------------------


def test_develop(develop: Example) -> None:
    """The program of the one service asks the other, and its page is served."""
    (address,) = develop.urls

    (pod,) = develop.environment.pods("web")
    assert develop.fetch(f"{address}/cgi-bin/hello") == f"Hello from {pod['metadata']['name']}\n"


# worker-queue ---------------------------------------------------------------------------------------------------------


def test_worker_queue(worker_queue: Example) -> None:
    """Three workers write to the volume that the web server shows, on one node with it; the queue keeps its data."""
    (address,) = worker_queue.urls

    workers = worker_queue.environment.pods("worker")
    assert len(workers) == 3
    for pod in workers:
        written = worker_queue.fetch(f"{address}/{pod['metadata']['name']}.log")
        assert written.endswith(" looking at redis://queue:6379/0\n")
    assert worker_queue.workloads() == {"StatefulSet/web", "StatefulSet/worker", "StatefulSet/queue"}
    asked = worker_queue.environment.exec("worker-0", "sh", "-c", "echo PING | nc queue 6379")
    assert asked == "+PONG\n"


# overrides ------------------------------------------------------------------------------------------------------------


def test_overrides(overrides: Example) -> None:
    """With the override nothing is public and nothing kept; the environment of both files is in the container."""
    assert overrides.urls == []

    assert overrides.workloads() == {"Deployment/site", "Deployment/cache"}
    (pod,) = overrides.environment.pods("site")
    shown = overrides.environment.exec(pod["metadata"]["name"], "sh", "-c", "echo $LOG_LEVEL $TZ")
    assert shown == "debug UTC\n"


def test_overrides_without_the_override(overrides: Example) -> None:
    """Without it the page is public, and the cache has a volume."""
    assert overrides.deploy(1) == [overrides.address("site")]

    assert overrides.workloads() == {"Deployment/site", "StatefulSet/cache"}
    assert overrides.fetch(overrides.address("site")) == (FOLDER / "overrides" / "page" / "index.html").read_text()


def test_overrides_in_a_browser(overrides: Example, browser: Browser) -> None:
    """The page is shown in place of the image's."""
    (page,) = overrides.deploy(1)
    overrides.fetch(page)

    assert Page("Site", ["Site"]) == browser.open(page)


# one-off-job ----------------------------------------------------------------------------------------------------------


def test_one_off_job(one_off_job: Example) -> None:
    """The service starts when the job has completed, and serves what it wrote."""
    (address,) = one_off_job.urls

    assert one_off_job.states() == {"migrate": "completed", "web": "ready"}
    assert one_off_job.fetch(f"{address}/books.txt") == "Emma\nMiddlemarch\nInferno\n"
    (job,) = one_off_job.environment.objects("batch/v1", "Job")
    assert job["status"]["completionTime"] <= one_off_job.environment.started_at("web")


def test_the_log_of_a_one_off_job(one_off_job: Example) -> None:
    """What the job said can be read when it is over, as the page shows it; once more it has nothing to do."""
    page = (FOLDER / "one-off-job" / "README.md").read_text()
    (command, shown), *_ = re.findall(r"```sh\nplatform (logs .*)\n```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert one_off_job.urls
    assert one_off_job.environment.platform(*command.split()).expect().stdout == shown

    one_off_job.deploy(1)

    again = "001-novels: applied before\n002-poems: applied before\n"
    assert one_off_job.environment.platform(*command.split()).expect().stdout == again


# shared-volume --------------------------------------------------------------------------------------------------------


def affinities(shared: Example) -> dict[str, bool]:
    """Whether each service's pods want to be beside others."""
    found = shared.environment.objects("apps/v1", "StatefulSet")
    return {manifest["metadata"]["name"]: "affinity" in manifest["spec"]["template"]["spec"] for manifest in found}


def test_shared_volume(shared_volume: Example) -> None:
    """One service writes files that the other serves; both run on one node unless the file says no."""
    (address,) = shared_volume.urls

    url = f"{address}/today.txt"
    seen = shared_volume.fetch(url)
    later = until(lambda: (now := shared_volume.fetch(url)) != seen and now)
    assert later.startswith(seen)
    assert affinities(shared_volume) == {"station": True, "web": True}

    shared_volume.deploy(1)

    assert affinities(shared_volume) == {"station": False, "web": False}
    assert shared_volume.fetch(url).startswith(later)


# endpoints ------------------------------------------------------------------------------------------------------------

BOOKS = ["Emma", "Middlemarch", "Inferno"]


def test_ports_make_an_endpoint(endpoints: Example) -> None:
    """Without endpoints a mapped port has an address, which leads to that service alone, and a bare one has none."""
    (page,) = endpoints.urls

    assert page == endpoints.address("web")
    assert "<title>Books</title>" in endpoints.fetch(page)
    assert fetch(f"{page}/api/books.json", endpoints.environment.cluster.layout.keys / "ca.crt") == ""


@pytest.mark.parametrize(
    ("number", "host", "others"),
    [
        pytest.param(1, "books", [], id="list"),
        pytest.param(2, "shelf", ["data"], id="named"),
        pytest.param(3, "books", [], id="extended"),
    ],
)
def test_endpoints(number: int, host: str, others: list[str], endpoints: Example) -> None:
    """Each shape leads paths of one host to two services; those of the shape before are gone."""
    found = endpoints.deploy(number)

    wanted = {endpoints.address(item) for item in ("web", host, *others)}
    assert {url.partition("/api")[0].rstrip("/") for url in found} == wanted
    files = re.findall(r"-f \S+", endpoints.commands[number])
    status = endpoints.run(" ".join(("platform status", *files))).stdout
    assert status.partition("Addresses\n")[2].split() == found
    for item in (host, *others):
        assert json.loads(endpoints.fetch(f"{endpoints.address(item)}/api/books.json")) == BOOKS
    labels = {
        manifest["metadata"]["name"]: manifest["metadata"]["labels"].get("team")
        for manifest in endpoints.environment.objects("networking.k8s.io/v1", "Ingress")
    }
    assert labels == {"web": None, **dict.fromkeys((host, *others), "reading" if number == 3 else None)}


def test_endpoints_in_a_browser(endpoints: Example, browser: Browser) -> None:
    """The page asks the other service at its own host if it has an endpoint, and reports it if not."""
    endpoints.deploy(1)
    with_api, without = endpoints.address("books"), endpoints.address("web")
    endpoints.fetch(f"{with_api}/api/books.json")

    assert Page("Books", ["Books", "3 books", *BOOKS]) == browser.open(with_api)
    assert Page("Books", ["Books", "No books: 404"]) == browser.open(without)


# private-registry -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(folder: Path, port: int, **settings: Any) -> Iterator[None]:
    """A registry over a folder's images."""
    path = folder / f"{port}.json"
    storage = {"filesystem": {"rootdirectory": str(folder / "data")}}
    more = {"version": "0.1", "log": {"level": "error"}, "storage": storage, "http": {"addr": f"127.0.0.1:{port}"}}
    path.write_text(json.dumps({**more, **settings}))
    args = [str(Toolchain(os.environ).need(REGISTRY).path), "serve", str(path)]
    process = subprocess.Popen(args, stderr=subprocess.DEVNULL)
    yield
    process.terminate()
    process.wait()


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """A registry with the example's image, which wants a login: the cluster has none for it."""
    (tmp_path / "users").write_text(f"{USER}:{HASH}\n")
    auth = {"htpasswd": {"realm": "test", "path": str(tmp_path / "users")}}
    image = StandIn("echo Intranet > /index.html; " + _SERVE.format(80, "/"))
    with serving(tmp_path, OPEN), serving(tmp_path, CLOSED, auth=auth):
        until(lambda: answers(OPEN))
        push(image.image(), "team/intranet:1.0", ("127.0.0.1", OPEN))
        yield f"localhost:{CLOSED}"


def test_private_registry(private_registry: Example, registry: str, tmp_path: Path) -> None:
    """Without --pull-secret the registry refuses the image to the node; with it the login reaches the node."""
    environment, (command,) = private_registry.environment, private_registry.commands
    configure(tmp_path, {"auths": login(registry, PASSWORD)["auths"] | login("other.example.com", "other")["auths"]})
    variables = {"REGISTRY": registry, "DOCKER_CONFIG": str(tmp_path)}

    refused = private_registry.run(command.replace(" --pull-secret", ""), **variables).expect(1)
    assert refused.stderr.count("error:") == 1
    assert f"image '{registry}/team/intranet:1.0' can't be pulled" in refused.stderr

    (address,) = private_registry.run(command, **variables).expect().stdout.split()
    assert private_registry.fetch(address) == "Intranet\n"
    found = environment.get("v1", "Secret", "web-pull")
    assert found is not None
    assert list(json.loads(base64.b64decode(found["data"][".dockerconfigjson"]))["auths"]) == [registry]
