"""Rules about the images of services: an image that can't be read, and volumes that only the image declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from composeplat.compose.model import Service
from composeplat.compose.origins import Checker
from composeplat.registry.image_config import ImageFacts

ImageAnswers = Mapping[str, ImageFacts | str]
"""By image: its facts, or the reason why it can't be read."""

_LOST = "without a mount, it is lost with the pod"


def check_images(checker: Checker, images: ImageAnswers) -> None:
    facts: dict[str, ImageFacts] = {}
    for service in checker.project.services.values():
        found = images.get(service.image) if service.is_pulled else None
        path = ("services", service.name, "image")
        if isinstance(found, str):
            checker.add("unread-image", path, f"names {checker.origins.shown(*path)}, which {found}")
        elif found is not None:
            facts[service.image] = found
    check_image_volumes(checker, facts)


def check_image_volumes(checker: Checker, images: Mapping[str, ImageFacts]) -> None:
    """Report the volumes that only the image declares; Docker Compose keeps their data in anonymous volumes."""
    for service in checker.project.services.values():
        found = images.get(service.image) if service.is_pulled else None
        for volume in unmounted_volumes(service, found) if found is not None and not service.is_job else ():
            lost = "only what is mounted below it is kept" if _mounts_below(service, volume) else _LOST
            message = f"names an image with a volume at {volume}: {lost}"
            checker.add(
                "image-volume", ("services", service.name, "image"), message, f"mount a named volume at {volume}"
            )


def unmounted_volumes(service: Service, image: ImageFacts, further: Iterable[str] = ()) -> list[str]:
    """List the volumes of an image that no mount of the service covers as a whole, nor one at a ``further`` path."""
    targets = [f"{target.rstrip('/')}/" for target in (*(mount.target for mount in service.mounts), *further)]
    return [volume for volume in image.volumes if not f"{volume.rstrip('/')}/".startswith(tuple(targets))]


def _mounts_below(service: Service, volume: str) -> bool:
    return any(mount.target.startswith(f"{volume.rstrip('/')}/") for mount in service.mounts)
