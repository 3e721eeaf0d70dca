"""One local cluster for all tests of a run, and an environment in a namespace of its own for each."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.local.base_images import push_busybox
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DEPLOY_TOOLS, DEVELOPMENT_TOOLS, KUBE, Tool
from tests.conftest import ENDURANCE, Project, split_log_path
from tests.own_cluster import NEEDS_ROOT, ports_from
from tests.schemas import checked

#: Tests may run in several processes at once, each with a cluster of its own; FIRST_PORT parts two runs of them.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_FIRST = int(os.environ.get("FIRST_PORT", "28000")) + 100 * _WORKER
PORTS = ports_from(_FIRST)
PLATFORM = Path(sys.executable).parent / "platform"
_NUMBERS = itertools.count(1)

#: Ends at once when asked to, so that tests do not wait for it, and starts nothing meanwhile.
STAY = "trap true TERM; sleep 1000000 & wait; true"
SLEEP = f"sh -c '{STAY}'"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(0 if ENDURANCE else 300))
            item.add_marker(NEEDS_ROOT)


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    stdout: str
    stderr: str
    seconds: float
    log: str = ""
    """The path of the log, where a failed run named one."""

    def expect(self, status: int = 0) -> Ran:
        assert status == self.status, f"exit {self.status}\n{self.stdout}\n{self.stderr}"
        return self

    @property
    def json(self) -> Any:
        return checked(json.loads(self.stdout))


@dataclass(slots=True)
class Environment:
    """A Compose file in a folder, and a namespace for it."""

    folder: Path
    namespace: str
    variables: dict[str, str]
    cluster: LocalCluster
    name: str = "env"
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def write(self, text: str, name: str = "compose.yaml") -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def command_line(self, *args: str) -> list[str]:
        return [str(PLATFORM), *args, "--name", self.name, "--namespace", self.namespace]

    def platform(self, *args: str, **more: str) -> Ran:
        began = time.monotonic()
        done = subprocess.run(
            self.command_line(*args), cwd=self.folder, env={**self.variables, **more}, capture_output=True, text=True,
            check=False, timeout=250, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        stderr, log = split_log_path(done.stderr)
        return Ran(done.returncode, done.stdout, stderr, time.monotonic() - began, log)

    def start(self, *args: str, **more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.command_line(*args), cwd=self.folder, env={**self.variables, **more}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.started.append(process)
        return process

    def deploy(self, text: str = "", *args: str) -> Ran:
        if text:
            self.write(text)
        return self.platform("deploy", *args)

    def api(self) -> Api:
        return Api(self.cluster.access)

    def objects(self, version: str, kind: str) -> list[dict[str, Any]]:
        with self.api() as api:
            return api.items(kind_path(version, kind, self.namespace))

    def get(self, version: str, kind: str, name: str) -> dict[str, Any] | None:
        with self.api() as api:
            try:
                return api.get(f"{kind_path(version, kind, self.namespace)}/{name}")
            except ApiError as error:
                if error.status == 404:
                    return None
                raise

    def names(self) -> set[str]:
        """``Kind/name`` of everything of ours in the namespace, without pods, controllers' objects, and records."""
        kinds = (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"), ("v1", "Service"),
                 ("v1", "Secret"), ("v1", "ConfigMap"), ("v1", "PersistentVolumeClaim"),
                 ("networking.k8s.io/v1", "Ingress"))  # fmt: skip
        return {
            f"{kind}/{manifest['metadata']['name']}"
            for version, kind in kinds
            for manifest in self.objects(version, kind)
            if manifest["metadata"]["name"] not in ("kube-root-ca.crt", f"platform-project.{self.name}")
            and not manifest["metadata"]["name"].startswith("platform-history.")
        }

    def pods(self, service: str = "") -> list[dict[str, Any]]:
        found = [p for p in self.objects("v1", "Pod") if "deletionTimestamp" not in p["metadata"]]
        if not service:
            return found
        return [p for p in found if p["metadata"]["labels"].get("dev.platform.com/service") == service]

    def started_at(self, service: str) -> str:
        """When the container of a service's one pod began."""
        (pod,) = self.pods(service)
        state = pod["status"]["containerStatuses"][0]["state"]
        return str((state.get("running") or state["terminated"])["startedAt"])

    def exec(self, pod: str, *args: str) -> str:
        kube = Toolchain(os.environ).need(KUBE).path
        kubectl = [str(kube), "kubectl", f"--kubeconfig={self.cluster.layout.kubeconfig}", "-n", self.namespace]
        done = subprocess.run([*kubectl, "exec", pod, "--", *args], capture_output=True, text=True, check=True)
        return done.stdout

    def state(self) -> dict[str, Any]:
        (path,) = Path(self.variables["COMPOSEPLAT_DATA"]).glob(
            f"state/*/.pulumi/stacks/{self.name}/{self.namespace}.json"
        )
        latest: dict[str, Any] = json.loads(path.read_text())["checkpoint"]["latest"]
        return latest


def fetch(environment: Environment, url: str) -> str:
    """Give the answer of an address: hosts below localhost are this machine; nothing until it is served."""
    host, _, path = url.removeprefix("https://").partition("/")
    context = ssl.create_default_context(cafile=str(environment.cluster.layout.keys / "ca.crt"))
    with (
        socket.create_connection(("127.0.0.1", PORTS["https"]), timeout=10) as plain,
        contextlib.closing(http.client.HTTPConnection(host)) as connection,
    ):
        connection.sock = context.wrap_socket(plain, server_hostname=host)
        connection.request("GET", f"/{path}")
        answer = connection.getresponse()
        text = answer.read().decode()
    return text if answer.status == http.client.OK else ""


def until(done: Callable[[], Any], *, seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = done()
        if found:
            return found
        time.sleep(0.05)
    pytest.fail("it did not come to be")


@contextlib.contextmanager
def running_cluster(
    folder: Path, ports: dict[str, int], tools: Collection[Tool] = DEPLOY_TOOLS, *, simulated: int = 0
) -> Iterator[LocalCluster]:
    """A local cluster in a folder, which is started, and deleted in the end."""
    # Tests have more memory than processors.
    variables = {"GOGC": "400", **os.environ, "COMPOSEPLAT_CLUSTER": str(folder)}
    made = local_cluster(variables, ports=ports, simulated=simulated)
    Toolchain(os.environ).need_all(tools)
    try:
        made.start()
        yield made
    finally:
        made.delete()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    tools = (*DEPLOY_TOOLS, *DEVELOPMENT_TOOLS)
    with running_cluster(tmp_path_factory.mktemp("cluster"), PORTS, tools) as made:
        push_busybox(("127.0.0.1", PORTS["registry"]), os.environ)
        yield made


@contextlib.contextmanager
def an_environment(cluster: LocalCluster, folder: Path, private: Path) -> Iterator[Environment]:
    """An environment for a folder's Compose file, with a namespace and a data folder of its own."""
    namespace = f"case-{next(_NUMBERS)}"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PULUMI_", "COMPOSE", "PLATFORM_", "KUBE"))}
    variables = {
        **clean,
        "COMPOSEPLAT_CLUSTER": str(cluster.layout.folder.parent),
        "COMPOSEPLAT_DATA": str(private / "data"),
        "KUBECONFIG": str(cluster.layout.kubeconfig),
        "HOME": str(private / "home"),
        "COMPOSEPLAT_CACHE": str(Toolchain(os.environ).cache.folder),
    }
    made = Environment(folder, namespace, variables, cluster)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
    with Api(cluster.access) as api:
        api.delete(f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def environment(cluster: LocalCluster, project: Project, tmp_path: Path) -> Iterator[Environment]:
    with an_environment(cluster, project({}).path, tmp_path) as made:
        yield made
