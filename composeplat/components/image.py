"""The resource of an image that is built, and pushed or exported into a folder.

Owns the arguments of Pulumi's provider for builds, and the build context of host content.
Must not decide which images are built: the plan has every build.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pulumi

from composeplat.components.build_contexts import UndetectedChanges, link_folder
from composeplat.components.image_loading import export_folder
from composeplat.components.late_texts import LateTexts
from composeplat.components.manifests import LateValues, bind_value
from composeplat.compose.model import MAX_BUILD_SECRET_BYTES, Build, BuildSecret
from composeplat.compose.placeholders import without_random
from composeplat.compose.variables import looks_secret
from composeplat.plan.desired import ImageBuild
from composeplat.registry.credentials import Login
from composeplat.registry.image_reference import ImageReference
from composeplat.system import files
from composeplat.system.atomic import remove_tree, replace_folder
from composeplat.system.folders import cache_folder
from composeplat.system.locks import Locked, try_lock_folder, use_folder

#: A build context of host content is deleted after this time without a deploy.
_MAX_CONTEXT_AGE_S = 7 * 24 * 3600.0
#: A build argument that no Dockerfile uses. It changes with the contexts whose changes the provider does not detect.
_FINGERPRINT_ARG = "CONTEXTS_FINGERPRINT"
#: The beginning of an address with a token or a password; the user of ``ssh://git@…`` is none.
_LOGIN = re.compile(r"https?://[^/?#]*@|\w+://[^/?#@]*:[^/?#@]*@")


def build_image(
    name: str,
    image: ImageBuild,
    builder: str,
    opts: pulumi.ResourceOptions,
    bases: Mapping[str, pulumi.Input[str]],
    logins: Mapping[str, Login],
    *,
    late: LateValues,
    undetected: UndetectedChanges,
) -> pulumi.CustomResource:
    """Register a build; the ``ref`` of a pushed image is its reference by digest. ``bases`` are images, by context.

    ``logins`` are logins by registry; without any, the provider uses those of the Docker configuration.
    """
    build = _with_host_content(image)
    resource: pulumi.CustomResource = _image_class()(
        name,
        # The provider returns a digest for full references only.
        tags=[_full_reference(tag, late.texts) for tag in (image.reference, *build.tags)],
        **_destination(image),
        build_on_preview=False,
        registries=[_registry(name, login, late.texts) for name, login in logins.items()] or None,
        builder={"name": builder} if builder else None,
        opts=opts,
        **_arguments(build, bases, late, undetected.hash(build)),
    )
    return resource


def _with_host_content(image: ImageBuild) -> Build:
    """Return the build; of a derived image, with a copy of its host content as the context."""
    if not image.derived:
        return image.build
    # Stacks of one environment in several namespaces may build at the same time.
    owner = f"{pulumi.get_project()}/{pulumi.get_stack()}/{without_random(image.reference)}"
    return replace(image.build, context=copy_host_content(owner, image.contents, image.left_out))


@functools.cache
def _image_class() -> Any:
    """Return the SDK's class, with any platform in its outputs: the SDK refuses variants, such as ``linux/arm/v7``."""
    module: Any = import_module("pulumi_docker_build")

    class Image(module.Image):  # type: ignore[misc]
        @property
        @pulumi.getter
        def platforms(self) -> pulumi.Output[Sequence[str] | None]:
            found: pulumi.Output[Sequence[str] | None] = pulumi.get(self, "platforms")
            return found

    return Image


def _destination(image: ImageBuild) -> dict[str, Any]:
    """Push an image to its registry, or export it into the folder that it is loaded from."""
    if not image.is_loaded:
        return {"push": True}
    folder = export_folder(image.reference)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return {"push": False, "exports": [{"oci": {"dest": str(folder), "tar": False}}]}


def _arguments(
    build: Build, bases: Mapping[str, pulumi.Input[str]], late: LateValues, fingerprint: str
) -> dict[str, Any]:
    context: dict[str, Any] = {"location": _location(build.context)}
    if build.additional_contexts:
        context["named"] = {
            name: {
                "location": pulumi.Output.concat("docker-image://", bases[name]) if name in bases else _location(place)
            }
            for name, place in build.additional_contexts.items()
        }
    args = late.texts.all({**build.args, _FINGERPRINT_ARG: fingerprint} if fingerprint else build.args)
    secrets = late.texts.all({secret.name: _value(secret) for secret in build.secrets})
    asked = {
        "context": context,
        "dockerfile": _dockerfile(build),
        "target": build.target,
        "labels": dict(build.labels),
        "build_args": pulumi.Output.secret(args) if args else None,
        "secrets": pulumi.Output.secret(secrets) if secrets else None,
        "cache_from": [_cache(text, late.texts) for text in build.cache_from],
        "cache_to": [_cache(text, late.texts) for text in build.cache_to],
        "ssh": [_ssh(text) for text in build.ssh],
        "network": build.network,
        "no_cache": build.no_cache,
        "pull": build.pull,
        "platforms": list(build.platforms),
        "add_hosts": list(build.extra_hosts),
    }
    given = {name: value for name, value in asked.items() if value is not None and value not in ("", False, [], {})}
    return {name: bind_value(value, late, escapes=None) for name, value in given.items()}


def _cache(text: str, late: LateTexts) -> dict[str, pulumi.Input[str]]:
    """Return a cache; one with the key or token of its store is encrypted."""
    has_secret = any(looks_secret(option.strip('" ').partition("=")[0]) for option in text.split(","))
    return {"raw": pulumi.Output.secret(late.text(text)) if has_secret else text}


def _location(context: str) -> pulumi.Input[str]:
    """Return a context as the provider is given it; an address with a token or a password is encrypted."""
    if os.path.isdir(context):
        try:
            return link_folder(context, os.environ)
        except OSError as error:
            raise pulumi.RunError(f"the build context '{context}' can't be linked in the cache: {error}") from error
    return pulumi.Output.secret(context) if _LOGIN.match(context) else context


def _full_reference(tag: str, late: LateTexts) -> pulumi.Input[str]:
    if not late.is_late(tag):
        return str(ImageReference.parse(tag))
    return pulumi.Output.from_input(late.text(tag)).apply(lambda text: str(ImageReference.parse(text)))


def _registry(name: str, login: Login, late: LateTexts) -> dict[str, pulumi.Input[str]]:
    password = pulumi.Output.secret(late.text(login.password))
    return {"address": name, "username": late.text(login.user), "password": password}


def _dockerfile(build: Build) -> dict[str, str]:
    if build.dockerfile_inline:
        return {"inline": build.dockerfile_inline}
    return {"location": os.path.join(build.context, build.dockerfile)} if build.dockerfile else {}


def _ssh(text: str) -> dict[str, Any]:
    name, _, paths = text.partition("=")
    return {"id": name, "paths": paths.split(",")} if paths else {"id": name}


def _value(secret: BuildSecret) -> str:
    if not secret.file:
        return secret.value or ""
    try:
        return files.read_bytes(Path(secret.file), limit=MAX_BUILD_SECRET_BYTES).decode()
    except (files.Unreadable, UnicodeDecodeError) as error:
        raise pulumi.RunError(f"the secret '{secret.name}' of a build can't be read: {error}") from error


# host content ---------------------------------------------------------------------------------------------------------


def copy_host_content(
    owner: str, contents: Iterable[str], left_out: Mapping[int, Collection[str]] = MappingProxyType({})
) -> str:
    """Copy host content into a build context, each path by its number and with links followed; return the folder.

    What is ``left_out`` of a path is by its number too.

    The copy is apart from the original, so that the build reads no other file, and applies no ``.dockerignore`` of it.
    ``owner`` identifies the image; its folder never changes, because the state has the name.
    """
    name = hashlib.sha256(owner.encode()).hexdigest()[:16]
    folder = cache_folder(os.environ) / "content" / name
    try:
        with replace_folder(folder, private=True) as staged:
            for index, source in enumerate(contents):
                _copy(source, staged / str(index), left_out.get(index, ()))
        use_folder(folder)
    except OSError as error:
        raise pulumi.RunError(f"host content for image '{owner}' can't be copied: {error}") from error
    _remove_old(folder.parent)
    return str(folder)


def _copy(source: str, target: Path, left_out: Collection[str]) -> None:
    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if os.path.relpath(os.path.join(folder, name), source) in left_out}

    if os.path.isdir(source):
        shutil.copytree(source, target, ignore=ignored if left_out else None, copy_function=_link)
    else:
        _link(source, target)


def _remove_old(parent: Path) -> None:
    """Remove old contexts that no process uses, also those of killed runs."""
    before = time.time() - _MAX_CONTEXT_AGE_S
    for folder in parent.iterdir():
        with contextlib.suppress(OSError, Locked):
            if folder.stat().st_mtime >= before:
                continue
            with try_lock_folder(folder):
                remove_tree(folder)


def _link(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Link a file, or copy it if the file system can't link it."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy2(source, target)
