"""What an environment needs, compared with quotas and limit ranges."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from composeplat.cluster.capabilities import Capabilities
from composeplat.cluster.quotas import LimitRange, Quota
from tests.compatibility.test_check import check
from tests.conftest import Project

MIB, GIB = 1024**2, 1024**3
PLAIN = "services: {web: {image: x}, job: {image: y, restart: 'no'}}"
LIMITED = "services: {web: {image: x, scale: 2, resources: {limits: {cpu: 500m, memory: 1Gi}}, volumes: [/d]}}"


def findings(project: Project, text: str, offered: Capabilities) -> list[tuple[str, str]]:
    return [
        (f.effect.value, f.diagnostic.message) for f in check(project(text), offered=offered, name="shop").all_findings
    ]


def quota(hard: Mapping[str, int], used: Mapping[str, int] | None = None, **own: int) -> Capabilities:
    found = Quota(name="q", hard=hard, used=used or {})
    return Capabilities(quotas=(found,), usage={"shop": own, "blog": {"pods": 99}}, limit_ranges=())


def test_whole_quota(project: Project) -> None:
    """What is needed in all is more than a quota has."""
    hard = {
        "pods": 1, "limits.cpu": 800, "requests.memory": 2 * GIB, "requests.storage": GIB, "services": 1,
        "count/jobs.batch": 0, "persistentvolumeclaims": 2,
    }  # fmt: skip

    assert findings(project, LIMITED, quota(hard)) == [
        ("cannot-run", "services need 1 of limits.cpu; quota 'q' has 800m"),
        ("cannot-run", "services need 2 of pods; quota 'q' has 1"),
        ("cannot-run", "services need 2Gi of requests.storage; quota 'q' has 1Gi"),
    ]


@pytest.mark.parametrize(
    ("services", "expected"),
    [
        pytest.param("job: {image: x, restart: 'no', scale: 3, cpus: 1}", "3 of pods, 3 of limits.cpu", id="job"),
        pytest.param(
            "web: {image: x, cpus: 1, x-autoscale: {min: 2, max: 9, cpu: 50%}}",
            "2 of pods, 2 of limits.cpu",
            id="autoscaled",
        ),
        pytest.param(
            "web: {image: x, scale: 2, cpus: 1}, log: {image: y, cpus: 1, network_mode: 'service:web'}",
            "2 of pods, 4 of limits.cpu, 2 of services",
            id="two-in-one-pod",
        ),
        pytest.param(
            "web: {image: x, networks: {default: {aliases: [a, b]}}, x-expose: {type: NodePort, ports: [80]}}",
            "1 of pods, 4 of services",
            id="names",
        ),
    ],
)  # fmt: skip
def test_what_is_counted(project: Project, services: str, expected: str) -> None:
    """All pods that run at once count, with each of their containers, and every Service."""
    hard = {"pods": 0, "limits.cpu": 0, "services": 1}

    found = findings(project, f"x-platform: {{full: true}}\nservices: {{{services}}}", quota(hard))

    needs = [message for _, message in found if message.startswith("services need ")]
    assert sorted(message.split("; ")[0] for message in needs) == sorted(
        f"services need {need}" for need in expected.split(", ")
    )


@pytest.mark.parametrize(
    ("used", "own", "expected"),
    [
        pytest.param(3, 0, ["services need 2 of pods; quota 'q' has 4, and others use 3 of it"], id="others"),
        pytest.param(3, 2, [], id="the-environment-itself"),
        pytest.param(4, 1, ["services need 2 of pods; quota 'q' has 4, and others use 3 of it"], id="both"),
        pytest.param(2, 0, [], id="enough"),
        pytest.param(1, 3, [], id="a-count-that-is-late"),
    ],
)
def test_rest_of_a_quota(project: Project, used: int, own: int, expected: list[str]) -> None:
    """What others use is not left; what the environment itself uses is."""
    offered = quota({"pods": 4}, {"pods": used}, pods=own)

    assert [message for _, message in findings(project, PLAIN.replace("y", "x"), offered)] == expected


def test_unknown_usage(project: Project) -> None:
    """If it is not known who uses a quota, only its whole counts."""
    offered = Capabilities(quotas=(Quota(name="q", hard={"pods": 4}, used={"pods": 4}),), limit_ranges=())

    assert findings(project, PLAIN, offered) == []


@pytest.mark.parametrize(
    ("ranges", "services"),
    [
        ((), ["web", "job"]),
        ((LimitRange(name="l", maximum={"memory": GIB}),), ["web", "job"]),
        ((LimitRange(name="l", limit={"memory": MIB}),), []),
        (None, []),
    ],
)
def test_quota_without_limits(project: Project, ranges: tuple[LimitRange, ...] | None, services: list[str]) -> None:
    """A quota of memory refuses pods that set none, unless a limit range may give them one."""
    offered = Capabilities(quotas=(Quota(name="q", hard={"limits.memory": 9 * GIB}),), usage={}, limit_ranges=ranges)

    assert [message for effect, message in findings(project, PLAIN, offered) if effect == "cannot-run"] == [
        f"services.{name} sets no limits.memory, which quota 'q' requires of each pod" for name in services
    ]


def test_defaults_count(project: Project) -> None:
    """The limit that a limit range gives counts for a quota."""
    ranges = (LimitRange(name="l", limit={"memory": GIB}, request={"memory": MIB}),)
    hard = {"limits.memory": GIB, "requests.memory": 2 * MIB}
    offered = Capabilities(quotas=(Quota(name="q", hard=hard),), usage={}, limit_ranges=ranges)

    assert ("cannot-run", "services need 2Gi of limits.memory; quota 'q' has 1Gi") in (
        found := findings(project, PLAIN, offered)
    )
    assert [effect for effect, _ in found].count("cannot-run") == 1


DEFAULT = "services.web sets no limit, and gets one from a limit range of the namespace"
RANGE = LimitRange(
    name="l",
    minimum={"cpu": 100},
    maximum={"cpu": 1000, "memory": GIB},
    limit={"cpu": 1000, "memory": 512 * MIB},
    request={"cpu": 100},
)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param("{limits: {cpu: 1, memory: 1Gi}}", [], id="within"),
        pytest.param("{limits: {cpu: 100m, memory: 1Gi}, requests: {cpu: 100m}}", [], id="the-least"),
        pytest.param(
            "{limits: {cpu: 2, memory: 2Gi}}",
            [
                ("cannot-run", "services.web has a cpu limit of 2; limit range 'l' allows at most 1"),
                ("cannot-run", "services.web has a memory limit of 2Gi; limit range 'l' allows at most 1Gi"),
            ],
            id="too-much",
        ),
        pytest.param(
            "{limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 50m}}",
            [("cannot-run", "services.web has a cpu request of 50m; limit range 'l' allows at least 100m")],
            id="too-little",
        ),
        pytest.param(
            "{limits: {cpu: 1}}",
            [("changed", f"{DEFAULT}: memory 512Mi")],
            id="one-default",
        ),
        pytest.param(
            "{}",
            [("changed", f"{DEFAULT}: cpu 1, memory 512Mi")],
            id="defaults",
        ),
    ],
)
def test_limit_range(project: Project, resources: str, expected: list[tuple[str, str]]) -> None:
    """A limit range refuses what is out of its bounds, and limits a service that sets nothing."""
    text = f"services: {{web: {{image: x, resources: {resources}}}}}"

    assert findings(project, text, Capabilities(limit_ranges=(RANGE,))) == expected
