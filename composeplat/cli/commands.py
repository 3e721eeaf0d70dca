"""The commands of ``platform`` and their options.

Owns which options a command has, their order and their words.
What the help of a command ends with, and how the commands are listed, stands in :mod:`composeplat.cli.help_text`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from composeplat import __version__
from composeplat.cli import cluster, variables
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import write_output
from composeplat.cli.errors import funnel
from composeplat.cli.help_text import Guided
from composeplat.cli.scripts import Shell, script_for
from composeplat.cli.selection import PLANNING, READING, WORKING, Choice, choosing, working

app = App(
    name="platform",
    cls=Guided,
    help="Run a Docker Compose file on Kubernetes through Pulumi.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


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
@choosing(*PLANNING, *READING, cluster=False)
def render(
    choice: Choice,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Write files into this folder instead.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON List instead of YAML documents.")] = False,
) -> int:
    """Print the Kubernetes objects of a Compose file. Needs no cluster, and changes nothing."""
    from composeplat.cli.render import run

    return run(choice, folder=output, as_json=as_json)


@app.command()
@choosing("domain", "registry", *READING, cluster=False)
def config(
    choice: Choice,
    form: Annotated[str, typer.Option("--format", metavar="yaml|json", help="Form of the output.")] = "yaml",
    no_interpolate: Annotated[bool, typer.Option("--no-interpolate", help="Leave variables as they are.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but messages.")] = False,
    services: Annotated[bool, typer.Option("--services", help="Print the names of the services.")] = False,
    images: Annotated[bool, typer.Option("--images", help="Print the images.")] = False,
    volumes: Annotated[bool, typer.Option("--volumes", help="Print the names of the volumes.")] = False,
    variables: Annotated[
        bool, typer.Option("--variables", help="Print each variable, its value and where that came from.")
    ] = False,
) -> int:
    """Check a Compose file, and print it with files merged and variables substituted."""
    from composeplat.cli.config import View, run

    if form not in ("yaml", "json"):
        raise typer.BadParameter("must be yaml or json", param_hint="--format")
    chosen = [view for view, wanted in zip(View, (services, images, volumes, variables), strict=False) if wanted]
    if len(chosen) > 1:
        raise typer.BadParameter("give only one of --services, --images, --volumes and --variables")
    view = chosen[0] if chosen else View.DEFINITION
    return run(choice, view=view, as_json=form == "json", substitute=not no_interpolate, quiet=quiet)


@app.command()
@choosing(*PLANNING, "pull_secret", *READING, *WORKING)
def preview(
    choice: Choice,
    services: opt.Services = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show each property that changes.")] = False,
    expect_no_changes: Annotated[
        bool, typer.Option("--expect-no-changes", help="Exit with status 5 if anything would change.")
    ] = False,
    rerun_jobs: opt.RerunJobs = False,
    replace_volume: opt.ReplaceVolumes = None,
    take_over: opt.TakeOver = False,
    as_json: opt.Json = False,
) -> int:
    """Show what a deploy would change, and why. Changes nothing."""
    from composeplat.cli.preview import run
    from composeplat.engine.outcomes import DeployOptions

    options = DeployOptions(
        services=tuple(services or ()),
        rerun_jobs=rerun_jobs,
        replaced_volumes=tuple(replace_volume or ()),
        take_over=take_over,
    )
    return run(choice, options, diff=diff, as_json=as_json, expect_no_changes=expect_no_changes)


@app.command()
@choosing(*PLANNING, "builder", "pull_secret", "timeout", *READING, *WORKING)
def deploy(
    choice: Choice,
    services: opt.Services = None,
    build: Annotated[
        bool | None,
        typer.Option(
            "--build/--no-build", show_default=False, help="Build all images, or none; default: those that changed."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all services are ready.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the objects and change nothing.")] = False,
    rerun_jobs: opt.RerunJobs = False,
    refresh_first: Annotated[
        bool, typer.Option("--refresh", help="First update the state with the changes of others.")
    ] = False,
    replace_volume: opt.ReplaceVolumes = None,
    take_over: opt.TakeOver = False,
    safe_checkpoints: Annotated[
        bool, typer.Option("--safe-checkpoints", help="Write the state after every step.")
    ] = False,
    as_json: opt.Json = False,
) -> int:
    """Deploy the Compose file to the cluster, and print the addresses."""
    if dry_run:
        from composeplat.cli.render import run as render_run

        return render_run(choice, folder="", as_json=as_json, services=services or ())
    from composeplat.cli.deploy import run
    from composeplat.engine.outcomes import DeployOptions

    options = DeployOptions(
        services=tuple(services or ()),
        wait=wait,
        timeout=choice.timeout,
        rerun_jobs=rerun_jobs,
        refresh=refresh_first,
        replaced_volumes=tuple(replace_volume or ()),
        take_over=take_over,
        safe_checkpoints=safe_checkpoints,
        build=build,
    )
    return run(choice, options, as_json=as_json)


def _split_at_dashes(service: str, command: list[str]) -> tuple[str, tuple[str, ...]]:
    """Without a service, what stands behind ``--`` is the command all the same: the parser drops the dashes."""
    words = [service, *command]
    if "--" in sys.argv and sys.argv[sys.argv.index("--") + 1 :] == words:
        return "", tuple(words)
    return service, tuple(command)


@app.command()
@choosing("domain", "registry", "builder", "timeout", *READING, *WORKING)
def up(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="[SERVICE]", help="The service to develop.")] = "",
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]...", help="Command to run; default: the service's own, else a shell."),
    ] = None,
    deploy_first: Annotated[
        bool, typer.Option("--deploy", help="Deploy first, even if the environment is deployed.")
    ] = False,
    forward: Annotated[
        list[str] | None,
        typer.Option("--forward", metavar="[HERE:]PORT", help="Forward a local port to the container; may repeat."),
    ] = None,
    reverse: Annotated[
        list[str] | None,
        typer.Option(
            "--reverse", metavar="[THERE:]PORT", help="Forward a port of the container to this machine; may repeat."
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", metavar="NAME=VALUE", help="Set a variable of the session; may repeat."),
    ] = None,
    helper_image: Annotated[
        str,
        typer.Option("--helper-image", metavar="IMAGE", help="Image with the agent; default: one that is built."),
    ] = "",
    volume_size: Annotated[str, typer.Option("--volume-size", metavar="SIZE", help="Size of the sync volume.")] = "5Gi",
    take_over: Annotated[bool, typer.Option("--take-over", help="End another 'platform up' of this service.")] = False,
    down_on_exit: Annotated[
        bool, typer.Option("--down-on-exit", help="Run the deployed service again when the session ends.")
    ] = False,
) -> int:
    """Develop a service inside the cluster: sync its files, forward its ports, attach to its terminal."""
    from composeplat.cli.up import UpArguments, run

    service, words = _split_at_dashes(service, command or [])
    options = UpArguments(
        service=service,
        command=words,
        deploy=deploy_first,
        forwards=tuple(forward or ()),
        reverse=tuple(reverse or ()),
        variables=tuple(env or ()),
        helper=helper_image,
        size=volume_size,
        take_over=take_over,
        down_on_exit=down_on_exit,
    )
    return run(choice, options)


def _behind_dashes(command: list[str]) -> tuple[str, ...]:
    """Leave out the ``--`` that may stand before a command; another one is the command's own."""
    args = command[1:] if command[0] == "--" else command
    if not args:
        raise typer.BadParameter("names no command", param_hint="--")
    return tuple(args)


@app.command("exec", context_settings={"allow_interspersed_args": False})
@choosing()
def execute(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The service.")],
    command: Annotated[list[str], typer.Argument(metavar="[--] COMMAND...", help="Command to run in its container.")],
    no_terminal: Annotated[
        bool, typer.Option("--no-tty", "-T", help="Don't attach the terminal: plain streams.")
    ] = False,
) -> int:
    """Run a command in the container of a service, and exit with its status."""
    from composeplat.cli.exec import run

    return run(choice, service, _behind_dashes(command), no_terminal=no_terminal)


@app.command()
@choosing(*WORKING)
def down(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="[SERVICE]", help="The service under development.")] = "",
    volumes: Annotated[bool, typer.Option("--volumes", help="Delete the sync volume too.")] = False,
) -> int:
    """End the development of a service, and run the deployed one again."""
    from composeplat.cli.up import down as run

    return run(choice, service, volumes=volumes)


@app.command()
@app.command("ps", hidden=True)
@choosing()
def status(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Print it again whenever it changes.")] = False,
    as_json: opt.Json = False,
) -> int:
    """Show the status of each service."""
    from composeplat.cli.status import run

    if watch and as_json:
        raise typer.BadParameter("can't be given along with --json", param_hint="--watch")
    return run(choice, tuple(services or ()), watch=watch, as_json=as_json)


@app.command()
@choosing(file=opt.FilesByLongName)
def logs(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines as they come.")] = False,
    since: Annotated[
        str, typer.Option("--since", metavar="10m|TIME", help="Only lines since a duration or a time (RFC 3339).")
    ] = "",
    tail: Annotated[
        int | None, typer.Option("--tail", metavar="N", min=0, help="Only the last lines of each pod.")
    ] = None,
    timestamps: Annotated[bool, typer.Option("--timestamps", "-t", help="Print the time of each line.")] = False,
    no_prefix: Annotated[bool, typer.Option("--no-prefix", help="Print no service before a line.")] = False,
) -> int:
    """Print the logs of all pods."""
    from composeplat.cli.logs import LogOptions, parse_since, run

    try:
        asked = parse_since(since)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--since") from None
    options = LogOptions(follow=follow, timestamps=timestamps, prefix=not no_prefix)
    return run(choice, tuple(services or ()), replace(asked, tail=tail), options)


@app.command()
@choosing()
def events(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    as_json: opt.Json = False,
) -> int:
    """Show the Kubernetes events of the environment, oldest first."""
    from composeplat.cli.events import run

    return run(choice, tuple(services or ()), as_json=as_json)


@app.command()
@choosing()
def endpoints(
    choice: Choice,
    as_json: opt.Json = False,
) -> int:
    """Show the addresses of the environment."""
    from composeplat.cli.endpoints import run

    return run(choice, as_json=as_json)


@app.command("open")
@choosing()
def open_(
    choice: Choice,
    service: Annotated[str, typer.Argument(metavar="[SERVICE]", help="The service whose address to open.")] = "",
) -> int:
    """Open the first address in a browser; print it where there is no display."""
    from composeplat.cli.endpoints import run_open as run

    return run(choice, service)


@app.command()
@choosing("registry", "builder", *READING, *WORKING)
def build(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Build unchanged images too.")] = False,
    as_json: opt.Json = False,
) -> int:
    """Build and push the images that changed, and print the names of all. Changes nothing that runs."""
    from composeplat.cli.build import run

    return run(choice, tuple(services or ()), force=force, as_json=as_json)


@app.command()
@choosing(*WORKING)
def destroy(
    choice: Choice,
    volumes: Annotated[bool, typer.Option("--volumes", help="Delete volumes too, with all their data.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting data.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all pods have ended.")] = True,
    as_json: opt.Json = False,
) -> int:
    """Delete an environment. Volumes and their data stay unless --volumes is given."""
    from composeplat.cli.destroy import run

    return run(choice, volumes=volumes, yes=yes, wait=wait, as_json=as_json)


@app.command()
@choosing(*WORKING)
def refresh(
    choice: Choice,
    only_show: Annotated[bool, typer.Option("--preview", help="Only show the changes; keep the state.")] = False,
    as_json: opt.Json = False,
) -> int:
    """Update the state with the changes that others made in the cluster."""
    from composeplat.cli.refresh import run

    return run(choice, preview=only_show, as_json=as_json)


@app.command()
@choosing("timeout", *WORKING)
def sleep(
    choice: Choice,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all pods have ended.")] = True,
    as_json: opt.Json = False,
) -> int:
    """Scale an environment to zero, and remember its replicas."""
    from composeplat.cli.sleep import sleep as run

    return run(choice, wait=wait, timeout=choice.timeout, as_json=as_json)


@app.command()
@choosing("timeout", *WORKING)
def wake(
    choice: Choice,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all services are ready.")] = True,
    as_json: opt.Json = False,
) -> int:
    """Wake a sleeping environment."""
    from composeplat.cli.sleep import wake as run

    return run(choice, wait=wait, timeout=choice.timeout, as_json=as_json)


@app.command()
@choosing(*PLANNING, *WORKING)
def eject(
    choice: Choice,
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")],
) -> int:
    """Write a folder with which plain Pulumi continues where deploy stopped."""
    from composeplat.cli.eject import run

    return run(choice, folder=output)


@app.command()
def setup(
    check: Annotated[
        bool, typer.Option("--check", help="Only list the programs, their sources and what is missing.")
    ] = False,
    for_cluster: Annotated[bool, typer.Option("--cluster", help="The local cluster's programs too.")] = False,
    install: Annotated[
        bool, typer.Option("--install", help="With --cluster: install missing system packages too, as root.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print JSON.")] = False,
    progress: opt.Progress = opt.ProgressMode.AUTO,
    debug: opt.Debug = False,
) -> None:
    """Find, download or build the programs that deploying needs. Slow the first time only."""
    from composeplat.cli.setup import run

    if install and not for_cluster:
        raise typer.BadParameter("goes with --cluster", param_hint="--install")
    if as_json and not check:
        raise typer.BadParameter("goes with --check", param_hint="--json")

    with working("setup", progress, debug=debug) as run_:
        run_.status = int(run(check=check, cluster=for_cluster, install=install, as_json=as_json))


@app.command("bug-report")
@choosing()
def bug_report(
    choice: Choice,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Archive to write; default: a new one in this folder.")
    ] = "",
) -> int:
    """Pack versions, the shape of the plan and the last logs into an archive, without any secret."""
    from composeplat.cli.bug_report import run

    return run(choice, output=output)


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell that the script is for.")],
) -> None:
    """Print a script that lets a shell complete commands, options and services."""
    with funnel():
        write_output(script_for(shell))


app.add_typer(cluster.app, name="cluster")
app.add_typer(variables.app, name="variables")
