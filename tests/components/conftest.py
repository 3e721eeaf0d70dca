"""No test here asks a registry, unless it has one of its own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_IMAGE_PORTS", "false")


@pytest.fixture(autouse=True)
def _fixed_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two registrations are compared."""
    monkeypatch.setattr("composeplat.components.manifests.make_salt", lambda: "salt")
