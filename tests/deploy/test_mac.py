"""Commands on a Python that has nothing of Linux alone, against a real cluster elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_safety import engine_of

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


@pytest.fixture
def mac(environment: Environment) -> Environment:
    """The environment of a person at a Mac: the cluster is elsewhere, and found by the kubeconfig."""
    environment.variables["PYTHONPATH"] = str(ROOT / "tests" / "mac")
    environment.variables["COMPOSEPLAT_CLUSTER"] = str(environment.folder.parent / "no-cluster")
    environment.write("page", "page/index.html")
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
