"""The users and groups of images, read from the layers in their registries and cached on this machine.

Owns when layers are read: not for the user that an image has anyway, and once for each content. Layers can be large, so
reading them has a deadline of its own.
Must not know what the numbers are for. An image that can't be read in time is left out, and no message says so.
"""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

from composeplat.registry.credentials import Login
from composeplat.registry.image_config import (
    READ_ERRORS,
    TIMEOUT_S,
    ImageConfig,
    ImageContents,
    RegistryAccess,
)
from composeplat.registry.image_reference import ImageReference
from composeplat.registry.layer_files import read_files
from composeplat.system.atomic import write_file
from composeplat.system.deadline import Deadline
from composeplat.system.records import record

LAYERS_TIMEOUT_S = 30.0
_TAG_CACHED_S = 24 * 3600.0
_PASSWD, _GROUP = "etc/passwd", "etc/group"
_MAX_NAMES = 2000
_MAX_ID = 2**31 - 1


@record(kw_only=True)
class ImageUsers:
    """The users and groups in the files of an image."""

    default: str = ""
    """The user that the image runs as."""
    users: Mapping[str, tuple[int, int]] | None = None
    """Name -> its number, and that of its first group; None where the layers were not read."""
    groups: Mapping[str, int] = field(default_factory=dict)


@record(kw_only=True)
class _CacheEntry:
    found: ImageUsers
    is_unreadable: bool = False
    """Whether reading the layers failed, which is not tried again for a time."""
    content: str
    """The digest of the content that was read."""
    expires: float

    def is_failure_of(self, content: str) -> bool:
        return self.is_unreadable and self.content == content and self.expires > time.time()


def read_image_users(
    wanted: Mapping[str, Collection[str]],
    folder: Path,
    environment: Mapping[str, str],
    logins: Mapping[str, Login] = MappingProxyType({}),
    *,
    needs_numbers: bool = False,
) -> dict[str, ImageUsers]:
    """Read the users of images, all at the same time; ``wanted`` has the users that are looked for in each.

    Without ``needs_numbers``, the name of an image's own user needs no number.
    """
    found: dict[str, ImageUsers] = {}
    access = RegistryAccess(logins, environment)

    def read(image: str, names: Collection[str]) -> None:
        entry = _find(image, _Cache(folder, image), access, frozenset() if needs_numbers else frozenset(names))
        if entry is not None:
            found[image] = entry

    threads = [threading.Thread(target=read, args=item, daemon=True) for item in wanted.items()]
    for thread in threads:
        thread.start()
    deadline = Deadline(TIMEOUT_S + LAYERS_TIMEOUT_S)
    for thread in threads:
        thread.join(deadline.remaining_s)
    return dict(found)


def _find(image: str, cache: _Cache, access: RegistryAccess, names: frozenset[str]) -> ImageUsers | None:
    """Find the users of an image; what was known of it before holds while its registry can't be asked."""
    entry = cache.read()
    usable = entry if entry is not None and _suffices(entry.found, names) else None
    if usable is not None and (ImageReference.parse(image).digest or usable.expires > time.time()):
        return usable.found
    try:
        contents = ImageConfig(image, access, Deadline(TIMEOUT_S)).contents()
        found = usable.found if usable is not None and usable.content == contents.digest else None
        if found is None:
            found = ImageUsers(default=contents.user)
    except READ_ERRORS:
        return usable.found if usable is not None else None
    is_unreadable = False
    if not _suffices(found, names):
        if entry is not None and entry.is_failure_of(contents.digest):
            return None
        try:
            found = _read_layers(image, access, contents)
        except READ_ERRORS:
            is_unreadable = True
    expires = time.time() + _TAG_CACHED_S
    cache.write(_CacheEntry(found=found, content=contents.digest, expires=expires, is_unreadable=is_unreadable))
    return None if is_unreadable else found


def _suffices(found: ImageUsers, names: frozenset[str]) -> bool:
    return found.users is not None or names == {found.default}


def _read_layers(image: str, access: RegistryAccess, contents: ImageContents) -> ImageUsers:
    deadline = Deadline(LAYERS_TIMEOUT_S)
    config = ImageConfig(image, access, deadline)
    opened = [functools.partial(config.open_layer, digest) for digest in reversed(contents.layers)]
    files = read_files(opened, (_PASSWD, _GROUP), deadline)
    passwd, group = (_parse(files.get(path, b"")) for path in (_PASSWD, _GROUP))
    users = {row[0]: (row[1], row[2]) for row in reversed(passwd) if row[2] is not None}
    return ImageUsers(default=contents.user, users=users, groups={row[0]: row[1] for row in reversed(group)})


def _parse(content: bytes) -> list[tuple[str, int, int | None]]:
    """Parse the name, the number and the second number of each line, as far as it has them; a first line counts."""
    rows = []
    for line in content.decode(errors="replace").splitlines()[:_MAX_NAMES]:
        name, *fields = line.split(":")
        number, second = (_parse_id(fields[index]) if len(fields) > index else None for index in (1, 2))
        if name and number is not None:
            rows.append((name, number, second))
    return rows


def _parse_id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and int(text) <= _MAX_ID else None


class _Cache:
    """The file of one image."""

    def __init__(self, folder: Path, image: str) -> None:
        self._path = folder / f"{hashlib.sha256(image.encode()).hexdigest()[:32]}.json"
        self._image = image

    def read(self) -> _CacheEntry | None:
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
            users = known["users"]
            numbers = None if users is None else {str(name): (int(uid), int(gid)) for name, (uid, gid) in users.items()}
            groups = {str(name): int(gid) for name, gid in known["groups"].items()}
            found = ImageUsers(default=str(known["default"]), users=numbers, groups=groups)
            content, expires = str(known["content"]), float(known["until"])
            failed = known["unreadable"] is True
            return _CacheEntry(found=found, content=content, expires=expires, is_unreadable=failed)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def write(self, entry: _CacheEntry) -> None:
        found = entry.found
        users = None if found.users is None else dict(found.users)
        known = {"reference": self._image, "content": entry.content, "until": entry.expires, "default": found.default}
        known |= {"users": users, "groups": dict(found.groups), "unreadable": entry.is_unreadable}
        try:
            write_file(self._path, json.dumps(known) + "\n")
        except OSError:
            return
