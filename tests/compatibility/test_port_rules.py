"""Ports by which services address each other, and those that images expose."""

from __future__ import annotations

import pytest

from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.compatibility.port_rules import check_ports, find_joined, find_uses
from composeplat.compose.origins import Checker
from composeplat.diagnostics import Report
from composeplat.registry.image_config import ImageFacts
from composeplat.render.manifests import to_yaml
from tests.compatibility.test_check import check
from tests.compatibility.test_fixes import fix
from tests.conftest import Project
from tests.steps import count_steps

IMAGES: ImageAnswers = {
    "mq": ImageFacts(ports=((4369, "tcp"), (5672, "tcp"), (15672, "tcp"))),
    "nginx": ImageFacts(ports=((80, "tcp"), (443, "udp"))),
    "bare": ImageFacts(),
}
REACHED = "in a cluster its name leads to 15672 only"


def found(project: Project, text: str, **files: str) -> list[tuple[str, int, str]]:
    """The code, line and message of each finding about a port."""
    folder = project({"compose.yaml": text, **{name.replace("__", "."): content for name, content in files.items()}})
    diagnostics = (finding.diagnostic for finding in check(folder, IMAGES).all_findings)
    return [(d.code, d.span.line, d.message) for d in diagnostics if d.code.endswith("-port") and d.code[:2] == "un"]


def pair(mq: str, app: str) -> str:
    return f"services:\n  mq: {{image: mq, {mq}}}\n  app: {{image: bare, {app}}}\n"


LISTED = "expose: ['15672', '15672/udp']"
ALSO = "5672 by 'app' (a.server)"
FILES = {
    "app__conf": "server mq:5672;\n",
    "split__xml": "<node><hostname>mq</hostname>\n  <port>9440</port></node>",
    "split__yml": "queue:\n  host: mq\n  port: 9441\n",
    "split__json": '{"host": "mq", "port": 9442}',
    "split__ini": "queue.host = mq\nqueue.port=9443\n",
}


@pytest.mark.parametrize(
    ("app", "used"),
    [
        pytest.param("environment: {URL: 'amqp://u:p@mq:5672/v'}", "5672 by 'app' (URL)", id="a-url"),
        pytest.param("environment: {URL: 'mq:4369,mq:5672'}", "4369 by 'app' (URL), 5672 by 'app' (URL)", id="two"),
        pytest.param("command: [serve, --broker=mq:5672]", "5672 by 'app' (command)", id="the-command"),
        pytest.param("entrypoint: wait mq:5672", "5672 by 'app' (command)", id="the-entrypoint"),
        pytest.param("volumes: ['./app.conf:/etc/app.conf']", "5672 by 'app' (app.conf)", id="a-mounted-file"),
        pytest.param("environment: {MQ_HOST: mq}", "5672 by 'app' (MQ_HOST)", id="the-name-alone"),
        pytest.param("environment: {URL: 'amqp://u:p@mq/v'}", "5672 by 'app' (URL)", id="a-url-without-a-port"),
        pytest.param(
            "environment: {A_HOST: mq, A_PORT: 5000}",
            "5000 by 'app' (A_PORT), 5672 by 'app' (A_HOST)",
            id="two-variables",
        ),
        pytest.param(
            "environment: {a.server: mq, a.port_number: 91}", f"91 by 'app' (a.port_number), {ALSO}", id="other-names"
        ),
        pytest.param(
            "environment: {S: 'server.1=mq:888:999;181 2=a:1:2'}",
            "888 by 'app' (S), 999 by 'app' (S)",
            id="several-ports",
        ),
        pytest.param("environment: {CASSANDRA_SEEDS: 'x, mq'}", "7000 by 'app' (CASSANDRA_SEEDS)", id="a-cluster"),
        pytest.param(
            "environment: {SE_EVENT_BUS_HOST: mq}",
            "4442 by 'app' (SE_EVENT_BUS_HOST), 4443 by 'app' (SE_EVENT_BUS_HOST), 5672 by 'app' (SE_EVENT_BUS_HOST)",
            id="a-hub",
        ),
        pytest.param(
            "environment: {B_SERVER: 'http://mq:5672', A_HOST: mq, A_PUBLISH_PORT: 70, A_SUBSCRIBE_PORT: 81}",
            "81 by 'app' (A_SUBSCRIBE_PORT), 5672 by 'app' (B_SERVER)",
            id="ports-of-a-hub",
        ),
        pytest.param("volumes: ['./split.xml:/app.xml']", "9440 by 'app' (app.xml)", id="xml"),
        pytest.param("volumes: ['./split.yml:/app.yml']", "9441 by 'app' (app.yml)", id="yaml"),
        pytest.param("volumes: ['./split.json:/app.json']", "9442 by 'app' (app.json)", id="json"),
        pytest.param("volumes: ['./split.ini:/app.ini']", "9443 by 'app' (app.ini)", id="ini"),
    ],
)
def test_unreachable_port(project: Project, app: str, used: str) -> None:
    """A port that others use, and that the service does not list, is not reached by its name."""
    message = f"services.mq is addressed at port {used}; {REACHED}"

    assert found(project, pair(LISTED, app), **FILES) == [("unreachable-port", 2, message)]


def test_a_config_of_full_mode(project: Project) -> None:
    """The text of a config says how a service uses others; those of secrets and external configs are not read."""
    app = "image: bare, configs: [{source: c, target: /etc/app.conf}, e], secrets: [s]"
    more = "configs: {c: {content: 'server mq:5672;'}, e: {external: true}}\nsecrets: {s: {file: ./other.conf}}\n"
    text = f"x-platform: {{full: true}}\nservices:\n  mq: {{image: mq, {LISTED}}}\n  app: {{{app}}}\n{more}"

    message = f"services.mq is addressed at port 5672 by 'app' (app.conf); {REACHED}"
    assert found(project, text, other__conf="mq:4369") == [("unreachable-port", 3, message)]
    assert found(project, text.replace("full: true", "full: false"), other__conf="") == []


@pytest.mark.parametrize(
    ("mq", "app"),
    [
        pytest.param("restart: always", "environment: {URL: 'mq:5672'}", id="headless"),
        pytest.param("expose: ['5672']", "environment: {URL: 'mq:5672', MQ_HOST: mq}", id="listed"),
        pytest.param("ports: ['5672:15672']", "environment: {URL: 'mq:5672'}", id="published"),
        pytest.param("expose: ['5671'], environment: {P: 5671}", "environment: {MQ_HOST: mq}", id="another-usual-port"),
        pytest.param("expose: ['999'], command: --port=999", "environment: {MQ_HOST: mq}", id="a-port-that-is-set"),
        pytest.param(LISTED, "environment: {URL: 'http://mq:15672/mq:x'}", id="this-one"),
        pytest.param(LISTED, "environment: {IMAGE: 'mq:17', URL: 'x://mq:1234@db/'}", id="a-version-and-a-password"),
        pytest.param(LISTED, "environment: {A: 'my-mq:99', B: 'mq.org:99', C: 'mq:99.1', D: 'a:mq:99'}", id="others"),
        pytest.param(LISTED, "environment: {KIND: mq-like}", id="another-word"),
        pytest.param(LISTED, "environment: {A_HOST: 'other', A_PORT: 99, HOST: x, PORT: 99}", id="another-host"),
        pytest.param(
            "expose: ['5672']", "environment: {A_HOST: mq, A_PORT: 99999, B_HOST: mq, B_PORT: '00'}", id="no-port"
        ),
        pytest.param(LISTED, "environment: {X: 'localhost: mq, port: 99', Y: 'host: mq, port: 99x'}", id="no-pair"),
        pytest.param(LISTED, "environment: {DIR: /srv/mq, LIST: 'mq,db'}", id="a-path-and-a-list"),
    ],
)
def test_reached(project: Project, mq: str, app: str) -> None:
    """Nothing is found where the name leads to the port, or where the text is no address."""
    assert found(project, pair(mq, app)) == []


def test_many_services(project: Project) -> None:
    """The work grows with the texts, and not with the texts times the services."""

    def work(count: int) -> int:
        services = {f"s{n}": {"image": "a", "ports": ["80"], "command": [f"s{n - 1}:99"]} for n in range(count)}
        loaded = project(to_yaml({"services": services})).read().loaded
        report = Report()
        checker = Checker(loaded.project, loaded.origins, report)
        steps = count_steps(lambda: check_ports(checker, {}, find_uses(loaded.project), find_joined(loaded.project)))
        assert len(report.sorted()) == count - 1
        return steps

    assert work(80) < 5 * work(20)


def test_own_addresses(project: Project) -> None:
    """What a service says of itself is not how others use it."""
    assert found(project, pair(f"{LISTED}, environment: {{SELF: 'mq:5672'}}", "restart: always")) == []


def test_fix(project: Project) -> None:
    """The ports are added to those of the service; with them, nothing is left."""
    text = pair(LISTED, "environment: {URL: 'mq:5672', NODES: 'mq:4369'}")
    folder = project(text)
    lines = fix(folder, IMAGES)

    assert lines == ["services:", "  mq:", "    expose:", '      - "4369"', '      - "5672"']
    assert found(project, text, compose__platform__yaml="\n".join(lines)) == []


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("command: agent -retry-join node1", id="one-dash"),
        pytest.param("command: agent --retry_join=node1", id="two-dashes"),
        pytest.param("command: [start, --join, 'node1,other']", id="a-list"),
        pytest.param("command: '--wsrep-cluster-address=gcomm://other,node1?pc.wait_prim=no'", id="galera"),
        pytest.param("environment: {CLUSTER_ADDRESS: 'gcomm://node1'}", id="a-variable"),
    ],
)
def test_joined_without_a_port(project: Project, keys: str) -> None:
    """Members of a cluster meet at ports that nobody names: the name of the one that is joined leads to its pod."""
    folder = project(f"services: {{node1: {{image: x, expose: [80]}}, node2: {{image: x, {keys}}}}}")
    (finding,) = check(folder).all_findings
    where = "CLUSTER_ADDRESS" if "environment" in keys else "command"

    assert finding.diagnostic.message == (
        f"services.node1 is joined by 'node2' ({where}), which names no port; in a cluster its name leads to 80 only"
    )
    lines = fix(folder)
    assert lines == ["services:", "  node1:", "    deploy:", "      endpoint_mode: dnsrr"]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert {found.diagnostic.code for found in check(folder).all_findings} == {"no-traffic-diversion"}


@pytest.mark.parametrize(
    ("keys", "more"),
    [
        pytest.param("command: agent --join=node1:80", "expose: [80]", id="a-port"),
        pytest.param("command: agent --join=node1", "restart: always", id="headless"),
        pytest.param("command: agent --join=node12", "expose: [80]", id="another-host"),
        pytest.param("command: agent --disjoin=node1", "expose: [80]", id="another-option"),
    ],
)
def test_not_joined(project: Project, keys: str, more: str) -> None:
    assert found(project, f"services: {{node1: {{image: x, {more}}}, node2: {{image: x, {keys}}}}}") == []


@pytest.mark.parametrize(
    ("keys", "line", "message"),
    [
        (
            "\n    ports: ['8080:8080']",
            4,
            "services.web.ports[0] names port 8080 of the container, and its image exposes 80",
        ),
        (
            "\n    healthcheck: {http: {path: /, port: 81}}",
            4,
            "services.web.healthcheck names port 81 of the container, and its image exposes 80",
        ),
        (
            "\n    volumes: ['./a.txt:/a.txt', 'data:/data']\n    ports: ['8080:8080']",
            5,
            "services.web.ports[0] names port 8080 of the container, and its image exposes 80",
        ),
    ],
)
def test_unexposed_port(project: Project, keys: str, line: int, message: str) -> None:
    """A port that an image does not expose is a warning, which changes no verdict."""
    text = f"services:\n  web:\n    image: nginx{keys}\nvolumes: {{data: {{}}}}\n"

    assert found(project, text, a__txt="x\n") == [("unexposed-port", line, message)]
    assert check(project(text), IMAGES).services[0].verdict == "as-written"


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("image: nginx, ports: ['8080:80']", id="exposed"),
        pytest.param("image: nginx, ports: ['8080:8080/udp']", id="another-protocol"),
        pytest.param("image: nginx, ports: ['81'], command: [--port=81]", id="the-command"),
        pytest.param("image: nginx, ports: ['81'], environment: {PORT: 81}", id="a-variable"),
        pytest.param("image: nginx, ports: ['81'], volumes: ['./a.conf:/a.conf']", id="a-mounted-file"),
        pytest.param("image: nginx, ports: ['81'], volumes: ['./large:/large']", id="a-file-that-is-not-read"),
        pytest.param("image: bare, ports: ['81']", id="an-image-without-ports"),
        pytest.param("image: unknown, ports: ['81']", id="an-unread-image"),
        pytest.param("build: ., image: nginx, ports: ['81']", id="built"),
    ],
)
def test_configured_port(project: Project, keys: str) -> None:
    """Nothing is found where a setting of the service names the port, or where the image says nothing."""
    files = {"a__conf": "listen 81;\n", "large": "x" * 300_000, "Dockerfile": "FROM nginx\n"}

    assert found(project, f"services: {{web: {{{keys}}}}}", **files) == []


@pytest.mark.parametrize(
    ("image", "address"),
    [
        ("nginx", "web, to every port of its pods; its image exposes 80/tcp, 443/udp"),
        ("unknown", "web, to every port of its pods"),
    ],
)
def test_address_without_ports(project: Project, image: str, address: str) -> None:
    """The explanation of a service without ports has those that a deploy lists for its name."""
    (web,) = check(project(f"services: {{web: {{image: {image}}}}}"), IMAGES).services

    assert [statement.text for statement in web.explain() if statement.topic == "address"] == [address]
