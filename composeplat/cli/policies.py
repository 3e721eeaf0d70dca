"""Policy packs and traces: the variables for the options of Pulumi's own; violations as messages and JSON."""

from __future__ import annotations

from dataclasses import replace

from composeplat.cli.console import show_report
from composeplat.cli.operations import Planned, cut
from composeplat.cli.selection import Choice
from composeplat.diagnostics import dotted, printable
from composeplat.engine.outcomes import Outcome
from composeplat.engine.policies import paths_of_violations, report_violations
from composeplat.engine.pulumi_flags import to_variables
from composeplat.plan import Plan


def pulumi_variables(choice: Choice) -> dict[str, str]:
    return to_variables(choice.policy_pack or (), choice.policy_pack_config or (), choice.otel_traces)


def violation_rows(outcome: Outcome, plan: Plan) -> list[dict[str, object]]:
    return [
        {
            "pack": violation.pack,
            "policy": violation.policy,
            "level": violation.level,
            "message": violation.message,
            "urn": violation.urn,
            "path": dotted(path) if path else "",
        }
        for violation, path in paths_of_violations(outcome.violations, plan)
    ]


def show_violations(outcome: Outcome, planned: Planned, *, as_json: bool) -> bool:
    """Show each violation at its place in the file; return whether one of them refuses the operation."""
    texts = [replace(violation, message=cut(printable(violation.message))) for violation in outcome.violations]
    report = report_violations(texts, planned.plan, planned.loaded.origins)
    if report.sorted():
        show_report(report, as_json=as_json, counted=False)
    return outcome.is_refused
