"""The part of the model that full mode alone reads for pods and their containers.

Owns the dataclasses of these keys; their defaults are what a service without the key has, so that planning needs no
mode.
Must not know YAML or Kubernetes, as :mod:`composeplat.compose.model`, which has them as fields of a service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from composeplat.system.records import record

UNCONFINED, DEFAULT_PROFILE = "unconfined", "default"
#: The sysctls that a cluster allows unless it is configured otherwise.
SAFE_SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ]
)


@record(kw_only=True)
class SecurityOptions:
    """The options of ``security_opt``; empty where none is given."""

    no_new_privileges: bool = False
    seccomp: str = ""
    """``UNCONFINED`` or ``DEFAULT_PROFILE``."""
    apparmor: str = ""
    """``UNCONFINED``, ``DEFAULT_PROFILE``, or the name of a profile of the nodes."""
    label: Mapping[str, str] = field(default_factory=dict)
    """The SELinux label: user, role, type, level."""


@record(kw_only=True)
class Platform:
    """The nodes that can run an image; empty is any."""

    os: str = ""
    architecture: str = ""
    written: str = ""
    """As builders read it, with its variant."""


@record(kw_only=True)
class FolderMode:
    """The mode and owner of a volume in memory; None is the cluster's choice."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None


@record(kw_only=True)
class NameOptions:
    """How a container resolves names, and its own."""

    servers: tuple[str, ...] = ()
    """The name servers, instead of the cluster's."""
    searches: tuple[str, ...] = ()
    resolver_options: tuple[tuple[str, str | None], ...] = ()
    hosts: tuple[tuple[str, str], ...] = ()
    """Names with their addresses."""
    hostname: str = ""
    domain: str = ""


#: The limits of a process: the option of a shell's ulimit, and its unit.
LIMITS = {
    "core": ("c", 512),
    "cpu": ("t", 1),
    "data": ("d", 1024),
    "fsize": ("f", 512),
    "memlock": ("l", 1024),
    "nofile": ("n", 1),
    "nproc": ("u", 1),
    "stack": ("s", 1024),
}
UNLIMITED = -1


@record(kw_only=True)
class ProcessLimit:
    name: str
    soft: int
    hard: int


@record(kw_only=True)
class Hook:
    """A command at the start or end of a container; empty is the service's."""

    command: tuple[str, ...] = ()
    working_dir: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    """The variables of the hook, each with that of the container that has its value."""


@record(kw_only=True)
class InitHook(Hook):
    """A container that must complete before the service's starts."""

    image: str = ""
    uid: int | None = None
    gid: int | None = None
    privileged: bool = False
    once: bool = False
    """It runs once for all replicas."""
    in_job: bool = False
    """A job of its own runs it."""


@record(kw_only=True)
class SharedPod:
    """The pod that several services share; by default a service has its own."""

    joined: Mapping[str, str] = field(default_factory=dict)
    """The services that the service joins, by the key that says so."""
    owner: str = ""
    """The service whose pod it is; empty for a pod that is not shared."""
    members: tuple[str, ...] = ()
    """The services in the pod, its owner first."""
    keeps_data: bool = False
    groups: frozenset[int] = frozenset()
    """The groups of the configs and secrets of all members."""
    volumes: frozenset[str] = frozenset()
    """The named volumes of all members."""
    has_ports: bool = False
    """Whether any service in it has a port."""
    shares_processes: bool = False
    """Whether its containers see the processes of each other, or of the node."""


@record(kw_only=True)
class LabelFiles:
    paths: tuple[str, ...] = ()
    """Absolute."""
    names: frozenset[str] = frozenset()
    """The names in ``labels``; with those of the files, once they are read."""


@record(kw_only=True)
class ContainerOptions:
    privileged: bool = False
    read_only: bool = False
    """The root file system can't be written to; volumes can."""
    stdin_open: bool = False
    tty: bool = False
    groups: tuple[int, ...] = ()
    """The groups of the program besides its own."""
    group_names: Mapping[int, str] = field(default_factory=dict)
    """The position in ``group_add`` -> the name of a group, of which the image has the number."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    security: SecurityOptions = field(default_factory=SecurityOptions)
    host_users: bool | None = None
    """Whether root is root of the node too; None is the cluster's choice."""
    runtime: str = ""
    platform: Platform = field(default_factory=Platform)
    names: NameOptions = field(default_factory=NameOptions)
    storage_limit: int | None = None
    """The limit of the root file system in bytes."""
    pull: str = ""
    """When nodes pull the image: ``always``, ``never`` or ``missing``; empty is the cluster's choice."""
    pull_period_s: int | None = None
    """How old an image may be before a deploy looks for a newer one; None keeps it."""
    pre_start: tuple[InitHook, ...] = ()
    post_start: tuple[Hook, ...] = ()
    pre_stop: tuple[Hook, ...] = ()
    hook_environment: Mapping[str, str | None] = field(default_factory=dict)
    """The variables of hooks, under names of their own."""
    stop_signal: str = ""
    """Without the prefix ``SIG``; empty is the image's."""
    limits: tuple[ProcessLimit, ...] = ()
    host_namespaces: frozenset[str] = frozenset()
    """``pid`` and ``ipc`` of the node."""
    hook_of: str = ""
    """The service whose hook it runs, as a job; empty for a service of the definition."""
    image_of: str = ""
    """The service whose image it has, which may be a built one."""
    built_by: str = ""
    """Another service, whose build makes its image; empty without one."""
    init: bool = False
    """Another process than the program is the first: it reaps those that lost their parent."""

    @property
    def sees_processes(self) -> bool:
        """Whether the container has the process namespace of its pod, or of the node."""
        return self.init or "pid" in self.host_namespaces
