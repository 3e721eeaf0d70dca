"""A change of one service is given to Pulumi alone, and leaves the state as a run of everything would."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import for_endurance
from tests.deploy.conftest import SLEEP, Environment, Ran
from tests.deploy.test_no_change import SWITCH

FILE = f"""\
x-app: &app {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
services:
  db: {{<<: *app, environment: {{SIZE: small}}, volumes: ['data:/data']}}
  cache: *app
  api:
    <<: *app
    environment: {{COLOR: red}}
    configs: [app]
    depends_on: {{db: {{condition: service_started, restart: true}}}}
  web: {{<<: *app, command: httpd -f -p 80, ports: ['80'], scale: 1}}
  worker: *app
  mail: *app
  queue: *app
volumes: {{data: {{}}}}
configs: {{app: {{content: one}}}}
"""
CHANGES = {
    "a variable": ("COLOR: red", "COLOR: blue", "2 of 7"),
    "a variable of a service that others restart with": ("SIZE: small", "SIZE: large", "2 of 7"),
    "a command": ("httpd -f -p 80", "httpd -f -p 80 -v", "1 of 7"),
    "a number of pods": ("scale: 1", "scale: 2", "1 of 7"),
    "a config": ("content: one", "content: two", "2 of 7"),
}
#: It has what most others have, too: an object of its own, and another service to restart.
COMMON = "a variable of a service that others restart with"


def given(ran: Ran) -> str:
    """How many services Pulumi was given; if it was given all, the reasons for it."""
    found = re.search(r"Pulumi is given (\d+ of \d+) services", ran.stderr)
    return found[1] if found else "\n".join(re.findall(r".*Pulumi has to look for changes.*", ran.stderr))


def state_of(environment: Environment) -> dict[str, Any]:
    """The resources in the state by URN, with all but the time of their last change."""
    (path,) = Path(environment.variables["COMPOSEPLAT_DATA"]).glob(
        f"state/*/.pulumi/stacks/{environment.name}/{environment.namespace}.json"
    )
    deployment = json.loads(path.read_text())["checkpoint"]["latest"]
    assert not deployment.get("pending_operations")
    return {found["urn"]: {**found, "modified": ""} for found in deployment["resources"]}


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """The paths at which two values differ, with both values.

    Each run encrypts secrets again, and the state names the hooks of what the last run registered alone.
    """
    if path.endswith(("/ciphertext", "/resourceHooks")):
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(before.keys() | after.keys())
        return [found for name in names for found in differences(before.get(name), after.get(name), f"{path}/{name}")]
    if isinstance(before, list) and "ependencies" in path:
        before, after = sorted(before), sorted(after)
    return [] if before == after else [f"{path}: {before} -> {after}"]


@pytest.mark.parametrize("change", [COMMON, *for_endurance(*(name for name in CHANGES if name != COMMON))])
def test_the_same_state(environment: Environment, change: str) -> None:
    """A run of everything afterwards finds no change, and each resource with the same inputs and dependencies."""
    before, after, services = CHANGES[change]
    environment.variables["PLATFORM_FULL"] = "true"
    environment.write(FILE)
    first = environment.platform("deploy", "--debug").expect()
    assert "the next run has to ask Pulumi too" not in first.stderr, first.stderr
    environment.write(FILE.replace(before, after))

    shown = environment.platform("preview", "--debug").expect()
    everything = environment.platform("preview", **{SWITCH: "false"}).expect()
    assert given(shown) == services
    assert shown.stdout == everything.stdout
    changed = environment.platform("deploy", "--debug").expect()
    assert given(changed) == services
    state = state_of(environment)
    again = environment.platform("deploy", **{SWITCH: "false"}).expect()
    assert "nothing changed" in again.stderr
    found = differences(state, state_of(environment))
    assert not found, "\n".join(found)
    assert environment.platform("deploy", "--debug").expect().stdout == again.stdout
