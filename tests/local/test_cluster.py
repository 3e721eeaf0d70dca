"""The local cluster, for real: it starts, keeps data, serves HTTPS, survives kills, and leaves nothing behind.

The tests share one cluster, in a folder and on ports of its own, and run in their order.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.local.base_images import push_busybox
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.conftest import DOMAIN, ROOT, SHARED, Project
from tests.deploy.conftest import an_environment
from tests.in_process import run_here
from tests.local.test_supervisor import wait_until
from tests.own_cluster import NEEDS_ROOT
from tests.schemas import checked

PORTS = {"api": 26443, "registry": 25000, "https": 20443, "http": 20080}
NAMESPACE = "proving"
#: Where programs of the cluster keep notes that must not reach the machine.
FORGOTTEN = ("/var/lib/cni", "/run/netns", "/var/log/containers")

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(300),
    NEEDS_ROOT,
]

APP = """
services:
  web:
    image: localhost:25000/library/busybox:1.37
    command: httpd -f -p 8080 -h /www
    ports: ["80:8080"]
    volumes: ["./index.html:/www/index.html"]
    healthcheck: {test: ["CMD", "true"], interval: 1s}
    stop_grace_period: 0
  keeper:
    image: localhost:25000/library/busybox:1.37
    command: sh -c 'date +%s.%N >> /data/starts; exec sleep 1000000'
    volumes: ["data:/data"]
    stop_grace_period: 0
  asker:
    image: localhost:25000/library/busybox:1.37
    restart: "no"
    command: sh -ec 'until wget -q -O - http://web:8080/; do sleep 1; done'
volumes:
  data:
"""


def wait(done: Callable[[], Any], *, seconds: float = 60) -> Any:
    """Wait for something to be so; what is asked may fail meanwhile."""
    deadline, last = time.monotonic() + seconds, ""
    while time.monotonic() < deadline:
        try:
            found = done()
            if found:
                return found
        except (ApiError, OSError, AssertionError) as error:
            last = str(error)
        time.sleep(0.2)
    raise AssertionError(f"waited {seconds} s in vain: {last}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    made = local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": str(folder)}, ports=PORTS)
    yield made
    made.delete()


@pytest.fixture
def api(cluster: LocalCluster) -> Iterator[Api]:
    with Api(cluster.access) as opened:
        yield opened


#: An address in the range of Services that none has.
FREE_ADDRESS = "198.19.77.77"


def prepare(api: Api) -> None:
    """Make the namespace, and wait until pods can be made in it."""
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    wait(lambda: api.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"))


def kubectl(cluster: LocalCluster, *args: str) -> str:
    kube = Toolchain(os.environ).need(KUBE).path
    done = subprocess.run(
        [kube, "kubectl", f"--kubeconfig={cluster.layout.kubeconfig}", "-n", NAMESPACE, *args],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def fetch(cluster: LocalCluster, host: str) -> tuple[int, str]:
    """Ask an endpoint by HTTPS, trusting the cluster's authority alone."""
    context = ssl.create_default_context(cafile=str(cluster.layout.keys / "ca.crt"))
    plain = socket.create_connection(("127.0.0.1", PORTS["https"]), timeout=10)
    with context.wrap_socket(plain, server_hostname=host) as secure:
        connection = http.client.HTTPConnection(host)
        connection.sock = secure
        connection.request("GET", "/")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def starts(cluster: LocalCluster) -> list[str]:
    """What the keeper wrote into its volume: a line each time it was started."""
    return kubectl(cluster, "exec", "keeper-0", "--", "cat", "/data/starts").split()


def processes_of(cluster: LocalCluster) -> list[str]:
    """Every process that names the cluster's folders."""
    names = (str(cluster.layout.folder), f"{cluster.layout.run}/")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                args = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if any(name in args for name in names):
                found.append(args.replace("\0", " ")[:200])
    return found


def traces_of(cluster: LocalCluster) -> list[str]:
    """What a cluster could leave on a machine."""
    layout = cluster.layout
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(layout.folder) in line]
    devices = [name for name in os.listdir("/sys/class/net") if name in ("node", "pods") or name.startswith("veth")]
    trees = (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir())
    cgroups = [str(tree / layout.cgroup) for tree in trees if (tree / layout.cgroup).exists()]
    run = [str(folder) for folder in (layout.run, layout.build_run) if folder.exists()]
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=False).stdout
    firewall = [line for line in rules.splitlines() if "KUBE" in line or "CNI" in line]
    notes = [str(path) for folder in FORGOTTEN for path in Path(folder).glob("**/*") if NAMESPACE in path.name]
    return [*processes_of(cluster), *mounts, *devices, *cgroups, *run, *firewall, *notes]


def test_a_taken_port_is_named(cluster: LocalCluster) -> None:
    """A port that another program has is named with its option, before anything is started."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", PORTS["https"]))
        other.listen()

        with pytest.raises(MissingPiece, match=r"in use by other programs: 20443 \(--https-port\)"):
            cluster.start()

    assert not cluster.status().running


def status_of(cluster: LocalCluster) -> dict[str, Any]:
    """What the command prints for a program."""
    command = [str(Path(sys.executable).with_name("platform")), "cluster", "status", "--json"]
    done = subprocess.run(command, env=dict(cluster.environment), capture_output=True, check=True)
    found: dict[str, Any] = checked(json.loads(done.stdout))
    return found


def test_starts_within_a_minute(cluster: LocalCluster) -> None:
    """With the programs there the cluster can be used within a minute; a second start changes nothing.

    The source of metrics starts last, and nothing waits for it.
    """
    began = time.monotonic()

    assert cluster.start()
    assert time.monotonic() - began < 60
    assert not cluster.start()
    wait_until(lambda: all(part["ready"] for part in status_of(cluster)["parts"].values()))
    found = status_of(cluster)
    assert [name for name, part in found["parts"].items() if not part["ready"]] == []
    assert (found["ports"], found["disk"]["used"]["objects"] > 0) == (PORTS, True)
    with pytest.raises(ComposeplatError, match="is running with other ports"):
        local_cluster(cluster.environment, ports={"https": 20444}).start()
    with pytest.raises(ComposeplatError, match="is running with another --disk-limit"):
        local_cluster(cluster.environment, disk_limit=2**30).start()
    with pytest.raises(ComposeplatError, match="is running with another --image-cache"):
        local_cluster(cluster.environment, image_cache=2**30).start()
    assert not local_cluster(cluster.environment, image_cache=10 * 2**30).start()


def test_version_and_classes(api: Api) -> None:
    """It is Kubernetes 1.35, with a default storage class and a default ingress class."""
    version = api.get("/version")
    storage, _ = api.items(kind_path("storage.k8s.io/v1", "StorageClass"))

    assert (version["major"], version["minor"]) == ("1", "35")
    assert storage["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"


def test_the_kubeconfig_is_its_own(cluster: LocalCluster) -> None:
    """The kubeconfig lies in the cluster's folder and is readable by its owner alone."""
    assert cluster.layout.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert kubectl(cluster, "get", "--raw", "/readyz") == "ok"


def test_runs_a_rendered_application(cluster: LocalCluster, api: Api, project: Project) -> None:
    """What `platform render` prints runs: pods, volume, names, and an HTTPS address with a certificate that holds."""
    push_busybox(("127.0.0.1", PORTS["registry"]), os.environ)
    folder = project({"compose.yaml": APP, "index.html": "hello\n"}).path
    rendered = run_here("render", "--domain", "localhost", "--name", "demo", "-n", NAMESPACE, folder=folder)
    prepare(api)
    for manifest in yaml.safe_load_all(rendered.assert_success().stdout):
        api.apply(manifest)

    job = f"{kind_path('batch/v1', 'Job', NAMESPACE)}/asker"
    wait(lambda: api.get(job).get("status", {}).get("succeeded"))
    assert wait(lambda: fetch(cluster, f"web-{NAMESPACE}.localhost") == (200, "hello\n"))
    assert fetch(cluster, "nobody.localhost")[0] == 404
    assert kubectl(cluster, "logs", "job/asker").endswith("hello\n")
    assert len(wait(lambda: starts(cluster))) == 1


def test_a_service_is_reached_before_kube_proxy_knows_it(cluster: LocalCluster, api: Api) -> None:
    """A connection to a Service that kube-proxy has no rules for yet waits for them; it does not fail."""
    path = kind_path("discovery.k8s.io/v1", "EndpointSlice", NAMESPACE)
    (found,) = api.items(f"{path}?labelSelector=kubernetes.io/service-name=web")
    late = {"name": "late", "namespace": NAMESPACE}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": late,
        "spec": {"clusterIP": FREE_ADDRESS, "ports": [{"port": 80}]},
    }
    # With its endpoints there before, kube-proxy never has the Service without them, and refuses no connection.
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**late, "labels": {"kubernetes.io/service-name": "late"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": endpoint["addresses"]} for endpoint in found["endpoints"]],
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
    }
    api.apply(endpoints)

    # The kernel tries again after 1 and 3 s.
    timer = threading.Timer(1.5, lambda: api.apply(service))
    timer.start()
    answer = kubectl(cluster, "exec", "keeper-0", "--", "wget", "-q", "-O", "-", f"http://{FREE_ADDRESS}/")
    timer.join()

    assert answer == "hello\n"


def ask_registry(method: str, path: str, user: int = 0) -> str:
    """Ask for something of an image as a user of this machine; gives the status, or the kind of the error."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        # Another user could not start this Python, which may lie in root's home.
        os.setgroups([])
        os.setuid(user)
        connection = http.client.HTTPConnection("127.0.0.1", PORTS["registry"], timeout=10)
        try:
            connection.request(method, f"/v2/library/busybox/{path}")
            output = str(connection.getresponse().status)
        except (OSError, http.client.HTTPException) as error:
            output = type(error).__name__
        os.write(writing, output.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as stream:
        return stream.read()


def test_the_registry_is_its_owners(cluster: LocalCluster) -> None:
    """Other users of the machine can't push what pods then run as docker.io's, nor read; nobody deletes by the API.

    The registry asks for no login, and used to answer anyone who connected.
    """
    digest = push_busybox(("127.0.0.1", cluster.layout.host_ports.registry), os.environ)

    assert ask_registry("GET", "tags/list") == "200"
    assert ask_registry("DELETE", f"manifests/{digest}") == "405"
    for method, path in (("GET", "tags/list"), ("POST", "blobs/uploads/")):
        assert ask_registry(method, path, user=65534) in ("RemoteDisconnected", "ConnectionResetError")


def test_port_forward(cluster: LocalCluster) -> None:
    """A port can be forwarded from a pod."""
    kube = Toolchain(os.environ).need(KUBE).path
    command = [
        str(kube),
        "kubectl",
        f"--kubeconfig={cluster.layout.kubeconfig}",
        "-n",
        NAMESPACE,
        "port-forward",
        "deploy/web",
        ":8080",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        assert forward.stdout is not None
        port = int(forward.stdout.readline().split("127.0.0.1:")[1].split()[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/")
        answer = connection.getresponse().read()
        forward.terminate()

    assert answer == b"hello\n"


def test_every_part_comes_back(cluster: LocalCluster) -> None:
    """Each part is killed once; each is started again, and pods continue running."""
    before = starts(cluster)
    for name in list(cluster.status().parts or {}):
        inner = (cluster.status().parts or {})[name]
        kill_inside(cluster, inner["pid"])
        wait(lambda name=name, inner=inner: (cluster.status().parts or {})[name]["starts"] > inner["starts"])  # type: ignore[misc]
        wait(lambda: cluster.status().broken == [])

    assert wait(lambda: fetch(cluster, f"web-{NAMESPACE}.localhost") == (200, "hello\n"))
    assert before == wait(lambda: starts(cluster))


def kill_inside(cluster: LocalCluster, pid: int) -> None:
    """Kill a process by its number within the cluster's namespace."""
    supervisor = cluster.status().pid
    subprocess.run(["nsenter", "-t", str(supervisor), "-p", "-m", "kill", "-9", str(pid)], check=True)


def test_a_killed_cluster_leaves_nothing_running_and_keeps_its_data(cluster: LocalCluster) -> None:
    """When the supervisor is killed everything ends with it; the next start brings all back, data too."""
    before = starts(cluster)
    pid = cluster.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    wait(lambda: processes_of(cluster) == [], seconds=20)
    assert not cluster.status().running
    assert cluster.start()
    assert before == wait(lambda: len(starts(cluster)) > len(before) and starts(cluster)[: len(before)])
    assert wait(lambda: fetch(cluster, f"web-{NAMESPACE}.localhost") == (200, "hello\n"))


def test_starts_after_a_reboot(cluster: LocalCluster) -> None:
    """A machine that was switched off has lost its processes, and all in /run: the data is found again."""
    before = starts(cluster)
    pid = cluster.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait(lambda: processes_of(cluster) == [], seconds=20)
    shutil.rmtree(cluster.layout.run)

    assert cluster.start()
    assert before == wait(lambda: len(starts(cluster)) > len(before) and starts(cluster)[: len(before)])


RESTARTED = """
services:
  kept:
    image: localhost:25000/library/busybox:1.37
    command: "sh -c 'trap true TERM; sleep 1000000 & wait; true'"
    volumes: ["data:/data"]
    stop_grace_period: 0
volumes: {data: }
"""


@pytest.mark.endurance
def test_a_deploy_right_after_a_restart(cluster: LocalCluster, project: Project, tmp_path: Path) -> None:
    """Containers that ended with their node, and init containers that run once more, are no failures."""
    cluster.start()
    push_busybox(("127.0.0.1", PORTS["registry"]), os.environ)
    with an_environment(cluster, project({}).path, tmp_path) as environment:
        environment.write(RESTARTED)
        environment.platform("deploy").expect()
        for _ in range(2):
            cluster.stop()
            cluster.start()
            assert "nothing changed" in environment.platform("deploy").expect().stderr


def test_a_deleted_claim_takes_its_folder_along(cluster: LocalCluster, api: Api) -> None:
    """A volume's folder goes when its claim is deleted, and no other."""
    api.delete(f"{kind_path('apps/v1', 'StatefulSet', NAMESPACE)}/keeper")
    api.delete(f"{kind_path('v1', 'PersistentVolumeClaim', NAMESPACE)}/data")

    wait(lambda: list(cluster.layout.volumes.iterdir()) == [])


def rendered_cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the golden cases, and of the projects in the corpus that render as they lie."""
    for case in sorted((ROOT / "tests" / "golden").glob("*/expected.yaml")):
        for manifest in yaml.safe_load_all(case.read_text()):
            if manifest:
                yield case.parent.name, manifest
    for compose in sorted((SHARED / "corpus").glob("*/*compose.y*ml")):
        outcome = run_here("render", "-f", compose.name, "--domain", DOMAIN, folder=compose.parent)
        for manifest in yaml.safe_load_all(outcome.stdout) if outcome.status == 0 else ():
            yield compose.parent.name, manifest


def test_the_server_takes_every_rendered_object(api: Api) -> None:
    """The API server accepts each rendered object in a strict dry run, with no unknown or doubled field."""
    refused, count = [], 0
    for case, manifest in rendered_cases():
        if manifest["kind"] == "HTTPRoute":
            continue  # A custom resource: its definition is not part of Kubernetes.
        namespace = manifest["metadata"]["namespace"]
        if namespace != NAMESPACE:
            api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        count += 1
        try:
            api.create(
                {**manifest, "metadata": {**manifest["metadata"], "name": manifest["metadata"]["name"]}}, dry_run=True
            )
        except ApiError as error:
            if "already exists" not in str(error):
                refused.append(f"{case}: {manifest['kind']}/{manifest['metadata']['name']}: {error}")

    assert refused == []
    assert count > 100


def test_stop_leaves_nothing(cluster: LocalCluster) -> None:
    """After a stop no process, mount, device, cgroup, socket or firewall rule is left; a second one changes nothing."""
    assert cluster.stop()
    assert traces_of(cluster) == []
    assert not cluster.stop()
    with Api(cluster.access) as api, pytest.raises(ApiError, match="can't be reached"):
        api.get("/version")


# the simulated cluster ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("simulated")
    variables = {**os.environ, "COMPOSEPLAT_CLUSTER": str(folder), "GOGC": "400", "OTHER": "x"}
    made = local_cluster(variables, ports={"api": PORTS["api"] + 1}, simulated=3)
    yield made
    made.delete()


def test_hundreds_of_pods(simulated: LocalCluster, project: Project) -> None:
    """On simulated nodes two hundred pods become ready, and a job completes."""
    text = (
        "services:\n  many: {image: a, scale: 200}\n  once: {image: a, restart: 'no'}\n"
        "  kept: {image: a, volumes: ['/data']}\n"
    )
    folder = project(text).path
    rendered = run_here("render", "-n", NAMESPACE, folder=folder).assert_success().stdout

    assert simulated.start()
    with Api(simulated.access) as api:
        prepare(api)
        for manifest in yaml.safe_load_all(rendered):
            api.apply(manifest)
        assert_many_run(api)


def assert_many_run(api: Api) -> None:
    deployment = f"{kind_path('apps/v1', 'Deployment', NAMESPACE)}/many"
    wait(lambda: api.get(deployment)["status"].get("readyReplicas") == 200, seconds=120)
    wait(lambda: api.get(f"{kind_path('batch/v1', 'Job', NAMESPACE)}/once")["status"].get("succeeded") == 1)
    kept = f"{kind_path('apps/v1', 'StatefulSet', NAMESPACE)}/kept"
    wait(lambda: api.get(kept)["status"].get("readyReplicas") == 1)


def ask_etcd(simulated: LocalCluster, *, tls: bool = True, certificate: str = "") -> int:
    """Ask the simulated cluster's etcd on loopback, as any user of the machine could; gives the answer's status."""
    keys, port = simulated.layout.keys, simulated.layout.host_ports.api + 1
    context = ssl.create_default_context(cafile=str(keys / "etcd-ca.crt"))
    if certificate:
        context.load_cert_chain(keys / f"{certificate}.crt", keys / f"{certificate}.key")
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    )
    with contextlib.closing(connection):
        connection.request("GET", "/version")
        return connection.getresponse().status


def test_the_memory_of_the_parts(simulated: LocalCluster) -> None:
    """Of the variables of who starts the cluster, its parts have only those for the memory of Go programs."""
    pid = (simulated.status().parts or {})["kube-apiserver"]["pid"]
    variables = dict(text.split("=", 1) for text in Path(f"/proc/{pid}/environ").read_text().split("\0") if text)

    assert variables.keys() == {"PATH", "HOME", "GOGC"}
    assert variables["GOGC"] == "400"


def test_etcd_answers_the_api_server_alone(simulated: LocalCluster) -> None:
    """Without the API server's certificate nobody is reported what the cluster holds, Secrets above all.

    It used to be asked to anyone who asked on loopback, in plain HTTP.
    """
    assert ask_etcd(simulated, certificate="api-to-etcd") == 200
    for args in ({"tls": False}, {}, {"certificate": "api-to-kubelet"}):
        with contextlib.suppress(OSError, http.client.HTTPException):
            assert ask_etcd(simulated, **args) == 400


def test_a_simulation_is_closed_to_others(simulated: LocalCluster) -> None:
    """Nobody else of the machine can enter the cluster's folder."""
    assert stat.S_IMODE(simulated.layout.folder.stat().st_mode) == 0o700


def test_a_killed_simulation_leaves_nothing(simulated: LocalCluster) -> None:
    """When its supervisor is killed, the simulated cluster's processes end too."""
    pid = simulated.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    wait(lambda: processes_of(simulated) == [], seconds=20)
    assert not simulated.status().running


def test_simulation_needs_no_root(simulated: LocalCluster) -> None:
    """A user without root's number and powers starts and stops the simulated cluster."""
    as_user = [
        "unshare",
        "--user",
        "--map-user=1000",
        "--map-group=1000",
        str(Path(sys.executable).parent / "platform"),
    ]
    environment = {**os.environ, "COMPOSEPLAT_CLUSTER": str(simulated.layout.folder.parent)}

    started = subprocess.run([*as_user, "cluster", "start", "--simulated", "3"], env=environment, check=False)
    with Api(simulated.access) as api:
        nodes = api.items(kind_path("v1", "Node"))
    refused = subprocess.run(
        [*as_user, "cluster", "start"], env=environment, capture_output=True, text=True, check=False
    )
    stopped = subprocess.run([*as_user, "cluster", "stop", "--simulated"], env=environment, check=False)

    assert (started.returncode, refused.returncode, stopped.returncode) == (0, 4, 0)
    assert len(nodes) == 3
    assert "the local cluster needs root" in refused.stderr


def test_secrets_stay_in_the_folder(simulated: LocalCluster) -> None:
    """No argument of a process, and no log, holds the cluster's token."""
    token = (simulated.layout.keys / "token").read_text().strip()
    logs = "".join(path.read_text(errors="replace") for path in simulated.layout.logs.iterdir())

    assert token not in logs
    assert base64.b64encode(token.encode()).decode() not in logs
    assert json.loads(simulated.layout.kubeconfig.read_text())["users"][0]["user"]["token"] == token
