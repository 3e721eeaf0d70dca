"""The typed definition: what a Compose file says, in one form for each thing.

Owns the frozen dataclasses between reading and planning.
Must not know YAML, spans, files or Kubernetes: equality and tests stay simple, and positions live in a side table
(:class:`composeplat.compose.parse.fields.Origins`) keyed by path.
Names are as the definition writes them; what Kubernetes sees is made by :mod:`composeplat.names`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSecret:
    """A secret that a build may read: its value is that of a file or of a variable, and is no part of the model."""

    name: str
    """The name the Dockerfile calls it by."""
    file: str = ""
    """Absolute."""
    variable: str = ""
    value: str | None = field(default=None, repr=False, compare=False)
    """The variable's; None where it is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    context: str = "."
    """An absolute path, or a URL; empty where only host content goes into the image."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFile:
    path: str
    """Absolute."""
    required: bool = True
    raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """How a container shows it is well; times are whole seconds."""

    command: tuple[str, ...] = ()
    http_path: str = ""
    http_port: int = 0
    interval: int = 30
    timeout: int = 30
    retries: int = 3
    start_period: int = 0
    readiness: bool = True
    liveness: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    target: int
    published: int | None = None
    protocol: str = "tcp"
    name: str = ""
    app_protocol: str = ""
    loopback: bool = False
    """Bound to an address that only this machine has: private, whatever else is said."""
    exposed: bool = False
    """Named by ``expose`` alone."""


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file below a mounted path (``path`` is empty where the file itself is mounted)."""

    path: str
    mode: int
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HostContent:
    """What a host volume holds; no files means more than a Secret should carry."""

    is_folder: bool
    files: tuple[HostFile, ...] | None
    count: int = field(default=0, compare=False)
    """How many files there are, read or not."""
    size: int = field(default=0, compare=False)
    """Their bytes in all."""


#: What BuildKit accepts.
MAX_BUILD_SECRET_BYTES = 500 * 1024

#: What a Secret is asked to carry for one service; above it, host content goes into a derived image.
MAX_HOST_BYTES = 256 * 1024
MAX_HOST_FILES = 64

NAMED, ANONYMOUS, HOST, MEMORY = "named", "anonymous", "host", "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    kind: str
    target: str
    source: str = ""
    """The volume's name, or the absolute host path."""
    read_only: bool = False
    sub_path: str = ""
    size: int | None = None
    content: HostContent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Cpus in thousandths, memory in bytes; None is not said."""

    limit_cpu: int | None = None
    limit_memory: int | None = None
    request_cpu: int | None = None
    request_memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    service: str
    condition: DependencyCondition = DependencyCondition.STARTED
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who a container runs as; a half that is None is the image's own."""

    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    name: str
    image: str = ""
    build: Build | None = None
    entrypoint: tuple[str, ...] | None = None
    """None is the image's own; empty clears it."""
    command: tuple[str, ...] | None = None
    working_dir: str = ""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """As ``environment`` says; None is named but not set, which still hides an env file's value."""
    env_files: tuple[EnvFile, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the container gets: env files, then ``environment`` over them."""
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
    stop_grace_period: int = 10
    networks: frozenset[str] | None = DEFAULT_NETWORKS
    """The networks it is on in Compose, for what is said of them; None where it shares another's."""
    service_account: str = ""
    """The account whose token the pods get; empty is none."""

    @property
    def is_job(self) -> bool:
        return self.restart != ALWAYS

    @property
    def keeps_data(self) -> bool:
        return any(mount.kind in (NAMED, ANONYMOUS) for mount in self.mounts)

    @property
    def named_volumes(self) -> set[str]:
        return {mount.source for mount in self.mounts if mount.kind == NAMED}

    @property
    def workload_kind(self) -> str:
        """Job for what ends, StatefulSet for what keeps data, else Deployment; a host volume keeps nothing."""
        if self.is_job:
            return "Job"
        return "StatefulSet" if self.keeps_data else "Deployment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    name: str
    size: int = 1024**3
    storage_class: str = ""
    access_mode: str = "ReadWriteOnce"
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    path: str
    service: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    name: str
    """Empty is the endpoint named as the environment."""
    routes: tuple[Route, ...]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    services: Mapping[str, Service]
    volumes: Mapping[str, Volume]
    endpoints: tuple[Endpoint, ...] = ()

    @property
    def mounted_volumes(self) -> set[str]:
        """The named volumes that some service mounts: the ones that are made."""
        return {name for service in self.services.values() for name in service.named_volumes}
