"""Data of a service, written and read in its container by the server's own client or by the stand-in."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from dataclasses import dataclass

from tests.deploy.conftest import PLATFORM, Environment

_PSQL = (
    'PGHOST= psql -qtA -p "${PGPORT:-5432}" -U "${POSTGRES_USER:-postgres}" '
    '-d "${POSTGRES_DB:-${POSTGRES_USER:-postgres}}"'
)
_REDIS = 'REDISCLI_AUTH="${REDIS_PASSWORD-$(cat "${REDIS_PASSWORD_FILE-/dev/null}")}" redis-cli'
_MARIADB = (
    'mariadb -N -h127.0.0.1 -u"${MARIADB_USER:-${MYSQL_USER:-root}}" '
    '-p"${MARIADB_PASSWORD:-${MYSQL_PASSWORD:-${MARIADB_ROOT_PASSWORD:-$MYSQL_ROOT_PASSWORD}}}" '
    '"${MARIADB_DATABASE:-$MYSQL_DATABASE}"'
)
_WRITE = "CREATE TABLE IF NOT EXISTS mark (item text); INSERT INTO mark VALUES ('ITEM');"
_READ = "SELECT item FROM mark;"
#: By server: how to write ITEM, and how to read all.
_CLIENTS = {
    "postgres:15": (f'echo "{_WRITE}" | {_PSQL}', f'echo "{_READ}" | {_PSQL}'),
    "mariadb:10.11": (f'echo "{_WRITE}" | {_MARIADB}', f'echo "{_READ}" | {_MARIADB}'),
    "redis:7": (f"{_REDIS} RPUSH mark ITEM && {_REDIS} SAVE", f"{_REDIS} LRANGE mark 0 -1"),
    "rabbitmq:3": ("rabbitmqctl add_vhost ITEM", "rabbitmqctl list_vhosts"),
}
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Data:
    service: str
    server: str
    """The row of PROGRAMS; empty for a stand-in."""
    paths: list[str]


def write_data(environment: Environment, data: Data, item: str, files: list[str]) -> None:
    if data.server in _CLIENTS:
        command = _CLIENTS[data.server][0].replace("ITEM", item)
    elif data.server:
        command = " && ".join(f"echo {item} > {path}/mark" for path in data.paths)
    else:
        command = shlex.join(["standin", "write", item, *data.paths])
    _until(environment, data, command, files, "")


def read_data(environment: Environment, data: Data, item: str, files: list[str]) -> bool:
    """Whether each place of the data has an item; a server gets a minute to answer."""
    if data.server in _CLIENTS:
        return item in _until(environment, data, _CLIENTS[data.server][1], files, item).split()
    if data.server:
        return _until(environment, data, f"cat {data.paths[0]}/mark", files, item).strip() == item
    found = _until(environment, data, shlex.join(["standin", "read", *data.paths]), files, item)
    places = {name: items for name, items in json.loads(found or "{}").items() if not name.startswith("tcp:")}
    return bool(places) and all(item in items for items in places.values())


def _until(environment: Environment, data: Data, command: str, files: list[str], expected: str) -> str:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        done = _exec(environment, data.service, command, files)
        if (done.returncode == 0 and expected in done.stdout) or time.monotonic() > deadline:
            break
        time.sleep(1)
    assert expected or done.returncode == 0, f"{data.service}: {done.stderr[-800:]}"
    if expected not in done.stdout:
        print(f"{data.service}: {done.stdout[-300:]} {done.stderr[-300:]}")
    return done.stdout if done.returncode == 0 else ""


def _exec(environment: Environment, service: str, command: str, files: list[str]) -> subprocess.CompletedProcess[str]:
    options = ["--name", environment.name, "--namespace", environment.namespace, *files]
    return subprocess.run(
        [str(PLATFORM), "exec", "-T", *options, service, "--", "sh", "-c", command],
        cwd=environment.folder, env=environment.variables, capture_output=True, text=True, check=False,
        timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
