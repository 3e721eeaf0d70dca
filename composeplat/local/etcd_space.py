"""How full etcd is, and the steps that make space in it.

Owns the decision, and the file in which the cleaner notes the figures for ``platform cluster status``. Must not ask
etcd.
At its limit etcd raises an alarm and refuses every write, until space was made *and* the alarm is cleared. The API
server compacts by a write, so it can't help then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any

from composeplat.system.atomic import write_private
from composeplat.system.records import record

#: Where etcd's file is larger than this part of its limit, space is made before the alarm.
_HIGH_PERCENT = 80


class Step(StrEnum):
    """A request to etcd."""

    COMPACT = "compact"
    """Forgets earlier versions of objects."""
    DEFRAGMENT = "defragment"
    """Gives back free pages of the file, which count towards the limit."""
    DISARM = "disarm"
    """Clears the alarm."""


@record
class EtcdSpace:
    """Bytes of etcd's file, of that in use, and the limit; whether the alarm is raised."""

    size: int
    in_use: int
    limit: int
    is_full: bool

    @property
    def is_nearly_full(self) -> bool:
        return self._is_high(self.size)

    def _is_high(self, size: int) -> bool:
        return size * 100 > self.limit * _HIGH_PERCENT

    def steps(self, *, is_useless: bool = False) -> tuple[Step, ...]:
        """Return the steps to take now. Where making space was of no use, only the alarm is cleared.

        Objects can be deleted then until the next write raises it.
        """
        disarm = (Step.DISARM,) if self.is_full else ()
        if is_useless or not (self.is_full or self.is_nearly_full):
            return disarm
        compact = (Step.COMPACT,) if self.is_full or self._is_high(self.in_use) else ()
        return (*compact, Step.DEFRAGMENT, *disarm)


def parse_space(status: Mapping[str, Any], alarms: Mapping[str, Any]) -> EtcdSpace:
    """Parse etcd's answers: 64-bit numbers are strings, and what is zero or empty is left out."""
    return EtcdSpace(
        size=int(status.get("dbSize", 0)),
        in_use=int(status.get("dbSizeInUse", 0)),
        limit=int(status.get("dbSizeQuota", 0)),
        is_full=bool(full_members(alarms)),
    )


def full_members(alarms: Mapping[str, Any]) -> list[str]:
    """Return the members of etcd that are full."""
    return [alarm["memberID"] for alarm in alarms.get("alarms") or [] if alarm.get("alarm") == "NOSPACE"]


def note_space(path: Path, space: EtcdSpace) -> None:
    write_private(path, json.dumps(asdict(space)))


def read_space(path: Path) -> EtcdSpace | None:
    """Return the figures that were noted last; none while there are none."""
    try:
        return EtcdSpace(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
