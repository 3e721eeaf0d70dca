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
from typing import Any, get_type_hints

import typer

from composeplat.cli import options as opt
from composeplat.cli.errors import funnel


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The options that these commands share."""

    file: opt.Files = None
    env_file: opt.EnvFiles = None
    allow_outside: opt.AllowOutside = False
    name: opt.Name = ""
    namespace: opt.Namespace = ""
    kubeconfig: opt.Kubeconfig = ""
    context: opt.Context = ""
    local: opt.Local = False
    domain: opt.Domain = ""
    ingress_class: opt.IngressClass = ""
    gateway: opt.Gateway = ""
    tls_secret: opt.TlsSecret = ""
    tls_issuer: opt.TlsIssuer = ""
    pod_security: opt.PodSecurity = ""
    registry: opt.Registry = ""
    builder: opt.Builder = ""
    pull_secret: opt.PullSecret = False
    progress: opt.Progress = opt.ProgressMode.AUTO
    quiet: opt.Quiet = False
    strict: opt.Strict = False
    json_diagnostics: opt.JsonDiagnostics = False
    verbose: opt.Verbose = False

    @property
    def shown_progress(self) -> opt.ProgressMode:
        return opt.ProgressMode.QUIET if self.quiet else self.progress


#: What is enough to look at an environment; each command has these.
_LOOKING = (
    "file",
    "env_file",
    "allow_outside",
    "name",
    "namespace",
    "kubeconfig",
    "context",
    "local",
    "json_diagnostics",
)
#: What settles how objects look.
PLANNING = ("domain", "ingress_class", "gateway", "tls_secret", "tls_issuer", "pod_security", "registry")
READING = ("strict", "verbose")
#: For commands that take their time.
WORKING = ("progress", "quiet")
#: In the help, these stand behind a command's own options.
_LAST = ("progress", "quiet", "strict", "json_diagnostics", "verbose")

Command = Callable[..., Any]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def choosing(*more: str, file: object = opt.Files) -> Callable[[Command], Command]:
    """Give a command the options of a :class:`Choice`, those named here among them, and hand them over as ``choice``.

    The command runs inside the funnel, and what it returns is the status that the process ends with.
    """

    def decorate(command: Command) -> Command:
        own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "choice"]
        kinds = {**_kinds(), "file": file}
        shared = [
            inspect.Parameter(one.name, _KEYWORD, default=one.default, annotation=kinds[one.name])
            for one in fields(Choice)
            if one.name in (*_LOOKING, *more)
        ]
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


def _settled(choice: Choice) -> Choice:
    local = opt.is_local(local=choice.local, kubeconfig=choice.kubeconfig, context=choice.context)
    return replace(choice, local=local)


@functools.cache
def _kinds() -> dict[str, Any]:
    """The options, made once: the same for each command."""
    return get_type_hints(Choice, include_extras=True)


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
