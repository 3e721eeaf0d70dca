"""`platform sleep` and `platform wake`: an environment scaled to nothing, and back to what it was."""

from __future__ import annotations

import time
from typing import Any

import pytest

from composeplat.names import ENVIRONMENT_LABEL
from tests.deploy.conftest import SLEEP, Environment, until

ASLEEP = "dev.platform.com/asleep"
HEAD = f"x-app: &app {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\nservices:\n"
SHOP = (
    HEAD
    + """
  db: {<<: *app, volumes: ['data:/data']}
  web: {<<: *app, scale: 2, environment: {A: "${A:-1}"}}
  idle: {<<: *app, scale: 0}
  once: {<<: *app, restart: "no", command: "true"}
  batch: {<<: *app, restart: "no"}
volumes: {data: {}}
"""
)
CHAIN = (
    HEAD
    + """
  db:
    <<: *app
    healthcheck: {test: ["CMD", "test", "-e", "/tmp/ready"], interval: 1s, retries: 30}
    command: sh -c "sleep 4; touch /tmp/ready; trap true TERM; sleep 1000000 & wait; true"
  web:
    <<: *app
    depends_on: {db: {condition: service_healthy}}
"""
)
#: Without a health check, healthy is when the port answers.
PORT = (
    HEAD
    + """
  db: {<<: *app, command: "sh -c 'sleep 5; exec nc -ll -p 7777 -e cat'", expose: [7777]}
  web: {<<: *app, depends_on: {db: {condition: service_healthy}}}
"""
)
IN_ORDER = {"OKTETO_COMPOSE_DEPENDS_ON_ENABLED": "true"}


def workloads(environment: Environment) -> dict[str, tuple[int | bool | None, str | None]]:
    """Each workload's number of pods, a Job's suspension, and its mark."""
    found: dict[str, tuple[int | bool | None, str | None]] = {}
    for version, kind in (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job")):
        for manifest in environment.objects(version, kind):
            number = manifest["spec"].get("suspend" if kind == "Job" else "replicas")
            found[manifest["metadata"]["name"]] = number, manifest["metadata"].get("annotations", {}).get(ASLEEP)
    return found


def alive(environment: Environment) -> list[dict[str, Any]]:
    return [pod for pod in environment.pods() if pod["status"]["phase"] not in ("Succeeded", "Failed")]


def ready_at(environment: Environment, service: str) -> str:
    (pod,) = environment.pods(service)
    return str(next(c["lastTransitionTime"] for c in pod["status"]["conditions"] if c["type"] == "Ready"))


def managers(environment: Environment, kind: str, version: str, name: str) -> set[tuple[str, str]]:
    found = environment.get(version, kind, name)
    assert found is not None
    return {(row["manager"], row["operation"]) for row in found["metadata"]["managedFields"]}


def test_scaled_down_by_others(environment: Environment) -> None:
    """What somebody else scaled to 0 is not woken, which is reported with the way to scale it up."""
    environment.deploy(f"{HEAD}  web: *app\n  idle: {{<<: *app, scale: 0}}\n").expect()
    path = f"/apis/apps/v1/namespaces/{environment.namespace}/deployments/web"
    with environment.api() as api:
        api.patch(path, {"spec": {"replicas": 0}})
    woken = environment.platform("wake").expect()
    environment.platform("deploy", "--refresh").expect()

    assert (
        "scaled to 0 by others, not by 'platform sleep': web; platform deploy --refresh scales them up\n"
        in woken.stderr
    )
    assert workloads(environment)["web"] == (1, None)
    assert "scaled to 0" not in environment.platform("wake").expect().stderr


def test_asleep_and_awake_again(environment: Environment) -> None:
    """All pods go and come back, as many as there were; what has ended is left alone; a preview sees no change."""
    environment.deploy(SHOP).expect()
    before = workloads(environment)
    owners = {name: managers(environment, "Deployment", "apps/v1", name) for name in ("web", "idle")}

    slept = environment.platform("sleep").expect()

    assert alive(environment) == []
    assert slept.stderr.splitlines()[-1].startswith(
        f"env in namespace {environment.namespace} sleeps: web, db, batch, "
    )
    assert workloads(environment) == {
        "db": (0, "1"), "web": (0, "2"), "idle": (0, None), "once": (False, None), "batch": (True, "1"),
    }  # fmt: skip
    output = environment.platform("preview", "--expect-no-changes").expect()
    assert output.stdout == ""
    assert "asleep: web, db, batch; a deploy wakes them, and so does 'platform wake'\n" in output.stderr

    environment.platform("wake").expect()

    assert before == workloads(environment)
    counts = {name: len(environment.pods(name)) for name in ("web", "db", "batch")}
    assert counts == {"web": 2, "db": 1, "batch": 1}
    assert owners == {name: managers(environment, "Deployment", "apps/v1", name) for name in ("web", "idle")}
    output = environment.platform("preview", "--expect-no-changes").expect()
    assert "asleep" not in output.stderr


def test_messages_without_anything_to_do(environment: Environment) -> None:
    """Twice the same is no failure, and what was remembered first is kept; an environment that is not there is one."""
    environment.write(HEAD + "  web: {<<: *app, scale: 2}\n")
    for command in ("sleep", "wake"):
        ran = environment.platform(command).expect(1)
        assert f"error: environment 'env' is not deployed in namespace '{environment.namespace}'\n" in ran.stderr
    environment.deploy().expect()

    assert (
        environment.platform("wake").expect().stderr
        == f"nothing was asleep in env in namespace {environment.namespace}\n"
    )
    environment.platform("sleep").expect()
    again = environment.platform("sleep").expect()

    assert again.stderr == f"there was nothing to put to sleep in env in namespace {environment.namespace}\n"
    assert workloads(environment) == {"web": (0, "2")}


def test_json(environment: Environment) -> None:
    """The result of both is an object with the services."""
    environment.deploy(HEAD + "  web: *app\n").expect()

    slept = environment.platform("sleep", "--json").expect()
    woken = environment.platform("wake", "--json", "--no-wait").expect()

    expected = {
        "environment": "env", "namespace": environment.namespace, "status": "done",
        "services": ["web"], "in_development": [], "failures": [],
    }  # fmt: skip
    for ran in (slept, woken):
        assert expected == {key: value for key, value in ran.json.items() if key not in ("schema", "seconds")}


@pytest.mark.parametrize(
    "text", [pytest.param(CHAIN, id="health-check"), pytest.param(PORT, id="port", marks=pytest.mark.endurance)]
)
def test_in_order(environment: Environment, text: str) -> None:
    """With the flag on, a dependent's pod starts once its dependency is healthy, by real pods' times."""
    environment.deploy(text).expect()
    environment.platform("sleep").expect()

    environment.platform("wake", **IN_ORDER).expect()

    begun, waited = (_seconds(environment.started_at(name)) for name in ("db", "web"))
    assert waited - begun >= 4
    assert ready_at(environment, "db") <= environment.started_at("web")


@pytest.mark.endurance
def test_at_once(environment: Environment) -> None:
    """With the flag off, all start together, whatever they depend on."""
    environment.deploy(CHAIN).expect()
    environment.platform("sleep").expect()

    environment.platform("wake").expect()

    assert environment.started_at("web") < ready_at(environment, "db")


def _seconds(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def test_a_job_that_is_waited_for(environment: Environment) -> None:
    """A job that was cut off runs again, and its dependents wait for its end; one that had completed does not."""
    text = HEAD + (
        "  once: {<<: *app, restart: 'no', command: 'true'}\n"
        "  migrate: {<<: *app, restart: 'no', command: \"sh -c 'sleep 6'\"}\n"
        "  web: {<<: *app, depends_on: {once: {condition: service_completed_successfully},"
        " migrate: {condition: service_completed_successfully, required: false}}}\n"
    )
    environment.write(text)
    deploying = environment.start("deploy")
    until(lambda: [pod for pod in environment.pods("migrate") if pod["status"]["phase"] == "Running"])
    until(lambda: [pod for pod in environment.pods("once") if pod["status"]["phase"] == "Succeeded"])
    deploying.kill()
    deploying.wait()
    assert environment.pods("web") == []
    environment.platform("sleep").expect()
    assert environment.pods("migrate") == []

    environment.deploy().expect()

    ended = {
        manifest["metadata"]["name"]: manifest["status"]["completionTime"]
        for manifest in environment.objects("batch/v1", "Job")
    }
    assert ended["once"] < ended["migrate"] <= environment.started_at("web")
    assert {mark for _, mark in workloads(environment).values()} == {None}


@pytest.mark.endurance
def test_a_failure_ends_the_wait(environment: Environment) -> None:
    """A dependency that does not come up is reported with the reason; its dependent sleeps on, until the next time."""
    text = HEAD + (
        "  db:\n    <<: *app\n    command: sh -c 'test -e /data/ok || exit 3; exec sleep 1000'\n"
        # Started it would be for a moment.
        "    healthcheck: {test: test -e /data/ok, interval: 1s}\n    volumes: ['data:/data']\n"
        "  web: {<<: *app, depends_on: {db: {condition: service_healthy}}}\nvolumes: {data: {}}\n"
    )
    environment.deploy(text.replace("test -e /data/ok ||", "touch /data/ok; false &&")).expect()
    environment.deploy(text).expect()
    environment.exec("db-0", "rm", "/data/ok")
    environment.platform("sleep").expect()

    ran = environment.platform("wake", **IN_ORDER).expect(1)

    assert "services.db: crashes with exit status 3" in ran.stderr
    assert "services.web: waits for db, which crashes with exit status 3" in ran.stderr
    assert workloads(environment) == {"db": (1, None), "web": (0, "1")}


def test_a_deploy_wakes_in_order(environment: Environment) -> None:
    """A deploy of the same file wakes what sleeps, dependencies first, whatever the flag says; no mark stays."""
    environment.deploy(CHAIN).expect()
    environment.platform("sleep").expect()

    environment.deploy().expect()

    assert ready_at(environment, "db") <= environment.started_at("web")
    assert workloads(environment) == {"db": (1, None), "web": (1, None)}
    environment.platform("preview", "--expect-no-changes").expect()


@pytest.mark.endurance
def test_a_deploy_applies_the_current_file(environment: Environment) -> None:
    """What the file changes meanwhile holds after the deploy, and what was remembered counts no more."""
    environment.deploy(SHOP).expect()
    environment.platform("sleep").expect()

    environment.deploy(SHOP.replace("scale: 2", "scale: 3")).expect()

    assert workloads(environment) == {
        "db": (1, None), "web": (3, None), "idle": (0, None), "once": (False, None), "batch": (False, None),
    }  # fmt: skip
    environment.platform("preview", "--expect-no-changes").expect()


@pytest.mark.endurance
def test_a_deploy_of_one_service_wakes_only_that(environment: Environment) -> None:
    """The others sleep on, and wake when they are asked to."""
    environment.deploy(HEAD + "  web: *app\n  api: *app\n").expect()
    environment.platform("sleep").expect()

    environment.deploy("", "web").expect()

    assert workloads(environment) == {"web": (1, None), "api": (0, "1")}
    environment.platform("wake").expect()
    assert workloads(environment) == {"web": (1, None), "api": (1, None)}
    environment.platform("preview", "--expect-no-changes").expect()


def test_refreshed_while_it_slept(environment: Environment) -> None:
    """What a refresh has noted of the sleep is no change once all is awake."""
    environment.deploy(HEAD + "  web: *app\n").expect()
    environment.platform("sleep").expect()
    environment.platform("refresh").expect()

    environment.platform("wake").expect()

    environment.platform("preview", "--expect-no-changes").expect()


def test_a_service_under_development_is_left_alone(environment: Environment) -> None:
    """Neither the development container nor its service is touched, and that is reported."""
    environment.deploy(HEAD + "  web: *app\n  api: *app\n").expect()
    web = environment.get("apps/v1", "Deployment", "web")
    assert web is not None
    labels = {**web["metadata"]["labels"], "dev.platform.com/up": "web"}
    pods = {**web["spec"]["template"], "metadata": {"labels": {**labels, "role": "dev-workload"}}}
    dev_workload = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web-platform-up", "namespace": environment.namespace, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"role": "dev-workload"}}, "template": pods},
    }  # fmt: skip
    with environment.api() as api:
        api.apply(dev_workload)
        api.patch(f"/apis/apps/v1/namespaces/{environment.namespace}/deployments/web", {"spec": {"replicas": 0}})

    slept = environment.platform("sleep").expect()

    assert "web is under development, and was not changed\n" in slept.stderr
    assert workloads(environment) == {"web": (0, None), "api": (0, "1"), "web-platform-up": (1, None)}
    environment.platform("wake").expect()
    assert workloads(environment) == {"web": (0, None), "api": (1, None), "web-platform-up": (1, None)}


def test_without_waiting(environment: Environment) -> None:
    """A pod that takes long to end is waited for no longer than asked."""
    text = (
        HEAD + "  web: {<<: *app, command: \"sh -c 'trap : TERM; while :; do sleep 1; done'\", stop_grace_period: 30}\n"
    )
    environment.deploy(text).expect()

    (pod,) = environment.pods("web")
    name = pod["metadata"]["name"]
    ran = environment.platform("sleep", "--timeout", "4").expect(1)
    assert f"waiting for {name} …\n" in ran.stderr
    assert f"error: 1 pod still running after 4 s: {name}\n  hint: give them more time with --timeout\n" in ran.stderr
    environment.platform("wake", "--no-wait").expect()
    assert environment.platform("sleep", "--no-wait").expect().seconds < 20
    assert workloads(environment) == {"web": (0, "1")}


def test_a_pod_that_nothing_ends(environment: Environment) -> None:
    """A pod whose workload has lost the label of the environment is named, with the way to its workload."""
    environment.deploy(f"{HEAD}  web: *app\n  api: *app\n").expect()
    path = f"/apis/apps/v1/namespaces/{environment.namespace}/deployments/web"
    with environment.api() as api:
        api.patch(path, {"metadata": {"labels": {ENVIRONMENT_LABEL: None}}})
    (pod,) = environment.pods("web")
    name = pod["metadata"]["name"]

    ran = environment.platform("sleep", "--timeout", "10").expect(1)
    assert f"error: 1 pod still running after 10 s: {name}\n" in ran.stderr
    command = f"kubectl describe pod --namespace {environment.namespace} {name}"
    assert f"  hint: {name} is not terminating; see which workload it is of: {command}\n" in ran.stderr
    with environment.api() as api:
        api.delete(path)
