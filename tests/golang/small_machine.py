"""An emulated machine with file systems that this kernel may not have: FAT, exFAT, NTFS, and ext4 that folds case.

Owns downloading Debian's kernel and the tools of the file systems, which are not installed, and a boot that runs a
program on each. Nothing of it needs root, loop devices or the kernel of this machine.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_PACKAGES = ("busybox-static", "dosfstools", "exfatprogs", "ntfs-3g", "libntfs-3g89", "e2fsprogs")
_MODULES = ("loop", "vfat", "exfat", "fuse", "nls_cp437", "nls_ascii", "nls_utf8")
#: The driver would show each name in lower case if it were to fold case, which Windows does not.
_NTFS = "windows_names,streams_interface=none"
#: How each file system is made in a file, and mounted; a case-folding folder of ext4 is asked for.
FILE_SYSTEMS = {
    "vfat": "mkfs.fat -F 32 $image && mount -t vfat -o utf8 $image $folder",
    "exfat": "mkfs.exfat $image && mount -t exfat $image $folder",
    "ntfs": f"mkntfs -F -Q $image && ntfs-3g -o {_NTFS} $image $folder",
    "casefold": "/tools/mke2fs -q -t ext4 -O casefold $image && mount -t ext4 $image /disk"
    " && mkdir /disk/folder && /tools/chattr +F /disk/folder && mount -o bind /disk/folder $folder",
}
_INIT = """\
#!/busybox sh
/busybox mkdir -p /bin /proc /sys /dev /tmp /disk
/busybox --install -s /bin
export PATH=/tools:/bin LD_LIBRARY_PATH=/lib HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
for module in $(cat /modules/order); do insmod /modules/$module; done
ip link set lo up
run() {
  name=$1 image=/tmp/$1.image folder=/tmp/$1
  mkdir -p $folder; dd if=/dev/zero of=$image bs=1M count=0 seek=64 2>/dev/null
  if ! eval "$2" >/tmp/$name.log 2>&1; then echo "STATUS $name can't be mounted" >>/tmp/$name.log; return; fi
  OTHER_FILE_SYSTEM=$folder /program $ARGUMENTS >/tmp/$name.log 2>&1
  echo "STATUS $name $?" >>/tmp/$name.log
}
"""


class SmallMachine:
    """The kernel and the tools, downloaded once; a program without libraries runs on each file system."""

    def __init__(self, cache: Path) -> None:
        self.folder = cache / "debian" / "file-systems"
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (self.folder / "root").exists():
                with tempfile.TemporaryDirectory(dir=self.folder) as aside:
                    _download(Path(aside))
                    (Path(aside) / "root").rename(self.folder / "root")

    @staticmethod
    def missing() -> str:
        """The programs that it needs and that are not here."""
        needed = ("qemu-system-x86_64", "apt-get", "dpkg-deb", "ldd")
        return " ".join(name for name in needed if not shutil.which(name))

    def run(self, program: Path, *args: str, seconds: float) -> tuple[dict[str, str], str]:
        """The status of the program on each file system, and all that was printed."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "root"
            self._make_root(root, program, args)
            image = Path(folder) / "initrd"
            image.write_bytes(gzip.compress(_archive(root), 1))
            (kernel,) = (self.folder / "root" / "boot").glob("vmlinuz-*")
            command = [
                "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024",
                "-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
                "-kernel", str(kernel), "-initrd", str(image), "-append", "console=ttyS0 quiet panic=-1",
            ]  # fmt: skip
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=seconds,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        printed = (done.stdout + done.stderr).replace("\r", "")
        return dict(re.findall(r"^STATUS (\S+) (.*)$", printed, re.MULTILINE)), printed

    def _make_root(self, root: Path, program: Path, args: Iterable[str]) -> None:
        debian = self.folder / "root"
        for name in ("modules", "tools", "lib", "lib64"):
            (root / name).mkdir(parents=True)
        shutil.copy2(program, root / "program")
        shutil.copy2(debian / "bin" / "busybox", root / "busybox")
        order = list(_ordered(_modules(debian)))
        for path in order:
            shutil.copy2(path, root / "modules")
        (root / "modules" / "order").write_text("\n".join(path.name for path in order))
        for name in ("mkfs.fat", "mkfs.exfat", "mkntfs", "ntfs-3g", "mke2fs", "chattr"):
            _copy_tool(debian, root, name)
        runs = "".join(f"run {name} '{command}'\n" for name, command in FILE_SYSTEMS.items())
        script = f"{_INIT}ARGUMENTS='{' '.join(args)}'\n{runs}cat /tmp/*.log\npoweroff -f\n"
        (root / "init").write_text(script)
        (root / "init").chmod(0o755)


def _download(folder: Path) -> None:
    kernel = subprocess.check_output(["apt-cache", "depends", "linux-image-cloud-amd64"], text=True)
    image = re.findall(r"Depends: (linux-image-\S+)", kernel)[0]
    subprocess.run(
        ["apt-get", "-q", "-oAPT::Sandbox::User=root", "download", image, *_PACKAGES],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "root")], check=True)


def _modules(debian: Path) -> Mapping[str, Path]:
    return {path.stem.replace("-", "_"): path for path in (debian / "lib" / "modules").rglob("*.ko")}


def _ordered(modules: Mapping[str, Path]) -> Iterator[Path]:
    """The modules that are needed, each after those that it depends on."""
    loaded: set[str] = set()

    def load(name: str) -> Iterator[Path]:
        if name in loaded or name not in modules:
            return
        loaded.add(name)
        found = re.search(rb"\0depends=([^\0]*)\0", modules[name].read_bytes())
        for needed in found[1].decode().split(",") if found else ():
            yield from load(needed.replace("-", "_"))
        yield modules[name]

    for name in _MODULES:
        yield from load(name)


def _copy_tool(debian: Path, root: Path, name: str) -> None:
    """A program of a package, with its libraries: those of the packages first, then this machine's."""
    (program,) = (path for path in debian.rglob(name) if path.is_file() and path.parent.name in {"bin", "sbin"})
    shutil.copy2(program, root / "tools" / name)
    libraries = os.pathsep.join(str(path.parent) for path in debian.rglob("lib*.so*"))
    listed = subprocess.check_output(["ldd", str(program)], env={**os.environ, "LD_LIBRARY_PATH": libraries}, text=True)
    for path in re.findall(r"(/\S+) \(0x", listed):
        shutil.copy2(path, root / ("lib64" if "ld-linux" in path else "lib"))


def _archive(root: Path) -> bytes:
    """A folder in the form that the kernel unpacks: cpio's "newc"."""
    parts = [
        _entry(str(path.relative_to(root)), path.stat().st_mode, b"" if path.is_dir() else path.read_bytes())
        for path in sorted(root.rglob("*"))
    ]
    return b"".join((*parts, _entry("TRAILER!!!", 0, b"")))


def _entry(name: str, mode: int, content: bytes) -> bytes:
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
    return b"".join(part + bytes(-len(part) % 4) for part in (head, content))
