"""The registration of a plan's objects with Pulumi: each after the objects that it needs, with its late values.

Owns the options of an object, and which objects wait for builds.
Must not know the components, which are the parents of the objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import pulumi

from composeplat.components.build_contexts import UndetectedChanges
from composeplat.components.definition import plain_logins
from composeplat.components.image_loading import ImageLoader
from composeplat.components.image_ports import ImagePorts
from composeplat.components.late_texts import LateTexts
from composeplat.components.manifests import SALT_PATH, LateValues, add_salt, bind, bind_value, read_salt
from composeplat.components.moved_resources import FormerNames, MovedResources
from composeplat.components.resource_names import ResourceName
from composeplat.components.resource_types import register_object, register_typed_object
from composeplat.components.service_transforms import Transforms, checked_transforms
from composeplat.plan import Plan
from composeplat.plan.desired import DesiredObject
from composeplat.plan.extras import ExtraObject
from composeplat.plan.resource_keys import ResourceKey
from composeplat.plan.workloads import ends_pods_first
from composeplat.registry.credentials import Login


class Registrar:
    """Registers the objects of the plan, each after the objects that it needs."""

    moved = MovedResources()
    former_names = FormerNames()
    rewritten: Mapping[ResourceKey, Collection[str]] = MappingProxyType({})
    """The paths of fields whose changes are ignored, as the cluster makes them."""

    def __init__(
        self,
        stack: str,
        plan: Plan,
        resources: dict[ResourceKey, pulumi.CustomResource],
        logins: Mapping[str, Login],
        loader: ImageLoader | None,
        texts: LateTexts,
        *,
        awaits: bool,
        is_typed: bool,
    ) -> None:
        self.stack = stack
        self.identity = plan.identity
        self.resources = resources
        self.awaits = awaits
        self._is_typed = is_typed
        self._register_object = register_typed_object if is_typed else register_object
        """With outputs that a program can read by their names, or without."""
        self.late = LateValues(confidential=plan.confidential, texts=texts)
        self.built: dict[str, pulumi.Resource] = {}
        """The builds, by service."""
        self.awaited_builds: list[pulumi.Resource] = []
        self.undetected = UndetectedChanges()
        self.logins = logins
        self.loader = loader
        self.ports = ImagePorts(plain_logins(logins))
        if loader:
            loader.on_ports = self.ports.remember
        self.extras: Mapping[str, Sequence[ExtraObject]] = {}
        self.transforms: Mapping[str, Transforms] = {}
        self.salted = {found.secret for service in plan.services for found in service.fingerprints}

    def register_files(self, plan: Plan, parent: pulumi.Resource) -> dict[str, pulumi.CustomResource]:
        """Register the configs and secrets, which belong to no service alone."""
        objects = [desired for file in plan.files for desired in file.objects]
        return {f"{desired.kind}/{desired.name}": self.register(desired, parent) for desired in objects}

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
        is_salted = desired.key in self.salted
        aliases = self.moved.of(desired)
        name = str(ResourceName(self.stack, desired.key))
        known = [*(aliases or ()), *self.former_names.aliases(name)] or None
        own = pulumi.ResourceOptions(parent=parent, hooks=hooks, retain_on_delete=keep or None, aliases=known)
        opts = pulumi.ResourceOptions.merge(own, self._options_of(desired))
        # Only a program has resources of its own, with a field manager of their own.
        is_moved = aliases is not None and self._is_typed
        bound = bind(desired.manifest, self.late, awaits=self.awaits, is_moved=is_moved)
        self.ports.set_ports(bound, desired.ports_of, self.late.images)
        resource = self._register_object(name, add_salt(bound) if is_salted else bound, opts)
        self.resources[desired.key] = resource
        if is_salted:
            self.late.salts[desired.key] = read_salt(resource)
        return resource

    def _options_of(self, desired: DesiredObject) -> pulumi.ResourceOptions:
        salt = [SALT_PATH] if desired.key in self.salted else []
        needed = [*self.awaited_builds, *(self.resources[key] for key in desired.needs if key in self.resources)]
        # Names are fixed, so a replacement must be created after the deletion. Only the provider knows that, and Pulumi
        # does not ask it for a forced replacement.
        return pulumi.ResourceOptions(
            depends_on=needed,
            delete_before_replace=True,
            ignore_changes=[*salt, *self.rewritten.get(desired.key, ())] or None,
            # The API server keeps the numbers of a rolling update, which it has set itself, and refuses them here.
            replace_on_changes=["spec.strategy"] if ends_pods_first(desired) else None,
        )

    def register_extra(
        self, extra: ExtraObject, parent: pulumi.Resource, workload: pulumi.Resource
    ) -> pulumi.CustomResource:
        """Register an object of the program, after the workload that it is for; Pulumi waits for it as for any."""
        name = f"{self.stack}-extra/{extra.name}"
        aliases = self.former_names.aliases(name)
        opts = pulumi.ResourceOptions(parent=parent, depends_on=[workload], delete_before_replace=True, aliases=aliases)
        return register_object(name, bind_value(extra.manifest, self.late), opts)

    def transforms_of(self, service: str) -> list[pulumi.ResourceTransform]:
        return checked_transforms(service, self.transforms.get(service, ()))
