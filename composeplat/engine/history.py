"""The history of an environment: a Secret in its namespace for each of its last deployments, as Helm has for releases.

It is there and not with Pulumi's own, because that is no place to read from: of the backends for files, S3 and
PostgreSQL, ``pulumi stack history`` has the times and counts of an update, but neither services nor a git commit (the
program is one of this process, in a folder without a repository); its checkpoints are not read by any command, and are
never removed. A Secret works with every backend and from every machine, is bounded, and ends with its namespace.

Owns the form of the Secret. Its annotation has the facts that people see, so that a list needs the metadata alone. Its
data is for a rollback: inputs from Pulumi's state, in which secrets are encrypted with the state's own provider. A seal
proves that their writer can read the state. So others who may write Secrets in the namespace can make the history say
anything, but no rollback applies it.
It has no label that makes it a part of the environment: no deploy takes it for something left over.
A history that can't be kept never makes a deploy fail.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import hmac
import http.client
import json
from collections.abc import Iterable

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import Object
from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.engine.recorded_plan import FORMAT, Facts
from composeplat.engine.revisions import Revision, leaves_failure, parse_number
from composeplat.engine.stack import Stack
from composeplat.names import LABEL_PREFIX, MANAGED_BY, MANAGED_BY_LABEL

_LABEL = f"{LABEL_PREFIX}/history-of"
_ANNOTATION = f"{LABEL_PREFIX}/revision"
_DATA, _SEAL = "objects", "seal"
#: Kubernetes allows 1 MiB for the data of a Secret.
_MAX_DATA_BYTES = 1_000_000
_MAX_ATTEMPTS = 5
_ID_CHARS = 16

# reading --------------------------------------------------------------------------------------------------------------


def read_history(api: Api, namespace: str, environment: str) -> list[Revision]:
    """Return the revisions of an environment, the newest first."""
    try:
        listed = _list_metadata(api, namespace, environment)
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        raise MissingPiece(
            f"can't read the history: you may not list secrets in namespace '{namespace}'",
            f"kubectl --namespace {namespace} create role read-history --verb=get,list --resource=secrets, and bind it",
        ) from error
    found = (_parse_head(head, environment) for head in listed)
    return sorted(filter(None, found), key=lambda revision: revision.number, reverse=True)


def _list_metadata(api: Api, namespace: str, environment: str) -> list[Object]:
    return api.object_metadata(f"{kind_path('v1', 'Secret', namespace)}?labelSelector={_LABEL}%3D{environment}")


def find_history(api: Api, namespace: str, environment: str) -> list[Revision] | None:
    """Read the history for a run that works without it: empty without permission, none if the cluster fails."""
    try:
        return read_history(api, namespace, environment)
    except MissingPiece:
        return []
    except ApiError:
        return None


def ended_well(revisions: Iterable[Revision] | None) -> bool:
    """Return whether all services were deployed well, as far as is known; those that are in no history were."""
    return revisions is not None and not leaves_failure(revisions)


def note_other_state(stack: Stack, revisions: Iterable[Revision] | None) -> bool:
    """Return whether the newest revision was deployed with another state, whose changes this one lacks; and note it.

    The revisions come newest first. A new state has no changes at all, and one with a new passphrase counts as another.
    """
    newest = newest_of_other_state(stack, revisions)
    if newest is None:
        return False
    whose = f" of {newest.who}" if newest.who else ""
    difference = "another state or passphrase: this state is compared with the cluster"
    stack.note(f"revision {newest.number}{whose} was deployed with {difference}")
    return True


def newest_of_other_state(stack: Stack, revisions: Iterable[Revision] | None) -> Revision | None:
    """Return the newest revision if it was deployed with another state."""
    newest, own = next(iter(revisions or ()), None), state_id(stack)
    return newest if newest is not None and own and newest.state not in ("", own) else None


def state_id(stack: Stack) -> str:
    """Return an identifier of the state, which differs with each passphrase; empty for a new state."""
    return _with_state_key(stack, b"identifier").hex()[:_ID_CHARS] if stack.state.get("secrets_providers") else ""


def _parse_head(head: Object, environment: str) -> Revision | None:
    metadata = head["metadata"]
    parsed = _parse_name(head, environment)
    if parsed is None:
        return None
    text = str((metadata.get("annotations") or {}).get(_ANNOTATION) or "")
    return Revision.from_text(text, number=parsed, started=str(metadata.get("creationTimestamp") or ""))


def _parse_name(head: Object, environment: str) -> int | None:
    return parse_number(str(head["metadata"]["name"]).removeprefix(secret_name(environment, "")))


def read_facts(api: Api, stack: Stack, revision: Revision) -> Facts:
    """Return the objects of a revision, or raise an error if this state did not write them."""
    found = api.find(_path(stack, revision.number)) or {}
    packed, seal = (_decode((found.get("data") or {}).get(name)) for name in (_DATA, _SEAL))
    if not packed or not hmac.compare_digest(seal, _make_seal(stack, revision.number, packed)):
        raise ComposeplatError(
            f"the objects of revision {revision.number} were not written with the state of this environment, or were"
            " changed since",
            "if the state was moved or made again, or its passphrase changed, deploy the earlier version of the file",
        )
    facts: Facts = json.loads(gzip.decompress(packed))
    if facts["format"] != FORMAT:
        raise ComposeplatError(
            f"revision {revision.number} was written by another version of platform", "roll back with that version"
        )
    return facts


def _decode(text: object) -> bytes:
    try:
        return base64.b64decode(str(text or ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _make_seal(stack: Stack, number: int, packed: bytes) -> bytes:
    """Return the seal of a revision's data, keyed with a text that only readers of the state know."""
    place = f"{stack.environment_name}\n{stack.namespace}\n{number}\n".encode()
    return _with_state_key(stack, place + packed)


def _with_state_key(stack: Stack, data: bytes) -> bytes:
    provider = json.dumps(stack.state.get("secrets_providers") or {}, sort_keys=True)
    return hmac.digest(hashlib.sha256(provider.encode()).digest(), data, "sha256")


# writing --------------------------------------------------------------------------------------------------------------


def create_revision(api: Api, stack: Stack, revision: Revision) -> int:
    """Write the Secret of a revision that begins, and return its number: of two machines, one gets the next.

    So does this one after revisions that can't be read.
    """
    number = revision.number
    for attempt in range(_MAX_ATTEMPTS):
        metadata = {
            "name": secret_name(stack.environment_name, number),
            "namespace": stack.namespace,
            "annotations": {_ANNOTATION: revision.to_text()},
            "labels": {MANAGED_BY_LABEL: MANAGED_BY, _LABEL: stack.environment_name},
        }
        try:
            api.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"})
        except ApiError as error:
            if error.status != http.client.CONFLICT or attempt == _MAX_ATTEMPTS - 1:
                raise
            number = _newest_number(api, stack) + 1
        else:
            return number
    raise AssertionError


def _newest_number(api: Api, stack: Stack) -> int:
    return max(kept_numbers(api, stack), default=0)


def kept_numbers(api: Api, stack: Stack) -> list[int]:
    """Return the numbers of all revisions, also of those that can't be read."""
    listed = _list_metadata(api, stack.namespace, stack.environment_name)
    return [number for head in listed if (number := _parse_name(head, stack.environment_name)) is not None]


def update_revision(api: Api, stack: Stack, revision: Revision, packed: bytes) -> None:
    """Write the end of a revision, with its packed objects if there are any."""
    change: Object = {"metadata": {"annotations": {_ANNOTATION: revision.to_text()}}}
    if packed:
        seal = _make_seal(stack, revision.number, packed)
        change["data"] = {name: base64.b64encode(data).decode() for name, data in ((_DATA, packed), (_SEAL, seal))}
    api.patch(_path(stack, revision.number), change)


def delete_revision(api: Api, stack: Stack, number: int) -> None:
    api.delete(_path(stack, number))


def pack_facts(facts: Facts) -> bytes:
    """Return facts as they are kept; empty if they are too large for that."""
    packed = gzip.compress(json.dumps(facts, separators=(",", ":")).encode(), mtime=0)
    return packed if len(packed) <= _MAX_DATA_BYTES else b""


def _path(stack: Stack, number: int) -> str:
    return f"{kind_path('v1', 'Secret', stack.namespace)}/{secret_name(stack.environment_name, number)}"


def secret_name(environment: str, number: object) -> str:
    """Return the name of the Secret of a revision; no object of a definition has a dot in its name."""
    return f"platform-history.{environment}.{number}"
