"""Which definition and which cluster a command is about: the options that say so, given to commands as one value.

Owns the order of these options in every command's help, and how a command's status becomes the process's.
Must not load what a command needs: it is read for every command, for its help too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, get_type_hints

import typer

from composeplat.cli import options as opt
from composeplat.cli.errors import funnel
from composeplat.compose.options import SETTINGS, Options, Request


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

    @property
    def shown_progress(self) -> opt.ProgressMode:
        return opt.ProgressMode.QUIET if self.quiet else self.progress


#: The options that choose a definition; in the help, they come first.
_DEFINITION = ("file", "env_file", "allow_outside", "name", "namespace")
_CLUSTER = ("kubeconfig", "context")
_FIRST = (*_DEFINITION, *_CLUSTER, "local")
#: The settings that change the objects of a plan.
PLANNING = tuple(name for name, setting in SETTINGS.items() if setting.is_rendered)
READING = ("strict", "verbose")
#: For commands that show progress.
WORKING = ("progress", "quiet")
#: In the help, these come after a command's own options.
_LAST = ("timeout", "progress", "quiet", "strict", "json_diagnostics", "verbose")

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
        wanted = {*_FIRST, "json_diagnostics", *more} - set(() if cluster else _CLUSTER)
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

        @functools.wraps(command)
        def run(**values: Any) -> None:
            if values.get("progress") is opt.ProgressMode.JSON:
                values["json_diagnostics"] = True
            with funnel(as_json=values["json_diagnostics"]):
                choice = _settled(Choice(**{one.name: values.pop(one.name) for one in shared}))
                with _screen(choice) if "progress" in more else _lines():
                    status = command(choice, **values)
            raise typer.Exit(int(status))

        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [one.replace(kind=_KEYWORD) for one in ordered]
        )
        run.__annotations__ = {one.name: one.annotation for one in ordered}
        return run

    return decorate


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
    from composeplat.cli.progress_output import Screen  # noqa: PLC0415 -- for those that work

    return Screen(choice.shown_progress)


@contextmanager
def working(progress: opt.ProgressMode) -> Iterator[None]:
    """For a command without a :class:`Choice`: it runs inside the funnel, and what goes on is shown."""
    from composeplat.cli.progress_output import Screen  # noqa: PLC0415 -- for those that work

    with funnel(as_json=progress is opt.ProgressMode.JSON), Screen(progress):
        yield


def _lines() -> AbstractContextManager[object]:
    from composeplat import progress  # noqa: PLC0415 -- the same
    from composeplat.cli.progress_output import Lines  # noqa: PLC0415 -- the same

    return progress.use_handler(Lines().handle)


def _is_argument(parameter: inspect.Parameter) -> bool:
    found = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(one, typer.models.ArgumentInfo) for one in found)
