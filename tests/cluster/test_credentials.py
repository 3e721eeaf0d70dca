"""Credentials end while they are used: they are renewed before that, and after a server has refused them."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.credentials import Credential, CredentialSource, static_credentials
from composeplat.cluster.kubeconfig import find_access
from composeplat.cluster.watching import Watcher
from composeplat.diagnostics import MissingPiece
from tests.cluster.objects import Answer, Server, given

#: So long a token of these tests lives, in seconds.
LIFE = 0.5
#: Gives a token that says when it was made; ``$TOLD`` is a line longer after each run.
PLUGIN = """#!/bin/sh
echo run >> "$RUNS"
now=$(date +%s.%N)
end=$(date -u -d "@$(echo "$now $LIFE" | awk '{printf "%.3f", $1 + $2}')" +%Y-%m-%dT%H:%M:%S.%3NZ)
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
"status": {"token": "%s", "expirationTimestamp": "%s"}}' "$now" "$end"
"""


def is_fresh(authorization: str) -> bool:
    made = authorization.removeprefix("Bearer ")
    return bool(made) and time.time() - float(made) < LIFE


@pytest.fixture
def strict() -> Iterator[Server]:
    """A server that lets in only who has a token made less than half a second ago."""
    with Server(admits=is_fresh) as server:
        yield server


def with_plugin(folder: Path, server: Server, *, text: str = PLUGIN, life: float = LIFE) -> Access:
    """What a kubeconfig with a plugin leads to."""
    plugin = folder / "plugin"
    plugin.write_text(text)
    plugin.chmod(0o755)
    named = folder / "config"
    version = "client.authentication.k8s.io/v1"
    named.write_text(json.dumps({
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "a", "user": "me"}}],
        "clusters": [{"name": "a", "cluster": {"server": f"https://127.0.0.1:{server.port}"}}],
        "users": [{"name": "me", "user": {"exec": {"apiVersion": version, "command": str(plugin)}}}],
    }))  # fmt: skip
    access = find_access({**os.environ, "RUNS": str(folder / "runs"), "LIFE": str(life)}, str(named))
    # No credential of a kubeconfig is for a server without TLS, as this one is.
    return replace(access, plain=True)


def ask(api: Api, way: str) -> list[Any]:
    """Ask for something in one of the ways that there are."""
    if way == "get":
        return [api.get("/pods")]
    if way == "items":
        return list(api.items("/pods"))
    if way == "object_metadata":
        return list(api.object_metadata("/pods"))
    if way == "lines":
        return [json.loads(part.text) for part in api.lines("/log")]
    return list(api.watch("/pods", "1"))


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def test_a_plugins_token_is_renewed_before_it_ends(strict: Server, tmp_path: Path) -> None:
    """A token was fetched once, and refused for ever when it had ended."""
    until = time.monotonic() + 4 * LIFE
    with Api(with_plugin(tmp_path, strict)) as api:
        while time.monotonic() < until:
            api.get("/version")
            time.sleep(0.02)

    assert len({request.headers["Authorization"] for request in strict.asked}) == runs(tmp_path)
    assert 4 <= runs(tmp_path) <= 7


def test_one_plugin_for_many_threads(tmp_path: Path) -> None:
    """However many threads ask at once, the plugin is run once for each token."""
    with Server() as server:
        assert_asked_by_threads(server, with_plugin(tmp_path, server, life=60))
    assert runs(tmp_path) == 1


def assert_asked_by_threads(server: Server, access: Access) -> None:

    def ask() -> None:
        with Api(access) as api:
            api.get("/version")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(server.asked) == 8


@pytest.mark.parametrize("way", ["get", "lines", "watch"])
def test_a_refused_token_is_renewed_once(strict: Server, tmp_path: Path, way: str) -> None:
    """A token that ended before its plugin said is renewed after a 401, for what continues without end too."""
    strict.otherwise = Answer(b'{"type": "ADDED"}\n')
    with Api(with_plugin(tmp_path, strict, life=60)) as api:
        api.get("/version")
        time.sleep(LIFE)
        read = ask(api, way)

    assert read == [{"type": "ADDED"}]
    assert runs(tmp_path) == 2
    assert len(strict.asked) == 3


@pytest.mark.parametrize("way", ["get", "lines", "watch"])
def test_a_token_that_is_refused_again(tmp_path: Path, way: str) -> None:
    """Where a new token is refused as well, that is reported, and not tried for ever."""
    with Server(admits=lambda _: False) as server, Api(with_plugin(tmp_path, server)) as api:
        with pytest.raises(ApiError, match="does not accept the credentials of context 'here'") as caught:
            ask(api, way)

        assert (caught.value.exit_code, runs(tmp_path), len(server.asked)) == (4, 2, 2)


def test_a_plugin_that_fails_later(strict: Server, tmp_path: Path) -> None:
    """A plugin that can't renew is reported, with its last message, as an error of the connection."""
    with Api(with_plugin(tmp_path, strict)) as api:
        api.get("/version")
        (tmp_path / "plugin").write_text("#!/bin/sh\necho 'log in first' >&2; exit 7\n")
        time.sleep(LIFE)
        with pytest.raises(ApiError, match=r"failed with exit status 7: log in first$") as caught:
            api.get("/version")

    assert (caught.value.status, caught.value.hint) == (401, f"try: {tmp_path}/plugin")


def test_a_service_that_wants_a_password(tmp_path: Path) -> None:
    """A service behind the API server that says 401 is none of the credential's business."""
    with Server(otherwise=Answer(b"log in", 401)) as server, Api(with_plugin(tmp_path, server, life=60)) as api:
        for _ in range(3):
            with pytest.raises(ApiError):
                api.text("/api/v1/namespaces/team/pods/web:80/proxy/")

    assert (runs(tmp_path), len(server.asked)) == (1, 3)


def test_a_token_file_that_is_rewritten(strict: Server, tmp_path: Path) -> None:
    """A token file was read once; others renew it on disk."""
    (tmp_path / "token").write_text(f"{time.time()}\n")
    access = replace(with_plugin(tmp_path, strict), credentials=token_file(tmp_path, strict))
    with Api(access) as api:
        for _ in range(4):
            time.sleep(LIFE / 2)
            (tmp_path / "token").write_text(f"{time.time()}\n")
            api.get("/version")

    assert len(strict.asked) == 4


def token_file(folder: Path, server: Server) -> CredentialSource:
    named = folder / "by-file"
    named.write_text(json.dumps({
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "a", "user": "me"}}],
        "clusters": [{"name": "a", "cluster": {"server": f"https://127.0.0.1:{server.port}"}}],
        "users": [{"name": "me", "user": {"tokenFile": "token"}}],
    }))  # fmt: skip
    return find_access({}, str(named)).credentials


def test_a_token_file_that_is_away_for_a_moment(tmp_path: Path, strict: Server) -> None:
    """A file that is being replaced leaves the token that was read from it."""
    (tmp_path / "token").write_text("first")
    source = token_file(tmp_path, strict)
    before = source.current()
    (tmp_path / "token").unlink()

    assert source.current() is before


def test_a_token_that_is_no_header(tmp_path: Path, strict: Server) -> None:
    """What no header takes is reported, and does not end in a traceback."""
    (tmp_path / "token").write_text("one\ntwo")

    with pytest.raises(MissingPiece, match="has characters that are invalid in an HTTP header"):
        token_file(tmp_path, strict).current()


# the source -----------------------------------------------------------------------------------------------------------


def test_a_source_that_fails_before_the_end() -> None:
    """Where a renewal fails, the credential that there is serves until its end."""
    first = Credential(token="first", expires=time.time() + 1.2)  # noqa: S106 -- no secret
    answers: list[Credential] = [first]

    def load() -> Credential:
        if not answers:
            raise MissingPiece("broken")
        return answers.pop()

    source = CredentialSource(load)
    assert source.current() is first
    time.sleep(1.0)
    assert source.current() is first
    time.sleep(0.3)
    with pytest.raises(MissingPiece, match="broken"):
        until_failed(source)


def until_failed(source: CredentialSource) -> None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        source.current()
        time.sleep(0.05)


def test_a_clock_that_is_ahead() -> None:
    """A credential that has ended by this machine's clock is used all the same: the server's clock counts."""
    source = CredentialSource(lambda: Credential(token=str(time.time()), expires=time.time() - 600))

    assert source.current() is source.current()


def test_a_static_credential_is_not_renewed() -> None:
    """A token that is written in the kubeconfig is refused at once."""
    source = static_credentials(Credential(token="t"))  # noqa: S106 -- no secret

    assert source.replace(source.current()) is False


# a watcher ------------------------------------------------------------------------------------------------------------


def test_a_watcher_beyond_the_end_of_a_token(strict: Server, tmp_path: Path) -> None:
    """A watcher continues through the ends of tokens, and misses no round."""
    strict.otherwise = given()
    watcher = Watcher(with_plugin(tmp_path, strict), "team", "shop")
    missed = set()
    until = time.monotonic() + 5 * LIFE
    while time.monotonic() < until:
        _ = watcher.latest
        missed.add(watcher.unreachable)
        time.sleep(0.02)
    watcher.stop()

    assert missed == {""}
    assert runs(tmp_path) >= 3


def test_a_watcher_of_another_server() -> None:
    """An answer of 200 that was no JSON ended the thread, and anyone who waited for views waited for ever."""
    with Server(otherwise=Answer(b"<html>please log in</html>")) as server:
        watcher = Watcher(server.access, "team", "shop")
        deadline = time.monotonic() + 10
        while watcher.latest is None and not watcher.unreachable and time.monotonic() < deadline:
            time.sleep(0.02)
        output = watcher.unreachable
        server.otherwise = given()
        while watcher.latest is None and time.monotonic() < deadline:
            time.sleep(0.02)
        watcher.stop()

    expected = f"the server at {server.access.address} is not an API server"
    assert output == f"{expected}: it answered '<html>please log in</html>…'"
    assert watcher.latest is not None


def test_a_watcher_that_can_not_go_on() -> None:
    """What a watcher's thread can't handle is raised where a view is wanted."""
    with Server(otherwise=given({"kind": "Deployment"})) as server:
        watcher = Watcher(server.access, "team", "shop")
        with pytest.raises(KeyError):
            wait_for_view(watcher)


def wait_for_view(watcher: Watcher) -> None:
    deadline = time.monotonic() + 10
    while watcher.latest is None and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'"ok"', b"null", b'{"items": 5}', b'{"items": ["a"]}', b"\xff\xfe"]
)
@pytest.mark.parametrize("way", ["items", "object_metadata", "watch"])
def test_another_server(body: bytes, way: str) -> None:
    """A proxy or a login page that answers 200 gave a traceback; it is reported, with what it says."""
    with Server(otherwise=Answer(body + b"\n" if way == "watch" else body)) as server, Api(server.access) as api:
        if (way == "items" and not body) or (way == "watch" and body.startswith(b"{")):
            ask(api, way)
            return
        with pytest.raises(ApiError, match="is not an API server: it answered '") as caught:
            ask(api, way)

    assert caught.value.exit_code == 4
    assert caught.value.hint


# the server's clock ---------------------------------------------------------------------------------------------------


def test_the_servers_clock() -> None:
    """What time it is is the server's to say: clocks of two machines differ."""
    date = datetime(2020, 1, 1, 12, 0, 0, tzinfo=UTC)
    with Server(date="Wed, 01 Jan 2020 12:00:00 GMT") as server, Api(server.access) as api:
        before = api.server_time
        api.get("/version")
        after = api.server_time

    assert abs(before - time.time()) < 5
    assert 0 <= after - date.timestamp() < 5
