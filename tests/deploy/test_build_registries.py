"""Registries that want a login are pushed to and pulled from; nobody else learns of the password."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import PULUMI, REGISTRY
from tests.conftest import ROOT
from tests.deploy.conftest import PORTS, SLEEP, Environment, until
from tests.deploy.docker import PASSWORD, USER, add_helper, configure, login, users_builder

#: The password's, by bcrypt.
HASH = "$2b$04$u7zcRFxdZz7Ol1rJqZuAWuxDh777ZrTsQLnE.I2IERDsdpkQ20hkS"
PORT = PORTS["api"] + 10
HOST = f"localhost:{PORT}"
NOBODY = f"localhost:{PORTS['api'] + 20}"

TEXT = f'services:\n  web: {{build: ./web, command: "{SLEEP}", stop_grace_period: 0}}\n'
DOCKERFILE = "FROM busybox:1.37\nCOPY . /app/\n"


def answers() -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORT), timeout=1):
        return True
    return False


@pytest.fixture
def private(environment: Environment, tmp_path: Path) -> Iterator[str]:
    """A registry that wants a name and a password for all it does, on the loopback of this machine."""
    folder = tmp_path / "private"
    folder.mkdir()
    settings = {
        "version": "0.1", "log": {"level": "error"}, "http": {"addr": f"127.0.0.1:{PORT}"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "auth": {"htpasswd": {"realm": "test", "path": str(folder / "users")}},
    }  # fmt: skip
    (folder / "users").write_text(f"{USER}:{HASH}\n")
    (folder / "settings.yaml").write_text(json.dumps(settings))
    serve = [str(Toolchain(os.environ).need(REGISTRY).path), "serve", str(folder / "settings.yaml")]
    process = subprocess.Popen(serve, stderr=subprocess.DEVNULL)
    until(answers)
    environment.write(TEXT)
    environment.write(DOCKERFILE, "web/Dockerfile")
    environment.write(f"{environment.namespace}\n", "web/text")
    yield HOST
    process.terminate()
    process.wait()


@pytest.fixture
def processes() -> Iterator[dict[str, str]]:
    """What is in the process list while a test runs: command lines by their program's name."""
    seen: dict[str, str] = {}
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    name = Path(line.partition(" ")[0]).name
                    if line not in seen.get(name, ""):
                        seen[name] = seen.get(name, "") + line

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    yield seen
    over.set()
    watcher.join()


def everywhere(environment: Environment, *texts: str) -> str:
    """All that a password must not be in: the state, what was printed, and what is kept beside the state."""
    data = Path(environment.variables["COMPOSEPLAT_DATA"])
    kept = [
        path.read_bytes().decode(errors="replace")
        for path in data.rglob("*")
        if path.is_file() and "plugins" not in path.parts
    ]
    return "\n".join([json.dumps(environment.state()), *kept, *texts])


def secrets() -> list[str]:
    """The password, as it is and as it travels."""
    return [PASSWORD, *(base64.b64encode(text.encode()).decode() for text in (PASSWORD, f"{USER}:{PASSWORD}"))]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# pushing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["config", "helper"])
def test_credentials_of_docker(way: str, environment: Environment, private: str, processes: dict[str, str]) -> None:
    """Pushes use Docker's logins and the builder of the user, and change neither."""
    helpers = {"credHelpers": {private: "mine"}}
    add_helper(environment, private)
    folder = users_builder(environment, login(private, PASSWORD) if way == "config" else helpers)
    before = contents(folder)

    ran = environment.platform("build", "--registry", f"{private}/team", "--builder", "mine").expect()

    assert ran.stdout.startswith(f"{private}/team/env-web:latest@sha256:")
    assert contents(folder) == before
    output = everywhere(environment, ran.stdout, ran.stderr, *processes.values())
    assert [secret for secret in secrets() if secret in output] == []
    assert {"pulumi", "pulumi-resource-docker-build"} <= set(processes)


def test_wrong_credentials(environment: Environment, private: str) -> None:
    """A password that a registry refuses ends the build with one message, at the place that names the registry."""
    users_builder(environment, login(private, "nonsense"))

    ran = environment.platform("deploy", "--registry", f"{private}/team").expect(1)

    assert ran.stderr.count("error:") == 1
    assert f"registry {private} refuses the credentials, or wants some [deploy-failed]" in ran.stderr
    assert environment.names() == set()
    assert "nonsense" not in everywhere(environment, ran.stdout, ran.stderr)


def test_no_registry_there(environment: Environment, private: str) -> None:
    """A registry that does not run ends the build with one message."""
    assert private
    ran = environment.platform("deploy", "--registry", f"{NOBODY}/team").expect(1)

    assert ran.stderr.count("error:") == 1
    assert f"registry {NOBODY} can't be reached: connection refused [deploy-failed]" in ran.stderr


class Cleaned(BaseHTTPRequestHandler):
    """A registry that has each layer which a push asks it for, and has lost them at the first manifest."""

    manifests: ClassVar[list[bytes]] = []

    def do_HEAD(self) -> None:
        self.answer(200 if "/blobs/" in self.path else 404)

    def do_PUT(self) -> None:
        self.manifests.append(self.rfile.read(int(self.headers["Content-Length"])))
        if len(self.manifests) == 1:
            error = {"code": "MANIFEST_BLOB_UNKNOWN", "message": "blob unknown to registry"}
            self.answer(400, json.dumps({"errors": [error]}).encode())
        else:
            self.answer(201)

    def answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name of the base class
        """Be silent."""


def test_layers_deleted_during_a_push(environment: Environment) -> None:
    """A registry that deletes layers between a push's question for them and its manifest fails no build."""
    environment.write(TEXT)
    environment.write(DOCKERFILE, "web/Dockerfile")
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Cleaned)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    with contextlib.closing(server.socket):
        ran = environment.platform("build", "--registry", f"{HOST}/team").expect()
        server.shutdown()

    assert ran.stdout.startswith(f"{HOST}/team/env-web:latest@sha256:")
    assert "the registry deleted layers of an image during its push; pushing it again" in ran.stderr


# pulling --------------------------------------------------------------------------------------------------------------


def test_a_pod_pulls_with_a_login(environment: Environment, private: str, processes: dict[str, str]) -> None:
    """With --pull-secret a pod runs an image of a registry that wants a login; the password is in one Secret alone."""
    users_builder(environment, login(private, PASSWORD))
    args = ("--registry", f"{private}/team", "--pull-secret")

    ran = environment.deploy("", *args).expect()

    (pod,) = environment.pods("web")
    assert environment.exec(pod["metadata"]["name"], "cat", "/app/text") == f"{environment.namespace}\n"
    assert pod["spec"]["imagePullSecrets"] == [{"name": "web-pull"}]
    shown = environment.platform("preview", "--diff", "--expect-no-changes", *args).expect()
    output = everywhere(environment, *(item for each in (ran, shown) for item in (each.stdout, each.stderr)))
    assert [secret for secret in secrets() if secret in output or secret in "".join(processes.values())] == []
    found = environment.get("v1", "Secret", "web-pull")
    assert found is not None
    config = json.loads(base64.b64decode(found["data"][".dockerconfigjson"]))
    assert config["auths"][private]["password"] == PASSWORD


@pytest.mark.endurance
def test_a_pod_without_a_login(environment: Environment, private: str) -> None:
    """Without --pull-secret the node has no login: one message, at the service."""
    users_builder(environment, login(private, PASSWORD))

    ran = environment.deploy("", "--registry", f"{private}/team").expect(1)

    assert ran.stderr.count("error:") == 1
    assert f"image '{private}/team/env-web:latest@sha256:" in ran.stderr


def test_a_pod_with_a_wrong_login(environment: Environment, private: str) -> None:
    """A login that the registry refuses to the node is one message, and is not in it."""
    folder = users_builder(environment, login(private, PASSWORD))
    registry = ("--registry", f"{private}/team")
    environment.platform("build", *registry).expect()
    configure(folder, login(private, "nonsense"))

    ran = environment.deploy("", *registry, "--pull-secret", "--no-build").expect(1)

    assert ran.stderr.count("error:") == 1
    assert f"image '{private}/team/env-web:latest@sha256:" in ran.stderr
    assert "nonsense" not in everywhere(environment, ran.stdout, ran.stderr)


@pytest.mark.endurance
def test_a_pod_with_an_unreachable_registry(environment: Environment) -> None:
    """An image of a registry that does not run is one message."""
    ran = environment.deploy(f"services: {{web: {{image: '{NOBODY}/team/web'}}}}\n").expect(1)

    assert ran.stderr.count("error:") == 1
    assert f"{NOBODY}/team/web" in ran.stderr


# configured -----------------------------------------------------------------------------------------------------------


class Plain:
    """The environment as a folder of plain Pulumi, which continues with its state."""

    def __init__(self, environment: Environment, tmp_path: Path, *args: str) -> None:
        self.environment = environment
        self.folder = environment.folder / "plain"
        ejected = environment.platform("eject", "-o", str(self.folder), *args).expect()
        exported = dict(shlex.split(line)[1].split("=", 1) for line in ejected.stdout.splitlines())
        host = tmp_path / "bin-plain" / "pulumi-language-python"
        host.parent.mkdir()
        host.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/plain/language_host.py "$@"\n')
        host.chmod(0o755)
        self.command = str(Toolchain(environment.variables).need(PULUMI).path)
        self.variables = {
            **environment.variables, **exported, "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_HOME": f"{environment.variables['COMPOSEPLAT_DATA']}/pulumi",
            "PATH": f"{host.parent}{os.pathsep}{environment.variables['PATH']}",
        }  # fmt: skip

    def __call__(self, *args: str, stdin: str = "") -> str:
        command = [self.command, *args, "--stack", self.environment.namespace, "--non-interactive"]
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables, input=stdin, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


def test_credentials_as_pulumi_secrets(
    environment: Environment, private: str, processes: dict[str, str], tmp_path: Path
) -> None:
    """Plain Pulumi pushes and pulls with logins of its configuration, whose passwords are nowhere in clear."""
    registry = ("--registry", f"{private}/team")
    folder = users_builder(environment, login(private, PASSWORD))
    environment.platform("build", *registry).expect()
    configure(folder, {})
    pulumi = Plain(environment, tmp_path, *registry)
    environment.write("changed\n", "web/text")
    for key, value in (("address", private), ("username", USER)):
        pulumi("config", "set", "--path", f"composeplat:registries[0].{key}", value)
    pulumi("config", "set", "--secret", "--path", "composeplat:registries[0].password", stdin=PASSWORD)
    pulumi("config", "set", "composeplat:pullSecret", "true")
    with environment.api() as api:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace}})

    output = pulumi("up", "--yes", "--diff")

    until(lambda: [row for row in environment.pods("web") if row["status"]["phase"] == "Running"])
    (pod,) = environment.pods("web")
    assert environment.exec(pod["metadata"]["name"], "cat", "/app/text") == "changed\n"
    pulumi("preview", "--expect-no-changes")
    kept = [path.read_text() for path in pulumi.folder.iterdir() if path.is_file()]
    everything = everywhere(environment, output, *kept, *processes.values())
    assert [secret for secret in secrets() if secret in everything] == []


# ports that only an image names ---------------------------------------------------------------------------------------


def listed(environment: Environment, name: str) -> list[tuple[int, str]]:
    """The ports of a headless cluster service."""
    found: Any = environment.get("v1", "Service", name)
    assert found["spec"]["clusterIP"] == "None"
    return [(port["port"], port["protocol"]) for port in found["spec"].get("ports") or []]


@pytest.fixture
def no_memory(environment: Environment, tmp_path: Path) -> Path:
    """A cache folder of its own, with the programs of the usual one."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "tools").symlink_to(Path(environment.variables["COMPOSEPLAT_CACHE"]) / "tools")
    environment.variables["COMPOSEPLAT_CACHE"] = str(cache)
    return cache


def test_ports_of_images(environment: Environment, no_memory: Path, tmp_path: Path) -> None:
    """A service that names no ports lists those of its image, from the first deploy on, through every entry point.

    They are noticed in no preview but where they change, and are no reason to make the cluster service again.
    """
    text = f'x-app: &app {{command: "{SLEEP}", stop_grace_period: 0}}\nservices:\n  web: {{<<: *app, build: ./web}}\n'
    environment.write(text)
    environment.write(f"{DOCKERFILE}EXPOSE 8080 53/udp\n", "web/Dockerfile")
    environment.deploy().expect()
    assert listed(environment, "web") == [(53, "UDP"), (8080, "TCP")]
    # One whose image another service builds is left as it is: what is read before the build might not hold after it.
    image = f"localhost:{PORTS['registry']}/env-web"
    environment.write(f"{text}  api: {{<<: *app, build: ./api}}\n  db: {{<<: *app, image: '{image}'}}\n")
    environment.write(f"{DOCKERFILE}EXPOSE 5432\n", "api/Dockerfile")

    environment.deploy().expect()
    assert listed(environment, "api") == [(5432, "TCP")]
    assert listed(environment, "db") == []

    environment.platform("preview", "--expect-no-changes").expect()
    plain = Plain(environment, tmp_path)
    plain("preview", "--expect-no-changes")
    shutil.rmtree(no_memory / "ports")
    plain("preview", "--expect-no-changes")

    environment.write("changed\n", "web/text")
    found = environment.platform("preview", "--json").expect().json
    assert sorted(f"{row['operation']} {row['kind']}" for row in found["changes"]) == [
        "update Deployment", "update Image",
    ]  # fmt: skip

    environment.write(f"{DOCKERFILE}EXPOSE 9090\n", "web/Dockerfile")
    before = environment.get("v1", "Service", "web")
    environment.deploy().expect()
    after = environment.get("v1", "Service", "web")
    assert listed(environment, "web") == [(9090, "TCP")]
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] == after["metadata"]["uid"]


def test_ports_of_an_image_by_name(environment: Environment, no_memory: Path) -> None:
    """An image that is not built here is asked for its ports by its name; with the registry gone they stay."""
    assert no_memory.exists()
    environment.write("services: {web: {build: ./web}}\n")
    environment.write(f"{DOCKERFILE}EXPOSE 8080\n", "web/Dockerfile")
    image = environment.platform("build").expect().stdout.strip().partition("@")[0]

    environment.deploy(f'services: {{db: {{image: "{image}", command: "{SLEEP}", stop_grace_period: 0}}}}\n').expect()

    assert listed(environment, "db") == [(8080, "TCP")]
    environment.platform("preview", "--expect-no-changes").expect()
