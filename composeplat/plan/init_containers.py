"""The init containers of a service's pods, in their order."""

from __future__ import annotations

from collections.abc import Collection

from composeplat.compose.model import Service
from composeplat.compose.options import Settings
from composeplat.plan.desired import Manifest
from composeplat.plan.folder_modes import plan_folder_modes
from composeplat.plan.init_hooks import plan_init_hooks
from composeplat.plan.lifecycle import needs_shell
from composeplat.plan.tools import plan_tools
from composeplat.plan.volume_fill import plan_fill


def plan_init_containers(
    service: Service,
    settings: Settings,
    container: Manifest,
    read_only_volumes: Collection[str],
) -> list[Manifest]:
    """Plan the init containers, by the container of the service."""
    resources = container.get("resources", {})
    fill = plan_fill(service, settings, container, read_only_volumes)
    tools = [plan_tools(service, settings, resources)] if fill or needs_shell(service) else []
    modes = plan_folder_modes(service, settings, resources)
    return [*tools, *fill, *modes, *plan_init_hooks(service, settings, container)]
