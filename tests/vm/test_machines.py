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
_DEMO_TIMEOUT_S = 3600.0
#: How many lines must be on the disk before the machine loses its power.
_LINES = 20
_A_DAY_S = 86400
_SUSPENDED_S = 120
#: Appends numbers to a file of the volume, and prints each when the file is on the disk.
_WRITER = r"""'i=0; while :; do i=$((i + 1)); echo line $i >> /data/lines; sync; echo stored $i; done'"""


def run_demo(machine: Machine) -> str:
    """Run ``make demo``: it starts the cluster, deploys the shop and asks its addresses; return what it prints.

    An emulated machine may be too slow for the time that the cluster has to start: the next run continues waiting.
    """
    for _ in range(3):
        command = "make -C /root/platform demo 2>&1 | tee /dev/ttyS0; (exit ${PIPESTATUS[0]})"
        status, printed = machine.run(command, timeout_s=_DEMO_TIMEOUT_S)
        if status == 0:
            break
    assert status == 0, printed[-4000:]
    return printed


def test_cgroups(machine: Machine) -> None:
    """The machine has no cgroups of version 1."""
    _, printed = machine.run("grep cgroup /proc/mounts; true")

    assert [line.split()[2] for line in printed.splitlines() if line.startswith("cgroup")] in (["cgroup2"], [])


def test_demo(machine: Machine) -> None:
    """On a bare Debian ``make demo`` installs what is missing, starts the cluster and deploys the shop."""
    assert "the shop sells: " in run_demo(machine)


def test_limits(machine: Machine) -> None:
    """A pod is in a cgroup of version 2, below that of the cluster, with the controllers that limit it."""
    status, printed = machine.run("cat /sys/fs/cgroup/composeplat/kubepods/*/*/cgroup.controllers | sort -u")

    assert status == 0
    assert {"cpu", "memory", "pids"} <= set(printed.splitlines()[-1].split())


def test_units(machine: Machine) -> None:
    """The tests of the cluster that need no other machine pass on it."""
    names = "tests/local/test_parts.py tests/local/test_supervisor.py tests/local/test_private_folder.py"
    status, printed = machine.run(f"cd /root/platform && .venv/bin/pytest -q {names} 2>&1", timeout_s=_DEMO_TIMEOUT_S)

    assert status == 0, printed[-4000:]


def test_lost_power(machine: Machine) -> None:
    """What a pod stored on its volume is there after the machine lost its power during a deploy."""
    deploy = f"cd /root/platform/examples/shop && GREETING=Hello {_PLATFORM} deploy --local --namespace demo"
    machine.run(f"cd /root/platform/examples/shop; ({_PLATFORM} exec --no-tty --local --namespace demo db "
                f"sh -c {_WRITER} >/dev/ttyS0 2>&1 &) ; ({deploy} >/root/deploy.log 2>&1 &)")  # fmt: skip
    stored = wait_for_lines(machine)
    machine.kill()
    machine.start()
    run_demo(machine)
    status, printed = machine.run(
        f"cd /root/platform/examples/shop; {_PLATFORM} exec --no-tty --local --namespace demo db cat /data/lines"
    )
    lines = re.findall(r"line (\d+)", printed)

    assert status == 0, printed[-4000:]
    assert lines[:stored] == [str(number + 1) for number in range(stored)]


def wait_for_lines(machine: Machine) -> int:
    """Return how many lines were stored when enough of them were."""
    deadline = time.monotonic() + _DEMO_TIMEOUT_S
    while time.monotonic() < deadline:
        stored = [int(number) for number in re.findall(r"stored (\d+)\r?\n", machine.console)]
        if stored and stored[-1] >= _LINES:
            return stored[-1]
        time.sleep(1)
    pytest.fail(f"nothing was stored: {machine.console[-2000:]}")


@pytest.mark.parametrize("shift_s", [_A_DAY_S, -_A_DAY_S, 0], ids=["ahead", "behind", "right"])
def test_changed_clock(machine: Machine, shift_s: int) -> None:
    """A day ahead, a day behind and right again, the shop is reached and can be deployed."""
    status, printed = machine.run(f"date -s @{time.time() + shift_s:.0f}")

    assert status == 0, printed
    assert "the shop sells: " in run_demo(machine)


def test_suspended_machine(machine: Machine) -> None:
    """When the machine continues, with the time of its clock, the shop is reached and can be deployed."""
    machine.monitor("stop")
    time.sleep(_SUSPENDED_S)
    machine.monitor("cont")
    machine.run(f"date -s @{time.time():.0f}")

    assert "the shop sells: " in run_demo(machine)


def test_stop_leaves_nothing(machine: Machine) -> None:
    """After a stop there is no cgroup and no process of the cluster."""
    status, printed = machine.run(f"{_PLATFORM} cluster stop")
    _, left = machine.run("ls -d /sys/fs/cgroup/composeplat /run/composeplat; pgrep -f composeplat.local; true")

    assert status == 0, printed
    assert [line for line in left.splitlines() if "No such file" not in line and line] == []
