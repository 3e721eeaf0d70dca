"""Find out without Pulumi that no image would be built, and keep the record by which the next build does.

Owns when a build needs Pulumi: if files, versions or variables have changed since the last build that ended well, or
if the state has other images than it had then. The cluster is not asked, as a build changes nothing in it.
Must not decide what the inputs of a build are: :mod:`~composeplat.engine.build_files` does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from composeplat.diagnostics import ComposeplatError
from composeplat.engine.build_files import Doubt
from composeplat.engine.builder import builder_variables
from composeplat.engine.no_change import Digester, Record, doubt_about_inputs, doubt_about_state
from composeplat.engine.no_change_check import (
    digest_inputs,
    doubt_about_changes_since,
    make_digester,
    raise_doubt,
    read_record,
)
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.pulumi_args import image_urn
from composeplat.engine.stack import Stack
from composeplat.plan.desired import ImageBuild, Plan
from composeplat.system.atomic import write_private

logger = logging.getLogger(__name__)

_FACTS = ("ref", "digest", "contextHash")


def references_of(plan: Plan, images: Sequence[ImageBuild], state: Mapping[str, Any]) -> dict[str, str]:
    """Return name and digest of each image in a state, by service; without those that the state lacks."""
    known = {str(resource["urn"]): resource.get("outputs") or {} for resource in state.get("resources") or ()}
    found = {image.service: known.get(image_urn(plan, image), {}).get("ref") for image in images}
    return {service: reference for service, reference in found.items() if isinstance(reference, str)}


def image_facts(plan: Plan, images: Sequence[ImageBuild], state: Mapping[str, Any]) -> list[Any]:
    """Return what a state has of images, or raise a :class:`Doubt` if one of them was not built."""
    known = {str(resource["urn"]): resource for resource in state.get("resources") or ()}
    facts = []
    for image in images:
        resource = known.get(image_urn(plan, image), {})
        outputs = resource.get("outputs") or {}
        if not resource.get("id") or not isinstance(outputs.get("ref"), str):
            raise Doubt(f"the image of {image.service} was not built")
        facts.append([image.service, resource["id"], [outputs.get(name) for name in _FACTS]])
    return facts


@dataclass(slots=True, kw_only=True)
class BuildCheck:
    """The check of one build: before it, whether it is needed; after it, what the next build may rely on."""

    stack: Stack
    plan: Plan
    images: Sequence[ImageBuild]
    digester: Digester
    began_ns: int
    inputs: Mapping[str, str]
    """The digests of all inputs before the build; empty if this build can neither use nor leave a record."""

    @classmethod
    def begin(cls, stack: Stack, plan: Plan, images: Sequence[ImageBuild]) -> Self:
        stack.workspace.builder = builder_variables(stack.variables, stack.target, stack.workspace.data_folder)
        digester, began_ns = make_digester(stack), time.time_ns()
        try:
            inputs = digest_inputs(stack, plan, DeployOptions(), digester)
        except Doubt as doubt:
            logger.debug("Pulumi has to look for changed images: %s", doubt)
            inputs = {}
        if inputs:
            inputs["images"] = digester.digest(sorted(image.service for image in images))
        return cls(stack=stack, plan=plan, images=images, digester=digester, began_ns=began_ns, inputs=inputs)

    @property
    def _record_file(self) -> Path:
        return self.stack.workspace.folder / "unchanged-builds.json"

    def find_unchanged(self) -> dict[str, str] | None:
        """Return name and digest of each image if none would be built; none if Pulumi has to look."""
        if not self.inputs:
            return None
        with self.stack.workspace.hold_lock("build"):
            try:
                record = read_record(self.stack, self._record_file)
                raise_doubt(doubt_about_inputs(record, self.inputs))
                state = self.stack.state
                raise_doubt(doubt_about_state(state, has_changes=False))
                raise_doubt("" if record.state == self._digest(state) else "the state has other images")
            except (Doubt, ComposeplatError) as doubt:
                logger.debug("Pulumi has to look for changed images: %s", doubt)
                return None
        self.stack.stop_if_interrupted()
        return references_of(self.plan, self.images, state)

    def keep(self, *, has_changes: bool) -> None:
        """Write the record of a build that ended well, under its lock."""
        if not self.inputs or self.stack.is_interrupted:
            return
        try:
            if has_changes:
                raise_doubt(doubt_about_changes_since(self.began_ns, self.images))
            state = self._digest(self.stack.state)
            record = Record(inputs=self.inputs, parts={}, state=state, objects={}, resources=len(self.images))
            write_private(self._record_file, record.to_text())
        except (Doubt, OSError) as doubt:
            logger.debug("the next build has to ask Pulumi too: %s", doubt)

    def _digest(self, state: Mapping[str, Any]) -> str:
        return self.digester.digest(image_facts(self.plan, self.images, state))
