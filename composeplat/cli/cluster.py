"""``platform cluster``: start, stop and look at the local cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import write_output
from composeplat.cli.errors import show_errors
from composeplat.cli.help_text import Guide, Guided
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cli.selection import working

if TYPE_CHECKING:
    from composeplat.local.cluster import LocalCluster


class BuildNetwork(StrEnum):
    """What the steps of builds are joined to; the local cluster's layout has the same names."""

    OWN = "own"
    HOST = "host"


app = App(
    "cluster",
    guide=Guide({"Start it": "platform cluster start"}, "local-cluster.md"),
    cls=Guided,
    no_args_is_help=True,
    help="Start, stop and inspect the local cluster.",
)


def _port_option(name: str, help_text: str) -> Any:
    return typer.Option(name, metavar="PORT", min=0, max=65535, show_default=False, help=help_text)


ApiPort = Annotated[int, _port_option("--api-port", "Port of the API server on this machine, else 16443.")]
RegistryPort = Annotated[int, _port_option("--registry-port", "Port of the registry on this machine, else 5000.")]
HttpsPort = Annotated[int, _port_option("--https-port", "Port of the endpoints on this machine, else 443.")]
HttpPort = Annotated[int, _port_option("--http-port", "HTTP port of the endpoints on this machine, else 80.")]
Simulated = Annotated[
    int | None,
    typer.Option(
        "--simulated",
        metavar="N",
        min=1,
        show_default=False,
        help="Simulate a cluster of N nodes; needs no root.",
    ),
]
BuildNetworkOption = Annotated[
    BuildNetwork,
    typer.Option(
        "--build-network",
        help="Network of build steps: their own, which leads outside but not to this machine, or this machine's.",
    ),
]
NoEgress = Annotated[bool, typer.Option("--no-egress", help="Keep pods from other machines; images are still pulled.")]
ImageCache = Annotated[
    str,
    typer.Option(
        "--image-cache",
        metavar="SIZE",
        show_default=False,
        help="Limit of the cache of images from other registries, else 10g.",
    ),
]
DiskLimit = Annotated[
    str,
    typer.Option(
        "--disk-limit", metavar="SIZE", show_default=False, help="Limit of all images and caches, else the disk's size."
    ),
]
IsSimulated = Annotated[bool, typer.Option("--simulated", help="The simulated cluster.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command(
    "start",
    guide=Guide(
        {
            "Beside another web server": "platform cluster start --https-port 8443 --http-port 8080",
            "Without egress for pods": "platform cluster start --no-egress",
            "Five simulated nodes": "platform cluster start --simulated 5",
        },
        "local-cluster.md",
    ),
)
def start(
    api_port: ApiPort = 0,
    registry_port: RegistryPort = 0,
    https_port: HttpsPort = 0,
    http_port: HttpPort = 0,
    build_network: BuildNetworkOption = BuildNetwork.OWN,
    no_egress: NoEgress = False,
    image_cache: ImageCache = "",
    disk_limit: DiskLimit = "",
    simulated: Simulated = None,
    progress: opt.Progress = opt.ProgressMode.AUTO,
    debug: opt.Debug = False,
) -> None:
    """Start the local cluster, and wait until it can be used."""
    from composeplat.local.cluster_kind import local_cluster
    from composeplat.progress import conclude

    cache_size = _parse_size(image_cache, "--image-cache") if image_cache else 0
    limit = _parse_size(disk_limit, "--disk-limit") if disk_limit else 0
    with working("cluster start", progress, debug=debug):
        ports = {"api": api_port, "registry": registry_port, "https": https_port, "http": http_port}
        cluster = local_cluster(
            os.environ,
            ports={k: v for k, v in ports.items() if v},
            simulated=simulated or 0,
            build_network=build_network.value,
            egress=not no_egress,
            image_cache=cache_size,
            disk_limit=limit,
        )
        with ended_by_signals(), _left_running_noted(cluster):
            started = cluster.start()
        conclude(f"{cluster.title} is ready" if started else f"{cluster.title} was running already")
        write_output(f"KUBECONFIG={cluster.layout.kubeconfig}\n")


@contextmanager
def _left_running_noted(cluster: LocalCluster) -> Iterator[None]:
    """Note that an interrupted start leaves the cluster running, with its pods of the last time."""
    from composeplat.progress import note

    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if cluster.status().running:
            note(f"{cluster.title} runs, and was not ready yet: 'platform cluster stop' ends it")
        raise


def _parse_size(text: str, option: str) -> int:
    from composeplat.compose.values import BadValue, parse_size

    try:
        return parse_size(text)
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


@app.command(
    "stop",
    guide=Guide(
        {
            "Stop it, and keep its data": "platform cluster stop",
            "Remove its volumes, images and all else": "platform cluster stop --delete-data",
        },
        "local-cluster.md",
    ),
)
def stop(
    simulated: IsSimulated = False,
    delete_data: Annotated[
        bool, typer.Option("--delete-data", help="Delete volumes, images and all other data too.")
    ] = False,
    progress: opt.Progress = opt.ProgressMode.AUTO,
    debug: opt.Debug = False,
) -> None:
    """Stop the local cluster; its data stays."""
    from composeplat.local.cluster_kind import local_cluster
    from composeplat.progress import conclude

    with working("cluster stop", progress, debug=debug):
        cluster = local_cluster(os.environ, simulated=int(simulated))
        was_running = cluster.stop()
        if delete_data:
            cluster.delete()
        ended = "is stopped" if was_running else "was not running"
        other = "" if was_running or delete_data else _other(simulated)
        conclude(f"{cluster.title} {ended}{', and its data is deleted' if delete_data else other}")


def _other(simulated: bool) -> str:
    """What to say of the other local cluster: it may have been meant if it runs."""
    from composeplat.local.cluster_kind import local_cluster

    other = local_cluster(os.environ, simulated=int(not simulated))
    command = "platform cluster stop" if simulated else "platform cluster stop --simulated"
    return f"; {other.title} is: {command}" if other.status().running else ""


@app.command(
    "prune",
    guide=Guide(
        {
            "Delete untagged images and the builder's cache": "platform cluster prune",
            "Without being asked, also volumes of destroyed environments": "platform cluster prune --volumes --yes",
        },
        "local-cluster.md",
    ),
)
def prune(
    all_images: Annotated[
        bool, typer.Option("--all", "-a", help="Delete all unused images, also tagged ones.")
    ] = False,
    volumes: Annotated[
        bool, typer.Option("--volumes", help="Delete volumes that destroyed environments left, with their data.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting.")] = False,
    progress: opt.Progress = opt.ProgressMode.AUTO,
    debug: opt.Debug = False,
) -> None:
    """Delete what takes space in the local cluster and is not used."""
    from composeplat.cli.cluster_prune import run

    with working("cluster prune", progress, debug=debug):
        run(all_images=all_images, volumes=volumes, yes=yes)


@app.command("status", guide=Guide({"Its parts, for a program": "platform cluster status --json"}, "local-cluster.md"))
def status(simulated: IsSimulated = False, as_json: Json = False) -> None:
    """Show whether the local cluster runs, its parts, addresses and disk use."""
    from composeplat.cli import cluster_status

    with show_errors():
        cluster_status.run(simulated=simulated, as_json=as_json)


@app.command(
    "logs",
    guide=Guide(
        {
            "The last lines of the kubelet": "platform cluster logs kubelet --tail 20",
            "What the registry writes from now on": "platform cluster logs registry --tail 0 --follow",
        },
        "local-cluster.md",
    ),
)
def logs(
    part: Annotated[str, typer.Argument(metavar="PART", help="A part, as platform cluster status lists them.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines as they come.")] = False,
    tail: Annotated[int | None, typer.Option("--tail", metavar="N", min=0, help="Only the last lines.")] = None,
    simulated: IsSimulated = False,
) -> None:
    """Print the log of a part of the local cluster, also of a stopped one."""
    from composeplat.cli.console import clean_line
    from composeplat.local.layout import make_layout
    from composeplat.local.part_logs import find_log, read_lines

    with show_errors():
        log = find_log(make_layout(os.environ, simulated=simulated).logs, part)
        for line in read_lines(log, tail, follow=follow):
            if not write_output(f"{clean_line(line.rstrip())}\n"):
                break
