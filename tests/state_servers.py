"""Real servers that keep Pulumi's state in tests: MinIO, which has the protocol of S3, and PostgreSQL.

Owns how each is started, killed, halted and continued, with its login, and all that it has stored.
``python -m tests.state_servers`` builds MinIO into the user's cache; users of the project never get it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pytest

from composeplat.engine.backend_health import answers
from composeplat.engine.backend_url import address_of
from composeplat.system.processes import start_time
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import Tool
from tests.conftest import ROOT

MINIO = Tool(
    name="minio",
    version="2026.2.12",
    module=ROOT / "tests" / "minio",
    package="github.com/minio/minio",
    build_minutes=3,
)
USER, PASSWORD = "platform", "keeps-the-state-7"
_START_TIMEOUT_S = 30
_END_TIMEOUT_S = 10


class StateServer(ABC):
    """A server on a port of its own, with its data in a folder of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="state-server-"))
        # Another user may run it.
        self.folder.chmod(0o711)
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str: ...

    @property
    def variables(self) -> dict[str, str]:
        """What Pulumi needs besides the URL."""
        return {}

    @abstractmethod
    def _launch(self) -> subprocess.Popen[bytes]: ...

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder)

    def start(self) -> Self:
        self.process = self._launch()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._is_ready():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)
        return self

    def _is_ready(self) -> bool:
        address = address_of(self.url, self.variables)
        assert address is not None
        return answers(address)

    def kill(self) -> None:
        """End it at once with all that it started, as a machine that loses its power; return when all have ended."""
        if self.process is None:
            return
        pids = self._stop()
        _send(signal.SIGKILL, pids)
        self.process.wait()
        self.process = None
        # A process of PostgreSQL that is still ending keeps the next server from starting.
        deadline = time.monotonic() + _END_TIMEOUT_S
        while any(map(start_time, pids)):
            assert time.monotonic() < deadline, "the server does not end"
            time.sleep(0.01)

    def halt(self) -> None:
        """Let it answer nothing, with its connections open."""
        self._stop()

    def go_on(self) -> None:
        _send(signal.SIGCONT, self._stop())

    def _stop(self) -> list[int]:
        """Stop the server, then its children: those of PostgreSQL have sessions of their own."""
        assert self.process is not None
        pids = [self.process.pid]
        for pid in pids:
            _send(signal.SIGSTOP, [pid])
            pids += children(pid)
        return pids

    @abstractmethod
    def put(self, key: str, content: bytes) -> None:
        """Store an object, as another client would."""

    def stored(self) -> bytes:
        """All that it has stored, as it is on the disk."""
        return b"".join(path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file())


def lock_of_another(stack: str) -> tuple[str, bytes]:
    """The object that Pulumi leaves as the lock of a stack, by a process of another machine."""
    holder = {"pid": 4711, "username": "ann", "hostname": "desk", "timestamp": "2026-11-21T10:00:00Z"}
    return f".pulumi/locks/organization/{stack}/{uuid.uuid4()}.json", json.dumps(holder).encode()


def ask(
    port: int, method: str, target: str, content: bytes, headers: Mapping[str, str] | None = None,
    accepted: tuple[int, ...] = (http.client.OK,),
) -> None:  # fmt: skip
    """Send a request to a server, and check the status of its answer."""
    connection = http.client.HTTPConnection(f"127.0.0.1:{port}")
    connection.request(method, target, content, dict(headers or {}))
    answer = connection.getresponse()
    assert answer.status in accepted, answer.read()
    connection.close()


def _send(sent: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sent)


def children(parent: int) -> list[int]:
    """The children of a process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, _, fields = status.read_text().partition(" ")
            if fields.rpartition(")")[2].split()[1] == str(parent):
                found.append(int(pid))
    return found


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Minio(StateServer):
    bucket = "state"

    @property
    def url(self) -> str:
        return self.url_of(self.bucket)

    def url_of(self, bucket: str) -> str:
        return f"s3://{bucket}?region=us-east-1&endpoint=http://127.0.0.1:{self.port}&use_path_style=true"

    @property
    def variables(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": PASSWORD}

    def _launch(self) -> subprocess.Popen[bytes]:
        # A folder is a bucket.
        (self.folder / "data" / self.bucket).mkdir(parents=True, exist_ok=True)
        program = Toolchain(os.environ).need(MINIO).path
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [program, "server", "--quiet", "--address", f"127.0.0.1:{self.port}",
                 "--console-address", f"127.0.0.1:{_free_port()}", self.folder / "data"],
                env={"PATH": os.defpath, "HOME": str(self.folder), "MINIO_ROOT_USER": USER,
                     "MINIO_ROOT_PASSWORD": PASSWORD, "MINIO_CI_CD": "on", "MINIO_BROWSER": "off"},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def put(self, key: str, content: bytes) -> None:
        host, place = f"127.0.0.1:{self.port}", f"/{self.bucket}/{key}"
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": host, "x-amz-content-sha256": hashlib.sha256(content).hexdigest(), "x-amz-date": now}
        names, scope = ";".join(headers), f"{now[:8]}/us-east-1/s3/aws4_request"
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        request = f"PUT\n{place}\n\n{lines}\n{names}\n{headers['x-amz-content-sha256']}"
        signed = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key_bytes = f"AWS4{PASSWORD}".encode()
        for part in (*scope.split("/"), signed):
            key_bytes = hmac.digest(key_bytes, part.encode(), "sha256")
        login = f"AWS4-HMAC-SHA256 Credential={USER}/{scope}, SignedHeaders={names}, Signature={key_bytes.hex()}"
        ask(self.port, "PUT", place, content, {**headers, "Authorization": login})


class Postgres(StateServer):
    database = "state"

    @property
    def url(self) -> str:
        return self.url_of(self.database)

    def url_of(self, database: str, password: str = PASSWORD) -> str:
        return f"postgres://{USER}:{password}@127.0.0.1:{self.port}/{database}?sslmode=disable"

    @property
    def _programs(self) -> Path:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not found or not _has_user("postgres"):
            pytest.skip("PostgreSQL is not installed: make extras")
        return found[-1].parent

    def _launch(self) -> subprocess.Popen[bytes]:
        data = self.folder / "data"
        if not data.exists():
            self._make(data)
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self._programs / "postgres", "-D", data, "-p", str(self.port), "-k", "",
                 "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"],
                user="postgres", group="postgres", extra_groups=[], env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                cwd=data, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _is_ready(self) -> bool:
        """Ask it: while it recovers after a kill, it takes connections, and refuses them then."""
        asked = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(asked, env={"PATH": os.defpath}, check=False).returncode == 0

    def put(self, key: str, content: bytes) -> None:
        data = json.dumps({"data": base64.b64encode(content).decode()})
        statement = "insert into pulumi_state (key, data) values (:'key', :'data');"
        self.execute(statement, key=f"{self.database}/{key}", data=data)

    def execute(self, statement: str, **values: str) -> None:
        """Run a statement as the user of the database; values are its variables."""
        options = [part for name, value in values.items() for part in ("-v", f"{name}={value}")]
        subprocess.run(
            [self._programs / "psql", "-q", "-v", "ON_ERROR_STOP=1", *options, self.url],
            input=statement.encode(), check=True, stdout=subprocess.DEVNULL, env={"PATH": os.defpath},
        )  # fmt: skip

    def _make(self, data: Path) -> None:
        """Make the data with its user and its database; the server refuses to run as root."""
        data.mkdir(parents=True)
        shutil.chown(data, "postgres", "postgres")
        secret = data.parent / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run_program(
            "initdb", "-D", str(data), "-U", USER, f"--pwfile={secret}", "-A", "scram-sha-256", "--no-sync",
            "--locale=C.UTF-8",
        )  # fmt: skip
        secret.unlink()
        statement = f"create database {self.database};\n"
        self._run_program("postgres", "--single", "-D", str(data), "postgres", given=statement)

    def _run_program(self, name: str, *args: str, given: str = "") -> None:
        subprocess.run(
            [self._programs / name, *args], user="postgres", group="postgres", extra_groups=[], cwd="/",
            input=given.encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@pytest.fixture(scope="module")
def minio() -> Iterator[Minio]:
    with Minio() as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


if __name__ == "__main__":
    Toolchain(os.environ).need(MINIO)
