"""The numbers of named users, out of the files of their image."""

from __future__ import annotations

import pytest

from composeplat.compose.load import load
from composeplat.compose.model import User
from composeplat.compose.user_names import describe_unknown
from composeplat.compose.values import parse_user
from composeplat.plan.image_users import (
    awaited_users,
    named_users,
    resolve_user,
    with_awaited_users,
    with_built_users,
)
from composeplat.registry.image_users import ImageUsers
from tests.conftest import Project

IMAGE = ImageUsers(default="node", users={"node": (1000, 1001), "www": (33, 34)}, groups={"staff": 50, "www": 34})
UNREAD = ImageUsers(default="node")


def user(text: str) -> User:
    read = parse_user(text)
    return User.of(read)


@pytest.mark.parametrize(
    ("text", "uid", "gid"),
    [
        ("node", 1000, 1001),
        ("node:5", 1000, 5),
        ("node:root", 1000, 0),
        ("www:staff", 33, 50),
        ("7:staff", 7, 50),
        ("root:www", 0, 34),
    ],
)
def test_numbers(text: str, uid: int, gid: int) -> None:
    """A user brings its first group, unless a group is given."""
    assert resolve_user(user(text), IMAGE) == User(uid=uid, gid=gid)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nobody", "names a user that its image does not have, and has no effect"),
        ("nobody:5", "names a user that its image does not have; the group's number is used, with the image's user"),
        ("7:wheel", "names a group that its image does not have; the user's number is used, with the user's own group"),
        ("node:wheel", "names a user or group that its image does not have, and has no effect"),
    ],
)
def test_names_that_the_image_lacks(text: str, message: str) -> None:
    """A number next to them still counts."""
    found = resolve_user(user(text), IMAGE)

    assert found is not None
    assert (found.uid, found.gid) == (user(text).uid, user(text).gid)
    assert describe_unknown(found).startswith(message)


def test_an_image_without_its_files() -> None:
    """The user that the image has anyway needs no number; another stays a name."""
    assert resolve_user(user("node"), UNREAD) is None
    assert resolve_user(user("node:staff"), UNREAD) == user("node:staff")


def test_images_that_the_definition_builds(project: Project) -> None:
    """Services wait for the image that they share with another; one that can't be read leaves the names."""
    folder = project(
        "services: {web: {build: ., user: node}, other: {build: ., user: node}, pulled: {image: a/b:1, user: node},"
        " worker: {image: shop, user: '5:staff'}, shop: {build: ., image: shop, user: '7'}}"
    )
    loaded = load(folder.request(registry="registry.example.com"))
    settings = loaded.settings
    marked = with_awaited_users(loaded.project, settings)

    assert awaited_users(marked, settings, {"web", "worker", "pulled", "shop"}) == {
        "web": {"node"},
        "shop": {"5:staff"},
    }
    assert named_users(marked) == {"a/b:1": {"node"}}
    users = ImageUsers(users={"node": (1000, 1001)}, groups={"staff": 50})
    found = with_built_users(marked, settings, {"web": users, "shop": users, "other": None}).services
    assert {name: service.user for name, service in found.items()} == {
        "web": User(uid=1000, gid=1001), "worker": User(uid=5, gid=50), "shop": User(uid=7),
        "other": User(user_name="node"), "pulled": User(user_name="node"),
    }  # fmt: skip
    assert with_built_users(marked, settings, {}).services["web"].awaits_users
    assert not found["other"].awaits_users


def test_images_that_are_loaded(project: Project) -> None:
    """An image that no registry has is not read, and no service waits for it."""
    folder = project("services: {web: {build: ., user: node}, pulled: {image: a/b:1, user: node}}")
    loaded = load(folder.request(load_policy="Never"))

    assert with_awaited_users(loaded.project, loaded.settings) == loaded.project
    assert named_users(loaded.project) == {"a/b:1": {"node"}}
