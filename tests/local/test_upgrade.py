"""Which versions of Kubernetes may use a cluster's data; and a real upgrade, of two pinned versions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.local.base_images import push_busybox
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.layout import Layout
from composeplat.local.upgrade import check_upgrade, note_version
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DEPLOY_TOOLS, KUBE, Tool
from tests.conftest import Project
from tests.deploy.conftest import SLEEP, Environment, an_environment
from tests.own_cluster import first_port, ports_from

#: The clusters of other tests may run as long as this one.
PORTS = ports_from(first_port("upgrade"))
OLDER = "1.34.4"
PINS = Path(__file__).parent / "older_kubernetes"
APP = f"""\
services:
  keeper:
    image: busybox:1.37
    command: "{SLEEP}"
    volumes: ["data:/data"]
    environment: {{ROUND: '$ROUND'}}
    stop_grace_period: 0
volumes: {{data: }}
"""


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr("composeplat.progress.note", found.append)
    return found


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "etcd").mkdir()
    return Layout(folder=tmp_path, run=tmp_path / "run")


def test_a_new_cluster_has_any_version(tmp_path: Path) -> None:
    """Without data there is nothing to upgrade, whatever a deleted cluster left behind."""
    layout = Layout(folder=tmp_path, run=tmp_path / "run")
    note_version(layout, "1.20.0")

    check_upgrade(layout, "1.35.4")


def test_the_same_version(layout: Layout, notes: list[str]) -> None:
    """A start with the same version says nothing."""
    check_upgrade(layout, "1.35.4")
    note_version(layout, "1.35.4")
    check_upgrade(layout, "1.35.4")

    assert notes == []


@pytest.mark.parametrize("before", ["1.34.9", "1.35.1", "1.35.6"])
def test_an_upgrade_is_noted(layout: Layout, notes: list[str], before: str) -> None:
    """The next minor version, and another patch, take the data over, and say so."""
    note_version(layout, before)
    check_upgrade(layout, "1.35.4")

    assert notes == [f"Kubernetes 1.35.4 replaces {before}: volumes, images and objects of the cluster are kept"]


def test_a_jump(layout: Layout) -> None:
    """An upgrade over two minor versions is refused, with the version that comes between."""
    note_version(layout, "1.33.2")

    with pytest.raises(ComposeplatError) as caught:
        check_upgrade(layout, "1.35.4")
    assert str(caught.value) == (
        "the data of the cluster is of Kubernetes 1.33.2, which 1.35.4 can't use: "
        "an upgrade goes to the next minor version only"
    )
    assert caught.value.hint == (
        "start the cluster with a version of composeplat that has Kubernetes 1.34 before; "
        "or delete the data: platform cluster stop --delete-data"
    )


def test_a_downgrade(layout: Layout) -> None:
    """An earlier minor version is refused."""
    note_version(layout, "1.36.0")

    with pytest.raises(ComposeplatError, match=r"of Kubernetes 1\.36\.0, which 1\.35\.4 can't use: there is no way"):
        check_upgrade(layout, "1.35.4")


# a real upgrade -------------------------------------------------------------------------------------------------------


def older_kubernetes(folder: Path) -> Tool:
    """The same program from the pins of an earlier Kubernetes: its main program is the package's own."""
    for source in (*KUBE.module.glob("*.go"), *PINS.iterdir()):
        shutil.copy(source, folder)
    stamps = tuple((name, "34" if name.endswith("gitMinor") else value) for name, value in KUBE.extra_stamps)
    return replace(KUBE, version=OLDER, module=folder, extra_stamps=stamps)


@pytest.fixture
def older(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of the earlier Kubernetes; its program is built once, and stays in the cache."""
    # The kubelet's sockets are below it, and the path of a socket is short.
    variables = {**os.environ, "COMPOSEPLAT_CLUSTER": str(tmp_path_factory.mktemp("data"))}
    made = local_cluster(variables, ports=PORTS)
    (tmp_path / "module").mkdir()
    made.kube = older_kubernetes(tmp_path / "module")
    Toolchain(os.environ).need_all(DEPLOY_TOOLS)
    yield made
    made.delete()


def version_of(environment: Environment) -> str:
    with environment.api() as api:
        return str(api.get("/version")["gitVersion"])


@pytest.mark.cluster
@pytest.mark.endurance
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.geteuid() != 0, reason="the local cluster needs root: run the tests as root")
def test_an_upgrade_keeps_the_data(older: LocalCluster, project: Project, tmp_path: Path, notes: list[str]) -> None:
    """A cluster of Kubernetes 1.34 is started with 1.35: pods, objects and volumes are there, and a deploy works."""
    newer = local_cluster(older.environment, ports=PORTS)
    older.start()
    push_busybox(("127.0.0.1", PORTS["registry"]), os.environ)
    with an_environment(newer, project({}).path, tmp_path) as environment:
        environment.write(APP)
        environment.platform("deploy", ROUND="1").expect()
        environment.exec("keeper-0", "sh", "-c", "echo kept > /data/file && sync")
        assert version_of(environment) == f"v{OLDER}"
        older.stop()
        newer.start()

        assert version_of(environment) == f"v{KUBE.version}"
        assert notes == [
            f"Kubernetes {KUBE.version} replaces {OLDER}: volumes, images and objects of the cluster are kept"
        ]
        environment.platform("deploy", ROUND="1").expect()
        environment.platform("deploy", ROUND="2").expect()
        assert environment.exec("keeper-0", "sh", "-c", "cat /data/file; echo $ROUND") == "kept\n2\n"
        newer.stop()
        with pytest.raises(ComposeplatError, match="there is no way back to an earlier version"):
            older.start()
        newer.start()
