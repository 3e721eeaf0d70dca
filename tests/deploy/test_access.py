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
    where = ("--namespace", environment.namespace)
    kubectl(environment, "create", "namespace", environment.namespace)
    kubectl(environment, *where, "create", "serviceaccount", "deployer")
    kubectl(environment, *where, "create", "rolebinding", "deployer", "--clusterrole=edit",
            f"--serviceaccount={environment.namespace}:deployer")  # fmt: skip
    config = json.loads(kubectl(environment, "config", "view", "--raw", "--flatten", "-o", "json"))
    config["users"][0]["user"] = {"token": kubectl(environment, *where, "create", "token", "deployer").strip()}
    path = environment.folder / "account"
    path.write_text(json.dumps(config))
    return path


def kubectl(environment: Environment, *words: str) -> str:
    program = Toolchain(os.environ).need(KUBE).path
    config = f"--kubeconfig={environment.cluster.layout.kubeconfig}"
    return subprocess.run([str(program), "kubectl", config, *words], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        pytest.param(("--kubeconfig", "mine/config"), {}, id="option"),
        pytest.param((), {"KUBECONFIG": "mine/config"}, id="variable"),
    ],
)
def test_a_relative_kubeconfig(environment: Environment, words: tuple[str, ...], variables: dict[str, str]) -> None:
    """A kubeconfig is looked for from where the command is run, by all that are given it."""
    (environment.folder / "mine").mkdir()
    shutil.copy(environment.cluster.layout.kubeconfig, environment.folder / "mine" / "config")
    environment.write(TEXT)

    environment.platform("deploy", *words, **variables).expect()

    assert len(environment.pods("web")) == 1


def test_a_state_of_one_who_may_do_little(environment: Environment, account: Path, tmp_path: Path) -> None:
    """Who may not read `kube-system` deploys all the same, and whoever may goes on from that state."""
    shared = {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    environment.write(TEXT)

    environment.platform("deploy", "--kubeconfig", str(account), **shared).expect()

    environment.platform("preview", "--expect-no-changes", **shared).expect()
    environment.platform("destroy", **shared).expect()


def test_a_state_of_one_who_may_more(environment: Environment, account: Path, tmp_path: Path) -> None:
    """A state that can't be told from another cluster's is refused, and what would help is said."""
    shared = {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    environment.write(TEXT)
    environment.platform("deploy", **shared).expect()

    refused = environment.platform("preview", "--kubeconfig", str(account), **shared).expect(1)

    assert "it can't be told whether the state of environment 'env'" in refused.stderr
    assert "kubectl create clusterrole know-the-cluster --verb=get" in refused.stderr
