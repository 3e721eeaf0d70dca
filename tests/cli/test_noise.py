"""What a sound file of a usual size says: nothing that does not matter, and what has no effect in one line."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Folder, Project

COUNT = 20
SERVICE = """\
  service{0}:
    image: example/app
    container_name: service{0}
    networks: [front]
    ports: ["127.0.0.1:{1}:80"]
    volumes: ["data{0}:/data:z", "./conf:/etc/app:ro,Z"]
"""


@pytest.fixture
def usual(project: Project) -> Folder:
    """Twenty services with networks, options for SELinux, local volumes and names of containers."""
    services = "".join(SERVICE.format(number, 8000 + number) for number in range(COUNT))
    volumes = "".join(f"  data{number}: {{driver: local}}\n" for number in range(COUNT))
    text = f"services:\n{services}networks:\n  front: {{driver: bridge}}\nvolumes:\n{volumes}"
    return project({"compose.yaml": text, "conf/app.conf": "a=1\n"})


@pytest.mark.parametrize("command", [["render"], ["deploy", "--dry-run"], ["config"]], ids=" ".join)
def test_a_usual_file_prints_no_warning(usual: Folder, command: list[str]) -> None:
    """One line shows the keys that have no effect, another that ports are private; neither is an error when strict."""
    keys = "volumes (40), networks (22), container_name (20), driver (20)"
    expected = [
        f"note: 102 settings have no effect here, and need none: {keys} (-v shows them)",
        "note: 20 ports are bound to loopback, and so have no URL (-v shows them)",
    ]

    assert expected == usual.run(*command).assert_success().stderr.splitlines()
    assert expected == usual.run(*command, "--strict").assert_success().stderr.splitlines()


def test_under_v_each_is_reported_at_its_place(usual: Folder) -> None:
    """Then there is no sum of them."""
    diagnostics = usual.run("render", "-v").assert_success().stderr.splitlines()

    assert sum("[redundant-key]" in line for line in diagnostics) == 102
    message = "services.service0.container_name has no effect here, and needs none: others reach it as 'service0'"
    assert f"compose.yaml:4:5: note: {message} [redundant-key]" in diagnostics
    assert not [line for line in diagnostics if line.startswith("note:")]


def test_for_programs_each_is_reported_at_its_place(usual: Folder) -> None:
    """Each note that is summed up for people is an object."""
    diagnostics = [
        json.loads(line) for line in usual.run("render", "--json-diagnostics").assert_success().stderr.splitlines()
    ]

    assert {diagnostic["code"] for diagnostic in diagnostics} == {"redundant-key", "loopback-port"}
    assert {diagnostic["severity"] for diagnostic in diagnostics} == {"note"}
    assert len(diagnostics) == 122
