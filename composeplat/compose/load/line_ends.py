"""Scripts with the line ends of Windows: a container can't run them, and only says ``no such file or directory``.

Owns how they are recognized: by the program in their first line, whose name ends with a carriage return.
Must not change a file. A Dockerfile and an env file may have such line ends.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from composeplat.compose.load.dockerfiles import join_lines, read_dockerfile, read_text
from composeplat.compose.model import Build, Mount, Service
from composeplat.compose.origins import Checker, mount_path
from composeplat.compose.parse.build import is_remote
from composeplat.diagnostics import quoted
from composeplat.system.project_root import ProjectRoot

_FIRST_LINE = rb"#![ \t]*([^\r\n]{1,200})\r\n"
_SHELL = r"(?:.*[/ ])?(?:a|ba|da|k|z)?sh\b[^/]*"
_PROGRAM = r"^[ \t]*(?:ENTRYPOINT|CMD)[ \t]+(.+?)[ \t\r]*$"
#: What a Dockerfile has that converts scripts itself.
_CONVERTS = r"dos2unix|\\r"
_HINT = "save it with line ends of Linux (LF); in git: '*.sh text eol=lf' in .gitattributes"


def check_mounted_scripts(checker: Checker) -> None:
    """Warn of scripts among the files that containers are given, which were read already."""
    for service in checker.project.services.values():
        for index, mount in enumerate(service.mounts):
            _check_mount(checker, service, index, mount)


def check_built_scripts(checker: Checker, root: ProjectRoot) -> None:
    """Warn of scripts in build contexts that images begin with. Only a deploy or a build needs the contexts."""
    for service in checker.project.services.values():
        if service.build is not None:
            _check_build(checker, service, service.build, root)


def interpreter_of(content: bytes) -> str:
    """Return the program in the first line of a script, if that ends as in Windows; else nothing."""
    found = re.match(_FIRST_LINE, content)
    return found[1].decode(errors="replace").strip() if found else ""


def _check_mount(checker: Checker, service: Service, index: int, mount: Mount) -> None:
    programs = set(_args(service))
    for file in (mount.content.files or ()) if mount.content else ():
        program, target = interpreter_of(file.content), posixpath.join(mount.target, file.path).rstrip("/")
        # A shell fails at the line ends too; other programs do only where the kernel looks for them.
        if program and (re.fullmatch(_SHELL, program) or target in programs):
            name = quoted(file.path or posixpath.basename(mount.target))
            message = f"mounts a script with line ends of Windows, {name}: no image has its program '{program}\\r'"
            checker.add("windows-line-ends", mount_path(service.name, index), message, _HINT)


def _args(service: Service) -> tuple[str, ...]:
    return (*(service.entrypoint or ()), *(service.command or ()))


def _check_build(checker: Checker, service: Service, build: Build, root: ProjectRoot) -> None:
    if not build.context or is_remote(build.context):
        return
    dockerfile = read_dockerfile(build, root)
    if re.search(_CONVERTS, dockerfile):
        return
    for arg in dict.fromkeys((*_args(service), *dockerfile_programs(dockerfile))):
        for path in _candidates(arg):
            program = interpreter_of(read_text(Path(build.context, path), root).encode())
            if program:
                message = (
                    f"has a script with line ends of Windows, {quoted(path)}: no image has its program '{program}\\r'"
                )
                checker.add("windows-line-ends", ("services", service.name, "build"), message, _HINT)
                break


def dockerfile_programs(text: str) -> Iterator[str]:
    """Yield the programs that images of a Dockerfile begin with, and their arguments."""
    for args in re.findall(_PROGRAM, join_lines(text), flags=re.IGNORECASE | re.MULTILINE):
        try:
            found = json.loads(args)
        except ValueError:
            found = args.split()
        yield from (arg for arg in found if isinstance(arg, str)) if isinstance(found, Sequence) else ()


def _candidates(arg: str) -> Iterator[str]:
    """Yield paths in the context that may be copied to a path in the image: a Dockerfile can copy them anywhere."""
    parts = [part for part in arg.split("/") if part not in ("", ".")]
    if ".." not in parts and (len(parts) > 1 or "." in arg or "/" in arg):
        yield from ("/".join(parts[start:]) for start in range(len(parts)))
