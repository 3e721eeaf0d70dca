"""Every string Kubernetes will see as a name, label or host.

Owns how names are cleaned, shortened and joined, with their guarantees written down.
Must not know services or spans.

The same input gives the same name for ever: objects, DNS names and URLs hang on them.
"""

from __future__ import annotations

import re

MAX_LABEL_LENGTH = 63
#: A StatefulSet's pods carry ``<name>-<hash of ten>`` as a label's value.
MAX_STATEFUL_SET_NAME_LENGTH = 52

LABEL_PREFIX = "dev.platform.com"
UPDATE_LABEL = f"{LABEL_PREFIX}/update"
#: Only these find our objects and pods: other tools give `app.kubernetes.io/name` and `instance` values of their own.
ENVIRONMENT_LABEL = f"{LABEL_PREFIX}/environment"
SERVICE_LABEL = f"{LABEL_PREFIX}/service"
MANAGED_BY = "composeplat"

_DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z", re.ASCII)
_SERVICE_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?\Z", re.ASCII)
_DNS_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*\Z", re.ASCII)
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?\Z", re.ASCII)
_KEY_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z", re.ASCII)
#: As keys of a Secret, '.' and what begins with '..' would be names of folders.
_ENV_NAME = re.compile(r"(?!\.\Z|\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*\Z", re.ASCII)
_FOREIGN = re.compile(r"[^a-z0-9]+")
_LONGEST_DNS_NAME = 253
_LONGEST_READABLE_KEY = 200


def clean(name: str) -> str:
    """Lower-case a name and make ``_``, space and ``.`` a dash; the rest is left for :func:`is_dns_label` to judge."""
    return re.sub(r"[_ .]", "-", name.strip().lower()).strip("-")


def make_label(name: str) -> str:
    """Make any text a DNS label: what does not fit becomes a dash, what is too long is cut with a hash.

    Empty when nothing of the text can stand.
    """
    return shorten(_FOREIGN.sub("-", name.lower()).strip("-"))


def shorten(label: str, limit: int = MAX_LABEL_LENGTH) -> str:
    """Cut a label to a length; the hash of the whole keeps two long names apart."""
    if len(label) <= limit:
        return label
    return f"{label[: limit - 9].rstrip('-.')}-{_digest(label)}"


def _digest(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 -- most names need none

    return sha256(text.encode()).hexdigest()[:8]


def slug(path: str, limit: int = MAX_LABEL_LENGTH) -> str:
    """Make a path a DNS label; the hash is added where it can't be read back, so that two paths stay apart."""
    plain = _FOREIGN.sub("-", path.lower()).strip("-")
    if plain == path.strip("/").replace("/", "-") and "-" not in path and len(plain) <= limit:
        return plain
    return f"{plain[: limit - 9].rstrip('-')}-{_digest(path)}".strip("-")


def suggest_volume(source: str, target: str, *, hidden: bool = False) -> str:
    """Write a named volume to use in place of a host path; ``hidden`` where variables made the paths."""
    if hidden:
        return "'data:/path/in/the/container', with 'data:' under the top-level 'volumes'"
    name = clean(source.rstrip("/").rpartition("/")[2])
    name = name if is_dns_label(name) else "data"
    return f"'{name}:{target}', with '{name}:' under the top-level 'volumes'"


def is_dns_label(name: str) -> bool:
    return _DNS_LABEL.match(name) is not None


def is_service_name(name: str) -> bool:
    """A cluster service's name begins with a letter."""
    return _SERVICE_NAME.match(name) is not None


def is_dns_name(name: str) -> bool:
    longest = max((len(label) for label in name.split(".")), default=0)
    return _DNS_NAME.match(name) is not None and len(name) <= _LONGEST_DNS_NAME and longest <= MAX_LABEL_LENGTH


def is_label_value(text: str) -> bool:
    return _LABEL_VALUE.match(text) is not None


def is_key(text: str) -> bool:
    """Say whether a text can be a label's or annotation's key: ``name`` or ``prefix/name``."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_name(prefix.lower()):
        return False
    return _KEY_NAME.match(name) is not None


def is_label_key(text: str) -> bool:
    """Say whether a text can be a label's key: unlike an annotation's, its prefix is lower case."""
    prefix = text.rpartition("/")[0]
    return is_key(text) and prefix == prefix.lower()


def is_env_name(name: str) -> bool:
    """Say whether a variable can have this name: it is a key of a Secret too."""
    return _ENV_NAME.match(name) is not None and len(name) <= _LONGEST_DNS_NAME


def endpoint_host(endpoint: str, namespace: str, domain: str) -> tuple[str, bool]:
    """Give ``<endpoint>-<namespace>.<domain>`` and whether its first label had to be shortened."""
    label = f"{endpoint}-{namespace}"
    short = shorten(label)
    return f"{short}.{domain}", short != label


def make_file_key(path: str) -> str:
    """Make a file's path a Secret key that still reads like it."""
    key = re.sub(r"[^-._a-zA-Z0-9]", "_", path)
    if key == path and len(key) <= _LONGEST_READABLE_KEY and key != "." and not key.startswith(".."):
        return key
    return f"{key[-_LONGEST_READABLE_KEY:].lstrip('.')}.{_digest(path)}"
