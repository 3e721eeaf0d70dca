"""How long is still waited."""

from __future__ import annotations

import time

from composeplat.system.deadline import Patience


def test_it_ends() -> None:
    """Patience ends after its time, and not before."""
    patience = Patience(0.05)

    assert not patience.is_over
    time.sleep(0.06)
    assert patience.is_over


def test_it_begins_anew() -> None:
    """Renewed, it lasts its whole time again."""
    patience = Patience(0.05)
    time.sleep(0.06)
    patience.renew()

    assert not patience.is_over


def test_a_shorter_time_within_it() -> None:
    """A shorter wait ends where it would, or with patience."""
    now = time.monotonic()

    assert abs(Patience(100).at_most(5) - now - 5) < 1
    assert abs(Patience(5).at_most(100) - now - 5) < 1


def test_it_begins_after_a_delay() -> None:
    """A service whose health checks begin late has the whole time after that; 300 s could never pass."""
    patience = Patience(0.05, {"db": 60.0})
    time.sleep(0.06)

    assert patience.is_over
    assert [patience.is_over_for(name) for name in ("web", "db")] == [True, False]
    assert [patience.seconds_for(name) for name in ("web", "db")] == [0.05, 60.05]
