"""The facts of the specification's tables.

Owns them as data: which keys there are and how each is handled, the rows of the other tables, limits and defaults.
Must not know the project's own tables: tests compare the two, and compare this with the specification where it is
there.
"""

from __future__ import annotations

from collections.abc import Iterator

Key = tuple[str, str]
"""A section, with ``*`` for what users name, and a key of it."""

SERVICE = "services.*"
USED = "used"
"""What a table of fields says of its keys: they are supported, or an extension."""


def _keys(section: str, keys: str) -> Iterator[Key]:
    return ((section, key) for key in keys.split())


SUPPORTED: frozenset[Key] = frozenset((
    *_keys("", "name services volumes version"),
    *_keys(
        SERVICE,
        "annotations cap_add cap_drop command cpu_count cpus depends_on entrypoint env_file environment expose"
        " healthcheck image labels mem_limit mem_reservation ports restart scale stop_grace_period user volumes"
        " working_dir",
    ),
    *_keys("services.*.build", "args context dockerfile"),
    *_keys("services.*.deploy", "endpoint_mode replicas"),
    *_keys("services.*.deploy.resources", "limits reservations"),
    *_keys("services.*.deploy.restart_policy", "max_attempts"),
    *_keys("services.*.volumes.*", "sub_path"),
    *_keys("volumes.*", "labels"),
))  # fmt: skip

EXTENSIONS: frozenset[Key] = frozenset((
    *_keys("", "endpoints"),
    *_keys(SERVICE, "public resources scale x-node-selector"),
    *_keys("volumes.*", "class size"),
))  # fmt: skip

#: Keys that a table of fields describes, or whose fields one does.
FIELDS: frozenset[Key] = frozenset((
    *_keys(
        SERVICE,
        "build cap_add cap_drop command depends_on deploy entrypoint env_file environment healthcheck image labels"
        " ports public resources restart scale stop_grace_period volumes working_dir x-node-selector",
    ),
    *_keys("services.*.build", "args context dockerfile target"),
    *_keys("services.*.deploy", "endpoint_mode replicas resources restart_policy"),
    *_keys("services.*.deploy.resources", "limits reservations"),
    *_keys("services.*.deploy.resources.limits", "cpus memory"),
    *_keys("services.*.deploy.resources.reservations", "cpus memory"),
    *_keys("services.*.deploy.restart_policy", "condition max_attempts"),
    *_keys("services.*.depends_on.*", "condition"),
    *_keys(
        "services.*.healthcheck",
        "http interval retries start_period test timeout x-okteto-liveness x-okteto-readiness",
    ),
    *_keys("services.*.healthcheck.http", "path port"),
    *_keys("services.*.resources", "limits requests"),
    *_keys("services.*.resources.limits", "cpu memory"),
    *_keys("services.*.resources.requests", "cpu memory"),
    *_keys("volumes.*", "driver_opts labels"),
    *_keys("volumes.*.driver_opts", "class size"),
    *_keys("endpoints", "labels rules"),
    *_keys("endpoints.*", "path port service"),
))  # fmt: skip

#: Blocks of the file that are read for their warnings alone: each of their fields is warned of as well.
DEEP: frozenset[Key] = frozenset(_keys("", "configs networks secrets"))

WARNED: frozenset[Key] = frozenset((
    *DEEP,
    *_keys(
        SERVICE,
        "blkio_config cgroup_parent configs container_name cpu_percent cpu_period cpu_quota cpu_rt_period"
        " cpu_rt_runtime cpu_shares cpuset credential_spec device_cgroup_rules devices dns dns_opt dns_search"
        " domainname driver_opts extends external_links extra_hosts group_add hostname init ipc isolation links"
        " logging mac_address mem_swappiness memswap_limit network_mode networks oom_kill_disable oom_score_adj pid"
        " pids_limit platform privileged profiles pull_policy read_only runtime secrets security_opt shm_size"
        " stdin_open stop_signal storage_opts sysctls tmpfs tty ulimits userns_mode volumes_from",
    ),
    *_keys("volumes.*", "driver driver_opts external"),
))  # fmt: skip

IGNORED: frozenset[Key] = frozenset((
    *_keys("", "profiles"),
    *_keys(
        SERVICE,
        "attach cgroup develop gpus interface_name label_file link_local_ips post_start pre_stop provider uts",
    ),
))  # fmt: skip

_HANDLING = {"supported": SUPPORTED, "extension": EXTENSIONS, USED: FIELDS, "warned": WARNED, "ignored": IGNORED}

KEYS: dict[Key, frozenset[str]] = {
    key: frozenset(word for word, keys in _HANDLING.items() if key in keys)
    for key in frozenset().union(*_HANDLING.values())
}
"""Every key, with all that is reported about it."""

#: The message twice and differently, and who decides.
CONTRADICTIONS: dict[Key, str] = {
    ("volumes.*", "driver_opts"): "its size and class are fields: the rulings read these and warn of the others",
    (SERVICE, "scale"): "Compose's own key, and an extension as the alias of deploy.replicas: both are used",
}

#: Rows of the tables that are about no key: each has its file of cases in tests/keys/values.
OTHER_ROWS: dict[str, tuple[str, ...]] = {
    "Top-level keys": ("x-* extension keys",),
    "What the service does": (
        "service restart policy other than the always-family",
        "service labels",
        "volume labels",
        "stop_grace_period",
        "deploy.endpoint_mode: vip",
        "deploy.endpoint_mode: dnsrr",
        "endpoints",
        "public: true (see compatibility table)",
        "x-node-selector",
        "scale",
    ),
    "Dependency conditions": ("service_started", "service_healthy", "service_completed_successfully"),
    "Update-policy label values": ("rolling", "recreate", "on-delete"),
    "Restart policy values": ("always", "unless-stopped", "any", "none", "never", "no", "on-failure"),
    "Service volume forms": ("<volume_name>:<path>", "<path>", "<host_path>:<path>"),
    "Endpoints key": ("List", "Named map", "Extended"),
    "Limits": (
        "Ports that are never made public through ports",
        "Default volume size: 1Gi",
        "Default scale: 1",
        "Default build context .",
        "Default Dockerfile path Dockerfile",
        "Default endpoint_mode vip",
        "Default healthcheck probe kinds: readiness on, liveness off",
        "A stop_grace_period without unit is seconds",
    ),
}

NEVER_PUBLIC = frozenset((
    1234, 1433, 1434, 1521, 1830, 2345, 3306, 4444, 5005, 5432, 5678, 5858, 5984, 6379, 7000, 7001, 7210, 7473, 7574,
    8086, 8087, 8088, 8529, 8983, 9042, 9200, 9229, 9300, 27017, 27018, 27019, 28015, 28017, 29015,
))  # fmt: skip
"""Ports that ``ports`` never makes public."""

ALWAYS = frozenset(("always", "unless-stopped", "any"))
"""Restart policies that keep a service running; any other makes it a Job."""
NEVER = frozenset(("none", "never", "no"))
ON_FAILURE = "on-failure"

UPDATE_LABEL = "dev.platform.com/update"
UPDATE_KINDS: dict[str, frozenset[str]] = {
    "rolling": frozenset(("Deployment", "StatefulSet")),
    "recreate": frozenset(("Deployment",)),
    "on-delete": frozenset(("StatefulSet",)),
}
"""Which workloads may have which update policy."""

CONDITIONS = ("service_started", "service_healthy", "service_completed_successfully")
ENDPOINT_MODES = ("vip", "dnsrr")
TEST_FORMS = ("NONE", "CMD", "CMD-SHELL")
"""What a health check's test may begin with where it is a list."""

VOLUME_SIZE = "1Gi"
PRECEDENCE = ("the shell", ".env", "platform variables")
"""Where a variable is taken from, the first that has it."""
