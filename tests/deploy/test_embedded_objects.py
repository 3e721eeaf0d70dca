"""What a program reads of a ``ComposeStack``, puts beside its services, and changes of them, with plain Pulumi."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_embedded import Program, items, program

__all__ = ["program"]
DATABASE_VALUE = 'open $esame: "ünder"\nthe ring'

BESIDE = """
import json
from base64 import b64decode

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace, Secret

from composeplat import ComposeStack

config = pulumi.Config()
space = Namespace("space", metadata={"name": pulumi.get_stack()}, opts=pulumi.ResourceOptions(retain_on_delete=True))
here = {"namespace": space.metadata.name}
password = config.require_secret("password")
database = Secret("database", metadata={**here, "name": "database"}, string_data={"p": password})


def label(args):
    if args.type_ == "kubernetes:apps/v1:Deployment":
        args.props["spec"]["template"]["metadata"]["labels"]["team"] = config.get("team") or "blue"
        return pulumi.ResourceTransformResult(args.props, args.opts)


shop = ComposeStack(
    "shop",
    file="shop.yaml",
    namespace=space.metadata.name,
    variables={"PASSWORD": database.data["p"].apply(lambda text: b64decode(text).decode()), "GREETING": "hello"},
    transforms={"web": label},
    extras={"web": [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": 1}}]},
)
web = shop.services["web"]
report = {
    "name": web.name,
    "address": web.address,
    "ports": web.ports.apply(json.dumps),
    "digest": shop.services["db"].digest,
    "claim": shop.volumes["data"].claim_name,
    "budget": shop.objects["PodDisruptionBudget/web"].metadata["name"],
}
ConfigMap("report", metadata={**here, "name": "report"}, data=report)
Secret("copy", metadata={**here, "name": "copy"}, string_data=web.env)
"""
SHOP = f"""\
services:
  web:
    image: busybox:1.37
    command: {SLEEP}
    scale: 2
    ports: ["8080:80"]
    environment: {{URL: "db://me:${{PASSWORD}}@db", GREETING: "${{GREETING}}"}}
  db:
    image: busybox:1.37
    command: {SLEEP}
    volumes: ["data:/data"]
volumes: {{data: {{}}}}
"""


def texts(environment: Environment, name: str) -> dict[str, str]:
    """The values of a Secret."""
    found = environment.get("v1", "Secret", name)
    assert found is not None
    return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}


def budgets(environment: Environment) -> dict[str, dict[str, Any]]:
    return items(environment, "apis/policy/v1/poddisruptionbudgets")


def teams(environment: Environment, service: str) -> list[str | None]:
    return [pod["metadata"]["labels"].get("team") for pod in environment.pods(service)]


def outputs_of_components(state: str) -> dict[str, Any]:
    resources = json.loads(state)["deployment"]["resources"]
    return {found["type"]: found.get("outputs", {}) for found in resources if found["type"].startswith("composeplat:")}


def test_beside_services(program: Program) -> None:
    """Outputs go in and out, a budget selects the pods of its service, a transform changes them and no others."""
    environment = program.environment
    environment.write(BESIDE, "__main__.py")
    environment.write(SHOP, "shop.yaml")
    program.expect("config", "set", "--secret", "password", DATABASE_VALUE)
    program.expect("preview")
    program.expect("up", "--yes", "--skip-preview")

    report = environment.get("v1", "ConfigMap", "report")
    assert report is not None
    assert report["data"] == {
        "name": "web",
        "address": f"web.{environment.namespace}.svc",
        "ports": "[80, 8080]",
        "digest": "",
        "claim": "data",
        "budget": "web",
    }
    url = f"db://me:{DATABASE_VALUE}@db"
    assert texts(environment, "copy") == texts(environment, "web-env") == {"URL": url, "GREETING": "hello"}
    pod = environment.pods("web")[0]["metadata"]["name"]
    assert environment.exec(pod, "sh", "-c", 'printf %s "$URL"') == url
    until(lambda: budgets(environment)["web"]["status"]["currentHealthy"] == 2)
    assert budgets(environment)["web"]["status"]["expectedPods"] == 2
    assert (teams(environment, "web"), teams(environment, "db")) == (["blue"] * 2, [None])

    state = program.expect("stack", "export")
    for hidden in (DATABASE_VALUE, DATABASE_VALUE.splitlines()[0].replace('"', '\\"'), url):
        assert hidden not in state
        assert base64.b64encode(hidden.encode()).decode() not in state
    assert set(map(str, outputs_of_components(state).values())) == {"{}", "{'urls': []}"}
    program.expect("preview", "--expect-no-changes")

    # Only the workload differs.
    program.expect("config", "set", "team", "green")
    assert "~ 1 to update\n" in program.expect("preview")
    program.expect("up", "--yes", "--skip-preview")
    assert until(lambda: teams(environment, "web") == ["green"] * 2)

    program.expect("destroy", "--yes", "--skip-preview")
    assert environment.names() == {"PersistentVolumeClaim/data"}
    assert budgets(environment) == {}


MISSING = """
import pulumi
from pulumi_kubernetes.core.v1 import Namespace

from composeplat import ComposeStack

space = Namespace("space", metadata={"name": pulumi.get_stack()})
spec = {"endpoints": [{"port": "tcp-80"}]}
monitor = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "spec": spec}
ComposeStack("shop", file="shop.yaml", namespace=space.metadata.name, extras={"web": [monitor]})
"""


@pytest.mark.endurance
def test_a_kind_that_the_cluster_lacks(program: Program) -> None:
    """The object that can't be is named with its kind, and the services come up without it."""
    environment = program.environment
    environment.write(MISSING, "__main__.py")
    environment.write(SHOP.replace("${PASSWORD}", "x").replace("${GREETING}", "x"), "shop.yaml")
    ended = program.pulumi("up", "--yes", "--skip-preview")

    output = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert "shop-extra/web" in output
    assert 'no matches for kind "ServiceMonitor" in version "monitoring.coreos.com/v1"' in output
    assert "Traceback" not in output
    assert len(environment.pods("web")) == 2


EXISTING: dict[str, dict[str, Any]] = {
    "v1/PersistentVolumeClaim/data": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}}
    },
    "apps/v1/Deployment/web": {
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "web", "image": "busybox:1.36", "args": ["sleep", "1000"]}],
                },
            },
        }
    },
}
TAKING_OVER = """
import pulumi

from composeplat import ComposeStack

ComposeStack("shop", file="shop.yaml", namespace=pulumi.get_stack(), selectors={"web": {"app": "web"}})
"""
TAKEN_OVER = f"""\
services:
  web: {{image: "busybox:1.37", command: {SLEEP}, stop_grace_period: 0}}
  db: {{image: "busybox:1.37", command: {SLEEP}, volumes: ["data:/data"]}}
volumes: {{data: {{driver_opts: {{size: 100Mi}}}}}}
"""


def test_objects_that_exist_already(program: Program) -> None:
    """Objects that others made without Pulumi are taken over where they are: no claim and no workload is recreated."""
    environment = program.environment
    environment.write(TAKING_OVER, "__main__.py")
    environment.write(TAKEN_OVER, "shop.yaml")
    before: dict[str, str] = {}
    with environment.api() as api:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace}})
        for key, manifest in EXISTING.items():
            version, kind, name = key.rsplit("/", 2)
            metadata = {"name": name, "namespace": environment.namespace}
            made = api.create({"apiVersion": version, "kind": kind, "metadata": metadata, **manifest})
            before[key] = str(made["metadata"]["uid"])

    conflict = program.pulumi("up", "--yes", "--skip-preview")
    program.expect("up", "--yes", "--skip-preview", PULUMI_K8S_ENABLE_PATCH_FORCE="true")
    program.expect("preview", "--expect-no-changes")

    assert conflict.returncode != 0
    assert '.spec.template.spec.containers[name="web"].image' in conflict.stdout
    found = {key: environment.get(*key.rsplit("/", 2)) or {} for key in EXISTING}
    assert {key: manifest["metadata"]["uid"] for key, manifest in found.items()} == before
    (container,) = found["apps/v1/Deployment/web"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "busybox:1.37"
