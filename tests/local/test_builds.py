"""Builds of the local cluster, for real: the reach of their steps, who they are, and that nothing is left of them.

The tests share one cluster, which some of them restart, and run in their order.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.local.base_images import push_busybox
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.layout import BUILD_USER
from composeplat.local.supervisor import is_listening
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import BUILDX
from tests.local.test_cluster import processes_of, wait
from tests.own_cluster import NEEDS_ROOT, first_port, ports_from

_FIRST = first_port("builds")
PORTS = ports_from(_FIRST)
#: A wire to a network namespace that is for all that is outside: this machine's end of it, and the other.
WIRE, NEAR, FAR = f"out{_FIRST}", "198.18.200.1", "198.18.200.2"
ABSTRACT = f"composeplat-{_FIRST}"

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(300),
    NEEDS_ROOT,
]


@dataclass(frozen=True)
class Builds:
    cluster: LocalCluster
    folder: Path

    def start(self, dockerfile: str, *options: str) -> subprocess.Popen[str]:
        folder = self.folder / "context"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text(dockerfile)
        buildx = self.folder / "buildx" / "instances"
        buildx.mkdir(parents=True, exist_ok=True)
        node = {"Name": "own0", "Endpoint": f"unix://{self.cluster.layout.buildkit_socket}"}
        (buildx / "own").write_text(json.dumps({"Name": "own", "Driver": "remote", "Nodes": [node], "Dynamic": False}))
        return subprocess.Popen(
            [Toolchain(os.environ).need(BUILDX).path, "build", "--builder", "own", "--progress", "plain", "--no-cache",
             *options, str(folder)],
            env={**os.environ, "BUILDX_CONFIG": str(buildx.parent)}, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def build(self, dockerfile: str, *options: str) -> str:
        """The output of the steps of a build."""
        process = self.start(dockerfile, *options)
        _, printed = process.communicate(timeout=100)
        assert process.returncode == 0, printed
        return printed

    def reached(self, *addresses: str) -> list[str]:
        """Those of some addresses that a step has an answer from, whatever it is."""
        asking = "; ".join(
            f"timeout 5 wget -O /dev/null http://{address}/ 2>&1 | sed 's|^|{address}: |'" for address in addresses
        )
        printed = self.build(f"FROM busybox:1.37\nRUN {asking}\n")
        received = [line for line in printed.splitlines() if "saved" in line or "server returned error" in line]
        return [address for address in addresses if any(f" {address}: " in line for line in received)]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builds]:
    folder = tmp_path_factory.mktemp("builds")
    cluster = local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": str(folder)}, ports=PORTS, egress=False)
    sockets = cluster.layout.build_run
    sockets.mkdir()
    # As Debian, Ubuntu and Fedora mount /run, though not every machine that runs the tests.
    run("mount", "-t", "tmpfs", "-o", "noexec,nosuid,nodev", "tmpfs", str(sockets))
    try:
        cluster.start()
        push_busybox(("127.0.0.1", PORTS["registry"]), os.environ)
        yield Builds(cluster, folder)
    finally:
        cluster.stop()
        if sockets.is_mount():
            run("umount", str(sockets))
        cluster.delete()


def run(*args: str) -> None:
    subprocess.run(args, check=True)


@pytest.fixture(scope="module")
def outside(builds: Builds) -> Iterator[str]:
    """A server in a network of its own, which this machine has a wire to: one it did not have when builds began."""
    assert builds.cluster.status().running
    run("ip", "netns", "add", WIRE)
    try:
        run("ip", "link", "add", WIRE, "type", "veth", "peer", "name", "far", "netns", WIRE)
        run("ip", "address", "add", f"{NEAR}/24", "dev", WIRE)
        run("ip", "link", "set", WIRE, "up")
        for args in (("address", "add", f"{FAR}/24", "dev", "far"), ("link", "set", "far", "up")):
            run("ip", "-n", WIRE, *args)
        command = ["ip", "netns", "exec", WIRE, sys.executable, "-m", "http.server", "8080", "--directory", "/proc/tty"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            wait(lambda: is_listening(f"tcp:{FAR}:8080"))
            yield f"{FAR}:8080"
            server.kill()
    finally:
        run("ip", "netns", "delete", WIRE)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server at every address of this machine."""
    with ThreadingHTTPServer((str(IPv4Address(0)), 0), Answer) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


def own_addresses() -> list[str]:
    found = json.loads(subprocess.check_output(["ip", "-4", "-json", "address"]))
    return [address["local"] for link in found for address in link["addr_info"]]


def test_steps_reach_the_outside_and_not_this_machine(builds: Builds, outside: str, port: int) -> None:
    """Neither by its loopback nor by another address, nor by the gateway or resolver of their own network."""
    machine = [f"{address}:{port}" for address in own_addresses()]
    ports = [f"127.0.0.1:{PORTS[name]}" for name in ("api", "registry")]
    gateways = [f"198.19.25{n}:{port}" for n in ("4.1", "4.2", "4.3", "4.100", "5.1")]

    assert f"{NEAR}:{port}" in machine
    assert builds.reached(*machine, *ports, *gateways, f"0.0.0.0:{port}", outside) == [outside]


def test_steps_have_the_proxies_of_docker(builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the configuration of the user who builds; the image does not keep them."""
    proxies = {"default": {"httpProxy": "http://proxy.example.com:3128", "noProxy": "localhost"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    tag = f"localhost:{PORTS['registry']}/proxies:1"

    printed = builds.build("FROM busybox:1.37\nRUN echo proxy: $HTTP_PROXY, not $NO_PROXY\n", "--push", "--tag", tag)

    assert "proxy: http://proxy.example.com:3128, not localhost" in printed
    (tmp_path / "config.json").write_text("{}")
    assert "proxy: none" in builds.build(f"FROM {tag}\nRUN echo proxy: ${{HTTP_PROXY:-none}}\n")


def test_steps_see_no_abstract_socket(builds: Builds) -> None:
    """Abstract sockets belong to a network, and so this machine's are not those of steps."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{ABSTRACT}")
        assert f"@{ABSTRACT}" in Path("/proc/net/unix").read_text()

        assert "sockets: 0" in builds.build("FROM busybox:1.37\nRUN echo sockets: $(grep -c @ /proc/net/unix)\n")


EVERYTHING = """
FROM busybox:1.37 AS first
COPY programs /
RUN useradd -m -u 1234 someone && mkdir /work && chown someone /work
USER someone
RUN id -un > /work/who
FROM busybox:1.37
COPY --from=first /etc/passwd /etc/passwd
COPY --from=first --chown=someone:55 /work/who /who
COPY --chown=777:888 Dockerfile /file
RUN --mount=type=cache,target=/cache echo once >> /cache/notes; echo notes: $(wc -l < /cache/notes)
RUN --mount=type=secret,id=word echo secret: $(wc -c < /run/secrets/word)
RUN echo who: $(cat /who), $(stat -c '%U %u:%g' /who), $(stat -c %u:%g /file), $(id -u)
RUN echo map: $(cat /proc/self/uid_map)
"""


def copy_programs(folder: Path, *names: str) -> None:
    """Programs of this machine with the libraries they want."""
    for name in names:
        program = shutil.which(name, path="/usr/sbin:/usr/bin")
        assert program is not None
        libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.split()
        for path in (program, *(word for word in libraries if word.startswith("/"))):
            (folder / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / path[1:])
    (folder / "bin").mkdir(exist_ok=True)
    for name in names:
        (folder / "bin" / name).symlink_to(shutil.which(name, path="/usr/sbin:/usr/bin") or name)


def test_steps_are_nobody_of_this_machine(builds: Builds) -> None:
    """Root of a step is no user of the machine; users, owners, caches and secrets are as usual, in the image too."""
    (builds.folder / "context").mkdir(exist_ok=True)
    copy_programs(builds.folder / "context" / "programs", "useradd")
    (builds.folder / "word").write_text("hush")
    tag = f"localhost:{PORTS['registry']}/users:1"

    printed = builds.build(EVERYTHING, "--secret", f"id=word,src={builds.folder / 'word'}", "--push", "--tag", tag)

    output = [line.partition(" ")[2].partition(" ")[2] for line in printed.splitlines()]
    assert {"notes: 1", "secret: 4", "who: someone, someone 1234:55, 777:888, 0"} <= set(output)
    assert f"map: 0 {BUILD_USER} 65536" in output
    again = builds.build(f"FROM {tag}\nRUN echo pulled: $(stat -c '%u:%g' /who /file)\n")
    assert "pulled: 1234:55 777:888" in again


@dataclass(frozen=True)
class Process:
    pid: int
    user: int
    args: tuple[str, ...]
    network: str

    @classmethod
    def read(cls, pid: int) -> Process:
        folder = Path(f"/proc/{pid}")
        args = tuple((folder / "cmdline").read_bytes().decode().split("\0")[:-1])
        status = (folder / "status").read_text()
        user = int(status.partition("Uid:")[2].split()[0])
        return cls(pid, user, args, str((folder / "ns" / "net").readlink()))


def descendants(pid: int) -> Iterator[Process]:
    """Every process below another; one may end while it is looked at."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield Process.read(int(child))
                yield from descendants(int(child))


def running(builds: Builds, program: str) -> list[Process]:
    """The cluster's processes of a program."""
    supervisor = builds.cluster.status().pid
    below = descendants(supervisor) if supervisor else ()
    return [process for process in below if process.args and Path(process.args[0]).name == program]


def test_a_killed_builder_takes_its_steps_along(builds: Builds) -> None:
    """With the builder end its steps and their uplink; it is started again, with one of each, and builds."""
    build = builds.start("FROM busybox:1.37\nRUN sleep 4321\n")
    (step,) = wait(lambda: running(builds, "sleep"))
    (buildkitd,), (egress,) = running(builds, "buildkitd"), running(builds, "slirp4netns")
    assert (step.user, buildkitd.user) == (BUILD_USER, BUILD_USER)
    assert len({step.network, buildkitd.network, os.readlink("/proc/self/ns/net")}) == 2

    os.kill(buildkitd.pid, signal.SIGKILL)
    build.communicate(timeout=30)

    wait(lambda: not any(Path(f"/proc/{process.pid}").exists() for process in (step, buildkitd, egress)))
    wait(lambda: builds.cluster.status().broken == [] and len(running(builds, "slirp4netns")) == 1)
    assert "again" in builds.build("FROM busybox:1.37\nRUN echo again\n")
    assert running(builds, "sleep") == []


def test_the_uplink_comes_back(builds: Builds, outside: str) -> None:
    """The uplink of steps is started again when it ends, and builds continue."""
    (egress,) = running(builds, "slirp4netns")
    os.kill(egress.pid, signal.SIGKILL)

    assert wait(lambda: builds.reached(outside)) == [outside]


def test_the_machines_network_when_asked(builds: Builds, outside: str, port: int) -> None:
    """`--build-network host` gives steps this machine's network, until a start without it; they are nobody there."""
    asked = local_cluster(builds.cluster.environment, build_network="host", egress=False)
    with pytest.raises(ComposeplatError, match="is running with another network for builds"):
        asked.start()
    asked.stop()
    asked.start()

    assert builds.reached(f"127.0.0.1:{port}", outside) == [f"127.0.0.1:{port}", outside]
    assert f"map: 0 {BUILD_USER} " in builds.build("FROM busybox:1.37\nRUN echo map: $(cat /proc/self/uid_map)\n")
    assert running(builds, "slirp4netns") == []
    assert "network.host" in (asked.layout.build_run / "buildkitd.toml").read_text()


def test_without_an_uplink(
    builds: Builds, outside: str, port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where slirp4netns can't be had, the start says so with the fix, and steps reach nothing at all."""
    builds.cluster.stop()
    monkeypatch.setattr("composeplat.local.networks._TUN", "/dev/net/none")
    builds.cluster.start()

    assert (
        "build steps have no network: there is no /dev/net/none: modprobe tun, then restart the cluster"
        in capsys.readouterr().err
    )
    assert builds.reached(f"127.0.0.1:{port}", outside) == []


def test_a_stopped_cluster_leaves_nothing_of_builds(builds: Builds) -> None:
    """With the cluster end the builder, its steps, their networks and mounts, and its folder beside the sockets."""
    build = builds.start("FROM busybox:1.37\nRUN sleep 4321\n")
    (step,) = wait(lambda: running(builds, "sleep"))
    builder = {process.pid for process in running(builds, "buildkitd") + running(builds, "frontdoor")}

    # The cluster has this mount in its own namespace.
    run("umount", "--lazy", str(builds.cluster.layout.build_run))
    builds.cluster.stop()
    build.communicate(timeout=30)

    assert not [pid for pid in (step.pid, *builder) if Path(f"/proc/{pid}").exists()]
    assert processes_of(builds.cluster) == []
    assert not builds.cluster.layout.build_run.exists()
    assert builds.cluster.layout.build_run.name not in Path("/proc/self/mounts").read_text()
