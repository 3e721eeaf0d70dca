"""The init container that sets the modes and owners of volumes in memory, which the kubelet makes as 1777."""

from __future__ import annotations

from collections.abc import Iterator

from composeplat.compose.model import MEMORY, Mount, Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker, mount_path
from composeplat.compose.pod_model import FolderMode
from composeplat.names import MODES_CONTAINER
from composeplat.plan.arguments import escape
from composeplat.plan.desired import Manifest
from composeplat.plan.storage import plan_mount, volume_name
from composeplat.plan.tools import root_security, tools_image
from composeplat.plan.volume_fill import VOLUMES

_SCRIPT = """\
while [ $# -gt 0 ]; do
  [ -z "$2" ] || /bin/busybox chown "$2" "$1" || exit 1
  [ -z "$3" ] || /bin/busybox chmod "$3" "$1" || exit 1
  shift 3
done
"""


def plan_folder_modes(service: Service, settings: Settings, resources: Manifest) -> list[Manifest]:
    """Plan the init container of a service; none if no volume in memory has a mode, or if nobody may be root."""
    mounts = dict(_mounts_with_mode(service))
    if not mounts or settings.pod_security:
        return []
    paths = {path: plan_mount(volume_name(mount), path) for path, mount in mounts.items()}
    args = [arg for path, mount in mounts.items() for arg in (path, *_arguments(mount.folder))]
    return [
        {
            "name": MODES_CONTAINER,
            "image": tools_image(settings),
            "command": ["/bin/busybox", "sh", "-c", escape(_SCRIPT), "modes", *args],
            **({"resources": resources} if resources else {}),
            "volumeMounts": list(paths.values()),
            "securityContext": root_security(service, settings, ("CHOWN", "FOWNER")),
        }
    ]


def check_folder_modes(checker: Checker, service: Service, settings: Settings) -> None:
    for index, mount in enumerate(service.mounts):
        if settings.pod_security and mount.folder != FolderMode():
            message = (
                "has a mode or owner that only root could set, which pod security 'restricted' refuses: it is 1777"
            )
            checker.add("no-effect", mount_path(service.name, index), message)


def _mounts_with_mode(service: Service) -> Iterator[tuple[str, Mount]]:
    for index, mount in enumerate(service.mounts):
        if mount.kind == MEMORY and mount.folder != FolderMode():
            yield f"{VOLUMES}/{index}-{volume_name(mount)}", mount


def _arguments(folder: FolderMode) -> tuple[str, str]:
    """Return the arguments of chown and chmod; empty for what stays."""
    owner = "" if folder.uid is None else str(folder.uid)
    group = "" if folder.gid is None else f":{folder.gid}"
    return owner + group, "" if folder.mode is None else f"{folder.mode:o}"
