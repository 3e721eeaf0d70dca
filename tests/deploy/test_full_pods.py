"""Services in one pod in full mode: one reaches the other at 127.0.0.1, and sees its processes and shared memory."""

from __future__ import annotations

import subprocess

import pytest

from tests.deploy.conftest import PLATFORM, SLEEP, Environment, until
from tests.deploy.test_run import run
from tests.deploy.test_up import plainly

PROJECT = f"""
x-platform: {{full: true}}
services:
  web:
    image: busybox
    command: sh -c 'mkdir /srv; echo page > /srv/index.html; echo from web; exec httpd -f -p 8000 -h /srv'
    expose: [8000]
    stop_grace_period: 0
    environment: {{NAME: web}}
    pre_start: [{{command: "true"}}]
  side:
    image: busybox
    command: sh -c 'echo from side; exec sleep 3600'
    network_mode: service:web
    pid: service:web
    ipc: service:web
    environment: {{NAME: side}}
    stop_grace_period: 0
    volumes: [/kept]
  last:
    image: busybox
    command: sh -c 'echo other > /srv.html; exec httpd -f -p 9000 -h /'
    network_mode: service:side
    expose: [9000]
    stop_grace_period: 0
  asks:
    image: busybox
    command: "{SLEEP}"
    depends_on: [last]
    stop_grace_period: 0
"""


def inside(environment: Environment, service: str, *args: str) -> str:
    place = ("--name", environment.name, "--namespace", environment.namespace)
    done = subprocess.run(
        [str(PLATFORM), "exec", *place, "-T", service, *args], cwd=environment.folder, env=environment.variables,
        capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout


def test_services_of_one_pod(environment: Environment) -> None:
    """They share its network and processes; each command finds the container of its service."""
    environment.deploy(PROJECT).expect()

    (pod,) = environment.pods("web")
    assert [found["name"] for found in pod["spec"]["containers"]] == ["web", "side", "last"]
    assert len(environment.pods()) == 2
    assert inside(environment, "side", "wget", "-qO-", "http://127.0.0.1:8000/") == "page\n"
    assert "httpd -f -p 8000" in inside(environment, "side", "ps")
    assert inside(environment, "web", "sh", "-c", "echo $NAME") == "web\n"
    assert inside(environment, "side", "sh", "-c", "echo $NAME; ls -d /kept") == "side\n/kept\n"
    fetch = "wget -qO- http://last.{0}.svc.cluster.local:9000/srv.html || nslookup last.{0}.svc.cluster.local"
    assert inside(environment, "asks", "sh", "-c", fetch.format(environment.namespace))

    assert environment.platform("logs", "--no-prefix", "side").expect().stdout == "from side\n"
    lines = environment.platform("logs").expect().stdout.splitlines()
    assert sorted(line.split("|")[1].strip() for line in lines) == ["from side", "from web"]
    rows = {row["service"]: row for row in environment.platform("status", "--json").expect().json["services"]}
    assert {name: (row["kind"], row["state"], row["ready"]) for name, row in rows.items()} == {
        "web": ("StatefulSet", "ready", 1),
        "side": ("StatefulSet", "ready", 1),
        "last": ("StatefulSet", "ready", 1),
        "asks": ("Deployment", "ready", 1),
    }
    assert run(environment, "side", "sh", "-c", "echo $NAME; ls -d /kept")[:2] == (0, b"side\n/kept\n")
    detached = run(environment, "--detach", "side", "true")[1].decode().strip()
    (own,) = [found for found in environment.pods() if found["metadata"]["name"] == detached]
    assert [found["name"] for found in own["spec"]["initContainers"]] == ["platform-tools", "platform-fill-side"]

    environment.platform("restart", "side").expect()
    (restarted,) = environment.pods("web")
    assert restarted["metadata"]["uid"] != pod["metadata"]["uid"]


@pytest.mark.endurance
def test_a_service_of_a_pod_is_developed(environment: Environment) -> None:
    """Its container has the synced files, and the others of the pod run beside it; then all is as it was."""
    environment.write("synced", "src/page")
    environment.deploy(PROJECT.replace("volumes: [/kept]", "volumes: [/kept, './src:/src']")).expect()

    script = "cat /src/page; wget -qO- http://127.0.0.1:8000/; echo $NAME"
    assert plainly(environment, "side", "--", "sh", "-c", script).expect().stdout == "syncedpage\nside\n"

    environment.platform("down", "side").expect()
    (pod,) = until(lambda: environment.pods("web"))
    assert [found["name"] for found in pod["spec"]["containers"]] == ["web", "side", "last"]


@pytest.mark.endurance
def test_a_container_that_fails_is_named(environment: Environment) -> None:
    """A changed variable of one replaces the pod of all; if one fails, the others say which."""
    environment.deploy(PROJECT).expect()
    (before,) = environment.pods("web")
    environment.deploy(PROJECT.replace("{NAME: side}", "{NAME: changed}")).expect()
    (after,) = environment.pods("web")
    assert before["metadata"]["uid"] != after["metadata"]["uid"]

    done = environment.deploy(PROJECT.replace("echo from side; exec", "exit 3; exec"), "--timeout", "40")
    done.expect(1)
    assert "side" in done.stderr
    assert "is in one pod with 'side', which" in done.stderr
    environment.deploy(
        PROJECT.replace("network_mode: service:web\n    pid: service:web\n    ipc: service:web", "")
    ).expect()
    until(lambda: len(environment.pods()) == 3)
