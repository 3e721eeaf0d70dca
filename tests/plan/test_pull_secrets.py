"""Pods are given the user's logins for their registries, where that is asked for."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from composeplat.plan import Plan
from composeplat.registry.credentials import Login
from tests.conftest import Project

TEXT = """\
services:
  web: {image: 'r.example.com/web:1'}
  db: {image: postgres}
"""
CONFIG = json.dumps({"auths": {"r.example.com": {"auth": base64.b64encode(b"ann:s3cret").decode()}}})


def objects(project: Project, text: str = TEXT, **asked: Any) -> dict[str, dict[str, Any]]:
    made = project({"compose.yaml": text, "docker/config.json": CONFIG, "app/Dockerfile": "FROM scratch"})
    plan = project({}, DOCKER_CONFIG=str(made.path / "docker")).read(**asked).plan
    assert plan is not None
    return {f"{desired.kind}/{desired.name}": desired.manifest for desired in plan.objects}


def test_it_is_created_for_the_services_that_need_it(project: Project) -> None:
    """Each service whose registry the user is logged in to gets a Secret of its own, and its pods name it."""
    made = objects(project, pull_secret=True)

    secret = made["Secret/web-pull"]
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    login = json.loads(base64.b64decode(secret["data"][".dockerconfigjson"]))["auths"]["r.example.com"]
    assert (login["username"], login["password"]) == ("ann", "s3cret")
    pods = {
        name: manifest["spec"]["template"]["spec"] for name, manifest in made.items() if name.startswith("Deployment/")
    }
    assert pods["Deployment/web"]["imagePullSecrets"] == [{"name": "web-pull"}]
    assert "imagePullSecrets" not in pods["Deployment/db"]
    assert "Secret/db-pull" not in made


@pytest.mark.parametrize(
    ("service", "more", "expected"),
    [
        pytest.param("pre_start: [{image: r.example.com/x, command: [a]}]", {}, ["r.example.com"], id="hook"),
        pytest.param(
            "volumes: [{type: image, source: r.example.com/x, target: /x}]", {}, ["r.example.com"], id="volume"
        ),
        pytest.param("volumes: [/x]", {"fill_image": "r.example.com/busybox"}, ["r.example.com"], id="tools"),
        pytest.param("volumes: [/x]", {}, [], id="public-tools"),
        pytest.param(
            "pre_start: [{image: r.example.com/x, command: [a]}]",
            {"logins": {"docker.io": Login(address="hub", user="ann", password=base64.b64encode(b"x").decode())}},
            ["hub", "r.example.com"],
            id="two-registries",
        ),
    ],
)
def test_every_image_of_the_pods(project: Project, service: str, more: dict[str, Any], expected: list[str]) -> None:
    """The login for the image of a hook, of a volume or of the tools is there too, in the Secret of the service."""
    text = f"services: {{db: {{image: postgres, {service}}}}}"

    made = objects(project, text, full=True, pull_secret=True, **more)

    (pod,) = (found["spec"]["template"]["spec"] for found in made.values() if "template" in found.get("spec", {}))
    data = made.get("Secret/db-pull", {}).get("data", {}).get(".dockerconfigjson")
    assert list(json.loads(base64.b64decode(data))["auths"] if data else ()) == expected
    assert pod.get("imagePullSecrets", []) == ([{"name": "db-pull"}] if expected else [])


def test_confidential_values_are_not_written() -> None:
    """A plan that finds its way into a traceback has none of what it knows to be confidential in it."""
    plan = Plan(environment="demo", namespace="team").with_confidential(("hunter2",))

    assert plan.confidential == ("hunter2",)
    assert "hunter2" not in repr(plan)


def test_only_when_asked(project: Project) -> None:
    """Without being asked for, no login is read, and none is given."""
    assert "Secret/web-pull" not in objects(project)


def test_built_services(project: Project) -> None:
    """A service that is built is pulled from the registry that it is pushed to."""
    text = "services: {web: {build: ./app}}"

    assert "Secret/web-pull" in objects(project, text, pull_secret=True, registry="r.example.com/team")
    assert "Secret/web-pull" not in objects(project, text, pull_secret=True, registry="s.example.com/team")
