"""Random changes of a definition and of the cluster: a preview that leaves Pulumi out, or gives it a part, is right.

Each round changes something, and compares the preview with one that gives Pulumi everything. After the deploy, one that
gives it everything finds nothing to change. A deploy may be interrupted or killed before. In the end, the objects in
the cluster are those of a new environment with the same definition: nothing is left of the rounds.
"""

from __future__ import annotations

import difflib
import json
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.local.cluster import LocalCluster
from tests.conftest import ENDURANCE, has_long_round
from tests.deploy.conftest import Environment, Ran, an_environment
from tests.deploy.definition_changes import EDITS, Definition, initial, settle
from tests.deploy.test_no_change import SWITCH, comparable

SEEDS, ROUNDS = ((1, 2, 3), 40) if ENDURANCE else ((1,), 3)
KINDS = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "PersistentVolumeClaim"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
)
#: What the cluster sets, a label that is a person's, and the time of `platform restart`: without it pods would restart.
BY_CLUSTER = {
    "batch.kubernetes.io/controller-uid",
    "clusterIP",
    "clusterIPs",
    "controller-uid",
    "creationTimestamp",
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "dev.platform.com/restarted-at",
    "dev.platform.com/salt",
    "generation",
    "managedFields",
    "mine",
    "resourceVersion",
    "status",
    "uid",
    "volumeName",
}
OF_BOUND_CLAIM = re.compile(r"pv\.kubernetes\.io/|volume(\.beta)?\.kubernetes\.io/")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)


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
    commands += [("rollback",), ("destroy",), ("deploy", "--profile", "off")]
    if pick.random() < 0.3:
        return end_deploy(pick, environment)
    if pick.random() < 0.4:
        with environment.api() as api:
            return change_cluster(pick, api, environment.namespace, services)
    command = pick.choice(commands)
    ran = environment.platform(*command, "--progress", "quiet")
    return f"platform {' '.join(command)} ends with {ran.status}"


def end_deploy(pick: random.Random, environment: Environment) -> str:
    """Interrupt or kill a deploy at any moment."""
    ending, after = pick.choice(SIGNALS), pick.uniform(0.2, 4)
    process = environment.start("deploy")
    time.sleep(after)
    process.send_signal(ending)
    process.communicate(timeout=200)
    return f"a deploy gets {ending.name} after {after:.1f} s and ends with {process.returncode}"


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


# the objects ----------------------------------------------------------------------------------------------------------


def manifests(environment: Environment) -> list[str]:
    """Return the lines of all objects but pods and the history, without what differs from cluster to cluster."""
    return [
        line
        for version, kind in KINDS
        for found in sorted(environment.objects(version, kind), key=lambda found: str(found["metadata"]["name"]))
        if not found["metadata"]["name"].startswith("platform-history.")
        for line in lines_of(f"{kind}/{found['metadata']['name']}", found, environment.namespace)
    ]


def lines_of(path: str, value: Any, namespace: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key in sorted(key for key in value if key not in BY_CLUSTER and not OF_BOUND_CLAIM.match(key)):
            yield from lines_of(f"{path}.{key}", value[key], namespace)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from lines_of(f"{path}.{index}", item, namespace)
    else:
        yield re.sub(r"[0-9a-f]{8,}\S*", "HASH", f"{path}: {value}".replace(namespace, "NAMESPACE"))


@has_long_round
@pytest.mark.parametrize("seed", SEEDS)
def test_random_changes(environment: Environment, cluster: LocalCluster, tmp_path: Path, seed: int) -> None:
    pick = random.Random(seed)  # noqa: S311 -- nothing is kept secret by it
    definition, done = initial(), []
    environment.variables["KEY"] = "k"
    write(environment, definition, pick)
    environment.deploy().expect()
    for number in range(ROUNDS):
        done.append(f"round {number}")
        done += [pick.choice(EDITS)(pick, definition) for _ in range(pick.randrange(4))]
        settle(definition)
        done.append(write(environment, definition, pick))
        if pick.random() < 0.4:
            done.append(change_beside(pick, environment, definition))
        history = "\n".join(done)

        shown = environment.platform("preview", "--diff")
        whole = environment.platform("preview", "--diff", **{SWITCH: "false"})
        found = differences(without_hashes(whole), without_hashes(shown))
        assert not found, f"{history}\n{found}"
        environment.deploy().expect()
        after = environment.platform("preview", "--diff", **{SWITCH: "false"}).expect()
        assert "no changes" in after.stderr + after.stdout, f"{history}\n{after.stdout}\n{after.stderr}"

    # What a person has changed in an object, only this restores.
    environment.deploy("", "--refresh").expect()
    with an_environment(cluster, environment.folder, tmp_path / "new") as new:
        new.variables |= {name: environment.variables[name] for name in ("KEY", "TAG")}
        new.deploy().expect()
        left = list(difflib.unified_diff(manifests(new), manifests(environment), "new", "changed", lineterm="", n=0))
    assert not left, "\n".join([*done, *left])
