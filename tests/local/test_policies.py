"""NetworkPolicies as rules of the packet filter, without a cluster."""

from __future__ import annotations

from typing import Any, cast

import pytest

from composeplat.cluster.api import Api
from composeplat.cluster.label_selectors import matches
from composeplat.local.policies import PolicyKeeper, filter_rules

Object = dict[str, Any]


def pod(name: str, address: str, *, namespace: str = "one", **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": {"app": name}},
        "spec": {"containers": [{"ports": [{"name": "web", "containerPort": 80}]}], **spec},
        "status": {"phase": "Running", "podIP": address},
    }


PODS = [pod("a", "10.0.0.1"), pod("b", "10.0.0.2"), pod("c", "10.0.0.3", namespace="two")]
NAMESPACES = [{"metadata": {"name": name, "labels": {"name": name}}} for name in ("one", "two")]


def policy(**spec: Any) -> Object:
    selector = {"podSelector": {"matchLabels": {"app": "a"}}}
    return {"metadata": {"name": "p", "namespace": "one"}, "spec": {**selector, **spec}}


def rules_of(*policies: Object, pods: list[Object] = PODS) -> list[str]:
    """The rules of the one pod that is filtered, without the name of its chain."""
    lines = filter_rules(list(policies), pods, NAMESPACES).splitlines()
    return [line.split(" ", 2)[2] for line in lines if line.startswith("-A POD-")]


def test_without_policies_nothing_is_filtered() -> None:
    """The chain is there, and holds back nothing."""
    assert "DROP" not in filter_rules([], PODS, NAMESPACES)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, ["-s 10.0.0.1 -j RETURN", "-j DROP"], id="deny all"),
        pytest.param({"ingress": [{}]}, ["-s 10.0.0.1 -j RETURN", "-j RETURN", "-j DROP"], id="admit all"),
        pytest.param(
            {"ingress": [{"from": [{"podSelector": {}}]}]},
            ["-s 10.0.0.1 -j RETURN", "-s 10.0.0.2 -j RETURN", "-j DROP"],
            id="pods of the namespace",
        ),
        pytest.param(
            {"ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"name": "two"}}}]}]},
            ["-s 10.0.0.1 -j RETURN", "-s 10.0.0.3 -j RETURN", "-j DROP"],
            id="another namespace",
        ),
        pytest.param(
            {"ingress": [{"from": [{"ipBlock": {"cidr": "10.1.0.0/30", "except": ["10.1.0.0/31"]}}]}]},
            ["-s 10.0.0.1 -j RETURN", "-s 10.1.0.2/31 -j RETURN", "-j DROP"],
            id="a range with an exception",
        ),
        pytest.param(
            {"ingress": [{"from": [{"ipBlock": {"cidr": "010.001.0.0/30", "except": ["10.1.0.00/31"]}}]}]},
            ["-s 10.0.0.1 -j RETURN", "-s 10.1.0.2/31 -j RETURN", "-j DROP"],
            id="a range with zeros in front, which the API server takes",
        ),
        pytest.param(
            {"ingress": [{"ports": [{"port": "web"}, {"port": 90, "endPort": 99, "protocol": "UDP"}]}]},
            [
                "-s 10.0.0.1 -j RETURN",
                "-p tcp --dport 80 -j RETURN",
                "-p udp --dport 90:99 -j RETURN",
                "-j DROP",
            ],
            id="ports",
        ),
        pytest.param(
            {"policyTypes": ["Egress"], "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "b"}}}]}]},
            ["-d 10.0.0.1 -j RETURN", "-d 10.0.0.2 -j RETURN", "-j DROP"],
            id="egress",
        ),
        pytest.param(
            {"policyTypes": ["Egress"], "egress": [{"ports": [{"port": "web"}]}]},
            [
                "-d 10.0.0.1 -j RETURN",
                "-d 10.0.0.1 -p tcp --dport 80 -j RETURN",
                "-d 10.0.0.2 -p tcp --dport 80 -j RETURN",
                "-d 10.0.0.3 -p tcp --dport 80 -j RETURN",
                "-j DROP",
            ],
            id="a named port of other pods",
        ),
        pytest.param(
            {
                "policyTypes": ["Egress"],
                "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.2/31"}}], "ports": [{"port": "web"}, {"port": 90}]}],
            },
            [
                "-d 10.0.0.1 -j RETURN",
                "-d 10.0.0.2 -p tcp --dport 80 -j RETURN",
                "-d 10.0.0.3 -p tcp --dport 80 -j RETURN",
                "-d 10.0.0.2/31 -p tcp --dport 90 -j RETURN",
                "-j DROP",
            ],
            id="a named port of pods in a range",
        ),
    ],
)
def test_rules(spec: Object, expected: list[str]) -> None:
    """Each part of a policy becomes the rules that it means; a pod always reaches itself."""
    assert rules_of(policy(**spec)) == expected


def test_policies_that_were_deleted_while_nothing_applied_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of a process before are in the kernel still, and another pod may have the address by now."""
    applied: list[bytes] = []
    monkeypatch.setattr("subprocess.run", lambda *_, **options: applied.append(options["input"]))
    keeper = PolicyKeeper(cast("Api", None))
    objects: dict[str, list[Object]] = {"networkpolicies": [], "pods": PODS, "namespaces": NAMESPACES}
    monkeypatch.setattr(keeper.objects, "items", lambda path: objects[path.rpartition("/")[2]])

    keeper.apply()
    keeper.apply()
    assert applied == [b"*mangle\n:PLATFORM-POLICIES - [0:0]\nCOMMIT\n"]
    objects["networkpolicies"] = [policy()]
    keeper.apply()
    objects["networkpolicies"] = []
    keeper.apply()
    assert [b"DROP" in text for text in applied] == [False, True, False]


def test_policies_add_up() -> None:
    """A pod that several policies select admits what one of them does."""
    first = policy(ingress=[{"from": [{"podSelector": {"matchLabels": {"app": "b"}}}]}])
    second = policy(ingress=[{"ports": [{"port": 80}]}])

    assert rules_of(first, second) == [
        "-s 10.0.0.1 -j RETURN",
        "-s 10.0.0.2 -j RETURN",
        "-p tcp --dport 80 -j RETURN",
        "-j DROP",
    ]


def test_pods_without_an_address_of_their_own_are_left_out() -> None:
    """A pod of the node's network shares the node's address, and an ended pod's may be another one's."""
    ended = {**pod("a", "10.0.0.1"), "status": {"phase": "Succeeded", "podIP": "10.0.0.1"}}

    assert rules_of(policy(), pods=[pod("a", "10.0.0.1", hostNetwork=True)]) == []
    assert rules_of(policy(), pods=[ended]) == []


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["x"], True),
        ("In", ["y"], False),
        ("NotIn", ["y"], True),
        ("NotIn", ["x"], False),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
    ],
)
def test_expressions(operator: str, values: list[str] | None, *, expected: bool) -> None:
    """Each operator of a label selector has its meaning."""
    expression = {"key": "k", "operator": operator, **({"values": values} if values else {})}

    assert matches({"matchExpressions": [expression]}, {"k": "x"}) is expected
