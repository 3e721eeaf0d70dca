"""Flags of Pulumi's own: from options to variables, and from variables to the flags of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.diagnostics import Exit, MissingPiece
from composeplat.engine.pulumi_flags import (
    OTEL_TRACES,
    POLICY_PACK,
    POLICY_PACK_CONFIG,
    Unmatched,
    doubt_about_flags,
    explain_policy_pack,
    plugin_variables,
    policy_flags,
    to_variables,
    trace_variables,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two policy packs, a program, and a configuration."""
    for name in ("team", "a, b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_become_variables() -> None:
    """Each option has the variable by which Pulumi reads its flag; one that is not given leaves it alone."""
    assert to_variables([], [], "") == {}
    assert to_variables(["a", "b, c"], ["d.json"], "http://localhost:4318") == {
        POLICY_PACK: 'a,"b, c"',
        POLICY_PACK_CONFIG: "d.json",
        OTEL_TRACES: "http://localhost:4318",
    }


def test_flags_have_absolute_paths(folder: Path) -> None:
    """Pulumi runs in another folder; it splits a value at commas that are not quoted."""
    given = to_variables(["team", "a, b", "program"], ["config.json"] * 3, "")

    assert policy_flags(given) == [
        *("--policy-pack", f"{folder}/team"),
        *("--policy-pack", f'"{folder}/a, b"'),
        *("--policy-pack", f"{folder}/program"),
        *(("--policy-pack-config", f"{folder}/config.json") * 3),
    ]


def test_no_policy_packs() -> None:
    """Without the variables there are no flags."""
    assert policy_flags({}) == []
    assert policy_flags({POLICY_PACK: ""}) == []


@pytest.mark.parametrize(
    ("packs", "configs", "message"),
    [
        pytest.param(["none"], [], "there is no policy pack at '{}/none'", id="missing-folder"),
        pytest.param(["."], [], "there is no policy pack at '{}'", id="no-project"),
        pytest.param(["config.json"], [], "there is no policy pack at '{}/config.json'", id="no-program"),
        pytest.param(
            ["team"], ["none"], "the configuration of a policy pack does not exist: '{}/none'", id="missing-config"
        ),
    ],
)
def test_missing_files(folder: Path, packs: list[str], configs: list[str], message: str) -> None:
    """A pack or a configuration that is not there is named, before anything runs."""
    with pytest.raises(MissingPiece) as caught:
        policy_flags(to_variables(packs, configs, ""))

    assert str(caught.value) == message.format(folder)


def test_each_pack_has_its_configuration(folder: Path) -> None:
    """Packs and configurations go together by position; another number of them is an error of usage."""
    assert folder
    with pytest.raises(Unmatched, match="there are 1 configurations for 2 policy packs") as caught:
        policy_flags(to_variables(["team", "program"], ["config.json"], ""))

    assert caught.value.exit_code == Exit.USAGE


def test_traces_are_a_variable() -> None:
    """The address may have a key, so it is no flag, which all processes of a machine can read."""
    assert trace_variables({}) == {}
    assert trace_variables({OTEL_TRACES: "https://a/?key=b", "X": "y"}) == {OTEL_TRACES: "https://a/?key=b"}


@pytest.mark.parametrize("name", [POLICY_PACK, POLICY_PACK_CONFIG, OTEL_TRACES])
def test_each_needs_pulumi(name: str) -> None:
    """A run that has one of them is never skipped."""
    assert doubt_about_flags({name: "a"}) == f"Pulumi has to run for {name}"
    assert doubt_about_flags({name: ""}) == ""


OUTPUTS = {
    "no-analyzer": (
        (
            "error: 2 errors occurred:\n    1) could not find latest version for provider policy-python\n"
            "    2) no analyzer plugin 'pulumi-analyzer-policy-python' found in the workspace or on your $PATH\n"
        ),
        "no program runs policy packs of the runtime 'python': pulumi-analyzer-policy-python is not on PATH",
    ),
    "exception": (
        (
            '    pulumi:pulumi:Stack p-s    File "/p/__main__.py", line 1, in <module>\n'
            "    pulumi:pulumi:Stack p-s  ModuleNotFoundError: No module named 'nothing_here'\n"
            'error: policy pack "/p" failed to start: could not read plugin [/bin/x]: exit status 1\n'
        ),
        "policy pack '/p' does not start: ModuleNotFoundError: No module named 'nothing_here'",
    ),
    "another-reason": (
        'error: policy pack "/p" failed to start: fork/exec /bin/x: exec format error\n',
        "policy pack '/p' does not start: fork/exec /bin/x: exec format error",
    ),
}


@pytest.mark.parametrize(("output", "message"), OUTPUTS.values(), ids=OUTPUTS)
def test_why_a_pack_does_not_start(output: str, message: str) -> None:
    """Pulumi's output becomes a sentence with the reason."""
    assert str(explain_policy_pack(output)) == message


def test_other_outputs() -> None:
    """Anything else is explained elsewhere."""
    assert explain_policy_pack("error: no space left on device") is None


def test_plugins_on_the_path() -> None:
    """Only a run with policy packs takes plugins from there: a provider there has another version."""
    assert plugin_variables(["up", "--policy-pack", "/pack"]) == {"PULUMI_IGNORE_AMBIENT_PLUGINS": "false"}
    assert plugin_variables(["up", "--yes"]) == {}
