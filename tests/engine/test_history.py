"""How a revision is written: before the first change, after the last, and never so that a deployment fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from composeplat.cluster.api import ApiError
from composeplat.compose.model import DependencyCondition
from composeplat.diagnostics import ComposeplatError
from composeplat.engine import history, pulumi_runs
from composeplat.engine.deployer import Deployer
from composeplat.engine.events import Change, Events, Operation
from composeplat.engine.history import find_history, note_other_state, read_facts, read_history
from composeplat.engine.operations import preview
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import LiveState
from composeplat.engine.pulumi_process import Interrupted, PulumiResult
from composeplat.engine.recording import Recording, forget_history, record_deployment
from composeplat.engine.revisions import Result, Revision
from composeplat.plan.desired import Edge, Plan, ServicePlan

SALT = {"secrets_providers": {"type": "passphrase", "state": {"salt": "v1:abc"}}}


class Cluster:
    """The Secrets of a namespace."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.refusals: dict[str, int] = {}
        self.on_create: Callable[[], None] = lambda: None

    def _may(self, verb: str) -> None:
        if verb in self.refusals:
            raise ApiError(self.refusals[verb], f"may not {verb}")

    def object_metadata(self, path: str) -> list[dict[str, Any]]:
        self._may("list")
        assert path.endswith("/secrets?labelSelector=dev.platform.com/history-of%3Ddemo")
        return [{"metadata": found["metadata"]} for found in self.kept.values()]

    def find(self, path: str) -> dict[str, Any] | None:
        return self.kept.get(path.rpartition("/")[2])

    def create(self, manifest: dict[str, Any]) -> None:
        self.on_create()
        self._may("create")
        name = manifest["metadata"]["name"]
        if name in self.kept:
            raise ApiError(409, "already exists")
        self.kept[name] = json.loads(json.dumps(manifest))

    def patch(self, path: str, change: dict[str, Any]) -> None:
        self._may("patch")
        found = self.kept[path.rpartition("/")[2]]
        found["metadata"]["annotations"] |= change["metadata"]["annotations"]
        found["data"] = change.get("data") or {}

    def delete(self, path: str) -> None:
        self._may("delete")
        self.kept.pop(path.rpartition("/")[2], None)


@pytest.fixture
def api() -> Any:
    return Cluster()


@pytest.fixture
def stack() -> Any:
    notes: list[str] = []
    deployer = Deployer(who="ann@laptop", commit="a" * 40, branch="main", find_dirty=lambda: True)
    return SimpleNamespace(
        environment_name="demo", namespace="team", state=dict(SALT), notes=notes, note=notes.append,
        find_deployer=lambda: deployer, health=SimpleNamespace(require_answers=lambda: None),
    )  # fmt: skip


def events(*operations: Operation, done: bool = True) -> Events:
    found = Events()
    for operation in operations:
        urn = f"urn:pulumi:team::demo::t::demo-workload/{operation}"
        found.changes[urn] = Change(operation=operation, urn=urn, kind="Deployment", name=str(operation))
        found.done |= {urn} if done else set()
    return found


def service(name: str) -> ServicePlan:
    return ServicePlan(name=name, cluster_name=name, workload_kind="Deployment", image="", objects=())


def deploy(
    stack: Any, api: Any, *found: Operation, options: DeployOptions | None = None, fails: bool = False, **parts: Any
) -> None:
    plan = Plan(environment="demo", namespace="team", **parts)
    with record_deployment(stack, api, plan, options or DeployOptions(), "deploy") as recording:
        recording.note_changes(events(*found))
        recording.has_failed = fails


def known(api: Any) -> list[Revision] | None:
    return find_history(api, "team", "demo")


def results(api: Any) -> dict[int, Result]:
    return {found.number: found.result for found in read_history(api, "team", "demo")}


def test_a_revision(stack: Any, api: Any) -> None:
    """It is there while the deployment runs, and has its end, its changes and its commit after it."""
    plan = Plan(environment="demo", namespace="team", services=(service("web"),))
    with record_deployment(stack, api, plan, DeployOptions(services=("web",)), "deploy") as recording:
        assert results(api) == {1: Result.UNFINISHED}
        recording.note_changes(events(Operation.UPDATE))

    (found,) = read_history(api, "team", "demo")
    assert (found.result, found.who, found.commit, found.branch) == (Result.DONE, "ann@laptop", "a" * 40, "main")
    assert (found.dirty, found.services, [change.name for change in found.changes]) == (True, ("web",), ["update"])
    assert found.can_roll_back
    assert read_facts(api, stack, found)["inputs"] == {}
    assert stack.notes == []


def test_another_state(stack: Any, api: Any) -> None:
    """The state of another machine has another identifier: this one lacks what was deployed with it."""
    deploy(stack, api, Operation.UPDATE)
    other: Any = SimpleNamespace(**{**vars(stack), "notes": [], "state": {"secrets_providers": {"type": "other"}}})
    new: Any = SimpleNamespace(**{**vars(stack), "state": {}})
    for found in (other, new):
        found.note = other.notes.append

    assert [note_other_state(found, known(api)) for found in (stack, other, new)] == [False, True, False]
    assert stack.notes == []
    whose, rest = "revision 1 of ann@laptop", "another state or passphrase: this state is compared with the cluster"
    assert other.notes == [f"{whose} was deployed with {rest}"]

    deploy(other, api, Operation.UPDATE)
    assert note_other_state(stack, known(api))
    api.refusals["list"] = 403
    assert not note_other_state(stack, known(api))


def test_no_change_after_another_state(stack: Any, api: Any) -> None:
    """The first run of all services with this state is a revision, so that the next one need not compare again."""
    deploy(stack, api, Operation.UPDATE)
    stack.state = {"secrets_providers": {"type": "other"}}
    deploy(stack, api, options=DeployOptions(services=("web",)), services=(service("web"),))
    assert results(api) == {1: Result.DONE}

    deploy(stack, api)
    deploy(stack, api)
    assert results(api) == {1: Result.DONE, 2: Result.DONE}
    assert read_history(api, "team", "demo")[0].can_roll_back
    assert not note_other_state(stack, known(api))


def test_no_change(stack: Any, api: Any) -> None:
    """Without a change and without a failure there is no revision; the next one has its number."""
    deploy(stack, api)
    deploy(stack, api, Operation.SAME)
    assert results(api) == {}

    deploy(stack, api, fails=True)
    assert results(api) == {1: Result.FAILED}


def test_no_change_after_a_failure(stack: Any, api: Any) -> None:
    """The first run that ends well after a failure is a revision, though nothing was left to change."""
    deploy(stack, api, Operation.UPDATE, fails=True)
    deploy(stack, api)
    deploy(stack, api)

    assert results(api) == {1: Result.FAILED, 2: Result.DONE}
    assert read_history(api, "team", "demo")[0].can_roll_back


def test_some_services_after_a_failure_of_all(stack: Any, api: Any) -> None:
    """No rollback goes to what the failed deployment has left of the others, until one of all ends well."""
    services = (service("web"), service("db"))
    web = DeployOptions(services=("web",))
    deploy(stack, api, Operation.CREATE, services=services)
    deploy(stack, api, Operation.UPDATE, services=services, fails=True)
    deploy(stack, api, Operation.UPDATE, services=services, options=web)

    assert not history.ended_well(known(api))
    deploy(stack, api, services=services, options=web)
    assert [(found.result, found.can_roll_back) for found in read_history(api, "team", "demo")] == [
        (Result.DONE, False), (Result.FAILED, False), (Result.DONE, True),
    ]  # fmt: skip

    deploy(stack, api, services=services)
    newest = read_history(api, "team", "demo")[0]
    assert (newest.number, newest.can_roll_back) == (4, True)
    assert history.ended_well(known(api))


def test_a_service_with_what_it_needs_after_a_failure(stack: Any, api: Any) -> None:
    """A deployment of a service is one of its dependencies too."""
    edge = Edge(service="web", dependency="db", condition=DependencyCondition.STARTED)
    services = (service("web"), service("db"))
    deploy(stack, api, Operation.CREATE, services=services)
    deploy(stack, api, Operation.UPDATE, services=services, options=DeployOptions(services=("db",)), fails=True)
    deploy(stack, api, Operation.UPDATE, services=services, edges=(edge,), options=DeployOptions(services=("web",)))

    assert read_history(api, "team", "demo")[0].can_roll_back


@pytest.mark.parametrize(("fails", "keeps"), [(False, True), (True, False)])
def test_a_preview_after_a_failure(
    stack: Any, api: Any, monkeypatch: pytest.MonkeyPatch, *, fails: bool, keeps: bool
) -> None:
    """A preview without changes does not let the next deploy end without Pulumi, and so without its revision."""
    deploy(stack, api, Operation.CREATE, fails=fails)
    kept: list[object] = []
    no_change = SimpleNamespace(find_parts=lambda _: None, complete=lambda *_: {}, keep=lambda *_, **__: kept.append(1))
    stack.workspace = SimpleNamespace(make_stack=lambda: None)
    stack.variables, stack.claim, stack.target = {}, None, SimpleNamespace(urls_of=lambda _: ())
    stack.check_cluster = stack.stop_if_interrupted = lambda: None
    monkeypatch.setattr(preview, "check", lambda *_: LiveState())
    monkeypatch.setattr(preview, "plan_with_last_values", lambda _stack, _api, plan: (plan, []))
    monkeypatch.setattr(preview, "autoscaled_replicas", lambda *_: {})
    monkeypatch.setattr(preview, "preview_plan", lambda _api, plan, _replaced: plan)
    monkeypatch.setattr(pulumi_runs, "run_program", lambda *_, **__: (Events(), PulumiResult(0, "")))
    monkeypatch.setattr(
        preview, "run_if_needed", lambda stack, plan, options, _, run: run(stack, api, plan, options, no_change)
    )

    preview.preview(stack, Plan(environment="demo", namespace="team"), DeployOptions())

    assert bool(kept) is keeps


@pytest.mark.parametrize(("status", "expected"), [(403, True), (500, False)])
def test_a_history_that_can_not_be_read(api: Any, status: int, *, expected: bool) -> None:
    """Without the right to list Secrets there is no history to complete."""
    api.refusals["list"] = status

    assert history.ended_well(known(api)) is expected


def test_changes_that_were_not_made(stack: Any, api: Any) -> None:
    """An operation that was only planned is no change."""
    with record_deployment(stack, api, Plan(environment="demo", namespace="team"), DeployOptions(), "deploy") as found:
        found.note_changes(events(Operation.UPDATE, done=False))

    assert results(api) == {}


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (Interrupted("interrupted"), Result.INTERRUPTED),
        (KeyboardInterrupt(), Result.INTERRUPTED),
        (ComposeplatError("failed"), Result.FAILED),
        (OSError(), Result.FAILED),
    ],
)
def test_a_deployment_that_ends_early(stack: Any, api: Any, error: BaseException, result: Result) -> None:
    """Its revision has the changes that were made, and no objects to roll back to; the error stays."""

    def run(recording: Recording) -> None:
        recording.note_changes(events(Operation.CREATE))
        raise error

    plan = Plan(environment="demo", namespace="team")
    with pytest.raises(type(error)), record_deployment(stack, api, plan, DeployOptions(), "deploy") as recording:
        run(recording)

    (found,) = read_history(api, "team", "demo")
    assert (found.result, len(found.changes), found.has_values) == (result, 1, False)
    assert api.kept["platform-history.demo.1"].get("data") == {}


@pytest.mark.parametrize(("operations", "done"), [((Operation.UPDATE, Operation.CREATE), 2), ((Operation.SAME,), 0)])
def test_a_run_that_does_not_return(stack: Any, api: Any, operations: tuple[Operation, ...], done: int) -> None:
    """It was killed, or not seen whole: its revision stays, as more may be changed than what was seen."""
    seen = events(*operations)

    def run(recording: Recording) -> None:
        with recording.watch_run():
            recording.note_changes(seen)
            recording.note_changes(seen)
            raise Interrupted("interrupted at once")

    plan = Plan(environment="demo", namespace="team")
    with pytest.raises(Interrupted), record_deployment(stack, api, plan, DeployOptions(), "deploy") as recording:
        run(recording)

    (found,) = read_history(api, "team", "demo")
    assert (found.result, len(found.changes)) == (Result.INTERRUPTED, done)


def test_a_silent_cluster(stack: Any, api: Any) -> None:
    """Nothing is written to a cluster that does not answer: a deployment that ends for this reason ends at once."""
    plan = Plan(environment="demo", namespace="team")

    def refuse() -> None:
        raise ApiError(0, "the API server does not answer")

    def fall_silent() -> None:
        stack.health.require_answers = refuse
        api.refusals = dict.fromkeys(("list", "patch", "delete"), 0)
        raise Interrupted("interrupted")

    with pytest.raises(Interrupted), record_deployment(stack, api, plan, DeployOptions(), "deploy"):
        fall_silent()

    assert stack.notes == ["this deployment is not in the history: the API server does not answer"]
    assert list(api.kept) == ["platform-history.demo.1"]


def test_results(stack: Any, api: Any) -> None:
    """Nobody waited for the services of the second; a service of the third failed."""
    deploy(stack, api, Operation.CREATE)
    deploy(stack, api, Operation.CREATE, options=DeployOptions(wait=False))
    deploy(stack, api, Operation.CREATE, fails=True)

    assert results(api) == {3: Result.FAILED, 2: Result.APPLIED, 1: Result.DONE}


def test_two_machines_at_once(stack: Any, api: Any) -> None:
    """Both read the same history, and get different numbers."""

    def begin_elsewhere() -> None:
        api.on_create = lambda: None
        deploy(stack, api, Operation.CREATE)

    api.on_create = begin_elsewhere
    deploy(stack, api, Operation.UPDATE)

    assert results(api) == {2: Result.DONE, 1: Result.DONE}


def test_revisions_that_can_not_be_read(stack: Any, api: Any) -> None:
    """Another version wrote them, or somebody removed their annotations: the next one has a number after theirs."""
    for _ in range(9):
        deploy(stack, api, Operation.CREATE)
    for number in range(3, 10):
        api.kept[f"platform-history.demo.{number}"]["metadata"]["annotations"] = {}

    deploy(stack, api, Operation.UPDATE)

    assert results(api) == {10: Result.DONE, 2: Result.DONE, 1: Result.DONE}
    assert stack.notes == []


@pytest.mark.parametrize("verb", ["list", "create", "patch", "delete"])
@pytest.mark.parametrize("status", [403, 500, 0])
def test_a_history_that_cannot_be_written(stack: Any, api: Any, verb: str, status: int) -> None:
    """The deployment is done all the same, and a note says so once."""
    for _ in range(11):
        deploy(stack, api, Operation.CREATE)
    api.refusals[verb] = status

    deploy(stack, api, Operation.UPDATE)

    (note,) = stack.notes
    assert note.startswith("this deployment is not in the history: ")


def test_a_namespace_that_is_not_there(stack: Any, api: Any) -> None:
    """To destroy an environment in it is no reason for a note."""
    api.refusals["create"] = 404

    deploy(stack, api)

    assert stack.notes == []


def test_objects_that_are_too_large(stack: Any, api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The revision is there, and can't be rolled back to."""
    monkeypatch.setattr(history, "_MAX_DATA_BYTES", 10)

    deploy(stack, api, Operation.CREATE)

    (found,) = read_history(api, "team", "demo")
    assert (found.result, found.can_roll_back) == (Result.DONE, False)


def forge(api: Any, stack: Any, how: str) -> None:
    first, second = (api.kept[f"platform-history.demo.{number}"]["data"] for number in (1, 2))
    match how:
        case "moved":
            second.update(first)
        case "cut":
            second["objects"] = second["objects"][:-8]
        case "not Base64":
            second["objects"] = "\u00e9"
        case "no seal":
            del second["seal"]
        case "no data":
            second.clear()
        case "other state":
            stack.state = {"secrets_providers": {"type": "passphrase", "state": {"salt": "v1:other"}}}


@pytest.mark.parametrize("how", ["moved", "cut", "not Base64", "no seal", "no data", "other state"])
def test_objects_of_others(stack: Any, api: Any, how: str) -> None:
    """Objects that were not sealed with this state, for this revision, are an error."""
    deploy(stack, api, Operation.CREATE)
    stack.state["resources"] = []
    deploy(stack, api, Operation.UPDATE)
    found = read_history(api, "team", "demo")[0]
    forge(api, stack, how)

    with pytest.raises(ComposeplatError, match="the objects of revision 2 were not written with the state"):
        read_facts(api, stack, found)


def test_objects_of_another_version(stack: Any, api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version may keep them in another form."""
    deploy(stack, api, Operation.CREATE)
    monkeypatch.setattr(history, "FORMAT", 2)

    with pytest.raises(ComposeplatError, match="revision 1 was written by another version of platform"):
        read_facts(api, stack, read_history(api, "team", "demo")[0])


def test_forgetting(stack: Any, api: Any) -> None:
    """A destroyed environment leaves nothing, also of what can't be read; without permission, it stays."""
    deploy(stack, api, Operation.CREATE)
    deploy(stack, api, Operation.UPDATE)
    api.kept["platform-history.demo.1"]["metadata"]["annotations"] = {}
    api.refusals["delete"] = 403
    forget_history(stack, api)
    assert len(api.kept) == 2

    api.refusals.clear()
    forget_history(stack, api)
    assert api.kept == {}
