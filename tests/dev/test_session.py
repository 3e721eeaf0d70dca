"""Signals while a service is developed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import cast

import pytest

from composeplat.dev.link import Link
from composeplat.dev.session import _interrupts_left_to


class Ends:
    """The one method of a link that a signal calls here."""

    def __init__(self) -> None:
        self.count = 0

    def end(self) -> None:
        self.count += 1


@pytest.fixture(params=[signal.SIG_IGN, signal.SIG_DFL])
def handler(request: pytest.FixtureRequest) -> Iterator[signal.Handlers]:
    before = signal.signal(signal.SIGHUP, request.param)
    yield request.param
    signal.signal(signal.SIGHUP, before)


def test_a_closed_terminal(handler: signal.Handlers) -> None:
    """It ends the session, unless nohup ignores the signal; the handler is the same afterwards."""
    link = Ends()
    with _interrupts_left_to(cast("Link", link)):
        signal.raise_signal(signal.SIGHUP)

    assert link.count == (handler is signal.SIG_DFL)
    assert signal.getsignal(signal.SIGHUP) is handler
