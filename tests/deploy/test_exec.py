"""`platform exec`: a command in the container of a service."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import pytest

from composeplat.local.cluster import LocalCluster
from tests.deploy.conftest import PLATFORM, SLEEP, Environment, an_environment
from tests.terminal import Terminal

FILE = f"""\
services:
  web: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0, environment: {{A: one}}}}
"""


@pytest.fixture(scope="module")
def web(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    with an_environment(cluster, tmp_path_factory.mktemp("web"), tmp_path_factory.mktemp("private")) as made:
        made.deploy(FILE).expect()
        yield made


def command_line(environment: Environment, *more: str) -> list[str]:
    return [str(PLATFORM), "exec", "--name", environment.name, "--namespace", environment.namespace, *more]


def run(environment: Environment, *more: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        command_line(environment, *more), cwd=environment.folder, env=environment.variables, input=given,
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_streams_and_status(web: Environment) -> None:
    """Input and both outputs are bytes as they are, and the status is the command's."""
    given = bytes(range(256)) * 1000
    assert run(web, "web", "cat", given=given) == (0, given, b"")
    assert run(web, "web", "sh", "-c", "echo $A; echo err >&2; exit 7") == (7, b"one\n", b"err\n")


def test_options_behind_the_service_are_the_commands(web: Environment) -> None:
    """``-n`` there is not a namespace."""
    assert run(web, "web", "echo", "-n", "x") == (0, b"x", b"")


def test_dashes_before_the_command_are_not_its_name(web: Environment) -> None:
    """As for kubectl, ``--`` only shows where the command begins; a second one is the command's."""
    assert run(web, "web", "--", "echo", "-n", "x") == (0, b"x", b"")
    assert run(web, "web", "--", "echo", "--", "x") == (0, b"-- x\n", b"")


def test_a_terminal(web: Environment) -> None:
    """On a terminal it is one, of its size, and follows when that changes."""
    script = "test -t 0 && sleep 1 && stty size; until stty size | grep '40 120'; do sleep 0.1; done; read line; exit 3"
    command = command_line(web, "web", "sh", "-c", script)
    terminal = Terminal(command, folder=web.folder, env=web.variables, columns=90, rows=30)
    terminal.until("30 90")
    terminal.resize(columns=120, rows=40)
    terminal.until("40 120")
    terminal.type("go on")
    assert terminal.status() == 3


def test_an_interrupt_of_this_process_alone(web: Environment) -> None:
    """It ends the command, as a Ctrl-C does: an editor or a script sends it to no other process."""
    command = command_line(web, "-T", "web", "sh", "-c", "echo ready; sleep 1000")
    with subprocess.Popen(command, cwd=web.folder, env=web.variables, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130


def test_commands_that_can_not_run(web: Environment) -> None:
    """An unknown service, and a program that is missing or not executable: a line, and the statuses of Docker."""
    unknown = run(web, "api", "true")
    message, mark, path = unknown[2].partition(b"log of this run: ")
    assert (unknown[0], message) == (1, b"error: there is no service 'api'\n  hint: services are: web\n")
    assert (bool(mark), path.count(b"\n")) == (True, 1)
    reason = b'error: exec: "no-such-program": executable file not found in $PATH\n'
    assert run(web, "web", "no-such-program") == (127, b"", reason)
    assert run(web, "web", "/etc") == (126, b"", b'error: exec: "/etc": permission denied\n')


@pytest.mark.endurance
def test_streams_that_wait_for_more_than_a_minute(web: Environment) -> None:
    """Output that is not taken for that long, and input that the program does not read, arrive as a whole."""
    length, wait = 30_000_000, 90
    paused = subprocess.Popen(
        command_line(web, "-T", "web", "sh", "-c", f"yes | head -c {length}"), cwd=web.folder, env=web.variables,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    restored = subprocess.run(
        command_line(web, "-T", "web", "sh", "-c", f"sleep {wait}; wc -c"), cwd=web.folder, env=web.variables,
        input=bytes(length), capture_output=True, check=False,
    )  # fmt: skip

    assert (restored.returncode, restored.stdout) == (0, b"%d\n" % length), restored.stderr
    output, _ = paused.communicate()
    assert (paused.returncode, len(output)) == (0, length)
