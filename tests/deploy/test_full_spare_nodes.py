"""New pods that a node can run once the old ones have ended, as two of them may not be on one node."""

from __future__ import annotations

from tests.deploy.conftest import Environment

#: Longer than a pod may be without a node otherwise.
PROJECT = """
x-platform: {full: true}
services:
  web:
    image: busybox
    command: sh -c 'trap "sleep 12; exit" TERM; while :; do sleep 0.2; done'
    stop_grace_period: 20s
    environment: {A: "%s"}
    deploy: {placement: {max_replicas_per_node: 1}}
"""


def test_the_only_node_gets_the_new_pod(environment: Environment) -> None:
    """With no node to spare an old pod ends first, and however long that takes, the new one starts after it."""
    environment.deploy(PROJECT % "before").expect()

    environment.deploy(PROJECT % "after", "--timeout", "60").expect()

    (pod,) = environment.pods("web")
    assert environment.exec(pod["metadata"]["name"], "sh", "-c", "echo $A").strip() == "after"
