"""Run Pulumi on a stack, with a program of this process or without one, and run it again after a temporary failure.

Owns the decision to run again: after the lock of a dead process, an expired credential, layers that a registry deleted
during a push, or a cluster that did not answer.
Must not interpret events: the caller's handlers do.
"""

from __future__ import annotations

import http.client
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from composeplat.cluster.api import Api, ApiError
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.builder import BUILDER, builder_variables
from composeplat.engine.events import Events, Operation
from composeplat.engine.own_processes import is_locked_out
from composeplat.engine.pulumi_args import former_urns
from composeplat.engine.pulumi_errors import broke_off, explain, has_lost_layers, is_refused
from composeplat.engine.pulumi_flags import explain_policy_pack, plugin_variables, trace_variables
from composeplat.engine.pulumi_process import PulumiResult
from composeplat.engine.rewritten_fields import rewritten_fields
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan
from composeplat.plan.fingerprint import hash_ahead
from composeplat.system.records import record

#: The runs of one operation with temporary failures between them.
_MAX_RUNS = 10
#: The runs after a credential that expired before its time.
_MAX_CREDENTIAL_RETRIES = 3
#: The runs after a registry that deleted layers which it had said it has.
_MAX_PUSH_RETRIES = 2
#: In the URNs of images that are built.
_BUILD = "docker-build:index:Image::"
#: For operations without a program.
NO_PROGRAM_ARGS = ("--exec-kind", "auto.local")
#: For operations that continue with the other resources after a failure.
UNATTENDED_ARGS = ("--yes", "--skip-preview", "--continue-on-error")
#: Reads the live objects into the state first.
REFRESH = "--refresh"
#: For more objects Pulumi writes its state once, at the end: writes after each step would take most of the time.
_MAX_CHECKPOINTED_OBJECTS = 40
#: Up to so many objects, Pulumi and its provider collect garbage less often, which saves a tenth of the processor time.
_MAX_OBJECTS_IN_MORE_MEMORY = 400
NO_VARIABLES: Mapping[str, str] = {}


@record
class RunHandlers:
    """The callbacks of a run: for each event about a resource, and between events."""

    on_resource: Callable[[str, Events], None] = lambda _urn, _events: None
    on_tick: Callable[[], None] = lambda: None


_NOBODY = RunHandlers()


def prepare(stack: Stack, plan: Plan, *, may_build: bool = True) -> None:
    """Prepare a run with the program of a plan, which needs a builder only if it may build."""
    load_ahead()
    hash_ahead(found for service in plan.services for found in service.fingerprints)
    builds = bool(plan.images)
    if builds and may_build:
        stack.workspace.builder = builder_variables(stack.variables, stack.target, stack.workspace.data_folder)
    stack.workspace.prepare(builds=builds)


def load_ahead() -> None:
    """Begin to import the modules of the program, while other threads wait for the cluster and the command line."""
    threading.Thread(target=_load, daemon=True).start()


def _load() -> None:
    from composeplat.components import program  # noqa: F401, PLC0415 -- loads Pulumi


def checkpoint_variables(objects: float) -> Mapping[str, str]:
    """The variables that decide how often Pulumi writes the state of so many objects."""
    return NO_VARIABLES if objects <= _MAX_CHECKPOINTED_OBJECTS else {"PULUMI_SKIP_CHECKPOINTS": "true"}


def memory_variables(objects: int, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that decide how much memory Pulumi's programs take before they collect garbage."""
    return {"GOGC": "400"} if objects <= _MAX_OBJECTS_IN_MORE_MEMORY and "GOGC" not in environment else NO_VARIABLES


def run_program(
    stack: Stack,
    plan: Plan,
    args: list[str],
    building: Collection[str],
    *,
    gate: Any = None,
    handlers: RunHandlers = _NOBODY,
    more: Mapping[str, str] = NO_VARIABLES,
    registered: Plan | None = None,
) -> tuple[Events, PulumiResult]:
    """Run the program of a plan under Pulumi, or of the part of it that is ``registered`` alone.

    All objects wait for the images of the services in ``building``.
    """
    from composeplat.components.program import declare  # noqa: PLC0415 -- loads Pulumi
    from composeplat.engine.inline_program import serve  # noqa: PLC0415 -- the same

    loader = _image_loader(stack, plan)
    aliases = former_urns(plan, stack.state)
    # A refresh may make other inputs of what the state has.
    rewritten = {} if REFRESH in args else rewritten_fields(plan, stack.state)

    def program() -> None:
        declare(
            plan,
            cluster=stack.workspace.cluster,
            gate=gate,
            builder=stack.workspace.builder.get(BUILDER, ""),
            loader=loader,
            building=building,
            needed=registered,
            aliases=aliases,
            rewritten=rewritten,
        )

    with serve(program) as address:
        memory = memory_variables(len(plan.objects), stack.variables)
        ran = run(stack, [*args, f"--client={address}", "--exec-kind", "auto.inline"], handlers, {**memory, **more})
    if loader and loader.error:
        stack.stop_if_interrupted()
        raise loader.error
    return ran


def _image_loader(stack: Stack, plan: Plan) -> Any:
    """The loader of the images that are loaded into nodes; none if no image is."""
    if stack.target.other is None or not any(image.is_loaded for image in plan.images):
        return None
    from composeplat.components.image_loading import ImageLoader  # noqa: PLC0415 -- loads Pulumi

    return ImageLoader(
        cluster=stack.target.other,
        access=stack.target.access,
        environment=stack.variables,
        cancelled=stack.interrupts.cancelled,
        note=stack.note,
    )


def run(
    stack: Stack, args: list[str], handlers: RunHandlers = _NOBODY, more: Mapping[str, str] = NO_VARIABLES
) -> tuple[Events, PulumiResult]:
    """Run an operation, and run it again after a temporary failure."""
    events = Events()

    def on_event(event: dict[str, Any]) -> None:
        urn = events.handle(event)
        if urn:
            handlers.on_resource(urn, events)

    def on_tick() -> None:
        stack.health.check()
        handlers.on_tick()

    more = {**trace_variables(stack.variables), **plugin_variables(args), **more}
    for number in range(_MAX_RUNS):
        before, events = events, Events()
        result = stack.workspace.follow(args, on_event, on_tick, more)
        _add_done(events, before)
        if not result.status or stack.is_interrupted or not _has_passed(stack, events, result, number):
            break
    if not stack.is_interrupted:
        _check_complete(events, result)
    return events, result


def _check_complete(events: Events, result: PulumiResult) -> None:
    """Refuse a run that was not seen whole: without its last events, it looks like one without changes."""
    # A failure has a reason in the output, unless a signal ended Pulumi.
    is_complete = events.is_complete if not result.status else result.status < 0 or result.output.strip()
    if not is_complete:
        full = tempfile.gettempdir()
        raise ComposeplatError(
            f"the changes of this run are unknown: Pulumi's output is incomplete, as if '{full}' were full",
            "free some space there, or set TMPDIR to another folder, and run this again: changes are recorded",
        )


def run_error(result: PulumiResult, events: Events) -> ComposeplatError:
    """The error of a run that failed as a whole."""
    texts = _texts(events)
    return explain_policy_pack(result.output) or explain(
        "\n".join(texts) if texts and not is_locked_out(result.output) else result.output
    )


def _has_passed(stack: Stack, events: Events, result: PulumiResult, number: int) -> bool:
    """Return whether another run may succeed: after the lock of a dead process, an expired credential, no response."""
    if is_locked_out(result.output):
        if stack.workspace.unlock(result.output):
            stack.note("removed the lock of a process that has ended")
            return True
        return False
    text = "\n".join([result.output, *_texts(events)])
    if is_refused(text) and number < _MAX_CREDENTIAL_RETRIES and _is_let_in(stack):
        stack.note("the cluster rejected an expired credential; continuing with a new one")
        return True
    if has_lost_layers(text) and number < _MAX_PUSH_RETRIES:
        stack.note("the registry deleted layers of an image during its push; pushing it again")
        return True
    if not broke_off(_without_builds(events, text)):
        return False
    stack.note("the cluster stopped answering; continuing once it answers")
    stack.health.mark_silent()
    while stack.health.silence and not stack.is_interrupted:
        stack.health.check()
        stack.pause()
    return True


def _is_let_in(stack: Stack) -> bool:
    """Return whether the cluster accepts the present credentials."""
    with Api(stack.target.access) as api:
        try:
            api.get(f"/api/v1/namespaces/{stack.namespace}")
        except ApiError as error:
            return error.status not in (0, http.client.UNAUTHORIZED)
    return True


def _without_builds(events: Events, text: str) -> str:
    """Leave out what builds say: a registry has too many requests too, and the steps of a build ask any server."""
    others = {urn: texts for urn, texts in events.messages.items() if _BUILD not in urn}
    return text if others.keys() == events.messages.keys() else "\n".join(t for texts in others.values() for t in texts)


def _texts(events: Events) -> list[str]:
    return [text for texts in events.messages.values() for text in texts]


def _add_done(events: Events, before: Events) -> None:
    """Add the changes of the previous run: this run finds them done."""
    for urn, change in before.changes.items():
        known = events.changes.get(urn)
        if (
            urn in before.done
            and change.operation is not Operation.SAME
            and (known is None or known.operation is Operation.SAME)
        ):
            events.changes[urn] = change
            events.done.add(urn)
