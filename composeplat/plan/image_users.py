"""The numbers of users and groups that a definition names, out of the files of their images.

An image that the definition builds has them after the build, so such a service waits for it in a deploy.
Owns which images are to be read, what their users mean for a service, and the warnings about names that are left.
Must not read an image: :mod:`composeplat.registry.image_users` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from composeplat.compose.model import Project, Service, User
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker
from composeplat.compose.placeholders import has_placeholder
from composeplat.compose.pod_model import ContainerOptions
from composeplat.compose.user_names import NUMBERS_HINT, describe_unknown
from composeplat.plan.desired import BuiltImage
from composeplat.plan.images import service_image

if TYPE_CHECKING:  # a plan alone reads no registry
    from composeplat.registry.image_users import ImageUsers


def named_users(project: Project) -> dict[str, set[str]]:
    """Return the users with names, by the image whose files have their numbers; built images are not there yet."""
    found: dict[str, set[str]] = {}
    for service in project.services.values():
        if _is_readable(service) and (names := _names(service)):
            found.setdefault(service.image, set()).update(names)
    return found


def _names(service: Service) -> set[str]:
    users = (service.user, *_groups(service))
    return {user.text for user in users if user is not None and user.has_names}


def _groups(service: Service) -> Iterator[User]:
    """The groups that are names, each as a user that has no name."""
    return (User(group_name=name) for name in service.container.group_names.values())


def _is_readable(service: Service) -> bool:
    return service.is_pulled and not service.awaits_users and not has_placeholder(service.image)


def with_image_users(project: Project, images: Mapping[str, ImageUsers]) -> Project:
    """Return the project with the numbers of users whose image was read."""
    if not images:
        return project
    services = {
        name: _with_numbers(service, images.get(service.image) if _is_readable(service) else None)
        for name, service in project.services.items()
    }
    return replace(project, services=services)


def _with_numbers(service: Service, image: ImageUsers | None) -> Service:
    if image is None:
        return service
    if service.container.group_names:
        service = replace(service, container=_with_group_numbers(service.container, image))
    if service.user is None or not service.user.has_names:
        return service
    return replace(service, user=resolve_user(service.user, image))


def with_awaited_users(project: Project, settings: Settings) -> Project:
    """Mark the services with users that are looked up once their images are built."""
    marked = {
        name: replace(service, awaits_users=True)
        for name, service in project.services.items()
        if _names(service) and _built_image(project, service, settings) is not None
    }
    return replace(project, services={**project.services, **marked}) if marked else project


def awaited_users(project: Project, settings: Settings, chosen: Collection[str]) -> dict[str, set[str]]:
    """Return the users that some services wait for, by the service that builds their image."""
    found: dict[str, set[str]] = {}
    for service in project.services.values():
        image = _built_image(project, service, settings) if service.awaits_users and service.name in chosen else None
        if image is not None:
            found.setdefault(image.service, set()).update(_names(service))
    return found


def with_built_users(project: Project, settings: Settings, images: Mapping[str, ImageUsers | None]) -> Project:
    """Return the project with the numbers of users in built images, by the service that builds one.

    An image without a value can't be read; services whose image is not named still wait for it.
    """
    services = dict(project.services)
    for name, service in project.services.items():
        image = _built_image(project, service, settings) if service.awaits_users else None
        if image is not None and image.service in images:
            services[name] = replace(_with_numbers(service, images[image.service]), awaits_users=False)
    return replace(project, services=services)


def _built_image(project: Project, service: Service, settings: Settings) -> BuiltImage | None:
    """Return the image of a service if the definition builds it and it is pushed to a registry."""
    if has_placeholder(service.image):
        return None
    container = service.container
    if service.build is None and not container.built_by and not container.image_of:
        return None
    image = service_image(service, project.services, settings)
    return image if isinstance(image, BuiltImage) and not image.is_loaded else None


def _with_group_numbers(container: ContainerOptions, image: ImageUsers) -> ContainerOptions:
    names = container.group_names
    numbers = [image.groups[name] for name in names.values() if name in image.groups]
    unknown = {position: name for position, name in names.items() if name not in image.groups}
    return replace(container, groups=tuple(dict.fromkeys((*container.groups, *numbers))), group_names=unknown)


def resolve_user(user: User, image: ImageUsers) -> User | None:
    """Find the numbers of a user; None is the image's own user. As in Docker, a user brings its first group."""
    if image.users is None:
        return None if user.text == image.default else user
    uid, gid = user.uid, user.gid
    if user.user_name:
        uid, own_group = image.users.get(user.user_name, (None, None))
        gid = own_group if gid is None else gid
    if user.group_name:
        gid = image.groups.get(user.group_name)
    if (user.user_name and uid is None) or (user.group_name and gid is None):
        return replace(user, is_missing=True)
    return User(uid=uid, gid=gid)


def check_user_names(checker: Checker, service: Service) -> None:
    """Report names whose numbers are not known, and are not looked up later."""
    if service.awaits_users:
        return
    if service.user is not None and service.user.has_names:
        path = ("services", service.name, "user")
        checker.add("non-numeric-user", path, describe_unknown(service.user), NUMBERS_HINT)
    for position in service.container.group_names:
        message = "names a group that only the image knows, and has no effect"
        checker.add("non-numeric-user", ("services", service.name, "group_add", position), message, "give its number")
