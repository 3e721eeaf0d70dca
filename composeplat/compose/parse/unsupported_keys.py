"""Explanations for unsupported keys: that the key asks for the default, or what happens instead.

Owns a row for each key that has an explanation.
Must not know which keys are unsupported: that is in :mod:`composeplat.compose.keys`. It is apart because most warnings
about a real file are about these keys, and few of them matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from composeplat.compose.full_keys import SERVICE
from composeplat.compose.keys import is_honored_in_full_mode
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence
from composeplat.compose.parse.node_attributes import NODE_LABELS, architecture_name
from composeplat.compose.parse.swarm_templates import HOSTNAME_FIX, find_template
from composeplat.compose.values import BadValue, parse_bool
from composeplat.compose.variables import Variables
from composeplat.diagnostics import PathKey, join_some
from composeplat.names import clean, is_dns_label
from composeplat.system.records import record

HOST_GATEWAY = "host-gateway"
_MAX_ALIASES = 3
_ADDRESSES = ("ipv4_address", "ipv6_address", "link_local_ips", "mac_address")


@record
class Explanation:
    """The behavior here, and what to write instead; ``is_harmless`` if the key asks for exactly that."""

    text: str = ""
    is_harmless: bool = False
    fix: str = ""
    in_full_mode: str = ""
    """The values of the key that full mode honors, where this is none of them."""


def with_full_mode(path: PathKey, fix: str, values: str = "") -> str:
    """Add to a fix that full mode honors the key, if it does, or only these values of it."""
    if not is_honored_in_full_mode(path):
        return fix
    if values:
        return f"{fix}; full mode (--full) honors {values}"
    return f"{fix}; or use full mode (--full), which honors it" if fix else FULL_MODE_ALONE


#: The fix of a key that has no other.
FULL_MODE_ALONE = "full mode (--full) honors it"

Explainer = Callable[[Node, PathKey], Explanation | None]


def explain(section: str, key: str, value: Node, path: PathKey) -> Explanation | None:
    """Explain a key without effect; ``path`` is the path of the key."""
    explainer = _EXPLAINERS.get((section, key))
    return explainer(value, path) if explainer else None


def explain_name(variables: Variables, value: Node, path: PathKey) -> Explanation | None:
    """Explain a ``name`` that a volume, config or secret has without it too: here, or in Compose, which writes it."""
    if path[0] not in ("configs", "secrets", "volumes") or path[2:] != ("name",) or not isinstance(value, Scalar):
        return None
    if value.text == path[1]:
        return Explanation("this is the name of its key", is_harmless=True)
    project = value.text.removesuffix(f"_{path[1]}")
    is_default = project != value.text and clean(project) == variables.lookup("COMPOSE_PROJECT_NAME")
    return Explanation("this is the name that Compose gives it", is_harmless=True) if is_default else None


def is_empty(value: Node) -> bool:
    """Whether a key has no value, as by a variable that is not set: it means nothing in Compose either."""
    match value:
        case Scalar():
            return value.is_null or not value.text
        case Mapping():
            return not value.entries
        case Sequence():
            return not value.items


# services -------------------------------------------------------------------------------------------------------------


def _service_name(path: PathKey) -> str:
    """The DNS name of a service."""
    return clean(str(path[1]))


def _explain_container_name(value: Node, path: PathKey) -> Explanation | None:
    if not isinstance(value, Scalar):
        return None
    name = _service_name(path)
    if value.text.lower() in (name, str(path[1]).lower()):
        return Explanation(f"others reach it as '{name}'", is_harmless=True)
    text = f"others reach it as '{name}', not {value.shown}"
    if is_dns_label(value.text.lower()):
        return Explanation(text)
    fix = "write the name of the service wherever this one is used"
    return Explanation(text, fix=fix, in_full_mode="names that DNS allows")


def _explain_extra_hosts(value: Node, _path: PathKey) -> Explanation | None:
    if HOST_GATEWAY not in _texts_of(value):
        return None
    return Explanation(
        "pods have no gateway to this machine",
        fix=f"write an address in the place of {HOST_GATEWAY}, or use a service of the cluster",
        in_full_mode="addresses",
    )


def _texts_of(value: Node) -> str:
    """Join all texts of a value; hosts can be a list, or a mapping to addresses or to lists of them."""
    match value:
        case Scalar():
            return value.text
        case Mapping():
            return " ".join(_texts_of(entry) for _, entry in value)
        case Sequence():
            return " ".join(map(_texts_of, value))


def _explain_network_mode(value: Node, _path: PathKey) -> Explanation | None:
    if not isinstance(value, Scalar):
        return None
    kind, _, other = value.text.partition(":")
    if kind in ("bridge", "default"):
        return Explanation("every service reaches every other", is_harmless=True)
    if kind == "service" and other:
        reached = "that service" if value.is_substituted else f"'{clean(other)}'"
        text = f"its traffic does not pass {reached}, as it has its own network: reach {reached} by name, not localhost"
        return Explanation(text)
    if kind == "container":
        fix = "write the names of services instead of 'localhost'"
        return Explanation("it has its own network", fix=fix, in_full_mode="service:NAME")
    if kind == "host":
        return Explanation("it has its own network: 'ports' says which of its ports are reached")
    return Explanation("it still has a network") if kind == "none" else None


def _explain_links(value: Node, _path: PathKey) -> Explanation | None:
    """Name the aliases that are lost; without one, only the order of the start is."""
    items = [item for item in value.items if isinstance(item, Scalar)] if isinstance(value, Sequence) else []
    texts = [item.text for item in items]
    if not texts or any(item.is_substituted for item in items):
        return None
    links = [text.partition(":")[::2] for text in texts]
    aliases = {alias: clean(name) for name, alias in links if alias and alias.lower() != clean(name)}
    if aliases:
        shown = join_some([f"'{name}' (not '{alias}')" for alias, name in aliases.items()], _MAX_ALIASES)
        are_names = all(is_dns_label(alias.lower()) for alias in aliases)
        in_full_mode = "" if are_names else "names that DNS allows"
        return Explanation(f"it reaches {shown}", fix=_OTHER_NAME, in_full_mode=in_full_mode)
    listed = join_some(list(dict.fromkeys(name for name, _ in links)), _MAX_ALIASES)
    return Explanation("every service reaches every other by its name", fix=f"for their order: depends_on: [{listed}]")


_OTHER_NAME = "write the name of the service wherever the other one is used"


def _explain_networks(value: Node, path: PathKey) -> Explanation | None:
    entries = [entry for _, entry in value] if isinstance(value, Mapping) else []
    name = _service_name(path)
    aliases = [alias for entry in entries for alias in network_aliases(entry) if alias.text not in (name, path[1])]
    if aliases:
        shown = join_some(list(dict.fromkeys(alias.shown for alias in aliases)), _MAX_ALIASES)
        return Explanation(f"others reach it as '{name}', not {shown}")
    if any(isinstance(entry, Mapping) and any(key in entry for key in _ADDRESSES) for entry in entries):
        return Explanation(f"the cluster gives it an address, and others reach it as '{name}'")
    return Explanation("every service reaches every other by its name", is_harmless=True)


def network_aliases(entry: Node) -> list[Scalar]:
    """The aliases of a service in a network."""
    listed = entry.get("aliases") if isinstance(entry, Mapping) else None
    return [alias for alias in listed if isinstance(alias, Scalar)] if isinstance(listed, Sequence) else []


# volumes of the file --------------------------------------------------------------------------------------------------


def _explain_device(value: Node, _path: PathKey) -> Explanation | None:
    """Explain what a volume lacks that Docker's local driver mounts: a share, memory, or a folder of this machine."""
    if not isinstance(value, Scalar) or not value.text:
        return None
    if value.text == "tmpfs":
        return Explanation("the volume is a new one, on disk", fix="mount memory: {type: tmpfs, target: /path}")
    if re.match(r"//|([\w.-]{2,})?:/", value.text):
        fix = "let a PersistentVolumeClaim use that share, and name it: external: true in full mode (--full)"
        return Explanation("the volume is a new one, not that share", fix=fix)
    fix = "to ship files, mount the folder itself: './folder:/path'; for data of a program, there is nothing to do"
    return Explanation("the volume is a new one, without the files of that folder", fix=fix)


# values that ask for the default -------------------------------------------------------------------------------


def _always(text: str) -> Explainer:
    return lambda _value, _path: Explanation(text, is_harmless=True)


def _where(text: str, *values: str) -> Explainer:
    """Harmless for these values."""

    def explainer(value: Node, _path: PathKey) -> Explanation | None:
        return Explanation(text, is_harmless=True) if isinstance(value, Scalar) and value.text in values else None

    return explainer


def _where_bool(text: str, *, value: bool, otherwise: str = "") -> Explainer:
    """Harmless for this boolean; ``otherwise`` explains the other one."""

    def explainer(node: Node, _path: PathKey) -> Explanation | None:
        try:
            is_so = isinstance(node, Scalar) and parse_bool(node.text) is value
        except BadValue:
            return None
        if is_so:
            return Explanation(text, is_harmless=True)
        return Explanation(otherwise) if otherwise else None

    return explainer


# networks of the file -------------------------------------------------------------------------------------------------


_CLUSTER_NETWORK = "the cluster has one network, which it sees to itself"


def _explain_network_block(value: Node, path: PathKey) -> Explanation | None:
    """Harmless if all fields of all networks are."""
    entries = [entry for _, entry in value] if isinstance(value, Mapping) else []
    fields = [field for entry in entries if isinstance(entry, Mapping) for field in entry]
    explanations = (
        explain("networks.*", key.text, field, path) for key, field in fields if not key.text.startswith("x-")
    )
    if all(explanation is not None and explanation.is_harmless for explanation in explanations):
        return Explanation("every service reaches every other by its name", is_harmless=True)
    return None


# Swarm ----------------------------------------------------------------------------------------------------------------

_CONSTRAINT = r"\s*(?:node\.labels\.)?(\S+?)\s*==\s*(\S+)\s*"


def _explain_placement(value: Node, _path: PathKey) -> Explanation:
    """Write the constraints that a node's labels can express as a node selector."""
    listed = value.get("constraints") if isinstance(value, Mapping) else None
    texts = [item.text for item in listed if isinstance(item, Scalar)] if isinstance(listed, Sequence) else []
    found = [match for text in texts if (match := re.fullmatch(_CONSTRAINT, text))]
    labels = {NODE_LABELS.get(match[1], match[1]): architecture_name(match[2]) for match in found}
    chosen = {key: text for key, text in labels.items() if not key.startswith(("node.", "engine."))}
    if not chosen or (isinstance(listed, Sequence) and any(_is_substituted(item) for item in listed)):
        return Explanation(fix="x-node-selector chooses nodes by their labels; leave it out for any node")
    selector = ", ".join(f"{key}: {text}" for key, text in chosen.items())
    return Explanation(fix=f"write x-node-selector: {{{selector}}}")


def _explain_devices(_value: Node, _path: PathKey) -> Explanation:
    fix = "name the resource that the cluster's device plugin gives each device, in x-devices"
    return Explanation(fix=fix, in_full_mode="devices with one")


def _explain_hostname(value: Node, path: PathKey) -> Explanation | None:
    if not isinstance(value, Scalar):
        return None
    if find_template(value.text):
        return Explanation(fix=HOSTNAME_FIX)
    name = _service_name(path)
    is_further_name = is_dns_label(value.text.lower()) and value.text.lower() != name
    return Explanation(f"others reach it as '{name}', not {value.shown}") if is_further_name else None


def _is_substituted(node: Node) -> bool:
    return isinstance(node, Scalar) and node.is_substituted


def _explain_mode(value: Node, _path: PathKey) -> Explanation | None:
    text = value.text if isinstance(value, Scalar) else ""
    if text == "replicated":
        return Explanation("this is the default here", is_harmless=True)
    if text.endswith("-job"):
        return Explanation(fix="set restart: 'no', which makes the service a Job")
    return Explanation(fix="set deploy.replicas, or write a DaemonSet of your own") if text == "global" else None


def _mounted_in(folder: str) -> Explainer:
    """Name the mount that has the effect of the first entry of ``configs`` or ``secrets``."""

    def explainer(value: Node, _path: PathKey) -> Explanation | None:
        first = next((item for item in value), None) if isinstance(value, Sequence) else None
        name = first.get("source") if isinstance(first, Mapping) else first
        target = first.get("target") if isinstance(first, Mapping) else None
        written = target if isinstance(target, Scalar) else name
        if not isinstance(written, Scalar) or written.is_substituted:
            return None
        path = written.text if written.text.startswith("/") else f"{folder}{written.text}"
        return Explanation(fix=f"mount its file under 'volumes', in a service without 'build': './FILE:{path}:ro'")

    return explainer


def _instead(fix: str) -> Explainer:
    return lambda _value, _path: Explanation(fix=fix)


_SWARM: dict[tuple[str, str], Explainer] = {
    (SERVICE, "configs"): _mounted_in("/"),
    (SERVICE, "hostname"): _explain_hostname,
    (SERVICE, "secrets"): _mounted_in("/run/secrets/"),
    ("services.*.deploy", "mode"): _explain_mode,
    ("services.*.deploy", "placement"): _explain_placement,
    ("services.*.deploy", "rollback_config"): _instead("to roll back, deploy the earlier definition"),
    ("services.*.deploy", "update_config"): _instead(
        "the label dev.platform.com/update sets the update policy: rolling, recreate or on-delete"
    ),
    ("", "configs"): _instead("mount the files under 'volumes' of the services: './FILE:PATH:ro'"),
    ("", "secrets"): _instead("mount the files under 'volumes' of the services: './FILE:/run/secrets/NAME:ro'"),
}

#: Mount options that apply only to files of this machine.
HARMLESS_OPTIONS = frozenset(("z", "Z", "cached", "delegated", "consistent"))

_EXPLAINERS: dict[tuple[str, str], Explainer] = {
    **_SWARM,
    (SERVICE, "attach"): _where_bool("this is the default here", value=True),
    (SERVICE, "cgroup"): _where("this is the default here", "private"),
    (SERVICE, "container_name"): _explain_container_name,
    (SERVICE, "devices"): _explain_devices,
    (SERVICE, "extra_hosts"): _explain_extra_hosts,
    (SERVICE, "ipc"): _where("this is the default here", "private"),
    (SERVICE, "links"): _explain_links,
    (SERVICE, "network_mode"): _explain_network_mode,
    (SERVICE, "networks"): _explain_networks,
    **{
        (SERVICE, key): _where_bool("this is the default here", value=False)
        for key in ("init", "oom_kill_disable", "privileged", "read_only", "stdin_open", "tty")
    },
    ("volumes.*.driver_opts", "device"): _explain_device,
    ("services.*.ports.*", "mode"): _where("requests reach every pod of a service, on any node", "ingress"),
    ("services.*.volumes.*", "consistency"): _always("it applies only to files of this machine"),
    ("services.*.volumes.*.bind", "create_host_path"): _always("it applies only to files of this machine"),
    ("services.*.volumes.*.bind", "selinux"): _always("it applies only to files of this machine"),
    ("", "networks"): _explain_network_block,
    ("networks.*", "driver"): _where(_CLUSTER_NETWORK, "", "default", "bridge", "overlay"),
    ("networks.*", "external"): _where_bool(
        "this is the default here", value=False, otherwise="other projects are reached as SERVICE.NAMESPACE"
    ),
    ("networks.*", "internal"): _where_bool(
        "this is the default here", value=False, otherwise="services on it can still reach other networks"
    ),
    **{
        ("networks.*", key): _always(_CLUSTER_NETWORK)
        for key in ("attachable", "driver_opts", "enable_ipv4", "enable_ipv6", "ipam", "labels", "name")
    },
    ("services.*.deploy.update_config", "failure_action"): _where("a deploy that fails stops there", "pause"),
    **{
        (section, "capabilities"): _always("the vendor's resource stands for them")
        for section in ("services.*.gpus.*", "services.*.deploy.resources.reservations.devices.*")
    },
    ("volumes.*", "driver"): _where("the storage class decides where data is stored", "", "local"),
    ("volumes.*", "external"): _where_bool("this is the default here", value=False),
}
