"""An object is registered with the class of its kind or without it: the engine gets the same."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pulumi
import pytest

from composeplat.components.resource_types import CLASSES, register_object, register_typed_object
from tests.components.test_stack import run


@pytest.mark.parametrize(("version", "kind"), [*CLASSES, ("gateway.networking.k8s.io/v1", "HTTPRoute")])
def test_both_ways_are_the_same(version: str, kind: str) -> None:
    """Type, inputs, secrets, the provider's version, options: all but the types of Kubernetes releases long gone."""
    content: dict[str, Any] = {"spec": {"aValue": {"x-y/z": "1"}}}
    if kind in ("ConfigMap", "Secret"):
        content = {"data": {"A_KEY": "b"}, "immutable": True}
    metadata = {"name": "web", "namespace": "team", "labels": {"app.kubernetes.io/name": "web"}}
    manifest = {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
    requests = []
    for register in (register_object, register_typed_object):
        opts = pulumi.ResourceOptions(delete_before_replace=True, ignore_changes=["metadata.labels"])
        request = run(lambda register=register, opts=opts: register("web", manifest, opts)).request(kind)  # type: ignore[misc]
        for field in ("aliases", "sourcePosition", "stackTrace"):
            request.ClearField(field)
        requests.append(request)

    assert requests[0] == requests[1]
    assert list(requests[0].additionalSecretOutputs) == (["data", "stringData"] if kind == "Secret" else [])


def test_outputs_of_a_class() -> None:
    """A program reads the outputs by the names of the SDK."""
    names: list[str] = []

    def program() -> None:
        manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"clusterIP": "None"}}
        service: Any = register_typed_object("web", manifest, pulumi.ResourceOptions())
        pulumi.Output.all(service.metadata.name, service.spec.cluster_ip).apply(names.extend)

    run(program)
    assert names == ["web", "None"]


def test_a_deploy_imports_no_classes() -> None:
    """The program of a deploy loads Pulumi, but not the SDK of Kubernetes."""
    code = "import sys, composeplat.components.program; print({'pulumi', 'pulumi_kubernetes'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'pulumi'}\n"
