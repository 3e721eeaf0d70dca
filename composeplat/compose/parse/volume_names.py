"""Volumes with one ``name`` are one volume, as in Compose; the first of them stays, and has the mounts of all.

The keys are those of full mode alone; without it no volume has a ``name``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composeplat.compose.model import NAMED, Mount, Project, Volume
from composeplat.compose.parse.fields import Context
from composeplat.names import given_name


def with_joined_volumes(project: Project, ctx: Context) -> Project:
    """Join the volumes of one name; report those that differ in something else."""
    first: dict[str, Volume] = {}
    joined: dict[str, str] = {}
    for volume in project.volumes.values():
        other = first.setdefault(given_name(volume.object_name, volume.name), volume)
        if other is volume or not (volume.object_name or other.object_name):
            continue
        joined[volume.name] = other.name
        if replace(volume, name=other.name, object_name=other.object_name, labels=other.labels) != other:
            _report(ctx, volume, other)
        elif not (volume.object_name and other.object_name):
            _report(ctx, volume, other, hint="give one of them another name")
    return _renamed(project, joined) if joined else project


def _report(ctx: Context, volume: Volume, other: Volume, *, hint: str = "write the same for both") -> None:
    place = ctx.origins.at("volumes", other.name)
    message = (
        f"volumes.{volume.name} has the name of volumes.{other.name}, in line {place.line}, and is not the same volume"
    )
    path = ("volumes", volume.name)
    ctx.report.add("name-conflict", ctx.origins.key_at(*path), path, message, hint)


def _renamed(project: Project, joined: Mapping[str, str]) -> Project:
    services = {
        name: replace(service, mounts=tuple(_mount(mount, joined) for mount in service.mounts))
        for name, service in project.services.items()
    }
    volumes = {name: volume for name, volume in project.volumes.items() if name not in joined}
    return replace(project, services=services, volumes=volumes)


def _mount(mount: Mount, joined: Mapping[str, str]) -> Mount:
    return replace(mount, source=joined[mount.source]) if mount.kind == NAMED and mount.source in joined else mount
