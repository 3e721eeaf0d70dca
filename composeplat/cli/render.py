"""``platform render``: the objects, as YAML or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from composeplat import files
from composeplat.cli.console import show_report, show_result, tell
from composeplat.diagnostics import ComposeplatError, Exit, printable
from composeplat.load import Request, load
from composeplat.plan import make_plan
from composeplat.render import FILE_MARK, render_files, render_json, render_yaml


def run(
    request: Request,
    *,
    folder: str,
    as_json: bool,
    strict: bool,
    verbose: bool,
    json_diagnostics: bool,
    services: Sequence[str] = (),
) -> Exit:
    """Print nothing of an invalid definition: half a result is worse than none."""
    loaded = load(request)
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    failed = show_report(loaded.report, strict=strict, verbose=verbose, as_json=json_diagnostics)
    if failed:
        return Exit.INVALID
    plan = plan.only(services)
    if folder:
        _write(Path(folder), render_files(plan))
    else:
        show_result(render_json(plan) if as_json else render_yaml(plan))
    return Exit.DONE


def _write(folder: Path, texts: dict[str, str]) -> None:
    try:
        files.write_folder(folder, texts, mark=FILE_MARK)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ComposeplatError(f"can't write into '{folder}': {reason}", "choose another folder with -o") from None
    tell(f"wrote {len(texts)} files into {printable(str(folder))}\n")
