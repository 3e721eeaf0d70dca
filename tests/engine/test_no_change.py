"""When a run needs no Pulumi to say that nothing changed: the record, what must still hold, and what never does."""

from __future__ import annotations

import contextlib
import copy
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.api import ApiError
from composeplat.cluster.conditions import service_status
from composeplat.cluster.snapshot import Snapshot
from composeplat.compose.model import Build
from composeplat.engine import no_change_inputs
from composeplat.engine.no_change import (
    Digester,
    Record,
    digest_objects,
    doubt_about_digests,
    doubt_about_inputs,
    doubt_about_objects,
    doubt_about_options,
    doubt_about_plan,
    doubt_about_state,
    unchanged_resources,
)
from composeplat.engine.no_change_check import doubt_about_changes_since
from composeplat.engine.no_change_inputs import Doubt, _builds, _Place, _Reader, _variables, _versions
from composeplat.engine.no_change_look import Look, take_look
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import LiveState, object_keys
from composeplat.plan import Plan
from composeplat.plan.desired import ImageBuild
from composeplat.registry.exposed_ports import ExposedPorts
from tests.cluster.objects import Server, given, refusal
from tests.conftest import Project

DIGESTER = Digester(b"key")
RECORD = Record(
    inputs={"plan": "a", "versions": "b"},
    parts={"service-web": "p"},
    state="s",
    objects={"Service/web": "c"},
    resources=7,
)
OURS = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "demo"}


def planned(project: Project, service: str = "", more: str = "", **options: Any) -> Plan:
    text = f"services:\n  web: {{image: nginx, expose: [80]{service}}}\n{more}"
    reading = project({"compose.yaml": text}).read(**options)
    plan = reading.plan
    assert plan is not None, reading.messages
    return plan


def live(plan: Plan) -> dict[tuple[str, str], dict[str, Any]]:
    return {key: {"metadata": {"name": key[1], "labels": OURS, "uid": "1"}} for key in object_keys(plan.objects)}


def test_a_record_is_read_as_it_was_written() -> None:
    """A record is text; one of another form is none."""
    assert Record.from_text(RECORD.to_text()) == RECORD
    assert Record.from_text(RECORD.to_text().replace('"format": 3', '"format": 0')) is None
    assert Record.from_text(RECORD.to_text().replace("resources", "other")) is None
    assert [Record.from_text(text) for text in ("", "[]", "{}", "null", '{"format": 3}')] == [None] * 5


def test_a_digest_needs_the_key() -> None:
    """The same value has another digest with another key, so that nobody can guess a value."""
    value = {"password": "a"}
    assert DIGESTER.digest(value) == Digester(b"key").digest({"password": "a"})
    assert DIGESTER.digest(value) != Digester(b"other").digest(value)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": None}, {}),
        ([1, 2], [2, 1]),
        (frozenset({"a"}), ["a"]),
        (b"a", "a"),
        ("\udcff", "?"),
    ],
    ids=["type", "absence", "order", "set", "bytes", "no-text"],
)
def test_different_values_have_different_digests(value: object, other: object) -> None:
    """A digest has the types of values, and their order where that counts."""
    assert DIGESTER.digest(value) != DIGESTER.digest(other)


def test_a_plan_has_a_digest(project: Project) -> None:
    """The same file gives the same digest; a variable, an image, a port or a file gives another."""
    same = DIGESTER.digest(planned(project, ", environment: {A: b}"))
    assert DIGESTER.digest(planned(project, ", environment: {A: b}")) == same
    for change in (
        ", environment: {A: c}",
        ", environment: {A: b}, ports: ['81:80']",
        ", environment: {A: b}, user: '1'",
    ):
        assert DIGESTER.digest(planned(project, change)) != same
    assert DIGESTER.digest(planned(project, ", environment: {A: b}").with_confidential(("b",))) != same


def test_inputs_that_changed_are_named() -> None:
    """The reason names each input that is another, new or missing."""
    assert doubt_about_inputs(RECORD, {"plan": "a", "versions": "b"}) == ""
    assert doubt_about_inputs(RECORD, {"plan": "x", "more": "b"}) == "changed since the last run: more, plan, versions"


def test_an_object_that_changed_is_named() -> None:
    """An object that is missing, new or other is a reason."""
    assert doubt_about_digests(RECORD, {"Service/web": "c"}) == ""
    for found in ({}, {"Service/web": "d"}, {"Service/web": "c", "Service/other": "c"}):
        assert doubt_about_digests(RECORD, found).startswith("changed in the cluster: Service/")


DEPLOYMENT = {
    "metadata": {
        "name": "web",
        "uid": "1",
        "generation": 1,
        "resourceVersion": "10",
        "labels": OURS,
        "annotations": {"a": "b"},
        "managedFields": [
            {"manager": "composeplat", "operation": "Apply", "time": "T1", "fieldsV1": {"f:spec": {}}},
            {"manager": "kube", "operation": "Update", "subresource": "status", "time": "T1"},
        ],
    }
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("uid",), "2"),
        (("generation",), 2),
        (("labels",), {}),
        (("annotations",), {"a": "c"}),
        (("finalizers",), ["x"]),
        (("deletionTimestamp",), "T"),
        (("ownerReferences",), [{"uid": "3"}]),
        (("managedFields", 0, "time"), "T2"),
        (("managedFields", 0, "fieldsV1"), {}),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_workload_that_somebody_changed(path: tuple[Any, ...], value: object) -> None:
    """Everything but its status counts for a workload."""
    changed = copy.deepcopy(DEPLOYMENT)
    place: Any = changed["metadata"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    digests = [digest_objects(DIGESTER, {("Deployment", "web"): item}) for item in (DEPLOYMENT, changed)]
    assert digests[0] != digests[1]


def test_a_status_is_no_change() -> None:
    """A new status gives a workload another version and time, and no other digest; of a Secret each version counts."""
    changed = copy.deepcopy(DEPLOYMENT)
    changed["metadata"]["resourceVersion"] = "11"
    changed["metadata"]["managedFields"][1]["time"] = "T2"  # type: ignore[index]
    for kind, is_same in (("Deployment", True), ("StatefulSet", True), ("Secret", False), ("Service", False)):
        before, after = (digest_objects(DIGESTER, {(kind, "web"): item}) for item in (DEPLOYMENT, changed))
        assert (before == after) is is_same, kind


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (DeployOptions(services=("web",)), "services"),
        (DeployOptions(wait=False), "wait"),
        (DeployOptions(rerun_jobs=True), "rerun_jobs"),
        (DeployOptions(refresh=True), "refresh"),
        (DeployOptions(replaced_volumes=("data",)), "replaced_volumes"),
        (DeployOptions(take_over=True), "take_over"),
        (DeployOptions(build=True), "build"),
        (DeployOptions(build=False), "build"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_that_need_pulumi(options: DeployOptions, name: str) -> None:
    """Each option that can change an object needs Pulumi."""
    assert doubt_about_options(options) == f"the option {name} is given"


def test_options_that_do_not() -> None:
    """A deploy without options does not, whatever its timeout is, nor how often it writes the state."""
    assert doubt_about_options(DeployOptions()) == ""
    assert doubt_about_options(DeployOptions(timeout=1, safe_checkpoints=True)) == ""


@pytest.mark.parametrize(
    ("service", "more", "reason"),
    [
        ("", "", ""),
        (", pull_policy: daily", "", "the image of web may be newer in its registry"),
        (
            ", cpus: 1, x-autoscale: {max: 3, cpu: 50}",
            "",
            "the cluster decides on a part of HorizontalPodAutoscaler 'web'",
        ),
        (", volumes: ['data:/data']", "volumes: {data: {external: true}}", "'data' of somebody else is used"),
    ],
    ids=["plain", "pull-policy", "autoscale", "external"],
)
def test_plans_that_need_pulumi(project: Project, service: str, more: str, reason: str) -> None:
    """What the cluster or a registry decides is asked each time."""
    found = doubt_about_plan(planned(project, service, more, full=True))
    assert found.endswith(reason)
    assert bool(found) is bool(reason)


def test_objects_that_are_as_they_were_left(project: Project) -> None:
    """A record is written if each planned object is there, and none more."""
    plan = planned(project)
    assert doubt_about_objects(plan, LiveState(object_metadata=live(plan))) == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({("Service", "web"): None}, "Service 'web' is missing, or not of this environment"),
        ({("Service", "web"): {"labels": {}}}, "Service 'web' is missing, or not of this environment"),
        ({("Service", "web"): {"labels": OURS, "deletionTimestamp": "T"}}, "Service 'web' is being deleted"),
        ({("Secret", "old"): {"labels": OURS}}, "Secret 'old' is in no plan"),
        (
            {("Deployment", "web-up"): {"labels": {**OURS, "dev.platform.com/up": "web"}, "name": "web-up"}},
            "Deployment 'web-up' is in no plan",
        ),
        (
            {("Deployment", "web"): {"labels": OURS, "annotations": {"dev.platform.com/asleep": "1"}}},
            "a service is asleep",
        ),
    ],
    ids=["missing", "label", "deleting", "leftover", "development", "asleep"],
)
def test_objects_that_are_not(project: Project, change: dict[tuple[str, str], Any], reason: str) -> None:
    """Anything else in the namespace prevents a record."""
    plan = planned(project)
    objects = {key: value for key, value in live(plan).items() if key not in change}
    objects.update({key: {"metadata": value} for key, value in change.items() if value is not None})
    assert doubt_about_objects(plan, LiveState(object_metadata=objects)) == reason


def state(outputs: object, **more: object) -> dict[str, Any]:
    inputs = {"spec": {"replicas": 1, "ports": [{"port": 80}]}, "data": {"4dabf18193072939515e22adb298388d": "x"}}
    return {"resources": [{"urn": "u", "type": "kubernetes:v1:X", "inputs": inputs, "outputs": outputs, **more}]}


def test_a_state_after_changes() -> None:
    """After changes, each live object must have what was asked for; it may have more."""
    asked = {"spec": {"replicas": 1, "ports": [{"port": 80, "name": "x"}], "more": 1}, "data": "?"}
    assert doubt_about_state(state(asked), has_changes=True) == ""
    for spec in ({"replicas": 2, "ports": [{"port": 80}]}, {"replicas": 1, "ports": []}, {"replicas": 1}, None):
        changed = state({**asked, "spec": spec})
        assert doubt_about_state(changed, has_changes=True) == "the cluster has changed a field of u"
        assert doubt_about_state(changed, has_changes=False) == ""
    assert doubt_about_state(state(asked, delete=True), has_changes=True) == "u is still to be deleted"


def test_a_state_with_pending_operations() -> None:
    """What a killed run left prevents a record."""
    pending: dict[str, Any] = {"pending_operations": [{}]}
    assert doubt_about_state(pending, has_changes=False) == "the state has pending operations"


def test_the_number_of_unchanged_resources() -> None:
    """After changes, all resources but the deleted ones are unchanged."""
    assert unchanged_resources({"same": 3, "create": 2, "update": 1, "replace": 1, "delete": 4}) == 7


# inputs ---------------------------------------------------------------------------------------------------------------


def test_variables_that_count() -> None:
    """Variables of Pulumi, of builders and of the platform count; those of a terminal and the switch do not."""
    environment = {
        "PULUMI_X": "1", "https_proxy": "p", "DOCKER_HOST": "d", "TERM": "x", "PLATFORM_SKIP_UNCHANGED": "1",
    }  # fmt: skip
    assert _variables(environment) == [("DOCKER_HOST", "d"), ("PULUMI_X", "1"), ("https_proxy", "p")]


def test_another_version_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of Pulumi's SDK, of a provider or of the platform is another input."""
    before = _versions()
    (tmp_path / "pulumi_kubernetes-99.0.0.dist-info").mkdir()
    assert _versions() == before
    monkeypatch.syspath_prepend(str(tmp_path))
    assert _versions() != before


def content(folder: Path) -> str:
    return _Reader().digest(_Place(path=str(folder)))


def test_the_files_of_a_build_count(tmp_path: Path) -> None:
    """Content, mode, time, name and links of the files of a context count."""
    folder = tmp_path / "context"
    (folder / "sub").mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    digests = [content(folder)]
    assert content(folder) == digests[0]

    (folder / "Dockerfile").write_text("FROM scratch \n")
    digests.append(content(folder))
    (folder / "Dockerfile").chmod(0o700)
    digests.append(content(folder))
    os.utime(folder / "Dockerfile", (1, 1))
    digests.append(content(folder))
    (folder / "sub" / "new").touch()
    digests.append(content(folder))
    (folder / "sub" / "new").rename(folder / "sub" / "other")
    digests.append(content(folder))
    (folder / "link").symlink_to("sub")
    digests.append(content(folder))
    assert len(set(digests)) == len(digests)


def test_a_dockerfile_outside_of_its_context(tmp_path: Path) -> None:
    """A Dockerfile that is not in the context counts, and so does the ignore file beside it."""
    (tmp_path / "app").mkdir()
    build = Build(context=str(tmp_path / "app"), dockerfile="../Dockerfile")
    image = ImageBuild(service="web", reference="r/web", build=build)
    digests = []
    for name in ("Dockerfile", "Dockerfile.dockerignore"):
        for text in ("a", "b"):
            (tmp_path / name).write_text(text)
            digests.append(_builds([image]))

    assert all(found not in digests[:number] for number, found in enumerate(digests))


def ignored_context(folder: Path, ignored: str) -> ImageBuild:
    """A build of a folder with files that its ignore file leaves out."""
    for name in ("node_modules/a/index.js", "src/keep.ts", "src/debug.log", "Dockerfile"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1")
    (folder / ".dockerignore").write_text(ignored)
    return ImageBuild(service="web", reference="r/web", build=Build(context=str(folder)))


def test_ignored_files_of_a_build_do_not_count(tmp_path: Path) -> None:
    """A build gets no ignored file, so one may change, appear and leave; a small and a large context."""
    image = ignored_context(tmp_path, "node_modules\n**/*.log\n.git\nDockerfile\n")
    before = _builds([image])
    (tmp_path / "node_modules" / "a" / "index.js").write_text("2")
    (tmp_path / "node_modules" / "b").mkdir()
    (tmp_path / "src" / "debug.log").unlink()
    (tmp_path / "src" / "other.log").write_text("2")
    (tmp_path / ".git").mkdir()

    assert _builds([image]) == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / "src" / "keep.ts").write_text("2"), id="content"),
        pytest.param(lambda folder: (folder / "src" / "new.ts").touch(), id="new"),
        pytest.param(lambda folder: (folder / "src" / "keep.ts").unlink(), id="gone"),
        pytest.param(lambda folder: (folder / "src").chmod(0o700), id="mode of a folder"),
        pytest.param(lambda folder: (folder / "Dockerfile").write_text("2"), id="ignored Dockerfile"),
        pytest.param(lambda folder: (folder / ".dockerignore").write_text("node_modules\n"), id="ignore file"),
        pytest.param(lambda folder: (folder / "Dockerfile.dockerignore").write_text("*"), id="ignore file of its own"),
        pytest.param(lambda folder: (folder / "node_modules" / "kept").mkdir(), id="exception"),
    ],
)
def test_changes_beside_ignored_files_count(tmp_path: Path, change: Callable[[Path], object]) -> None:
    """All that the build gets counts, with the Dockerfile and the ignore files, which may be ignored themselves."""
    image = ignored_context(tmp_path, "node_modules\n**/*.log\n*ocker*\n!node_modules/kept\n")
    before = _builds([image])

    change(tmp_path)

    assert _builds([image]) != before


def test_a_file_that_was_away_beside_ignored_files(tmp_path: Path) -> None:
    """It may have been away while the last run read the context: ignored files change the folder's time."""
    image = ignored_context(tmp_path, "**/*.log\n")
    before = _builds([image])

    (tmp_path / "src" / "keep.ts").rename(tmp_path / "away")
    (tmp_path / "away").rename(tmp_path / "src" / "keep.ts")

    assert _builds([image]) != before


def test_large_contexts_with_ignored_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only times are compared, those of ignored files and of their folders do not count, also not as recent."""
    monkeypatch.setattr(no_change_inputs, "_MAX_BYTES_READ", 0)
    image = ignored_context(tmp_path, "**/*.log\n")
    monkeypatch.setattr(no_change_inputs, "_RECENT_NS", 50_000_000)
    time.sleep(0.1)
    before = _builds([image])
    (tmp_path / "src" / "debug.log").write_text("2")
    (tmp_path / "src" / "new.log").touch()

    assert _builds([image]) == before
    (tmp_path / "src" / "keep.ts").write_text("2")
    with pytest.raises(Doubt, match="just now"):
        _builds([image])


def test_when_a_file_of_a_build_was_changed_last(tmp_path: Path) -> None:
    """Each change of what the build gets counts, with the content behind links; an ignored file does not."""
    (tmp_path / "outside").write_text("1")
    image = ignored_context(tmp_path / "app", "**/*.log\n")
    (tmp_path / "app" / "link").symlink_to("../outside")
    kept = tmp_path / "app" / "src" / "keep.ts"
    changes: list[Callable[[], object]] = [
        lambda: kept.write_text("2"),
        lambda: os.utime(kept, (1, 1)),
        lambda: kept.chmod(0o600),
        lambda: kept.rename(kept.with_name("other.ts")),
        (tmp_path / "app" / "node_modules" / "a" / "index.js").unlink,
        lambda: (tmp_path / "outside").write_text("2"),
    ]
    for change in changes:
        time.sleep(0.05)
        began = time.time_ns()
        assert doubt_about_changes_since(began, [image]) == ""
        (tmp_path / "app" / "src" / "debug.log").write_text(str(began))
        (tmp_path / "app" / "src" / f"{began}.log").touch()
        assert doubt_about_changes_since(began, [image]) == ""
        change()
        assert doubt_about_changes_since(began, [image]) == "files of a build have changed during the run"


def test_patterns_that_builders_may_read_otherwise(tmp_path: Path) -> None:
    """A pattern that BuildKit takes as a regular expression leaves out nothing here; such an exception ends all."""
    (tmp_path / "ab").mkdir()
    image = ignored_context(tmp_path, "a[b]/*\nnode_modules\n")
    before = _builds([image])
    (tmp_path / "node_modules" / "new").touch()
    assert _builds([image]) == before
    (tmp_path / "ab" / "new").touch()
    assert _builds([image]) != before

    (tmp_path / ".dockerignore").write_text("node_modules\n![n]ew\n")
    before = _builds([image])
    (tmp_path / "node_modules" / "other").touch()
    assert _builds([image]) != before


def test_further_contexts_are_not_ignored(tmp_path: Path) -> None:
    """The ignore file of the context is for that alone."""
    image = ignored_context(tmp_path / "app", "*.log\n")
    (tmp_path / "more").mkdir()
    image = replace(image, build=replace(image.build, additional_contexts={"more": str(tmp_path / "more")}))
    before = _builds([image])

    (tmp_path / "more" / "a.log").touch()

    assert _builds([image]) != before


def test_files_that_are_not_read(tmp_path: Path) -> None:
    """Missing files are a doubt, and so is a link to a folder where links are followed."""
    with pytest.raises(Doubt, match="can't be read"):
        content(tmp_path / "missing")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Doubt, match="behind a link"):
        _Reader().digest(_Place(path=str(tmp_path), follows=True))


def test_large_builds_are_compared_by_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is not read where there is too much; its times count, but for one that was changed just now."""
    folder = tmp_path / "context"
    folder.mkdir()
    with (folder / "large").open("wb") as stream:
        stream.truncate(65 * 1024 * 1024)
    with pytest.raises(Doubt, match="just now"):
        content(folder)
    monkeypatch.setattr(no_change_inputs, "_RECENT_NS", 0)
    first = content(folder)
    assert content(folder) == first

    # Another content, with the times and the size set to what they were.
    before = (folder / "large").stat()
    time.sleep(0.02)
    with (folder / "large").open("r+b") as stream:
        stream.write(b"x")
    os.utime(folder / "large", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (folder / "large").stat().st_mtime_ns == before.st_mtime_ns
    assert content(folder) != first

    (folder / "large").rename(folder / "other")
    digests = [first, content(folder)]
    (tmp_path / "outside").write_text("a")
    (folder / "link").symlink_to("../outside")
    digests.append(content(folder))
    time.sleep(0.02)
    (tmp_path / "outside").write_text("b")
    digests.append(content(folder))
    assert len(set(digests)) == len(digests)
    monkeypatch.setattr(no_change_inputs, "_MAX_FILES", 1)
    with pytest.raises(Doubt, match="too many"):
        content(folder)


def test_small_builds_are_read_beside_a_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is to read is shared: the files that still fit are read."""
    monkeypatch.setattr(no_change_inputs, "_MAX_BYTES_READ", 10)
    for name in ("small", "large", "later"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"1" * (100 if name == "large" else 4))
    reader = _Reader()
    # A folder has a size of its own.
    monkeypatch.setattr(reader, "_bytes", (tmp_path / "small").stat().st_size + 4)
    reader.digest(_Place(path=str(tmp_path / "small")))
    with pytest.raises(Doubt, match="just now"):
        reader.digest(_Place(path=str(tmp_path / "later")))


def test_a_context_of_two_services_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size counts once too: the same files must not be too many for the second service."""
    (tmp_path / "file").write_bytes(b"1" * 10)
    reader = _Reader()
    monkeypatch.setattr(reader, "_bytes", tmp_path.stat().st_size + 10)

    assert reader.digest(_Place(path=str(tmp_path))) == reader.digest(_Place(path=str(tmp_path)))


def test_ports_of_images_are_known_for_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ports that have to be read again from a registry are not known; those of a digest stay known."""
    exposed, pinned = ExposedPorts(tmp_path, {}), f"nginx@sha256:{'0' * 64}"
    assert exposed.find_known("nginx") is None
    for image in ("nginx", pinned):
        exposed.remember(image, ((80, "tcp"),))
    tomorrow = time.time() + 25 * 3600

    found = exposed.find_known("nginx")
    assert found is not None
    assert found.ports == ((80, "tcp"),)
    monkeypatch.setattr(time, "time", lambda: tomorrow)
    assert exposed.find_known("nginx") is None
    assert exposed.find_known(pinned) is not None


# one look at the cluster ----------------------------------------------------------------------------------------------


def owned(name: str, owner: str, **more: Any) -> dict[str, Any]:
    references = [{"controller": True, "uid": owner}]
    return {
        "metadata": {"name": name, "uid": name, "ownerReferences": references, **more},
        "spec": {"containers": [{"name": "app"}]},
    }


def test_the_status_of_services(project: Project) -> None:
    """Each service has the status that it has among all pods."""
    text = "services:\n  web: {image: nginx}\n  api: {image: nginx}\n  once: {image: nginx, restart: 'no'}\n"
    plan = project(text).read().plan
    assert plan is not None
    look, revision = Look(), {"deployment.kubernetes.io/revision": "1"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for service in plan.services:
        kind, name = service.workload
        status = {"updatedReplicas": 1, "replicas": 1, "conditions": [{"type": "Complete", "status": "True"}]}
        metadata = {"name": name, "uid": name, "annotations": revision}
        look.objects[kind, name] = {"metadata": metadata, "spec": {"replicas": 1}, "status": status}
        look.replica_sets.append(owned(f"{name}-rs", name, annotations=revision))
        owner = name if kind == "Job" else f"{name}-rs"
        look.pods.append({**owned(f"{name}-pod", owner), "status": {} if name == "api" else ready})
    everything = Snapshot(workloads=look.objects, replica_sets=look.replica_sets, pods=look.pods)

    found = look.statuses(plan.services)

    assert {name: str(status.message) for name, status in found.items()} == {
        "web": "1/1 ready", "api": "0/1 ready, creating its pod", "once": "completed",
    }  # fmt: skip
    for service in plan.services:
        assert found[service.name] == service_status(*service.workload, service.cluster_name, everything)


# the look -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "is_refused"), [("httproutes", False), ("services", True)])
def test_a_look_of_a_user_with_few_rights(project: Project, kind: str, *, is_refused: bool) -> None:
    """The role ``edit`` has no routes of gateways: a plan without one needs no Pulumi all the same."""
    group = {"httproutes": "apis/gateway.networking.k8s.io/v1", "services": "api/v1"}[kind]
    plan = planned(project)
    answers = {f"/{group}/namespaces/{plan.namespace}/{kind}": refusal(403, f"{kind} is forbidden")}
    with Server(answers, otherwise=given()) as server, contextlib.ExitStack() as expected:
        if is_refused:
            expected.enter_context(pytest.raises(ApiError, match="forbidden"))
        assert take_look(server.access, plan, (), pods=True).objects == {}
