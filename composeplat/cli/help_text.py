"""What help says beyond the options: commands in groups by what they are for, examples, and the page that tells more.

Owns these words, and where they stand in the help.
The reference in the documentation is made of them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Any

from typer.core import TyperGroup

#: In this order the commands are listed.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Deploy": ("deploy", "preview", "build", "render", "config", "refresh", "sleep", "wake", "destroy", "eject"),
    "Inspect": ("status", "logs", "events", "endpoints", "open"),
    "Develop in the cluster": ("up", "exec", "down"),
    "Set up": ("setup", "cluster", "variables", "completion", "bug-report"),
}


@dataclass(frozen=True, slots=True)
class Guide:
    """Command lines, each under what it does, and the page of the documentation."""

    examples: Mapping[str, str]
    page: str


GUIDES: Mapping[str, Guide] = {
    "platform": Guide(
        {
            "Print the Kubernetes objects of the Compose file in this folder": "platform render",
            "Run it on a cluster of this machine (Linux, as root)": "platform deploy --local",
            "Run it on the cluster that kubectl uses": "platform deploy --domain apps.example.com",
        },
        "tutorial.md",
    ),
    "deploy": Guide(
        {
            "To the cluster that kubectl uses": "platform deploy --domain apps.example.com",
            "To a cluster of this machine, started if need be": "platform deploy --local",
            "One service and its dependencies, with a new build": "platform deploy web --build",
        },
        "deploying.md",
    ),
    "preview": Guide(
        {
            "Each property that would change": "platform preview --diff",
            "For a pipeline: status 5 where anything would change": "platform preview --expect-no-changes",
        },
        "deploying.md",
    ),
    "build": Guide(
        {
            "Build what changed, and push it": "platform build --registry registry.example.com/team",
            "One image, changed or not": "platform build api --force",
        },
        "building.md",
    ),
    "render": Guide(
        {
            "One file for each service, volume and endpoint": "platform render -o manifests",
            "What another file changes of it": "platform render -f compose.yaml -f compose.production.yaml",
        },
        "kubernetes.md",
    ),
    "config": Guide(
        {
            "Only check the file, and treat warnings as errors": "platform config --quiet --strict",
            "Where each variable's value comes from": "platform config --variables",
        },
        "compose-file.md",
    ),
    "refresh": Guide({"Show what others changed, and keep the state": "platform refresh --preview"}, "deploying.md"),
    "sleep": Guide({"Overnight, in a namespace of the team": "platform sleep --namespace team-a"}, "commands.md"),
    "wake": Guide({"In the morning": "platform wake --namespace team-a --timeout 600"}, "commands.md"),
    "destroy": Guide(
        {
            "Delete it, and keep the volumes": "platform destroy",
            "Delete the data too, without being asked": "platform destroy --volumes --yes",
        },
        "deploying.md",
    ),
    "eject": Guide({"A folder for plain Pulumi": "platform eject -o infrastructure"}, "leaving.md"),
    "status": Guide(
        {
            "Until Ctrl-C, whenever something changes": "platform status --watch",
            "One service, for a program": "platform status web --json",
        },
        "living.md",
    ),
    "logs": Guide(
        {
            "The last lines of a service, and those to come": "platform logs --follow --tail 20 web",
            "What all services wrote in the last ten minutes": "platform logs --since 10m --timestamps",
        },
        "living.md",
    ),
    "events": Guide({"The Kubernetes events of one service": "platform events web"}, "living.md"),
    "endpoints": Guide({"Addresses, for a program": "platform endpoints --json"}, "living.md"),
    "open": Guide({"The page of one service": "platform open web"}, "living.md"),
    "up": Guide(
        {
            "Sync files, forward ports, run a shell or the service's command": "platform up web",
            "Another command, then the deployed service again": "platform up web --down-on-exit -- npm run dev",
            "Forward a debugger's port too": "platform up api --forward 5678",
        },
        "developing.md",
    ),
    "exec": Guide(
        {
            "A shell in a container": "platform exec web sh",
            "A client of a database, options before the service": "platform exec -n team-a db psql -U postgres",
        },
        "living.md",
    ),
    "down": Guide(
        {
            "Run the deployed service again, and keep the sync volume": "platform down web",
            "Delete that too": "platform down web --volumes",
        },
        "developing.md",
    ),
    "setup": Guide(
        {
            "List the programs, and what is missing": "platform setup --check",
            "All that the local cluster needs": "platform setup --cluster --install",
        },
        "local-cluster.md",
    ),
    "cluster": Guide({"Start it": "platform cluster start"}, "local-cluster.md"),
    "cluster start": Guide(
        {
            "Beside another web server": "platform cluster start --https-port 8443 --http-port 8080",
            "Five simulated nodes": "platform cluster start --simulated 5",
        },
        "local-cluster.md",
    ),
    "cluster stop": Guide(
        {
            "Stop it, and keep its data": "platform cluster stop",
            "Remove its volumes, images and all else": "platform cluster stop --delete-data",
        },
        "local-cluster.md",
    ),
    "cluster status": Guide({"Its parts, for a program": "platform cluster status --json"}, "local-cluster.md"),
    "variables": Guide({"What is kept in a namespace": "platform variables list --namespace team-a"}, "variables.md"),
    "variables set": Guide(
        {
            "A value that may be seen": "platform variables set LOG_LEVEL=debug",
            "A secret, from a file": "platform variables set API_TOKEN --secret < token.txt",
        },
        "variables.md",
    ),
    "variables unset": Guide(
        {"Two at once": "platform variables unset LOG_LEVEL API_TOKEN --namespace team-a"}, "variables.md"
    ),
    "variables list": Guide(
        {"Those of the namespace that a deploy from here would use": "platform variables list"}, "variables.md"
    ),
    "bug-report": Guide({"For an issue, after a deploy that failed": "platform bug-report"}, "commands.md"),
    "completion": Guide(
        {
            "In this bash": "source <(platform completion bash)",
            "In each bash to come": "echo 'source <(platform completion bash)' >> ~/.bashrc",
            "In fish": "platform completion fish | source",
        },
        "commands.md",
    ),
}


#: The library's own, by no name that is private.
_LIBRARY: Any = TyperGroup.context_class
_WIDEST = 80
#: Narrower than this, a text stands under what it explains.
_NARROW = 60
_NARROWEST = 30


class _Fitting(_LIBRARY.formatter_class):  # type: ignore[misc]
    """Help in the width that the terminal has; the library's own is never narrower than 50 columns."""

    def __init__(self, width: int | None = None, max_width: int | None = None) -> None:
        columns = min(get_terminal_size().columns, max_width or _WIDEST)
        super().__init__(width=width or max(columns - 2, _NARROWEST))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        if self.width < _NARROW:
            rows, col_max = [(name.rstrip(), text) for name, text in rows], 0
        super().write_dl(list(rows), col_max, col_spacing)


class _Context(_LIBRARY):  # type: ignore[misc]
    formatter_class = _Fitting


class Guided(TyperGroup):
    """A group whose help, and that of its commands, fits the terminal and ends with examples."""

    context_class = _Context

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.epilog = _epilog(self.name or "")
        for name, command in self.commands.items():
            command.context_class = _Context
            command.epilog = _epilog(name if self.name == "platform" else f"{self.name} {name}")

    def list_commands(self, ctx: Any) -> list[str]:
        order = [name for names in SECTIONS.values() for name in names]
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name) if name in order else -1)

    def format_commands(self, _: Any, formatter: Any) -> None:
        """List the commands under what they are for, each with its whole first sentence."""
        shown = {name: command for name, command in self.commands.items() if not command.hidden}
        width = max(len(name) for name in shown)
        sections = SECTIONS if self.name == "platform" else {"Commands": tuple(shown)}
        for title, names in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), shown[name].get_short_help_str(_ANY_LENGTH)) for name in names])


_ANY_LENGTH = 500


def _epilog(path: str) -> str | None:
    guide = GUIDES.get(path)
    if guide is None:
        return None
    lines = [line for what, command in guide.examples.items() for line in (f"  # {what}", f"  {command}")]
    # The mark keeps the lines as they are.
    return "\n".join(("\b", "Examples:", *lines, "", f"See docs/{guide.page}."))
