"""The services that providers give: running their programs, and the values of the last deploy.

Owns that no program runs unless it is allowed to, which options and messages it gets and may give, and that values are
hidden as soon as they are known. A program runs once nothing else can refuse the deploy, and before the cluster is
changed.
Must not know how a plan follows from the values: the one who planned says it.
"""

from __future__ import annotations

import base64
import http.client
import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from composeplat.cluster.api import Api, ApiError
from composeplat.compose.options import DEFAULT_TIMEOUT_S
from composeplat.compose.provider_model import Provider, sort_providers
from composeplat.diagnostics import PathKey, Report, dotted, printable
from composeplat.engine.outcomes import Refused
from composeplat.engine.preflight import api_path, belongs_to
from composeplat.engine.provider_program import (
    Message,
    Program,
    ProviderError,
    ProviderInterrupted,
    find_program,
    need_program,
)
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan
from composeplat.plan.providers import SECTION, provided_key, provided_name

logger = logging.getLogger(__name__)

_MAX_MESSAGE_CHARS = 500
#: What is so of the cluster when a command of a program fails.
_STATES = {
    "up": "nothing was changed in the cluster",
    "down": "the environment is destroyed; the next destroy tries again",
}

Values = dict[str, dict[str, str]]


# deploy ---------------------------------------------------------------------------------------------------------------


def check_providers(stack: Stack, plan: Plan, services: Collection[str]) -> None:
    """Refuse a deploy whose providers may not run, or have no program."""
    report = Report()
    for provider in _needed(stack, plan, services):
        path = ("services", provider.name, "provider", "type")
        shown = _shown(stack, path)
        if not stack.providers.is_allowed:
            message = f"would run the program {shown} on this machine, which is not allowed"
            hint = "allow it with --allow-providers, or PLATFORM_ALLOW_PROVIDERS=true in the shell"
            _report(stack, report, "provider-refused", path, message, hint)
        elif find_program(provider.type, stack.variables) is None:
            message = f"names a program that is not there: {shown}"
            hint = "install it as a plugin of Docker's command line, or in a folder of PATH"
            _report(stack, report, "provider-refused", path, message, hint)
    if report.errors:
        raise Refused(report)


def run_providers(stack: Stack, api: Api, plan: Plan, services: Collection[str], timeout_s: float) -> Plan:
    """Run the programs that some services need, or all, and return the plan with the variables that they set."""
    needed = _needed(stack, plan, services)
    if not needed:
        return plan
    values, report = read_last_values(stack, api, plan), Report()
    for provider in needed:
        _note_confidential(stack, provider, plan.confidential)
        values[provider.name] = _run(stack, provider, "up", timeout_s, report)
        if report.errors:
            raise Refused(report, _STATES["up"])
    return stack.providers.plan(values, plan)


def _note_confidential(stack: Stack, provider: Provider, confidential: Collection[str]) -> None:
    """Say which options show a confidential value to everyone on this machine."""
    for name, values in provider.options.items():
        if any(secret in value for value in values for secret in confidential):
            stack.note(
                f"{provider.name}: its option '{name}' has a confidential value, which the list of processes shows;"
                " let the program read it from the environment"
            )


def _needed(stack: Stack, plan: Plan, services: Collection[str]) -> list[Provider]:
    """Return the providers that some services depend on, directly or not, in the order of their programs."""
    declared = stack.providers.declared
    ordered = sort_providers(declared)
    if not services:
        return ordered
    keys = {key for service in plan.limited_to(services).services for o in service.objects for key in o.needs}
    chosen = {name for name in declared if provided_key(name) in keys}
    for provider in reversed(ordered):
        if provider.name in chosen:
            chosen |= {name for name in provider.depends_on if name in declared}
    return [provider for provider in ordered if provider.name in chosen]


# preview --------------------------------------------------------------------------------------------------------------


def plan_with_last_values(stack: Stack, api: Api, plan: Plan) -> tuple[Plan, list[str]]:
    """Return the plan with the variables of the last deploy, and notes of those that are not known.

    A preview runs no program.
    """
    if not stack.providers.declared:
        return plan, []
    values = read_last_values(stack, api, plan)
    return stack.providers.plan(values, plan), [
        f"the variables that the provider of {file.name} sets are known at a deploy: a preview runs no program"
        for file in plan.files
        if file.section == SECTION and file.name not in values
    ]


def read_last_values(stack: Stack, api: Api, plan: Plan) -> Values:
    """Read the variables that providers set in the last deploy, from their Secrets, and hide their values."""
    found: Values = {}
    for name in stack.providers.declared:
        try:
            secret = api.find(api_path("Secret", plan.namespace, provided_name(name)))
        except ApiError as error:
            if error.status != http.client.FORBIDDEN:
                raise
            secret = None
        if secret is not None and belongs_to(secret, plan.environment):
            coded = (secret.get("data") or {}).items()
            found[name] = {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in coded}
            stack.providers.hide(found[name].values())
    return found


# destroy --------------------------------------------------------------------------------------------------------------


def release_providers(stack: Stack) -> None:
    """Run ``down`` of each provider, dependents first, or say how to run it; that one fails stops no other."""
    report = Report()
    for provider in reversed(sort_providers(stack.providers.declared)):
        if stack.providers.is_allowed:
            _run(stack, provider, "down", DEFAULT_TIMEOUT_S, report)
        else:
            stack.note(
                f"{provider.name}: what its provider has made stays; to release it: "
                f"platform destroy --allow-providers, or {_program(stack, provider)} compose"
                f" --project-name={stack.environment_name} down {provider.name}"
            )
    if report.errors:
        raise Refused(report, _STATES["down"])


# programs -------------------------------------------------------------------------------------------------------------


def _run(stack: Stack, provider: Provider, command: str, timeout_s: float, report: Report) -> dict[str, str]:
    """Run a command of a provider's program; return the variables that it set, or report why it failed."""
    run = _Run(stack, provider)
    try:
        program = Program(
            path=need_program(provider.type, stack.variables),
            environment=stack.variables,
            timeout_s=timeout_s,
            is_interrupted=lambda: stack.is_interrupted,
        )
        stack.note(f"{provider.name}: running {_program(stack, provider)} compose {command}")
        program.run(_args(stack, provider, command, program), run.handle)
    except ProviderInterrupted:
        stack.stop_if_interrupted(f"the program of {provider.name} was ended; {_STATES[command]}")
    except ProviderError as error:
        for line in error.lines:
            run.note(line)
        _report_failure(stack, provider, f"{error}", report)
    return run.variables


@dataclass(slots=True)
class _Run:
    """What one run of a program has said."""

    stack: Stack
    provider: Provider
    variables: dict[str, str] = field(default_factory=dict)

    def handle(self, message: Message) -> str | None:
        """Note a message, and return the answer to one that asks for something."""
        match message.type:
            case "setenv" | "rawsetenv":
                self.stack.providers.hide([message.text])
                prefix = self.provider.prefix if message.type == "setenv" else ""
                self.variables[f"{prefix}{message.name}"] = message.text
            case "info":
                self.note(message.text)
            case "debug":
                logger.debug("%s: %s", self.provider.name, printable(message.text))
            case "error":
                raise ProviderError(f"failed: {printable(message.text.strip())[:_MAX_MESSAGE_CHARS]}")
            case "get-service-config":
                return json.dumps(self.provider.configuration)
            case _:
                raise ProviderError("sent a message of a type that Compose does not have")
        return None

    def note(self, text: str) -> None:
        first = next(iter(text.strip().splitlines()), "")
        self.stack.note(f"{self.provider.name}: {printable(first)[:_MAX_MESSAGE_CHARS]}")


def _args(stack: Stack, provider: Provider, command: str, program: Program) -> Sequence[str]:
    """Return the command line, with the options that the command has if the program says which these are."""
    metadata = program.metadata()
    known = metadata.known[command] if metadata else frozenset(provider.options)
    missing = metadata.required[command] - provider.options.keys() if metadata else ()
    if missing:
        raise ProviderError(f"needs the option {printable(min(missing))[:_MAX_MESSAGE_CHARS]}, which is not given")
    for name in provider.options:
        if name not in known and command == "up":
            stack.note(f"{provider.name}: its program has no option '{name}', so it is not given")
    options = [f"--{name}={value}" for name, values in provider.options.items() if name in known for value in values]
    return [f"--project-name={stack.environment_name}", command, *options, provider.name]


def _report_failure(stack: Stack, provider: Provider, reason: str, report: Report) -> None:
    path: PathKey = ("services", provider.name, "provider")
    message = f"is given by the program {_shown(stack, (*path, 'type'))}, which {reason}"
    _report(stack, report, "provider-failed", path, message, "run it by hand to see more")


def _program(stack: Stack, provider: Provider) -> str:
    """Return the name of the program, as the file has it if it comes from a variable."""
    return (stack.origins.written("services", provider.name, "provider", "type") if stack.origins else "") or "PROGRAM"


def _shown(stack: Stack, path: PathKey) -> str:
    return stack.origins.shown(*path) if stack.origins else dotted(path)


def _report(stack: Stack, report: Report, code: str, path: PathKey, message: str, hint: str) -> None:
    if stack.origins is not None:
        report.add(code, stack.origins.at(*path), path, f"{dotted(path)} {message}", hint)
