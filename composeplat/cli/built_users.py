"""Users that a definition names in images that it builds: a deploy builds those first, and then makes the plan again.

Owns which images come first, and the messages about names that an image does not have. A preview builds nothing: it
reads the image of the last build.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composeplat import progress
from composeplat.cli.console import show_report
from composeplat.cli.image_users import with_built_numbers
from composeplat.cli.operations import Planned, stack_for
from composeplat.cli.selection import Choice
from composeplat.diagnostics import Report, join_some
from composeplat.engine.operations import build
from composeplat.engine.outcomes import DeployOptions, Outcome
from composeplat.engine.unchanged_builds import references_of
from composeplat.plan import make_plan
from composeplat.plan.image_users import awaited_users

_MAX_LISTED = 5
_CODE = "non-numeric-user"


def build_for_users(planned: Planned, options: DeployOptions) -> Outcome:
    """Build the images in which users are looked up; without a build, the images are those of the last one."""
    wanted = _wanted(planned, options)
    if not wanted:
        return Outcome()
    if options.build is False:
        return Outcome(images=_last_references(planned))
    return build.build(stack_for(planned), planned.plan, list(wanted), force=options.build is True)


def read_built_users(planned: Planned, choice: Choice, options: DeployOptions) -> Planned | None:
    """Return the plan with the numbers of users in images as they were built last."""
    wanted = _wanted(planned, options)
    if not wanted:
        return planned
    references = _last_references(planned)
    if missing := join_some(sorted(wanted.keys() - references.keys()), _MAX_LISTED):
        progress.note(f"the numbers of users are not known before the images are built: {missing}")
    return plan_with_users(planned, choice, options, references)


def plan_with_users(
    planned: Planned, choice: Choice, options: DeployOptions, images: Mapping[str, str]
) -> Planned | None:
    """Return the plan with the numbers of users in built images; None once messages are shown that are errors.

    Only names that have no numbers still are shown; the other messages of the plan were shown before.
    """
    wanted = _wanted(planned, options)
    if not wanted:
        return planned
    loaded = with_built_numbers(planned.loaded, wanted, images)
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    report = Report()
    for found in loaded.report.sorted():
        if found.code == _CODE:
            report.add(found.code, found.span, found.path, found.message, found.hint)
    if show_report(report, strict=choice.strict, verbose=choice.verbose, as_json=choice.json_diagnostics):
        return None
    return replace(planned, loaded=loaded, plan=plan.with_confidential(planned.plan.confidential))


def _wanted(planned: Planned, options: DeployOptions) -> dict[str, set[str]]:
    chosen = planned.plan.select_services(options.services)
    return awaited_users(planned.loaded.project, planned.loaded.settings, chosen)


def _last_references(planned: Planned) -> dict[str, str]:
    stack = stack_for(planned)
    with stack.interrupts:
        stack.workspace.prepare(builds=False)
        alone = planned.plan.images_only
        return references_of(alone, alone.images, stack.state)
