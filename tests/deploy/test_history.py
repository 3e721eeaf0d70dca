"""The history of an environment, in its namespace: who deployed what, when, and from which commit."""

from __future__ import annotations

import base64
import gzip
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.compose.test_repository import git
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_access import restrict

WRONG = {"PULUMI_CONFIG_PASSPHRASE": "wrong"}


def project(**services: str) -> str:
    rows = "\n".join(
        f"  {name}: {{image: '{image}', command: \"{SLEEP}\", stop_grace_period: 0, environment: {{TOKEN: '{image}'}}}}"
        for name, image in services.items()
    )
    return f"services:\n{rows}\n"


def history(environment: Environment, *args: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = environment.platform("history", "--json", *args).expect().json["revisions"]
    return rows


def secrets(environment: Environment) -> dict[str, dict[str, Any]]:
    """The Secrets of the history, by number."""
    prefix = f"platform-history.{environment.name}."
    return {
        found["metadata"]["name"].removeprefix(prefix): found
        for found in environment.objects("v1", "Secret")
        if found["metadata"]["name"].startswith(prefix)
    }


def changes(row: dict[str, Any]) -> dict[str, str]:
    return {change["part"]["name"]: change["operation"] for change in row["changes"]}


def test_deployments_of_an_environment(environment: Environment) -> None:
    """Each that changed something is a revision, with its changes, commit and user, and its secrets encrypted."""
    git(environment.folder, "init", "-q", "-b", "main")
    environment.write(project(web="busybox:1.37", old="busybox"))
    git(environment.folder, "add", ".")
    git(environment.folder, "commit", "-q", "-m", "first")
    environment.platform("deploy", USER="ann", LOGNAME="ann").expect()
    environment.platform("preview").expect()
    environment.deploy().expect()
    environment.deploy(project(web="busybox", new="busybox"), "--no-wait").expect()
    environment.platform("deploy", "--refresh").expect()

    second, first = history(environment)

    assert (first["revision"], first["command"], first["result"]) == (1, "deploy", "done")
    assert changes(first) == {"web": "create", "old": "create"}
    assert (first["branch"], first["dirty"], len(first["commit"])) == ("main", False, 40)
    assert first["who"].startswith("ann@")
    assert first["can_roll_back"]
    assert (second["revision"], second["result"], second["dirty"]) == (2, "applied", True)
    assert changes(second) == {"web": "update", "old": "delete", "new": "create"}
    (web,) = [change for change in second["changes"] if change["part"]["name"] == "web"]
    assert web["images"] == [{"old": "busybox:1.37", "new": "busybox"}]
    assert first["started"] < second["started"]
    shown = environment.platform("history", "2").expect().stdout
    assert "  image busybox:1.37 → busybox\n" in shown
    kept = secrets(environment)
    assert kept.keys() == {"1", "2"}
    packed = gzip.decompress(base64.b64decode(kept["2"]["data"]["objects"])).decode()
    token = base64.b64encode(b"busybox").decode()
    assert "workload/web" in packed
    assert token not in packed
    assert "ciphertext" in packed


def test_deployments_that_fail(environment: Environment) -> None:
    """One that failed, one that was interrupted and one that was killed are revisions, and not ones to go back to."""
    environment.deploy(project(web="busybox")).expect()
    environment.deploy("services: {web: {image: busybox, command: no-such-program, stop_grace_period: 0}}\n").expect(1)
    waiting = (
        "services:\n"
        f"  web: {{image: busybox, command: \"{SLEEP}\", stop_grace_period: 0, healthcheck: {{test: 'false'}}}}\n"
        "  late: {image: busybox, depends_on: {web: {condition: service_healthy}}}\n"
    )
    environment.write(waiting)
    interrupted = environment.start("deploy")
    until(lambda: history(environment)[0]["revision"] == 3 and is_waiting(environment))
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate(timeout=60)
    environment.write(waiting.replace("'false'", "'exit 1'"))
    killed = environment.start("deploy")
    until(lambda: history(environment)[0]["revision"] == 4 and is_waiting(environment))
    killed.kill()
    killed.communicate()

    rows = history(environment)

    assert [(row["revision"], row["result"], row["can_roll_back"]) for row in rows] == [
        (4, "unfinished", False), (3, "interrupted", False), (2, "failed", False), (1, "done", True),
    ]  # fmt: skip
    assert changes(rows[2]) == {"web": "update"}
    environment.deploy(project(web="busybox")).expect()
    assert [row["result"] for row in history(environment)][:2] == ["done", "unfinished"]


def is_waiting(environment: Environment) -> bool:
    workload = environment.get("apps/v1", "Deployment", "web")
    return bool(workload and "readinessProbe" in json.dumps(workload))


def test_a_deployment_that_changed_nothing_leaves_none(environment: Environment) -> None:
    """Such as one that could not begin."""
    environment.deploy(project(web="busybox")).expect()
    environment.write(project(web="busybox:1.37"))

    environment.platform("deploy", **WRONG).expect(4)

    assert [row["revision"] for row in history(environment)] == [1]


@pytest.mark.endurance
def test_as_many_are_kept(environment: Environment) -> None:
    """The last ten; later ones have higher numbers."""
    for number in range(12):
        environment.write(project(web="busybox").replace("'busybox'}", f"'{number}'}}"))
        environment.deploy("", "--no-wait").expect()

    assert [row["revision"] for row in history(environment)] == list(range(12, 2, -1))
    assert len(secrets(environment)) == 10


@pytest.mark.endurance
def test_destroy(environment: Environment) -> None:
    """It is a revision while volumes stay; with them, the history goes."""
    environment.deploy(
        f"services: {{db: {{image: busybox, command: \"{SLEEP}\", stop_grace_period: 0, volumes: ['data:/d']}}}}\n"
        "volumes: {data: {}}\n"
    ).expect()
    environment.platform("destroy").expect()

    last, first = history(environment)
    assert (last["command"], changes(last), last["can_roll_back"]) == ("destroy", {"db": "delete"}, False)
    assert first["can_roll_back"]

    environment.platform("destroy", "--volumes", "--yes").expect()
    assert secrets(environment) == {}
    environment.deploy(project(web="busybox")).expect()
    environment.platform("destroy").expect()
    assert secrets(environment) == {}


def test_another_machine(environment: Environment, tmp_path: Path) -> None:
    """It sees the same history, and continues its numbers."""
    backend = tmp_path / "share"
    backend.mkdir()
    shared = {"PULUMI_BACKEND_URL": f"file://{backend}", "PULUMI_CONFIG_PASSPHRASE": "shared"}
    environment.write(project(web="busybox:1.37"))
    environment.platform("deploy", **shared).expect()
    environment.write(project(web="busybox"))

    elsewhere = environment.platform("deploy", **shared, COMPOSEPLAT_DATA=str(tmp_path / "elsewhere")).expect()

    assert "updated" in elsewhere.stderr
    assert [row["revision"] for row in history(environment)] == [2, 1]


@pytest.mark.endurance
def test_another_machine_without_the_state(environment: Environment, tmp_path: Path) -> None:
    """Its destroy finds the objects by their labels, and is in the history with what it deleted."""
    environment.deploy(
        f"services: {{db: {{image: busybox, command: \"{SLEEP}\", stop_grace_period: 0, volumes: ['data:/d']}}}}\n"
        "volumes: {data: {}}\n"
    ).expect()
    environment.platform("destroy", COMPOSEPLAT_DATA=str(tmp_path / "elsewhere")).expect()

    last, _ = history(environment)
    assert (last["command"], last["result"], changes(last)) == ("destroy", "done", {"db": "delete"})


def test_an_account_that_may_not_keep_a_history(environment: Environment) -> None:
    """Its deploy says so in a note, and is done all the same."""
    account = str(restrict(environment, [], "secrets"))
    environment.write(f'services: {{web: {{image: busybox, command: "{SLEEP}", stop_grace_period: 0}}}}\n')

    done = environment.platform("deploy", "--kubeconfig", account).expect()

    assert "this deployment is not in the history: can't read the history: you may not list secrets" in done.stderr
    assert environment.names() == {"Deployment/web", "Service/web"}
    environment.platform("history", "--kubeconfig", account).expect(4)
