"""Makes this Python look like one on a Mac: what only Linux has is gone, before any other module is imported.

Python imports a module of this name at its start, from a folder of PYTHONPATH. It takes away the functions of ``os``
that are documented for Linux alone, and every file below ``/proc`` and ``/sys``; the system is called ``darwin``.
What it can't take away, because the kernel below stays Linux: the behavior of calls that both systems have.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import types
from typing import Any

_LINUX_ONLY = (
    "O_PATH",
    "O_TMPFILE",
    "O_DIRECT",
    "O_LARGEFILE",
    "O_NOATIME",
    "copy_file_range",
    "eventfd",
    "eventfd_read",
    "eventfd_write",
    "fdatasync",
    "getrandom",
    "getresgid",
    "getresuid",
    "getxattr",
    "listxattr",
    "memfd_create",
    "pidfd_open",
    "posix_fadvise",
    "posix_fallocate",
    "pipe2",
    "removexattr",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_setparam",
    "sched_setscheduler",
    "setns",
    "setresgid",
    "setresuid",
    "setxattr",
    "splice",
    "timerfd_create",
    "unshare",
    ").split",
    ")",
)
_HIDDEN = ("/proc", "/sys", "/etc/machine-id", "/var/lib/dbus")
_EVENTS = ("open", "os.listdir", "os.scandir", "os.chdir")


def _is_hidden(path: object) -> bool:
    text = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    return text.startswith(_HIDDEN)


def _hide(event: str, args: tuple[Any, ...]) -> None:
    if event in _EVENTS and args and _is_hidden(args[0]):
        raise FileNotFoundError(2, "No such file or directory", os.fsdecode(args[0]))


def _hiding(function: Any) -> Any:
    """Hide paths from a function that raises no audit event."""

    def found(path: Any, *args: Any, **options: Any) -> Any:
        _hide("open", (path,))
        return function(path, *args, **options)

    return found


def _add_programs() -> None:
    """Answer for the two programs of a Mac that Linux has not, or has with other names for what they know."""
    printed = {
        "sysctl": "6A1D4E0C-0000-4000-8000-000000000001",
        "ioreg": '"IOPlatformUUID" = "6A1D4E0C-0000-4000-8000-000000000002"',
    }
    original = subprocess.run

    def run(command: Any, *args: Any, **options: Any) -> Any:
        program = command[0] if isinstance(command, (list, tuple)) else ""
        return original(["echo", printed[program]] if program in printed else command, *args, **options)

    vars(subprocess)["run"] = run


def _as_a_mac() -> None:
    for name in _LINUX_ONLY:
        if hasattr(os, name):
            delattr(os, name)
    for module, names in ((select, ("epoll",)), (signal, ("sigtimedwait", "sigwaitinfo", "pidfd_send_signal"))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in ("stat", "lstat", "readlink"):
        setattr(os, name, _hiding(getattr(os, name)))
    # urllib asks it for the proxies of a Mac.
    proxies = types.ModuleType("_scproxy")
    vars(proxies).update(_get_proxies=dict, _get_proxy_settings=dict)
    sys.modules["_scproxy"] = proxies
    # Its configuration is in a module that has the system in its name.
    parts = ("_sysconfigdata", sys.abiflags, "linux", vars(sys.implementation)["_multiarch"])
    os.environ["_PYTHON_SYSCONFIGDATA_NAME"] = "_".join(parts)
    sys.platform = "darwin"
    sys.addaudithook(_hide)
    _add_programs()


_as_a_mac()
