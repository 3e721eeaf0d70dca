"""Waiting ends when it must, and not before."""

from __future__ import annotations

import asyncio
import time

from composeplat.system.deadline import Deadline, poll, poll_async


def test_deadline() -> None:
    """A deadline passes after its seconds, and not before."""
    short, long = Deadline(0.05), Deadline(60)
    assert 0 < short.remaining_s <= 0.05

    time.sleep(0.06)

    assert (short.has_passed, short.remaining_s) == (True, 0.0)
    assert not long.has_passed
    assert 50 < long.remaining_s <= 60


def test_restart() -> None:
    """A deadline that is restarted has all its seconds again."""
    deadline = Deadline(0.05)
    time.sleep(0.06)

    deadline.restart()

    assert not deadline.has_passed


def test_at_most() -> None:
    """A shorter wait ends where it would, or with the deadline it is part of."""
    assert abs(Deadline(100).at_most(5).remaining_s - 5) < 1
    assert abs(Deadline(5).at_most(100).remaining_s - 5) < 1


def test_extra_seconds() -> None:
    """A service whose health checks begin late has the whole time after that; 300 s could never pass."""
    deadline = Deadline(0.05, {"db": 60.0})
    time.sleep(0.06)

    assert deadline.has_passed
    assert [deadline.has_passed_for(name) for name in ("web", "db")] == [True, False]
    assert [deadline.seconds_for(name) for name in ("web", "db")] == [0.05, 60.05]


def test_poll() -> None:
    """What is polled is asked until the answer is true, and that answer is given at once."""
    answers = iter(["", "", "here", "too late"])

    assert poll(lambda: next(answers), Deadline(60), interval_s=0.001) == "here"


def test_poll_until_the_deadline_passes() -> None:
    """When the deadline passes the last answer shows so, however long the interval is."""
    began = time.monotonic()

    assert poll(lambda: False, Deadline(0.1), interval_s=60.0) is False

    assert 0.1 <= time.monotonic() - began < 5


def test_poll_asks_once_more() -> None:
    """What comes about in the last pause counts: a machine that slept is no failure."""
    deadline = Deadline(0.05)

    assert poll(lambda: deadline.has_passed, deadline, interval_s=60.0)


def test_poll_asks_at_least_once() -> None:
    """A deadline that has passed before still lets one look."""
    assert poll(lambda: "there already", Deadline(-1), interval_s=60.0) == "there already"


def test_poll_with_extra_seconds() -> None:
    """Who has extra seconds is asked until those have passed too."""
    began = time.monotonic()

    assert poll(lambda: False, Deadline(0.05, {"db": 0.1}), interval_s=60.0, name="db") is False

    assert 0.15 <= time.monotonic() - began < 5


def test_poll_with_a_deadline_that_is_restarted() -> None:
    """A deadline that starts again meanwhile holds for a wait that has begun."""
    deadline, answers = Deadline(0.1), iter(range(4))

    def check() -> bool:
        deadline.restart()
        return next(answers) == 3

    assert poll(check, deadline, interval_s=0.06)


def test_poll_async() -> None:
    """On an event loop others continue during the pauses; the answers are those of a thread's poll."""
    seen: list[str] = []

    async def check() -> bool:
        seen.append("check")
        return seen.count("other") > 1

    async def other() -> None:
        for _ in range(2):
            seen.append("other")
            await asyncio.sleep(0.01)

    async def both() -> bool:
        answer, _ = await asyncio.gather(poll_async(check, Deadline(60), interval_s=0.01), other())
        return answer and not await poll_async(never, Deadline(0.05, {"db": 0.05}), interval_s=60.0, name="db")

    async def never() -> bool:
        return False

    began = time.monotonic()
    assert asyncio.run(both())
    assert 0.1 <= time.monotonic() - began < 5
    assert seen[:3] == ["check", "other", "check"]
