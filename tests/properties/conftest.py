"""How many examples are tried: a few hundred, or with ENDURANCE=1 in the environment some thousands of new ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.conftest import ENDURANCE

settings.register_profile(
    "quick",
    derandomize=True,
    max_examples=150,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("quick"), derandomize=False, max_examples=5000)
settings.load_profile("long" if ENDURANCE else "quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the endurance run take these as well."""
    for item in items:
        if ENDURANCE and item.path.parent.name == "properties":
            item.add_marker(pytest.mark.endurance)
