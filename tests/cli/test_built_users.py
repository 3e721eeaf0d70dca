"""The numbers of users in images that a definition builds, as they were built last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from composeplat.cli import built_users
from composeplat.cli.built_users import BuiltUsers
from composeplat.cli.operations import Planned
from composeplat.plan.desired import Plan


def test_the_state_of_the_last_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read under the lock of the stack, whose begin replaces a broken one by its last copy."""
    stack: Any = SimpleNamespace(interrupts=nullcontext(), state=None)

    @contextmanager
    def lock(what: str) -> Iterator[None]:
        assert what == "preview"
        stack.state = {"resources": []}
        yield

    stack.workspace = SimpleNamespace(prepare=lambda **_: None, lock=lock)
    monkeypatch.setattr(built_users, "stack_for", lambda _: stack)
    planned = cast("Planned", SimpleNamespace(plan=Plan(environment="shop", namespace="team")))

    assert BuiltUsers(planned, {"web": ("app",)}).last_references() == {}
    assert stack.state is not None
