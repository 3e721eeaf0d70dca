"""A plugin of pytest: runs the tests that the file at ``MUTANTS_CHOSEN`` names, in its order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    by_name = {item.nodeid: item for item in items}
    names = Path(os.environ["MUTANTS_CHOSEN"]).read_text().splitlines()
    items[:] = [by_name[name] for name in names if name in by_name]
