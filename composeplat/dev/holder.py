"""A program that holds a container open whose real command runs by ``exec``, and interrupts that.

A kubelet sends SIGTERM to the first process alone. As this is the holder, it sends SIGINT to all others, as a Ctrl-C
at a terminal does. It blocks signals and waits for them, since the first process of a container has no default actions.
Owns its machine code, an ELF file of some 200 bytes for each architecture.
Must not know pods. It is apart, and not a shell's ``sleep``, because an image may have no program but its own.
"""

from __future__ import annotations

import struct

_BASE = 0x400000
_HEADERS_SIZE = 64 + 56
_EXECUTABLE, _LOADED, _READ_AND_EXECUTE, _PAGE = 2, 1, 5, 0x10000

_AMD64 = bytes.fromhex(
    # Push -1, and block these signals: rt_sigprocmask(SIG_BLOCK, rsp, 0, 8).
    "6aff 4889e6 b80e000000 31ff 31d2 41ba08000000 0f05"
    # Loop: rt_sigtimedwait(rsp, 0, 0, 8), until it is SIGTERM.
    "b880000000 4889e7 31f6 31d2 0f05 83f80f 75ed"
    # Then kill(-1, SIGINT), and wait again.
    "b83e000000 48c7c7ffffffff be02000000 0f05 ebd8"
)
_ARM64 = struct.pack(
    "<21I",
    # The same three parts.
    *(0x92800009, 0xF81F0FE9, 0xD2800000, 0x910003E1, 0xD2800002, 0xD2800103, 0xD28010E8, 0xD4000001),
    *(0x910003E0, 0xD2800001, 0xD2800002, 0xD2800103, 0xD2801128, 0xD4000001, 0xF1003C1F, 0x54FFFF21),
    *(0x92800000, 0xD2800041, 0xD2801028, 0xD4000001, 0x17FFFFF4),
)
#: Architecture, as images name it -> its number in ELF, and a loop that waits for a signal.
_PROGRAMS = {"amd64": (62, _AMD64), "arm64": (183, _ARM64)}
ARCHITECTURES = tuple(_PROGRAMS)


def make_holder(architecture: str) -> bytes:
    machine, code = _PROGRAMS[architecture]
    size = _HEADERS_SIZE + len(code)
    identity = b"\x7fELF" + bytes((2, 1, 1)).ljust(12, b"\0")
    header = struct.pack("<HHIQQQIHHHHHH", _EXECUTABLE, machine, 1, _BASE + _HEADERS_SIZE, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", _LOADED, _READ_AND_EXECUTE, 0, _BASE, _BASE, size, size, _PAGE)
    return identity + header + segment + code
