"""The Secrets with the variables that providers set, and their use in pods.

Owns their names. One Secret serves all dependents of a provider, so that their pods name it before its values, and even
the names of the variables, are known: only a deploy knows these.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace

from composeplat.compose.model import Project, Service
from composeplat.compose.provider_model import Provider
from composeplat.names import clean
from composeplat.plan.desired import DesiredObject, FilePlan, Manifest, Plan
from composeplat.plan.identity import Identity
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.storage import Storage

#: The section of the definition that has providers.
SECTION = "services"


def provided_name(provider: str) -> str:
    return f"{clean(provider)}-provided"


def provided_key(provider: str) -> ResourceKey:
    return ResourceKey(ResourceKind.PROVIDED, clean(provider))


def plan_provided(project: Project, identity: Identity) -> Iterator[FilePlan]:
    """Plan the Secret of each provider that a service depends on."""
    used = {name for service in project.services.values() for name in service.provided}
    for name, provider in project.providers.items():
        if name in used:
            desired = DesiredObject(key=provided_key(name), manifest=_secret(provider, identity))
            yield FilePlan(section=SECTION, name=name, objects=(desired,))


def _secret(provider: Provider, identity: Identity) -> Manifest:
    values = sorted(provider.variables.items())
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": identity.metadata(provided_name(provider.name), clean(provider.name)),
        "type": "Opaque",
        "data": {name: base64.b64encode(value.encode()).decode("ascii") for name, value in values},
    }


def without_provided(plan: Plan) -> Plan:
    """Return the plan as text has it: an empty Secret would start services without their variables."""
    return replace(plan, files=tuple(file for file in plan.files if file.section != SECTION))


def add_provided(service: Service, project: Project, storage: Storage) -> None:
    """Let the pods of a service change with the variables that its providers set."""
    for name in service.provided:
        variables = project.providers[name].variables
        storage.objects[provided_key(name)] = json.dumps(variables, sort_keys=True).encode() if variables else b""


def provided_sources(service: Service) -> list[Manifest]:
    """Return the sources of a container's variables; as in Compose, those of a provider win over ``environment``."""
    return [{"secretRef": {"name": provided_name(name)}} for name in service.provided]
