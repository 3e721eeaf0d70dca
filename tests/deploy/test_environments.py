"""The environments of a real cluster: two in two namespaces, beside other people's objects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api
from composeplat.cluster.environment_list import EnvironmentList
from composeplat.cluster.environments import DeployedEnvironment
from composeplat.cluster.kubeconfig import find_access, read_kubeconfig
from composeplat.local.cluster import LocalCluster
from composeplat.names import ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL, SERVICE_LABEL
from tests.deploy.conftest import SLEEP, Environment, an_environment, until
from tests.deploy.test_access import account_of, kubectl

FILE = f"""\
x-app: &app {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
services:
  web: {{<<: *app}}
  db: {{<<: *app, volumes: ['data:/data']}}
  once: {{<<: *app, restart: "no", command: "true"}}
volumes: {{data: {{}}}}
"""
FAILING = "services: {web: {image: 'busybox:1.37', command: sh -c 'exit 3'}}\n"
HOSTILE = [
    {MANAGED_BY_LABEL: MANAGED_BY, ENVIRONMENT_LABEL: "Not.A_Name", SERVICE_LABEL: "hostile-0"},
    {MANAGED_BY_LABEL: MANAGED_BY, ENVIRONMENT_LABEL: "", SERVICE_LABEL: "hostile-1"},
    {MANAGED_BY_LABEL: MANAGED_BY, ENVIRONMENT_LABEL: "env", SERVICE_LABEL: "web"},
    {MANAGED_BY_LABEL: "someone", ENVIRONMENT_LABEL: "env", SERVICE_LABEL: "hostile-3"},
    {MANAGED_BY_LABEL: "someone", ENVIRONMENT_LABEL: "theirs", SERVICE_LABEL: "hostile-4"},
]


@pytest.fixture
def other(cluster: LocalCluster, tmp_path: Path) -> Iterator[Environment]:
    """Another environment with the same name, in a namespace of its own."""
    folder, private = tmp_path / "other-project", tmp_path / "other"
    folder.mkdir()
    private.mkdir()
    with an_environment(cluster, folder, private) as made:
        yield made


def write_hostile(environment: Environment) -> None:
    """Make Deployments with labels like ours, whose pods nobody starts."""
    with environment.api() as api:
        for number, labels in enumerate(HOSTILE):
            selected = {"app": f"hostile-{number}"}
            container = {"name": "a", "image": "busybox:1.37"}
            template = {"metadata": {"labels": {**selected, **labels}}, "spec": {"containers": [container]}}
            metadata = {"name": f"hostile-{number}", "namespace": environment.namespace, "labels": labels}
            spec = {"replicas": 0, "selector": {"matchLabels": selected}, "template": template}
            api.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


def counts(environments: list[DeployedEnvironment], *among: Environment) -> list[dict[str, int]]:
    """How many services of each of some environments are in which state; other tests may have some too."""
    found = {environment.place: environment.count_states(datetime.now(UTC)) for environment in environments}
    shown = [found.get((environment.namespace, environment.name), {}) for environment in among]
    return [{state: count for state, count in row.items() if count} for row in shown]


def test_two_environments_in_two_namespaces(environment: Environment, other: Environment) -> None:
    environment.deploy(FILE).expect()
    other.write(FAILING)
    other.platform("deploy", "--no-wait").expect()
    write_hostile(environment)
    environments = EnvironmentList(environment.cluster.access, [])

    with environment.api() as api:

        def comes_to(*expected: dict[str, int]) -> bool:
            environments.wait()
            return counts(environments.read(api), environment, other) == list(expected)

        until(lambda: comes_to({"ready": 2, "completed": 1}, {"failing": 1}))
        found = {item.place: item for item in environments.read(api)}
        assert [(query.name, query.kind) for query in found[environment.namespace, "env"].services] == [
            ("db", "StatefulSet"),
            ("once", "Job"),
            ("web", "Deployment"),
        ]
        assert {place for place in found if place[0] == environment.namespace} == {(environment.namespace, "env")}

        environment.platform("sleep").expect()
        until(lambda: comes_to({"asleep": 2, "completed": 1}, {"failing": 1}))
        other.platform("destroy", "--yes").expect()
        until(lambda: comes_to({"asleep": 2, "completed": 1}, {}))
    environments.stop()
    assert environments.notice == ""


def test_the_same_as_platform_status(environment: Environment) -> None:
    """The counts are those of the rows that ``platform status`` prints."""
    environment.deploy(FILE).expect()
    rows: list[dict[str, Any]] = environment.platform("status", "--json").expect().json["services"]
    environments = EnvironmentList(environment.cluster.access, [])
    with environment.api() as api:
        (found,) = counts(environments.read(api), environment)
    environments.stop()

    states = [row["state"] for row in rows]
    assert found == {state: states.count(state) for state in states}


def test_an_account_of_one_namespace(environment: Environment, other: Environment) -> None:
    """It sees the environment of its own namespace, and which right it lacks for all."""
    path = account_of(environment)
    kubectl(environment, "--namespace", environment.namespace, "create", "rolebinding", "viewer",
            "--clusterrole=view", f"--serviceaccount={environment.namespace}:deployer")  # fmt: skip
    environment.deploy(FILE).expect()
    other.deploy(FILE).expect()
    text = path.read_text().replace('"user": "', f'"namespace": "{environment.namespace}", "user": "', 1)
    path.write_text(text)

    access, namespaces = _account(path)
    assert namespaces == (environment.namespace,)
    environments = EnvironmentList(access, namespaces)
    with Api(access) as api:
        found = environments.read(api)
    environments.stop()

    assert [item.place for item in found] == [(environment.namespace, "env")]
    assert counts(found, environment) == [{"ready": 2, "completed": 1}]
    assert environments.notice.startswith("you may not list deployments, statefulsets, jobs, daemonsets, cronjobs,")
    assert f"in all namespaces: of these, only {environment.namespace} is shown; to see all: " in environments.notice


def _account(path: Path) -> tuple[Access, tuple[str, ...]]:
    variables = {"KUBECONFIG": str(path)}
    return find_access(variables), read_kubeconfig(variables).namespaces()
