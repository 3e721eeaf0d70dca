"""How long a start waits: the limit is renewed by what was not reached before."""

from __future__ import annotations

import time

from composeplat.local.start_limit import StartLimit, find_reached


def part(*, running: bool = True, ready: bool = False, starts: int = 1) -> dict[str, object]:
    return {"running": running, "ready": ready, "starts": starts}


def test_what_is_reached() -> None:
    """The wait, and parts that run or are ready; how often a part was started is no progress."""
    parts = {"etcd": part(ready=True), "kubelet": part(), "coredns": part(running=False, starts=5)}

    assert find_reached("its node", parts) == {
        "wait: its node", "running: etcd", "ready: etcd", "running: kubelet",
    }  # fmt: skip
    assert find_reached("its registry", None) == {"wait: its registry"}


def test_progress_renews_the_limit() -> None:
    """A start that reaches something in time continues, however long it takes as a whole."""
    limit = StartLimit(0.5)
    started = time.monotonic()
    for wait in ("its registry", "its API server", "its node"):
        time.sleep(0.3)
        limit.note(find_reached(wait, {}))

    assert time.monotonic() - started > limit.seconds
    assert not limit.deadline.has_passed
    assert limit.deadline.remaining_s > 0.4


def test_a_part_that_ends_again_and_again_renews_nothing() -> None:
    """What was reached before, and was lost meanwhile, does not count again."""
    limit = StartLimit(0.3)
    limit.note(find_reached("its node", {"kubelet": part()}))
    for running in (False, True, False, True):
        time.sleep(0.1)
        limit.note(find_reached("its node", {"kubelet": part(running=running)}))

    assert limit.deadline.has_passed
