"""The messages about a definition, and after errors how many of them ``platform init`` mends.

Owns that last line: somebody who has never used this tool meets its errors first.
Must not decide which errors are mended: :mod:`composeplat.compatibility` does, which is imported after errors only.
"""

from __future__ import annotations

from composeplat.cli.console import show_report, write_message
from composeplat.cli.selection import Choice
from composeplat.compose.load import Loaded
from composeplat.plan import Plan


def show_definition_report(loaded: Loaded, plan: Plan, choice: Choice) -> bool:
    """Show the messages, and return whether any of them is an error."""
    as_json = choice.json_diagnostics
    failed = show_report(loaded.report, strict=choice.strict, verbose=choice.verbose, as_json=as_json)
    if loaded.report.errors and not as_json:
        write_message(_mending(loaded, plan))
    return failed


def _mending(loaded: Loaded, plan: Plan) -> str:
    from composeplat.compatibility.check import count_mended

    errors, mended = loaded.report.errors, count_mended(loaded, plan)
    if not mended:
        return ""
    which = f"{mended} of the {errors} errors" if mended < errors else f"all {errors} errors"
    return (
        f"'platform init' mends {which if errors > 1 else 'the error'}, in compose.platform.yaml;"
        " 'platform check' shows how\n"
    )
