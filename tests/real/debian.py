"""The root file system of the images: Debian packages, installed once and kept in the cache of the tools.

All images share it as their first layer, so a node stores it once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from composeplat.local.packages import install

SUITE = "bookworm"
PACKAGES = (
    "curl", "haproxy", "mariadb-server", "memcached", "mosquitto", "nginx-light", "node-express", "node-pg", "nodejs",
    "php-cli", "php-mysql", "postgresql-15", "procps", "python3", "python3-flask", "python3-paho-mqtt", "python3-pika",
    "python3-psycopg2", "python3-pymysql", "python3-redis", "rabbitmq-server", "redis-server", "wordpress",
)  # fmt: skip
#: What the images of examples/shop need.
SHOP_PACKAGES = (
    "curl", "nginx-light", "postgresql-15", "procps", "python3", "python3-psycopg2", "python3-redis", "redis-server",
)  # fmt: skip
#: Folders of data that packages fill when they are installed; the images' entry points fill them at the first start.
_EMPTIED = ("var/lib/mysql", "var/lib/postgresql", "var/lib/rabbitmq", "var/lib/redis", "var/lib/mosquitto", "var/log")
_LAYER = "layer.tar.gz"
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")


@dataclass(frozen=True, slots=True)
class Layer:
    path: Path
    """The packed tar archive."""
    digest: str
    diff_id: str
    """The digest of the archive before it was packed."""


def root_layer(cache: Path, packages: tuple[str, ...] = PACKAGES) -> Layer:
    """Give the layer with the packages; the first call on a machine installs them, which takes minutes."""
    folder = _folder(cache, packages)
    if not (folder / "digests").exists():
        _make(_command(packages), folder)
    return _read(folder)


def known_layer(cache: Path, packages: tuple[str, ...]) -> Layer | None:
    """Give the layer if this machine has made it."""
    folder = _folder(cache, packages)
    return _read(folder) if (folder / "digests").exists() else None


def _folder(cache: Path, packages: tuple[str, ...]) -> Path:
    content = "\n".join((SUITE, *packages, *_EMPTIED, *_LEFT_OUT))
    return cache / "real" / hashlib.sha256(content.encode()).hexdigest()[:16]


def _read(folder: Path) -> Layer:
    digest, diff_id = (folder / "digests").read_text().split()
    return Layer(folder / _LAYER, digest, diff_id)


def _command(packages: tuple[str, ...]) -> list[str]:
    empty = " ".join(f'"$1"/{folder}/*' for folder in _EMPTIED)
    return [
        "mmdebstrap", "--quiet", "--variant=minbase", "--aptopt=APT::Install-Recommends false",
        "--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT),
        f'--customize-hook=rm -rf {empty} "$1"/etc/postgresql',
        f"--include={','.join(packages)}", SUITE, "-",
    ]  # fmt: skip


def _make(command: list[str], folder: Path) -> None:
    if shutil.which("mmdebstrap") is None:
        install(["mmdebstrap"], os.environ)
    print("installing Debian packages for images of real programs, some minutes", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "partial"
    packed, plain = hashlib.sha256(), hashlib.sha256()
    with (
        partial.open("wb") as target,
        subprocess.Popen(command, stdout=subprocess.PIPE) as packages,
        subprocess.Popen(["gzip", "-1", "-n"], stdin=subprocess.PIPE, stdout=target) as pack,
    ):
        assert packages.stdout is not None
        assert pack.stdin is not None
        with pack.stdin as sink:
            while block := packages.stdout.read(1 << 20):
                plain.update(block)
                sink.write(block)
        if packages.wait() or pack.wait():
            raise subprocess.CalledProcessError(packages.returncode or pack.returncode, command[:1])
    with partial.open("rb") as stream:
        while block := stream.read(1 << 20):
            packed.update(block)
    partial.replace(folder / _LAYER)
    (folder / "digests").write_text(f"sha256:{packed.hexdigest()} sha256:{plain.hexdigest()}\n")
