"""Exposed ports in full mode: NodePorts that answer over TCP and UDP, and a LoadBalancer that nobody waits for."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from composeplat.local.layout import NODE_ADDRESS
from tests.deploy.conftest import SLEEP, Environment, until

PROJECT = f"""
x-platform: {{full: true}}
x-app: &app {{image: busybox, stop_grace_period: 0}}
services:
  echo:
    <<: *app
    command: nc -ll -p 7777 -e echo tcp
    networks: [a]
    x-expose: {{type: NodePort, ports: [7777, 7777/udp]}}
    expose: [7777, 7777/udp]
  waits:
    <<: *app
    command: {SLEEP}
    x-expose: {{type: LoadBalancer, ports: [80]}}
networks: {{a: {{}}}}
"""
#: Answers UDP; no command of busybox does.
SERVE = """
import socket
server = socket.socket(type=socket.SOCK_DGRAM)
server.bind(("0.0.0.0", 7777))
print("ready", flush=True)
while True:
    server.sendto(b"udp", server.recvfrom(9)[1])
"""
ASK = """
import socket, sys
from urllib.parse import urlsplit
url = urlsplit(sys.argv[1])
client = socket.socket(type=socket.SOCK_DGRAM if url.scheme == "udp" else socket.SOCK_STREAM)
client.settimeout(2)
client.connect((url.hostname, url.port))
client.send(b"x")
print(client.recv(9).decode().strip(), end="")
"""


def ask(environment: Environment, url: str) -> str:
    """What a port answers to a program on the node, outside of all pods."""
    inside = ["nsenter", "-t", str(environment.cluster.status().pid), "-n", "--"]
    done = subprocess.run([*inside, sys.executable, "-c", ASK, url], capture_output=True, text=True, check=False)
    return done.stdout


@contextlib.contextmanager
def udp_server(environment: Environment) -> Iterator[None]:
    """A program in the network of the service's pod."""
    (pod,) = environment.pods("echo")
    network = environment.exec(pod["metadata"]["name"], "readlink", "/proc/self/ns/net").strip()
    pid = next(
        path.parent.parent.name for path in Path("/proc").glob("[0-9]*/ns/net") if str(path.readlink()) == network
    )
    command = ["nsenter", "-t", pid, "-n", "--", sys.executable, "-c", SERVE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield
        process.kill()


def test_node_ports_answer(environment: Environment) -> None:
    """A NodePort is reached over TCP and UDP at the address that the commands show."""
    done = environment.deploy(PROJECT).expect()
    assert "waits: its LoadBalancer has no address yet" in done.stderr
    assert "waits: no cloud or program of this cluster is known to give addresses to LoadBalancers" in done.stderr

    ports = environment.platform("port", "echo", "--json").expect().json["ports"]
    tcp, udp = ([url for row in ports if row["protocol"] == kind for url in row["urls"]] for kind in ("tcp", "udp"))
    assert [url.rpartition(":")[0] for url in (*tcp, *udp)] == [f"tcp://{NODE_ADDRESS}", f"udp://{NODE_ADDRESS}"]
    until(lambda: ask(environment, tcp[0]) == "tcp")
    with udp_server(environment):
        until(lambda: ask(environment, udp[0]) == "udp")
    assert tcp[0] in environment.platform("status").expect().stdout
    assert udp[0] in environment.platform("endpoints").expect().stdout
