"""An emulated machine: QEMU without hardware virtualization, a shell on a serial line, and a kill like a power cut.

Must not know what is on its disks.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

MEMORY_MIB = 6144
CPUS = 2
_BOOT_TIMEOUT_S = 300.0
_STOP_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.2
_PROMPT_INTERVAL_S = 3.0
#: The shell prints it in two parts, so that the echo of the command is not taken for its end.
_MARK = "--end-of-command"


class MachineError(Exception):
    """The machine ended, or did not answer in time."""


@dataclass(slots=True)
class Machine:
    """One machine; it can be started again after it ended."""

    folder: Path
    """For its sockets and ``console.log``, the output of its kernel."""
    kernel: Path
    initrd: Path
    disks: Sequence[Path]
    """The first has the root file system."""
    _process: subprocess.Popen[bytes] | None = None
    _line: socket.socket | None = None
    _received: bytearray = field(default_factory=bytearray)

    def start(self) -> None:
        for name in ("shell", "monitor"):
            (self.folder / name).unlink(missing_ok=True)
        with (self.folder / "qemu.log").open("ab") as log:
            self._process = subprocess.Popen(self._args(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._line = self._connect("shell")
        self._received.clear()
        deadline = time.monotonic() + _BOOT_TIMEOUT_S
        while not self._ask_for_prompt():
            if time.monotonic() > deadline:
                raise MachineError(f"no shell after {_BOOT_TIMEOUT_S:.0f} s: {self.console[-2000:]}")

    def run(self, command: str, *, timeout_s: float = 600.0) -> tuple[int, str]:
        """Run a command of the shell, and return its exit code and its output."""
        if self._line is None:
            raise MachineError("the machine is not running")
        self._received.clear()
        self._line.sendall(f"{{ {command}\n}} </dev/null; printf '\\n%s%s %d\\n' {_MARK[:5]} {_MARK[5:]} $?\n".encode())
        found = self._read_until(re.compile(rb"\n" + _MARK.encode() + rb" (\d+)"), timeout_s)
        if found is None:
            raise MachineError(f"no end after {timeout_s:.0f} s: {command}: {self._text()[-2000:]}")
        return int(found[1]), self._received[: found.start()].decode(errors="replace").strip()

    def stop(self) -> None:
        """Shut it down in order."""
        if self._process is not None and self._line is not None:
            self._line.sendall(b"poweroff\n")
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
        self._forget()

    def kill(self) -> None:
        """Cut its power: nothing that is not on its disks survives."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._forget()

    def monitor(self, *commands: str) -> None:
        """Send commands of QEMU's machine protocol, such as ``stop`` and ``cont``."""
        with self._connect("monitor") as line, line.makefile("rw") as stream:
            stream.readline()
            for command in ("qmp_capabilities", *commands):
                stream.write(json.dumps({"execute": command}) + "\n")
                stream.flush()
                while "return" not in json.loads(stream.readline()):
                    pass

    @property
    def console(self) -> str:
        return (self.folder / "console.log").read_text(encoding="utf-8", errors="replace")

    def _args(self) -> list[str]:
        drives = [
            arg
            for disk in self.disks
            for arg in ("-drive", f"file={disk},if=virtio,format={disk.suffix[1:]},cache=writeback")
        ]
        return [
            "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-machine", "q35",
            "-smp", str(CPUS), "-m", str(MEMORY_MIB), "-display", "none", "-nodefaults", "-no-reboot",
            "-kernel", str(self.kernel), "-initrd", str(self.initrd),
            "-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet",
            *drives,
            "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net", "-device", "virtio-rng-pci",
            "-serial", f"file:{self.folder / 'console.log'}",
            "-serial", f"unix:{self.folder / 'shell'},server=on,wait=off",
            "-qmp", f"unix:{self.folder / 'monitor'},server=on,wait=off",
        ]  # fmt: skip

    def _connect(self, name: str) -> socket.socket:
        deadline = time.monotonic() + _BOOT_TIMEOUT_S
        while True:
            line = socket.socket(socket.AF_UNIX)
            try:
                line.connect(str(self.folder / name))
            except OSError as error:
                line.close()
                self._check_runs()
                if time.monotonic() > deadline:
                    raise MachineError(f"QEMU did not open {name}") from error
                time.sleep(_POLL_INTERVAL_S)
            else:
                return line

    def _ask_for_prompt(self) -> bool:
        assert self._line is not None
        quiet = "stty -echo; PS1=; PS2=; bind 'set enable-bracketed-paste off'"
        self._line.sendall(f"{quiet}; printf '\\n%s%s 0\\n' {_MARK[:5]} {_MARK[5:]}\n".encode())
        if self._read_until(re.compile(rb"\n" + _MARK.encode() + rb" 0"), _PROMPT_INTERVAL_S) is None:
            return False
        self._read_until(re.compile(rb"(?!)"), 1.0)
        return True

    def _read_until(self, pattern: re.Pattern[bytes], timeout_s: float) -> re.Match[bytes] | None:
        assert self._line is not None
        deadline = time.monotonic() + timeout_s
        while (found := pattern.search(self._received)) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._line.settimeout(min(left, 5.0))
            try:
                block = self._line.recv(65536)
            except TimeoutError:
                self._check_runs()
                continue
            if not block:
                raise MachineError(f"the machine ended: {self.console[-2000:]}")
            self._received += block.replace(b"\r", b"")
        return found

    def _text(self) -> str:
        return self._received.decode(errors="replace")

    def _check_runs(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            log = (self.folder / "qemu.log").read_text(encoding="utf-8", errors="replace")
            raise MachineError(f"QEMU ended with {self._process.returncode}: {log[-1000:]}")

    def _forget(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = self._process = None
