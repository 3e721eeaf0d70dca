"""A Compose file as Pulumi resources: which are registered, under which names, and with which inputs."""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes
import pytest
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from pulumi.runtime import mocks
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.rpc import UNKNOWN
from pulumi.runtime.stack import run_pulumi_func

from composeplat.cluster.access import Access
from composeplat.cluster.watching import Watcher
from composeplat.components.dependency_gate import DependencyGate
from composeplat.components.program import declare_configured
from composeplat.components.stack import ComposeStack
from composeplat.plan import Plan
from composeplat.plan.restarts import RESTARTS_ANNOTATION
from composeplat.system.deadline import Deadline
from tests.conftest import Folder, Project

DIGEST = "localhost/shop-web@sha256:0123"
A_DIGEST, B_DIGEST = f"a@sha256:{64 * 'a'}", f"b@sha256:{64 * 'b'}"
#: How Pulumi marks a secret on its way to the engine.
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


class Nothing(mocks.Mocks):
    """Is asked for nothing: the monitor below answers itself."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        raise AssertionError(args.name)

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(args.token)


class Engine(mocks.MockMonitor):
    """Notes what is registered, as it comes over the wire, and makes each resource what is asked for."""

    def __init__(self) -> None:
        super().__init__(Nothing())
        self.requests: list[Any] = []
        self.hooks: list[str] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 -- the protocol's word
        self.requests.append(request)
        urn = self.make_urn(request.parent, request.type, request.name)
        answer = resource_pb2.RegisterResourceResponse(urn=urn, id=f"{request.name}-id" if request.custom else "")
        answer.object.CopyFrom(request.object)
        _default_namespace(answer.object)
        if request.type == "docker-build:index:Image":
            answer.object.update({"ref": DIGEST})
        if request.type == "docker:index/image:Image":
            answer.object.update({"repoDigest": DIGEST})
        return answer

    def RegisterResourceHook(self, request: Any) -> Any:  # noqa: N802 -- the protocol's word
        self.hooks.append(request.name)
        return super().RegisterResourceHook(request)  # type: ignore[no-untyped-call]


def _default_namespace(found: Any) -> None:
    """Answer as Pulumi's provider does in a preview that does not know the namespace of an object."""
    if "metadata" in found and dict(found["metadata"]).get("namespace") == UNKNOWN:
        found["metadata"]["namespace"] = "default"


class Registered:
    """The resources that a program has registered; the stack itself is left out."""

    def __init__(self, requests: list[Any], hooks: list[str]) -> None:
        self.requests = [request for request in requests if request.type != "pulumi:pulumi:Stack"]
        self.hooks = sorted(hooks)

    @property
    def names(self) -> list[tuple[str, str]]:
        return sorted((request.type, request.name) for request in self.requests)

    def request(self, kind: str, name: str = "") -> Any:
        """The one resource whose type ends so, and whose name does where one is given."""
        (found,) = [
            request
            for request in self.requests
            if re.search(f"[:/]{kind}$", request.type) and request.name.endswith(name)
        ]
        return found

    def inputs(self, kind: str, name: str = "") -> dict[str, Any]:
        found: dict[str, Any] = MessageToDict(self.request(kind, name).object)
        return found

    @property
    def everything(self) -> dict[tuple[str, str], Any]:
        """All inputs, by type and name."""
        return {(request.type, request.name): MessageToDict(request.object) for request in self.requests}

    def annotations(self, kind: str, name: str = "") -> dict[str, str]:
        """Those that are for Pulumi."""
        found = self.inputs(kind, name)["metadata"].get("annotations", {})
        return {key: value for key, value in found.items() if key.startswith("pulumi.com/")}

    def of_package(self, package: str) -> list[Any]:
        return [request for request in self.requests if request.type.startswith(f"{package}:")]


def run(program: Callable[[], object], *, preview: bool = False) -> Registered:
    """Run a program in a Pulumi of its own: its settings live in a context that ends with it."""
    engine = Engine()

    def within() -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            pulumi.runtime.set_mocks(engine.mocks, project="shop", stack="team", preview=preview, monitor=engine)
            loop.run_until_complete(run_pulumi_func(lambda: (program(), None)[1]))
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
            asyncio.set_event_loop(None)

    contextvars.Context().run(within)
    return Registered(engine.requests, engine.hooks)


TEXT = """\
services:
  web:
    image: nginx:1
    ports: ['8080:80']
    environment: {GREETING: hello}
    volumes: ['./conf:/etc/conf']
    depends_on: [db]
  db:
    image: postgres
    volumes: ['data:/data']
volumes: {data: {}}
"""


@pytest.fixture
def folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """The shop's folder, on a machine that knows no cluster."""
    made = project({"compose.yaml": TEXT, "conf": "x"})
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(made.path))
    return made


def stack(folder: Folder, **more: Any) -> ComposeStack:
    """The shop's stack, with Pulumi waiting unless said otherwise."""
    file = folder.path / "compose.yaml"
    usual = {"file": file, "namespace": "team", "endpoint_domain": "example.com", "variables": {}, "waits": False}
    return ComposeStack("shop", **{**usual, **more})


def plan_of(folder: Folder) -> Plan:
    plan = folder.read(name="shop", namespace="team").plan
    assert plan is not None
    return plan


# names ----------------------------------------------------------------------------------------------------------------


def test_registered_resources(folder: Folder) -> None:
    """Types and names are a promise that state hangs on: these, and no others."""
    assert run(lambda: stack(folder)).names == [
        ("composeplat:index:ComposeStack", "shop"),
        ("composeplat:index:EndpointSet", "shop-endpoints/web"),
        ("composeplat:index:Service", "shop-service/db"),
        ("composeplat:index:Service", "shop-service/web"),
        ("composeplat:index:Volume", "shop-volume/data"),
        ("kubernetes:apps/v1:Deployment", "shop-workload/web"),
        ("kubernetes:apps/v1:StatefulSet", "shop-workload/db"),
        ("kubernetes:core/v1:PersistentVolumeClaim", "shop-claim/data"),
        ("kubernetes:core/v1:Secret", "shop-environment/web"),
        ("kubernetes:core/v1:Secret", "shop-files/web"),
        ("kubernetes:core/v1:Service", "shop-service/db"),
        ("kubernetes:core/v1:Service", "shop-service/web"),
        ("kubernetes:networking.k8s.io/v1:Ingress", "shop-endpoint/web"),
    ]


def test_other_kinds(folder: Folder) -> None:
    """A kind that the SDK has no class for, and a Job, have their own types."""
    folder.write({"compose.yaml": "services: {web: {image: x, ports: ['80:8080']}, once: {image: x, restart: 'no'}}"})

    names = run(lambda: stack(folder, gateway="gate")).names

    assert ("kubernetes:batch/v1:Job", "shop-workload/once") in names
    assert ("kubernetes:gateway.networking.k8s.io/v1:HTTPRoute", "shop-endpoint/web") in names


def test_both_entry_points_register_the_same(folder: Folder) -> None:
    """A plan that is given gives the resources that the file gives, with the same inputs."""
    plan = plan_of(folder)

    assert run(lambda: stack(folder)).everything == run(lambda: ComposeStack("shop", plan=plan, waits=False)).everything


def test_parents(folder: Folder) -> None:
    """Each object is below its part of the file, and these below the stack."""
    registered = run(lambda: stack(folder))

    parents = {
        (kind, name): registered.request(kind, name).parent.rpartition("::")[2]
        for kind, name in (
            ("ComposeStack", "shop"),
            ("Volume", "data"),
            ("Deployment", "web"),
            ("Secret", "environment/web"),
            ("PersistentVolumeClaim", "data"),
            ("Ingress", "web"),
        )
    }
    assert parents == {
        ("ComposeStack", "shop"): "shop-team",
        ("Volume", "data"): "shop",
        ("Deployment", "web"): "shop-service/web",
        ("Secret", "environment/web"): "shop-service/web",
        ("PersistentVolumeClaim", "data"): "shop-volume/data",
        ("Ingress", "web"): "shop-endpoints/web",
    }


def test_order(folder: Folder) -> None:
    """An object is made after those it needs, and a workload after that of a service it depends on."""
    registered = run(lambda: stack(folder))

    def needed(kind: str, name: str) -> list[str]:
        return sorted(urn.rpartition("::")[2] for urn in registered.request(kind, name).dependencies)

    assert needed("StatefulSet", "db") == ["shop-claim/data", "shop-service/db"]
    assert needed("Ingress", "web") == ["shop-service/web"]
    assert needed("Deployment", "web") == [
        "shop-environment/web",
        "shop-files/web",
        "shop-service/web",
        "shop-workload/db",
    ]


def test_names_for_programs(folder: Folder) -> None:
    """A program finds services, volumes and endpoints by the names of the file, and the addresses."""
    found: dict[str, Any] = {}

    def program() -> None:
        made = stack(folder)
        found["names"] = [list(made.services), list(made.volumes), list(made.endpoints)]
        made.urls.apply(lambda urls: found.update(urls=urls))
        made.services["web"].image.apply(lambda image: found.update(image=image))

    run(program)

    assert found == {
        "names": [["db", "web"], ["data"], ["web"]],
        "urls": ["https://web-team.example.com"],
        "image": "nginx:1",
    }


# inputs ---------------------------------------------------------------------------------------------------------------

LABELS = {
    "app.kubernetes.io/name": "web",
    "app.kubernetes.io/instance": "shop",
    "app.kubernetes.io/part-of": "shop",
    "app.kubernetes.io/component": "web",
    "app.kubernetes.io/managed-by": "composeplat",
    "dev.platform.com/environment": "shop",
    "dev.platform.com/service": "web",
}
POD_LABELS = {key: value for key, value in LABELS.items() if not key.endswith(("/name", "/instance"))}
SELECTED = {"dev.platform.com/environment": "shop", "dev.platform.com/service": "web"}
OWNER = {"pulumi.com/patchFieldManager": "composeplat"}
NOT_AWAITED = {"pulumi.com/skipAwait": "true", "pulumi.com/deletionPropagationPolicy": "background"}


def test_inputs_of_a_workload(folder: Folder) -> None:
    """A workload is registered as the plan has it, with what Pulumi is to know in its annotations."""
    folder.write({"compose.yaml": "services: {web: {image: 'nginx:1', ports: [80]}}"})

    assert run(lambda: stack(folder, waits=True)).inputs("Deployment") == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "team",
            "labels": LABELS,
            "annotations": {**OWNER, **NOT_AWAITED},
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": SELECTED},
            "template": {
                "metadata": {"labels": POD_LABELS},
                "spec": {
                    "enableServiceLinks": False,
                    "automountServiceAccountToken": False,
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "terminationGracePeriodSeconds": 10,
                    "containers": [
                        {
                            "name": "web",
                            "image": "nginx:1",
                            "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        }
                    ],
                },
            },
            "strategy": {"type": "RollingUpdate"},
        },
    }


def test_annotations_of_the_file_are_kept(folder: Folder) -> None:
    """What the file says in annotations is beside them."""
    folder.write({"compose.yaml": "services: {web: {image: x, labels: {team: blue}}}"})

    annotations = run(lambda: stack(folder)).inputs("Deployment")["metadata"]["annotations"]

    assert annotations == {"team": "blue", **OWNER}


WAITED_FOR = [("Deployment", "web"), ("StatefulSet", "db"), ("Secret", "environment/web"), ("Secret", "files/web")]
NEVER_WAITED_FOR = [("PersistentVolumeClaim", "data"), ("v1:Service", "web"), ("Ingress", "web")]


def annotations_of(registered: Registered, names: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [registered.annotations(kind, name) for kind, name in names]


def test_pulumi_waits(folder: Folder) -> None:
    """Where Pulumi is to wait, it waits for workloads, and for nothing that may never come."""
    registered = run(lambda: stack(folder, waits=False))

    assert annotations_of(registered, WAITED_FOR) == [OWNER] * 4
    assert annotations_of(registered, NEVER_WAITED_FOR) == [{**OWNER, **NOT_AWAITED}] * 3


def test_pulumi_does_not_wait(folder: Folder) -> None:
    """Where we wait, Pulumi waits for nothing."""
    registered = run(lambda: stack(folder, waits=True), preview=True)

    assert annotations_of(registered, WAITED_FOR + NEVER_WAITED_FOR) == [{**OWNER, **NOT_AWAITED}] * 7


def test_claims_are_retained(folder: Folder) -> None:
    """A volume's claim stays when the stack goes; nothing else does."""
    requests = run(lambda: stack(folder)).of_package("kubernetes")

    assert [request.name for request in requests if request.retainOnDelete] == ["shop-claim/data"]


def test_an_image_that_is_built(folder: Folder) -> None:
    """A build is registered below its service, and the workload runs it by its digest."""
    folder.write({"compose.yaml": "services: {web: {build: {context: ., args: {A: b}}}}", "Dockerfile": "FROM x"})

    registered = run(lambda: stack(folder, registry="localhost", builder="mine"))

    assert registered.request("Image").name == "shop-image/web"
    assert registered.request("Image").parent.endswith("::shop-service/web")
    inputs = registered.inputs("Image")
    assert (inputs["tags"], inputs["push"], inputs["builder"]) == (["localhost/shop-web"], True, {"name": "mine"})
    assert inputs["context"] == {"location": str(folder.path)}
    (container,) = registered.inputs("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == DIGEST


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        pytest.param({}, (DIGEST, DIGEST), id="the build's"),
        pytest.param({"web": A_DIGEST}, (A_DIGEST, A_DIGEST), id="of the one that builds"),
        pytest.param({"worker": B_DIGEST}, (DIGEST, B_DIGEST), id="of the one that uses it"),
    ],
)
def test_an_image_that_another_service_builds(
    folder: Folder, images: dict[str, str], expected: tuple[str, str]
) -> None:
    """A service runs the digest of the build that makes its image, or what the program gives for either."""
    text = "services: {worker: {image: shop}, web: {build: ., image: shop}}"
    folder.write({"compose.yaml": text, "Dockerfile": "FROM x"})

    registered = run(lambda: stack(folder, registry="localhost", builder="mine", images=images))

    pods = [registered.inputs("Deployment", name)["spec"]["template"]["spec"] for name in ("web", "worker")]
    assert tuple(pod["containers"][0]["image"] for pod in pods) == expected


@pytest.mark.parametrize(("images", "expected"), [({}, DIGEST), ({"web": A_DIGEST}, A_DIGEST)], ids=["built", "given"])
def test_an_image_of_a_hook_and_a_volume(folder: Folder, images: dict[str, str], expected: str) -> None:
    """They have the digest of the build that makes it too, or the image that the program gives for its service."""
    text = """
services:
  worker:
    image: x
    pre_start: [{image: shop, command: [copy], per_replica: true}]
    volumes: [{type: image, source: shop, target: /shop}]
  web: {build: ., image: shop}
"""
    folder.write({"compose.yaml": text, "Dockerfile": "FROM x"})

    registered = run(lambda: stack(folder, registry="localhost", builder="mine", images=images, full=True))

    pod = registered.inputs("Deployment", "worker")["spec"]["template"]["spec"]
    assert (pod["initContainers"][0]["image"], pod["volumes"][0]["image"]["reference"]) == (expected, expected)


def test_a_built_image_restarts_dependents(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The annotation for `depends_on.restart` covers the digest and the salted variables of the dependency."""
    depends = "{app: {condition: service_started, restart: true}}"
    text = f"services:\n  web: {{image: x, depends_on: {depends}}}\n  app: {{build: ., environment: {{A: b}}}}\n"
    folder.write({"compose.yaml": text, "Dockerfile": "FROM x"})

    def annotation() -> str:
        registered = run(lambda: stack(folder, registry="localhost", builder="mine", full=True))
        metadata = registered.inputs("Deployment", "web")["spec"]["template"]["metadata"]
        return str(metadata["annotations"][RESTARTS_ANNOTATION])

    first = annotation()
    assert first == annotation()
    assert len(first) == 32
    monkeypatch.setattr("tests.components.test_stack.DIGEST", f"{DIGEST}4567")
    assert annotation() != first


def test_profiles(folder: Folder) -> None:
    """A stack has the services of its profiles, in full mode."""
    folder.write({"compose.yaml": "services: {web: {image: x}, debug: {image: y, profiles: [debug, tools]}}"})

    def deployments(**more: Any) -> list[str]:
        names = run(lambda: stack(folder, full=True, **more)).names
        return [name.rpartition("/")[2] for kind, name in names if kind.endswith(":Deployment")]

    assert deployments() == ["web"]
    assert deployments(profiles=["tools"]) == ["debug", "web"]
    assert deployments(variables={"COMPOSE_PROFILES": "debug"}) == ["debug", "web"]


# secrets --------------------------------------------------------------------------------------------------------------

CONFIDENTIAL = """\
services:
  web:
    image: nginx:1
    environment: {PASSWORD: "${PASSWORD}"}
    command: [serve, "--password=${PASSWORD}", "--port=${PORT}"]
    labels: {note: "is ${PASSWORD}"}
"""
VARIABLES = {"PASSWORD": "hunter2-hunter2", "PORT": "8080"}


def is_marked(value: Any) -> bool:
    return isinstance(value, dict) and SECRET.items() <= value.items()


def test_secrets_are_marked(folder: Folder) -> None:
    """The data of a Secret are a secret as a whole, so that Pulumi encrypts and hides them; files are such data too."""
    registered = run(lambda: stack(folder))

    assert registered.inputs("Secret", "environment/web")["data"] == {**SECRET, "value": {"GREETING": "aGVsbG8="}}
    assert registered.inputs("Secret", "files/web")["data"] == {**SECRET, "value": {"etc_conf": "eA=="}}


def test_confidential_values_are_marked(folder: Folder) -> None:
    """Where a confidential value is in another object, it is marked there, and what is beside it is not."""
    folder.write({"compose.yaml": CONFIDENTIAL})

    inputs = run(lambda: stack(folder, variables=VARIABLES)).inputs("Deployment")

    (container,) = inputs["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["serve", {**SECRET, "value": "--password=hunter2-hunter2"}, "--port=8080"]
    assert inputs["metadata"]["annotations"]["note"] == {**SECRET, "value": "is hunter2-hunter2"}


def test_confidential_values_are_nowhere_else(folder: Folder) -> None:
    """No input of any resource holds a confidential value without being marked."""
    folder.write({"compose.yaml": CONFIDENTIAL})

    def unmarked(value: Any) -> str:
        """Give what can be read of a value."""
        if is_marked(value):
            return ""
        if isinstance(value, Mapping):
            return "".join(unmarked(item) for item in value.values())
        return "".join(map(unmarked, value)) if isinstance(value, list) else str(value)

    registered = run(lambda: stack(folder, variables=VARIABLES))

    shown = "".join(unmarked(MessageToDict(request.object)) for request in registered.of_package("kubernetes"))
    assert "hunter2" not in shown
    assert "--port=8080" in shown


def test_build_arguments_are_marked(folder: Folder) -> None:
    """What a build is given is a secret, as it often holds one."""
    folder.write({"compose.yaml": "services: {web: {build: {context: ., args: {A: b}}}}", "Dockerfile": "FROM x"})

    inputs = run(lambda: stack(folder, registry="localhost")).inputs("Image")

    assert inputs["buildArgs"] == {**SECRET, "value": {"A": "b"}}


# what a caller says ---------------------------------------------------------------------------------------------------


def test_a_callers_parent(folder: Folder) -> None:
    """A stack can be below a component of the caller's."""

    def program() -> None:
        theirs = pulumi.ComponentResource("their:index:App", "app")
        stack(folder, opts=pulumi.ResourceOptions(parent=theirs))

    assert run(program).request("ComposeStack").parent.endswith("their:index:App::app")


@pytest.mark.parametrize("how", ["provider", "providers"])
def test_a_callers_provider(folder: Folder, how: str) -> None:
    """A provider that the caller gives is that of every object."""

    def program() -> None:
        theirs = pulumi_kubernetes.Provider("theirs", kubeconfig="{}")
        given = {"provider": theirs} if how == "provider" else {"providers": [theirs]}
        stack(folder, opts=pulumi.ResourceOptions(**given))

    providers = {request.provider for request in run(program).of_package("kubernetes")}

    (provider,) = providers
    assert provider.endswith("pulumi:providers:kubernetes::theirs::theirs-id")


def test_waits_with_a_provider_of_the_caller(folder: Folder) -> None:
    """A provider of the caller may be for another cluster: then Pulumi waits, unless the caller wants our waits."""

    def annotations(waits: bool | None) -> dict[str, str]:  # noqa: FBT001 -- as the argument it is for
        def program() -> None:
            theirs = pulumi_kubernetes.Provider("theirs", kubeconfig="{}")
            stack(folder, waits=waits, opts=pulumi.ResourceOptions(provider=theirs))

        return run(program, preview=True).annotations("Deployment")

    assert annotations(None) == OWNER
    assert annotations(waits=True) == {**OWNER, **NOT_AWAITED}


def test_a_callers_transformations(folder: Folder) -> None:
    """A function that the caller gives for the stack sees every resource in it, and may change it."""
    seen: list[str] = []

    def label(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        seen.append(f"{args.type_} {args.name}")
        if not args.type_.endswith(":Deployment"):
            return None
        props: dict[str, Any] = dict(args.props)
        labeled = {**props["metadata"], "labels": {"team": "blue"}}
        return pulumi.ResourceTransformationResult({**props, "metadata": labeled}, args.opts)

    registered = run(lambda: stack(folder, opts=pulumi.ResourceOptions(transformations=[label])))

    assert sorted(seen) == [" ".join(name) for name in registered.names]
    assert registered.inputs("Deployment")["metadata"]["labels"] == {"team": "blue"}


def test_a_callers_transforms(folder: Folder) -> None:
    """A transform, which the engine runs for all that is below, is registered with the stack."""

    def label(_: pulumi.ResourceTransformArgs) -> None:
        """Change nothing."""

    registered = run(lambda: stack(folder, opts=pulumi.ResourceOptions(transforms=[label])))

    assert len(registered.request("ComposeStack").transforms) == 1


# who waits ------------------------------------------------------------------------------------------------------------


def test_hooks(folder: Folder) -> None:
    """A workload that waits for others has a hook before it is made or changed, and no other has one."""
    plan = plan_of(folder)
    access = Access(host="127.0.0.1", port=9)
    watcher = Watcher(access, plan.namespace, plan.environment)
    gate = DependencyGate(plan=plan, access=access, watcher=watcher, deadline=Deadline(1))

    registered = run(lambda: ComposeStack("shop", plan=plan, gate=gate, waits=True))

    assert registered.hooks == ["shop-wait-web"]
    hooks = registered.request("Deployment").hooks
    assert (list(hooks.before_create), list(hooks.before_update)) == (["shop-wait-web"], ["shop-wait-web"])
    assert list(hooks.before_delete) == []
    assert list(registered.request("StatefulSet").hooks.before_create) == []


def test_a_workload_that_is_in_the_way(folder: Folder) -> None:
    """A workload that is there before is recreated only when it has gone, whether or not it waits for others."""
    plan = plan_of(folder)
    access = Access(host="127.0.0.1", port=9)
    watcher = Watcher(access, plan.namespace, plan.environment)
    gate = DependencyGate(
        plan=plan, access=access, watcher=watcher, deadline=Deadline(1), existing={("StatefulSet", "db"): True}
    )

    registered = run(lambda: ComposeStack("shop", plan=plan, gate=gate, waits=True))

    assert registered.hooks == ["shop-wait-db", "shop-wait-web"]


def test_no_hooks_where_pulumi_waits(folder: Folder) -> None:
    """Where Pulumi waits there are no hooks, as it needs no cluster of ours."""
    assert run(lambda: stack(folder, waits=False)).hooks == []


def test_preview_without_a_cluster(folder: Folder) -> None:
    """A preview needs no cluster, and registers all that a deploy would, without hooks."""
    registered = run(lambda: stack(folder, waits=None), preview=True)

    assert registered.names == run(lambda: stack(folder)).names
    assert registered.hooks == []


def test_deploy_without_a_cluster(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where we are to wait and no cluster is known, the program ends and says so."""
    place = folder.path / ".kube" / "config"
    monkeypatch.setattr("composeplat.components.default_cluster.is_mocked", lambda: False)

    with pytest.raises(pulumi.RunError, match=f"^no cluster is configured: '{place}' names none"):
        run(lambda: stack(folder, waits=None))


def test_deploy_without_a_cluster_where_nothing_waits(folder: Folder) -> None:
    """Where no service waits for another, no cluster is asked for."""
    folder.write({"compose.yaml": "services: {web: {image: x}}"})

    assert run(lambda: stack(folder, waits=None)).annotations("Deployment") == {**OWNER, **NOT_AWAITED}


# what is wrong --------------------------------------------------------------------------------------------------------


def ended(folder: Folder, **more: Any) -> list[str]:
    """The lines that a program ends with."""
    with pytest.raises(pulumi.RunError) as caught:
        run(lambda: stack(folder, **more))
    return str(caught.value).replace(f"{folder.path}/", "").splitlines()


def test_an_invalid_definition(folder: Folder) -> None:
    """A program with an invalid definition ends with every message, each with its place, and registers no object."""
    text = "services:\n  web:\n    image: nginx\n    scale: two\n    cpuset: 0\n  db: {image: x, ports: [0]}\n"
    folder.write({"compose.yaml": text})

    assert ended(folder) == [
        (
            "compose.yaml:4:12: error: services.web.scale must be a whole number from 0 to 10000, not 'two'"
            " [invalid-value]"
        ),
        "compose.yaml:5:5: warning: services.web.cpuset is not supported and has no effect [unsupported-key]",
        "  hint: the CPU manager of a node chooses the CPUs",
        (
            "compose.yaml:6:26: error: services.db.ports[0] must be a whole number from 1 to 65535, not '0'"
            " [invalid-value]"
        ),
    ]


def test_a_provider(folder: Folder) -> None:
    """No program of the machine runs within one of Pulumi, which a preview runs too."""
    folder.write({"compose.yaml": "services: {web: {image: x, depends_on: [db]}, db: {provider: {type: x}}}\n"})

    (error, hint) = ended(folder, full=True)

    assert error == (
        "compose.yaml:1:62: error: services.db.provider would run a program on this machine, which 'platform deploy'"
        " alone does [provider-refused]"
    )
    assert hint.startswith("  hint: deploy with it, ")


def test_an_invalid_plan(folder: Folder) -> None:
    """The same where the file can be read, and what it wants can't be made."""
    folder.write({"compose.yaml": f"{TEXT}endpoints: [{{path: /, service: web, port: 99}}]\n"})

    assert ended(folder) == [
        (
            "compose.yaml:12:13: error: endpoints[0] routes to port '99', which service 'web' does not have"
            " [undefined-port]"
        ),
        "  hint: it has 80, 8080; add the port to the service's 'ports' or 'expose'",
    ]


@pytest.mark.parametrize("image", ["", ", image: 'shop:dev'"])
def test_no_registry(folder: Folder, image: str) -> None:
    """An image needs a registry to be pushed to, which is reported before it is built."""
    folder.write({"compose.yaml": f"services: {{web: {{build: .{image}}}}}", "Dockerfile": "FROM x"})

    assert ended(folder) == [
        "no registry is known that the image of service 'web' could be pushed to",
        "  hint: give 'registry', or name one in 'image'",
    ]


def test_a_registry_in_an_output(folder: Folder) -> None:
    """The name of an image may be an output, with its registry in it."""
    folder.write({"compose.yaml": "services: {web: {build: ., image: '${NAME}'}}", "Dockerfile": "FROM x"})

    found = run(lambda: stack(folder, variables={"NAME": pulumi.Output.from_input("r.example/web")}))

    assert found.inputs("Image")["tags"] == ["r.example/web"]


OUTSIDE = "services: {web: {image: x, env_file: ../a.env, volumes: ['../a.env:/etc/a']}}"


def test_files_outside_the_project(folder: Folder) -> None:
    """A program refuses them at their place, and what allows them is reported as a program and a stack write it."""
    folder.write({"compose.yaml": OUTSIDE})
    (folder.path.parent / "a.env").write_text("KEY=do-not-publish\n")

    fix = (
        "  hint: the project is '.': move the file there, or allow it with allow_outside=True"
        " (in a stack's configuration: composeplat:allowOutside)"
    )
    assert "\n".join(ended(folder)).replace(str(folder.path), ".") == (
        "compose.yaml:1:38: error: services.web.env_file names a file that is outside the project: '../a.env'"
        f" [outside-project]\n{fix}\n"
        "compose.yaml:1:58: error: services.web.volumes[0] mounts a host path that is outside the project:"
        f" '../a.env:/etc/a' [outside-project]\n{fix}"
    )
    allowed = run(lambda: stack(folder, allow_outside=True))
    assert {name for kind, name in allowed.names if kind.endswith(":Secret")} == {
        "shop-environment/web", "shop-files/web",
    }  # fmt: skip


def test_files_outside_the_project_by_configuration(folder: Folder) -> None:
    """Plain Pulumi takes leave from the stack's configuration."""
    folder.write({"compose.yaml": OUTSIDE})
    (folder.path.parent / "a.env").write_text("KEY=do-not-publish\n")

    def declare(**more: str) -> Registered:
        settings = {"file": "compose.yaml", "cluster": "here", **more}

        def program() -> None:
            pulumi.runtime.set_all_config({f"composeplat:{key}": value for key, value in settings.items()})
            declare_configured(folder.path)

        return run(program, preview=True)

    for refused in ({}, {"allowOutside": "false"}):
        with pytest.raises(pulumi.RunError, match="outside-project"):
            declare(**refused)
    assert declare(allowOutside="true").request("Secret", "environment/web")


def test_no_definition(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not there ends the program with its name."""
    monkeypatch.chdir(folder.path)

    assert ended(folder, file="none.yaml") == [
        "none.yaml:1:1: error: 'none.yaml' does not exist [unreadable-file]",
        "  hint: there is: 'compose.yaml'",
    ]


def test_no_definition_anywhere(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no file is named and none is found, the program ends with a hint."""
    empty = folder.path / "empty"
    empty.mkdir()
    (folder.path / "compose.yaml").unlink()
    monkeypatch.chdir(empty)

    names = "compose.yaml, compose.yml, docker-compose.yaml, docker-compose.yml"
    assert ended(folder, file=()) == [
        f"no Compose file here or in a folder above: looked for {names}",
        "  hint: name one with -f, or go to the folder that has one",
    ]


def test_warnings(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    """What is only warned of is reported by Pulumi, with its place, and ends nothing."""
    folder.write({"compose.yaml": "services: {web: {image: x, cpuset: 0}}"})

    registered = run(lambda: stack(folder))

    assert registered.request("Deployment").name == "shop-workload/web"
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    shown = [line for text in warned for line in text.removeprefix(f"{folder.path}/").splitlines()]
    assert shown == [
        "compose.yaml:1:28: warning: services.web.cpuset is not supported and has no effect [unsupported-key]",
        "  hint: the CPU manager of a node chooses the CPUs",
    ]


def test_objects_of_others(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    """Pulumi does not check that an external object exists, and says so."""
    text = "x-platform: {full: true}\nservices: {web: {image: x, secrets: [s]}}\nsecrets: {s: {external: true}}"
    folder.write({"compose.yaml": text})
    caplog.set_level("INFO")

    run(lambda: stack(folder))

    text = "secrets.s needs a Secret that is not checked here: without it, pods do not start"
    assert text in [record.getMessage() for record in caplog.records]


# where it is read from ------------------------------------------------------------------------------------------------


def test_usual_file(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file, the one in the program's folder is found, and names come from the stack's own."""
    monkeypatch.chdir(folder.path)

    registered = run(lambda: stack(folder, file=()))

    assert registered.inputs("Deployment")["metadata"]["labels"] == LABELS


def test_several_files(folder: Folder) -> None:
    """Several files are laid over one another, as on the command line."""
    folder.write({"more.yaml": "services: {web: {image: 'nginx:2'}}"})
    files = [folder.path / "compose.yaml", str(folder.path / "more.yaml")]

    (container,) = run(lambda: stack(folder, file=files)).inputs("Deployment")["spec"]["template"]["spec"]["containers"]

    assert container["image"] == "nginx:2"


def test_environment_name(folder: Folder) -> None:
    """The environment may have another name than the resource."""
    registered = run(lambda: stack(folder, environment_name="stage"))

    assert registered.request("Deployment").name == "shop-workload/web"
    assert registered.inputs("Deployment")["metadata"]["labels"]["app.kubernetes.io/instance"] == "stage"


def test_variables(folder: Folder, tmp_path: Path) -> None:
    """Variables come from the caller, and from env files."""
    folder.write({"compose.yaml": "services: {web: {image: 'nginx:${A}-${B}'}}"})
    (tmp_path / "more.env").write_text("B=2\n")

    registered = run(lambda: stack(folder, variables={"A": "1"}, env_files=[tmp_path / "more.env"]))

    (container,) = registered.inputs("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "nginx:1-2"
