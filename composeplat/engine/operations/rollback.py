"""Roll an environment back to a revision of its history.

Owns that the objects of a revision become a plan, which is previewed and deployed as any other: images by digest, with
the values that they had. Pulumi applies it, so that the state agrees with the cluster, and the next preview shows the
differences of the file.
Data is never rolled back: claims stay as they are now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from composeplat.cluster.api import Api
from composeplat.engine.builder import DOCKER_HOST, docker_host_of
from composeplat.engine.earlier_inputs import reveal_inputs
from composeplat.engine.events import Change, Operation
from composeplat.engine.history import read_facts, read_history
from composeplat.engine.operations.deploy import deploy
from composeplat.engine.operations.preview import preview as preview_plan
from composeplat.engine.outcomes import DeployOptions, Outcome
from composeplat.engine.preflight import CLAIM, api_path, built_images
from composeplat.engine.provider_values import Providers
from composeplat.engine.pulumi_args import image_urn
from composeplat.engine.recorded_plan import left_claims, restore_plan, secret_values, with_present_claims
from composeplat.engine.revisions import Revision, choose_target, leaves_failure, left_out
from composeplat.engine.stack import Stack
from composeplat.plan.desired import BuiltImage, ImageBuild, Plan
from composeplat.plan.resource_keys import ResourceKind
from composeplat.system.records import record


@record
class Target:
    """The revision that a rollback goes to, and its plan."""

    revision: Revision
    plan: Plan
    docker_host: str = ""
    """The Docker that built its images, as the state has it."""
    completes_another: bool = False
    """Whether a deployment failed or was killed: only one that ends well shows that what runs is good."""

    def set_up(self, stack: Stack) -> None:
        """Set a stack up for a rollback, in which no image is built and no program of a provider runs."""
        stack.providers = Providers()
        # Pulumi refuses another configuration of its provider of builds where it leaves these alone.
        others = {name: value for name, value in stack.variables.items() if name != DOCKER_HOST}
        stack.variables = {**others, **({DOCKER_HOST: self.docker_host} if self.docker_host else {})}


def find_target(stack: Stack, present: Plan, number: int | None) -> Target:
    """Find the revision, and make its plan; ``present`` is the plan of the file as it is now."""
    with stack.interrupts, Api(stack.target.access) as api:
        stack.check_project("rollback", api)
        revisions = read_history(api, stack.namespace, stack.environment_name)
        revision = choose_target(revisions, number)
        if number is None:
            _note_left_out(stack, left_out(revisions, revision))
        stack.workspace.prepare(builds=bool(present.images))
        with stack.workspace.lock("preview"):
            stack.check_cluster()
            facts = read_facts(api, stack, revision)
            state = stack.state
            left = {
                name: api.find(api_path(CLAIM, stack.namespace, name)) for name in left_claims(facts["inputs"], state)
            }
            inputs = reveal_inputs(stack.workspace, state, with_present_claims(facts["inputs"], state, left))
    stack.hide_secrets(secret_values(inputs))
    stack.stop_if_interrupted()
    plan = restore_plan(facts["plan"], inputs, present)
    plan = replace(plan, images=_kept_images(stack, plan, present))
    return Target(revision, plan, docker_host_of(state) or "", leaves_failure(revisions))


def _note_left_out(stack: Stack, revisions: Iterable[Revision]) -> None:
    for found in revisions:
        stack.note(
            f"revision {found.number} is left out: nothing waited until it was ready, and a rollback followed it; to"
            f" deploy it all the same: platform rollback {found.number}"
        )


def _kept_images(stack: Stack, plan: Plan, present: Plan) -> tuple[ImageBuild, ...]:
    """Return the images that the state has of these services: they stay there, so that none is built again."""
    names = {service.name: service.cluster_name for service in plan.services}
    same = {service.name for service in present.services if names.get(service.name) == service.cluster_name}
    built = built_images(stack.state)
    kept: list[ImageBuild] = []
    for image in present.images:
        bases = {base.service for base in image.bases.values() if isinstance(base, BuiltImage)}
        is_known = image.service in same and image_urn(present, image) in built
        if is_known and bases <= {other.service for other in kept}:
            kept.append(image)
    return tuple(kept)


def preview(stack: Stack, target: Target, options: DeployOptions) -> Outcome:
    """Show the changes of a rollback, without any change."""
    target.set_up(stack)
    outcome = preview_plan(stack, target.plan, options)
    outcome.notes += notes_of(target, outcome.changes)
    return outcome


def apply(stack: Stack, target: Target, options: DeployOptions) -> Outcome:
    """Deploy the plan of a revision."""
    target.set_up(stack)
    return deploy(stack, target.plan, options)


def notes_of(target: Target, changes: Iterable[Change]) -> list[str]:
    """Describe the effects of a rollback that the list of its changes does not show."""
    found = [change for change in changes if change.operation in (Operation.CREATE, Operation.REPLACE)]
    jobs = sorted({change.name for change in found if change.kind == "Job"})
    notes = [f"job {name} runs again, as it was in revision {target.revision.number}" for name in jobs]
    volumes = [volume.name for volume in target.plan.volumes]
    templates = any(
        desired.manifest["spec"].get("volumeClaimTemplates")
        for service in target.plan.services
        for desired in service.objects
        if desired.key.kind is ResourceKind.WORKLOAD
    )
    if volumes or templates:
        which = f"volumes ({', '.join(volumes)})" if volumes else "volumes"
        notes.append(f"the data of {which} stays as it is: a rollback never changes data")
    return notes
