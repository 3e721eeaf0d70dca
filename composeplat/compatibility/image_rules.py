"""Rules about the images of services: an image that can't be read, and volumes that only the image declares."""

from __future__ import annotations

from collections.abc import Mapping

from composeplat.compose.model import Service
from composeplat.compose.origins import Checker
from composeplat.registry.image_config import ImageFacts

ImageAnswers = Mapping[str, ImageFacts | str]
"""By image: its facts, or the reason why it can't be read."""


def check_images(checker: Checker, images: ImageAnswers) -> None:
    for service in checker.project.services.values():
        found = images.get(service.image) if service.build is None else None
        path = ("services", service.name, "image")
        if isinstance(found, str):
            checker.add("unread-image", path, f"names {checker.origins.shown(*path)}, which {found}")
        elif found is not None and not service.is_job:
            for volume in unmounted_volumes(service, found):
                message = f"names an image with a volume at {volume}: without a mount, it is lost with the pod"
                checker.add("image-volume", path, message, f"mount a named volume at {volume}")


def unmounted_volumes(service: Service, image: ImageFacts) -> list[str]:
    """List the volumes of an image that no mount of the service covers."""
    targets = [mount.target.rstrip("/") for mount in service.mounts]
    return [volume for volume in image.volumes if not any(_covers(target, volume) for target in targets)]


def _covers(target: str, volume: str) -> bool:
    """Whether a mount is at a volume, above it, or within it."""
    volume = volume.rstrip("/")
    return f"{volume}/".startswith(f"{target}/") or target.startswith(f"{volume}/")
