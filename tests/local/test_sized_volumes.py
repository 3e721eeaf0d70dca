"""The file systems of volumes whose size holds, in a mount namespace of the test: no cluster needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from composeplat.local.sized_volumes import mount_commands
from tests.conftest import ROOT

IN_NAMESPACE = """
import errno, os, subprocess, sys
from pathlib import Path
from composeplat.local import sized_volumes as sized

MIB = 1024 * 1024
folder = Path(sys.argv[1]) / "pvc-1"
data = sized.data_folder(folder)


def write(name, size):
    try:
        (data / name).write_bytes(bytes(size))
        return "fits"
    except OSError as error:
        (data / name).unlink()
        return errno.errorcode[error.errno]


sized.make(folder, 8 * MIB)
sized.make(folder, 8 * MIB)
print(os.listdir(data), write("much", 12 * MIB))
(data / "kept").write_text("kept")

subprocess.run(["umount", folder / "mount"], check=True)
print(data.exists(), sized.mount_all(folder.parent), (data / "kept").read_text())

# A cluster that is stopped while a volume grows: the file is larger, the file system is not.
subprocess.run(["umount", folder / "mount"], check=True)
os.truncate(folder / "disk", 16 * MIB)
print(sized.mount_all(folder.parent), (data / "kept").read_text(), write("much", 12 * MIB))

sized.grow(folder, 32 * MIB)
print(write("more", 14 * MIB), (data / "kept").read_text())
try:
    sized.grow(folder, 2**60)
except OSError as error:
    print(errno.errorcode[error.errno], (folder / "disk").stat().st_size // MIB)

(folder.parent / "pvc-2").mkdir()
(folder.parent / "pvc-2" / "disk").write_bytes(bytes(MIB))
print(*(problem.split(":")[0] for problem in sized.mount_all(folder.parent)), os.path.ismount(folder / "mount"))
sized.remove(folder)
print(folder.exists())
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounting needs root: run the tests as root")
def test_file_systems_of_volumes(tmp_path: Path) -> None:
    """A size holds, survives a restart, and grows, also if that was interrupted; a broken volume stops no other."""
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", IN_NAMESPACE, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "[] ENOSPC",
            "False [] kept",
            "[] kept fits",
            "fits kept",
            "ENOSPC 32",
            "pvc-2 can't be mounted True",
            "False",
        ],
    ), done.stderr


def test_a_start_mounts_them_first(tmp_path: Path) -> None:
    """The command runs before the parts, if there is such a volume."""
    (tmp_path / "pvc-1").mkdir()
    assert mount_commands(tmp_path, "python") == []

    (tmp_path / "pvc-1" / "disk").touch()
    assert mount_commands(tmp_path, "python") == [
        ["python", "-P", "-m", "composeplat.local.sized_volumes", str(tmp_path)]
    ]
