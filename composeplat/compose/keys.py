"""The keys of a Compose file and the handling of each: the compatibility tables as data.

Owns one row for every key that Compose or this project knows.
Must not know how a key is read: readers look keys up, tests compare the table with the specification's lists, and
``docs/keys.md`` is generated from it.

Handling, in the specification's words:

- SUPPORTED: used.
- EXTENSION: used, and exists only here.
- WARNED: recognized; a warning is shown, and the key has no effect. (DEEP: with a warning for each of its fields.)
- IGNORED: dropped without a message, shown under ``-v``; in full mode, one that has no meaning gets a warning.
- UNREAD: within a block that has no effect, and whose message is enough.

Full mode (``--full``) honors more keys: the row's ``full`` is the handling there, where it is another.

A key that has no row is dropped too, shown under ``-v``, and an error under ``--strict``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum

from composeplat.codes import Effect
from composeplat.compose.full_keys import EXTERNAL_BLOCKS, FULL_KEYS, NO_MEANING, PATCHED, SERVICE
from composeplat.diagnostics import PathKey
from composeplat.system.records import record


class Handling(Enum):
    SUPPORTED = "supported"
    EXTENSION = "extension"
    WARNED = "warned"
    DEEP = "warned, with each of its fields"
    IGNORED = "ignored"
    UNREAD = "not read, as its block"

    @property
    def is_used(self) -> bool:
        return self in (Handling.SUPPORTED, Handling.EXTENSION)


class Origin(Enum):
    """The source of a row."""

    SPECIFICATION = "specification"
    RULING = "ruling"
    COMPOSE = "compose"
    """Compose knows the key."""


@record
class Row:
    section: str
    key: str
    handling: Handling
    origin: Origin
    why: str = ""
    effect: Effect = Effect.NONE
    """What it means for a service that the key has no effect."""
    full: Handling | None = None
    """The handling in full mode, if it is another."""

    def handling_in(self, *, full: bool) -> Handling:
        return self.full if full and self.full is not None else self.handling


def _rows(
    section: str, handling: Handling, origin: Origin, keys: str, why: str = "", *, effect: Effect | None = None
) -> Iterator[Row]:
    """Make a row for each key; a key with a warning is lost, unless the effect says something else."""
    has_message = handling in (Handling.WARNED, Handling.DEEP)
    default = Effect.LOST if has_message else Effect.NONE
    return (Row(section, key, handling, origin, why, default if effect is None else effect) for key in keys.split())


_SUPPORTED, _EXTENSION = Handling.SUPPORTED, Handling.EXTENSION
_WARNED, _DEEP, _IGNORED, _UNREAD = Handling.WARNED, Handling.DEEP, Handling.IGNORED, Handling.UNREAD
_CHANGED = Effect.CHANGED
_SPEC, _RULING, _COMPOSE = Origin.SPECIFICATION, Origin.RULING, Origin.COMPOSE

_KEY = "the key of an external object, if it is not the name of the entry"

_DEFAULT_ROWS: tuple[Row, ...] = (
    # top level
    *_rows("", _SUPPORTED, _SPEC, "name services volumes version"),
    *_rows("", _SUPPORTED, _RULING, "include"),
    *_rows("", _EXTENSION, _SPEC, "endpoints"),
    *_rows("", _EXTENSION, _RULING, "x-platform"),
    *_rows("x-platform", _EXTENSION, _RULING, "full", "honors the keys of the column 'Full mode'"),
    *_rows("", _DEEP, _SPEC, "networks", effect=_CHANGED),
    *_rows("", _DEEP, _SPEC, "configs secrets"),
    *_rows("", _IGNORED, _SPEC, "profiles"),
    *_rows("", _WARNED, _COMPOSE, "jobs"),
    *_rows("jobs.*", _UNREAD, _COMPOSE, "triggers", "its other keys are those of services"),
    *_rows("jobs.*.triggers", _UNREAD, _COMPOSE, "manual schedule"),
    *_rows("jobs.*.triggers.schedule.*", _UNREAD, _COMPOSE, "cron timezone concurrency missed_fires"),
    *_rows("", _WARNED, _COMPOSE, "models"),
    # services
    *_rows(
        SERVICE,
        _SUPPORTED,
        _SPEC,
        "annotations build cap_add cap_drop command depends_on deploy entrypoint env_file environment healthcheck image"
        " labels mem_limit mem_reservation cpu_count cpus ports expose restart stop_grace_period user volumes"
        " working_dir scale",
    ),
    *_rows(SERVICE, _WARNED, _RULING, "x-schedule"),
    *_rows("services.*.x-schedule", _UNREAD, _RULING, "cron timezone concurrency"),
    *_rows(SERVICE, _EXTENSION, _SPEC, "public x-node-selector resources"),
    *_rows(SERVICE, _EXTENSION, _RULING, "x-service-account", "without one, pods get no token of the cluster"),
    *_rows(
        SERVICE,
        _WARNED,
        _SPEC,
        "configs credential_spec device_cgroup_rules devices dns dns_opt dns_search driver_opts extends"
        " external_links extra_hosts group_add ipc isolation pid privileged runtime secrets security_opt sysctls"
        " userns_mode volumes_from",
    ),
    *_rows(
        SERVICE,
        _WARNED,
        _SPEC,
        "blkio_config cgroup_parent container_name cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime"
        " cpu_shares cpuset domainname hostname init links logging mac_address mem_swappiness memswap_limit"
        " network_mode networks oom_kill_disable oom_score_adj pids_limit platform profiles pull_policy read_only"
        " shm_size stdin_open stop_signal storage_opts tmpfs tty ulimits",
        effect=_CHANGED,
    ),
    *_rows(
        SERVICE,
        _IGNORED,
        _SPEC,
        "attach cgroup develop interface_name link_local_ips uts",
    ),
    *_rows(SERVICE, _IGNORED, _SPEC, "gpus label_file post_start pre_stop provider", effect=Effect.LOST),
    *_rows(SERVICE, _WARNED, _COMPOSE, "models pre_start use_api_socket"),
    *_rows(SERVICE, _WARNED, _COMPOSE, "pull_refresh_after storage_opt umask", effect=_CHANGED),
    # build
    *_rows("services.*.build", _SUPPORTED, _SPEC, "context dockerfile args target"),
    *_rows(
        "services.*.build",
        _SUPPORTED,
        _RULING,
        "dockerfile_inline additional_contexts cache_from cache_to labels network no_cache platforms pull secrets ssh"
        " tags extra_hosts",
        "what BuildKit knows; not in the specification's table",
    ),
    *_rows(
        "services.*.build",
        _WARNED,
        _COMPOSE,
        "shm_size",
        "Pulumi's provider for builds has no such field; RUN --mount=type=tmpfs,target=/dev/shm,size=… serves",
        effect=_CHANGED,
    ),
    *_rows("services.*.build.secrets.*", _SUPPORTED, _RULING, "source target"),
    *_rows(
        "services.*.build.secrets.*",
        _WARNED,
        _COMPOSE,
        "uid gid mode",
        "RUN --mount=type=secret,uid=… says them",
        effect=_CHANGED,
    ),
    *_rows(
        "services.*.build",
        _WARNED,
        _COMPOSE,
        "entitlements isolation no_cache_filter privileged provenance sbom ulimits",
        effect=_CHANGED,
    ),
    # deploy
    *_rows("services.*.deploy", _SUPPORTED, _SPEC, "replicas resources restart_policy endpoint_mode"),
    *_rows("services.*.deploy", _SUPPORTED, _RULING, "labels"),
    *_rows("services.*.deploy", _WARNED, _COMPOSE, "mode placement"),
    *_rows("services.*.deploy", _WARNED, _COMPOSE, "rollback_config update_config", effect=_CHANGED),
    *_rows("services.*.deploy.resources", _SUPPORTED, _SPEC, "limits reservations"),
    *_rows("services.*.deploy.resources.limits", _SUPPORTED, _SPEC, "cpus memory"),
    *_rows("services.*.deploy.resources.limits", _WARNED, _COMPOSE, "pids", effect=_CHANGED),
    *_rows("services.*.deploy.resources.reservations", _SUPPORTED, _SPEC, "cpus memory"),
    *_rows("services.*.deploy.resources.reservations", _WARNED, _COMPOSE, "devices generic_resources"),
    *_rows("services.*.deploy.restart_policy", _SUPPORTED, _SPEC, "condition max_attempts"),
    *_rows("services.*.deploy.restart_policy", _WARNED, _COMPOSE, "delay window", effect=_CHANGED),
    # resources, the extension
    *_rows("services.*.resources", _EXTENSION, _SPEC, "requests limits"),
    *_rows("services.*.resources.requests", _EXTENSION, _SPEC, "cpu memory"),
    *_rows("services.*.resources.limits", _EXTENSION, _SPEC, "cpu memory"),
    # healthcheck
    *_rows("services.*.healthcheck", _SUPPORTED, _SPEC, "start_period interval timeout retries test"),
    *_rows("services.*.healthcheck", _EXTENSION, _SPEC, "http x-okteto-readiness x-okteto-liveness"),
    *_rows("services.*.healthcheck", _SUPPORTED, _RULING, "disable"),
    *_rows("services.*.healthcheck", _WARNED, _COMPOSE, "start_interval", effect=_CHANGED),
    *_rows("services.*.healthcheck.http", _EXTENSION, _SPEC, "path port"),
    # depends_on
    *_rows("services.*.depends_on.*", _SUPPORTED, _SPEC, "condition"),
    *_rows("services.*.depends_on.*", _SUPPORTED, _COMPOSE, "required"),
    *_rows("services.*.depends_on.*", _WARNED, _COMPOSE, "restart", effect=_CHANGED),
    # env_file, long form
    *_rows("services.*.env_file.*", _SUPPORTED, _RULING, "path required format"),
    # ports, long form
    *_rows("services.*.ports.*", _SUPPORTED, _RULING, "target published protocol name app_protocol host_ip"),
    *_rows("services.*.ports.*", _WARNED, _COMPOSE, "mode", effect=_CHANGED),
    # volumes of a service, long form
    *_rows("services.*.volumes.*", _SUPPORTED, _SPEC, "sub_path"),
    *_rows("services.*.volumes.*", _SUPPORTED, _RULING, "type source target read_only volume tmpfs bind"),
    *_rows("services.*.volumes.*", _WARNED, _COMPOSE, "consistency", effect=_CHANGED),
    *_rows("services.*.volumes.*", _WARNED, _COMPOSE, "image"),
    *_rows("services.*.volumes.*.volume", _SUPPORTED, _RULING, "subpath nocopy"),
    *_rows("services.*.volumes.*.volume", _WARNED, _COMPOSE, "labels"),
    *_rows("services.*.volumes.*.image", _UNREAD, _COMPOSE, "subpath"),
    *_rows(
        "services.*.volumes.*.bind",
        _WARNED,
        _COMPOSE,
        "create_host_path propagation recursive selinux",
        effect=_CHANGED,
    ),
    *_rows("services.*.volumes.*.tmpfs", _SUPPORTED, _RULING, "size"),
    *_rows("services.*.volumes.*.tmpfs", _WARNED, _COMPOSE, "mode", effect=_CHANGED),
    # volumes of the file
    *_rows("volumes.*", _SUPPORTED, _SPEC, "labels"),
    *_rows("volumes.*", _EXTENSION, _SPEC, "size class"),
    *_rows("volumes.*", _SUPPORTED, _RULING, "driver_opts", "for its size and class; other options are warned"),
    *_rows("volumes.*", _WARNED, _SPEC, "driver", effect=_CHANGED),
    *_rows("volumes.*", _WARNED, _SPEC, "external"),
    *_rows("volumes.*", _EXTENSION, _RULING, "x-access-mode", "ReadWriteOnce by default"),
    *_rows("volumes.*", _WARNED, _COMPOSE, "name", effect=_CHANGED),
    *_rows("volumes.*.driver_opts", _EXTENSION, _SPEC, "size class"),
    # endpoints
    *_rows("endpoints", _EXTENSION, _SPEC, "labels rules"),
    *_rows("endpoints", _EXTENSION, _RULING, "annotations", "settings of the ingress controller"),
    *_rows("endpoints.*", _EXTENSION, _SPEC, "path service port"),
    # networks
    *_rows("networks.*", _WARNED, _COMPOSE, "external internal name", effect=_CHANGED),
    *_rows(
        "networks.*",
        _WARNED,
        _COMPOSE,
        "attachable driver driver_opts enable_ipv4 enable_ipv6 ipam labels",
        effect=_CHANGED,
    ),
    *(
        row
        for block in EXTERNAL_BLOCKS
        for row in _rows(f"{block}.*.external", _UNREAD, _COMPOSE, "name", "the form of Compose's second version")
    ),
    *_rows("services.*.networks.*", _UNREAD, _COMPOSE, "aliases"),
    *_rows(
        "services.*.networks.*",
        _UNREAD,
        _COMPOSE,
        "driver_opts gw_priority interface_name ipv4_address ipv6_address link_local_ips mac_address priority",
    ),
    # configs and secrets
    *_rows("configs.*", _WARNED, _COMPOSE, "file content environment external name labels"),
    *_rows("configs.*", _WARNED, _COMPOSE, "template_driver", effect=_CHANGED),
    *_rows("secrets.*", _WARNED, _COMPOSE, "file environment external name labels"),
    *_rows("secrets.*", _WARNED, _COMPOSE, "driver driver_opts template_driver", effect=_CHANGED),
    *_rows("configs.*", _UNREAD, _RULING, "x-key", _KEY),
    *_rows("secrets.*", _UNREAD, _RULING, "x-key", _KEY),
    *_rows("services.*.configs.*", _UNREAD, _COMPOSE, "source target uid gid mode"),
    *_rows("services.*.secrets.*", _UNREAD, _COMPOSE, "source target uid gid mode"),
    # scheduling
    *_rows("services.*.deploy.placement", _UNREAD, _COMPOSE, "constraints preferences max_replicas_per_node"),
    *_rows("services.*.deploy.placement.preferences.*", _UNREAD, _COMPOSE, "spread"),
    *_rows("services.*.deploy.update_config", _UNREAD, _COMPOSE, "parallelism order delay monitor failure_action"),
    *_rows(
        "services.*.deploy.update_config",
        _UNREAD,
        _COMPOSE,
        "max_failure_ratio",
        "a deploy fails with the first service that does not get ready",
    ),
    *_rows("services.*.gpus.*", _UNREAD, _COMPOSE, "count device_ids driver"),
    *_rows(
        "services.*.gpus.*", _UNREAD, _COMPOSE, "capabilities options", "the resource of the vendor stands for them"
    ),
    *_rows("services.*.deploy.resources.reservations.devices.*", _UNREAD, _COMPOSE, "count device_ids driver"),
    *_rows(
        "services.*.deploy.resources.reservations.devices.*",
        _UNREAD,
        _COMPOSE,
        "capabilities options",
        "the resource of the vendor stands for them",
    ),
    *_rows("services.*.deploy.resources.reservations.generic_resources.*", _UNREAD, _COMPOSE, "discrete_resource_spec"),
    *_rows(
        "services.*.deploy.resources.reservations.generic_resources.*.discrete_resource_spec",
        _UNREAD,
        _COMPOSE,
        "kind value",
    ),
    # our own, of full mode
    *_rows(SERVICE, _WARNED, _RULING, "x-autoscale x-expose x-kubernetes"),
    *_rows(SERVICE, _WARNED, _RULING, "x-devices", "the resource of each device, which a device plugin names"),
    *_rows("services.*.devices.*", _UNREAD, _COMPOSE, "source"),
    *_rows("services.*.devices.*", _UNREAD, _COMPOSE, "target permissions", "the device plugin decides them"),
    *_rows("volumes.*", _WARNED, _RULING, "x-kubernetes"),
    *_rows("endpoints", _WARNED, _RULING, "x-kubernetes"),
    *(row for owner in PATCHED for row in _rows(f"{owner}.x-kubernetes", _UNREAD, _RULING, "patch")),
    *_rows("services.*.x-autoscale", _UNREAD, _RULING, "min max cpu memory"),
    *_rows("services.*.x-expose", _UNREAD, _RULING, "type ports allow_never_public"),
    # develop
    *_rows("services.*.develop", _UNREAD, _COMPOSE, "watch"),
    *_rows("services.*.develop.watch.*", _UNREAD, _COMPOSE, "action path target ignore include initial_sync exec"),
    *_rows("services.*.develop.watch.*.exec", _UNREAD, _COMPOSE, "command user privileged working_dir environment"),
    # provider
    *_rows("services.*.provider", _UNREAD, _COMPOSE, "type options"),
    # models
    *_rows("services.*.models.*", _UNREAD, _COMPOSE, "endpoint_var model_var"),
    *_rows("models.*", _UNREAD, _COMPOSE, "model"),
    *_rows("models.*", _UNREAD, _COMPOSE, "context_size runtime_flags name", "what serves the model decides them"),
    *_rows("models.*", _UNREAD, _RULING, "x-endpoint", "the URL of what serves the model"),
    # include, long form
    *_rows("include.*", _SUPPORTED, _RULING, "path project_directory env_file"),
)


def _with_full_mode(row: Row) -> Row:
    if row.key in FULL_KEYS.get(row.section, "").split():
        return replace(row, full=_SUPPORTED)
    why = NO_MEANING.get(row.section, {}).get(row.key, row.why)
    # Full mode reads the block, and warns of each key that has no meaning.
    is_warned = row.handling is _UNREAD or (row.handling is _IGNORED and why)
    return replace(row, why=why, full=_WARNED if is_warned else None)


ROWS = tuple(_with_full_mode(row) for row in _DEFAULT_ROWS)


def _by_section() -> dict[str, dict[str, Row]]:
    sections: dict[str, dict[str, Row]] = {}
    for row in ROWS:
        sections.setdefault(row.section, {})[row.key] = row
    return sections


SECTIONS: dict[str, dict[str, Row]] = _by_section()

#: Sections that allow any key in Compose: a key without a row gets a warning, and is not a typo.
OPEN_SECTIONS = frozenset({"volumes.*.driver_opts"})


def effect_of(path: PathKey) -> Effect:
    """Return what it means for a service that the key at a path has no effect."""
    for length in range(len(path), 0, -1):
        row = row_at(path[:length])
        if row is not None and not row.handling.is_used:
            return row.effect
    return Effect.LOST


def is_honored_in_full_mode(path: PathKey) -> bool:
    """Whether the key at a path has no effect in the default mode alone."""
    row = row_at(path)
    return row is not None and row.full is not None and row.full.is_used


def path_of_key(path: PathKey) -> PathKey:
    """Return the path of a key in the table: a job has the keys of a service, except for its triggers."""
    is_of_job = path[:1] == ("jobs",) and len(path) > 1 and path[2:3] != ("triggers",)
    return ("services", *path[1:]) if is_of_job else path


def row_at(path: PathKey) -> Row | None:
    path = path_of_key(path)
    for section, rows in SECTIONS.items():
        steps = section.split(".") if section else []
        if len(steps) == len(path) - 1 and all(step in ("*", name) for step, name in zip(steps, path, strict=False)):
            row = rows.get(str(path[-1]))
            if row is not None:
                return row
    return None
