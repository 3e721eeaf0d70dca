"""The values that a program reads of a stack: names, addresses, ports, variables, and the objects themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi.runtime.rpc import UNKNOWN

from composeplat.components.outputs import after, independent
from composeplat.components.stack import ComposeStack
from tests.components.test_late_texts import unknown
from tests.components.test_stack import DIGEST, SECRET, Registered, run
from tests.conftest import Folder, Project

HASH = f"sha256:{'0123' * 16}"
TEXT = f"""\
services:
  web:
    build: .
    image: r.example/web
    ports: ["8080:80"]
    environment: {{DB: "postgres://${{DB}}/shop", GREETING: "a$$b\\n😀"}}
    depends_on: [db]
  db:
    image: postgres@{HASH}
    volumes: ['data:/data']
    configs: [settings]
volumes: {{data: {{name: shop-data}}}}
configs: {{settings: {{content: "x: 1"}}}}
endpoints:
  all:
    rules: [{{path: /, service: web, port: 80}}, {{path: /again, service: web, port: 8080}}]
x-platform: {{full: true}}
"""


@pytest.fixture
def folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = project({"compose.yaml": TEXT, "Dockerfile": "FROM x"})
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(made.path))
    return made


def read(
    folder: Folder, value: Callable[[ComposeStack], Any], *, preview: bool = False, **more: Callable[[], Any]
) -> dict[str, Any]:
    """The registration of a resource that has a value of the stack as its input, as the engine gets it."""

    def program() -> None:
        arguments: dict[str, Any] = {
            "namespace": "team",
            "endpoint_domain": "a.example",
            "variables": {"DB": "db"},
            "waits": False,
        }
        made = {name: make() for name, make in more.items()}
        stack = ComposeStack("shop", file=folder.path / "compose.yaml", **{**arguments, **made})
        pulumi.CustomResource("test:index:Reader", "reader", {"value": value(stack)})

    found = run(program, preview=preview)
    return {
        "value": found.inputs("Reader").get("value"),
        "after": sorted(urn.rpartition("::")[2] for urn in found.request("Reader").dependencies),
    }


@pytest.mark.parametrize(
    ("value", "expected", "after"),
    [
        (lambda s: s.services["web"].name, "web", ["shop-service/web"]),
        (lambda s: s.services["web"].address, "web.team.svc", ["shop-service/web"]),
        (lambda s: s.services["web"].ports, [80, 8080], ["shop-service/web"]),
        (lambda s: s.services["db"].ports, [], ["shop-service/db"]),
        (lambda s: s.services["web"].image, DIGEST, ["shop-image/web"]),
        (lambda s: s.services["web"].digest, "sha256:0123", ["shop-image/web"]),
        (lambda s: s.services["db"].digest, HASH, []),
        (
            lambda s: s.services["web"].urls,
            ["https://web-team.a.example", "https://all-team.a.example", "https://all-team.a.example/again"],
            ["shop-endpoint/all", "shop-endpoint/web"],
        ),
        (lambda s: s.services["db"].urls, [], []),
        (
            lambda s: s.services["web"].selector,
            {"dev.platform.com/environment": "shop", "dev.platform.com/service": "web"},
            [],
        ),
        (lambda s: s.volumes["data"].claim_name, "shop-data", ["shop-claim/data"]),
        (lambda s: s.namespace, "team", []),
    ],
)
def test_values(folder: Folder, value: Callable[[ComposeStack], Any], expected: object, after: list[str]) -> None:
    """Each value, and the objects that its users come after."""
    assert read(folder, value) == {"value": expected, "after": after}


def test_env(folder: Folder) -> None:
    """The variables of a service are secrets, each by itself, and text of any kind."""
    found = read(folder, lambda stack: stack.services["web"].env)

    assert found == {
        "value": {
            "DB": {**SECRET, "value": "postgres://db/shop"},
            "GREETING": {**SECRET, "value": "a$b\n😀"},
        },
        "after": ["shop-environment/web"],
    }
    assert read(folder, lambda stack: stack.services["db"].env)["value"] == {}


def test_env_of_outputs(folder: Folder) -> None:
    """A preview shows the variables that it knows."""
    late = read(
        folder, lambda stack: stack.services["web"].env, variables=lambda: {"DB": pulumi.Output.from_input("late")}
    )
    preview = read(folder, lambda stack: stack.services["web"].env, preview=True, variables=lambda: {"DB": unknown()})

    assert late["value"]["DB"] == {**SECRET, "value": "postgres://late/shop"}
    assert preview["value"]["DB"] == {**SECRET, "value": UNKNOWN}
    assert preview["value"]["GREETING"]["value"] == "a$b\n😀"


def test_a_patched_environment(folder: Folder) -> None:
    """Variables that a patch sets to bytes are no text, and are left out."""
    folder.write(
        {
            "compose.yaml": "services:\n  web:\n    image: x\n    environment: {A: b}\n    x-kubernetes:\n"
            "      patch: {Secret/web-env: {data: {B: /w==}}}\nx-platform: {full: true}\n"
        }
    )

    assert read(folder, lambda stack: stack.services["web"].env)["value"] == {"A": {**SECRET, "value": "b"}}


def test_late_addresses(folder: Folder) -> None:
    """With outputs as namespace and domain, addresses are outputs: unknown in a preview, and secret if these are."""
    late: Any = {
        "namespace": lambda: pulumi.Output.secret("late"),
        "endpoint_domain": lambda: pulumi.Output.secret("b.example"),
    }

    address = read(folder, lambda stack: stack.services["web"].address, **late)["value"]
    assert address == {**SECRET, "value": "web.late.svc"}
    assert read(folder, lambda stack: stack.services["web"].urls, **late)["value"] == {
        **SECRET,
        "value": ["https://web-late.b.example", "https://all-late.b.example", "https://all-late.b.example/again"],
    }
    preview = read(folder, lambda stack: stack.services["web"].address, preview=True, namespace=unknown)
    assert preview["value"] == UNKNOWN


def test_objects(folder: Folder) -> None:
    """Every registered object is there by its kind and name, below its part of the file."""
    found: dict[str, Any] = {}

    def program() -> None:
        stack = ComposeStack(
            "shop",
            file=folder.path / "compose.yaml",
            namespace="team",
            endpoint_domain="a.example",
            variables={},
            waits=False,
        )
        found["web"] = sorted(stack.services["web"].objects)
        found["data"] = stack.volumes["data"].objects == {
            "PersistentVolumeClaim/shop-data": stack.volumes["data"].claim
        }
        found["all"] = sorted(stack.endpoints["all"].objects)
        found["files"] = list(stack.files)
        found["count"] = len(stack.objects)
        found["workload"] = stack.objects["Deployment/web"] is stack.services["web"].workload

    registered: Registered = run(program)

    assert found == {
        "web": ["Deployment/web", "Secret/web-env", "Service/web"],
        "data": True,
        "all": ["Ingress/all"],
        "files": ["ConfigMap/settings"],
        "count": len(registered.of_package("kubernetes")),
        "workload": True,
    }


def test_a_service_in_the_pods_of_another(folder: Folder) -> None:
    """Its workload is that of the other, whose pods its selector selects."""
    text = "services: {web: {image: x}, log: {image: x, network_mode: 'service:web'}}\nx-platform: {full: true}\n"
    folder.write({"compose.yaml": text})
    found: dict[str, Any] = {}

    def program() -> None:
        stack = ComposeStack("shop", file=folder.path / "compose.yaml", namespace="team", variables={}, waits=False)
        log, web = stack.services["log"], stack.services["web"]
        found.update(workload=log.workload is web.workload, selector=log.selector == web.selector)

    run(program)

    assert found == {"workload": True, "selector": True}


def test_after() -> None:
    """A value keeps its own resources, and that it is secret or unknown."""

    def program() -> None:
        first, second = (pulumi.CustomResource("test:index:Made", name, {}) for name in ("first", "second"))
        value: pulumi.Output[str] = pulumi.Output.secret(first.urn.apply(lambda _: "v"))
        pulumi.CustomResource(
            "test:index:Reader", "reader", {"value": after(value, second), "no": after(unknown(), first)}
        )

    found = run(program, preview=True)

    assert found.inputs("Reader")["no"] == UNKNOWN
    assert found.inputs("Reader")["value"] == {**SECRET, "value": "v"}
    assert sorted(urn.rpartition("::")[2] for urn in found.request("Reader").propertyDependencies["value"].urns) == [
        "first",
        "second",
    ]


def test_nothing_is_begun_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """No coroutine is made before it is awaited: as a program fails, Python would warn of each that never was."""
    begun: list[str] = []

    def note(name: str, method: Any) -> Any:
        def noted(**options: Any) -> Any:
            begun.append(name)
            return method(**options)

        return noted

    def program() -> None:
        value: pulumi.Output[str] = pulumi.Output.from_input("x")
        for name in ("future", "is_known", "is_secret"):
            monkeypatch.setattr(value, name, note(name, getattr(value, name)))
        assert isinstance(independent(value), pulumi.Output)
        assert begun == []

    run(program)
    assert set(begun) >= {"future", "is_known"}
