"""The exposed ports of an image, in the cluster service of a service that has no ports of its own.

Owns when they are read: while Pulumi runs, because the digest of a built image is only known then.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import pulumi

from composeplat.compose.placeholders import has_placeholder
from composeplat.compose.variables import asks_registries
from composeplat.plan.desired import BuiltImage, DesiredObject, Manifest
from composeplat.plan.services import add_image_ports
from composeplat.registry.credentials import Login
from composeplat.registry.exposed_ports import ExposedPorts
from composeplat.registry.image_config import Ports
from composeplat.system.folders import cache_folder


class ImagePorts:
    def __init__(self, logins: Mapping[str, Login]) -> None:
        is_enabled = asks_registries(os.environ)
        self._exposed = ExposedPorts(cache_folder(os.environ) / "ports", os.environ, logins) if is_enabled else None

    def start_reading(self, objects: tuple[DesiredObject, ...]) -> None:
        """Start to read the ports of all images with a known name, at the same time."""
        if self._exposed:
            for desired in objects:
                if desired.ports_of and isinstance(desired.ports_of, str) and not has_placeholder(desired.ports_of):
                    self._exposed.request(desired.ports_of)

    def remember(self, image: str, ports: Ports) -> None:
        """Remember the ports of an image that is in no registry."""
        if self._exposed:
            self._exposed.remember(image, ports)

    def set_ports(self, bound: Manifest, image: BuiltImage | str, built: Mapping[str, pulumi.Input[str]]) -> None:
        """Add the ports of an image to a Service; those of an image that is an output are not looked for."""
        if self._exposed and image and not has_placeholder(str(image)):
            bound["spec"] = pulumi.Output.from_input(self._spec(self._exposed, bound["spec"], image, built))

    async def _spec(
        self, exposed: ExposedPorts, spec: Manifest, image: BuiltImage | str, built: Mapping[str, pulumi.Input[str]]
    ) -> Manifest:
        if isinstance(image, str):
            return add_image_ports(spec, await _wait(exposed, image) or ())
        reference: pulumi.Output[Any] = pulumi.Output.from_input(built[image.service])
        # A preview does not build an image: it assumes the ports of the last build.
        known = str(await reference.future()) if await reference.is_known() else ""
        if image.is_loaded:
            return add_image_ports(spec, exposed.recall(known or image.name) or ())
        ports = await _wait(exposed, known or image.name)
        if known and ports is not None:
            exposed.remember(image.name, ports)
        return add_image_ports(spec, ports or ())


async def _wait(exposed: ExposedPorts, reference: str) -> Ports | None:
    """Wait for the ports. If this task is cancelled, the request continues, as others may wait for it."""
    return await asyncio.shield(asyncio.wrap_future(exposed.request(reference)))
