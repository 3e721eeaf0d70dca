"""Images in the place of those of any project: real servers where Debian has them, else ``images/standin.py``.

Owns the facts of an image that decide how its containers run: user, volumes, ports, folders, names of programs.
They come from a TOML file beside the projects, so nothing of other projects is in this repository.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.real.software import PROGRAMS, Program

_STANDIN = "usr/local/bin/standin"
#: Real servers, by a part of an image's name: the row of PROGRAMS that has them.
_SERVERS = {
    "mariadb": "mariadb:10.11", "postgres": "postgres:15", "pgvector": "postgres:15", "postgis": "postgres:15",
    "redis": "redis:7", "valkey": "redis:7", "rabbitmq": "rabbitmq:3", "nginx": "nginx:1.27",
    "memcached": "memcached:1.6", "eclipse-mosquitto": "eclipse-mosquitto:2", "haproxy": "haproxy:2.6",
}  # fmt: skip
_LINKS = {
    "usr/local/bin/python": "/usr/bin/python3", "usr/local/bin/valkey-cli": "/usr/bin/redis-cli",
    "usr/local/bin/valkey-server": "/usr/bin/redis-server",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A row of the TOML file; what it leaves out is root's, without volumes."""

    user: str = ""
    becomes: int = 0
    """The user that an entry point gives the folders to, and runs the program as."""
    volumes: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    folders: Mapping[str, int] = field(default_factory=dict)
    """Folders of the image with their owners."""
    names: tuple[str, ...] = ()
    """Paths at which commands of Compose files call a program; one with a ``!`` ends when it is done."""
    links: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables that the program has a default for."""
    environment: Mapping[str, str] = field(default_factory=dict)
    working_dir: str = "/"
    once: tuple[str, ...] = ()
    """First arguments with which the program ends when it is done."""
    needs: tuple[str, ...] = ()
    """Files without which the program ends, such as secrets."""
    title: str = ""
    """What a health check looks for in the list of processes."""
    server: str = ""
    """``none`` for a stand-in though the name is that of a server."""


def read_facts(rows: Mapping[str, Any], image: str) -> Facts:
    """Find the row of an image by its name without registry and tag."""
    name = bare_name(image)
    tag = re.sub(r"@.*", "", image).rpartition(":")[2]
    names = (f"{name}:{tag}", name, f"{name.rpartition('/')[2]}:{tag}", name.rpartition("/")[2])
    row: Mapping[str, Any] = next((rows[name] for name in names if name in rows), {})
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Facts(**values)


def bare_name(image: str) -> str:
    """Return an image's name without registry, tag and digest."""
    name = re.sub(r"(:[^/:@]*)?(@.*)?\Z", "", image)
    while re.match(r"[^/]*[.:][^/]*/", name):
        name = name.partition("/")[2]
    return name.removeprefix("library/")


def server_of(image: str, facts: Facts) -> str:
    """Return the row of PROGRAMS that serves an image; empty if a stand-in has to."""
    last = bare_name(image).rpartition("/")[2]
    return "" if facts.server == "none" else facts.server or _SERVERS.get(last, "")


def make_program(image: str, facts: Facts, ports: tuple[int, ...]) -> Program:
    """Make the image of a service; ``ports`` are those that the Compose file says it listens on."""
    server = server_of(image, facts)
    if server:
        found = PROGRAMS[server]
        volumes = facts.volumes or found.volumes
        return replace(
            found, volumes=volumes, environment={**found.environment, **facts.environment},
            links={**found.links, **_LINKS},
        )  # fmt: skip
    config = {
        "ports": sorted({*facts.ports, *ports}), "volumes": facts.volumes, "becomes": facts.becomes,
        "defaults": dict(facts.defaults), "once": [*facts.once, "once"], "needs": facts.needs, "title": facts.title,
    }  # fmt: skip
    return Program(
        entrypoint="standin.sh",
        scripts={_STANDIN: "standin.py", "usr/local/bin/wget": "wget.sh"}
        | {name.strip("/!"): "standin-once.sh" if name.endswith("!") else "standin.py" for name in facts.names},
        texts={"etc/standin.json": json.dumps(config)},
        folders=tuple((path.lstrip("/"), str(owner), 0o755) for path, owner in facts.folders.items()),
        links={**_LINKS, **facts.links},
        user=facts.user,
        volumes=facts.volumes,
        ports=facts.ports,
        environment=dict(facts.environment),
        working_dir=facts.working_dir,
    )
