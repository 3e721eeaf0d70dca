"""Which programs of providers run in a deploy, with which options, and what their messages lead to."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from composeplat.cluster.api import Api
from composeplat.diagnostics import Report
from composeplat.engine.outcomes import Refused
from composeplat.engine.provider_values import Providers
from composeplat.engine.providers import check_providers, plan_with_last_values, release_providers, run_providers
from composeplat.engine.stack import Stack
from composeplat.plan import Plan, make_plan
from tests.conftest import Project, Reading, lines

TEXT = """\
x-platform: {full: true}
services:
  web: {image: nginx, depends_on: [db]}
  other: {image: nginx}
  db:
    provider: {type: awesome, options: {size: 1, zone: [a, b]}}
    depends_on: [base]
  base:
    provider: {type: awesome}
  alone:
    provider: {type: awesome}
"""
BASE, DB, ALONE = (
    "compose --project-name=demo up base",
    "compose --project-name=demo up --size=1 --zone=a --zone=b db",
    "compose --project-name=demo up alone",
)


@dataclass
class Around:
    """What is around an operation: the definition, the programs, and its notes."""

    reading: Reading
    folder: Path
    stack: Stack
    notes: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    @property
    def plan(self) -> Plan:
        assert self.reading.plan is not None
        return self.reading.plan

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return [call for call in path.read_text().splitlines() if "metadata" not in call] if path.exists() else []

    def install(self, body: str = "") -> None:
        program = self.folder / "awesome"
        program.write_text(f'#!/bin/sh\necho "$@" >> {self.folder}/calls\n{body}\n')
        program.chmod(0o755)

    def run(self, *services: str, live: dict[str, Any] | None = None) -> Plan:
        check_providers(self.stack, self.plan, services)
        return run_providers(self.stack, api(live or {}), self.plan, services, 20)


def api(secrets: dict[str, Any]) -> Api:
    """Return what is in for a cluster with these Secrets."""

    class Cluster:
        def find(self, path: str) -> Any:
            return secrets.get(path.rpartition("/")[2])

    return cast("Api", Cluster())


def variables_of(plan: Plan, provider: str) -> dict[str, str]:
    (data,) = (d.manifest["data"] for file in plan.files if file.name == provider for d in file.objects)
    return {name: base64.b64decode(value).decode() for name, value in data.items()}


def around(project: Project, tmp_path: Path, text: str = TEXT, *, is_allowed: bool = True) -> Around:
    reading = project(text).read(full=True)
    loaded, folder = reading.loaded, tmp_path / "bin"
    folder.mkdir()

    def plan_with(providers: Any) -> Plan:
        changed = replace(loaded.project, providers=providers)
        return make_plan(changed, loaded.settings, loaded.origins, Report())

    def hide(values: Iterable[str]) -> None:
        found.hidden.extend(values)

    providers = Providers(declared=loaded.project.providers, is_allowed=is_allowed, plan_with=plan_with, hide=hide)

    class Fake:
        environment_name = "demo"
        origins = loaded.origins
        is_interrupted = False

        def note(self, text: str) -> None:
            found.notes.append(text)

    fake: Any = Fake()
    fake.providers = providers
    fake.variables = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    found = Around(reading, folder, cast("Stack", fake))
    return found


def refusal(found: Around, *services: str) -> tuple[list[str], str]:
    with pytest.raises(Refused) as caught:
        found.run(*services)
    return lines(caught.value.report.sorted()), str(caught.value)


def test_all_run_in_the_order_of_depends_on(project: Project, tmp_path: Path) -> None:
    """Each after those that it depends on, also those that no service needs."""
    found = around(project, tmp_path)
    found.install('printf "%s\\n" \'{"type":"setenv","message":"URL=a=b"}\' \'{"type":"rawsetenv","message":"RAW=c"}\'')

    plan = found.run()

    assert found.calls == [BASE, DB, ALONE]
    assert variables_of(plan, "db") == {"DB_URL": "a=b", "RAW": "c"}
    assert set(found.hidden) == {"a=b", "c"}
    assert plan.services != found.plan.services


@pytest.mark.parametrize(("services", "calls"), [(("web",), [BASE, DB]), (("other",), [])])
def test_named_services_need_some(
    project: Project, tmp_path: Path, services: tuple[str, ...], calls: list[str]
) -> None:
    """The providers of the named services, and those that these depend on."""
    found = around(project, tmp_path)
    found.install()

    found.run(*services)

    assert found.calls == calls


def test_the_pods_change_with_the_values(project: Project, tmp_path: Path) -> None:
    """Those of dependents, and of no other service."""
    found = around(project, tmp_path)
    plans = []
    for value in ("1", "1", "2"):
        found.install(f'printf "%s\\n" \'{{"type":"setenv","message":"URL={value}"}}\'')
        plans.append({service.name: service.objects for service in found.run().services})

    assert plans[0] == plans[1]
    assert plans[1]["web"] != plans[2]["web"]
    assert plans[1]["other"] == plans[2]["other"]


def test_it_is_refused_unless_it_is_allowed(project: Project, tmp_path: Path) -> None:
    """Each program that would run, at its place; what needs none is not."""
    found = around(project, tmp_path, is_allowed=False)
    found.install()

    messages, outcome = refusal(found, "web")

    assert messages == [
        (
            "compose.yaml:6:22: error: services.db.provider.type would run the program 'awesome' on this machine,"
            " which is not allowed [provider-refused]"
        ),
        (
            "compose.yaml:9:22: error: services.base.provider.type would run the program 'awesome' on this machine,"
            " which is not allowed [provider-refused]"
        ),
    ]
    assert outcome == "nothing was changed"
    found.run("other")
    assert found.calls == []


def test_a_program_that_is_missing(project: Project, tmp_path: Path) -> None:
    """It is refused before any program runs."""
    messages, _ = refusal(
        around(
            project,
            tmp_path,
            TEXT.replace("base:\n    provider: {type: awesome", "base:\n    provider: {type: n0-such"),
        ),
        "web",
    )

    assert messages[1] == (
        "compose.yaml:9:22: error: services.base.provider.type names a program that is not there: 'n0-such'"
        " [provider-refused]"
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("echo oops >&2; exit 4", "ended with status 4"),
        ('printf "%s\\n" \'{"type":"error","message":"no \\u001b[1m money"}\'', "failed: no \\x1b[1m money"),
        ('printf "%s\\n" \'{"type":"unknown"}\'', "sent a message of a type that Compose does not have"),
    ],
)
def test_a_failure_has_a_place(project: Project, tmp_path: Path, body: str, reason: str) -> None:
    """The first failure ends the deploy."""
    found = around(project, tmp_path)
    found.install(f'case "$*" in *metadata*) exit 1;; esac\n{body}')

    messages, outcome = refusal(found)

    assert messages == [
        (
            f"compose.yaml:9:15: error: services.base.provider is given by the program 'awesome', which {reason}"
            " [provider-failed]"
        )
    ]
    assert outcome == "nothing was changed in the cluster"
    assert found.calls == [BASE]
    assert ("base: oops" in found.notes) == ("oops" in body)


def test_messages_are_shown(project: Project, tmp_path: Path) -> None:
    """The first line of information, escaped; nothing of variables."""
    found = around(project, tmp_path)
    found.install('printf "%s\\n" \'{"type":"info","message":"one\\u0007\\ntwo"}\'')

    found.run("web")

    assert found.notes == [
        "base: running awesome compose up",
        "base: one\\x07",
        "db: running awesome compose up",
        "db: one\\x07",
    ]


def test_a_program_can_ask_for_its_configuration(project: Project, tmp_path: Path) -> None:
    """It is that of its service alone, in Compose's canonical form."""
    text = TEXT.replace(
        "    depends_on: [base]\n",
        "    depends_on: [base]\n    environment: ['A=$X/$$', B]\n    labels: {team: a}\n    image: mysql:8\n",
    )
    found = around(project, tmp_path, text.replace("$X", "${X-one}"))
    found.install(
        "case $* in *metadata*) exit 1;; esac\n"
        f'echo \'{{"type":"get-service-config"}}\'; read -r answer; echo "$answer" >> {tmp_path}/answers'
    )

    found.run("web")

    assert [json.loads(line) for line in (tmp_path / "answers").read_text().splitlines()] == [
        {"provider": {"type": "awesome"}},
        {
            "provider": {"type": "awesome", "options": {"size": ["1"], "zone": ["a", "b"]}},
            "depends_on": {"base": {"condition": "service_started", "required": True}},
            "environment": {"A": "one/$", "B": None},
            "labels": {"team": "a"},
            "image": "mysql:8",
        },
    ]


def test_a_program_from_a_variable(project: Project, tmp_path: Path) -> None:
    """Notes and messages have the text of the file."""
    found = around(
        project,
        tmp_path,
        TEXT.replace("base:\n    provider: {type: awesome", "base:\n    provider: {type: '${X-awesome}'"),
    )
    found.install("exit 1")

    messages, _ = refusal(found)

    assert found.notes == ["base: running ${X-awesome} compose up"]
    assert "is given by the program '${X-awesome}' (after substitution), which ended with status 1" in messages[0]


def test_metadata_decides_the_options(project: Project, tmp_path: Path) -> None:
    """An option that the program does not know is left out, and one that it needs must be there."""
    found = around(project, tmp_path)
    known = '{"description":"x","up":{"parameters":[{"name":"size","required":NEEDED}]}}'
    metadata = f"case \"$*\" in *metadata*) echo '{known}';; esac"
    found.install(metadata.replace("NEEDED", "false"))

    found.run("web")

    assert found.calls == [BASE, "compose --project-name=demo up --size=1 db"]
    assert "db: its program has no option 'zone', so it is not given" in found.notes
    found.install(metadata.replace("NEEDED", "true"))
    messages, _ = refusal(found, "web")
    assert messages[0].endswith("'awesome', which needs the option size, which is not given [provider-failed]")


def test_a_confidential_option_is_noted(project: Project, tmp_path: Path) -> None:
    """A command line is for everyone to see."""
    found = around(project, tmp_path)
    found.install()
    found.reading = replace(found.reading, plan=found.plan.with_confidential(("a",)))

    found.run("web")

    assert [note for note in found.notes if "confidential" in note] == [
        (
            "db: its option 'zone' has a confidential value, which the list of processes shows; let the program read it"
            " from the environment"
        )
    ]


def live_secret(environment: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": environment}
    return {"metadata": {"labels": labels}, "data": {"DB_URL": base64.b64encode(b"before").decode()}}


def test_a_preview_has_the_last_values(project: Project, tmp_path: Path) -> None:
    """Those of this environment alone; it says of which there are none."""
    found = around(project, tmp_path)
    found.install()
    unknown = ["the variables that the provider of db sets are known at a deploy: a preview runs no program"]

    plan, notes = plan_with_last_values(
        found.stack, api({"db-provided": live_secret(found.plan.environment)}), found.plan
    )
    other = plan_with_last_values(found.stack, api({"db-provided": live_secret("other")}), found.plan)

    assert (variables_of(plan, "db"), notes, found.hidden) == ({"DB_URL": "before"}, [], ["before"])
    assert other == (found.plan, unknown)
    assert found.calls == []


def test_a_deploy_of_others_keeps_the_last_values(project: Project, tmp_path: Path) -> None:
    """A provider that is not run has the variables that it had."""
    text = TEXT.replace("other: {image: nginx}", "other: {image: nginx, depends_on: [alone]}")
    found = around(project, tmp_path, text)
    found.install('printf "%s\\n" \'{"type":"setenv","message":"URL=new"}\'')

    plan = found.run("other", live={"db-provided": live_secret(found.plan.environment)})

    assert (variables_of(plan, "db"), variables_of(plan, "alone")) == ({"DB_URL": "before"}, {"ALONE_URL": "new"})


def test_release(project: Project, tmp_path: Path) -> None:
    """Dependents come first, one that fails stops no other, and without leave the command is shown."""
    found = around(project, tmp_path)
    found.install('case "$*" in *" db") exit 1;; esac')

    with pytest.raises(Refused) as caught:
        release_providers(found.stack)

    assert found.calls == [call.replace(" up ", " down ") for call in (ALONE, DB, BASE)]
    assert str(caught.value) == "the environment is destroyed; the next destroy tries again"
    assert [d.code for d in caught.value.report.sorted()] == ["provider-failed"]


def test_release_that_is_not_allowed(project: Project, tmp_path: Path) -> None:
    """The commands are shown."""
    found = around(project, tmp_path, is_allowed=False)

    release_providers(found.stack)

    assert found.notes[-1] == (
        "base: what its provider has made stays; to release it: platform destroy --allow-providers,"
        " or awesome compose --project-name=demo down base"
    )


def test_such_a_service_can_not_be_selected(project: Project, tmp_path: Path) -> None:
    """A command that names it says what it is."""
    found = around(project, tmp_path)

    with pytest.raises(Exception, match=r"^service 'db' has no pods: its provider gives it, outside of the cluster$"):
        found.plan.select_services(("db",))
