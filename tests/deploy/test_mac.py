"""Commands on a Python that has nothing of Linux alone, against a real cluster elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.deploy.conftest import PORTS, SLEEP, Environment, until
from tests.deploy.docker import users_builder
from tests.deploy.test_full_watch import Watch
from tests.deploy.test_operating import follow
from tests.deploy.test_run import run
from tests.deploy.test_safety import engine_of
from tests.deploy.test_up import SH, Up, get, on_disk

FILE = f"""\
services:
  web:
    image: busybox:1.37
    command: {SLEEP}
    stop_grace_period: 0s
    volumes: ["./page:/page", "data:/data"]
    ports: ["8080:80"]
    healthcheck: {{test: ["CMD", "test", "-e", "/page/index.html"], interval: 1s}}
volumes: {{data: {{}}}}
"""
PORT = 18081
DEVELOPED = f"""\
x-platform: {{full: true}}
services:
  web:
    image: busybox:1.37
    command: sh -c 'echo started; exec httpd -f -p 80 -h /page'
    stop_grace_period: 0s
    volumes: ["./page:/page"]
    ports: ["{PORT}:80"]
    develop:
      watch:
        - {{path: ./conf, action: sync, target: /conf}}
"""


@pytest.fixture
def mac(environment: Environment) -> Environment:
    """The environment of a person at a Mac: the cluster is elsewhere, and found by the kubeconfig."""
    environment.variables["PYTHONPATH"] = str(ROOT / "tests" / "mac")
    environment.variables["COMPOSEPLAT_CLUSTER"] = str(environment.folder.parent / "no-cluster")
    environment.write("page", "page/index.html")
    environment.write("old", "conf/file")
    environment.write(FILE)
    return environment


def test_it_is_no_linux(mac: Environment) -> None:
    """What the tests below take away is gone: this one fails where it is not."""
    script = (
        "import os, sys; print(sys.platform, hasattr(os, 'memfd_create'), os.path.exists('/proc/self'));"
        "import platformdirs; print(platformdirs.user_cache_dir('x')); open('/proc/self/stat')"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=mac.variables, capture_output=True, text=True, check=False)

    home = mac.variables["HOME"]
    assert done.stdout.splitlines() == ["darwin False False", f"{home}/Library/Caches/x"]
    assert "FileNotFoundError" in done.stderr


@pytest.mark.endurance
def test_commands(mac: Environment) -> None:
    """A deploy from a Mac, what one looks at afterwards, and its end."""
    mac.platform("check")
    mac.platform("render").expect()
    mac.platform("preview", "--domain", "example.com").expect()
    mac.platform("deploy", "--domain", "example.com").expect()

    assert mac.platform("status", "--json").expect().json["services"][0]["state"] == "ready"
    shown = [*mac.command_line("exec"), "web", "cat", "/page/index.html"]
    assert subprocess.check_output(shown, cwd=mac.folder, env=mac.variables, stdin=subprocess.DEVNULL) == b"page"
    for command in ("logs", "events", "images", "endpoints", "restart", "sleep", "wake"):
        done = mac.platform(command)
        assert "Traceback" not in done.stderr
        assert done.status == 0, (command, done.stderr)
    mac.platform("cp", "web:/page/index.html", "copied").expect()
    assert (mac.folder / "copied").read_text() == "page"
    mac.platform("destroy", "--yes", "--volumes").expect()
    assert mac.names() == set()


def test_up(mac: Environment) -> None:
    """A session from a Mac: files go both ways, a port is forwarded, and `down` restores the service."""
    users_builder(mac)
    mac.variables.update(BUILDX_BUILDER="mine", PLATFORM_REGISTRY=f"localhost:{PORTS['registry']}")
    mac.deploy(DEVELOPED, "--domain", "localhost").expect()
    up = Up(mac, "web", *SH)
    up.prompt()
    assert up.run("cat /page/index.html; stty size") == "page30 100\n"
    mac.write("saved", "page/index.html")
    until(lambda: up.run("cat /page/index.html") == "saved", seconds=10)
    up.run("echo made > /page/made; httpd -p 80 -h /page")
    until(lambda: on_disk(mac, "page/made") == "made\n", seconds=10)
    assert until(lambda: get(PORT, "index.html")) == "saved"
    assert up.leave(7) == 7
    mac.platform("down", "web").expect()
    mac.platform("destroy", "--yes", "--volumes").expect()


def test_run_logs_and_watch(mac: Environment) -> None:
    """From a Mac: a pod of its own, logs that are followed, and saved files in a container."""
    mac.deploy(DEVELOPED, "--domain", "localhost").expect()
    assert run(mac, "web", "sh", "-c", "cat; exit 3", given=b"in")[:2] == (3, b"in")
    lines = follow(mac, "--no-prefix", "web")
    lines.until("started")
    watch = Watch(mac, "watch", "web")
    watch.until("watching", service="web")
    mac.write("new", "conf/file")
    until(lambda: exec_in(mac, "cat", "/conf/file") == b"new", seconds=10)
    assert watch.end() == 130
    mac.platform("destroy", "--yes", "--volumes").expect()


def exec_in(mac: Environment, *args: str) -> bytes:
    command = [*mac.command_line("exec"), "web", *args]
    done = subprocess.run(
        command, cwd=mac.folder, env=mac.variables, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.stdout


@pytest.mark.endurance
def test_killed(mac: Environment) -> None:
    """After a kill -9 of the command and of Pulumi, the next deploy knows that both have ended, without /proc."""
    waiting = "\n    depends_on: {slow: {condition: service_healthy}}\n  slow: {image: 'busybox:1.37', command: 'true'"
    never = "healthcheck: {test: [CMD, 'false'], interval: 600s, start_period: 600s}, restart: always}"
    process = start(mac, FILE.replace("\nvolumes:", f"{waiting}, {never}\nvolumes:"))
    group = until(lambda: engine_of(mac), seconds=20)
    until(lambda: mac.pods("slow"))
    process.kill()
    os.killpg(group, signal.SIGKILL)
    process.communicate()
    assert list(Path(mac.variables["COMPOSEPLAT_DATA"]).glob("state/*/.pulumi/locks/**/*.json"))

    mac.deploy(FILE).expect()

    assert not mac.pods("slow")
    mac.platform("destroy", "--yes", "--volumes").expect()


def start(mac: Environment, text: str) -> subprocess.Popen[str]:
    mac.write(text)
    return mac.start("deploy")
