"""The script of hooks, run by the shell that pods have."""

from __future__ import annotations

import shutil
import subprocess

from composeplat.plan.tools import BUSYBOX
from tests.conftest import Project

DEFINITION = """
services:
  web:
    image: x
    post_start:
      - command: [env]
        environment: {A: "1", my.var: "2 'x'", a-b: "$$A", -x: "5"}
"""


def test_variables_of_a_hook(project: Project) -> None:
    """A hook gets its variables by their names, those that no shell can export too."""
    reading = project(DEFINITION).read(full=True)
    container, busybox = reading.container("Deployment", "web"), shutil.which("busybox")
    assert busybox, "apt-get install busybox-static"
    (service,) = reading.loaded.project.services.values()
    _, *args = container["lifecycle"]["postStart"]["exec"]["command"]

    done = subprocess.run(
        [busybox, *(arg.replace(BUSYBOX, busybox) for arg in args)],
        env={**service.variables, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    found = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert {name: found.get(name) for name in ("A", "my.var", "a-b", "-x")} == {
        "A": "1",
        "my.var": "2 'x'",
        "a-b": "$A",
        "-x": "5",
    }


AMONG_OTHERS = """\
x-platform: {full: true}
services:
  node: {image: a, pid: host, stop_signal: SIGINT}
  both: {image: a, pid: host, init: true, stop_signal: SIGINT}
  first: {image: a, init: true, stop_signal: SIGINT}
  joined: {image: a, stop_signal: SIGINT}
  joins: {image: a, pid: 'service:joined', stop_signal: SIGINT}
  near: {image: a, stop_signal: SIGINT}
  reaped: {image: a, init: true, network_mode: 'service:near', stop_signal: SIGINT}
  alone: {image: a, stop_signal: SIGINT}
  beside: {image: a, network_mode: 'service:alone', stop_signal: SIGINT}
"""


def test_the_signal_among_the_processes_of_others(project: Project) -> None:
    """Process 1, of the node or of the pod, gets none: the program is found by its cgroups."""
    reading = project(AMONG_OTHERS).read()
    pods = ["node", "both", "first", "joined", "near", "alone"]
    containers = [container for name in pods for container in reading.pod("Deployment", name)["containers"]]
    scripts = {found["name"]: found["lifecycle"]["preStop"]["exec"]["command"][-1] for found in containers}

    assert {name for name, script in scripts.items() if script.startswith("program=1\n")} == {"alone", "beside"}
    assert len(scripts) == 9


def test_a_program_without_a_cgroup_of_its_own(project: Project) -> None:
    """Nothing gets a signal where process 1 has the same cgroups."""
    reading = project(AMONG_OTHERS).read()
    script = reading.container("Deployment", "node")["lifecycle"]["preStop"]["exec"]["command"][-1]
    found, _, _ = script.partition("kill -s")
    first, own, busybox = "/proc/1/cgroup", "/proc/self/cgroup", shutil.which("busybox")
    assert busybox, "apt-get install busybox-static"
    assert (first in found, own in found) == (True, True)
    others = '[ "$own" != "$first" ] || exit 0'
    programs = [
        subprocess.run(
            [busybox, "sh", "-c", f"{script}echo $program"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for script in (found.replace(first, own), found.replace(others, ""))
    ]

    assert programs[0] == ""
    assert programs[1].isdigit()
