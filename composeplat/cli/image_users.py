"""Users that a definition names: looked up in their images, before a plan is made of it.

Owns when registries are asked for them. Must not read an image: :mod:`composeplat.registry.image_users` does.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

from composeplat import progress
from composeplat.compose.load import Loaded
from composeplat.compose.variables import asks_registries
from composeplat.plan.image_users import named_users, with_image_users

#: A definition is read several times in a command: a silent registry makes it wait once.
_FAILURE_KNOWN_S = 60.0
_failed_until: dict[str, float] = {}


def look_up_users(loaded: Loaded) -> Loaded:
    """Return the definition with the numbers of its users, as far as the registries of their images answer."""
    now = time.monotonic()
    wanted = {
        image: names for image, names in named_users(loaded.project).items() if now >= _failed_until.get(image, 0.0)
    }
    if not wanted or not asks_registries(os.environ):
        return loaded
    from composeplat.registry.image_users import read_image_users
    from composeplat.system.folders import cache_folder

    folder, settings = cache_folder(os.environ) / "users", loaded.settings
    numbers = bool(settings.pod_security)
    with progress.step("reading the users of the images", is_transient=True):
        users = read_image_users(wanted, folder, os.environ, settings.logins, needs_numbers=numbers)
    _failed_until.update(dict.fromkeys(wanted.keys() - users.keys(), time.monotonic() + _FAILURE_KNOWN_S))
    return replace(loaded, project=with_image_users(loaded.project, users))
