"""Previews of programs in YAML, with the real engine and provider; no cluster is needed for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.languages.yaml_program import YamlProgram, make_program
from tests.page_commands import read_steps

pytestmark = pytest.mark.timeout(400)

WEB = """\
services:
  web:
    image: nginx:1.27
    ports: ["8080:80"]
    volumes: ["data:/data"]
    environment: {ZONE: "${ZONE}", TOKEN: "${TOKEN}", PORT: "${PORT}"}
volumes: {data: {}}
"""


@pytest.fixture
def program(tmp_path: Path) -> YamlProgram:
    folder = tmp_path / "program"
    folder.mkdir()
    return make_program(folder, tmp_path, {"PATH": os.defpath, "HOME": str(tmp_path), "PLATFORM_IMAGE_PORTS": "false"})


def test_outputs_in_and_out(program: YamlProgram) -> None:
    """A stack gets outputs of a resource, also unknown ones and secrets, and its own outputs are known in a preview."""
    program.write({
        "compose.yaml": WEB,
        "Pulumi.yaml": """\
name: shop
runtime: yaml
resources:
  space:
    type: kubernetes:core/v1:Namespace
    properties: {metadata: {name: team}}
  shop:
    type: composeplat:index:ComposeStack
    properties:
      file: compose.yaml
      namespace: ${space.metadata.name}
      endpointDomain: example.com
      variables:
        ZONE: ${space.id}
        TOKEN: {"fn::secret": open sesame}
        PORT: 8080
outputs:
  urls: ${shop.urls}
  image: ${shop.images["web"]}
  claim: ${shop.claims["data"]}
  address: ${shop.services["web"].address}
  zone: ${shop.env["web"]["ZONE"]}
""",
    })  # fmt: skip

    done = program.pulumi("preview", "--diff")
    shown = done.stdout + done.stderr
    outputs = [line.strip() for line in shown.partition("--outputs:--")[2].splitlines()]
    assert outputs[1:8] == [
        'address: "web.team.svc"', 'claim  : "data"', 'image  : "nginx:1.27"', "urls   : [",
        '[0]: "https://web-team.example.com"', "]", "zone   : [unknown]",
    ]  # fmt: skip
    assert "ZONE is not known before the update; objects that have it show no value" in shown
    assert "open sesame" not in shown


def test_names(program: YamlProgram) -> None:
    """The resources have the types and names that a Python program gives them, so the state stays with the stack."""
    program.write({"compose.yaml": WEB, "Pulumi.yaml": stack("variables: {ZONE: a, TOKEN: b, PORT: 80}")})
    chain = "composeplat:index:ComposeStack"
    service, volume = f"{chain}$composeplat:index:Service", f"{chain}$composeplat:index:Volume"

    assert set(program.steps()) == {
        "pulumi:pulumi:Stack::shop-dev",
        f"{chain}::shop",
        f"{service}::shop-service/web",
        f"{service}$kubernetes:core/v1:Secret::shop-environment/web",
        f"{service}$kubernetes:core/v1:Service::shop-service/web",
        f"{service}$kubernetes:apps/v1:StatefulSet::shop-workload/web",
        f"{volume}::shop-volume/data",
        f"{volume}$kubernetes:core/v1:PersistentVolumeClaim::shop-claim/data",
    }


def stack(*properties: str, options: str = "", more: str = "") -> str:
    """A program with one stack."""
    lines = "".join(f"      {line}\n" for line in ("file: compose.yaml", "namespace: team", *properties))
    return (
        "name: shop\nruntime: yaml\nresources:\n  shop:\n    type: composeplat:index:ComposeStack\n"
        f"    properties:\n{lines}{options}{more}"
    )


THEIRS = """\
  theirs:
    type: pulumi:providers:kubernetes
    properties: {namespace: team, renderYamlToDirectory: rendered}
"""


@pytest.mark.parametrize("option", ["providers: ['${theirs}']", "provider: '${theirs}'"])
def test_a_provider_is_passed_down(program: YamlProgram, option: str) -> None:
    """The Kubernetes provider of the options is that of every object."""
    program.write({
        "compose.yaml": WEB,
        "Pulumi.yaml": stack(
            "variables: {ZONE: a, TOKEN: b, PORT: 80}", options=f"    options: {{{option}}}\n", more=THEIRS
        ),
    })  # fmt: skip

    providers = {
        step["newState"]["provider"].rpartition("::")[0]
        for urn, step in program.steps().items()
        if "$kubernetes:" in urn
    }
    assert providers == {"urn:pulumi:dev::shop::pulumi:providers:kubernetes::theirs"}


def test_errors_have_places(program: YamlProgram) -> None:
    """All that is wrong with the file is the error of the resource, each with its place, and no Python is shown."""
    program.write({
        "compose.yaml": "services:\n  web: {image: 'a b', depends_on: [bd]}\n  db: {image: postgres, ports: [x]}\n",
        "Pulumi.yaml": stack(),
    })  # fmt: skip

    output = program.fail("preview")
    assert (
        "error: composeplat:index:ComposeStack resource 'shop' has a problem:\n"
        "    compose.yaml:2:16: error: services.web.image must be an image such as nginx, nginx:1.27 or"
        " registry.example.com/team/app:1.0, not 'a b' [invalid-value]\n"
        "    compose.yaml:2:36: error: services.web.depends_on[0] names 'bd', which is not a service of the definition"
        " [undefined-service]\n"
        "      hint: services are: web, db\n"
        "    compose.yaml:3:33: error: services.db.ports[0] must be a port"
    ) in output


def test_inputs_that_decide_the_plan(program: YamlProgram) -> None:
    """An output is an error where the plan needs the value; every wrong input is named, and no value is shown."""
    program.write({
        "compose.yaml": WEB,
        "Pulumi.yaml": stack(
            "environmentName: ${space.id}",
            "gateway: {'fn::secret': open sesame}",
            "profiles: ['${space.id}']",
            more="  space: {type: 'kubernetes:core/v1:Namespace', properties: {metadata: {name: team}}}\n",
        ),
    })  # fmt: skip

    output = program.fail("preview")
    unknown = "is not known before the update, and decides the plan: give a plain value"
    assert f"    environmentName {unknown}\n" in output
    assert f"    profiles[0] {unknown}\n" in output
    assert "    gateway is a secret, and objects would show it: give a plain value\n" in output
    assert "open sesame" not in output


def test_paths_are_relative_to_the_working_folder(program: YamlProgram) -> None:
    """A path is relative to the folder in which the program runs: the project's, or that of its ``main``."""
    program.write({
        "sub/compose.yaml": "services: {web: {image: 'nginx:${TAG}', env_file: web.env}}\n",
        "sub/web.env": "A=b\n",
        "sub/.env": "TAG=7\n",
        "Pulumi.yaml": "name: shop\nruntime: yaml\nmain: sub\n",
        "sub/Main.yaml": stack("variables: {}") + "outputs: {image: '${shop.images[\"web\"]}'}\n",
    })  # fmt: skip

    assert 'image: "nginx:7"' in program.expect("preview", "--diff")


PAGE = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
ALONE = next(step.content for step in read_steps(PAGE) if step.argument == "alone.yaml")
SPACE = """\
  space: {type: "kubernetes:core/v1:Namespace", properties: {metadata: {name: team}}}
outputs:
  port: ${db.ports[0]}
  zone: ${db.env["ZONE"]}
"""


def test_a_service_alone(program: YamlProgram) -> None:
    """The program of the page has the outputs of a service; what is not known is named, and a secret not shown."""
    text = ALONE.replace("outputs:\n", SPACE).replace(
        "PASSWORD: ${password}", "PASSWORD: ${password}\n        ZONE: ${space.id}"
    )
    text = text.replace("POSTGRES_PASSWORD:", "ZONE: $${ZONE}\n          POSTGRES_PASSWORD:")
    program.write({"Pulumi.yaml": text})
    program.expect("config", "set", "--secret", "password", "open sesame")

    done = program.pulumi("preview", "--diff")
    shown = done.stdout + done.stderr
    outputs = [line.strip() for line in shown.partition("--outputs:--")[2].splitlines()]
    assert outputs[1:5] == ['address: "db.team.svc"', 'claim  : "data"', "port   : 5432", "zone   : [unknown]"]
    assert "ZONE is not known before the update; objects that have it show no value" in shown
    assert "open sesame" not in shown


def test_errors_of_a_service_alone(program: YamlProgram) -> None:
    """The errors of a snippet have their places in it."""
    wrong = ALONE.replace('ports:\n          - "5432"', "depends_on:\n          - cache").replace(
        "size: 5Gi", "size: x"
    )
    program.write({"Pulumi.yaml": wrong})
    program.expect("config", "set", "--secret", "password", "open sesame")

    output = program.fail("preview")
    assert (
        "error: composeplat:index:Service resource 'db' has a problem:\n"
        "    db:5:5: error: services.db.depends_on[0] names 'cache', which is not a service of the definition"
    ) in output
    assert "    db:11:11: error: volumes.data.size must be a size" in output
