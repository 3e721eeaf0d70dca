"""Root file systems of Debian suites, made once and kept in the cache of the tools: other Pythons, bases of images."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from composeplat.system.atomic import replace_folder
from composeplat.toolchain.setup import Toolchain

needs_debian = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mmdebstrap") is None,
    reason="a root file system of Debian needs Linux, root and mmdebstrap: make extras",
)
_OPTIONS = (
    "--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io",
    # A builder without root can't make devices.
    "--skip=output/dev",
    "--aptopt=APT::Install-Recommends false",
    # A mirror may be days behind, and nothing of this is a machine that must be up to date.
    "--aptopt=Acquire::Check-Valid-Until false",
    "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
)  # fmt: skip


def root_archive(suite: str, packages: Sequence[str]) -> Path:
    """Give the tar archive of a suite with some packages; the first call on a machine takes a minute."""
    content = "\n".join((suite, *packages, *_OPTIONS))
    folder = Toolchain(os.environ).cache.folder / "debian" / hashlib.sha256(content.encode()).hexdigest()[:16]
    if not folder.exists():
        with replace_folder(folder) as staged:
            mirror = f"deb http://deb.debian.org/debian {suite} main"
            include = f"--include={','.join(packages)}"
            subprocess.run(["mmdebstrap", *_OPTIONS, include, suite, staged / "root.tar", mirror], check=True)
    return folder / "root.tar"


def inside(archive: Path, root: Path, shared: Sequence[Path]) -> list[str]:
    """Extract a root file system; gives what runs a command in it, in the current folder and with some folders here."""
    root.mkdir()
    subprocess.run(["tar", "-C", root, "-xf", archive], check=True)
    lines = ["set -e", f"root={shlex.quote(str(root))}"]
    for path in (Path("/proc"), Path("/dev"), Path("/etc/ssl"), Path("/etc/resolv.conf"), *shared):
        place = root / path.relative_to("/")
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.touch()
        lines.append(f'mount --rbind {shlex.quote(str(path))} "$root"{shlex.quote(str(path))}')
    lines.append('exec chroot "$root" /bin/sh -c \'cd "$0" && exec "$@"\' "$PWD" "$@"')
    return ["unshare", "--mount", "sh", "-c", "\n".join(lines), "sh"]
