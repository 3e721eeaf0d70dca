"""The init container that brings a static shell into a pod, as the image of its service may have none.

Owns the container, the volume with the programs, and the rights of containers of our own.
One container sees the files of one image, so what the shell does needs another container, one after the other: a second
each, as a kubelet looks for ended containers once a second. A ConfigMap can't bring the shell: the architecture of the
node is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from composeplat.compose.model import Service
from composeplat.compose.options import Settings
from composeplat.names import FILL_IMAGE, TOOLS_CONTAINER
from composeplat.plan.arguments import escape
from composeplat.plan.desired import Manifest
from composeplat.plan.security import NOBODY, container_security
from composeplat.plan.storage import TOOLS_VOLUME

TOOLS = "/.platform/tools"
BUSYBOX = f"{TOOLS}/busybox"
TOOLS_MOUNT = {"name": TOOLS_VOLUME, "mountPath": TOOLS, "readOnly": True}

#: Links of flock and setfattr to busybox stay links; without the two commands a fill knows no lock and no mark. Others
#: need not be there: not every shell of busybox finds its own commands.
_INSTALL = f"""\
cd /bin && ./busybox cp -df busybox flock setfattr {TOOLS}
cd {TOOLS} && for name in chmod chown cp find id rm rmdir stat sync; do ./busybox ln -sf busybox $name; done
"""


def plan_tools(service: Service, settings: Settings, resources: Manifest) -> Manifest:
    return {
        "name": TOOLS_CONTAINER,
        "image": tools_image(settings),
        "command": ["/bin/busybox", "sh", "-c", escape(_INSTALL)],
        **({"resources": resources} if resources else {}),
        "volumeMounts": [{"name": TOOLS_VOLUME, "mountPath": TOOLS}],
        "securityContext": _install_security(service, settings),
    }


def tools_image(settings: Settings) -> str:
    return settings.fill_image or FILL_IMAGE


def _install_security(service: Service, settings: Settings) -> Manifest:
    security = root_security(service, settings)
    return {**security, "runAsUser": NOBODY} if settings.pod_security else security


def root_security(service: Service, settings: Settings, capabilities: Iterable[str] = ()) -> Manifest:
    """Plan root with few capabilities; in a restricted namespace the service's own user."""
    if settings.pod_security:
        return container_security(replace(service, cap_add=()), settings)
    added = {"add": list(capabilities)} if capabilities else {}
    return {
        "allowPrivilegeEscalation": False,
        "runAsUser": 0,
        "runAsGroup": 0,
        "capabilities": {**added, "drop": ["ALL"]},
    }
