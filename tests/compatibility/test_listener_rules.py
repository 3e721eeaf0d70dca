"""Servers that listen at the name of their own service."""

from __future__ import annotations

import pytest

from tests.compatibility.test_check import check
from tests.compatibility.test_fixes import fix
from tests.conftest import Project

OWN = "INTERNAL://broker:29092,CONTROLLER://broker:29093,OTHER://0.0.0.0:9092"
EVERYWHERE = "INTERNAL://0.0.0.0:29092,CONTROLLER://0.0.0.0:29093,OTHER://0.0.0.0:9092"
KAFKA = f"KAFKA_ADVERTISED_LISTENERS: 'INTERNAL://broker:29092', KAFKA_LISTENERS: '{OWN}'"
FULL = "x-platform: {full: true}\n"


def found(project: Project, keys: str, before: str = "") -> list[str]:
    """The places and messages about listeners, without the part that all have."""
    folder = project(f"{before}services: {{broker: {{image: x, {keys}}}}}\n")
    diagnostics = (finding.diagnostic for finding in check(folder).all_findings)
    return [
        d.message.removeprefix("services.broker.").removesuffix(", which in a cluster is not the pod's address")
        for d in diagnostics
        if d.code == "own-name-listener"
    ]


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        pytest.param(f"expose: [1], environment: {{{KAFKA}}}", "environment.KAFKA_LISTENERS {}", id="kafka"),
        pytest.param(
            "expose: [1], environment: ['KAFKA_CFG_LISTENERS=A://broker:1']",
            "environment.KAFKA_CFG_LISTENERS {}",
            id="list",
        ),
        pytest.param(
            "expose: [1], environment: {ZOO_SERVERS: 'server.1=broker:2888:3888;2181 server.2=zoo2:2888:3888;2181'}",
            "environment.ZOO_SERVERS {}",
            id="zookeeper",
        ),
        pytest.param(
            "expose: [1], environment: {ZOOKEEPER_SERVERS: 'zoo2:1:2;broker:1:2'}",
            "environment.ZOOKEEPER_SERVERS {}",
            id="zookeeper-of-confluent",
        ),
        pytest.param(
            "expose: [1], environment: {CASSANDRA_LISTEN_ADDRESS: broker}",
            "environment.CASSANDRA_LISTEN_ADDRESS {}",
            id="cassandra",
        ),
        pytest.param(
            "expose: [1], environment: {SPARK_MASTER_HOST: broker}", "environment.SPARK_MASTER_HOST {}", id="spark"
        ),
        pytest.param(
            "expose: [1], environment: {network.host: broker}", "environment.network.host {}", id="elasticsearch"
        ),
        pytest.param(
            "expose: [1], command: [start, --rpc-addr broker:1]", "command {} (--rpc-addr)", id="one-argument"
        ),
        pytest.param("expose: [1], command: [start, --rpc-addr, 'broker:1']", "command {} (--rpc-addr)", id="two"),
        pytest.param(
            "expose: [1], command: x --http-addr=broker:1 --sql-addr=broker:2",
            "command {} (--http-addr, --sql-addr)",
            id="several",
        ),
        pytest.param("expose: [1], entrypoint: x --listen-addr=broker:1", "entrypoint {} (--listen-addr)", id="equals"),
        pytest.param(
            "expose: [1], command: 'x --kafka-addr a://0.0.0.0:1,b://broker:2'",
            "command {} (--kafka-addr)",
            id="of-two",
        ),
        pytest.param(
            "expose: [1], command: '--rpc_bind_addresses=broker'", "command {} (--rpc_bind_addresses)", id="no-port"
        ),
    ],
)
def test_own_name(project: Project, keys: str, where: str) -> None:
    """Its name is the address of its Service, at which no pod can listen."""
    assert found(project, keys) == [where.format("makes it listen at 'broker', its own name")]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(f"environment: {{{KAFKA}}}", id="headless"),
        pytest.param(f"expose: [1], environment: {{KAFKA_LISTENERS: '{EVERYWHERE}'}}", id="everywhere"),
        pytest.param("expose: [1], environment: {KAFKA_LISTENERS: 'A://my-broker:1,B://broker.org:1'}", id="others"),
        pytest.param("expose: [1], environment: {ZOO_SERVERS: 'server.1=0.0.0.0:1:2;3 server.2=zoo2:1:2;3'}", id="zoo"),
        pytest.param("expose: [1], environment: {SPARK_MASTER: 'spark://broker:7077'}", id="a-client-of-spark"),
        pytest.param("expose: [1], environment: {network.publish_host: broker}", id="published"),
        pytest.param("expose: [1], environment: {KAFKA_ADVERTISED_LISTENERS: 'A://broker:1'}", id="advertised"),
        pytest.param("expose: [1], command: x --advertise-rpc-addr broker:1 --advertise-addr=broker", id="an-option"),
        pytest.param("expose: [1], command: x --rpc-addr 0.0.0.0:1 broker", id="another-argument"),
    ],
)
def test_no_listener(project: Project, keys: str) -> None:
    """A name that resolves to pods, that is advertised, or of another one is fine."""
    assert found(project, keys) == []


def test_hostname(project: Project) -> None:
    """In full mode, the pod's own name is its address; the pods of a StatefulSet have names of their own."""
    keys = f"expose: [1], hostname: broker, environment: {{{KAFKA}}}"

    assert found(project, keys, FULL) == []
    assert len(found(project, keys)) == 1
    assert len(found(project, f"{keys}, volumes: [/data]", FULL)) == 1


def test_fix(project: Project) -> None:
    """The variable is written again; with it, nothing is left."""
    text = f"services:\n  broker: {{image: x, expose: [1], environment: {{{KAFKA}}}}}\n"
    folder = project(text)
    lines = fix(folder)

    assert lines == ["services:", "  broker:", "    environment:", f'      KAFKA_LISTENERS: "{EVERYWHERE}"']
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        pytest.param(f"environment: {{{KAFKA}}}", f'      KAFKA_LISTENERS: "{EVERYWHERE}"', id="kafka"),
        pytest.param("command: start --rpc-addr broker:1", "      endpoint_mode: dnsrr", id="an-argument"),
    ],
)
def test_a_name_that_is_another_one_in_a_cluster(project: Project, keys: str, line: str) -> None:
    """A server that listens at its name with an underscore is mended at once: no name is its address."""
    keys = keys.replace("broker", "my_broker")
    folder = project(f"services: {{my_broker: {{image: x, expose: [1], {keys}}}}}\n")
    lines = fix(folder)

    assert line in lines
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    left = {finding.diagnostic.code for finding in check(folder).all_findings}
    assert left <= {"name-normalized", "no-traffic-diversion"}


def test_fix_of_an_ensemble(project: Project) -> None:
    """The other servers of an ensemble keep their names; their ports are listed by entries of their own."""
    servers = "server.1=zoo1:2888:3888;2181 server.2=zoo2:2888:3888;2181"
    variables = f"environment: {{ZOO_MY_ID: 1, ZOO_SERVERS: {servers}}}"
    text = "\n".join(f"  zoo{number}: {{image: zookeeper, expose: [2181], {variables}}}" for number in (1, 2))
    folder = project(f"services:\n{text}\n")
    lines = fix(folder)

    own = "0.0.0.0"  # noqa: S104 -- text of a file
    assert f'      ZOO_SERVERS: "{servers.replace("zoo1", own)}"' in lines
    assert f'      ZOO_SERVERS: "{servers.replace("zoo2", own)}"' in lines
    assert lines.count('      - "3888"') == 2
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("environment: {KAFKA_LISTENERS: 'A://broker:1'}", id="listeners-that-are-advertised"),
        pytest.param("environment: {SPARK_MASTER_HOST: broker}", id="a-single-address"),
        pytest.param("command: [start, --rpc-addr, 'broker:1']", id="an-argument"),
        pytest.param("command: 'server http://broker{1...4}/data http://broker/data'", id="a-server-of-minio"),
    ],
)
def test_fix_by_the_name(project: Project, keys: str) -> None:
    """Where a single address is needed, the name of the service leads to its pod."""
    folder = project(f"services: {{broker: {{image: x, expose: [1], {keys}}}}}")
    lines = fix(folder)

    assert lines == ["services:", "  broker:", "    deploy:", "      endpoint_mode: dnsrr"]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert {finding.diagnostic.code for finding in check(folder).all_findings} == {"no-traffic-diversion"}


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        pytest.param("command: 'server http://store{1...4}/data{1...2}'", "command", id="range"),
        pytest.param("command: ['server', 'http://other/d', 'http://store2:9000/d']", "command", id="list"),
        pytest.param(
            "entrypoint: 'minio server https://store{2...3}.x/d http://store{1...4}/d'", "entrypoint", id="two"
        ),
        pytest.param(
            "environment: {MINIO_VOLUMES: 'http://store{1...4}:9000/data'}", "environment.MINIO_VOLUMES", id="env"
        ),
    ],
)
def test_a_server_that_looks_for_itself(project: Project, keys: str, place: str) -> None:
    """Each server of MinIO has to find itself among all by its address."""
    folder = project(f"services: {{store2: {{image: x, expose: [9000], {keys}}}}}")
    (finding,) = check(folder).all_findings

    assert finding.diagnostic.message == (
        f"services.store2.{place} makes it look for itself at 'store2', its own name, which in a cluster is not the"
        " pod's address"
    )


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("command: 'server http://store{3...4}/data'", id="outside-the-range"),
        pytest.param("command: 'server http://store{1...4}x/data'", id="another-name"),
        pytest.param("command: 'server /data'", id="alone"),
        pytest.param("command: 'server http://store2/data'", id="one-server"),
        pytest.param("command: 'mirror http://store{1...4}/data'", id="no-server"),
        pytest.param("environment: {STORES: 'http://store{1...4}/data'}", id="another-variable"),
    ],
)
def test_no_server_that_looks_for_itself(project: Project, keys: str) -> None:
    folder = project(f"services: {{store2: {{image: x, expose: [9000], {keys}}}}}")

    assert check(folder).all_findings == ()
