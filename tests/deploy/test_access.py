"""Who deploys, and from where: a kubeconfig by a relative path, and an account that may do little."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.deploy.conftest import SLEEP, Environment

TEXT = f"services:\n  web: {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\n"


@pytest.fixture
def account(environment: Environment) -> Path:
    """The kubeconfig of an account that may change what is in its namespace, and see nothing else."""
    path = account_of(environment)
    kubectl(environment, "--namespace", environment.namespace, "create", "rolebinding", "deployer",
            "--clusterrole=edit", f"--serviceaccount={environment.namespace}:deployer")  # fmt: skip
    return path


def account_of(environment: Environment) -> Path:
    """The kubeconfig of an account that may do nothing yet, in a namespace that is there."""
    where = ("--namespace", environment.namespace)
    kubectl(environment, "create", "namespace", environment.namespace)
    kubectl(environment, *where, "create", "serviceaccount", "deployer")
    config = json.loads(kubectl(environment, "config", "view", "--raw", "--flatten", "-o", "json"))
    config["users"][0]["user"] = {"token": kubectl(environment, *where, "create", "token", "deployer").strip()}
    path = environment.folder / "account"
    path.write_text(json.dumps(config))
    return path


ALL = ["get", "list", "watch", "create", "update", "patch", "delete"]
RESOURCES = [
    "pods", "pods/log", "events", "services", "configmaps", "secrets", "persistentvolumeclaims", "deployments", "jobs",
    "replicasets", "statefulsets", "ingresses", "endpointslices", "serviceaccounts",
]  # fmt: skip
WITH_SECRET = TEXT.replace("stop_grace_period: 0", "stop_grace_period: 0, environment: {A: '1'}")


def restrict(environment: Environment, verbs: list[str], resource: str = "secrets") -> Path:
    """The kubeconfig of an account that may do everything in its namespace, but only so much with one resource."""
    config = account_of(environment)
    rules = [
        {"apiGroups": ["", "apps", "batch", "networking.k8s.io", "discovery.k8s.io"], "verbs": ALL,
         "resources": [item for item in RESOURCES if item != resource]},
        *([{"apiGroups": [""], "verbs": verbs, "resources": [resource]}] if verbs else []),
    ]  # fmt: skip
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules}
    place = environment.folder / "role.json"
    place.write_text(json.dumps({**role, "metadata": {"name": "some", "namespace": environment.namespace}}))
    kubectl(environment, "apply", "--filename", str(place))
    kubectl(environment, "--namespace", environment.namespace, "create", "rolebinding", "some", "--role=some",
            f"--serviceaccount={environment.namespace}:deployer")  # fmt: skip
    return config


def kubectl(environment: Environment, *args: str) -> str:
    program = Toolchain(os.environ).need(KUBE).path
    config = f"--kubeconfig={environment.cluster.layout.kubeconfig}"
    return subprocess.run([str(program), "kubectl", config, *args], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("args", "variables"),
    [
        pytest.param(("--kubeconfig", "mine/config"), {}, id="option"),
        pytest.param((), {"KUBECONFIG": "mine/config"}, id="variable"),
    ],
)
def test_a_relative_kubeconfig(environment: Environment, args: tuple[str, ...], variables: dict[str, str]) -> None:
    """A kubeconfig is looked for from where the command is run, by all that are given it."""
    (environment.folder / "mine").mkdir()
    shutil.copy(environment.cluster.layout.kubeconfig, environment.folder / "mine" / "config")
    environment.write(TEXT)

    environment.platform("deploy", *args, **variables).expect()

    assert len(environment.pods("web")) == 1


def test_proxies_that_reach_nothing_here(environment: Environment) -> None:
    """Pulumi and its program, which run here, need no proxy; gRPC would ask those of these names for any address."""
    environment.write(TEXT)
    proxies = dict.fromkeys(("grpc_proxy", "https_proxy", "http_proxy"), "http://127.0.0.1:9")

    environment.platform("deploy", **proxies, no_proxy="", NO_PROXY="").expect()

    assert len(environment.pods("web")) == 1


def test_a_state_of_a_user_with_few_rights(environment: Environment, account: Path, tmp_path: Path) -> None:
    """Who may not read `kube-system` deploys all the same, and a user with that right continues from that state."""
    shared = {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    environment.write(TEXT)

    environment.platform("deploy", "--kubeconfig", str(account), **shared).expect()

    environment.platform("preview", "--expect-no-changes", **shared).expect()
    environment.platform("destroy", **shared).expect()


def test_a_state_of_a_user_with_more_rights(environment: Environment, account: Path, tmp_path: Path) -> None:
    """A state that can't be reported from another cluster's is refused, and what would help is reported."""
    shared = {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    environment.write(TEXT)
    environment.platform("deploy", **shared).expect()

    refused = environment.platform("preview", "--kubeconfig", str(account), **shared).expect(1)

    assert "can't check whether the state of environment 'env'" in refused.stderr
    assert "kubectl create clusterrole know-the-cluster --verb=get" in refused.stderr


def test_an_object_of_others_that_can_not_be_listed(environment: Environment) -> None:
    """Where Secrets may not be listed, one of somebody else is seen by its name, and stays as it is.

    It used to be not read, and the deploy wrote over it.
    """
    config = restrict(environment, [verb for verb in ALL if verb not in ("list", "watch")])
    environment.write(WITH_SECRET)
    where = ("--namespace", environment.namespace)
    kubectl(environment, *where, "create", "secret", "generic", "web-env", "--from-literal=theirs=1")

    refused = environment.platform("deploy", "--kubeconfig", str(config)).expect(1)

    assert "services.web needs the name of Secret 'web-env'" in refused.stderr
    secret = environment.get("v1", "Secret", "web-env")
    assert secret is not None
    assert list(secret["data"]) == ["theirs"]
    assert environment.names() == {"Secret/web-env"}

    kubectl(environment, *where, "delete", "secret", "web-env")
    environment.platform("deploy", "--kubeconfig", str(config)).expect()
    environment.platform("preview", "--kubeconfig", str(config), "--expect-no-changes").expect()


def test_objects_that_can_not_be_seen_at_all(environment: Environment) -> None:
    """Where Secrets can't be looked at either, the right that is missing is named before anything changes."""
    config = restrict(environment, ["create", "patch"])
    environment.write(WITH_SECRET)

    refused = environment.platform("deploy", "--kubeconfig", str(config)).expect(4)

    namespace = environment.namespace
    assert refused.stderr.endswith(
        f"error: can't check whether Secret 'web-env' is in namespace '{namespace}' already: you may neither list"
        " nor get secrets there\n"
        f"  hint: let those who deploy see them: kubectl --namespace {namespace} create role see-what-is-there"
        " --verb=get,list --resource=secrets, and bind it\n"
    )
    assert environment.names() == set()


def test_a_volume_without_the_right_to_list_storage_classes(environment: Environment, account: Path) -> None:
    """Storage classes are outside of the namespace: an account that may not list them deploys volumes all the same."""
    environment.write(f"services: {{web: {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0,"
                      " volumes: ['data:/data']}}\nvolumes: {data: {}}\n")  # fmt: skip

    for _ in range(2):
        environment.platform("deploy", "--kubeconfig", str(account)).expect()
