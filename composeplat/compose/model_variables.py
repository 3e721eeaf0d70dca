"""The variables of services that use AI models: the endpoint and the name of each.

Owns the rules for these: nothing runs a model here, so each that is used must say what serves it.
A variable of ``environment`` wins, so that a service can have another endpoint than the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from composeplat.compose.model import Project, Service
from composeplat.compose.origins import Checker, model_path


def with_model_variables(checker: Checker) -> Project:
    """Return the project whose services have the variables of their models."""
    project = checker.project
    services = {
        name: replace(service, environment={**dict(_variables(checker, service)), **service.environment})
        if service.models
        else service
        for name, service in project.services.items()
    }
    _check_unused(checker)
    return replace(project, services=services) if services != project.services else project


def _variables(checker: Checker, service: Service) -> Iterator[tuple[str, str]]:
    for use in service.models:
        path = model_path(service.name, use.name)
        found = checker.project.models.get(use.name)
        if found is None and not checker.is_undefined("models", use.name, checker.project.models):
            continue
        if found is None:
            message = f"names a model that the top-level 'models' does not declare: {checker.shown(use.name, path)}"
            hint = checker.report.near(use.name, checker.project.models)
            checker.add("undefined-model", path, message, hint or "declare it: models: {NAME: {model: …}}")
            continue
        yield use.model_var, found.model
        if found.endpoint:
            yield use.endpoint_var, found.endpoint
        elif use.endpoint_var not in service.environment and not checker.report.has_error("models", use.name):
            message = f"is used by '{service.name}' and has no 'x-endpoint': no model runs here"
            hint = "name what serves it, as in x-endpoint: http://ollama:11434/v1"
            checker.add("missing-key", ("models", use.name), message, hint, at_key=True)


def _check_unused(checker: Checker) -> None:
    used = {use.name for service in checker.project.services.values() for use in service.models}
    for name in checker.project.models:
        if name not in used:
            checker.add("no-effect", ("models", name), "has no effect: no service uses it", at_key=True)
