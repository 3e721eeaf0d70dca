"""Built images are loaded into the nodes of other local clusters; the programs are stand-ins, the nodes are real."""

from __future__ import annotations

import subprocess

import pytest

from composeplat.cluster.archive_loading import have_image
from tests.deploy.conftest import PLATFORM, SLEEP, Environment, Ran, until
from tests.deploy.other_clusters import install

FILE = f"""\
services:
  web:
    build: .
    command: {SLEEP}
    stop_grace_period: 0s
"""
KIND = ("kind", "load", "image-archive", "ARCHIVE", "--name", "dev")


def image_of(environment: Environment) -> str:
    (pod,) = environment.pods("web")
    return str(pod["spec"]["containers"][0]["image"])


def write(environment: Environment, text: str) -> None:
    environment.write(FILE)
    environment.write(f"FROM busybox:1.37\nEXPOSE 8080\nRUN echo {text} > /text\n", "Dockerfile")


def read_text(environment: Environment) -> str:
    (pod,) = environment.pods("web")
    return environment.exec(pod["metadata"]["name"], "cat", "/text").strip()


def test_an_image_is_loaded_when_it_changed(environment: Environment) -> None:
    """A preview loads nothing, a changed image replaces the pods, and an unchanged one is not loaded again."""
    kind = install(environment, KIND, "kind-dev")
    write(environment, "one")
    shown = environment.platform("preview").expect()
    assert "loads into the nodes of cluster 'kind-dev': image env-web, of '.'" in shown.stderr
    assert kind.loads == 0

    done = environment.platform("deploy").expect()
    assert "loading the image of web into kind cluster 'dev'" in done.stderr
    first = image_of(environment)
    assert first.startswith("docker.io/library/env-web:")
    assert read_text(environment) == "one"
    service = environment.get("v1", "Service", "web")
    assert service is not None
    assert [port["port"] for port in service["spec"]["ports"]] == [8080]

    assert "nothing changed" in environment.platform("deploy").expect().stderr
    assert kind.loads == 1

    write(environment, "two")
    environment.platform("deploy").expect()
    assert image_of(environment) != first
    assert read_text(environment) == "two"
    assert kind.loads == 2


def test_an_image_of_several_services(environment: Environment) -> None:
    """The image that one service builds and another names is loaded once, and both run it."""
    kind = install(environment, KIND, "kind-dev")
    write(environment, "one")
    shared = f"{{image: 'shop:dev', command: {SLEEP}, stop_grace_period: 0s}}"
    environment.deploy(
        f"services:\n  worker: {shared}\n  web: {shared.replace('image', 'build: ., image', 1)}\n"
    ).expect()

    pods = [pod for name in ("web", "worker") for pod in environment.pods(name)]
    assert len({pod["spec"]["containers"][0]["image"] for pod in pods}) == 1
    assert [environment.exec(pod["metadata"]["name"], "cat", "/text").strip() for pod in pods] == ["one", "one"]
    assert kind.loads == 1


UP = f"""\
services:
  web:
    build: .
    command: {SLEEP}
    stop_grace_period: 0s
    volumes: ['./src:/app']
"""


def up(environment: Environment, *command: str) -> Ran:
    args = [
        str(PLATFORM),
        "up",
        "--name",
        environment.name,
        "--namespace",
        environment.namespace,
        "web",
        "--",
        *command,
    ]
    done = subprocess.run(
        args, cwd=environment.folder, env=environment.variables, capture_output=True, text=True, check=False,
        timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr, 0)


@pytest.mark.endurance
def test_up_without_a_registry(environment: Environment) -> None:
    """The agent is loaded into the nodes as the images are, once; the synced file is in the development container."""
    kind = install(environment, KIND, "kind-dev")
    write(environment, "one")
    environment.write(UP)
    environment.write("synced", "src/file")

    assert up(environment, "cat", "/app/file", "/text").expect().stdout == "syncedone\n"
    assert kind.loads == 2
    (pod,) = [pod for pod in environment.objects("v1", "Pod") if "deletionTimestamp" not in pod["metadata"]]
    agent = pod["spec"]["initContainers"][0]
    assert agent["image"].startswith("docker.io/library/platform-agent:")
    assert agent["imagePullPolicy"] == "Never"
    # The node reports its images every half minute.
    with environment.api() as api:
        until(lambda: have_image(api, agent["image"]), seconds=90)
    environment.write("again", "src/file")
    assert up(environment, "cat", "/app/file").expect().stdout == "again"
    assert kind.loads == 2


def test_eject_without_a_registry(environment: Environment) -> None:
    """Plain Pulumi can't load images, so eject is refused before a file is written, and names the fix."""
    kind = install(environment, KIND, "kind-dev")
    write(environment, "one")

    refused = environment.platform("eject", "-o", "infrastructure").expect(1)
    assert "error: plain Pulumi can't load the image of service 'web' into the nodes" in refused.stderr
    assert "hint: push it to a registry: --registry" in refused.stderr
    assert not (environment.folder / "infrastructure").exists()
    assert kind.loads == 0
    environment.platform("eject", "-o", "infrastructure", "--registry", "registry.example.com").expect()


@pytest.mark.parametrize(
    ("command", "name", "provider"),
    [
        (("k3d", "image", "import", "ARCHIVE", "--cluster", "mine"), "k3d-mine", ""),
        (("minikube", "image", "load", "ARCHIVE", "--profile", "work"), "work", "minikube.sigs.k8s.io"),
        (("docker", "image", "load", "--input", "ARCHIVE"), "orbstack", ""),
        (("nerdctl", "--namespace", "k8s.io", "image", "load", "--input", "ARCHIVE"), "rancher-desktop", ""),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
@pytest.mark.endurance
def test_each_program(environment: Environment, command: tuple[str, ...], name: str, provider: str) -> None:
    """A pod runs the image that the program of its cluster has loaded."""
    program = install(environment, command, name, provider=provider)
    write(environment, "one")

    environment.platform("deploy").expect()

    assert program.loads == 1
    assert read_text(environment) == "one"
