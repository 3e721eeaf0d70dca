"""The causes of failed services, from Pulumi's errors about their resources.

Owns the causes that Pulumi and the API server report. Pure.
:mod:`composeplat.cluster.failure_causes` has the causes that pods show, and
:mod:`~composeplat.engine.build_failures` those of builds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from composeplat.cluster.cause import Cause
from composeplat.cluster.dependencies import dependency_cause
from composeplat.codes.causes import CauseCode
from composeplat.components.resource_names import ResourceName, last_part
from composeplat.engine.events import Events, Operation
from composeplat.engine.pulumi_args import image_urn
from composeplat.plan.desired import ImageBuild, Plan
from composeplat.plan.resource_keys import ResourceKey, ResourceKind

#: Pulumi's message about the whole run, beside the one about the resource.
_NOISE = ("update failed", "preview failed")
_DONE = {Operation.UPDATE: "updated", Operation.REPLACE: "replaced", Operation.DELETE: "deleted"}
_FRAMES = ("1 error occurred: * ", "Server-Side Apply field conflict detected. ")
_RESOURCE = re.compile(r'resource "urn:[^"]+" was not successfully \w+ by the Kubernetes API server: ')


def find_refusals(
    events: Events, plan: Plan, chosen: Collection[str], why_not_built: Callable[[ImageBuild, str], Cause]
) -> Iterable[tuple[str, Cause]]:
    """What Pulumi, the API server or a builder refused: by each of the chosen services that lacks it, and why.

    A service that a dependency held back has failed before: the gate has recorded its cause.
    """
    images, users = {image_urn(plan, image): image for image in plan.images}, _Users(plan, chosen)
    for urn, texts in events.messages.items():
        text = next((text for text in texts if not text.startswith(_NOISE)), "")
        if not urn or not text:
            continue
        if urn in images:
            cause = why_not_built(images[urn], text)
        else:
            change = events.changes.get(urn)
            what = f"{change.kind} '{change.name}'" if change else last_part(urn)
            done = _DONE.get(change.operation, "created") if change else "created"
            cause = Cause(
                code=CauseCode.REFUSED, message=f"{what} could not be {done}: {_sentence(text)}", has_subject=True
            )
        name = ResourceName.from_urn(urn)
        for service in users.of(name.key) if name else [last_part(urn)]:
            yield service, cause


class _Users:
    """The services that a resource is of, or that need it: Pulumi skips what needs it without an event.

    They are indexed once, as a policy may refuse the resources of all services.
    """

    def __init__(self, plan: Plan, chosen: Collection[str]) -> None:
        self._chosen = frozenset(chosen)
        self._own = {service.cluster_name: service.name for service in plan.services}
        self._routed = {endpoint.name: {name for name, _ in endpoint.routes} for endpoint in plan.endpoints}
        self._needing: dict[ResourceKey, set[str]] = defaultdict(set)
        workloads: dict[tuple[str, str], set[str]] = defaultdict(set)
        for service in plan.services:
            workloads[service.workload].add(service.name)
            for need in (need for desired in service.objects for need in desired.needs):
                self._needing[need].add(service.name)
        self._in_same_pods = {service.name: workloads[service.workload] for service in plan.services}

    def of(self, key: ResourceKey) -> list[str]:
        own = [self._own[key.name]] if key.kind.is_of_service and key.name in self._own else []
        needing: Collection[str] = self._needing.get(key, ())
        if key.kind is ResourceKind.WORKLOAD:
            # What comes after it waits for its service, not for the object.
            needing = own
        elif key.kind is ResourceKind.ENDPOINT:
            needing = self._routed.get(key.name, ())
        users = {user for name in needing for user in self._in_same_pods[name]} & self._chosen
        return list(dict.fromkeys((*own, *sorted(users)))) or [key.name]


def find_blocked(plan: Plan, failed: Collection[str], going: Collection[str]) -> dict[str, Cause]:
    """The pending services that depend on a failed service: Pulumi skips them without an event."""
    found: dict[str, Cause] = {}
    lost = set(failed)
    while held := [
        edge for edge in plan.edges if edge.dependency in lost and edge.service in going and edge.service not in lost
    ]:
        for edge in held:
            found.setdefault(edge.service, dependency_cause(edge.dependency, "which failed"))
        lost |= found.keys()
    return found


def _sentence(text: str) -> str:
    flat = _RESOURCE.sub("", " ".join(text.split()))
    for frame in _FRAMES:
        flat = flat.replace(frame, "")
    return flat
