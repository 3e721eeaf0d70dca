"""Pods are given the user's logins for their registries, where that is asked for."""

from __future__ import annotations

import base64
import json
from typing import Any

from composeplat.plan import Plan
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
