"""The keys of containers that full mode honors, by what a program in a real pod sees."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment

SHELL = f"""
x-platform: {{full: true}}
services:
  plain: {{image: busybox, stop_grace_period: 0, command: {SLEEP}}}
  all:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    privileged: true
    read_only: true
    stdin_open: true
    tty: true
"""


def sees(environment: Environment, service: str, script: str) -> str:
    (pod,) = environment.pods(service)
    return environment.exec(pod["metadata"]["name"], "sh", "-c", script).strip()


def test_rights_and_terminal(environment: Environment) -> None:
    """A privileged container has all capabilities, a read-only one takes no file, and one with `tty` has a terminal."""
    environment.deploy(SHELL).expect()

    assert sees(environment, "plain", "touch /new && echo written") == "written"
    assert sees(environment, "all", "touch /new 2>/dev/null || echo refused") == "refused"
    capabilities = "grep CapEff /proc/1/status | cut -f2"
    plain, privileged = (int(sees(environment, name, capabilities), 16) for name in ("plain", "all"))
    assert privileged & ~plain != 0
    terminal = "readlink /proc/1/fd/0"
    assert sees(environment, "plain", terminal) == "/dev/null"
    assert sees(environment, "all", terminal).startswith("/dev/pts/")
