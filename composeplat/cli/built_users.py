"""Users that a definition names in images that it builds: a deploy builds those first, and then makes the plan again.

Owns which images come first, and the messages about names that an image does not have. A preview builds nothing: it
reads the image of the last build.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Self

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
from composeplat.system.records import record

_MAX_LISTED = 5
_CODE = "non-numeric-user"


@record
class BuiltUsers:
    """The users of some services that are looked up in images of the definition, by the service that builds one."""

    planned: Planned
    names: Mapping[str, Collection[str]]

    @classmethod
    def find(cls, planned: Planned, services: Collection[str]) -> Self:
        chosen = planned.plan.select_services(services)
        return cls(planned, awaited_users(planned.loaded.project, planned.loaded.settings, chosen))

    def build(self, options: DeployOptions) -> Outcome:
        """Build the images; without a build, the images are those of the last one."""
        if not self.names:
            return Outcome()
        if options.build is False:
            return Outcome(images=self.last_references())
        stack = stack_for(self.planned)
        return build.build(stack, self.planned.plan, list(self.names), force=options.build is True)

    def last_references(self) -> dict[str, str]:
        stack = stack_for(self.planned)
        with stack.interrupts:
            stack.workspace.prepare(builds=False)
            alone = self.planned.plan.images_only
            with stack.workspace.lock("preview"):
                return references_of(alone, alone.images, stack.state)

    def make_plan(self, choice: Choice, images: Mapping[str, str]) -> Planned | None:
        """Return the plan with the numbers of the users; None once messages are shown that are errors.

        Only names that have no numbers still are shown; the other messages of the plan were shown before.
        """
        planned = self.planned
        if not self.names:
            return planned
        loaded = with_built_numbers(planned.loaded, self.names, images)
        plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
        report = Report()
        for found in loaded.report.sorted():
            if found.code == _CODE:
                report.add(found.code, found.span, found.path, found.message, found.hint)
        if show_report(report, strict=choice.strict, verbose=choice.verbose, as_json=choice.json_diagnostics):
            return None
        return replace(planned, loaded=loaded, plan=plan.with_confidential(planned.plan.confidential))


def read_built_users(planned: Planned, choice: Choice, services: Collection[str] = ()) -> Planned | None:
    """Return the plan with the numbers of users in images as they were built last."""
    users = BuiltUsers.find(planned, services)
    if not users.names:
        return planned
    references = users.last_references()
    if missing := join_some(sorted(users.names.keys() - references.keys()), _MAX_LISTED):
        progress.note(f"the numbers of users are not known before the images are built: {missing}")
    return users.make_plan(choice, references)
