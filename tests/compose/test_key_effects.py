"""What it means for a service that a key has no effect."""

from __future__ import annotations

import pytest

from composeplat.codes import BY_KEY, CODES, Effect, Severity
from composeplat.compose.keys import ROWS, effect_of
from composeplat.diagnostics import PathKey
from tests.conftest import Project


@pytest.mark.parametrize(
    ("path", "effect"),
    [
        (("services", "web", "privileged"), Effect.LOST),
        (("services", "web", "container_name"), Effect.CHANGED),
        (("services", "web", "develop"), Effect.NONE),
        (("services", "web", "gpus"), Effect.LOST),
        (("services", "web", "deploy", "update_config"), Effect.CHANGED),
        (("services", "web", "volumes", 0, "consistency"), Effect.CHANGED),
        (("networks",), Effect.CHANGED),
        (("networks", "front", "driver"), Effect.CHANGED),
        (("secrets", "password", "file"), Effect.LOST),
        (("volumes", "data", "driver_opts", "type"), Effect.LOST),
    ],
)
def test_effect(path: PathKey, effect: Effect) -> None:
    """The row of the key, or of the block that it is in, has the effect."""
    assert effect_of(path) is effect


def test_rows() -> None:
    """A key that is used has no such effect, and one with a warning always has."""
    assert [row.key for row in ROWS if row.handling.is_used and row.effect is not Effect.NONE] == []
    used = {handling.name for handling in {row.handling for row in ROWS if row.effect is Effect.NONE}}
    assert used == {"SUPPORTED", "EXTENSION", "IGNORED", "UNREAD"}


def test_codes() -> None:
    """An error has no effect of its own: with one, nothing is deployed."""
    assert {name for name, code in CODES.items() if code.severity is Severity.ERROR and code.effect.rank} == set()
    assert set(CODES) > BY_KEY
    assert [effect.rank for effect in Effect] == [0, 1, 2, 3]


def test_reasons(project: Project) -> None:
    """In full mode, a key that has no meaning in a cluster gets a warning with the reason; by default some get none."""
    folder = project("services: {web: {image: nginx, uts: host, logging: {driver: syslog}}}")

    full, default = (folder.read(full=is_full).loaded.report.at_least(Severity.WARNING) for is_full in (True, False))

    logging = ("logging", "the cluster collects the output of containers, and platform logs shows it")
    assert [(found.path[-1], found.hint) for found in full] == [("uts", "a pod has a host name of its own"), logging]
    assert [(found.path[-1], found.hint) for found in default] == [logging]
