"""Read the live state of a namespace, before anything changes.

Owns the way around a forbidden list: it gets each object of the plan by name. A deploy would overwrite an object that
it can't see, so an object that can't be read is an error.
Must not judge the live state: :mod:`~composeplat.engine.preflight` does.
"""

from __future__ import annotations

import http.client
from collections.abc import Collection, Iterable

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import PLURALS, kind_path
from composeplat.cluster.snapshot import Object
from composeplat.diagnostics import MissingPiece
from composeplat.engine.preflight import CLAIM, KINDS, Key, LiveState, api_path


def read_live_state(api: Api, namespace: str, wanted: Collection[Key] = ()) -> LiveState:
    """List the objects of a namespace; objects of the plan are read, or the error names the missing permission."""
    live_state = LiveState()
    try:
        api.get(f"/api/v1/namespaces/{namespace}")
    except ApiError as error:
        if error.status == http.client.NOT_FOUND:
            return LiveState(namespace=False)
        if error.status != http.client.FORBIDDEN:
            raise
    for kind, version in KINDS.items():
        objects = list_metadata(api, kind_path(version, kind, namespace))
        if objects is None:
            live_state.unlisted.add(kind)
        for entry in objects or ():
            live_state.object_metadata[kind, entry["metadata"]["name"]] = entry
    _get_unlisted(api, namespace, live_state, wanted)
    _add_claims(api, namespace, live_state)
    return live_state


def list_metadata(api: Api, path: str) -> list[Object] | None:
    """The metadata of all objects of a kind; none where they may not be listed."""
    try:
        return api.object_metadata(path)
    except ApiError as error:
        if error.status == http.client.NOT_FOUND:
            # A cluster need not know routes.
            return []
        if error.status == http.client.FORBIDDEN:
            return None
        raise


def _get_unlisted(api: Api, namespace: str, live_state: LiveState, wanted: Collection[Key]) -> None:
    refused: list[Key] = []
    for kind, name in wanted:
        if kind not in live_state.unlisted:
            continue
        try:
            found = api.find(api_path(kind, namespace, name))
        except ApiError as error:
            if error.status != http.client.FORBIDDEN:
                raise
            refused.append((kind, name))
            continue
        if found is None:
            live_state.absent.add((kind, name))
            continue
        live_state.object_metadata[kind, name] = found
        if kind == CLAIM:
            live_state.claims[name] = found
    if refused:
        raise _missing_right(namespace, refused)


def _missing_right(namespace: str, refused: list[Key]) -> MissingPiece:
    kind, name = refused[0]
    resources = list(dict.fromkeys(_resource(kind) for kind, _ in refused))
    return MissingPiece(
        f"can't check whether {kind} '{name}' is in namespace '{namespace}' already: you may neither list nor get"
        f" {_and(resources)} there",
        f"let those who deploy see them: kubectl --namespace {namespace} create role see-what-is-there --verb=get,list"
        f" --resource={','.join(resources)}, and bind it",
    )


def _resource(kind: str) -> str:
    """A kind as a role names it."""
    group = KINDS[kind].rpartition("/")[0]
    return f"{PLURALS[kind]}.{group}" if group else PLURALS[kind]


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _add_claims(api: Api, namespace: str, live_state: LiveState) -> None:
    """Read what decides whether claims can be changed."""
    if not any(kind == CLAIM for kind, _ in live_state.object_metadata):
        return
    if CLAIM not in live_state.unlisted:
        live_state.claims.update(_by_name(api.items(kind_path("v1", CLAIM, namespace))))
    try:
        classes = _by_name(api.items(kind_path("storage.k8s.io/v1", "StorageClass")))
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        # They are outside of namespaces, where not everyone may look; the API server itself refuses to grow others.
        live_state.knows_classes = False
    else:
        live_state.expandable.update({name: bool(found.get("allowVolumeExpansion")) for name, found in classes.items()})


def _by_name(objects: Iterable[Object]) -> dict[str, Object]:
    return {str(desired["metadata"]["name"]): desired for desired in objects}
