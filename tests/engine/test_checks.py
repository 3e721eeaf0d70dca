"""The checks of images that are loaded into nodes, before anything is built: the definitions are read and planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.other_clusters import PRODUCTS, OtherCluster
from composeplat.diagnostics import MissingPiece
from composeplat.engine.checks import check_can_build
from composeplat.engine.stack import Stack
from composeplat.engine.target import Target
from tests.conftest import Folder, Project

PLATFORMS = """\
services:
  web: {build: {context: ., platforms: [linux/amd64, linux/arm64]}}
"""
BASE = """\
services:
  web: {build: {context: ., additional_contexts: {base: 'service:base'}}}
  base: {build: .}
"""
SINGLE = "services: {web: {build: {context: ., platforms: [linux/arm64]}}}\n"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH, with kind."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "kind").touch(mode=0o755)
    return folder


def check(folder: Folder, programs: Path, **more: str) -> None:
    plan = folder.read(**more).plan
    assert plan is not None
    (kind,) = (product for product in PRODUCTS if product.title == "kind")
    target = Target(access=Access(host="127.0.0.1", port=1), kubeconfig="", other=OtherCluster(kind, "dev"))
    stack = Stack(environment_name="demo", namespace="demo", target=target, variables={"PATH": str(programs)})
    check_can_build(stack, plan.images)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            PLATFORMS,
            "the build of service 'web' is for several platforms, and an image that is loaded is for one: kind cluster"
            " 'dev' has none",
            id="several-platforms",
        ),
        pytest.param(
            BASE,
            "the build of service 'web' uses the image of another service, which the builder can get from a registry"
            " alone: kind cluster 'dev' has none",
            id="the-image-of-a-service",
        ),
    ],
)
def test_builds_that_need_a_registry(project: Project, programs: Path, text: str, message: str) -> None:
    """What can't be loaded is refused before a build, with the fix; with a registry it is built."""
    folder = project({"compose.yaml": text, "Dockerfile": "FROM scratch\n"})

    with pytest.raises(MissingPiece) as raised:
        check(folder, programs, load_policy="Never")
    assert (str(raised.value), raised.value.hint) == (message, "give one: --registry")
    check(folder, programs, registry="registry.example.com/shop")


def test_a_build_for_one_platform_is_loaded(project: Project, programs: Path) -> None:
    """One platform needs no registry, as long as the program of the cluster is there."""
    folder = project({"compose.yaml": SINGLE, "Dockerfile": "FROM scratch\n"})
    check(folder, programs, load_policy="Never")

    (programs / "kind").unlink()
    with pytest.raises(MissingPiece) as raised:
        check(folder, programs, load_policy="Never")
    assert str(raised.value) == "the images of kind cluster 'dev' are loaded with 'kind', which is not on PATH"
    assert raised.value.hint == "install kind, or push to a registry: --registry"
    check(folder, programs, registry="registry.example.com/shop")
