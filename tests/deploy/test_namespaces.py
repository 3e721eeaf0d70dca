"""Namespaces with rules of their own: restricted pods, quotas, limit ranges."""

from __future__ import annotations

import time

import pytest

from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_up import plainly

UNTIL_TERM = f"image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0"


@pytest.fixture
def namespace(environment: Environment) -> Environment:
    """A namespace that enforces the level 'restricted'."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace, "labels": labels}}
    with environment.api() as api:
        api.apply(manifest)
    return environment


def developed(environment: Environment, service: str, command: str) -> str:
    """What a command says in a service that is developed."""
    return plainly(environment, service, "--", "sh", "-c", command).expect().stdout


def test_a_restricted_namespace(namespace: Environment) -> None:
    """It takes pods of a deploy and of `up`, and who can't be in it is named before anything changes."""
    mounts = "volumes: ['./src:/src', 'data:/data']"
    text = f"services: {{web: {{{UNTIL_TERM}, user: '1000:1000', {mounts}}}}}\nvolumes: {{data: }}\n"
    namespace.write("hello\n", "src/a.txt")
    refused = namespace.deploy(text.replace("1000:1000", "root"), "--pod-security", "restricted").expect(3)
    assert "services.web.user is root" in refused.stderr
    assert namespace.names() == set()

    namespace.deploy(text, "--pod-security", "restricted").expect()
    (pod,) = namespace.pods("web")
    status = namespace.exec(pod["metadata"]["name"], "cat", "/proc/1/status")
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status

    output = developed(
        namespace, "web", "id -u; cat /src/a.txt; echo there > /src/b.txt; echo kept > /data/c; ls /data"
    )
    assert output.split() == ["1000", "hello", "c"]
    until((namespace.folder / "src/b.txt").exists)
    namespace.platform("down", "web").expect()
    (namespace.folder / "src/b.txt").unlink()
    namespace.platform("preview", "--expect-no-changes", "--pod-security", "restricted").expect()


@pytest.mark.endurance
def test_a_namespace_that_is_being_deleted(environment: Environment) -> None:
    """A preview says so; a deploy waits until it is gone, and creates it again."""
    text = f"services: {{web: {{{UNTIL_TERM}}}}}\n"
    environment.deploy(text).expect()
    held = {"name": "held", "namespace": environment.namespace, "finalizers": ["example.com/held"]}
    path = f"/api/v1/namespaces/{environment.namespace}"
    with environment.api() as api:
        api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
        api.delete(path)
        until(lambda: environment.get("apps/v1", "Deployment", "web") is None)

        refused = environment.platform("preview").expect(1)
        assert f"namespace '{environment.namespace}' is being deleted" in refused.stderr
        deploy = environment.start("deploy")
        time.sleep(3)
        assert deploy.poll() is None
        api.patch(f"{path}/configmaps/held", {"metadata": {"finalizers": None}})

    _, stderr = deploy.communicate(timeout=120)
    assert (deploy.returncode, "configmaps" in stderr) == (0, False)
    assert {"Deployment/web", "Service/web"} <= environment.names()
    environment.platform("preview", "--expect-no-changes").expect()


QUOTA = {"requests.cpu": "600m", "limits.cpu": "600m", "requests.memory": "200Mi", "limits.memory": "200Mi"}


def test_a_quota_and_a_limit_range(environment: Environment) -> None:
    """Both a deploy and `up` come up where limits are counted: `up` had none, nor had its init containers."""
    head = {"namespace": environment.namespace}
    limits = [{"type": "Container", "max": {"memory": "150Mi"}, "min": {"memory": "16Mi"}}]
    with environment.api() as api:
        for manifest in (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace}},
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all", **head}, "spec": {"hard": QUOTA}},
            {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "all", **head}, "spec": {"limits": limits}},
        ):
            api.apply(manifest)
    until(lambda: (environment.get("v1", "ResourceQuota", "all") or {}).get("status", {}).get("hard"))
    environment.write("hello\n", "src/a.txt")
    environment.deploy(
        f"services: {{web: {{{UNTIL_TERM}, cpus: 0.5, mem_limit: 128m, volumes: ['./src:/src']}}}}\n"
    ).expect()

    assert developed(environment, "web", "cat /src/a.txt") == "hello\n"
    (pod,) = environment.pods("web")
    containers = [*pod["spec"]["containers"], *pod["spec"]["initContainers"]]
    assert {container["resources"]["limits"]["memory"] for container in containers} == {"128Mi"}


@pytest.mark.endurance
def test_an_autoscaler(environment: Environment) -> None:
    """Its number of pods stays when a deploy changes the workload, and comes back after sleep."""
    text = f"services: {{web: {{{UNTIL_TERM}, environment: {{A: '1'}}}}}}\n"
    environment.deploy(text).expect()
    autoscaler = {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": environment.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 3, "maxReplicas": 3,
        },
    }  # fmt: skip
    path = f"/apis/apps/v1/namespaces/{environment.namespace}/deployments/web"

    def count() -> int:
        return int((environment.get("apps/v1", "Deployment", "web") or {})["spec"]["replicas"])

    with environment.api() as api:
        api.apply(autoscaler)
        api.patch(f"{path}/scale", {"spec": {"replicas": 3}})

    environment.platform("preview", "--expect-no-changes").expect()
    environment.deploy(text.replace("'1'", "'2'")).expect()
    assert count() == 3
    assert len(environment.pods("web")) == 3
    environment.platform("sleep").expect()
    assert count() == 0
    environment.platform("wake").expect()
    assert count() == 3
