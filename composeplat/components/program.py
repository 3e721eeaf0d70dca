"""The program of a stack: a provider and a ``ComposeStack``, as ``platform deploy`` and plain Pulumi both run it.

Owns the names below which plain Pulumi finds its configuration (``composeplat:file`` and the like), so that both doors
register the same resources with the same inputs.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path

import pulumi

from composeplat.cluster.identity import cluster_identity
from composeplat.cluster.kubeconfig import find_access
from composeplat.components.dependency_gate import DependencyGate
from composeplat.components.stack import ComposeStack
from composeplat.diagnostics import ComposeplatError
from composeplat.plan.desired import Plan

PROVIDER = "cluster"
#: Configuration of plain Pulumi -> argument of ``ComposeStack``.
CONFIGURATION = {
    "domain": "endpoint_domain",
    "registry": "registry",
    "ingressClass": "ingress_class",
    "gateway": "gateway",
    "tlsSecret": "tls_secret",
    "tlsIssuer": "tls_issuer",
    "podSecurity": "pod_security",
    "builder": "builder",
}


def declare(
    plan: Plan, *, cluster: str, gate: DependencyGate | None, builder: str, building: Collection[str] | None = None
) -> ComposeStack:
    """What ``platform deploy`` runs: a plan that is made already; of its images, those named are what all waits for."""
    stack = ComposeStack(
        plan.environment, plan=plan, gate=gate, waits=True, builder=builder, building=building,
        # Where only images are built there is no cluster to speak of.
        opts=_options(cluster) if plan.objects else None,
    )  # fmt: skip
    pulumi.export("urls", stack.urls)
    return stack


def declare_configured(folder: Path) -> ComposeStack:
    """What plain Pulumi runs: the project's name is the environment's, the stack's name the namespace's.

    Paths in the configuration are relative to the program's folder.
    """
    config = pulumi.Config("composeplat")
    arguments = {argument: config.get(key) or "" for key, argument in CONFIGURATION.items()}
    written = config.get_object("files") or [config.get("file") or ""]
    stack = ComposeStack(
        pulumi.get_project(),
        file=[folder / path for path in written if path],
        environment_name=pulumi.get_project(),
        namespace=config.get("namespace") or pulumi.get_stack(),
        registries=_registries(config),
        pull_secret=config.get_bool("pullSecret") or False,
        allow_outside=config.get_bool("allowOutside") or False,
        env_files=[folder / path for path in config.get_object("envFiles") or ()],
        waits=True,
        opts=_options(config.get("cluster") or _ambient_cluster()),
        **arguments,  # type: ignore[arg-type]
    )
    pulumi.export("urls", stack.urls)
    return stack


def _registries(config: pulumi.Config) -> list[dict[str, str]]:
    """Logins for registries: their passwords are to be secrets of the configuration."""
    written = config.get_object("registries") or []
    if not isinstance(written, list) or not all(isinstance(one, dict) for one in written):
        raise pulumi.RunError("composeplat:registries must be a list, each with address, username and password")
    return written


def _ambient_cluster() -> str:
    try:
        return cluster_identity(find_access(os.environ))
    except ComposeplatError as error:
        raise pulumi.RunError(f"{error}\nhint: {error.hint}" if error.hint else str(error)) from None


def _options(cluster: str) -> pulumi.ResourceOptions:
    """The cluster is whichever the kubeconfig names, so that neither credentials nor paths come into the state.

    The SDK's own class would put the path in ``KUBECONFIG`` into the state.
    """
    flags = ("enableServerSideApply", "enableConfigMapMutable", "enableSecretMutable", "suppressDeprecationWarnings")
    inputs = {**dict.fromkeys(flags, "true"), **({"clusterIdentifier": cluster} if cluster else {})}
    opts = pulumi.ResourceOptions(version=version("pulumi-kubernetes"))
    return pulumi.ResourceOptions(providers=[pulumi.ProviderResource("kubernetes", PROVIDER, inputs, opts)])
