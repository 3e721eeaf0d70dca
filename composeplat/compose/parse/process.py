"""Parse what a container runs, and as whom: a command and a user, of a service or of one of its hooks."""

from __future__ import annotations

from composeplat.compose.model import User
from composeplat.compose.nodes import Scalar, Sequence
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.user_names import NUMBERS_HINT, describe_unknown
from composeplat.compose.values import parse_user, split_command

_OPERATORS = ("&&", "||", "|", "&", ";", ">", ">>", "<", "2>&1")


def parse_command(section: Section, key: str) -> tuple[str, ...] | None:
    """Read a command: a text is split as a shell does, a list is used as it is; None is the image's."""
    found = section.get(key)
    if found is None:
        return None
    if isinstance(found.node, Sequence):
        # A list that has no valid entry is not an empty one.
        return found.texts() or (None if found.node.items else ())
    if isinstance(found.node, Scalar):
        args = found.value(split_command)
        _report_operator(found, found.node.text, args or ())
        return args
    found.report_type("a text or a list")
    return None


def _report_operator(place: Field, text: str, args: tuple[str, ...]) -> None:
    """Warn of an operator of a shell that is an argument here, unless it is quoted; Compose's parser stops there."""
    unquoted = set(text.split()).intersection(args)
    found = next((operator for operator in _OPERATORS if operator in unquoted), "")
    if not found and any(arg.endswith(";") for arg in unquoted):
        found = ";"
    if found:
        message = f"has '{found}', which no shell reads: it is an argument, and Docker Compose ends the command there"
        place.report("no-effect", message, "for a shell, write a list: [sh, -c, 'COMMANDS']")


def parse_service_user(section: Section) -> User | None:
    """Read the user and group, with names that are looked up in the image later."""
    found = section.given("user")
    read = found.value(parse_user) if found else None
    return None if read is None else User.of(read)


def parse_hook_user(section: Section) -> User:
    """Read the user and group of a hook, where names are not looked up; a number beside a name is used."""
    user = parse_service_user(section) or User()
    found = section.get("user")
    if found is not None and user.has_names:
        found.report("non-numeric-user", describe_unknown(user), NUMBERS_HINT)
    return User(uid=user.uid, gid=user.gid)
