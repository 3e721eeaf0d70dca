"""The program of a stack: a provider and a ``ComposeStack``, as ``platform deploy`` and plain Pulumi both run it.

Owns the names below which plain Pulumi finds its configuration (``composeplat:file`` and the like), so that both doors
register the same resources with the same inputs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import pulumi
import pulumi_kubernetes

from composeplat.components.gate import Gate
from composeplat.components.stack import ComposeStack
from composeplat.plan.desired import Plan

PROVIDER = "cluster"
#: Configuration of plain Pulumi -> argument of ``ComposeStack``.
CONFIGURATION = {
    "file": "file",
    "domain": "endpoint_domain",
    "registry": "registry",
    "ingressClass": "ingress_class",
    "gateway": "gateway",
    "tlsSecret": "tls_secret",
    "tlsIssuer": "tls_issuer",
    "builder": "builder",
}


def declare(plan: Plan, *, cluster: str, gate: Gate | None, builder: str) -> ComposeStack:
    """What ``platform deploy`` runs: a plan that is made already."""
    stack = ComposeStack(plan.environment, plan=plan, gate=gate, waits=True, builder=builder, opts=_options(cluster))
    pulumi.export("urls", stack.urls)
    return stack


def declare_configured(environment: Mapping[str, str] = os.environ) -> ComposeStack:
    """What plain Pulumi runs: the project's name is the environment's, the stack's name the namespace's."""
    config = pulumi.Config("composeplat")
    arguments = {argument: config.get(key) or "" for key, argument in CONFIGURATION.items()}
    variables = {**(config.get_object("variables") or {}), **environment}
    stack = ComposeStack(
        pulumi.get_project(),
        environment_name=pulumi.get_project(),
        namespace=config.get("namespace") or pulumi.get_stack(),
        variables=variables,
        waits=True,
        opts=_options(config.get("cluster") or ""),
        **arguments,  # type: ignore[arg-type]
    )
    pulumi.export("urls", stack.urls)
    return stack


def _options(cluster: str) -> pulumi.ResourceOptions:
    """The cluster is whichever the kubeconfig names, so that neither credentials nor paths come into the state."""
    provider = pulumi_kubernetes.Provider(
        PROVIDER,
        cluster_identifier=cluster or None,
        enable_server_side_apply=True,
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        suppress_deprecation_warnings=True,
    )
    return pulumi.ResourceOptions(providers=[provider])
