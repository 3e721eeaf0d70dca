"""``platform config``: the resolved definition, or one view of it."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum
from typing import Any

from composeplat.cli.console import show_report, table, write_unmasked
from composeplat.cli.selection import Choice, request_for
from composeplat.compose.load import Loaded, load, read
from composeplat.compose.resolved import plain_definition, resolved_definition, variable_rows
from composeplat.diagnostics import Exit
from composeplat.plan import make_plan
from composeplat.render import to_yaml


class View(Enum):
    SERVICES = "services"
    IMAGES = "images"
    VOLUMES = "volumes"
    VARIABLES = "variables"
    DEFINITION = "definition"


def run(choice: Choice, *, view: View, as_json: bool, substitute: bool, quiet: bool) -> Exit:
    request = request_for(choice)
    if substitute:
        loaded = load(request)
        report = loaded.report
        content = _content(loaded, view)
    else:
        reading = read(request, substitute=False)
        report = reading.report
        content = plain_definition(reading.document)
    failed = show_report(report, strict=choice.strict, verbose=choice.verbose, as_json=choice.json_diagnostics)
    if failed:
        return Exit.INVALID
    if not quiet:
        write_unmasked(_text(content, view, as_json=as_json))
    return Exit.DONE


def _content(loaded: Loaded, view: View) -> Any:
    # A definition can be sound before anyone has chosen a domain: that is for render and deploy to say.
    settings = replace(loaded.settings, domain=loaded.settings.domain or "domain.invalid")
    plan = make_plan(loaded.project, settings, loaded.origins, loaded.report)
    if loaded.report.errors:
        return None
    match view:
        case View.SERVICES:
            return [service.name for service in plan.services]
        case View.IMAGES:
            return list(dict.fromkeys(str(service.image) for service in plan.services))
        case View.VOLUMES:
            return [volume.name for volume in plan.volumes]
        case View.VARIABLES:
            return variable_rows(loaded.references)
        case View.DEFINITION:
            return resolved_definition(loaded)


def _text(content: Any, view: View, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    if view is View.DEFINITION:
        return to_yaml(content)
    if view is View.VARIABLES:
        return table([("NAME", "VALUE", "FROM"), *((r["name"], r["value"] or "", r["from"]) for r in content)])
    return "".join(f"{line}\n" for line in content)
