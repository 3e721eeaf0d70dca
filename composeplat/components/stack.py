"""``ComposeStack``: a Compose file as a Pulumi component, with a component for each service, volume and endpoint.

Owns its arguments. The order of its parts is that of :class:`~composeplat.components.children.Parts`.
``platform deploy``, plain ``pulumi`` and programs of users have the same component, with the same names of resources.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pulumi

from composeplat.cluster.watching import Watcher
from composeplat.components.children import (
    Child,
    ComposeEndpoints,
    ComposeNetwork,
    ComposeService,
    ComposeVolume,
    Parts,
)
from composeplat.components.default_cluster import DefaultCluster
from composeplat.components.definition import (
    parse_images,
    parse_logins,
    plan_definition,
    plan_extra_objects,
    read_shell,
)
from composeplat.components.dependency_gate import PROGRAM_CANCELLED, DependencyGate
from composeplat.components.image_loading import ImageLoader
from composeplat.components.late_texts import LateTexts, VariableValue
from composeplat.components.moved_resources import FormerNames, Moved, MovedResources, with_selectors
from composeplat.components.object_owners import claim_objects
from composeplat.components.plain_arguments import plain, plain_files, plain_paths, read_options
from composeplat.components.registrar import Registrar
from composeplat.components.resource_names import STACK_TYPE
from composeplat.components.resource_types import KubernetesObject
from composeplat.components.runs import current_run
from composeplat.components.service_transforms import Transforms
from composeplat.compose.options import DEFAULT_TIMEOUT_S, Request
from composeplat.plan import Plan
from composeplat.plan.resource_keys import ResourceKey
from composeplat.system.deadline import Deadline

_ROOT_TYPE = "pulumi:pulumi:Stack"
#: The hooks' names of components, by run.
_TAKEN: WeakKeyDictionary[Any, Counter[str]] = WeakKeyDictionary()
_OUTSIDE_OPTION = "allow_outside=True (in a stack's configuration: composeplat:allowOutside)"


class ComposeStack(pulumi.ComponentResource):
    """The services, volumes and endpoints of a Compose file.

    ``file`` and the names of services decide the plan, so they are plain values, known when the program runs.
    Values of variables, images and addresses may be outputs: objects get them once they are known.
    With ``waits``, our own hooks wait for Compose's conditions, in the cluster of the kubeconfig; without it, Pulumi
    waits, for which every condition is "ready".
    The default is True, but False below a Kubernetes provider of the caller, which may be for another cluster, and with
    a kubeconfig or cluster in the configuration of the default provider that can't be read here.
    """

    namespace: pulumi.Output[str]
    urls: pulumi.Output[list[str]]
    """The HTTPS addresses of the endpoints."""
    services: dict[str, ComposeService]
    volumes: dict[str, ComposeVolume]
    endpoints: dict[str, ComposeEndpoints]
    networks: dict[str, ComposeNetwork]
    """In full mode, if the definition keeps services apart."""
    files: dict[str, KubernetesObject]
    """The objects of configs and secrets, by kind and name, which services share."""

    def __init__(
        self,
        name: str,
        *,
        file: str | Path | Sequence[str | Path] | None = (),
        environment_name: str | None = "",
        namespace: pulumi.Input[str] | None = "",
        full: bool | None = False,
        profiles: Sequence[str] | None = (),
        endpoint_domain: pulumi.Input[str] | None = "",
        registry: pulumi.Input[str] | None = "",
        ingress_class: str | None = "",
        gateway: str | None = "",
        tls_secret: str | None = "",
        tls_issuer: str | None = "",
        pod_security: str | None = "",
        fill_image: str | None = "",
        pull_secret: bool | None = False,
        allow_outside: bool | None = False,
        env_files: Sequence[str | Path] | None = (),
        variables: Mapping[str, VariableValue] | None = None,
        images: Mapping[str, pulumi.Input[str] | None] | None = None,
        builder: str | None = "",
        timeout: float | None = DEFAULT_TIMEOUT_S,
        registries: Sequence[Mapping[str, pulumi.Input[str]]] | None = (),
        transforms: Mapping[str, Transforms] | None = None,
        extras: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        aliases: Mapping[str, Moved] | None = None,
        selectors: Mapping[str, Mapping[str, str]] | None = None,
        plan: Plan | None = None,
        gate: DependencyGate | None = None,
        loader: ImageLoader | None = None,
        building: Collection[str] | None = None,
        needed: Plan | None = None,
        rewritten: Mapping[ResourceKey, Collection[str]] | None = None,
        waits: bool | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(STACK_TYPE, name, None, opts)
        late = LateTexts()
        logins = parse_logins(registries, late)
        is_typed = plan is None
        waits = None if waits is None else plain("waits", waits, default=True)
        cluster = DefaultCluster.of(self, waits=waits)
        if plan is None:
            given = {
                "namespace": namespace,
                "full": full,
                "profiles": profiles,
                "endpoint_domain": endpoint_domain,
                "registry": registry,
                "ingress_class": ingress_class,
                "gateway": gateway,
                "tls_secret": tls_secret,
                "tls_issuer": tls_issuer,
                "pod_security": pod_security,
                "fill_image": fill_image,
                "pull_secret": pull_secret,
                "allow_outside": allow_outside,
                "builder": builder,
                "timeout": timeout,
            }
            request = Request(
                **read_options(given, late),
                files=plain_files(file),
                folder=Path.cwd(),
                name=plain("environment_name", environment_name, "") or name,
                shell=read_shell(variables, late),
                process=dict(os.environ),
                logins=logins,
                outside_option=_OUTSIDE_OPTION,
                env_files=plain_paths("env_files", env_files),
                context_namespace=cluster.namespace,
            )
            builder, timeout = request.builder, request.timeout
            plan = plan_definition(
                request, self, parse_images(images, late), late, cluster, gives_variables=variables is not None
            )
            plan = with_selectors(plan, selectors)
            late.report_unknown(self)
        planned_extras = plan_extra_objects(plan, extras, transforms)
        self.namespace = (
            claim_objects(self, plan, late, planned_extras)
            if is_typed
            else pulumi.Output.from_input(late.text(plan.namespace))
        )
        if waits is None:
            waits = cluster.is_readable and not late.is_late(plan.namespace)
        if waits and late.is_late(plan.namespace):
            raise pulumi.RunError("'waits=True' needs a 'namespace' that is a plain value")
        if waits and gate is None and not pulumi.runtime.is_dry_run():
            gate = _default_gate(name, plan, timeout or DEFAULT_TIMEOUT_S, cluster, opts.parent if opts else None)
        registrar = Registrar(name, plan, {}, logins, loader, late, awaits=not waits, is_typed=is_typed)
        registrar.extras = planned_extras
        registrar.transforms = transforms or {}
        registrar.moved = MovedResources(aliases, plan.objects)
        registrar.rewritten = rewritten or {}
        registrar.former_names = FormerNames(self, opts.parent if opts else None)
        self._register(name, needed or plan, registrar, gate if waits else None, builder or "", building)
        self.urls = pulumi.Output.all(*(late.text(url) for endpoint in plan.endpoints for url in endpoint.urls))
        self.register_outputs({"urls": self.urls})

    def _register(
        self,
        name: str,
        plan: Plan,
        registrar: Registrar,
        gate: DependencyGate | None,
        builder: str,
        building: Collection[str] | None,
    ) -> None:
        registrar.ports.start_reading(plan.objects)
        child = pulumi.ResourceOptions(parent=self)
        self.services = {service.name: ComposeService(name, service, registrar, child) for service in plan.services}
        parts = Parts(self, plan, self.services, registrar)
        parts.register(gate, builder=builder, building=building)
        self.files, self.volumes, self.networks = parts.files, parts.volumes, parts.networks
        self.endpoints = parts.endpoints

    @property
    def objects(self) -> dict[str, KubernetesObject]:
        """All objects, by kind and name: ``Deployment/web``."""
        parts: tuple[Mapping[str, Child], ...] = (self.services, self.volumes, self.endpoints, self.networks)
        found = {key: item for part in parts for child in part.values() for key, item in child.objects.items()}
        return {**self.files, **found}


def _default_gate(
    name: str, plan: Plan, timeout: float, cluster: DefaultCluster, parent: pulumi.Resource | None
) -> DependencyGate | None:
    access = cluster.access() if plan.edges else None
    if access is None:
        return None
    return DependencyGate(
        plan=plan,
        access=access,
        watcher=Watcher(access, plan.namespace, plan.environment, plan.workload_kinds),
        deadline=Deadline(timeout, plan.start_delays),
        cancelled=PROGRAM_CANCELLED,
        restarts_deadline=True,
        retries_pulls=True,
        hook_suffix=_hook_suffix(name, parent),
    )


def _hook_suffix(name: str, parent: pulumi.Resource | None) -> str:
    """Return what makes the names of a component's hooks unique in a run."""
    if parent is None or parent.pulumi_resource_type == _ROOT_TYPE:
        return ""
    suffix = f"-of-{parent.pulumi_resource_type}-{parent.pulumi_resource_name}"
    taken = _TAKEN.setdefault(current_run(), Counter())
    taken[name + suffix] += 1
    # A parent knows its own type, and not those of the components above it.
    return suffix if taken[name + suffix] == 1 else f"{suffix}#{taken[name + suffix]}"
