"""The disks of emulated machines: a bare Debian, and the home of its user with what a reader of the README would have.

A Debian is installed once for each kind of init, and kept in the cache of the tools; a machine writes to a copy of it.
The home has this checkout, its ``.venv``, and the programs, as their cache would have them: an emulated machine would
take hours to make them. ``make env`` runs in the Debian, but on this machine's processor.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from composeplat.toolchain.cache import Cache
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import TOOLS
from tests.real.debian import SHOP_PACKAGES, root_layer

CHECKOUT = Path(__file__).parents[2]
SUITE = "bookworm"
#: What a Debian has that was installed from its image, and what the README asks for.
_PACKAGES = (
    "ca-certificates", "ifupdown", "iproute2", "isc-dhcp-client", "kmod", "linux-image-cloud-amd64", "make", "procps",
    "python3", "python3-venv", "udev",
)  # fmt: skip
INITS = {"systemd": ("dbus", "libpam-systemd", "systemd-sysv"), "sysvinit": ("sysvinit-core",)}
_ROOT_SIZE, _HOME_SIZE = "6G", "12G"
_FILES = {
    "etc/fstab": "/dev/vda / ext4 defaults 0 1\n/dev/vdb /root ext4 defaults 0 2\n",
    "etc/hostname": "bare\n",
    # QEMU is given the initrd; a package that has it made again would take ten minutes.
    "etc/initramfs-tools/update-initramfs.conf": "update_initramfs=no\n",
    "etc/hosts": "127.0.0.1 localhost\n127.0.1.1 bare\n",
    "etc/network/interfaces": "auto lo eth0\niface lo inet loopback\niface eth0 inet dhcp\n",
}
#: A shell of root on the second serial line.
_GETTY = "/sbin/agetty --autologin root 115200 ttyS1 vt102"
_UNIT = "etc/systemd/system/serial-getty@ttyS1.service.d/autologin.conf"
_WANTED = "etc/systemd/system/getty.target.wants/serial-getty@ttyS1.service"
#: It is in the home; Debian's pip looks nowhere else.
_WHEELS = ".wheels"


@dataclass(frozen=True, slots=True)
class Debian:
    """An installed system; no machine writes to it."""

    root: Path
    kernel: Path
    initrd: Path


def find_debian(init: str) -> Debian:
    """Return a Debian; the first call on a machine installs it, in two minutes."""
    recipe = repr((SUITE, _PACKAGES, INITS[init], _FILES, _GETTY))
    folder = _cache().folder / "vm" / f"{init}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if not folder.exists():
        sys.stderr.write(f"installing a Debian with {init}, about 2 min\n")
        with _staged(folder) as staged:
            _install(init, staged)
    return Debian(folder / "root", folder / "vmlinuz", folder / "initrd.img")


def make_root(debian: Debian, path: Path) -> None:
    """Make the disk of a Debian."""
    _make_image(debian.root, path, _ROOT_SIZE)


def make_home(debian: Debian, path: Path) -> None:
    """Make the disk of the home folder."""
    with _scratch(path.with_suffix(".files")) as home:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            if (CHECKOUT / name).exists():
                _copy(CHECKOUT / name, home / "platform" / name)
        _copy_programs(home / ".cache" / "composeplat")
        shutil.copytree(_find_wheels(), home / _WHEELS)
        _make_environment(debian, home)
        shutil.rmtree(home / _WHEELS)
        _make_image(home, path, _HOME_SIZE)


def _make_environment(debian: Debian, home: Path) -> None:
    """Make ``.venv`` with the Python of the Debian, in a mount namespace, so that no mount is left."""
    steps = 'mount --bind "$1" "$2/root" && exec chroot "$2" env -i HOME=/root PATH="$PATH" "${@:3}"'
    settings = ("PIP_NO_INDEX=1", f"PIP_FIND_LINKS=/root/{_WHEELS}")
    make = ("make", "-C", "/root/platform", "env")
    subprocess.run(
        ["unshare", "--mount", "bash", "-c", steps, "-", str(home), str(debian.root), *settings, *make],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip


def _install(init: str, folder: Path) -> None:
    root = folder / "root"
    packages = ",".join((*_PACKAGES, *INITS[init]))
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", SUITE, str(root)], check=True
    )
    for name, text in _FILES.items():
        (root / name).write_text(text)
    (root / "etc/resolv.conf").write_text("")
    subprocess.run(["chroot", str(root), "passwd", "--quiet", "--delete", "root"], check=True)
    if init == "systemd":
        _enable_shell_of_systemd(root)
    else:
        with (root / "etc/inittab").open("a") as table:
            table.write(f"S1:2345:respawn:{_GETTY}\n")
    for name, pattern in (("vmlinuz", "vmlinuz-*"), ("initrd.img", "initrd.img-*")):
        shutil.copy(next((root / "boot").glob(pattern)), folder / name)


def _enable_shell_of_systemd(root: Path) -> None:
    (root / _UNIT).parent.mkdir(parents=True)
    (root / _UNIT).write_text(f"[Service]\nExecStart=\nExecStart=-{_GETTY}\n")
    (root / _WANTED).parent.mkdir(parents=True, exist_ok=True)
    (root / _WANTED).symlink_to("/lib/systemd/system/serial-getty@.service")


def _copy_programs(target: Path) -> None:
    chain = Toolchain(os.environ)
    for found in chain.need_all(TOOLS).values():
        _copy(found.path, Cache(target).program_path(found.tool))
    # The packages that `make demo` would install where Docker Hub can't be reached.
    for path in root_layer(chain.cache.folder, SHOP_PACKAGES).path.parent.iterdir():
        _copy(path, target / path.relative_to(chain.cache.folder))


def _find_wheels() -> Path:
    """Return the folder of the wheels that ``make env`` installs; they are fetched once."""
    pins = CHECKOUT / "requirements" / "dev.txt"
    folder = _cache().folder / "vm" / f"wheels-{hashlib.sha256(pins.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        args = ["download", "--quiet", "--require-hashes", "--only-binary=:all:", "--python-version=3.11"]
        with _staged(folder) as staged:
            subprocess.run([sys.executable, "-m", "pip", *args, "-r", str(pins), "-d", str(staged)], check=True)
    return folder


def _make_image(folder: Path, path: Path, size: str) -> None:
    subprocess.run(["truncate", "-s", size, str(path)], check=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", str(folder), str(path)], check=True)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def _cache() -> Cache:
    return Toolchain(os.environ).cache


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """Fill a folder beside its place, so that a killed run leaves none that is half filled."""
    with _scratch(folder.with_name(f"{folder.name}.partial")) as staged:
        yield staged
        staged.rename(folder)


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
