"""A cluster whose folder is on a small file system: on a full disk images go and volumes stay; a power cut.

The tests share the cluster.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from composeplat.local.base_images import push_busybox
from composeplat.local.cluster import LocalCluster
from composeplat.local.disk_use import read_disk
from composeplat.local.images import File, Image, push
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import FRONTDOOR
from tests.conftest import Project
from tests.deploy.conftest import PORTS, SLEEP, Environment, an_environment, running_cluster, until
from tests.local.test_cleaner import cache_image, cached

MIB = 1024 * 1024
SMALL = {name: port + 50 for name, port in PORTS.items()}
IMAGE = f"localhost:{SMALL['registry']}/large:1"
FILE = f"""\
services:
  keeper:
    image: busybox:1.37
    command: "{SLEEP}"
    volumes: ["data:/data"]
    stop_grace_period: 0
volumes: {{data: }}
"""
LARGE = f"""\
  large: {{image: '{IMAGE}', command: "{SLEEP}", stop_grace_period: 0}}
volumes: {{data: }}
"""


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 900 MiB."""
    disk, place = folder / "disk", folder / "m"
    place.mkdir()
    with disk.open("wb") as stream:
        os.truncate(stream.fileno(), 900 * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(disk)], check=True)
    subprocess.run(["mount", "-o", "loop", str(disk), str(place)], check=True)
    place.chmod(0o700)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with small_disk(tmp_path_factory.mktemp("s")) as place, running_cluster(place / "c", SMALL) as made:
        push_busybox(("127.0.0.1", SMALL["registry"]), os.environ)
        yield made


@pytest.fixture
def on_small(small: LocalCluster, project: Project, tmp_path: Path) -> Iterator[Environment]:
    with an_environment(small, project({}).path, tmp_path) as made:
        yield made


@contextmanager
def filled(cluster: LocalCluster, free: int) -> Iterator[None]:
    """Another file takes the disk, until so much is free; it is deleted in the end."""
    other = cluster.layout.folder.parent / "other"
    with other.open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, max(1, read_disk(cluster.layout).free - free))
    try:
        yield
    finally:
        other.unlink()


def checksum(environment: Environment) -> str:
    return environment.exec("keeper-0", "sha256sum", "/data/file")


def is_running(environment: Environment) -> bool:
    return [pod["status"]["phase"] for pod in environment.pods("keeper")] == ["Running"]


def log_of(cluster: LocalCluster) -> str:
    return (cluster.layout.logs / "cleaner.log").read_text()


def test_a_pulled_image_survives_a_power_cut(on_small: Environment, small: LocalCluster, tmp_path: Path) -> None:
    """As soon as a pod runs, the disk has the files of its image: a copy of the disk, as a power cut leaves it."""
    content = os.urandom(4 * MIB)
    program = File(Toolchain(os.environ).need(FRONTDOOR).path.read_bytes())
    files = {"frontdoor": program, "content": File(content)}
    push(Image(files=files, entrypoint=("/frontdoor", "pause")), "large:1", ("127.0.0.1", SMALL["registry"]))
    disk, place = small.layout.folder.parents[2] / "disk", tmp_path / "m"

    on_small.deploy(f"services:\n{LARGE.splitlines()[0].partition(', command')[0]}}}\n").expect()
    shutil.copyfile(disk, tmp_path / "disk")
    place.mkdir()
    subprocess.run(["mount", "-o", "loop", str(tmp_path / "disk"), str(place)], check=True)
    try:
        found = [path.read_bytes() for path in place.glob("c/cluster/containerd/*overlayfs/snapshots/*/fs/content")]
    finally:
        subprocess.run(["umount", str(place)], check=True)

    assert [len(file) for file in found] == [len(content)]
    assert found == [content]


def test_images_go_before_volumes(on_small: Environment, small: LocalCluster) -> None:
    """On a disk that is nearly full the cached images are deleted; pods and their volumes are not touched."""
    on_small.deploy(FILE).expect()
    on_small.exec("keeper-0", "sh", "-c", "dd if=/dev/urandom of=/data/file bs=1M count=20 && sync")
    before = checksum(on_small)
    cache_image(small.layout, "docker.io/library/old:1", used=1000.0)
    disk = read_disk(small.layout)

    with filled(small, disk.reserve - MIB // 2):
        until(lambda: cached(small.layout) == [])
        assert "the disk is nearly full: deleted cached docker.io/library/old:1, 1.0 MiB" in log_of(small)
        assert is_running(on_small)
    assert checksum(on_small) == before


@pytest.mark.endurance
def test_a_full_disk(on_small: Environment, small: LocalCluster) -> None:
    """A deploy names the full disk; with space again all works again, and the data is whole."""
    on_small.deploy(FILE).expect()
    on_small.exec("keeper-0", "sh", "-c", "dd if=/dev/urandom of=/data/file bs=1M count=20 && sync")
    before = checksum(on_small)
    large = Image(files={"data": File(os.urandom(40 * MIB))}, entrypoint=("/data",))
    push(large, "large:1", ("127.0.0.1", SMALL["registry"]))

    with filled(small, 20 * MIB):
        refused = on_small.deploy(FILE.replace("volumes: {data: }\n", LARGE), "--timeout", "60").expect(1)
        assert "the disk of the node" in refused.stderr

    until(lambda: not small.status().broken)
    on_small.deploy(FILE).expect()
    until(lambda: is_running(on_small))
    assert checksum(on_small) == before
