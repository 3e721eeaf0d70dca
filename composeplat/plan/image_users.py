"""The numbers of users and groups that a definition names, out of the files of their images.

Owns which images are to be read, what their users mean for a service, and the warnings about names that are left.
Must not read an image: :mod:`composeplat.registry.image_users` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from composeplat.compose.model import Project, Service, User
from composeplat.compose.origins import Checker
from composeplat.compose.placeholders import has_placeholder
from composeplat.compose.pod_model import ContainerOptions
from composeplat.compose.user_names import NUMBERS_HINT, describe_unknown

if TYPE_CHECKING:  # a plan alone reads no registry
    from composeplat.registry.image_users import ImageUsers


def named_users(project: Project) -> dict[str, set[str]]:
    """Return the users with names, by the image whose files have their numbers; built images are not read."""
    found: dict[str, set[str]] = {}
    for service in project.services.values():
        users = [service.user, *_groups(service)] if _is_readable(service) else []
        if names := {user.text for user in users if user is not None and user.has_names}:
            found.setdefault(service.image, set()).update(names)
    return found


def _groups(service: Service) -> Iterator[User]:
    """The groups that are names, each as a user that has no name."""
    return (User(group_name=name) for name in service.container.group_names.values())


def _is_readable(service: Service) -> bool:
    return service.is_pulled and not has_placeholder(service.image)


def with_image_users(project: Project, images: Mapping[str, ImageUsers]) -> Project:
    """Return the project with the numbers of users whose image was read."""
    if not images:
        return project
    return replace(
        project, services={name: _with_numbers(service, images) for name, service in project.services.items()}
    )


def _with_numbers(service: Service, images: Mapping[str, ImageUsers]) -> Service:
    image = images.get(service.image) if _is_readable(service) else None
    if image is None:
        return service
    if service.container.group_names:
        service = replace(service, container=_with_group_numbers(service.container, image))
    if service.user is None or not service.user.has_names:
        return service
    return replace(service, user=resolve_user(service.user, image))


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
    """Report names whose numbers are not known."""
    if service.user is not None and service.user.has_names:
        path = ("services", service.name, "user")
        checker.add("non-numeric-user", path, describe_unknown(service.user), NUMBERS_HINT)
    for position in service.container.group_names:
        message = "names a group that only the image knows, and has no effect"
        checker.add("non-numeric-user", ("services", service.name, "group_add", position), message, "give its number")
