"""The namespace of the kubeconfig's current context, as kubectl reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.cluster.kubeconfig import context_namespace, read_kubeconfig

CONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts:
- name: there
  context: {cluster: a, user: b, namespace: other}
- name: here
  context: {cluster: a, user: b, namespace: team}
"""


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_home(tmp_path: Path) -> None:
    """Without KUBECONFIG, the one of the home folder counts."""
    write(tmp_path / ".kube" / "config", CONFIG)

    assert context_namespace({"HOME": str(tmp_path)}) == "team"


def test_kubeconfig(tmp_path: Path) -> None:
    """KUBECONFIG takes the place of the home folder's."""
    write(tmp_path / ".kube" / "config", CONFIG)
    other = write(tmp_path / "other", CONFIG.replace("current-context: here", "current-context: there"))

    assert context_namespace({"HOME": str(tmp_path), "KUBECONFIG": other}) == "other"


def test_several_files(tmp_path: Path) -> None:
    """Of several files the first that names a context, and the first that has it, hold."""
    first = write(tmp_path / "first", "current-context: here\n")
    second = write(tmp_path / "second", CONFIG.replace("current-context: here", "current-context: there"))
    third = write(tmp_path / "third", CONFIG.replace("team", "late"))

    assert context_namespace({"KUBECONFIG": f"{first}::{tmp_path}/none:{second}:{third}"}) == "team"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="a-list"),
        pytest.param("current-context: [", id="no-yaml"),
        pytest.param("current-context: here", id="no-contexts"),
        pytest.param(CONFIG.replace("current-context: here", "current-context: none"), id="unknown-context"),
        pytest.param(CONFIG.replace("current-context: here\n", ""), id="no-current-context"),
        pytest.param(CONFIG.replace(", namespace: team", ""), id="no-namespace"),
        pytest.param("current-context: here\ncontexts: 5", id="contexts-of-another-type"),
        pytest.param("current-context: here\ncontexts: {name: here}", id="contexts-a-mapping"),
        pytest.param("current-context: here\ncontexts: [5, {name: here, context: 5}]", id="context-of-another-type"),
        pytest.param("\udcff", id="no-text"),
    ],
)
def test_nothing_to_find(tmp_path: Path, text: str) -> None:
    """A kubeconfig that says nothing of a namespace gives none, and is no mistake of the definition's."""
    path = tmp_path / "config"
    path.write_bytes(text.encode(errors="surrogateescape"))

    assert context_namespace({"KUBECONFIG": str(path)}) == ""


def test_no_kubeconfig() -> None:
    """Without a home or a file there is no namespace."""
    assert context_namespace({}) == ""
    assert context_namespace({"HOME": "/nonexistent"}) == ""


SEVERAL = """\
current-context: chosen
contexts:
- {name: another-user, context: {cluster: a, user: c, namespace: theirs}}
- {name: beside, context: {cluster: a, user: b, namespace: beside}}
- {name: chosen, context: {cluster: a, user: b, namespace: team}}
- {name: again, context: {cluster: a, user: b, namespace: team}}
- {name: plain, context: {cluster: a, user: b}}
- {name: another-cluster, context: {cluster: b, user: b, namespace: elsewhere}}
"""


def test_all_namespaces_of_a_cluster_and_a_user(tmp_path: Path) -> None:
    """That of the context comes first; a context without one has Kubernetes' own."""
    path = tmp_path / "config"
    path.write_text(SEVERAL)
    config = read_kubeconfig({"KUBECONFIG": str(path)})

    assert config.namespaces() == ("team", "beside", "default")
    assert config.namespaces("plain") == ("default", "beside", "team")
    assert read_kubeconfig({}).namespaces() == ("default",)
