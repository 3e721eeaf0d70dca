"""Check the local inputs of builds: contexts, Dockerfiles and their stages, secrets, SSH keys.

Owns these checks, which are cheap, and stop a deploy before it changes anything.
Must not know BuildKit. It is apart from loading because only a build needs its sources; a definition without them can
be rendered.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from composeplat.compose.dockerignore import dockerignore_names
from composeplat.compose.load.context_links import find_endless_link
from composeplat.compose.load.dockerfiles import FROM, MAX_BYTES, join_lines
from composeplat.compose.load.letter_case import case_hint, other_case
from composeplat.compose.model import MAX_BUILD_SECRET_BYTES, Build
from composeplat.compose.origins import Origins
from composeplat.compose.parse.build import is_remote
from composeplat.diagnostics import Report, dotted, quoted
from composeplat.system import files

#: Another frontend may have another syntax for stages.
_OTHER_SYNTAX = re.compile(r"\A#\s*syntax\s*=\s*(?!docker/dockerfile)", re.IGNORECASE)
#: More digits are no stage, and more than Python reads.
_NUMBER = re.compile(r"[0-9]{1,9}")


def check_builds(builds: Mapping[str, Build], origins: Origins, report: Report) -> None:
    """Report missing inputs at their place in the definition; ``builds`` are by service."""
    # Many services can have one context.
    find_link = functools.cache(find_endless_link)
    for service, build in builds.items():
        _Checker(service, build, origins, report, find_link).check()


def secrets_of_files(build: Build) -> tuple[str, ...]:
    """Return the build secrets that are in files; an unreadable one is skipped."""
    found = []
    for secret in build.secrets:
        if secret.file:
            with contextlib.suppress(files.Unreadable, UnicodeDecodeError):
                found.append(files.read_bytes(Path(secret.file), limit=MAX_BUILD_SECRET_BYTES).decode())
    return tuple(found)


def _refuse_folder(place: str) -> files.Unreadable | None:
    """Return why a path is no folder that this user can look at."""
    try:
        is_folder = stat.S_ISDIR(os.stat(files.real_path(place)).st_mode)
    except files.Unreadable as error:
        return error
    except OSError as error:
        return files.Unreadable(files.reason_of(error), missing=isinstance(error, FileNotFoundError))
    return None if is_folder else files.Unreadable("is no folder", missing=True)


class _Checker:
    def __init__(
        self,
        service: str,
        build: Build,
        origins: Origins,
        report: Report,
        find_link: Callable[[str, tuple[str, ...]], str],
    ) -> None:
        self.path = ("services", service, "build")
        self.build = build
        self.origins = origins
        self.report = report
        self.find_link = find_link

    def check(self) -> None:
        if is_remote(self.build.context):
            if self.build.dockerfile not in ("", "Dockerfile"):
                message = "can't be named where the context is an address"
                hint = "name its folder behind the address, as in …git#main:folder, and the file there Dockerfile"
                self._say("invalid-value", ("dockerfile",), message, hint)
        elif self._is_folder(("context",), self.build.context):
            self._check_dockerfile()
            self._check_links(("context",), self.build.context)
        for name, place in self.build.additional_contexts.items():
            if not is_remote(place) and self._is_folder(("additional_contexts", name), place):
                self._check_links(("additional_contexts", name), place)
        self._check_secrets()
        for index, text in enumerate(self.build.ssh):
            for path in filter(None, text.partition("=")[2].split(",")):
                if not os.path.exists(path):
                    self._say("missing-path", ("ssh", index), f"names a key that does not exist: {quoted(path)}")

    def _is_folder(self, keys: tuple[str | int, ...], place: str) -> bool:
        refused = _refuse_folder(place)
        if refused is None:
            return True
        shown = self.origins.shown(*self.path, *keys)
        hint = (case_hint(place) or "create it, or correct the path") if refused.missing else ""
        code = "missing-path" if refused.missing else "unreadable-file"
        self._say(code, keys, f"names a folder that {refused.reason}: {shown}", hint)
        return False

    def _check_links(self, keys: tuple[str | int, ...], place: str) -> None:
        names = dockerignore_names(self.build) if place == self.build.context else (".dockerignore",)
        link = self.find_link(place, names)
        if link:
            message = f"names a folder with a link to a pipe or device, which would be read without end: {quoted(link)}"
            hint = "leave it out with .dockerignore, and make it in the Dockerfile: RUN ln -s"
            self._say("unreadable-file", keys, message, hint)

    def _check_dockerfile(self) -> None:
        text = self.build.dockerfile_inline
        keys = ("dockerfile",)
        if not text:
            try:
                path = Path(self.build.context, self.build.dockerfile or "Dockerfile")
                text = files.read_bytes(path, limit=MAX_BYTES).decode("utf-8-sig", errors="replace")
            except files.Unreadable as error:
                if self.build.dockerfile:
                    shown = self.origins.shown(*self.path, *keys)
                    hint = (case_hint(path) or "it is relative to the context") if error.missing else error.hint
                    message = f"names a file that {error.reason}: {shown}"
                else:
                    keys = ("context",)
                    hint = "write one, or name it with 'dockerfile'" if error.missing else error.hint
                    if other := other_case(path):
                        hint = f"rename {quoted(other)}: case matters on Linux"
                    message = f"names a folder whose Dockerfile {error.reason}"
                self._say("missing-path" if error.missing else "unreadable-file", keys, message, hint)
                return
        self._check_target(text)

    def _check_target(self, dockerfile: str) -> None:
        target = self.build.target
        if not target or _OTHER_SYNTAX.match(dockerfile):
            return
        stages = FROM.findall(join_lines(dockerfile))
        names = [name.lower() for _, name in stages if name]
        is_number = _NUMBER.fullmatch(target) is not None and int(target) < len(stages)
        if target.lower() not in names and not is_number and target not in self.build.additional_contexts:
            shown = self.origins.shown(*self.path, "target")
            hint = f"its stages are: {', '.join(names)}" if names else "write FROM … AS <name>"
            self._say("invalid-value", ("target",), f"names a stage that the Dockerfile does not have: {shown}", hint)

    def _check_secrets(self) -> None:
        for index, secret in enumerate(self.build.secrets):
            keys = ("secrets", index)
            shown = self.origins.shown(*self.path, *keys, "file")
            if secret.file:
                try:
                    files.read_bytes(Path(secret.file), limit=MAX_BUILD_SECRET_BYTES).decode()
                except files.Unreadable as error:
                    self._say("unreadable-file", keys, f"reads a file that {error.reason}: {shown}")
                except UnicodeDecodeError:
                    hint = "encode it, as with base64"
                    self._say("unreadable-file", keys, f"reads a file that is no text: {shown}", hint)
            elif secret.value is None:
                hint = "write the name of a variable, and not its value" if secret.written else f"set {secret.variable}"
                message = f"reads a variable that is not set: {secret.written or secret.variable}"
                self._say("required-variable", keys, message, hint)

    def _say(self, code: str, keys: tuple[str | int, ...], message: str, hint: str = "") -> None:
        path = (*self.path, *keys)
        written_at = self.origins.written_at(path)
        self.report.add(code, self.origins.at(*path), written_at, f"{dotted(written_at)} {message}", hint)
