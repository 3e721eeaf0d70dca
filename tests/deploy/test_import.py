"""``platform import`` of objects that were applied by hand, in the form that kompose gives them: nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.deploy.conftest import SLEEP, Environment, until
from tests.terminal import Terminal

SERVE = (
    "sh -c 'trap true TERM; mkdir -p /www; echo hello > /www/index.html; httpd -p 80 -h /www;"
    " sleep 1000000 & wait; true'"
)
FILE = f"""\
services:
  web:
    image: busybox:1.37
    command: {SERVE}
    ports: ["8080:80"]
    healthcheck: {{test: wget -q -O /dev/null http://127.0.0.1:80, interval: 1s}}
    depends_on: [db]
  db:
    image: busybox:1.37
    command: {SLEEP}
    expose: [5432]
    volumes: ["data:/data"]
volumes:
  data: {{driver_opts: {{size: 100Mi}}}}
"""


def metadata(name: str, service: str) -> dict[str, Any]:
    annotations = {"kompose.cmd": "kompose convert", "kompose.version": "1.36.0 (HEAD)"}
    return {"name": name, "labels": {"io.kompose.service": service}, "annotations": annotations}


def deployment(name: str, script: str, **spec: Any) -> dict[str, Any]:
    labels = {"io.kompose.service": name}
    container = {"name": name, "image": "busybox:1.37", "args": ["sh", "-c", script], **spec.pop("container", {})}
    pod = {"containers": [container], "restartPolicy": "Always", **spec.pop("pod", {})}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name, name),
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod}, **spec,
        },
    }  # fmt: skip


def service(name: str, port: int, target: int) -> dict[str, Any]:
    ports = [{"name": str(port), "port": port, "targetPort": target}]
    spec = {"ports": ports, "selector": {"io.kompose.service": name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(name, name), "spec": spec}


def manifests() -> list[dict[str, Any]]:
    """The objects of the file above, as kompose makes them."""
    serve = SERVE.removeprefix("sh -c '").removesuffix("'")
    sleep = SLEEP.removeprefix("sh -c '").removesuffix("'")
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata("data", "data"),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}},
    }  # fmt: skip
    values = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("web-env", "web"), "data": {"A": "b"}}
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}], "ports": [{"containerPort": 5432}]}
    volumes = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    probe = {"readinessProbe": {"exec": {"command": ["test", "-e", "/www/index.html"]}, "periodSeconds": 1}}
    return [
        claim, values, service("web", 8080, 80), service("db", 5432, 5432), deployment("web", serve, container=probe),
        deployment("db", sleep, container=mount, pod=volumes, strategy={"type": "Recreate"}),
    ]  # fmt: skip


def kubectl(environment: Environment, *args: str, given: str = "") -> str:
    kube = Toolchain(os.environ).need(KUBE).path
    command = [str(kube), "kubectl", f"--kubeconfig={environment.cluster.layout.kubeconfig}"]
    done = subprocess.run(
        [*command, "-n", environment.namespace, *args], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def apply(environment: Environment, objects: list[dict[str, Any]]) -> None:
    """Apply manifests by kubectl, into a namespace that is made for them, and wait until their pods are ready."""
    if environment.namespace not in kubectl(environment, "get", "namespaces", "-o", "name"):
        kubectl(environment, "create", "namespace", environment.namespace)
    kubectl(environment, "apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    for found in objects:
        if found["kind"] in ("Deployment", "StatefulSet"):
            kubectl(environment, "rollout", "status", f"{found['kind']}/{found['metadata']['name']}", "--timeout=120s")


def versions(environment: Environment) -> dict[str, str]:
    """The version of each object that ``platform`` may touch."""
    kinds = (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("v1", "Service"), ("v1", "ConfigMap"),
             ("v1", "PersistentVolumeClaim"), ("v1", "Pod"))  # fmt: skip
    return {
        f"{kind}/{found['metadata']['name']}": found["metadata"]["resourceVersion"]
        for version, kind in kinds
        for found in environment.objects(version, kind)
        if found["metadata"]["name"] != "kube-root-ca.crt"
    }


def facts(environment: Environment) -> dict[str, Any]:
    """What must never change: the volume of the claim, and the addresses of the Services."""
    claim = environment.get("v1", "PersistentVolumeClaim", "data")
    assert claim is not None
    services = {found["metadata"]["name"]: found for found in environment.objects("v1", "Service")}
    return {
        "claim": (claim["metadata"]["uid"], claim["spec"]["volumeName"]),
        **{name: (found["metadata"]["uid"], found["spec"]["clusterIP"]) for name, found in services.items()},
    }


@contextmanager
def watched_endpoints(environment: Environment, name: str) -> Iterator[list[int]]:
    """Count the ready endpoints of a Service again and again; the counts are complete once this ends."""
    counts: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            slices = environment.objects("discovery.k8s.io/v1", "EndpointSlice")
            own = [found for found in slices if found["metadata"]["labels"].get("kubernetes.io/service-name") == name]
            endpoints = [endpoint for found in own for endpoint in found.get("endpoints") or ()]
            counts.append(sum(bool(endpoint["conditions"].get("ready")) for endpoint in endpoints))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield counts
    finally:
        ended.set()
        thread.join()


def write_rows(environment: Environment) -> None:
    kubectl(environment, "exec", "deployment/db", "--", "sh", "-c", "echo row-1 > /data/rows; echo row-2 >> /data/rows")


@pytest.fixture
def made(environment: Environment) -> Environment:
    """The objects of kompose, with rows in the volume."""
    environment.write(FILE)
    apply(environment, manifests())
    write_rows(environment)
    return environment


def test_objects_of_kompose(made: Environment) -> None:
    """Rows and addresses stay, the Service without a volume is never away, and the next preview shows no change."""
    before, seen = facts(made), versions(made)
    shown = made.platform("import", "--dry-run").expect()
    made.platform("import").expect(1)

    assert versions(made) == seen
    assert "  = adopt PersistentVolumeClaim data\n" in shown.stdout
    assert "  ! hand over Deployment db to StatefulSet db: it is scaled to zero" in shown.stdout
    assert '      stays as it is: metadata.annotations["kompose.cmd"]' in shown.stdout
    assert "nothing was changed: --dry-run" in shown.stderr

    with watched_endpoints(made, "web") as counts:
        done = made.platform("import", "--yes", "--json").expect()

    assert facts(made) == before
    assert made.exec("db-0", "cat", "/data/rows") == "row-1\nrow-2\n"
    assert len(counts) > 20
    assert min(counts) >= 1
    assert done.json["status"] == "done"
    assert done.json["removed"] == ["Deployment/db"]
    assert made.names() == {
        "PersistentVolumeClaim/data", "Service/web", "Service/db", "Deployment/web", "StatefulSet/db",
        "ConfigMap/web-env", "Ingress/web",
    }  # fmt: skip
    assert "no changes" in made.platform("preview", "--expect-no-changes").expect().stderr
    assert "nothing changed" in made.platform("deploy").expect().stderr
    assert "nothing was changed outside platform" in made.platform("refresh", "--preview").expect().stderr
    check_managers(made)


def check_managers(environment: Environment) -> None:
    """No field of the objects is kubectl's, nor is its annotation left."""
    for kind in ("Service", "PersistentVolumeClaim"):
        for found in environment.objects("v1", kind):
            managers = {entry["manager"] for entry in found["metadata"]["managedFields"]}
            assert not any(name.startswith("kubectl") for name in managers)
            assert "kubectl.kubernetes.io/last-applied-configuration" not in found["metadata"]["annotations"]
            assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "composeplat"


def test_nothing_to_take_over(environment: Environment) -> None:
    """In an empty namespace nothing is taken over, nor deployed."""
    environment.write(FILE)
    done = environment.platform("import", "--yes").expect()

    assert "there is nothing to take over" in done.stderr
    assert environment.names() == set()


# faults ---------------------------------------------------------------------------------------------------------------


def is_labeled(environment: Environment) -> bool:
    claim = environment.get("v1", "PersistentVolumeClaim", "data")
    return claim is not None and "dev.platform.com/environment" in claim["metadata"]["labels"]


def is_stopped(environment: Environment) -> bool:
    found = environment.get("apps/v1", "Deployment", "db")
    return found is not None and found["spec"]["replicas"] == 0


def is_orphaned(environment: Environment) -> bool:
    found = environment.get("apps/v1", "Deployment", "web")
    return found is None or "io.kompose.service" not in found["metadata"]["labels"]


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(is_labeled, id="labels", marks=pytest.mark.endurance),
        pytest.param(is_stopped, id="the-old-database-is-stopped"),
        pytest.param(is_orphaned, id="the-old-deployment-is-gone", marks=pytest.mark.endurance),
    ],
)
def test_a_killed_import(made: Environment, moment: Callable[[Environment], bool]) -> None:
    """An import that is killed leaves the pods of the Service running, and the next one continues."""
    before = facts(made)
    with watched_endpoints(made, "web") as counts:
        process = made.start("import", "--yes")
        until(lambda: moment(made))
        process.kill()
        process.wait()
        assert facts(made) == before
        made.platform("import", "--yes").expect()

    assert min(counts) >= 1
    assert facts(made) == before
    assert made.exec("db-0", "cat", "/data/rows") == "row-1\nrow-2\n"
    assert made.get("apps/v1", "Deployment", "db") is None
    assert "no changes" in made.platform("preview", "--expect-no-changes").expect().stderr
    check_managers(made)


@pytest.mark.endurance
def test_a_successor_that_is_not_created(made: Environment) -> None:
    """Before a service's dependencies are met, its old workload is not touched; the next import takes it over."""
    broken = FILE.replace(
        "    expose: [5432]\n",
        "    expose: [5432]\n    depends_on: {check: {condition: service_completed_successfully}}\n",
    )
    check = "  check: {image: 'busybox:1.37', command: 'false', restart: 'no'}\nvolumes:\n"
    made.write(broken.replace("volumes:\n  data", f"{check}  data"))
    failed = made.platform("import", "--yes").expect(1)

    assert "'platform import' continues from there" in failed.stderr
    old = made.get("apps/v1", "Deployment", "db")
    assert old is not None
    assert old["spec"]["replicas"] == 1
    assert kubectl(made, "exec", "deployment/db", "--", "cat", "/data/rows") == "row-1\nrow-2\n"

    made.write(FILE)
    made.platform("import", "--yes").expect()
    assert made.exec("db-0", "cat", "/data/rows") == "row-1\nrow-2\n"
    assert made.names() >= {"StatefulSet/db", "Deployment/web"}


def restricted(environment: Environment, **verbs: list[str]) -> dict[str, str]:
    """The variables of an account that may do everything in the namespace, but only so much with some resources."""
    where = ("--namespace", environment.namespace)
    kubectl(environment, "create", "serviceaccount", "mover")
    config = json.loads(kubectl(environment, "config", "view", "--raw", "--flatten", "-o", "json"))
    config["users"][0]["user"] = {"token": kubectl(environment, "create", "token", "mover").strip()}
    path = environment.folder / "account"
    path.write_text(json.dumps(config))
    groups = ["", "apps", "batch", "networking.k8s.io", "autoscaling", "gateway.networking.k8s.io"]
    others = [name for name in RESOURCES if name not in verbs]
    rules = [{"apiGroups": groups, "verbs": ["*"], "resources": others}]
    given = {name: allowed for name, allowed in verbs.items() if allowed}
    rules += [{"apiGroups": groups, "verbs": allowed, "resources": [name]} for name, allowed in given.items()]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules, "metadata": {"name": "some"}}
    kubectl(environment, "apply", "-f", "-", given=json.dumps(role))
    account = f"--serviceaccount={environment.namespace}:mover"
    kubectl(environment, *where, "create", "rolebinding", "some", "--role=some", account)
    return {"KUBECONFIG": str(path)}


RESOURCES = [
    "pods", "pods/log", "events", "services", "configmaps", "secrets", "persistentvolumeclaims", "deployments", "jobs",
    "replicasets", "statefulsets", "daemonsets", "cronjobs", "ingresses", "endpointslices", "serviceaccounts",
    "networkpolicies", "horizontalpodautoscalers", "httproutes",
]  # fmt: skip
LOOK = ["get", "list", "watch"]


@pytest.mark.parametrize(
    ("verbs", "message"),
    [
        pytest.param({"services": LOOK}, "services.web can't take over Service 'web', which can't become", id="update"),
        pytest.param({"pods": LOOK}, "can't take over Deployment 'web'", id="label-pods"),
        pytest.param({"deployments": [*LOOK, "create", "patch"]}, "can't take over Deployment 'web'", id="delete"),
        pytest.param({"secrets": []}, "you may not list secrets", id="list"),
    ],
)
def test_refused_permissions(made: Environment, verbs: dict[str, list[str]], message: str) -> None:
    """Without a permission that is needed later, nothing is changed."""
    seen = versions(made)
    ran = made.platform("import", "--yes", **restricted(made, **verbs))

    assert ran.status in (1, 4), ran
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert versions(made) == seen


def test_objects_of_others(made: Environment) -> None:
    """An object of a tool stops the import, and its annotation sends no escape sequence to the terminal."""
    evil = "shop\x1b[31m\nerror: all is lost"
    kubectl(made, "annotate", "service/web", f"meta.helm.sh/release-name={evil}")
    kubectl(made, "annotate", "pvc/data", f"note={evil}")
    seen = versions(made)
    ran = made.platform("import", "--yes").expect(1)

    assert r"Helm release 'shop\x1b[31m\nerror: all is lost'" in ran.stderr
    assert "[import-conflict]" in ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr
    assert versions(made) == seen
    refused = made.platform("import", "--json").expect(1).json
    assert refused["status"] == "refused"


@pytest.mark.endurance
def test_a_claim_of_another_name(environment: Environment) -> None:
    """Data in a claim of another name is not left behind: the import is refused, until the file has its name."""
    environment.write(FILE)
    text = json.dumps(manifests()).replace('"claimName": "data"', '"claimName": "db-claim0"')
    objects = json.loads(text)
    objects[0]["metadata"]["name"] = "db-claim0"
    apply(environment, objects)
    write_rows(environment)
    seen = versions(environment)
    refused = environment.platform("import", "--yes").expect(1)

    assert "has its data for /data in claim 'db-claim0'" in refused.stderr
    assert versions(environment) == seen

    environment.write("x-platform: {full: true}\nvolumes:\n  data: {name: db-claim0}\n", "compose.platform.yaml")
    environment.platform("import", "--yes").expect()
    assert environment.exec("db-0", "cat", "/data/rows") == "row-1\nrow-2\n"


@pytest.mark.endurance
def test_a_service_of_another_name(made: Environment) -> None:
    """A Service of somebody else that leads to the pods leads to the new ones, and is never without any."""
    own = {"app.kubernetes.io/managed-by": ""}
    other = {**service("inner", 81, 80), "metadata": {"name": "inner", "labels": own}}
    other["spec"]["selector"] = {"io.kompose.service": "web"}
    apply(made, [other])
    with watched_endpoints(made, "inner") as counts:
        shown = made.platform("import", "--yes").expect()

    assert "  ~ keep, and repoint Service inner: it leads to the new pods\n" in shown.stdout
    assert min(counts) >= 1
    found = made.get("v1", "Service", "inner")
    assert found is not None
    assert "dev.platform.com/environment" not in found["metadata"]["labels"]


def test_the_question(made: Environment) -> None:
    """On a terminal the preview ends with a question; without a yes nothing is changed."""
    seen = versions(made)
    terminal = Terminal(made.command_line("import"), folder=made.folder, env=made.variables)
    shown = terminal.until("Take over these objects, and deploy")
    terminal.type("n")
    rest = terminal.rest()

    assert "hand over Deployment db to StatefulSet db" in " ".join(shown.split())
    assert "nothing was changed" in rest
    assert terminal.status() == 1
    assert versions(made) == seen


def stateful(name: str, kind: str = "StatefulSet") -> dict[str, Any]:
    """A workload as somebody writes it by hand, with labels of their own."""
    found = deployment(name, SLEEP.removeprefix("sh -c '").removesuffix("'"))
    own = {"app": name}
    found["kind"], found["metadata"] = kind, {"name": name, "labels": own}
    found["spec"]["selector"] = {"matchLabels": own}
    found["spec"]["template"]["metadata"]["labels"] = own
    if kind == "StatefulSet":
        found["spec"]["serviceName"] = name
        pod = found["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "d", "mountPath": "/data"}]
    return found


def test_a_hand_written_stateful_set(environment: Environment) -> None:
    """A StatefulSet takes over the pods of another of its name, and their volume."""
    environment.write(FILE)
    apply(environment, [manifests()[0], stateful("db")])
    kubectl(environment, "exec", "db-0", "--", "sh", "-c", "echo row-1 > /data/rows")
    (before,) = environment.pods()
    environment.platform("import", "--yes").expect()

    (pod,) = environment.pods("db")
    (revised,) = environment.objects("apps/v1", "StatefulSet")
    assert pod["metadata"]["uid"] != before["metadata"]["uid"]
    assert pod["metadata"]["ownerReferences"][0]["uid"] == revised["metadata"]["uid"]
    assert environment.exec("db-0", "cat", "/data/rows") == "row-1\n"
    assert "no changes" in environment.platform("preview", "--expect-no-changes").expect().stderr


def test_a_hand_written_cron_job(environment: Environment) -> None:
    """Its container has another name, and does not run beside that of the file; a Job that it has started continues."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1.37", "args": ["true"]}]}
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    old = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "backup"}, "spec": spec}
    environment.write(
        "x-platform: {full: true}\n"
        "services: {backup: {image: 'busybox:1.37', command: 'true', restart: 'no', x-schedule: '0 3 * * *'}}\n"
    )
    apply(environment, [old])
    kubectl(environment, "create", "job", "by-hand", "--from=cronjob/backup")
    environment.platform("import", "--yes").expect()

    (revised,) = environment.objects("batch/v1", "CronJob")
    containers = revised["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in containers] == ["backup"]
    assert environment.get("batch/v1", "Job", "by-hand") is not None
    assert "no changes" in environment.platform("preview", "--expect-no-changes").expect().stderr


def test_a_running_job_of_others(environment: Environment) -> None:
    """Its pod has ended when that of the file is created: both would do the same work at once."""
    container = {"name": "main", "image": "busybox:1.37", "args": ["sh", "-c", "trap '' TERM; sleep 1000"]}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 4, "containers": [container]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "migrate"},
        "spec": {"template": {"spec": pod}},
    }
    environment.write("services: {migrate: {image: 'busybox:1.37', command: 'true', restart: 'no'}}\n")
    apply(environment, [job])
    until(lambda: [pod for pod in environment.pods() if pod["status"]["phase"] == "Running"])
    importing, most = environment.start("import", "--yes"), 0
    while importing.poll() is None:
        pods = [pod for pod in environment.objects("v1", "Pod") if pod["status"]["phase"] in ("Pending", "Running")]
        most = max(most, len(pods))

    assert (importing.returncode, most) == (0, 1)
