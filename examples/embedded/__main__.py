"""A Compose file among resources that are written by hand.

What the services need stands before them, and what Compose has no word for after them.
"""

from pathlib import Path

import pulumi
from pulumi_kubernetes.batch.v1 import CronJob
from pulumi_kubernetes.core.v1 import LimitRange, Namespace
from pulumi_kubernetes.networking.v1 import NetworkPolicy

from composeplat import ComposeStack

namespace = pulumi.get_stack()

# The volume stays when the stack is destroyed, so its namespace must stay too.
space = Namespace("namespace", metadata={"name": namespace}, opts=pulumi.ResourceOptions(retain_on_delete=True))

# The memory of containers without a limit; it applies to pods that are created later.
limits = LimitRange(
    "limits",
    metadata={"name": "limits", "namespace": space.metadata.name},
    spec={"limits": [{"type": "Container", "default": {"memory": "64Mi"}, "default_request": {"memory": "8Mi"}}]},
)

notes = ComposeStack(
    "notes",
    file=Path(__file__).parent / "compose.yaml",
    namespace=namespace,
    endpoint_domain=pulumi.Config().require("domain"),
    opts=pulumi.ResourceOptions(depends_on=[space, limits]),
)
web, store = notes.services["web"], notes.services["store"]

# Only web may call store.
NetworkPolicy(
    "store-for-web",
    metadata={"name": "store-for-web", "namespace": namespace},
    spec={
        "pod_selector": store.workload.spec.selector,
        "policy_types": ["Ingress"],
        "ingress": [{"from_": [{"pod_selector": web.workload.spec.selector}], "ports": [{"port": 6543}]}],
    },
)

# Copies the notes every night.
copy = {
    "name": "copy",
    "image": store.image,
    "command": ["cp", "/data/notes", "/data/notes.old"],
    "volume_mounts": [{"name": "data", "mount_path": "/data"}],
}
volume = {"name": "data", "persistent_volume_claim": {"claim_name": notes.volumes["data"].claim.metadata.name}}
pod = {"restart_policy": "Never", "containers": [copy], "volumes": [volume]}
CronJob(
    "nightly",
    metadata={"name": pulumi.Output.concat(store.workload.metadata.name, "-nightly"), "namespace": namespace},
    spec={"schedule": "0 3 * * *", "job_template": {"spec": {"template": {"spec": pod}}}},
)

pulumi.export("urls", notes.urls)
