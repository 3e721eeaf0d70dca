"""Names, labels and hosts that Kubernetes accepts.

Owns how names are normalized, shortened and joined.
Must not know services or places in files: the names of every kind of object are made by the same rules.

The same input always gives the same name: existing objects, DNS names and URLs depend on it.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_LABEL_LENGTH = 63
#: Kubernetes labels the pods of a StatefulSet with ``<name>-<hash>``, and the hash has ten characters.
MAX_STATEFUL_SET_NAME_LENGTH = 52
#: The names of Jobs that a CronJob makes have eleven characters more.
MAX_NAME_LENGTHS = {"StatefulSet": MAX_STATEFUL_SET_NAME_LENGTH, "CronJob": 52}

LABEL_PREFIX = "dev.platform.com"
UPDATE_LABEL = f"{LABEL_PREFIX}/update"
#: Selectors use only these: other tools set `app.kubernetes.io/name` and `instance` to their own values.
ENVIRONMENT_LABEL = f"{LABEL_PREFIX}/environment"
SERVICE_LABEL = f"{LABEL_PREFIX}/service"
#: The services of a pod that is of several; its containers have their names.
SERVICES_ANNOTATION = f"{LABEL_PREFIX}/services"
#: Marks a one-off pod, which is outside its service; the value is the service.
RUN_LABEL = f"{LABEL_PREFIX}/run"
#: Marks the dev workload of a service; its value is the service.
DEV_WORKLOAD_LABEL = f"{LABEL_PREFIX}/up"
#: Marks an image that is loaded into nodes.
LOADED_LABEL = f"{LABEL_PREFIX}/loaded"
#: The annotation of a sleeping workload with the number of pods before sleep; 1 for a Job.
ASLEEP_ANNOTATION = f"{LABEL_PREFIX}/asleep"
#: No node has it: a DaemonSet whose pods need it has none.
NO_NODE_LABEL = ASLEEP_ANNOTATION
MANAGED_BY = "composeplat"
#: Of each object; its value is :data:`MANAGED_BY`.
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
#: Begins the names of init containers that are of no service; a hook's has another.
OWN_CONTAINER_PREFIX = "platform-"
#: Init containers of services with volumes.
TOOLS_CONTAINER = f"{OWN_CONTAINER_PREFIX}tools"
FILL_CONTAINER = f"{OWN_CONTAINER_PREFIX}fill"
MODES_CONTAINER = f"{OWN_CONTAINER_PREFIX}modes"
#: Of Docker's busybox images, those of musl are static, so that it runs in any image.
FILL_IMAGE = "busybox:1.37-musl"

_DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z", re.ASCII)
_SERVICE_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?\Z", re.ASCII)
_DNS_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*\Z", re.ASCII)
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?\Z", re.ASCII)
_SHELL_NAME = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*\Z", re.ASCII)
_KEY_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z", re.ASCII)
#: The keys of a Secret are file names, so '.' is invalid, and so is a name that begins with '..'.
_ENV_NAME = re.compile(r"(?!\.\Z|\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*\Z", re.ASCII)
_OBJECT_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}\Z", re.ASCII)
_INVALID_CHARS = re.compile(r"[^a-z0-9]+")
_MAX_DNS_NAME_LENGTH = 253
_MAX_READABLE_KEY_LENGTH = 200


# A definition can name a service a hundred thousand times.
@lru_cache(maxsize=10_000)
def clean(name: str) -> str:
    """Normalize a name: lower case, with dashes for ``_``, space and ``.``. :func:`is_dns_label` checks the result."""
    return re.sub(r"[_ .]", "-", name.strip().lower()).strip("-")


def make_label(name: str) -> str:
    """Make a DNS label of any text: dashes replace invalid characters, and a hash the end of a long text.

    The label is empty if no character of the text is valid.
    """
    return shorten(_INVALID_CHARS.sub("-", name.lower()).strip("-"))


def shorten(label: str, limit: int = MAX_LABEL_LENGTH) -> str:
    """Cut a label to a length; a hash of the whole label keeps two long names distinct."""
    if len(label) <= limit:
        return label
    return f"{label[: limit - 9].rstrip('-.')}-{_digest(label)}"


def _digest(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 -- most names need none

    return sha256(text.encode()).hexdigest()[:8]


def slug(path: str, limit: int = MAX_LABEL_LENGTH) -> str:
    """Make a DNS label of a path; a hash keeps paths distinct whose other characters become equal."""
    plain = _INVALID_CHARS.sub("-", path.lower()).strip("-")
    if plain == path.strip("/").replace("/", "-") and "-" not in path and len(plain) <= limit:
        return plain
    return f"{plain[: limit - 9].rstrip('-')}-{_digest(path)}".strip("-")


def folder_name(path: str) -> str:
    """Return the last folder of a path as a name."""
    return clean(path.rstrip("/").rpartition("/")[2])


def suggest_volume(source: str, target: str, *, owner: str = "") -> str:
    """Suggest a named volume in place of a host path; with an ``owner`` the name begins with that."""
    name = f"{clean(owner)}-{folder_name(source)}" if owner else folder_name(source)
    name = name if is_dns_label(name) else "data"
    return f"'{name}:{target}', with '{name}:' under the top-level 'volumes'"


def given_name(given: str, name: str) -> str:
    """Name an object as the definition gives it, if Kubernetes accepts that; else by its entry."""
    return given if given and is_dns_name(given) else clean(given or name)


def is_dns_label(name: str) -> bool:
    return _DNS_LABEL.match(name) is not None


def label_hint(name: str, first: str = "") -> str:
    """Return what to do about a key that can't be converted to a label."""
    if "$" in name:
        return "write the name itself: variables are not substituted in keys"
    begins = f", beginning with {first}" if first else ""
    return f"use at most {MAX_LABEL_LENGTH} letters, digits and '-'{begins}"


def is_service_name(name: str) -> bool:
    """Check the name of a cluster service, which begins with a letter."""
    return _SERVICE_NAME.match(name) is not None


def is_dns_name(name: str) -> bool:
    longest = max((len(label) for label in name.split(".")), default=0)
    return _DNS_NAME.match(name) is not None and len(name) <= _MAX_DNS_NAME_LENGTH and longest <= MAX_LABEL_LENGTH


def split_gateway(text: str) -> tuple[str, str, str]:
    """Split ``[NAMESPACE/]NAME[:LISTENER]``; what is not given is empty."""
    gateway, _, listener = text.partition(":")
    namespace, _, name = gateway.rpartition("/")
    return namespace, name, listener


def is_label_value(text: str) -> bool:
    return _LABEL_VALUE.match(text) is not None


def is_key(text: str) -> bool:
    """Check the key of a label or annotation: ``name`` or ``prefix/name``."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_name(prefix.lower()):
        return False
    return _KEY_NAME.match(name) is not None


def is_label_key(text: str) -> bool:
    """Check the key of a label: unlike that of an annotation, its prefix is lower case."""
    prefix = text.rpartition("/")[0]
    return is_key(text) and prefix == prefix.lower()


def is_extended_resource(text: str) -> bool:
    """Check the name of a resource of nodes that a container can request; those of Kubernetes are its own."""
    return "/" in text and is_label_key(text) and "kubernetes.io/" not in text and not text.startswith("requests.")


def is_shell_name(name: str) -> bool:
    """Check the name of a variable that a shell can read; Kubernetes accepts others too."""
    return _SHELL_NAME.match(name) is not None


def make_shell_name(name: str) -> str:
    """Make the end of a name that a shell can read."""
    return name if is_shell_name(name) else f"{re.sub(r'[^_a-zA-Z0-9]', '_', name)}_{_digest(name)}"


def is_env_name(name: str) -> bool:
    """Check the name of a variable, which is also a key of a Secret."""
    return _ENV_NAME.match(name) is not None and len(name) <= _MAX_DNS_NAME_LENGTH


def endpoint_host(endpoint: str, namespace: str, domain: str) -> tuple[str, bool]:
    """Return ``<endpoint>-<namespace>.<domain>``, and whether its first label is shortened."""
    label = f"{endpoint}-{namespace}"
    short = shorten(label)
    return f"{short}.{domain}", short != label


def is_object_key(text: str) -> bool:
    """Check a key of a ConfigMap or Secret."""
    return _OBJECT_KEY.match(text) is not None and not text.startswith("..") and text != "."


def make_file_key(path: str) -> str:
    """Make a key of a Secret that resembles the path of a file."""
    key = re.sub(r"[^-._a-zA-Z0-9]", "_", path)
    if key == path and len(key) <= _MAX_READABLE_KEY_LENGTH and key != "." and not key.startswith(".."):
        return key
    return f"{key[-_MAX_READABLE_KEY_LENGTH:].lstrip('.')}.{_digest(path)}"
