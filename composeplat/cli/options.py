"""The options that commands share, and the request they make."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from composeplat.compose.options import SETTINGS, Request
from composeplat.compose.variables import Variables
from composeplat.diagnostics import ComposeplatError


class ProgressMode(StrEnum):
    """How a command shows its progress on standard error."""

    AUTO = "auto"
    TTY = "tty"
    PLAIN = "plain"
    QUIET = "quiet"
    JSON = "json"


def setting_option(name: str) -> Any:
    """Return the option of a row in the table of settings."""
    row = SETTINGS[name]
    names = (row.option, row.short_option) if row.short_option else (row.option,)
    return typer.Option(
        *names,
        metavar=row.metavar,
        min=row.minimum,
        callback=None if row.minimum is None else _finite,
        help=row.help,
        show_default=row.default != (),
    )


def _finite(value: float | None) -> float | None:
    """Refuse ``nan`` and ``inf``, which no range excludes: a wait with one of them has no end."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"must be a number of seconds, not {value}")
    return value


Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="Compose file; repeat to merge several; - is standard input.",
    ),
]
#: For a command that has another use for ``-f``.
FilesByLongName = Annotated[
    list[str] | None, typer.Option("--file", metavar="FILE", help="Compose file; may repeat; - is standard input.")
]
EnvFiles = Annotated[
    list[str] | None,
    typer.Option("--env-file", metavar="FILE", help="Read variables from here instead of .env; may repeat."),
]
Namespace = Annotated[str, setting_option("namespace")]
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the environment.")]
Kubeconfig = Annotated[
    str, typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig, else KUBECONFIG or the home folder's.")
]
Context = Annotated[str, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")]
Local = Annotated[
    bool,
    typer.Option(
        "--local", help="Use the local cluster, as root on Linux; deploy starts it. PLATFORM_LOCAL=true: always."
    ),
]
AllowProviders = Annotated[
    bool,
    typer.Option(
        "--allow-providers",
        help="Full mode: run the programs that 'provider' names here. PLATFORM_ALLOW_PROVIDERS=true: always.",
    ),
]
#: As of docker and kubectl, whose users type ``-it``.
Interactive = Annotated[
    bool,
    typer.Option("--interactive", "-i", "--tty", "-t", help="The default: the terminal is attached if there is one."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Services = Annotated[
    list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these, and what they depend on.")
]
RerunJobs = Annotated[bool, typer.Option("--rerun-jobs", help="Run jobs again that are unchanged.")]
ReplaceVolumes = Annotated[
    list[str] | None,
    typer.Option("--replace-volume", metavar="NAME", help="Let a change delete this volume and its data; may repeat."),
]
TakeOver = Annotated[bool, typer.Option("--take-over", help="Take an environment that was made from another project.")]
PolicyPacks = Annotated[
    list[str] | None,
    typer.Option(
        "--policy-pack", metavar="FOLDER", help="Check the resources with this policy pack of Pulumi; may repeat."
    ),
]
PolicyPackConfigs = Annotated[
    list[str] | None,
    typer.Option(
        "--policy-pack-config", metavar="FILE", help="Configuration of the policy pack at this position; may repeat."
    ),
]
OtelTraces = Annotated[
    str, typer.Option("--otel-traces", metavar="URL", help="Send Pulumi's OpenTelemetry traces here.")
]
Progress = Annotated[
    ProgressMode,
    typer.Option("--progress", help="How to show progress; auto: a live table on a terminal, else lines."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress: --progress quiet.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print the log of this run to standard error.")]
Strict = Annotated[bool, typer.Option("--strict", help="Treat warnings and unknown keys as errors.")]
JsonDiagnostics = Annotated[
    bool, typer.Option("--json-diagnostics", help="Write messages as JSON, one a line, on standard error.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show notes too, such as unknown and ignored keys.")]


def progress_mode(progress: ProgressMode, *, quiet: bool = False, debug: bool) -> ProgressMode:
    """Choose how to show progress; a table would be drawn over the lines of ``--debug``."""
    if quiet:
        return ProgressMode.QUIET
    return ProgressMode.PLAIN if debug and progress in (ProgressMode.AUTO, ProgressMode.TTY) else progress


def make_request(
    file: list[str] | None, env_file: list[str] | None, *, kubeconfig: str, context: str, local: bool = False
) -> Request:
    """Make the request for the current folder; a command adds its names with :func:`dataclasses.replace`."""
    folder = _current_folder()
    request = Request(
        files=tuple(file or ()),
        folder=folder,
        env_files=tuple(env_file or ()),
        env_contents=_read_pipes(env_file or ()),
        shell=_read_shell(folder),
    )
    if local:
        return _for_local_cluster(request)
    return replace(request, context_namespace=read_context_namespace(kubeconfig, context))


def _read_shell(folder: Path) -> dict[str, str]:
    """Return the variables of the shell, with ``PWD`` as Compose has it: `make -C` leaves it wrong, systemd unset."""
    written = os.environ.get("PWD", "")
    try:
        is_current = os.path.isabs(written) and os.path.samefile(written, folder)
    except OSError:
        is_current = False
    return dict(os.environ) if is_current else {**os.environ, "PWD": str(folder)}


def _read_pipes(paths: Sequence[str]) -> dict[str, bytes]:
    """Read the env files that are pipes of the shell, as in ``--env-file <(sops decrypt prod.env)``."""
    if not paths:
        return {}
    from composeplat.compose.discovery import MAX_ENV_FILE_BYTES
    from composeplat.system.files import read_shell_pipe

    found = {path: read_shell_pipe(path, limit=MAX_ENV_FILE_BYTES) for path in dict.fromkeys(paths)}
    return {path: content for path, content in found.items() if content is not None}


def is_local(*, local: bool, kubeconfig: str = "", context: str = "") -> bool:
    """Check for the local cluster: by the option, or by PLATFORM_LOCAL if no other cluster is named."""
    return local or (not kubeconfig and not context and Variables.from_layers(os.environ).switch("PLATFORM_LOCAL"))


def allows_providers(given: bool) -> bool:
    """Check whether programs of providers may run: by the option, or by the shell; no env file of a project counts."""
    return given or Variables.from_layers(os.environ).switch("PLATFORM_ALLOW_PROVIDERS")


def _for_local_cluster(request: Request) -> Request:
    """Add the defaults of the local cluster, also if it does not run.

    The user's own kubeconfig is not read, so its namespace is not used.
    """
    from composeplat.local.cluster_kind import local_cluster
    from composeplat.local.layout import DOMAIN

    registry = f"localhost:{local_cluster(os.environ).layout.host_ports.registry}"
    return replace(request, context_namespace="", default_domain=DOMAIN, default_registry=registry)


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise ComposeplatError("the current folder does not exist any more", "change to another folder") from error


def read_context_namespace(kubeconfig: str, context: str) -> str:
    from composeplat.cluster.kubeconfig import context_namespace

    return context_namespace(os.environ, kubeconfig, context)
