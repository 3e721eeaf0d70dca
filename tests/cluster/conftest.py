"""An API server on loopback for each test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.objects import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a read that a busy server refuses fail at once."""
    monkeypatch.setattr("composeplat.cluster.http_headers._READ_TIMEOUT_S", 0.0)
