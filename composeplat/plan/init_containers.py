"""The init containers of a service's pods, in their order."""

from __future__ import annotations

from collections.abc import Collection

from composeplat.compose.model import Service
from composeplat.compose.options import Settings
from composeplat.plan.desired import BuiltImage, Manifest
from composeplat.plan.folder_modes import plan_folder_modes
from composeplat.plan.tools import plan_tools
from composeplat.plan.volume_fill import plan_fill


def plan_init_containers(
    service: Service,
    settings: Settings,
    image: BuiltImage | str,
    resources: Manifest,
    read_only_volumes: Collection[str],
) -> list[Manifest]:
    fill = plan_fill(service, settings, image, resources, read_only_volumes)
    tools = [plan_tools(service, settings, resources)] if fill else []
    return [*tools, *fill, *plan_folder_modes(service, settings, resources)]
