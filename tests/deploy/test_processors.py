"""Images are for the processors of the nodes: here one real node, and one of another processor that runs nothing."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator

import pytest

from composeplat.dev.helper import HelperBuild
from composeplat.engine.backend import find_data_folder
from composeplat.engine.target import find_target
from composeplat.local.packages import search_path
from composeplat.system.machine import architecture
from composeplat.toolchain.setup import Toolchain
from tests.deploy.conftest import PORTS, Environment
from tests.deploy.test_build import ask_registry

FILE = """\
services:
  web:
    build: web
    command: [/bin/sleep, '1000']
    stop_grace_period: 0
  pinned:
    build: web
    command: [/bin/sleep, '1000']
    stop_grace_period: 0
    x-node-selector: {kubernetes.io/arch: PROCESSOR}
"""
OTHER = {"amd64": "arm64", "arm64": "amd64"}[architecture()]
_MACHINES = {"amd64": 62, "arm64": 183}


@pytest.fixture
def mixed(environment: Environment) -> Iterator[Environment]:
    """A cluster with a second node that has another processor; no pod is scheduled to it."""
    labels = {"kubernetes.io/arch": OTHER, "kubernetes.io/os": "linux"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "other", "labels": labels},
        "spec": {"unschedulable": True},
    }
    with environment.api() as api:
        api.create(node)
        yield environment
        api.delete("/api/v1/nodes/other")


def platforms(path: str) -> list[str]:
    rows = ask_registry(path)["manifests"]
    return sorted(f"{row['platform']['os']}/{row['platform']['architecture']}" for row in rows)


def test_images_of_a_mixed_cluster(mixed: Environment) -> None:
    """An image is built for all nodes that its pods may run on, and a preview says so first."""
    busybox = shutil.which("busybox", path=search_path(os.environ))
    assert busybox
    mixed.write("FROM scratch\nCOPY busybox /bin/sleep\n", "web/Dockerfile")
    shutil.copy(busybox, mixed.folder / "web" / "busybox")
    mixed.write(FILE.replace("PROCESSOR", architecture()))
    note = (
        "the nodes have other processors; images are built: web for linux/amd64 and linux/arm64;"
        f" pinned for linux/{architecture()}\n"
    )
    assert note in mixed.platform("preview").expect().stderr

    done = mixed.platform("deploy").expect()

    assert note in done.stderr
    assert platforms("env-web/manifests/latest") == ["linux/amd64", "linux/arm64"]
    assert "manifests" not in ask_registry("env-pinned/manifests/latest")
    assert "nothing changed" in mixed.platform("deploy").expect().stderr


@pytest.mark.endurance
def test_helper_image(environment: Environment) -> None:
    """The helper image of `platform up` is one index for both processors."""
    toolchain, data_folder = Toolchain(environment.variables), find_data_folder(environment.variables)
    registry = f"localhost:{PORTS['registry']}"

    build = HelperBuild(
        toolchain=toolchain, target=find_target(environment.variables), data_folder=data_folder, registry=registry,
        architectures=("amd64", "arm64"),
    )  # fmt: skip
    with environment.api() as api:
        built = build.provide(api)

    assert platforms(f"platform-agent/manifests/{built.reference.partition('@')[2]}") == ["linux/amd64", "linux/arm64"]


def test_a_step_for_another_processor(environment: Environment) -> None:
    """Without an emulator, a step of a build for another processor fails with a message that says so."""
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, _MACHINES[OTHER], 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x10000, 0x10000, 120, 120, 0x10000)
    environment.write('FROM scratch\nCOPY --chmod=755 program /program\nRUN ["/program"]\n', "web/Dockerfile")
    (environment.folder / "web" / "program").write_bytes(header + segment)
    environment.write(f"services: {{web: {{build: {{context: web, platforms: [linux/{OTHER}]}}}}}}\n")

    failed = environment.platform("deploy").expect(1)

    assert "the builder can't run programs of another processor: install an emulator" in failed.stderr
