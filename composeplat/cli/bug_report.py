"""``platform bug-report``: an archive to attach to an issue.

Owns what is in it: versions, the shape of the plan, and the last logs. Every text is masked, and no value of a variable
and no content of a file is read for it, so that the issue can be public.
"""

from __future__ import annotations

import io
import json
import os
import platform
import tarfile
import threading
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from composeplat import __version__, progress
from composeplat.cli.arguments import App
from composeplat.cli.console import write_message, write_output
from composeplat.cli.help_text import Guide
from composeplat.cli.hidden_values import hide_secrets_of
from composeplat.cli.operations import load_plan
from composeplat.cli.run_log import environment_mask, log_files, log_folder
from composeplat.cli.selection import Choice, request_for, with_choice
from composeplat.cluster.api import Api
from composeplat.diagnostics import ComposeplatError, Exit, printable
from composeplat.engine.target import find_target
from composeplat.plan import Plan
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import CLUSTER_TOOLS, DEPLOY_TOOLS, DEVELOPMENT_TOOLS

app = App()

_MAX_LOGS = 5
_SERVER_TIMEOUT_S = 3.0
_PRIVATE_FILE = 0o600


def run(choice: Choice, *, output: str) -> Exit:
    name = f"platform-bug-report-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    path = Path(output or f"{name}.tar.gz")
    shape = _plan_shape(choice)
    texts = {"versions.json": _to_text(_versions(choice)), "plan.json": _to_text(shape), **_logs()}
    mask = environment_mask(os.environ)
    masked = {file: mask.text(progress.masked_text(text, for_log=True)) for file, text in texts.items()}
    write_message(f"{printable(str(path))} will hold:\n")
    write_message("".join(f"  {file}  {len(text.encode())} bytes\n" for file, text in masked.items()))
    _write(path, name, masked)
    write_output(f"{printable(str(path))}\n")
    return Exit.DONE


def _to_text(data: object) -> str:
    return json.dumps(data, indent=2) + "\n"


def _versions(choice: Choice) -> dict[str, object]:
    programs = Toolchain(os.environ).report((*DEPLOY_TOOLS, *DEVELOPMENT_TOOLS, *CLUSTER_TOOLS))
    return {
        "platform": __version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "programs": {row["name"]: f"{row['version']} ({row['source']})" for row in programs},
        "kubernetes": _server_version(choice),
    }


def _server_version(choice: Choice) -> str:
    """Ask the cluster for its version, for a short time: the cluster may be the problem."""
    found = ["no answer"]

    def ask() -> None:
        try:
            target = find_target(
                os.environ, kubeconfig=choice.kubeconfig, context=choice.context, local=choice.local, start=False
            )
            with Api(target.access) as api:
                found[0] = str(api.get("/version").get("gitVersion", "unknown"))
        except ComposeplatError as error:
            found[0] = f"no answer: {type(error).__name__}"

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_SERVER_TIMEOUT_S)
    return found[0]


def _plan_shape(choice: Choice) -> dict[str, object]:
    """Return names, kinds and numbers of the plan, and the codes of the messages; a broken definition has no more."""
    try:
        loaded, plan = load_plan(request_for(choice))
    except ComposeplatError as error:
        return {"error": type(error).__name__}
    hide_secrets_of(loaded, plan)
    codes = Counter(f"{found.severity}: {found.code}" for found in loaded.report.sorted())
    return {"messages": dict(sorted(codes.items())), **_shape(plan)}


def _shape(plan: Plan) -> dict[str, object]:
    return {
        "services": {s.name: _kinds([desired.kind for desired in s.objects]) for s in plan.services},
        "volumes": [volume.name for volume in plan.volumes],
        "endpoints": [endpoint.name for endpoint in plan.endpoints],
        "images_to_build": len(plan.images),
        "objects": _kinds([desired.kind for desired in plan.objects]),
    }


def _kinds(kinds: list[str]) -> dict[str, int]:
    return dict(sorted(Counter(kinds).items()))


def _logs() -> dict[str, str]:
    texts = {}
    for path in log_files(log_folder(os.environ))[:_MAX_LOGS]:
        try:
            texts[f"logs/{path.name}"] = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            texts[f"logs/{path.name}"] = f"can't be read: {error.strerror}\n"
    return texts


def _write(path: Path, name: str, texts: Mapping[str, str]) -> None:
    """Write the archive, or nothing: half of one on a full disk would be sent."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
        try:
            _pack(descriptor, name, texts)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ComposeplatError(f"can't write '{path}': {reason}", "name another file with -o") from error


def _pack(descriptor: int, name: str, texts: Mapping[str, str]) -> None:
    with open(descriptor, "wb") as stream, tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for file, text in texts.items():
            data = text.encode()
            member = tarfile.TarInfo(f"{name}/{file}")
            member.size, member.mode = len(data), _PRIVATE_FILE
            archive.addfile(member, io.BytesIO(data))


@app.command(
    "bug-report", guide=Guide({"For an issue, after a deploy that failed": "platform bug-report"}, "commands.md")
)
@with_choice()
def bug_report_command(
    choice: Choice,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Archive to write; default: a new one in this folder.")
    ] = "",
) -> int:
    """Pack versions, the shape of the plan and the last logs into an archive, without any secret."""
    return run(choice, output=output)
