"""The settings of registries in Docker's files are read; a file that can't be read is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from composeplat.diagnostics import MissingPiece
from composeplat.local.docker_settings import RegistrySettings, read_registry_settings


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "docker"
    folder.mkdir()
    monkeypatch.setattr("composeplat.local.docker_settings.DAEMON_FOLDER", folder)
    return folder


def test_no_docker(docker: Path, tmp_path: Path) -> None:
    """Without Docker's files there is nothing to follow."""
    assert read_registry_settings({"HOME": str(tmp_path)}) == RegistrySettings(certificates=docker / "certs.d")


def test_what_docker_knows_of_registries(docker: Path, tmp_path: Path) -> None:
    """Registries without TLS, with certificates of their own, and with a login are known by their hosts."""
    insecure = ["plain.example.com:5000", "10.1.0.0/16", "[::1]:5001"]
    (docker / "daemon.json").write_text(json.dumps({"insecure-registries": insecure, "debug": True}))
    (docker / "certs.d" / "own.example.com").mkdir(parents=True)
    (docker / "certs.d" / "own.example.com" / "ca.crt").touch()
    (docker / "certs.d" / "README").touch()
    logins = {"auths": {"https://index.docker.io/v1/": {}, "ghcr.io": {}, "a\nb": {}}, "credHelpers": {"gcr.io": "g"}}
    (tmp_path / "config.json").write_text(json.dumps(logins))

    found = read_registry_settings({"DOCKER_CONFIG": str(tmp_path)})

    assert found.insecure == tuple(insecure)
    assert found.hosts == (
        "[::1]:5001", "docker.io", "gcr.io", "ghcr.io", "own.example.com", "plain.example.com:5000",
    )  # fmt: skip
    assert found.certificates_of("own.example.com") == (docker / "certs.d" / "own.example.com" / "ca.crt",)
    assert found.certificates_of("ghcr.io") == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is invalid: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "is invalid: 'insecure-registries' must be a list of strings"),
        ('{"insecure-registries": "a"}', "is invalid: 'insecure-registries' must be a list of strings"),
        ('{"insecure-registries": [1]}', "is invalid: 'insecure-registries' must be a list of strings"),
        (b"\xff", "is invalid: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_settings_that_docker_would_not_take(docker: Path, text: str | bytes, reason: str) -> None:
    """The file of the daemon is named, with the reason."""
    (docker / "daemon.json").write_bytes(text if isinstance(text, bytes) else text.encode())

    with pytest.raises(MissingPiece) as caught:
        read_registry_settings({"DOCKER_CONFIG": "/none"})

    assert str(caught.value) == f"{docker}/daemon.json {reason}"


def test_settings_that_are_no_file(docker: Path) -> None:
    """A folder in its place is named too."""
    (docker / "daemon.json").mkdir()

    with pytest.raises(MissingPiece, match=r"^can't read .*/daemon\.json: is a folder"):
        read_registry_settings({"DOCKER_CONFIG": "/none"})


def test_an_invalid_file_of_logins_is_left_to_its_users(docker: Path, tmp_path: Path) -> None:
    """The mirror reports it with the image that can't be pulled."""
    (tmp_path / "config.json").write_text("{")

    assert read_registry_settings({"DOCKER_CONFIG": str(tmp_path)}).hosts == ()
    assert not (docker / "daemon.json").exists()
