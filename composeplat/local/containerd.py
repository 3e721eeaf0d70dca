"""The configuration of containerd, and the version of it that a cluster's pulled images were last used with.

Must not start it: the supervisor does.
"""

from __future__ import annotations

from composeplat import progress
from composeplat.local.layout import PAUSE_IMAGE, Layout
from composeplat.system.atomic import write_private


def containerd_config(layout: Layout, *, cni: str, shim: str) -> str:
    """The text of ``containerd.toml``; the shim is what containerd starts beside each pod."""
    pause = f"localhost:{layout.host_ports.registry}/{PAUSE_IMAGE}"
    return _CONFIG.format(folder=layout.folder, run=layout.run, pause=pause, cni=cni, shim=shim)


def note_other_version(layout: Layout, version: str) -> None:
    """Say that a cluster which another containerd ran gets this one, which keeps its data."""
    mark, data = layout.folder / "containerd-version", layout.folder / "containerd"
    known = mark.read_text(encoding="utf-8").strip() if mark.exists() else ""
    if data.exists() and known != version:
        before = known or "an earlier version"
        progress.note(f"containerd {version} replaces {before}: volumes and pulled images of the cluster are kept")
    write_private(mark, f"{version}\n")


# Without restrict_oom_score_adj no pod starts where the capability to raise priorities is missing.
# NRI would listen on a socket of the machine, which another containerd may have.
# containerd records an image as whole before its files are on the disk, and never checks them again: without
# image_pull_with_sync_fs an image pulled just before a power cut stays empty. Only containerd's own pull has it.
_CONFIG = """\
version = 3
root = "{folder}/containerd"
state = "{run}/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{run}/containerd.sock"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  use_local_image_pull = true
  image_pull_with_sync_fs = true
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{folder}/etc/hosts"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{cni}"]
    conf_dir = "{folder}/etc/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    runtime_path = "{shim}"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
"""
