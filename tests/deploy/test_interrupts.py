"""Ctrl-C pressed once, at many moments of a deploy and a destroy: each ends, soon, and the next run needs no help."""

from __future__ import annotations

import signal
import time

from tests.conftest import ENDURANCE, has_long_round
from tests.deploy.conftest import SLEEP, Environment

#: A command that is interrupted has so many seconds for what must not be cut.
ENDS_WITHIN = 30
#: So many presses, each a moment later after its deploy's start.
NUMBER, STEP = (24, 0.25) if ENDURANCE else (6, 1)
#: Pods that are never ready are waited for: no deploy ends by itself before it is interrupted.
FILE = f"""\
services:
  web:
    image: 'busybox:1.37'
    command: "{SLEEP}"
    stop_grace_period: 0
    environment: {{A: '%d'}}
    healthcheck: {{test: [CMD, 'false'], interval: 600s, start_period: 600s}}
"""


@has_long_round
def test_a_press_at_any_moment_of_a_deploy(environment: Environment) -> None:
    """A press is not lost while programs are looked for, Pulumi is imported and run, pods are waited for."""
    late = {}
    for number in range(NUMBER):
        offset = STEP * number
        environment.write(FILE % number)
        process = environment.start("deploy", "--timeout", "200")
        time.sleep(offset)
        pressed = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=150)
        if time.monotonic() - pressed > ENDS_WITHIN or "Traceback" in messages or process.returncode != 130:
            late[offset] = process.returncode, round(time.monotonic() - pressed, 1), messages[-3000:]

    assert {offset: seen for offset, seen in late.items() if offset or seen[0] != -signal.SIGINT} == {}
    environment.platform("destroy", "--yes").expect()
