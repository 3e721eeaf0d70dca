"""Builds on the image of another service: with Docker alone, what one build leaves is there for the next one.

Owns how they are recognized: by the names of images in a Dockerfile. BuildKit pulls these from their registry, unless
``additional_contexts`` says which service builds them.
Must not know where images are pushed. It is apart from the checks of a build's inputs, which look at one build alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from composeplat.compose.load.dockerfiles import FROM, join_lines, read_dockerfile
from composeplat.compose.model import Service
from composeplat.compose.origins import Checker
from composeplat.compose.shared_images import builders_of, image_identity
from composeplat.diagnostics import quoted
from composeplat.system.project_root import ProjectRoot

_LINES = re.IGNORECASE | re.MULTILINE | re.ASCII
_ARG = re.compile(r"^[ \t]*ARG[ \t]+(\w+)(?:=(\S*))?", _LINES)
_COPY_FROM = re.compile(r"^[ \t]*(?:COPY|ADD)[ \t]+(?:--\S+[ \t]+)*?--from=(\S+)", _LINES)
_NOT_IN_CONTEXT = re.compile(r"\A(?:index\.)?docker\.io/(?:library/)?|:latest\Z")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::-([^{}]*))?\})", re.ASCII)


def check_base_images(checker: Checker, root: ProjectRoot) -> None:
    """Warn of builds that would pull an image which another service builds."""
    builders = builders_of(checker.project)
    for service in checker.project.services.values() if builders else ():
        own = image_identity(service.image) if service.image else ()
        for image in dict.fromkeys(_images_in(service, root)):
            builder = "" if image_identity(image) == own else builders.get(image_identity(image), "")
            if builder not in ("", service.name):
                path = ("services", service.name, "build", "additional_contexts", image)
                message = (
                    f"is missing: the Dockerfile uses this image, which '{builder}' builds, and it would be pulled"
                )
                hint = f"add additional_contexts: {{{quoted(image)}: 'service:{builder}'}}"
                checker.add("unshared-base", path, message, hint)


def _images_in(service: Service, root: ProjectRoot) -> Iterator[str]:
    """Yield the images that a build gets by their names."""
    build = service.build
    if build is not None:
        found = base_images(read_dockerfile(build, root), build.args)
        yield from (image for image in found if image not in build.additional_contexts)


def base_images(dockerfile: str, args: Mapping[str, str]) -> Iterator[str]:
    """Yield the images that the stages of a Dockerfile begin with, or copy from."""
    text = join_lines(dockerfile)
    begin, *_ = FROM.split(text, maxsplit=1)
    values = {name: args.get(name, default.strip("\"'")) for name, default in _ARG.findall(begin)}
    stages = FROM.findall(text)
    names = {name.lower() for _, name in stages}
    for written in (*(image for image, _ in stages), *_COPY_FROM.findall(text)):
        image = _VARIABLE.sub(lambda found: values.get(found[1] or found[2]) or found[3] or "", written)
        if image and image.lower() not in names and not image.isdigit():
            # A context of this name, which is how BuildKit looks for one, takes the place of the image.
            yield _NOT_IN_CONTEXT.sub("", image)
