"""The steps that make space in etcd; and a real etcd that gets full, alone and in a simulated cluster."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.local.certificates import make_certificates
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.etcd import etcd_arguments
from composeplat.local.etcd_cleaner import EtcdCleaner, EtcdClient, EtcdError
from composeplat.local.etcd_space import EtcdSpace, Step, full_members, note_space, parse_space, read_space
from composeplat.local.layout import Layout
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.cluster.objects import Server
from tests.conftest import Outcome, run
from tests.local.test_cluster import wait
from tests.own_cluster import first_port
from tests.schemas import checked

MIB = 1024 * 1024
LIMIT = 16 * MIB
_FIRST = first_port("etcd_space")
ETCD_PORTS = {"client_port": _FIRST, "peer_port": _FIRST + 1}
API_PORT = _FIRST + 3
FULL = "etcdserver: mvcc: database space exceeded"
CONFIGS = kind_path("v1", "ConfigMap", "default")


@pytest.mark.parametrize(
    ("size", "in_use", "is_full", "steps", "useless_steps"),
    [
        pytest.param(80, 80, False, (), (), id="there-is-space"),
        pytest.param(81, 10, False, (Step.DEFRAGMENT,), (), id="free-pages"),
        pytest.param(95, 90, False, (Step.COMPACT, Step.DEFRAGMENT), (), id="nearly-full"),
        pytest.param(100, 10, True, tuple(Step), (Step.DISARM,), id="full"),
        pytest.param(100, 100, True, tuple(Step), (Step.DISARM,), id="full-of-objects"),
        pytest.param(10, 10, True, tuple(Step), (Step.DISARM,), id="an-alarm-that-is-left"),
    ],
)
def test_steps(
    *, size: int, in_use: int, is_full: bool, steps: tuple[Step, ...], useless_steps: tuple[Step, ...]
) -> None:
    """Space is made above 80 %, before the alarm; history goes only if it is needed, and the alarm is cleared last."""
    space = EtcdSpace(size, in_use, 100, is_full)

    assert (space.steps(), space.steps(is_useless=True)) == (steps, useless_steps)


def test_what_etcd_answers() -> None:
    """Numbers are strings, what is empty is left out, and an alarm for another reason is not for the limit."""
    status = {"header": {"revision": "7"}, "dbSize": "20480", "dbSizeInUse": "4096", "dbSizeQuota": "65536"}
    alarms = {"alarms": [{"memberID": "5", "alarm": "NOSPACE"}, {"memberID": "5", "alarm": "CORRUPT"}]}

    assert parse_space(status, alarms) == EtcdSpace(20480, 4096, 65536, is_full=True)
    assert full_members(alarms) == ["5"]
    assert not parse_space(status, {"alarms": [{"memberID": "5", "alarm": "CORRUPT"}]}).is_full
    assert parse_space({}, {}) == EtcdSpace(0, 0, 0, is_full=False)


def test_the_note(tmp_path: Path) -> None:
    """The figures are noted for the command; without them, or with another content, there are none."""
    path = tmp_path / "space.json"
    assert read_space(path) is None
    note_space(path, EtcdSpace(2, 1, 3, is_full=True))
    assert read_space(path) == EtcdSpace(2, 1, 3, is_full=True)
    for text in ("", "[]", '{"more": 1}'):
        path.write_text(text)
        assert read_space(path) is None


# a real etcd ----------------------------------------------------------------------------------------------------------


class Etcd(EtcdClient):
    """An etcd, with its keys."""

    def put(self, key: str, value: str) -> None:
        self.post("kv/put", {"key": _encode(key), "value": _encode(value)})

    def get(self, key: str) -> str:
        found = self.post("kv/range", {"key": _encode(key)})
        return base64.b64decode(found["kvs"][0]["value"]).decode()

    def delete(self, key: str) -> None:
        self.post("kv/deleterange", {"key": _encode(key)})


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    layout = Layout(folder=tmp_path, run=tmp_path, etcd_limit=LIMIT)
    make_certificates(layout, os.environ)
    kube = Toolchain(os.environ).need(KUBE).path
    with (tmp_path / "log").open("wb") as log:
        args = [str(kube), "etcd", "--unsafe-no-fsync", *etcd_arguments(layout, **ETCD_PORTS)]
        process = subprocess.Popen(args, stdout=log, stderr=log)
    found = Etcd(layout.keys, ETCD_PORTS["client_port"])
    try:
        wait(lambda: found.space().limit == LIMIT)
        yield found
    finally:
        process.kill()
        process.wait()


def fill(write: Callable[[int], object]) -> int:
    """Write until etcd is full; return how often that succeeded."""
    for number in range(1000):
        try:
            write(number)
        except (EtcdError, ApiError) as error:
            if FULL not in str(error):
                raise
            return number
    raise AssertionError("it was never full")


def make_cleaner(etcd: Etcd, folder: Path, lines: list[str]) -> EtcdCleaner:
    return EtcdCleaner(etcd, folder / "space.json", log=lines.append)


@pytest.mark.cluster
def test_a_full_etcd_works_again(etcd: Etcd, tmp_path: Path) -> None:
    """Full of earlier versions, etcd refuses each write; then it has space, and each key its last value."""
    lines: list[str] = []
    for number in range(50):
        etcd.put(f"kept/{number}", f"value {number}")
    texts = [str(number) * 100_000 for number in range(10)]
    count = fill(lambda number: etcd.put("churn", texts[number % 10]))
    assert etcd.space().is_full
    with pytest.raises(EtcdError, match="space exceeded"):
        etcd.put("small", "1")

    make_cleaner(etcd, tmp_path, lines).check()

    space = etcd.space()
    assert (space.is_full, space.is_nearly_full, space.size < 2 * MIB) == (False, False, True)
    assert read_space(tmp_path / "space.json") == space
    assert [line.partition(":")[0] for line in lines] == ["etcd was full"]
    assert [etcd.get(f"kept/{number}") for number in range(50)] == [f"value {number}" for number in range(50)]
    # A write that was refused at the very limit may have been done.
    assert etcd.get("churn") in (texts[(count - 1) % 10], texts[count % 10])
    etcd.put("small", "1")
    assert etcd.get("small") == "1"


@pytest.mark.cluster
def test_space_is_made_before_the_alarm(etcd: Etcd, tmp_path: Path) -> None:
    """Above 80 % free pages are given back, and earlier versions too if they are in use."""
    lines: list[str] = []
    cleaner = make_cleaner(etcd, tmp_path, lines)
    number = 0
    while not etcd.space().is_nearly_full:
        etcd.put("churn", str(number) * 100_000)
        number += 1
    cleaner.check()

    assert not etcd.space().is_nearly_full
    assert [line.partition(":")[0] for line in lines] == ["etcd was nearly full"]


@pytest.mark.cluster
def test_etcd_full_of_objects(etcd: Etcd, tmp_path: Path) -> None:
    """Where making space is of no use that is logged once, and keys can be deleted until there is space."""
    lines: list[str] = []
    now = 10.0
    cleaner = EtcdCleaner(etcd, tmp_path / "space.json", log=lines.append, clock=lambda: now)
    count = fill(lambda number: etcd.put(f"key/{number}", str(number % 10) * 100_000))

    cleaner.check()
    # The check may have made space for a value or two.
    fill(lambda number: etcd.put(f"more/{number}", "1" * 1_000_000))
    now += 10
    cleaner.check()
    assert not etcd.space().is_full
    assert [line.rpartition(", ")[2] for line in lines].count("objects must be deleted") == 1

    for number in range(count // 2):
        etcd.delete(f"key/{number}")
    now += 60
    cleaner.check()
    etcd.put("more", "1" * 1_000_000)
    assert etcd.get(f"key/{count - 1}") == str((count - 1) % 10) * 100_000


def test_an_etcd_that_is_not_there(tmp_path: Path) -> None:
    """While etcd starts, or is replaced, the next check tries again; the same failure is logged once."""
    layout, lines = Layout(folder=tmp_path, run=tmp_path), list[str]()
    make_certificates(layout, os.environ)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = EtcdClient(layout.keys, taken.getsockname()[1])
        cleaner = EtcdCleaner(client, tmp_path / "n", log=lines.append, clock=itertools.count(0, 10).__next__)
        for _ in range(3):
            cleaner.check()

    assert lines == ["can't make space in etcd: [Errno 111] Connection refused"]


def test_certificates_of_an_earlier_openssl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lack key identifiers, without which Python 3.13 accepts no certificate by default."""
    (tmp_path / "extensions").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=none\n")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for command in (
        ("req", "-x509", *new, "-subj", "/CN=authority", "-keyout", "etcd-ca.key", "-out", "etcd-ca.crt"),
        ("req", "-new", *new, "-subj", "/CN=etcd", "-keyout", "api-to-etcd.key", "-out", "request"),
        ("x509", "-req", "-in", "request", "-CA", "etcd-ca.crt", "-CAkey", "etcd-ca.key", "-CAcreateserial",
         "-extfile", "extensions", "-out", "api-to-etcd.crt"),
    ):  # fmt: skip
        subprocess.run(("openssl", *command), cwd=tmp_path, check=True, capture_output=True)
    make = ssl.create_default_context

    def make_strict(**more: Any) -> ssl.SSLContext:
        made = make(**more)
        made.verify_flags |= ssl.VERIFY_X509_STRICT
        return made

    monkeypatch.setattr("ssl.create_default_context", make_strict)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "api-to-etcd.crt", tmp_path / "api-to-etcd.key")
    with Server(tls=context) as server:
        assert EtcdClient(tmp_path, server.port).post("maintenance/status", {}) == {}


# in a cluster ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    made = local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": str(tmp_path)}, ports={"api": API_PORT}, simulated=1)
    made.layout = replace(made.layout, etcd_limit=LIMIT)
    made.start()
    yield made
    made.delete()
    shutil.rmtree(tmp_path, ignore_errors=True)


@contextlib.contextmanager
def paused(cluster: LocalCluster, part: str) -> Iterator[None]:
    pid = (cluster.status().parts or {})[part]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def config(name: str, text: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
            "data": {"text": text}}  # fmt: skip


def status(cluster: LocalCluster, *args: str) -> Outcome:
    folder = cluster.layout.folder.parent
    return run("cluster", "status", "--simulated", *args, folder=folder, COMPOSEPLAT_CLUSTER=str(folder))


@pytest.mark.cluster
def test_a_cluster_with_a_full_etcd_works_again(cluster: LocalCluster) -> None:
    """The status says that etcd is full; the cleaner makes space, and no object is lost."""
    with Api(cluster.access) as api:
        for number in range(20):
            api.apply(config(f"kept-{number}", f"value {number}"))
        with paused(cluster, "cleaner"):
            count = fill(lambda number: api.apply(config("churn", str(number % 10) * 900_000)))
            with pytest.raises(ApiError, match="space exceeded"):
                api.apply(config("small", "1"))
            client = EtcdClient(cluster.layout.keys, API_PORT + 1)
            note_space(cluster.layout.etcd_space_file, client.space())
            shown = status(cluster)
        assert "etcd is full, 1" in shown.stderr
        assert "no object can be written until the cleaner has made space" in shown.stderr
        assert "hint: platform cluster logs cleaner" in shown.stderr

        wait(lambda: api.apply(config("small", "1")), seconds=60)
        found = {item["metadata"]["name"]: (item.get("data") or {}).get("text") for item in api.items(CONFIGS)}
        assert [found[f"kept-{number}"] for number in range(20)] == [f"value {number}" for number in range(20)]
        assert found["churn"] in [str(number % 10) * 900_000 for number in (count - 1, count)]
        wait(lambda: cluster.status().broken == [])
    assert "etcd was full: " in (cluster.layout.logs / "cleaner.log").read_text()
    wait(lambda: status(cluster).stderr == "")
    objects = checked(json.loads(status(cluster, "--json").stdout))["objects"]
    assert (objects["limit"], objects["full"], objects["size"] < LIMIT // 2) == (LIMIT, False, True)
    assert cluster.stop()
    started = time.monotonic()
    assert cluster.start()
    assert time.monotonic() - started < 120
