"""An environment that the release before deployed: this version continues with it, and replaces nothing.

The release is built from the history of this repository and installed in an environment of its own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from composeplat import __version__
from composeplat.cluster.kinds import kind_path
from tests.conftest import split_log_path
from tests.deploy.conftest import PLATFORM, Environment, Ran, until
from tests.deploy.release import run
from tests.stability.kept_state import comparable, read_state, write_state
from tests.stability.release_before import BEFORE, has_history, install_release

PROJECT = Path(__file__).parents[1] / "stability" / "environment"
#: The workloads whose pods this version replaces with its first deploy, since their templates had to change, and why.
NEW_TEMPLATES: dict[str, str] = {}
KINDS = (
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("v1", "ConfigMap"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    ("v1", "Secret"),
    ("v1", "Service"),
)
pytestmark = [
    pytest.mark.build,
    pytest.mark.skipif(not has_history(), reason=f"the history lacks release {BEFORE.version}: git fetch --unshallow"),
]


@pytest.fixture(scope="module")
def platform_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    command = install_release(tmp_path_factory.mktemp("before"))
    assert run(command, "--version", folder=command.parent) == f"{BEFORE.version}\n"
    return command


@pytest.fixture
def project(environment: Environment) -> Environment:
    """The project with an object of each kind."""
    shutil.copytree(PROJECT, environment.folder, dirs_exist_ok=True)
    (environment.folder / "more.yaml").unlink()
    environment.variables |= {"TOKEN": "planted-token"}
    return environment


def run_before(platform: Path, environment: Environment, *args: str) -> None:
    variables = {name: value for name, value in environment.variables.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [platform, *args], cwd=environment.folder, env=variables, capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL, timeout=250,
    )  # fmt: skip
    stderr, log = split_log_path(done.stderr)
    Ran(done.returncode, done.stdout, stderr, 0, log).expect()


def uids(environment: Environment) -> dict[str, str]:
    """The ids of all objects, by kind and name."""
    with environment.api() as api:
        found = [
            (kind, item["metadata"])
            for version, kind in KINDS
            for item in api.items(kind_path(version, kind, environment.namespace))
        ]
    return {f"{kind} {metadata['name']}": metadata["uid"] for kind, metadata in found}


def rows(environment: Environment) -> str:
    return environment.exec("db-0", "cat", "/data/rows")


def test_deploy_replaces_nothing(platform_before: Path, project: Environment, request: pytest.FixtureRequest) -> None:
    """Objects, claims and pods keep their ids; preview, status and a second deploy find nothing to do."""
    assert __version__ != BEFORE.version
    run_before(platform_before, project, *project.command_line("deploy")[1:])
    before, kept = uids(project), rows(project)
    registry = f"localhost:{project.cluster.layout.host_ports.registry}"
    names = {f"pulumi:{project.namespace}::": "pulumi:team::", project.namespace: "team", registry: "localhost:5000"}
    if request.config.getoption("--bless"):
        write_state(project.state()["resources"], names)
    assert comparable(project.state()["resources"], names) == read_state()

    preview = project.platform("preview", "--json").expect().json
    deployed = project.platform("deploy", "--json").expect().json

    wanted = [change for change in preview["changes"] + deployed["changes"] if change["operation"] != "update"]
    assert wanted == []
    after = uids(project)
    renewed = {name for name in before if before[name] != after.get(name)}
    assert renewed == {name for name in before if name.startswith(tuple(f"Pod {of}-" for of in NEW_TEMPLATES))}
    assert sorted(after) == sorted(before)
    assert rows(project) == kept == "kept\n"
    project.platform("preview", "--expect-no-changes").expect()
    status = project.platform("status", "--json").expect().json
    others = {row["service"]: row["state"] for row in status["services"] if row["state"] != "ready"}
    assert others == {"backup": "scheduled", "migrate": "completed"}


def test_destroy(platform_before: Path, project: Environment) -> None:
    """This version destroys what the release before deployed, and keeps its data until it is asked to delete it."""
    run_before(platform_before, project, *project.command_line("deploy")[1:])
    claim = uids(project)["PersistentVolumeClaim data"]

    project.platform("destroy", "--yes").expect()

    until(lambda: not project.pods())
    assert claim == uids(project)["PersistentVolumeClaim data"]
    project.platform("destroy", "--yes", "--volumes").expect()
    until(lambda: "PersistentVolumeClaim data" not in uids(project))


def test_sleep_and_wake(platform_before: Path, project: Environment) -> None:
    """This version wakes the environment that the release before put to sleep, with the same numbers of pods."""
    run_before(platform_before, project, *project.command_line("deploy")[1:])
    replicas = {item["metadata"]["name"]: item["spec"]["replicas"] for item in project.objects("apps/v1", "Deployment")}
    run_before(platform_before, project, *project.command_line("sleep")[1:])

    asleep = project.platform("status", "--json").expect().json["services"]
    assert {row["service"] for row in asleep if row["state"] == "asleep"} >= {"web", "db", "cache", "agent"}
    project.platform("wake").expect()

    found = {item["metadata"]["name"]: item["spec"]["replicas"] for item in project.objects("apps/v1", "Deployment")}
    assert found == replicas
    assert rows(project) == "kept\nkept\n"
    project.platform("preview", "--expect-no-changes").expect()


def test_variables(platform_before: Path, project: Environment) -> None:
    """This version reads the variable that the release before stored in the namespace."""
    where = ("--namespace", project.namespace)
    run_before(platform_before, project, "variables", "set", "TAG=1", *where)

    command = (PLATFORM, "variables", "list", "--json", *where)
    found = json.loads(run(*command, folder=project.folder, variables=project.variables))

    assert found["variables"] == [{"name": "TAG", "value": "1", "secret": False}]
