"""``platform images``: the image of each service, as deployed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.environment_view import EnvironmentView, fit_table, terminal_width, view_environment
from composeplat.cli.help_text import Guide
from composeplat.cli.selection import Choice, with_choice
from composeplat.cluster.api import Api
from composeplat.cluster.snapshot import Object, Snapshot, container_of, service_of, statuses_of
from composeplat.diagnostics import Exit
from composeplat.engine.dev_workloads import as_deployed
from composeplat.plan.desired import BuiltImage, ServicePlan
from composeplat.plan.templates import pod_template
from composeplat.system.records import record

app = App()
_SHORT_DIGEST_CHARS = 19


@record(kw_only=True)
class ImageRow:
    service: str
    image: str
    """Without a digest; empty if the service is not deployed."""
    digest: str
    """That of the running pods, else that of the deployed image; empty if neither is known."""
    source: str
    """``built`` from the definition, or ``pulled``."""


def run(choice: Choice, services: tuple[str, ...], *, as_json: bool) -> Exit:
    view = view_environment(choice, services)
    if view is None:
        return Exit.INVALID
    with Api(view.planned.target.access) as api:
        snapshot = view.take_snapshot(api)
    rows, absent = image_rows(view, snapshot), view.absence_in(snapshot)
    view.show("images", _table(rows), as_json=as_json, absent=absent, images=[asdict(row) for row in rows])
    return Exit.DONE


def _table(rows: list[ImageRow]) -> str:
    if not any(row.image for row in rows):
        return ""
    cells = [(row.service, row.image or "-", row.digest[:_SHORT_DIGEST_CHARS] or "-", row.source) for row in rows]
    return fit_table([("SERVICE", "IMAGE", "DIGEST", "SOURCE"), *cells], terminal_width(), ("SOURCE",))


def image_rows(view: EnvironmentView, snapshot: Snapshot) -> list[ImageRow]:
    plan = view.planned.plan
    chosen = [service for service in plan.services if service.name in view.chosen]
    return [_row(service, snapshot, is_built=isinstance(service.image, BuiltImage)) for service in chosen]


def _row(service: ServicePlan, snapshot: Snapshot, *, is_built: bool) -> ImageRow:
    service = as_deployed(service, snapshot.workloads)
    workload = snapshot.workloads.get(service.workload)
    whole = str(container_of(pod_template(workload)["spec"], service.cluster_name)["image"]) if workload else ""
    image, _, digest = whole.partition("@")
    pods = [pod for pod in snapshot.pods if service_of(pod) == service.workload_name]
    return ImageRow(
        service=service.name,
        image=image,
        digest=_running_digest(pods, service.cluster_name) or digest,
        source="built" if is_built else "pulled",
    )


def _running_digest(pods: list[Object], service: str) -> str:
    found = (status.get("imageID", "") for pod in pods for status in statuses_of(pod, service)[:1])
    return next((digest for text in found if (digest := str(text).partition("@")[2])), "")


@app.command(
    "images",
    guide=Guide({"The digests that run, for a program": "platform images --json"}, "living.md"),
)
@with_choice()
def images_command(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    as_json: opt.Json = False,
) -> int:
    """Show the image of each service, with the digest that runs."""
    return run(choice, tuple(services or ()), as_json=as_json)
