"""`platform run`: a command in a pod of its own, with the settings of a deployed service."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import pytest

from composeplat.local.cluster import LocalCluster
from tests.deploy.conftest import PLATFORM, SLEEP, Environment, an_environment, until
from tests.deploy.test_jobs import evict
from tests.terminal import Terminal

FILE = f"""\
services:
  web:
    image: busybox:1.37
    command: "{SLEEP}"
    stop_grace_period: 0
    environment: {{A: one, B: "$$(A)$$$$"}}
    volumes: [data:/data, /anonymous]
    expose: [7000]
    user: "1000"
    healthcheck: {{test: 'true', interval: 1s}}
volumes: {{data: }}
"""


@pytest.fixture(scope="module")
def web(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    with an_environment(cluster, tmp_path_factory.mktemp("web"), tmp_path_factory.mktemp("private")) as made:
        made.deploy(FILE).expect()
        yield made


def command(environment: Environment, *more: str) -> list[str]:
    return [str(PLATFORM), "run", "--name", environment.name, "--namespace", environment.namespace, *more]


def run(environment: Environment, *more: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        command(environment, *more), cwd=environment.folder, env=environment.variables, input=given,
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def run_pods_of(environment: Environment) -> list[str]:
    return [
        pod["metadata"]["name"] for pod in environment.pods() if "dev.platform.com/run" in pod["metadata"]["labels"]
    ]


def test_it_runs_beside_the_service_and_removes_its_objects(web: Environment) -> None:
    """Streams are bytes as they are, the status is the command's, settings are the service's or changed."""
    given = bytes(range(256)) * 1000
    assert run(web, "web", "cat", given=given) == (0, given, b"")
    script = 'echo "$A $B $C"; id -u; pwd; echo err >&2; exit 7'
    found = run(web, "-e", "C=$(A)", "-u", "1001:5", "-w", "/bin", "web", "sh", "-c", script)
    assert found == (7, b"one $(A)$$ $(A)\n1001\n/bin\n", b"err\n")
    assert run(web, "--entrypoint", "echo -n", "web", "--", "-x", "y") == (0, b"-x y", b"")
    until(lambda: run_pods_of(web) == [])
    until(lambda: not [found for found in web.objects("v1", "ConfigMap") if "-run-" in found["metadata"]["name"]])


def test_a_pod_that_is_evicted(web: Environment) -> None:
    """The drain of its node ends the command as Ctrl-C does, so a note has the reason."""
    process = subprocess.Popen(
        command(web, "web", "sh", "-c", "echo begun; sleep 100"), cwd=web.folder, env=web.variables, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    (pod,) = run_pods_of(web)
    evict(web, pod)
    _, messages = process.communicate(timeout=60)

    assert process.returncode == 130
    assert messages == f"the pod '{pod}' was evicted from its node, and its command ended with it\n"


def test_its_volumes_are_the_service_s(web: Environment) -> None:
    """A named volume is shared; the service's name leads to the service's pod alone."""
    (pod,) = web.pods("web")
    web.exec(pod["metadata"]["name"], "sh", "-c", "echo kept > /data/x; echo own > /anonymous/x")
    assert run(web, "web", "sh", "-c", "cat /data/x; ls /anonymous; nslookup web | grep -c Address")[:2] == (
        0,
        b"kept\n2\n",
    )


def test_a_terminal_and_its_sizes(web: Environment) -> None:
    """On a terminal it is one, of its size, and follows when that changes."""
    script = "test -t 0 && sleep 1 && stty size; until stty size | grep '40 120'; do sleep 0.1; done; read line; exit 3"
    terminal = Terminal(
        command(web, "web", "sh", "-c", script), folder=web.folder, env=web.variables, columns=90, rows=30
    )
    terminal.until("30 90")
    terminal.resize(columns=120, rows=40)
    terminal.until("40 120")
    terminal.type("go on")
    assert terminal.status() == 3


def test_ctrl_c_at_a_terminal(web: Environment) -> None:
    """The program gets SIGINT and ends as it likes; if it dies of it, the status is 130. The pod is deleted."""
    script = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.1; done"
    for args, expected in ((("sh", "-c", script), 5), (("sh", "-c", "echo ready; exec sleep 600"), 130)):
        terminal = Terminal(command(web, "web", *args), folder=web.folder, env=web.variables)
        terminal.until("ready")
        terminal.interrupt()
        assert terminal.status() == expected
        until(lambda: run_pods_of(web) == [])


def test_ctrl_c_without_a_terminal(web: Environment) -> None:
    """With plain streams the program gets SIGINT too, and its last output and status arrive; a second one kills it."""
    script = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.1; done"
    terminal = Terminal(command(web, "-T", "web", "sh", "-c", script), folder=web.folder, env=web.variables)
    terminal.until("ready")
    terminal.interrupt()
    terminal.until("interrupted")
    assert terminal.status() == 5
    until(lambda: run_pods_of(web) == [])

    terminal = Terminal(
        command(web, "-T", "web", "sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 0.1; done"),
        folder=web.folder,
        env=web.variables,
    )
    terminal.until("ready")
    terminal.interrupt()
    terminal.until("no")
    terminal.interrupt()
    assert terminal.status() == 130
    until(lambda: run_pods_of(web) == [])


def test_ctrl_c_before_the_pod_runs(web: Environment) -> None:
    """The pod is deleted, and the status is 130."""
    terminal = Terminal(command(web, "web", "sleep", "600"), folder=web.folder, env=web.variables)
    until(lambda: run_pods_of(web))
    terminal.interrupt()
    assert terminal.status() == 130
    until(lambda: run_pods_of(web) == [])


def test_a_detached_pod_runs_the_service_s_command(web: Environment) -> None:
    """Its name is printed, and it goes with the environment; a killed command line's goes at the next run."""
    status, name, _ = run(web, "-d", "web")
    detached = name.decode().strip()
    (pod,) = [found for found in web.pods() if found["metadata"]["name"] == detached]
    assert (status, pod["spec"]["activeDeadlineSeconds"]) == (0, 86400)
    assert pod["spec"]["containers"][0]["command"][:2] == ["sh", "-c"]
    assert [found["kind"] for found in pod["metadata"]["ownerReferences"]] == ["Service"]
    process = subprocess.Popen(command(web, "web", "sleep", "60"), cwd=web.folder, env=web.variables)
    until(lambda: len(run_pods_of(web)) == 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    until(lambda: run_pods_of(web) == [detached])


def test_the_logs_of_a_detached_pod(web: Environment) -> None:
    """They are among the service's, with the name of the run."""
    status, name, message = run(web, "-d", "web", "echo", "migrated")
    assert (status, message) == (0, b"its log: platform logs --follow web\n")
    assert until(lambda: web.platform("logs", "web").stdout) == f"{name.decode().strip()} | migrated\n"


def test_commands_that_can_not_run(web: Environment) -> None:
    """An unknown service, a program that the image does not have, and an environment that is not deployed."""
    assert run(web, "api", "true")[0] == 1
    missing = run(web, "web", "no-such-program")
    assert (missing[0], b"no-such-program" in missing[2]) == (127, True)
    other = run(web, "--name", "other", "web", "true")
    assert other[0] == 1
    assert b"service 'web' is not deployed" in other[2]


def test_destroy_deletes_them(web: Environment) -> None:
    """A pod that nobody ended goes with the environment."""
    assert run(web, "-d", "web", "sleep", "600")[0] == 0
    web.platform("destroy", "--yes").expect()
    assert web.pods() == []
