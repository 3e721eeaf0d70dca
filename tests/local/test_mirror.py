"""Images of other registries on the local cluster, for real: logins, pull secrets, rate limits, the cache.

The registry has a name of its own and TLS by an authority of its own, and is reached through a proxy; see
outside_registry.py. The Go module's own tests have the cases of the protocol. The tests share one cluster, and run in
their order.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from composeplat.local.builder_cache import BUILDER_NAME, buildx_instance
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.image_cache import ImageCache
from composeplat.local.images import File, Image, push
from composeplat.local.supervisor import is_listening
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import BUILDX, CTR, FRONTDOOR, KUBE
from tests.local.outside_registry import DOCKER_HUB, HOST, Answer, OutsideRegistry, basic, serving
from tests.local.test_cluster import wait
from tests.own_cluster import NEEDS_ROOT, first_port, ports_from

_FIRST = first_port("mirror")
PORTS = ports_from(_FIRST)
PASSWORD, PODS_PASSWORD = "c4ptain-of-tests", "pods-of-tests"
LIMIT = "You have reached your unauthenticated pull rate limit."

pytestmark = [
    pytest.mark.cluster,
    NEEDS_ROOT,
]


@dataclass(frozen=True)
class Outside:
    cluster: LocalCluster
    registry: OutsideRegistry

    def kubectl(self, *args: str) -> str:
        kube = Toolchain(os.environ).need(KUBE).path
        command = [str(kube), "kubectl", f"--kubeconfig={self.cluster.layout.kubeconfig}", *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def run(self, name: str, image: str, pull_secret: str = "") -> None:
        spec = {"imagePullSecrets": [{"name": pull_secret}]} if pull_secret else {}
        overrides = json.dumps({"spec": {**spec, "terminationGracePeriodSeconds": 0}})
        options = ("--restart=Never", "--image-pull-policy=Always", f"--overrides={overrides}")
        self.kubectl("run", name, f"--image={image}:1", *options)

    def phase(self, name: str) -> str:
        return self.kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}")

    def failure(self, name: str) -> str:
        """What the kubelet says of an image that it could not pull."""
        events = self.kubectl(
            "get", "events", f"--field-selector=involvedObject.name={name},reason=Failed", "-o", "json"
        )
        messages = [event["message"] for event in json.loads(events)["items"]]
        return next((message for message in messages if message.startswith("Failed to pull")), "")

    def answer(self, path: str, authorization: str) -> Answer | None:
        """What the registry answers before it gives an image out."""
        if "/limited/" in path:
            return 429, {}, json.dumps({"errors": [{"code": "TOOMANYREQUESTS", "message": LIMIT}]}).encode()
        if "/hub/" in path:
            return None
        allowed = basic("pods", PODS_PASSWORD) if "/private/" in path else basic("captain", PASSWORD)
        is_allowed = bool(authorization) if path == "/v2/" else authorization == allowed
        return None if is_allowed else (401, {"WWW-Authenticate": 'Basic realm="shop"'}, b"{}")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("mirror")
    docker_folder = folder / "docker"
    docker = {"auths": {HOST: {"auth": base64.b64encode(f"captain:{PASSWORD}".encode()).decode()}}}
    (folder / "config.json").write_text(json.dumps(docker))
    with serving(OutsideRegistry(folder, PORTS["registry"])) as registry:
        environment = {
            **os.environ,
            "COMPOSEPLAT_CLUSTER": str(folder),
            "HTTPS_PROXY": registry.proxy,
            "DOCKER_CONFIG": str(folder),
        }
        for host in (HOST, DOCKER_HUB):
            (docker_folder / "certs.d" / host).mkdir(parents=True)
            shutil.copy(registry.authority, docker_folder / "certs.d" / host / "ca.crt")
        cluster = local_cluster(environment, ports=PORTS)
        made = Outside(cluster, registry)
        registry.gate = made.answer
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("composeplat.local.docker_settings.DAEMON_FOLDER", docker_folder)
                cluster.start()
            for name in ("app", "private", "limited"):
                push(image_of(name), f"shop/{name}:1", ("127.0.0.1", PORTS["registry"]))
            yield made
        finally:
            cluster.delete()


def image_of(name: str) -> Image:
    program = File(Toolchain(os.environ).need(FRONTDOOR).path.read_bytes())
    return Image(files={"frontdoor": program}, entrypoint=("/frontdoor", "pause"), environment={"NAME": name})


def test_an_image_of_another_registry_runs(outside: Outside) -> None:
    """A pod runs with it, through the proxy of the machine, its certificates and the login of docker."""
    outside.run("app", f"{HOST}/shop/app")
    wait(lambda: outside.phase("app") == "Running", seconds=20)

    processes = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [args for args in processes if PASSWORD.encode() in args]
    kept = [
        path for path in outside.cluster.layout.folder.rglob("*") if path.is_file() and path.suffix in (".toml", ".log")
    ]
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]


def test_an_image_of_docker_hub_runs(outside: Outside) -> None:
    """A name without a registry is Docker Hub's, where the cluster's own registry has no such image."""
    outside.run("hub", "hub/app")
    wait(lambda: outside.phase("hub") == "Running", seconds=20)

    assert "HEAD /v2/hub/app/manifests/1" in outside.registry.requests


def build(outside: Outside, folder: Path, dockerfile: str, login: str = "") -> str:
    """Build with a login of the user who builds, or none; returns the output of buildx."""
    (folder / "context").mkdir(exist_ok=True)
    (folder / "context" / "Dockerfile").write_text(dockerfile)
    (folder / "instances").mkdir(exist_ok=True)
    (folder / "instances" / BUILDER_NAME).write_text(buildx_instance(outside.cluster.layout.buildkit_socket))
    auths = {HOST: {"auth": base64.b64encode(login.encode()).decode()}} if login else {}
    proxies = {"default": {"httpProxy": "http://proxy.example.com:3128", "noProxy": "localhost"}}
    (folder / "config.json").write_text(json.dumps({"auths": auths, "proxies": proxies}))
    command = [str(Toolchain(os.environ).need(BUILDX).path), "build", "--builder", BUILDER_NAME, "--progress", "plain"]
    variables = {"DOCKER_CONFIG": str(folder), "BUILDX_CONFIG": str(folder)}
    done = subprocess.run(
        [*command, str(folder / "context")],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_base_image_comes_from_the_cache(outside: Outside, tmp_path: Path) -> None:
    """An image that a pod has pulled is not pulled again for a build: only whether the tag has changed is asked."""
    before = len(outside.registry.requests)

    build(outside, tmp_path, f"FROM {HOST}/shop/app:1\nLABEL built=here\n")

    requests = outside.registry.requests[before:]
    assert "HEAD /v2/shop/app/manifests/1" in requests
    assert [request for request in requests if request.startswith("GET /v2/shop")] == []


def test_a_base_image_of_another_login(outside: Outside, tmp_path: Path) -> None:
    """Where the machine's login is not enough, the builder asks itself: with the login of the user and `certs.d`."""
    build(outside, tmp_path, f"FROM {HOST}/shop/private:1\nLABEL built=here\n", f"pods:{PODS_PASSWORD}")

    assert any(request.startswith("GET /v2/shop/private/blobs/") for request in outside.registry.requests)


def test_a_pull_secret(outside: Outside) -> None:
    """An image that the user of the machine may not pull is pulled with the secret of its pod, and not without."""
    outside.kubectl("create", "secret", "docker-registry", "pods", f"--docker-server={HOST}", "--docker-username=pods",
                    f"--docker-password={PODS_PASSWORD}")  # fmt: skip
    outside.run("without", f"{HOST}/shop/private")
    outside.run("with", f"{HOST}/shop/private", "pods")

    wait(lambda: outside.phase("with") == "Running", seconds=20)
    assert wait(lambda: outside.failure("without")).endswith("no basic auth credentials")


def test_a_rate_limit_is_named(outside: Outside) -> None:
    """The event of the pod says so, with the registry's own words."""
    outside.run("limited", f"{HOST}/shop/limited")

    assert f"503 the rate limit of {HOST} is reached: {LIMIT}" in wait(lambda: outside.failure("limited"), seconds=20)


def test_the_cache_is_listed_and_serves_without_the_registry(outside: Outside) -> None:
    """An image that the node lost is pulled again while its registry is down, unless the cache lost it too."""
    layout = outside.cluster.layout
    cache = ImageCache(layout.mirror_cache)
    cached = cache.images()
    # The first two are one image, under two names.
    assert [(image.name, image.size > 0) for image in cached] == [
        ("docker.io/hub/app:1", True), (f"{HOST}/shop/app:1", False), (f"{HOST}/shop/private:1", True),
    ]  # fmt: skip
    outside.registry.gate = lambda _path, _authorization: (502, {}, b"{}")
    outside.kubectl("delete", "pod", "app", "--now")
    client = (
        str(Toolchain(os.environ).need(CTR).path),
        "--address",
        str(layout.containerd_socket),
        "--namespace",
        "k8s.io",
        "images",
        "rm",
    )
    subprocess.run([*client, "--sync", f"{HOST}/shop/app:1"], check=True, capture_output=True)

    outside.run("again", f"{HOST}/shop/app")
    wait(lambda: outside.phase("again") == "Running", seconds=20)
    for image in cached:
        cache.delete(image)
    assert cache.images() == []
    outside.run("gone", f"{HOST}/shop/app")
    assert f"502 {HOST} responded with status 502" in wait(lambda: outside.failure("gone"), seconds=20)


def test_a_registry_of_ipv6(outside: Outside, tmp_path: Path) -> None:
    """Pods and builds have images of a registry by its address in brackets, by plain HTTP on loopback."""
    host = f"[::1]:{PORTS['registry'] + 9}"
    frontdoor = str(Toolchain(os.environ).need(FRONTDOOR).path)
    with subprocess.Popen([frontdoor, "pipe", f"tcp:{host}", f"tcp:127.0.0.1:{PORTS['registry']}"]) as pipe:
        try:
            wait(lambda: is_listening(f"tcp:{host.replace('[', '').replace(']', '')}"))
            outside.run("six", f"{host}/shop/app")
            wait(lambda: outside.phase("six") == "Running", seconds=20)
            build(outside, tmp_path, f"FROM {host}/shop/app:1\nLABEL built=here\n")
        finally:
            pipe.kill()


def test_other_users_reach_no_mirror(outside: Outside) -> None:
    """The mirror has no port on the machine, and its socket is in a closed folder."""
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setuid(65534)
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(outside.cluster.layout.mirror_socket))
            except PermissionError:
                os._exit(13)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 13
