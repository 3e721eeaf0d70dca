"""The images of real programs, under the names that Compose files use, and how they get into a registry.

An image is the root file system of :mod:`tests.real.debian` and a small layer: an entry point, folders with their
owners, links. Its user, volumes, ports and demands are those of the official image of its name.
"""

from __future__ import annotations

import gzip
import http.client
import io
import json
import mmap
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from composeplat.local.images import digest_of, mount_blob, push_blob, push_manifest
from composeplat.system.machine import architecture
from tests.real.debian import PACKAGES, SHOP_PACKAGES, Layer, known_layer, root_layer

_HERE = Path(__file__).parent / "images"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An image; folders are (path, owner by name or number, mode)."""

    entrypoint: str = ""
    """The file that becomes docker-entrypoint.sh."""
    scripts: dict[str, str] = field(default_factory=dict)
    """By path: other programs, with their files."""
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""
    folders: tuple[tuple[str, str, int], ...] = ()
    links: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    volumes: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    working_dir: str = "/"


_WELCOME = "<!doctype html><title>Welcome</title><p>nginx is here\n"
_SITE = "server { listen 80; root /usr/share/nginx/html; index index.html; }\n"
_NGINX = """user www-data;
worker_processes 1;
pid /run/nginx.pid;
error_log /dev/stderr;
events { worker_connections 64; }
http { include /etc/nginx/mime.types; access_log /dev/stdout; include /etc/nginx/conf.d/*.conf; }
"""

PROGRAMS: dict[str, Program] = {
    "postgres:15": Program(
        entrypoint="postgres.sh",
        command=("postgres",),
        environment={
            "PGDATA": "/var/lib/postgresql/data",
            "PATH": f"{_PATH}:/usr/lib/postgresql/15/bin",
            "LANG": "C.UTF-8",
        },
        folders=(("var/lib/postgresql/data", "postgres", 0o700), ("run/postgresql", "postgres", 0o2775)),
        volumes=("/var/lib/postgresql/data",),
        ports=(5432,),
    ),
    "mariadb:10.11": Program(
        entrypoint="mariadb.sh",
        command=("mariadbd",),
        folders=(("var/lib/mysql", "mysql", 0o755), ("run/mysqld", "mysql", 0o755)),
        volumes=("/var/lib/mysql",),
        ports=(3306,),
    ),
    "redis:7": Program(
        entrypoint="redis.sh",
        command=("redis-server",),
        folders=(("data", "redis", 0o755),),
        volumes=("/data",),
        ports=(6379,),
        working_dir="/data",
    ),
    "rabbitmq:3": Program(
        entrypoint="rabbitmq.sh",
        command=("rabbitmq-server",),
        folders=(("var/lib/rabbitmq", "rabbitmq", 0o755), ("var/log/rabbitmq", "rabbitmq", 0o755)),
        volumes=("/var/lib/rabbitmq",),
        ports=(5672,),
    ),
    "nginx:1.27": Program(
        command=("nginx", "-g", "daemon off;"),
        texts={
            "usr/share/nginx/html/index.html": _WELCOME,
            "etc/nginx/conf.d/default.conf": _SITE,
            "etc/nginx/nginx.conf": _NGINX,
        },
        folders=(("var/log/nginx", "root", 0o755),),
        ports=(80,),
    ),
    "wordpress:6": Program(
        entrypoint="wordpress.sh",
        command=("setpriv", "--reuid=www-data", "--regid=www-data", "--init-groups", "--inh-caps=+net_bind_service",
                 "--ambient-caps=+net_bind_service", "php", "-S", "0.0.0.0:80", "-t", "/var/www/html"),
        environment={"PHP_CLI_SERVER_WORKERS": "4"},
        folders=(("var/www/html", "www-data", 0o1777),),
        links={"usr/src/wordpress": "/usr/share/wordpress"},
        volumes=("/var/www/html",),
        ports=(80,),
        working_dir="/var/www/html",
    ),
    "memcached:1.6": Program(
        command=("memcached",), user="memcache", folders=(("home/memcache", "memcache", 0o755),), ports=(11211,),
    ),
    "haproxy:2.6": Program(
        command=("haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"), user="haproxy",
        folders=(("usr/local/etc/haproxy", "root", 0o755),),
    ),
    "eclipse-mosquitto:2": Program(
        command=("mosquitto", "-c", "/mosquitto/config/mosquitto.conf"),
        user="mosquitto",
        texts={"mosquitto/config/mosquitto.conf": "listener 1883\nallow_anonymous true\n"},
        folders=(("mosquitto/data", "mosquitto", 0o755),),
        volumes=("/mosquitto/data",),
        ports=(1883,),
    ),
    "python:3.11": Program(
        command=("python3",),
        scripts={"usr/local/bin/pip": "pip.sh"},
        links={"usr/local/bin/python": "/usr/bin/python3"},
    ),
    "node:18": Program(command=("node",), environment={"NODE_PATH": "/usr/share/nodejs"}),
    "php:8.2": Program(command=("php", "-a")),
    "debian:bookworm": Program(command=("bash",)),
}  # fmt: skip
PROGRAMS["postgres-unprivileged:15"] = replace(PROGRAMS["postgres:15"], user="postgres")


SHOP_IMAGES = ("nginx:1.27", "postgres:15", "python:3.11", "redis:7")
#: Other names of the same images, as Compose files of others have them.
ALIASES = {
    "postgres:15-alpine": "postgres:15", "postgres:17": "postgres:15", "postgres:latest": "postgres:15",
    "redis:alpine": "redis:7", "nginx:latest": "nginx:1.27",
}  # fmt: skip


def push_programs(root: Layer, registry: tuple[str, int]) -> None:
    """Push images to the registry that the node asks first, as docker.io's."""
    push_images({**PROGRAMS, **{alias: PROGRAMS[name] for alias, name in ALIASES.items()}}, root, registry)


def push_shop(cache: Path, registry: tuple[str, int]) -> None:
    """Push the images of examples/shop; the layer of all programs serves too, if this machine has made it."""
    root = known_layer(cache, PACKAGES) or root_layer(cache, SHOP_PACKAGES)
    push_images({name: PROGRAMS[name] for name in SHOP_IMAGES}, root, registry)


def push_images(programs: Mapping[str, Program], root: Layer, registry: tuple[str, int]) -> None:
    owners = owners_of(root)
    connection = http.client.HTTPConnection(*registry, timeout=120)
    source = ""
    for name, program in programs.items():
        repository, _, tag = (name if "/" in name else f"library/{name}").rpartition(":")
        plain = _layer(program, owners)
        packed = gzip.compress(plain, 6, mtime=0)
        config = json.dumps(_config(program, root.diff_id, digest_of(plain))).encode()
        _push_root(connection, repository, root, source)
        for blob in (packed, config):
            push_blob(connection, repository, blob)
        layers = [(root.digest, root.path.stat().st_size), (digest_of(packed), len(packed))]
        push_manifest(connection, repository, tag, config, layers)
        source = source or repository
    connection.close()


def owners_of(root: Layer) -> dict[str, tuple[int, int]]:
    """Users of the root file system: their numbers and those of their groups."""
    with tarfile.open(root.path) as archive:
        for member in archive:
            if member.name == "./etc/passwd":
                file = archive.extractfile(member)
                assert file is not None
                rows = (line.split(":") for line in file.read().decode().splitlines())
                return {row[0]: (int(row[2]), int(row[3])) for row in rows}
    raise LookupError("etc/passwd")


def _layer(program: Program, owners: dict[str, tuple[int, int]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, owner, mode in program.folders:
            info = tarfile.TarInfo(path)
            info.type, info.mode = tarfile.DIRTYPE, mode
            info.uid, info.gid = (int(owner), int(owner)) if owner.isdigit() else owners[owner]
            archive.addfile(info)
        for path, target in program.links.items():
            info = tarfile.TarInfo(path)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
        for path, content, mode in _files(program):
            info = tarfile.TarInfo(path)
            info.mode, info.size = mode, len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def _files(program: Program) -> Iterator[tuple[str, bytes, int]]:
    for path, text in program.texts.items():
        yield path, text.encode(), 0o644
    if program.entrypoint:
        yield "usr/local/bin/docker-entrypoint.sh", (_HERE / program.entrypoint).read_bytes(), 0o755
    for path, file in program.scripts.items():
        yield path, (_HERE / file).read_bytes(), 0o755


def _config(program: Program, *diff_ids: str) -> dict[str, object]:
    environment = {"PATH": _PATH, **program.environment}
    run: dict[str, object] = {
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Cmd": list(program.command),
        "WorkingDir": program.working_dir,
        "User": program.user,
        "ExposedPorts": {f"{port}/tcp": {} for port in program.ports},
        "Volumes": {path: {} for path in program.volumes},
    }
    if program.entrypoint:
        run["Entrypoint"] = ["docker-entrypoint.sh"]
    rootfs = {"type": "layers", "diff_ids": list(diff_ids)}
    return {"architecture": architecture(), "os": "linux", "config": run, "rootfs": rootfs}


def _push_root(connection: http.client.HTTPConnection, repository: str, root: Layer, source: str) -> None:
    """Push the shared layer once, and mount it in the other repositories."""
    if source:
        mount_blob(connection, repository, root.digest, source)
        return
    with (
        root.path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
        memoryview(content) as blob,
    ):
        push_blob(connection, repository, blob, root.digest)
