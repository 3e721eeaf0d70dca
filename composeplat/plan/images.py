"""The images to build: of services with a ``build`` section, and of services with much host content.

Owns the order of builds, which host content is in an image, and where pods have a built image in place of its name.
Must not build: the components and the engine do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from composeplat.compose.check import report_inactive
from composeplat.compose.model import HOST, MAX_HOST_BYTES, MAX_HOST_FILES, Build, HostFile, Mount, Project, Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker
from composeplat.compose.placeholders import has_placeholder
from composeplat.compose.port_values import is_loopback
from composeplat.compose.shared_images import builders_of, image_identity
from composeplat.diagnostics import MissingPiece
from composeplat.names import LOADED_LABEL, clean
from composeplat.plan.desired import BuiltImage, ImageBuild, Manifest
from composeplat.registry.image_reference import ImageReference, registry_of_prefix

#: The prefix of an additional context that is the image of another service.
_SERVICE_PREFIX = "service:"
#: The context of a derived image for the image that it is built on, where another service builds that.
_SHARED_IMAGE = "service-image"


def image_reference(service: Service, settings: Settings) -> str:
    """Return the name under which the image that a service builds is pushed.

    It is that of the service if it names a place to push to, else ``<registry>/<image>`` or, without a name,
    ``<registry>/<environment>-<service>``.
    """
    written = service.image if service.build is not None else ""
    if written:
        return _pushed_name(written, settings)
    return _in_registry(f"{settings.environment}-{clean(service.name)}", settings)


def _pushed_name(written: str, settings: Settings) -> str:
    return _in_registry(written, settings) if _needs_registry(written, settings) else written


def _in_registry(name: str, settings: Settings) -> str:
    return f"{settings.registry.rstrip('/')}/{name}" if settings.registry else name


def _needs_registry(image: str, settings: Settings) -> bool:
    """Check for a name without a registry: Docker Hub takes it from its owner only, and one word from Docker alone.

    What goes to a registry on this machine is for a local cluster, so none of it goes to Docker Hub.
    """
    name = image.partition(":")[0]
    is_here = is_on_this_machine(registry_of_prefix(settings.registry))
    return ImageReference.is_short(image) and not has_placeholder(name) and ("/" not in name or is_here)


def is_on_this_machine(registry: str) -> bool:
    """Check for a registry at a loopback address, as that of the local cluster."""
    host = registry.rpartition(":")[0] or registry
    return host.endswith(".localhost") or is_loopback(host.strip("[]"))


def plan_images(checker: Checker, services: Iterable[Service], settings: Settings) -> tuple[ImageBuild, ...]:
    """Plan every image, each after the images that its build uses."""
    known = checker.project.services
    waiting = {service.name: service for service in services if _building_service(service, known) is service}
    images: list[ImageBuild] = []
    while waiting:
        ready = [service for service in waiting.values() if not set(_bases(service).values()) & waiting.keys()]
        if not ready:
            _report_cycle(checker, waiting)
            ready = list(waiting.values())
        for service in ready:
            del waiting[service.name]
            image = _plan_image(checker, service, settings)
            images.append(_loaded(image) if settings.load_policy else image)
    return tuple(images)


def check_registries(images: Iterable[ImageBuild], fix: str) -> None:
    """Check that each image that is pushed has a registry, or a name that only Pulumi knows."""
    for image in images:
        if "/" not in image.reference and not image.is_loaded and not has_placeholder(image.reference):
            raise MissingPiece(
                f"no registry is known that the image of service '{image.service}' could be pushed to",
                f"{fix}, or name one in 'image'",
            )


def _loaded(image: ImageBuild) -> ImageBuild:
    """Label an image that is loaded: the kubelet asks for credentials if it ever pulled the same image by a name."""
    labels = {**image.build.labels, LOADED_LABEL: "true"}
    return replace(image, is_loaded=True, build=replace(image.build, labels=labels))


def _plan_image(checker: Checker, service: Service, settings: Settings) -> ImageBuild:
    reference = image_reference(service, settings)
    if service.build is None:
        return _derived_image(service, reference, checker.project.services, settings)
    bases: dict[str, BuiltImage | str] = {}
    for context, name in _bases(service).items():
        base = checker.project.services.get(name)
        if base is not None:
            bases[context] = service_image(base, checker.project.services, settings)
        elif not checker.is_unread(service.name, "build"):
            path = ("services", service.name, "build", "additional_contexts", context)
            shown = checker.origins.shown(*path)
            if report_inactive(checker, path, name, shown):
                continue
            hint = checker.report.near(name, checker.project.services)
            checker.add("undefined-service", path, f"names a service that the definition does not have: {shown}", hint)
    tags = tuple(_pushed_name(tag, settings) for tag in service.build.tags)
    build = replace(service.build, tags=tags, platforms=service.build.platforms or _platforms(service, settings))
    return ImageBuild(service=service.name, reference=reference, build=build, bases=bases)


def _derived_image(service: Service, reference: str, services: Mapping[str, Service], settings: Settings) -> ImageBuild:
    """Plan an image with the host content of a service, on the image that it names, which may be built too."""
    mounts = host_mounts(service)
    hidden = ((number, mount.content.left_out) for number, mount in enumerate(mounts) if mount.content)
    bases = _bases(service)
    build = Build(
        context="",
        dockerfile_inline=_dockerfile(service, next(iter(bases), service.image)),
        additional_contexts={name: f"{_SERVICE_PREFIX}{base}" for name, base in bases.items()},
        platforms=_platforms(service, settings),
    )
    images = {name: service_image(services[base], services, settings) for name, base in bases.items()}
    return ImageBuild(
        service=service.name,
        reference=reference,
        build=build,
        bases=images,
        derived=True,
        contents=tuple(mount.source for mount in mounts),
        left_out={number: paths for number, paths in hidden if paths},
    )


def _platforms(service: Service, settings: Settings) -> tuple[str, ...]:
    """Return the platform of a service, else those of the nodes that its pods may run on."""
    written, processor = service.container.platform.written, service.node_selector.get("kubernetes.io/arch")
    if written:
        return (written,)
    return (f"linux/{processor}",) if processor and settings.build_platforms else settings.build_platforms


def _bases(service: Service) -> dict[str, str]:
    """Return the services whose images a build uses, by the name of the context."""
    if service.container.built_by:
        return {_SHARED_IMAGE: service.container.built_by}
    contexts = service.build.additional_contexts if service.build else {}
    return {
        name: context[len(_SERVICE_PREFIX) :]
        for name, context in contexts.items()
        if context.startswith(_SERVICE_PREFIX)
    }


def _report_cycle(checker: Checker, waiting: Mapping[str, Service]) -> None:
    """Report a cycle of builds: each of the waiting builds uses another, so following them ends in a cycle."""
    trail: list[str] = []
    name = next(iter(waiting))
    while name not in trail:
        trail.append(name)
        name = next(base for base in _bases(waiting[name]).values() if base in waiting)
    cycle = [*trail[trail.index(name) :], name]
    path = ("services", name, "build", "additional_contexts")
    checker.add("dependency-cycle", path, f"closes a cycle: {' -> '.join(cycle)}", "remove one of these contexts")


def service_image(service: Service, services: Mapping[str, Service], settings: Settings) -> BuiltImage | str:
    builder = _building_service(service, services)
    if builder is None:
        return service.image
    return _built_image(builder, settings)


def _built_image(builder: Service, settings: Settings) -> BuiltImage:
    return BuiltImage(builder.name, image_reference(builder, settings), bool(settings.load_policy))


def _building_service(service: Service, services: Mapping[str, Service]) -> Service | None:
    """Return the service whose build makes the image of a service, often itself; None if the image is pulled."""
    if service.container.image_of:
        return _building_service(services[service.container.image_of], services)
    if _is_built(service):
        return service
    return services[service.container.built_by] if service.container.built_by else None


def images_by_identity(project: Project, settings: Settings) -> dict[tuple[str, ...], BuiltImage]:
    """Return the images that services with ``build`` name, each by all that its names share."""
    builders = builders_of(project).items()
    return {identity: _built_image(project.services[name], settings) for identity, name in builders}


def use_built_images(spec: Manifest, built: Mapping[tuple[str, ...], BuiltImage], settings: Settings) -> Manifest:
    """Let init containers and volumes, which name images only, have those that services build."""

    def find(image: BuiltImage | str) -> BuiltImage | None:
        # Few definitions name such images, and each name would be parsed.
        return built.get(image_identity(image)) if built and image and isinstance(image, str) else None

    policy = settings.load_policy
    containers, volumes = [*spec.get("initContainers", ())], [*spec.get("volumes", ())]
    for index, container in enumerate(containers):
        if found := find(container["image"]):
            containers[index] = {**container, "image": found, **({"imagePullPolicy": policy} if policy else {})}
    for index, volume in enumerate(volumes):
        if found := find(volume.get("image", {}).get("reference", "")):
            volumes[index] = {**volume, "image": {"reference": found, **({"pullPolicy": policy} if policy else {})}}
    return {key: found for key, found in (("initContainers", containers), ("volumes", volumes)) if found}


def references_of_builds(services: Iterable[Service], settings: Settings) -> frozenset[str]:
    """Return the names under which the images of the environment are pushed."""
    return frozenset(image_reference(service, settings) for service in services if _is_built(service))


def image_with_ports(service: Service, image: BuiltImage | str, built: frozenset[str]) -> BuiltImage | str:
    """Return the image whose exposed ports a cluster service lists; empty if the service has ports of its own.

    It is also empty for an image that another service builds: its ports would be read before that build.
    """
    return "" if service.ports or image in built else image


def _is_built(service: Service) -> bool:
    return service.build is not None or carries_content_in_image(service)


def carries_content_in_image(service: Service) -> bool:
    """Check for host content that is too large for a Secret, or can't be mounted: then all of it is in the image."""
    if any(mount.content is not None and mount.content.files is None for mount in host_mounts(service)):
        return True
    files = _host_files(service)
    is_large = len(files) > MAX_HOST_FILES or sum(len(file.content) for file in files) > MAX_HOST_BYTES
    return is_large or bool(unmountable_file(service))


def _host_files(service: Service) -> list[HostFile]:
    return [file for mount in host_mounts(service) if mount.content for file in mount.content.files or ()]


def unmountable_file(service: Service) -> str:
    """Return the name of a file that no pod can mount: a path of a mount has no colon; empty without one."""
    return next((file.path for file in _host_files(service) if ":" in file.path), "")


def largest_mount(service: Service) -> int:
    """Return the index of the mount with the largest host content."""
    mounts = host_mounts(service)
    found = [(index, mount.content) for index, mount in enumerate(service.mounts) if mount in mounts and mount.content]
    return max(found, key=lambda indexed: (indexed[1].files is None, indexed[1].size, indexed[1].count))[0]


def host_mounts(service: Service) -> list[Mount]:
    """Return the host volumes that are deployed; a built service has none."""
    return [mount for mount in service.mounts if mount.kind == HOST] if service.build is None else []


def _dockerfile(service: Service, base: str) -> str:
    """Write a Dockerfile that adds host content to an image; in the context, each path is named by its number."""
    return "\n".join([f"FROM {base}", *_copies(service)]) + "\n"


def depth(mount: Mount) -> int:
    """Return the number of steps of a mount's path: of two within each other, the deeper one is mounted last."""
    return mount.target.count("/")


def _copies(service: Service) -> Iterator[str]:
    for index, mount in sorted(enumerate(host_mounts(service)), key=lambda indexed: depth(indexed[1])):
        is_folder = mount.content is not None and mount.content.is_folder
        source, target = (f"{index}/", f"{mount.target.rstrip('/')}/") if is_folder else (str(index), mount.target)
        yield f'COPY ["{source}", "{_escaped(target)}"]'


def _escaped(path: str) -> str:
    """Escape a path for JSON, and its dollar signs for the variables of a build."""
    return path.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\\\$")
