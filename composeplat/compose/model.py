"""The typed model of a Compose file, with one form for each thing.

Owns the frozen dataclasses between reading and planning.
Must not know YAML, spans, files or Kubernetes: equality and tests stay simple, and places are in a side table
(:class:`composeplat.compose.origins.Origins`), by path.
Names are as in the definition; :mod:`composeplat.names` makes the names that Kubernetes sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Self

from composeplat.compose.ai_model import AiModel, ModelUse
from composeplat.compose.endpoint_model import Endpoint
from composeplat.compose.extension_model import Extensions, Patch
from composeplat.compose.file_model import FileKind, FileMount, FileObject
from composeplat.compose.network_model import HOST_NETWORK, Network, Networking
from composeplat.compose.pod_model import ContainerOptions, FolderMode, LabelFiles, SharedPod
from composeplat.compose.provider_model import Provider
from composeplat.compose.rollout_model import Mode, Scheduling
from composeplat.compose.values import UserText
from composeplat.compose.watch_model import WatchRule
from composeplat.system.records import record

ALWAYS, NEVER, ON_FAILURE = "always", "never", "on-failure"
DEFAULT_NETWORKS = frozenset(("default",))


class DependencyCondition(StrEnum):
    """The conditions of ``depends_on``, as Compose names them."""

    STARTED = "service_started"
    HEALTHY = "service_healthy"
    COMPLETED = "service_completed_successfully"

    @property
    def adjective(self) -> str:
        return self.name.lower()


@record(kw_only=True)
class BuildSecret:
    """A secret for a build, from a file or a variable; its value is not part of the model."""

    name: str
    """The name in the Dockerfile."""
    source: str = ""
    """The name in the definition."""
    file: str = ""
    """Absolute."""
    variable: str = ""
    written: str = field(default="", compare=False)
    """The variable's name as the file has it, if another variable has that: it may be a secret in the wrong place."""
    value: str | None = field(default=None, repr=False, compare=False)
    """The variable's value; None if it is not set."""


@record(kw_only=True)
class Build:
    context: str = "."
    """An absolute path, or a URL; empty if only host content goes into the image."""
    dockerfile: str = ""
    """Relative to the context; empty is ``Dockerfile``."""
    dockerfile_inline: str = ""
    target: str = ""
    args: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    additional_contexts: Mapping[str, str] = field(default_factory=dict)
    extra_hosts: tuple[str, ...] = ()
    cache_from: tuple[str, ...] = ()
    cache_to: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    secrets: tuple[BuildSecret, ...] = ()
    ssh: tuple[str, ...] = ()
    """``ID`` or ``ID=path,path``; paths are absolute."""
    tags: tuple[str, ...] = ()
    network: str = ""
    no_cache: bool = False
    pull: bool = False


@record(kw_only=True)
class EnvFile:
    path: str
    """Absolute."""
    required: bool = True
    raw: bool = False


@record(kw_only=True)
class HealthCheck:
    """The health check of a container; times are in whole seconds."""

    command: tuple[str, ...] = ()
    http_path: str = ""
    http_port: int = 0
    interval: int = 30
    timeout: int = 30
    retries: int = 3
    start_period: int = 0
    readiness: bool = True
    liveness: bool = False


@record(kw_only=True)
class Port:
    target: int
    published: int | None = None
    protocol: str = "tcp"
    name: str = ""
    app_protocol: str = ""
    loopback: bool = False
    """Bound to a loopback address: never public."""
    exposed: bool = False
    """Only in ``expose``."""


@record
class HostFile:
    """A file below a mounted path; ``path`` is empty if the file itself is mounted."""

    path: str
    mode: int
    content: bytes


@record(kw_only=True)
class HostContent:
    """The content of a host volume; ``files`` is None if it is too large for a Secret."""

    is_folder: bool
    files: tuple[HostFile, ...] | None
    count: int = field(default=0, compare=False)
    """The number of files."""
    size: int = field(default=0, compare=False)
    """The total size of the files in bytes."""
    left_out: frozenset[str] = frozenset()
    """The paths within the folder that another mount of the service hides."""
    has_hidden: bool = field(default=False, compare=False)
    """Whether the folder has entries at these paths."""


#: The largest secret that BuildKit accepts.
MAX_BUILD_SECRET_BYTES = 500 * 1024

#: The limits of a Secret with host content of one service; larger content goes into a derived image.
MAX_HOST_BYTES = 256 * 1024
MAX_HOST_FILES = 64

NAMED, ANONYMOUS, HOST, MEMORY, IMAGE = "named", "anonymous", "host", "memory", "image"


@record(kw_only=True)
class Mount:
    kind: str
    target: str
    source: str = ""
    """The volume's name, the absolute host path, or the image."""
    read_only: bool = False
    sub_path: str = ""
    no_copy: bool = False
    """The volume is not filled with the image's content."""
    size: int | None = None
    folder: FolderMode = field(default_factory=FolderMode)
    content: HostContent | None = None
    holds_refused: bool = False
    """The path is there, but it or something in it can't be read."""
    is_refused_file: bool = False
    """The path is a file that can't be read, or that is outside the project."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of an anonymous volume."""


@record(kw_only=True)
class Resources:
    """CPUs in thousandths, memory in bytes; None if not set."""

    limit_cpu: int | None = None
    limit_memory: int | None = None
    request_cpu: int | None = None
    request_memory: int | None = None


@record(kw_only=True)
class Dependency:
    service: str
    condition: DependencyCondition = DependencyCondition.STARTED
    required: bool = True
    restart: bool = False


@record(kw_only=True)
class User:
    """The user and group of a container; None is the image's. The image's files have the numbers of names."""

    uid: int | None = None
    gid: int | None = None
    user_name: str = ""
    group_name: str = ""
    is_missing: bool = False
    """Whether the files of the image were read, and lack a name."""

    @classmethod
    def of(cls, read: UserText) -> Self:
        return cls(uid=read.uid, gid=read.gid, user_name=read.user_name, group_name=read.group_name)

    @property
    def has_names(self) -> bool:
        return bool(self.user_name or self.group_name)

    @property
    def text(self) -> str:
        """The user as it would be written."""
        user = self.user_name or ("" if self.uid is None else str(self.uid))
        group = self.group_name or ("" if self.gid is None else str(self.gid))
        return f"{user}:{group}" if group else user


@record(kw_only=True)
class Service:
    name: str
    image: str = ""
    build: Build | None = None
    entrypoint: tuple[str, ...] | None = None
    """None keeps the image's entrypoint; empty clears it."""
    command: tuple[str, ...] | None = None
    working_dir: str = ""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """As in ``environment``; None is a name without a value, which hides an env file's value."""
    env_files: tuple[EnvFile, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """The variables of the container: env files, then ``environment``."""
    ports: tuple[Port, ...] = ()
    public: bool = False
    mounts: tuple[Mount, ...] = ()
    depends_on: tuple[Dependency, ...] = ()
    health_check: HealthCheck | None = None
    restart: str = ALWAYS
    max_attempts: int | None = None
    replicas: int = 1
    resources: Resources = field(default_factory=Resources)
    endpoint_mode: str = "vip"
    update_policy: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    cap_add: tuple[str, ...] = ()
    cap_drop: tuple[str, ...] = ()
    user: User | None = None
    awaits_users: bool = False
    """Whether the numbers of its users are looked up in its image once a deploy has built that."""
    stop_grace_period: int = 10
    networks: frozenset[str] | None = DEFAULT_NETWORKS
    """The service's networks in Compose, for messages; None if it shares another network."""
    service_account: str = ""
    """The ServiceAccount whose token the pods get; empty for none."""
    container: ContainerOptions = field(default_factory=ContainerOptions)
    networking: Networking = field(default_factory=Networking)
    label_files: LabelFiles = field(default_factory=LabelFiles)
    file_mounts: tuple[FileMount, ...] = ()
    scheduling: Scheduling = field(default_factory=Scheduling)
    extensions: Extensions = field(default_factory=Extensions)
    pod: SharedPod = field(default_factory=SharedPod)
    watch: tuple[WatchRule, ...] = ()
    synced_files: tuple[HostFile, ...] = ()
    """Files that ``platform watch`` puts into new pods, by their path in the container."""
    models: tuple[ModelUse, ...] = ()
    provided: tuple[str, ...] = ()
    """The providers that it depends on, which set variables of it."""

    @property
    def is_pulled(self) -> bool:
        """Whether its image is in a registry already: no service of the file builds it."""
        return bool(self.image) and self.build is None and not self.container.built_by

    @property
    def is_job(self) -> bool:
        return self.restart != ALWAYS

    @property
    def keeps_data(self) -> bool:
        return any(mount.kind in (NAMED, ANONYMOUS) for mount in self.mounts)

    @property
    def pod_keeps_data(self) -> bool:
        """Whether its pods keep data: its own, or that of another service in them."""
        return self.keeps_data or self.pod.keeps_data

    @property
    def pod_owner(self) -> str:
        """The service whose pods it runs in: itself, or another one."""
        return self.pod.owner or self.name

    @property
    def runs_elsewhere(self) -> bool:
        """Whether it runs in the pods of another service."""
        return self.pod_owner != self.name

    @property
    def file_group(self) -> int | None:
        """The group of the configs and secrets in its pods: only one, and none beside volumes that keep data.

        The group of a pod is given to each of its volumes, and would open folders that a program has closed.
        """
        groups = {mount.gid for mount in self.file_mounts if mount.gid} | self.pod.groups
        return groups.pop() if len(groups) == 1 and not self.pod_keeps_data else None

    @property
    def named_volumes(self) -> set[str]:
        return {mount.source for mount in self.mounts if mount.kind == NAMED}

    @property
    def is_global(self) -> bool:
        """Whether a pod of it runs on each node."""
        return self.scheduling.mode is Mode.GLOBAL

    @property
    def has_port_of_node(self) -> bool:
        """Whether a second pod of it can't start on the node of the first: both would have the node's ports."""
        return self.networking.mode == HOST_NETWORK and (self.is_global or bool(self.ports) or self.pod.has_ports)

    @property
    def workload_kind(self) -> str:
        """CronJob with a schedule, Job if it ends, DaemonSet on each node, StatefulSet with data, else Deployment.

        A host volume is no data.
        """
        if self.is_job:
            return "CronJob" if self.scheduling.schedule else "Job"
        if self.is_global:
            return "DaemonSet"
        return "StatefulSet" if self.pod_keeps_data else "Deployment"


@record(kw_only=True)
class Volume:
    name: str
    size: int = 1024**3
    storage_class: str = ""
    access_mode: str = "ReadWriteOnce"
    external: bool = False
    """The claim is someone else's, and must exist."""
    object_name: str = ""
    """The name that the definition gives to the claim; empty for that of the volume."""
    patches: tuple[Patch, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@record(kw_only=True)
class Project:
    services: Mapping[str, Service]
    volumes: Mapping[str, Volume]
    endpoints: tuple[Endpoint, ...] = ()
    inactive: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The services whose profiles are off, with their profiles."""
    networks: Mapping[str, Network] = field(default_factory=dict)
    """The declared networks and the default one; empty if networks have no effect."""
    configs: Mapping[str, FileObject] = field(default_factory=dict)
    secrets: Mapping[str, FileObject] = field(default_factory=dict)
    models: Mapping[str, AiModel] = field(default_factory=dict)
    providers: Mapping[str, Provider] = field(default_factory=dict)
    """The services that a program gives; they have no pods, and are none of ``services``."""

    def file_objects(self, kind: FileKind) -> Mapping[str, FileObject]:
        return self.configs if kind is FileKind.CONFIG else self.secrets

    @property
    def mounted_files(self) -> tuple[FileObject, ...]:
        """The configs and secrets that a service has as files: only these are read and created."""
        used = {(mount.kind, mount.source) for service in self.services.values() for mount in service.file_mounts}
        declared = (*self.configs.values(), *self.secrets.values())
        return tuple(found for found in declared if (found.kind, found.name) in used)

    @property
    def read_only_volumes(self) -> frozenset[str]:
        """The volumes that no pod can write to."""
        return frozenset(name for name, volume in self.volumes.items() if volume.access_mode == "ReadOnlyMany")

    @property
    def mounted_volumes(self) -> set[str]:
        """The named volumes that a service mounts: only these are created."""
        return {name for service in self.services.values() for name in service.named_volumes}
