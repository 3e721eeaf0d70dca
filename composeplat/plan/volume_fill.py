"""The init containers that fill a service's new volumes with the content of its image, as Docker does.

Owns the script, and the containers that run it: the first brings a static shell into the pod, as the image may have
none; the second is the service's own image, with the volumes beside the paths that they are filled from.
One container sees the files of one image, so these are two, one after the other: a second each, as a kubelet looks for
ended containers once a second. A ConfigMap can't bring the shell: the architecture of the node is not known here.
Must not know whether a volume is new: only the storage does, so the script asks it in each pod, and is done in
milliseconds where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from composeplat.compose.model import ANONYMOUS, NAMED, Mount, Service
from composeplat.compose.options import Settings
from composeplat.names import FILL_CONTAINER, FILL_IMAGE, TOOLS_CONTAINER
from composeplat.plan.desired import BuiltImage, Manifest, escape
from composeplat.plan.security import NOBODY, container_security
from composeplat.plan.storage import TOOLS_VOLUME, plan_mount, volume_name

_TOOLS = "/.platform/tools"
_VOLUMES = "/.platform/volumes"
_BUSYBOX = f"{_TOOLS}/busybox"
#: What root needs to copy files with their owners and modes.
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID")

#: Links of flock and setfattr to busybox stay links; without the two commands a fill knows no lock and no mark.
_INSTALL = f"""\
cd /bin && cp -df busybox flock setfattr {_TOOLS}
cd {_TOOLS} && for name in chmod chown cp find id rm rmdir stat sync; do ln -sf busybox $name; done
"""

#: A folder is filled from until the file is removed, so that a fill that was killed is completed. The attributes, of
#: which one is always there, say that a volume was filled: what a program deleted stays deleted.
_FILL = f"""\
PATH={_TOOLS}; umask 0; user=$1 group=$2; shift 2
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
  if [ -e "$begun" ] || [ -z "$(content "$2")" ]; then
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
    image: BuiltImage | str,
    resources: Manifest,
    read_only_volumes: Collection[str] = (),
) -> list[Manifest]:
    """Plan the init containers of a service; none if none of its volumes can need them."""
    mounts = [mount for mount in _filled_mounts(service) if mount.source not in read_only_volumes]
    if not mounts:
        return []
    tools = {"name": TOOLS_VOLUME, "mountPath": _TOOLS}
    shared = {"resources": resources} if resources else {}
    return [
        {
            "name": TOOLS_CONTAINER,
            "image": settings.fill_image or FILL_IMAGE,
            "command": ["/bin/busybox", "sh", "-c", escape(_INSTALL)],
            **shared,
            "volumeMounts": [tools],
            "securityContext": _security(service, settings, is_install=True),
        },
        {
            "name": FILL_CONTAINER,
            "image": image,
            "command": [_BUSYBOX, "sh", "-c", escape(_FILL), "fill", *_arguments(service, mounts)],
            "workingDir": "/",
            **shared,
            "volumeMounts": [{**tools, "readOnly": True}, *_mounts(mounts)],
            "securityContext": _security(service, settings),
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
    return f"{_VOLUMES}/{index}-{volume_name(mount)}"


def _security(service: Service, settings: Settings, *, is_install: bool = False) -> Manifest:
    """Plan root with few capabilities; in a restricted namespace the service's own user, who copies without owners."""
    if settings.pod_security:
        own = container_security(replace(service, cap_add=()), settings)
        return {**own, "runAsUser": NOBODY} if is_install else own
    added = {} if is_install else {"add": list(_CAPABILITIES)}
    return {
        "allowPrivilegeEscalation": False,
        "runAsUser": 0,
        "runAsGroup": 0,
        "capabilities": {**added, "drop": ["ALL"]},
    }
