"""The pages show a reader commands: each is run here, in the page's order, on a real cluster.

What is not the page's is stood in for, and no more:

- ``kubectl`` and ``pulumi`` are those of the toolchain, and ``curl`` is a small program that knows where this cluster's
  endpoints are; the user's folders are empty ones, so that nothing of the user's is touched;
- images of Docker Hub that pages name are small ones of busybox, pushed under the same names, as the node of the local
  cluster reaches no other registry;
- what a page takes for granted, such as a deployed environment, is prepared by a script of ``PREPARATION``.

The marks that choose what is run are explained in ``tests/page_commands.py``.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from composeplat.cluster.api import Api
from composeplat.engine.backend import DataFolder
from composeplat.local.cluster import LocalCluster
from composeplat.local.images import File, Image, push
from composeplat.local.packages import search_path
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DOCKER_BUILD_PROVIDER, KUBE, KUBERNETES_PROVIDER, PULUMI
from tests.conftest import ROOT, for_endurance
from tests.deploy.conftest import PLATFORM, PORTS, until
from tests.page_commands import RUN, Step, is_stable, make_script, read_steps
from tests.test_docs import PAGES, page_id

#: Images that pages name -> the command of a replacement, and its port.
IMAGES = {
    "library/nginx:1.27": ("httpd -f -p 80 -h /usr/share/nginx/html", 80),
    "library/postgres:17": ("nc -ll -p 5432 -e cat", 5432),
}

#: Plain Pulumi, with a state of its own.
PLAIN = "mkdir ~/state; export PULUMI_BACKEND_URL=file://$HOME/state PULUMI_CONFIG_PASSPHRASE=x\n"
#: What a page takes for granted, as a script that is run before it, in its folder.
PREPARATION = {
    "docs/building.md": f"{PLAIN}echo 'name: shop\nruntime: python' > Pulumi.yaml; pulumi stack init demo\n",
    "docs/commands.md": """
        mkdir api site
        echo 'FROM busybox:1.37' > api/Dockerfile
        echo 12345 > token.txt
        echo "name: shop
        x-app: &app {stop_grace_period: 0s}
        services:
          web: {<<: *app, image: 'nginx:1.27', ports: ['8080:80'], volumes: ['./site:/site']}
          api: {<<: *app, build: ./api, command: httpd -f -p 8000, ports: ['8000']}
          db: {<<: *app, image: 'postgres:17'}" > compose.yaml
        """,
    "docs/deploying.md": f"""{PLAIN}
        export PULUMI_SKIP_CONFIRMATIONS=true
        kubectl create namespace demo
        echo 'services: {{web: {{image: "nginx:1.27", ports: ["8080:80"]}}}}' > compose.yaml
        """,
    "docs/developing.md": f"cp -r {ROOT}/examples/develop/. .; platform deploy\n",
    "docs/living.md": """
        echo "name: shop
        x-app: &app {image: 'busybox:1.37', stop_grace_period: 0s}
        services:
          web: {<<: *app, command: httpd -f -v -p 8080, ports: ['8080:8080']}
          worker: {<<: *app, command: sh -c 'while :; do echo order 17 packed; sleep 1; done'}" > compose.yaml
        platform deploy
        """,
    "docs/local-cluster.md": """
        echo "name: shop
        services: {page: {image: 'nginx:1.27', ports: ['80']}}
        endpoints: [{path: /, service: page, port: 80}]" > compose.yaml
        platform deploy --namespace demo
        """,
    "docs/ui.md": """echo 'services: {web: {image: "nginx:1.27"}}' > compose.yaml\n""",
    "docs/variables.md": "echo 12345 > token.txt\n",
}
#: What a page leaves in the cluster outside of namespaces.
CLUSTER_WIDE = (
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/know-the-cluster",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/know-the-cluster",
)

_NUMBERS = itertools.count(1)
STEPS = {page: list(read_steps(page.read_text())) for page in PAGES}
#: From the end: pages that use a namespace of one name are far apart then, and need not wait until it is gone.
RUNS = [page for page in reversed(PAGES) if any(step.mark in RUN for step in STEPS[page])]
#: Others try what these pages are about in every run: test_ci.py, test_embedded.py and test_backends.py.
LONG = [page for page in RUNS if page_id(page) in ("docs/ci.md", "docs/embedding.md", "docs/state.md")]
SHORT = [page for page in RUNS if page not in LONG]


@dataclass(frozen=True, slots=True)
class Reader:
    """A user of their own, with a folder for the page, and the programs that pages use."""

    folder: Path
    outputs: Path
    variables: dict[str, str]

    def type(self, script: str) -> subprocess.CompletedProcess[str]:
        path = self.outputs / "script"
        path.write_text(script)
        return subprocess.run(
            ["bash", str(path)], cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False,
            timeout=280,
        )  # fmt: skip

    def output(self, step: Step) -> str:
        return (self.outputs / f"{step.line}.out").read_text()

    def last_output(self) -> str:
        """Where the script ended, and what was reported there."""
        at = (self.outputs / "steps").read_text().split()[-1]
        line = at.rpartition(":")[2]
        output = [self.outputs / f"{line}.{end}" for end in ("out", "err")]
        return "\n".join([at, *(path.read_text() for path in output if path.exists())])


@pytest.fixture(scope="module")
def programs(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH with the programs that pages use; the images they name are in the cluster's registry."""
    push_images(cluster)
    folder = tmp_path_factory.mktemp("programs")
    toolchain = Toolchain(os.environ)
    for name, command in {
        "platform": f"{PLATFORM}",
        "python3": sys.executable,
        "kubectl": f"{toolchain.need(KUBE).path} kubectl",
        "pulumi": f"{toolchain.need(PULUMI).path}",
        "pulumi-language-python": f"{sys.executable} {ROOT}/tests/plain/language_host.py",
        "curl": f"{sys.executable} {ROOT}/tests/plain/curl.py",
    }.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def push_images(cluster: LocalCluster) -> None:
    path = Path(str(shutil.which("busybox", path=search_path(os.environ))))
    listed = subprocess.run([str(path), "--list"], capture_output=True, text=True, check=True).stdout.split()
    files = {
        "bin/busybox": File(path.read_bytes()),
        "etc/passwd": File(b"root:x:0:0::/:/bin/sh\n", 0o644),
        "bin/psql": File(b"#!/bin/sh\necho 'psql (17)'\n"),
        "bin/npm": File(b'#!/bin/sh\necho npm "$@"\n'),
        "usr/share/nginx/html/index.html": File(b"Welcome\n", 0o644),
        "tmp/": File(),
        **{f"bin/{name}": File(link="busybox") for name in listed if name != "busybox"},
    }
    for name, (command, port) in IMAGES.items():
        image = Image(
            files=files, command=("sh", "-c", f"trap exit TERM; echo listening; {command} & wait"), ports=(port,)
        )
        push(image, name, ("127.0.0.1", cluster.layout.host_ports.registry))


def namespaces(cluster: LocalCluster) -> dict[str, str]:
    """The namespaces, and whether each exists or is being deleted."""
    with Api(cluster.access) as api:
        return {
            manifest["metadata"]["name"]: manifest["status"]["phase"] for manifest in api.items("/api/v1/namespaces")
        }


@pytest.fixture
def reader(cluster: LocalCluster, programs: Path, tmp_path: Path) -> Iterator[Reader]:
    home, folder, outputs = (tmp_path / name for name in ("home", "project", "outputs"))
    for item in (home, folder, outputs):
        item.mkdir()
    # Where pages look for the local cluster, and where plain Pulumi looks for providers.
    data = DataFolder(home / ".local" / "share" / "composeplat")
    data.prepare()
    (data.path / "cluster").symlink_to(cluster.layout.folder)
    for name, tool in (("kubernetes", KUBERNETES_PROVIDER), ("docker-build", DOCKER_BUILD_PROVIDER)):
        data.place_plugin(name, tool.version, Toolchain(os.environ).need(tool).path)
    (home / ".pulumi").mkdir()
    (data.pulumi / "plugins").rename(home / ".pulumi" / "plugins")
    private = ("PULUMI_", "COMPOSE", "PLATFORM_", "KUBE", "XDG_", "DOCKER_", "BUILDX_")
    variables = {
        **{key: value for key, value in os.environ.items() if not key.startswith(private)},
        "HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HTTPS_PORT": str(PORTS["https"]),
        "KUBECONFIG": str(cluster.layout.kubeconfig), "COMPOSEPLAT_CLUSTER": str(cluster.layout.folder.parent),
        "COMPOSEPLAT_CACHE": str(Toolchain(os.environ).cache.folder), "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_HOME": str(home / ".pulumi"), "PLATFORM_NAMESPACE": f"page-{next(_NUMBERS)}",
    }  # fmt: skip
    before = {name for name, phase in namespaces(cluster).items() if phase == "Active"}
    yield Reader(folder, outputs, variables)
    with Api(cluster.access) as api:
        for name in namespaces(cluster).keys() - before:
            api.delete(f"/api/v1/namespaces/{name}")
        for path in CLUSTER_WIDE:
            api.delete(path)


@pytest.mark.parametrize("page", [*SHORT, *for_endurance(*LONG)], ids=page_id)
def test_commands(page: Path, reader: Reader, cluster: LocalCluster) -> None:
    """The commands of a page work in the order in which they are there, and print what the page shows."""
    steps = STEPS[page]
    found_names = {word for step in steps for word in re.findall(r"[a-z0-9-]+", step.content)}
    until(lambda: not found_names & {name for name, phase in namespaces(cluster).items() if phase != "Active"})
    before = PREPARATION.get(page_id(page), "")
    done = reader.type(make_script(steps, page_id(page), reader.outputs, before=textwrap.dedent(before)))

    assert done.returncode == 0, f"{reader.last_output()}\n{done.stdout}{done.stderr}"
    for step, after in itertools.pairwise(steps):
        if after.mark == "shows":
            assert is_stable(after.content) == is_stable(reader.output(step)), f"{page_id(page)}:{after.line}"
