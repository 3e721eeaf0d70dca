"""What waits watches the cluster: nothing is requested while nothing changes, and who may not watch polls."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from composeplat.cluster.kinds import kind_path
from composeplat.local.cluster import LocalCluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.conftest import for_endurance
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_operating import COUNTER, assert_whole, end_program, follow

IDLE_S = 10
GRACE_S = 15
WAITED_S = 4
SIGN_OF_LIFE_BYTES = 250
"""A second; a list of pods in each poll takes a thousand."""
#: Of one processor.
MOST = 0.01
ACCOUNT = "without-watch"
FILE = f"""\
services:
  db: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0s}}
  web:
    image: busybox:1.37
    command: "{SLEEP}"
    stop_grace_period: 0s
    depends_on: {{db: {{condition: service_started}}}}
"""
#: The same, with files of the last service that `watch` copies.
WATCHED_FILE = f"""\
x-platform: {{full: true}}
{FILE}    develop: {{watch: [{{path: ./src, action: sync, target: /src}}]}}
"""

#: A process that does not end when it is asked to.
SLOW_FILE = f"""\
services:
  db:
    image: busybox:1.37
    command: [sh, -c, "trap '' TERM; sleep 100000"]
    stop_grace_period: {GRACE_S}s
"""


class Relay:
    """Passes connections on to the API server, and counts the bytes of the clients."""

    def __init__(self, port: int) -> None:
        self.sent = 0
        self._frozen = 0
        """So many of the first connections stay open, and nothing is passed on over them."""
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def freeze(self) -> None:
        """Stop to pass anything on over the connections so far, which stay open."""
        self._frozen = len(self._open)

    def close(self) -> None:
        for sock in (self._listening, *self._open):
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            number = len(self._open)
            self._open += [client, server]
            for source, target, counts in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass_on, args=(number, source, target, counts), daemon=True).start()

    def _pass_on(self, number: int, source: socket.socket, target: socket.socket, counts: bool) -> None:  # noqa: FBT001 -- for a thread
        try:
            while data := source.recv(65536):
                if number < self._frozen:
                    continue
                self.sent += len(data) if counts else 0
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture
def relay(cluster: LocalCluster) -> Iterator[Relay]:
    relay = Relay(cluster.access.port)
    yield relay
    relay.close()


def write_kubeconfig(cluster: LocalCluster, path: Path, *, port: int = 0, token: str = "") -> Path:
    """Write the cluster's kubeconfig with another port, or with the token of somebody else."""
    config = json.loads(cluster.layout.kubeconfig.read_text())
    if port:
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    if token:
        config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config))
    return path


def used_s(process: subprocess.Popen[str]) -> float:
    """The seconds of processor that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_idle(environment: Environment, relay: Relay, tmp_path: Path) -> None:
    """While nothing changes, what follows the cluster requests nothing, and takes less than 1 % of a core."""
    environment.write("1\n", "src/file")
    environment.deploy(WATCHED_FILE).expect()
    environment.variables["KUBECONFIG"] = str(
        write_kubeconfig(environment.cluster, tmp_path / "through-relay", port=relay.port)
    )
    commands = (("status", "--watch"), ("logs", "--follow"), ("watch", "web"))
    followers = [environment.start(*args) for args in commands]
    until(lambda: relay.sent > 0)
    # A service with copied files gets them in each new pod.
    until(lambda: is_copied(environment))
    # Their beginnings: a list and a watch for each kind.
    until(lambda: is_quiet(relay))
    sent, used = relay.sent, [used_s(process) for process in followers]
    time.sleep(IDLE_S)
    shares = [(used_s(process) - before) / IDLE_S for process, before in zip(followers, used, strict=True)]

    assert relay.sent == sent
    assert max(shares) < MOST
    # They are still following.
    later = "services:\n  later: {image: 'busybox:1.37', command: echo here}"
    environment.deploy(WATCHED_FILE.replace("services:", later))
    until(lambda: relay.sent > sent)
    assert [process.poll() for process in followers] == [None] * len(commands)


def test_a_new_address(environment: Environment) -> None:
    """An address that changes is shown at once, although nothing else changes."""
    web = "{image: 'busybox:1.37', command: httpd -f -p 8080, stop_grace_period: 0s, ports: ['80:8080']}"
    environment.deploy(f"services: {{web: {web}}}").expect()
    following = environment.start("status", "--watch")
    shown: list[str] = []
    threading.Thread(target=lambda: shown.extend(following.stdout or ()), daemon=True).start()
    until(lambda: any("https://web" in line for line in shown))
    # Its first snapshots are over.
    time.sleep(5)
    with environment.api() as api:
        path = kind_path("networking.k8s.io/v1", "Ingress", environment.namespace)
        (endpoint,) = api.items(path)
        rule = {**endpoint["spec"]["rules"][0], "host": "moved.example.com"}
        api.patch(f"{path}/{endpoint['metadata']['name']}", {"spec": {"rules": [rule]}})

    until(lambda: any("https://moved.example.com" in line for line in shown), seconds=10)


@pytest.mark.parametrize("command", ["destroy", *for_endurance("sleep")])
def test_the_wait_for_pods_that_end(environment: Environment, relay: Relay, tmp_path: Path, command: str) -> None:
    """While pods take their time to end, nothing is requested from the cluster but a ping every two seconds."""
    environment.deploy(SLOW_FILE).expect()
    environment.variables["KUBECONFIG"] = str(
        write_kubeconfig(environment.cluster, tmp_path / "through-relay", port=relay.port)
    )
    waiting = environment.start(command)
    until(lambda: not environment.pods("db"))
    time.sleep(WAITED_S)
    sent = relay.sent
    time.sleep(WAITED_S)
    rate = (relay.sent - sent) / WAITED_S

    # Those that end are left out of the pods.
    assert environment.objects("v1", "Pod")
    assert rate < SIGN_OF_LIFE_BYTES
    assert waiting.wait(30) == 0


def is_copied(environment: Environment) -> bool:
    """Save a file, and return whether it is in the pod already."""
    number = time.monotonic_ns()
    environment.write(f"{number}\n", "src/file")
    time.sleep(0.5)
    (pod,) = environment.pods("web")
    try:
        return environment.exec(pod["metadata"]["name"], "cat", "/src/file").strip() == str(number)
    except subprocess.CalledProcessError:
        return False


def is_quiet(relay: Relay) -> bool:
    sent = relay.sent
    time.sleep(3)
    return relay.sent == sent


@pytest.fixture
def without_watch(cluster: LocalCluster, tmp_path: Path) -> Path:
    """The kubeconfig of somebody who may do anything but watch."""
    metadata = {"name": ACCOUNT, "namespace": "default"}
    verbs = ["get", "list", "create", "update", "patch", "delete", "deletecollection"]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": verbs}, {"nonResourceURLs": ["*"], "verbs": ["get"]},
        ],
    }  # fmt: skip
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }  # fmt: skip
    items = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, role, binding]
    kubectl = [str(Toolchain(os.environ).need(KUBE).path), "kubectl", f"--kubeconfig={cluster.layout.kubeconfig}"]
    applied = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    subprocess.run([*kubectl, "apply", "-f", "-"], input=applied, text=True, check=True, capture_output=True)
    made = subprocess.run(
        [*kubectl, "create", "token", ACCOUNT, "-n", "default"], text=True, check=True, capture_output=True
    )
    return write_kubeconfig(cluster, tmp_path / "without-watch", token=made.stdout.strip())


def test_who_may_not_watch(environment: Environment, without_watch: Path) -> None:
    """Somebody who may list and not watch deploys, in the order of dependencies, and sees the status."""
    environment.variables["KUBECONFIG"] = str(without_watch)
    environment.deploy(FILE).expect()

    assert [row["state"] for row in environment.platform("status", "--json").expect().json["services"]] == ["ready"] * 2
    environment.platform("destroy", "--yes").expect()


def test_a_broken_file_is_reported_as_soon_as_before(environment: Environment) -> None:
    """A service whose program ends at once is a failure, not a ready service."""
    ran = environment.deploy(FILE.replace("services:", "services:\n  bad: {image: 'busybox:1.37', command: 'false'}"))

    assert ran.status == 1
    assert "bad: failed" in ran.stderr


@pytest.mark.endurance
def test_logs_through_connections_that_become_silent(environment: Environment, relay: Relay, tmp_path: Path) -> None:
    """Logs are read over new connections within two minutes: no line is lost, and none comes twice."""
    environment.deploy(COUNTER % "never").expect()
    environment.variables["KUBECONFIG"] = str(
        write_kubeconfig(environment.cluster, tmp_path / "through-relay", port=relay.port)
    )
    followed = follow(environment, "counter")
    # The first lines are read before the log is followed.
    until(lambda: len(followed.printed) > 20_000)
    relay.freeze()
    frozen_at, seen = time.monotonic(), len(followed.printed)

    until(lambda: len(followed.printed) > seen + 20_000, seconds=240)
    assert time.monotonic() - frozen_at > 30
    end_program(environment)
    followed.until("run 1 end")
    assert followed.end() == 130
    assert_whole(followed.printed, 1)
