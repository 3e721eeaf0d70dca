"""The options that select a definition and a cluster, passed to commands as one value.

Owns the order of these options in the help of every command, and how the status of a command becomes the process's.
Must not import the modules of a command: it is imported for every command, and for its help.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, replace
from typing import Annotated, Any, get_type_hints

import typer

from composeplat.cli import options as opt
from composeplat.cli.errors import Run, logged, show_errors
from composeplat.compose.options import SETTINGS, Options, Request
from composeplat.diagnostics import Exit
from composeplat.system.records import record


@record(kw_only=True)
class Choice(Options):
    """The options that these commands share; those of the table of settings are inherited."""

    file: opt.Files = None
    env_file: opt.EnvFiles = None
    name: opt.Name = ""
    kubeconfig: opt.Kubeconfig = ""
    context: opt.Context = ""
    local: opt.Local = False
    progress: opt.Progress = opt.ProgressMode.AUTO
    quiet: opt.Quiet = False
    strict: opt.Strict = False
    json_diagnostics: opt.JsonDiagnostics = False
    verbose: opt.Verbose = False
    debug: opt.Debug = False
    allow_providers: opt.AllowProviders = False
    policy_pack: opt.PolicyPacks = None
    policy_pack_config: opt.PolicyPackConfigs = None
    otel_traces: opt.OtelTraces = ""
    named_services: tuple[str, ...] = ()
    """The services among the arguments."""

    @property
    def shown_progress(self) -> opt.ProgressMode:
        return opt.progress_mode(self.progress, quiet=self.quiet, debug=self.debug)


#: The options that choose a definition; in the help, they come first.
_DEFINITION = ("file", "env_file", "full", "profile", "allow_outside", "name", "namespace")
_CLUSTER = ("kubeconfig", "context", "debug")
_FIRST = (*_DEFINITION, "kubeconfig", "context", "local")
#: The settings that change the objects of a plan.
PLANNING = tuple(name for name, setting in SETTINGS.items() if setting.is_rendered)
#: Flags of Pulumi's own, by the same names.
OF_PULUMI = ("policy_pack", "policy_pack_config", "otel_traces")
READING = ("strict", "verbose")
#: For commands that show progress.
WORKING = ("progress", "quiet")
#: In the help, these come after a command's own options.
_LAST = ("timeout", "progress", "quiet", "strict", "json_diagnostics", "verbose", "debug")

Command = Callable[..., Any]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def with_choice(*more: str, file: object = opt.Files, cluster: bool = True) -> Callable[[Command], Command]:
    """Add the options of a :class:`Choice` to a command, also those of ``more``, and pass them as ``choice``.

    Without ``cluster`` the command connects to no cluster, and has no option that names one.

    The command runs within :func:`logged` or :func:`show_errors`, and returns the exit status of the process.
    """
    names = {*_FIRST, "json_diagnostics", "debug", *more} - set(() if cluster else _CLUSTER)
    works = "progress" in more

    def decorate(command: Command) -> Command:
        shared = _shared_parameters(names, file)
        parameters = _order_parameters(_own_parameters(command), shared)

        @functools.wraps(command)
        def call(**values: Any) -> None:
            if values.get("progress") is opt.ProgressMode.JSON and not values.get("quiet"):
                values["json_diagnostics"] = True
            with _scope(command, values, parameters, cluster=cluster, is_kept=works) as run:
                given = {parameter.name: _frozen(values.pop(parameter.name)) for parameter in shared}
                choice = _with_local_default(Choice(**given, named_services=_named_services(values)))
                with _screen(choice) if works else _lines():
                    run.status = int(command(choice, **values))
                run.has_failed = run.status == Exit.FAILED and command_name(command) not in _OF_PROGRAMS
            raise typer.Exit(run.status)

        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _named_services(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the services among a command's arguments, which bring their profiles."""
    named = values.get("services") or values.get("service") or values.get("explain") or ()
    return (named,) if isinstance(named, str) else tuple(named) if isinstance(named, list) else ()


def command_name(command: Command) -> str:
    """Return the name that users type, by the name of the function; it is for the log."""
    return command.__name__.removesuffix("_command").replace("_", "-")


def _own_parameters(command: Command) -> list[inspect.Parameter]:
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    return [parameter for parameter in parameters if parameter.name != "choice"]


def _shared_parameters(names: Collection[str], file: object) -> list[inspect.Parameter]:
    kinds = {**_kinds(), "file": file}
    shared = [
        inspect.Parameter(option.name, _KEYWORD, default=option.default, annotation=kinds[option.name])
        for option in fields(Choice)
        if option.name in names
    ]
    return sorted(shared, key=lambda option: _FIRST.index(option.name) if option.name in _FIRST else len(_FIRST))


def _order_parameters(own: list[inspect.Parameter], shared: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Put all parameters of a command into the order of its help."""
    first = [parameter for parameter in own if parameter.default is parameter.empty or _is_argument(parameter)]
    ordered = (
        *first,
        *(option for option in shared if option.name not in _LAST),
        *(parameter for parameter in own if parameter not in first),
        *(option for option in shared if option.name in _LAST),
    )
    return [parameter.replace(kind=_KEYWORD) for parameter in ordered]


def _scope(
    command: Command,
    values: Mapping[str, Any],
    parameters: Iterable[inspect.Parameter],
    *,
    cluster: bool,
    is_kept: bool,
) -> AbstractContextManager[Run]:
    as_json = values["json_diagnostics"]
    if not cluster:
        return show_errors(as_json=as_json)
    given = _given(values, parameters)
    return logged(command_name(command), given, as_json=as_json, debug=values["debug"], is_kept=is_kept)


#: Commands whose status may be that of a program of the user, or a verdict.
_OF_PROGRAMS = ("check", "exec", "run", "up")
#: A log has no values of these: they may be secrets.
_NOT_LOGGED = ("command", "entrypoint", "env", "otel_traces")


def _given(values: Mapping[str, Any], parameters: Iterable[inspect.Parameter]) -> dict[str, object]:
    """Return the options and arguments of this run, for the log."""
    given = {
        parameter.name: values[parameter.name]
        for parameter in parameters
        if values.get(parameter.name) not in (None, [], parameter.default)
    }
    return {name: "…" if name in _NOT_LOGGED else value for name, value in given.items()}


def request_for(choice: Choice) -> Request:
    request = opt.make_request(
        choice.file, choice.env_file, kubeconfig=choice.kubeconfig, context=choice.context, local=choice.local
    )
    return replace(request, name=choice.name, named_services=choice.named_services, **choice.options())


def _with_local_default(choice: Choice) -> Choice:
    local = opt.is_local(local=choice.local, kubeconfig=choice.kubeconfig, context=choice.context)
    return replace(choice, local=local)


@functools.cache
def _kinds() -> dict[str, Any]:
    """Return the types of all options, with their names and help. They are the same for each command."""
    kinds = get_type_hints(Choice, include_extras=True)
    settings = {name: list[str] if row.default == () else kinds[name] for name, row in SETTINGS.items()}
    return {**kinds, **{name: Annotated[kind, opt.setting_option(name)] for name, kind in settings.items()}}


def _screen(choice: Choice) -> AbstractContextManager[object]:
    from composeplat.cli.progress_output import Screen

    return Screen(choice.shown_progress)


@contextmanager
def working(command: str, progress: opt.ProgressMode, *, debug: bool) -> Iterator[Run]:
    """Run a command without a :class:`Choice`, with its log and its progress."""
    from composeplat.cli.progress_output import Screen
    from composeplat.progress import hide

    as_json = progress is opt.ProgressMode.JSON
    with logged(command, {}, as_json=as_json, debug=debug, is_kept=True) as run:
        hide(())
        with Screen(opt.progress_mode(progress, debug=debug)):
            yield run


def _lines() -> AbstractContextManager[object]:
    from composeplat import progress
    from composeplat.cli.progress_output import Lines

    return progress.use_handler(Lines().handle)


def _is_argument(parameter: inspect.Parameter) -> bool:
    found = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(entry, typer.models.ArgumentInfo) for entry in found)
