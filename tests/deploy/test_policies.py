"""Policy packs of Pulumi, run by the real engine with Pulumi's SDK for policies in Python.

Pulumi's release has a program that runs such packs, ``pulumi-analyzer-policy-python``, which the module of Go that is
built here lacks. So a script takes its place, which starts the same module of Pulumi's SDK.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.deploy.conftest import SLEEP, Environment
from tests.deploy.release import run
from tests.deploy.test_no_change import asks_pulumi

#: Its own requirements exclude the version of protobuf that Pulumi's SDK comes with, and it runs with that.
SDK = "pulumi-policy==1.21.0 --hash=sha256:4bdebe88c747a23c1894d696e7e46e8a371920d7d17c333a33a316974dab0d35\n"
#: A policy pack that is a program.
ANALYZER_PROGRAM = Path(__file__).with_name("analyzer.py")
ANALYZER = """\
#!/bin/sh
exec '{python}' -u -m pulumi.policy "$1" "$2"
"""
PACK = """\
from pulumi_policy import *

def check_version(args, report):
    if args.resource_type.endswith(":Deployment"):
        for container in args.props["spec"]["template"]["spec"]["containers"]:
            if ":" not in container["image"]:
                report(f"{container['image']!r} has none")

def check_limits(args, report):
    if args.resource_type.endswith(":Deployment"):
        report("it has no limit")

def check_number(args, report):
    most = int(args.get_config()["most"])
    if len(args.resources) > most:
        report(f"there are more than {most}")

PolicyPack("team", [
    ResourceValidationPolicy("version", "Images have a version.", check_version, EnforcementLevel.MANDATORY),
    ResourceValidationPolicy("limits", "Memory is limited.", check_limits, EnforcementLevel.ADVISORY),
    StackValidationPolicy("number", "Resources are few.", check_number, EnforcementLevel.MANDATORY,
                          PolicyConfigSchema({"most": {"type": "integer", "default": 100}})),
])
"""
FILE = f"""\
services:
  web:
    image: IMAGE
    command: "{SLEEP}"
    stop_grace_period: 0s
"""
GOOD, BAD = FILE.replace("IMAGE", "busybox:1.37"), FILE.replace("IMAGE", "busybox")
VIOLATION = (
    "compose.yaml:2:3: error: services.web, by Deployment 'web', violates policy 'version' of 'team':"
    " Images have a version: 'busybox' has none [policy-violation]"
)
ADVICE = (
    "compose.yaml:2:3: warning: services.web, by Deployment 'web', breaks policy 'limits' of 'team':"
    " Memory is limited: it has no limit [policy-advice]"
)


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pulumi's SDK for policies, and the program that runs packs in Python."""
    folder = tmp_path_factory.mktemp("sdk")
    (folder / "requirements.txt").write_text(SDK)
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    run(*pip, "--require-hashes", "--target", folder / "packages", "-r", folder / "requirements.txt")
    analyzer = folder / "bin" / "pulumi-analyzer-policy-python"
    analyzer.parent.mkdir()
    analyzer.write_text(ANALYZER.format(python=sys.executable))
    analyzer.chmod(0o755)
    return folder


@pytest.fixture
def governed(environment: Environment, sdk: Path) -> Environment:
    """An environment with a policy pack in its folder."""
    environment.write("name: team\nversion: 0.1.0\nruntime: python\n", "policies/PulumiPolicy.yaml")
    environment.write(PACK, "policies/__main__.py")
    path = f"{sdk / 'bin'}:{environment.variables['PATH']}"
    environment.variables |= {"PATH": path, "PYTHONPATH": str(sdk / "packages")}
    return environment


def test_a_mandatory_policy_refuses_a_deploy(governed: Environment) -> None:
    """It names the place in the file, before anything is changed; preview says the same, and shows the changes."""
    governed.write(BAD)
    previewed = governed.platform("preview", "--policy-pack", "policies").expect(1)
    deployed = governed.deploy("", "--policy-pack", "policies").expect(1)

    for ran in (previewed, deployed):
        assert VIOLATION in ran.stderr.splitlines()
        assert ADVICE in ran.stderr.splitlines()
    assert "+ create Deployment web" in previewed.stdout
    assert deployed.stderr.splitlines()[-1].endswith("; nothing was changed")
    assert governed.names() == set()
    assert governed.objects("v1", "Pod") == []


def test_policies_in_json(governed: Environment) -> None:
    """A program reads the same, with the URN of the resource."""
    found = governed.deploy(BAD, "--policy-pack", "policies", "--json").expect(1).json

    assert found["status"] == "failed"
    rows = {row["policy"]: row for row in found["policy_violations"]}
    assert set(rows) == {"version", "limits"}
    urn = rows["version"].pop("urn")
    assert urn.endswith("::env-workload/web")
    assert rows["version"] == {
        "pack": "team", "policy": "version", "level": "mandatory", "path": "services.web",
        "message": "Images have a version: 'busybox' has none",
    }  # fmt: skip


def test_an_advisory_policy_warns(governed: Environment) -> None:
    """The deploy continues, and says it once."""
    deployed = governed.deploy(GOOD, "--policy-pack", "policies").expect()

    assert deployed.stderr.splitlines().count(ADVICE) == 1
    assert governed.pods("web")


def test_a_policy_is_checked_without_a_change(governed: Environment) -> None:
    """With a policy pack, Pulumi runs whether something has changed or not; afterwards it need not again."""
    governed.deploy(BAD).expect()
    governed.platform("preview", "--expect-no-changes").expect()
    assert not asks_pulumi(governed.platform("preview", "--debug").expect())

    for command in ("preview", "deploy"):
        refused = governed.platform(command, "--policy-pack", "policies").expect(1)
        assert VIOLATION in refused.stderr.splitlines()
    variable = governed.platform("preview", PULUMI_OPTION_POLICY_PACK="policies").expect(1)
    assert VIOLATION in variable.stderr.splitlines()


@pytest.mark.endurance
def test_a_policy_is_checked_with_a_change_of_another_service(governed: Environment) -> None:
    """With a policy pack, Pulumi is given all services, not only those that have changed."""
    keys = f"image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0s, environment: {{A: '1'}}"
    others = "".join(f"  other{n}: {{{keys}}}\n" for n in range(3))
    governed.deploy(BAD + others).expect()
    governed.platform("preview", "--expect-no-changes").expect()
    governed.write(BAD + others.replace("A: '1'", "A: '2'", 1))
    assert "Pulumi is given 1 of 4 services" in governed.platform("preview", "--debug").expect().stderr

    refused = governed.platform("preview", "--policy-pack", "policies").expect(1)

    assert VIOLATION in refused.stderr.splitlines()


def test_a_policy_has_a_configuration(governed: Environment) -> None:
    """The file at the same position configures the pack; a policy of the whole stack has no place but the file."""
    governed.write('{"version": "disabled", "number": {"most": 2}}', "config.json")
    refused = governed.deploy(BAD, "--policy-pack", "policies", "--policy-pack-config", "config.json").expect(1)

    errors = [line for line in refused.stderr.splitlines() if ": error: " in line]
    what = "the environment violates policy 'number' of 'team': Resources are few: there are more than 2"
    assert errors == [f"compose.yaml:1:1: error: {what} [policy-violation]"]


def test_a_pack_that_cannot_run(governed: Environment) -> None:
    """A missing program and an error in the pack are reported in a line; nothing is changed."""
    missing = governed.deploy(GOOD, "--policy-pack", "none").expect(4)
    assert f"there is no policy pack at '{governed.folder}/none'" in missing.stderr
    governed.write("runtime: fortran\n", "other/PulumiPolicy.yaml")
    other = governed.platform("deploy", "--policy-pack", "other").expect(4)
    assert "no program runs policy packs of the runtime 'fortran'" in other.stderr
    governed.write("import no_such_module\n", "policies/__main__.py")
    broken = governed.platform("deploy", "--policy-pack", "policies").expect(1)
    assert "does not start: ModuleNotFoundError: No module named 'no_such_module'" in broken.stderr
    assert governed.names() == set()


def test_a_pack_that_is_a_program(environment: Environment) -> None:
    """A program that speaks Pulumi's protocol for policies needs no SDK, and nothing on PATH."""
    environment.write(f"#!/bin/sh\nexec '{sys.executable}' '{ANALYZER_PROGRAM}'\n", "check")
    (environment.folder / "check").chmod(0o755)

    refused = environment.deploy(GOOD, "--policy-pack", "check").expect(1)
    assert (
        "compose.yaml:2:3: error: services.web, by Deployment 'web', violates policy 'names' of 'program':"
        " 'web' names no team [policy-violation]"
    ) in refused.stderr.splitlines()
    environment.deploy(GOOD.replace("web:", "team-web:"), "--policy-pack", "check").expect()


ONLY_THEN = """\
import os, pathlib
from pulumi_policy import *

runs = pathlib.Path(__file__).parent / "runs"
before = runs.exists()
runs.touch()

def check(args, report):
    if before and args.resource_type.endswith(":Deployment"):
        report("not now")

PolicyPack("team", [ResourceValidationPolicy("late", "Late.", check, EnforcementLevel.MANDATORY)])
"""


@pytest.mark.endurance
def test_a_violation_that_only_the_deploy_shows(governed: Environment) -> None:
    """It ends the deploy with its place; the changes before it are in the state, and the next deploy continues."""
    governed.write(ONLY_THEN, "policies/__main__.py")
    governed.write(GOOD.replace("web:", "web:\n    environment: {A: b}"))

    refused = governed.platform("deploy", "--policy-pack", "policies").expect(1)

    lines = refused.stderr.splitlines()
    assert any("violates policy 'late' of 'team': Late: not now [policy-violation]" in line for line in lines)
    assert lines[-1].endswith("the changes before it were made")
    assert not governed.pods("web")
    governed.deploy().expect()
    governed.platform("preview", "--expect-no-changes").expect()


REMEDY = """\
from pulumi_policy import *

def label(args):
    if args.resource_type.endswith(":Deployment"):
        args.props["metadata"]["labels"]["example.com/team"] = "shop"
        return args.props

PolicyPack("team", [ResourceValidationPolicy(
    "label", "Deployments name their team.", lambda args, report: None, EnforcementLevel.REMEDIATE, remediate=label)])
"""


def test_a_policy_that_changes_a_resource(governed: Environment) -> None:
    """The changed resource is deployed, and a warning names the policy."""
    governed.write(REMEDY, "policies/__main__.py")

    deployed = governed.deploy(GOOD, "--policy-pack", "policies").expect()

    assert (
        "compose.yaml:2:3: warning: services.web, by Deployment 'web', breaks policy 'label' of 'team': the policy has"
        " changed the resource [policy-advice]"
    ) in deployed.stderr.splitlines()
    web = governed.get("apps/v1", "Deployment", "web") or {}
    assert web["metadata"]["labels"]["example.com/team"] == "shop"
