"""Numbers outside what their key takes, and texts that are no number: an error that shows what is taken."""

from __future__ import annotations

import pytest

from tests.conftest import Project

INT = "must be a whole number of at least 0"
PORT = "must be a whole number from 1 to 65535"
SHORT_PORT = "must be a port such as 80, 8080:80, 127.0.0.1:8080:80 or 53:53/udp"
SIZE = "must be a size such as 512m, 1g or 512Mi"
CPUS = "must be a number of cpus such as 0.5, 2 or 250m"
TIME = "must be a duration such as 30s, 500ms or 1m30s, or a number of seconds"
REPLICAS = "must be a whole number from 0 to 10000"
BIG = "9" * 30

CASES = [
    ("scale: -1", "scale", REPLICAS, "-1"),
    ("scale: 10001", "scale", REPLICAS, "10001"),
    (f"scale: {BIG}", "scale", REPLICAS, BIG),
    ("scale: 1.5", "scale", REPLICAS, "1.5"),
    ("scale: two", "scale", REPLICAS, "two"),
    ("scale: 0x10", "scale", REPLICAS, "0x10"),
    ("scale: ''", "scale", REPLICAS, ""),
    ("deploy: {replicas: -3}", "deploy.replicas", REPLICAS, "-3"),
    ("deploy: {restart_policy: {condition: none, max_attempts: -1}}", "deploy.restart_policy.max_attempts", INT, "-1"),
    ("cpus: -1", "cpus", CPUS, "-1"),
    ("cpus: many", "cpus", CPUS, "many"),
    ("cpus: .nan", "cpus", CPUS, ".nan"),
    ("cpus: Infinity", "cpus", CPUS, "Infinity"),
    ("cpus: sNaN", "cpus", CPUS, "sNaN"),
    ("cpus: 1e400000000", "cpus", CPUS, "1e400000000"),
    (f"cpus: {BIG}", "cpus", CPUS, BIG),
    ("cpus: 1_0", "cpus", CPUS, "1_0"),
    ("cpus: \u0661", "cpus", CPUS, "\u0661"),
    ("cpu_count: 1.5", "cpu_count", "must be a whole number from 0 to 10000", "1.5"),
    ("mem_limit: -1m", "mem_limit", SIZE, "-1m"),
    ("mem_limit: lots", "mem_limit", SIZE, "lots"),
    ("mem_limit: 1x", "mem_limit", SIZE, "1x"),
    ("mem_limit: 9e9", "mem_limit", SIZE, "9e9"),
    ("mem_limit: 99999999p", "mem_limit", "must be a size below 8 exbibytes", "99999999p"),
    ("mem_limit: 1.5", "mem_limit", "must be a whole number of bytes, or have a unit such as m or Mi", "1.5"),
    ("mem_reservation: \u0661m", "mem_reservation", SIZE, "\u0661m"),
    ("resources: {limits: {cpu: -1}}", "resources.limits.cpu", CPUS, "-1"),
    ("resources: {requests: {memory: -1Mi}}", "resources.requests.memory", SIZE, "-1Mi"),
    ("deploy: {resources: {limits: {memory: 1zb}}}", "deploy.resources.limits.memory", SIZE, "1zb"),
    ("stop_grace_period: -1s", "stop_grace_period", TIME, "-1s"),
    ("stop_grace_period: long", "stop_grace_period", TIME, "long"),
    (
        "stop_grace_period: 99999999999s",
        "stop_grace_period",
        "must be a duration of at most 2147483647 seconds",
        "99999999999s",
    ),
    ("healthcheck: {test: a, interval: -1s}", "healthcheck.interval", TIME, "-1s"),
    ("healthcheck: {test: a, interval: 5x}", "healthcheck.interval", TIME, "5x"),
    ("healthcheck: {test: a, timeout: 1 s}", "healthcheck.timeout", TIME, "1 s"),
    ("healthcheck: {test: a, retries: -1}", "healthcheck.retries", INT, "-1"),
    (f"healthcheck: {{test: a, retries: {BIG}}}", "healthcheck.retries", INT, BIG),
    ("healthcheck: {http: {path: /, port: 0}}", "healthcheck.http.port", PORT, "0"),
    ("healthcheck: {http: {path: /, port: 65536}}", "healthcheck.http.port", PORT, "65536"),
    ("ports: [0]", "ports[0]", PORT, "0"),
    ("ports: [65536]", "ports[0]", PORT, "65536"),
    ("ports: [-1]", "ports[0]", PORT, "-1"),
    ("ports: ['80:99999']", "ports[0]", PORT, "80:99999"),
    ("ports: ['99999:80']", "ports[0]", PORT, "99999:80"),
    ("ports: ['90-80']", "ports[0]", "must be a range from a lower port to a higher one", "90-80"),
    ("ports: ['1-9999']", "ports[0]", "must name at most 256 ports in one range", "1-9999"),
    ("ports: ['80-81:80-83']", "ports[0]", "must have ranges of the same length on both sides", "80-81:80-83"),
    ("ports: ['80/icmp']", "ports[0]", "must have a protocol of tcp, udp or sctp after the '/'", "80/icmp"),
    ("ports: ['a:b:c:d']", "ports[0]", SHORT_PORT, "a:b:c:d"),
    ("ports: ['']", "ports[0]", SHORT_PORT, ""),
    ("ports: [{target: 0}]", "ports[0].target", PORT, "0"),
    ("ports: [{target: 80, published: 70000}]", "ports[0].published", PORT, "70000"),
    ("expose: [65536]", "expose[0]", PORT, "65536"),
    (
        "expose: ['80:80']",
        "expose[0]",
        "must be a container port such as 8080; to publish it, use 'ports'",
        "80:80",
    ),
    ("user: '99999999999'", "user", "must have numbers of at most 2147483647", "99999999999"),
    ("user: '1:2:3'", "user", "must be a user such as 1000, 1000:1000 or root", "1:2:3"),
    ("volumes: [{type: tmpfs, target: /a, tmpfs: {size: -1}}]", "volumes[0].tmpfs.size", SIZE, "-1"),
    ("public: maybe", "public", "must be true or false", "maybe"),
    ("public: 2", "public", "must be true or false", "2"),
]


@pytest.mark.parametrize(("key", "path", "want", "found"), CASES, ids=[case[0][:50] for case in CASES])
def test_of_a_service(key: str, path: str, want: str, found: str, project: Project) -> None:
    """The value is an error that shows what is taken and what was found."""
    (message,) = project(f"services:\n  web:\n    image: nginx\n    {key}\n").read().messages

    where, _, found_message = message.partition(": error: ")
    assert found_message == f"services.web.{path} {want}, not '{found}' [invalid-value]"
    assert where.startswith("compose.yaml:4:")


@pytest.mark.parametrize("size", ["0", "-1", "1x", "99999999p", "''", "1e3"])
@pytest.mark.parametrize("key", ["size: {}", "driver_opts: {{size: {}}}"])
def test_of_a_volume(key: str, size: str, project: Project) -> None:
    """A volume's size is above nothing and below eight exbibytes."""
    text = f"services: {{web: {{image: nginx, volumes: ['data:/data']}}}}\nvolumes: {{data: {{{key.format(size)}}}}}\n"

    assert project(text).read().codes == ["invalid-value"]


@pytest.mark.parametrize("port", ["0", "65536", "-1", "a", "80.5", "''"])
def test_of_a_route(port: str, project: Project) -> None:
    """A route's port is a port."""
    text = f"services: {{web: {{image: nginx, ports: [80]}}}}\nendpoints: [{{path: /, service: web, port: {port}}}]\n"

    expected = [f"compose.yaml:2:43: error: endpoints[0].port {PORT}, not '{port.strip(chr(39))}' [invalid-value]"]
    assert expected == project(text).read().messages


def test_the_hint_of_a_long_range(project: Project) -> None:
    """The hint names both places that have the range, and the file that changes it for Kubernetes alone."""
    reading = project("services: {turn: {image: coturn, ports: ['49152-65535:49152-65535/udp']}}").read()
    (found,) = reading.loaded.report.sorted()

    assert found.hint == (
        "name fewer, also in the settings of its program; "
        "for Kubernetes alone: 'ports: !override' in compose.platform.yaml"
    )
