"""``ComposeStack``: a Compose file as a Pulumi component, with a component for each service, volume and endpoint.

Owns the tree of components, and the order in which objects are registered.
``platform deploy``, plain ``pulumi`` and programs of users have the same component, with the same names of resources.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pulumi

from composeplat.cluster.kubeconfig import find_access, read_kubeconfig
from composeplat.cluster.watching import Watcher
from composeplat.components.definition import parse_logins, plain_logins, plan_definition, with_hint
from composeplat.components.dependency_gate import DependencyGate
from composeplat.components.image import build_image
from composeplat.components.image_loading import ImageLoader
from composeplat.components.image_ports import ImagePorts
from composeplat.components.late_texts import LateTexts
from composeplat.components.manifests import SALT_PATH, LateValues, add_salt, bind, read_salt
from composeplat.components.resource_names import (
    ENDPOINTS_TYPE,
    NETWORK_TYPE,
    SERVICE_TYPE,
    STACK_TYPE,
    VOLUME_TYPE,
    ResourceName,
)
from composeplat.components.resource_types import register_object, register_typed_object
from composeplat.compose.options import DEFAULT_TIMEOUT_S, Options, Request
from composeplat.diagnostics import MissingPiece
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
from composeplat.registry.credentials import Login
from composeplat.system.deadline import Deadline

_OUTSIDE_OPTION = "allow_outside=True (in a stack's configuration: composeplat:allowOutside)"
#: The provider of one type is that of the whole package.
_KUBERNETES_TYPE = "kubernetes:core/v1:Namespace"


class ComposeStack(pulumi.ComponentResource):
    """The services, volumes and endpoints of a Compose file.

    ``file`` and the names of services decide the plan, so they are plain values, known when the program runs.
    Values of variables, images and addresses may be outputs: objects get them once they are known.
    With ``waits``, our own hooks wait for Compose's conditions, in the cluster of the kubeconfig; without it, Pulumi
    waits, for which every condition is "ready".
    The default is True, but False below a Kubernetes provider of the caller, which may be for another cluster.
    """

    urls: pulumi.Output[list[str]]
    """The HTTPS addresses of the endpoints."""
    services: dict[str, ComposeService]
    volumes: dict[str, ComposeVolume]
    endpoints: dict[str, ComposeEndpoints]
    networks: dict[str, ComposeNetwork]
    """In full mode, if the definition keeps services apart."""

    def __init__(
        self,
        name: str,
        *,
        file: str | Path | Sequence[str | Path] = (),
        environment_name: str = "",
        namespace: pulumi.Input[str] = "",
        full: bool = False,
        profiles: Sequence[str] = (),
        endpoint_domain: pulumi.Input[str] = "",
        registry: pulumi.Input[str] = "",
        ingress_class: str = "",
        gateway: str = "",
        tls_secret: str = "",
        tls_issuer: str = "",
        pod_security: str = "",
        fill_image: str = "",
        pull_secret: bool = False,
        allow_outside: bool = False,
        env_files: Sequence[str | Path] = (),
        variables: Mapping[str, pulumi.Input[str]] | None = None,
        images: Mapping[str, pulumi.Input[str]] | None = None,
        builder: str = "",
        timeout: float = DEFAULT_TIMEOUT_S,
        registries: Sequence[Mapping[str, pulumi.Input[str]]] = (),
        plan: Plan | None = None,
        gate: DependencyGate | None = None,
        loader: ImageLoader | None = None,
        building: Collection[str] | None = None,
        needed: Plan | None = None,
        waits: bool | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(STACK_TYPE, name, None, opts)
        late = LateTexts()
        logins = parse_logins(registries, late)
        is_typed = plan is None
        if plan is None:
            written = [file] if isinstance(file, str | Path) else list(file)
            given = dict(os.environ) if variables is None else variables
            shell = {key: late.add(key, value) for key, value in given.items()}
            options = Options(
                namespace=late.add("namespace", namespace),
                full=full,
                profile=tuple(profiles),
                domain=late.add("endpoint_domain", endpoint_domain),
                registry=late.add("registry", registry),
                ingress_class=ingress_class,
                gateway=gateway,
                tls_secret=tls_secret,
                tls_issuer=tls_issuer,
                pod_security=pod_security,
                fill_image=fill_image,
                pull_secret=pull_secret,
                allow_outside=allow_outside,
                builder=builder,
                timeout=timeout,
            )
            request = Request(
                **options.options(),
                files=tuple(str(path) for path in written if path),
                folder=Path.cwd(),
                name=environment_name or name,
                shell=shell,
                logins=logins,
                outside_option=_OUTSIDE_OPTION,
                env_files=tuple(str(path) for path in env_files),
                context_namespace=read_kubeconfig(os.environ).namespace(),
            )
            other_images = {service: late.add(f"images[{service}]", image) for service, image in (images or {}).items()}
            plan = plan_definition(request, self, other_images, late)
            late.report_unknown(self)
        if waits is None:
            waits = self.get_provider(_KUBERNETES_TYPE) is None and not late.is_late(plan.namespace)
        if waits and late.is_late(plan.namespace):
            raise pulumi.RunError("'waits=True' needs a 'namespace' that is a plain value")
        if waits and gate is None and not pulumi.runtime.is_dry_run():
            gate = _ambient_gate(plan, timeout)
        registrar = _Registrar(name, plan, {}, logins, loader, late, awaits=not waits, is_typed=is_typed)
        self._register(name, needed or plan, registrar, gate if waits else None, builder, building)
        self.urls = pulumi.Output.all(*(late.text(url) for endpoint in plan.endpoints for url in endpoint.urls))
        self.register_outputs({"urls": self.urls})

    def _register(
        self,
        name: str,
        plan: Plan,
        registrar: _Registrar,
        gate: DependencyGate | None,
        builder: str,
        building: Collection[str] | None,
    ) -> None:
        registrar.ports.start_reading(plan.objects)
        child = pulumi.ResourceOptions(parent=self)
        self.services = {service.name: ComposeService(name, service, registrar, child) for service in plan.services}
        for image in plan.images:
            # Images are in the order of their builds, which can differ from the order of services.
            self.services[image.service].add_image(image, builder)
        # Objects come after all images, so that nothing is deployed if a build fails.
        registrar.await_builds(building)
        registrar.register_files(plan, self)
        self.volumes = {volume.name: ComposeVolume(name, volume, registrar, child) for volume in plan.volumes}
        # Before the pods that they are for.
        self.networks = {network.name: ComposeNetwork(name, network, registrar, child) for network in plan.networks}
        for service in self.services.values():
            service.add_objects(gate)
        self.endpoints = {
            endpoint.name: ComposeEndpoints(name, endpoint, registrar, child) for endpoint in plan.endpoints
        }


class _Registrar:
    """Registers the objects of the plan, each after the objects that it needs."""

    def __init__(
        self,
        stack: str,
        plan: Plan,
        resources: dict[ResourceKey, pulumi.Resource],
        logins: Mapping[str, Login],
        loader: ImageLoader | None,
        texts: LateTexts,
        *,
        awaits: bool,
        is_typed: bool,
    ) -> None:
        self.stack = stack
        self.resources = resources
        self.awaits = awaits
        self._register_object = register_typed_object if is_typed else register_object
        """With outputs that a program can read by their names, or without."""
        self.late = LateValues(confidential=plan.confidential, texts=texts)
        self.built: dict[str, pulumi.Resource] = {}
        """The builds, by service."""
        self.awaited_builds: list[pulumi.Resource] = []
        """Every object comes after these builds."""
        self.logins = logins
        self.loader = loader
        self.ports = ImagePorts(plain_logins(logins))
        if loader:
            loader.on_ports = self.ports.remember
        self.salted = {found.secret for service in plan.services for found in service.fingerprints}

    def register_files(self, plan: Plan, parent: pulumi.Resource) -> None:
        """Register the configs and secrets, which belong to no service alone."""
        for desired in (desired for file in plan.files for desired in file.objects):
            self.register(desired, parent)

    def await_builds(self, services: Collection[str] | None) -> None:
        """Let every object that follows come after the builds of some services, or after all."""
        self.awaited_builds = [built for name, built in self.built.items() if services is None or name in services]

    def register(
        self,
        desired: DesiredObject,
        parent: pulumi.Resource,
        hooks: pulumi.ResourceHookBinding | None = None,
        *,
        keep: bool = False,
    ) -> pulumi.CustomResource:
        needed = [*self.awaited_builds, *(self.resources[key] for key in desired.needs if key in self.resources)]
        # Names are fixed, so a replacement must be created after the deletion. Only the provider knows that, and Pulumi
        # does not ask it for a forced replacement.
        is_salted = desired.key in self.salted
        opts = pulumi.ResourceOptions(
            parent=parent,
            depends_on=needed,
            hooks=hooks,
            retain_on_delete=keep or None,
            delete_before_replace=True,
            ignore_changes=[SALT_PATH] if is_salted else None,
        )
        bound = bind(desired.manifest, self.late, awaits=self.awaits)
        self.ports.set_ports(bound, desired.ports_of, self.late.images)
        resource = self._register_object(
            str(ResourceName(self.stack, desired.key)), add_salt(bound) if is_salted else bound, opts
        )
        self.resources[desired.key] = resource
        if is_salted:
            self.late.salts[desired.key] = read_salt(resource)
        return resource


class ComposeVolume(pulumi.ComponentResource):
    """A named volume: its claim, which stays when the stack is destroyed."""

    claim: pulumi.CustomResource

    def __init__(self, stack: str, plan: VolumePlan, registrar: _Registrar, opts: pulumi.ResourceOptions) -> None:
        name = ResourceName.make(stack, ResourceKind.VOLUME, plan.cluster_name)
        super().__init__(VOLUME_TYPE, str(name), None, opts)
        claims = [registrar.register(desired, self, keep=True) for desired in plan.objects]
        self.claim = claims[-1]
        self.register_outputs({})


class ComposeNetwork(pulumi.ComponentResource):
    """A network: the policy that admits its services' pods to each other."""

    def __init__(self, stack: str, plan: NetworkPlan, registrar: _Registrar, opts: pulumi.ResourceOptions) -> None:
        name = ResourceName.make(stack, ResourceKind.NETWORK, plan.cluster_name)
        super().__init__(NETWORK_TYPE, str(name), None, opts)
        for desired in plan.objects:
            registrar.register(desired, self)
        self.register_outputs({})


class ComposeService(pulumi.ComponentResource):
    """A service: its environment, files, cluster service and workload."""

    workload: pulumi.CustomResource
    image: pulumi.Output[str]
    """The reference of the image; of a built image, by digest."""

    def __init__(self, stack: str, plan: ServicePlan, registrar: _Registrar, opts: pulumi.ResourceOptions) -> None:
        name = ResourceName.make(stack, ResourceKind.SERVICE, plan.cluster_name)
        super().__init__(SERVICE_TYPE, str(name), None, opts)
        self._stack, self._plan, self._registrar = stack, plan, registrar

    def add_image(self, image: ImageBuild, builder: str) -> None:
        built = self._registrar.late.images
        bases = {context: built[base.service] for context, base in image.bases.items() if isinstance(base, BuiltImage)}
        bases.update({context: base for context, base in image.bases.items() if isinstance(base, str)})
        # Other environments may share its layers, so the image stays in the registry when the stack is destroyed.
        kept = pulumi.ResourceOptions(parent=self, retain_on_delete=True)
        name = ResourceName.make(self._stack, ResourceKind.IMAGE, self._plan.cluster_name)
        resource = build_image(
            str(name), image, builder, kept, bases, self._registrar.logins, late=self._registrar.late.texts
        )
        loader = self._registrar.loader if image.is_loaded else None
        built[self._plan.name] = (
            loader.load(image.service, image.reference, resource) if loader else resource.ref  # type: ignore[attr-defined]
        )
        self._registrar.built[self._plan.name] = resource

    def add_objects(self, gate: DependencyGate | None) -> None:
        plan = self._plan
        late = self._registrar.late
        self.image = pulumi.Output.from_input(late.images.get(plan.name) or late.texts.text(str(plan.image)))
        for desired in plan.objects:
            is_workload = desired.key.kind is ResourceKind.WORKLOAD
            hooks = gate.hooks(plan, self._stack) if gate and is_workload else None
            registered = self._registrar.register(desired, self, hooks)
            if is_workload:
                self.workload = registered
        self.register_outputs({})


class ComposeEndpoints(pulumi.ComponentResource):
    """The routes of one host."""

    urls: pulumi.Output[list[str]]

    def __init__(self, stack: str, plan: EndpointPlan, registrar: _Registrar, opts: pulumi.ResourceOptions) -> None:
        name = ResourceName.make(stack, ResourceKind.ENDPOINTS, plan.name)
        super().__init__(ENDPOINTS_TYPE, str(name), None, opts)
        for desired in plan.objects:
            registrar.register(desired, self)
        self.urls = pulumi.Output.all(*(registrar.late.texts.text(url) for url in plan.urls))
        self.register_outputs({})


def _ambient_gate(plan: Plan, timeout: float) -> DependencyGate | None:
    if not plan.edges:
        return None
    try:
        access = find_access(os.environ)
    except MissingPiece as error:
        raise pulumi.RunError(with_hint(error)) from error
    watcher = Watcher(access, plan.namespace, plan.environment, plan.workload_kinds)
    return DependencyGate(plan=plan, access=access, watcher=watcher, deadline=Deadline(timeout, plan.start_delays))
