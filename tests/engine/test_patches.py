"""The place of the patch that a refusal of the API server is about."""

from __future__ import annotations

import pytest

from composeplat.compose.origins import Origins
from composeplat.diagnostics import PathKey
from composeplat.engine.patches import place_of
from tests.conftest import Project

PATCH: PathKey = ("services", "web", "x-kubernetes", "patch", "Deployment")
DEFINITION = """
x-platform: {full: true}
services:
  web:
    image: nginx
    x-kubernetes:
      patch:
        Deployment:
          spec:
            replicas: 2
            template: {spec: {containers: [{name: a}, {name: web, foo: 1, ports: [{containerPort: 80}]}]}}
"""


@pytest.fixture
def origins(project: Project) -> Origins:
    return project({"compose.yaml": DEFINITION}).read().loaded.origins


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ('unknown field "spec.template.spec.containers[0].foo"', "spec template spec containers 1 foo"),
        ('unknown field "spec.template.spec.other"', "spec template spec"),
        (
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            "spec replicas",
        ),
        ("spec.replicas: Invalid value: -1: must be greater than or equal to 0", "spec replicas"),
        (
            '[spec.template.spec.containers[1].ports[0].name: Invalid value: "_"',
            "spec template spec containers 1 ports 0",
        ),
        ("something else", ""),
    ],
)
def test_places(reason: str, expected: str, origins: Origins) -> None:
    """It is the part that the reason names, in any entry of a list, as far as the patch has it."""
    steps = [int(step) if step.isdigit() else step for step in expected.split()]

    assert place_of(reason, PATCH, origins) == (*PATCH, *steps)
