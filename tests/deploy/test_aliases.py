"""Resources that a program had before become those of a ``ComposeStack``, and none is replaced."""

from __future__ import annotations

import json
from typing import Any

from tests.deploy.conftest import SLEEP
from tests.deploy.test_embedded import Program, program

__all__ = ["program"]

HAND_WRITTEN = """
import pulumi
import pulumi_kubernetes as k8s

namespace = pulumi.get_stack()
space = k8s.core.v1.Namespace("space", metadata={"name": namespace})
after = pulumi.ResourceOptions(depends_on=[space])
labels = {"app": "web"}
pod = {"containers": [{"name": "web", "image": "busybox:1.37", "command": ["sleep", "1000"]}],
       "terminationGracePeriodSeconds": 0}
k8s.core.v1.PersistentVolumeClaim(
    "pages", metadata={"name": "data", "namespace": namespace},
    spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}}, opts=after,
)
k8s.core.v1.Service(
    "web-service", metadata={"name": "web", "namespace": namespace},
    spec={"selector": labels, "ports": [{"port": 80}]}, opts=after,
)
k8s.apps.v1.Deployment(
    "web-app", metadata={"name": "web", "namespace": namespace}, opts=after,
    spec={"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
)
mounted = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}], **pod}
mounted["containers"] = [{**pod["containers"][0], "name": "db", "volumeMounts": [{"name": "d", "mountPath": "/data"}]}]
k8s.apps.v1.StatefulSet(
    "db", metadata={"name": "db", "namespace": namespace}, opts=after,
    spec={"serviceName": "db", "podManagementPolicy": "Parallel", "selector": {"matchLabels": {"app": "db"}},
          "template": {"metadata": {"labels": {"app": "db"}}, "spec": mounted}},
)
k8s.yaml.ConfigFile("kompose", file="api.yaml", opts=after)
k8s.yaml.v2.ConfigFile("newer", file="jobs.yaml", opts=after)
"""
API = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
  namespace: NAMESPACE
  labels: {io.kompose.service: NAME}
spec:
  replicas: 1
  selector: {matchLabels: {io.kompose.service: NAME}}
  template:
    metadata: {labels: {io.kompose.service: NAME}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: NAME, image: "busybox:1.37", command: [sleep, "1000"]}]
"""
COMPOSED = """
import pulumi
import pulumi_kubernetes as k8s

from composeplat import ComposeStack

namespace = pulumi.get_stack()
space = k8s.core.v1.Namespace("space", metadata={"name": namespace})
urn = f"urn:pulumi:{namespace}::{pulumi.get_project()}::"
ComposeStack(
    "shop", file="shop.yaml", namespace=namespace, opts=pulumi.ResourceOptions(depends_on=[space]),
    selectors={
        "web": {"app": "web"},
        "db": {"app": "db"},
        "api": {"io.kompose.service": "api"},
        "worker": {"io.kompose.service": "worker"},
    },
    aliases={
        "PersistentVolumeClaim/data": "pages",
        "Service/web": "web-service",
        "Deployment/web": pulumi.Alias(name="web-app", parent=pulumi.ROOT_STACK_RESOURCE),
        "StatefulSet/db": "db",
        "Deployment/api": f"{urn}kubernetes:yaml:ConfigFile$kubernetes:apps/v1:Deployment::{namespace}/api",
        "Deployment/worker": (
            f"{urn}kubernetes:yaml/v2:ConfigFile$kubernetes:apps/v1:Deployment::newer:{namespace}/worker"
        ),
    },
)
"""
FILE = f"""\
services:
  web: {{image: "busybox:1.37", command: {SLEEP}, expose: [80]}}
  db: {{image: "busybox:1.37", command: {SLEEP}, volumes: ["data:/data"]}}
  api: {{image: "busybox:1.37", command: {SLEEP}}}
  worker: {{image: "busybox:1.37", command: {SLEEP}}}
volumes:
  data: {{driver_opts: {{size: 100Mi}}}}
"""
MOVED = (
    ("v1", "PersistentVolumeClaim", "data"), ("v1", "Service", "web"), ("apps/v1", "Deployment", "web"),
    ("apps/v1", "StatefulSet", "db"), ("apps/v1", "Deployment", "api"), ("apps/v1", "Deployment", "worker"),
)  # fmt: skip


def facts(program: Program) -> dict[str, tuple[str, Any]]:
    """The identity of each object, and the address of a Service."""
    found = {f"{kind}/{name}": program.environment.get(version, kind, name) for version, kind, name in MOVED}
    assert all(found.values()), found
    return {
        name: (item["metadata"]["uid"], item["spec"].get("clusterIP") or item["spec"].get("volumeName"))
        for name, item in found.items()
        if item
    }


def test_aliases(program: Program) -> None:
    """Hand-written resources and those of YAML files are updated in place: nothing of them is created or replaced."""
    environment = program.environment
    environment.write(HAND_WRITTEN, "__main__.py")
    for name, service in (("api.yaml", "api"), ("jobs.yaml", "worker")):
        environment.write(API.replace("NAMESPACE", environment.namespace).replace("NAME", service), name)
    environment.write(FILE, "shop.yaml")
    program.expect("up", "--yes", "--skip-preview")
    before = facts(program)

    environment.write(COMPOSED, "__main__.py")
    # Components come and go; of objects, only the Services are new that the program did not have.
    preview = json.loads(program.expect("preview", "--json"))
    steps = {(step["op"], *step["urn"].rsplit("::", 2)[1:]) for step in preview["steps"]}
    changed = {(op, kind.rpartition("$")[2], name) for op, kind, name in steps if op not in ("same", "update")}
    new = {("create", "kubernetes:core/v1:Service", f"shop-service/{name}") for name in ("db", "api", "worker")}
    gone = {("delete", "kubernetes:yaml:ConfigFile", "kompose"), ("delete", "kubernetes:yaml/v2:ConfigFile", "newer")}
    assert {found for found in changed if not found[1].startswith("composeplat:")} == new | gone
    assert {op for op, kind, _ in changed if kind.startswith("composeplat:")} == {"create"}
    program.expect("up", "--yes", "--skip-preview")

    assert facts(program) == before
    program.expect("preview", "--expect-no-changes")
