"""How services stand, as rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from composeplat.cluster.snapshot import Object
from composeplat.cluster.status import ServiceQuery, age, short_image, status_rows
from tests.cluster.objects import (
    MOMENT,
    deployment,
    ended,
    job,
    pod,
    replica_set,
    running,
    snapshot,
    stateful_set,
    waiting,
)
from tests.steps import count_steps

NOW = datetime(2025, 6, 1, 12, 10, tzinfo=UTC)
WEB = ServiceQuery(name="web", cluster_name="web", kind="Deployment", urls=("https://web",))
DIGEST = f"sha256:{'ab' * 32}"


def made(state: Object, *, ready: bool = True, restarts: int = 0, last: Object | None = None) -> list[Object]:
    workload = deployment()
    owner = replica_set(workload)
    row = pod(owner, state=state, ready=ready, restarts=restarts, last=last)
    row["status"]["containerStatuses"][0]["imageID"] = f"registry/web@{DIGEST}"
    return [workload, owner, row]


def test_a_service_that_runs() -> None:
    """Kind, state, pods, image and addresses are reported; nothing is wrong."""
    (row,) = status_rows([WEB], snapshot(*made(running())), NOW)
    assert (row.service, row.kind, row.state, row.ready, row.desired) == ("web", "Deployment", "ready", 1, 1)
    assert (row.image, row.urls, row.problem) == (DIGEST, ("https://web",), "")


def test_a_service_that_is_not_there() -> None:
    """What is not deployed has a row all the same."""
    (row,) = status_rows([WEB], snapshot(), NOW)
    assert (row.state, row.image, row.created, row.problem) == ("absent", "", "", "")


def test_a_job_that_runs() -> None:
    """That a job has not completed is no problem; that it tries again is."""
    query = ServiceQuery(name="migrate", cluster_name="migrate", kind="Job")
    work = job()
    (row,) = status_rows([query], snapshot(work, pod(work, state=running())), NOW)
    assert (row.state, row.problem) == ("started", "")

    work["spec"] = {"backoffLimit": 2}
    tries = [pod(work, "first", state=ended(3)), pod(work, "second", state=running())]
    tries[0]["status"]["phase"] = "Failed"
    (row,) = status_rows([query], snapshot(work, *tries), NOW)
    assert row.problem.startswith("is running; failed with exit status 3")


def test_a_service_that_crashes() -> None:
    """The reason is reported as a message, with a count of restarts."""
    crash = {**ended(3), "terminated": {**ended(3)["terminated"], "finishedAt": MOMENT}}
    (row,) = status_rows([WEB], snapshot(*made(waiting("CrashLoopBackOff"), ready=False, restarts=4, last=crash)), NOW)
    assert (row.state, row.restarts, row.problem) == ("failing", 4, "crashes with exit status 3 (5 times)")


def test_a_failing_update() -> None:
    """While an update of a Deployment fails, its old pods serve on: so do those that are ready and stay."""
    crash = {**ended(3), "terminated": {**ended(3)["terminated"], "finishedAt": MOMENT}}
    objects = made(waiting("CrashLoopBackOff"), ready=False, restarts=4, last=crash)
    old = replica_set(objects[0], revision=1)
    pods = [pod(old, "a", state=running(), ready=True), pod(old, "b", state=running())]
    (row,) = status_rows([WEB], snapshot(*objects, old, *pods), NOW)

    assert (row.state, row.ready) == ("failing", 0)
    assert (
        row.problem
        == f"crashes with exit status 3 (5 times); {pods[0]['metadata']['name']} still runs the old revision"
    )


def test_a_failing_update_of_a_stateful_set() -> None:
    """It replaces a pod after the other, and stops at the first that fails."""
    crash = {**ended(3), "terminated": {**ended(3)["terminated"], "finishedAt": MOMENT}}
    work = stateful_set(replicas=2)
    new = pod(work, "1", state=waiting("CrashLoopBackOff"), restarts=4, last=crash)
    old = pod(work, "0", state=running(), ready=True, revision=1)
    query = ServiceQuery(name=work["metadata"]["name"], cluster_name=work["metadata"]["name"], kind="StatefulSet")
    (row,) = status_rows([query], snapshot(work, new, old), NOW)

    assert row.state == "failing"
    assert row.problem.endswith(f"; {old['metadata']['name']} still runs the old revision")


def test_a_service_that_has_just_crashed_again() -> None:
    """It is failing too before the kubelet says that it waits to start it again."""
    (row,) = status_rows([WEB], snapshot(*made(ended(3), ready=False, restarts=4, last=ended(3))), NOW)
    assert (row.state, row.restarts, row.problem) == ("failing", 4, "crashes with exit status 3 (5 times)")


@pytest.mark.parametrize(
    ("end", "args"),
    [
        pytest.param({"exitCode": 1}, "ended with exit status 1, 10m ago", id="status"),
        pytest.param({"exitCode": 137, "signal": 9}, "ended with signal 9, 10m ago", id="signal"),
        pytest.param({"reason": "OOMKilled"}, "was killed: out of memory, 10m ago", id="memory"),
    ],
)
def test_the_last_problem_of_a_restarted_container(end: Object, args: str) -> None:
    """A service that has recovered still shows its last end."""
    last = {"terminated": {**end, "finishedAt": MOMENT}}
    (row,) = status_rows([WEB], snapshot(*made(running(), restarts=1, last=last)), NOW)
    assert (row.state, row.problem) == ("ready", args)


@pytest.mark.parametrize("is_failing", [False, True])
def test_many_services(*, is_failing: bool) -> None:
    """The work for a row does not grow with the number of pods: ten times as many take ten times as long."""

    def steps(services: int) -> int:
        names = [f"app{number}" for number in range(services)]
        objects: list[Object] = []
        for name in names:
            workload = deployment(name)
            owner = replica_set(workload)
            state = waiting("CrashLoopBackOff") if is_failing else running()
            objects += [workload, owner, pod(owner, state=state, ready=not is_failing, restarts=4 * is_failing)]
        found = snapshot(*objects)
        queries = [ServiceQuery(name=name, cluster_name=name, kind="Deployment") for name in names]
        return count_steps(lambda: status_rows(queries, found, NOW))

    assert steps(200) < 10.5 * steps(20)


def test_the_last_of_several_ends() -> None:
    """Of several containers that have ended it is the one that did so last."""
    first = {"terminated": {"exitCode": 1, "finishedAt": "2025-06-01T12:00:00Z"}}
    later = {"terminated": {"exitCode": 2, "finishedAt": "2025-06-01T12:05:00Z"}}
    workload = deployment()
    owner = replica_set(workload)
    pods = [
        pod(owner, suffix, state=running(), ready=True, restarts=1, last=last)
        for suffix, last in (("aaaaa", first), ("bbbbb", later), ("ccccc", first))
    ]
    (row,) = status_rows([WEB], snapshot(workload, owner, *pods), NOW)
    assert row.problem == "ended with exit status 2, 5m ago"


def test_a_service_that_sleeps() -> None:
    """One that is scaled to 0 is not called ready."""
    (row,) = status_rows([WEB], snapshot(deployment(replicas=0)), NOW)
    assert row.state == "asleep"


def test_a_service_under_development() -> None:
    """Its row is that of what is in for it."""
    dev_workload = deployment("web-platform-up")
    owner = replica_set(dev_workload)
    manifest = pod(owner, state=running(), ready=True)
    wanted = ServiceQuery(name="web", cluster_name="web", kind="Deployment", dev_workload="web-platform-up")
    (row,) = status_rows([wanted], snapshot(deployment(replicas=0), dev_workload, owner, manifest), NOW)
    assert (row.state, row.ready, row.pods) == ("in-development", 1, (manifest["metadata"]["name"],))


@pytest.mark.parametrize(
    ("moment", "args"),
    [
        pytest.param("2025-06-01T12:09:20Z", "40s", id="seconds"),
        pytest.param("2025-06-01T12:08:30Z", "1m", id="minute"),
        pytest.param("2025-06-01T10:20:00Z", "110m", id="many-minutes"),
        pytest.param("2025-06-01T02:10:00Z", "10h", id="hours"),
        pytest.param("2025-05-22T12:10:00Z", "10d", id="days"),
        pytest.param("2025-06-01T12:11:00Z", "0s", id="clock-ahead"),
        pytest.param("", "?", id="unknown"),
    ],
)
def test_age(moment: str, args: str) -> None:
    """One unit is enough, and a clock that is ahead does no harm."""
    assert age(moment, NOW) == args


def test_short_image() -> None:
    """A digest is cut to what shows it from others."""
    assert short_image(DIGEST) == "sha256:abababababab"
