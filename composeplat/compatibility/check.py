"""The check of a definition: for each service a verdict, its findings, and an explanation.

Owns how diagnostics become findings, and how findings become a verdict.
A finding is a diagnostic with its effect on a service, which the tables of codes and of keys have: nothing is guessed
from a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from composeplat.cluster.capabilities import Capabilities
from composeplat.codes import BY_KEY, CODES, Effect, Severity
from composeplat.compatibility.accepted_host_rules import check_accepted_hosts
from composeplat.compatibility.cluster_rules import check_cluster
from composeplat.compatibility.ending_rules import check_endings
from composeplat.compatibility.entries import Entry, join_changes
from composeplat.compatibility.explanation import Statement, explain
from composeplat.compatibility.findings import Check, Finding, ServiceCheck
from composeplat.compatibility.fixes import Fixes
from composeplat.compatibility.full_mode import NO_ISOLATION, full_mode_statements, is_honored
from composeplat.compatibility.host_rules import check_hosts
from composeplat.compatibility.image_rules import ImageAnswers, check_images
from composeplat.compatibility.key_fixes import hint_for
from composeplat.compatibility.listener_rules import check_listeners
from composeplat.compatibility.nested_folders import check_nested_folders
from composeplat.compatibility.port_rules import check_ports
from composeplat.compatibility.url_rules import check_local_urls
from composeplat.compose.init_jobs import without_init_jobs
from composeplat.compose.keys import effect_of, is_honored_in_full_mode
from composeplat.compose.load import Loaded
from composeplat.compose.origins import Checker
from composeplat.compose.parse.unsupported_keys import FULL_MODE_ALONE, with_full_mode
from composeplat.diagnostics import Diagnostic, PathKey, Report, join_some
from composeplat.plan import Plan, ServicePlan
from composeplat.plan.security import check_image_users
from composeplat.registry.image_config import ImageFacts

_MAX_LISTED = 8


def make_check(loaded: Loaded, plan: Plan, images: ImageAnswers, offered: Capabilities) -> Check:
    # Findings about a hook are those of its service.
    loaded = replace(loaded, project=without_init_jobs(loaded.project))
    fixes = Fixes(loaded, plan, images)
    diagnostics = [*loaded.report.by_path(), *_more(loaded, plan, images, offered, fixes)]
    by_service: dict[str, list[Finding]] = {}
    for diagnostic, fix in _with_fixes(_relevant(diagnostics, fixes.not_started), fixes):
        finding = Finding(
            diagnostic,
            effect_on_service(diagnostic),
            fix,
            is_honored=not loaded.settings.full and is_honored(diagnostic, loaded.document),
        )
        if finding.effect is not Effect.NONE or diagnostic.severity is not Severity.NOTE:
            by_service.setdefault(_service_of(diagnostic.path), []).append(finding)
    names = list(loaded.project.services)
    planned = {service.name: service for service in plan.services}
    return Check(
        environment=plan.environment,
        namespace=plan.namespace,
        services=tuple(
            ServiceCheck(
                service=name,
                kind=loaded.project.services[name].workload_kind,
                findings=(found := tuple(by_service.pop(name, ()))),
                explain=partial(_explain, loaded, plan, images, planned.get(name), found),
            )
            for name in names
        ),
        findings=tuple(finding for rest in by_service.values() for finding in rest),
        notes=(*offered.notes, *_notes_on_images(loaded, images, diagnostics), *_notes_on_providers(plan)),
        is_valid=not loaded.report.errors,
        is_full=loaded.settings.full,
    )


def _with_fixes(diagnostics: Iterable[Diagnostic], fixes: Fixes) -> Iterable[tuple[Diagnostic, tuple[Entry, ...]]]:
    """Return the entries of each diagnostic; those of several about one text have all changes of it."""
    found = [(diagnostic, fixes.entries_for(diagnostic)) for diagnostic in diagnostics]
    joined = join_changes(entry for _, entries in found for entry in entries)
    return [(diagnostic, tuple(joined.get(entry, entry) for entry in entries)) for diagnostic, entries in found]


def _explain(
    loaded: Loaded, plan: Plan, images: ImageAnswers, planned: ServicePlan | None, found: Iterable[Finding]
) -> tuple[Statement, ...]:
    statements = explain(loaded, plan, images, planned) if planned else ()
    return (*statements, *full_mode_statements(found))


def count_mended(loaded: Loaded, plan: Plan) -> int:
    """Count the errors that have a fix, wherever they are duplicated too; images are not asked for."""
    loaded = replace(loaded, project=without_init_jobs(loaded.project))
    fixes = Fixes(loaded, plan, {})
    return sum(all(map(fixes.entries_for, duplicates)) for duplicates in loaded.report.errors_with_duplicates())


def _notes_on_providers(plan: Plan) -> Iterable[str]:
    for name in plan.providers:
        yield f"the program that gives services.{name} was not run: deploy with --allow-providers"


def _notes_on_images(loaded: Loaded, images: ImageAnswers, diagnostics: Iterable[Diagnostic]) -> Iterable[str]:
    """Say which images can't be read, once for each reason."""
    by_reason: dict[str, dict[str, str]] = {}
    for diagnostic in diagnostics:
        if diagnostic.code == "unread-image":
            service = loaded.project.services[str(diagnostic.path[1])]
            shown = by_reason.setdefault(str(images[service.image]), {})
            shown[loaded.origins.shown("services", service.name, "image")] = diagnostic.message
    for reason, shown in by_reason.items():
        listed = join_some(shown, _MAX_LISTED)
        yield next(iter(shown.values())) if len(shown) == 1 else f"each of {len(shown)} images ({listed}) {reason}"


def _more(loaded: Loaded, plan: Plan, images: ImageAnswers, offered: Capabilities, fixes: Fixes) -> list[Diagnostic]:
    """Compare the definition with its images and with the cluster."""
    report = Report()
    checker = Checker(loaded.project, loaded.origins, report)
    check_images(checker, images)
    check_ports(checker, images, fixes.uses, fixes.joined)
    check_hosts(checker, fixes.hosts)
    check_listeners(checker)
    check_local_urls(checker, fixes.public_urls, loaded.document)
    check_accepted_hosts(checker, fixes.public_hosts)
    check_endings(checker, fixes.uses, loaded.document)
    check_nested_folders(checker, fixes.volumes.nested.copied, fixes.volumes.mounts.values())
    check_cluster(checker, plan, loaded.settings, images, offered)
    check_image_users(loaded.project, loaded.settings, loaded.origins, report, lambda wanted: _users(images, wanted))
    return report.by_path()


def _users(images: ImageAnswers, wanted: Iterable[str]) -> Mapping[str, str]:
    found = ((image, images.get(image)) for image in wanted)
    return {image: facts.user for image, facts in found if isinstance(facts, ImageFacts)}


def effect_on_service(diagnostic: Diagnostic) -> Effect:
    if diagnostic.severity is Severity.ERROR:
        return Effect.CANNOT_RUN
    is_of_key = diagnostic.code in BY_KEY or (
        diagnostic.code == "no-effect" and is_honored_in_full_mode(diagnostic.path)
    )
    return effect_of(diagnostic.path) if is_of_key else CODES[diagnostic.code].effect


def _service_of(path: PathKey) -> str:
    """Return the service that a path is in; empty for the rest of the file."""
    return str(path[1]) if len(path) > 1 and path[0] in ("services", "jobs") else ""


def _relevant(diagnostics: list[Diagnostic], not_started: frozenset[str]) -> Iterable[Diagnostic]:
    """Leave out what another message says with more detail, and what is no difference for a service."""
    lost = {diagnostic.path for diagnostic in diagnostics if diagnostic.code in ("host-data", "not-in-image")}
    for diagnostic in diagnostics:
        is_repeated = diagnostic.code == "not-deployed" and diagnostic.path in lost
        if not is_repeated and not _is_harmless(diagnostic, not_started):
            yield replace(diagnostic, hint=_hint(diagnostic))


def _hint(diagnostic: Diagnostic) -> str:
    """Return what to do about a message, also without full mode."""
    own = hint_for(diagnostic.path) if diagnostic.code in BY_KEY else ""
    if own and diagnostic.hint == FULL_MODE_ALONE:
        return with_full_mode(diagnostic.path, own)
    if diagnostic.code == NO_ISOLATION:
        return with_full_mode(diagnostic.path, diagnostic.hint)
    return diagnostic.hint or own


def _is_harmless(diagnostic: Diagnostic, not_started: frozenset[str]) -> bool:
    match diagnostic.path:
        case ("volumes", _) | ("volumes", _, "name"):
            return diagnostic.code == "name-normalized"
        case ("secrets" | "configs", *_):
            return diagnostic.code in (*BY_KEY, "name-normalized")
        case ("services", name, "profiles"):
            return diagnostic.code in BY_KEY and name not in not_started
    return False
