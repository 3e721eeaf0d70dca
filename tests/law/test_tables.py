"""The specification's tables, as the project holds them, against the project: each row is true of it.

What each key does is shown by the files of ``tests/keys``.
"""

from __future__ import annotations

import pytest

from composeplat.compose.keys import ROWS, Handling, Origin
from composeplat.plan.never_public import NEVER_PUBLIC
from tests.conftest import Project
from tests.law import tables

HANDLING = {
    Handling.SUPPORTED: {"supported", tables.USED},
    Handling.EXTENSION: {"extension", tables.USED},
    Handling.WARNED: {"warned"},
    Handling.DEEP: {"warned"},
    Handling.IGNORED: {"ignored"},
}
SPECIFIED = [row for row in ROWS if row.origin is Origin.SPECIFICATION]
KINDS = {
    "Deployment": "{image: a",
    "StatefulSet": "{image: a, volumes: [/data]",
    "Job": "{image: a, restart: never",
}


def test_every_key_of_the_specification_has_a_row() -> None:
    """Each key that the specification names has a row, with its handling and from there."""
    rows = {(row.section, row.key): HANDLING[row.handling] for row in SPECIFIED}
    expected = {key: output for key, output in tables.KEYS.items() if key not in tables.CONTRADICTIONS}

    assert sorted(expected) == sorted(key for key in rows if key not in tables.CONTRADICTIONS)
    assert not [(key, output, rows[key]) for key, output in expected.items() if not output <= rows[key]]


@pytest.mark.parametrize("key", tables.CONTRADICTIONS, ids=".".join)
def test_a_contradiction_remains(key: tables.Key) -> None:
    """What is listed as a contradiction is one, and the key is used."""
    row = next(row for row in ROWS if (row.section, row.key) == key)

    assert not any(tables.KEYS[key] <= output for output in HANDLING.values())
    assert row.handling.is_used


def test_blocks_that_are_warned_with_each_field() -> None:
    """The blocks of which every field is warned are the deep ones."""
    assert {(row.section, row.key) for row in ROWS if row.handling is Handling.DEEP} == tables.DEEP


def test_no_key_has_two_rows() -> None:
    """A key stands once in its section."""
    names = [(row.section, row.key) for row in ROWS]

    assert sorted(set(names)) == sorted(names)


def test_ports_that_are_never_public() -> None:
    """The list is the specification's, with the two ports that the rulings add."""
    assert len(tables.NEVER_PUBLIC) == 34
    assert tables.NEVER_PUBLIC | {7474, 8098} == NEVER_PUBLIC


@pytest.mark.parametrize("port", sorted(tables.NEVER_PUBLIC))
def test_a_port_that_is_never_public(project: Project, port: int) -> None:
    """A published port of the list leads to no address."""
    reading = project(f"services: {{web: {{image: a, ports: ['{port}:{port}']}}}}").read()

    assert reading.plan is not None
    assert reading.plan.endpoints == ()
    assert reading.codes == ["sensitive-port"]


@pytest.mark.parametrize("policy", sorted({*tables.ALWAYS, *tables.NEVER, tables.ON_FAILURE}))
def test_a_restart_policy(project: Project, policy: str) -> None:
    """Only the policies that keep a service running make it no Job; a Job tries again after a failure, or never."""
    reading = project(f"services: {{web: {{image: a, restart: {policy}}}}}").read()

    if policy in tables.ALWAYS:
        assert reading.names == ["Service/web", "Deployment/web"]
    else:
        assert reading.pod("Job", "web")["restartPolicy"] == "Never"
        assert (reading.object("Job", "web")["spec"]["backoffLimit"] == 0) == (policy in tables.NEVER)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", tables.UPDATE_KINDS)
def test_an_update_policy(project: Project, policy: str, kind: str) -> None:
    """An update policy is taken by the workloads that the table names, and refused on others."""
    reading = project(f"services: {{web: {KINDS[kind]}, labels: {{{tables.UPDATE_LABEL}: {policy}}}}}}}").read()

    assert ("unsupported-update-policy" in reading.codes) == (kind not in tables.UPDATE_KINDS[policy])


@pytest.mark.parametrize("condition", tables.CONDITIONS)
def test_a_condition(project: Project, condition: str) -> None:
    """Each condition becomes an edge of the plan."""
    reading = project(f"""
services:
  web: {{image: a, depends_on: {{first: {{condition: {condition}}}}}}}
  first: {{image: b, ports: [80], restart: {"never" if condition.endswith("successfully") else "always"}}}
""").read()

    assert reading.plan is not None, reading.messages
    assert [edge.condition for edge in reading.plan.edges] == [condition]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("restart", "sometimes"),
        ("depends_on", "{web: {condition: service_done}}"),
        ("deploy", "{endpoint_mode: round}"),
        ("healthcheck", "{test: [SHELL, ls]}"),
        ("labels", f"{{{tables.UPDATE_LABEL}: at-once}}"),
    ],
)
def test_a_word_of_no_table_is_refused(project: Project, key: str, value: str) -> None:
    """What a table does not list is no value of its key."""
    assert project(f"services: {{web: {{image: a, {key}: {value}}}}}").read().loaded.report.errors


@pytest.mark.parametrize("mode", tables.ENDPOINT_MODES)
def test_an_endpoint_mode(project: Project, mode: str) -> None:
    """A service is headless with dnsrr alone."""
    reading = project(f"services: {{web: {{image: a, ports: [80], deploy: {{endpoint_mode: {mode}}}}}}}").read()

    assert (reading.object("Service", "web")["spec"].get("clusterIP") == "None") == (mode == "dnsrr")


@pytest.mark.parametrize("form", tables.TEST_FORMS)
def test_a_form_of_a_health_check(project: Project, form: str) -> None:
    """A list may begin with each of the words, and NONE is no check."""
    test = "[NONE]" if form == "NONE" else f"[{form}, ls]"
    reading = project(f"services: {{web: {{image: a, healthcheck: {{test: {test}}}}}}}").read()

    assert reading.messages == []
    assert ("readinessProbe" in reading.container("Deployment", "web")) == (form != "NONE")


def test_the_size_of_a_volume(project: Project) -> None:
    """A volume that says no size has the default."""
    reading = project("services: {web: {image: a, volumes: [data:/x]}}\nvolumes: {data: }").read()
    claim = reading.object("PersistentVolumeClaim", "data")

    assert claim["spec"]["resources"]["requests"]["storage"] == tables.VOLUME_SIZE


def test_where_a_variable_is_taken_from(project: Project) -> None:
    """The shell comes before .env, and both before platform variables."""
    definition = "services: {web: {image: a, environment: {A: $A, B: $B, C: $C}}}"
    folder = project({"compose.yaml": definition, ".env": "A=file\nB=file\n"}, A="shell")
    reading = folder.read(platform=dict.fromkeys("ABC", "platform"))

    service = reading.loaded.project.services["web"]
    assert dict(service.environment) == {"A": "shell", "B": "file", "C": "platform"}
