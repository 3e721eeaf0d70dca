"""Copy changed files of this machine into running containers, one way: with ``tar`` and ``rm`` of the image.

Owns the archive, the commands in a container, and their messages. Of a container nothing is read but the messages of
its programs and the modes of its files, so it can't write here. What it may write itself is all that a copy can change
there: the commands run as its own user, in its own files.
The agent of ``platform up`` needs a pod of its own; here the deployed pods run, all of them, with their own programs.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import posixpath
import queue
import re
import shlex
import stat
import subprocess
import tarfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO
from urllib.parse import urlencode

from composeplat.cluster.snapshot import Object, service_of
from composeplat.compose.watch_model import WatchExec
from composeplat.dev.container_commands import (
    LINK_ERROR,
    NO_PROGRAM,
    READING_ALL,
    Command,
    Piped,
    open_command,
    running_container,
)
from composeplat.dev.refused_files import Refused, read_refusals, unpack_in_parts
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.target import Target
from composeplat.system.beneath import open_parent, split_name
from composeplat.system.records import record

#: Of a container that takes nothing more.
_COPY_TIMEOUT_S = 120.0
_COMMAND_TIMEOUT_S = 120.0
#: Arguments are in the URL of a request: proxies refuse one of 8 KiB.
_MAX_ARGS_BYTES = 4 * 1024
_PERMISSIONS = 0o777
#: Of a folder that files are written to.
_OWNERS = 0o700
_CHUNK_BYTES = 64 * 1024
_MAX_READ_BYTES = 64 * 1024 * 1024
#: Of a line of ``stat``, for each of the paths on a command line.
_MAX_MODES_BYTES = 4 * _MAX_ARGS_BYTES
_MODE = re.compile(r"[0-9a-f]{1,8}")


@record
class Container:
    """A running container; one that has started again is another one, with the files of its image."""

    pod: str
    id: str


def running_containers(pods: Iterable[Object], service: str) -> list[Container]:
    """Return the running containers of a service, by its name in the cluster; the pod may be that of another one."""
    return [
        Container(str(pod["metadata"]["name"]), str(status.get("containerID", "")))
        for pod in pods
        if service_of(pod) and (status := running_container(pod, service))
    ]


# the archive ----------------------------------------------------------------------------------------------------------


def local_steps(folder: WatchedFolder, path: str) -> tuple[Path, tuple[str, ...]]:
    """Return a folder that is trusted, and the steps to a path below it, none of which may be a link."""
    top = folder.within or folder.local
    return Path(top), split_name(posixpath.join(os.path.relpath(folder.local, top), path))


def find_folders(files: Iterable[tuple[WatchedFolder, str]]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the modes here of those paths that are folders, and of the folders above all paths, by path there."""
    own, above = dict[str, int](), dict[str, int]()
    for folder, path in files:
        try:
            for place in _places_above(folder, path):
                if (there := folder.in_container(place).rstrip("/")) and there not in above:
                    with open_parent(*local_steps(folder, posixpath.join(place, "x"))) as opened:
                        above[there] = os.fstat(opened).st_mode & _PERMISSIONS
            with open_parent(*local_steps(folder, path)) as parent:
                info = os.stat(posixpath.basename(path), dir_fd=parent, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        if stat.S_ISDIR(info.st_mode):
            own[folder.in_container(path)] = info.st_mode & _PERMISSIONS
    return own, above


def _places_above(folder: WatchedFolder, path: str) -> Iterator[str]:
    """Yield the folders above a path that the container has because of it, without those above the target."""
    while path and not folder.file:
        path = posixpath.dirname(path)
        yield path


def write_archive(files: Iterable[tuple[WatchedFolder, str]], archive: IO[bytes]) -> int:
    """Write files and links with their paths in a container; return how many. Missing ones and folders are left."""
    count = 0
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder, path in files:
            try:
                with open_parent(*local_steps(folder, path)) as parent:
                    count += _add(tar, folder.in_container(path).lstrip("/"), parent, posixpath.basename(path))
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                # The watcher reports one that may not be read.
                continue
    return count


def give_modes(archive: Path, modes: Mapping[str, int], adapted: IO[bytes]) -> None:
    """Write an archive again with other modes, by the paths in the container."""
    named = {path.lstrip("/"): mode for path, mode in modes.items()}
    with (
        tarfile.open(archive) as before,
        tarfile.open(fileobj=adapted, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for member in before:
            member.mode = named.get(member.name, member.mode)
            tar.addfile(member, before.extractfile(member) if member.isreg() else None)


def parse_modes(output: str, paths: Collection[str]) -> dict[str, int]:
    """Parse the output of ``stat`` in a container, which is not trusted: lines of a mode and one of the paths."""
    found = {}
    for line in output.splitlines():
        text, _, path = line.partition(" ")
        if path in paths and _MODE.fullmatch(text):
            mode = int(text, 16)
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                found[path] = mode & _PERMISSIONS
    return found


def _add(tar: tarfile.TarFile, target: str, parent: int, name: str) -> int:
    info = os.stat(name, dir_fd=parent, follow_symlinks=False)
    member = tarfile.TarInfo(target)
    member.mode, member.mtime = info.st_mode & _PERMISSIONS, int(info.st_mtime)
    if stat.S_ISLNK(info.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=parent)
        tar.addfile(member)
    elif stat.S_ISREG(info.st_mode):
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=parent)
        with os.fdopen(opened, "rb") as content:
            member.size = os.fstat(content.fileno()).st_size
            if member.size > _MAX_READ_BYTES:
                tar.addfile(member, content)
            else:
                # An editor may be writing it: the size in the archive must be that of the content.
                text = content.read(_MAX_READ_BYTES)
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text))
    else:
        return 0
    return 1


# in a container -------------------------------------------------------------------------------------------------------


class Unreached(ComposeplatError):
    """The container could not be reached, and lacks what was to be copied."""


class _Watchdog:
    """Kills a process if it is not fed for some time: a copy may take long, as long as the container takes it."""

    def __init__(self, process: subprocess.Popen[bytes], timeout_s: float) -> None:
        self.has_killed = False
        self._process = process
        self._timeout_s = timeout_s
        self._signs: queue.SimpleQueue[bool] = queue.SimpleQueue()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def feed(self) -> None:
        self._signs.put(item=True)

    def end(self) -> None:
        self._signs.put(item=False)

    def _watch(self) -> None:
        try:
            while self._signs.get(timeout=self._timeout_s):
                pass
        except queue.Empty:
            self.has_killed = True
            self._process.kill()


class Processes:
    """The processes of copies and commands that are running: the end of a watch does not wait for them."""

    def __init__(self) -> None:
        self.has_ended = False
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def holding(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        with self._lock:
            self._running.add(process)
            if self.has_ended:
                process.kill()
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(process)

    def end(self) -> None:
        """Kill them, and those that are still to be started."""
        with self._lock:
            self.has_ended = True
            for process in self._running:
                process.kill()


@record
class ContainerFiles:
    """The files of one container of a service."""

    container: Command
    target: Target
    environment: Mapping[str, str]
    processes: Processes = field(default_factory=Processes)

    def unpack(self, archive: Path, scratch: Path) -> Refused:
        """Unpack an archive; return why some of its files could not be written, by path in the container."""
        refused = unpack_in_parts(archive, scratch, self._unpack)
        return {f"/{path}": reason for path, reason in refused.items()}

    def _unpack(self, archive: Path) -> str:
        # The files belong to the container's user, or to root: their owners here mean nothing there.
        args = ("tar", "-xf", "-", "-o", "-C", "/")
        with archive.open("rb") as content:
            status, complaint = self._run((*READING_ALL, *args), content, _COPY_TIMEOUT_S)
            if status in NO_PROGRAM:
                content.seek(0)
                status, complaint = self._run(args, content, _COPY_TIMEOUT_S)
        return self._complaint(args, status, complaint)

    def make_folders(self, modes: Mapping[str, int], needed: Collection[str]) -> Refused:
        """Make those folders that are missing, by mode; return why some of the needed ones can't be made.

        ``tar`` makes the others too, with a mode of its own; of a folder that is there it would change the mode.
        """
        refused = Refused()
        ordered = sorted(modes, key=lambda path: (path.count("/"), modes[path], path))
        for mode, paths in itertools.groupby(ordered, modes.__getitem__):
            args = ("mkdir", "-p", "-m", f"{mode | _OWNERS:o}", "--")
            for chunk, status, complaint in self._run_for(args, list(paths)):
                if status in NO_PROGRAM and not needed:
                    return refused
                found = _read_complaint(self._complaint(args, status, complaint), chunk)
                refused |= {path: reason for path, reason in found.items() if path in needed}
        return refused

    def delete(self, paths: Sequence[str], folders: Sequence[str]) -> Refused:
        """Delete files, then those of some folders that are empty; return why some files could not be deleted."""
        args = ("rm", "-f", "--")
        refused = Refused()
        for chunk, status, complaint in self._run_for(args, paths):
            refused |= _read_complaint(self._complaint(args, status, complaint), chunk)
        for _ in self._run_for(("rmdir", "--"), folders):
            # A folder with files of the container stays, and so does one that is a volume.
            pass
        return refused

    def _run_for(self, args: tuple[str, ...], paths: Sequence[str]) -> Iterator[tuple[Sequence[str], int, str]]:
        """Run a command for paths; many are sent on the standard input, if the image has ``xargs``."""
        chunks = list(_chunks(paths))
        if len(chunks) > 1:
            content = io.BytesIO("".join(f"{path}\0" for path in paths).encode())
            status, complaint = self._run(("xargs", "-0", *args), content, _COPY_TIMEOUT_S)
            if status not in NO_PROGRAM:
                yield paths, status, complaint
                return
        for chunk in chunks:
            yield chunk, *self._run((*args, *chunk), None, _COPY_TIMEOUT_S)

    def modes(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the modes of those files and folders that exist; none where the image has no ``stat``."""
        found: dict[str, int] = {}
        for chunk in _chunks(paths):
            with self._started(("stat", "-c", "%f %n", "--", *chunk), _COPY_TIMEOUT_S) as (piped, _):
                output = piped.output.read(_MAX_MODES_BYTES).decode("utf-8", "replace")
                piped.end()
            found.update(parse_modes(output, chunk))
        return found

    def run(self, command: WatchExec) -> tuple[int, str]:
        """Run a command; return its status and its standard error."""
        return self._run(command_args(command), None, _COMMAND_TIMEOUT_S)

    def _run(self, args: tuple[str, ...], content: IO[bytes] | None, timeout_s: float) -> tuple[int, str]:
        with self._started(args, timeout_s) as (piped, watchdog):
            try:
                while content is not None and (chunk := content.read(_CHUNK_BYTES)):
                    piped.input.write(chunk)
                    piped.input.flush()
                    watchdog.feed()
            except BrokenPipeError:
                # The program has ended: its message says why.
                pass
            status, complaint = piped.end()
            if watchdog.has_killed:
                spent = "after" if content is None else "as it took nothing for"
                complaint = f"'{args[0]}' was ended {spent} {timeout_s:g} s"
            return status, complaint

    @contextlib.contextmanager
    def _started(self, args: tuple[str, ...], timeout_s: float) -> Iterator[tuple[Piped, _Watchdog]]:
        with open_command(self.container.running(args), self.target, self.environment) as piped:
            watchdog = _Watchdog(piped.process, timeout_s)
            try:
                with self.processes.holding(piped.process):
                    yield piped, watchdog
            finally:
                watchdog.end()

    def _complaint(self, args: tuple[str, ...], status: int, complaint: str) -> str:
        """Return what a program complains of; raise an error if it is not about single files."""
        if not status:
            return ""
        if status in NO_PROGRAM:
            raise ComposeplatError(
                f"the container has no program '{args[0]}'",
                "add it to the image, write action: rebuild, or develop it with platform up, which brings an agent",
            )
        if complaint.startswith(LINK_ERROR):
            raise Unreached(complaint.removeprefix(LINK_ERROR).partition("\n")[0])
        if status < 0 or not complaint:
            raise ComposeplatError(complaint or f"{args[0]} ended with status {status}")
        return complaint


def _read_complaint(complaint: str, paths: Sequence[str]) -> Refused:
    """Return the paths that were refused; all of them if a message names none."""
    if not complaint:
        return {}
    return read_refusals(complaint, paths)[0] or dict.fromkeys(paths, complaint.partition("\n")[0])


def _chunks(paths: Sequence[str]) -> Iterator[list[str]]:
    """Split paths into lists that fit into the URL of a request."""
    chunk: list[str] = []
    size = 0
    for path in paths:
        length = len(urlencode({"command": path})) + 1
        if chunk and size + length > _MAX_ARGS_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(path)
        size += length
    if chunk:
        yield chunk


def command_args(command: WatchExec) -> tuple[str, ...]:
    """Return the arguments of a command; only one with a folder or variables needs a shell."""
    if not command.working_dir and not command.environment:
        return command.command
    folder = f"cd {shlex.quote(command.working_dir)} && " if command.working_dir else ""
    variables = [f"{name}={value}" for name, value in command.environment.items()]
    return ("sh", "-c", f'{folder}exec env "$@"', "sh", *variables, *command.command)


def emptied_folders(folder: WatchedFolder, deleted: Iterable[str]) -> list[str]:
    """Return deleted folders, and those of deleted files, that are not here any more: the deepest first.

    They are paths of the container. A file or a link in its place can't be written before the folder is gone.
    """
    parents: dict[str, None] = {}
    for path in deleted:
        while path := posixpath.dirname(path):
            parents[path] = None
    gone = [path for path in parents if not is_folder(os.path.join(folder.local, path))]
    return [folder.in_container(path) for path in sorted(gone, key=lambda path: (-path.count("/"), path))]


def is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
