"""The modules of the kernel that the local cluster needs: loading them, and what is missing without one.

Owns their names. It is apart because a kernel without ``udev`` loads some of them only if asked, and some kernels have
them built in.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from composeplat.diagnostics import MissingPiece

#: Packets between pods pass the rules of Services; layers of images; the device that leads out.
MODULES = ("br_netfilter", "overlay", "tun")
#: This file exists if the packet filter sees the packets of bridges.
_BRIDGE_FILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


def load_modules(search_path: str, bridge_filter: Path = _BRIDGE_FILTER) -> None:
    """Load what is not built in; only what no cluster works without is required afterwards."""
    modprobe = shutil.which("modprobe", path=search_path)
    if modprobe is not None:
        subprocess.run(
            [modprobe, "--quiet", "--all", *MODULES], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    if not bridge_filter.exists():
        raise MissingPiece(
            "the kernel's module br_netfilter is not loaded, without which pods can't connect to services",
            "modprobe br_netfilter, in a container on its host",
        )
