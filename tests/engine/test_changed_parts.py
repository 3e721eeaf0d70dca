"""Which parts of a plan may change alone, and what Pulumi is given for them."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.engine.changed_parts import (
    changing_facts,
    complete_counts,
    find_parts,
    fixed_facts,
)
from composeplat.engine.no_change import Digester
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import LiveState
from composeplat.engine.pulumi_args import deploy_args
from composeplat.plan import Plan
from tests.conftest import Project

DIGESTER = Digester(b"key")
FILE = """\
services:
  db: {image: postgres, environment: {SIZE: small}, volumes: ['data:/data'], secrets: [key]}
  api:
    image: api
    environment: {COLOR: red}
    configs: [app]
    depends_on: {db: {condition: service_started, restart: true}}
  web: {image: nginx, ports: ['80'], scale: 1, depends_on: [api]}
  worker: {image: worker, command: run}
  mail: {image: mail}
  each: {image: each, expose: [80], deploy: {mode: global}}
  once: {image: once, command: run, restart: 'no'}
volumes: {data: {}}
configs: {app: {content: one}}
secrets: {key: {file: key}}
"""


def planned(project: Project, before: str = "", after: str = "") -> Plan:
    text = FILE.replace(before, after) if before else FILE
    assert (text != FILE) == bool(before)
    reading = project({"compose.yaml": text, "key": "k"}).read(full=True)
    assert reading.plan is not None, reading.messages
    return reading.plan


def different(before: Plan, after: Plan) -> tuple[bool, set[str]]:
    """Whether something fixed differs, and the parts that differ."""
    digests = [
        {name: DIGESTER.digest(facts) for name, facts in changing_facts(plan).items()} for plan in (before, after)
    ]
    fixed = [DIGESTER.digest(fixed_facts(plan)) for plan in (before, after)]
    names = digests[0].keys() | digests[1].keys()
    return fixed[0] != fixed[1], {name for name in names if digests[0].get(name) != digests[1].get(name)}


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        pytest.param(("COLOR: red", "COLOR: blue"), {"service-api"}, id="a-variable"),
        pytest.param(("SIZE: small", "SIZE: large"), {"service-db", "service-api"}, id="others-restart-with-it"),
        pytest.param(("image: nginx", "image: nginx:2"), {"service-web"}, id="an-image"),
        pytest.param(("image: each", "image: each:2"), {"service-each"}, id="on-each-node"),
        pytest.param(
            ("image: worker, command: run", "image: worker, command: walk"), {"service-worker"}, id="a-command"
        ),
        pytest.param(("scale: 1", "scale: 3"), {"service-web"}, id="a-number-of-pods"),
        pytest.param(("content: one", "content: two"), {"service-api", "config-app"}, id="a-config"),
    ],
)
def test_what_may_change_alone(project: Project, change: tuple[str, str], parts: set[str]) -> None:
    """What Kubernetes updates in place is a matter of the part that has it, and of those that follow it."""
    assert different(planned(project), planned(project, *change)) == (False, parts)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("ports: ['80']", "ports: ['81']"), id="a-port"),
        pytest.param(("  mail: {image: mail}\n", ""), id="a-service-less"),
        pytest.param(("image: mail", "image: mail, volumes: ['data:/x']"), id="a-volume"),
        pytest.param(("image: mail", "image: mail, depends_on: [db]"), id="a-dependency"),
        pytest.param(("image: mail", "image: mail:2"), id="the-ports-of-an-image"),
        pytest.param(("image: mail", "image: mail, environment: {A: b}"), id="its-first-variable"),
        pytest.param(("image: once, command: run", "image: once, command: walk"), id="a-job"),
        pytest.param(("volumes: {data: {}}", "volumes: {data: {labels: {a: b}}}"), id="a-volume-itself"),
        pytest.param(
            ("image: mail", "image: mail, labels: {dev.platform.com/update: recreate}"), id="how-it-is-updated"
        ),
    ],
)
def test_what_concerns_more_than_its_part(project: Project, change: tuple[str, str]) -> None:
    """A change that adds, deletes or replaces an object, or changes an order, makes the run a whole one."""
    fixed, _ = different(planned(project), planned(project, *change))

    assert fixed


def test_each_fact_of_a_plan_is_fixed_or_changing(project: Project) -> None:
    """Nothing of an object is forgotten: a field that is in neither would never be deployed."""
    plan = planned(project)
    digest = [DIGESTER.digest([fixed_facts(plan), changing_facts(plan)])]
    for desired in plan.objects:
        for name, value in _leaves(desired.manifest):
            kept = dict(value)
            value[name] = "other"
            digest.append(DIGESTER.digest([fixed_facts(plan), changing_facts(plan)]))
            value.clear()
            value.update(kept)

    assert len(set(digest)) == len(digest) > 300


def _leaves(value: Any) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(value, list):
        return [found for item in value for found in _leaves(item)]
    if not isinstance(value, dict):
        return []
    own = [(name, value) for name, item in value.items() if not isinstance(item, dict | list)]
    return own + [found for item in value.values() for found in _leaves(item)]


def test_what_pulumi_is_given(project: Project) -> None:
    """Pulumi is given what changed and what that needs; all other resources of the state are left alone."""
    plan = planned(project)
    parts = find_parts(plan, {"service-api"})

    assert [service.name for service in parts.needed.services] == ["db", "api"]
    assert [volume.name for volume in parts.needed.volumes] == ["data"]
    assert [file.name for file in parts.needed.files] == ["app", "key"]
    assert parts.needed.endpoints == ()
    assert parts.unchanged_services(plan) == ["web", "worker", "mail", "each", "once"]
    stack = "urn:pulumi:demo::demo::composeplat:index:ComposeStack"
    object_of = f"{stack}$composeplat:index:Service$kubernetes"
    ours = [
        f"{object_of}:core/v1:Secret::demo-environment/api",
        f"{object_of}:apps/v1:Deployment::demo-workload/api",
        f"{stack}$composeplat:index:Service::demo-service/api",
    ]
    others = [
        f"{object_of}:apps/v1:Deployment::demo-workload/web",
        f"{object_of}:apps/v1:StatefulSet::demo-workload/db",
    ]
    above = ["urn:pulumi:demo::demo::pulumi:pulumi:Stack::demo-demo", f"{stack}::demo"]
    state = {"resources": [{"urn": urn} for urn in (*above, *ours, *others)]}
    args = deploy_args(plan, state, LiveState(), DeployOptions(), parts)
    assert [args[number + 1] for number, arg in enumerate(args) if arg == "--exclude"] == others


def test_when_all_is_given(project: Project) -> None:
    """Where the parts need most services, or images are built, a run of everything is as quick."""
    plan = planned(project)
    assert find_parts(plan, {"service-api"}).doubt(plan) == ""
    assert find_parts(plan, {"service-web", "service-mail"}).doubt(plan) == "the parts that changed need most services"
    reading = project({"compose.yaml": "services: {web: {build: .}, a: {image: a}}", "Dockerfile": "FROM a\n"}).read()
    assert reading.plan is not None
    parts = find_parts(reading.plan, {"service-a"})
    assert parts.doubt(reading.plan) == "all objects come after the images that are built"


def test_the_counts_of_a_whole_run() -> None:
    """All resources that Pulumi was not given are the same."""
    assert complete_counts({"same": 3, "update": 2}, 50) == {"update": 2, "same": 48}
