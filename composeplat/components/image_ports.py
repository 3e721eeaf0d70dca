"""The ports that an image names itself, put into the cluster service of a service that names none.

They are read while Pulumi runs, because only then the digest of a built image is known: so they are always those of
the deployed image.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import pulumi

from composeplat.compose.variables import Variables
from composeplat.plan.desired import BuiltImage, DesiredObject, Manifest
from composeplat.plan.services import add_image_ports
from composeplat.registry.credentials import Login
from composeplat.registry.exposed_ports import ExposedPorts
from composeplat.registry.image_config import Ports
from composeplat.system.folders import cache_folder

#: Where it is false, no registry is asked.
IMAGE_PORTS_VARIABLE = "PLATFORM_IMAGE_PORTS"


class ImagePorts:
    def __init__(self, logins: Mapping[str, Login]) -> None:
        wanted = Variables.from_layers(os.environ, {}, {}).flag(IMAGE_PORTS_VARIABLE, default=True)
        self._exposed = ExposedPorts(cache_folder(os.environ) / "ports", os.environ, logins) if wanted else None

    def begin(self, objects: tuple[DesiredObject, ...]) -> None:
        """Begin to read what is known by name, all side by side."""
        if self._exposed:
            for desired in objects:
                if desired.ports_of and isinstance(desired.ports_of, str):
                    self._exposed.request(desired.ports_of)

    def set_ports(self, bound: Manifest, image: BuiltImage | str, built: Mapping[str, pulumi.Input[str]]) -> None:
        if self._exposed and image:
            bound["spec"] = pulumi.Output.from_input(self._spec(self._exposed, bound["spec"], image, built))

    async def _spec(
        self, exposed: ExposedPorts, spec: Manifest, image: BuiltImage | str, built: Mapping[str, pulumi.Input[str]]
    ) -> Manifest:
        if isinstance(image, str):
            return add_image_ports(spec, await _wait(exposed, image) or ())
        reference: pulumi.Output[Any] = pulumi.Output.from_input(built[image.service])
        # One that a preview does not build yet exposes what it did the last time, as far as can be said.
        known = str(await reference.future()) if await reference.is_known() else ""
        ports = await _wait(exposed, known or image.name)
        if known and ports is not None:
            exposed.remember(image.name, ports)
        return add_image_ports(spec, ports or ())


async def _wait(exposed: ExposedPorts, reference: str) -> Ports | None:
    """Wait as long as there is time; what is read is for others too, who may wait for it still."""
    return await asyncio.shield(asyncio.wrap_future(exposed.request(reference)))
