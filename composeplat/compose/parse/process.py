"""Parse what a container runs, and as whom: a command and a user, of a service or of one of its hooks."""

from __future__ import annotations

from composeplat.compose.model import User
from composeplat.compose.nodes import Scalar, Sequence
from composeplat.compose.parse.fields import Section
from composeplat.compose.values import UserText, parse_user, split_command


def parse_command(section: Section, key: str) -> tuple[str, ...] | None:
    """Read a command: a text is split as a shell does, a list is used as it is; None is the image's."""
    found = section.get(key)
    if found is None:
        return None
    if isinstance(found.node, Sequence):
        return tuple(text for item in found.items() if (text := item.text()) is not None)
    if isinstance(found.node, Scalar):
        return found.value(split_command)
    found.report_type("a text or a list")
    return None


def parse_service_user(section: Section) -> User | None:
    """Read the user and group; only the image can resolve names, but a number beside a name is used."""
    found = section.get("user")
    read = found.value(parse_user) if found and found.text() else None
    if found is None or read is None:
        return None
    if read.names:
        found.report("non-numeric-user", _unknown_user(read), "give numbers, as in '1000' or '1000:1000'")
    return User(uid=read.uid, gid=read.gid) if (read.uid, read.gid) != (None, None) else None


def _unknown_user(read: UserText) -> str:
    if read.uid is not None:
        return "names a group that only the image knows; the user's number is used, with the user's own group"
    if read.gid is not None:
        return "names a user that only the image knows; the group's number is used, with the image's user"
    return "names a user that only the image knows, and has no effect; the container runs as the image's user"
