"""Discovery of Compose files."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.compose.discovery import (
    DEFAULT_NAMES,
    OVERRIDE_NAMES,
    PLATFORM_NAMES,
    ComposeFiles,
    find_compose_files,
)
from tests.conftest import Project


def test_order_of_the_default_names(tmp_path: Path) -> None:
    """The names are looked for in Compose's order, and the ignored ones are returned."""
    expected = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
    for name in expected:
        (tmp_path / name).touch()

    assert expected == DEFAULT_NAMES
    assert find_compose_files(tmp_path) == ComposeFiles(
        files=(tmp_path / "compose.yaml",), ignored=tuple(tmp_path / name for name in expected[1:])
    )


@pytest.mark.parametrize("name", DEFAULT_NAMES)
def test_each_default_name(tmp_path: Path, name: str) -> None:
    """Each of the names alone is found."""
    (tmp_path / name).touch()

    assert find_compose_files(tmp_path) == ComposeFiles(files=(tmp_path / name,))


def test_parents(tmp_path: Path) -> None:
    """The folders above are looked into; the nearest definition is taken, whatever its name."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "compose.yaml").touch()
    (tmp_path / "a" / "docker-compose.yml").touch()

    assert find_compose_files(inner) == ComposeFiles(files=(tmp_path / "a" / "docker-compose.yml",))


@pytest.mark.parametrize(
    "override",
    ["compose.override.yaml", "compose.override.yml", "docker-compose.override.yaml", "docker-compose.override.yml"],
)
def test_override(tmp_path: Path, override: str) -> None:
    """An override file beside the definition comes after it, in any spelling."""
    for name in ("compose.yaml", override):
        (tmp_path / name).touch()

    assert find_compose_files(tmp_path) == ComposeFiles(files=(tmp_path / "compose.yaml", tmp_path / override))


def test_several_override_files(tmp_path: Path) -> None:
    """Of several, the first in Compose's order is used, and the others are returned as ignored."""
    (tmp_path / "compose.yaml").touch()
    for name in OVERRIDE_NAMES:
        (tmp_path / name).touch()

    expected = (
        "compose.override.yml",
        "compose.override.yaml",
        "docker-compose.override.yml",
        "docker-compose.override.yaml",
    )
    assert find_compose_files(tmp_path) == ComposeFiles(
        files=(tmp_path / "compose.yaml", tmp_path / expected[0]),
        ignored=tuple(tmp_path / name for name in expected[1:]),
    )


def test_override_alone(tmp_path: Path) -> None:
    """An override file alone is no definition."""
    (tmp_path / "compose.override.yaml").touch()

    assert find_compose_files(tmp_path) is None


@pytest.mark.parametrize("platform", PLATFORM_NAMES)
def test_platform_file(tmp_path: Path, platform: str) -> None:
    """A platform file comes after the override file."""
    names = ("docker-compose.yml", "docker-compose.override.yml", platform)
    for name in names:
        (tmp_path / name).touch()

    assert find_compose_files(tmp_path) == ComposeFiles(files=tuple(tmp_path / name for name in names))


def test_two_platform_files(tmp_path: Path) -> None:
    """Of two platform files, the first is used and the other is returned as ignored."""
    for name in ("compose.yaml", *PLATFORM_NAMES):
        (tmp_path / name).touch()

    assert find_compose_files(tmp_path) == ComposeFiles(
        files=(tmp_path / "compose.yaml", tmp_path / "compose.platform.yaml"),
        ignored=(tmp_path / "compose.platform.yml",),
    )


def test_platform_file_alone(tmp_path: Path) -> None:
    """A platform file alone is no definition."""
    (tmp_path / "compose.platform.yaml").touch()

    assert find_compose_files(tmp_path) is None


def test_platform_file_is_merged(project: Project) -> None:
    """Its mount takes the place of the Compose file's at the same path, and `!reset` removes one."""
    folder = project(
        {
            "compose.yaml": "services: {db: {image: x, volumes: ['./data:/data', '/run/docker.sock:/s']}}",
            "compose.platform.yaml": (
                "services: {db: {volumes: ['data:/data', !reset '/run/docker.sock:/s']}}\nvolumes: {data: {size: 2Gi}}"
            ),
        }
    )

    reading = folder.read()
    assert reading.messages == []
    assert reading.names == ["PersistentVolumeClaim/data", "Service/db", "StatefulSet/db"]


def test_platform_file_with_named_files(project: Project) -> None:
    """With ``-f``, the platform file is not read."""
    folder = project(
        {"compose.yaml": "services: {a: {image: x}}", "compose.platform.yaml": "services: {b: {image: x}}"}
    )

    assert list(folder.read("compose.yaml").loaded.project.services) == ["a"]


def test_platform_file_outside_the_project(project: Project, tmp_path: Path) -> None:
    """A platform file that is a link out of the project is refused."""
    (tmp_path / "other.yaml").write_text("services: {b: {image: x}}")
    folder = project("services: {a: {image: x}}")
    (folder.path / "compose.platform.yaml").symlink_to(tmp_path / "other.yaml")

    assert folder.read().codes == ["outside-project"]
