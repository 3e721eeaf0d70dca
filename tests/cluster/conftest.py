"""An API server on loopback for each test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.objects import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server
