"""A service alone: the resources of a snippet, its values, and the errors, each with its place in the snippet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from composeplat.components.service import Service
from tests.components.test_stack import SECRET, Registered, run
from tests.conftest import ROOT, Folder, Project
from tests.page_commands import read_steps

DB = """\
image: postgres:17
environment: {POSTGRES_PASSWORD: "${PASSWORD}"}
volumes: ["data:/var/lib/postgresql/data"]
ports: ["5432", "8080:80"]
---
volumes: {data: {size: 5Gi}}
"""


@pytest.fixture(autouse=True)
def folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = project({"Dockerfile": "FROM x"})
    monkeypatch.chdir(made.path)
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(made.path))
    return made


def make(compose: str, read: Callable[[Service], Any] = lambda _: None, **more: Any) -> Registered:
    def program() -> None:
        arguments = {"namespace": "team", "endpoint_domain": "a.example", "variables": {"PASSWORD": "hunter2"}, **more}
        service = Service("db", compose=compose, **arguments)
        pulumi.CustomResource("test:index:Reader", "reader", {"value": read(service)})

    return run(program)


def test_resources() -> None:
    """The component is the parent of the service's objects; its volumes and endpoints are components below it."""
    found = make(DB)

    names = {(request.type, request.name) for request in found.requests if not request.type.startswith("test:")}
    assert names == {
        ("composeplat:index:Service", "db"),
        ("composeplat:index:Volume", "db-volume/data"),
        ("composeplat:index:EndpointSet", "db-endpoints/db"),
        ("kubernetes:core/v1:PersistentVolumeClaim", "db-claim/data"),
        ("kubernetes:core/v1:Secret", "db-environment/db"),
        ("kubernetes:core/v1:Service", "db-service/db"),
        ("kubernetes:apps/v1:StatefulSet", "db-workload/db"),
        ("kubernetes:networking.k8s.io/v1:Ingress", "db-endpoint/db"),
    }
    assert found.request("StatefulSet").parent.endswith("$composeplat:index:Service::db")


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda s: s.name, "db"),
        (lambda s: s.address, "db.team.svc"),
        (lambda s: s.ports, [5432, 8080, 80]),
        (lambda s: s.urls, ["https://db-team.a.example"]),
        (lambda s: s.image, "postgres:17"),
        (lambda s: s.namespace, "team"),
        (lambda s: s.volumes["data"].claim_name, "data"),
        (lambda s: s.env["POSTGRES_PASSWORD"], {**SECRET, "value": "hunter2"}),
    ],
)
def test_values(read: Callable[[Service], Any], expected: object) -> None:
    """A program reads the values that a service of a stack has."""
    found = make(DB, read).inputs("Reader")["value"]

    assert sorted(found) == sorted(expected) if isinstance(expected, list) else found == expected


def test_names() -> None:
    """The service and the environment have names of their own, if they are given."""
    found = make("image: nginx", service_name="web", environment_name="shop")

    labels = found.inputs("Deployment")["metadata"]["labels"]
    assert found.request("Deployment").name == "db-workload/web"
    assert (labels["dev.platform.com/service"], labels["dev.platform.com/environment"]) == ("web", "shop")


def test_a_build(folder: Folder) -> None:
    """An image is built before the objects, with the registry and the logins of the arguments."""
    logins = [{"address": "r.example", "username": "u", "password": "p"}]
    found = make(f"build: {folder.path}", registry="r.example", registries=logins)

    assert found.inputs("Image")["push"] is True
    assert found.request("Deployment").dependencies


@pytest.mark.parametrize(
    ("compose", "error"),
    [
        (
            "image: nginx\nprots: ['80']\nports: [x]\ndepends_on: [cache]\n",
            [
                "db:3:9: error: services.db.ports[0] must be a port",
                "db:4:14: error: services.db.depends_on[0] names 'cache', which is not a service of the definition",
            ],
        ),
        (
            "volumes: ['data:/data']\nimage: nginx\n---\nvolumes: {dta: {}}\n",
            ["db:1:11: error: services.db.volumes[0]"],
        ),
        ("", ["db:1:1: error: services.db has neither 'image' nor 'build'"]),
        ("a: [", ["db:1:5: error: not YAML: "]),
        (
            "name: shop\nservices: {db: {image: nginx}}\n",
            ["db:2:1: error: compose has 'services', as a whole Compose file", "use ComposeStack"],
        ),
        ("- image: nginx", ["db:1:1: error: services.db must be a mapping"]),
        ("image: nginx\n---\nservices: {web: {image: nginx}}\n", ["'compose' has other services than 'db': web"]),
    ],
)
def test_errors(compose: str, error: list[str]) -> None:
    """Everything that is wrong with a snippet is the error of the program, with the place in the snippet."""
    with pytest.raises(pulumi.RunError) as raised:
        make(compose)

    assert [text for text in error if text not in str(raised.value)] == [], str(raised.value)


def test_a_profile_that_is_off() -> None:
    """A service whose profile is off is no service."""
    with pytest.raises(pulumi.RunError, match="db:1:1: error: the definition has no service whose profile is on"):
        make("image: nginx\nprofiles: [tools]\n", full=True)


def test_an_unknown_argument() -> None:
    """A setting that a service alone has not is an error of Python, as any other argument."""
    with pytest.raises(TypeError, match="unexpected arguments: timeout, wait"):
        make("image: nginx", wait=True, timeout=5)


def test_the_page() -> None:
    """The program of the page runs as it is shown."""
    page = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    text = next(step.content for step in read_steps(page) if step.argument == "alone.py")

    def program() -> None:
        pulumi.runtime.set_all_config({"shop:password": "hunter2"})
        exec(compile(text, "alone.py", "exec"), {})  # noqa: S102 -- it is the page's

    found = run(program)
    assert "hunter2" not in str(found.everything)
    assert found.inputs("PersistentVolumeClaim")["spec"]["resources"]["requests"] == {"storage": "5Gi"}


def test_a_hook_that_runs_once() -> None:
    """It is a job below the component, and the service comes after it."""
    found = make("image: x\nscale: 2\npre_start: [{command: [migrate], per_replica: false}]\n", full=True)

    job = found.request("Job", "db-workload/db-pre-start-0")
    assert job.parent.endswith("$composeplat:index:Service::db-service/db-pre-start-0")
    assert any(urn.endswith("::db-workload/db-pre-start-0") for urn in found.request("Deployment").dependencies)
