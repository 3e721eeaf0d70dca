"""Logins for registries are read where Docker keeps them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from composeplat.compose.options import Request
from composeplat.diagnostics import ComposeplatError
from composeplat.registry.credentials import Login, find_login, read_logins


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"DOCKER_CONFIG": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}


def write(tmp_path: Path, config: Any) -> None:
    (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))


def helper(tmp_path: Path, script: str) -> None:
    """Put a credential helper named ``box`` on PATH."""
    path = tmp_path / "bin" / "docker-credential-box"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def login(user: str, secret: str, address: str = "r.example.com") -> Login:
    return Login(address=address, user=user, password=secret)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("key", "registry", "address"),
    [
        pytest.param("registry.example.com", "registry.example.com", "registry.example.com", id="host"),
        pytest.param("https://registry.example.com", "registry.example.com", "registry.example.com", id="address"),
        pytest.param("https://index.docker.io/v1/", "docker.io", "https://index.docker.io/v1/", id="dockers-own"),
        pytest.param("index.docker.io", "docker.io", "https://index.docker.io/v1/", id="host-of-dockers-own"),
        pytest.param("https://r.example.com:5000/v2/", "r.example.com:5000", "r.example.com:5000", id="with-a-path"),
    ],
)
def test_in_the_file(tmp_path: Path, environment: dict[str, str], key: str, registry: str, address: str) -> None:
    """A login that the file itself has is found under each name that Docker gives it."""
    write(tmp_path, {"auths": {key: {"auth": encoded("ann:pa:ss")}}})

    assert find_login(registry, environment) == login("ann", "pa:ss", address)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(None, id="no-file"),
        pytest.param({}, id="empty"),
        pytest.param({"auths": {"other.example.com": {"auth": "eDp5"}}}, id="another-registry"),
        pytest.param({"auths": {"registry.example.com": {}}}, id="kept-elsewhere"),
    ],
)
def test_no_login(tmp_path: Path, environment: dict[str, str], config: object) -> None:
    """Where there was no login, there is none, and that is no error."""
    if config is not None:
        write(tmp_path, config)

    assert find_login("registry.example.com", environment) is None


def test_the_home_folder(tmp_path: Path) -> None:
    """Unless said, the configuration is in the home folder."""
    (tmp_path / ".docker").mkdir()
    write(tmp_path / ".docker", {"auths": {"r.example.com": {"username": "ann", "password": "x"}}})

    found = find_login("r.example.com", {"HOME": str(tmp_path)})
    assert found == login("ann", "x")


def test_no_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``HOME``, as in a service of systemd, the account's home folder has the configuration."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".docker").mkdir()
    write(tmp_path / ".docker", {"auths": {"r.example.com": {"username": "ann", "password": "x"}}})

    assert find_login("r.example.com", {}) == login("ann", "x")


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"credsStore": "box"}, id="for-all"),
        pytest.param({"credHelpers": {"r.example.com": "box"}, "credsStore": "other"}, id="for-this-one"),
    ],
)
def test_a_helper(tmp_path: Path, environment: dict[str, str], config: object) -> None:
    """A credential helper is asked for the registry's address."""
    write(tmp_path, config)
    helper(tmp_path, 'read it; [ "$1 $it" = "get r.example.com" ] && echo \'{"Username": "ann", "Secret": "s3"}\'')

    assert find_login("r.example.com", environment) == login("ann", "s3")


def test_a_helper_that_knows_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    """What the helper does not know may be in the file."""
    write(tmp_path, {"credsStore": "box", "auths": {"r.example.com": {"auth": encoded("ann:x")}}})
    helper(tmp_path, "echo credentials not found in native keychain; exit 1")

    found = find_login("r.example.com", environment)
    assert found == login("ann", "x")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("echo locked; exit 1", "the credential helper 'docker-credential-box' failed", id="fails"),
        pytest.param("echo no", "the credential helper 'docker-credential-box' gave an invalid response", id="no-json"),
        pytest.param(
            "printf '\\377'", "the credential helper 'docker-credential-box' gave an invalid response", id="no-text"
        ),
        pytest.param("printf '\\377'; exit 1", "the credential helper 'docker-credential-box' failed", id="fails-so"),
        pytest.param(
            'echo \'{"Username": "<token>", "Secret": "t"}\'',
            "Docker has a token that pods can't pull with",
            id="token",
        ),
    ],
)
def test_a_bad_helper(tmp_path: Path, environment: dict[str, str], script: str, message: str) -> None:
    """A helper that gives no login is named, and never what it said."""
    write(tmp_path, {"credsStore": "box"})
    helper(tmp_path, script)

    with pytest.raises(ComposeplatError, match=message):
        find_login("r.example.com", environment)


def test_a_missing_helper(tmp_path: Path, environment: dict[str, str]) -> None:
    """A helper that is not there is named."""
    write(tmp_path, {"credsStore": "box"})

    with pytest.raises(ComposeplatError, match="'docker-credential-box', which is not on PATH"):
        find_login("r.example.com", environment)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param("{", "can't be read: it is not json", id="no-json"),
        pytest.param(
            {"auths": {"r.example.com": {"auth": "?"}}}, "has an invalid login for r.example.com", id="no-login"
        ),
        pytest.param(
            {"auths": {"r.example.com": {"auth": "añb"}}}, "has an invalid login for r.example.com", id="not-ascii"
        ),
    ],
)
def test_a_broken_file(tmp_path: Path, environment: dict[str, str], config: object, message: str) -> None:
    """A file that is broken is named."""
    write(tmp_path, config)

    with pytest.raises(ComposeplatError, match=message):
        find_login("r.example.com", environment)


@pytest.mark.parametrize("entry", [{"auth": encoded("00000000:")}, {}], ids=["of-azure", "alone"])
def test_a_token_in_the_file(tmp_path: Path, environment: dict[str, str], entry: dict[str, str]) -> None:
    """An identity token, as ``az acr login`` stores it, is no password: pods can't pull with it."""
    write(tmp_path, {"auths": {"r.example.com": {**entry, "identitytoken": "t"}}})

    with pytest.raises(ComposeplatError, match="Docker has a token that pods can't pull with"):
        find_login("r.example.com", environment)


def test_a_password_beside_a_token(tmp_path: Path, environment: dict[str, str]) -> None:
    """A password is one, whatever is beside it."""
    write(tmp_path, {"auths": {"r.example.com": {"auth": encoded("ann:x"), "identitytoken": "t"}}})

    assert find_login("r.example.com", environment) == login("ann", "x")


# given ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "registry", "named"),
    [
        pytest.param("r.example.com", "r.example.com", "r.example.com", id="host"),
        pytest.param("https://r.example.com/v2/", "r.example.com", "r.example.com", id="address"),
        pytest.param("localhost:5000", "localhost:5000", "localhost:5000", id="port"),
        pytest.param("docker.io", "docker.io", "https://index.docker.io/v1/", id="dockers-own"),
        pytest.param("https://index.docker.io/v1/", "docker.io", "https://index.docker.io/v1/", id="dockers-address"),
    ],
)
def test_given_logins(address: str, registry: str, named: str) -> None:
    """A login that is given is known by its registry, however that is written."""
    given = read_logins([{"address": address, "username": "ann", "password": "s3cret"}])

    assert given == {registry: login("ann", "s3cret", named)}


@pytest.mark.parametrize("missing", ["address", "username", "password"])
def test_half_a_login(missing: str) -> None:
    """One without an address, a name or a password is refused, and says which."""
    whole = {"address": "r.example.com", "username": "ann", "password": "s3cret"}

    with pytest.raises(ComposeplatError, match=f"^an entry of 'registries' has no '{missing}'$"):
        read_logins([{**whole, missing: ""}])


def test_a_password_is_not_shown() -> None:
    """What Python shows of a login has no password."""
    assert "s3cret" not in repr(login("ann", "s3cret"))


def test_what_is_shown_of_logins(tmp_path: Path) -> None:
    """A login shows no password, and a request no login: either may be in a traceback."""
    found = login("ann", "s3cret")

    assert "s3cret" not in repr(found)
    assert repr(Request(folder=tmp_path, logins={found.address: found})) == repr(Request(folder=tmp_path))


@pytest.mark.parametrize("wrong", [[], "text", 5, None])
def test_keys_of_a_wrong_type(environment: dict[str, str], tmp_path: Path, wrong: Any) -> None:
    """They have no logins, and the other keys count."""
    write(tmp_path, {"auths": wrong, "credHelpers": wrong})
    assert find_login("r.example.com", environment) is None

    write(tmp_path, {"auths": {"r.example.com": {"auth": encoded("ann:s3cret")}}, "credHelpers": wrong})
    assert find_login("r.example.com", environment) == login("ann", "s3cret")
