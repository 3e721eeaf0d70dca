"""The plan with selectors that workloads have already, as a selector can never change.

Owns the rest that a selector needs: the labels of the pods, and the Services that lead to them. So old and new pods are
found by the same labels while new ones replace old ones, and pods keep our own labels too.
Pure: a plan and selectors come in, another plan goes out. Only programs use it, which have the selector as plain data;
``platform import`` needs none (:mod:`composeplat.engine.adoption`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composeplat.diagnostics import ComposeplatError
from composeplat.names import LABEL_PREFIX, is_label_key, is_label_value
from composeplat.plan.desired import DesiredObject, Manifest, Plan, ServicePlan
from composeplat.plan.selection import no_such_service
from composeplat.plan.templates import SELECTING, pod_template, with_pod_template


def keep_selectors(plan: Plan, selectors: Mapping[str, Mapping[str, str]]) -> Plan:
    """Return the plan in which some services, by their names in the definition, keep the selectors given."""
    known = {service.name: service for service in plan.services}
    for name, selector in selectors.items():
        if name not in known:
            raise no_such_service(name, set(known), plan.providers)
        _check(known[name], selector)
    by_workload = {known[name].workload_name: selector for name, selector in selectors.items()}
    services = tuple(
        replace(
            service, objects=tuple(_keep(desired, by_workload[service.workload_name]) for desired in service.objects)
        )
        if service.workload_name in by_workload
        else service
        for service in plan.services
    )
    return replace(plan, services=services)


def _check(service: ServicePlan, selector: Mapping[str, str]) -> None:
    whose = f"the selector of service '{service.name}'"
    if service.workload_kind not in SELECTING:
        raise ComposeplatError(f"{whose} can't be kept: it is a {service.workload_kind}, which has none of its own")
    if not selector:
        raise ComposeplatError(f"{whose} is empty", "give the labels of spec.selector.matchLabels")
    for key, value in selector.items():
        if not is_label_key(str(key)) or not is_label_value(str(value)):
            raise ComposeplatError(f"{whose} has an invalid label: {key}: {value}")
        if str(key).startswith(f"{LABEL_PREFIX}/"):
            raise ComposeplatError(f"{whose} has the label {key}, which is the plan's own", "leave it out")


def _keep(desired: DesiredObject, selector: Mapping[str, str]) -> DesiredObject:
    manifest = desired.manifest
    if desired.kind == "Service" and "selector" in manifest["spec"]:
        return replace(desired, manifest={**manifest, "spec": {**manifest["spec"], "selector": dict(selector)}})
    return replace(desired, manifest=_keep_in(manifest, selector)) if desired.kind in SELECTING else desired


def _keep_in(workload: Manifest, selector: Mapping[str, str]) -> Manifest:
    template = pod_template(workload)
    metadata = {**template["metadata"], "labels": {**template["metadata"]["labels"], **selector}}
    changed = {**workload, "spec": {**workload["spec"], "selector": {"matchLabels": dict(selector)}}}
    return with_pod_template(changed, {**template, "metadata": metadata})
