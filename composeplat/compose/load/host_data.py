"""Host volumes that lose something: data with the pod, files that are not in the image, files that the user can't read.

Owns how they are recognized, and the warnings.
Must not read a file's content: :mod:`~composeplat.compose.load.host_content` does.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from itertools import islice
from pathlib import Path

from composeplat.compose.check_files import can_read, shown_user
from composeplat.compose.data_paths import find_program, is_database_file, looks_like_file
from composeplat.compose.model import HOST, Build, HostFile, Mount, Project, Service
from composeplat.compose.origins import Checker, literal_target, mount_path
from composeplat.compose.system_paths import instead_of_system_path
from composeplat.diagnostics import PathKey, join_some, quoted
from composeplat.names import clean, folder_name, suggest_volume
from composeplat.system import files
from composeplat.system.project_root import ProjectRoot

#: Files by which git keeps a folder that is empty otherwise.
_KEEPERS = frozenset((".gitkeep", ".keep", ".gitignore"))
_MAX_ENTRIES, _MAX_LISTED = 32, 4
#: How SQLite's databases begin, and the ends of the names of the files beside them.
_MAGIC, _BESIDE = b"SQLite format 3\0", ("-journal", "-shm", "-wal")
_OWN_FOLDER = "let the program keep it in a folder of its own, with a named volume there"
_COPY = "copy it into the image: COPY in the Dockerfile, with its folder in the context or in additional_contexts"


def ambiguous_names(project: Project) -> frozenset[str]:
    """The names of folders that several host paths have, or a path and a volume of the definition."""
    paths = {clean(name): {""} for name in project.volumes}
    for service in project.services.values():
        for mount in service.mounts:
            if mount.kind == HOST:
                paths.setdefault(folder_name(mount.source), set()).add(mount.source)
    return frozenset(name for name, found in paths.items() if len(found) > 1)


def check_host_volume(
    checker: Checker, service: Service, mount: Mount, path: PathKey, root: ProjectRoot, taken: Container[str]
) -> bool:
    """Warn if a host volume holds data, or if a built service has its files neither here nor in the image.

    Return whether it holds data.
    """
    data = "" if mount.read_only else _describe_data(service, mount, root)
    if data:
        volume = f"to keep it, use a named volume: {volume_for(checker, mount, path, taken)}"
        hint = _OWN_FOLDER if _is_database(mount, root) else volume
        checker.add("host-data", path, f"mounts {data}: what is written there is lost with the pod", hint)
    elif service.build is not None and not _is_in_context(mount.source, service.build):
        message = (
            "is a host volume of a service that is built, outside the build context: the container does not have it"
        )
        fix = _instead_of_folder(mount, volume_for(checker, mount, path, taken), root)
        checker.add("not-in-image", path, message, fix)
    if service.build is None:
        _check_readable(checker, service, mount, path)
    return bool(data)


def _instead_of_folder(mount: Mount, volume: str, root: ProjectRoot) -> str:
    if files.is_system_path(Path(mount.source), (root.path,)):
        return instead_of_system_path(mount.source, mount.target)
    is_file = looks_like_file(mount.target) or os.path.isfile(mount.source)
    return (
        _COPY if mount.read_only or is_file else f"{_COPY}; to keep what is written there, use a named volume: {volume}"
    )


def check_shared_data(checker: Checker, services: Iterable[Service], data: Mapping[PathKey, str]) -> None:
    """Warn of other mounts of a folder that holds data; ``data`` has the folders by the paths of their mounts."""
    owners: dict[str, str] = {}
    for path, source in data.items():
        owners.setdefault(source, str(path[1]))
    for service in services if data else ():
        for index, mount in enumerate(service.mounts):
            owner = owners.get(mount.source, "") if mount.kind == HOST else ""
            path = mount_path(service.name, index)
            is_readable = service.build is not None or mount.content is not None
            if owner and owner != service.name and is_readable and path not in data:
                message = f"mounts a folder that holds the data of '{owner}': what is written there is not seen here"
                checker.add("host-data", path, message, f"mount the named volume of '{owner}' here too")


def _check_readable(checker: Checker, service: Service, mount: Mount, path: PathKey) -> None:
    """Report a file that the service's user can't read, as this machine's user could: it belongs to root in a pod."""
    listed = (mount.content.files if mount.content is not None else None) or ()
    closed = next((file for file in listed if not can_read(service, file.mode)), None)
    if closed is not None:
        shown = shown_user(checker, service)
        name = f" in {quoted(closed.path)}" if closed.path else ""
        message = (
            f"has mode {closed.mode:04o}{name} and belongs to root, so that user {shown} of the service can't read it"
        )
        checker.add("unreadable-mount", path, message, "let all read it: chmod a+r")


def _describe_data(service: Service, mount: Mount, root: ProjectRoot) -> str:
    """Describe a folder that holds data: at a known path of a program, or without other files; or a database."""
    if _is_database(mount, root):
        return "a database of this machine"
    if _is_file(mount):
        return ""
    program = find_program(mount.target, service.image)
    return f"a folder of this machine where {program} keeps its data" if program else _describe_folder(mount, root)


def _is_in_context(source: str, build: Build) -> bool:
    """Whether a build has a path of this machine: in its context, or in an additional one."""
    contexts = (build.context, *build.additional_contexts.values())
    return any(f"{source}/".startswith(f"{context.rstrip('/')}/") for context in contexts)


def volume_for(checker: Checker, mount: Mount, path: PathKey, taken: Container[str]) -> str:
    """Write the named volume to use in place of a host volume: after its service, if the folder's name is taken."""
    name = "data" if checker.is_hidden((*path, "source")) else folder_name(mount.source)
    target = literal_target(checker.origins, mount, path) or "/path/in/the/container"
    return suggest_volume(name, target, owner=str(path[1]) if name in taken else "")


def _is_database(mount: Mount, root: ProjectRoot) -> bool:
    """Whether a mount is a database in a single file, by its name alone where it was not read."""
    source = Path(mount.source)
    if not is_database_file(source.name):
        return False
    if mount.content is None:
        return root.allows(source) and os.path.isfile(source)
    return not mount.content.is_folder and all(map(_is_sqlite, mount.content.files or ()))


def _is_sqlite(file: HostFile) -> bool:
    """Whether a file is empty or one of SQLite's, where its name says so: zones of DNS servers have such names too."""
    begins = file.content.startswith(_MAGIC) if file.content else True
    return begins or file.path.endswith(_BESIDE)


def _is_file(mount: Mount) -> bool:
    return mount.content is not None and not mount.content.is_folder


def _describe_folder(mount: Mount, root: ProjectRoot) -> str:
    """Describe a folder without files but databases; empty for every other path."""
    if mount.content is not None:
        found = mount.content.files
        names = {Path(file.path).name for file in found or ()}
        is_other = found is None or not all(Path(file.path).name in _KEEPERS or _is_sqlite(file) for file in found)
        return "" if is_other else _describe_files(names, has_hidden=mount.content.has_hidden)
    source = Path(mount.source)
    if not root.allows(source) or looks_like_file(mount.target):
        return ""
    if not files.exists(source):
        return "a folder that does not exist on this machine"
    try:
        with os.scandir(source) as entries:
            names = {entry.name for entry in islice(entries, _MAX_ENTRIES)}
            return "" if any(name.endswith(".db") for name in names) else _describe_files(names)
    except OSError:
        return ""


def _describe_files(names: set[str], *, has_hidden: bool = False) -> str:
    """Describe a folder by the names in it; empty if it has files of its own."""
    if len(names) == _MAX_ENTRIES or not all(name in _KEEPERS or is_database_file(name) for name in names):
        return ""
    listed = [quoted(name) for name in sorted(names)]
    kept = join_some(listed, _MAX_LISTED) if len(listed) > _MAX_LISTED else " and ".join(listed)
    if has_hidden:
        others = f"entries except {kept}" if kept else "entries"
        return f"a folder of this machine whose {others} are all covered by other mounts"
    return f"a folder of this machine with {kept} alone" if kept else "an empty folder of this machine"
