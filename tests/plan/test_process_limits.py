"""The script that sets limits, run by the shell that pods have."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import Project

_NOBODY = 65534
_DEFINITION = """
services:
  web:
    image: x
    entrypoint: [sh, -c, "ulimit -Sn; ulimit -Hn"]
    ulimits: {nofile: {soft: SOFT, hard: HARD}, core: 1000}
"""


def run_script(project: Project, soft: int, hard: int) -> subprocess.CompletedProcess[str]:
    """Run the command of the container as a user who may raise no limit, with 500 open files."""
    definition = _DEFINITION.replace("SOFT", str(soft)).replace("HARD", str(hard))
    reading = project(definition).read(full=True)
    assert reading.plan is not None, reading.messages
    (workload,) = (o.manifest for o in reading.plan.objects if o.kind == "Deployment")
    _, *args = workload["spec"]["template"]["spec"]["containers"][0]["command"]
    busybox = shutil.which("busybox")
    assert busybox, "apt-get install busybox-static"
    command = ["bash", "-c", 'ulimit -n 500; exec "$@"', "bash", busybox, *(arg.replace("$$", "$") for arg in args)]
    return subprocess.run(command, user=_NOBODY, capture_output=True, text=True, check=True, timeout=60, cwd="/")


@pytest.mark.parametrize(("soft", "hard"), [pytest.param(300, 400, id="lower"), pytest.param(500, 500, id="equal")])
def test_limits_of_the_program(project: Project, soft: int, hard: int) -> None:
    """The program has both limits."""
    done = run_script(project, soft, hard)

    assert done.stdout.split() == [str(soft), str(hard)]
    assert done.stderr == ""


def test_above_the_hard_limit(project: Project) -> None:
    """Where the hard limit can't be raised, the log has its number, and the program gets that."""
    done = run_script(project, 700, 800)

    assert done.stdout.split() == ["500", "500"]
    assert done.stderr == "ulimits: nofile can't be 800: the hard limit here is 500\n"
