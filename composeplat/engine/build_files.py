"""The files that builds read, as they are now: digests of them, and when one of them was changed last.

Owns which files those are (the contexts without ignored files, the Dockerfiles, the secrets), and the size up to which
contents are read: of larger folders, the times of files are taken instead.
Must not know the images, or the files of the last run: :mod:`~composeplat.engine.no_change` compares.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from composeplat.compose.dockerignore import IgnoreRules, Matches, dockerignore_names
from composeplat.compose.load.context_links import read_ignore_file
from composeplat.plan.desired import ImageBuild
from composeplat.system.records import record

_MAX_FILES_READ = 20_000
_MAX_BYTES_READ = 64 * 1024 * 1024
_MAX_FILES = 500_000
_RECENT_NS = 2_000_000_000


class Doubt(Exception):
    """An input can't be known at once, for the reason that the exception has."""


@record
class _Place:
    """A file or folder that a build reads."""

    path: str
    rules: IgnoreRules = IgnoreRules()
    follows: bool = False
    """A link to a folder in it is a doubt."""


def last_change(images: Iterable[ImageBuild]) -> int:
    """Return when a file of builds was changed last, in nanoseconds; also its mode, its name and its links."""
    places = {place for image in images for place in _places_of(image)}
    try:
        return max((entry.last_change() for place in places for entry in _walk(place.path, place.rules)), default=0)
    except OSError as error:
        raise _unreadable(error) from error


def digests_of(images: Iterable[ImageBuild]) -> list[Any]:
    """Return each service with digests of the files that its build reads, and the values of its secrets."""
    reader = _Reader()
    return [[image.service, list(_files_of(image, reader))] for image in images]


def _files_of(image: ImageBuild, reader: _Reader) -> Iterator[Any]:
    for place in _places_of(image):
        yield [place.path, reader.digest(place)]
    for secret in () if image.derived else image.build.secrets:
        yield [secret.name, secret.value]


def _places_of(image: ImageBuild) -> Iterator[_Place]:
    build = image.build
    for place in image.contents:
        yield _Place(path=place, follows=True)
    if image.derived:
        return
    for name, place in {"": build.context, **build.additional_contexts}.items():
        if not place.startswith("docker-image://") and name not in image.bases:
            yield from _context(image.service, place, () if name else dockerignore_names(build))
    if not build.dockerfile_inline:
        # It may be outside of the context, and in its own ignore file.
        yield from _if_present(os.path.join(build.context, build.dockerfile or "Dockerfile"))
    for secret in build.secrets:
        if secret.file:
            yield _Place(path=secret.file)


def _context(service: str, place: str, ignore_files: Sequence[str]) -> Iterator[_Place]:
    """Yield a context, and its ignore files, which may be outside of it."""
    if not os.path.isabs(place):
        raise Doubt(f"the build of {service} has a context at an address")
    yield _Place(path=place, rules=IgnoreRules.parse_certain(read_ignore_file(place, ignore_files)))
    for name in ignore_files:
        yield from _if_present(os.path.join(place, name))


def _if_present(path: str) -> Iterator[_Place]:
    if os.path.lexists(path):
        yield _Place(path=path)


def _unreadable(error: OSError) -> Doubt:
    return Doubt(f"a file of a build can't be read: {error.strerror}")


class _Reader:
    """Reads files and folders up to a size; of larger folders, it takes the times of files for their contents."""

    def __init__(self) -> None:
        self._files = _MAX_FILES_READ
        self._bytes = _MAX_BYTES_READ
        self._digests: dict[_Place, str] = {}
        """Of what is read: many services can have one context."""

    def digest(self, place: _Place) -> str:
        """Return a digest of a file, or of all files of a folder."""
        if place not in self._digests:
            self._digests[place] = self._read(place)
        return self._digests[place]

    def _read(self, place: _Place) -> str:
        digest = hashlib.sha256()
        # From before the first look: what changes during it counts as recent, too.
        recent_since, newest = time.time_ns() - _RECENT_NS, 0
        try:
            found = list(_walk(place.path, place.rules))
            is_read = self._can_read(found)
            for entry in found:
                facts = f"\0{entry.path[len(place.path) :]}\0{entry.facts(is_read=is_read)}\0"
                digest.update(facts.encode(errors="surrogateescape"))
                if not is_read:
                    newest = max(newest, entry.last_change())
                if stat.S_ISLNK(entry.status.st_mode):
                    if place.follows and os.path.isdir(entry.path):
                        raise Doubt(f"a folder behind a link is a part of an image: {entry.path}")
                    digest.update(os.fsencode(os.readlink(entry.path)))
                    if not is_read and os.path.isfile(entry.path):
                        digest.update(_change(os.stat(entry.path)).encode())
                if is_read and os.path.isfile(entry.path):
                    with open(entry.path, "rb") as stream:
                        digest.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            raise _unreadable(error) from error
        if newest > recent_since:
            # A later change may have the same time for a moment.
            raise Doubt("files of a large build have changed just now")
        return digest.hexdigest()

    def _can_read(self, found: Sequence[_Entry]) -> bool:
        """Whether the contents are few enough to be read each time, together with those before."""
        if len(found) > _MAX_FILES:
            raise Doubt("the files of a build are too many to look at each time")
        size = sum(entry.status.st_size for entry in found)
        if len(found) > self._files or size > self._bytes:
            return False
        self._files -= len(found)
        self._bytes -= size
        return True


def _change(status: os.stat_result) -> str:
    """When a file was changed last, which no program sets, and which file it is."""
    return f"{status.st_ctime_ns}\0{status.st_ino}\0"


class _Entry(NamedTuple):
    """A file, folder or link that a build gets; a tuple, as there are many."""

    path: str
    status: os.stat_result
    has_ignored_beside: bool = False
    """The times of its folder change with ignored files, so a new name shows in its own alone."""
    is_partly_ignored: bool = False
    """A folder whose times change with ignored files in it."""

    def last_change(self) -> int:
        """Return when it was changed, or the file that it leads to; never for a folder with ignored files."""
        if self.is_partly_ignored:
            return 0
        own = self.status.st_ctime_ns
        is_link = stat.S_ISLNK(self.status.st_mode) and os.path.isfile(self.path)
        return max(own, os.stat(self.path).st_ctime_ns) if is_link else own

    def facts(self, *, is_read: bool) -> str:
        """What has to be as it was, besides the content that is read."""
        if self.is_partly_ignored:
            return str(self.status.st_mode)
        # With its time too: a file that was changed and changed back may have been read in between.
        found = f"{self.status.st_mode}\0{self.status.st_size}\0{self.status.st_mtime_ns}\0"
        return found + _change(self.status) if self.has_ignored_beside or not is_read else found


def _walk(place: str, rules: IgnoreRules) -> Iterator[_Entry]:
    """Yield a file, or a folder with the files, folders and links in it that are not ignored."""
    top = _Entry(place, os.lstat(place))
    if not os.path.isdir(place):
        yield top
        return
    start = len(os.path.join(place, ""))
    pending: list[tuple[_Entry, Matches]] = [(top, ())]
    while pending:
        folder, above = pending.pop()
        with os.scandir(folder.path) as entries:
            found = sorted(entries, key=attrgetter("name"))
        matched = {entry.name: rules.match(entry.path[start:], above) for entry in found} if rules.rules else {}
        ignored = {name for name, matches in matched.items() if rules.ignores(matches)}
        if not above or not rules.ignores(above):
            yield folder._replace(is_partly_ignored=bool(ignored))
        for entry in found:
            if entry.name in ignored and not (rules.has_exceptions and entry.is_dir(follow_symlinks=False)):
                continue
            made = _Entry(entry.path, entry.stat(follow_symlinks=False), bool(ignored))
            if stat.S_ISDIR(made.status.st_mode):
                pending.append((made, matched.get(entry.name, ())))
            else:
                yield made
