"""A cluster that does not answer is reported, and given up after a time."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import ApiError
from composeplat.cluster.health import HealthMonitor
from tests.cluster.objects import NAMESPACE, Answer, Server, refusal, until

ILL = refusal(503, "etcd is ill")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask often, and let silence be long soon."""
    for name, seconds in (("_PING_INTERVAL_S", 0.01), ("_WARN_AFTER_S", 0.2), ("_MAX_SILENCE_S", 1.0)):
        monkeypatch.setattr(f"composeplat.cluster.health.{name}", seconds)
    monkeypatch.setattr("composeplat.cluster.api._FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("composeplat.cluster.http_headers._READ_TIMEOUT_S", 0.0)


@pytest.fixture
def mute() -> Iterator[Access]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Access(host="127.0.0.1", port=listening.getsockname()[1], plain=True)


def check_until(health: HealthMonitor, what: Callable[[], bool]) -> None:
    def is_so() -> bool:
        health.check()
        return what()

    until(is_so)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", [Answer(), refusal(404, "none"), refusal(403, "no"), refusal(401, "who")])
def test_health(server: Server, answer: Answer) -> None:
    """A cluster that answers is not silent, whatever it says; nothing is reported about it."""
    output: list[str] = []
    server.otherwise = answer

    with HealthMonitor(server.access, NAMESPACE, output.append) as health:
        check_until(health, lambda: len(server.asked) > 5)
        health.require_answers()

    assert output == []
    assert set(server.paths) == {f"/api/v1/namespaces/{NAMESPACE}"}


@pytest.mark.usefixtures("quick")
def test_health_of_a_mute_cluster(mute: Access) -> None:
    """A cluster that does not answer is reported once, and given up after a time, with a fix."""
    output: list[str] = []

    with HealthMonitor(mute, NAMESPACE, output.append) as health, pytest.raises(ApiError) as caught:
        check_until(health, lambda: False)
    with pytest.raises(ApiError, match=r"does not answer$"):
        health.require_answers()

    assert output == [f"the API server at {mute.address} does not answer; waiting for it, 1 s at most"]
    assert str(caught.value) == f"the API server at {mute.address} has not answered for 1 s"
    assert caught.value.hint == "repair the cluster, then run this again: finished work is recorded"
    assert caught.value.exit_code == 4


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", [ILL, Answer(silent=True)], ids=["server-error", "broken"])
def test_health_that_comes_back(server: Server, answer: Answer) -> None:
    """A cluster that answers again is reported as well, and silence is counted again."""
    output: list[str] = []
    server.otherwise = answer

    with HealthMonitor(server.access, NAMESPACE, output.append) as health:
        check_until(health, lambda: len(output) == 1)
        server.otherwise = Answer()
        check_until(health, lambda: len(output) == 2)
        silence = health.silence

    assert output[1] == "the API server answers again"
    assert silence < 0.2


def test_health_in_doubt(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where someone else got no answer, the cluster counts as silent until it has given one more."""
    monkeypatch.setattr("composeplat.cluster.health._PING_INTERVAL_S", 0.3)

    with HealthMonitor(server.access, NAMESPACE, print) as health:
        before = health.silence
        health.mark_silent()
        time.sleep(0.01)
        doubted, asked = health.silence, len(server.asked)
        until(lambda: not health.silence)

    assert before == 0.0
    assert (doubted > 0, asked) == (True, 0)
    assert len(server.asked) == 1
