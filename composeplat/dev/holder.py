"""A program that does nothing: it holds a container open whose real command runs by ``exec``.

Owns its machine code, an ELF file of some 150 bytes for each architecture.
Must not know pods. It is apart, and not a shell's ``sleep``, because an image may have no program but its own.
"""

from __future__ import annotations

import struct

_BASE = 0x400000
_HEADERS_SIZE = 64 + 56
_EXECUTABLE, _LOADED, _READ_AND_EXECUTE, _PAGE = 2, 1, 5, 0x10000

#: loop: mov eax, 34 (pause); syscall; jmp loop
_AMD64 = bytes.fromhex("b822000000 0f05 ebf7")
#: loop: x0 to x3 = 0; x8 = 73 (ppoll); svc 0; b loop
_ARM64 = struct.pack("<7I", 0xD2800000, 0xD2800001, 0xD2800002, 0xD2800003, 0xD2800928, 0xD4000001, 0x17FFFFFA)
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
