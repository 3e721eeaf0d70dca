"""The system packages that the local cluster needs: which are missing, and installing them with apt-get.

Owns their names. A program that is on PATH is never replaced: a machine with Docker has a runc of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from composeplat import progress
from composeplat.diagnostics import MissingPiece

#: Program -> the package that has it, by Debian's names.
PROGRAMS = {
    "runc": "runc",
    "iptables": "iptables",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "ip": "iproute2",
    "mount": "mount",
    "openssl": "openssl",
    "busybox": "busybox-static",
}
#: What the cluster runs without, though not as well: steps of builds have no network without it.
SLIRP4NETNS = "slirp4netns"
#: A compiler is only needed to build Pulumi and its providers.
OPTIONAL_PROGRAMS = {SLIRP4NETNS: "slirp4netns", "gcc": "gcc"}
#: Without recommended packages, gcc comes without the headers of C's library.
_C_HEADER, _C_HEADERS_PACKAGE = "/usr/include/stdlib.h", "libc6-dev"
CNI_PACKAGE = "containernetworking-plugins"
_CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")
_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def search_path(environment: Mapping[str, str]) -> str:
    """PATH, and the folders of system programs that a user's PATH may lack."""
    # An empty entry would be the current folder, whose programs would run as root.
    return ":".join(filter(None, (environment.get("PATH"), _SYSTEM_FOLDERS)))


def cni_folder() -> str:
    return next((folder for folder in _CNI_FOLDERS if os.path.exists(os.path.join(folder, "bridge"))), "")


def missing_packages(environment: Mapping[str, str]) -> set[str]:
    missing = _packages_of_missing(PROGRAMS, environment)
    return missing if cni_folder() else {*missing, CNI_PACKAGE}


def missing_optional_packages(environment: Mapping[str, str]) -> set[str]:
    missing = _packages_of_missing(OPTIONAL_PROGRAMS, environment)
    return missing if os.path.exists(_C_HEADER) else {*missing, _C_HEADERS_PACKAGE}


def _packages_of_missing(programs: Mapping[str, str], environment: Mapping[str, str]) -> set[str]:
    path = search_path(environment)
    return {package for name, package in programs.items() if not shutil.which(name, path=path)}


def need_packages(environment: Mapping[str, str]) -> None:
    missing = " ".join(sorted(missing_packages(environment)))
    if missing:
        raise MissingPiece(
            f"the local cluster needs packages that are not installed: {missing}",
            f"platform setup --cluster --install, or: apt-get install {missing}",
        )


def install_packages(environment: Mapping[str, str]) -> None:
    """Install what the cluster lacks."""
    missing = sorted(missing_packages(environment) | missing_optional_packages(environment))
    if missing:
        install(missing, environment)


def install(missing: Sequence[str], environment: Mapping[str, str]) -> None:
    """Install packages with apt-get, as root."""
    apt = shutil.which("apt-get", path=search_path(environment))
    if apt is None or os.geteuid() != 0:
        why = "apt-get is not on PATH" if apt is None else "that needs root"
        raise MissingPiece(f"these packages can't be installed, as {why}: {' '.join(missing)}", "install them yourself")
    settings = {**environment, "DEBIAN_FRONTEND": "noninteractive"}
    with progress.step(f"installing {' '.join(missing)}", usual_seconds=30):
        _run([apt, "update", "-qq"], settings)
        _run([apt, "install", "-y", "-qq", "--no-install-recommends", *missing], settings)


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = " | ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise MissingPiece(f"{command[0].rpartition('/')[2]} {command[1]} failed: {last}")
