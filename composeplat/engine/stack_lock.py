"""The locks of a stack: that on this machine, held for one operation, and Pulumi's own that a process of ours left.

Owns the note in the file of the first, and the message about it.
It is apart from the workspace since commands that work on a state alone hold the same lock, without a cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from composeplat.engine.backend import writing
from composeplat.engine.own_processes import OwnProcesses, lock_holders
from composeplat.engine.pulumi_errors import Busy
from composeplat.system.locks import Locked, try_lock
from composeplat.system.machine import user_name


@contextlib.contextmanager
def hold_stack_lock(folder: Path, environment_name: str, namespace: str, what: str) -> Iterator[None]:
    """Hold the lock of the stack with this folder; the kernel releases it when this process ends."""
    path = folder / "lock"
    note = json.dumps({"what": what, "pid": os.getpid(), "since": time.strftime("%H:%M:%S")})
    with contextlib.ExitStack() as held:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                held.enter_context(try_lock(path, note))
            except Locked as error:
                raise _busy(path, environment_name, namespace) from error
        yield


def _busy(path: Path, environment_name: str, namespace: str) -> Busy:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        who = f"process {held['pid']} has been running '{held['what']}' since {held['since']}"
    except (OSError, ValueError, KeyError):
        who = "another process holds the lock"
    return Busy(
        f"environment '{environment_name}' in namespace '{namespace}' is busy: {who}",
        "wait until it has finished, then run this again",
    )


def was_left_by_us(output: str, folder: Path, *, state_is_private: bool) -> bool:
    """Return whether all holders of the lock that Pulumi met are ended processes of ours.

    Pulumi names a holder by user, host name and process id, all of which another machine may have too.
    """
    holders = lock_holders(output)
    host, users = socket.gethostname(), _own_names()
    if not holders or any(holder.host != host or holder.user not in users for holder in holders):
        return False
    return OwnProcesses(folder).have_left(holders, state_is_private=state_is_private)


def _own_names() -> set[str]:
    """The names that Pulumi may have for this user: that of the system, whatever the variables say, else theirs."""
    names = {user_name()}
    with contextlib.suppress(KeyError):
        names.add(pwd.getpwuid(os.getuid()).pw_name)
    return names
