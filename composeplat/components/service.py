"""``Service``: a service alone as a Pulumi component, from the keys that it would have in a Compose file.

Owns how the keys of one service become a definition.
Must not know a key: the definition is read like any other.

The component is the parent of the service's objects, as that of a service in a stack is. Both have the same type; their
URNs differ, since a service in a stack has the stack as its parent and a name with a kind: ``shop-service/web``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pulumi

from composeplat.components.children import ComposeEndpoints, ComposeService, ComposeVolume, Parts
from composeplat.components.default_cluster import DefaultCluster
from composeplat.components.definition import parse_logins, plan_definition, read_shell
from composeplat.components.late_texts import LateTexts, VariableValue
from composeplat.components.moved_resources import FormerNames
from composeplat.components.object_owners import claim_objects
from composeplat.components.plain_arguments import plain, read_options
from composeplat.components.registrar import Registrar
from composeplat.components.resource_names import SERVICE_TYPE
from composeplat.compose.init_jobs import is_init_job
from composeplat.compose.options import Request
from composeplat.plan import Plan, ServicePlan

_OUTSIDE_OPTION = "allow_outside=True"


class ServiceSettings(TypedDict, total=False):
    """The arguments of ``Service`` that are those of ``ComposeStack``; None counts as not given."""

    namespace: pulumi.Input[str] | None
    full: bool | None
    profiles: Sequence[str] | None
    endpoint_domain: pulumi.Input[str] | None
    registry: pulumi.Input[str] | None
    ingress_class: str | None
    gateway: str | None
    tls_secret: str | None
    tls_issuer: str | None
    pod_security: str | None
    fill_image: str | None
    pull_secret: bool | None
    allow_outside: bool | None
    builder: str | None


class Service(ComposeService):
    """A service alone, with its volumes and endpoints.

    ``compose`` is a text with the keys of the service. Documents that follow it, after ``---``, are parts of a
    definition, such as ``volumes``. Its variables may be outputs. ``settings`` are the arguments of ``ComposeStack`` of
    the same names. Pulumi waits until the service is ready.
    """

    namespace: pulumi.Output[str]
    volumes: dict[str, ComposeVolume]
    endpoints: dict[str, ComposeEndpoints]

    def __init__(
        self,
        name: str,
        *,
        compose: str,
        service_name: str | None = "",
        environment_name: str | None = "",
        variables: Mapping[str, VariableValue] | None = None,
        registries: Sequence[Mapping[str, pulumi.Input[str]]] | None = (),
        opts: pulumi.ResourceOptions | None = None,
        **settings: Unpack[ServiceSettings],
    ) -> None:
        pulumi.ComponentResource.__init__(self, SERVICE_TYPE, name, None, opts)
        late, cluster = LateTexts(), DefaultCluster.of(self)
        request = Request(
            **_options(settings, late),
            standard_input=plain("compose", compose, "").encode(errors="surrogatepass"),
            snippet_of=plain("service_name", service_name, "") or name,
            name=plain("environment_name", environment_name, "") or name,
            shell=read_shell(variables, late),
            logins=parse_logins(registries, late),
            context_namespace=cluster.namespace,
            **_of_program(),
        )
        plan = plan_definition(request, self, {}, late, cluster, gives_variables=variables is not None)
        late.report_unknown(self)
        self.namespace = claim_objects(self, plan, late, {})
        self.objects = {}
        self._registrar = Registrar(name, plan, {}, request.logins, None, late, awaits=True, is_typed=True)
        self._registrar.former_names = FormerNames(self, opts.parent if opts else None)
        self._register_all(_single_service(plan, request.snippet_of), plan, request.builder)

    def _register_all(self, own: ServicePlan, plan: Plan, builder: str) -> None:
        self._registrar.ports.start_reading(plan.objects)
        stack, child = self._registrar.stack, pulumi.ResourceOptions(parent=self)
        self._use_service_plan(stack, own, self._registrar)
        jobs = (service for service in plan.services if service is not own)
        services = {job.name: ComposeService(stack, job, self._registrar, child) for job in jobs}
        parts = Parts(self, plan, {**services, own.name: self}, self._registrar)
        parts.register(builder=builder)
        self.volumes, self.endpoints = parts.volumes, parts.endpoints


def _of_program() -> dict[str, Any]:
    """Return what a request has of the program's process."""
    return {
        "files": ("-",),
        "folder": Path.cwd(),
        "process": dict(os.environ),
        "outside_option": _OUTSIDE_OPTION,
    }


def _single_service(plan: Plan, name: str) -> ServicePlan:
    """Return the plan of the service; beside it are jobs of its hooks, and no others of a document after the first."""
    services = {service.name: service for service in plan.services}
    others = [other for other in services if other != name and not is_init_job(other, name)]
    if others:
        raise pulumi.RunError(f"'compose' has other services than '{name}': {', '.join(others)}; use ComposeStack")
    return services[name]


def _options(settings: Mapping[str, Any], late: LateTexts) -> dict[str, Any]:
    if unknown := sorted(settings.keys() - ServiceSettings.__annotations__.keys()):
        raise TypeError(f"Service() got unexpected arguments: {', '.join(unknown)}")
    return read_options(settings, late)
