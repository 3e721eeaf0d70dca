"""The steps that operations share: from the options to a stack, and from an outcome to messages and JSON.

Owns when a definition is read, which secrets the event sink masks, and the JSON of failures.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.console import clean_line, diagnostics_text, show_report, write_json, write_message
from composeplat.cli.definition_report import show_definition_report
from composeplat.cli.endpoint_questions import ask_for_domain, find_endpoint_defaults
from composeplat.cli.hidden_values import hide_earlier_secrets, hide_secrets_of, providers_of
from composeplat.cli.image_users import look_up_users
from composeplat.cli.omitted_volumes import left_out, left_out_rows
from composeplat.cli.selection import Choice, request_for
from composeplat.cli.source import claim_of, deployer_of, find_source
from composeplat.cluster.announced_registry import read_announced_registry
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.other_clusters import EndpointDefaults
from composeplat.cluster.variables import StoredVariables, read_variables
from composeplat.compose.load import Loaded, load
from composeplat.compose.load.build_inputs import check_builds
from composeplat.compose.load.variables import namespace_of
from composeplat.compose.options import UNKNOWN_DOMAIN, Request
from composeplat.compose.origins import Checker
from composeplat.compose.variables import storable
from composeplat.diagnostics import ComposeplatError, Exit, MissingPiece, Report, Severity, join_some, printable
from composeplat.engine.outcomes import Failure, Outcome, Refused
from composeplat.engine.stack import Stack
from composeplat.engine.target import Target, find_target
from composeplat.names import is_dns_label
from composeplat.plan import Plan, make_plan
from composeplat.plan.security import check_image_users
from composeplat.publication import Publication, leaving_machine, publications
from composeplat.system.records import record

_MAX_LISTED = 5
_MAX_LINE_CHARS = 500
"""The limit of a line that a container or the cluster wrote."""


@record
class Planned:
    plan: Plan
    loaded: Loaded
    target: Target
    builder: str = ""
    allows_providers: bool = False

    @property
    def context(self) -> str:
        """The name of the cluster, for people."""
        return self.target.access.context or self.target.access.host

    @property
    def where(self) -> str:
        return f"{self.plan.environment} in namespace {self.plan.namespace}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the process, and the chosen builder."""
        return {**os.environ, **({"BUILDX_BUILDER": self.builder} if self.builder else {})}


def plan_for(
    choice: Choice, *, start: bool = False, needs_domain: bool = True, looking: bool = False
) -> Planned | None:
    """Read the definition and plan it for a cluster; if it has errors, show them and return None.

    The definition is read before a cluster is started, so that its errors are shown at once.
    With ``looking``, for a command that only inspects, warnings are not shown and no domain is needed.
    """
    request = replace(request_for(choice), publishes=not looking)
    target = _find_target(request, choice, start=start)
    if target is None:
        return None
    request = for_target(request, target)
    if (looking or not needs_domain) and not request.default_domain:
        request = replace(request, default_domain=UNKNOWN_DOMAIN)
    target.log_in()  # before a step: its row would erase a question
    with progress.step("reading the Compose file and the variables of the namespace", is_transient=True):
        answer = ask_cluster(request, target)
        loaded, plan = load_plan(answer.complete(request))
    if not looking and plan.images and answer.error is None:
        answer = replace(answer, platforms=_foreign_platforms(target))
        loaded, plan = load_plan(answer.complete(request)) if answer.platforms else (loaded, plan)
        _note_platforms(plan, answer.platforms)
    if not (looking or loaded.settings.domain or choice.json_diagnostics) and _lacks_domain(loaded):
        answer = replace(answer, endpoints=ask_for_domain(target, answer.endpoints))
        loaded, plan = load_plan(answer.complete(request))
    if not looking:
        _check_images(loaded)
        _note_defaults(target, answer.endpoints, loaded, plan)
    confidential = hide_secrets_of(loaded, plan, answer.variables, target)
    if answer.error and not _is_hopeless(loaded, choice):
        raise answer.error
    if (loaded.report.errors or not looking) and show_definition_report(loaded, plan, choice):
        return None
    return Planned(
        plan.with_confidential(confidential),
        loaded,
        target,
        choice.builder,
        opt.allows_providers(choice.allow_providers),
    )


def _find_target(request: Request, choice: Choice, *, start: bool) -> Target | None:
    """Find the cluster, or start it; none, once its messages are shown, where the definition is wrong anyway."""
    if start and choice.local and _is_refused(request, choice):
        return None
    try:
        return find_target(
            os.environ, kubeconfig=choice.kubeconfig, context=choice.context, local=choice.local, start=start
        )
    except ComposeplatError:
        # Errors of the file, and what its builds lack, are shown first: they can be fixed without a cluster.
        if _is_refused(request, choice, builds=request.publishes):
            return None
        raise


def _lacks_domain(loaded: Loaded) -> bool:
    return any(diagnostic.code in ("port-without-url", "no-domain") for diagnostic in loaded.report.sorted())


def _foreign_platforms(target: Target) -> tuple[str, ...]:
    """Return the platforms of the nodes; none if a build on this machine is for all of them anyway."""
    from composeplat.cluster.node_processors import node_processors
    from composeplat.system.machine import architecture

    with Api(target.access) as api:
        found = node_processors(api)
    return () if set(found) <= {architecture()} else tuple(f"linux/{processor}" for processor in found)


def _note_platforms(plan: Plan, platforms: tuple[str, ...]) -> None:
    """Say before a build for which processors it is, if the definition does not."""
    found: dict[str, list[str]] = {}
    for image in plan.images if platforms else ():
        found.setdefault(" and ".join(image.build.platforms), []).append(image.service)
    texts = [f"{join_some(names, _MAX_LISTED)} for {shown}" for shown, names in found.items()]
    if texts:
        progress.note(f"the nodes have other processors; images are built: {'; '.join(texts)}")


def _note_defaults(target: Target, known: EndpointDefaults, loaded: Loaded, plan: Plan) -> None:
    """Say which settings of the endpoints nobody gave."""
    settings = loaded.settings
    found = {"domain": (known.domain, settings.domain), "ingress class": (known.ingress_class, settings.ingress_class)}
    texts = [f"{name} {default}" for name, (default, used) in found.items() if default and default == used]
    if plan.endpoints and texts and target.other:
        progress.note(f"endpoints of {target.other.title}: {', '.join(texts)}")


def _check_images(loaded: Loaded) -> None:
    """Report what the images say of their services, and the scripts of builds; one that can't be read says nothing."""
    from composeplat.compatibility.image_rules import check_image_volumes
    from composeplat.compose.load.base_images import check_base_images
    from composeplat.compose.load.line_ends import check_built_scripts
    from composeplat.registry.image_config import ImageFacts, read_images

    wanted = [service.image for service in loaded.project.services.values() if service.is_pulled]
    answers = read_images(dict.fromkeys(wanted), os.environ, loaded.settings.logins)
    facts = {image: found for image, found in answers.items() if isinstance(found, ImageFacts)}
    users = {image: found.user for image, found in facts.items()}
    check_image_users(loaded.project, loaded.settings, loaded.origins, loaded.report, lambda _: users)
    checker = Checker(loaded.project, loaded.origins, loaded.report)
    check_image_volumes(checker, facts)
    check_base_images(checker, loaded.root)
    check_built_scripts(checker, loaded.root)


def _is_refused(request: Request, choice: Choice, *, builds: bool = False) -> bool:
    """Show the errors that a definition has with any cluster, or its builds, and return whether there are some.

    A command that changes something is refused here, too, if it names a service that the definition does not have.
    """
    # The cluster may have a domain: that none is known here is no error of the definition.
    loaded, plan = load_plan(replace(request, default_domain=request.default_domain or UNKNOWN_DOMAIN))
    if builds:
        check_builds(plan.own_builds, loaded.origins, loaded.report)
    if _is_hopeless(loaded, choice) and show_definition_report(loaded, plan, choice):
        return True
    if request.publishes and not loaded.report.errors:
        plan.select_services(request.named_services)
    return False


def _is_hopeless(loaded: Loaded, choice: Choice) -> bool:
    """Check for errors that no variable of the namespace can fix."""
    found = loaded.report.at_least(Severity.WARNING, strict=choice.strict)
    failed = any(diagnostic.severity_under(strict=choice.strict) is Severity.ERROR for diagnostic in found)
    return failed and not any(d.code in ("required-variable", "unset-variable") for d in found)


@record
class ClusterAnswer:
    """What the cluster adds to a request, or why it does not answer."""

    variables: StoredVariables = field(default_factory=StoredVariables)
    """Those that the namespace stores."""
    registry: str = ""
    """The registry that the cluster announces for built images."""
    endpoints: EndpointDefaults = field(default_factory=EndpointDefaults)
    """The domain and the ingress class, as far as they are known."""
    platforms: tuple[str, ...] = ()
    """The platforms of the nodes, where they are not that of this machine."""
    error: ComposeplatError | None = None

    def complete(self, request: Request) -> Request:
        """Add the variables and the default to a request; what the request has itself comes first."""
        return replace(
            request,
            platform=storable(self.variables.values),
            default_registry=request.default_registry or self.registry,
            default_domain=request.default_domain or self.endpoints.domain,
            build_platforms=self.platforms,
            default_ingress_class=self.endpoints.ingress_class,
        )


def ask_cluster(request: Request, target: Target) -> ClusterAnswer:
    """Read what a request needs from the cluster."""
    namespace = namespace_of(request)
    if not is_dns_label(namespace):
        # The error is reported when the definition is read.
        return ClusterAnswer()
    try:
        with Api(target.access) as api:
            registry = "" if target.registry else read_announced_registry(api, target.access.host)
            return ClusterAnswer(read_variables(api, namespace), registry, find_endpoint_defaults(api, target))
    except ApiError as error:
        return ClusterAnswer(error=with_hint(error, target))


def with_hint(error: ApiError, target: Target) -> ComposeplatError:
    """Return the error of a request, with a hint."""
    hint = "platform cluster start" if target.layout else "check that the cluster runs, and that --context is right"
    return error if error.hint else MissingPiece(str(error), hint)


def for_target(request: Request, target: Target) -> Request:
    return replace(
        request,
        context_namespace=target.namespace or request.context_namespace,
        default_domain=target.domain,
        default_registry=target.registry,
        load_policy=target.other.product.pull_policy if target.other else "",
    )


def load_plan(request: Request, *, offline: bool = False) -> tuple[Loaded, Plan]:
    loaded = load(request) if offline else look_up_users(load(request))
    return loaded, make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)


def stack_for(planned: Planned, more: Mapping[str, str] | None = None) -> Stack:
    source = find_source(planned.loaded.folder)
    return Stack(
        environment_name=planned.plan.environment,
        namespace=planned.plan.namespace,
        target=planned.target,
        variables={**planned.environment, **(more or {})},
        claim=claim_of(source, planned.environment, name_from_folder=planned.loaded.settings.name_from_folder),
        origins=planned.loaded.origins,
        on_progress=progress.emit,
        note=progress.note,
        warn=lambda failure: _warn(failure, planned),
        providers=providers_of(planned.loaded, planned.plan.confidential, is_allowed=planned.allows_providers),
        hide_secrets=lambda secrets: hide_earlier_secrets(planned.loaded, secrets),
        find_deployer=lambda: deployer_of(source, planned.environment),
    )


def show_refusal(refused: Refused, *, as_json: bool) -> Exit:
    show_report(refused.report, as_json=as_json)
    progress.conclude(str(refused))
    return Exit.FAILED


# failures -------------------------------------------------------------------------------------------------------------


def show_failures(failures: Iterable[Failure], planned: Planned, *, as_json: bool) -> None:
    """Show why services fail, each at the line of the file that causes it, with log lines."""
    for failure in failures:
        report = _report(failure, planned, "deploy-failed")
        missing = left_out(planned.loaded, failure.service, failure.cause)
        show_report(report, as_json=as_json, counted=False)
        if not as_json:
            write_message(_lines_text(failure))
        show_report(missing, verbose=True, as_json=as_json, counted=False)


def _warn(failure: Failure, planned: Planned) -> None:
    """Show a failure that is not final, while the operation runs."""
    report = _report(failure, planned, "job-retry")
    missing = left_out(planned.loaded, failure.service, failure.cause)
    text = diagnostics_text(report.sorted()) + _lines_text(failure) + diagnostics_text(missing.sorted())
    data = {"event": "warning", **_row(failure, planned)}
    progress.emit(progress.SessionEvent(data, text.removesuffix("\n"), is_important=True, is_in_session=False))


def _report(failure: Failure, planned: Planned, code: str) -> Report:
    cause = failure.cause
    path: tuple[str | int, ...] = ("services", failure.service, *cause.origin)
    message = cut(f"services.{failure.service}: {cause.message}")
    report = Report()
    origins = planned.loaded.origins
    report.add(code, origins.at(*path), origins.written_at(path), message, cause.hint)
    return report


def _lines_text(failure: Failure) -> str:
    if not failure.lines:
        return ""
    lines = "".join(f"    {cut(line)}\n" for line in map(clean_line, failure.lines))
    return f"  the last lines of {failure.source}:\n{lines}"


def cut(text: str) -> str:
    """Mask a text of a container or the cluster, then cut it: a mask does not find a part of a secret."""
    return progress.masked_text(text)[:_MAX_LINE_CHARS]


def failure_rows(outcome: Outcome, planned: Planned) -> list[dict[str, object]]:
    return [_row(failure, planned) for failure in outcome.failures]


def _row(failure: Failure, planned: Planned) -> dict[str, object]:
    cause = failure.cause
    return {
        "service": failure.service,
        "code": cause.code,
        "message": cause.message,
        "hint": cause.hint,
        "pod": cause.pod,
        "log_lines": list(failure.lines),
        "omitted_volumes": left_out_rows(planned.loaded, failure.service, cause),
    }


def document(command: str, environment: str, namespace: str, **fields: object) -> dict[str, object]:
    """Return the JSON result of a command; docs/schemas has the schema of each."""
    return {"schema": f"platform/{command}/1", "environment": environment, "namespace": namespace, **fields}


def outcome_document(command: str, planned: Planned, outcome: Outcome, **fields: object) -> dict[str, object]:
    """Return the JSON result of an operation in which services may fail."""
    plan = planned.plan
    return document(
        command,
        plan.environment,
        plan.namespace,
        status="failed" if outcome.failures or outcome.is_refused else "done",
        **fields,
        failures=failure_rows(outcome, planned),
        seconds=round(outcome.seconds, 1),
    )


def show_services(command: str, planned: Planned, outcome: Outcome, choice: Choice, *, as_json: bool) -> None:
    """Show the result of an operation on services: also which failed, and which are under development."""
    fields = {"services": list(outcome.services), "in_development": list(outcome.developed)}
    show_document(outcome_document(command, planned, outcome, **fields), as_json=as_json)
    show_failures(outcome.failures, planned, as_json=choice.json_diagnostics)
    for name in outcome.developed:
        progress.conclude(f"{printable(name)} is under development, and was not changed")


def failure_summary(outcome: Outcome) -> str:
    count = len({failure.service for failure in outcome.failures})
    return f"{count} service{'s' if count > 1 else ''} failed after {outcome.seconds:.0f} s"


def report_publications(planned: Planned, found: Iterable[Publication]) -> None:
    """Report the files that will leave this machine."""
    is_local = planned.target.layout is not None
    for publication in leaving_machine(found) if is_local else found:
        text = printable(publication.text)
        progress.emit(progress.SessionEvent(publication.data, text, is_important=False, is_in_session=False))


def report_deploy(planned: Planned, services: Collection[str], *, builds: bool = True) -> None:
    """Report the files that a deploy of some services, or of all, sends."""
    context = planned.context
    report_publications(planned, publications(planned.loaded, planned.plan, services, context=context, builds=builds))


def show_document(data: dict[str, object], *, as_json: bool) -> None:
    """Emit the result of a command, and print it with ``--json``."""
    progress.emit(progress.Result(data))
    if as_json:
        write_json(data)
