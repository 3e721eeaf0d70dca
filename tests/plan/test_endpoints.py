"""Endpoints: how much an HTTPRoute holds, and what messages about ports and hosts leave unsaid."""

from __future__ import annotations

import pytest

from composeplat.plan.endpoints import NOT_HTTP
from tests.conftest import Project

MOST_RULES = 16


def routes(count: int) -> str:
    """A definition with that many routes of one endpoint, each to a port of its own."""
    ports = ", ".join(str(8000 + number) for number in range(count))
    listed = "\n".join(f"  - {{path: /{number}, service: web, port: {8000 + number}}}" for number in range(count))
    return f"services:\n  web: {{image: nginx, expose: [{ports}]}}\nendpoints:\n{listed}\n"


def test_as_many_places_as_an_http_route_holds(project: Project) -> None:
    """Routes to sixteen ports are one HTTPRoute."""
    reading = project(routes(MOST_RULES)).read(gateway="edge")

    assert reading.messages == []
    assert len(reading.object("HTTPRoute", "demo")["spec"]["rules"]) == MOST_RULES


def test_more_places_than_an_http_route_holds(project: Project) -> None:
    """Routes to one port more are an error, with a fix."""
    reading = project(routes(MOST_RULES + 1)).read(gateway="edge")

    assert reading.messages == [
        (
            "compose.yaml:4:3: error: endpoints has more routes than an HTTPRoute holds: 16 rules of up to 64 paths to"
            " one port, and 128 paths in all [invalid-value]"
        )
    ]
    assert [d.hint for d in reading.loaded.report.sorted()] == ["divide it into several named endpoints"]


def test_an_ingress_holds_them_all(project: Project) -> None:
    """The limit is the HTTPRoute's alone."""
    assert project(routes(MOST_RULES + 1)).read().messages == []


def test_paths_of_one_target_count_once(project: Project) -> None:
    """However many paths lead to one port, they are one rule."""
    listed = "\n".join(f"  - {{path: /{number}, service: web, port: 80}}" for number in range(MOST_RULES + 1))

    reading = project(f"services:\n  web: {{image: nginx, expose: [80]}}\nendpoints:\n{listed}\n").read(gateway="edge")

    assert reading.messages == []
    assert len(reading.object("HTTPRoute", "demo")["spec"]["rules"]) == 1


@pytest.mark.parametrize(("count", "codes"), [(128, []), (129, ["invalid-value"])])
def test_paths_of_all_targets(project: Project, count: int, codes: list[str]) -> None:
    """The definition of HTTPRoute limits the paths of all its rules together."""
    listed = "\n".join(f"  - {{path: /{number}, service: web, port: 80}}" for number in range(count))

    reading = project(f"services:\n  web: {{image: nginx, expose: [80]}}\nendpoints:\n{listed}\n").read(gateway="edge")

    assert reading.codes == codes


def test_endpoints_without_a_domain_are_reported_once(project: Project) -> None:
    """Several named endpoints need one domain: one error, at the key."""
    text = """\
services:
  web: {image: nginx, expose: [80]}
endpoints:
  one: [{path: /, service: web, port: 80}]
  two: [{path: /, service: web, port: 80}]
"""

    assert project(text).read(domain="").messages == [
        "compose.yaml:3:1: error: endpoints need a domain, and none is known [no-domain]"
    ]


@pytest.mark.parametrize(
    ("port", "text", "code"),
    [
        pytest.param("6379", "ports: ['${PORT}:${PORT}']", "sensitive-port", id="sensitive-port"),
        pytest.param("5353", "ports: ['${PORT}:${PORT}/udp']", "sensitive-port", id="udp"),
        pytest.param("5672", "ports: ['${PORT}:${PORT}']", "non-http-port", id="non-http-port"),
        pytest.param("39157", "ports: ['${PORT}:80', '${PORT}:81']", "name-conflict", id="published-twice"),
        pytest.param("39157", "ports: ['${PORT}:80', '81:${PORT}']", "no-effect", id="published-and-own"),
        pytest.param("39157", "ports: ['${PORT}:80'], deploy: {endpoint_mode: dnsrr}", "no-effect", id="dnsrr"),
        pytest.param("70000", "ports: ['${PORT}:80']", "invalid-value", id="no-port"),
        pytest.param("39157-39150", "ports: ['${PORT}']", "invalid-value", id="no-range"),
    ],
)
def test_ports_from_variables(project: Project, port: str, text: str, code: str) -> None:
    """A message about a port that came from a variable does not show which one it is."""
    reading = project(f"services: {{web: {{image: nginx, {text}}}}}", PORT=port).read()

    assert code in reading.codes
    assert not [message for message in reading.messages if port in message]


def test_a_route_to_a_port_from_a_variable(project: Project) -> None:
    """Nor does one about a route."""
    text = "services: {web: {image: nginx}}\nendpoints: [{path: /, service: web, port: '${PORT}'}]"

    assert project(text, PORT="39157").read().messages == [
        (
            "compose.yaml:2:13: error: endpoints[0] routes to port '${PORT}' (after substitution), which service 'web'"
            " does not have [undefined-port]"
        )
    ]


@pytest.mark.parametrize(
    ("ports", "has"),
    [
        pytest.param("[80, 9000, 53/udp]", "it has 80, 9000", id="those there are"),
        pytest.param("['${PORT}']", "it has '${PORT}' (after substitution)", id="one from a variable"),
        pytest.param("[53/udp]", "it names no TCP port", id="none"),
        pytest.param("[8000-8020]", f"it has {', '.join(map(str, range(8000, 8008)))} …", id="many"),
    ],
)
def test_an_unknown_port_lists_the_ports(project: Project, ports: str, has: str) -> None:
    """A route to a port that its service does not have names the service, the port, and the ports that would do."""
    text = f"services: {{web: {{image: nginx, expose: {ports}}}}}\nendpoints: [{{path: /, service: web, port: 81}}]"

    (error,) = project(text, PORT="39157").read().loaded.report.sorted()

    assert error.message == "endpoints[0] routes to port '81', which service 'web' does not have"
    assert error.hint == f"{has}; add the port to the service's 'ports' or 'expose'"


def test_a_way_in_without_https(project: Project) -> None:
    """A port that no HTTPS route can carry has a fix: the command that makes a Service of type LoadBalancer."""
    report = project("services: {my_dns: {image: coredns, ports: ['53:53/udp', '53:53']}}").read().loaded.report
    hints = [d.hint for d in report.sorted() if d.code in ("sensitive-port", "non-http-port")]

    command = (
        "x-expose in full mode (--full), or kubectl expose service my-dns --name=my-dns-{0} --type=LoadBalancer"
        " --protocol={1} --port=53 --labels=by=hand"
    )
    assert hints == [
        f"to expose it: {command.format('udp', 'UDP')}",
        f"publish no port to keep it private; to expose it: {command.format('tcp', 'TCP')}",
    ]


@pytest.mark.parametrize(
    ("ports", "numbers"),
    [
        pytest.param("['5000:5000/udp', '80:80', '3478:3478/udp']", ["5000,3478", "5000,3478"], id="two of UDP"),
        pytest.param("['25:25', '143:143', '127.0.0.1:993:993', '5432:5432']", ["25,143", "25,143"], id="mail"),
        pytest.param("['53:53/udp'], expose: ['54/udp'], public: true", ["53"], id="a private one"),
        pytest.param("[], expose: [53/udp, 54/udp], public: true", ["53,54", "53,54"], id="public ones"),
        pytest.param("['2456-2458:2456-2458/udp']", ["2456,2457,2458"], id="a range"),
        pytest.param("['53:53/udp', '$PORT:$PORT/udp']", ["53,PORT", "53,PORT"], id="one from a variable"),
        pytest.param("['9000-9008:9000-9008/udp']", ["9000,9001,9002,9003,9004,9005,9006,9007,…"], id="many"),
    ],
)
def test_the_command_has_all_such_ports(project: Project, ports: str, numbers: list[str]) -> None:
    """Each command makes the same object, so it has all its ports: a second one would find the object there."""
    report = project(f"services: {{web: {{image: nginx, ports: {ports}}}}}", PORT="39157").read().loaded.report
    hints = [d.hint for d in report.sorted() if "kubectl expose" in d.hint]

    assert [hint.partition("--port=")[2].partition(" ")[0] for hint in hints] == numbers


@pytest.mark.parametrize(
    ("domain", "code"),
    [
        pytest.param("secret.example.com", "hostname-truncated", id="shortened"),
        pytest.param(".".join(4 * ["secret" * 10]), "invalid-name", id="refused"),
    ],
)
def test_hosts_are_not_reported(project: Project, domain: str, code: str) -> None:
    """A message about a host does not show the domain."""
    endpoint = f"{'a' * 60}: [{{path: /, service: web, port: 80}}]"
    text = f"services: {{web: {{image: nginx, expose: [80]}}}}\nendpoints: {{{endpoint}}}"

    reading = project(text).read(domain=domain)

    assert code in reading.codes
    assert not [message for message in reading.messages if "secret" in message]


def test_many_paths_to_one_port(project: Project) -> None:
    """A rule of an HTTPRoute holds 64 paths; more of them take another rule."""
    routes = ", ".join(f"{{path: /{number}, service: web, port: 80}}" for number in range(65))
    text = f"services: {{web: {{image: nginx, expose: [80]}}}}\nendpoints: [{routes}]"

    route = project(text).read(gateway="main").object("HTTPRoute", "demo")

    assert [len(rule["matches"]) for rule in route["spec"]["rules"]] == [64, 1]


def test_consequences_of_a_bad_port_are_not_reported(project: Project) -> None:
    """Where a port can't be read, neither 'public' nor a route is blamed for the port that is missing."""
    text = "services: {web: {image: a, ports: [70000], public: true}}\nendpoints: [{path: /, service: web, port: 80}]\n"

    assert project(text).read().codes == ["invalid-value"]


def test_an_error_elsewhere_hides_no_route(project: Project) -> None:
    """An error of the service that is none of its ports does not keep a wrong route from being reported."""
    text = "services: {web: {image: nginx, scale: two}}\nendpoints: [{path: /, service: web, port: 80}]\n"

    assert project(text).read().codes == ["invalid-value", "undefined-port"]


#: What is registered for a port, and speaks no HTTP.
REGISTERED = {
    "AMQP": (5671, 5672), "DNS": (53, 853), "FTP": (21,), "IMAP": (143, 993), "IRC": (6667,),
    "Kafka": (9092, 19092, 29092), "ActiveMQ": (61616,), "Beats": (5044,), "Ethereum": (30303,), "Fluentd": (24224,),
    "GELF": (12201,), "Lightning": (9735,), "Minecraft": (25565, 25575), "Mumble": (64738,), "PostgreSQL": (26257,),
    "Pulsar": (6650,), "RTMP": (1935,), "RTSP": (554, 8554), "Redis Sentinel": (26379,), "SIP": (5060, 5061),
    "SMB": (139, 445), "STOMP": (61613,), "XMPP": (5222, 5269), "rsync": (873,), "syslog": (514,),
    "Kerberos": (88,), "LDAP": (389, 636), "MQTT": (1883, 8883), "NATS": (4222,), "POP3": (110, 995), "RDP": (3389,),
    "SMTP": (25, 465, 587), "SSH": (22, 2222), "Telnet": (23,), "VNC": (5900,), "ZooKeeper": (2181,),
    "memcached": (11211,),
}  # fmt: skip


@pytest.mark.parametrize(("spoken", "ports"), REGISTERED.items(), ids=REGISTERED)
def test_ports_that_speak_no_http(project: Project, spoken: str, ports: tuple[int, ...]) -> None:
    """A port that usually speaks something else is made public, with a warning that names what."""
    for port in ports:
        (message,) = project(f"services: {{web: {{image: a, ports: ['{port}:{port}']}}}}").read().messages
        assert spoken in message
        assert message.endswith(" [non-http-port]")


@pytest.mark.parametrize(
    "port", ["'443:443'", "'8443:8443'", "'9443:9443'", "{target: 7443, published: 7443, app_protocol: https}"]
)
def test_ports_of_tls(project: Project, port: str) -> None:
    """A route ends TLS: a container that expects it gets plain HTTP, which a warning says."""
    (message,) = project(f"services: {{web: {{image: a, ports: [{port}]}}}}").read().messages

    assert message.endswith("and this port probably expects TLS [non-http-port]")


def test_each_port_that_speaks_no_http_has_a_case() -> None:
    """The table above is whole."""
    assert {port for ports in REGISTERED.values() for port in ports} == set(NOT_HTTP)
