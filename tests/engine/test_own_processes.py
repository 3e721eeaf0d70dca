"""Who holds a lock that Pulumi met, read out of what it says."""

from __future__ import annotations

import pytest

from composeplat.engine.own_processes import LockHolder, is_locked_out, lock_holders
from composeplat.engine.pulumi_errors import explain

OUTPUT = "error: the stack is currently locked by 1 lock(s). Either wait or remove the lock file manually.\n"
ANN = "  file:///x/locks/1.json: created by ann@desk (pid 7) at 2025-06-01T12:00:00Z\n"
EVE = "  file:///x/locks/2.json: created by eve@lap.example.com (pid 81) at 2025-06-01T12:00:05+00:00\n"


def test_whether_it_was_a_lock() -> None:
    """Only what Pulumi says of its lock is one."""
    assert is_locked_out(OUTPUT + ANN)
    assert not is_locked_out("error: no such stack")
    freeze = 'admission webhook "freeze.example.com" denied the request: namespace team is currently locked'
    assert not is_locked_out(freeze)
    assert "is currently locked" in str(explain(f"error: Preview failed: {freeze}"))


def test_every_holder() -> None:
    """Each is read with its machine, its process and since when."""
    assert lock_holders(OUTPUT + ANN + EVE) == (
        LockHolder(user="ann", host="desk", pid=7, created_at=1748779200.0),
        LockHolder(user="eve", host="lap.example.com", pid=81, created_at=1748779205.0),
    )


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("  file:///x/locks/2.json: created by someone\n", id="another form"),
        pytest.param(EVE.replace("2025-06-01", "the-first"), id="no moment"),
    ],
)
def test_an_unreadable_holder(line: str) -> None:
    """It is then nobody's: a lock of which part is unknown is not broken."""
    assert lock_holders(OUTPUT + ANN + line) == ()
