"""Services that run an image which another service of the file builds.

Owns which they are: those without ``build`` whose ``image`` is that of a service with one. Docker Compose builds that
image before it starts any of them, so none of them pulls it.
Must not know where images are pushed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composeplat.compose.model import Project, Service
from composeplat.registry.image_reference import ImageReference


def with_shared_images(project: Project) -> Project:
    """Record the builder of each such service; of several builders of one image, it is the first."""
    builders = builders_of(project)
    if not builders:
        return project
    services = {name: _with_builder(service, builders) for name, service in project.services.items()}
    return replace(project, services=services)


def builders_of(project: Project) -> dict[tuple[str, ...], str]:
    """Return the service that builds each image which has a name in the definition; a job of its hook builds none."""
    builders: dict[tuple[str, ...], str] = {}
    for service in project.services.values():
        if service.build is not None and service.image and not service.container.image_of:
            builders.setdefault(image_identity(service.image), service.name)
    return builders


def _with_builder(service: Service, builders: Mapping[tuple[str, ...], str]) -> Service:
    builder = builders.get(image_identity(service.image), "") if service.image and service.build is None else ""
    if not builder:
        return service
    # 'never' says that the image is built here; a node pulls it from where it was pushed.
    pull = "" if service.container.pull == "never" else service.container.pull
    return replace(service, container=replace(service.container, built_by=builder, pull=pull))


def image_identity(image: str) -> tuple[str, ...]:
    """Return what is the same for all names of one image."""
    parsed = ImageReference.parse(image)
    return (parsed.registry, parsed.repository, parsed.version)
