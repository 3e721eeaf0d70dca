"""The cluster service of a service that names no ports lists those of its image, through every entry point."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from composeplat.components.stack import ComposeStack
from composeplat.plan import Plan
from tests.components import test_stack
from tests.components.test_stack import run
from tests.conftest import Project
from tests.registry.test_image_users import BASE
from tests.registry_server import Registry, basic, serving

LISTED = [{"name": "tcp-80", "port": 80, "targetPort": 80, "protocol": "TCP"}]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry that is asked, and nothing remembered of before."""
    monkeypatch.setenv("PLATFORM_IMAGE_PORTS", "true")
    monkeypatch.setenv("COMPOSEPLAT_CACHE", str(tmp_path / "cache"))
    with serving(Registry()) as made:
        made.push("app", "80/tcp")
        yield made


def plan_of(project: Project, service: str, **more: Any) -> Plan:
    text = f"services:\n  web: {service}\n"
    plan = project({"compose.yaml": text, "Dockerfile": "FROM x\n"}).read(name="shop", namespace="team", **more).plan
    assert plan is not None
    return plan


def spec(plan: Plan, *, preview: bool = False) -> dict[str, Any]:
    registered = run(lambda: ComposeStack("shop", plan=plan, waits=False), preview=preview)
    found: dict[str, Any] = registered.inputs("core/v1:Service", "service/web")["spec"]
    return found


def test_of_an_image(registry: Registry, project: Project) -> None:
    """They are listed, in a preview as in a deploy, and the service continues being headless."""
    plan = plan_of(project, f"{{image: {registry.host}/app}}")

    assert spec(plan)["ports"] == LISTED
    assert spec(plan)["clusterIP"] == "None"
    assert spec(plan) == spec(plan, preview=True)


def test_through_the_file(registry: Registry, project: Project) -> None:
    """A program that names the file registers what `platform` does, with logins of its own too."""
    registry.gate = lambda _, given: (
        None if given == basic("ann", "s3cret") else (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"{}")
    )
    plan = plan_of(project, f"{{image: {registry.host}/app}}")
    logins = [{"address": registry.host, "username": "ann", "password": "s3cret"}]
    file = project({}).path / "compose.yaml"

    found = run(lambda: ComposeStack("shop", file=file, namespace="team", variables={}, waits=False, registries=logins))

    assert found.inputs("core/v1:Service", "service/web")["spec"]["ports"] == LISTED
    assert spec(plan)["ports"] == LISTED


def test_users_of_an_image(registry: Registry, project: Project) -> None:
    """A program that names the file looks up the users that it names, as `platform` does."""
    registry.push("app", layers=[BASE])
    file = project({"compose.yaml": f"services: {{web: {{image: {registry.host}/app, user: node}}}}"}).path
    found = run(lambda: ComposeStack("shop", file=file / "compose.yaml", namespace="team", variables={}, waits=False))

    (container,) = found.inputs("apps/v1:Deployment", "workload/web")["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["runAsUser"] == 1000


def test_of_no_registry(registry: Registry, project: Project) -> None:
    """Where the registry can't be asked, nothing is listed, as if there were none."""
    registry.gate = lambda *_: (503, {}, b"")
    plan = plan_of(project, f"{{image: {registry.host}/app}}")

    assert spec(plan) == next(desired.manifest for desired in plan.objects if desired.kind == "Service")["spec"]


def test_where_it_is_not_wanted(registry: Registry, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PLATFORM_IMAGE_PORTS=false no registry is asked."""
    monkeypatch.setenv("PLATFORM_IMAGE_PORTS", "false")

    assert "ports" not in spec(plan_of(project, f"{{image: {registry.host}/app}}"))
    assert registry.asked == []


def test_of_an_image_that_is_built(registry: Registry, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the very image that was built, by its digest; a preview goes by the one before."""
    digest = registry.push("shop-web", "80/tcp")
    registry.push("shop-web", "81/tcp")
    monkeypatch.setattr(test_stack, "DIGEST", f"{registry.host}/shop-web:latest@{digest}")
    plan = plan_of(project, "{build: .}", registry=registry.host)

    assert spec(plan)["ports"] == LISTED
    registry.asked.clear()
    assert spec(plan)["ports"] == LISTED
    assert registry.asked == []
    assert spec(plan, preview=True)["ports"] == LISTED
