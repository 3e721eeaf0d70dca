"""Flags of Pulumi's own that a run passes on: policy packs, and where traces go.

Owns the variables by which Pulumi reads these flags: an option of ``platform`` sets the variable of the same name, so
that there is one way in. Pulumi runs several times in one operation, and in another folder: so only the runs that
they are about get them, and policy packs become flags with absolute paths.
Must not know the policies: :mod:`~composeplat.engine.policies` reports their violations.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from composeplat.diagnostics import ComposeplatError, Exit, MissingPiece, printable
from composeplat.engine.pulumi_args import repeat_flag

#: A variable with this beginning is a flag of each command that knows it: one shows secrets, another leaves things out.
FLAG_PREFIX = "PULUMI_OPTION_"
POLICY_PACK = "PULUMI_OPTION_POLICY_PACK"
POLICY_PACK_CONFIG = "PULUMI_OPTION_POLICY_PACK_CONFIG"
OTEL_TRACES = "PULUMI_OPTION_OTEL_TRACES"
#: The variables that some runs of Pulumi get; those of other flags are left out of each.
FLAG_VARIABLES = (POLICY_PACK, POLICY_PACK_CONFIG, OTEL_TRACES)
#: The variable by which Pulumi looks for no plugin on PATH.
PATH_PLUGINS = "PULUMI_IGNORE_AMBIENT_PLUGINS"
_PROJECT_FILE = "PulumiPolicy.yaml"
_NO_ANALYZER = re.compile(r"no analyzer plugin '(pulumi-analyzer-policy-(\w+))' found")
_NOT_STARTED = re.compile(r'policy pack "([^"]*)" failed to start: (.*)')
_EXCEPTION = re.compile(r"(?:^|\s)((?:\w+\.)*\w*(?:Error|Exception): .*)", re.MULTILINE)
_MAX_REASON = 300


class Unmatched(ComposeplatError):
    """The policy packs and their configurations don't go together."""

    exit_code = Exit.USAGE


def to_variables(packs: Sequence[str], configs: Sequence[str], traces: str) -> dict[str, str]:
    """Return the variables for the options that are given."""
    given = {POLICY_PACK: _join(packs), POLICY_PACK_CONFIG: _join(configs), OTEL_TRACES: traces}
    return {name: value for name, value in given.items() if value}


def policy_flags(environment: Mapping[str, str]) -> list[str]:
    """Return the flags for the policy packs, whose files are there."""
    packs = [_find_pack(path) for path in _paths(environment, POLICY_PACK)]
    configs = [_find_config(path) for path in _paths(environment, POLICY_PACK_CONFIG)]
    if configs and len(configs) != len(packs):
        raise Unmatched(
            f"there are {len(configs)} configurations for {len(packs)} policy packs",
            "give --policy-pack-config once for each --policy-pack, in the same order, or not at all",
        )
    return [
        *repeat_flag("--policy-pack", map(_quote, packs)),
        *repeat_flag("--policy-pack-config", map(_quote, configs)),
    ]


def trace_variables(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variable for the address that traces go to: it may have a key, and everyone can read flags."""
    address = environment.get(OTEL_TRACES, "")
    return {OTEL_TRACES: address} if address else {}


def plugin_variables(args: Sequence[str]) -> Mapping[str, str]:
    """Return the variable with which a run with policy packs finds the programs for these, which are on PATH."""
    return {PATH_PLUGINS: "false"} if "--policy-pack" in args else {}


def doubt_about_flags(environment: Mapping[str, str]) -> str:
    """Why a run with these variables needs Pulumi; empty if it does not."""
    given = next((name for name in FLAG_VARIABLES if environment.get(name)), "")
    return f"Pulumi has to run for {given}" if given else ""


def explain_policy_pack(output: str) -> ComposeplatError | None:
    """Explain from Pulumi's output why a policy pack did not start; none if that is not the cause."""
    missing = _NO_ANALYZER.search(output)
    if missing:
        return MissingPiece(
            f"no program runs policy packs of the runtime '{missing[2]}': {missing[1]} is not on PATH",
            "Pulumi's release has it: put the folder of an installed Pulumi on PATH",
        )
    failed = _NOT_STARTED.search(output)
    if failed is None:
        return None
    reason = (_EXCEPTION.findall(output) or [failed[2]])[-1]
    return ComposeplatError(f"policy pack '{failed[1]}' does not start: {printable(reason.strip())[:_MAX_REASON]}")


def _find_pack(path: str) -> str:
    """Return the path of a policy pack: a folder with its project, or a program."""
    pack = Path(path)
    if not (pack / _PROJECT_FILE).is_file() and not (pack.is_file() and os.access(pack, os.X_OK)):
        raise MissingPiece(
            f"there is no policy pack at '{printable(path)}'", f"name a folder that has a {_PROJECT_FILE}, or a program"
        )
    return path


def _find_config(path: str) -> str:
    if not Path(path).is_file():
        raise MissingPiece(f"the configuration of a policy pack does not exist: '{printable(path)}'")
    return path


def _paths(environment: Mapping[str, str], name: str) -> list[str]:
    """Return the paths of a variable, as Pulumi separates them."""
    rows = list(csv.reader([environment.get(name, "")]))
    return [os.path.abspath(os.path.expanduser(path)) for path in (rows[0] if rows else []) if path]


def _join(values: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


def _quote(value: str) -> str:
    return _join([value])
