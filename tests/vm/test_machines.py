"""The README's commands on a bare machine, and what a cluster survives: no power, another time, a suspended machine.

The tests of a machine share its disks and run in their order.
"""

from __future__ import annotations

import re
import time

import pytest

from tests.vm.machine import Machine

pytestmark = [pytest.mark.cluster, pytest.mark.vm]

_PLATFORM = "/root/platform/.venv/bin/platform"
_PROJECT = "/root/lines"
_IN_PROJECT = f"cd {_PROJECT} && export PLATFORM_NAMESPACE=vm &&"
_TIMEOUT_S = 3600.0
#: How many lines must be on the disk before the machine loses its power.
_LINES = 20
_A_DAY_S = 86400
_SUSPENDED_S = 120
#: The one image of the project, made of the machine's busybox.
_PUSH = "import os; from composeplat.local import base_images as i; i.push_busybox(('127.0.0.1', 5000), os.environ)"
#: ``store`` appends numbers to a file of its volume, and prints each when the file is on the disk.
_COMPOSE = """\
services:
  web:
    image: busybox:1.37
    command: httpd -f -p 8080 -h /etc
    ports: ["8080"]
    environment: {ROUND: "${ROUND:-}"}
    mem_limit: 64m
    stop_grace_period: 0s
  store:
    image: busybox:1.37
    command: >-
      sh -c 'i=$$(wc -l </data/lines); while :; do i=$$((i + 1)); echo line $$i >>/data/lines; sync; echo stored $$i;
      sleep 0.2; done'
    stop_grace_period: 0s
    volumes: ["data:/data"]
volumes: {data: {}}
"""


#: A check of the demo's services takes seconds here, and one every two seconds leaves no processor for the services.
_SLOW_CHECKS = """\
services:
  api: {healthcheck: {interval: 20s, timeout: 20s}}
  db: {healthcheck: {interval: 20s, timeout: 20s}}
  cache: {healthcheck: {interval: 20s, timeout: 20s}}
"""


def run_to_end(machine: Machine, command: str, *, times: int = 1) -> str:
    """Run a command that must succeed, at the latest the last time, and return its output."""
    printed = ""
    for _ in range(times):
        status, printed = machine.run(
            f"({command}) 2>&1 | tee /dev/ttyS0; (exit ${{PIPESTATUS[0]}})", timeout_s=_TIMEOUT_S
        )
        if status == 0:
            return printed
    pytest.fail(printed[-4000:])


def start_cluster(machine: Machine) -> None:
    """Start the cluster, which waits on a slow machine as long as it makes progress."""
    run_to_end(machine, f"time {_PLATFORM} cluster start")


def deploy(machine: Machine, round_name: str = "") -> str:
    """Deploy the project, with changed pods of ``web`` in a new round, and return what ``web`` answers to ``store``."""
    ask = f"{_PLATFORM} exec --local --no-tty store wget -qO- http://web:8080/group"
    command = f"{_IN_PROJECT} ROUND={round_name} {_PLATFORM} deploy --local --timeout 1200 && {ask}"
    return run_to_end(machine, command, times=2)


def test_cgroups(machine: Machine) -> None:
    """The machine has no cgroups of version 1."""
    _, printed = machine.run("grep cgroup /proc/mounts; true")

    assert [line.split()[2] for line in printed.splitlines() if line.startswith("cgroup")] in (["cgroup2"], [])


def test_start(machine: Machine) -> None:
    """On a bare Debian the command installs what is missing, and the cluster runs pods that reach each other."""
    run_to_end(machine, f"{_PLATFORM} setup --cluster --install")
    start_cluster(machine)
    run_to_end(machine, f'/root/platform/.venv/bin/python -c "{_PUSH}"')
    run_to_end(machine, f"mkdir -p {_PROJECT} && cat >{_PROJECT}/compose.yaml <<'END'\n{_COMPOSE}END\n")

    assert "nobody" in deploy(machine)


def test_limits(machine: Machine) -> None:
    """A pod is in a cgroup of version 2, below that of the cluster, with the controllers that limit it."""
    status, printed = machine.run("cat /sys/fs/cgroup/composeplat/kubepods/*/*/cgroup.controllers | sort -u")

    assert status == 0
    assert {"cpu", "memory", "pids"} <= set(printed.splitlines()[-1].split())


def test_units(machine: Machine) -> None:
    """The tests of the cluster that need no other machine pass on it."""
    names = "tests/local/test_parts.py tests/local/test_supervisor.py tests/local/test_private_folder.py"

    run_to_end(machine, f"cd /root/platform && .venv/bin/pytest -q {names}")


def test_lost_power(machine: Machine) -> None:
    """What a pod stored on its volume is there after the machine lost its power during a deploy."""
    follow = f"{_IN_PROJECT} {_PLATFORM} logs --local --follow store"
    change = f"{_IN_PROJECT} ROUND=power {_PLATFORM} deploy --local"
    machine.run(f"({follow} >/dev/ttyS0 2>&1 &) ; (sleep 20; {change} >/root/deploy.log 2>&1 &)")
    stored = wait_for_lines(machine)
    machine.kill()
    machine.start()
    start_cluster(machine)
    deploy(machine)
    printed = run_to_end(machine, f"{_IN_PROJECT} {_PLATFORM} exec --local --no-tty store cat /data/lines")
    lines = re.findall(r"line (\d+)", printed)

    assert lines[:stored] == [str(number + 1) for number in range(stored)]


def wait_for_lines(machine: Machine) -> int:
    """Return how many lines were stored when enough of them were."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        stored = [int(number) for number in re.findall(r"stored (\d+)\r?\n", machine.console)]
        if stored and stored[-1] >= _LINES:
            return stored[-1]
        time.sleep(1)
    pytest.fail(f"nothing was stored: {machine.console[-2000:]}")


@pytest.mark.parametrize("shift_s", [_A_DAY_S, -_A_DAY_S, 0], ids=["ahead", "behind", "right"])
def test_changed_clock(machine: Machine, shift_s: int) -> None:
    """A day ahead, a day behind and right again, the pods are reached and can be deployed."""
    status, printed = machine.run(f"date -s @{time.time() + shift_s:.0f}")

    assert status == 0, printed
    assert "nobody" in deploy(machine, f"clock{shift_s}")


def test_suspended_machine(machine: Machine) -> None:
    """When the machine continues, with the time of its clock, the pods are reached and can be deployed."""
    machine.monitor("stop")
    time.sleep(_SUSPENDED_S)
    machine.monitor("cont")
    machine.run(f"date -s @{time.time():.0f}")

    assert "nobody" in deploy(machine)


def test_demo(machine: Machine) -> None:
    """``make demo`` deploys the shop, with slower health checks, and its page is served."""
    run_to_end(machine, f"cat >/root/platform/examples/shop/compose.override.yaml <<'END'\n{_SLOW_CHECKS}END\n")

    assert "the page shows 3 products" in run_to_end(machine, "make -C /root/platform demo", times=3)


def test_stop_leaves_nothing(machine: Machine) -> None:
    """After a stop there is no cgroup and no process of the cluster."""
    status, printed = machine.run(f"{_PLATFORM} cluster stop")
    _, left = machine.run("ls -d /sys/fs/cgroup/composeplat /run/composeplat; pgrep -f composeplat.local; true")

    assert status == 0, printed
    assert [line for line in left.splitlines() if "No such file" not in line and line] == []
