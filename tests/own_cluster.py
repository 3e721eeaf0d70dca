"""Files of tests with a local cluster of their own: the ports of each, and what such a cluster needs.

Files run side by side, so no two of them may have the same ports. ``FIRST_PORT`` parts two runs on a machine.
"""

from __future__ import annotations

import os
import random
import socket
import sys

import pytest

NEEDS_ROOT = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0,
    reason="the local cluster needs Linux and root: run the tests as root",
)
_FIRST = int(os.environ.get("FIRST_PORT", "26500"))
_OFFSETS = {"upgrade": 40, "builds": 50, "mirror": 60, "egress": 70, "shared_machine": 80, "etcd_space": 90}


def first_port(file: str) -> int:
    """The first of ten ports that are for one file of tests."""
    return _FIRST + _OFFSETS[file]


def free_row() -> int:
    """The first of four ports that are free, and that the kernel gives to no connection of another test."""
    while True:
        first = random.randrange(12_000, 19_990)  # noqa: S311 -- no secret
        try:
            for port in range(first, first + 4):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return first


def ports_from(first: int) -> dict[str, int]:
    """The ports of a cluster: the first four of a row."""
    return {name: first + index for index, name in enumerate(("api", "registry", "https", "http"))}
