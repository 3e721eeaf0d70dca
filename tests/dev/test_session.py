"""Signals while a service is developed, and its lease while its container starts."""

from __future__ import annotations

import copy
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from composeplat.cluster.api import Api
from composeplat.dev.dev_workload import DevWorkloadInputs
from composeplat.dev.helper import HelperBuild, HelperImage
from composeplat.dev.lease import LEASE_ANNOTATION, SessionLease, lease_text
from composeplat.dev.link import Link, Session
from composeplat.dev.replacement import Replacement
from composeplat.dev.session import Development, UpOptions, _interrupts_left_to
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.target import Target
from composeplat.names import DEV_WORKLOAD_LABEL, ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL
from composeplat.plan.identity import Identity
from composeplat.system.machine import architecture
from tests.cluster.objects import Answer, Server, deployment, given, refusal, until


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


# the lease ------------------------------------------------------------------------------------------------------------

DEPLOYMENTS = "/apis/apps/v1/namespaces/team/deployments"
WEB = deployment("web")
DEV_WORKLOAD = deployment("web-platform-up")
for found in (WEB, DEV_WORKLOAD):
    found["metadata"] |= {"labels": {MANAGED_BY_LABEL: MANAGED_BY, ENVIRONMENT_LABEL: "shop"}, "resourceVersion": "7"}
    found["spec"]["template"] = {"spec": {"containers": [{"name": "web"}]}}
DEV_WORKLOAD["metadata"]["labels"][DEV_WORKLOAD_LABEL] = "web"
#: A lease that has ended is there all the same.
DEV_WORKLOAD["metadata"]["annotations"] = {LEASE_ANNOTATION: "{}"}
RELEASED = {**DEV_WORKLOAD, "metadata": {**DEV_WORKLOAD["metadata"], "annotations": {}}}


@pytest.fixture
def server() -> Iterator[Server]:
    answers = {
        f"{DEPLOYMENTS}/{found['metadata']['name']}": Answer(json.dumps(found).encode())
        for found in (WEB, DEV_WORKLOAD)
    }
    with Server(answers={**answers, DEPLOYMENTS: given(WEB, DEV_WORKLOAD)}, otherwise=given()) as server:
        yield server


@pytest.fixture
def development(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Development:
    """The development of a service whose workload is replaced at once, and whose container is never ready."""
    monkeypatch.setattr("composeplat.toolchain.setup.Toolchain.need", lambda *_: SimpleNamespace(path=Path("/nowhere")))
    monkeypatch.setattr(Target, "identity", lambda _: "cluster")
    monkeypatch.setattr(Development, "_inputs", lambda *_: None)
    monkeypatch.setattr(Replacement, "replace", lambda self, _, lease: lease.may_take(self.dev_workload()))
    monkeypatch.setattr(Replacement, "is_outdated", lambda *_: False)
    return Development(
        plan=Mock(
            namespace="team", environment="shop", services=(), identity=Identity(environment="shop", namespace="team")
        ),
        service=Mock(workload_kind="Deployment", workload_name="web", cluster_name="web"),
        paths=(), target=Target(access=server.access, kubeconfig="", namespace="team"),
        environment={"COMPOSEPLAT_DATA": str(tmp_path)}, note=lambda _: None,
    )  # fmt: skip


def lease_changes(server: Server) -> list[Any]:
    bodies = [json.loads(asked.body) for asked in server.asked if asked.method == "PATCH"]
    return [body["metadata"]["annotations"][LEASE_ANNOTATION] for body in bodies if "annotations" in body["metadata"]]


def test_the_lease_while_a_container_starts(
    development: Development, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is renewed while an image is pulled for minutes: another `up` was not refused then, and ended this one."""
    for name in ("_RENEWAL_INTERVAL_S", "_CHECK_INTERVAL_S"):
        monkeypatch.setattr(f"composeplat.dev.session.{name}", 0.01)

    def wait(*_: object) -> None:
        until(lambda: len(lease_changes(server)) > 1)

    monkeypatch.setattr(Replacement, "wait_until_ready", wait)
    monkeypatch.setattr(Link, "run", lambda *_: 7)

    assert development.up(UpOptions(session=Session()), lambda _: None) == 7
    first, second, *_ = lease_changes(server)
    assert json.loads(first)["id"] == json.loads(second)["id"]


def test_a_session_that_began_while_the_helper_was_built(
    development: Development, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the lease, which both have found free: the build takes minutes at the first time."""
    holder = {"id": "other", "host": "elsewhere", "user": "ann", "pid": 7}

    def build(*_: object) -> None:
        held = copy.deepcopy(DEV_WORKLOAD)
        held["metadata"].setdefault("annotations", {})[LEASE_ANNOTATION] = lease_text(holder, time.time())
        server.answers[f"{DEPLOYMENTS}/web-platform-up"] = Answer(json.dumps(held).encode())

    monkeypatch.setattr(Development, "_inputs", build)
    monkeypatch.setattr(Replacement, "wait_until_ready", lambda *_: None)
    monkeypatch.setattr(Link, "run", lambda *_: 0)

    with pytest.raises(ComposeplatError, match="is being developed already, by ann on elsewhere"):
        development.up(UpOptions(session=Session()), lambda _: None)
    assert lease_changes(server) == []


def test_a_service_that_is_given_back_while_a_container_starts(development: Development, server: Server) -> None:
    """The wait ends: nobody will start the container any more."""
    server.answers |= {DEPLOYMENTS: given(WEB), f"{DEPLOYMENTS}/web-platform-up": Answer(json.dumps(RELEASED).encode())}

    with pytest.raises(ComposeplatError, match="is not under development any more"):
        development.up(UpOptions(session=Session()), lambda _: None)


def test_a_service_that_another_machine_gives_back(
    development: Development, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`down` removes the lease, then the service has its own pods: that is no deploy, to be followed."""
    followed: list[object] = []
    monkeypatch.setattr(Replacement, "is_outdated", lambda *_: True)
    monkeypatch.setattr(Replacement, "replace", lambda *args: followed.append(args))
    server.answers[f"{DEPLOYMENTS}/web-platform-up"] = Answer(json.dumps(RELEASED).encode())

    with pytest.raises(ComposeplatError, match="is not under development any more"):
        development.up(UpOptions(session=Session()), lambda _: None)
    assert len(followed) == 1


@pytest.mark.parametrize(
    ("workload", "lease", "is_left"),
    [(None, None, False), (DEV_WORKLOAD, None, True), (DEV_WORKLOAD, {"id": "other", "host": "elsewhere"}, False)],
    ids=["given-back", "left", "with-another"],
)
def test_what_a_session_leaves(
    development: Development, server: Server, workload: Any, lease: Any, *, is_left: bool
) -> None:
    """A service that stays under development is named at the end, also if its container never started."""
    path = f"{DEPLOYMENTS}/web-platform-up"
    if workload is None:
        server.answers[path] = Answer(b"{}", 404)
    if lease is not None:
        with Api(server.access) as api:
            text = lease_text(lease, api.server_time)
        held = {**DEV_WORKLOAD, "metadata": {**DEV_WORKLOAD["metadata"], "annotations": {LEASE_ANNOTATION: text}}}
        server.answers[path] = Answer(json.dumps(held).encode())
    assert development.is_left() is is_left


def test_the_lease_of_a_new_dev_workload(server: Server) -> None:
    """It is taken before the pods of the service end, which may take as long as their grace period."""
    inputs = DevWorkloadInputs(
        identity=Identity(environment="shop", namespace="team"), service="web", paths=(), helper="agent"
    )
    lease = SessionLease({"id": "mine"}, may_take=lambda _: None, may_keep=lambda _: None)
    with Api(server.access) as api:
        replacement = Replacement(api=api, namespace="team", environment="shop", kind="Deployment", name="web")
        replacement.replace(inputs, lease)
    created, scaled, _ = [asked for asked in server.asked if asked.method == "PATCH"]

    assert json.loads(json.loads(created.body)["metadata"]["annotations"][LEASE_ANNOTATION])["id"] == "mine"
    assert scaled.path == f"{DEPLOYMENTS}/web"


@pytest.mark.parametrize(
    ("other", "architectures"), [(None, ("amd64", "arm64")), (Mock(), (architecture(),))], ids=["elsewhere", "here"]
)
def test_the_agent_for_nodes_that_may_not_be_listed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Any, architectures: tuple[str, ...]
) -> None:
    """It is built for both processors: the pod of a cluster elsewhere crashed, if this machine has another one."""
    server.answers["/api/v1/nodes"] = refusal(403, "no nodes for you")
    built: list[tuple[str, ...]] = []

    def build(build: HelperBuild, _: Any) -> HelperImage:
        built.append(tuple(build.architectures))
        raise ComposeplatError("built")

    monkeypatch.setattr("composeplat.toolchain.setup.Toolchain.need", lambda *_: Mock())
    monkeypatch.setattr(HelperBuild, "provide", build)
    development = Development(
        plan=Mock(namespace="team", environment="shop", services=()), paths=(), note=lambda _: None,
        service=Mock(workload_kind="Deployment", workload_name="web", cluster_name="web"),
        target=Target(access=server.access, kubeconfig="", namespace="team", other=other),
        environment={"COMPOSEPLAT_DATA": str(tmp_path)},
    )  # fmt: skip

    with pytest.raises(ComposeplatError, match="built"):
        development.up(UpOptions(session=Session()), lambda _: None)
    assert built == [architectures]
