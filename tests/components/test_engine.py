"""A ``ComposeStack`` with Pulumi's engine, and its provider, which writes the objects as YAML instead of a cluster.

Outputs, secrets and transforms have their effect in the engine only. ``tests/deploy`` has a cluster too.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from composeplat.engine.pulumi_args import former_urns
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import PULUMI
from tests.conftest import VARIABLES, Project
from tests.plain.programs import pulumi_variables

#: Texts that a file, a template or a shell would read differently.
VALUE = 'open $esame ${GREETING} $(X): "ünder"\nthe \ue000ring\ue001'


@dataclass(frozen=True, slots=True)
class Program:
    folder: Path
    variables: dict[str, str]
    command: Path

    def expect(self, *args: str) -> str:
        return self._run(0, *args)

    def fail(self, *args: str) -> str:
        return self._run(1, *args)

    def _run(self, status: int, *args: str) -> str:
        command = [str(self.command), *args, "--stack", "team", "--non-interactive", "--color", "never"]
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False, timeout=100
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def objects(self) -> dict[str, Any]:
        """The objects as they would be in a cluster, by kind and name."""
        found = [yaml.safe_load(path.read_text()) for path in (self.folder / "objects").rglob("*.yaml")]
        return {f"{manifest['kind']}/{manifest['metadata']['name']}": manifest for manifest in found}


HEAD = """
import json

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace, Secret

from composeplat import ComposeStack

config = pulumi.Config()
files = Provider("files", render_yaml_to_directory="objects")
app = pulumi.ComponentResource("test:index:App", "app", opts=pulumi.ResourceOptions(providers=[files]))
opts = pulumi.ResourceOptions(parent=app)
space = Namespace("space", metadata={"name": pulumi.get_stack()}, opts=opts)
here = {"namespace": space.metadata.name}


def late(value):
    # Known once the namespace is there.
    return pulumi.Output.all(space.id, value).apply(lambda values: values[1])

"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    data, folder = tmp_path / "data", tmp_path / "program"
    folder.mkdir()
    variables = pulumi_variables({**VARIABLES, "COMPOSEPLAT_DATA": str(data)}, tmp_path)
    (folder / "Pulumi.yaml").write_text("name: beside\nruntime: python\n")
    made = Program(folder, variables, Toolchain(variables).need(PULUMI).path)
    made.expect("stack", "init")
    made.expect("config", "set", "--secret", "password", VALUE)
    return made


EVERYWHERE = """
shop = ComposeStack(
    "shop",
    file="shop.yaml",
    namespace=late(pulumi.get_stack()),
    endpoint_domain=late("a.example"),
    variables={
        "PASSWORD": late(config.require_secret("password")),
        "GREETING": "hello",
        "PODS": late(2),
        "PORT": late("9000"),
        "UNUSED": late("x"),
        **json.loads(config.get("more") or "{}"),
    },
    images={"db": late("r.example/db@sha256:" + "01" * 32)},
    opts=opts,
)
pulumi.export("url", shop.services["web"].urls)
pulumi.export("env", shop.services["web"].env)
pulumi.export("db", [shop.services["db"].image, shop.services["db"].digest, shop.services["db"].address])
"""
SHOP = """\
services:
  web:
    image: busybox:1.37
    scale: ${PODS}
    ports: ["${PORT}:80"]
    environment: {URL: "db://${PASSWORD}@db", GREETING: "${GREETING}", NUMBER: "${PODS}"}
    command: [run, "--x=${PASSWORD}", "$${URL}"]
    healthcheck: {test: [CMD, check, "${PASSWORD}"]}
    annotations: {note: "${PASSWORD}"}
    configs: [settings]
    secrets: [key]
  db:
    image: postgres:18
    volumes: ["data:/data"]
configs: {settings: {content: "password: ${PASSWORD}"}}
secrets: {key: {environment: PASSWORD}}
volumes: {data: {}}
x-platform: {full: true}
"""


def texts_of_secret(manifest: Any) -> dict[str, str]:
    return {name: base64.b64decode(text).decode() for name, text in manifest["data"].items()}


def hidden_in(text: str) -> list[str]:
    """The forms of the secret that a text has, and of placeholders."""
    url, content = f"db://{VALUE}@db", f"password: {VALUE}"
    forms = [form for value in (VALUE, url, content) for form in (value, json.dumps(value)[1:-1])]
    forms += [base64.b64encode(form.encode()).decode() for form in forms]
    return [form for form in (*forms, "sesame") if form in text]


def test_outputs_everywhere(program: Program) -> None:
    """An output is in every kind of object that has it, as a secret if it is one, and no run differs from the last."""
    (program.folder / "__main__.py").write_text(HEAD + EVERYWHERE)
    (program.folder / "shop.yaml").write_text(SHOP)

    preview = program.expect("preview", "--diff")
    assert "PASSWORD, PODS, PORT, UNUSED, endpoint_domain, images[db], namespace are not known" in preview
    up = program.expect("up", "--yes", "--skip-preview")
    objects = program.objects()

    assert {manifest["metadata"].get("namespace", "team") for manifest in objects.values()} == {"team"}
    url = f"db://{VALUE}@db"
    assert texts_of_secret(objects["Secret/web-env"]) == {"URL": url, "GREETING": "hello", "NUMBER": "2"}
    assert texts_of_secret(objects["Secret/key"]) == {"key": VALUE}
    assert objects["ConfigMap/settings"]["data"] == {"settings": f"password: {VALUE}"}
    assert objects["Deployment/web"]["spec"]["replicas"] == 2
    template = objects["Deployment/web"]["spec"]["template"]
    assert template["metadata"]["annotations"]["note"] == VALUE
    (container,) = template["spec"]["containers"]
    escaped = VALUE.replace("$(", "$$(")
    assert container["args"] == ["run", f"--x={escaped}", "${URL}"]
    assert container["readinessProbe"]["exec"]["command"][1] == escaped
    ports = [(port["name"], port["port"]) for port in objects["Service/web"]["spec"]["ports"]]
    assert ports == [("tcp-80", 80), ("tcp-9000", 9000)]
    assert objects["Ingress/web"]["spec"]["rules"][0]["host"] == "web-team.a.example"
    image = f"r.example/db@sha256:{'01' * 32}"
    assert objects["StatefulSet/db"]["spec"]["template"]["spec"]["containers"][0]["image"] == image

    outputs = json.loads(program.expect("stack", "output", "--json", "--show-secrets").partition("\nwarning")[0])
    assert outputs == {
        "url": ["https://web-team.a.example"],
        "env": {"URL": url, "GREETING": "hello", "NUMBER": "2"},
        "db": [image, f"sha256:{'01' * 32}", "db.team.svc"],
    }
    state = program.expect("stack", "export")
    assert hidden_in(preview + up + state) == []
    again = program.expect("preview", "--diff", "--expect-no-changes")
    assert hidden_in(again) == []


def test_changes(program: Program) -> None:
    """A value that changes updates the objects that have it; one whose variable goes is empty, with a warning."""
    (program.folder / "__main__.py").write_text(HEAD + EVERYWHERE)
    (program.folder / "shop.yaml").write_text(SHOP)
    program.expect("up", "--yes", "--skip-preview")

    program.expect("config", "set", "more", json.dumps({"GREETING": 7}))
    number = program.expect("preview")
    # Without 'enableSecretMutable' Pulumi replaces the Secret, but no workload: its pods would be gone for a while.
    assert "+-1 to replace" in number
    assert "~ 1 to update" in number
    (program.folder / "shop.yaml").write_text(SHOP.replace("${GREETING}", "${GONE}"))
    gone = program.expect("up", "--yes", "--skip-preview")
    assert "the variable 'GONE' is not set; an empty string is used" in gone
    assert texts_of_secret(program.objects()["Secret/web-env"])["GREETING"] == ""


ROLLING = "services: {web: {image: 'busybox:1.37', labels: {dev.platform.com/update: rolling}}}"
HERE = """
ComposeStack("shop", file="shop.yaml", namespace=space.metadata.name, opts=opts)
"""


def test_another_update_policy(program: Program) -> None:
    """A Deployment that is to end its pods first is replaced, as one that rolls can't become it; not the other way."""
    (program.folder / "__main__.py").write_text(HEAD + HERE)
    (program.folder / "shop.yaml").write_text(ROLLING)
    program.expect("up", "--yes", "--skip-preview")

    (program.folder / "shop.yaml").write_text(ROLLING.replace("rolling", "recreate"))
    assert "+-1 replaced" in program.expect("up", "--yes", "--skip-preview")
    assert program.objects()["Deployment/web"]["spec"]["strategy"] == {"type": "Recreate"}
    program.expect("preview", "--expect-no-changes")

    (program.folder / "shop.yaml").write_text(ROLLING)
    back = program.expect("up", "--yes", "--skip-preview")
    assert "~ 1 updated" in back
    assert "replaced" not in back


CONFIG = """\
x-platform: {full: true}
services: {web: {image: 'busybox:1.37', configs: [old]}}
configs: {old: {name: settings, content: x}}
"""
AS_BEFORE = """
ComposeStack(
    "shop",
    file="shop.yaml",
    namespace="team",
    aliases=json.loads(config.get("aliases") or "{}"),
    opts=pulumi.ResourceOptions(providers=[files]),
)
"""


def test_an_object_of_another_part(program: Program, project: Project) -> None:
    """An object that another part of the definition makes now, such as a config with another key, is not deleted."""
    (program.folder / "__main__.py").write_text(HEAD + AS_BEFORE)
    (program.folder / "shop.yaml").write_text(CONFIG)
    program.expect("up", "--yes", "--skip-preview")
    renamed = CONFIG.replace("old", "new")
    (program.folder / "shop.yaml").write_text(renamed)
    plan = project(renamed).read(name="shop", namespace="team").plan
    assert plan is not None

    aliases = former_urns(plan, json.loads(program.expect("stack", "export").partition("\nwarning")[0])["deployment"])
    program.expect("config", "set", "aliases", json.dumps(aliases))
    program.expect("up", "--yes", "--skip-preview")

    assert list(aliases) == ["ConfigMap/settings"]
    assert program.objects()["ConfigMap/settings"]["data"] == {"new": "x"}


PLACES = """
other = Provider("other", render_yaml_to_directory="objects/other")
for name, namespace, provider in (("blue", "team", files), ("green", "work", files), ("red", "team", other)):
    ComposeStack(name, file="shop.yaml", namespace=namespace, opts=pulumi.ResourceOptions(provider=provider))
again = config.get("again")
if again:
    namespace = pulumi.Output.from_input("team") if config.get("late") else "team"
    ComposeStack(again, file="shop.yaml", namespace=namespace, opts=pulumi.ResourceOptions(providers=[files]))
"""


@pytest.mark.parametrize("late", ["", "true"])
def test_two_components_with_the_same_objects(program: Program, late: str) -> None:
    """A file can be deployed to two namespaces, and clusters; in one namespace, each would overwrite the other."""
    (program.folder / "__main__.py").write_text(HEAD + PLACES)
    (program.folder / "shop.yaml").write_text("services: {web: {image: 'busybox:1.37', environment: {A: b}}}\n")
    program.expect("up", "--yes", "--skip-preview")
    program.expect("preview", "--expect-no-changes")
    program.expect("config", "set", "again", "white")
    program.expect("config", "set", "late", late)
    refused = program.fail("preview")

    both = "Secret/web-env, Service/web, Deployment/web in namespace 'team'"
    assert f"error: 'white' and 'blue' both have {both}\n" in refused
    assert "hint: give each a namespace of its own" in refused
    assert "Traceback" not in refused


OF_ANOTHER_PROCESS = """
class Remote(pulumi.ComponentResource):
    def __init__(self, name, namespace, provider):
        inputs = {"file": "shop.yaml", "namespace": namespace, "variables": {}}
        opts = pulumi.ResourceOptions(providers=[provider])
        super().__init__("composeplat:index:ComposeStack", name, inputs, opts, remote=True)


other = Provider("other", render_yaml_to_directory="objects/other")
Remote("blue", "team", files)
Remote("green", "work", files)
Remote("red", "team", other)
again = config.get("again")
if again:
    Remote(again, pulumi.Output.from_input("team"), files)
"""


def test_two_components_of_another_process_with_the_same_objects(program: Program) -> None:
    """The provider for other languages refuses them too, which has a client of the engine for each component."""
    command = "pulumi-resource-composeplat"
    (program.folder.parent / "bin" / command).symlink_to(Path(sys.executable).parent / command)
    (program.folder / "__main__.py").write_text(HEAD + OF_ANOTHER_PROCESS)
    (program.folder / "shop.yaml").write_text("services: {web: {image: 'busybox:1.37'}}\n")
    program.expect("up", "--yes")
    program.expect("preview", "--expect-no-changes")
    program.expect("config", "set", "again", "white")
    refused = program.fail("preview")

    both = "both have Service/web, Deployment/web in namespace 'team'"
    assert f"'white' and 'blue' {both}" in refused or f"'blue' and 'white' {both}" in refused
    assert "hint: give each a namespace of its own" in refused


EXTRAS = """
def budget(name):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}}


here = {"file": "shop.yaml", "namespace": "team", "opts": pulumi.ResourceOptions(provider=files)}
ComposeStack("blue", **here, extras={"web": [budget("web")]})
names = json.loads(config.get("names") or '["other"]')
ComposeStack("white", **{**here, "file": "second.yaml"}, extras={"db": [budget(name) for name in names]})
"""


def test_extras_of_two_components(program: Program) -> None:
    """They are told apart by their names, as the objects of files are."""
    (program.folder / "__main__.py").write_text(HEAD + EXTRAS)
    (program.folder / "shop.yaml").write_text("services: {web: {image: 'busybox:1.37'}}\n")
    (program.folder / "second.yaml").write_text("services: {db: {image: 'busybox:1.37'}}\n")
    program.expect("preview")
    program.expect("config", "set", "names", '["web"]')
    refused = program.fail("preview")

    assert "error: 'white' and 'blue' both have PodDisruptionBudget/web in namespace 'team'\n" in refused
    assert "Traceback" not in refused


BESIDE = """
def label(args):
    if args.type_ == "kubernetes:apps/v1:Deployment":
        args.props["spec"]["template"]["metadata"]["labels"]["team"] = "blue"
        return pulumi.ResourceTransformResult(args.props, args.opts)


budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": late(1)}}
shop = ComposeStack(
    "shop",
    file="shop.yaml",
    namespace=space.metadata.name,
    variables={"PASSWORD": config.require_secret("password")},
    transforms={"web": label},
    extras={"web": [budget], "db": [{**budget, "metadata": {"name": "db"}}]},
    opts=opts,
)
web = shop.services["web"]
report = {
    "address": web.address,
    "ports": web.ports.apply(json.dumps),
    "claim": shop.volumes["data"].claim_name,
    "budget": shop.objects["PodDisruptionBudget/web"].metadata["name"],
}
ConfigMap("report", metadata={**here, "name": "report"}, data=report, opts=opts)
Secret("copy", metadata={**here, "name": "copy"}, string_data=web.env, opts=opts)
"""
TWO = """\
services:
  web:
    image: busybox:1.37
    ports: ["8080:80"]
    environment: {URL: "db://${PASSWORD}@db"}
  db:
    image: busybox:1.37
    volumes: ["data:/data"]
  web2:
    image: busybox:1.37
volumes: {data: {}}
"""


def test_beside_services(program: Program) -> None:
    """A transform changes the pods of its service and no others; extras are there; others use its outputs."""
    (program.folder / "__main__.py").write_text(HEAD + BESIDE)
    (program.folder / "shop.yaml").write_text(TWO)
    program.expect("up", "--yes", "--skip-preview")
    objects = program.objects()

    teams = {
        name: manifest["spec"]["template"]["metadata"]["labels"].get("team")
        for name, manifest in objects.items()
        if name.startswith(("Deployment/", "StatefulSet/"))
    }
    assert teams == {"Deployment/web": "blue", "Deployment/web2": None, "StatefulSet/db": None}
    assert objects["PodDisruptionBudget/web"]["spec"] == {
        "minAvailable": 1,
        "selector": {"matchLabels": objects["Deployment/web"]["spec"]["selector"]["matchLabels"]},
    }
    assert objects["ConfigMap/report"]["data"] == {
        "address": "web.team.svc",
        "ports": "[80, 8080]",
        "claim": "data",
        "budget": "web",
    }
    assert texts_of_secret(objects["Secret/copy"]) == {"URL": f"db://{VALUE}@db"}
    state = program.expect("stack", "export")
    assert hidden_in(state) == []
    resources = json.loads(state.partition("\nwarning")[0])["deployment"]["resources"]
    kept = [found.get("outputs", {}) for found in resources if found["type"].startswith("composeplat:")]
    assert kept == [{"urls": []}, {}, {}, {}, {}]
    program.expect("preview", "--expect-no-changes")


FAILING = """
def label(args):
    if args.type_ == "kubernetes:apps/v1:Deployment":
        return args.props["metadata"]["team"]


async def late(args):
    return dict(args.props)


transforms = {"web": TRANSFORM}
shop = ComposeStack("shop", file="shop.yaml", namespace="team", transforms=transforms, opts=opts)
"""


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        pytest.param(
            "label",
            "error: services.web: transform 'label' failed for kubernetes:apps/v1:Deployment 'shop-workload/web',"
            " at FOLDER/__main__.py:LINE: KeyError: 'team'\n",
            id="raises",
        ),
        pytest.param(
            "[late]",
            "error: services.web: transform 'late' failed for composeplat:index:Service 'shop-service/web':"
            " TypeError: must return None or a ResourceTransformResult, not dict\n",
            id="wrong-result",
        ),
    ],
)
def test_a_transform_that_fails(program: Program, transform: str, message: str) -> None:
    """The service, the transform and the resource are in one message, before the tracebacks of Pulumi."""
    text = HEAD + FAILING.replace("TRANSFORM", transform)
    line = text.splitlines().index('        return args.props["metadata"]["team"]') + 1
    (program.folder / "__main__.py").write_text(text)
    (program.folder / "shop.yaml").write_text("services: {web: {image: x}}")

    output = program.fail("preview")

    assert message.replace("FOLDER", str(program.folder)).replace("LINE", str(line)) in output
    assert output.index("failed for") < output.index("Traceback")


TEAM = """
from composeplat import Service


class Team(pulumi.ComponentResource):
    def __init__(self, name, former=None, above=None):
        aliases = [pulumi.Alias(name=former, parent=pulumi.ROOT_STACK_RESOURCE)] if former else None
        super().__init__("test:index:Team", name, None, pulumi.ResourceOptions(parent=above, aliases=aliases))
        below = pulumi.ResourceOptions(parent=self, providers=[files])
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": 1}}
        ComposeStack(
            f"{name}-shop",
            file="shop.yaml",
            environment_name="shop",
            namespace="team",
            variables={"PASSWORD": "x"},
            extras={"web": [budget]},
            opts=below,
        )


def alone(name, aliases=None):
    keys = "image: busybox:1.37\\nvolumes: ['own:/data']\\n---\\nvolumes: {own: {}}\\n"
    opts = pulumi.ResourceOptions(provider=files, aliases=aliases)
    Service(name, compose=keys, service_name="alone", environment_name="alone", namespace="team", opts=opts)

"""


def test_renamed_components(program: Program) -> None:
    """A component that is renamed with an alias, or moved below another, keeps all its objects; so do its parent's."""
    (program.folder / "shop.yaml").write_text(TWO)
    (program.folder / "__main__.py").write_text(f"{HEAD}{TEAM}\nTeam('blue')\nalone('store')\n")
    program.expect("up", "--yes", "--skip-preview")

    program_after = f"{HEAD}{TEAM}\nTeam('green', 'blue', app)\nalone('cache', [pulumi.Alias(name='store')])\n"
    (program.folder / "__main__.py").write_text(program_after)

    program.expect("preview", "--expect-no-changes")
