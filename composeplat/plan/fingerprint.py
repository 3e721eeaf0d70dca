"""The annotation of a pod that changes with its variables and files, so that a change replaces the pod.

A plain hash would: who may read pods, and not Secrets, could try weak values until one gives it.
So it is keyed with a random salt that lies with the values, in their Secret, and is made when that is deployed.
It is slow to compute as well: the salt is plain in the state, whose readers may be others than the Secret's.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from composeplat.compose.model import HostFile
from composeplat.names import LABEL_PREFIX
from composeplat.plan.resource_keys import ResourceKey

HASH_ANNOTATION = f"{LABEL_PREFIX}/config-hash"
#: On a Secret; random.
SALT_ANNOTATION = f"{LABEL_PREFIX}/salt"
_LENGTH = 16
_COST = 2**14


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The late value of a keyed hash of Secrets; the salt of ``secret`` is the key."""

    secret: ResourceKey
    digest: str = field(repr=False)

    def keyed(self, salt: str) -> str:
        return hmac.digest(salt.encode(), _stretch(self.digest).encode(), "sha256")[:_LENGTH].hex()

    def __str__(self) -> str:
        """Without a cluster there is no salt, and the same must come of the same: it is slow to guess, and no more."""
        return _stretch(self.digest)


@lru_cache(maxsize=1024)
def _stretch(digest: str) -> str:
    return hashlib.scrypt(digest.encode(), salt=HASH_ANNOTATION.encode(), n=_COST, r=8, p=1, dklen=_LENGTH).hex()


def fingerprint(
    secret: ResourceKey, owner: str, variables: Mapping[str, str], files: Mapping[str, HostFile]
) -> Fingerprint | None:
    """The fingerprint of a service's variables and files, where it has any; other owners of the same have others."""
    if not variables and not files:
        return None
    digest = hashlib.sha256(f"{owner}\0".encode())
    for name, value in sorted(variables.items()):
        digest.update(f"{name}={value}\0".encode())
    for key, file in sorted(files.items()):
        digest.update(f"\0{key}\0{file.mode:o}\0{len(file.content)}\0".encode())
        digest.update(file.content)
    return Fingerprint(secret, digest.hexdigest())
