"""A local cluster with images of real programs in its registry."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from composeplat.local.cluster import LocalCluster
from composeplat.toolchain.setup import Toolchain
from tests.conftest import ROOT, SHARED
from tests.deploy.conftest import PORTS, Environment, an_environment, running_cluster
from tests.real.debian import root_layer
from tests.real.software import push_programs

HERE = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ready = sys.platform == "linux" and os.geteuid() == 0 and shutil.which("mmdebstrap") is not None
    needs = pytest.mark.skipif(not ready, reason="real programs need Linux, root and mmdebstrap: make extras")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(needs)
            item.add_marker(pytest.mark.timeout(900))
    if all(item.get_closest_marker("cluster") for item in items):
        _put_long_files_first(items)


def _put_long_files_first(items: list[pytest.Item]) -> None:
    """Sort the files of `make test`: a worker that takes a long one last keeps the others waiting.

    A project has a cluster of its own, and images to make; the other files are the longer the more tests they have.
    """
    counts = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.parent != HERE, -counts[item.path], item.path))


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of its own, beside that of tests/deploy: its registry has the programs under docker.io's names."""
    ports = {name: port + 40 for name, port in PORTS.items()}
    with running_cluster(tmp_path_factory.mktemp("cluster"), ports) as made:
        push_programs(root_layer(Toolchain(os.environ).cache.folder), ("127.0.0.1", ports["registry"]))
        yield made


@pytest.fixture
def real_environment(
    real_cluster: LocalCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Environment]:
    """A project in a namespace; one of the corpus gets the programs that its build contexts lack."""
    folder = tmp_path / request.param
    for source in (ROOT / "examples", SHARED / "corpus", HERE / "projects", HERE / "corpus"):
        if (source / request.param).is_dir():
            shutil.copytree(source / request.param, folder, dirs_exist_ok=True)
    with an_environment(real_cluster, folder, tmp_path) as made:
        made.name = request.param
        yield made
