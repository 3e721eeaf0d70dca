"""Locks between processes, which the kernel releases when their holder ends, however it ends.

Owns locking files and folders. Must not know what a lock protects.
It is apart because a lock that must be released by its holder stays when the holder is killed, and every room that
needs one would have to get that right.

A lock is held by an open file that child processes don't inherit when they run another program.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


class Locked(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def hold_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock while the block runs; ``on_wait`` is called if another process holds it.

    A file that its holder has removed meanwhile is no lock: that is the file which has its name then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open(path) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_at(path, descriptor):
            yield
            return
    with hold_lock(path, on_wait):
        yield


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def try_lock(path: Path, note: str = "") -> Iterator[None]:
    """Hold a lock while the block runs, or raise :class:`Locked`; the file then has the holder's note."""
    with _open(path) as descriptor:
        _lock_at_once(descriptor)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, note.encode())
        yield


@contextlib.contextmanager
def try_lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while the block runs, or raise :class:`Locked` if anyone uses it."""
    with _open(folder, os.O_RDONLY) as descriptor:
        _lock_at_once(descriptor)
        yield


def use_folder(folder: Path) -> None:
    """Share the lock of a folder with others who use it, until this process ends."""
    fcntl.flock(os.open(folder, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH)


def _lock_at_once(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Locked from error


@contextlib.contextmanager
def _open(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
