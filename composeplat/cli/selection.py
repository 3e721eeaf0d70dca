"""Which definition and which cluster a command is about: the options that say so, given to commands as one value.

Owns the order of these options in every command's help, and how a command's status becomes the process's.
Must not load what a command needs: it is read for every command, for its help too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, get_type_hints

import typer

from composeplat.cli import options as opt
from composeplat.cli.errors import Run, funnel, logged
from composeplat.compose.options import SETTINGS, Options, Request
from composeplat.diagnostics import Exit


@dataclass(frozen=True, slots=True, kw_only=True)
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

    @property
    def shown_progress(self) -> opt.ProgressMode:
        return opt.progress_mode(self.progress, quiet=self.quiet, debug=self.debug)


#: The options that choose a definition; in the help, they come first.
_DEFINITION = ("file", "env_file", "allow_outside", "name", "namespace")
_CLUSTER = ("kubeconfig", "context", "debug")
_FIRST = (*_DEFINITION, "kubeconfig", "context", "local")
#: The settings that change the objects of a plan.
PLANNING = tuple(name for name, setting in SETTINGS.items() if setting.is_rendered)
READING = ("strict", "verbose")
#: For commands that show progress.
WORKING = ("progress", "quiet")
#: In the help, these come after a command's own options.
_LAST = ("timeout", "progress", "quiet", "strict", "json_diagnostics", "verbose", "debug")

Command = Callable[..., Any]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def choosing(*more: str, file: object = opt.Files, cluster: bool = True) -> Callable[[Command], Command]:
    """Give a command the options of a :class:`Choice`, those named here among them, and pass them as ``choice``.

    Without ``cluster`` the command asks no cluster, and has no option that names one.

    The command runs inside the funnel, and what it returns is the status that the process ends with.
    """

    def decorate(command: Command) -> Command:
        own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "choice"]
        kinds = {**_kinds(), "file": file}
        wanted = {*_FIRST, "json_diagnostics", "debug", *more} - set(() if cluster else _CLUSTER)
        shared = [
            inspect.Parameter(one.name, _KEYWORD, default=one.default, annotation=kinds[one.name])
            for one in fields(Choice)
            if one.name in wanted
        ]
        shared.sort(key=lambda one: _FIRST.index(one.name) if one.name in _FIRST else len(_FIRST))
        first = [one for one in own if one.default is inspect.Parameter.empty or _is_argument(one)]
        ordered = [
            *first,
            *(one for one in shared if one.name not in _LAST),
            *(one for one in own if one not in first),
            *(one for one in shared if one.name in _LAST),
        ]

        name = command.__name__.removesuffix("_command").replace("_", "-")

        @functools.wraps(command)
        def call(**values: Any) -> None:
            if values.get("progress") is opt.ProgressMode.JSON:
                values["json_diagnostics"] = True
            as_json, works = values["json_diagnostics"], "progress" in more
            scope = (
                logged(name, _given(values, ordered), as_json=as_json, debug=values["debug"], is_kept=works)
                if cluster
                else funnel(as_json=as_json)
            )
            with scope as run:
                choice = _settled(Choice(**{one.name: values.pop(one.name) for one in shared}))
                with _screen(choice) if works else _lines():
                    run.status = int(command(choice, **values))
                run.has_failed = run.status == Exit.FAILED and name not in _OF_PROGRAMS
            raise typer.Exit(run.status)

        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [one.replace(kind=_KEYWORD) for one in ordered]
        )
        call.__annotations__ = {one.name: one.annotation for one in ordered}
        return call

    return decorate


#: Commands whose status may be that of a program of the user.
_OF_PROGRAMS = ("execute", "up")
#: A log has no values of these: they may be secrets.
_NOT_LOGGED = ("command", "env")


def _given(values: dict[str, Any], parameters: Iterable[inspect.Parameter]) -> dict[str, object]:
    """The options and arguments that were given, for the log."""
    given = {one.name: values[one.name] for one in parameters if values.get(one.name) not in (None, one.default)}
    return {name: "…" if name in _NOT_LOGGED else value for name, value in given.items()}


def request_for(choice: Choice) -> Request:
    request = opt.make_request(
        choice.file, choice.env_file, kubeconfig=choice.kubeconfig, context=choice.context, local=choice.local
    )
    return replace(request, name=choice.name, **choice.options())


def _settled(choice: Choice) -> Choice:
    local = opt.is_local(local=choice.local, kubeconfig=choice.kubeconfig, context=choice.context)
    return replace(choice, local=local)


@functools.cache
def _kinds() -> dict[str, Any]:
    """The types of all options, with their names and help; made once, as they are the same for each command."""
    kinds = get_type_hints(Choice, include_extras=True)
    return {**kinds, **{name: Annotated[kinds[name], opt.setting_option(name)] for name in SETTINGS}}


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
    return any(isinstance(one, typer.models.ArgumentInfo) for one in found)
