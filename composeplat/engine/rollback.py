"""Roll services back to what ran before a deploy that failed.

Owns what is applied again: the objects of a service as the state had them before the deploy, built images by digest.
Pulumi applies them, so that the state agrees with the cluster, and the next preview shows the change again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from composeplat.cluster.api import Api
from composeplat.cluster.cause import Cause
from composeplat.components.resource_names import ResourceName, Urns
from composeplat.engine import pulumi_runs
from composeplat.engine.autoscaling import autoscaled_replicas, with_autoscaled
from composeplat.engine.dev_workloads import dev_workloads_by_service, without_pods
from composeplat.engine.events import Events
from composeplat.engine.failure_logs import failures_of, note_refusals
from composeplat.engine.monitor import Monitor
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import LiveState
from composeplat.engine.pulumi_args import deploy_args, registered_part
from composeplat.engine.pulumi_process import PulumiResult
from composeplat.engine.recorded_plan import images_of, reveal, secret_values
from composeplat.engine.rollout import open_rollout
from composeplat.engine.stack import Stack
from composeplat.plan.desired import DesiredObject, Plan, ServicePlan
from composeplat.plan.resource_keys import ResourceKind
from composeplat.system.records import record

Objects = tuple[DesiredObject, ...]


@record
class RollBack:
    """The objects that ran before a deploy, by the name of the service in the cluster."""

    objects: Mapping[str, Objects]

    @classmethod
    def remember(cls, stack: Stack, plan: Plan, chosen: Collection[str], options: DeployOptions) -> RollBack:
        """Read what runs of the services that go back if the deploy fails: no Job, and nothing if nobody waits."""
        may_go = chosen if options.wait else ()
        rolling = [s for s in plan.services if s.rolls_back and s.name in may_go and s.workload_kind != "Job"]
        if not rolling or not stack.state.get("resources"):
            return cls({})
        state = stack.workspace.reveal_state()
        objects = {s.cluster_name: found for s in rolling if (found := _objects_of(s, plan, state))}
        for found in objects.values():
            stack.hide_secrets(secret_values([desired.manifest for desired in found]))
        return cls(objects)

    def run(
        self, stack: Stack, api: Api, plan: Plan, events: Events, options: DeployOptions, live_state: LiveState
    ) -> None:
        """Apply the objects again of those services that the deploy has changed, and wait until they are ready."""
        if not self.objects:
            return
        changed = {change.key.name for change in events.effective_changes if change.key}
        going = {s.name: s for s in plan.services if s.cluster_name in self.objects and s.cluster_name in changed}
        if not going or events.has_failed_build:
            return
        stack.note(f"rolling back, as the deploy failed: {', '.join(going)}")
        back = _with_objects(plan, {name: self.objects[s.cluster_name] for name, s in going.items()})
        back = _with_present_pods(api, back, live_state)
        # The plan has no dependencies now: whatever the deploy has held back would not wait for these any more.
        services = tuple(sorted(going))
        build = False if options.build is False else None
        again = replace(options, services=services, rerun_jobs=False, build=build)
        args = ["up", *pulumi_runs.UNATTENDED_ARGS, *deploy_args(back, stack.state, live_state, again)]
        with open_rollout(stack, api, back, going, options.timeout) as rollout:
            handlers = pulumi_runs.RunHandlers(rollout.handle, rollout.tick)
            registered = registered_part(back, services)
            found, result = pulumi_runs.run_program(stack, back, args, going, handlers=handlers, registered=registered)
            stack.stop_if_interrupted()
            note_refusals(stack, rollout.monitor, found, result)
            refused = _refused(rollout.monitor, going, found, result)
            if going.keys() - refused.keys():
                rollout.wait()
            failed = {failure.service: failure.cause for failure in failures_of(rollout.monitor, api)}
        for name, service in going.items():
            stack.note(f"{name}: {self._describe(service, refused.get(name, ''), failed.get(name))}")

    def _describe(self, service: ServicePlan, refusal: str, failure: Cause | None) -> str:
        if refusal:
            return f"not rolled back: {refusal}"
        images = ", ".join(images_of(self.objects[service.cluster_name]))
        return f"rolled back to {images}{f', and it fails too: {failure.message}' if failure else ''}"


def _refused(monitor: Monitor, going: Collection[str], events: Events, result: PulumiResult) -> dict[str, str]:
    """Return why services still have the objects of the deploy that failed; empty if none has."""
    left = [name for name in going if name not in monitor.applied] if result.status else []
    return {
        name: monitor.causes[name].message if name in monitor.causes else str(pulumi_runs.run_error(result, events))
        for name in left
    }


def _objects_of(service: ServicePlan, plan: Plan, state: Mapping[str, Any]) -> Objects:
    component = Urns(plan.namespace, plan.environment).component(ResourceKind.SERVICE, service.cluster_name)
    planned = {desired.key: desired for desired in service.objects}
    found: list[DesiredObject] = []
    for resource in state.get("resources") or []:
        name = ResourceName.from_urn(str(resource["urn"]))
        is_object = str(resource.get("type", "")).startswith("kubernetes:") and not resource.get("delete")
        if is_object and name is not None and resource.get("parent") == component:
            needs = planned[name.key].needs if name.key in planned else ()
            found.append(DesiredObject(key=name.key, manifest=reveal(resource["inputs"]), needs=needs))
    return tuple(found)


def _with_objects(plan: Plan, objects: Mapping[str, Objects]) -> Plan:
    """Return the plan with other objects of some services, which wait for no dependency."""
    services = tuple(
        replace(service, objects=objects[service.name]) if service.name in objects else service
        for service in plan.services
    )
    return replace(plan, services=services, edges=())


def _with_present_pods(api: Api, plan: Plan, live_state: LiveState) -> Plan:
    """Return the plan with the numbers of pods that autoscalers chose since, and without pods of what is developed."""
    developed = dev_workloads_by_service(live_state.object_metadata, plan.environment)
    return without_pods(with_autoscaled(plan, autoscaled_replicas(api, plan, live_state)), developed)
