"""The components of the provider, each made with its arguments, and its outputs for programs in every language.

Owns which attributes of a Python component are outputs, under the names of the schema.
It is apart from the provider, which imports it for the first component: most starts only ask for the schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi

from composeplat.components.children import ComposeService
from composeplat.components.resource_names import SERVICE_TYPE, STACK_TYPE
from composeplat.components.service import Service
from composeplat.components.stack import ComposeStack

Outputs = dict[str, Any]


def make_stack(
    name: str, arguments: dict[str, Any], opts: pulumi.ResourceOptions | None
) -> tuple[pulumi.Resource, Outputs]:
    if "files" in arguments:
        if "file" in arguments:
            raise pulumi.RunError("file and files are both given: give one of them")
        arguments["file"] = arguments.pop("files")
    stack = ComposeStack(name, **arguments, opts=opts)
    outputs = {
        "namespace": stack.namespace,
        "urls": stack.urls,
        "services": {service: _of_service(found) for service, found in stack.services.items()},
        "claims": {volume: found.claim_name for volume, found in stack.volumes.items()},
        "images": {service: found.image for service, found in stack.services.items()},
        "digests": {service: found.digest for service, found in stack.services.items()},
        "env": {service: found.env for service, found in stack.services.items()},
    }
    return stack, outputs


def _of_service(service: ComposeService) -> Outputs:
    return {"name": service.name, "address": service.address, "ports": service.ports, "urls": service.urls}


def make_service(
    name: str, arguments: dict[str, Any], opts: pulumi.ResourceOptions | None
) -> tuple[pulumi.Resource, Outputs]:
    service = Service(name, **arguments, opts=opts)
    outputs = {
        **_of_service(service),
        "namespace": service.namespace,
        "claims": {volume: found.claim_name for volume, found in service.volumes.items()},
        "image": service.image,
        "digest": service.digest,
        "env": service.env,
    }
    return service, outputs


CONSTRUCTORS: dict[str, Callable[..., tuple[pulumi.Resource, Outputs]]] = {
    SERVICE_TYPE: make_service,
    STACK_TYPE: make_stack,
}
