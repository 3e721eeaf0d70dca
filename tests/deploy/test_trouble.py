"""Trouble that is nobody's fault: a cluster that does not answer, bad lines, stale locks, full disks, lost passphrases.

Every case ends by itself with one message, and the deploy after it needs no help.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import http.client
import itertools
import json
import os
import random
import shutil
import signal
import socket
import ssl
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.engine.own_processes import OwnProcess
from composeplat.local.cluster import LocalCluster
from composeplat.system.processes import ProcessId, start_time
from tests.conftest import for_endurance
from tests.deploy.conftest import PORTS, SLEEP, Environment, Ran, until
from tests.deploy.test_history import history

HEAD = f"x-app: &app {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\nservices:\n"
SEVERAL = (
    HEAD
    + "  keeper: {<<: *app, volumes: ['data:/data'], environment: {A: b}}\n"
    + "".join(f"  app-{n}: {{<<: *app, expose: ['80{n:02}'], depends_on: [keeper]}}\n" for n in range(4))
    + "volumes: {data: {}}\n"
)
#: What the file above is in the cluster.
WANTED = {
    "StatefulSet/keeper", "Service/keeper", "Secret/keeper-env", "PersistentVolumeClaim/data",
    *(f"Deployment/app-{n}" for n in range(4)), *(f"Service/app-{n}" for n in range(4)),
}  # fmt: skip
#: One service that has objects, and no pods to wait for.
SMALL = f"{HEAD}  app: {{<<: *app, scale: 0, environment: {{A: b}}}}\n"
WANTED_SMALL = {"Deployment/app", "Service/app", "Secret/app-env"}
#: One that never becomes ready.
STUCK = (
    f"{HEAD}  slow: {{<<: *app, healthcheck: {{test: [CMD, 'false'], interval: 600s, start_period: 600s}}}}\n"
    "  web: {<<: *app, depends_on: {slow: {condition: service_healthy}}}\n"
)
ADDRESS = f"the API server at https://127.0.0.1:{PORTS['api']}"


# running and watching -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Begun:
    """A command that was started, and what it has said so far."""

    process: subprocess.Popen[str]
    path: Path
    began: float = field(default_factory=time.monotonic)

    @property
    def output(self) -> str:
        return self.path.read_text()

    def until(self, args: str) -> None:
        until(lambda: args in self.output or self.process.poll() is not None)
        assert args in self.output, self.output

    def end(self, seconds: float = 120) -> Ran:
        status = self.process.wait(timeout=seconds)
        return Ran(status, "", self.output, time.monotonic() - self.began)


def begin(environment: Environment, *args: str, **more: str) -> Begun:
    path = environment.folder / f"said-{len(environment.started)}"
    with path.open("w") as stream:
        process = subprocess.Popen(
            environment.command_line(*args), cwd=environment.folder, env={**environment.variables, **more}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream,
        )  # fmt: skip
    environment.started.append(process)
    return Begun(process, path)


def assert_sound(environment: Environment) -> None:
    """The next deploy needs no help, and leaves what the file says, each thing once, and nothing pending."""
    environment.deploy(SMALL).expect()

    assert environment.names() - {"PersistentVolumeClaim/data"} == WANTED_SMALL
    assert pending(environment) == []


def assert_done(environment: Environment, wanted: set[str]) -> None:
    """All that is wanted is there, each thing once, and the state knows it."""
    assert environment.names() == wanted
    assert pending(environment) == []
    environment.platform("preview", "--expect-no-changes").expect()


def pending(environment: Environment) -> list[Any]:
    found: list[Any] = environment.state().get("pending_operations") or []
    return found


def identities(environment: Environment) -> dict[str, str]:
    """What shows objects from others that were made in their place."""
    kinds = (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("v1", "Service"), ("v1", "Pod"))
    found = [manifest for version, kind in kinds for manifest in environment.objects(version, kind)]
    return {manifest["metadata"]["uid"]: manifest["metadata"]["name"] for manifest in found}


# the API server -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ApiServer:
    """The process of the cluster's API server."""

    cluster: LocalCluster

    @property
    def pid(self) -> int:
        """Its number; 0 while it is being started again."""
        supervisor = self.cluster.status().pid
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        for child in children:
            with contextlib.suppress(OSError):
                if b"\0kube-apiserver\0" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
        return 0

    def send(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def answers(self) -> bool:
        with Api(self.cluster.access) as api:
            try:
                return api.text("/readyz") == "ok"
            except ApiError:
                return False

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """It takes connections, and says nothing."""
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)

    @contextlib.contextmanager
    def gone(self) -> Iterator[None]:
        """It is killed, and killed again as often as it is started."""
        over = threading.Event()

        def kill() -> None:
            while not over.wait(0.1):
                self.send(signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            yield
        finally:
            over.set()
            killer.join()


@pytest.fixture
def server(cluster: LocalCluster) -> Iterator[ApiServer]:
    server = ApiServer(cluster)
    yield server
    server.send(signal.SIGCONT)
    until_whole(server)


def until_whole(server: ApiServer) -> None:
    """Wait until the controllers work again too: they give a new namespace its service account."""
    until(server.answers)
    name = f"whole-{time.monotonic_ns()}"
    with Api(server.cluster.access) as api:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

        def is_served() -> bool:
            try:
                api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")
            except ApiError:
                return False
            return True

        until(is_served, seconds=120)
        api.delete(f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("moment", ["app-0: applying", *for_endurance("keeper: applied")], ids=["applying", "waiting"])
def test_silent_for_a_while(environment: Environment, server: ApiServer, moment: str) -> None:
    """A cluster that does not answer for ten seconds is waited for, with a word about it, and nothing is made twice."""
    environment.write(SEVERAL)
    running = begin(environment, "deploy")
    running.until(moment)
    with server.silent():
        time.sleep(10)
    back = time.monotonic()
    before = identities(environment)
    ran = running.end().expect()

    assert f"{ADDRESS} does not answer; waiting for it, 60 s at most\n" in ran.stderr
    assert "the API server answers again\n" in ran.stderr
    assert "failed" not in ran.stderr
    assert time.monotonic() - back < 30
    assert before.items() <= identities(environment).items()
    assert_done(environment, WANTED)


def test_killed_while_applying(environment: Environment, server: ApiServer) -> None:
    """An API server that ends in the middle and is started again costs a deploy time, and nothing else."""
    environment.write(SEVERAL)
    running = begin(environment, "deploy")
    running.until("app-0: applying")
    server.send(signal.SIGKILL)
    ran = running.end().expect()

    assert "failed" not in ran.stderr
    assert_done(environment, WANTED)


def test_silent_from_the_start(environment: Environment, server: ApiServer) -> None:
    """No command hangs on a cluster that takes connections and does not answer: each ends with status 4."""
    environment.write(SMALL)
    commands = (("preview",), ("deploy",), ("refresh",), ("destroy", "--yes"))
    with server.silent():
        running = [begin(environment, *args) for args in commands]
        ended = [item.end(60) for item in running]

    assert [ran.status for ran in ended] == [4, 4, 4, 4]
    for ran in ended:
        assert f"error: {ADDRESS} does not answer: no data within 15 s\n" in ran.stderr
        assert ran.seconds < 30


@pytest.mark.endurance
@pytest.mark.parametrize("moment", ["app-0: applying", "keeper: applied"], ids=["applying", "waiting"])
@pytest.mark.parametrize("how", ["silent", "gone"])
def test_away_for_good(environment: Environment, server: ApiServer, how: str, moment: str) -> None:
    """A cluster that does not answer ends a deploy after a minute, with status 4; the next deploy continues."""
    environment.write(SEVERAL)
    running = begin(environment, "deploy")
    running.until(moment)
    since = time.monotonic()
    with server.silent() if how == "silent" else server.gone():
        ran = running.end(120).expect(4)
        away = time.monotonic() - since
    until(server.answers)

    assert 55 < away < 90
    assert f"error: {ADDRESS} has not answered for 60 s\n" in ran.stderr
    assert "  hint: repair the cluster, then run this again: finished work is recorded\n" in ran.stderr
    assert "Traceback" not in ran.stderr
    before = identities(environment)
    environment.deploy().expect()
    assert before.items() <= identities(environment).items()
    assert_done(environment, WANTED)


@pytest.mark.endurance
@pytest.mark.parametrize("args", [("preview",), ("refresh",), ("destroy", "--yes")], ids=lambda args: args[0])
def test_silent_in_the_middle(environment: Environment, server: ApiServer, args: tuple[str, ...]) -> None:
    """No other command hangs either when the cluster falls silent while it is at work."""
    environment.deploy(SEVERAL).expect()
    environment.variables["PLATFORM_SKIP_UNCHANGED"] = "false"
    lock = environment.folder.parent / "data"
    running = begin(environment, *args)
    until(lambda: list(lock.glob("stacks/*/*/*/running.json")))
    with server.silent():
        ran = running.end(120)

    assert ran.status in {0, 4}, ran.stderr
    assert ran.seconds < 90
    assert "Traceback" not in ran.stderr
    assert_sound(environment)


#: Its pod needs a while to end.
LINGERING = (
    "services: {slow: {image: 'busybox:1.37', command: \"sh -c 'trap \\\"sleep 35; exit\\\" TERM; while :; do sleep 1;"
    " done'\", stop_grace_period: 50s}}\n"
)
ENDING = [("sleep", "--timeout", "200"), ("destroy",)]


@pytest.mark.endurance
@pytest.mark.parametrize("args", ENDING, ids=lambda args: args[0])
def test_silent_while_pods_end(environment: Environment, server: ApiServer, args: tuple[str, ...]) -> None:
    """A cluster that does not answer while a command waits for the end of pods is waited for, with a word about it."""
    environment.deploy(LINGERING).expect()
    running = begin(environment, *args)
    running.until("waiting until all pods have ended")
    with server.silent():
        time.sleep(28)
    ran = running.end().expect()

    assert f"{ADDRESS} does not answer; waiting for it, 60 s at most\n" in ran.stderr
    assert "the API server answers again\n" in ran.stderr
    assert {pod["status"]["phase"] for pod in environment.objects("v1", "Pod")} <= {"Succeeded", "Failed"}


@pytest.mark.endurance
@pytest.mark.parametrize("how", ["silent", "gone"])
@pytest.mark.parametrize("args", ENDING, ids=lambda args: args[0])
def test_away_for_good_while_pods_end(
    environment: Environment, server: ApiServer, args: tuple[str, ...], how: str
) -> None:
    """A cluster that does not answer any more ends the wait after a minute."""
    environment.deploy(LINGERING).expect()
    running = begin(environment, *args)
    running.until("waiting until all pods have ended")
    since = time.monotonic()
    with server.silent() if how == "silent" else server.gone():
        ran = running.end(120).expect(4)
        away = time.monotonic() - since

    assert 55 < away < 90
    assert f"error: {ADDRESS} has not answered for 60 s\n" in ran.stderr
    assert "Traceback" not in ran.stderr


# bad lines ------------------------------------------------------------------------------------------------------------


#: What a client sends of so few bytes is no request.
_SIGN_OF_LIFE = 60


class BadLine:
    """A TCP proxy on loopback, to be used in a ``with`` block: what goes through comes late, and some of it not at all.

    Each request of a client is, with some chance, the last of its connection.
    """

    def __init__(self, port: int, *, latency: float = 0.0, resets: float = 0.0, seed: int = 0) -> None:
        self.target, self.latency, self.resets = port, latency, resets
        self.port, self.connections, self.cut = 0, 0, 0
        self._chance = random.Random(seed)  # noqa: S311 -- nothing is kept secret by it
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.05)

    async def _serve(self, near: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        self.connections += 1
        far, far_out = await asyncio.open_connection("127.0.0.1", self.target)
        pumps = [self._pump(near, far_out, near_out, self.resets), self._pump(far, near_out, far_out, 0)]
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*pumps)
        for end in (near_out, far_out):
            _reset(end)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, other: asyncio.StreamWriter, resets: float
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if len(data) > _SIGN_OF_LIFE and self._chance.random() < resets:
                    self.cut += 1
                    break
                self._loop.call_later(self.latency / 2, _send, sink, data)
            else:
                await asyncio.sleep(self.latency)
        for end in (sink, other):
            _reset(end)


def _send(sink: asyncio.StreamWriter, data: bytes) -> None:
    if not sink.is_closing():
        sink.write(data)


def _reset(end: asyncio.StreamWriter) -> None:
    """Close at once, so that the other side gets a reset and no orderly end."""
    with contextlib.suppress(OSError):
        end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.transport.abort()


def through(environment: Environment, port: int) -> dict[str, str]:
    """A kubeconfig that leads to another port of this machine, as a variable."""
    text = environment.cluster.layout.kubeconfig.read_text()
    path = environment.folder / "kubeconfig"
    path.write_text(text.replace(f":{PORTS['api']}", f":{port}"))
    return {"KUBECONFIG": str(path)}


@pytest.mark.endurance
def test_bad_line(environment: Environment, record_property: Callable[[str, object], None]) -> None:
    """Half a second of latency, and a line that breaks at one of twenty requests: a deploy completes all the same."""
    seed = int(time.time())
    record_property("seed", seed)
    names = [f"app-{n}" for n in range(5)]
    environment.write(HEAD + "".join(f"  {name}: {{<<: *app, environment: {{A: b}}}}\n" for name in names))
    with BadLine(PORTS["api"], latency=0.5, resets=0.05, seed=seed) as line:
        ran = environment.platform("deploy", **through(environment, line.port)).expect()
        cut = line.cut

    assert cut > 0, seed
    assert "failed" not in ran.stderr, seed
    assert len(environment.pods()) == 5, seed
    assert_done(
        environment,
        {f"{kind}/{n}" for n in names for kind in ("Deployment", "Service")} | {f"Secret/{n}-env" for n in names},
    )


class BusyServer(ThreadingHTTPServer):
    """The API server, by way of a proxy that asks every tenth request to come again in a second."""

    daemon_threads = True

    def __init__(self, cluster: LocalCluster) -> None:
        super().__init__(("127.0.0.1", 0), _Busy)
        self.access = cluster.access
        self.turned_away: list[str] = []
        self.numbers = itertools.count()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(cluster.layout.keys / "api.crt", cluster.layout.keys / "api.key")
        self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that goes away."""


class _Busy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: BusyServer

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if next(self.server.numbers) % 10 == 9:
            self.server.turned_away.append(f"{self.command} {self.path}")
            self._answer(429, b"busy", {"Retry-After": "1"})
            return
        access = self.server.access
        tls = ssl.create_default_context(cafile=access.authority)
        upstream = http.client.HTTPSConnection(access.host, access.port, timeout=60, context=tls)
        passed = {key: value for key, value in self.headers.items() if key not in {"Host", "Accept-Encoding"}}
        with contextlib.closing(upstream):
            upstream.request(self.command, self.path, body or None, passed)
            answer = upstream.getresponse()
            self._answer(answer.status, answer.read(), {"Content-Type": answer.headers["Content-Type"] or "text/plain"})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _pass_on  # noqa: N815 -- the library's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_busy_server(environment: Environment) -> None:
    """A server that asks to be asked again later is asked again then, by Pulumi and by us."""
    environment.write(SMALL)
    busy = BusyServer(environment.cluster)
    serving = threading.Thread(target=busy.serve_forever, kwargs={"poll_interval": 0.05})
    serving.start()
    try:
        ran = environment.platform("deploy", **through(environment, busy.server_address[1])).expect()
    finally:
        busy.shutdown()
        serving.join()
        busy.server_close()

    assert "failed" not in ran.stderr
    assert len(busy.turned_away) > 2
    assert environment.names() == WANTED_SMALL


# locks ----------------------------------------------------------------------------------------------------------------


def lock(environment: Environment, *, pid: int, host: str = "") -> Path:
    """Leave a lock of Pulumi's file backend."""
    (state,) = Path(environment.variables["COMPOSEPLAT_DATA"]).glob("state/*")
    folder = state / ".pulumi" / "locks" / "organization" / environment.name / environment.namespace
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "1f7d9f5c-0000-4000-8000-5d1f6c1e7a00.json"
    holder = {"pid": pid, "username": "root", "hostname": host or socket.gethostname()}
    path.write_text(json.dumps({**holder, "timestamp": "2026-11-21T10:00:00Z"}))
    return path


LOCKED_AT = dt.datetime(2026, 11, 21, 10, tzinfo=dt.UTC).timestamp()


def cut_off(environment: Environment, process: ProcessId) -> None:
    """Note a process as Pulumi's of a run that was cut off, which made the lock."""
    (folder,) = Path(environment.variables["COMPOSEPLAT_DATA"]).glob(f"stacks/*/*/{environment.namespace}")
    (folder / "running.json").write_text(json.dumps(OwnProcess(process, LOCKED_AT).to_data()))


@pytest.fixture
def dead() -> ProcessId:
    with subprocess.Popen([sys.executable, "-IS", "-c", ""]) as process:
        process.wait()
    return ProcessId.from_pid(process.pid)


@pytest.fixture
def running_pid() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def test_lock_of_a_dead_process(environment: Environment, dead: ProcessId) -> None:
    """A lock that a run of ours left, and which is dead, is broken by the next operation; a preview is not."""
    environment.deploy(SMALL).expect()
    path = lock(environment, pid=dead.pid)
    cut_off(environment, dead)
    environment.platform("preview").expect()
    assert path.exists()
    for args in (("refresh",), ("destroy", "--yes")):
        lock(environment, pid=dead.pid)
        environment.platform(*args).expect()
        assert not path.exists()


def test_lock_of_others(environment: Environment, running_pid: int, dead: ProcessId) -> None:
    """A lock whose holder lives, or may live elsewhere, is kept, and the message names holder and fix.

    A dead process of this user and host name may be a living one of a clone of this machine: such locks were stolen.
    """
    environment.deploy(SMALL).expect()
    here = socket.gethostname()
    for args, host, pid in (
        ("refresh", here, running_pid),
        ("deploy", "elsewhere", dead.pid),
        ("deploy", here, dead.pid),
    ):
        path = lock(environment, pid=pid, host=host)
        ran = environment.platform(args).expect(1)

        assert ran.stderr.endswith(
            f"error: the stack is locked by root@{host}, process {pid}, since 2026-11-21T10:00:00Z\n"
            "  hint: wait until that has ended; if it is gone for good: platform state unlock\n"
        )
        path.unlink()
    environment.platform("destroy", "--yes").expect()


def test_own_lock_with_a_reused_process_id(environment: Environment, running_pid: int) -> None:
    """After a crash the next deploy knows its own cut-off run by its note, though another process has its number."""
    environment.deploy(SMALL).expect()
    path = lock(environment, pid=running_pid)
    cut_off(environment, replace(ProcessId.from_pid(running_pid), started="1"))
    environment.platform("deploy").expect()

    assert not path.exists()
    assert start_time(running_pid) is not None


# interrupts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        pytest.param(signal.SIGINT, "created namespace", id="ctrl-c-before"),
        pytest.param(signal.SIGTERM, "app-0: applying", id="sigterm-applying"),
    ],
)
def test_interrupted_once(environment: Environment, number: signal.Signals, moment: str) -> None:
    """An interrupt before anything waits ends a deploy with status 130 too, and is not reported as a failure."""
    environment.write(SEVERAL)
    running = begin(environment, "deploy")
    running.until(moment)
    running.process.send_signal(number)
    ran = running.end(30).expect(130)

    assert "\nerror: interrupted\n" in ran.stderr
    assert "failed" not in ran.stderr
    assert_sound(environment)


def test_terminated_while_waiting(environment: Environment) -> None:
    """SIGTERM is as good as Ctrl-C, also in the wait at the end."""
    environment.write(STUCK.partition("  web:")[0])
    running = begin(environment, "deploy")
    running.until("slow: 0/1 ready")
    running.process.terminate()
    ran = running.end(30).expect(130)

    assert "continues from there" in ran.stderr
    assert pending(environment) == []
    assert_sound(environment)


def test_interrupted_twice(environment: Environment) -> None:
    """A second Ctrl-C ends a deploy within two seconds, and the next one needs no help."""
    environment.write(STUCK)
    running = begin(environment, "deploy")
    running.until("web: waits for ")
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGINT)
    began = time.monotonic()
    running.end(30).expect(130)
    took = time.monotonic() - began

    assert took < 2
    assert_sound(environment)


def test_interrupted_while_the_cluster_is_silent(environment: Environment, server: ApiServer) -> None:
    """However silent the cluster is, a second Ctrl-C ends a deploy that is in the middle within two seconds."""
    environment.write(SEVERAL)
    running = begin(environment, "deploy")
    running.until("app-0: applying")
    with server.silent():
        running.process.send_signal(signal.SIGINT)
        time.sleep(1)
        running.process.send_signal(signal.SIGINT)
        began = time.monotonic()
        ran = running.end(30).expect(130)
        took = time.monotonic() - began

    assert took < 2
    assert "Traceback" not in ran.stderr
    assert_sound(environment)


# the data folder ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def apart(*mounts: str) -> Iterator[list[str]]:
    """Mounts that only some commands see; gives the words that such a command begins with."""
    script = " && ".join([*mounts, "echo ready", "exec sleep 600"])
    with subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        try:
            yield ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--wd=."]
        finally:
            holder.kill()


def run(environment: Environment, before: list[str], *args: str) -> Ran:
    began = time.monotonic()
    done = subprocess.run(
        [*before, *args], cwd=environment.folder, env=environment.variables, capture_output=True, text=True,
        check=False, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def platform(environment: Environment, before: list[str], *args: str) -> Ran:
    return run(environment, before, *environment.command_line(*args))


def data_of(environment: Environment) -> Path:
    return Path(environment.variables["COMPOSEPLAT_DATA"])


@pytest.mark.parametrize("place", ["", "state", "stacks", "pulumi"], ids=["folder", "state", "stacks", "pulumi"])
def test_a_file_where_a_folder_should_be(environment: Environment, place: str) -> None:
    """A data folder that can't be one is reported in a sentence, before anything is done."""
    spoiled = data_of(environment) / place
    spoiled.parent.mkdir(exist_ok=True)
    spoiled.touch()
    ran = environment.deploy(SMALL).expect(1)

    assert ran.stderr.startswith(f"error: can't write '{spoiled}")
    assert (
        "  hint: make it writable, or set COMPOSEPLAT_DATA to another folder for the data of deployments\n"
        in ran.stderr
    )
    assert environment.names() == set()


@pytest.mark.parametrize("args", [("deploy",), ("preview",), ("refresh",), ("destroy", "--yes")], ids=lambda w: w[0])
def test_read_only(environment: Environment, args: tuple[str, ...]) -> None:
    """In a data folder that can't be written no command does anything, and each says so."""
    data = data_of(environment)
    data.mkdir()
    environment.write(SMALL)
    with apart(f"mount --bind {data} {data}", f"mount -o remount,ro,bind {data}") as before:
        ran = platform(environment, before, *args).expect(1)

    assert ran.stderr.startswith(f"error: can't write '{data}/pulumi': read-only file system\n  hint: ")
    assert environment.names() == set()


@pytest.mark.parametrize("left", [0, 48], ids=["none-left", "little-left"])
def test_full_disk(environment: Environment, left: int) -> None:
    """On a full disk a deploy ends with one message and the old state stays; with room, the next one needs no help."""
    data = data_of(environment)
    data.mkdir()
    environment.write(SMALL)
    with apart(f"mount -t tmpfs -o size=2m,mode=700 tmpfs {data}") as before:
        platform(environment, before, "deploy").expect()
        environment.write(SMALL.replace("A: b", "A: c"))
        fill = f"cd {data}; cat /dev/zero > fill; truncate -s -{left}k fill; cat state/*/.pulumi/stacks/env/*.json"
        old = run(environment, before, "sh", "-c", fill).stdout
        ran = platform(environment, before, "deploy").expect(1)
        now = run(environment, before, "sh", "-c", f"cd {data}; cat state/*/.pulumi/stacks/env/*.json; rm fill").stdout
        platform(environment, before, "deploy").expect()
        platform(environment, before, "preview", "--expect-no-changes").expect()

    assert json.loads(old)["checkpoint"]["latest"]["resources"] != []
    assert json.loads(now)["checkpoint"]["latest"]["resources"] != []
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("error: ") == 1
    assert "no space left on device" in ran.stderr or "the disk is full" in ran.stderr


def test_full_folder_of_temporary_files(environment: Environment, tmp_path: Path) -> None:
    """Pulumi can't write its events there: its changes are unknown then, and do not count as none."""
    small = tmp_path / "small"
    small.mkdir()
    environment.deploy(SMALL).expect()
    environment.write(SMALL.replace("A: b", "A: c"))
    with apart(f"mount -t tmpfs -o size=16k,mode=700 tmpfs {small}") as before:
        ran = run(environment, [*before, "env", f"TMPDIR={small}"], *environment.command_line("deploy")).expect(1)
    again = environment.platform("deploy").expect()

    assert f"Pulumi's output is incomplete, as if '{small}' were full\n" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "1 unchanged" not in again.stderr
    assert [row["result"] for row in history(environment)] == ["done", "failed", "done"]
    environment.platform("preview", "--expect-no-changes").expect()


def test_a_closed_output(environment: Environment) -> None:
    """A deploy whose standard output the parent process has closed is done; only its result is lost."""
    environment.write(SMALL)
    ran = run(environment, ["sh", "-c", 'exec "$@" >&-', "sh"], *environment.command_line("deploy", "--json")).expect(1)

    assert "error: can't write the result: standard output is closed\n" in ran.stderr
    assert [row["result"] for row in history(environment)] == ["done"]
    environment.platform("preview", "--expect-no-changes").expect()


# the passphrase -------------------------------------------------------------------------------------------------------

ENCRYPTED = (
    "error: the state is encrypted with another passphrase\n"
    "  hint: set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the one it was made with\n"
)


def test_passphrase_is_private(environment: Environment) -> None:
    """The first command makes a passphrase that its owner alone can read, in a folder that is theirs alone."""
    environment.write(SMALL)
    environment.platform("preview").expect()
    data = data_of(environment)

    assert stat.S_IMODE((data / "passphrase").stat().st_mode) == 0o600
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_another_passphrase(environment: Environment) -> None:
    """With a passphrase that is wrong, or lost, every command that needs it ends with status 4 and has done nothing."""
    volume = HEAD + "  app: {<<: *app, scale: 0, volumes: ['data:/d'], environment: {A: b}}\nvolumes: {data: {}}\n"
    environment.deploy(volume).expect()
    before, state = identities(environment), environment.state()
    environment.write(volume.replace("A: b", "A: c"))
    wrong = {"PULUMI_CONFIG_PASSPHRASE": "wrong"}
    commands = (("deploy",), ("deploy", "--replace-volume", "data"), ("refresh",), ("destroy", "--yes"))
    for args in commands:
        ran = environment.platform(*args, **wrong).expect(4)
        assert ran.stderr.endswith(ENCRYPTED), args
    kept = data_of(environment) / "passphrase"
    aside = shutil.move(kept, environment.folder / "kept")
    lost = environment.platform("deploy").expect(4)
    kept.unlink()
    shutil.move(aside, kept)

    assert lost.stderr.endswith(ENCRYPTED)
    assert before == identities(environment)
    assert state == environment.state()
    environment.platform("deploy").expect()


def test_passphrase_file_that_is_not_there(environment: Environment) -> None:
    """A passphrase file that can't be read is named."""
    environment.write(SMALL)
    ran = environment.platform("deploy", PULUMI_CONFIG_PASSPHRASE_FILE="/nowhere").expect(4)  # noqa: S106 -- a path

    output = "the passphrase of the state can't be read: open /nowhere: no such file or directory"
    assert f"error: {output}\n" in ran.stderr
    assert environment.names() == set()


# after a failure ------------------------------------------------------------------------------------------------------


def test_after_a_failed_deploy(environment: Environment) -> None:
    """A deploy of which one service failed is continued with; what had come up is not started again."""
    text = HEAD + "  good: {<<: *app, environment: {A: b}}\n  bad: {<<: *app, image: 'busybox:1.37'}\n"
    broken = text.replace("image: 'busybox:1.37'}\n", f"image: 'localhost:{PORTS['registry']}/nothing:1'}}\n")
    environment.deploy(broken).expect(1)
    (pod,) = environment.pods("good")
    started = environment.started_at("good")
    ran = environment.deploy(text).expect()

    (same,) = environment.pods("good")
    assert (pod["metadata"]["uid"], started) == (same["metadata"]["uid"], environment.started_at("good"))
    assert len(environment.pods("bad")) == 1
    assert "good: unchanged\n" in ran.stderr


def test_dependents_of_a_refused_service(environment: Environment) -> None:
    """What depends on a service that the API server refuses is not waited for, and is reported after it."""
    quota = {"kind": "ResourceQuota", "spec": {"hard": {"count/deployments.apps": "0"}}}
    with environment.api() as api:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace}})
        api.apply({"apiVersion": "v1", **quota, "metadata": {"name": "none", "namespace": environment.namespace}})
    text = HEAD + "  bad: *app\n  web: {<<: *app, depends_on: [bad]}\n  shop: {<<: *app, depends_on: [web]}\n"
    ran = environment.deploy(text).expect(1)

    output = [line.partition(": error: ")[2] for line in ran.stderr.splitlines() if ": error: " in line]
    assert output[0].startswith("services.bad: Deployment 'bad' could not be created: ")
    assert "exceeded quota: none" in output[0]
    assert sorted(output[1:]) == [
        "services.shop: waits for web, which failed [deploy-failed]",
        "services.web: waits for bad, which failed [deploy-failed]",
    ]
    assert ran.seconds < 60
