"""Discovery of Compose files."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.compose.discovery import DEFAULT_NAMES, ComposeFiles, find_compose_files


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


def test_override_alone(tmp_path: Path) -> None:
    """An override file alone is no definition."""
    (tmp_path / "compose.override.yaml").touch()

    assert find_compose_files(tmp_path) is None
