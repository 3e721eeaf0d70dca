"""Images made of this machine's busybox: the base image of examples and tests, and the image that fills volumes.

They are in the cluster's registry. The node looks there before it asks any other, so ``image: busybox:1.37`` is found
without the internet.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.local.images import File, Image, push
from composeplat.local.packages import search_path

#: As pods name it by default.
FILL_NAME = "library/busybox:1.37-musl"
BUSYBOX_NAMES = ("library/busybox:1.37", "library/busybox:latest")
_PT_INTERP = 3


def push_busybox(registry: tuple[str, int], environment: Mapping[str, str]) -> str:
    """Push busybox with a link for each of its commands, and give its digest."""
    path, program = _busybox(environment)
    listed = subprocess.run([path, "--list"], capture_output=True, text=True, check=False).stdout.split()
    files = {
        "bin/busybox": File(program),
        "etc/passwd": File(b"root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n", 0o644),
        "etc/group": File(b"root:x:0:\nnobody:x:65534:\n", 0o644),
        "tmp/": File(),
        **{f"bin/{name}": File(link="busybox") for name in listed if name != "busybox"},
    }
    image = Image(files=files, command=("sh",))
    return [push(image, name, registry) for name in BUSYBOX_NAMES][-1]


def fill_image(frontdoor: File, environment: Mapping[str, str]) -> Image:
    """Make the image that fills volumes: busybox, and the two of its commands that Debian's lacks."""
    _, program = _busybox(environment)
    files = {"bin/busybox": File(program), "bin/flock": frontdoor, "bin/setfattr": File(link="flock")}
    return Image(files=files, command=("/bin/busybox", "sh"))


def _busybox(environment: Mapping[str, str]) -> tuple[str, bytes]:
    path = shutil.which("busybox", path=search_path(environment))
    program = Path(path).read_bytes() if path else b""
    if path is None or not is_static(program):
        raise MissingPiece("a static busybox is needed for the base image", "apt-get install busybox-static")
    return path, program


def is_static(program: bytes) -> bool:
    """Return whether an ELF program asks for no interpreter, and so needs no libraries."""
    if program[:4] != b"\x7fELF":
        return False
    offset = int.from_bytes(program[32:40], "little")
    size, count = int.from_bytes(program[54:56], "little"), int.from_bytes(program[56:58], "little")
    kinds = (int.from_bytes(program[at : at + 4], "little") for at in range(offset, offset + size * count, size))
    return _PT_INTERP not in kinds
