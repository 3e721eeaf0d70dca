"""Leave out the rounds of the fuzzer where it is not installed: it is for Linux alone."""

from __future__ import annotations

import importlib.util

import pytest

CAN_FUZZ = importlib.util.find_spec("atheris") is not None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.path.parent.name == "fuzz" and not _runs(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _runs(item: pytest.Item) -> bool:
    return CAN_FUZZ or not item.name.endswith("_round")
