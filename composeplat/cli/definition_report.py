"""The messages about a definition, and after errors how many of them ``platform init`` mends.

Owns that last line: somebody who has never used this tool meets its errors first.
Must not decide which errors are mended: :mod:`composeplat.compatibility` does, which is imported after errors only.
"""

from __future__ import annotations

from dataclasses import replace

from composeplat.cli.console import show_report, write_message
from composeplat.cli.selection import Choice, request_for
from composeplat.compose.load import Loaded, load
from composeplat.compose.options import UNKNOWN_DOMAIN
from composeplat.plan import Plan, make_plan


def show_definition_report(loaded: Loaded, plan: Plan, choice: Choice) -> bool:
    """Show the messages, and return whether any of them is an error."""
    as_json = choice.json_diagnostics
    failed = show_report(loaded.report, strict=choice.strict, verbose=choice.verbose, as_json=as_json)
    if loaded.report.errors and not as_json:
        write_message(_mending(loaded, plan, choice))
    return failed


def _mending(loaded: Loaded, plan: Plan, choice: Choice) -> str:
    from composeplat.compatibility.check import count_mended

    errors, mended = loaded.report.errors, count_mended(loaded, plan)
    if mended < errors:
        mended = max(mended, errors - _errors_in_full_mode(loaded, plan, choice, errors))
    if not mended:
        return ""
    which = f"{mended} of the {errors} errors" if mended < errors else f"all {errors} errors"
    return (
        f"'platform init' mends {which if errors > 1 else 'the error'}, in compose.platform.yaml;"
        " 'platform check' shows how\n"
    )


def _errors_in_full_mode(loaded: Loaded, plan: Plan, choice: Choice, errors: int) -> int:
    """Count the errors that ``platform init`` leaves where it turns full mode on; all of them where it does not."""
    from composeplat.cluster.capabilities import Capabilities
    from composeplat.compatibility.check import count_mended, make_check
    from composeplat.compatibility.full_mode import is_chosen, is_worth_turning_on

    if loaded.settings.full or is_chosen(loaded) or "-" in loaded.files:
        return errors  # standard input can't be read again
    check = make_check(loaded, plan, {}, Capabilities())
    if not check.honored:
        return errors
    request = request_for(replace(choice, full=True))
    full = load(replace(request, default_domain=request.default_domain or UNKNOWN_DOMAIN))
    full_plan = make_plan(full.project, full.settings, full.origins, full.report)
    full_check = make_check(full, full_plan, {}, Capabilities())
    if not is_worth_turning_on(check, full_check, full_plan, loaded.document):
        return errors
    return full.report.errors - count_mended(full, full_plan)
