"""What Pulumi's events show of each object, and in which words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from composeplat.engine.events import (
    Change,
    Difference,
    Events,
    Operation,
    describe_differences,
    format_value,
    kind_of,
    look_up,
    parts_of,
)

STACK = "urn:pulumi:team::shop::pulumi:pulumi:Stack::shop-team"
CHAIN = "composeplat:index:ComposeStack$composeplat:index:Service"
SERVICE = f"urn:pulumi:team::shop::{CHAIN}::shop-service/web"
WORKLOAD = f"urn:pulumi:team::shop::{CHAIN}$kubernetes:apps/v1:Deployment::shop-workload/web"
FILES = f"urn:pulumi:team::shop::{CHAIN}$kubernetes:core/v1:ConfigMap::shop-files/web"
CLAIM = (
    "urn:pulumi:team::shop::composeplat:index:ComposeStack$composeplat:index:Volume"
    "$kubernetes:core/v1:PersistentVolumeClaim::shop-claim/data"
)
IMAGE = f"urn:pulumi:team::shop::{CHAIN}$docker-build:index:Image::shop-image/web"
PROVIDER = "urn:pulumi:team::shop::pulumi:providers:kubernetes::cluster"

HASH = 'spec.template.metadata.annotations["dev.platform.com/config-hash"]'

Inputs = dict[str, Any]


def step(
    event: str,
    operation: str,
    urn: str,
    *,
    old: Inputs | None = None,
    new: Inputs | None = None,
    diff: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """An event about a step, as the engine writes it into its log."""
    token = urn.split("::")[2].rpartition("$")[2]
    metadata = {
        "op": operation,
        "urn": urn,
        "type": token,
        "old": _state(urn, token, old),
        "new": _state(urn, token, new),
        "keys": [path for path, how in (diff or {}).items() if how.endswith("replace")],
        "detailedDiff": {path: {"diffKind": how, "inputDiff": False} for path, how in diff.items()} if diff else None,
        "logical": True,
        "provider": f"{PROVIDER}::0afa9656-a065-4c76-9e8a-5c1ebf6d41a0",
    }
    return {"sequence": 7, "timestamp": 1795264547, event: {"metadata": metadata}}


def _state(urn: str, token: str, inputs: Inputs | None) -> dict[str, Any] | None:
    if inputs is None:
        return None
    return {"type": token, "urn": urn, "custom": True, "id": "", "parent": STACK, "inputs": inputs, "outputs": {}}


def before(operation: str, urn: str, **more: Any) -> dict[str, Any]:
    return step("resourcePreEvent", operation, urn, **more)


def after(operation: str, urn: str, **more: Any) -> dict[str, Any]:
    return step("resOutputsEvent", operation, urn, **more)


def message(severity: str, text: str, urn: str = "") -> dict[str, Any]:
    handle_events = {"prefix": f"{severity}: ", "message": text, "color": "never", "severity": severity}
    return {
        "sequence": 7,
        "timestamp": 1795264547,
        "diagnosticEvent": {**({"urn": urn} if urn else {}), **handle_events},
    }


def deployment(replicas: int = 1, image: str = "nginx:1", **annotations: str) -> Inputs:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "team", "annotations": annotations},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
    }


def claim(size: str = "1Gi") -> Inputs:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "team"}, "spec": spec}


def handle_events(*events: dict[str, Any]) -> Events:
    """What is known after these events."""
    seen = Events()
    for event in events:
        seen.handle(event)
    return seen


# steps ----------------------------------------------------------------------------------------------------------------


def test_create() -> None:
    """An object that is made is a change without differences; it is done when its outputs are there."""
    events = Events()

    assert events.handle(before("create", WORKLOAD, new=deployment())) == WORKLOAD
    assert (set(), {"create": 1}) == (events.done, events.count_operations())
    assert events.handle(after("create", WORKLOAD, new=deployment())) == WORKLOAD
    assert {WORKLOAD} == events.done
    assert [Change(operation=Operation.CREATE, urn=WORKLOAD, kind="Deployment", name="web")] == events.effective_changes


def test_update() -> None:
    """A change of an object names each property, in order, with what it was and will be."""
    diff = {"spec.replicas": "update", "spec.template.spec.containers[0].image": "update", "metadata.labels": "add"}
    new = deployment(2, "nginx:2")
    new["metadata"]["labels"] = {"a": "b"}

    events = handle_events(before("update", WORKLOAD, old=deployment(), new=new, diff=diff))

    assert [
        Change(
            operation=Operation.UPDATE,
            urn=WORKLOAD,
            kind="Deployment",
            name="web",
            differences=(
                Difference(path="metadata.labels", old=None, new={"a": "b"}),
                Difference(path="spec.replicas", old=1, new=2),
                Difference(path="spec.template.spec.containers[0].image", old="nginx:1", new="nginx:2"),
            ),
        )
    ] == events.effective_changes


@pytest.mark.parametrize(
    "path",
    [
        pytest.param('metadata.annotations["pulumi.com/skipAwait"]', id="in-brackets"),
        pytest.param("metadata.annotations.pulumi.com/skipAwait", id="plain"),
    ],
)
def test_pulumi_annotations_are_no_change(path: str) -> None:
    """An update that only shows Pulumi how to go about an object leaves the object as it is."""
    events = handle_events(before("update", WORKLOAD, old=deployment(), new=deployment(), diff={path: "add"}))

    assert (events.effective_changes, events.count_operations()) == ([], {"same": 1})


def test_same() -> None:
    """What stays as it is is counted, and is no change."""
    event = before("same", WORKLOAD, old=deployment(), new=deployment())

    events = handle_events(event)

    assert (events.effective_changes, events.count_operations()) == ([], {"same": 1})
    assert events.changes[WORKLOAD].operation == Operation.SAME


REPLACED = {"spec.selector.matchLabels.a": "update-replace", "spec.replicas": "update"}


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(["delete-replaced", "replace", "create-replacement"], id="old-one-goes-first"),
        pytest.param(["create-replacement", "replace", "delete-replaced"], id="new-one-comes-first"),
    ],
)
def test_replace(order: list[str]) -> None:
    """The steps of a replacement are one change, and its differences say what can't be changed in place."""
    old, new = deployment(1), deployment(2)
    old["spec"]["selector"], new["spec"]["selector"] = {"matchLabels": {"a": "x"}}, {"matchLabels": {"a": "y"}}
    steps = {
        "delete-replaced": before("delete-replaced", WORKLOAD, old=old),
        "replace": before("replace", WORKLOAD, old=old, new=new, diff=REPLACED),
        "create-replacement": before("create-replacement", WORKLOAD, old=old, new=new, diff=REPLACED),
    }

    events = handle_events(*(steps[name] for name in order))

    assert events.count_operations() == {"replace": 1}
    assert [
        Change(
            operation=Operation.REPLACE,
            urn=WORKLOAD,
            kind="Deployment",
            name="web",
            differences=(
                Difference(path="spec.replicas", old=1, new=2),
                Difference(path="spec.selector.matchLabels.a", old="x", new="y", replaces=True),
            ),
        )
    ] == events.effective_changes


def test_made_again() -> None:
    """An object that a deploy deletes itself, such as a volume, is replaced: Pulumi sees its creation alone."""
    events = handle_events(
        before("create", CLAIM, new=claim()),
        before("create", WORKLOAD, new=deployment()),
        before("update", FILES, old={"data": {"a": "1"}}, new={"data": {"a": "2"}}, diff={"data.a": "update"}),
    )
    events.note_made_again({("PersistentVolumeClaim", "data"), ("ConfigMap", "web"), ("Job", "web")})

    assert events.count_operations() == {"replace": 1, "create": 1, "update": 1}
    assert events.removed == {("PersistentVolumeClaim", "data")}


def test_a_replacement_is_done_when_it_is_created() -> None:
    """A Job that goes first is not done while its replacement waits for a dependency."""
    events = handle_events(
        before("delete-replaced", WORKLOAD, old=deployment()),
        after("delete-replaced", WORKLOAD, old=deployment()),
        before("replace", WORKLOAD, old=deployment(), new=deployment(2)),
        after("replace", WORKLOAD, old=deployment(), new=deployment(2)),
        before("create-replacement", WORKLOAD, old=deployment(), new=deployment(2)),
    )
    assert not events.done

    events.handle(after("create-replacement", WORKLOAD, old=deployment(), new=deployment(2)))
    assert events.done == {WORKLOAD}


@pytest.mark.parametrize("current", ["same", "create-replacement"])
def test_the_former_image(current: str) -> None:
    """The image that an earlier build has replaced leaves the state: that is no change, and no part of another one."""
    image = {"tags": ["r.example.com/web"]}

    events = handle_events(
        before(current, IMAGE, old=image, new=image),
        after(current, IMAGE, old=image, new=image),
        before("delete-replaced", IMAGE, old=image),
        after("delete-replaced", IMAGE, old=image),
    )

    assert events.count_operations() == {"same" if current == "same" else "replace": 1}


def test_delete() -> None:
    """What is deleted is named by what it was."""
    events = handle_events(before("delete", WORKLOAD, old=deployment()), after("delete", WORKLOAD, old=deployment()))

    assert [Change(operation=Operation.DELETE, urn=WORKLOAD, kind="Deployment", name="web")] == events.effective_changes


def test_a_deleted_claim_is_kept() -> None:
    """A claim that is deleted from the state stays in the cluster, and is reported to."""
    events = handle_events(before("delete", CLAIM, old=claim()))

    assert [
        Change(operation=Operation.DELETE, urn=CLAIM, kind="PersistentVolumeClaim", name="data", kept=True)
    ] == events.effective_changes


def test_a_replaced_claim_is_not_kept() -> None:
    """Where a claim is recreated, what it held is not said to stay."""
    diff = {"spec.resources.requests.storage": "update-replace"}

    events = handle_events(
        before("delete-replaced", CLAIM, old=claim("2Gi")),
        before("create-replacement", CLAIM, old=claim("2Gi"), new=claim("1Gi"), diff=diff),
    )

    assert [(change.operation, change.kept) for change in events.effective_changes] == [(Operation.REPLACE, False)]


@pytest.mark.parametrize("urn", [STACK, SERVICE, PROVIDER])
def test_no_object(urn: str) -> None:
    """The stack, components and providers are no changes, though they have their steps."""
    events = Events()

    assert events.handle(before("create", urn, new={})) == urn
    assert events.handle(after("create", urn, new={})) == urn
    assert ({}, {urn}) == (events.count_operations(), events.done)


def test_an_image() -> None:
    """An image has no metadata: it goes by its resource's name."""
    events = handle_events(before("create", IMAGE, new={"tags": ["localhost/shop-web"], "push": True}))

    assert [
        Change(operation=Operation.CREATE, urn=IMAGE, kind="Image", name="shop-image/web")
    ] == events.effective_changes


@pytest.mark.parametrize(("reference", "operation"), [("web@sha256:1", "same"), ("web@sha256:2", "replace")])
def test_an_image_that_was_built_again(reference: str, operation: str) -> None:
    """With the digest of before it counts as unchanged: Pulumi has replaced its resource, as `--build` asks for it."""
    done = after("create-replacement", IMAGE, old={}, new={})
    done["resOutputsEvent"]["metadata"]["new"]["outputs"]["ref"] = reference
    events = handle_events(before("create-replacement", IMAGE, old={}, new={}), done)
    events.note_same_images({"resources": [{"urn": WORKLOAD}, {"urn": IMAGE, "outputs": {"ref": "web@sha256:1"}}]})

    assert events.count_operations() == {operation: 1}
    assert len(events.effective_changes) == (operation == "replace")


@pytest.mark.parametrize("operation", ["read", "remove-pending-replace", "of-a-later-engine"])
def test_other_operations(operation: str) -> None:
    """What changes nothing that is ours is not read."""
    events = handle_events(before(operation, WORKLOAD, old=deployment(), new=deployment(2)))

    assert (events.effective_changes, events.count_operations()) == ([], {})


def test_failed() -> None:
    """A step that fails is reported by its URN, and stays a change that was wanted."""
    events = handle_events(before("create", WORKLOAD, new=deployment()))
    failed = step("resOpFailedEvent", "create", WORKLOAD, new=deployment())

    assert events.handle(failed) == WORKLOAD
    assert ({WORKLOAD}, set(), {"create": 1}) == (events.failed, events.done, events.count_operations())
    assert (len(events.effective_changes), events.made_changes) == (1, [])
    events.handle(before("create", CLAIM, new=claim()))
    events.handle(after("create", CLAIM, new=claim()))
    assert [change.name for change in events.made_changes] == ["data"]


def test_counted() -> None:
    """Changes are counted by what is done, each object once."""
    events = handle_events(
        before("create", CLAIM, new=claim()),
        before("create", FILES, new={"metadata": {"name": "web-files"}}),
        before("create", SERVICE, new={}),
        before("same", WORKLOAD, old=deployment(), new=deployment()),
        before("same", WORKLOAD, old=deployment(), new=deployment()),
    )

    assert events.count_operations() == {"create": 2, "same": 1}
    assert [(change.kind, change.name) for change in events.effective_changes] == [
        ("PersistentVolumeClaim", "data"),
        ("ConfigMap", "web-files"),
    ]


# a refresh ------------------------------------------------------------------------------------------------------------

SCALED = {"spec.replicas": "update"}


def test_a_refresh_before_an_update() -> None:
    """An update that reads the cluster first counts what it changes then, and nothing twice."""
    events = Events()
    read = [
        before("refresh", WORKLOAD, old=deployment(), new=deployment()),
        before("refresh", FILES, old={}, new={}),
        after("refresh", WORKLOAD, old=deployment(), new=deployment(5)),
        after("refresh", FILES, old={}, new={}),
    ]
    changed = before("update", WORKLOAD, old=deployment(5), new=deployment(), diff=SCALED)

    assert [events.handle(event) for event in read] == [None] * 4
    assert (set(), {}) == (events.done, events.count_operations())
    assert events.handle(changed) == WORKLOAD
    assert events.handle(after("update", WORKLOAD, old=deployment(5), new=deployment(), diff=SCALED)) == WORKLOAD
    assert ({"update": 1}, {WORKLOAD}, []) == (events.count_operations(), events.done, events.drifted)


def test_drift() -> None:
    """A refresh of its own shows what is otherwise in the cluster, and what is gone; that is no change of ours."""
    events = handle_events(
        before("refresh", WORKLOAD, old=deployment(), new=deployment()),
        before("refresh", FILES, old={"metadata": {"name": "web-files"}}, new={}),
        before("refresh", CLAIM, old=claim(), new=claim()),
        after("update", WORKLOAD, old=deployment(), new=deployment(5), diff=SCALED),
        after("delete", FILES, old={"metadata": {"name": "web-files"}}),
        after("same", CLAIM, old=claim(), new=claim()),
    )

    assert [
        Change(
            operation=Operation.UPDATE,
            urn=WORKLOAD,
            kind="Deployment",
            name="web",
            differences=(Difference(path="spec.replicas", old=1, new=5),),
        ),
        Change(operation=Operation.DELETE, urn=FILES, kind="ConfigMap", name="web-files"),
    ] == events.drifted
    assert ([], set()) == (events.effective_changes, events.done)


def test_no_drift() -> None:
    """What a refresh finds otherwise in what is for Pulumi alone, or in no property at all, is no drift."""
    diff = {'metadata.annotations["pulumi.com/patchFieldManager"]': "update"}

    events = handle_events(
        before("refresh", WORKLOAD, old=deployment(), new=deployment()),
        before("refresh", CLAIM, old=claim(), new=claim()),
        after("update", WORKLOAD, old=deployment(), new=deployment(), diff=diff),
        after("update", CLAIM, old=claim(), new=claim()),
    )

    assert events.drifted == []


def test_a_refresh_that_fails() -> None:
    """An object that can't be read is reported as failed."""
    events = handle_events(
        before("refresh", WORKLOAD, old=deployment(), new=deployment()),
        message("error", "failed to read resource state due to unreachable cluster\n", WORKLOAD),
        step("resOpFailedEvent", "refresh", WORKLOAD, old=deployment(), new=deployment()),
    )

    assert ({WORKLOAD}, []) == (events.failed, events.drifted)
    assert events.messages == {WORKLOAD: ["failed to read resource state due to unreachable cluster"]}


# messages and the end -------------------------------------------------------------------------------------------------


def test_messages() -> None:
    """Errors are kept in their order, by the object they are about; those about none have a place of their own."""
    events = handle_events(
        message("error", "first\n", WORKLOAD),
        message("error", "second\n", WORKLOAD),
        message("error", "update failed\n"),
    )

    assert events.messages == {WORKLOAD: ["first", "second"], "": ["update failed"]}


@pytest.mark.parametrize("severity", ["debug", "info", "info#err", "warning"])
def test_messages_that_are_no_errors(severity: str) -> None:
    """Everything else that Pulumi says is left to its own output."""
    events = Events()

    assert events.handle(message(severity, "rendered YAML", WORKLOAD)) is None
    assert events.messages == {}


def test_summary() -> None:
    """The summary is kept as it was reported."""
    summary = {"maybeCorrupt": False, "durationSeconds": 1, "resourceChanges": {"create": 7}, "result": "succeeded"}

    assert handle_events({"sequence": 62, "summaryEvent": summary}).summary == summary


@pytest.mark.parametrize(
    "event",
    [
        pytest.param({"sequence": 0, "preludeEvent": {"config": {}}}, id="prelude"),
        pytest.param({"sequence": 63, "cancelEvent": {}}, id="cancel"),
        pytest.param({"sequence": 3, "progressEvent": {"type": "plugin-install", "completed": 1}}, id="later-kinds"),
    ],
)
def test_other_events(event: dict[str, Any]) -> None:
    """Events of other kinds change nothing."""
    events = Events()

    assert events.handle(event) is None
    assert Events() == events


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((0, 1, 2), True), ((0, 2, 3), False), ((1, 2), False), ((), False)],
)
def test_whether_all_events_have_come(numbers: tuple[int, ...], *, expected: bool) -> None:
    """Their numbers have no gap, and the last one is the summary."""
    written = [{"sequence": number, "preludeEvent": {}} for number in numbers[:-1]]
    summary = [{"sequence": number, "summaryEvent": {"result": "succeeded"}} for number in numbers[-1:]]

    assert handle_events(*written, *summary).is_complete is expected
    assert not handle_events(*written).is_complete


# names and paths ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        pytest.param("kubernetes:apps/v1:Deployment", "Deployment", id="typed"),
        pytest.param("kubernetes:core/v1:Secret", "Secret", id="core"),
        pytest.param("kubernetes:gateway.networking.k8s.io/v1:HTTPRoute", "HTTPRoute", id="of-others"),
        pytest.param("docker-build:index:Image", "Image", id="image"),
        pytest.param("docker-build:index:Index", "", id="another-of-the-builder"),
        pytest.param("composeplat:index:Service", "", id="component"),
        pytest.param("pulumi:providers:kubernetes", "", id="provider"),
        pytest.param("pulumi:pulumi:Stack", "", id="stack"),
    ],
)
def test_kind_of(token: str, kind: str) -> None:
    """A type names a kind where it is an object's or an image's."""
    assert kind == kind_of(token)


@pytest.mark.parametrize(
    ("urn", "key"),
    [
        pytest.param(WORKLOAD, "workload/web", id="object"),
        pytest.param(CLAIM, "claim/data", id="claim"),
        pytest.param(WORKLOAD.replace("shop-workload", "my-shop-workload"), "workload/web", id="dash-in-environment"),
        pytest.param(WORKLOAD.replace("/web", "/my-web"), "workload/my-web", id="dash-in-name"),
        pytest.param(PROVIDER, "None", id="no-key"),
    ],
)
def test_key_of_a_change(urn: str, key: str) -> None:
    """A change has the key of its resource, which is in the URN."""
    assert key == str(Change(operation=Operation.UPDATE, urn=urn, kind="", name="").key)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        pytest.param("", [], id="root"),
        pytest.param("spec", ["spec"], id="one"),
        pytest.param("spec.replicas", ["spec", "replicas"], id="two"),
        pytest.param("spec.containers[0].image", ["spec", "containers", "0", "image"], id="index"),
        pytest.param("a[1][12]", ["a", "1", "12"], id="index-of-index"),
        pytest.param('data["a.b"]', ["data", "a.b"], id="quoted"),
        pytest.param('data["a[0].b"].c', ["data", "a[0].b", "c"], id="quoted-with-marks"),
        pytest.param('["a.b"]["c"]', ["a.b", "c"], id="quoted-first"),
        pytest.param("a.b/c-d", ["a", "b/c-d"], id="slash-and-dash"),
    ],
)
def test_parts_of(path: str, parts: list[str]) -> None:
    """A place is written with dots, indexes in brackets, and quoted where a name has marks in it."""
    assert parts == parts_of(path)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param("a.b", [{"c.d": 1}, "x"], id="mapping"),
        pytest.param('a.b[0]["c.d"]', 1, id="through-a-list"),
        pytest.param("a.b[1]", "x", id="item"),
        pytest.param("a.b[2]", None, id="behind-the-end"),
        pytest.param("a.b.c", None, id="a-name-in-a-list"),
        pytest.param("a.b[1].c", None, id="below-a-text"),
        pytest.param("z.b", None, id="not-there"),
        pytest.param("", {"a": {"b": [{"c.d": 1}, "x"]}}, id="everything"),
    ],
)
def test_look_up(path: str, found: object) -> None:
    """A value is found by its place; where there is none, there is no value."""
    assert found == look_up({"a": {"b": [{"c.d": 1}, "x"]}}, path)


# words ----------------------------------------------------------------------------------------------------------------


def changed(*differences: Difference) -> Change:
    return Change(operation=Operation.UPDATE, urn=WORKLOAD, kind="Deployment", name="web", differences=differences)


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        pytest.param("spec.replicas", 1, 2, "replicas 1 → 2", id="replicas"),
        pytest.param("spec.replicas", 1.0, 2.0, "replicas 1 → 2", id="whole-numbers"),
        pytest.param("spec.strategy.type", None, "Recreate", "update policy (none) → Recreate", id="policy"),
        pytest.param("spec.resources.requests.storage", "1Gi", "2Gi", "size 1Gi → 2Gi", id="size"),
        pytest.param("spec.storageClassName", None, "fast", "storage class (none) → fast", id="class"),
        pytest.param("spec.clusterIP", "None", None, "cluster address None → (none)", id="address"),
        pytest.param("spec.template.spec.containers[0].image", "a", "b", "image a → b", id="image"),
        pytest.param("spec.template.spec.containers[0].env[2].value", "a", "b", "env.2.value a → b", id="of-container"),
        pytest.param(
            "spec.template.spec.terminationGracePeriodSeconds",
            10,
            20,
            "terminationGracePeriodSeconds 10 → 20",
            id="of-pod",
        ),
        pytest.param("metadata.labels", {"a": "b"}, {"a": "c"}, "metadata.labels", id="mapping"),
        pytest.param("spec.template.spec.containers[0].command", None, ["sh"], "command", id="list"),
        pytest.param(HASH, "0a", "0b", "its variables or files", id="config-hash"),
        pytest.param(
            'spec.template.metadata.annotations["dev.platform.com/dependencies-hash"]',
            "0a",
            "0b",
            "a service that restarts it",
            id="dependencies-hash",
        ),
        pytest.param("contextHash", None, None, "files of its build", id="context-of-a-build"),
        pytest.param("data.GREETING", None, None, "data.GREETING", id="hidden"),
        pytest.param("data.GREETING", "[secret]", "[secret]", "data.GREETING", id="secret"),
        pytest.param("data.GREETING", None, "[secret]", "data.GREETING", id="new secret"),
    ],
)
def test_reasons(path: str, old: object, new: object, message: str) -> None:
    """A change has the last part of its path as a name, and its values if they are short; a hash has none."""
    assert [message] == describe_differences(changed(Difference(path=path, old=old, new=new)))


def test_differences_in_encrypted_values() -> None:
    """Pulumi shows nothing of such a value, which is there all the same: only one that is added or deleted is not."""
    encrypted = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "[secret]"}
    diff = {"data.A": "update", "data.B": "add", "data.C": "delete"}

    events = handle_events(before("update", FILES, old={"data": encrypted}, new={"data": encrypted}, diff=diff))

    (change,) = events.effective_changes
    assert [(found.path, found.old, found.new) for found in change.differences] == [
        ("data.A", "[secret]", "[secret]"),
        ("data.B", None, "[secret]"),
        ("data.C", "[secret]", None),
    ]


def test_each_reason_once() -> None:
    """Reasons keep their order, and the same words stand once."""
    hashes = [Difference(path=path, old="0a", new="0b") for path in (HASH, HASH.removeprefix("spec.template."))]

    reasons = describe_differences(changed(hashes[0], Difference(path="spec.replicas", old=1, new=2), hashes[1]))

    assert reasons == ["its variables or files", "replicas 1 → 2"]


def test_no_reasons() -> None:
    """What is made or deleted has none."""
    assert describe_differences(changed()) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(None, "(none)", id="none"),
        pytest.param("", "", id="empty"),
        pytest.param(False, "False", id="boolean"),
        pytest.param(3.0, "3", id="whole-number"),
        pytest.param(0.5, "0.5", id="fraction"),
        pytest.param("x" * 60, "x" * 60, id="as-long-as-fits"),
        pytest.param("x" * 61, "x" * 59 + "…", id="too-long"),
    ],
)
def test_format_value(value: object, shown: str) -> None:
    """A value is shown in as much as reads well in a line."""
    assert shown == format_value(value)
