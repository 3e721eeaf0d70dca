"""The Deployment, StatefulSet, DaemonSet, Job or CronJob of a service, with its pod template."""

from __future__ import annotations

from composeplat.compose.cron import NEVER as NEVER_DUE
from composeplat.compose.model import NEVER, Service
from composeplat.compose.rollout_model import Schedule
from composeplat.names import ENVIRONMENT_LABEL, SERVICE_LABEL, clean
from composeplat.plan.autoscale import replicas
from composeplat.plan.desired import DesiredObject, Manifest
from composeplat.plan.identity import Identity
from composeplat.plan.scheduling import ready_seconds, rolling_update

_DEFAULT_ATTEMPTS = 6
_HISTORY = 3
_RECREATE = "Recreate"


def plan_workload(
    service: Service, identity: Identity, template: Manifest, claim_templates: list[Manifest]
) -> Manifest:
    name = clean(service.name)
    metadata = identity.service_metadata(name, name, service.labels)
    match service.workload_kind:
        case "Job":
            return {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": metadata,
                "spec": _job(service, template),
            }
        case "CronJob":
            return {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": metadata,
                "spec": _cron_job(service, identity, template),
            }
        case "StatefulSet":
            spec = _stateful_set(service, identity, template, claim_templates)
            return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
        case "DaemonSet":
            spec = _daemon_set(service, identity, template)
            return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}
        case _:
            spec = _deployment(service, identity, template)
            return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _deployment(service: Service, identity: Identity, template: Manifest) -> Manifest:
    strategy = _RECREATE if service.update_policy == "recreate" else "RollingUpdate"
    numbers = rolling_update(service) if strategy == "RollingUpdate" else {}
    return {
        **replicas(service),
        **ready_seconds(service),
        "selector": {"matchLabels": identity.selector(clean(service.name))},
        "strategy": {"type": strategy, **numbers},
        "template": template,
    }


def ends_pods_first(desired: DesiredObject) -> bool:
    """Check for a Deployment that ends its old pods first: one that rolls can't become it, and is replaced."""
    return desired.kind == "Deployment" and desired.manifest["spec"].get("strategy", {}).get("type") == _RECREATE


def _stateful_set(
    service: Service, identity: Identity, template: Manifest, claim_templates: list[Manifest]
) -> Manifest:
    name = clean(service.name)
    strategy = "OnDelete" if service.update_policy == "on-delete" else "RollingUpdate"
    spec: Manifest = {
        "serviceName": name,
        **replicas(service),
        **ready_seconds(service),
        "selector": {"matchLabels": identity.selector(name)},
        # Compose starts all containers of a service at once; in order, a broken pod would delay the others.
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": strategy},
        "template": template,
    }
    if claim_templates:
        spec["volumeClaimTemplates"] = claim_templates
    return spec


def _daemon_set(service: Service, identity: Identity, template: Manifest) -> Manifest:
    strategy = "OnDelete" if service.update_policy == "on-delete" else "RollingUpdate"
    numbers = rolling_update(service) if strategy == "RollingUpdate" else {}
    return {
        **ready_seconds(service),
        "selector": {"matchLabels": identity.selector(clean(service.name))},
        "updateStrategy": {"type": strategy, **numbers},
        "template": template,
    }


def _job(service: Service, template: Manifest) -> Manifest:
    default = 0 if service.restart == NEVER else _DEFAULT_ATTEMPTS
    spec: Manifest = {"backoffLimit": default if service.max_attempts is None else service.max_attempts}
    if service.replicas != 1:
        spec.update(completions=service.replicas, parallelism=service.replicas)
    spec["template"] = template
    return spec


def _cron_job(service: Service, identity: Identity, template: Manifest) -> Manifest:
    schedule = service.scheduling.schedule or Schedule(cron="")
    # Without the label of who manages them: its Jobs are the CronJob's, and no deploy removes them.
    labels = {ENVIRONMENT_LABEL: identity.environment, SERVICE_LABEL: clean(service.name)}
    return {
        "schedule": schedule.cron or NEVER_DUE,
        "timeZone": schedule.timezone,
        "concurrencyPolicy": schedule.concurrency.capitalize(),
        **({"startingDeadlineSeconds": schedule.max_delay_s} if schedule.max_delay_s else {}),
        "successfulJobsHistoryLimit": _HISTORY,
        "failedJobsHistoryLimit": _HISTORY,
        "suspend": not schedule.cron,
        "jobTemplate": {"metadata": {"labels": labels}, "spec": _job(service, template)},
    }
