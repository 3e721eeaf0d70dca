"""The folders of builds: the path by which the builder gets one, and changes that Pulumi's provider does not detect.

The builder learns the name of a context's folder in a header of gRPC, which takes ASCII alone: it gets other folders by
a link. The provider's own hash of a context has the contents of files, links followed. It has neither the path in a
link, nor empty folders; and it applies ``.dockerignore`` to further contexts too, which BuildKit does not.

Owns the links for the builder, and the hash of changes that the provider's own hash lacks.
Must not know the arguments of the provider.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from composeplat.compose.dockerignore import dockerignore_names
from composeplat.compose.load.context_links import links_and_empty_folders
from composeplat.compose.model import Build
from composeplat.system.atomic import replace_link
from composeplat.system.folders import cache_folder


def folder_for_builder(context: str, environment: Mapping[str, str]) -> str:
    """Return the path by which the builder is given a context: a link's, if the name of the folder is not ASCII."""
    if Path(context).name.isascii():
        return context
    return str(cache_folder(environment) / "contexts" / hashlib.sha256(os.fsencode(context)).hexdigest()[:16])


def link_folder(context: str, environment: Mapping[str, str]) -> str:
    """Return the path for the builder, with the link in place."""
    path = folder_for_builder(context, environment)
    if path != context:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_link(Path(path), Path(context))
    return path


class UndetectedChanges:
    """Hashes changes that the provider does not detect in the folders of builds.

    A folder that several builds have is read once, so an instance is for one run of a program.
    """

    def __init__(self) -> None:
        self._links = functools.cache(_read_links)
        self._contents = functools.cache(_read_contents)

    def hash(self, build: Build) -> str:
        """Return a hash of the changes in the folders of a build; empty if there are none."""
        digest = hashlib.sha256()
        names = dockerignore_names(build)
        further = [place for _, place in sorted(build.additional_contexts.items()) if os.path.isdir(place)]
        if any(os.path.exists(os.path.join(build.context, name)) for name in names):
            for folder in further:
                digest.update(self._contents(folder))
        contexts = ((build.context, names), *((folder, (".dockerignore",)) for folder in further))
        for number, (folder, ignore_files) in enumerate(contexts):
            # Without the modes of folders: BuildKit's cache does not have them either.
            for path, value in self._links(folder, ignore_files):
                digest.update(f"\0{number}\0{path}\0{value}\0".encode(errors="surrogateescape"))
        found = digest.hexdigest()
        return "" if found == hashlib.sha256().hexdigest() else found


def _read_links(folder: str, ignore_files: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(links_and_empty_folders(folder, ignore_files))


# whole folders --------------------------------------------------------------------------------------------------------


def _paths(folder: str) -> Iterable[str]:
    found = (os.path.join(top, name) for top, _, names in os.walk(folder) for name in names)
    return sorted(path for path in found if os.path.isfile(path) or os.path.islink(path))


def _read_contents(folder: str) -> bytes:
    return b"".join(part for path in _paths(folder) for part in _parts(path, os.path.relpath(path, folder)))


def _parts(path: str, name: str) -> Iterator[bytes]:
    yield f"\0{name}\0{os.lstat(path).st_mode}\0".encode(errors="surrogateescape")
    if os.path.islink(path):
        yield os.fsencode(os.readlink(path))
        return
    # The builder reports a file that it can't read, unless .dockerignore leaves it out.
    with contextlib.suppress(OSError), open(path, "rb") as stream:
        yield hashlib.file_digest(stream, "sha256").digest()
