"""The annotation of a pod that changes with its variables and files, so that a change replaces the pod.

Owns the hash, which must reveal no value: someone who may read pods, but no Secrets, could guess weak values.
So its key is a random salt in a Secret of the values, which is created with the first deploy; if all values are in
ConfigMaps, which more people may read, in one of those.
It is also slow to compute, about a millisecond for each guess: the salt is plain text in the state, which other people
may read, and the output of ``render`` has none.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache

from composeplat.compose.model import HostFile
from composeplat.compose.placeholders import PLACEHOLDER_START, placeholders_in, without_random
from composeplat.names import LABEL_PREFIX
from composeplat.plan.resource_keys import ResourceKey
from composeplat.system.records import record

HASH_ANNOTATION = f"{LABEL_PREFIX}/config-hash"
#: The annotation of a Secret with its random salt.
SALT_ANNOTATION = f"{LABEL_PREFIX}/salt"
_HASH_BYTES = 16
#: Sixteen times as much would be ten seconds of each run with 500 services.
_SCRYPT_COST = 2**10
#: More than the services of one run.
_REMEMBERED = 8192
_MAX_THREADS = 8


@record
class Fingerprint:
    """The late value of a keyed hash; the key is the salt of ``secret``."""

    secret: ResourceKey
    digest: str = field(repr=False)
    late: tuple[str, ...] = field(default=(), repr=False)
    """The placeholders in its values."""
    salt: str = field(default="", repr=False)
    """That of an object which the cluster has; empty if it is not known before the deploy."""

    def keyed(self, salt: str, values: Iterable[str] = ()) -> str:
        """Return the hash with a salt; ``values`` are those of the placeholders."""
        whole = hashlib.sha256(self.digest.encode())
        late = list(values)
        for value in late:
            whole.update(f"\0{len(value)}\0{value}".encode())
        digest = whole.hexdigest() if late else self.digest
        return hmac.digest(salt.encode(), _stretch(digest).encode(), "sha256")[:_HASH_BYTES].hex()

    def __str__(self) -> str:
        """Return the hash if its salt is known, else one without a salt; guessing values by that is slow."""
        return self.keyed(self.salt) if self.salt and not self.late else _stretch(self.digest)


def hash_ahead(fingerprints: Iterable[Fingerprint]) -> None:
    """Begin to compute the hashes on other processors, the last first.

    The caller does not wait: a hash that it needs before it is known, it computes itself. The process does, for the
    hash that each thread is at: OpenSSL frees its locks when the process ends, and a thread that still used them
    would crash it.
    """
    remaining = reversed({found.digest: found for found in fingerprints}.values())
    for _ in range(min(max((os.cpu_count() or 1) - 1, 1), _MAX_THREADS)):
        threading.Thread(target=_hash_each, args=(remaining,)).start()


def _hash_each(remaining: Iterator[Fingerprint]) -> None:
    for found in remaining:
        if not threading.main_thread().is_alive():
            return
        _stretch(found.digest)


@lru_cache(maxsize=_REMEMBERED)
def _stretch(digest: str) -> str:
    return hashlib.scrypt(
        digest.encode(), salt=HASH_ANNOTATION.encode(), n=_SCRYPT_COST, r=8, p=1, dklen=_HASH_BYTES
    ).hex()


def fingerprint(
    secret: ResourceKey,
    owner: str,
    variables: Mapping[str, str],
    files: Mapping[str, HostFile],
    objects: Mapping[ResourceKey, bytes],
) -> Fingerprint | None:
    """Make the fingerprint of a service's variables and files; equal values of another owner have another.

    ``objects`` are the contents of its configs and secrets, whose objects other services can have too.
    """
    if not variables and not files and not objects:
        return None
    late: dict[str, None] = {}
    digest = hashlib.sha256(f"{without_random(owner)}\0".encode())
    for name, value in sorted(variables.items()):
        late |= dict.fromkeys(placeholders_in(value))
        digest.update(f"{name}={without_random(value)}\0".encode())
    for key, file in sorted(files.items()):
        digest.update(f"\0{key}\0{file.mode:o}\0{len(file.content)}\0".encode())
        digest.update(file.content)
    for name, content in sorted((str(key), content) for key, content in objects.items()):
        found = content.decode(errors="replace") if PLACEHOLDER_START in content else ""
        late |= dict.fromkeys(placeholders_in(found))
        known = without_random(found).encode() or content
        digest.update(f"\0{name}\0{len(known)}\0".encode())
        digest.update(known)
    return Fingerprint(secret, digest.hexdigest(), tuple(late))
