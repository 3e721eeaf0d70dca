"""The plan of a ``ComposeStack``: its Compose file, read with the arguments of the program.

Owns how errors and warnings of a definition become those of a Pulumi program, and which names an output may not
decide.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pulumi

from composeplat.cluster.kubeconfig import DEFAULT_NAMESPACE
from composeplat.components.default_cluster import DefaultCluster
from composeplat.components.late_texts import LateTexts, VariableValue
from composeplat.components.plain_arguments import check_functions, plain_list, plain_mapping
from composeplat.compose.load import Loaded, find_logins, load_definition
from composeplat.compose.load.build_inputs import check_builds
from composeplat.compose.model import IMAGE, Project, Service
from composeplat.compose.options import Request
from composeplat.compose.placeholders import has_placeholder, late_hint, show_placeholders
from composeplat.compose.shared_images import builders_of, image_identity
from composeplat.compose.values import BadValue, parse_image
from composeplat.compose.variables import asks_registries, looks_secret
from composeplat.diagnostics import ComposeplatError, Diagnostic, InvalidDefinition, Severity, dotted, quoted
from composeplat.plan import Plan, make_plan
from composeplat.plan.extras import ExtraObject, Extras, check_services, plan_extras
from composeplat.plan.image_users import named_users, with_image_users
from composeplat.plan.images import check_registries
from composeplat.plan.security import check_image_users
from composeplat.publication import Publication, ToCluster, publications
from composeplat.registry.credentials import Login, read_logins
from composeplat.registry.image_config import read_users
from composeplat.registry.image_users import read_image_users
from composeplat.system.folders import cache_folder

#: Errors of keys, whatever their values are.
_OF_KEYS = ("duplicate-key", "invalid-type", "missing-key", "unknown-key")


def plan_definition(
    request: Request,
    resource: pulumi.Resource,
    images: Mapping[str, str],
    late: LateTexts,
    cluster: DefaultCluster,
    *,
    gives_variables: bool,
) -> Plan:
    """Load and plan; errors end the program with every message, as errors of Pulumi."""
    try:
        loaded = load_definition(request)
        loaded = _with_image_users(_with_images_of_program(loaded, images, request), plain_logins(request.logins))
        plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
        _check(loaded, plan, request, late)
    except InvalidDefinition as error:
        raise pulumi.RunError("\n".join(_explain_all(error, late))) from error
    except ComposeplatError as error:
        raise pulumi.RunError(with_hint(error)) from error
    if not request.namespace and plan.namespace == (request.context_namespace or DEFAULT_NAMESPACE):
        cluster.warn_of_namespace(resource, plan.namespace)
    sent = publications(loaded, plan, context=cluster.name)
    _report(loaded, plan, resource, [_of_program(found) if gives_variables else found for found in sent])
    return plan.with_confidential(loaded.confidential)


def _check(loaded: Loaded, plan: Plan, request: Request, late: LateTexts) -> None:
    """Make the checks that need images, files or values of the program; raise all errors together."""
    check_image_users(
        loaded.project,
        loaded.settings,
        loaded.origins,
        loaded.report,
        lambda names: read_users(_known(names), os.environ, plain_logins(request.logins)),
    )
    check_builds(plan.own_builds, loaded.origins, loaded.report)
    _refuse_providers(loaded)
    _refuse_late_names(loaded, plan, late)
    loaded.report.raise_if_errors()
    check_registries(plan.images, "give 'registry'")


def _of_program(publication: Publication) -> Publication:
    return replace(publication, of_program=True) if isinstance(publication, ToCluster) else publication


def _report(loaded: Loaded, plan: Plan, resource: pulumi.Resource, published: Iterable[Publication]) -> None:
    """Show the warnings of a definition, what it needs, and what it publishes."""
    for diagnostic in loaded.report.at_least(Severity.WARNING):
        pulumi.log.warn(with_hint(diagnostic), resource=resource)
    for line in loaded.report.summaries():
        pulumi.log.info(show_placeholders(line), resource=resource)
    for text in (*_unchecked(plan), *(publication.text for publication in published)):
        pulumi.log.info(show_placeholders(text), resource=resource)


def _with_image_users(loaded: Loaded, logins: Mapping[str, Login]) -> Loaded:
    if not asks_registries(os.environ):
        return loaded
    wanted, folder = named_users(loaded.project), cache_folder(os.environ) / "users"
    users = read_image_users(wanted, folder, os.environ, logins, needs_numbers=bool(loaded.settings.pod_security))
    return replace(loaded, project=with_image_users(loaded.project, users))


def _refuse_providers(loaded: Loaded) -> None:
    """Report services that a program would give: Pulumi runs its own program for a preview too."""
    for name in loaded.project.providers:
        path = ("services", name, "provider")
        message = f"{dotted(path)} would run a program on this machine, which 'platform deploy' alone does"
        hint = "deploy with it, or leave the service out and set its dependents' variables in 'environment'"
        loaded.report.add("provider-refused", loaded.origins.at(*path), path, message, hint)


def _unchecked(plan: Plan) -> Iterator[str]:
    """Name the objects of others that a plan requires: ``platform`` checks that they exist, Pulumi does not."""
    for required in plan.required:
        yield f"{dotted(required.path)} needs a {required.kind} that is not checked here: without it, pods do not start"


def read_shell(variables: Mapping[str, VariableValue] | None, late: LateTexts) -> dict[str, str]:
    """Return the variables that a program gives, else those of its process."""
    given = dict(os.environ) if variables is None else plain_mapping("variables", variables, may_have_outputs=True)
    return {key: late.add(key, value, is_secret=looks_secret(key)) for key, value in given.items()}


def parse_images(images: Mapping[str, pulumi.Input[str] | None] | None, late: LateTexts) -> dict[str, str]:
    """Check the images that a program gives; those that are outputs when their values are known."""
    return {
        service: _check_image(service, image, parse_image)
        if isinstance(image, str)
        else late.add(f"images[{service}]", _checked_output(service, image))
        for service, image in plain_mapping("images", images, may_have_outputs=True).items()
        if image is not None
    }


def _checked_output(service: str, image: pulumi.Input[str]) -> pulumi.Output[str]:
    value: pulumi.Output[str] = pulumi.Output.from_input(image)
    return value.apply(lambda text: _check_image(service, text, parse_pushed))


def _check_image(service: str, image: str, parse: Callable[[str], str]) -> str:
    try:
        return parse(image)
    except BadValue as error:
        raise pulumi.RunError(f"images[{service!r}] {error}, not {quoted(str(image))}") from error


def parse_pushed(image: object) -> str:
    if not isinstance(image, str) or not image or any(map(str.isspace, image)):
        raise BadValue("must be the reference of an image; without a push, an image has no digest")
    return image


def _with_images_of_program(loaded: Loaded, images: Mapping[str, str], request: Request) -> Loaded:
    project, settings = _with_images(loaded.project, images), loaded.settings
    logins = find_logins(project, settings, request) if settings.pull_secret and images else settings.logins
    return replace(loaded, project=project, settings=replace(settings, logins=logins))


def _with_images(project: Project, images: Mapping[str, str]) -> Project:
    """Let services run other images than the definition says, which are not built."""
    for name in images:
        if name not in project.services and name not in project.inactive:
            raise ComposeplatError(f"'images' names a service that the definition does not have: '{name}'")
    named = {identity: images[name] for identity, name in builders_of(project).items() if name in images}
    services = {name: _with_image(found, images, named) for name, found in project.services.items()}
    return replace(project, services=services)


def _with_image(service: Service, images: Mapping[str, str], named: Mapping[tuple[str, ...], str]) -> Service:
    """Return a service with its image, and with the ``named`` ones in hooks and volumes."""
    hooks = tuple(replace(hook, image=_other(hook.image, named)) for hook in service.container.pre_start)
    mounts = tuple(
        replace(mount, source=_other(mount.source, named)) if mount.kind == IMAGE else mount for mount in service.mounts
    )
    container = replace(service.container, pre_start=hooks)
    service = replace(service, container=container, mounts=mounts)
    name = container.image_of or service.name
    found = images.get(name if name in images else container.built_by)
    if found is None:
        return service
    return replace(service, image=found, build=None, container=replace(container, built_by=""))


def _other(image: str, named: Mapping[tuple[str, ...], str]) -> str:
    return named.get(image_identity(image), image) if image else ""


def _known(images: Iterable[str]) -> list[str]:
    return [image for image in images if not has_placeholder(image)]


def _refuse_late_names(loaded: Loaded, plan: Plan, late: LateTexts) -> None:
    """Report names that would be made of an output: objects are known by their names."""
    places = {use.name: use.span for use in loaded.references}
    for desired in plan.objects:
        for name in dict.fromkeys(late.names_in_part(f"{desired.key}/{desired.name}")):
            message = f"the name of a {desired.kind} is made of an output"
            loaded.report.add("invalid-name", places.get(name) or loaded.origins.at(), (), message, late_hint([name]))
        for name in dict.fromkeys(late.damaged_in(desired.manifest)) if late.names else ():
            message = f"a {desired.kind} would have a key that is made of an output, or a changed output"
            loaded.report.add("invalid-value", places.get(name) or loaded.origins.at(), (), message, late_hint([name]))


def plan_extra_objects(
    plan: Plan, extras: Extras | None, transforms: Mapping[str, object] | None
) -> dict[str, tuple[ExtraObject, ...]]:
    """Complete the manifests of ``extras``; wrong ones end the program, and so do names of no service."""
    functions = plain_mapping("transforms", transforms)
    manifests = {
        service: plain_list(f"extras[{service}]", found, "a dictionary", Mapping)
        for service, found in plain_mapping("extras", extras).items()
    }
    try:
        check_services(plan, "transforms", functions)
        planned = plan_extras(plan, manifests)
    except ComposeplatError as error:
        raise pulumi.RunError(with_hint(error)) from error
    for service, found in functions.items():
        check_functions(f"transforms[{service}]", found)
    return planned


def plain_logins(logins: Mapping[str, Login]) -> dict[str, Login]:
    """Leave out logins that only Pulumi knows: nothing can be asked with them when the plan is made."""
    return {name: login for name, login in logins.items() if not has_placeholder(f"{login.user}{login.password}")}


def parse_logins(registries: Sequence[Mapping[str, pulumi.Input[str]]] | None, late: LateTexts) -> dict[str, Login]:
    written = [
        {key: late.add(f"registries[{index}].{key}", value) for key, value in entry.items()}
        for index, entry in enumerate(plain_list("registries", registries, "a dictionary", Mapping))
    ]
    if any(has_placeholder(entry.get("address", "")) for entry in written):
        raise pulumi.RunError("the 'address' of an entry of 'registries' must be a plain value")
    try:
        return read_logins(written)
    except ComposeplatError as error:
        raise pulumi.RunError(with_hint(error)) from error


def _explain_all(error: InvalidDefinition, late: LateTexts) -> Iterator[str]:
    return (_explain(problem, late) for problem in error.report.at_least(Severity.WARNING))


def _explain(problem: Diagnostic, late: LateTexts) -> str:
    """Show an error with its hint; where an output is the cause, the hint of another cause would mislead."""
    shown = with_hint(problem)
    message, _, _ = shown.partition("\n  hint: ")
    around = f"{problem.span.source.line(problem.span.line)}\n{shown}"
    names = [name for name in late.names if re.search(rf"\$\{{?{re.escape(name)}\b", around)]
    hint = late_hint(names)
    is_explained = problem.severity is not Severity.ERROR or problem.code in _OF_KEYS or not names or hint in shown
    return shown if is_explained else f"{message}\n  hint: {hint}"


def with_hint(problem: Diagnostic | ComposeplatError) -> str:
    return show_placeholders(f"{problem}\n  hint: {problem.hint}" if problem.hint else str(problem))
