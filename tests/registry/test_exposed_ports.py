"""The ports that images expose are read from their registries, remembered, and left out where they can't be had."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from composeplat.registry.credentials import Login
from composeplat.registry.exposed_ports import ExposedPorts
from composeplat.registry.image_config import Ports, read_users
from tests.registry_server import Answer, Registry, basic, serving

USER, PASSWORD = "ann", "s3cret"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(Registry()) as made:
        yield made


def ports(
    tmp_path: Path, image: str, logins: Mapping[str, Login] | None = None, *, timeout: float = 10
) -> Ports | None:
    """Read the ports of an image as a new process does."""
    exposed = ExposedPorts(tmp_path / "ports", {"HOME": str(tmp_path)}, logins or {}, timeout=timeout)
    return exposed.request(image).result()


def expire(tmp_path: Path) -> None:
    """Let the time pass after which what is remembered is asked for again."""
    for path in (tmp_path / "ports").iterdir():
        path.write_text(json.dumps({**json.loads(path.read_text()), "until": time.time() - 1}))


# reading --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exposed", "expected"),
    [
        pytest.param(["8080/tcp", "80/tcp"], ((80, "tcp"), (8080, "tcp")), id="several"),
        pytest.param(["53/udp", "53/tcp"], ((53, "tcp"), (53, "udp")), id="protocols"),
        pytest.param(["80"], ((80, "tcp"),), id="no protocol"),
        pytest.param([], (), id="none"),
        pytest.param(["x/tcp", "0/tcp", "70000/tcp", "80/ipx"], (), id="nonsense"),
        pytest.param([f"{number}/tcp" for number in range(1000, 1200)], (), id="too many"),
    ],
)
def test_ports(exposed: list[str], expected: Ports, registry: Registry, tmp_path: Path) -> None:
    """Ports come with their protocols, in their order; what is no port, or more than is sensible, does not."""
    registry.push("team/app", *exposed, tag="1")

    assert expected == ports(tmp_path, f"{registry.host}/team/app:1")


def test_names(registry: Registry, tmp_path: Path) -> None:
    """Without a tag it is the latest; a digest wins over a tag."""
    digest = registry.push("app", "80/tcp")
    registry.push("app", "81/tcp", tag="1")

    assert ports(tmp_path, f"{registry.host}/app") == ((80, "tcp"),)
    assert ports(tmp_path, f"{registry.host}/app:1@{digest}") == ((80, "tcp"),)


def test_several_platforms(registry: Registry, tmp_path: Path) -> None:
    """Of an image for several platforms it is one for Linux."""
    linux, other = registry.push("app", "80/tcp"), registry.push("app", "81/tcp")
    platforms = [(other, "unknown"), (other, "windows"), (linux, "linux")]
    manifests = [
        {"digest": digest, "platform": {"os": system, "architecture": "s390x"}} for digest, system in platforms
    ]
    registry.put("app", {"manifests": manifests})

    assert ports(tmp_path, f"{registry.host}/app") == ((80, "tcp"),)


def test_elsewhere(registry: Registry, tmp_path: Path) -> None:
    """Where a registry sends on for its blobs, credentials don't go along."""
    registry.push("app", "80/tcp")

    def gate(path: str, authorization: str) -> Answer | None:
        if path.startswith("/elsewhere"):
            return None
        if not authorization:
            return 401, {"WWW-Authenticate": 'Basic realm="x"'}, b"{}"
        return (307, {"Location": path.replace("/v2", "/elsewhere")}, b"") if "/blobs/" in path else None

    registry.gate = gate
    registry.content |= {f"/elsewhere/{path}": body for path, body in registry.content.items() if "/blobs/" in path}
    logins = {registry.host: Login(address=registry.host, user=USER, password=PASSWORD)}

    assert ports(tmp_path, f"{registry.host}/app", logins) == ((80, "tcp"),)
    assert [given for path, given in registry.asked if path.startswith("/elsewhere")] == [""]


# credentials ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("password", "expected"),
    [pytest.param("s3cret", ((80, "tcp"),), id="right"), pytest.param("nonsense", None, id="wrong")],
)
@pytest.mark.parametrize("kind", ["basic", "bearer", "both", "without quotes"])
def test_a_login(password: str, expected: Ports | None, kind: str, registry: Registry, tmp_path: Path) -> None:
    """A registry that wants a login is given it when it asks, itself or for a token; a wrong one is no error."""
    registry.push("team/app", "80/tcp")

    def gate(path: str, authorization: str) -> Answer | None:
        wanted = basic(USER, PASSWORD)
        if path.startswith("/token"):
            assert path == "/token?service=here&scope=repository%3Ateam%2Fapp%3Apull"
            return (200, {}, b'{"token": "t0ken"}') if authorization == wanted else (401, {}, b"{}")
        challenge = {
            "basic": 'Basic realm="x"',
            "bearer": f'Bearer realm="http://{registry.host}/token",service="here",scope="repository:x:pull"',
            "both": f'Basic realm="x, y", bearer service="here", realm="http://{registry.host}/token"',
            "without quotes": f"Bearer realm=http://{registry.host}/token,service=here",
        }[kind]
        let_in = wanted if kind == "basic" else "Bearer t0ken"
        return None if authorization == let_in else (401, {"WWW-Authenticate": challenge}, b"{}")

    registry.gate = gate
    logins = {registry.host: Login(address=registry.host, user=USER, password=password)}

    assert expected == ports(tmp_path, f"{registry.host}/team/app", logins)
    assert registry.asked[0][1] == ""


def test_the_login_of_docker(registry: Registry, tmp_path: Path) -> None:
    """Where none is given, it is the Docker configuration's."""
    registry.push("app", "80/tcp")
    registry.gate = lambda _, given: (
        None if given == basic(USER, PASSWORD) else (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"{}")
    )
    (tmp_path / ".docker").mkdir()
    config = {"auths": {registry.host: {"username": "ann", "password": "s3cret"}}}
    (tmp_path / ".docker" / "config.json").write_text(json.dumps(config))

    assert ports(tmp_path, f"{registry.host}/app") == ((80, "tcp"),)


# memory ---------------------------------------------------------------------------------------------------------------


def test_what_is_known_is_not_asked_again(registry: Registry, tmp_path: Path) -> None:
    """A reference is read once, by whichever process comes first."""
    reference = f"{registry.host}/app:1"
    registry.push("app", "80/tcp", tag="1")
    assert ports(tmp_path, reference) == ((80, "tcp"),)
    registry.asked.clear()

    assert ports(tmp_path, reference) == ((80, "tcp"),)
    assert registry.asked == []


def test_a_tag_is_asked_again_after_a_day(registry: Registry, tmp_path: Path) -> None:
    """A tag that has moved is noticed, but not at once; a digest is known for ever."""
    digest = registry.push("app", "80/tcp")
    tag, pinned = f"{registry.host}/app", f"{registry.host}/app@{digest}"
    assert (ports(tmp_path, tag), ports(tmp_path, pinned)) == (((80, "tcp"),), ((80, "tcp"),))
    registry.push("app", "81/tcp")
    assert ports(tmp_path, tag) == ((80, "tcp"),)

    expire(tmp_path)
    registry.asked.clear()

    assert ports(tmp_path, pinned) == ((80, "tcp"),)
    assert registry.asked == []
    assert ports(tmp_path, tag) == ((81, "tcp"),)


def test_what_is_known_outlives_its_registry(registry: Registry, tmp_path: Path) -> None:
    """Where the registry can't be asked again, what it said before stands."""
    registry.push("app", "80/tcp")
    reference = f"{registry.host}/app"
    assert ports(tmp_path, reference) == ((80, "tcp"),)
    expire(tmp_path)
    registry.gate = lambda *_: (503, {}, b"")

    assert ports(tmp_path, reference) == ((80, "tcp"),)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param((503, {}, b""), None, id="out of order"),
        pytest.param((200, {}, b"no JSON"), None, id="nonsense"),
        pytest.param((200, {}, b"[]"), None, id="another shape"),
        pytest.param((404, {}, b"{}"), ((80, "tcp"),), id="not there yet"),
    ],
)
def test_no_answer(answer: Answer, expected: Ports | None, registry: Registry, tmp_path: Path) -> None:
    """A registry that gives no answer is left alone for an hour; an image that is not there is looked for again."""
    registry.push("app", "80/tcp")
    registry.gate = lambda *_: answer
    reference = f"{registry.host}/app"

    assert ports(tmp_path, reference) is None
    registry.gate = lambda *_: None
    assert expected == ports(tmp_path, reference)

    expire(tmp_path)
    assert ports(tmp_path, reference) == ((80, "tcp"),)


def test_nobody_there(tmp_path: Path) -> None:
    """A registry that can't be reached is no error."""
    with serving(Registry()) as gone:
        reference = f"{gone.host}/app"

    assert ports(tmp_path, reference) is None


def test_a_folder_that_can_not_be_written(registry: Registry, tmp_path: Path) -> None:
    """Where nothing can be remembered, it is read all the same."""
    registry.push("app", "80/tcp")
    (tmp_path / "ports").write_text("a file")

    assert ports(tmp_path, f"{registry.host}/app") == ((80, "tcp"),)


# time -----------------------------------------------------------------------------------------------------------------


def test_silence(registry: Registry, tmp_path: Path) -> None:
    """A registry that says nothing is not waited for, and what it says later changes nothing for an hour."""
    registry.push("app", "80/tcp")
    goes_on = threading.Event()
    registry.gate = lambda *_: (goes_on.wait(20), None)[1]
    exposed = ExposedPorts(tmp_path / "ports", {}, timeout=0.2)
    began = time.monotonic()

    assert exposed.request(f"{registry.host}/app").result() is None
    assert time.monotonic() - began < 5
    goes_on.set()
    assert exposed.request(f"{registry.host}/app").result() is None
    assert ports(tmp_path, f"{registry.host}/app") is None


def test_the_last_second_is_used(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry is asked as long as there is time left, be it less than a second."""
    registry.push("app")
    clock = itertools.chain([100.0], itertools.repeat(101.1))
    monkeypatch.setattr("composeplat.system.deadline.time", SimpleNamespace(monotonic=lambda: next(clock)))

    found = read_users([f"{registry.host}/app"], {"HOME": str(tmp_path)}, timeout=2.0)

    assert found == {f"{registry.host}/app": ""}


def test_side_by_side(registry: Registry, tmp_path: Path) -> None:
    """Several images are read at once: none is answered here before all have been asked for."""
    all_here = threading.Barrier(5)
    registry.gate = lambda path, _: (all_here.wait(10) if "/manifests/" in path else None, None)[1]
    names = [f"app{number}" for number in range(5)]
    for name in names:
        registry.push(name, "80/tcp")
    exposed = ExposedPorts(tmp_path / "ports", {}, timeout=20)

    asked = [exposed.request(f"{registry.host}/{name}") for name in names]

    assert [item.result() for item in asked] == [((80, "tcp"),)] * 5


def test_what_was_pushed_is_known(registry: Registry, tmp_path: Path) -> None:
    """The ports of an image that was just pushed are not asked for."""
    name = f"{registry.host}/app"
    ExposedPorts(tmp_path / "ports", {"HOME": str(tmp_path)}).remember(name, ((80, "tcp"),))

    assert ports(tmp_path, name) == ((80, "tcp"),)
    assert registry.asked == []
