"""One-off pods: their manifest and their command."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.compose.model import User
from composeplat.dev.holder import ARCHITECTURES, make_holder
from composeplat.dev.run_pod import (
    RunOptions,
    choose_args,
    claims_of,
    make_holder_object,
    make_pod,
    needs_image,
    node_of_claims,
    pod_name,
)

IMAGE = (("/entry",), ("serve", "all"))
OWNER = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "uid": "u1"}}


def workload(**container: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {
            "volumeClaimTemplates": [{"metadata": {"name": "own"}}],
            "template": {
                "metadata": {
                    "labels": {
                        "dev.platform.com/environment": "shop",
                        "dev.platform.com/service": "web",
                        "dev.platform.com/volume-data": "shop",
                        "batch.kubernetes.io/job-name": "web",
                        "controller-uid": "x",
                    }
                },
                "spec": {
                    "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["web"]}],
                    "restartPolicy": "Always",
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                    "containers": [{"name": "web", "image": "app@sha256:1", **container}],
                },
            },
        },
    }


def pod(options: RunOptions, node: str = "", **container: Any) -> dict[str, Any]:
    return make_pod(workload(**container), OWNER, options, name="web-run-1", args=["a", "$(B)"], node=node)


@pytest.mark.parametrize(
    ("container", "options", "args"),
    [
        ({}, RunOptions(), ["/entry", "serve", "all"]),
        ({}, RunOptions(command=("migrate",)), ["/entry", "migrate"]),
        ({"args": ["$$(A)", "$$$$", "$x"]}, RunOptions(), ["/entry", "$(A)", "$$", "$x"]),
        ({"command": ["run"]}, RunOptions(), ["run"]),
        ({"command": ["run"], "args": ["a"]}, RunOptions(), ["run", "a"]),
        ({"command": ["run"], "args": ["a"]}, RunOptions(command=("b",)), ["run", "b"]),
        ({"command": ["run"], "args": ["a"]}, RunOptions(entrypoint=("sh",)), ["sh"]),
        ({"args": ["a"]}, RunOptions(entrypoint=("sh",), command=("-c", "x")), ["sh", "-c", "x"]),
        ({"args": ["a"]}, RunOptions(entrypoint=()), []),
    ],
)
def test_the_command(container: dict[str, Any], options: RunOptions, args: list[str]) -> None:
    """As a container runtime puts it together: another entrypoint drops the service's command."""
    assert choose_args(container, options, IMAGE) == args
    assert needs_image(container, options) == ("command" not in container and options.entrypoint is None)


def test_a_pod_that_no_service_selects() -> None:
    """It has an owner and a deadline, no checks, no own name, and a folder for each anonymous volume."""
    made = pod(RunOptions(), readinessProbe={}, livenessProbe={}, ports=[1], volumeMounts=[{"name": "data"}])
    assert made["metadata"] == {
        "name": "web-run-1",
        "namespace": "team",
        "labels": {
            "dev.platform.com/environment": "shop",
            "dev.platform.com/volume-data": "shop",
            "dev.platform.com/run": "web",
        },
        "annotations": {},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "u1"}],
    }
    assert made["spec"] == {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 86400,
        "terminationGracePeriodSeconds": 1,
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "own", "emptyDir": {}},
            {"name": "hold", "configMap": {"name": "web-run-1", "defaultMode": 0o755}},
        ],
        "containers": [
            {
                "name": "web",
                "image": "app@sha256:1",
                "volumeMounts": [{"name": "data"}, {"name": "hold", "mountPath": "/.platform-run", "readOnly": True}],
                "command": ["/.platform-run/hold"],
            }
        ],
    }


@pytest.mark.parametrize(
    ("annotations", "aliases", "names"),
    [
        pytest.param({}, [], ["api", "own"], id="alone"),
        pytest.param({}, ["api"], ["own"], id="further-name"),
        pytest.param({"dev.platform.com/services": "web,api"}, [], ["own"], id="of-two"),
    ],
)
def test_hosts_of_the_definition_stay(annotations: dict[str, str], aliases: list[str], names: list[str]) -> None:
    """The names of the pod's services lead to others here; those of ``extra_hosts`` lead where they did."""
    made = workload()
    made["spec"]["template"]["metadata"]["annotations"] = annotations
    other = {"ip": "10.0.0.1", "hostnames": ["web"]}
    made["spec"]["template"]["spec"]["hostAliases"] = [{"ip": "127.0.0.1", "hostnames": ["web", "api", "own"]}, other]

    spec = make_pod(made, OWNER, RunOptions(), name="web-run-1", args=["a"], aliases=aliases)["spec"]

    assert spec["hostAliases"] == [{"ip": "127.0.0.1", "hostnames": names}, other]


def test_a_detached_pod_runs_the_command_itself() -> None:
    """Kubernetes expands nothing in it, and it stays when it has ended."""
    options = RunOptions(detached=True, kept=True, environment={"A": "$(B)"}, working_dir="/w", user=User(uid=0, gid=5))
    made = pod(options, env=[{"name": "A", "value": "1"}, {"name": "C", "value": "2"}], args=["old"])
    assert made["metadata"]["annotations"] == {"dev.platform.com/keep": "true"}
    assert made["spec"]["containers"][0] == {
        "name": "web",
        "image": "app@sha256:1",
        "command": ["a", "$$(B)"],
        "env": [{"name": "C", "value": "2"}, {"name": "A", "value": "$$(B)"}],
        "workingDir": "/w",
        "securityContext": {"runAsUser": 0, "runAsGroup": 5},
    }


def test_a_volume_of_one_node() -> None:
    """The pod goes to the node of a running pod that uses it."""
    using = {"spec": {"nodeName": "n1", **workload()["spec"]["template"]["spec"]}}
    ended = {"spec": {**using["spec"], "nodeName": "n0"}, "status": {"phase": "Succeeded"}}
    assert claims_of(workload()) == {"data"}
    assert node_of_claims([ended, {"spec": {}}, using], {"data"}) == "n1"
    assert node_of_claims([ended, using], {"other"}) == ""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    assert pod(RunOptions(), node="n1")["spec"]["affinity"] == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }


def test_the_holder() -> None:
    """A whole ELF file for each architecture, in an object that goes with the pod."""
    for architecture in ARCHITECTURES:
        program = make_holder(architecture)
        assert program[:5] == b"\x7fELF\x02"
        assert int.from_bytes(program[96:104], "little") == len(program)
    made = make_holder_object({"metadata": {**pod(RunOptions())["metadata"], "uid": "p1"}}, "amd64")
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "web-run-1", "uid": "p1"}
    ]


def test_a_long_name() -> None:
    """It fits a label, and the suffix stays."""
    assert pod_name("web", "a1b2c3") == "web-run-a1b2c3"
    assert len(pod_name("x" * 63, "a1b2c3")) <= 63


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("web", ["platform-tools", "platform-fill", "pre-start-0", "patched"]),
        ("side", ["platform-tools", "platform-fill-side", "pre-start-0-side"]),
        ("last", ["platform-tools"]),
    ],
)
def test_the_init_containers_of_another_service_do_not_run(service: str, expected: list[str]) -> None:
    """A pod of several services has those of each: a command runs after those of its own."""
    shared = workload()
    names = ["platform-tools", "platform-fill", "pre-start-0", "platform-fill-side", "pre-start-0-side", "patched"]
    template = shared["spec"]["template"]
    template["metadata"]["annotations"] = {"dev.platform.com/services": "web,side,last"}
    template["spec"].update(
        initContainers=[{"name": name} for name in names],
        containers=[{"name": name, "image": "app"} for name in ("web", "side", "last")],
    )
    owner = {**OWNER, "metadata": {"name": service, "uid": "u1"}}

    made = make_pod(shared, owner, RunOptions(), name="x", args=["a"])

    assert [container["name"] for container in made["spec"]["initContainers"]] == expected
