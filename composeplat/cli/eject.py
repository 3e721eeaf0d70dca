"""``platform eject``: the environment as a folder that plain Pulumi takes up where we leave."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli.arguments import App
from composeplat.cli.console import write_unmasked
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import Planned, plan_for
from composeplat.cli.selection import PLANNING, WORKING, Choice, request_for, with_choice
from composeplat.compose.options import Request
from composeplat.diagnostics import ComposeplatError, Exit, printable
from composeplat.engine.backend_url import has_login
from composeplat.engine.builder import BUILDER, builder_variables
from composeplat.engine.eject import ejected_files
from composeplat.engine.workspace import Workspace

app = App()


def run(choice: Choice, *, folder: str) -> Exit:
    planned = plan_for(choice, start=False)
    if planned is None:
        return Exit.INVALID
    request = request_for(choice)
    _check_can_eject(planned, request)
    # Paths in it are relative to where it really is: `..` leaves a folder that a link names to another one.
    place = Path(os.path.realpath(folder))
    _check_is_empty(place, folder)
    plan = planned.plan
    workspace = Workspace(
        environment_name=plan.environment, namespace=plan.namespace, target=planned.target, environment=os.environ
    )
    builder = builder_variables(os.environ, planned.target, workspace.data_folder) if plan.images else {}
    texts = ejected_files(
        request,
        planned.loaded,
        place,
        definition=[source for source in planned.loaded.files if source != "-"],
        builder=builder.get(BUILDER, ""),
        cluster=workspace.cluster,
        secrets=workspace.secret_settings(),
    )
    _write(place, folder, texts)
    progress.conclude(
        f"wrote {len(texts)} files into {printable(folder)}; plain Pulumi finds the same state with these variables:"
    )
    exports = _variables(planned, workspace, builder)
    write_unmasked("".join(f"export {name}={shlex.quote(value)}\n" for name, value in exports.items()))
    progress.conclude(f"then: cd {shlex.quote(printable(folder))} && pulumi preview --stack {plan.namespace}")
    if workspace.state_file is not None and not workspace.state_file.exists():
        progress.conclude(
            f"there is no state of {plan.environment} in namespace {plan.namespace} yet: 'platform deploy' creates it,"
            f" or 'pulumi stack init {plan.namespace}'"
        )
    return Exit.DONE


def _check_can_eject(planned: Planned, request: Request) -> None:
    """Refuse a definition that plain Pulumi can't read, or not deploy."""
    if planned.plan.providers:
        name = planned.plan.providers[0]
        raise ComposeplatError(f"plain Pulumi can't run the provider of service '{name}'", "replace the service first")
    loaded_images = [image.service for image in planned.plan.images if image.is_loaded]
    if loaded_images:
        message = f"plain Pulumi can't load the image of service '{loaded_images[0]}' into the nodes"
        raise ComposeplatError(message, "push it to a registry: --registry")
    if all(source == "-" for source in planned.loaded.files):
        raise ComposeplatError("a definition from standard input can't be ejected", "name its file with -f")
    if request.env_contents:
        hint = "name a file with --env-file, or set its variables in the shell"
        raise ComposeplatError("an env file that is a pipe can't be ejected", hint)


def _check_is_empty(place: Path, folder: str) -> None:
    with _writing_into(folder):
        is_empty = not place.exists() or not any(place.iterdir())
    if not is_empty:
        raise ComposeplatError(f"'{folder}' is not empty", "name a folder that is not there yet, with -o")


def _write(place: Path, folder: str, texts: Mapping[str, str]) -> None:
    with _writing_into(folder):
        place.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _writing_into(folder: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ComposeplatError(f"can't write into '{folder}': {reason}", "choose another folder with -o") from error


def _variables(planned: Planned, workspace: Workspace, builder: Mapping[str, str]) -> dict[str, str]:
    """The variables with which plain Pulumi finds the state, the cluster and the builder; no login is among them."""
    found = {**workspace.backend.variables, **builder}
    kept = {
        name: value
        for name, value in found.items()
        if name not in ("PULUMI_ACCESS_TOKEN", BUILDER) and not has_login(value)
    }
    target = planned.target
    # Without a choice, plain Pulumi follows the current context, as kubectl does.
    kubeconfig = target.kubeconfig_for(workspace.folder) if target.context else target.kubeconfig
    return {**kept, "KUBECONFIG": kubeconfig, "PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}


@app.command("eject", guide=Guide({"A folder for plain Pulumi": "platform eject -o infrastructure"}, "leaving.md"))
@with_choice(*PLANNING, *WORKING)
def eject_command(
    choice: Choice,
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")],
) -> int:
    """Write a folder with which plain Pulumi continues where deploy stopped."""
    return run(choice, folder=output)
