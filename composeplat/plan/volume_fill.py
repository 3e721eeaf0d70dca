"""The init container that fills a service's new volumes with the content of its image, as Docker does.

Owns the script, and the container that runs it: the service's own image, with the volumes beside the paths that they
are filled from, and the shell of :mod:`composeplat.plan.tools`.
Must not know whether a volume is new: only the storage does, so the script asks it in each pod, and is done in
milliseconds where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from composeplat.compose.model import ANONYMOUS, NAMED, Mount, Service
from composeplat.compose.options import Settings
from composeplat.names import FILL_CONTAINER
from composeplat.plan.arguments import escape
from composeplat.plan.desired import Manifest
from composeplat.plan.storage import plan_mount, volume_name
from composeplat.plan.tools import BUSYBOX, TOOLS, TOOLS_MOUNT, root_security

VOLUMES = "/.platform/volumes"
#: What root needs to copy files with their owners and modes.
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID")

#: A folder is filled from until the file is removed, so that a fill that was killed is completed. The file is there
#: before any content, so it is looked for after content: the other way around, both can begin between the two looks.
#: The attributes, of which one is always there, say that a volume was filled: what a program deleted stays deleted.
_FILL = f"""\
PATH={TOOLS}; umask 0; user=$1 group=$2; shift 2
content() {{ find "$1" -mindepth 1 -maxdepth 1 ! -name lost+found ! -name .platform-filling -print -quit; }}
mark() {{ setfattr -n user.platform.filled -v 1 "$1" && setfattr -n user.platform.done -v 1 "$1"; }}
is_marked() {{ {{ setfattr -x user.platform.filled "$1" || setfattr -x user.platform.done "$1"; }} && mark "$1"; }}
copy() {{
  if [ "$(id -u)" = 0 ]; then cp -af "$1/." "$2"; else cp -dfR "$1/." "$2" || echo "left out of $2: see above"; fi
}}
fill() {{
  if [ ! -e "$begun" ] && is_marked "$2" 2>/dev/null; then return; fi
  exec 9<>"$begun" && flock 9
  if [ -s "$begun" ] || {{ [ -e "$begun" ] && [ -z "$(content "$2")" ]; }} && ! is_marked "$2" 2>/dev/null; then
    echo begun >"$begun"
    copy "$1" "$2" || exit 1
    mark "$2" 2>/dev/null
    sync -f "$2" 2>/dev/null
  fi
  rm -f "$begun"
  exec 9>&-
}}
shape() {{
  [ "$(id -u):$(stat -c %u:%g "$2")" = 0:0:0 ] || return
  if [ -d "$1" ]; then chown "$(stat -c %u:%g "$1")" "$2"; chmod "$(stat -c %a "$1")" "$2"; fi
  if [ -z "$user" ] && [ "$(stat -c %u:%g:%a "$2")" = 0:0:755 ]; then chmod 1777 "$2"; fi
}}
while [ $# -gt 0 ]; do
  begun=$2/.platform-filling
  if [ -z "$(content "$2")" ] || [ -e "$begun" ]; then
    rmdir "$2/lost+found" 2>/dev/null
    if [ -d "$1" ] && [ -n "$(content "$1")" ]; then fill "$1" "$2"
    elif [ -e "$begun" ]; then flock 9 9<"$begun"
    else shape "$1" "$2"; fi
  fi
  if [ -n "$user" ] && [ "$(id -u):$(stat -c %u "$2")" = 0:0 ]; then chown "$user${{group:+:$group}}" "$2"; fi
  shift 2
done
"""


def plan_fill(
    service: Service,
    settings: Settings,
    container: Manifest,
    read_only_volumes: Collection[str],
) -> list[Manifest]:
    """Plan the init container that fills volumes, by that of the service; none if none of them can need it."""
    mounts = [mount for mount in _filled_mounts(service) if mount.source not in read_only_volumes]
    if not mounts:
        return []
    image: Manifest = {key: container[key] for key in ("image", "imagePullPolicy") if key in container}
    shared = {"resources": container["resources"]} if "resources" in container else {}
    return [
        {
            "name": FILL_CONTAINER,
            **image,
            "command": [BUSYBOX, "sh", "-c", escape(_FILL), "fill", *_arguments(service, mounts)],
            "workingDir": "/",
            **shared,
            "volumeMounts": [TOOLS_MOUNT, *_mounts(mounts)],
            "securityContext": root_security(service, settings, _CAPABILITIES),
        },
    ]


def _filled_mounts(service: Service) -> list[Mount]:
    """Find the mounts of volumes that may be empty or not writable: with `nocopy`, root needs nothing of them."""
    is_root = service.user is not None and service.user.uid == 0
    mounts = [mount for mount in service.mounts if mount.kind in (NAMED, ANONYMOUS)]
    return [mount for mount in mounts if not (mount.no_copy and is_root)]


def _arguments(service: Service, mounts: list[Mount]) -> Iterator[str]:
    """Yield the program's user, if the definition has its number, and for each volume the path in the image."""
    user = service.user
    known = user is not None and user.uid is not None
    yield str(user.uid) if user is not None and known else ""
    yield str(user.gid) if user is not None and known and user.gid is not None else ""
    for index, mount in enumerate(mounts):
        yield "" if mount.no_copy else escape(mount.target)
        yield _path(index, mount)


def _mounts(mounts: list[Mount]) -> Iterator[Manifest]:
    for index, mount in enumerate(mounts):
        yield plan_mount(volume_name(mount), _path(index, mount), mount.sub_path)


def _path(index: int, mount: Mount) -> str:
    """Return the path of a volume in the container that fills it; messages have it, so it has the volume's name."""
    return f"{VOLUMES}/{index}-{volume_name(mount)}"
