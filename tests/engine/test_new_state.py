"""The state of a new stack that is written without Pulumi is one that Pulumi takes for its own."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from composeplat.engine.backend import DataFolder, backend_at, own_backend
from composeplat.engine.new_state import (
    is_known_layout,
    new_state,
    packs_states,
    read_settings,
    settings_text,
    write_new_state,
)
from composeplat.engine.passphrase import settings_of
from composeplat.engine.pulumi_variables import program_variables
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import PULUMI


class Pulumi:
    """The real program, with a folder of files as its backend."""

    def __init__(self, folder: Path) -> None:
        self.backend, self.project = folder / "state", folder / "project"
        for made in (self.backend, self.project, folder / "home"):
            made.mkdir()
        (self.project / "Pulumi.yaml").write_text('{"name": "shop", "runtime": "python"}\n')
        self.program = str(Toolchain(os.environ).need(PULUMI).path)
        self.variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.backend}",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *args, "--non-interactive", "--color", "never"],
            cwd=self.project,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def need(self, *args: str) -> str:
        done = self.run(*args)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def path(self, stack: str) -> Path:
        return self.backend / ".pulumi" / "stacks" / "shop" / f"{stack}.json"

    def latest(self, stack: str) -> dict[str, object]:
        """The deployment in a state, without what differs with each run."""
        latest = json.loads(self.path(stack).read_text())["checkpoint"]["latest"]
        assert latest["manifest"].pop("time")
        assert latest["secrets_providers"]["state"].pop("salt").startswith("v1:")
        return dict(latest)


def test_pulumi_takes_the_state(tmp_path: Path) -> None:
    """A run on a written state leaves the same as one on a stack that Pulumi made, with a salt of its own."""
    pulumi = Pulumi(tmp_path)
    pulumi.need("stack", "init", "--stack", "made")
    written = write_new_state(pulumi.path("written"), "shop", "written", {})

    assert written
    assert [row["name"] for row in json.loads(pulumi.need("stack", "ls", "--json"))] == ["made", "written"]
    assert "already exists" in pulumi.run("stack", "init", "--stack", "written").stderr

    for stack in ("made", "written"):
        pulumi.need("destroy", "--yes", "--skip-preview", "--stack", stack, "--exec-kind", "auto.local")

    assert pulumi.latest("made") == pulumi.latest("written")


def test_settings_get_a_salt(tmp_path: Path) -> None:
    """Pulumi writes the salt of the secrets into the settings, another one for each stack."""
    pulumi = Pulumi(tmp_path)
    pulumi.need("stack", "init", "--stack", "made")
    write_new_state(pulumi.path("written"), "shop", "written", {})
    pulumi.need("destroy", "--yes", "--skip-preview", "--stack", "written", "--exec-kind", "auto.local")
    made, written = (pulumi.project / f"Pulumi.{stack}.yaml" for stack in ("made", "written"))

    assert written.read_text().startswith("encryptionsalt: v1:")
    assert made.read_text() != written.read_text()


def test_a_provider_on_the_path(tmp_path: Path) -> None:
    """The provider in Pulumi's home is run, and not another one that PATH has."""
    pulumi, data_folder, started = Pulumi(tmp_path), DataFolder(tmp_path / "home"), tmp_path / "started"
    (tmp_path / "other").mkdir()
    for place in ("other", "home/pulumi/plugins/resource-kubernetes-v4.25.0"):
        program = tmp_path / place / "pulumi-resource-kubernetes"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {place} >> {started}\nexit 1\n")
        program.chmod(0o755)
    path = {"PATH": f"{tmp_path / 'other'}{os.pathsep}{os.environ['PATH']}"}
    pulumi.variables |= program_variables(Path(pulumi.program), data_folder, path)

    provider = {"type": "pulumi:providers:kubernetes", "custom": True, "id": "7", "inputs": {"version": "4.25.0"}}
    provider |= {"urn": "urn:pulumi:team::shop::pulumi:providers:kubernetes::cluster", "outputs": provider["inputs"]}
    secret = {"type": "kubernetes:core/v1:Secret", "custom": True, "id": "a", "provider": f"{provider['urn']}::7"}
    secret |= {"urn": "urn:pulumi:team::shop::kubernetes:core/v1:Secret::a"}
    pulumi.path("team").parent.mkdir(parents=True)
    latest = {"manifest": {}, "resources": [provider, secret]}
    (pulumi.path("team").parents[2] / "meta.yaml").write_text("version: 1\n")
    pulumi.path("team").write_text(json.dumps({"version": 3, "checkpoint": {"stack": "x", "latest": latest}}))

    pulumi.run("refresh", "--yes", "--skip-preview", "--stack", "team", "--exec-kind", "auto.local")

    assert set(started.read_text().split()) == {"home/pulumi/plugins/resource-kubernetes-v4.25.0"}


class KeyService(BaseHTTPRequestHandler):
    """Vault's protocol for the encryption of keys, with none."""

    def do_PUT(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        made = {"ciphertext": f"vault:v1:{asked['plaintext']}"} if "plaintext" in asked else {}
        answer = made or {"plaintext": asked["ciphertext"].removeprefix("vault:v1:")}
        body = json.dumps({"data": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def key_service() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), KeyService) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("keeps", [True, False], ids=["with-them", "without"])
def test_a_state_of_a_key_service(tmp_path: Path, key_service: str, *, keeps: bool) -> None:
    """A run on another machine keeps the key service, with the settings that the state gives; Pulumi alone does not."""
    pulumi = Pulumi(tmp_path)
    pulumi.variables |= {"VAULT_SERVER_URL": key_service, "VAULT_SERVER_TOKEN": "t"}
    pulumi.need("stack", "init", "--stack", "team", "--secrets-provider", "hashivault://key")
    pulumi.need("destroy", "--yes", "--skip-preview", "--stack", "team", "--exec-kind", "auto.local")
    state, settings = json.loads(pulumi.path("team").read_text()), pulumi.project / "Pulumi.team.yaml"
    wanted = settings_of(state["checkpoint"]["latest"])

    assert read_settings(settings) == wanted
    settings.write_text(settings_text(wanted if keeps else {}))
    pulumi.need("refresh", "--yes", "--skip-preview", "--stack", "team", "--exec-kind", "auto.local")
    found = json.loads(pulumi.path("team").read_text())["checkpoint"]["latest"]["secrets_providers"]["type"]
    assert found == ("cloud" if keeps else "passphrase")


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_folder_with_an_unusual_name(tmp_path: Path, *, is_ours: bool) -> None:
    """Pulumi keeps the state in the folder in which it is looked for: it decodes the path of a URL."""
    data_folder = DataFolder(tmp_path / "da%41ta #1?")
    data_folder.prepare()
    share = tmp_path / "my share"
    share.mkdir()
    url = f"file://{tmp_path}/my%20share"
    backend = own_backend({}, data_folder, "uid") if is_ours else backend_at(url, {}, data_folder)
    (tmp_path / "pulumi").mkdir()
    pulumi = Pulumi(tmp_path / "pulumi")
    pulumi.variables |= backend.variables
    pulumi.need("stack", "init", "--stack", "made")

    assert backend.folder is not None
    assert (backend.folder / ".pulumi" / "stacks" / "shop" / "made.json").exists()


def test_a_packed_state(tmp_path: Path) -> None:
    """A variable makes Pulumi pack its states into files with another ending."""
    pulumi = Pulumi(tmp_path)
    pulumi.variables["PULUMI_DIY_BACKEND_GZIP"] = "true"
    pulumi.need("stack", "init", "--stack", "made")

    assert packs_states(pulumi.variables)
    assert not pulumi.path("made").exists()
    assert pulumi.path("made").with_name("made.json.gz").exists()


def test_the_first_state_of_a_folder(tmp_path: Path) -> None:
    """A new folder gets the layout that Pulumi would choose, so its first run leaves the same too."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    by_pulumi, ours = Pulumi(tmp_path / "a"), Pulumi(tmp_path / "b")
    by_pulumi.need("stack", "init", "--stack", "team")
    assert write_new_state(ours.path("team"), "shop", "team", {})

    for pulumi in (by_pulumi, ours):
        assert [row["name"] for row in json.loads(pulumi.need("stack", "ls", "--json"))] == ["team"]
        pulumi.need("destroy", "--yes", "--skip-preview", "--stack", "team", "--exec-kind", "auto.local")
    layouts = [(pulumi.backend / ".pulumi" / "meta.yaml").read_text() for pulumi in (by_pulumi, ours)]

    assert layouts[0] == layouts[1]
    assert by_pulumi.latest("team") == ours.latest("team")


@pytest.mark.parametrize(
    ("variables", "content"),
    [({}, "stacks/shop/old.json"), ({}, ""), ({"PULUMI_SELF_MANAGED_STATE_LEGACY_LAYOUT": "true"}, None)],
)
def test_a_folder_that_is_left_to_pulumi(tmp_path: Path, variables: dict[str, str], content: str | None) -> None:
    """Nothing is written into a folder without a layout that is there, for another layout, or without a folder."""
    path = tmp_path / ".pulumi" / "stacks" / "shop" / "team.json"
    if content is not None:
        (tmp_path / ".pulumi" / content).mkdir(parents=True)

    assert not write_new_state(path, "shop", "team", variables)
    assert not write_new_state(None, "shop", "team", {})
    assert not path.exists()
    assert not (tmp_path / ".pulumi" / "meta.yaml").exists()


def test_a_state_is_never_replaced(tmp_path: Path) -> None:
    """A state that is there stays."""
    path = tmp_path / ".pulumi" / "stacks" / "shop" / "team.json"
    path.parent.mkdir(parents=True)
    path.write_text("kept")
    (tmp_path / ".pulumi" / "meta.yaml").write_text("version: 1\n")

    assert not write_new_state(path, "shop", "team", {})
    assert path.read_text() == "kept"


@pytest.mark.parametrize(
    ("metadata", "variables", "is_known"),
    [
        ("version: 1\n", {}, True),
        ("version: 1\n", {"PULUMI_DIY_BACKEND_URL": "x"}, True),
        ("version: 1\n", {"PULUMI_DIY_BACKEND_GZIP": "true"}, False),
        ("version: 1\n", {"PULUMI_SELF_MANAGED_STATE_LEGACY_LAYOUT": "true"}, False),
        ("version: 2\n", {}, False),
        ("version: 0\n", {}, False),
        ("", {}, False),
    ],
)
def test_layout(metadata: str, variables: dict[str, str], *, is_known: bool) -> None:
    """Only the layout that the text is for is written, and no packed one."""
    assert is_known_layout(metadata, variables) is is_known


def test_text() -> None:
    """The state names its stack and has no deployment yet."""
    assert json.loads(new_state("shop", "team")) == {
        "version": 3,
        "checkpoint": {"stack": "organization/shop/team", "latest": None},
    }
