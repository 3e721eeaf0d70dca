"""What the API server says about patched objects, before a deploy changes anything.

Owns the question, a strict dry run, and the place of the patch that an answer is about.
The schema is the server's own: that of the version which the cluster runs, with its custom resources.
"""

from __future__ import annotations

import http.client
import json
import re

from composeplat.cluster.api import Api, ApiError
from composeplat.compose.origins import Origins
from composeplat.diagnostics import PathKey, Report, dotted
from composeplat.names import shorten
from composeplat.plan.desired import DesiredObject, Manifest, Plan

_MAX_ENTRIES = 50
_ANY_NAMESPACE = "default"
_REFUSALS = (http.client.BAD_REQUEST, http.client.UNPROCESSABLE_ENTITY)
_REASON = re.compile(r"(?:strict decoding error: |is invalid: |cannot be handled as a \w+: )(.*)", re.DOTALL)
_FIELDS = (
    re.compile(r'(?:unknown|duplicate) field "([^"]+)"'),
    re.compile(r"Go struct field \w+\.([\w.]+) of type"),
    re.compile(r"(?:^|\[)([a-zA-Z][\w.\[\]]*): "),
)
_STEP = re.compile(r"([^.\[\]]+)(\[\d+\])?\.?")


def check_patches(api: Api, plan: Plan, origins: Origins, report: Report, *, has_namespace: bool) -> None:
    """Report the patches because of which the API server refuses an object."""
    for desired in plan.objects:
        if desired.patched_at and desired.unpatched is not None:
            namespace = plan.namespace if has_namespace else _ANY_NAMESPACE
            reason = _refusal(api, desired, desired.manifest, namespace)
            if reason and not _refusal(api, desired, desired.unpatched, namespace):
                path = place_of(reason, desired.patched_at, origins)
                message = f"{dotted(path)} is refused by the API server: {reason}"
                report.add(
                    "invalid-patch", origins.key_at(*path), path, message, "see the fields of the kind: kubectl explain"
                )


def _refusal(api: Api, desired: DesiredObject, manifest: Manifest, namespace: str) -> str:
    """Return why the API server would refuse to create an object; empty if it would not, or can't say."""
    # Under another name nothing is there, so nothing of it is immutable.
    metadata = {**manifest["metadata"], "namespace": namespace, "name": shorten(f"{desired.name}-check")}
    plain = json.loads(json.dumps({**manifest, "metadata": metadata}, default=str))
    try:
        api.create(plain, dry_run=True)
    except ApiError as error:
        if error.status not in _REFUSALS:
            return ""
        found = _REASON.search(str(error))
        return found[1] if found else str(error)
    return ""


def place_of(reason: str, patch: PathKey, origins: Origins) -> PathKey:
    """Return the part of a patch that a reason names, as far as the patch has it."""
    field = next((found[1] for pattern in _FIELDS if (found := pattern.search(reason))), "")
    places: list[PathKey] = [patch]
    for name, is_list in _STEP.findall(field):
        # The index is one of the merged list: any entry of the patch may be meant.
        ends: list[tuple[str | int, ...]] = [(name, index) for index in range(_MAX_ENTRIES)] if is_list else [(name,)]
        inner = [(*place, *end) for place in places for end in ends if origins.has(*place, *end)]
        if not inner:
            break
        places = inner
    return places[0]
