"""A local cluster of another program announces its registry: built images go there without an option."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from composeplat.cluster.announced_registry import HOSTING_PATH
from composeplat.local.builder_cache import BUILDER_NAME, buildx_instance
from tests.conftest import for_endurance
from tests.deploy.conftest import PORTS, SLEEP, Environment

FILE = f"""\
services:
  web:
    build: {{dockerfile_inline: "FROM busybox:1.37"}}
    command: {SLEEP}
    stop_grace_period: 0s
"""


@pytest.fixture
def elsewhere(environment: Environment) -> Iterator[Environment]:
    """The environment of somebody whose cluster is not ours, but has an announced registry."""
    layout = environment.cluster.layout
    environment.variables["COMPOSEPLAT_CLUSTER"] = str(environment.folder.parent / "no-cluster")
    instances = Path(environment.variables["HOME"]) / ".docker" / "buildx" / "instances"
    instances.mkdir(parents=True)
    (instances / BUILDER_NAME).write_text(buildx_instance(layout.buildkit_socket))
    announced = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "local-registry-hosting", "namespace": "kube-public"},
        "data": {"localRegistryHosting.v1": f'host: "localhost:{PORTS["registry"]}"\nhelp: "https://example.com"\n'},
    }
    with environment.api() as api:
        api.create(announced)
        yield environment
        api.delete(HOSTING_PATH)


@pytest.mark.parametrize("image", ["", *for_endurance("    image: shop:dev\n")], ids=["no name", "one word"])
def test_no_registry(elsewhere: Environment, image: str) -> None:
    """Without a registry nothing is built, and nothing changes: the message says how to name one."""
    with elsewhere.api() as api:
        api.delete(HOSTING_PATH)

    ran = elsewhere.deploy(FILE + image, "--builder", BUILDER_NAME).expect(4)

    assert "error: no registry is known that the image of service 'web' could be pushed to\n" in ran.stderr
    assert "  hint: give --registry or set PLATFORM_REGISTRY, or name one in 'image'\n" in ran.stderr
    assert elsewhere.names() == set()


@pytest.mark.parametrize("image", ["shop:dev", *for_endurance("team/shop:dev")])
def test_names_without_a_registry_go_there(elsewhere: Environment, image: str) -> None:
    """What is built for this cluster stays on this machine, and does not go to Docker Hub."""
    done = elsewhere.deploy(f"{FILE}    image: {image}\n", "--builder", BUILDER_NAME).expect()

    registry = f"localhost:{PORTS['registry']}"
    assert f"sends to registry {registry}: image {image}, " in done.stderr
    (pod,) = elsewhere.pods("web")
    assert pod["spec"]["containers"][0]["image"].startswith(f"{registry}/{image}@sha256:")


def test_built_images_go_there(elsewhere: Environment) -> None:
    """The image is pushed to the announced registry, the deploy says so, and the cluster runs it."""
    done = elsewhere.deploy(FILE, "--builder", BUILDER_NAME).expect()

    registry = f"localhost:{PORTS['registry']}"
    assert f"sends to registry {registry}: image " in done.stderr
    (pod,) = elsewhere.pods("web")
    assert pod["spec"]["containers"][0]["image"].startswith(f"{registry}/env-web:latest@sha256:")


def test_the_registry_of_the_person_comes_first(elsewhere: Environment) -> None:
    """A registry that is given is taken, whatever the cluster announces."""
    elsewhere.write(FILE)
    given = ("--registry", "registry.example.com/team")
    done = elsewhere.platform("preview", *given, BUILDX_BUILDER=BUILDER_NAME).expect()

    assert "sends to registry registry.example.com: image team/env-web, " in done.stderr
