"""Failed tries of Jobs are reported while they try on: each reason once, with its lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from composeplat.cluster.api import Api
from composeplat.cluster.cause import Cause
from composeplat.codes.causes import CauseCode
from composeplat.engine.job_retries import Retries
from composeplat.engine.outcomes import Failure
from composeplat.engine.stack import Stack
from composeplat.engine.target import Target
from tests.cluster.objects import NAMESPACE, Answer, Server

LOG = f"/api/v1/namespaces/{NAMESPACE}/pods"
TRY = Cause(
    code=CauseCode.JOB_RETRIED, message="failed in try 1", logs=True, pod="one", container="migrate", exit_status=3
)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def reported_failures(server: Server, *tries: tuple[Cause, str]) -> list[Failure | str]:
    """What is reported of tries, each of which has written something."""
    reported: list[Failure | str] = []
    stack = Stack(
        environment_name="shop",
        namespace=NAMESPACE,
        target=Target(access=server.access, kubeconfig=""),
        variables={},
        note=reported.append,
        warn=reported.append,
    )
    with Api(server.access) as api:
        retries = Retries(stack=stack, api=api)
        for cause, text in tries:
            server.answers[f"{LOG}/{cause.pod}/log"] = Answer(text.encode())
            retries.report({"migrate": cause})
            retries.report({"migrate": cause})
    return reported


def failure(cause: Cause, *lines: str) -> Failure:
    return Failure(service="migrate", cause=cause, lines=lines, source=cause.pod)


SECOND = replace(TRY, message="failed in try 2", pod="two")


def test_the_first_try(server: Server) -> None:
    """It is reported with its lines, once."""
    assert reported_failures(server, (TRY, "reading\nno such table\n")) == [failure(TRY, "reading", "no such table")]


def test_the_same_way_again(server: Server) -> None:
    """The same exit status and last line are the same failure, whatever was written before: one line says so."""
    reported = reported_failures(server, (TRY, "at 9:00\nno such table\n"), (SECOND, "at 9:01\nno such table\n"))

    assert reported == [failure(TRY, "at 9:00", "no such table"), "migrate: failed in try 2, as before"]


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        pytest.param(SECOND, "no such column\n", id="line"),
        pytest.param(replace(SECOND, exit_status=4), "no such table\n", id="exit-status"),
    ],
)
def test_another_way(server: Server, cause: Cause, text: str) -> None:
    """What fails differently from before is reported with its lines too."""
    reported = reported_failures(server, (TRY, "no such table\n"), (cause, text))

    assert reported == [failure(TRY, "no such table"), failure(cause, text.strip())]
