"""Random changes of a definition and of the cluster: a preview that leaves Pulumi out, or gives it a part, is right.

Each round changes something, and compares the preview with one that gives Pulumi everything. After the deploy, one that
gives it everything finds nothing to change.
"""

from __future__ import annotations

import difflib
import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from composeplat.cluster.api import Api, ApiError
from tests.conftest import ENDURANCE, has_long_round
from tests.deploy.conftest import Environment, Ran
from tests.deploy.test_no_change import SWITCH, comparable

SEEDS, ROUNDS = ((1, 2, 3), 40) if ENDURANCE else ((1,), 3)
NAMES = ("api", "web", "db", "worker", "mail", "cache")
PROGRAM = {"image": "busybox:1.37", "command": "sleep 100000", "stop_grace_period": 0, "init": True}
Definition = dict[str, Any]


def initial() -> Definition:
    services: dict[str, Any] = {name: dict(PROGRAM) for name in NAMES[:5]}
    services["db"]["volumes"] = ["data:/data"]
    services["web"]["ports"] = ["80"]
    services["web"]["command"] = "httpd -f -p 80"
    return {
        "x-platform": {"full": True},
        "services": services,
        "volumes": {"data": {}},
        "configs": {"app": {"content": "one"}},
        "secrets": {"key": {"environment": "KEY"}},
    }


# changes of the definition --------------------------------------------------------------------------------------------


def change_variable(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"]))
    value = pick.choice(["red", "blue", "${TAG}", "$$(A)"])
    definition["services"][name]["environment"] = {"COLOR": value, pick.choice("AB"): "1"}
    return f"environment of {name}: {value}"


def change_scale(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"].keys() - {"once"}))
    definition["services"][name]["scale"] = scale = pick.randrange(3)
    return f"scale of {name}: {scale}"


def change_label(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"]))
    definition["services"][name]["labels"] = {"team": pick.choice("abc")}
    return f"labels of {name}"


def change_dependencies(pick: random.Random, definition: Definition) -> str:
    """A service depends on some of those whose name comes before."""
    services = definition["services"]
    name = pick.choice(sorted(services))
    before = [other for other in sorted(services) if other < name and other != "once"]
    chosen = pick.sample(before, min(len(before), pick.randrange(3)))
    condition = {"condition": "service_started", "restart": pick.random() < 0.5}
    services[name]["depends_on"] = {other: dict(condition) for other in chosen}
    return f"depends_on of {name}: {chosen}"


def change_files(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"]))
    service = definition["services"][name]
    service["configs"] = ["app"] if pick.random() < 0.6 else []
    service["secrets"] = ["key"] if pick.random() < 0.4 else []
    return f"files of {name}: {service['configs']} {service['secrets']}"


def change_config(pick: random.Random, definition: Definition) -> str:
    definition["configs"]["app"]["content"] = content = pick.choice(["one", "two", "three"])
    return f"content of the config: {content}"


def change_volumes(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(["worker", "mail", "cache"])
    if name not in definition["services"]:
        return "nothing"
    volumes = pick.choice([[], ["./conf:/etc/conf"], [f"{name}:/data"], ["/scratch"]])
    definition["services"][name]["volumes"] = volumes
    definition["volumes"].setdefault(name, {})
    return f"volumes of {name}: {volumes}"


def change_ports(pick: random.Random, definition: Definition) -> str:
    service = definition["services"]["web"]
    service["ports"] = ports = pick.choice([["80"], ["8080:80"], ["80", "8081:81/udp"]])
    service["expose"] = pick.choice([[], ["9000"]])
    return f"ports of web: {ports}"


def change_networks(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"]))
    networks = pick.choice([["default"], ["back"], ["back", "default"]])
    definition["networks"] = {"back": {}, "default": {}}
    definition["services"][name]["networks"] = networks
    return f"networks of {name}: {networks}"


def change_job(pick: random.Random, definition: Definition) -> str:
    """A Job comes, changes or leaves."""
    if "once" in definition["services"] and pick.random() < 0.5:
        del definition["services"]["once"]
        return "no job"
    definition["services"]["once"] = {**PROGRAM, "restart": "no", "command": pick.choice(["true", "echo a"])}
    return "a job"


def change_presence(_pick: random.Random, definition: Definition) -> str:
    """A service comes or leaves."""
    services = definition["services"]
    if "cache" not in services:
        services["cache"] = dict(PROGRAM)
        return "cache comes"
    del services["cache"]
    for service in services.values():
        service.get("depends_on", {}).pop("cache", None)
    return "cache leaves"


EDITS: tuple[Callable[[random.Random, Definition], str], ...] = (
    change_variable,
    change_scale,
    change_label,
    change_dependencies,
    change_files,
    change_config,
    change_volumes,
    change_ports,
    change_networks,
    change_job,
    change_presence,
)


# changes beside it ----------------------------------------------------------------------------------------------------


def change_cluster(pick: random.Random, api: Api, namespace: str, services: list[str]) -> str:
    """Do with an object what a person does by hand."""
    name = pick.choice(services)
    deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    service = f"/api/v1/namespaces/{namespace}/services/{name}"
    acts: dict[str, Callable[[], object]] = {
        "deletes the Service": lambda: api.delete(service),
        "deletes the Deployment": lambda: api.delete(deployment),
        "scales the Deployment": lambda: api.patch(deployment, {"spec": {"replicas": 2}}),
        "labels the Service": lambda: api.patch(service, {"metadata": {"labels": {"mine": "1"}}}),
        "unlabels it": lambda: api.patch(service, {"metadata": {"labels": {"app.kubernetes.io/name": None}}}),
        "edits the Deployment": lambda: api.patch(deployment, {"spec": {"minReadySeconds": 1}}),
    }
    what = pick.choice(sorted(acts))
    try:
        acts[what]()
    except ApiError as error:
        return f"a person {what}, {name}, which is refused with {error.status}"
    return f"a person {what}, {name}"


def change_beside(pick: random.Random, environment: Environment, definition: Definition) -> str:
    services = sorted(definition["services"])
    name = pick.choice(services)
    commands = [("restart", name), ("sleep",), ("wake",), ("refresh",), ("deploy", name), ("deploy", "--refresh")]
    if pick.random() < 0.5:
        with environment.api() as api:
            return change_cluster(pick, api, environment.namespace, services)
    command = pick.choice(commands)
    ran = environment.platform(*command, "--progress", "quiet")
    return f"platform {' '.join(command)} ends with {ran.status}"


# the rounds -----------------------------------------------------------------------------------------------------------


def without_hashes(ran: Ran) -> list[str]:
    """The lines of a preview, without the hashes of new values: each run has another salt."""
    status, output, messages = comparable(ran)
    return [f"exit {status}", *re.sub(r"'?[0-9a-f]{16,}\S*", "HASH", output).splitlines(), *messages]


def differences(whole: list[str], shown: list[str]) -> str:
    return "\n".join(difflib.unified_diff(whole, shown, "with everything", "as shown", lineterm="", n=1))


def write(environment: Environment, definition: Definition, pick: random.Random) -> str:
    environment.write(json.dumps(definition, indent=1))
    content = pick.choice(["a", "b"])
    environment.write(content, "conf/a.conf")
    environment.variables["TAG"] = tag = pick.choice(["1", "1", "2"])
    return f"conf/a.conf: {content}, TAG={tag}"


@has_long_round
@pytest.mark.parametrize("seed", SEEDS)
def test_random_changes(environment: Environment, seed: int) -> None:
    pick = random.Random(seed)  # noqa: S311 -- nothing is kept secret by it
    definition, done = initial(), []
    environment.variables["KEY"] = "k"
    write(environment, definition, pick)
    environment.deploy().expect()
    for number in range(ROUNDS):
        done.append(f"round {number}")
        done += [pick.choice(EDITS)(pick, definition) for _ in range(pick.randrange(3))]
        done.append(write(environment, definition, pick))
        if pick.random() < 0.35:
            done.append(change_beside(pick, environment, definition))
        history = "\n".join(done)

        shown = environment.platform("preview", "--diff")
        whole = environment.platform("preview", "--diff", **{SWITCH: "false"})
        found = differences(without_hashes(whole), without_hashes(shown))
        assert not found, f"{history}\n{found}"
        environment.deploy().expect()
        after = environment.platform("preview", "--diff", **{SWITCH: "false"}).expect()
        assert "no changes" in after.stderr + after.stdout, f"{history}\n{after.stdout}\n{after.stderr}"
