"""Services start in the order of ``depends_on``, at the first deploy and at later ones."""

from __future__ import annotations

import time

import pytest

from composeplat.cluster.kinds import kind_path
from tests.deploy.conftest import SLEEP, Environment, until

HEAD = f"x-app: &app {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\nservices:\n"

#: `migrate` sets no `restart`: it is a Job, as `api` waits for it to complete.
CHAIN = (
    HEAD
    + """
  db:
    <<: *app
    healthcheck: {test: ["CMD", "test", "-e", "/ready"], interval: 1s, retries: 30}
    command: sh -c 'sleep 2; touch /ready; sleep 1000'
    environment: {ROUND: "${ROUND:-1}"}
  migrate:
    <<: *app
    command: sh -c 'sleep 1'
    environment: {ROUND: "${ROUND:-1}"}
    depends_on: {db: {condition: service_healthy}}
  api:
    <<: *app
    environment: {ROUND: "${ROUND:-1}"}
    depends_on: {migrate: {condition: service_completed_successfully}}
  web:
    <<: *app
    environment: {ROUND: "${ROUND:-1}"}
    depends_on: [api]
"""
)


def ready_at(environment: Environment, service: str) -> str:
    (pod,) = environment.pods(service)
    return str(next(c["lastTransitionTime"] for c in pod["status"]["conditions"] if c["type"] == "Ready"))


def check_chain(environment: Environment) -> None:
    ended = environment.objects("batch/v1", "Job")[0]["status"]["completionTime"]
    begun = {name: environment.started_at(name) for name in ("db", "migrate", "api", "web")}

    assert ready_at(environment, "db") <= begun["migrate"]
    assert ended <= begun["api"]
    assert begun["api"] <= begun["web"]
    assert begun["db"] < begun["migrate"] < begun["api"]


def test_all_conditions_first_and_again(environment: Environment) -> None:
    """Each condition holds a dependent back, by real pods' times; when all change, the order is the same again."""
    environment.deploy(CHAIN).expect()
    check_chain(environment)
    before = environment.started_at("db")

    environment.platform("deploy", ROUND="2").expect()

    check_chain(environment)
    assert before < environment.started_at("db")


def test_started_does_not_mean_ready(environment: Environment) -> None:
    """A dependent of a service that only has to be started comes up, though that never gets ready."""
    text = HEAD + (
        "  slow: {<<: *app, healthcheck: {test: [CMD, 'false'], interval: 600s, timeout: 1s}}\n"
        "  web: {<<: *app, depends_on: [slow]}\n"
    )
    ran = environment.deploy(text, "--timeout", "12")

    ran.expect(1)
    assert "services.slow: is not ready after 12 s" in ran.stderr
    assert environment.started_at("slow") <= environment.started_at("web")


def test_healthy_without_a_health_check_is_a_port_that_answers(environment: Environment) -> None:
    """Without a health check, healthy is when something listens on one of the ports."""
    text = HEAD + (
        "  db: {<<: *app, command: \"sh -c 'sleep 5; exec nc -ll -p 7777 -e cat'\", expose: [7776, 7777]}\n"
        "  web: {<<: *app, depends_on: {db: {condition: service_healthy}}}\n"
    )
    environment.deploy(text).expect()

    begun, waited = (_seconds(environment.started_at(name)) for name in ("db", "web"))
    assert waited - begun >= 4


def _seconds(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def test_a_failed_job_ends_the_wait_at_once(environment: Environment) -> None:
    """A dependency that fails is reported with its last lines, and its dependents are not made."""
    text = HEAD + (
        "  migrate: {<<: *app, restart: 'no', command: \"sh -c 'echo no such table; exit 3'\"}\n"
        "  web: {<<: *app, depends_on: {migrate: {condition: service_completed_successfully}}}\n"
    )
    ran = environment.deploy(text).expect(1)

    assert ran.seconds < 30
    assert ": error: services.migrate: failed with exit status 3 [deploy-failed]" in ran.stderr
    assert "    no such table\n" in ran.stderr
    assert "services.web: waits for migrate, which failed with exit status 3" in ran.stderr
    assert environment.pods("web") == []


def test_one_service_and_its_dependencies(environment: Environment) -> None:
    """A deploy of one service leaves the others alone, and takes along what it depends on."""
    text = HEAD + "  db: *app\n  web: {<<: *app, depends_on: [db]}\n  other: *app\n"
    environment.deploy(text, "web").expect()

    assert environment.names() == {"Service/db", "Service/web", "Deployment/db", "Deployment/web"}
    environment.deploy().expect()
    assert environment.pods("other") != []


def test_jobs_run_again_only_when_asked(environment: Environment) -> None:
    """An unchanged job is not run again, but with --rerun-jobs; a changed one is."""
    text = HEAD + "  once: {<<: *app, restart: 'no', command: 'true', environment: {A: '${A:-1}'}}\n"
    environment.deploy(text).expect()
    first = environment.objects("batch/v1", "Job")[0]["metadata"]["uid"]

    environment.deploy().expect()
    assert first == environment.objects("batch/v1", "Job")[0]["metadata"]["uid"]
    environment.deploy("", "--rerun-jobs").expect()
    second = environment.objects("batch/v1", "Job")[0]["metadata"]["uid"]
    assert first != second
    environment.platform("deploy", A="2").expect()
    assert second != environment.objects("batch/v1", "Job")[0]["metadata"]["uid"]


def test_an_optional_dependency_that_fails(environment: Environment) -> None:
    """A dependency that is not required holds nobody back once it has failed, and is reported all the same."""
    text = HEAD + (
        "  migrate: {<<: *app, restart: 'no', command: 'false'}\n"
        "  web:\n    <<: *app\n    depends_on:\n"
        "      migrate: {condition: service_completed_successfully, required: false}\n"
    )
    ran = environment.deploy(text).expect(1)

    assert "services.migrate: failed with exit status 1" in ran.stderr
    assert "services.web" not in ran.stderr
    assert environment.pods("web") != []


@pytest.mark.endurance
def test_a_stateful_set_with_on_delete_is_deployed_again(environment: Environment) -> None:
    """Its pods keep the old revision: the deploy ends all the same, dependents too, and says which pods those are.

    It waited for a revision that OnDelete never rolls, and failed when the time was over.
    """
    text = HEAD + (
        "  db:\n    <<: *app\n    volumes: ['data:/data']\n    labels: {dev.platform.com/update: on-delete}\n"
        "    environment: {ROUND: '${ROUND:-1}'}\n"
        "    healthcheck: {test: [CMD, 'true'], interval: 1s}\n"
        "  web:\n    <<: *app\n    environment: {ROUND: '${ROUND:-1}'}\n"
        "    depends_on: {db: {condition: service_healthy}}\n"
        "volumes: {data: {}}\n"
    )
    environment.deploy(text).expect()
    db, web = (environment.started_at(name) for name in ("db", "web"))
    ran = environment.platform("deploy", ROUND="2").expect()
    outdated = environment.platform("status").expect().stdout

    expected_hint = f"kubectl delete pod --namespace {environment.namespace} db-0"
    assert f"db: db-0 still runs the old revision, as on-delete says: {expected_hint}\n" in ran.stderr
    assert "  db: db-0 still runs the old revision\n" in outdated
    assert (db, True) == (environment.started_at("db"), web < environment.started_at("web"))
    assert ran.seconds < 30

    with environment.api() as api:
        api.delete(f"{kind_path('v1', 'Pod', environment.namespace)}/db-0")
    until(lambda: [pod for pod in environment.pods("db") if pod["status"].get("containerStatuses")])
    assert "old revision" not in environment.platform("deploy", ROUND="2").expect().stderr


@pytest.mark.endurance
def test_the_timeout_begins_after_the_start_period(environment: Environment) -> None:
    """A service whose health checks begin late, and one that waits for it, are given the timeout after that."""
    text = HEAD + (
        "  db: {<<: *app, healthcheck: {test: [CMD, 'true'], interval: 1s, start_period: 10s}}\n"
        "  web: {<<: *app, depends_on: {db: {condition: service_healthy}}}\n"
    )
    ran = environment.deploy(text, "--timeout", "8").expect()

    assert ran.seconds > 10
