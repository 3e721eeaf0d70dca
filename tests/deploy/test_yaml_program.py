"""``ComposeStack`` in programs in YAML, deployed by plain Pulumi through the provider that pip installs."""

from __future__ import annotations

import base64
import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_embedded import check_order, two
from tests.languages.yaml_program import YamlProgram, make_program
from tests.page_commands import read_steps

PAGE = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
FILES = {step.argument: step.content for step in read_steps(PAGE) if step.mark == "file"}
#: The commands of the page, without those that choose where the state is.
COMMANDS = [
    shlex.split(line)[1:]
    for step in read_steps(PAGE)
    if step.mark == "run by"
    for line in step.content.splitlines()
    if line.startswith("pulumi ") and "stack init" not in line
]


@pytest.fixture
def program(environment: Environment, tmp_path: Path) -> YamlProgram:
    """A program whose stack has the name of the environment's namespace."""
    return make_program(environment.folder, tmp_path, environment.variables, environment.namespace)


def config_map(environment: Environment, name: str) -> dict[str, str]:
    found = environment.get("v1", "ConfigMap", name)
    assert found is not None
    data: dict[str, str] = found["data"]
    return data


def test_the_page(environment: Environment, program: YamlProgram, tmp_path: Path) -> None:
    """The program of the page comes up by the page's commands, shows no change then, and keeps its secret."""
    program.write({name: text for name, text in FILES.items() if name in ("Pulumi.yaml", "compose.yaml")})
    printed = [program.expect(*command) for command in COMMANDS]

    assert json.loads(printed[-1]) == [f"https://web-{environment.namespace}.localhost"]
    assert config_map(environment, "addresses") == {"web": f"http://web.{environment.namespace}.svc:8080"}
    secret = environment.get("v1", "Secret", "web-env")
    assert secret is not None
    values = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert values == {"GREETING": "hello", "TOKEN": "not to be seen"}
    program.expect("preview", "--expect-no-changes")

    state = program.expect("stack", "export")
    for hidden in (b"not to be seen", base64.b64encode(b"not to be seen")):
        assert hidden.decode() not in state
        assert all(hidden not in path.read_bytes() for path in program.state.rglob("*") if path.is_file())

    # The program changes its language, and the state stays as it is.
    host = tmp_path / "python" / "pulumi-language-python"
    host.parent.mkdir()
    host.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/plain/language_host.py "$@"\n')
    host.chmod(0o755)
    project = FILES["Pulumi.yaml"].partition("resources:")[0].replace("runtime: yaml", "runtime: python")
    program.write({"Pulumi.yaml": project, "__main__.py": FILES["__main__.py"]})
    program.expect("preview", "--expect-no-changes", PATH=f"{host.parent}:{program.variables['PATH']}")

    program.write({"Pulumi.yaml": FILES["Pulumi.yaml"]})
    program.expect("destroy", "--yes", "--skip-preview")
    assert environment.names() == set()


PROVIDERS = """\
name: shop
runtime: yaml
config:
  login: {type: string, secret: true}
  kubeconfig: {type: string}
resources:
  theirs:
    type: pulumi:providers:kubernetes
    properties: {kubeconfig: "${kubeconfig}", enableSecretMutable: true}
  space:
    type: kubernetes:core/v1:Namespace
    properties: {metadata: {name: "${pulumi.stack}"}}
    options: {provider: "${theirs}"}
  shop:
    type: composeplat:index:ComposeStack
    properties:
      file: compose.yaml
      namespace: ${space.metadata.name}
      endpointDomain: localhost
      variables:
        ZONE: ${space.id}
        LOGIN: ${login}
        PODS: 2
    options: {providers: ["${theirs}"]}
  facts:
    type: kubernetes:core/v1:ConfigMap
    properties:
      metadata: {name: facts, namespace: "${shop.namespace}"}
      data:
        address: ${shop.services["web"].address}
        port: port ${shop.services["web"].ports[0]}
        claim: ${shop.claims["data"]}
    options: {provider: "${theirs}"}
outputs:
  login: ${shop.env["web"]["LOGIN"]}
"""
LATE = f"""\
services:
  web:
    image: busybox:1.37
    command: {SLEEP}
    stop_grace_period: 0
    scale: ${{PODS}}
    ports: ["8080:80"]
    environment: {{LOGIN: "${{LOGIN}}"}}
    annotations: {{zone: "${{ZONE}}"}}
  keeper:
    image: busybox:1.37
    command: {SLEEP}
    stop_grace_period: 0
    volumes: ["data:/data"]
volumes: {{data: {{}}}}
"""


def test_outputs_and_a_provider(environment: Environment, program: YamlProgram, tmp_path: Path) -> None:
    """Objects have the values of outputs, in the cluster of the program's own provider; its outputs go to others."""
    program.write({"Pulumi.yaml": PROVIDERS, "compose.yaml": LATE})
    program.expect("config", "set", "--secret", "login", "open sesame")
    program.expect("config", "set", "kubeconfig", environment.variables["KUBECONFIG"])
    nowhere = str(tmp_path / "nowhere")
    shown = program.pulumi("preview", KUBECONFIG=nowhere)
    assert "LOGIN is not known" not in shown.stdout
    assert "ZONE is not known before the update; objects that have it show no value" in shown.stdout + shown.stderr
    program.expect("up", "--yes", "--skip-preview", KUBECONFIG=nowhere)

    namespace = environment.namespace
    pods = environment.pods("web")
    assert [pod["metadata"]["annotations"]["zone"] for pod in pods] == [namespace] * 2
    assert config_map(environment, "facts") == {"address": f"web.{namespace}.svc", "port": "port 80", "claim": "data"}
    assert "open sesame" not in program.expect("stack", "output")
    assert program.expect("stack", "output", "login", "--show-secrets") == "open sesame\n"
    assert "open sesame" not in program.expect("stack", "export")
    program.expect("preview", "--expect-no-changes", KUBECONFIG=nowhere)


ORDERED = (
    "name: shop\nruntime: yaml\nresources:\n"
    '  space: {type: "kubernetes:core/v1:Namespace", properties: {metadata: {name: "${pulumi.stack}"}}}\n'
    "  shop:\n    type: composeplat:index:ComposeStack\n"
    '    properties: {file: compose.yaml, namespace: "${pulumi.stack}", variables: {}}\n'
    '    options: {dependsOn: ["${space}"]}\n'
)


def test_order(environment: Environment, program: YamlProgram) -> None:
    """A service waits until its dependency is healthy, as the provider has the hooks of a Python program."""
    program.write({
        "compose.yaml": two("db", "web"),
        "Pulumi.yaml": ORDERED,
    })  # fmt: skip
    program.expect("up", "--yes", "--skip-preview")

    check_order(environment, "db", "web")


#: The second service waits for the first without end.
STUCK = f"""\
services:
  db:
    image: busybox:1.37
    command: {SLEEP}
    stop_grace_period: 0
    healthcheck: {{test: "false", interval: 600s, start_period: 600s}}
  web:
    image: busybox:1.37
    command: {SLEEP}
    stop_grace_period: 0
    depends_on: {{db: {{condition: service_healthy}}}}
"""


def test_interrupted(environment: Environment, program: YamlProgram) -> None:
    """Ctrl-C ends the wait for a dependency in the provider at once, with a message that blames no service."""
    program.write({"compose.yaml": STUCK, "Pulumi.yaml": ORDERED})
    command = [str(program.command), "up", "--yes", "--skip-preview", "--stack", program.stack, "--non-interactive"]
    process = subprocess.Popen(
        command, cwd=program.folder, env=program.variables, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    environment.started.append(process)
    until(lambda: environment.pods("db"))
    time.sleep(3)
    interrupted = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)

    assert process.returncode != 0
    assert "web waits for db, which is not waited for any more: interrupted\n" in output
    assert "Traceback" not in output
    assert time.monotonic() - interrupted < 60
    healthy = STUCK.replace('test: "false", interval: 600s, start_period: 600s', 'test: "true", interval: 1s')
    program.write({"compose.yaml": healthy})
    program.expect("up", "--yes", "--skip-preview")
    assert environment.pods("web") != []


ALONE = f"""\
name: shop
runtime: yaml
config:
  login: {{type: string, secret: true}}
resources:
  space:
    type: kubernetes:core/v1:Namespace
    properties: {{metadata: {{name: "${{pulumi.stack}}"}}}}
  store:
    type: composeplat:index:Service
    properties:
      namespace: ${{pulumi.stack}}
      endpointDomain: localhost
      variables: {{LOGIN: "${{login}}", ZONE: "${{space.id}}"}}
      compose: |
        image: busybox:1.37
        command: {SLEEP.replace("$", "$$")}
        stop_grace_period: 0
        ports: ["8080:80"]
        environment: {{LOGIN: "$${{LOGIN}}", ZONE: "$${{ZONE}}"}}
        volumes: ["data:/data"]
        ---
        volumes: {{data: {{size: 32Mi}}}}
    options: {{dependsOn: ["${{space}}"]}}
  facts:
    type: kubernetes:core/v1:ConfigMap
    properties:
      metadata: {{name: facts, namespace: "${{space.metadata.name}}"}}
      data:
        address: ${{store.address}}
        claim: ${{store.claims["data"]}}
        url: ${{store.urls[0]}}
"""


def test_a_service_alone(environment: Environment, program: YamlProgram) -> None:
    """A service alone runs with its volume and endpoint, shows no change then, keeps its secret, and is destroyed."""
    program.write({"Pulumi.yaml": ALONE})
    program.expect("config", "set", "--secret", "login", "open sesame")
    program.expect("up", "--yes", "--skip-preview")

    namespace = environment.namespace
    assert environment.names() == {
        "StatefulSet/store", "Service/store", "Secret/store-env", "PersistentVolumeClaim/data", "Ingress/store",
        "ConfigMap/facts",
    }  # fmt: skip
    assert config_map(environment, "facts") == {
        "address": f"store.{namespace}.svc", "claim": "data", "url": f"https://store-{namespace}.localhost",
    }  # fmt: skip
    (pod,) = environment.pods("store")
    shown = environment.exec(pod["metadata"]["name"], "sh", "-c", 'echo "$LOGIN $ZONE"')
    assert shown == f"open sesame {namespace}\n"
    assert "open sesame" not in program.expect("stack", "export")
    program.expect("preview", "--expect-no-changes")

    changed = ALONE.replace("32Mi", "64Mi").replace("stop_grace_period: 0", "stop_grace_period: 0\n        scale: 2")
    program.write({"Pulumi.yaml": changed})
    program.expect("up", "--yes", "--skip-preview")
    assert len(environment.pods("store")) == 2
    program.expect("destroy", "--yes", "--skip-preview")
    assert environment.names() == set(), "the namespace of the program goes with everything in it"
