#!/usr/bin/python3
"""Takes the place of a project's own program: writes to its volumes and to its databases.

Like most programs it ends if a volume can't be written or a server does not answer, and answers HTTP on its ports.
`standin write ITEM` and `standin read`, in the same container, are what a user would store and see.
"""

import http.server
import json
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

import psycopg2
import pymysql
import redis

CONFIG = json.loads(Path("/etc/standin.json").read_text())
ENVIRONMENT = {**CONFIG["defaults"], **os.environ}
#: As with official images, NAME_FILE is the file that has NAME.
ENVIRONMENT |= {
    name.removesuffix("_FILE"): Path(path).read_text().strip()
    for name, path in ENVIRONMENT.items()
    if name.endswith("_FILE") and name.removesuffix("_FILE") not in ENVIRONMENT and Path(path).is_file()
}
POSTGRES, MYSQL, REDIS = ("postgres", "postgresql", "pg"), ("mysql", "mariadb"), ("redis", "rediss", "valkey")
PORTS = {
    **dict.fromkeys(POSTGRES, 5432), **dict.fromkeys(MYSQL, 3306), **dict.fromkeys(REDIS, 6379),
    "amqp": 5672, "mongodb": 27017, "http": 80,
}  # fmt: skip
URL = re.compile(
    r"(?:jdbc:)?(?P<kind>[a-z]+)(?:\+[a-z0-9]+)?://(?:(?P<user>[^:@/\s]*)(?::(?P<password>[^@/\s]*))?@)?"
    r"(?P<host>[A-Za-z0-9_-]+)(?::(?P<port>\d+))?(?:/(?P<database>[^?\s]*))?(?:\?(?P<query>\S*))?"
)
HOST = re.compile(r"(?P<prefix>.+?)_?HOST(?:NAME)?(?:_ADDR)?", re.IGNORECASE)
#: Mount points that hold no data of the program.
SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/run", "/var/run", tempfile.gettempdir())
WAIT_S = 20


# the servers that the environment names -------------------------------------------------------------------------------


def servers() -> list[dict]:
    found = {}
    for name, value in ENVIRONMENT.items():
        url, host = URL.fullmatch(value), HOST.fullmatch(name)
        server = None
        if url and url["kind"] in PORTS:
            server = from_url(url)
        elif host and re.fullmatch(r"[a-z][a-z0-9_-]*", value):
            server = from_parts(host["prefix"].upper(), value)
        if server and server["host"] != "localhost":
            found.setdefault((server["host"], server["port"]), server)
    return list(found.values())


def from_url(url: re.Match) -> dict:
    query = dict(urllib.parse.parse_qsl(url["query"] or ""))
    return {
        "kind": url["kind"],
        "host": url["host"],
        "port": int(url["port"] or PORTS[url["kind"]]),
        "user": url["user"] or query.get("u", ""),
        "password": urllib.parse.unquote(url["password"] or query.get("p", "")),
        "database": url["database"] or query.get("d", ""),
    }


def from_parts(prefix: str, host: str) -> dict | None:
    """Give the server of DB_HOST, DB_PORT, DB_USER and so on; none if nothing says what it is."""
    variables = {key.upper(): value for key, value in ENVIRONMENT.items()}

    def part(*names: str) -> str:
        tried = (variables.get(f"{prefix}{joint}{name}") for name in names for joint in ("_", ""))
        return next((value for value in tried if value), "")

    port, text = part("PORT"), f"{prefix}{host}".lower()
    kinds = (kind for kind in (*REDIS, *POSTGRES, *MYSQL, "amqp") if kind in text)
    by_port = next((kind for kind, number in PORTS.items() if str(number) == port), "tcp" if port else "")
    kind = next(kinds, "") or by_port or ("postgres" if prefix == "DB" else "")
    return kind and {
        "kind": kind,
        "host": host,
        "port": int(port or PORTS[kind]),
        "user": part("USER", "USERNAME"),
        "password": part("PASSWORD", "PASS", "PWD"),
        "database": part("NAME", "DATABASE", "DB", "DATABASE_NAME", "DBNAME"),
    }


# where data is kept ---------------------------------------------------------------------------------------------------


def folders() -> list[str]:
    """List the volumes of the image, and each folder that something is mounted at for writing."""
    found = set(CONFIG["volumes"])
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        path, options = line.split()[4:6]
        is_own = path != "/" and not path.startswith(SYSTEM)
        if is_own and "rw" in options.split(",") and Path(path).is_dir():
            found.add(path)
    return sorted(found)


class Folder:
    def __init__(self, path: str) -> None:
        self.name, self.file = path, Path(path, ".standin")

    def write(self, item: str) -> None:
        with self.file.open("a") as file:
            file.write(f"{item}\n" if item else "")
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> list[str]:
        return self.file.read_text().split() if self.file.exists() else []


class Database:
    def __init__(self, server: dict) -> None:
        place = {"host": server["host"], "port": server["port"], "password": server["password"]}
        self.name = "{kind}://{host}:{port}".format(**server)
        user, database = server["user"], server["database"]
        if server["kind"] in MYSQL:
            self.link = pymysql.connect(**place, user=user or "root", database=database or user, autocommit=True)
        else:
            self.link = psycopg2.connect(**place, user=user or "postgres", dbname=database or user or "postgres")
            self.link.autocommit = True
        self.link.cursor().execute("CREATE TABLE IF NOT EXISTS standin (item VARCHAR(100))")

    def write(self, item: str) -> None:
        if item:
            self.link.cursor().execute("INSERT INTO standin VALUES (%s)", (item,))

    def read(self) -> list[str]:
        cursor = self.link.cursor()
        cursor.execute("SELECT item FROM standin")
        return [row[0] for row in cursor.fetchall()]


class Redis:
    def __init__(self, server: dict) -> None:
        self.name = "{kind}://{host}:{port}".format(**server)
        password = server["password"] or ENVIRONMENT.get("REDIS_PASSWORD") or None
        self.link = redis.Redis(host=server["host"], port=server["port"], password=password)
        self.link.ping()

    def write(self, item: str) -> None:
        if item:
            self.link.rpush("standin", item)
            self.link.save()

    def read(self) -> list[str]:
        return [item.decode() for item in self.link.lrange("standin", 0, -1)]


class Link:
    """A server that only has to answer."""

    def __init__(self, server: dict) -> None:
        self.name = "tcp://{host}:{port}".format(**server)
        socket.create_connection((server["host"], server["port"]), timeout=5).close()

    def write(self, item: str) -> None:
        pass

    def read(self) -> list[str]:
        return []


def connect(server: dict) -> Database | Redis | Link:
    if server["kind"] in (*POSTGRES, *MYSQL):
        return Database(server)
    return Redis(server) if server["kind"] in REDIS else Link(server)


def stores(*paths: str) -> list:
    return [*map(Folder, sorted({*folders(), *paths})), *map(connect, servers())]


# the program ----------------------------------------------------------------------------------------------------------


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'OK Ok. {"status":"ok"}\n'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: str) -> None:
        pass


def become(user: int) -> None:
    """Give the folders to a user and run as it, as entry points do that begin as root."""
    if user and os.getuid() == 0:
        for path in folders():
            for file in (Path(path), Path(path, ".standin")):
                if file.exists():
                    os.chown(file, user, user)
        os.setgroups([user])
        os.setgid(user)
        os.setuid(user)


def start() -> None:
    missing = [path for path in CONFIG["needs"] if not Path(path).exists()]
    if missing:
        sys.exit(f"standin: no such file: {missing[0]}")
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            made = stores()
            break
        except (OSError, psycopg2.Error, pymysql.Error, redis.RedisError) as error:
            if time.monotonic() > deadline:
                sys.exit(f"standin: {error}")
            time.sleep(0.5)
    for store in made:
        store.write("")
        print("stores data at", store.name, flush=True)


def serve() -> None:
    title = CONFIG["title"]
    if title and title not in sys.argv:
        os.execv(sys.executable, [sys.executable, __file__, title])
    made = [http.server.ThreadingHTTPServer(("", port), Page) for port in CONFIG["ports"]]
    become(CONFIG["becomes"])
    start()
    for server in made:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    signal.sigwait([signal.SIGTERM, signal.SIGINT])


def main(action: str = "", *args: str) -> None:
    if action in ("read", "write"):
        become(CONFIG["becomes"])
    if action == "read":
        print(json.dumps({store.name: store.read() for store in stores(*args)}))
    elif action == "write":
        for store in stores(*args[1:]):
            store.write(args[0])
    elif action in CONFIG["once"]:
        become(CONFIG["becomes"])
        start()
    else:
        serve()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    main(*sys.argv[1:])
