"""What pods of the local cluster reach outside, for real: a machine in a network namespace, and not this machine.

The cluster is started where the resolver of names is that machine. The tests share the cluster, and run in their order.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from composeplat.local.base_images import push_busybox
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.supervisor import is_listening
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.local import outside_server
from tests.local.test_builds import descendants
from tests.local.test_cluster import wait
from tests.own_cluster import NEEDS_ROOT, first_port, ports_from

_FIRST = first_port("egress")
PORTS = ports_from(_FIRST)
#: A wire to the machine outside: this machine's end of it, and the other.
WIRE, _NET = f"eg{_FIRST}", _FIRST // 100 % 60 * 4
NEAR, FAR = f"203.0.113.{_NET + 1}", f"203.0.113.{_NET + 2}"
LINK_LOCAL_NEAR, LINK_LOCAL = f"169.254.77.{_NET + 1}", f"169.254.77.{_NET + 2}"
NAME = "shop.example.com"
#: The addresses of the link between the pods and this machine: the machine's loopback would be behind the first.
GATEWAY, CLUSTER = "198.51.100.2", "198.51.100.100"

pytestmark = [
    pytest.mark.cluster,
    NEEDS_ROOT,
]


@dataclass(frozen=True)
class Pods:
    cluster: LocalCluster
    folder: Path

    def command(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command of platform, on a machine whose names are resolved outside."""
        resolver = self.folder / "resolv.conf"
        resolver.write_text(f"nameserver {FAR}\n")
        platform = str(Path(sys.executable).with_name("platform"))
        script = f'mount --bind {resolver} /etc/resolv.conf && exec {platform} "$@"'
        return subprocess.run(
            ["unshare", "--mount", "--", "sh", "-c", script, "sh", *args],
            env=dict(self.cluster.environment), check=False, capture_output=True, text=True,
        )  # fmt: skip

    def start(self, *options: str) -> subprocess.CompletedProcess[str]:
        ports = [f"--{name}-port={port}" for name, port in PORTS.items()]
        return self.command("cluster", "start", *ports, *options)

    def kubectl(self, *args: str) -> subprocess.CompletedProcess[str]:
        kube = str(Toolchain(os.environ).need(KUBE).path)
        command = [kube, "kubectl", f"--kubeconfig={self.cluster.layout.kubeconfig}", *args]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    def run_pod(self) -> None:
        push_busybox(("127.0.0.1", PORTS["registry"]), os.environ)
        script = "trap exit TERM; while :; do sleep 1; done"
        made = self.kubectl("run", "probe", "--image=busybox:1.37", "--restart=Never", "--", "sh", "-c", script)
        assert made.returncode == 0, made.stderr
        assert self.kubectl("wait", "--for=condition=Ready", "pod/probe", "--timeout=30s").returncode == 0

    def fetch(self, address: str) -> str:
        """What a pod gets from an address; empty without an answer."""
        return self.kubectl("exec", "probe", "--", "timeout", "4", "wget", "-q", "-O", "-", f"http://{address}/").stdout


@pytest.fixture(scope="module")
def outside() -> Iterator[str]:
    """A machine outside; gives its address."""

    def run(*args: str) -> None:
        subprocess.run(["ip", *args], check=True)

    run("netns", "add", WIRE)
    try:
        run("link", "add", WIRE, "type", "veth", "peer", "name", "far", "netns", WIRE)
        run("address", "add", f"{NEAR}/30", "dev", WIRE)
        run("link", "set", WIRE, "up")
        run("-n", WIRE, "address", "add", f"{FAR}/30", "dev", "far")
        run("-n", WIRE, "link", "set", "far", "up")
        run("address", "add", f"{LINK_LOCAL_NEAR}/30", "dev", WIRE)
        run("-n", WIRE, "address", "add", f"{LINK_LOCAL}/30", "dev", "far")
        with contextlib.ExitStack() as stack:
            for address in (FAR, LINK_LOCAL):
                command = ["ip", "netns", "exec", WIRE, sys.executable, outside_server.__file__, address]
                server = stack.enter_context(subprocess.Popen(command))
                stack.callback(server.kill)
                wait(lambda address=address: is_listening(f"tcp:{address}:80"))  # type: ignore[misc]
            yield FAR
    finally:
        run("netns", "delete", WIRE)


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory, outside: str) -> Iterator[Pods]:
    assert outside == FAR
    folder = tmp_path_factory.mktemp("egress")
    made = Pods(local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": str(folder)}, ports=PORTS), folder)
    try:
        started = made.start()
        assert started.returncode == 0, started.stderr
        made.run_pod()
        yield made
    finally:
        made.cluster.delete()


@pytest.fixture
def here() -> Iterator[str]:
    """A server on this machine, at its end of the wire and on its loopback; gives its port."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ThreadingHTTPServer((NEAR, 0), outside_server.Page))
        other = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", server.server_port), outside_server.Page))
        for found in (server, other):
            threading.Thread(target=found.serve_forever, args=(0.02,)).start()
            stack.callback(found.shutdown)
        yield str(server.server_port)


def test_pods_reach_other_machines_by_name(pods: Pods) -> None:
    """Names are resolved as on this machine, and connections get there; names of the cluster stay in it."""
    assert pods.fetch(NAME) == outside_server.PAGE.decode()
    assert pods.fetch(FAR) == outside_server.PAGE.decode()
    assert pods.fetch("nobody") == ""
    assert (
        "198.19.0.1" in pods.kubectl("exec", "probe", "--", "nslookup", "kubernetes.default.svc.cluster.local").stdout
    )


def test_pods_do_not_reach_this_machine(pods: Pods, here: str) -> None:
    """Neither its addresses nor its loopback, though both answer here."""
    for address in (NEAR, "127.0.0.1"):
        connection = http.client.HTTPConnection(address, int(here), timeout=5)
        connection.request("GET", "/")
        assert connection.getresponse().read() == outside_server.PAGE

    assert [pods.fetch(f"{address}:{here}") for address in (NEAR, GATEWAY)] == ["", ""]


def test_pods_do_not_reach_link_local_addresses(pods: Pods) -> None:
    """Machines of a cloud get their credentials at such an address: it answers this machine, and no pod."""
    connection = http.client.HTTPConnection(LINK_LOCAL, 80, timeout=5)
    connection.request("GET", "/")
    assert connection.getresponse().read() == outside_server.PAGE

    assert pods.fetch(LINK_LOCAL) == ""


def listening(processes: set[int]) -> set[str]:
    """Where processes listen on this machine's network, as the kernel writes addresses."""
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    places = {f"socket:[{row[9]}]": row[1] for row in rows if row[3] == "0A"}
    found = set()
    for pid in processes:
        # A process, or a file that it has opened, may be gone by now.
        with contextlib.suppress(FileNotFoundError):
            for descriptor in list(Path(f"/proc/{pid}/fd").iterdir()):
                with contextlib.suppress(OSError):
                    found.add(places.get(os.readlink(descriptor), ""))
    return found - {""}


def test_nothing_from_outside_reaches_in(pods: Pods) -> None:
    """On this machine's network the cluster listens on loopback alone: the machine outside connects to none of it."""
    supervisor = pods.cluster.status().pid
    assert supervisor is not None
    places = listening({process.pid for process in descendants(supervisor)})
    # The builder asks the mirror at the second address.
    assert {place.partition(":")[0] for place in places} == {"0100007F", "0200007F"}
    ports = {int(place.partition(":")[2], 16) for place in places}
    assert ports == set(PORTS.values())

    script = "for port in $@; do timeout 1 busybox nc -w 1 $NEAR $port < /dev/null && echo $port; done; true"
    command = ["ip", "netns", "exec", WIRE, "sh", "-c", script, "sh", *map(str, ports)]
    tried = subprocess.run(command, env={**os.environ, "NEAR": NEAR}, check=True, capture_output=True, text=True)
    assert tried.stdout == ""


def test_the_uplink_comes_back(pods: Pods) -> None:
    """What leads pods out is started again when it ends."""
    supervisor = pods.cluster.status().pid
    assert supervisor is not None
    (uplink,) = (p for p in descendants(supervisor) if f"--cidr={CLUSTER.rpartition('.')[0]}.0/24" in p.args)
    os.kill(uplink.pid, signal.SIGKILL)

    wait(lambda: pods.fetch(FAR), seconds=20)


def test_no_egress(pods: Pods) -> None:
    """`--no-egress` keeps pods in until a start without it; a deploy takes the running cluster as it is."""
    refused = pods.start("--no-egress")
    assert "is running with another network for builds or pods" in refused.stderr
    pods.cluster.stop()
    started = pods.start("--no-egress")
    assert started.returncode == 0, started.stderr
    assert not local_cluster(pods.cluster.environment).layout.egress
    pods.kubectl("delete", "pod", "probe", "--now")
    pods.run_pod()

    assert [pods.fetch(address) for address in (FAR, NAME)] == ["", ""]
    assert "egress" not in (pods.cluster.status().parts or {})
