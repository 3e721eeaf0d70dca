"""Names of services: those that a health check needs before its pod is ready, and those that only a proxy knows."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.plan.services import own_name_aliases
from tests.conftest import Project
from tests.test_fixes import messages_and_hints


@pytest.mark.parametrize(
    "test",
    [
        "curl -f http://db/health",
        "curl -f http://db:80",
        "curl db/health",
        "nc -z db 5432",
        "pg_isready -h db -U db",
        "mysqladmin ping --host=db",
        ["CMD", "nc", "-z", "db", "80"],
        ["CMD", "ask", "-U", "x", "db"],
        "db ping || curl db",
        "echo x | db db:27017/test",
    ],
    ids=str,
)
def test_a_check_that_asks_its_own_host(project: Project, test: Any) -> None:
    """The name leads to ready pods only, so the pod has it in its hosts file."""
    assert aliases(project, test) == [{"ip": "127.0.0.1", "hostnames": ["db"]}]


@pytest.mark.parametrize(
    "test",
    [
        "pg_isready -U db -d db",
        "pg_isready --username=db --dbname db",
        "psql user=db dbname=db",
        "curl -f http://localhost:9000/db/health",
        "service db status",
        "pgrep db",
        "echo x | db localhost:27017/test",
        "db ping",
        ["CMD", "db", "ping"],
        ["CMD", "pg_isready", "-U", "db"],
        "curl http://my-db/ http://db.example.com",
    ],
    ids=str,
)
def test_the_same_word_is_no_host(project: Project, test: Any) -> None:
    """A program that listens on its own name, such as Kafka, would listen on loopback alone by such an entry."""
    assert aliases(project, test) == []


CHECKED = "ports: [{port}], healthcheck: {{test: 'curl http://{name}/'}}"


@pytest.mark.parametrize(
    ("more", "names"),
    [
        pytest.param("  db: {{image: x, extra_hosts: ['own:127.0.0.1'], {db}}}", ["db", "own"], id="with-another-host"),
        pytest.param(
            "  db: {{image: x, {db}}}\n  api: {{image: x, network_mode: 'service:db', {api}}}",
            ["db", "api"],
            id="of-two",
        ),
    ],
)
def test_an_address_comes_once(project: Project, more: str, names: list[str]) -> None:
    """The API server refuses a pod that has an address twice."""
    checks = {name: CHECKED.format(name=name, port=port) for name, port in (("db", 80), ("api", 81))}
    plan = project(f"x-platform: {{full: true}}\nservices:\n{more.format(**checks)}").read().plan
    assert plan is not None
    (pod,) = (found.manifest["spec"]["template"]["spec"] for found in plan.objects if found.kind == "Deployment")

    assert pod["hostAliases"] == [{"ip": "127.0.0.1", "hostnames": names}]


def aliases(project: Project, test: Any) -> list[dict[str, Any]]:
    folder = project(f"services: {{db: {{image: x, ports: [80], healthcheck: {{test: {test!r}}}}}}}")
    return own_name_aliases(folder.read().loaded.project.services["db"], has_early_name=False)


RULE = "traefik.http.routers.x.rule: 'Host(`a.b`)'"
PORT = "traefik.http.services.x.loadbalancer.server.port"
LISTED = ", and the service the port: expose: [{}]"


@pytest.mark.parametrize(
    ("keys", "port", "more"),
    [
        pytest.param(f"labels: {{{RULE}, {PORT}: 3000}}", "3000", LISTED.format("3000"), id="its-port"),
        pytest.param(f"labels: {{{RULE}, {PORT}: 80}}, expose: [80]", "80", "", id="a-port-that-it-lists"),
        pytest.param(f"labels: {{{RULE}, {PORT}: 80}}, expose: [81]", "80", LISTED.format("80"), id="another-port"),
        pytest.param(f"labels: {{{RULE}, {PORT}: '$P'}}", "PORT", LISTED.format("PORT"), id="of-a-variable"),
        pytest.param(f"deploy: {{labels: {{{RULE}}}}}, ports: [80]", "PORT", "", id="a-private-port"),
    ],
)
def test_a_route_of_traefik(project: Project, keys: str, port: str, more: str) -> None:
    """A service that has its address by labels alone has no URL here, and the hint gives it one."""
    ((message, hint),) = messages_and_hints(project, f"services: {{web: {{image: a, {keys}}}}}", P="8000")

    assert message.endswith("is a route of Traefik, which reads it from Docker: here the service has no URL by it")
    assert hint == f"give it a route: endpoints: {{NAME: [{{path: /, service: web, port: {port}}}]}}{more}"


@pytest.mark.parametrize(
    ("keys", "place", "proxy", "port"),
    [
        ("labels: {caddy: a.b, caddy.reverse_proxy: '{{upstreams 80}}'}", "labels.caddy", "Caddy", "80"),
        ("labels: [caddy_1=a.b]", "labels[0]", "Caddy", "PORT"),
        (
            "environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: 81}",
            "environment.VIRTUAL_HOST",
            "nginx-proxy (VIRTUAL_HOST)",
            "81",
        ),
        ("labels: {caddy: a.b, caddy.reverse_proxy: '{{upstreams http 3000}}'}", "labels.caddy", "Caddy", "3000"),
        ("labels: {caddy: a.b, caddy.reverse_proxy: '{{upstreams 99999}}'}", "labels.caddy", "Caddy", "PORT"),
        (
            "labels: {traefik.frontend.rule: 'Host:a.b', traefik.port: 81}",
            "labels.traefik.frontend.rule",
            "Traefik",
            "81",
        ),
        (
            "environment: [VIRTUAL_HOST=a.b, 'VIRTUAL_PORT=$P']",
            "environment.VIRTUAL_HOST",
            "nginx-proxy (VIRTUAL_HOST)",
            "PORT",
        ),
    ],
)
def test_a_route_of_another_proxy(project: Project, keys: str, place: str, proxy: str, port: str) -> None:
    """Caddy reads labels, and nginx-proxy a variable."""
    ((message, hint),) = messages_and_hints(project, f"services: {{web: {{image: a, {keys}}}}}", P="39157")

    assert message == (
        f"warning: services.web.{place} is a route of {proxy}, which reads it from Docker: here the service has no URL"
        " by it"
    )
    assert f"service: web, port: {port}}}" in hint


@pytest.mark.parametrize(
    "keys",
    [
        "labels: {caddy.tls: internal}",
        "environment: {VIRTUAL_HOST: ''}",
        f"labels: {{{RULE}, traefik.enable: false}}",
    ],
)
def test_no_route_of_a_proxy(project: Project, keys: str) -> None:
    assert messages_and_hints(project, f"services: {{web: {{image: a, {keys}}}}}") == []


def test_the_route_in_place_of_one_of_traefik(project: Project) -> None:
    """The keys of the hint are valid."""
    labels = f"labels: {{{RULE}, {PORT}: 3000}}"
    text = "services: {{web: {{image: a, {}}}}}\n{}"
    ((_, hint),) = messages_and_hints(project, text.format(labels, ""))
    route, _, port = hint.removeprefix("give it a route: ").partition(", and the service the port: ")

    assert messages_and_hints(project, text.format(f"{labels}, {port}", route.replace("NAME", "site"))) == []


@pytest.mark.parametrize(
    ("keys", "more"),
    [
        pytest.param("ports: ['8080:80']", "", id="a-public-port"),
        pytest.param("expose: [80]", "endpoints: [{path: /, service: web, port: 80}]", id="a-route"),
        pytest.param("expose: [80], public: true", "", id="public"),
    ],
)
def test_a_service_of_traefik_with_a_url(project: Project, keys: str, more: str) -> None:
    """Its labels are not needed."""
    text = f"services: {{web: {{image: a, labels: {{{RULE}}}, {keys}}}}}\n{more}"

    assert messages_and_hints(project, text) == []
