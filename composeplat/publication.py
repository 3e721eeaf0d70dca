"""The data that a deploy sends away from this machine: files and images, and their destinations.

Owns this list, as data and as messages, which users see before anything is sent.
Must not contain the content of a file or the value of a variable: files have the names of the definition.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from composeplat.compose.load import Loaded
from composeplat.compose.model import HOST, Service
from composeplat.compose.origins import env_file_source_path, mount_source_path, watch_rule_path
from composeplat.compose.parse.build import cache_options
from composeplat.compose.variables import SHELL
from composeplat.compose.watch_model import WatchRule
from composeplat.diagnostics import PathKey, format_count, join_and_count, quoted
from composeplat.plan.desired import ImageBuild, Plan
from composeplat.plan.images import carries_content_in_image, host_mounts, is_on_this_machine
from composeplat.registry.image_reference import ImageReference
from composeplat.system import files
from composeplat.system.project_root import is_inside, resolve

MAX_NAMES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ToCluster:
    """Files and variables that become Secrets of a namespace."""

    context: str
    """Empty for a cluster that only a provider of Pulumi knows."""
    namespace: str
    files: int = 0
    bytes: int = 0
    sources: tuple[str, ...] = ()
    env_files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    """The names of the variables that the definition uses, of the shell or of a program."""
    of_program: bool = False
    """Whether the variables are those that a program of Pulumi gives."""

    @property
    def data(self) -> dict[str, object]:
        return {
            "event": "publish", "to": "cluster", "name": self.context, "namespace": self.namespace,
            "files": self.files, "bytes": self.bytes, "sources": list(self.sources), "env_files": list(self.env_files),
            "variables": list(self.variables),
        }  # fmt: skip

    @property
    def text(self) -> str:
        parts = []
        if self.files:
            parts.append(
                f"{format_count(self.files, 'file')} of {_format_names(self.sources)} ({_format_size(self.bytes)})"
            )
        if self.env_files:
            parts.append(f"{'env file' if len(self.env_files) == 1 else 'env files'} {_format_names(self.env_files)}")
        if self.variables:
            giver = "program" if self.of_program else "shell"
            parts.append(f"variables of the {giver}: {_format_names(self.variables)}")
        cluster = f"cluster '{self.context}'" if self.context else "the provider's cluster"
        return f"sends to {cluster}, namespace {self.namespace}: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToRegistry:
    """Images that are pushed, each with the files of this machine in it."""

    registry: str
    images: Mapping[str, tuple[str, ...]] = field(hash=False)

    @property
    def data(self) -> dict[str, object]:
        return _images_event("registry", self.registry, self.images)

    @property
    def text(self) -> str:
        return f"sends to registry {self.registry}: {_format_images(self.images)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToCache:
    """A build cache in a store of objects, which gets the layers of images."""

    store: str
    images: Mapping[str, tuple[str, ...]] = field(hash=False)

    @property
    def data(self) -> dict[str, object]:
        return _images_event("cache", self.store, self.images)

    @property
    def text(self) -> str:
        return f"sends to build cache {self.store}: {_format_images(self.images)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToNodes:
    """Images that are loaded into the nodes of a cluster, each with the files of this machine in it."""

    context: str
    images: Mapping[str, tuple[str, ...]] = field(hash=False)

    @property
    def data(self) -> dict[str, object]:
        return _images_event("nodes", self.context, self.images)

    @property
    def text(self) -> str:
        return f"loads into the nodes of cluster '{self.context}': {_format_images(self.images)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToContainer:
    """Folders and files that are synced with a container."""

    service: str
    context: str
    namespace: str
    sources: tuple[str, ...]

    @property
    def data(self) -> dict[str, object]:
        return {
            "event": "publish", "to": "container", "name": self.context, "namespace": self.namespace,
            "service": self.service, "sources": list(self.sources),
        }  # fmt: skip

    @property
    def text(self) -> str:
        where = f"cluster '{self.context}', namespace {self.namespace}"
        return f"syncs with {self.service} in {where}: {_format_names(self.sources)}"


Publication = ToCluster | ToRegistry | ToCache | ToNodes | ToContainer


def publications(
    loaded: Loaded, plan: Plan, services: Collection[str] = (), *, context: str, builds: bool = True
) -> tuple[Publication, ...]:
    """List the data that a deploy of some services, or of all, sends; images only with ``builds``."""
    part = plan.limited_to(services)
    found = [
        *_cluster_publications(loaded, part, context),
        *(image_publications(loaded, part.images, context=context) if builds else ()),
    ]
    return tuple(found)


def leaving_machine(found: Iterable[Publication]) -> Iterator[Publication]:
    """Yield images for other registries and caches: they leave this machine although the cluster is on it."""
    for publication in found:
        match publication:
            case ToCache():
                yield publication
            case ToRegistry(registry=registry) if not is_on_this_machine(registry):
                yield publication


def sync_publication(
    loaded: Loaded, service: Service, namespace: str, sources: Iterable[str], *, context: str
) -> ToContainer:
    """Return the host paths that the development of a service syncs."""
    names = tuple(_source_name(loaded, service, source) for source in sources)
    return ToContainer(service=service.name, context=context, namespace=namespace, sources=names)


def watch_publication(
    loaded: Loaded, service: Service, namespace: str, rules: Collection[WatchRule], *, context: str
) -> ToContainer:
    """Return the paths that a watch copies into the containers of a service."""
    names = {
        _shown_path(loaded, (*watch_rule_path(service.name, index), "path"), rule.path): None
        for index, rule in enumerate(service.watch)
        if rule in rules
    }
    return ToContainer(service=service.name, context=context, namespace=namespace, sources=tuple(names))


def _cluster_publications(loaded: Loaded, plan: Plan, context: str) -> Iterator[ToCluster]:
    services = [loaded.project.services[planned.name] for planned in plan.services]
    carried = [service for service in services if not carries_content_in_image(service)]
    mounts = [(service, mount) for service in carried for mount in host_mounts(service) if mount.content]
    sources = {mount.source: (mount, _source_name(loaded, service, mount.source)) for service, mount in mounts}
    contents = [mount.content for mount, _ in sources.values() if mount.content]
    objects = dict(_file_objects(loaded, plan))
    env_files = dict.fromkeys(name for service in services for name in _env_files(loaded, service))
    sent = ToCluster(
        context=context, namespace=plan.namespace, files=sum(content.count for content in contents) + len(objects),
        bytes=sum([*(content.size for content in contents), *objects.values()]),
        sources=(*(name for _, name in sources.values()), *objects),
        env_files=tuple(env_files), variables=tuple(use.name for use in loaded.references if use.layer == SHELL),
    )  # fmt: skip
    if sent.files or sent.env_files or sent.variables:
        yield sent


def _file_objects(loaded: Loaded, plan: Plan) -> Iterator[tuple[str, int]]:
    """Yield the files of configs and secrets, with their sizes."""
    for planned in plan.files:
        declared = {"configs": loaded.project.configs, "secrets": loaded.project.secrets}
        found = declared.get(planned.section, {}).get(planned.name)
        if found and found.file:
            name = _shown_path(loaded, (planned.section, planned.name, "file"), found.file)
            yield name, len(found.content or b"")


def _env_files(loaded: Loaded, service: Service) -> Iterator[str]:
    for index, file in enumerate(service.env_files):
        if files.exists(Path(file.path)):
            yield _shown_path(loaded, env_file_source_path(service.name, index), file.path)


def image_publications(
    loaded: Loaded, images: Iterable[ImageBuild], *, context: str
) -> list[ToRegistry | ToCache | ToNodes]:
    """List the images that builds load into nodes or push, by registry: with all tags, and as caches."""
    pushed: dict[str, dict[str, tuple[str, ...]]] = {}
    stored: dict[str, dict[str, tuple[str, ...]]] = {}
    loading: dict[str, tuple[str, ...]] = {}
    for image in images:
        sources = _image_sources(loaded, image)
        caches = [cache_options(text) for text in image.build.cache_to]
        if image.is_loaded:
            loading[image.reference] = sources
        tags = () if image.is_loaded else (image.reference, *image.build.tags)
        for tag in (*tags, *filter(None, map(_cache_reference, caches))):
            reference = ImageReference.parse(tag)
            pushed.setdefault(reference.registry, {})[reference.name] = sources
        for store in filter(None, map(_cache_store, caches)):
            stored.setdefault(store, {})[image.service] = sources
    return [
        *([ToNodes(context=context, images=loading)] if loading else []),
        *(ToRegistry(registry=registry, images=named) for registry, named in pushed.items()),
        *(ToCache(store=store, images=named) for store, named in stored.items()),
    ]


def _cache_reference(options: Sequence[tuple[str, str]]) -> str:
    """Return the image that a cache is pushed as; empty for a cache elsewhere."""
    given = dict(options)
    if len(options) == 1 and "" in given:
        return given[""]
    return given.get("ref", "") if given.get("type") == "registry" else ""


def _cache_store(options: Sequence[tuple[str, str]]) -> str:
    """Return the store of a cache that is in no registry and not on this machine; empty for another one."""
    given = dict(options)
    match given.get("type"):
        case "s3":
            server = _host(given.get("endpoint_url", ""))
            return f"of S3, bucket {given.get('bucket', '')}{server and f' at {server}'}"
        case "azblob":
            return f"of Azure, at {_host(given.get('account_url', ''))}"
        case "gha":
            return "of GitHub Actions"
    return ""


def _host(url: str) -> str:
    """Return the host of a URL, with its port and without a login."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2]


def _image_sources(loaded: Loaded, image: ImageBuild) -> tuple[str, ...]:
    if image.derived:
        service = loaded.project.services[image.service]
        return tuple(_source_name(loaded, service, source) for source in image.contents)
    contexts: list[tuple[PathKey, str]] = [(("context",), image.build.context)]
    contexts += [(("additional_contexts", name), context) for name, context in image.build.additional_contexts.items()]
    path = ("services", image.service, "build")
    return tuple(_shown_path(loaded, (*path, *keys), context) for keys, context in contexts if os.path.isabs(context))


def _source_name(loaded: Loaded, service: Service, source: str) -> str:
    index = next(i for i, mount in enumerate(service.mounts) if mount.kind == HOST and mount.source == source)
    return _shown_path(loaded, mount_source_path(service.name, index), source)


def _shown_path(loaded: Loaded, path: PathKey, absolute: str) -> str:
    """Return a path relative to the Compose file, or its text in the file if that has a variable."""
    if loaded.origins.is_substituted(*path):
        return loaded.origins.shown(*path).removesuffix(" (after substitution)")[1:-1]
    if not is_inside(loaded.root.path, resolve(absolute)):
        return absolute
    relative = os.path.relpath(absolute, loaded.folder)
    return relative if relative.startswith(".") else f"./{relative}"


def _format_names(names: Collection[str]) -> str:
    return join_and_count([quoted(name) for name in names], MAX_NAMES)


def _format_size(count: int) -> str:
    for unit, size in (("MiB", 1024**2), ("KiB", 1024)):
        if count >= size:
            return f"{count / size:.0f} {unit}"
    return f"{count} B"


def _images_event(to: str, name: str, images: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    rows = [{"image": image, "sources": list(sources)} for image, sources in images.items()]
    return {"event": "publish", "to": to, "name": name, "images": rows}


def _format_images(images: Mapping[str, tuple[str, ...]]) -> str:
    shown = [f"{name}, of {_format_names(sources)}" if sources else name for name, sources in images.items()]
    more = f"; and {len(shown) - MAX_NAMES} more" if len(shown) > MAX_NAMES else ""
    noun = "image" if len(shown) == 1 else "images"
    return f"{noun} {'; '.join(shown[:MAX_NAMES])}{more}"
