"""The keys that full mode honors, the second column of the table, and why other keys have no meaning in a cluster.

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


def _because(why: str, keys: str) -> dict[str, str]:
    return dict.fromkeys(keys.split(), why)


_OF_WINDOWS = "it is for containers of Windows"
_ADDRESSES = "the cluster gives pods their interfaces and addresses"
_PIDS = "the kubelet limits the processes of pods, by podPidsLimit"

#: Why keys have no meaning on Kubernetes, by section.
NO_MEANING: Mapping[str, Mapping[str, str]] = {
    SERVICE: {
        **_because("each service has a log of its own, which platform logs shows", "attach"),
        **_because("Kubernetes does not limit disk I/O", "blkio_config"),
        **_because("the kubelet of a node decides on control groups", "cgroup cgroup_parent"),
        **_because(f"{_OF_WINDOWS}; write cpus", "cpu_percent"),
        **_because("Kubernetes has no real-time scheduling of CPUs", "cpu_rt_period cpu_rt_runtime"),
        **_because("the CPU manager of a node chooses the CPUs", "cpuset"),
        **_because(_OF_WINDOWS, "credential_spec isolation"),
        **_because("pods get devices from device plugins, by x-devices", "device_cgroup_rules"),
        **_because(_ADDRESSES, "driver_opts interface_name link_local_ips mac_address"),
        **_because("a service of another project is reached as SERVICE.NAMESPACE", "external_links"),
        **_because("the cluster collects the output of containers, and platform logs shows it", "logging"),
        **_because("the kubelet of a node decides on swap", "mem_swappiness memswap_limit"),
        **_because("the kernel kills a container above its memory limit; raise mem_limit", "oom_kill_disable"),
        **_because("the kubelet sets it, by requests and limits of memory", "oom_score_adj"),
        **_because(_PIDS, "pids_limit"),
        **_because("the key of Compose is storage_opt", "storage_opts"),
        **_because("set it in the command: sh -c 'umask 027; exec PROGRAM'", "umask"),
        **_because("a pod has no Docker daemon", "use_api_socket"),
        **_because("a pod has a host name of its own", "uts"),
        **_because("name the volumes of the other service under 'volumes'", "volumes_from"),
    },
    "services.*.deploy.resources.limits": _because(_PIDS, "pids"),
    "services.*.deploy.restart_policy": _because(
        "the kubelet waits longer after each crash, up to five minutes", "delay window"
    ),
    "services.*.healthcheck": _because("a probe has one period", "start_interval"),
    "services.*.volumes.*.bind": _because(
        "files in the cluster are copies", "create_host_path propagation recursive selinux"
    ),
    "services.*.networks.*": _because(
        _ADDRESSES,
        "driver_opts gw_priority interface_name ipv4_address ipv6_address link_local_ips mac_address priority",
    ),
}
