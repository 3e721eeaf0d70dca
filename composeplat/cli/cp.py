"""``platform cp``: copy files between this machine and the container of a service."""

from __future__ import annotations

import contextlib
import os
import posixpath
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli.arguments import App, utf8_text
from composeplat.cli.exec import find_container
from composeplat.cli.help_text import Guide
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cli.operations import Planned, plan_for
from composeplat.cli.selection import Choice, with_choice
from composeplat.dev import container_commands
from composeplat.dev.container_commands import LINK_ERROR, NO_PROGRAM, READING_ALL, Command, Piped
from composeplat.dev.file_copy import (
    BrokenArchive,
    Copied,
    absolute_in_container,
    is_content,
    pack,
    pack_args,
    place_in_container,
    split_place,
    unpack,
    unpack_args,
)
from composeplat.diagnostics import ComposeplatError, Exit, format_count, join_some, printable

app = App()
_STREAM = "-"
#: The status of a command whose standard output nobody reads any more, as before `| head`: of SIGPIPE.
_NOT_READ = 128 + 13
_MAX_SHOWN = 3
#: How GNU tar ends its warnings about files that a program writes meanwhile: the archive is whole.
_CHANGED = ("file changed as we read it", "File removed before we read it")
_KIB, _MIB = 1024, 1024 * 1024


def run(choice: Choice, source: str, target: str) -> int:
    (service, path), (other, other_path) = split_place(source), split_place(target)
    if bool(service) == bool(other):
        needed = "a path on this machine; copy to it first, then from it" if service else "SERVICE:PATH"
        raise typer.BadParameter(f"one of them must be {needed}", param_hint="SOURCE TARGET")
    utf8_text(path if service else other_path, "SERVICE:PATH")
    planned = plan_for(replace(choice, named_services=(service or other,)), looking=True)
    if planned is None:
        return int(Exit.INVALID)
    command = find_container(planned, service or other, f"cp --name {planned.plan.environment} …")
    with ended_by_signals():
        if service:
            return _copy_out(planned, command, absolute_in_container(path), target)
        return _copy_in(planned, command, source, absolute_in_container(other_path))


def _copy_out(planned: Planned, container: Command, path: str, target: str) -> int:
    command = container.running(pack_args(path))
    if target == _STREAM:
        status = container_commands.run_command(command, planned.target, os.environ)
        return 0 if status == _NOT_READ else status
    with container_commands.open_command(command, planned.target, os.environ) as piped:
        try:
            copied = unpack(piped.output, path, os.path.expanduser(target))
        except BrokenArchive as error:
            raise _explained(error, piped, path) from error
        status, complaint = piped.end()
    if _is_warning(status, complaint):
        progress.note(printable(progress.masked_text(complaint.splitlines()[0])))
    else:
        _check(status, complaint, container)
    return _report(copied)


def _explained(error: BrokenArchive, piped: Piped, path: str) -> ComposeplatError:
    """Return the error with the message of tar, where that has ended too early."""
    # What is not at its end may never come to it.
    complaint = piped.end()[1] if error.is_cut_off else ""
    lines = [printable(line) for line in progress.masked_text(complaint).splitlines()]
    is_root = posixpath.normpath(path).strip("/") == ""
    hint = "copy folders below '/': files in /proc and /sys are not as large as they say" if is_root else ""
    return ComposeplatError("; ".join([str(error), *lines[-1:]]), hint)


def _is_warning(status: int, complaint: str) -> bool:
    lines = complaint.splitlines()
    return status == 1 and bool(lines) and all(line.endswith(_CHANGED) for line in lines)


def _copy_in(planned: Planned, container: Command, source: str, target: str) -> int:
    if source == _STREAM:
        command = _unpacking(planned, container, target)
        return container_commands.run_command(command, planned.target, os.environ)
    here = Path(os.path.expanduser(source))
    if not os.path.lexists(here):
        raise ComposeplatError(f"there is no '{source}'")
    is_folder = _is_folder(planned, container, target)
    if not is_folder and target.endswith("/") and not here.is_dir():
        raise ComposeplatError(f"there is no folder '{target}' in the container")
    folder, name = place_in_container(here, target, content_only=is_content(source), is_folder=is_folder)
    command = _unpacking(planned, container, folder)
    with container_commands.open_command(command, planned.target, os.environ) as piped:
        copied = Copied()
        # If the program there has ended, its message says why.
        with contextlib.suppress(BrokenPipeError):
            copied = pack(here, name, piped.input)
        _check(*piped.end(), container)
    return _report(copied)


def _unpacking(planned: Planned, container: Command, folder: str) -> Command:
    """The command that unpacks an archive, with a shell that reads the rest if it fails, where the image has one."""
    has_shell = _status(planned, container, "sh", "-c", ":") not in NO_PROGRAM
    return container.running((*READING_ALL, *unpack_args(folder)) if has_shell else unpack_args(folder))


def _status(planned: Planned, container: Command, *args: str) -> int:
    command = container.running(args)
    with container_commands.open_command(command, planned.target, os.environ) as piped:
        return piped.end()[0]


def _is_folder(planned: Planned, container: Command, path: str) -> bool:
    """Ask the container whether a path is a folder; without a program to ask, a final slash says so."""
    status = _status(planned, container, "test", "-d", path)
    return status == 0 or (status != 1 and path.endswith(("/", "/.")))


def _check(status: int, complaint: str, container: Command) -> None:
    if status == 0:
        return
    text = progress.masked_text(complaint)
    if status in NO_PROGRAM:
        message = f"the container of service '{container.container}' has no program 'tar'"
        raise ComposeplatError(message, "add it to the image, or sync files with platform up")
    text = text.removeprefix(LINK_ERROR)
    raise ComposeplatError(printable(text.splitlines()[0] if text else f"tar ended with status {status}"))


def _report(copied: Copied) -> int:
    if copied.omitted:
        names = join_some([printable(name) for name in copied.omitted], _MAX_SHOWN)
        progress.note(f"left out, as links and devices are not copied: {names}")
    size = f"{copied.size / _MIB:.1f} MiB" if copied.size >= _MIB else f"{copied.size / _KIB:.1f} KiB"
    progress.conclude(f"copied {format_count(copied.files, 'file')}, {size}")
    return int(Exit.DONE)


@app.command(
    "cp",
    guide=Guide(
        {
            "A folder of a container, to here": "platform cp web:/var/log/app ./logs",
            "A file into a container": "platform cp dump.sql db:/tmp/",
            "An archive, for another program": "platform cp web:/app/. - | tar -tf -",
        },
        "living.md",
    ),
)
@with_choice()
def cp_command(
    choice: Choice,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="SERVICE:PATH, a path here, or - for an archive.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The same; one of both names a service.")],
) -> int:
    """Copy files between this machine and the container of a service."""
    return run(choice, source, target)
