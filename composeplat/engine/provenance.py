"""The project of an environment, as the cluster records it, and the refusal of another project's environment.

Owns the record: one ConfigMap for each environment, in its namespace, with no label that makes it a part of the
environment. So it stays as long as volumes do, and no deploy takes it for something left over.
Must not know how projects are identified: that is :mod:`~composeplat.compose.project_id`'s.

A name that the user gave is trusted. The name of a folder may be another project's as well: without the check, two
folders 'app' would delete each other's services.
"""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Mapping
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import Object
from composeplat.compose.project_id import ProjectId
from composeplat.diagnostics import ComposeplatError, MissingPiece, join_and_count, printable
from composeplat.engine.preflight import Key, LiveState
from composeplat.names import LABEL_PREFIX, MANAGED_BY, MANAGED_BY_LABEL, is_dns_label
from composeplat.system.records import record

_KEY = f"{LABEL_PREFIX}/project"
_DESCRIPTION = f"{LABEL_PREFIX}/project-description"
_ENVIRONMENT = f"{LABEL_PREFIX}/project-of"
_MAX_LISTED = 5
#: Of a text that somebody else wrote.
_MAX_SHOWN = 300


@record(kw_only=True)
class Claim:
    """What a run says of itself: the project it is of, and whether only its folder gave the environment its name."""

    project: ProjectId
    name_from_folder: bool


def record_key(environment: str) -> Key:
    """Kind and name of the record. No object of a definition has a dot in its name."""
    return "ConfigMap", f"platform-project.{environment}"


def recorded_project(head: Object | None) -> ProjectId | None:
    """The project that a record names; none where there is none, or nothing in it."""
    annotations: Mapping[str, Any] = ((head or {}).get("metadata") or {}).get("annotations") or {}
    key = str(annotations.get(_KEY) or "")
    text = printable(str(annotations.get(_DESCRIPTION) or "a project without a description"))[:_MAX_SHOWN]
    return ProjectId(key, text) if key else None


def other_environments(live_state: LiveState, environment: str, claim: Claim) -> list[str]:
    """The names of other environments of the namespace that were made from the same project."""
    records = (head for (kind, _), head in live_state.object_metadata.items() if kind == "ConfigMap")
    named = (
        str((record["metadata"].get("annotations") or {}).get(_ENVIRONMENT) or "")
        for record in records
        if (project := recorded_project(record)) is not None and project.key == claim.project.key
    )
    return sorted({name for name in named if is_dns_label(name) and name != environment})


class OtherProject(ComposeplatError):
    """The environment belongs to another project, and the user has not confirmed it."""


def check_project(
    known: ProjectId | None, claim: Claim, environment: str, namespace: str, *, command: str, take_over: bool = False
) -> None:
    """Refuse an environment of another project, unless its name was given, or it is to be taken over.

    One that nothing is known of is from before there were records, or from plain Pulumi: it becomes this project's.
    """
    if known is None or known.key == claim.project.key or take_over or not claim.name_from_folder:
        return
    this = printable(claim.project.description)[:_MAX_SHOWN]
    renamed = "give this project a name of its own with --name or the key 'name'"
    raise OtherProject(
        f"environment '{environment}' in namespace '{namespace}' was made from another project, {known.description};"
        f" this one is {this}, and its folder alone gives it that name",
        f"{renamed}; or {_way_to_mean_it(command, environment)}",
    )


def _way_to_mean_it(command: str, environment: str) -> str:
    if command == "deploy":
        return "make the environment this project's with --take-over, which deletes what this file does not have"
    return (
        f"if it is meant all the same: platform {command} --name {environment} …; platform deploy --take-over makes"
        " it this project's"
    )


def check_record(api: Api, claim: Claim | None, environment: str, namespace: str, *, command: str) -> None:
    """The same for an operation that does not list the namespace. A name that was given asks for nothing."""
    if claim is None or not claim.name_from_folder:
        return
    try:
        head = api.find(_path(environment, namespace))
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        raise MissingPiece(
            f"can't check whether environment '{environment}' was made from this project: you may not get configmaps"
            f" in namespace '{namespace}'",
            f"say that it is meant, with --name {environment}, or be allowed to see its record",
        ) from error
    check_project(recorded_project(head), claim, environment, namespace, command=command)


def notice_of_other(api: Api, claim: Claim | None, environment: str, namespace: str) -> str:
    """The notice of another project for commands that only read; empty if it is this one, or unknown."""
    if claim is None or not claim.name_from_folder:
        return ""
    with contextlib.suppress(ApiError):
        known = recorded_project(api.find(_path(environment, namespace)))
        if known is not None and known.key != claim.project.key:
            return f"environment '{environment}' was made from another project, {known.description}"
    return ""


def note_project(api: Api, live_state: LiveState, claim: Claim, environment: str, namespace: str) -> str:
    """Record the project before other objects are created; return a message about it, if any."""
    head = live_state.object_metadata.get(record_key(environment))
    known = recorded_project(head)
    if known is not None and known.key == claim.project.key:
        return ""
    try:
        if head is None:
            api.create(_record(claim.project, environment, namespace))
        else:
            api.apply(_record(claim.project, environment, namespace))
    except ApiError as error:
        if error.status == http.client.CONFLICT:
            # Another run was faster.
            check_record(api, claim, environment, namespace, command="deploy")
            return ""
        if error.status == http.client.FORBIDDEN:
            return f"can't remember that {environment} is made from this project: you may not make configmaps"
        raise
    if known is None:
        return ""
    return (
        f"{environment} was made from {known.description} until now, and is of {claim.project.description} from now on"
    )


def forget_project(api: Api, environment: str, namespace: str) -> None:
    """Delete the record of an environment without objects; without permission it stays."""
    try:
        api.delete(_path(environment, namespace))
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise


def describe_siblings(live_state: LiveState, environment: str, claim: Claim) -> str:
    """When an environment is made, say which others of its project stay: its name may have been changed."""
    found = other_environments(live_state, environment, claim)
    if not found or recorded_project(live_state.object_metadata.get(record_key(environment))) is not None:
        return ""
    shown = join_and_count(found, _MAX_LISTED)
    are = (
        "was made from this project too, and stays" if len(found) == 1 else "were made from this project too, and stay"
    )
    return f"{shown} {are}; if the name was changed: platform destroy --name {found[0]}"


def _record(project: ProjectId, environment: str, namespace: str) -> Object:
    annotations = {_KEY: project.key, _DESCRIPTION: project.description, _ENVIRONMENT: environment}
    kind, name = record_key(environment)
    metadata = {
        "name": name,
        "namespace": namespace,
        "annotations": annotations,
        "labels": {MANAGED_BY_LABEL: MANAGED_BY},
    }
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def _path(environment: str, namespace: str) -> str:
    kind, name = record_key(environment)
    return f"{kind_path('v1', kind, namespace)}/{name}"
