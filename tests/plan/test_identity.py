"""What every object carries: where it lives and whose it is."""

from __future__ import annotations

from typing import Any

from tests.conftest import Project, Reading

TEXT = """\
services:
  My_Web:
    image: x
    ports: ['8080:80']
    environment: {A: b}
    volumes: ['data:/data', '/cache', './conf:/etc/conf']
    labels: {team: blue}
  once: {image: x, restart: 'no'}
  plain: {image: x}
volumes: {data: {}}
endpoints: [{path: /, service: My_Web, port: 80}]
"""


def read(project: Project, environment: str = "shop") -> Reading:
    return project(TEXT).write({"conf": "x"}).read(name=environment, namespace="team")


def manifests(reading: Reading) -> list[dict[str, Any]]:
    assert reading.plan is not None, reading.messages
    return [desired.manifest for desired in reading.plan.objects]


def labels(component: str, *, is_service: bool = True) -> dict[str, str]:
    own = {"dev.platform.com/service": component} if is_service else {}
    return {
        "app.kubernetes.io/name": component,
        "app.kubernetes.io/instance": "shop",
        "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": "composeplat",
        "dev.platform.com/environment": "shop",
        **own,
    }


def test_labels(project: Project) -> None:
    """Every object says which environment it belongs to, and which part of it it is."""
    services = {
        "Secret/my-web-env": "my-web",
        "Secret/my-web-files": "my-web",
        "Service/my-web": "my-web",
        "StatefulSet/my-web": "my-web",
        "Service/once": "once",
        "Job/once": "once",
        "Service/plain": "plain",
        "Deployment/plain": "plain",
    }
    others = {"PersistentVolumeClaim/data": "data", "Ingress/my-web": "my-web", "Ingress/shop": "shop"}

    seen = {f"{m['kind']}/{m['metadata']['name']}": m["metadata"]["labels"] for m in manifests(read(project))}

    assert seen == {
        **{name: labels(service) for name, service in services.items()},
        **{name: labels(component, is_service=False) for name, component in others.items()},
    }


def test_namespace(project: Project) -> None:
    """Every object names its namespace."""
    assert {manifest["metadata"]["namespace"] for manifest in manifests(read(project))} == {"team"}


def test_selectors(project: Project) -> None:
    """A selector is the few labels that never change, all of our own prefix, and the pods carry them.

    `app.kubernetes.io/name` and `instance` are Helm's too: a release of the environment's name was selected as well.
    """
    reading = read(project)
    expected = {"dev.platform.com/environment": "shop", "dev.platform.com/service": "my-web"}

    workload = reading.object("StatefulSet", "my-web")["spec"]

    assert expected == reading.object("Service", "my-web")["spec"]["selector"]
    assert expected == workload["selector"]["matchLabels"]
    assert expected.items() <= workload["template"]["metadata"]["labels"].items()


def test_a_job_has_no_selector(project: Project) -> None:
    """A Job's selector is Kubernetes's own to make."""
    assert "selector" not in read(project).object("Job", "once")["spec"]


def test_claims_of_a_stateful_set(project: Project) -> None:
    """Claims that Kubernetes makes for each pod carry the labels too."""
    (template,) = read(project).object("StatefulSet", "my-web")["spec"]["volumeClaimTemplates"]

    assert labels("my-web") == template["metadata"]["labels"]


def test_labels_of_the_definition(project: Project) -> None:
    """Compose's labels are annotations of the workload and its pods, and of nothing else."""
    found = [
        f"{m['kind']}/{m['metadata']['name']}"
        for m in manifests(read(project))
        if "team" in m["metadata"].get("annotations", {})
    ]
    template = read(project).object("StatefulSet", "my-web")["spec"]["template"]

    assert found == ["StatefulSet/my-web"]
    assert template["metadata"]["annotations"]["team"] == "blue"


def test_two_environments(project: Project) -> None:
    """The same definition under two names gives the same objects, but for the names' labels and hosts."""
    shop, stage = (repr(manifests(read(project, name))) for name in ("shop", "stage"))

    assert shop != stage
    assert shop.replace("shop", "stage") == stage
