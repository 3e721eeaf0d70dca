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
    """A privileged container has all capabilities, a read-only one refuses files, and `tty` gives a terminal."""
    environment.deploy(SHELL).expect()

    assert sees(environment, "plain", "touch /new && echo written") == "written"
    assert sees(environment, "all", "touch /new 2>/dev/null || echo refused") == "refused"
    capabilities = "grep CapEff /proc/1/status | cut -f2"
    plain, privileged = (int(sees(environment, name, capabilities), 16) for name in ("plain", "all"))
    assert privileged & ~plain != 0
    terminal = "readlink /proc/1/fd/0"
    assert sees(environment, "plain", terminal) == "/dev/null"
    assert sees(environment, "all", terminal).startswith("/dev/pts/")


RIGHTS = f"""
x-platform: {{full: true}}
services:
  rights:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    group_add: [1234]
    sysctls: {{net.ipv4.ip_unprivileged_port_start: 81}}
    security_opt: [no-new-privileges, seccomp=unconfined]
    platform: linux
"""


def test_rights_of_a_program(environment: Environment) -> None:
    """A program is in more groups, has its kernel parameters, and is confined as `security_opt` says."""
    environment.deploy(RIGHTS).expect()

    assert "1234" in sees(environment, "rights", "id -G").split()
    assert sees(environment, "rights", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start") == "81"
    limits = "grep -E '^(NoNewPrivs|Seccomp):' /proc/1/status"
    confined = dict(line.split(":\t") for line in sees(environment, "rights", limits).splitlines())
    assert confined == {"NoNewPrivs": "1", "Seccomp": "0"}
