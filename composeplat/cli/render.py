"""``platform render``: the objects, as YAML or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from composeplat.cli.arguments import App
from composeplat.cli.console import write_message, write_unmasked
from composeplat.cli.definition_report import show_definition_report
from composeplat.cli.help_text import Guide
from composeplat.cli.image_users import look_up_users
from composeplat.cli.selection import PLANNING, READING, Choice, request_for, with_choice
from composeplat.compose.load import Loaded, load
from composeplat.compose.model import MAX_HOST_BYTES, MAX_HOST_FILES
from composeplat.compose.origins import mount_path
from composeplat.diagnostics import ComposeplatError, Exit, dotted, format_count, printable
from composeplat.plan import Plan, make_plan
from composeplat.plan.fingerprint import hash_ahead
from composeplat.plan.images import host_mounts, largest_mount, unmountable_file
from composeplat.plan.providers import provided_name, without_provided
from composeplat.plan.security import check_image_users
from composeplat.render.manifests import FILE_MARK, render_files, render_json, render_yaml
from composeplat.system import files

app = App()


def run(choice: Choice, *, folder: str, as_json: bool, services: Sequence[str] = ()) -> Exit:
    """Print nothing of an invalid definition: half a result is worse than none."""
    loaded = look_up_users(load(request_for(choice)), builds=False)
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    _warn_of_images(loaded, plan)
    _warn_of_providers(loaded)
    check_image_users(loaded.project, loaded.settings, loaded.origins, loaded.report, lambda _: {})
    if show_definition_report(loaded, plan, choice):
        return Exit.INVALID
    plan = without_provided(plan.limited_to(services))
    hash_ahead(found for service in plan.services for found in service.fingerprints)
    if folder:
        _write(Path(folder), render_files(plan), is_all=not services)
    else:
        write_unmasked(render_json(plan) if as_json else render_yaml(plan))
    return Exit.DONE


def _warn_of_images(loaded: Loaded, plan: Plan) -> None:
    """Report images that only a deploy builds: kubectl alone can't run their services."""
    for image in plan.images:
        if image.derived:
            service = loaded.project.services[image.service]
            contents = [mount.content for mount in host_mounts(service) if mount.content]
            count, size = sum(content.count for content in contents), sum(content.size for content in contents)
            path = mount_path(service.name, largest_mount(service))
            key = dotted(loaded.origins.written_at(path))
            mounted = f"{format_count(count, 'file')}, {-(-size // 1024)} KiB"
            less = f"mount at most {MAX_HOST_FILES} files and {MAX_HOST_BYTES // 1024} KiB a service"
            if file := unmountable_file(service):
                mounted, less = f"'{file}', whose name has a colon", "rename the file"
            message = (
                f"{key} needs an image that only 'platform deploy' builds, as the service mounts {mounted}:"
                " kubectl can't run it"
            )
            hint = f"deploy it, {less}, or use a named volume or an image of your own"
            loaded.report.add("unbuilt-image", loaded.origins.at(*path), path, message, hint)


def _warn_of_providers(loaded: Loaded) -> None:
    """Report Secrets that only a deploy can fill: kubectl alone can't start their services."""
    for name in loaded.project.providers:
        users = [service.name for service in loaded.project.services.values() if name in service.provided]
        if users:
            path = ("services", name)
            message = (
                f"services.{name} sets variables of {', '.join(users)} that only 'platform deploy' knows:"
                f" their Secret {provided_name(name)} is not printed"
            )
            hint = "deploy, or create the Secret with the variables as its keys"
            loaded.report.add("provided-variables", loaded.origins.key_at(*path), path, message, hint)


def _write(folder: Path, texts: dict[str, str], *, is_all: bool) -> None:
    try:
        files.write_folder(folder, texts, mark=FILE_MARK, is_all=is_all)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ComposeplatError(f"can't write into '{folder}': {reason}", "choose another folder with -o") from error
    write_message(f"wrote {format_count(len(texts), 'file')} into {printable(str(folder))}\n")


@app.command(
    "render",
    guide=Guide(
        {
            "One file for each service, volume and endpoint": "platform render -o manifests",
            "The objects of one service": "platform render web",
            "What another file changes of it": "platform render -f compose.yaml -f compose.production.yaml",
        },
        "kubernetes.md",
    ),
)
@with_choice(*PLANNING, *READING, cluster=False)
def render_command(
    choice: Choice,
    services: Annotated[
        list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these, and what they depend on.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Write files into this folder instead.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON List instead of YAML documents.")] = False,
) -> int:
    """Print the Kubernetes objects of a Compose file. Needs no cluster, and changes nothing."""
    return run(choice, folder=output, as_json=as_json, services=services or ())
