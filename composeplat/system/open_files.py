"""How many files and connections this process may have open.

Owns raising the limit, which is 256 in a shell of macOS and 1024 on Linux, and recognizing that it is reached.
Must not know what is opened.
"""

from __future__ import annotations

import contextlib
import errno
import resource

#: macOS refuses more, also where it calls the limit unlimited.
_WANTED = 10_240


def raise_open_file_limit() -> None:
    """Raise the limit as far as it is useful and the system lets this user."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if most == resource.RLIM_INFINITY else min(_WANTED, most)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def open_file_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def is_out_of_files(error: BaseException | None) -> bool:
    """Whether this process, or the system, has as many files open as it may."""
    return isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}
