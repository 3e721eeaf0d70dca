"""What is in the cluster already is never taken over from others, and no volume loses its data by surprise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from composeplat.diagnostics import ComposeplatError, Report
from composeplat.engine.preflight import (
    KINDS,
    LiveState,
    belongs_to,
    built_images,
    check_live_state,
    cluster_of,
    known_to_state,
    left_claims,
    missing_from_cluster,
    object_keys,
    rename_replaced,
    resources_of_others,
    unknown_to_state,
    unused_claims,
    volumes_to_replace,
)
from composeplat.plan import Plan
from tests.conftest import Project, Reading, lines

OWN_LABELS = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "demo"}
CLAIM = "PersistentVolumeClaim"

TEXT = """\
services:
  web:
    image: nginx
    ports: ['8080:80']
    environment: {A: b}
    volumes: ['data:/data', './conf:/etc/conf']
  My_Job: {image: x, restart: 'no'}
volumes:
  data: {size: 2Gi}
endpoints: [{path: /, service: web, port: 80}]
"""


def head(kind: str, name: str, labels: Mapping[str, str] | None = OWN_LABELS) -> dict[tuple[str, str], dict[str, Any]]:
    """An object as a list of metadata has it."""
    metadata = {"name": name, "namespace": "team", **({} if labels is None else {"labels": dict(labels)})}
    return {(kind, name): {"metadata": metadata}}


def object_metadata(
    keys: Iterable[tuple[str, str]], labels: Mapping[str, str]
) -> dict[tuple[str, str], dict[str, Any]]:
    return {key: item for kind, name in keys for key, item in head(kind, name, labels).items()}


def claim(size: str = "1Gi", storage_class: str | None = "standard", *access: str) -> dict[str, Any]:
    """A claim as the cluster has it."""
    spec = {"accessModes": list(access or ["ReadWriteOnce"]), "resources": {"requests": {"storage": size}}}
    return {"spec": {**spec, **({"storageClassName": storage_class} if storage_class else {})}}


def read(project: Project, text: str = TEXT) -> Reading:
    return project(text).write({"conf": "x"}).read(namespace="team")


def report_of(reading: Reading, live_state: LiveState, *replaced_volumes: str) -> Report:
    """The message about a definition before it is deployed."""
    assert reading.plan is not None, reading.messages
    report = Report()
    check_live_state(reading.plan, live_state, reading.loaded.origins, report, replaced_volumes=replaced_volumes)
    return report


def messages_of(reading: Reading, live_state: LiveState, *replaced_volumes: str) -> list[str]:
    return lines(report_of(reading, live_state, *replaced_volumes).sorted())


# objects of others ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "place", "path"),
    [
        pytest.param(CLAIM, "data", "9:9", "volumes.data", id="claim"),
        pytest.param("Secret", "web-env", "3:5", "services.web", id="environment"),
        pytest.param("Secret", "web-files", "3:5", "services.web", id="files"),
        pytest.param("Service", "web", "3:5", "services.web", id="cluster-service"),
        pytest.param("StatefulSet", "web", "3:5", "services.web", id="workload"),
        pytest.param("Job", "my-job", "7:11", "services.My_Job", id="cleaned-name"),
        pytest.param("Ingress", "demo", "10:12", "endpoints.demo", id="endpoint"),
    ],
)
def test_an_object_of_someone_else(project: Project, kind: str, name: str, place: str, path: str) -> None:
    """An object that is in the way is named with its kind, at the part of the file that wants its name."""
    live_state = LiveState(object_metadata=head(kind, name, None))

    message = f"{path} needs the name of {kind} '{name}', which is in namespace 'team' already"
    assert messages_of(read(project), live_state) == [
        f"compose.yaml:{place}: error: {message} and belongs to someone else [ownership-conflict]"
    ]


@pytest.mark.parametrize(
    ("labels", "whose"),
    [
        pytest.param({}, "someone else", id="nobody's"),
        pytest.param({"dev.platform.com/environment": "demo"}, "someone else", id="of-nobody-for-this-environment"),
        pytest.param({"app.kubernetes.io/managed-by": "Helm"}, "'Helm'", id="another-tool's"),
        pytest.param(
            {**OWN_LABELS, "app.kubernetes.io/managed-by": "Helm"}, "'Helm'", id="another-tool's-of-that-name"
        ),
        pytest.param({**OWN_LABELS, "dev.platform.com/environment": "stage"}, "environment 'stage'", id="of-another"),
        pytest.param(
            {"app.kubernetes.io/managed-by": "composeplat"},
            "no environment: it lacks the label dev.platform.com/environment",
            id="of-no-environment",
        ),
    ],
)
def test_the_owner_of_an_object(project: Project, labels: Mapping[str, str], whose: str) -> None:
    """The message says whose the object is, as far as its labels do."""
    (diagnostic,) = report_of(read(project), LiveState(object_metadata=head("Service", "web", labels))).sorted()

    assert diagnostic.message == (
        "services.web needs the name of Service 'web', which is in namespace 'team' already and belongs to " + whose
    )
    ways = {
        "someone else": "take it over with 'platform import', ",
        "environment 'stage'": "if the name was changed: --name stage continues that one; or ",
        "no environment: it lacks the label dev.platform.com/environment": "if it is of this environment:"
        " kubectl label service web --namespace team dev.platform.com/environment=demo; or ",
    }
    way = ways.get(whose, "remove the other, ")
    assert diagnostic.hint == f"{way}rename it here, or deploy into another namespace with --namespace"


def test_every_object_in_the_way(project: Project) -> None:
    """All that is in the way is reported in one run."""
    reading = read(project)
    assert reading.plan is not None
    wanted = object_keys(reading.plan.objects)

    report = report_of(reading, LiveState(object_metadata=object_metadata(wanted, {})))

    assert len(wanted) == 9
    assert report.errors == 9


def test_own_objects(project: Project) -> None:
    """Objects that carry this environment's labels are taken up, and those of others under other names don't matter."""
    reading = read(project)
    assert reading.plan is not None
    taken_up = object_metadata(object_keys(reading.plan.objects), OWN_LABELS)
    live_state = LiveState(
        object_metadata={**taken_up, **head("Deployment", "web", {}), **head("Service", "other", {})},
        claims={"data": claim("2Gi")},
    )

    assert messages_of(reading, live_state) == []


def test_an_empty_namespace(project: Project) -> None:
    """Where nothing is, nothing is in the way."""
    assert messages_of(read(project), LiveState(namespace=False)) == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param(OWN_LABELS, True, id="both-labels"),
        pytest.param({**OWN_LABELS, "more": "x"}, True, id="with-others"),
        pytest.param({**OWN_LABELS, "dev.platform.com/environment": "demo2"}, False, id="another-environment"),
        pytest.param({"dev.platform.com/environment": "demo"}, False, id="no-manager"),
        pytest.param({}, False, id="no-labels"),
        pytest.param(None, False, id="no-map-of-labels"),
    ],
)
def test_is_ours(labels: Mapping[str, str] | None, *, expected: bool) -> None:
    """Two labels together make an object ours."""
    (values,) = head("Service", "web", labels).values()

    assert expected == belongs_to(values, "demo")


def test_ours() -> None:
    """Of what a namespace holds, an environment's objects are found by their labels."""
    live_state = LiveState(object_metadata={**head("Service", "a"), **head("Service", "b", {}), **head(CLAIM, "a")})

    assert list(live_state.ours("demo")) == [("Service", "a"), (CLAIM, "a")]


def test_ending() -> None:
    """Objects that are being deleted are distinguished from those that stay, and from those that are not there."""
    live_state = LiveState(object_metadata={**head("Service", "a"), **head("Job", "b")})
    live_state.object_metadata["Job", "b"]["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"

    assert live_state.ending([("Service", "a"), ("Job", "b"), ("Job", "c")]) == [("Job", "b")]


# volumes --------------------------------------------------------------------------------------------------------------

VOLUME = "services: {web: {image: x, volumes: ['data:/data']}}\nvolumes:\n  data: {%s}\n"


def of_volume(project: Project, written: str, live: dict[str, Any], *replaced: str, **expandable: bool) -> list[str]:
    """The message about a volume that is there already, but for what every such message has."""
    live_state = LiveState(object_metadata=head(CLAIM, "data"), claims={"data": live}, expandable=expandable)
    start = "compose.yaml:3:9: error: volumes.data can't be changed without losing its data: the file changes "
    end = " [volume-replacement]"
    messages = messages_of(read(project, VOLUME % written), live_state, *replaced)
    assert all(message.startswith(start) and message.endswith(end) for message in messages), messages
    return [message[len(start) : -len(end)] for message in messages]


@pytest.mark.parametrize(
    ("written", "live"),
    [
        pytest.param("", claim("1Gi"), id="usual"),
        pytest.param("", claim("1Gi", None), id="no-class"),
        pytest.param("size: 2Gi", claim("2Gi"), id="size"),
        pytest.param("size: 1.5Gi", claim("1536Mi"), id="size-in-another-unit"),
        pytest.param("class: fast", claim("1Gi", "fast"), id="class"),
        pytest.param("x-access-mode: ReadWriteMany", claim("1Gi", "standard", "ReadWriteMany"), id="access"),
        pytest.param("size: 8M", claim("8M"), id="unit-of-thousands-which-is-no-mebibyte"),
    ],
)
def test_a_kept_volume(project: Project, written: str, live: dict[str, Any]) -> None:
    """A volume that is as the file says is no matter, nor is a class that the file leaves to the cluster."""
    assert of_volume(project, written, live) == []


@pytest.mark.parametrize(
    ("written", "live", "expandable", "changes"),
    [
        pytest.param("class: fast", claim(), True, "its storage class from standard to fast", id="class"),
        pytest.param("class: fast", claim("1Gi", None), True, "its storage class from (none) to fast", id="added"),
        pytest.param(
            "x-access-mode: ReadWriteMany", claim(), True, "its access from ReadWriteOnce to ReadWriteMany", id="access"
        ),
        pytest.param("", claim("3Gi"), True, "its size from 3Gi to 1Gi", id="shrink"),
        pytest.param("", claim("3Gi"), False, "its size from 3Gi to 1Gi", id="shrink-what-can't-grow"),
        pytest.param(
            "size: 2Gi", claim(), False, "its size from 1Gi to 2Gi, which its storage class does not allow", id="grow"
        ),
        pytest.param(
            "size: 1Gi, class: fast, x-access-mode: ReadWriteMany",
            claim("2Gi"),
            True,
            "its storage class from standard to fast and its access from ReadWriteOnce to ReadWriteMany"
            " and its size from 2Gi to 1Gi",
            id="everything",
        ),
    ],
)
def test_a_change_that_would_cost_data(
    project: Project, written: str, live: dict[str, Any], changes: str, *, expandable: bool
) -> None:
    """A change that Kubernetes can't make in place is refused, with all that would change."""
    assert of_volume(project, written, live, standard=expandable) == [changes]


def test_a_volume_that_grows(project: Project) -> None:
    """A volume grows where its storage class allows that; what other classes allow does not matter."""
    assert of_volume(project, "size: 2Gi", claim("1Gi"), standard=True) == []
    assert of_volume(project, "size: 2Gi", claim("1Gi"), other=True) == [
        "its size from 1Gi to 2Gi, which its storage class does not allow"
    ]


def test_a_volume_without_storage_can_not_grow(project: Project) -> None:
    """The API server lets a claim grow that is bound, and no other."""
    waiting = {**claim("1Gi"), "status": {"phase": "Pending"}}
    assert of_volume(project, "size: 1Gi", waiting, standard=True) == []
    assert of_volume(project, "size: 2Gi", waiting, standard=True) == [
        "its size from 1Gi to 2Gi, which a claim without storage does not allow"
    ]


def test_a_volume_without_a_class_can_not_grow(project: Project) -> None:
    """A claim that was bound without a class has nobody who could make it grow."""
    assert of_volume(project, "size: 2Gi", claim("1Gi", None), standard=True) == [
        "its size from 1Gi to 2Gi, which its storage class does not allow"
    ]


@pytest.mark.parametrize(
    ("live", "fix"),
    [
        pytest.param(claim("2Gi"), "give it the size that it has: size: 2Gi", id="grown-in-the-cluster"),
        pytest.param(claim("2Gi", "standard", "ReadOnlyMany"), "undo that", id="another-access-too"),
    ],
)
def test_the_fix(project: Project, live: dict[str, Any], fix: str) -> None:
    """The hint has the change that keeps the volume, and names the option that lets the data go."""
    text = "services: {web: {image: x, volumes: ['My_Data:/data']}}\nvolumes: {My_Data: {}}\n"
    live_state = LiveState(object_metadata=head(CLAIM, "my-data"), claims={"my-data": live})

    (diagnostic,) = report_of(read(project, text), live_state).sorted()

    assert diagnostic.path == ("volumes", "My_Data")
    assert diagnostic.hint == f"{fix}, or use --replace-volume My_Data, which deletes the volume and its data"


def test_replace_volume(project: Project) -> None:
    """A volume that is named to be recreated may change; another name lets nothing through."""
    assert of_volume(project, "", claim("3Gi"), "data") == []
    assert of_volume(project, "", claim("3Gi"), "other") == ["its size from 3Gi to 1Gi"]


def test_replace_volume_of_someone_else(project: Project) -> None:
    """A claim that is not ours is not recreated, even where its volume is named."""
    live_state = LiveState(object_metadata=head(CLAIM, "data", {}), claims={"data": claim()})

    assert [diagnostic.code for diagnostic in report_of(read(project), live_state, "data").sorted()] == [
        "ownership-conflict"
    ]


# previews -------------------------------------------------------------------------------------------------------------

HEADLESS = "services: {web: {image: x}, api: {image: x, ports: ['80'], deploy: {endpoint_mode: dnsrr}}}\n"


def service_names(plan: Plan) -> list[str]:
    return [desired.name for desired in plan.objects if desired.kind == "Service"]


def live_service(name: str, address: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"clusterIP": address}}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param([], ["web", "api"], id="none-there"),
        pytest.param([("web", "None"), ("api", "None")], ["web", "api"], id="as-before"),
        pytest.param([("web", "10.0.0.1"), ("api", "None")], ["web-replaced", "api"], id="loses-its-address"),
        pytest.param([("other", "10.0.0.1")], ["web", "api"], id="others"),
    ],
)
def test_a_service_with_a_changed_address(project: Project, live: list[tuple[str, str]], expected: list[str]) -> None:
    """A preview gives another name to a Service whose address comes or goes, as it can't be changed in place."""
    plan = read(project, HEADLESS).plan
    assert plan is not None

    renamed = rename_replaced(plan, [live_service(name, address) for name, address in live])

    assert expected == service_names(renamed)
    assert service_names(plan) == ["web", "api"]


def test_a_service_that_gets_an_address(project: Project) -> None:
    """The same holds for one that was without an address."""
    plan = read(project).plan
    assert plan is not None

    renamed = rename_replaced(plan, [live_service("web", "None"), live_service("my-job", "None")])

    assert service_names(renamed) == ["web-replaced", "my-job"]


@pytest.mark.parametrize("name", ["web", "web-replaced"], ids=["deploy", "preview"])
def test_the_anonymous_volume_that_a_service_had(project: Project, name: str) -> None:
    """A StatefulSet that gets another anonymous volume leaves its claims; in a preview it has another name."""
    plan = read(project, "name: demo\nservices: {web: {image: x, volumes: [/new]}}").plan
    assert plan is not None
    labels = {**OWN_LABELS, "dev.platform.com/environment": plan.environment, "dev.platform.com/service": "web"}
    claims = [(CLAIM, f"anonymous-{path}-web-0") for path in ("new", "old")]
    live_state = LiveState(object_metadata=object_metadata(claims, labels))

    assert left_claims(plan, live_state, {("StatefulSet", name)}) == ["anonymous-old-web-0"]
    assert left_claims(plan, live_state, {("Deployment", name), ("StatefulSet", "other")}) == []


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}, "web-replaced", id="rolls"),
        pytest.param({"type": "Recreate"}, "web", id="as-before"),
    ],
)
def test_a_deployment_that_no_longer_rolls(project: Project, strategy: dict[str, Any], expected: str) -> None:
    """A preview gives another name to a Deployment that is replaced, as its update policy can't be changed in place."""
    plan = read(project, "services: {web: {image: x, labels: {dev.platform.com/update: recreate}}}").plan
    assert plan is not None
    live = [{"metadata": {"name": name}, "spec": {"strategy": strategy}} for name in ("web", "other")]

    renamed = rename_replaced(plan, [], (), live)

    assert [(found.kind, found.name) for found in renamed.objects] == [("Service", "web"), ("Deployment", expected)]


def test_an_object_that_the_api_server_refuses_to_update(project: Project) -> None:
    """A preview gives it another name; an object of another kind or name keeps its own."""
    plan = read(project, "services: {web: {image: x, volumes: [/data]}}").plan
    assert plan is not None

    renamed = rename_replaced(plan, [], refused={("StatefulSet", "web"), ("Service", "other")})

    assert [(found.kind, found.name) for found in renamed.objects] == [
        ("Service", "web"),
        ("StatefulSet", "web-replaced"),
    ]


# volumes that may be replaced -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live", "has_to_be"),
    [
        pytest.param({}, False, id="not-there"),
        pytest.param({"data": claim("2Gi")}, False, id="as-it-is"),
        pytest.param({"data": claim("3Gi")}, True, id="shrinks"),
        pytest.param({"data": claim("2Gi", "standard", "ReadWriteMany")}, True, id="other-access"),
    ],
)
def test_a_volume_is_replaced_only_if_it_has_to_be(
    project: Project, live: dict[str, dict[str, Any]], *, has_to_be: bool
) -> None:
    """To allow that a volume is replaced does not replace one that can stay."""
    plan = read(project).plan
    assert plan is not None

    assert volumes_to_replace(plan, LiveState(claims=live), ["data"]) == {"data": has_to_be}


SHARED = """\
services:
  web: {image: x, volumes: ['data:/data']}
  worker: {image: x, volumes: ['data:/data'], depends_on: [db]}
  db: {image: x, volumes: ['rows:/rows']}
volumes: {data: {}, rows: {}}
"""


@pytest.mark.parametrize(
    ("services", "volume", "left_out"),
    [
        pytest.param((), "data", "", id="all-services"),
        pytest.param(("web", "worker"), "data", "", id="all-its-users"),
        pytest.param(("worker",), "rows", "", id="a-dependency"),
        pytest.param(("web",), "data", "these mount it: web, worker", id="one-of-its-users"),
        pytest.param(("web",), "rows", "these mount it: db", id="another-service"),
    ],
)
def test_a_volume_of_services_that_are_left_alone(
    project: Project, services: tuple[str, ...], volume: str, left_out: str
) -> None:
    """A deploy of some services deletes no volume whose other users it would not make again."""
    plan = read(project, SHARED).plan
    assert plan is not None
    live_state = LiveState(claims={volume: claim("3Gi")})

    if not left_out:
        assert volumes_to_replace(plan, live_state, [volume], services) == {volume: True}
        return
    with pytest.raises(ComposeplatError) as caught:
        volumes_to_replace(plan, live_state, [volume], services)
    assert f"{caught.value}" == f"volume '{volume}' can't be replaced by a deploy of some services: {left_out}"


def test_an_unknown_volume(project: Project) -> None:
    """A name that no volume has is refused, with those there are."""
    plan = read(project).plan
    assert plan is not None

    with pytest.raises(ComposeplatError, match="there is no volume 'dta' to replace") as caught:
        volumes_to_replace(plan, LiveState(), ["dta"])
    assert caught.value.hint == "volumes are: data"


def test_a_replaced_volume_in_a_preview(project: Project) -> None:
    """A preview gives another name to a volume that is recreated, and to no other object."""
    plan = read(project).plan
    assert plan is not None

    renamed = rename_replaced(plan, [], ["data"])

    assert renamed.volumes[0].objects[0].manifest["metadata"]["name"] == "data-replaced"
    assert renamed.services == plan.services


# the state ------------------------------------------------------------------------------------------------------------


def resource(kind: str, name: str, token: str = "", **more: Any) -> dict[str, Any]:
    """A resource as the state has it."""
    token = token or f"kubernetes:{KINDS.get(kind, 'v1')}:{kind}"
    inputs = {"kind": kind, "metadata": {"name": name, "namespace": "team"}}
    return {"urn": f"urn:pulumi:team::demo::{token}::{name}", "type": token, "inputs": inputs, **more}


STATE = {
    "resources": [
        {"urn": "urn:pulumi:team::demo::pulumi:pulumi:Stack::demo-team", "type": "pulumi:pulumi:Stack"},
        {
            "urn": "urn:pulumi:team::demo::pulumi:providers:kubernetes::cluster",
            "type": "pulumi:providers:kubernetes",
            "inputs": {"enableServerSideApply": "true"},
        },
        resource(CLAIM, "data"),
        resource("Service", "web"),
        resource("Deployment", "web"),
        resource("Deployment", "old", delete=True),
        resource("Service", "image", "docker-build:index:Image"),
    ]
}


def test_missing_from_cluster() -> None:
    """Objects in the state that the cluster lacks are reported by their URNs, but not a claim of the same name."""
    live_state = LiveState(
        object_metadata={**head("Service", "web"), **head("Job", "web"), **head("Deployment", "old")}
    )

    assert missing_from_cluster(STATE, live_state) == ["urn:pulumi:team::demo::kubernetes:apps/v1:Deployment::web"]


def test_what_is_being_deleted_is_missing() -> None:
    """A deploy waits until such an object is gone, so that the state must lose it; a claim's data are gone with it."""
    ending = {"metadata": {"labels": OWN_LABELS, "deletionTimestamp": "now"}}
    live_state = LiveState(
        object_metadata={
            **head("Deployment", "web"),
            **head("Deployment", "old"),
            ("Service", "web"): ending,
            (CLAIM, "data"): ending,
        }
    )

    assert missing_from_cluster(STATE, live_state) == ["urn:pulumi:team::demo::kubernetes:v1:Service::web"]


def test_a_missing_claim() -> None:
    """A claim that is gone is no drift that is mended in passing: its data are gone too."""
    live_state = LiveState(
        object_metadata={**head("Service", "web"), **head("Deployment", "web"), **head("Deployment", "old")}
    )

    assert missing_from_cluster(STATE, live_state) == []


@pytest.mark.parametrize("state", [{}, {"resources": None}, {"resources": []}])
def test_nothing_in_the_state(state: Mapping[str, Any]) -> None:
    """A state without resources misses nothing and knows nothing."""
    assert (missing_from_cluster(state, LiveState()), known_to_state(state)) == ([], set())


def test_images_that_were_built() -> None:
    """An image whose build has failed has no ID, and other resources are no images."""
    state = {
        "resources": [
            {"type": "docker-build:index:Image", "urn": "built", "id": "sha256:1"},
            {"type": "docker-build:index:Image", "urn": "failed", "id": ""},
            {"type": "kubernetes:core/v1:Secret", "urn": "secret", "id": "team/web-env"},
        ]
    }
    assert built_images(state) == {"built"}


def test_resources_of_another_program() -> None:
    """Those of the platform's program are below its component, or Pulumi's own; all others are named."""
    kinds = {
        "pulumi:pulumi:Stack": "demo-team",
        "pulumi:providers:kubernetes": "cluster",
        "composeplat:index:ComposeStack": "demo",
        "composeplat:index:ComposeStack$composeplat:index:Service": "demo-service/web",
        "aws:s3/bucket:Bucket": "uploads",
    }
    resources = [
        {"type": kind.rpartition("$")[2], "urn": f"urn:pulumi:team::demo::{kind}::{name}"}
        for kind, name in kinds.items()
    ]
    assert resources_of_others({"resources": resources}, "demo") == ["aws:s3/bucket:Bucket 'uploads'"]
    assert resources_of_others({}, "demo") == []


def test_known_to_state() -> None:
    """The state knows the objects that it has for good: none that is to be deleted, and no resource of others."""
    assert known_to_state(STATE) == {(CLAIM, "data"), ("Service", "web"), ("Deployment", "web")}


def test_unknown_to_state(project: Project) -> None:
    """What is there of the environment and not in the state is unknown to it; what is others', or going, is not."""
    plan = read(project).plan
    assert plan is not None
    wanted = object_keys(plan.objects)
    going = {"metadata": {"labels": OWN_LABELS, "deletionTimestamp": "now"}}
    live_state = LiveState(
        object_metadata={
            **{key: {"metadata": {"labels": OWN_LABELS}} for key in wanted},
            ("Deployment", "old"): going,
        }
    )

    assert set(wanted) - known_to_state(STATE) == set(unknown_to_state(plan, STATE, live_state))
    assert unknown_to_state(plan, {}, LiveState(object_metadata=dict.fromkeys(wanted, going))) == []
    assert unknown_to_state(plan, {}, LiveState(object_metadata={key: {"metadata": {}} for key in wanted})) == []


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param([], "", id="empty"),
        pytest.param([resource("Service", "web")], "", id="without-a-provider"),
        pytest.param(
            [{"type": "pulumi:providers:kubernetes", "inputs": {"clusterIdentifier": "8a1f"}}], "8a1f", id="named"
        ),
    ],
)
def test_which_cluster_a_state_is_about(resources: list[dict[str, Any]], expected: str) -> None:
    """A state says by its provider which cluster it is about."""
    assert expected == cluster_of({"resources": resources})


# what can't be seen ---------------------------------------------------------------------------------------------------


def test_missing_from_cluster_where_a_kind_can_not_be_listed() -> None:
    """What can't be seen is not taken for gone; what was asked for by its name and is not there is."""
    manifest = {"kind": "Secret", "metadata": {"name": "web-env"}}
    state = {"resources": [{"urn": "urn:a", "type": "kubernetes:core/v1:Secret", "inputs": manifest}]}
    key = ("Secret", "web-env")

    found = [
        missing_from_cluster(state, live_state)
        for live_state in (LiveState(), LiveState(unlisted={"Secret"}), LiveState(unlisted={"Secret"}, absent={key}))
    ]

    assert found == [["urn:a"], [], ["urn:a"]]


def test_a_volume_that_grows_where_classes_can_not_be_seen(project: Project) -> None:
    """Whether a class can grow is then for the API server to say; a smaller size is refused all the same."""
    reading = read(project)
    live_state = LiveState(object_metadata=head(CLAIM, "data"), claims={"data": claim("1Gi")}, knows_classes=False)
    assert messages_of(reading, live_state) == []

    live_state.claims["data"] = claim("3Gi")
    (line,) = messages_of(reading, live_state)
    assert line.endswith("the file changes its size from 3Gi to 2Gi [volume-replacement]")


def test_claims_that_no_deploy_uses(project: Project) -> None:
    """Of an environment: those of volumes that left the file, and not those of named and anonymous volumes in it."""
    plan = read(project, TEXT.replace("'data:/data'", "'data:/data', /srv")).plan
    assert plan is not None
    (template,) = (
        found["metadata"]["name"]
        for desired in plan.objects
        for found in desired.manifest.get("spec", {}).get("volumeClaimTemplates", ())
    )
    names = ["data", f"{template}-web-0", f"{template}-web-12", f"{template}-api-0", "old"]
    live_state = LiveState(
        object_metadata={
            **object_metadata([(CLAIM, name) for name in names], OWN_LABELS),
            **head(CLAIM, "of-another", {**OWN_LABELS, "dev.platform.com/environment": "blog"}),
        }
    )

    assert unused_claims(plan, live_state) == {f"{template}-api-0", "old"}
