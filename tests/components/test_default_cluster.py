"""The cluster of a program without a Kubernetes provider: the configuration of Pulumi's default provider chooses it."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pulumi_kubernetes
import pytest
from pulumi.resource import DependencyResource
from pulumi.runtime.config import set_all_config

from composeplat.components.dependency_gate import DependencyGate
from composeplat.components.provider import ComponentProvider
from composeplat.components.service import Service
from tests.components.test_late_texts import unknown
from tests.components.test_stack import Registered, folder, run, stack
from tests.conftest import Folder

__all__ = ["folder"]

CONFIG: dict[str, Any] = {
    "current-context": "here",
    "clusters": [
        {"name": "near", "cluster": {"server": "http://127.0.0.1:1"}},
        {"name": "far", "cluster": {"server": "http://192.0.2.1:2"}},
    ],
    "contexts": [
        {"name": "here", "context": {"cluster": "near", "namespace": "mine"}},
        {"name": "there", "context": {"cluster": "far", "namespace": "theirs"}},
    ],
}


@pytest.fixture
def asked(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts of the clusters that hooks would ask, with a kubeconfig of two contexts."""
    (folder.path / "config").write_text(json.dumps(CONFIG))
    monkeypatch.setenv("KUBECONFIG", str(folder.path / "config"))
    found: list[str] = []

    def note(gate: DependencyGate) -> None:
        found.append(gate.access.host)
        original(gate)

    original = DependencyGate.__post_init__
    monkeypatch.setattr(DependencyGate, "__post_init__", note)
    return found


def registered(folder: Folder, configured: dict[str, str], **more: Any) -> Registered:
    def program() -> None:
        set_all_config({f"kubernetes:{key}": value for key, value in configured.items()})
        stack(folder, **{"waits": None, "namespace": "", **more})

    return run(program)


def namespace_of(found: Registered) -> str:
    return str(found.inputs("Deployment")["metadata"]["namespace"])


def test_the_current_context(folder: Folder, asked: list[str]) -> None:
    """Without a configuration, it is the cluster of the current context."""
    found = registered(folder, {})

    assert (asked, found.hooks, namespace_of(found)) == (["127.0.0.1"], ["shop-wait-web"], "mine")


def test_a_configured_context(folder: Folder, asked: list[str]) -> None:
    """``kubernetes:context`` is the cluster in which services wait, and its namespace is the default."""
    found = registered(folder, {"context": "there"})

    assert (asked, found.hooks, namespace_of(found)) == (["192.0.2.1"], ["shop-wait-web"], "theirs")


def test_a_configured_kubeconfig(folder: Folder, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``kubernetes:kubeconfig`` may be a path, also below the home folder."""
    monkeypatch.delenv("KUBECONFIG")
    found = registered(folder, {"kubeconfig": "~/config"})

    assert (asked, namespace_of(found)) == (["127.0.0.1"], "mine")


@pytest.mark.parametrize(
    "configured", [{"kubeconfig": json.dumps(CONFIG)}, {"cluster": "far"}, {"renderYamlToDirectory": "objects"}]
)
def test_another_cluster(folder: Folder, asked: list[str], configured: dict[str, str]) -> None:
    """A kubeconfig as a text, a cluster beside the context, and a folder are not for hooks: there Pulumi waits."""
    found = registered(folder, configured)

    assert (asked, found.hooks) == ([], [])
    assert "pulumi.com/skipAwait" not in found.annotations("Deployment")


FAR: dict[str, Any] = {
    "current-context": "far",
    "contexts": [
        {"name": "far", "context": {"namespace": "beyond"}},
        {"name": "there", "context": {"namespace": "yonder"}},
        {"name": "bare", "context": {}},
    ],
}


@pytest.mark.parametrize(
    ("configured", "namespace"),
    [
        ({"kubeconfig": json.dumps(FAR)}, "beyond"),
        ({"kubeconfig": json.dumps(FAR), "context": "there"}, "yonder"),
        ({"kubeconfig": json.dumps(FAR), "context": "bare"}, "default"),
        ({"kubeconfig": json.dumps(FAR), "namespace": "configured"}, "configured"),
        ({"kubeconfig": "no: [kubeconfig"}, "default"),
        ({"kubeconfig": "~/far", "cluster": "any"}, "beyond"),
        ({"kubeconfig": "~/far", "renderYamlToDirectory": "objects"}, "beyond"),
        ({"cluster": "far"}, "mine"),
    ],
)
@pytest.mark.usefixtures("asked")
def test_the_namespace_of_another_cluster(folder: Folder, configured: dict[str, str], namespace: str) -> None:
    """Where the configuration has a kubeconfig, the namespace is that of its context, and not of the machine's."""
    (folder.path / "far").write_text(json.dumps(FAR))

    assert namespace_of(registered(folder, configured)) == namespace


@pytest.mark.parametrize(
    ("arguments", "namespace"),
    [({}, "configured"), ({"namespace": "given"}, "given"), ({"namespace": None}, "configured")],
)
def test_a_configured_namespace(folder: Folder, asked: list[str], arguments: dict[str, Any], namespace: str) -> None:
    """``kubernetes:namespace`` is the default, as for every other resource of the program."""
    found = registered(folder, {"namespace": "configured"}, **arguments)

    assert (asked, namespace_of(found)) == (["127.0.0.1"], namespace)


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize(
    ("provider", "arguments", "other"),
    [
        ({"kubeconfig": json.dumps(FAR)}, {}, "beyond"),
        ({"kubeconfig": json.dumps(FAR), "context": "there"}, {}, "yonder"),
        ({"kubeconfig": "~/far"}, {}, "beyond"),
        ({"context": "there"}, {}, "theirs"),
        ({"namespace": "configured"}, {}, "configured"),
        ({"kubeconfig": "{}"}, {}, "default"),
        ({}, {}, ""),
        ({"namespace": "mine"}, {}, ""),
        ({"namespace": "configured"}, {"namespace": "mine"}, ""),
        ({"namespace": "configured"}, {"variables": {"PLATFORM_NAMESPACE": "chosen"}}, ""),
    ],
)
@pytest.mark.usefixtures("asked")
def test_the_namespace_of_a_provider(
    folder: Folder,
    caplog: pytest.LogCaptureFixture,
    provider: dict[str, Any],
    arguments: dict[str, Any],
    other: str,
    *,
    preview: bool,
) -> None:
    """A provider's namespace is known too late for the plan: where the default is another one, a warning says so."""
    (folder.path / "far").write_text(json.dumps(FAR))

    def program() -> None:
        options = pulumi.ResourceOptions(provider=pulumi_kubernetes.Provider("theirs", **provider))
        stack(folder, **{"waits": None, "namespace": "", "opts": options, **arguments})
        Service("alone", compose="image: nginx", **{"variables": {}, "opts": options, **arguments})

    run(program, preview=preview)
    text = (
        f"its objects are in namespace 'mine', although the provider's namespace is '{other}'\n"
        f"  hint: give it namespace='{other}', or namespace='mine' if that is meant"
    )
    assert [found.getMessage() for found in caplog.records if "namespace" in found.getMessage()] == (
        [text, text] if other else []
    )


@pytest.mark.usefixtures("asked")
def test_a_provider_that_is_not_known(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    """While a setting of the provider is not known, there is no warning."""

    def program() -> None:
        theirs = pulumi_kubernetes.Provider("theirs", kubeconfig=unknown())
        stack(folder, waits=None, namespace="", opts=pulumi.ResourceOptions(provider=theirs))

    run(program, preview=True)
    assert caplog.messages == []


@pytest.mark.usefixtures("asked")
def test_no_provider(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    """The namespace of the configuration needs no warning."""
    registered(folder, {"namespace": "configured"})

    assert caplog.messages == []


@pytest.mark.usefixtures("asked")
def test_a_service_alone() -> None:
    """A service alone has the same default."""

    def program() -> None:
        set_all_config({"kubernetes:context": "there"})
        Service("web", compose="image: nginx", variables={})

    assert namespace_of(run(program)) == "theirs"


@pytest.mark.usefixtures("asked")
def test_two_of_one_name(folder: Folder) -> None:
    """Below parents of different types two components may have the same name: their hooks have names of their own."""

    def program() -> None:
        stack(folder, waits=None)
        for kind in ("test:index:Staging", "test:index:Production"):
            parent = pulumi.ComponentResource(kind, "app")
            stack(folder, waits=None, opts=pulumi.ResourceOptions(parent=parent))

    assert run(program).hooks == [
        "shop-wait-web",
        "shop-wait-web-of-test:index:Production-app",
        "shop-wait-web-of-test:index:Staging-app",
    ]


@pytest.mark.usefixtures("asked")
def test_two_of_one_name_below_two_parents(folder: Folder) -> None:
    """So have the hooks of components whose parents differ only by the types of their own parents."""

    def program() -> None:
        for kind in ("test:index:Staging", "test:index:Production"):
            above = pulumi.ComponentResource(kind, "app")
            parent = pulumi.ComponentResource("test:index:Part", "part", opts=pulumi.ResourceOptions(parent=above))
            stack(folder, waits=None, opts=pulumi.ResourceOptions(parent=parent))

    name = "shop-wait-web-of-test:index:Part-part"
    assert [run(program).hooks for _ in range(2)] == 2 * [[name, f"{name}#2"]]


@pytest.mark.usefixtures("asked")
def test_two_of_one_name_of_another_language(folder: Folder) -> None:
    """So have the hooks of components whose parents are of another process, and which the provider makes."""

    def program() -> None:
        for place in ("test:index:Staging::app", "test:index:Top$test:index:Production::app", "pulumi:pulumi:Stack::x"):
            parent = DependencyResource(f"urn:pulumi:team::shop::{place}")
            inputs: Any = {"file": str(folder.path / "compose.yaml"), "namespace": "team", "variables": {}}
            options = pulumi.ResourceOptions(parent=parent, protect=False)
            ComponentProvider().construct("shop", "composeplat:index:ComposeStack", inputs, options)

    assert run(program).hooks == [
        "shop-wait-web",
        "shop-wait-web-of-test:index:Production-app",
        "shop-wait-web-of-test:index:Staging-app",
    ]


def test_a_unit_test(folder: Folder) -> None:
    """A unit test with Pulumi's mocks needs no cluster, also where services wait for others."""
    found = registered(folder, {}, namespace="team")

    assert ("kubernetes:apps/v1:Deployment", "shop-workload/web") in found.names
    assert found.hooks == []


@pytest.mark.parametrize(
    ("configured", "cluster"), [("context", "cluster 'there'"), ("cluster", "the provider's cluster")]
)
@pytest.mark.usefixtures("asked")
def test_what_is_published(folder: Folder, monkeypatch: pytest.MonkeyPatch, configured: str, cluster: str) -> None:
    """The message about published files names the cluster that they go to, if it is known."""
    shown: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", lambda text, **_: shown.append(text))

    registered(folder, {configured: "there"})

    assert [text.partition(",")[0] for text in shown if text.startswith("sends to")] == [f"sends to {cluster}"]


@pytest.mark.parametrize(("variables", "giver"), [({"TAG": "1"}, "program"), (None, "shell")])
@pytest.mark.usefixtures("asked")
def test_whose_variables_are_published(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str] | None, giver: str
) -> None:
    """Those that the program gives are not called the shell's."""
    shown: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", lambda text, **_: shown.append(text))
    monkeypatch.setenv("TAG", "2")
    (folder.path / "compose.yaml").write_text("services: {web: {image: 'nginx:${TAG}'}}\n")

    registered(folder, {}, variables=variables)

    assert [text.rpartition(": ")[0] for text in shown] == [
        f"sends to cluster 'here', namespace mine: variables of the {giver}"
    ]
