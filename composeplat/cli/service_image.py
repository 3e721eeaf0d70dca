"""The process and the users of a service's image, read from its registry for ``platform run`` and ``platform up``.

Owns at which addresses the image is looked for, and the errors about a user. Must not know the pod that is made.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from composeplat import progress
from composeplat.cli.operations import Planned
from composeplat.compose.model import Service, User
from composeplat.compose.user_names import NUMBERS_HINT
from composeplat.compose.variables import asks_registries
from composeplat.diagnostics import ComposeplatError
from composeplat.plan.image_users import resolve_user
from composeplat.registry.image_config import READ_ERRORS, TIMEOUT_S, ImageConfig, RegistryAccess
from composeplat.registry.image_reference import DOCKER_HUB, ImageReference
from composeplat.registry.image_users import read_image_users
from composeplat.system.deadline import Deadline
from composeplat.system.folders import cache_folder

Process = tuple[tuple[str, ...], tuple[str, ...]]


def read_process(image: str, planned: Planned) -> Process | None:
    """Read the entrypoint and the command of an image; none if its registry does not answer."""
    access = RegistryAccess(planned.loaded.settings.logins, os.environ)
    for name in _addresses(image, planned):
        with contextlib.suppress(*READ_ERRORS):
            return ImageConfig(name, access, Deadline(TIMEOUT_S)).process()
    return None


def read_entrypoint(image: str, planned: Planned) -> tuple[str, ...]:
    """Read the entrypoint of an image; empty, with a note, if its registry does not answer."""
    process = read_process(image, planned)
    if process is None:
        progress.note(f"the registry of image '{image}' does not answer: it runs without entrypoint")
        return ()
    return process[0]


def own_command(service: Service, find_image: Callable[[], str], planned: Planned) -> tuple[str, ...]:
    """Put the command of a service together as a container runtime does; empty if the file has none.

    Only a command without an entrypoint needs the image.
    """
    if service.entrypoint is None and service.command:
        return (*read_entrypoint(find_image(), planned), *service.command)
    return (*(service.entrypoint or ()), *(service.command or ()))


def read_user(user: User, image: str, planned: Planned) -> User:
    """Find the numbers of a user's names."""
    if not user.has_names:
        return user
    names = _addresses(image, planned) if asks_registries(os.environ) else []
    folder, logins = cache_folder(os.environ) / "users", planned.loaded.settings.logins
    with progress.step("reading the users of the image", is_transient=True):
        wanted = {name: {user.text} for name in names}
        found = read_image_users(wanted, folder, os.environ, logins, needs_numbers=True)
    users = next((found[name] for name in names if name in found), None)
    resolved = None if users is None else resolve_user(user, users)
    if resolved is None:
        raise ComposeplatError(f"the users of image '{image}' can't be read from its registry", NUMBERS_HINT)
    if resolved.is_missing:
        raise ComposeplatError(f"image '{image}' has no user or group '{user.text}'", NUMBERS_HINT)
    return resolved


def _addresses(image: str, planned: Planned) -> list[str]:
    """The local cluster looks into its own registry before it asks Docker Hub."""
    reference = ImageReference.parse(image)
    if planned.target.layout is None or reference.registry != DOCKER_HUB:
        return [image]
    return [f"{planned.target.registry}/{reference.repository}:{reference.version}", image]
