"""The question for the domain of a local cluster of another program, and the user's answer.

Owns when the question is asked: once for each cluster, on a terminal, if a definition has endpoints and no
domain is known. The answer is in the data folder, by the cluster's identity.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import typer

from composeplat.cli.console import is_terminal, write_message
from composeplat.cli.questions import ask_name, end_of_input_refuses
from composeplat.cluster.api import Api
from composeplat.cluster.other_clusters import EndpointDefaults
from composeplat.compose.options import SETTINGS
from composeplat.engine.backend import find_data_folder, writing
from composeplat.engine.target import Target
from composeplat.system.atomic import write_private

_DOMAIN = SETTINGS["domain"]


def find_endpoint_defaults(api: Api, target: Target) -> EndpointDefaults:
    """Return the user's answer for a cluster, else the known defaults of it."""
    if target.other is None:
        return EndpointDefaults()
    from composeplat.cluster.endpoint_defaults import read_endpoint_defaults

    return _read_answer(target) or read_endpoint_defaults(api, target.other)


def ask_for_domain(target: Target, known: EndpointDefaults) -> EndpointDefaults:
    """Ask for the domain of a cluster with an ingress controller, unless that was asked before; keep the answer."""
    is_asked = _answer_path(target).exists() if target.other and known.classes else True
    if target.other is None or is_asked or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return known
    chosen = known.ingress_class
    title = target.other.title
    write_message(f"Endpoints get addresses in a domain whose names lead to the ingress controller of {title}.\n")
    domain = _ask_domain()
    if domain and not chosen:
        chosen = ask_name("Ingress class", known.classes)
    answer = EndpointDefaults(domain, chosen, known.classes)
    path = _answer_path(target)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, json.dumps(asdict(answer)) + "\n")
    return answer


def _ask_domain() -> str:
    while True:
        with end_of_input_refuses():
            given = typer.prompt("Domain of the endpoints (empty for none)", default="", show_default=False, err=True)
        domain = _DOMAIN.normalize(str(given).strip())
        if not domain or _DOMAIN.is_valid(domain):
            return domain
        write_message(f"It must be {_DOMAIN.requirement}.\n")


def _answer_path(target: Target) -> Path:
    return find_data_folder(os.environ).path / "clusters" / f"{target.identity()}.json"


def _read_answer(target: Target) -> EndpointDefaults | None:
    """Read the answer for a cluster; none if there is none, or it can't be read."""
    try:
        found = json.loads(_answer_path(target).read_text(encoding="utf-8"))
        return EndpointDefaults(str(found["domain"]), str(found["ingress_class"]), tuple(map(str, found["classes"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None
