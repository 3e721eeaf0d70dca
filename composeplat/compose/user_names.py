"""Messages about users and groups that are names: only the files of an image have their numbers.

Owns the texts. Must not know how an image is read.
"""

from __future__ import annotations

from composeplat.compose.model import User

NUMBERS_HINT = "give numbers, as in '1000' or '1000:1000'"


def describe_unknown(user: User) -> str:
    """Return the message for a user whose names have no known numbers, with the effect that is left."""
    problem = "that its image does not have" if user.is_missing else "that only the image knows"
    if user.uid is not None:
        return f"names a group {problem}; the user's number is used, with the user's own group"
    if user.gid is not None:
        return f"names a user {problem}; the group's number is used, with the image's user"
    half = "user or group" if user.is_missing and user.group_name else "user"
    return f"names a {half} {problem}, and has no effect; the container runs as the image's user"
