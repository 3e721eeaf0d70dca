"""The files in ``ci/``: the steps of the action and the jobs of the template are run as GitHub and GitLab run them.

What a runner gives is stood in for: its folders, its variables, and the files that steps write to. Nothing else is: the
scripts are those of the files, in the shell and with the options of the runners.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.deploy.conftest import Environment
from tests.deploy.release import WHEEL, build, write_constraints
from tests.page_commands import read_steps

ACTION = yaml.safe_load((ROOT / "ci" / "github" / "action.yml").read_text())
TEMPLATE = yaml.safe_load((ROOT / "ci" / "gitlab" / "platform.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
JOBS = {name: job for name, job in TEMPLATE.items() if name != "variables"}
SITE = """
name: site
services:
  web:
    image: busybox:1.37
    command: httpd -f -p 8080
    stop_grace_period: 0s
    ports: ['80:8080']
    volumes: ['data:/data']
volumes: {data: }
"""
#: What a destroyed environment keeps: its volume, and to which project that belongs.
KEPT = {"ConfigMap/platform-project.site", "PersistentVolumeClaim/data"}
WRONG = "services: {web: {image: busybox, ports: [nonsense]}}"
PASSPHRASE = "correct horse battery"  # noqa: S105 -- it protects the state of one test
BIN = Path(sys.executable).parent
pytestmark = pytest.mark.build


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The wheel, as variables of what installs it."""
    folder = tmp_path_factory.mktemp("wheel")
    build(ROOT, folder, "wheel")
    constraints = write_constraints(folder / "constraints")
    return {"PLATFORM_PACKAGE": str(folder / WHEEL), "PIP_CONSTRAINT": str(constraints)}


@dataclass(slots=True)
class Outcome:
    status: int
    output: str
    """Both outputs of all steps."""
    outputs: str = ""
    summary: str = ""


@dataclass(slots=True)
class Runner:
    """What a script finds on a machine of GitHub's or GitLab's: the checkout, and no platform."""

    environment: Environment
    folder: Path
    variables: dict[str, str]
    has_platform: bool = False
    """Its image has the command; else a job installs it."""

    def clean(self) -> dict[str, str]:
        """The variables of a job: none of them leads to the cluster, and PATH has no environment of Python's."""
        path = [part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != BIN]
        path = [str(BIN), *path] if self.has_platform else path
        given = {key: value for key, value in self.environment.variables.items() if key != "KUBECONFIG"}
        settings = {"PLATFORM_NAMESPACE": self.environment.namespace, "PLATFORM_DOMAIN": "localhost"}
        return {**given, **settings, "PATH": os.pathsep.join(path), "CI": "true", **self.variables}

    def script(self, text: str, variables: dict[str, str], shell: str) -> tuple[int, str]:
        path = self.folder / "script"
        path.write_text(text)
        done = subprocess.run(
            [*shell.split(), str(path)], cwd=self.environment.folder, env=variables, text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.returncode, done.stdout


@pytest.fixture
def runner(environment: Environment, package: dict[str, str], tmp_path: Path) -> Iterator[Runner]:
    environment.write(SITE)
    folder = tmp_path / "runner"
    folder.mkdir()
    yield Runner(environment, folder, package)
    environment.platform("destroy", "--volumes", "--yes", PULUMI_CONFIG_PASSPHRASE=PASSPHRASE)


# GitHub ---------------------------------------------------------------------------------------------------------------


def evaluated(text: str, event: str, inputs: dict[str, str]) -> str:
    """An expression of the action with its value: it uses its inputs and the name of the event."""
    defaults = {name: given.get("default", "") for name, given in ACTION["inputs"].items()}
    values = {f"inputs.{name}": value for name, value in {**defaults, **inputs}.items()}
    values["github.event_name"] = event
    return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: values[found[1]], text)


def act(runner: Runner, event: str, **inputs: str) -> Outcome:
    """Run the action in a job of its own for an event."""
    files = {name: runner.folder / name.lower() for name in ("ENV", "PATH", "OUTPUT", "STEP_SUMMARY")}
    for path in files.values():
        path.write_text("")
    given_files = {f"GITHUB_{name}": str(path) for name, path in files.items()}
    job = {**runner.clean(), "RUNNER_TEMP": str(runner.folder), **given_files}
    outcome = Outcome(0, "")
    for step in STEPS:
        if outcome.status and step.get("if") != "always()":
            continue
        written = dict(line.split("=", 1) for line in files["ENV"].read_text().splitlines())
        search = os.pathsep.join([*files["PATH"].read_text().split(), job["PATH"]])
        given = {name: evaluated(value, event, inputs) for name, value in step.get("env", {}).items()}
        variables = {**job, **written, "PATH": search, **given}
        status, output = runner.script(step["run"], variables, "bash --noprofile --norc -e -o pipefail")
        outcome.status = outcome.status or status
        outcome.output += output
    outcome.outputs, outcome.summary = files["OUTPUT"].read_text(), files["STEP_SUMMARY"].read_text()
    return outcome


def secrets(runner: Runner) -> dict[str, str]:
    kubeconfig = runner.environment.cluster.layout.kubeconfig.read_text()
    return {"kubeconfig": kubeconfig, "passphrase": PASSPHRASE, "package": runner.variables["PLATFORM_PACKAGE"]}


def test_action(runner: Runner) -> None:
    """A pull request is previewed, and a push deploys: both leave a summary, and no credential.

    A destroyed environment keeps its volumes, unless the arguments say otherwise.
    """
    given = secrets(runner)

    preview = act(runner, "pull_request", **given)
    assert preview.status == 0, preview.output
    assert "create StatefulSet web" in preview.summary
    assert not runner.environment.pods()

    runner.has_platform = True
    deploy = act(runner, "push", **given)
    assert deploy.status == 0, deploy.output
    assert runner.environment.pods("web")
    host = f"https://web-{runner.environment.namespace}.localhost"
    assert re.search(rf"addresses<<END OF ADDRESSES\n{host}\S*\nEND OF ADDRESSES\n", deploy.outputs), deploy.outputs
    assert deploy.summary.startswith(f"### platform deploy\n\n    {host}")

    for secret in (PASSPHRASE, *re.findall(r"token: (\S+)", given["kubeconfig"])):
        assert secret not in preview.output + deploy.output
    assert not [*runner.folder.glob("platform-kubeconfig"), *runner.folder.glob("platform-passphrase")]

    for arguments, left in (("--quiet", KEPT), ("--volumes", set())):
        destroy = act(runner, "push", **given, command="destroy", arguments=arguments)
        assert destroy.status == 0, destroy.output
        assert runner.environment.names() == left


def test_action_that_fails(runner: Runner) -> None:
    """A file with an error fails the job; the summary says where it is, and the credentials are removed."""
    runner.environment.write(WRONG)
    runner.has_platform = True

    failed = act(runner, "pull_request", **secrets(runner))

    assert failed.status == 3
    assert failed.summary.startswith("### platform preview: failed with status 3\n\n")
    assert "compose.yaml:1:" in failed.summary
    assert not [*runner.folder.glob("platform-kubeconfig"), *runner.folder.glob("platform-passphrase")]


def test_action_uses_no_expression_in_a_script() -> None:
    """Inputs are variables: within a script a branch's name could be a command. No step needs another action."""
    assert [step["name"] for step in STEPS if "${{" in step["run"] or step["shell"] != "bash"] == []
    assert [step["name"] for step in STEPS if "uses" in step] == []


def test_inputs_on_the_page() -> None:
    """The page names the inputs of the action, and its workflow gives no other."""
    page = (ROOT / "docs" / "ci.md").read_text()
    (workflow,) = [step.content for step in read_steps(page) if step.argument == ".github/workflows/platform.yaml"]
    (given,) = [
        step["with"] for step in yaml.safe_load(workflow)["jobs"]["platform"]["steps"] if "platform" in step["uses"]
    ]

    assert given.keys() <= ACTION["inputs"].keys()
    assert {name for name in ACTION["inputs"] if f"`{name}`" in page} == ACTION["inputs"].keys()


# GitLab ---------------------------------------------------------------------------------------------------------------


def job(runner: Runner, name: str) -> Outcome:
    """Run a job of the template, with the variables of the project's settings."""
    settings = {"KUBECONFIG": "kubeconfig", "PULUMI_CONFIG_PASSPHRASE_FILE": "passphrase"}
    contents = {"kubeconfig": runner.environment.cluster.layout.kubeconfig.read_text(), "passphrase": PASSPHRASE}
    for file, content in contents.items():
        (runner.folder / file).write_text(content)
    variables = {key: str(runner.folder / file) for key, file in settings.items()}
    found = {**JOBS[JOBS[name]["extends"]], **JOBS[name]}
    text = "\n".join([*found["before_script"], *found["script"]])
    return Outcome(*runner.script(text, {**TEMPLATE["variables"], **runner.clean(), **variables}, "bash -eo pipefail"))


def test_template(runner: Runner) -> None:
    """The job of a merge request previews, that of the default branch deploys, and a stopped environment is deleted."""
    preview = job(runner, "platform-preview")
    assert preview.status == 0, preview.output
    assert "create StatefulSet web" in (runner.environment.folder / "platform-preview.txt").read_text()
    assert not runner.environment.pods()

    runner.has_platform = True
    deploy = job(runner, "platform-deploy")
    assert deploy.status == 0, deploy.output
    assert runner.environment.pods("web")
    addresses = (runner.environment.folder / "platform-addresses.txt").read_text()
    assert addresses.startswith(f"https://web-{runner.environment.namespace}.localhost")

    destroy = job(runner, "platform-destroy")
    assert destroy.status == 0, destroy.output
    assert runner.environment.names() == KEPT


def test_template_that_fails(runner: Runner) -> None:
    """A file with an error fails the job, although its output goes through a pipe."""
    runner.environment.write(WRONG)
    runner.has_platform = True

    assert job(runner, "platform-preview").status == 3


def test_rules_of_the_template() -> None:
    """Merge requests are previewed alone; what changes the cluster runs for the default branch, one after the other."""
    default = "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"
    rules = {name: [rule["if"] for rule in job["rules"]] for name, job in JOBS.items() if "rules" in job}

    assert rules == {
        "platform-preview": ['$CI_PIPELINE_SOURCE == "merge_request_event"'],
        "platform-deploy": [default],
        "platform-destroy": [default],
    }
    assert {JOBS[name].get("resource_group") for name in ("platform-deploy", "platform-destroy")} == {"platform"}


# both -----------------------------------------------------------------------------------------------------------------

SCRIPTS = {
    **{f"github-{step['name'].lower().replace(' ', '-')}": step["run"] for step in STEPS},
    **{
        f"gitlab-{name.lstrip('.')}": "\n".join([*job.get("before_script", ()), *job.get("script", ())])
        for name, job in JOBS.items()
    },
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_shellcheck(name: str) -> None:
    """The linter of shell scripts finds nothing."""
    done = subprocess.run(
        [BIN / "shellcheck", "-s", "bash", "-"], input=SCRIPTS[name], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")
