"""The command ``platform``: its commands, and where exceptions become exit statuses.

Each command's body runs inside :func:`funnel`: what the user can mend ends with its message and status, and anything
else is our mistake and keeps its traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated

import typer

from composeplat import __version__
from composeplat.cli import options as opt
from composeplat.cli.console import show_error
from composeplat.diagnostics import ComposeplatError, Exit

app = typer.Typer(
    name="platform",
    help="Run a Docker Compose file on Kubernetes through Pulumi.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@contextmanager
def funnel(*, as_json: bool = False) -> Iterator[None]:
    try:
        yield
    except ComposeplatError as error:
        show_error(error, as_json=as_json)
        raise typer.Exit(int(error.exit_code)) from None
    except KeyboardInterrupt:
        raise typer.Exit(int(Exit.INTERRUPTED)) from None


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def platform(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run a Docker Compose file on Kubernetes through Pulumi."""


@app.command()
def render(
    file: opt.Files = None,
    env_file: opt.EnvFiles = None,
    name: opt.Name = "",
    namespace: opt.Namespace = "",
    domain: opt.Domain = "",
    ingress_class: opt.IngressClass = "",
    gateway: opt.Gateway = "",
    tls_secret: opt.TlsSecret = "",
    tls_issuer: opt.TlsIssuer = "",
    registry: opt.Registry = "",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Write files into this folder instead.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON List instead of YAML documents.")] = False,
    strict: opt.Strict = False,
    json_diagnostics: opt.JsonDiagnostics = False,
    verbose: opt.Verbose = False,
) -> None:
    """Print the Kubernetes objects of a Compose file. Needs no cluster, and changes nothing."""
    from composeplat.cli.render import run  # noqa: PLC0415 -- commands load what they need

    with funnel(as_json=json_diagnostics):
        request = replace(
            opt.make_request(file, env_file),
            name=name, namespace=namespace, domain=domain, ingress_class=ingress_class,
            gateway=gateway, tls_secret=tls_secret, tls_issuer=tls_issuer, registry=registry,
        )  # fmt: skip
        status = run(
            request,
            folder=output,
            as_json=as_json,
            strict=strict,
            verbose=verbose,
            json_diagnostics=json_diagnostics,
        )
    raise typer.Exit(int(status))


@app.command()
def config(
    file: opt.Files = None,
    env_file: opt.EnvFiles = None,
    name: opt.Name = "",
    namespace: opt.Namespace = "",
    domain: opt.Domain = "",
    registry: opt.Registry = "",
    form: Annotated[str, typer.Option("--format", metavar="yaml|json", help="Form of the output.")] = "yaml",
    no_interpolate: Annotated[bool, typer.Option("--no-interpolate", help="Leave variables as they are.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but messages.")] = False,
    services: Annotated[bool, typer.Option("--services", help="Print the names of the services.")] = False,
    images: Annotated[bool, typer.Option("--images", help="Print the images.")] = False,
    volumes: Annotated[bool, typer.Option("--volumes", help="Print the names of the volumes.")] = False,
    variables: Annotated[
        bool, typer.Option("--variables", help="Print each variable, its value and where that came from.")
    ] = False,
    strict: opt.Strict = False,
    json_diagnostics: opt.JsonDiagnostics = False,
    verbose: opt.Verbose = False,
) -> None:
    """Check a Compose file and print it resolved: files merged, variables in."""
    from composeplat.cli.config import View, run  # noqa: PLC0415 -- commands load what they need

    if form not in ("yaml", "json"):
        raise typer.BadParameter("must be yaml or json", param_hint="--format")
    chosen = [view for view, wanted in zip(View, (services, images, volumes, variables), strict=False) if wanted]
    if len(chosen) > 1:
        raise typer.BadParameter("give only one of --services, --images, --volumes and --variables")
    with funnel(as_json=json_diagnostics):
        request = replace(
            opt.make_request(file, env_file),
            name=name, namespace=namespace, domain=domain, registry=registry,
        )  # fmt: skip
        status = run(
            request,
            view=chosen[0] if chosen else View.DEFINITION,
            as_json=form == "json",
            substitute=not no_interpolate,
            quiet=quiet,
            strict=strict,
            verbose=verbose,
            json_diagnostics=json_diagnostics,
        )
    raise typer.Exit(int(status))


def main() -> None:
    if sys.stderr is None:  # closed by whoever started us
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- for as long as the process lives
    try:
        app(prog_name="platform")
    except KeyboardInterrupt:
        sys.exit(int(Exit.INTERRUPTED))
