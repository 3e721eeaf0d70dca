"""What a container wrote last, and whether something listens on a pod's port."""

from __future__ import annotations

from dataclasses import replace
from queue import Queue

import pytest

from composeplat.cluster.api import Api
from composeplat.cluster.probes import find_silent, probe_port, read_last_lines
from composeplat.cluster.snapshot import Object
from tests.cluster.objects import NAMESPACE, Answer, Server, no_server, refusal

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


# logs -----------------------------------------------------------------------------------------------------------------

LOG = f"{PODS}/web-x7k2p/log?container=web&tailLines=20"
BEFORE = f"{LOG}&previous=true"


@pytest.mark.parametrize(
    ("answers", "previous", "lines", "asked"),
    [
        pytest.param({LOG: Answer(b"one\ntwo\n")}, False, ["one", "two"], [LOG], id="present"),
        pytest.param({BEFORE: Answer(b"last\n"), LOG: Answer(b"now\n")}, True, ["last"], [BEFORE], id="before"),
        pytest.param(
            {BEFORE: refusal(400, "previous terminated container not found"), LOG: Answer(b"now\n")},
            True,
            ["now"],
            [BEFORE, LOG],
            id="none-before",
        ),
        pytest.param({BEFORE: Answer(b""), LOG: Answer(b"now\n")}, True, ["now"], [BEFORE, LOG], id="empty-before"),
        pytest.param({LOG: Answer(b"")}, False, [], [LOG], id="empty"),
        pytest.param(
            {BEFORE: refusal(404, "gone"), LOG: refusal(404, "gone")}, True, [], [BEFORE, LOG], id="pod-is-gone"
        ),
    ],
)
def test_last_lines(
    server: Server, answers: dict[str, Answer], *, previous: bool, lines: list[str], asked: list[str]
) -> None:
    """A container's last lines are those of the run before where these are wanted and there are any."""
    server.answers = answers

    with Api(server.access) as api:
        assert lines == read_last_lines(api, NAMESPACE, "web-x7k2p", "web", previous=previous)

    assert asked == server.paths


# ports ----------------------------------------------------------------------------------------------------------------

TRYING = "error trying to reach service: "


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(Answer(b"<html>welcome</html>"), True, id="ok"),
        pytest.param(Answer(b"", 302, location="/login"), True, id="redirects"),
        pytest.param(Answer(b"no such page", 404), True, id="not-found"),
        pytest.param(Answer(b"log in", 401), True, id="wants-a-password"),
        pytest.param(Answer(b"keep out", 403), True, id="forbidden-by-the-service"),
        pytest.param(Answer(b"oh no", 500), True, id="server-error"),
        pytest.param(
            refusal(503, f'{TRYING}net/http: HTTP/1.x transport connection broken: malformed HTTP response "-ERR"'),
            True,
            id="no-http",
        ),
        pytest.param(refusal(503, f"{TRYING}EOF"), True, id="hangs-up"),
        pytest.param(
            refusal(503, f"{TRYING}dial tcp 10.244.0.7:8080: connect: connection refused"), False, id="refused"
        ),
        pytest.param(
            refusal(503, f"{TRYING}dial tcp 10.244.0.7:8080: connect: no route to host"), False, id="no-route"
        ),
        pytest.param(refusal(503, f"{TRYING}dial tcp 10.244.0.7:8080: i/o timeout"), None, id="timeout"),
        pytest.param(Answer(silent=True), False, id="no-answer"),
        pytest.param(
            refusal(403, 'pods "web-x7k2p:8080" is forbidden: User "me" cannot get resource "pods/proxy"'),
            None,
            id="may-not-be-asked",
        ),
    ],
)
def test_port_answers(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: Answer, *, expected: bool | None
) -> None:
    """Whatever answers on a port listens; what nobody may ask is not known."""
    server.otherwise = answer

    monkeypatch.setattr("composeplat.cluster.api._FIRST_PAUSE_S", 0.0)

    with Api(server.access) as api:
        assert expected is probe_port(api, NAMESPACE, "web-x7k2p", 8080)

    assert set(server.paths) == {f"{PODS}/web-x7k2p:8080/proxy/"}


REFUSED = refusal(503, f"{TRYING}dial tcp 10.244.0.7: connect: connection refused")
UNKNOWN = refusal(503, f"{TRYING}dial tcp 10.244.0.7: i/o timeout")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param({}, (), id="no-ports"),
        pytest.param({80: REFUSED}, (80,), id="one-is-silent"),
        pytest.param({80: REFUSED, 81: REFUSED}, (80, 81), id="all-are-silent"),
        pytest.param({80: REFUSED, 81: Answer(b"")}, (), id="the-last-answers"),
        pytest.param({80: Answer(b""), 81: REFUSED}, (), id="the-first-answers"),
        pytest.param({80: REFUSED, 81: UNKNOWN}, (), id="not-known"),
    ],
)
def test_silent_ports(
    server: Server, monkeypatch: pytest.MonkeyPatch, answers: dict[int, Answer], expected: tuple[int, ...]
) -> None:
    """A pod whose ports are asked is silent if none of them answers."""
    monkeypatch.setattr("composeplat.cluster.api._FIRST_PAUSE_S", 0.0)
    server.answers = {f"{PODS}/web-x7k2p:{port}/proxy/": answer for port, answer in answers.items()}

    with Api(server.access) as api:
        assert find_silent(api, NAMESPACE, "web-x7k2p", tuple(answers)) == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param(Answer(b"{}"), None, id="answers"),
        pytest.param(refusal(403, "not for you"), None, id="refuses"),
        pytest.param(Answer(silent=True), False, id="is-out-of-reach"),
    ],
)
def test_a_port_without_an_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, version: Answer, *, expected: bool | None
) -> None:
    """A program that takes long is not known from packets that a firewall drops, if the API server itself answers."""
    monkeypatch.setattr("composeplat.cluster.api._FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("composeplat.cluster.probes._ANSWER_TIMEOUT_S", 0.2)
    silence: Queue[Object | None] = Queue()
    server.answers = {f"{PODS}/web-x7k2p:8080/proxy/": Answer(before=silence), "/version": version}

    with Api(server.access) as api:
        assert probe_port(api, NAMESPACE, "web-x7k2p", 8080) is expected
    silence.put(None)

    assert server.paths[-1] == "/version"


def test_a_service_that_asks_to_come_again(server: Server) -> None:
    """Its own pause is not that of a busy API server: it listens, which is all that is asked."""
    server.otherwise = Answer(b"down for maintenance", 503, retry_after="600")

    with Api(server.access) as api:
        assert probe_port(api, NAMESPACE, "web-x7k2p", 8080) is True

    assert len(server.asked) == 1


def test_an_answer_without_an_end(server: Server) -> None:
    """A page that is sent for ever, as events are, is not read to its end."""
    events: Queue[Object | None] = Queue()
    server.answers = {f"{PODS}/web-x7k2p:8080/proxy/": Answer(events=events)}

    with Api(server.access) as api:
        assert probe_port(api, NAMESPACE, "web-x7k2p", 8080) is True
    events.put(None)


def test_port_of_a_cluster_out_of_reach() -> None:
    """Where the cluster does not answer, no port does."""
    with no_server() as access, Api(access) as api:
        assert probe_port(api, NAMESPACE, "web-x7k2p", 8080) is False


def test_port_behind_a_prefix(server: Server) -> None:
    """A cluster behind a path is asked behind it."""
    with Api(replace(server.access, prefix="/k8s")) as api:
        assert probe_port(api, NAMESPACE, "web-x7k2p", 8080) is True

    assert server.paths == [f"/k8s{PODS}/web-x7k2p:8080/proxy/"]
