"""Users that a definition names: looked up in their images, before a plan is made of it.

Images that a deploy builds are built first then, and the plan is made again with the numbers.
Owns when registries are asked for them. Must not read an image: :mod:`composeplat.registry.image_users` does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from composeplat import progress
from composeplat.compose.load import Loaded
from composeplat.compose.options import Settings
from composeplat.compose.variables import asks_registries
from composeplat.diagnostics import Report
from composeplat.plan.image_users import named_users, with_awaited_users, with_built_users, with_image_users

if TYPE_CHECKING:  # a command without names of users reads no registry
    from composeplat.registry.image_users import ImageUsers

#: A definition is read several times in a command: a silent registry makes it wait once.
_FAILURE_KNOWN_S = 60.0
_failed_until: dict[str, float] = {}


def look_up_users(loaded: Loaded, *, builds: bool = True) -> Loaded:
    """Return the definition with the numbers of its users, as far as the registries of their images answer.

    With ``builds``, those of images that the definition builds can be looked up later.
    """
    if builds and asks_registries(os.environ):
        loaded = replace(loaded, project=with_awaited_users(loaded.project, loaded.settings))
    now = time.monotonic()
    wanted = {
        image: names for image, names in named_users(loaded.project).items() if now >= _failed_until.get(image, 0.0)
    }
    if not wanted or not asks_registries(os.environ):
        return loaded
    users = _read(wanted, loaded.settings)
    _failed_until.update(dict.fromkeys(wanted.keys() - users.keys(), time.monotonic() + _FAILURE_KNOWN_S))
    return replace(loaded, project=with_image_users(loaded.project, users))


def with_built_numbers(loaded: Loaded, wanted: Mapping[str, Collection[str]], references: Mapping[str, str]) -> Loaded:
    """Return the definition with the numbers of users in images that are built, which are known by their digests.

    The names and the references are by the service that builds an image. The report is a new one.
    """
    names = {references[service]: found for service, found in wanted.items() if service in references}
    users = _read(names, loaded.settings) if names else {}
    images = {service: users.get(references[service]) for service in wanted if service in references}
    project = with_built_users(loaded.project, loaded.settings, images)
    return replace(loaded, project=project, report=Report())


def _read(wanted: Mapping[str, Collection[str]], settings: Settings) -> dict[str, ImageUsers]:
    from composeplat.registry.image_users import read_image_users
    from composeplat.system.folders import cache_folder

    folder, numbers = cache_folder(os.environ) / "users", bool(settings.pod_security)
    with progress.step("reading the users of the images", is_transient=True):
        return read_image_users(wanted, folder, os.environ, settings.logins, needs_numbers=numbers)
