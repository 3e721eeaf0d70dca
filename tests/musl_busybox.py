"""The busybox of the image `busybox:1.37-musl`, built from Debian's source of the same version, once for a machine.

The image has the usual configuration of busybox, but for the rows below. What it leaves out, such as the
options of `sync`, is what a script of ours must not need.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

_SHA256 = "3311dff32e746499f4df0d5df04d7eb396382d7e108bb9250e7b519b837043a4"
_SOURCES = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main"
_CHANGED = {
    "AR": "y",
    "FEATURE_AR_CREATE": "y",
    "FEATURE_AR_LONG_FILENAMES": "y",
    "FEATURE_HAVE_RPC": "n",
    "FEATURE_INETD_RPC": "n",
    "FEATURE_SYNC_FANCY": "n",
    "FEATURE_UTMP": "n",
    "FEATURE_WTMP": "n",
    "LAST_SUPPORTED_WCHAR": "0",
    "STATIC": "y",
}
#: Of the kernel; musl-gcc looks for musl's headers alone.
_HEADERS = {"linux": "linux", "asm-generic": "asm-generic", "mtd": "mtd", "asm": "x86_64-linux-gnu/asm"}


def can_be_built() -> bool:
    return all(map(shutil.which, ("musl-gcc", "apt-get", "make"))) and os.uname().machine == "x86_64"


def musl_busybox(cache: Path) -> Path:
    """Give the program; the first call on a machine builds it, in about a minute."""
    rows = "\n".join((_SHA256, *(f"{name}={value}" for name, value in _CHANGED.items())))
    program = cache / "busybox" / hashlib.sha256(rows.encode()).hexdigest()[:16]
    program.parent.mkdir(parents=True, exist_ok=True)
    with (program.parent / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=program.parent) as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _build(_download(Path(folder))).replace(program)
    return program


def _download(folder: Path) -> Path:
    """Download the source through lists of its own: the machine's stay as they are."""
    (folder / "sources.list").write_text(f"{_SOURCES}\n")
    places = {"Etc::SourceList": "sources.list", "State::Lists": "lists", "Cache": "cache"}
    options = [f"-oDir::{name}={folder / path}" for name, path in places.items()]
    apt = ["apt-get", "-q", "-oDir::Etc::SourceParts=-", "-oAPT::Sandbox::User=root", *options]
    for path in ("lists/partial", "cache/archives/partial"):
        (folder / path).mkdir(parents=True)
    _run([*apt, "update"], folder)
    _run([*apt, "source", "--download-only", "busybox"], folder)
    archive = folder / "busybox_1.37.0.orig.tar.bz2"
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == _SHA256
    _run(["tar", "xjf", archive.name], folder)
    return next(path for path in folder.glob("busybox-*") if path.is_dir())


def _build(source: Path) -> Path:
    _run(["make", "defconfig"], source)
    config = source / ".config"
    config.write_text(_configured(config.read_text(), _CHANGED.items()))
    headers = source.parent / "headers"
    headers.mkdir()
    for name, path in _HEADERS.items():
        (headers / name).symlink_to(f"/usr/include/{path}")
    _run(["sh", "-c", "yes '' | make oldconfig"], source)
    _run(["make", "-j2", f"CC=musl-gcc -idirafter {headers}", "busybox"], source)
    return source / "busybox"


def _configured(text: str, rows: Iterable[tuple[str, str]]) -> str:
    for name, value in rows:
        row = f"# CONFIG_{name} is not set" if value == "n" else f"CONFIG_{name}={value}"
        text = re.sub(rf"^(# )?CONFIG_{name}(=.*| is not set)$", row, text, flags=re.MULTILINE)
    return text


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
