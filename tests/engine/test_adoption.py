"""What of a namespace ``platform import`` takes over, object by object, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from composeplat.engine.adoption import Action, Adoption, LiveObjects, decide
from composeplat.engine.adoption_fields import FieldChange, field_changes, kept_fields, lost_fields, mark_patch
from composeplat.engine.ownership import LAST_APPLIED, owner_of
from composeplat.engine.preflight import LiveState
from composeplat.plan import Plan
from tests.conftest import Project

TEXT = """\
services:
  web:
    image: nginx
    ports: ['8080:80']
  db:
    image: postgres
    expose: [5432]
    volumes: ['data:/var/lib/data']
volumes:
  data: {driver_opts: {size: 100Mi}}
"""
Key = tuple[str, str]
Live = dict[Key, dict[str, Any]]


def kompose(kind: str, name: str, service: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> Live:
    """An object as the cluster has it after ``kubectl apply`` of the output of kompose."""
    own = {
        "name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": {"io.kompose.service": service},
        "annotations": {LAST_APPLIED: "{}", "kompose.version": "1.36.0"}, **metadata,
    }  # fmt: skip
    version = "apps/v1" if kind in ("Deployment", "StatefulSet", "DaemonSet") else "v1"
    return {(kind, name): {"apiVersion": version, "kind": kind, "metadata": own, "spec": dict(spec or {})}}


def deployment(name: str, service: str = "", claim: str = "", path: str = "/var/lib/data", **metadata: Any) -> Live:
    service = service or name
    labels: dict[str, Any] = {"io.kompose.service": service}
    pod: dict[str, Any] = {"containers": [{"name": service, "image": "x"}]}
    if claim:
        pod["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": path}]
        pod["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return kompose("Deployment", name, service, spec, **metadata)


def service(name: str, **spec: Any) -> Live:
    chosen = {"clusterIP": "10.0.0.7", "selector": {"io.kompose.service": name}, "ports": [{"port": 80}], **spec}
    return kompose("Service", name, name, chosen)


def claim(name: str, size: str = "100Mi", **metadata: Any) -> Live:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return kompose("PersistentVolumeClaim", name, name, spec, **metadata)


def everything() -> Live:
    """All that kompose makes for the file above."""
    return {
        **deployment("web"), **service("web"), **deployment("db", claim="data"), **service("db"), **claim("data"),
        **kompose("ConfigMap", "web-env", "web"),
    }  # fmt: skip


def plan_of(project: Project, text: str = TEXT) -> Plan:
    reading = project(text).read(namespace="team")
    assert reading.plan is not None, reading.messages
    return reading.plan


def decisions(project: Project, live: Live, text: str = TEXT, **more: Any) -> dict[Key, Adoption]:
    claims = {name: found for (kind, name), found in live.items() if kind == "PersistentVolumeClaim"}
    state = LiveState(object_metadata=dict(live), claims=claims)
    found = decide(plan_of(project, text), LiveObjects(state=state, objects=live, **more))
    assert len({entry.key for entry in found}) == len(found)
    return {entry.key: entry for entry in found}


def actions(found: Mapping[Key, Adoption]) -> dict[str, str]:
    return {"/".join(key): str(entry.action) for key, entry in found.items()}


def test_objects_of_kompose(project: Project) -> None:
    """Claims and Services stay, workloads get successors, and nothing else of kompose's is touched."""
    found = decisions(project, everything())

    assert actions(found) == {
        "PersistentVolumeClaim/data": "adopt",
        "Service/web": "adopt",
        "Service/db": "adopt",
        "Deployment/web": "hand-over",
        "Deployment/db": "hand-over",
        "ConfigMap/web-env": "leave",
    }
    web, db = found["Deployment", "web"], found["Deployment", "db"]
    assert (web.successor, web.is_in_place, web.is_interrupted) == (("Deployment", "web"), True, False)
    assert (db.successor, db.is_in_place, db.is_interrupted) == (("StatefulSet", "db"), False, True)
    assert web.path == ("services", "web")


def test_an_empty_namespace(project: Project) -> None:
    """Without objects there is nothing to decide."""
    assert decisions(project, {}) == {}


@pytest.mark.parametrize(
    ("policy", "action"),
    [
        ({"whenScaled": "Delete", "whenDeleted": "Retain"}, "refuse"),
        ({"whenScaled": "Retain", "whenDeleted": "Delete"}, "refuse"),
        ({"whenScaled": "Retain", "whenDeleted": "Retain"}, "hand-over"),
        (None, "hand-over"),
    ],
)
def test_claims_that_go_with_their_workload(project: Project, policy: dict[str, str] | None, action: str) -> None:
    """A StatefulSet that deletes its claims with its pods is neither scaled to zero nor deleted."""
    live = {("StatefulSet", "web"): {**deployment("web")["Deployment", "web"], "kind": "StatefulSet"}}
    live["StatefulSet", "web"]["spec"]["persistentVolumeClaimRetentionPolicy"] = policy

    found = decisions(project, live)["StatefulSet", "web"]

    assert found.action == action
    assert ("deletes its claims" in found.reason) == (action == "refuse")


def test_objects_of_the_environment(project: Project) -> None:
    """An object that was taken over is left out, unless an earlier run stopped before kubectl's annotation went."""
    own = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "demo"}
    done, begun = claim("data", labels=own, annotations={}), claim("data", labels=own)

    assert decisions(project, done) == {}
    assert actions(decisions(project, begun)) == {"PersistentVolumeClaim/data": "adopt"}


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        pytest.param({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, "'Helm'", id="helm-label"),
        pytest.param(
            {"annotations": {"meta.helm.sh/release-name": "shop"}}, "Helm release 'shop'", id="helm-annotation"
        ),
        pytest.param({"labels": {"argocd.argoproj.io/instance": "shop"}}, "Argo CD application 'shop'", id="argo"),
        pytest.param({"labels": {"kustomize.toolkit.fluxcd.io/name": "x"}}, "Flux kustomization 'x'", id="flux"),
        pytest.param(
            {"ownerReferences": [{"kind": "Postgres", "name": "main", "uid": "1", "controller": True}]},
            "Postgres 'main'", id="operator",
        ),
        pytest.param(
            {"labels": {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "stage"}},
            "environment 'stage'", id="another-environment",
        ),
        pytest.param(
            {"managedFields": [{"manager": "pulumi-kubernetes-1a2b"}]}, "another Pulumi program", id="pulumi"
        ),
        pytest.param({"labels": {"app.kubernetes.io/managed-by": "kompose"}}, "", id="kompose"),
        pytest.param({}, "", id="by-hand"),
    ],
)  # fmt: skip
def test_owners(project: Project, metadata: dict[str, Any], owner: str) -> None:
    """An object that a tool or a controller would change back is refused, with its owner."""
    live = claim("data", **{"labels": {}, "annotations": {}, **metadata})
    found = decisions(project, live)["PersistentVolumeClaim", "data"]

    assert owner_of(live["PersistentVolumeClaim", "data"]) == owner
    assert found.action is (Action.REFUSE if owner else Action.ADOPT)
    assert found.reason == (f"belongs to {owner}" if owner else "")


@pytest.mark.parametrize(
    ("size", "text", "reason"),
    [
        pytest.param("1Gi", TEXT, "its size from 1Gi to 100Mi", id="smaller"),
        pytest.param(
            "50Mi", TEXT, "its size from 50Mi to 100Mi, which its storage class does not allow", id="can't-grow"
        ),
        pytest.param(
            "100Mi", TEXT.replace("100Mi}", "100Mi, class: fast}"), "its storage class from (none) to fast", id="class"
        ),
    ],
)
def test_a_claim_that_differs(project: Project, size: str, text: str, reason: str) -> None:
    """A claim that could only be recreated is refused: its data stays."""
    found = decisions(project, claim("data", size), text)["PersistentVolumeClaim", "data"]

    assert found.action is Action.REFUSE
    assert found.reason == f"can't be changed without losing its data: {reason}"


def test_data_in_another_claim(project: Project) -> None:
    """A workload whose data is in a claim of another name is refused, with the lines that use it."""
    found = decisions(project, {**deployment("db", claim="db-claim0"), **claim("db-claim0")})

    db = found["Deployment", "db"]
    assert db.action is Action.REFUSE
    assert (
        db.reason == "has its data for /var/lib/data in claim 'db-claim0', and the file's volume is another one, 'data'"
    )
    assert db.hint == ("use that claim, in full mode: volumes: {data: {name: db-claim0}} with x-platform: {full: true}")


def test_data_in_a_claim_of_a_template(project: Project) -> None:
    """The claim that a StatefulSet has made of a template counts as one of another name."""
    live = deployment("db")
    workload = {**live["Deployment", "db"], "kind": "StatefulSet"}
    workload["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "pgdata"}}]
    workload["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "pgdata", "mountPath": "/var/lib/data"}
    ]
    found = decisions(project, {("StatefulSet", "db"): workload})["StatefulSet", "db"]

    assert found.action is Action.REFUSE
    assert "in claim 'pgdata-db-0'" in found.reason


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"type": "LoadBalancer"}, "is a Service of type LoadBalancer", id="outside"),
        pytest.param({"type": "NodePort"}, "is a Service of type NodePort", id="node-port"),
        pytest.param({"clusterIP": "None"}, "has no address of its own", id="headless"),
    ],
)
def test_addresses(project: Project, spec: dict[str, Any], reason: str) -> None:
    """A Service that would lose its address is refused."""
    found = decisions(project, service("web", **spec))["Service", "web"]

    assert found.action is Action.REFUSE
    assert found.reason.startswith(reason)


def test_an_address_that_the_file_lacks(project: Project) -> None:
    """Without ports in the file, a Service would become headless: the message has the ports."""
    text = "services:\n  web: {image: nginx}\n"
    found = decisions(project, service("web"), text)["Service", "web"]

    assert (found.action, found.reason) == (Action.REFUSE, "has an address, and would lose it")
    assert found.hint == "list its ports in the file, under 'expose': 80"


def test_a_workload_that_selects_the_same_pods(project: Project) -> None:
    """A workload with our own selector, as 'platform render' gives it, stays the object that it is."""
    (own,) = [d.manifest for d in plan_of(project).objects if (d.kind, d.name) == ("Deployment", "web")]
    live = {("Deployment", "web"): {**own, "metadata": {"name": "web", "uid": "1", "labels": {}}}}

    assert actions(decisions(project, live)) == {"Deployment/web": "adopt"}


def test_a_workload_of_another_name(project: Project) -> None:
    """The label of kompose says which service a workload of another name is for."""
    found = decisions(project, deployment("web-app", "web"))["Deployment", "web-app"]

    assert (found.action, found.successor, found.is_in_place) == (Action.HAND_OVER, ("Deployment", "web"), True)


def test_a_workload_of_another_project(project: Project) -> None:
    """Objects without a name or a label of the file are not mentioned."""
    assert decisions(project, {**deployment("mail"), **claim("mail"), **service("mail")}) == {}


def test_a_service_of_another_name(project: Project) -> None:
    """A Service that leads to pods which are handed over is kept, and leads to the new ones."""
    other = kompose("Service", "web-tcp", "web", {"type": "LoadBalancer", "selector": {"io.kompose.service": "web"}})
    found = decisions(project, {**deployment("web"), **other})["Service", "web-tcp"]

    assert found.action is Action.FOLLOW
    assert found.selector == {"dev.platform.com/environment": "demo", "dev.platform.com/service": "web"}


@pytest.mark.parametrize("second", ["db", "legacy"], ids=["of-the-file", "of-somebody-else"])
def test_a_service_of_several_workloads(project: Project, second: str) -> None:
    """A Service that leads to pods of another workload too keeps its selector: it would lose those pods."""
    live = {**deployment("web"), **deployment(second), **kompose("Service", "all", "", {"selector": {"app": "shop"}})}
    for name in ("web", second):
        live["Deployment", name]["spec"]["template"]["metadata"]["labels"]["app"] = "shop"
    found = decisions(project, live)["Service", "all"]

    assert found.action is Action.LEAVE
    assert found.reason == "it leads to pods of several workloads, and will not lead to the new ones"


def test_a_policy_that_loses_its_pods(project: Project) -> None:
    """A NetworkPolicy that selects the old pods is listed, as it will select none."""
    spec = {"podSelector": {"matchLabels": {"io.kompose.service": "web"}}}
    policy = kompose("NetworkPolicy", "closed", "", spec, labels={})
    found = decisions(project, {**deployment("web"), **policy})["NetworkPolicy", "closed"]

    assert (found.action, found.reason) == (Action.LEAVE, "it selects pods by labels that the new pods lack")


def test_what_the_api_server_refuses(project: Project) -> None:
    """The reason of the API server is the reason of the refusal, for an object and for a successor."""
    refused = {("Service", "web"): "no", ("StatefulSet", "db"): "never"}
    found = decisions(project, everything(), refused=refused)

    assert found["Service", "web"].reason == "can't become the plan's: no"
    assert found["Deployment", "db"].reason == "can't be followed by the plan's StatefulSet: never"


def test_an_object_that_is_being_deleted(project: Project) -> None:
    """An object that is being deleted is not taken over."""
    found = decisions(project, claim("data", deletionTimestamp="2026-01-01T00:00:00Z"))

    assert found["PersistentVolumeClaim", "data"].reason == "is being deleted"


# fields ---------------------------------------------------------------------------------------------------------------


def test_fields_that_change() -> None:
    """Fields are compared by their keys; values that may be confidential are left out."""
    before = {
        "metadata": {"name": "web", "uid": "1", "managedFields": [1]},
        "spec": {"ports": [{"port": 80, "name": "80"}, {"port": 81}], "type": "ClusterIP"},
        "data": {"password": "old"},
        "status": {"x": 1},
    }
    after = {
        "metadata": {"name": "web", "uid": "1", "labels": {"a": "b"}},
        "spec": {"ports": [{"port": 81}, {"port": 80, "name": "tcp-80"}], "type": "ClusterIP"},
        "data": {"password": "new"},
    }

    assert set(field_changes(before, after)) == {
        FieldChange("spec.ports[80/TCP].name", "80", "tcp-80"),
        FieldChange("data.password"),
        FieldChange("metadata.labels.a", None, "b"),
    }


def managed(manager: str, **fields: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields}


def test_variables_of_one_name() -> None:
    """Two variables of one name, which the API server allows, are no reason to show the values of all."""

    def with_variables(*variables: dict[str, str]) -> dict[str, Any]:
        return {"metadata": {}, "spec": {"containers": [{"name": "web", "env": list(variables)}]}}

    before = with_variables({"name": "A", "value": "secret"}, {"name": "A", "value": "other"})

    assert field_changes(before, with_variables({"name": "A", "value": "new"})) == (
        FieldChange("spec.containers[web].env"),
    )


def test_fields_that_stay() -> None:
    """Fields of kubectl and kompose that the plan lacks are listed; those of controllers and defaults are not."""
    port = 'k:{"port":9000,"protocol":"TCP"}'
    labels: dict[str, Any] = {"f:metadata": {"f:labels": {"f:io.kompose.service": {}, "f:ours": {}}}}
    found = {
        "metadata": {
            "managedFields": [
                managed("kubectl-client-side-apply", **labels, **{"f:spec": {"f:ports": {port: {"f:name": {}}}}}),
                managed("composeplat", **{"f:metadata": {"f:labels": {"f:ours": {}}}}),
                managed("kube-controller-manager", **{"f:spec": {"f:x": {}}}),
                managed("kubectl-create", **{"f:spec": {"f:volumeMode": {}, "f:sessionAffinity": {}}}),
            ]
        },
        "spec": {"volumeMode": "Filesystem", "sessionAffinity": "ClientIP"},
    }

    assert kept_fields(found) == (
        'metadata.labels["io.kompose.service"]',
        "spec.ports[9000/TCP].name",
        "spec.sessionAffinity",
    )


def test_fields_that_others_took() -> None:
    """Of the fields that another manager has, those count that the manifest has and we no longer own."""

    def template(**fields: Any) -> dict[str, Any]:
        container = {'k:{"name":"web"}': {".": {}, **{f"f:{name}": value for name, value in fields.items()}}}
        return {"f:spec": {"f:template": {"f:spec": {"f:containers": container}}}}

    port: dict[str, Any] = {'k:{"containerPort":80,"protocol":"TCP"}': {"f:containerPort": {}}}
    env: dict[str, Any] = {'k:{"name":"A"}': {"f:value": {}}, 'k:{"name":"MORE"}': {"f:value": {}}}
    status = {**managed("kube-controller-manager", **template(command={})), "subresource": "status"}
    metadata = {
        "managedFields": [
            managed("composeplat", **template(name={}, args={})),
            managed("kubectl-set", **template(image={}, args={}, env=env, livenessProbe={}, ports=port)),
            status,
        ]
    }
    container = {"name": "web", "image": "app", "args": ["a"], "command": ["b"], "env": [{"name": "A", "value": "b"}]}
    manifest = {"spec": {"template": {"spec": {"containers": [container]}}}}

    assert lost_fields(metadata, manifest) == {
        "spec.template.spec.containers[web].env[A].value": "kubectl-set",
        "spec.template.spec.containers[web].image": "kubectl-set",
    }
    assert lost_fields({}, manifest) == {}


def test_field_managers() -> None:
    """The field manager and the annotation of kubectl go, in one patch for the version that was seen."""
    (found,) = claim("data").values()
    controller = managed("kube-controller-manager")
    found["metadata"]["managedFields"] = [managed("kubectl-client-side-apply"), controller]
    patch = mark_patch(found, {"a": "b"})["metadata"]

    assert (patch["uid"], patch["resourceVersion"]) == ("uid-data", "7")
    assert patch["annotations"] == {LAST_APPLIED: None}
    assert [entry["manager"] for entry in patch["managedFields"]] == ["kube-controller-manager", "composeplat"]


def test_a_cron_job_of_others(project: Project) -> None:
    """In place it would keep a container of another name beside that of the file, and run both."""
    text = "x-platform: {full: true}\nservices: {backup: {image: x, restart: 'no', x-schedule: '@daily'}}"
    pod = {"containers": [{"name": "main", "image": "x"}]}
    live = kompose("CronJob", "backup", "backup", {"jobTemplate": {"spec": {"template": {"spec": pod}}}})
    (entry,) = decisions(project, live, text).values()

    assert (entry.action, entry.successor, entry.is_in_place) == (Action.HAND_OVER, ("CronJob", "backup"), True)
    assert not entry.is_interrupted


def test_an_own_cron_job_that_was_applied_by_hand(project: Project) -> None:
    """It is of the environment, and stays."""
    text = "x-platform: {full: true}\nservices: {backup: {image: x, restart: 'no', x-schedule: '@daily'}}"
    environment = plan_of(project, text).environment
    labels = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": environment}
    live = kompose("CronJob", "backup", "backup", {"jobTemplate": {"spec": {"template": {"spec": {}}}}}, labels=labels)
    (entry,) = decisions(project, live, text).values()

    assert entry.action is Action.ADOPT
