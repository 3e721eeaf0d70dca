"""The components below a ``ComposeStack``: of services, volumes, networks and endpoints.

Owns which objects are below which component, the values that a program reads of each, and the order between them.
Must not decide what a component has: the plan does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

import pulumi

from composeplat.components.dependency_gate import DependencyGate
from composeplat.components.image import build_image
from composeplat.components.outputs import after, read_address, read_digest, read_name, read_ports, read_variables
from composeplat.components.registrar import Registrar
from composeplat.components.resource_names import (
    ENDPOINTS_TYPE,
    NETWORK_TYPE,
    SERVICE_TYPE,
    VOLUME_TYPE,
    ResourceName,
)
from composeplat.components.resource_types import KubernetesObject
from composeplat.plan import Plan
from composeplat.plan.desired import (
    BuiltImage,
    DesiredObject,
    EndpointPlan,
    ImageBuild,
    NetworkPlan,
    ServicePlan,
    VolumePlan,
)
from composeplat.plan.resource_keys import ResourceKey, ResourceKind


class Child(pulumi.ComponentResource):
    """A part of a stack, with the objects below it."""

    objects: dict[str, KubernetesObject]
    """Its objects, by kind and name: ``Deployment/web``."""

    def __init__(self, token: str, name: ResourceName, registrar: Registrar, opts: pulumi.ResourceOptions) -> None:
        super().__init__(token, str(name), None, opts)
        self._registrar = registrar
        self.objects = {}

    def _register(
        self, desired: DesiredObject, hooks: pulumi.ResourceHookBinding | None = None, *, keep: bool = False
    ) -> pulumi.CustomResource:
        registered = self._registrar.register(desired, self, hooks, keep=keep)
        self.objects[f"{desired.kind}/{desired.name}"] = registered
        return registered


class ComposeVolume(Child):
    """A named volume: its claim, which stays when the stack is destroyed."""

    claim: KubernetesObject

    def __init__(self, stack: str, plan: VolumePlan, registrar: Registrar, opts: pulumi.ResourceOptions) -> None:
        super().__init__(VOLUME_TYPE, ResourceName.make(stack, ResourceKind.VOLUME, plan.cluster_name), registrar, opts)
        claims = [self._register(desired, keep=True) for desired in plan.objects]
        self.claim = claims[-1]
        self.register_outputs({})

    @cached_property
    def claim_name(self) -> pulumi.Output[str]:
        """The name of the claim, for the pods of others."""
        return read_name(self.claim)


class ComposeNetwork(Child):
    """A network: the policy that admits its services' pods to each other."""

    def __init__(self, stack: str, plan: NetworkPlan, registrar: Registrar, opts: pulumi.ResourceOptions) -> None:
        name = ResourceName.make(stack, ResourceKind.NETWORK, plan.cluster_name)
        super().__init__(NETWORK_TYPE, name, registrar, opts)
        for desired in plan.objects:
            self._register(desired)
        self.register_outputs({})


class ComposeService(Child):
    """A service: its environment, files, cluster service and workload."""

    image: pulumi.Output[str]
    """The reference of the image; of a built image, by digest."""
    selector: dict[str, str]
    """The labels that select its pods."""

    def __init__(self, stack: str, plan: ServicePlan, registrar: Registrar, opts: pulumi.ResourceOptions) -> None:
        name = ResourceName.make(stack, ResourceKind.SERVICE, plan.cluster_name)
        own = pulumi.ResourceOptions(transforms=registrar.transforms_of(plan.name))
        super().__init__(SERVICE_TYPE, name, registrar, pulumi.ResourceOptions.merge(opts, own))
        self._use_service_plan(stack, plan, registrar)

    def _use_service_plan(self, stack: str, plan: ServicePlan, registrar: Registrar) -> None:
        self._stack, self._plan = stack, plan
        self._endpoints: list[tuple[ComposeEndpoints, tuple[str, ...]]] = []
        self.selector = registrar.identity.selector(plan.workload_name)

    def add_image(self, image: ImageBuild, builder: str) -> None:
        built = self._registrar.late.images
        bases = {context: built[base.service] for context, base in image.bases.items() if isinstance(base, BuiltImage)}
        bases.update({context: base for context, base in image.bases.items() if isinstance(base, str)})
        # Other environments may share its layers, so the image stays in the registry when the stack is destroyed.
        name = ResourceName.make(self._stack, ResourceKind.IMAGE, self._plan.cluster_name)
        aliases = self._registrar.former_names.aliases(str(name))
        kept = pulumi.ResourceOptions(parent=self, retain_on_delete=True, aliases=aliases)
        resource = build_image(
            str(name),
            image,
            builder,
            kept,
            bases,
            self._registrar.logins,
            late=self._registrar.late,
            undetected=self._registrar.undetected,
        )
        loader = self._registrar.loader if image.is_loaded else None
        built[self._plan.name] = (
            loader.load(image.service, image.reference, resource) if loader else resource.ref  # type: ignore[attr-defined]
        )
        self._registrar.built[self._plan.name] = resource

    def add_objects(self, gate: DependencyGate | None) -> None:
        plan = self._plan
        late = self._registrar.late
        built = late.images[plan.image.service] if isinstance(plan.image, BuiltImage) else None
        self.image = pulumi.Output.from_input(built or late.texts.text(str(plan.image)))
        for desired in plan.objects:
            is_workload = desired.key.kind is ResourceKind.WORKLOAD
            self._register(desired, gate.hooks(plan, self._stack) if gate and is_workload else None)

    def add_extras(self) -> None:
        for extra in self._registrar.extras.get(self._plan.name, ()):
            self.objects[extra.label] = self._registrar.register_extra(extra, self, self.workload)
        self.register_outputs({})

    def add_endpoint(self, endpoint: ComposeEndpoints, urls: tuple[str, ...]) -> None:
        self._endpoints.append((endpoint, urls))

    @property
    def workload(self) -> KubernetesObject:
        """The Deployment, StatefulSet or Job with its pods; of a service in the pods of another, that one's."""
        return self._registrar.resources[ResourceKey(ResourceKind.WORKLOAD, self._plan.workload_name)]

    @property
    def _service(self) -> pulumi.CustomResource:
        return self._registrar.resources[ResourceKey(ResourceKind.SERVICE, self._plan.cluster_name)]

    @cached_property
    def name(self) -> pulumi.Output[str]:
        """The name in the cluster, which is its DNS name for pods of the same namespace."""
        return read_name(self._service)

    @cached_property
    def address(self) -> pulumi.Output[str]:
        """The DNS name for pods of every namespace: ``web.shop.svc``."""
        namespace = self._registrar.late.texts.text(self._registrar.identity.namespace)
        return read_address(self._service, namespace)

    @cached_property
    def ports(self) -> pulumi.Output[list[int]]:
        """The ports of the address."""
        return read_ports(self._service)

    @cached_property
    def urls(self) -> pulumi.Output[list[str]]:
        """The HTTPS addresses that lead to it."""
        texts = self._registrar.late.texts
        found = {url: after(texts.text(url), endpoint) for endpoint, urls in self._endpoints for url in urls}
        return pulumi.Output.all(*found.values())

    @cached_property
    def digest(self) -> pulumi.Output[str]:
        """The digest of the image, ``sha256:…``; empty if the image is not built and the file names no digest."""
        return read_digest(self.image)

    @cached_property
    def env(self) -> dict[str, pulumi.Output[str]]:
        """The environment variables of the file, each as a secret."""
        key = ResourceKey(ResourceKind.ENVIRONMENT, self._plan.cluster_name)
        found = [desired for desired in self._plan.objects if desired.key == key]
        texts, resources = self._registrar.late.texts, self._registrar.resources
        return {
            name: value
            for desired in found
            for name, value in read_variables(desired.manifest.get("data") or {}, resources[key], texts).items()
        }


class ComposeEndpoints(Child):
    """The routes of one host."""

    urls: pulumi.Output[list[str]]

    def __init__(self, stack: str, plan: EndpointPlan, registrar: Registrar, opts: pulumi.ResourceOptions) -> None:
        super().__init__(ENDPOINTS_TYPE, ResourceName.make(stack, ResourceKind.ENDPOINTS, plan.name), registrar, opts)
        for desired in plan.objects:
            self._register(desired)
        self.urls = pulumi.Output.all(*(registrar.late.texts.text(url) for url in plan.urls))
        self.register_outputs({})


class Parts:
    """The parts of a plan below a component, each registered after those that it needs."""

    def __init__(
        self, parent: pulumi.Resource, plan: Plan, services: Mapping[str, ComposeService], registrar: Registrar
    ) -> None:
        self._plan, self._services, self._registrar = plan, services, registrar
        self._parent, self._child = parent, pulumi.ResourceOptions(parent=parent)

    def register(
        self, gate: DependencyGate | None = None, *, builder: str = "", building: Collection[str] | None = None
    ) -> None:
        plan, registrar, stack, child = self._plan, self._registrar, self._registrar.stack, self._child
        for image in plan.images:
            # Images are in the order of their builds, which can differ from the order of services.
            self._services[image.service].add_image(image, builder)
        # Objects come after all images, so that nothing is deployed if a build fails.
        registrar.await_builds(building)
        self.files = registrar.register_files(plan, self._parent)
        self.volumes = {volume.name: ComposeVolume(stack, volume, registrar, child) for volume in plan.volumes}
        # Before the pods that they are for.
        self.networks = {network.name: ComposeNetwork(stack, network, registrar, child) for network in plan.networks}
        for service in self._services.values():
            service.add_objects(gate)
        for service in self._services.values():
            service.add_extras()
        self.endpoints = {found.name: ComposeEndpoints(stack, found, registrar, child) for found in plan.endpoints}
        self._add_urls()

    def _add_urls(self) -> None:
        """Let each service know the endpoints that lead to it, also of a plan with a part of the services."""
        for endpoint in self._plan.endpoints:
            for name, urls in endpoint.urls_by_service.items():
                if name in self._services:
                    self._services[name].add_endpoint(self.endpoints[endpoint.name], urls)
