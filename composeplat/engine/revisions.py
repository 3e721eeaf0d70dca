"""The history of an environment as data: its revisions with their changes, and to which one a rollback goes.

Owns the form in which a revision is kept, and its limits. Pure: :mod:`~composeplat.engine.history` reads and writes.
Everyone who may write Secrets in the namespace can write a revision, so each field is checked as it is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from enum import StrEnum
from itertools import accumulate
from typing import Any, Self

from composeplat.diagnostics import ComposeplatError, join_and_count, truncate
from composeplat.engine.events import Change, Operation
from composeplat.engine.plan_parts import Parts
from composeplat.plan.desired import Plan
from composeplat.plan.resource_keys import ResourceKind
from composeplat.system.records import record

#: How many revisions an environment keeps.
MAX_REVISIONS = 10
_FORMAT = 1
_MAX_TEXT_CHARS = 200
_MAX_CHANGES = 500
#: The annotations of an object have 256 KiB together.
_MAX_CHANGES_BYTES = 200_000
_MAX_DIGITS = 9
_MAX_LISTED = 12
_IMAGES = ".image"
#: The objects of a service that come and go while the service stays.
_BESIDE = frozenset(
    {
        ResourceKind.ENVIRONMENT,
        ResourceKind.FILES,
        ResourceKind.PULL_SECRET,
        ResourceKind.POLICY,
        ResourceKind.ALIAS,
        ResourceKind.AUTOSCALER,
        ResourceKind.EXPOSED,
    }
)


class Result(StrEnum):
    UNFINISHED = "unfinished"
    """It is still running, or was killed."""
    DONE = "done"
    APPLIED = "applied"
    """Nobody waited for its services."""
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def is_good(self) -> bool:
        return self in (Result.DONE, Result.APPLIED)


@record
class ImageChange:
    old: str
    new: str


@record(kw_only=True)
class PartChange:
    """The change of one part of the definition."""

    type: str
    name: str
    operation: str
    images: tuple[ImageChange, ...] = ()


@record(kw_only=True)
class Revision:
    """One deployment of an environment."""

    number: int
    command: str
    """``deploy``, ``rollback`` or ``destroy``."""
    result: Result
    who: str
    started: str = ""
    """By the clock of the API server."""
    seconds: float = 0.0
    commit: str = ""
    branch: str = ""
    dirty: bool | None = None
    """Whether the work tree had changes that are in no commit; None if that is not known."""
    services: tuple[str, ...] = ()
    """Those that were named; empty for all."""
    rolled_back_to: int | None = None
    changes: tuple[PartChange, ...] = ()
    omitted_changes: int = 0
    """How many more there were."""
    has_values: bool = False
    """Whether its objects are kept, as a rollback needs them."""
    state: str = ""
    """The identifier of the state that it was deployed with; empty if it had none before the first deploy."""

    @property
    def can_roll_back(self) -> bool:
        return self.result.is_good and self.has_values

    def to_text(self) -> str:
        data = {name: value for name, value in asdict(self).items() if name not in _OF_THE_OBJECT}
        return json.dumps({"format": _FORMAT, **data}, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str, *, number: int, started: str) -> Self | None:
        """Read a revision; None if it is of another version of the platform, or broken."""
        try:
            data = json.loads(text)
            if data["format"] != _FORMAT:
                return None
            changes = tuple(_read_change(row) for row in data["changes"][:_MAX_CHANGES])
            return cls(
                number=number,
                started=started,
                command=_text(data["command"]),
                result=Result(data["result"]),
                who=_text(data["who"]),
                seconds=_seconds(data["seconds"]),
                commit=_text(data["commit"]),
                branch=_text(data["branch"]),
                dirty=None if data["dirty"] is None else bool(data["dirty"]),
                services=tuple(map(_text, data["services"][:_MAX_CHANGES])),
                rolled_back_to=None if data["rolled_back_to"] is None else int(data["rolled_back_to"]),
                changes=changes,
                omitted_changes=int(data["omitted_changes"]),
                has_values=data["has_values"] is True,
                state=_text(data.get("state", "")),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            return None


#: These are kept by the object's name and by the API server.
_OF_THE_OBJECT = ("number", "started")


def _read_change(row: Mapping[str, Any]) -> PartChange:
    images = tuple(ImageChange(_text(found["old"]), _text(found["new"])) for found in row["images"][:_MAX_CHANGES])
    operation = Operation(row["operation"])
    if operation is Operation.SAME:
        raise ValueError
    return PartChange(type=_text(row["type"]), name=_text(row["name"]), operation=str(operation), images=images)


def _seconds(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return short(value)


def short(text: str) -> str:
    return truncate(text, _MAX_TEXT_CHARS)


def parse_number(text: str) -> int | None:
    """Parse the number of a revision; None for another text."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS and not text.startswith("0")
    return int(text) if is_number else None


# the changes of a revision --------------------------------------------------------------------------------------------


def part_changes(changes: Iterable[Change], plan: Plan) -> list[PartChange]:
    """Sum the changes of objects up by the part of the definition that they belong to."""
    # A volume that left the file is kept in the cluster.
    found = Parts(plan).group(change for change in changes if not change.kept)
    return [
        PartChange(type=part.type, name=short(part.name), operation=str(_operation(own)), images=tuple(_images(own)))
        for part, own in found.items()
    ]


def limit_changes(changes: Collection[PartChange]) -> tuple[tuple[PartChange, ...], int]:
    """Return as many changes as a revision keeps, and the number of the others."""
    sizes = accumulate(len(json.dumps(asdict(change))) for change in changes)
    fitting = sum(size <= _MAX_CHANGES_BYTES for size in sizes)
    kept = tuple(changes)[: min(fitting, _MAX_CHANGES)]
    return kept, len(changes) - len(kept)


def _operation(changes: Collection[Change]) -> Operation:
    """Return the operation on a part: that on all its objects, else an update; a replacement counts more."""
    operations = {change.operation for change in changes}
    if Operation.REPLACE in operations:
        return Operation.REPLACE
    return operations.pop() if len(operations) == 1 and not all(map(_is_beside, changes)) else Operation.UPDATE


def _is_beside(change: Change) -> bool:
    """Whether the service of an object is there without it, as without the Secret of its environment."""
    return change.key is not None and change.key.kind in _BESIDE


def _images(changes: Iterable[Change]) -> Iterator[ImageChange]:
    for change in changes:
        for difference in change.differences:
            if difference.path.endswith(_IMAGES) and ".containers[" in difference.path:
                yield ImageChange(short(str(difference.old or "")), short(str(difference.new or "")))


# which revision -------------------------------------------------------------------------------------------------------


def leaves_failure(revisions: Iterable[Revision], chosen: Collection[str] = ()) -> bool:
    """Return whether a deployment failed, and some of its services are neither chosen nor in a later good one.

    The revisions come newest first. One that is not kept any more may have failed.
    """
    good = set(chosen)
    expected: int | None = None
    for found in revisions:
        if expected is not None and found.number != expected:
            return True
        expected = found.number - 1
        if found.result.is_good:
            if found.has_values or not found.services:
                return False
            good.update(found.services)
        elif not found.services or not good.issuperset(found.services):
            return True
    return bool(expected)


def find_revision(revisions: Collection[Revision], number: int) -> Revision:
    """Return the revision of a number, or raise an error with the numbers that there are."""
    for found in revisions:
        if found.number == number:
            return found
    numbers = [str(found.number) for found in revisions]
    known = f"there are: {join_and_count(numbers, _MAX_LISTED)}" if numbers else "there is none yet: platform deploy"
    raise ComposeplatError(f"there is no revision {number} of this environment", known)


def choose_target(revisions: Collection[Revision], number: int | None) -> Revision:
    """Return the revision that a rollback goes to: the one of a number, else the last good one before the newest.

    Without a number, one of :func:`left_out` is only chosen if there is no other.
    """
    good = [found for found in revisions if found.can_roll_back]
    if number is None:
        newest = max((found.number for found in revisions), default=0)
        before = [found for found in good if found.number < newest]
        if not before:
            raise ComposeplatError(
                "there is no earlier revision to roll back to", "platform history lists the revisions of an environment"
            )
        known = [found for found in before if not _was_left(found, revisions)]
        return max(known or before, key=lambda found: found.number)
    target = find_revision(revisions, number)
    if not target.can_roll_back:
        earlier = [found for found in revisions if found.number < number]
        raise ComposeplatError(f"revision {number} {_reason(target, earlier)}", _others(good))
    return target


def left_out(revisions: Collection[Revision], target: Revision) -> list[Revision]:
    """Return the newer good revisions that a rollback without a number did not choose."""
    newer = [found for found in revisions if found.number > target.number]
    return [found for found in newer if found.can_roll_back and _was_left(found, newer)]


def _was_left(revision: Revision, revisions: Iterable[Revision]) -> bool:
    """Whether nobody waited for a revision, and a rollback was next: it may never have become ready."""
    later = (found for found in revisions if found.number > revision.number)
    after = min(later, key=lambda found: found.number, default=None)
    return revision.result is Result.APPLIED and after is not None and after.command == "rollback"


def _reason(revision: Revision, earlier: Iterable[Revision]) -> str:
    """Say why a revision is not one to roll back to."""
    if revision.command == "destroy":
        return "destroyed the environment: there is nothing to roll back to"
    match revision.result:
        case Result.FAILED:
            return "failed, so nothing of it is known to work"
        case Result.INTERRUPTED:
            return "was interrupted, so it is incomplete"
        case Result.UNFINISHED:
            return "has not finished, or was killed"
        case _ if revision.services and leaves_failure(earlier, revision.services):
            return "left services alone that a deployment before it had failed with"
        case _:
            return "is kept without its objects, which were too large or could not be read"


def _others(good: Iterable[Revision]) -> str:
    numbers = [str(found.number) for found in good]
    return f"revisions to roll back to: {join_and_count(numbers, _MAX_LISTED)}" if numbers else "platform deploy"


def surplus(revisions: Collection[Revision]) -> list[Revision]:
    """Return the revisions that are not kept any more: those before the newest ones, but never the last good one."""
    ordered = sorted(revisions, key=lambda found: found.number, reverse=True)
    last_good = next((found for found in ordered if found.can_roll_back), None)
    return [found for found in ordered[MAX_REVISIONS:] if found != last_good]
