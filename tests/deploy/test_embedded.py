"""``ComposeStack`` in a program of one's own, run by plain Pulumi."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import PULUMI
from tests.conftest import ROOT
from tests.deploy.conftest import SLEEP, Environment, fetch, until
from tests.deploy.test_failures import REGISTRY, push_busybox, waits_to_pull
from tests.plain.programs import pulumi_variables

EXAMPLE = ROOT / "examples" / "embedded"


@dataclass(frozen=True, slots=True)
class Program:
    """A Pulumi program in the environment's folder; its stack is named for the namespace."""

    environment: Environment
    variables: dict[str, str]
    command: Path

    def pulumi(self, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.command), *args, "--stack", self.environment.namespace, "--non-interactive"]
        return subprocess.run(
            command, cwd=self.environment.folder, env={**self.variables, **more}, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip

    def expect(self, *args: str, **more: str) -> str:
        done = self.pulumi(*args, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def program(environment: Environment, tmp_path: Path) -> Program:
    """The example, with a new stack, a state of its own and the language host that tests have."""
    shutil.copytree(EXAMPLE, environment.folder, dirs_exist_ok=True)
    variables = pulumi_variables(environment.variables, tmp_path)
    made = Program(environment, variables, Toolchain(environment.variables).need(PULUMI).path)
    made.expect("stack", "init")
    return made


def items(environment: Environment, path: str) -> dict[str, dict[str, Any]]:
    """The objects of a kind that ``platform`` makes none of, by name."""
    group, _, plural = path.rpartition("/")
    with environment.api() as api:
        found = api.items(f"/{group}/namespaces/{environment.namespace}/{plural}")
    return {manifest["metadata"]["name"]: manifest for manifest in found}


WRITTEN = {
    "api/v1/limitranges": ["limits"],
    "apis/networking.k8s.io/v1/networkpolicies": ["store-for-web"],
    "apis/batch/v1/cronjobs": ["store-nightly"],
}
SERVICES = {
    "PersistentVolumeClaim/data", "Secret/store-env", "Service/store", "StatefulSet/store", "Service/web",
    "Deployment/web", "Ingress/notes",
}  # fmt: skip


def written(environment: Environment) -> dict[str, list[str]]:
    """What there is in the cluster of the kinds that the example has by hand."""
    return {path: sorted(items(environment, path)) for path in WRITTEN}


def check_order(environment: Environment, first: str, second: str) -> None:
    """The second began when the first was ready, by what the cluster notes of their pods."""

    def has_started() -> bool:
        statuses = [item for pod in environment.pods(second) for item in pod["status"].get("containerStatuses", ())]
        return any(status["started"] for status in statuses)

    until(has_started)
    (pod,) = environment.pods(first)
    (ready,) = [c["lastTransitionTime"] for c in pod["status"]["conditions"] if c["type"] == "Ready"]

    assert environment.started_at(first) < ready <= environment.started_at(second)


def test_example(program: Program) -> None:
    """The example comes up whole and answers, shows no change then, changes in place, and goes but for its data."""
    environment = program.environment
    # So that being ready comes a while after having started, which the order below is reported by.
    slow = (environment.folder / "compose.yaml").read_text().replace("exec nc -ll", "sleep 2; exec nc -ll")
    environment.write(slow)
    program.expect("up", "--yes", "--skip-preview")

    assert environment.names() == SERVICES
    assert written(environment) == WRITTEN
    check_order(environment, "store", "web")
    outputs = json.loads(program.expect("stack", "output", "--json"))
    assert outputs == {"urls": [f"https://notes-{environment.namespace}.localhost"]}
    assert until(lambda: fetch(environment, outputs["urls"][0])) == "Welcome\n"
    # Objects before the services existed when their pods were created; objects after them refer to them.
    limits = [pod["spec"]["containers"][0]["resources"]["limits"] for pod in environment.pods()]
    assert limits == [{"memory": "64Mi"}] * 2
    policy = items(environment, "apis/networking.k8s.io/v1/networkpolicies")["store-for-web"]["spec"]
    assert policy["podSelector"]["matchLabels"]["dev.platform.com/service"] == "store"
    assert policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"]["dev.platform.com/service"] == "web"

    program.expect("preview", "--expect-no-changes")
    changed = program.expect("preview", GREETING="Hello")
    assert "~ 2 to update\n" in changed
    assert "replace" not in changed

    program.expect("destroy", "--yes", "--skip-preview")
    assert environment.names() == {"PersistentVolumeClaim/data"}
    assert written(environment) == {path: [] for path in WRITTEN}


def test_an_error_in_the_file(program: Program) -> None:
    """What is wrong with the file is reported at its place, without where the program was then, and nothing is made."""
    environment = program.environment
    wrong = (environment.folder / "compose.yaml").read_text().replace("service_healthy", "service_fine")
    environment.write(wrong)
    ended = program.pulumi("up", "--yes")

    output = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert (
        " error: compose.yaml:12:20: error: services.web.depends_on.store.condition must be 'service_started',"
        " 'service_healthy' or 'service_completed_successfully', not 'service_fine' [invalid-value]\n" in output
    )
    assert "hint: did you mean 'service_started'?" in output
    assert "Traceback" not in output
    with environment.api() as api:
        assert environment.namespace not in [
            manifest["metadata"]["name"] for manifest in api.items("/api/v1/namespaces")
        ]


def two(first: str, second: str) -> str:
    """A Compose file of two services, the second of which waits until the first has become healthy."""
    return f"""\
services:
  {first}:
    image: busybox:1.37
    command: sh -c 'sleep 2; touch /ready; trap true TERM; sleep 1000000 & wait; true'
    healthcheck: {{test: test -e /ready, interval: 1s, retries: 30}}
  {second}:
    image: busybox:1.37
    command: {SLEEP}
    environment: {{A: b}}
    depends_on: {{{first}: {{condition: service_healthy}}}}
"""


LABELED = """
import pulumi
from pulumi_kubernetes.core.v1 import Namespace

from composeplat import ComposeStack


def label(args):
    if not args.type_.startswith("kubernetes:"):
        return None
    metadata = args.props["metadata"]
    labeled = {**metadata, "labels": {**metadata["labels"], "team": "blue"}}
    return pulumi.ResourceTransformResult({**args.props, "metadata": labeled}, args.opts)


namespace = pulumi.get_stack()
space = Namespace("space", metadata={"name": namespace})
options = pulumi.ResourceOptions(depends_on=[space], transforms=[label])
ComposeStack("shop", file="shop.yaml", namespace=namespace, opts=options)
ComposeStack("mail", file="mail.yaml", namespace=namespace, opts=pulumi.ResourceOptions(depends_on=[space]))
"""


def test_side_by_side(program: Program) -> None:
    """Two stacks in one namespace each keep their order, and a transform of the one changes all of it and it alone."""
    environment = program.environment
    environment.write(LABELED, "__main__.py")
    environment.write(two("db", "web"), "shop.yaml")
    environment.write(two("queue", "worker"), "mail.yaml")
    program.expect("up", "--yes", "--skip-preview")

    check_order(environment, "db", "web")
    check_order(environment, "queue", "worker")
    kinds = (("v1", "Service"), ("v1", "Secret"), ("apps/v1", "Deployment"))
    labels = {
        f"{kind}/{manifest['metadata']['name']}": manifest["metadata"]["labels"].get("team")
        for version, kind in kinds
        for manifest in environment.objects(version, kind)
    }
    blue = ("Service/db", "Deployment/db", "Service/web", "Secret/web-env", "Deployment/web")
    plain = ("Service/queue", "Deployment/queue", "Service/worker", "Secret/worker-env", "Deployment/worker")
    assert labels == {**dict.fromkeys(blue, "blue"), **dict.fromkeys(plain)}
    program.expect("preview", "--expect-no-changes")


PLAIN = """
import pulumi
from pulumi_kubernetes.core.v1 import Namespace

from composeplat import ComposeStack

namespace = pulumi.get_stack()
space = Namespace("space", metadata={"name": namespace})
options = pulumi.ResourceOptions(depends_on=[space])
ComposeStack("shop", file="shop.yaml", namespace=namespace, variables={}, opts=options)
"""


def test_an_image_that_is_pushed_after_the_failure(program: Program) -> None:
    """The next run asks for the image again: it does not report the failure of before, which the node still has."""
    environment = program.environment
    late = f"{environment.namespace}/late:1"
    app = f"image: '{REGISTRY}/{late}', command: {SLEEP}, stop_grace_period: 0"
    environment.write(PLAIN, "__main__.py")
    environment.write(
        f"services:\n  db: {{{app}}}\n  web: {{{app}, depends_on: [db]}}\n  api: {{{app}, depends_on: [db]}}\n",
        "shop.yaml",
    )
    failed = program.pulumi("up", "--yes", "--skip-preview")
    assert failed.returncode != 0
    assert "web waits for db, which failed: image " in failed.stdout + failed.stderr
    until(lambda: [waits_to_pull(pod) for pod in environment.pods()] == [True], seconds=40)

    push_busybox(environment, late)
    program.expect("up", "--yes", "--skip-preview")
    until(lambda: {pod["status"]["phase"] for pod in environment.pods()} == {"Running"})
    assert len(environment.pods()) == 3


THEIRS = """
import os

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.core.v1 import Namespace

from composeplat import ComposeStack

namespace = pulumi.get_stack()
theirs = Provider("theirs", kubeconfig=os.environ["THEIRS"])
app = pulumi.ComponentResource("their:index:App", "app", opts=pulumi.ResourceOptions(providers=[theirs]))
space = Namespace("space", metadata={"name": namespace}, opts=pulumi.ResourceOptions(parent=app))
given = pulumi.ResourceOptions(provider=theirs, depends_on=[space])
inherited = pulumi.ResourceOptions(parent=app, depends_on=[space])
ComposeStack("shop", file="shop.yaml", namespace=namespace, opts=given)
ComposeStack("mail", file="mail.yaml", namespace=namespace, opts=inherited)
"""


def test_a_callers_provider(program: Program, tmp_path: Path) -> None:
    """A provider, given or a parent's, says which cluster: order holds there, and the kubeconfig is not asked."""
    environment = program.environment
    environment.write(THEIRS, "__main__.py")
    environment.write(two("db", "web"), "shop.yaml")
    environment.write(two("queue", "worker"), "mail.yaml")
    nowhere, theirs = str(tmp_path / "nowhere"), environment.variables["KUBECONFIG"]
    program.expect("up", "--yes", "--skip-preview", KUBECONFIG=nowhere, THEIRS=theirs)

    check_order(environment, "db", "web")
    check_order(environment, "queue", "worker")


OUTPUTS = """
import pulumi
from pulumi_kubernetes.core.v1 import Namespace, Service

from composeplat import ComposeStack

config = pulumi.Config()
space = Namespace("space", metadata={"name": pulumi.get_stack()}, opts=pulumi.ResourceOptions(retain_on_delete=True))
# Its ID is known once it is there.
database = Service("database", metadata={"name": "database", "namespace": space.metadata.name},
                   spec={"ports": [{"port": 5432}]})
shop = ComposeStack(
    "shop",
    file="shop.yaml",
    namespace=space.metadata.name,
    variables={
        "DATABASE": database.id,
        "DB": pulumi.Output.concat("db://", database.id),
        "LOGIN": config.require_secret("login"),
        "PODS": config.require("pods"),
        "PORT": database.spec.ports[0].port,
    },
    waits=False,
)
pulumi.export("image", shop.services["web"].image)
"""
LATE = f"""\
services:
  web:
    image: busybox:1.37
    command: {SLEEP}
    scale: ${{PODS}}
    ports: ["${{PORT}}:80"]
    environment: {{DB: "${{DB}}", LOGIN: "${{LOGIN}}"}}
    annotations: {{database: "${{DATABASE}}"}}
"""


def test_outputs(program: Program) -> None:
    """Objects have the outputs of resources of the same program, which a preview doesn't know; secrets stay secret."""
    environment = program.environment
    environment.write(OUTPUTS, "__main__.py")
    environment.write(LATE, "shop.yaml")
    program.expect("config", "set", "--secret", "login", "open sesame")
    program.expect("config", "set", "pods", "2")

    preview = program.expect("preview")
    assert "DATABASE, DB are not known before the update" in preview
    program.expect("up", "--yes", "--skip-preview")

    database = f"{environment.namespace}/database"
    pods = environment.pods("web")
    assert [pod["metadata"]["annotations"]["database"] for pod in pods] == [database] * 2
    secret = next(
        manifest for manifest in environment.objects("v1", "Secret") if manifest["metadata"]["name"] == "web-env"
    )
    values = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert values == {"DB": f"db://{database}", "LOGIN": "open sesame"}
    web = next(manifest for manifest in environment.objects("v1", "Service") if manifest["metadata"]["name"] == "web")
    assert {port["port"] for port in web["spec"]["ports"]} == {80, 5432}
    state = program.expect("stack", "export")
    assert "open sesame" not in state
    assert base64.b64encode(b"open sesame").decode() not in state
    program.expect("preview", "--expect-no-changes")

    # A new value of an output replaces the pods, as one of a variable does.
    program.expect("config", "set", "--secret", "login", "another")
    assert "~ 2 to update\n" in program.expect("preview")
    program.expect("up", "--yes", "--skip-preview")
    changed = environment.pods("web")
    assert {pod["metadata"]["uid"] for pod in changed}.isdisjoint(pod["metadata"]["uid"] for pod in pods)
    program.expect("destroy", "--yes", "--skip-preview")
    assert environment.names() == set()
