"""The dev workload of a workload, as data."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from composeplat.dev.dev_workload import (
    DevWorkloadInputs,
    dev_workload_name,
    fingerprint,
    make_dev_workload,
    make_sync_volume,
    recorded_original,
    recorded_template,
    sync_volume_name,
)
from composeplat.dev.sync_rules import SyncPath
from composeplat.engine.dev_workloads import OriginalWorkload
from composeplat.plan.identity import Identity

IDENTITY = Identity(environment="shop", namespace="dev")
FOLDER = SyncPath(local="/src", remote="/app")
FILE = SyncPath(local="/src/web.conf", remote="/etc/web.conf", is_file=True)
ORIGINAL_ANNOTATION = OriginalWorkload(kind="Deployment", name="web", replicas=3)


def workload(kind: str = "Deployment", **more: Any) -> dict[str, Any]:
    container = {
        "name": "web",
        "image": "shop/web@sha256:1",
        "args": ["serve"],
        "command": ["/start"],
        "env": [{"name": "A", "value": "1"}],
        "readinessProbe": {"exec": {"command": ["true"]}},
        "livenessProbe": {"exec": {"command": ["true"]}},
        "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "1"}},
        "securityContext": {"runAsUser": 1000},
        "volumeMounts": [
            {"name": "host-files", "mountPath": "/etc/web.conf", "subPath": "k"},
            {"name": "data", "mountPath": "/app/data"},
        ],
    }
    pod = {
        "containers": [container],
        "serviceAccountName": "web",
        "terminationGracePeriodSeconds": 90,
        "volumes": [
            {"name": "host-files", "secret": {"secretName": "web-files"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    }
    template = {"metadata": {"labels": IDENTITY.pod_labels("web")}, "spec": pod}
    return {"kind": kind, "metadata": {"name": "web"}, "spec": {"replicas": 3, "template": template, **more}}


def dev_workload(of: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    inputs = DevWorkloadInputs(
        identity=IDENTITY, service="web", helper="r/agent@sha256:2", **{"paths": (FOLDER, FILE), **more}
    )
    return make_dev_workload(of or workload(), ORIGINAL_ANNOTATION, inputs, replicas=1)


def pod(**more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = dev_workload(**more)["spec"]["template"]["spec"]
    return spec


def test_it_is_found_by_the_same_service() -> None:
    """Its pods carry the labels that the cluster's Service selects."""
    labels = dev_workload()["spec"]["template"]["metadata"]["labels"]
    assert IDENTITY.selector("web").items() <= labels.items()


def test_it_does_not_select_the_originals_pods() -> None:
    """What it selects has a mark that only its own pods carry."""
    assert dev_workload()["spec"]["selector"]["matchLabels"]["dev.platform.com/up"] == "web"


def test_it_belongs_to_the_environment() -> None:
    """It is ours, so that the end of the environment is its end."""
    labels = dev_workload()["metadata"]["labels"]
    assert IDENTITY.service_labels("web").items() <= labels.items()


def test_it_remembers_the_original() -> None:
    """Anyone who finds it can give the original back."""
    assert recorded_original(dev_workload()) == ORIGINAL_ANNOTATION


def test_a_dev_workload_without_its_annotation() -> None:
    """An object without the memory, or with a broken one, names no original."""
    broken = dev_workload()
    broken["metadata"]["annotations"]["dev.platform.com/up-original"] = "{"
    assert [recorded_original(broken), recorded_original({"metadata": {}})] == [None, None]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"kind": "Secret", "name": "web", "replicas": 1}', id="kind"),
        pytest.param('{"kind": "Deployment", "name": "../../other/deployments/web", "replicas": 1}', id="path"),
        pytest.param('{"kind": "Deployment", "name": "web/scale?dryRun=All", "replicas": 1}', id="query"),
        pytest.param('{"kind": "Deployment", "name": "web", "replicas": -1}', id="negative"),
        pytest.param('{"kind": "Deployment", "name": "web", "replicas": 1e99}', id="large"),
        pytest.param('{"kind": "Deployment", "name": "web", "replicas": 1e999}', id="infinite"),
    ],
)
def test_an_annotation_that_someone_else_has_written(text: str) -> None:
    """Everyone who may change Deployments can write it: it names no other object than a workload of the namespace."""
    written = dev_workload()
    written["metadata"]["annotations"]["dev.platform.com/up-original"] = text
    assert recorded_original(written) is None


def test_it_remembers_the_template() -> None:
    """A later deploy can be reported from the one it was made after."""
    assert recorded_template(dev_workload()) == fingerprint(workload())


def test_the_original_is_left_as_it_was() -> None:
    """What came in from the cluster is not changed."""
    given = workload()
    before = copy.deepcopy(given)
    dev_workload(given)
    assert before == given


@pytest.mark.parametrize(
    "key",
    ["image", "env", "securityContext"],
)
def test_the_container_is_the_same(key: str) -> None:
    """Image, environment and user are the original's."""
    assert pod()["containers"][0][key] == workload()["spec"]["template"]["spec"]["containers"][0][key]


def test_the_service_account_is_the_same() -> None:
    """What the program may ask the cluster for is what it may when deployed."""
    assert pod()["serviceAccountName"] == "web"


def test_nothing_watches_its_health() -> None:
    """A program that is stopped by a debugger is not killed for it."""
    assert not {"readinessProbe", "livenessProbe", "args"} & pod()["containers"][0].keys()


def test_limits_are_removed_and_requests_kept() -> None:
    """A compiler needs more than the program it makes."""
    assert pod()["containers"][0]["resources"] == {"requests": {"cpu": "1"}}


def test_limits_stay_where_the_namespace_counts_them() -> None:
    """A quota refuses pods of which a container, one that runs before included, has no limits."""
    made = pod(keeps_limits=True)
    resources = [row["resources"] for row in (*made["containers"], *made["initContainers"])]
    assert resources == [{"limits": {"memory": "64Mi"}, "requests": {"cpu": "1"}}] * 3


def test_volumes_are_not_given_to_a_group() -> None:
    """Kubernetes would open the folders in them: root makes the folders that are synced, for any user."""
    assert pod()["securityContext"] == {}


def test_the_group_of_volumes_is_kept() -> None:
    """The service's own rule holds in development too."""
    of = workload()
    of["spec"]["template"]["spec"]["securityContext"] = {"fsGroup": 5}
    assert dev_workload(of)["spec"]["template"]["spec"]["securityContext"]["fsGroup"] == 5


@pytest.mark.parametrize(("user", "expected"), [({"runAsUser": 1000}, 1000), ({}, 65532)], ids=["given", "images"])
def test_a_restricted_pod_has_no_root_in_it(user: dict[str, int], expected: int) -> None:
    """What installs the agent was root: a namespace of the level 'restricted' refused the pod."""
    of = workload()
    spec = of["spec"]["template"]["spec"]
    spec["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec["containers"][0]["securityContext"] = {
        **user, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    made = dev_workload(of)["spec"]["template"]["spec"]

    assert made["securityContext"]["fsGroup"] == expected
    assert made["initContainers"][0]["securityContext"] == {
        "runAsUser": expected, "runAsNonRoot": True, "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert made["initContainers"][1]["securityContext"] == spec["containers"][0]["securityContext"]


def test_it_runs_the_agent() -> None:
    """The pod waits for sessions instead of running the program by itself."""
    assert pod()["containers"][0]["command"][:2] == ["/.platform/bin/platform-agent", "hold"]


def test_files_that_are_synced_are_not_mounted() -> None:
    """A file that a Secret holds in place could not be written."""
    assert "host-files" not in [mount["name"] for mount in pod()["containers"][0]["volumeMounts"]]


def test_a_folder_lies_on_the_volume_that_is_kept() -> None:
    """It is there again the next time."""
    mounts = {mount["mountPath"]: mount for mount in pod()["containers"][0]["volumeMounts"]}
    assert mounts["/app"] == {"name": "platform-kept", "mountPath": "/app", "subPath": "app"}


def test_a_volume_below_a_folder_is_mounted_over_it() -> None:
    """What is mounted below comes later, else the folder would hide it."""
    paths = [mount["mountPath"] for mount in pod()["containers"][0]["volumeMounts"]]
    assert paths.index("/app") < paths.index("/app/data")


def test_the_image_content_is_seeded_as_the_images_user() -> None:
    """Files that the image has are there, and belong to who runs it."""
    seed = pod()["initContainers"][1]
    assert (seed["image"], seed["securityContext"]) == ("shop/web@sha256:1", {"runAsUser": 1000})


def test_the_agent_comes_by_the_helper_image() -> None:
    """Nothing has to be in the user's image."""
    assert pod()["initContainers"][0]["image"] == "r/agent@sha256:2"


def test_a_stateful_sets_own_claim_is_used() -> None:
    """What the service has stored is there in development too."""
    of = workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "anonymous-x"}}])
    volumes = dev_workload(of, claims={"anonymous-x-web-0"})["spec"]["template"]["spec"]["volumes"]
    assert {"name": "anonymous-x", "persistentVolumeClaim": {"claimName": "anonymous-x-web-0"}} in volumes


def test_without_its_claim_a_stateful_sets_volume_is_empty() -> None:
    """A claim that was never made is not waited for."""
    of = workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "anonymous-x"}}])
    assert {"name": "anonymous-x", "emptyDir": {}} in dev_workload(of)["spec"]["template"]["spec"]["volumes"]


def test_a_jobs_marks_are_left_out() -> None:
    """The Job must not count the dev workload's pods as its own, and they start again when they end."""
    of = workload("Job")
    of["spec"]["template"]["metadata"]["labels"] |= {"batch.kubernetes.io/job-name": "web", "controller-uid": "1"}
    made = dev_workload(of)["spec"]["template"]
    assert not {"batch.kubernetes.io/job-name", "controller-uid"} & made["metadata"]["labels"].keys()
    assert made["spec"]["restartPolicy"] == "Always"


def test_its_volume_is_marked_as_developments() -> None:
    """The claim is ours, and no part of the plan."""
    claim = make_sync_volume(DevWorkloadInputs(identity=IDENTITY, service="web", paths=(), helper="h", size="1Gi"))
    assert claim["metadata"]["name"] == sync_volume_name("web")
    assert claim["metadata"]["labels"]["dev.platform.com/up"] == "web"
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"


def test_a_long_name_stays_a_name() -> None:
    """Names are cut to what Kubernetes takes."""
    assert len(dev_workload_name("w" * 63)) == 63


def test_a_folder_named_like_that_of_the_markers() -> None:
    """``./seeds:/seeds`` has a folder of its own on the volume: it had the markers in it, which were synced with it."""
    path = SyncPath(local="/src/seeds", remote="/seeds")
    made = dev_workload(paths=(path, FOLDER))
    mounts = made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    folders = {mount["mountPath"]: mount["subPath"] for mount in mounts if mount["name"] == "platform-kept"}

    assert folders["/.platform/seeds"] == "seeds"
    assert folders["/app"] == "app"
    assert len(set(folders.values())) == len(folders) == 3
