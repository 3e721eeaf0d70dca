"""Leave out what can't or should not run here.

The fuzzer is for Linux alone, and the long round is for ``make endurance``, even where pytest is called plainly.
"""

from __future__ import annotations

import importlib.util
import os

import pytest

CAN_FUZZ = importlib.util.find_spec("atheris") is not None
LONG = os.environ.get("ENDURANCE") == "1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.path.parent.name == "fuzz" and not _runs(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _runs(item: pytest.Item) -> bool:
    return (CAN_FUZZ or not item.name.endswith("_round")) and (LONG or item.get_closest_marker("endurance") is None)
