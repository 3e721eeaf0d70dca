"""What is built: services with a ``build`` section, and images that carry large host content."""

from __future__ import annotations

import os.path

from composeplat.model import HOST, MAX_HOST_BYTES, MAX_HOST_FILES, Build, Mount, Service
from composeplat.names import clean
from composeplat.plan.desired import ImageBuild, ImageOf
from composeplat.settings import Settings


def image_reference(service: Service, settings: Settings) -> str:
    """The name an image is pushed as: the service's own, or ``<registry>/<environment>-<service>``."""
    if service.image and service.build is not None:
        return service.image
    name = f"{settings.environment}-{clean(service.name)}"
    return f"{settings.registry.rstrip('/')}/{name}" if settings.registry else name


def plan_image(service: Service, settings: Settings) -> ImageBuild | None:
    reference = image_reference(service, settings)
    if service.build is not None:
        return ImageBuild(service=service.name, reference=reference, build=service.build)
    if carries_content_in_image(service):
        return ImageBuild(service=service.name, reference=reference, build=_derived(service), derived=True)
    return None


def image_of(service: Service, settings: Settings) -> ImageOf | str:
    if service.build is not None or carries_content_in_image(service):
        return ImageOf(service.name, image_reference(service, settings))
    return service.image


def carries_content_in_image(service: Service) -> bool:
    """Say whether a service's host content is more than a ConfigMap should carry: then all of it is built in."""
    contents = [mount.content for mount in host_mounts(service) if mount.content is not None]
    if any(content.files is None for content in contents):
        return True
    files = [file for content in contents for file in content.files or ()]
    return len(files) > MAX_HOST_FILES or sum(len(file.content) for file in files) > MAX_HOST_BYTES


def host_mounts(service: Service) -> list[Mount]:
    """The host volumes that a deployment has: none where the service is built."""
    return [mount for mount in service.mounts if mount.kind == HOST] if service.build is None else []


def _derived(service: Service) -> Build:
    """Lay host content over the image; each host path is a build context of its own, so nothing else is sent."""
    lines = [f"FROM {service.image}"]
    contexts: dict[str, str] = {}
    for index, mount in enumerate(host_mounts(service)):
        context = f"host{index}"
        is_folder = mount.content is not None and mount.content.is_folder
        contexts[context] = mount.source if is_folder else os.path.dirname(mount.source)
        source = "." if is_folder else os.path.basename(mount.source)
        target = f"{mount.target}/" if is_folder else mount.target
        lines.append(f'COPY --from={context} ["{_escaped(source)}", "{_escaped(target)}"]')
    inline = "\n".join(lines) + "\n"
    return Build(context=next(iter(contexts.values())), dockerfile_inline=inline, additional_contexts=contexts)


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')
