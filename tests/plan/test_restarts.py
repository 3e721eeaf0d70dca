"""The annotation by which a service restarts with its dependencies: what changes it, and what does not."""

from __future__ import annotations

import json

import pytest

from composeplat.plan.restarts import RESTARTS_ANNOTATION, TemplatesHash
from composeplat.render.manifests import render_json
from tests.conftest import Project

TEXT = """\
services:
  top: {image: nginx, depends_on: {web: {condition: service_started, restart: true}}}
  web:
    image: nginx
    depends_on:
      db: {condition: service_started, restart: true}
      cache: {condition: service_started}
  db: {image: "postgres:16", environment: {A: "1"}, deploy: {replicas: 1}}
  cache: {image: redis}
"""


def hashes(project: Project, text: str = TEXT) -> dict[str, str]:
    """The annotation of each service that has one, as it is rendered."""
    plan = project(text).read(full=True).plan
    assert plan is not None
    rendered = json.loads(render_json(plan))["items"]
    return {
        item["metadata"]["name"]: item["spec"]["template"]["metadata"]["annotations"][RESTARTS_ANNOTATION]
        for item in rendered
        if RESTARTS_ANNOTATION in item.get("spec", {}).get("template", {}).get("metadata", {}).get("annotations", {})
    }


def test_dependents_have_the_annotation(project: Project) -> None:
    """A service with `restart` has it, each with another value."""
    found = hashes(project)

    assert sorted(found) == ["top", "web"]
    assert found["top"] != found["web"]
    assert found == hashes(project)


LINKED = """\
services:
  web: {image: nginx, links: ["db:database", cache], depends_on: {cache: {condition: service_started}}}
  db: {image: postgres}
  cache: {image: redis}
"""


def test_linked_services(project: Project) -> None:
    """A service restarts with what it links to, as in Compose, unless `depends_on` names that too."""
    plan = project(LINKED).read(full=True).plan
    assert plan is not None

    assert {edge.dependency: edge.restart for edge in plan.edges} == {"db": True, "cache": False}
    assert plan.with_restarted(("db",)) == {"db", "web"}
    before, after = hashes(project, LINKED), hashes(project, LINKED.replace("postgres", "postgres:17"))
    assert list(before) == list(after) == ["web"]
    assert before != after
    assert before == hashes(project, LINKED.replace("redis", "redis:7"))


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        pytest.param("postgres:16", "postgres:17", ["top", "web"], id="the image of a dependency, and on"),
        pytest.param('{A: "1"}', '{A: "2"}', ["top", "web"], id="its variables"),
        pytest.param("replicas: 1", "replicas: 2", [], id="its number of pods"),
        pytest.param("image: redis", "image: redis:7", [], id="a dependency without restart"),
        pytest.param("  web:\n    image: nginx", "  web:\n    image: nginx:2", ["top"], id="the service itself"),
    ],
)
def test_what_changes_it(old: str, new: str, changed: list[str], project: Project) -> None:
    """Each change of a dependency's pods changes it, those of further dependencies too, and nothing else does."""
    assert old in TEXT
    before, after = hashes(project), hashes(project, TEXT.replace(old, new))

    assert sorted(name for name in before if before[name] != after[name]) == changed


def test_no_value_of_a_variable_is_in_it(project: Project) -> None:
    """The hash covers the fingerprint of variables, which shows none of them."""
    plan = project(TEXT.replace('"1"', "hunter2")).read(full=True).plan
    assert plan is not None
    web = next(service for service in plan.services if service.name == "web")
    metadata = web.objects[-1].manifest["spec"]["template"]["metadata"]

    assert isinstance(metadata["annotations"][RESTARTS_ANNOTATION], TemplatesHash)
    assert "hunter2" not in repr(metadata)


def test_services_that_restart_together(project: Project) -> None:
    """`platform restart` of a service restarts those that restart with it, and theirs."""
    plan = project(TEXT).read(full=True).plan
    assert plan is not None

    assert plan.with_restarted(("db",)) == {"db", "web", "top"}
    assert plan.with_restarted(("cache",)) == {"cache"}
    assert plan.with_restarted(()) == frozenset()
