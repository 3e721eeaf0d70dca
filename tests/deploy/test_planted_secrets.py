"""Secrets that are planted wherever a deploy reads some are in no log, in no output of --debug and in no bug report."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from composeplat.local.cluster import LocalCluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.conftest import split_log_path
from tests.deploy.conftest import PORTS, Environment
from tests.deploy.docker import configure, login
from tests.deploy.test_credentials import ACCOUNT, account

__all__ = ["account"]

REGISTRY = f"localhost:{PORTS['registry']}"
COMPOSE = """\
services:
  web:
    build:
      context: .
      args: {BUILD_TOKEN: $BUILD_TOKEN}
    command: sh -c 'env; cat /run/secrets/file; exit 7'
    environment: {API_TOKEN: $API_TOKEN, DB_PASSWORD: $DB_PASSWORD, GREETING: $GREETING}
    env_file: web.env
    secrets: [file]
secrets:
  file: {file: ./secret.txt}
"""
DOCKERFILE = "FROM busybox:1.37\nARG BUILD_TOKEN\nRUN echo building with $BUILD_TOKEN\n"
SHELL = {"API_TOKEN": "planted-in-shell", "BUILD_TOKEN": "planted-in-args", "UNUSED_SECRET": "planted-unused"}
FILES = {
    ".env": "DB_PASSWORD=planted-in-dotenv\nGREETING=planted-without-a-name\n",
    "web.env": "SERVICE_PASSWORD=planted-in-env-file\n",
    "secret.txt": "planted-in-file\n",
    "Dockerfile": DOCKERFILE,
}


def make_token(cluster: LocalCluster) -> str:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    kube = [str(Toolchain(os.environ).need(KUBE).path), "kubectl", f"--kubeconfig={cluster.layout.kubeconfig}"]
    path = f"/api/v1/namespaces/default/serviceaccounts/{ACCOUNT}/token"
    done = subprocess.run(
        [*kube, "create", "--raw", path, "-f", "-"],
        input=json.dumps(request),
        text=True,
        check=True,
        capture_output=True,
    )
    return str(json.loads(done.stdout)["status"]["token"])


def use_token(environment: Environment, token: str) -> None:
    config = json.loads(environment.cluster.layout.kubeconfig.read_text())
    config["users"] = [{"name": row["name"], "user": {"token": token}} for row in config["users"]]
    path = environment.folder.parent / "kubeconfig"
    path.write_text(json.dumps(config))
    environment.variables["KUBECONFIG"] = str(path)


def found_in(text: str, token: str) -> set[str]:
    """The planted values that a text has; of the token its signature is enough."""
    planted = [*SHELL.values(), "planted-in-dotenv", "planted-in-file", "planted-in-env-file", "planted-login"]
    return {value for value in [*planted, token.rpartition(".")[2]] if value in text}


FULL = """\
x-platform: {full: true}
x-app: &app {image: 'busybox:1.37', stop_grace_period: 0}
services:
  base: {<<: *app, environment: {DB_PASSWORD: $DB_PASSWORD}, profiles: [never]}
  web:
    extends: base
    restart: always
    command: sh -c 'env; cat /run/secrets/* /text /variable; exit 7'
    profiles: !reset null
    label_file: labels.env
    networks: [inside]
    secrets: [file, variable]
    configs: [{source: text, target: /text}, {source: shell, target: /variable}]
networks: {inside: {internal: true}}
secrets: {file: {file: ./secret.txt}, variable: {environment: API_TOKEN}}
configs: {text: {content: "token $BUILD_TOKEN"}, shell: {environment: UNUSED_SECRET}}
"""


def command_lines() -> str:
    """The command lines of all processes of this machine."""
    texts = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            texts.append(path.read_text(errors="replace"))
    return "".join(texts)


def test_planted_secrets_of_full_mode(environment: Environment) -> None:
    """Configs, secrets, labels and extended services leave none in a message, log, process list or the plain state."""
    environment.variables.update(SHELL)
    for name, text in {**FILES, "labels.env": "label=$API_TOKEN\n"}.items():
        environment.write(text, name)
    environment.write(FULL)

    process = environment.start("deploy", "--debug", "--timeout", "60")
    seen = set()
    while process.poll() is None:
        seen |= found_in(command_lines(), "-.-.no-token")
        time.sleep(0.02)
    stdout, stderr = process.communicate()
    stderr, log = split_log_path(stderr)

    assert process.returncode == 1
    for text in (stdout + stderr, Path(log).read_text(), json.dumps(environment.state())):
        assert found_in(text, "-.-.no-token") == set()
    assert seen == set()
    assert "crash-loop" in stdout + stderr
    assert "[secret]" in stdout + stderr
    shown = environment.platform("render", "--domain", "example.com").expect()
    assert found_in(shown.stderr, "-.-.no-token") == set()
    assert environment.names() >= {"Secret/file", "Secret/variable", "ConfigMap/text", "ConfigMap/shell"}


@pytest.mark.usefixtures("account")
def test_planted_secrets(environment: Environment, cluster: LocalCluster) -> None:
    """A deploy that fails, with a service that prints all it knows, leaves none of them anywhere."""
    token = make_token(cluster)
    use_token(environment, token)
    for name, text in FILES.items():
        environment.write(text, name)
    docker = environment.folder.parent / "docker"
    docker.mkdir()
    configure(docker, login(REGISTRY, "planted-login"))
    environment.variables.update(SHELL, DOCKER_CONFIG=str(docker))
    environment.write(COMPOSE)

    ran = environment.platform("deploy", "--debug", "--pull-secret", "--registry", f"{REGISTRY}/planted").expect(1)
    report = environment.platform("bug-report").expect()

    log = Path(ran.log).read_text()
    with tarfile.open(environment.folder / report.stdout.strip()) as archive:
        archive.extractall(environment.folder.parent / "unpacked", filter="data")
    files = [path for path in (environment.folder.parent / "unpacked").rglob("*") if path.is_file()]
    packed = "".join(path.read_text() for path in files)
    for text in (ran.stdout + ran.stderr, log, packed, report.stderr):
        assert found_in(text, token) == set()
    # What only a log hides: a value in a Secret, whatever its name.
    assert "planted-without-a-name" not in log + packed
    # It has what helps: the failure, the requests, Pulumi's command lines, and the log is in the report.
    assert "crash-loop" in log
    assert "pulumi up --yes " in log
    assert "GET /api/v1/namespaces/" in log
    assert "[secret]" in ran.stderr
    assert log in packed
    assert "versions.json" in report.stderr
