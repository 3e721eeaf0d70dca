"""Which cluster the programs are led to that a run starts."""

from __future__ import annotations

import json
from pathlib import Path

from composeplat.cluster.access import Access
from composeplat.cluster.kubeconfig import find_access
from composeplat.engine.target import Target, find_target

CONTEXTS = ("dev", "prod", "staging")


def write_kubeconfig(path: Path, current: str) -> None:
    config = {
        "current-context": current,
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in CONTEXTS],
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}.example.com"}} for name in CONTEXTS],
        "users": [{"name": "me", "user": {}}],
    }
    path.write_text(json.dumps(config))


def host_of(variable: str) -> str:
    """The cluster that a program finds by a value of ``KUBECONFIG``."""
    return find_access({"KUBECONFIG": variable}).host


def target_in(folder: Path, context: str = "") -> Target:
    environment = {"KUBECONFIG": str(folder / "config"), "COMPOSEPLAT_DATA": str(folder / "data"), "HOME": str(folder)}
    return find_target(environment, context=context)


def test_another_current_context_during_a_run(tmp_path: Path) -> None:
    """What a run starts later, such as a second run of Pulumi or the link of up, stays with the cluster of the run."""
    write_kubeconfig(tmp_path / "config", "prod")
    target = target_in(tmp_path)
    variable = target.kubeconfig_for(tmp_path)

    write_kubeconfig(tmp_path / "config", "staging")

    assert (target.access.host, host_of(variable)) == ("prod.example.com", "prod.example.com")
    assert host_of(target.kubeconfig_for(tmp_path)) == "prod.example.com"


def test_runs_with_other_contexts_in_one_folder(tmp_path: Path) -> None:
    """A backend of the user has one folder for an environment, whatever the cluster: a second run changes no other."""
    write_kubeconfig(tmp_path / "config", "dev")
    variable = target_in(tmp_path, "prod").kubeconfig_for(tmp_path)
    other = target_in(tmp_path, "staging").kubeconfig_for(tmp_path)

    assert [host_of(variable), host_of(other)] == ["prod.example.com", "staging.example.com"]


def test_no_context(tmp_path: Path) -> None:
    """In a pod without a kubeconfig there is none to stay with."""
    target = Target(access=Access(host="h", port=1), kubeconfig="/k")

    assert target.kubeconfig_for(tmp_path) == "/k"
    assert not list(tmp_path.iterdir())
