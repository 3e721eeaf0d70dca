"""The program of a stack: a provider and a ``ComposeStack``, for ``platform deploy`` and for plain Pulumi.

Owns the keys of a stack's configuration, such as ``composeplat:file``. It is one module for both entry points, so that
both register the same resources with the same inputs.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pulumi

from composeplat.cluster.identity import cluster_identity
from composeplat.cluster.kubeconfig import find_access
from composeplat.components.dependency_gate import DependencyGate
from composeplat.components.image_loading import ImageLoader
from composeplat.components.plain_arguments import plain_list, plain_paths
from composeplat.components.resource_types import sdk_version
from composeplat.components.stack import ComposeStack
from composeplat.compose.options import SETTINGS, Setting, Value
from composeplat.diagnostics import ComposeplatError
from composeplat.plan.desired import Plan
from composeplat.plan.resource_keys import ResourceKey

PROVIDER = "cluster"


def declare(
    plan: Plan,
    *,
    cluster: str,
    gate: DependencyGate | None,
    builder: str,
    loader: ImageLoader | None = None,
    building: Collection[str] | None = None,
    needed: Plan | None = None,
    aliases: Mapping[str, str] | None = None,
    rewritten: Mapping[ResourceKey, Collection[str]] | None = None,
) -> None:
    """Register a plan for ``platform deploy``, or the ``needed`` part; objects wait for the images of ``building``."""
    stack = ComposeStack(
        plan.environment,
        plan=plan,
        gate=gate,
        loader=loader,
        waits=True,
        builder=builder,
        building=building,
        needed=needed,
        aliases=aliases,
        rewritten=rewritten,
        # A build alone needs no cluster.
        opts=_options(cluster) if plan.objects else None,
    )
    pulumi.export("urls", stack.urls)


def declare_configured(folder: Path) -> ComposeStack:
    """Register a stack for plain Pulumi: the project's name is the environment, the stack's name the namespace.

    Paths in the configuration are relative to the program's folder.
    """
    config = pulumi.Config("composeplat")
    arguments: dict[str, Any] = read_settings()
    arguments["namespace"] = arguments["namespace"] or pulumi.get_stack()
    written = plain_paths("composeplat:files", config.get_object("files")) or (config.get("file") or "",)
    stack = ComposeStack(
        pulumi.get_project(),
        file=[folder / path for path in written if path],
        environment_name=pulumi.get_project(),
        registries=_registries(config),
        env_files=[folder / path for path in plain_paths("composeplat:envFiles", config.get_object("envFiles"))],
        waits=True,
        opts=_options(config.get("cluster") or _ambient_cluster()),
        **arguments,
    )
    pulumi.export("urls", stack.urls)
    return stack


def read_settings() -> dict[str, Value]:
    """Read the settings of the configuration, as arguments of ``ComposeStack``."""
    config = pulumi.Config("composeplat")
    return {row.argument: _configured(config, row) for row in SETTINGS.values()}


def _configured(config: pulumi.Config, setting: Setting) -> Value:
    """Read a setting by the type of its default."""
    match setting.default:
        case bool():
            value: Value | None = config.get_bool(setting.config_key)
        case str():
            value = config.get(setting.config_key)
        case tuple():
            value = plain_list(
                f"composeplat:{setting.config_key}", config.get_object(setting.config_key), "a text", str
            )
        case _:
            value = config.get_float(setting.config_key)
    return setting.default if value is None else value


def _registries(config: pulumi.Config) -> list[dict[str, str]]:
    """Read the logins for registries; users keep the passwords as secrets of the configuration."""
    written = config.get_object("registries") or []
    if not isinstance(written, list) or not all(isinstance(login, dict) for login in written):
        raise pulumi.RunError("composeplat:registries must be a list, each with address, username and password")
    return written


def _ambient_cluster() -> str:
    try:
        return cluster_identity(find_access(os.environ))
    except ComposeplatError as error:
        raise pulumi.RunError(f"{error}\nhint: {error.hint}" if error.hint else str(error)) from error


def _options(cluster: str) -> pulumi.ResourceOptions:
    """Make the provider. It uses the kubeconfig of the environment, so that the state has no credentials and paths.

    The SDK's own class would store the path in ``KUBECONFIG`` in the state.
    """
    flags = ("enableServerSideApply", "enableConfigMapMutable", "enableSecretMutable", "suppressDeprecationWarnings")
    inputs = {**dict.fromkeys(flags, "true"), **({"clusterIdentifier": cluster} if cluster else {})}
    opts = pulumi.ResourceOptions(version=sdk_version())
    return pulumi.ResourceOptions(providers=[pulumi.ProviderResource("kubernetes", PROVIDER, inputs, opts)])
