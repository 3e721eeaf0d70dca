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
