"""The local cluster on a machine with other users, for real: their access, and their attempts to take its place.

The cluster's folder is in one that every user can write to. The tests share one cluster, and run in their order.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from tests.local.test_builds import Process, descendants
from tests.local.test_cluster import wait
from tests.own_cluster import NEEDS_ROOT, first_port, ports_from

_FIRST = first_port("shared_machine")
PORTS = ports_from(_FIRST)
SIMULATED_PORT = _FIRST + 4
#: Of a second cluster, beside the one that all tests have.
OTHER_PORTS = ports_from(_FIRST + 5)
OTHER_USER = 65534
LISTENING = "0A"

pytestmark = [
    pytest.mark.cluster,
    NEEDS_ROOT,
]


def as_other_user(act: Callable[[], Any]) -> Any:
    """Run a function as another user of the machine; returns its result, or the name of its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        # Another user could not start this Python, which may lie in root's home.
        os.setgroups([])
        os.setgid(OTHER_USER)
        os.setuid(OTHER_USER)
        try:
            output = act()
        except (OSError, http.client.HTTPException) as error:
            output = type(error).__name__
        os.write(writing, json.dumps(output).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text)


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder like /tmp: all users can write to it."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="shared-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cluster(open_folder: Path) -> Iterator[LocalCluster]:
    made = local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": str(open_folder)}, ports=PORTS)
    try:
        made.start()
        yield made
    finally:
        made.delete()


@pytest.fixture(scope="module")
def simulated(open_folder: Path) -> Iterator[LocalCluster]:
    environment = {**os.environ, "COMPOSEPLAT_CLUSTER": str(open_folder)}
    made = local_cluster(environment, ports={"api": SIMULATED_PORT}, simulated=1)
    try:
        made.start()
        yield made
    finally:
        made.delete()


def processes(cluster: LocalCluster) -> list[Process]:
    supervisor = cluster.status().pid
    assert supervisor is not None
    return [Process.read(supervisor), *descendants(supervisor)]


# files ----------------------------------------------------------------------------------------------------------------


def open_paths(folders: list[str]) -> list[str]:
    """The folders and files that can be read or entered."""
    found = [str(folder) for folder in folders if os.access(folder, os.R_OK | os.X_OK)]
    for folder in folders:
        for name in ("kubeconfig", "keys/token", "keys/ca.key", "volumes", "registry", "mirror", "builder", "etcd",
                     "logs", "plan.json", "networks", "buildkitd.toml", "state"):  # fmt: skip
            with contextlib.suppress(OSError):
                os.stat(Path(folder, name))
                found.append(f"{folder}/{name}")
    return found


def test_the_files_are_closed(cluster: LocalCluster) -> None:
    """Keys, volumes, images and logs lie in folders that others can't enter, also where all can write beside them."""
    layout = cluster.layout
    folders = [str(folder) for folder in (layout.folder, layout.run, layout.build_run)]

    assert open_paths(folders) != []
    assert as_other_user(lambda: open_paths(folders)) == []


def test_processes_show_no_secret(cluster: LocalCluster) -> None:
    """The arguments of processes are for all to see: no token is in them. Their variables are closed."""
    token = (cluster.layout.keys / "token").read_text().strip()
    pids = [process.pid for process in processes(cluster)]

    def read(name: str) -> list[str]:
        found = []
        for pid in pids:
            with contextlib.suppress(OSError):
                found.append(Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace"))
        return found

    arguments = as_other_user(lambda: read("cmdline"))
    assert len(arguments) > 10
    assert [text for text in arguments if token in text] == []
    assert as_other_user(lambda: read("environ")) == []


# connections ----------------------------------------------------------------------------------------------------------


def inodes_of(found: list[Process]) -> set[str]:
    """The sockets that processes have open."""
    inodes = set()
    for process in found:
        for entry in Path(f"/proc/{process.pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                inodes.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    return inodes


def listening(found: list[Process]) -> set[str]:
    """The addresses at which processes listen on this machine's network."""
    here = os.readlink("/proc/self/ns/net")
    inodes = inodes_of([process for process in found if process.network == here])
    addresses = set()
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in inodes:
                host, port = fields[1].split(":")
                groups = [bytes.fromhex(host[at : at + 8])[::-1] for at in range(0, len(host), 8)]
                addresses.add(f"{socket.inet_ntop(family, b''.join(groups))}:{int(port, 16)}")
    return addresses


def request(port: int, path: str, host: str = "127.0.0.1", method: str = "GET") -> str:
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=10)) as connection:
        connection.request(method, path)
        return str(connection.getresponse().status)


def request_tls(port: int, path: str) -> str:
    # Another user need not know the authority.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)) as connection:
        connection.request("GET", path)
        return str(connection.getresponse().status)


def test_what_listens(cluster: LocalCluster) -> None:
    """Nothing listens on this machine's network but the ports that were chosen, on loopback."""
    assert listening(processes(cluster)) == {
        *(f"127.0.0.1:{port}" for port in PORTS.values()), f"127.0.0.2:{PORTS['registry']}",
    }  # fmt: skip


def test_ports_turn_other_users_away(cluster: LocalCluster) -> None:
    """The registry and the mirror close the connection, before they read; the API server wants a token."""
    registry, closed = PORTS["registry"], ("RemoteDisconnected", "ConnectionResetError")
    image = "/v2/library/busybox/manifests/1?ns=docker.io"
    assert cluster.status().running
    assert request(registry, "/v2/") == "200"
    assert request(registry, "/v2/", host="127.0.0.2") == "200"

    assert as_other_user(lambda: request(registry, "/v2/_catalog")) in closed
    assert as_other_user(lambda: request(registry, "/v2/library/busybox/blobs/uploads/", method="POST")) in closed
    assert as_other_user(lambda: request(registry, image, host="127.0.0.2")) in closed
    assert as_other_user(lambda: request_tls(PORTS["api"], "/api/v1/secrets")) in ("401", "403")


def socket_paths(cluster: LocalCluster) -> list[str]:
    """Sockets of the cluster that have a path, in its own network and in this machine's."""
    supervisor = cluster.status().pid
    tables = [Path(f"/proc/{supervisor}/net/unix").read_text(), Path("/proc/self/net/unix").read_text()]
    paths = [line.split()[7] for table in tables for line in table.splitlines()[1:] if len(line.split()) > 7]
    names = (str(cluster.layout.folder), str(cluster.layout.run))
    own = {path for path in tables[0].split() if path.startswith("/")}
    return sorted({path for path in paths if path.startswith(names) or path in own})


def test_sockets_turn_other_users_away(cluster: LocalCluster) -> None:
    """BuildKit, containerd, the mirror and the pipes into the cluster have sockets that others can't connect to."""
    paths = socket_paths(cluster)
    known = {cluster.layout.buildkit_socket, cluster.layout.containerd_socket, cluster.layout.mirror_socket}
    assert {str(path) for path in known} <= set(paths)

    def connect() -> list[str]:
        entered = []
        for path in paths:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(path)
                entered.append(path)
        return entered

    assert as_other_user(connect) == []


def test_other_users_can_not_end_it(cluster: LocalCluster) -> None:
    """No process of the cluster takes their signals: none is theirs, those of builds neither."""
    pids = [process.pid for process in processes(cluster)]

    def signalled() -> list[int]:
        taken = []
        for pid in pids:
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.kill(pid, 0)
                taken.append(pid)
        return taken

    assert as_other_user(signalled) == []


# taking its place -----------------------------------------------------------------------------------------------------


def bind_as_other_user(host: str, port: int) -> str:
    def bind() -> str:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            taken.bind((host, port))
        return "taken"

    return str(as_other_user(bind))


def test_other_users_can_not_take_its_ports(cluster: LocalCluster) -> None:
    """Not while a part is restarted, and not on `::1`, which clients of `localhost` try first."""
    (outside,) = [process for process in processes(cluster) if "--held" in process.args]
    os.kill(outside.pid, signal.SIGKILL)
    wait(lambda: outside.pid not in [process.pid for process in processes(cluster)])

    hosts = ("127.0.0.1", "127.0.0.2", str(IPv4Address(0)), "::1", "::")
    found = {host: bind_as_other_user(host, PORTS["registry"]) for host in hosts}

    assert set(found.values()) == {"OSError"}, found
    wait(lambda: request(PORTS["registry"], "/v2/") == "200")


def test_a_port_that_another_user_has(open_folder: Path) -> None:
    """A port that another user took before is named; nothing is started, and nothing is sent there."""
    other = local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": str(open_folder / "other")}, ports=OTHER_PORTS)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setuid(OTHER_USER)
        taken = socket.socket(socket.AF_INET6)
        taken.bind(("::1", OTHER_PORTS["registry"]))
        taken.listen()
        os.write(writing, b".")
        signal.pause()
    try:
        os.read(reading, 1)
        with pytest.raises(MissingPiece, match=rf"other programs: {OTHER_PORTS['registry']} \(--registry-port\)$"):
            other.start()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert not other.status().running
    other.delete()


def test_a_folder_that_another_user_made_first(open_folder: Path) -> None:
    """A folder of another user is refused, and so is one in it, as its owner could put another in its place."""
    as_other_user(lambda: (open_folder / "first" / "cluster").mkdir(parents=True))
    inner = local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": str(open_folder / "first")}, ports=PORTS)

    with pytest.raises(
        ComposeplatError, match=rf"^can't use '{open_folder}/first/cluster' for a cluster: the owner of"
    ):
        inner.start()
    with pytest.raises(ComposeplatError, match=r": the owner of "):
        inner.stop()


def test_a_link_at_the_place_of_the_sockets(open_folder: Path) -> None:
    """A link where the folder of sockets is to be made is not followed."""
    made = local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": str(open_folder / "linked")}, ports=OTHER_PORTS)
    made.layout.run.symlink_to(open_folder)
    try:
        with pytest.raises(ComposeplatError, match=rf"^can't use '{made.layout.run}' for a cluster: "):
            made.start()
    finally:
        made.layout.run.unlink()
        made.delete()
    assert open_folder.stat().st_mode & 0o7777 == 0o1777


# the simulated cluster ------------------------------------------------------------------------------------------------


def test_the_simulated_cluster_is_closed(simulated: LocalCluster) -> None:
    """Its etcd is on loopback too: it wants a certificate of the cluster, and speaks no plain HTTP."""
    etcd, peer = SIMULATED_PORT + 1, SIMULATED_PORT + 2
    found = listening(processes(simulated))
    assert {f"127.0.0.1:{port}" for port in (SIMULATED_PORT, etcd, peer)} <= found
    assert {address.rpartition(":")[0] for address in found} == {"127.0.0.1"}

    for port in (etcd, peer):
        assert as_other_user(partial(request, port, "/version")) in (
            "400", "BadStatusLine", "RemoteDisconnected", "ConnectionResetError",
        )  # fmt: skip
        assert as_other_user(partial(request_tls, port, "/version")) in ("SSLError", "ConnectionResetError")
    assert as_other_user(partial(request_tls, SIMULATED_PORT, "/api/v1/secrets")) in ("401", "403")
    assert as_other_user(lambda: open_paths([str(simulated.layout.folder), str(simulated.layout.run)])) == []
    others = {int(address.rpartition(":")[2]) for address in found} - {SIMULATED_PORT, etcd, peer}
    assert others == set()
