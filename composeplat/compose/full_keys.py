"""The keys that full mode honors: the table's second column.

Owns which keys these are; their rows, with the handling by default, are in :mod:`composeplat.compose.keys`.
"""

from __future__ import annotations

from collections.abc import Mapping

SERVICE = "services.*"
#: The blocks whose objects can be someone else's.
EXTERNAL_BLOCKS = ("networks", "volumes", "configs", "secrets")

#: What has objects that ``x-kubernetes`` can patch.
PATCHED = (SERVICE, "volumes.*", "endpoints")

#: The keys that full mode honors, by section; of a service, a line for each subject.
FULL_KEYS: Mapping[str, str] = {
    "": "jobs models networks configs secrets",
    SERVICE: "profiles extends label_file"
    " privileged read_only stdin_open tty group_add sysctls security_opt userns_mode runtime platform"
    " tmpfs shm_size dns dns_search dns_opt extra_hosts hostname domainname"
    " cpu_quota cpu_period cpu_shares storage_opt ulimits gpus devices x-devices"
    " pull_policy pull_refresh_after pre_start post_start pre_stop stop_signal init"
    " container_name links network_mode networks pid ipc"
    " configs secrets develop models provider"
    " x-autoscale x-expose x-kubernetes x-schedule",
    "services.*.x-expose": "type ports allow_never_public",
    "services.*.x-autoscale": "min max cpu memory",
    "jobs.*": "triggers",
    "jobs.*.triggers": "manual schedule",
    "jobs.*.triggers.schedule.*": "cron timezone concurrency missed_fires",
    "services.*.x-schedule": "cron timezone concurrency",
    "services.*.develop": "watch",
    "services.*.develop.watch.*": "action path target ignore include initial_sync exec",
    "services.*.develop.watch.*.exec": "command user privileged working_dir environment",
    "services.*.depends_on.*": "restart",
    "services.*.provider": "type options",
    "services.*.models.*": "endpoint_var model_var",
    "models.*": "model x-endpoint",
    "services.*.deploy": "mode placement update_config",
    "services.*.deploy.placement": "constraints preferences max_replicas_per_node",
    "services.*.deploy.placement.preferences.*": "spread",
    "services.*.deploy.update_config": "parallelism order delay monitor failure_action",
    "services.*.deploy.resources.reservations": "devices generic_resources",
    "services.*.deploy.resources.reservations.devices.*": "count device_ids driver",
    "services.*.deploy.resources.reservations.generic_resources.*": "discrete_resource_spec",
    "services.*.deploy.resources.reservations.generic_resources.*.discrete_resource_spec": "kind value",
    "services.*.gpus.*": "count device_ids driver",
    "services.*.networks.*": "aliases",
    "services.*.devices.*": "source",
    "services.*.volumes.*": "image",
    "services.*.volumes.*.image": "subpath",
    "services.*.volumes.*.volume": "labels",
    "services.*.volumes.*.tmpfs": "mode",
    "services.*.configs.*": "source target uid gid mode",
    "services.*.secrets.*": "source target uid gid mode",
    "volumes.*": "external name x-kubernetes",
    "endpoints": "x-kubernetes",
    **dict.fromkeys((f"{owner}.x-kubernetes" for owner in PATCHED), "patch"),
    "networks.*": "external internal name",
    **dict.fromkeys((f"{block}.*.external" for block in EXTERNAL_BLOCKS), "name"),
    "configs.*": "file content environment external name labels x-key",
    "secrets.*": "file environment external name labels x-key",
}
