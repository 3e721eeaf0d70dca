"""`platform cluster` where none runs; tests/local has the running ones."""

from __future__ import annotations

import json
import os
import socket
import threading
from functools import partial
from pathlib import Path

import pytest

from composeplat.diagnostics import MissingPiece
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.kernel import load_modules
from composeplat.local.layout import Layout, make_layout
from composeplat.local.part_logs import read_lines
from composeplat.local.states import Status
from composeplat.system.processes import ProcessId
from composeplat.toolchain.setup import Toolchain
from tests.conftest import run
from tests.in_process import run_here
from tests.own_cluster import free_row, ports_from
from tests.schemas import checked


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the local cluster is not running: platform cluster start\n"),
        (("--simulated",), "the simulated cluster is not running: platform cluster start --simulated N\n"),
    ],
)
def test_status_of_none(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    """Where no cluster runs, status says how to start that one, and ends with 4."""
    outcome = run("cluster", "status", *options, folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert (outcome.status, outcome.stdout, outcome.stderr) == (4, "", message)


def test_what_is_checked_before_programs_are_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port in use, and a missing module of the kernel, are errors before a build of many minutes, not after it."""
    monkeypatch.setattr(LocalCluster, "_check_machine", lambda _: None)
    monkeypatch.setattr(Toolchain, "need_all", lambda *_: pytest.fail("programs are built"))
    monkeypatch.setattr("composeplat.local.cluster.need_packages", lambda _: None)
    monkeypatch.setattr("composeplat.local.cluster.load_modules", partial(load_modules, bridge_filter=tmp_path / "no"))
    port = free_row()
    with socket.create_server(("127.0.0.1", port)):
        ports = ports_from(port)
        cluster = local_cluster({"COMPOSEPLAT_CLUSTER": str(tmp_path / "c")}, ports=ports)
        with pytest.raises(MissingPiece, match=rf"in use by other programs: {port} \(--api-port\)"):
            cluster.start()
    with pytest.raises(MissingPiece, match="br_netfilter is not loaded"):
        cluster.start()


def test_status_of_none_as_json(tmp_path: Path) -> None:
    """As JSON, it is data on standard output."""
    outcome = run("cluster", "status", "--json", "--simulated", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 4
    found = checked(json.loads(outcome.stdout))
    assert found["disk"].pop("free") > 0
    found["disk"].pop("nearly_full")
    assert found == {
        "schema": "platform/cluster/1",
        "running": False,
        "kubeconfig": str(tmp_path / "simulated" / "kubeconfig"),
        "parts": {},
        "ports": {"api": 17443},
        "storage_classes": {},
        "volumes": None,
        "objects": None,
        "disk": {"folder": str(tmp_path / "simulated"), "used": {}, "images": 0, "limit": None},
    }


def test_disk_use_of_a_stopped_cluster(tmp_path: Path) -> None:
    """What a stopped cluster takes is shown, so that one can decide to delete it."""
    volume = tmp_path / "cluster" / "volumes" / "data"
    volume.parent.mkdir(parents=True)
    volume.write_bytes(b"a" * 3 * 1024 * 1024)
    outcome = run("cluster", "status", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 4
    assert outcome.stdout.splitlines()[:2] == [
        "DISK                        SIZE",
        "volumes                     3.0 MiB",
    ]


def test_stop_of_none(tmp_path: Path) -> None:
    """To stop what does not run is no mistake."""
    outcome = run("cluster", "stop", "--simulated", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 0
    assert outcome.stderr == "the simulated cluster was not running\n"


def test_stop_of_the_other(tmp_path: Path) -> None:
    """Where only the other cluster runs, its command is named."""
    supervisor = make_layout({"COMPOSEPLAT_CLUSTER": str(tmp_path)}, simulated=True).supervisor
    supervisor.parent.mkdir(parents=True)
    supervisor.write_text(json.dumps(ProcessId.from_pid(os.getpid()).to_data()))
    outcome = run("cluster", "stop", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 0
    assert outcome.stderr == (
        "the local cluster was not running; the simulated cluster is: platform cluster stop --simulated\n"
    )


def test_deleted_data_is_noted(tmp_path: Path) -> None:
    """Also where the cluster was not running, so that nobody wonders whether its data is still there."""
    (tmp_path / "cluster" / "volumes").mkdir(parents=True)
    outcome = run("cluster", "stop", "--delete-data", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert (outcome.status, outcome.stderr) == (0, "the local cluster was not running, and its data is deleted\n")
    assert not (tmp_path / "cluster").exists()


def test_the_limit_is_shown(tmp_path: Path) -> None:
    """With a limit, what images and caches take of it is shown."""
    run_folder = tmp_path / "simulated" / "run"
    run_folder.mkdir(parents=True)
    (run_folder / "settings.json").write_text(json.dumps({"disk_limit": 20 * 1024**3}))
    outcome = run("cluster", "status", "--simulated", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert "images and caches           0.0 KiB of at most 20.0 GiB" in outcome.stdout.splitlines()


@pytest.mark.parametrize(
    ("args", "egress", "image_cache", "disk_limit"),
    [
        ((), True, 0, 0),
        (("--no-egress", "--image-cache", "512m"), False, 512 * 1024**2, 0),
        (("--disk-limit", "20g"), True, 0, 20 * 1024**3),
    ],
)
def test_what_a_start_asks_for(
    *,
    args: tuple[str, ...],
    egress: bool,
    image_cache: int,
    disk_limit: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pods have egress unless it is not wanted; the cache of images has a limit, and all of them together."""
    seen: list[Layout] = []
    monkeypatch.setattr(LocalCluster, "start", lambda cluster: seen.append(cluster.layout))
    run_here("cluster", "start", *args, folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path)).assert_success()

    assert [(layout.egress, layout.image_cache, layout.disk_limit) for layout in seen] == [
        (egress, image_cache, disk_limit)
    ]


@pytest.mark.parametrize("is_running", [True, False])
def test_a_start_that_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_running: bool) -> None:
    """The cluster that it leaves running is noted: its processes stay until it is stopped."""

    def interrupt(_: LocalCluster) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalCluster, "start", interrupt)
    monkeypatch.setattr(LocalCluster, "status", lambda _: Status(running=is_running))
    outcome = run_here("cluster", "start", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    note = "the local cluster runs, and was not ready yet: 'platform cluster stop' ends it\n"
    assert (outcome.status, outcome.stderr) == (130, note if is_running else "")


@pytest.mark.parametrize("option", ["--api-port", "--registry-port", "--https-port", "--http-port"])
def test_a_port_that_is_none(option: str, tmp_path: Path) -> None:
    outcome = run_here("cluster", "start", option, "65536", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 2
    assert f"'{option}': 65536 is not in the range 0<=x<=65535" in outcome.stderr


@pytest.mark.parametrize("option", ["--image-cache", "--disk-limit"])
def test_a_limit_that_is_no_size(option: str, tmp_path: Path) -> None:
    """The option is named, with what it must be."""
    outcome = run("cluster", "start", option, "much", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 2
    assert option in outcome.stderr
    assert "must be a size such as 512m, 1g or 512Mi" in outcome.stderr


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The logs of a stopped cluster."""
    folder = tmp_path / "cluster" / "logs"
    folder.mkdir(parents=True)
    (folder / "etcd.log").write_text("".join(f"line {number}\n" for number in range(5)))
    (folder / "kubelet.log").write_text("a\tb \x1b[31mred\x1b[0m\n\x07end")
    (folder / "kubelet.log.1").write_text("old\n")
    return folder


@pytest.mark.parametrize(
    ("args", "output"),
    [
        (("etcd", "--tail", "2"), "line 3\nline 4\n"),
        (("etcd", "--tail", "0"), ""),
        (("etcd",), "line 0\nline 1\nline 2\nline 3\nline 4\n"),
        (("kubelet",), "a\tb red\nend\n"),
    ],
)
def test_the_log_of_a_part(logs: Path, args: tuple[str, ...], output: str) -> None:
    """It has the last lines, without control sequences for the terminal."""
    outcome = run("cluster", "logs", *args, folder=logs, COMPOSEPLAT_CLUSTER=str(logs.parent.parent))

    assert (outcome.status, outcome.stdout, outcome.stderr) == (0, output, "")


def test_a_part_without_a_log(logs: Path, tmp_path: Path) -> None:
    """The parts are listed; where none ever ran, the message says how to start one."""
    mistyped = run("cluster", "logs", "kublet", folder=logs, COMPOSEPLAT_CLUSTER=str(tmp_path))
    never = run("cluster", "logs", "etcd", "--simulated", folder=logs, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert (mistyped.status, mistyped.stderr) == (
        1, "error: the cluster has no log of a part 'kublet'\n  hint: parts are: etcd, kubelet\n",
    )  # fmt: skip
    assert never.stderr.endswith("  hint: start it: platform cluster start\n")


def test_a_followed_log(logs: Path) -> None:
    """New lines are printed when they are whole; a log that was moved away continues in the new one."""
    log = logs / "etcd.log"
    lines = read_lines(log, 1, follow=True)
    assert next(lines) == "line 4\n"
    with log.open("a") as stream:
        stream.write("line 5\nhal")
    assert next(lines) == "line 5\n"
    with log.open("a") as stream:
        stream.write("f\n")
    assert next(lines) == "half\n"
    log.rename(logs / "etcd.log.1")
    log.write_text("new\n")
    assert next(lines) == "new\n"


def test_a_followed_log_that_is_away_for_a_while(logs: Path) -> None:
    """Between two starts the log may be gone, as with --delete-data."""
    log = logs / "etcd.log"
    lines = read_lines(log, 1, follow=True)
    assert next(lines) == "line 4\n"
    log.rename(logs / "etcd.log.1")
    restart = threading.Timer(0.5, lambda: (logs / "etcd.log.1").rename(log))
    restart.start()

    assert next(lines) == "line 0\n"
    restart.join()


def test_prune_of_none(tmp_path: Path) -> None:
    """What is used is asked of the cluster, so it must run."""
    outcome = run("cluster", "prune", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 4
    assert outcome.stderr.startswith("error: the local cluster is not running\n  hint: platform cluster start\n")


@pytest.mark.parametrize("number", ["0", "-1"])
def test_no_nodes(tmp_path: Path, number: str) -> None:
    """It is a mistake of usage: the real cluster would be started, or its folder used for a simulated one."""
    outcome = run("cluster", "start", "--simulated", number, folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 2
    assert f"Invalid value for '--simulated': {number} is not in the range x>=1." in outcome.stderr
    assert list(tmp_path.iterdir()) == []
