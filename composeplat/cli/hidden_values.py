"""The confidential values of a run, which no event may show.

Owns which values these are: those of the definition, of the namespace and of the cluster's credentials at the start,
and those that providers set while a deploy runs.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from composeplat import progress
from composeplat.cluster.variables import StoredVariables
from composeplat.compose.load import Loaded
from composeplat.compose.origins import mount_path
from composeplat.compose.provider_model import Provider
from composeplat.compose.variables import looks_secret, worth_hiding
from composeplat.diagnostics import ComposeplatError, Report
from composeplat.engine.provider_values import Providers
from composeplat.engine.target import Target
from composeplat.plan import Plan, make_plan

_MIN_SECRET_CHARS = 8


def hide_secrets_of(
    loaded: Loaded, plan: Plan, stored: StoredVariables | None = None, target: Target | None = None
) -> tuple[str, ...]:
    """Hide the confidential values of a run in every event; return those of the definition, the longest first."""
    kept = worth_hiding(stored.confidential) if stored else ()
    values = sorted({*loaded.confidential, *kept}, key=lambda value: (-len(value), value))
    named = (*values, *worth_hiding(_secret_variables(loaded)))
    hidden = _maskable(loaded, named)
    credentials = _credentials(target) if target else ()
    progress.hide(hidden, log_values=(*named, *_secret_contents(plan), *credentials))
    return tuple(values)


def hide_earlier_secrets(loaded: Loaded, secrets: Iterable[tuple[str, str]]) -> None:
    """Hide those of an earlier deployment too, each with its name in a Secret: the file need not have them any more."""
    found = [(name, value) for name, value in secrets if len(value) >= _MIN_SECRET_CHARS or looks_secret(name)]
    hidden = worth_hiding(value for name, value in found if not name or looks_secret(name))
    progress.hide(_maskable(loaded, hidden), log_values=worth_hiding(value for _, value in found))


def _maskable(loaded: Loaded, values: Iterable[str]) -> list[str]:
    names = list(_written_names(loaded))
    return [value for value in values if not any(value in name for name in names)]


def _written_names(loaded: Loaded) -> Iterator[str]:
    """Yield names that the file itself shows: to mask a part of one, as in 'postgres', would reveal the password."""
    is_substituted = loaded.origins.is_substituted
    yield from loaded.project.volumes
    if loaded.settings.name_from_folder:
        yield loaded.settings.environment
    for name, service in loaded.project.services.items():
        yield name
        if not is_substituted("services", name, "image"):
            yield service.image
        for index, mount in enumerate(service.mounts):
            if not is_substituted(*mount_path(name, index)):
                yield mount.target


def _secret_variables(loaded: Loaded) -> Iterator[str]:
    """Yield the values of containers' variables whose names look secret, also those of env files."""
    for service in loaded.project.services.values():
        yield from (value for name, value in service.variables.items() if looks_secret(name))


def _secret_contents(plan: Plan) -> Iterator[str]:
    """Yield the values of the plan's Secrets and their lines: a log must not hold them, whatever their names are."""
    for desired in plan.objects:
        for encoded in (desired.manifest.get("data") or {}).values() if desired.kind == "Secret" else ():
            value = base64.b64decode(encoded).decode("utf-8", "ignore")
            yield from (part for part in (encoded, value, *value.splitlines()) if len(part) >= _MIN_SECRET_CHARS)


def _credentials(target: Target) -> Iterator[str]:
    """Yield the token or password for the cluster."""
    with contextlib.suppress(ComposeplatError):
        credential = target.access.credentials.current()
        password = base64.b64decode(credential.basic).decode("utf-8", "ignore").partition(":")[2]
        yield from filter(None, (credential.token, credential.basic, password))


def providers_of(loaded: Loaded, confidential: tuple[str, ...], *, is_allowed: bool) -> Providers:
    """Return the providers of a definition; the values that they set are hidden, and confidential in the plan."""
    found = list(confidential)

    def hide(values: Iterable[str]) -> None:
        given = worth_hiding(values)
        found.extend(given)
        encoded = (base64.b64encode(value.encode()).decode() for value in given)
        progress.hide(_maskable(loaded, given), log_values=(*given, *encoded))

    def plan_with(providers: Mapping[str, Provider]) -> Plan:
        project = replace(loaded.project, providers=providers)
        plan = make_plan(project, loaded.settings, loaded.origins, Report())
        return plan.with_confidential(tuple(sorted(set(found), key=lambda value: (-len(value), value))))

    return Providers(declared=loaded.project.providers, is_allowed=is_allowed, plan_with=plan_with, hide=hide)
