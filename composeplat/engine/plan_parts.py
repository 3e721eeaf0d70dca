"""The parts of a definition that objects belong to: services, volumes, endpoints, networks, configs and secrets.

Owns how a part is found by the key of an object, and the order in which changes are shown: Pulumi's differs each time.
"""

from __future__ import annotations

from collections.abc import Iterable

from composeplat.engine.events import Change
from composeplat.plan.desired import Plan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.system.records import record


@record
class Part:
    """The service, volume, network or endpoint of the definition that an object belongs to."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


class Parts:
    """The parts of a plan, found by the keys of their objects: an index, as there may be thousands of changes."""

    def __init__(self, plan: Plan) -> None:
        # Of two with one name in the cluster, the first counts.
        self._volumes = {volume.cluster_name: volume.name for volume in reversed(plan.volumes)}
        self._networks = {network.cluster_name: network.name for network in reversed(plan.networks)}
        self._services = {service.cluster_name: service.name for service in reversed(plan.services)}
        self._aliases = {key: service.name for service in reversed(plan.services) for key in service.keys}
        self._files = {desired.key: file.name for file in reversed(plan.files) for desired in file.objects}

    def group(self, changes: Iterable[Change]) -> dict[Part, list[Change]]:
        """Group changes by their parts, both sorted."""
        found: dict[Part, list[Change]] = {}
        for change in sorted(changes, key=lambda change: (change.operation, change.kind, change.name)):
            found.setdefault(self.part_of(change), []).append(change)
        return dict(sorted(found.items(), key=lambda item: (item[0].type, item[0].name)))

    def part_of(self, change: Change) -> Part:
        key = change.key
        name = key.name if key is not None else change.name
        match key:
            case ResourceKey(kind=ResourceKind.CLAIM):
                return Part("volume", self._volumes.get(name, name))
            case ResourceKey(kind=ResourceKind.ENDPOINT):
                return Part("endpoint", name)
            case ResourceKey(kind=ResourceKind.NETWORK):
                return Part("network", self._networks.get(name, name))
            case ResourceKey(kind=ResourceKind.ALIAS):
                return Part("service", self._aliases.get(key, name))
            case ResourceKey(kind=ResourceKind.CONFIG | ResourceKind.SECRET as kind):
                return Part(str(kind), self._files.get(key, name))
        return Part("service", self._services.get(name, name))
