"""The server of the page, at a real port: its headers, its streams, and what ends when nobody looks."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.ui.log_batches import Batches, Line
from composeplat.ui.site import Environment, LogRequest
from composeplat.ui.topics import Publish
from tests.ui.served import Client, serving, site_of, wait_until

BASE = "/api/environments/team/shop"


class Counter:
    """A topic that counts, and knows whether somebody reads it."""

    def __init__(self) -> None:
        self.readers = 0
        self.started = 0

    def read(self, publish: Publish, ended: threading.Event) -> None:
        self.readers += 1
        self.started += 1
        for number in itertools.count():
            publish("status", {"number": number})
            if ended.wait(0.01):
                break
        self.readers -= 1


class LogLines:
    """Log lines without end."""

    def __init__(self, count: int = 0, text: str = "hello") -> None:
        self.is_stopped = threading.Event()
        self.asked: list[LogRequest] = []
        self.taken = 0
        self._count, self._text = count, text

    def open(self, asked: LogRequest) -> LogLines:
        self.asked.append(asked)
        return self

    def lines(self) -> Iterator[Line | str]:
        for number in itertools.count():
            if self.is_stopped.is_set() or number == self._count > 0:
                return
            self.taken += 1
            yield f"2026-01-01T00:00:00.{number:09}Z", "web", "web-1", f"{self._text} {number}", False, ""

    def stop(self) -> None:
        self.is_stopped.set()


def environment(**changes: Any) -> Environment:
    made = Environment(namespace="team", name="shop", sources={}, open_logs=LogLines().open)
    return replace(made, **changes)


@pytest.fixture
def client() -> Iterator[Client]:
    with serving(site_of(environment())) as found:
        yield found


def test_headers(client: Client) -> None:
    """Every response has the policy: of the page, of data, of a refusal and of what is not there."""
    for path in ("/", "/api/page", f"{BASE}/stream/none", "/none"):
        for headers in ({}, {"Authorization": ""}, {"Host": "evil.example.com"}):
            with client.open(path, headers=headers) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["X-Frame-Options"] == "DENY"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
                assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
                assert "camera=()" in answer.headers["Permissions-Policy"]
                assert answer.headers["Cache-Control"] == "no-store"
                assert "Access-Control-Allow-Origin" not in answer.headers
                assert "Server" not in answer.headers


def test_a_preflight_is_refused(client: Client) -> None:
    """A browser asks before another site may send the header with the code; the answer allows nothing."""
    asked = {"Origin": "http://evil.example.com", "Access-Control-Request-Method": "POST", "Authorization": ""}
    with client.open(f"{BASE}/actions/sleep", "OPTIONS", headers=asked) as answer:
        assert answer.status == 403
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("path", ["/../server.py", "/%2e%2e/server.py", "/js/..%2f..%2fserver.py", "/..%5cserver.py"])
def test_only_files_of_the_page(client: Client, path: str) -> None:
    with client.open(path) as answer:
        assert answer.status == 404


def test_sign_in(client: Client) -> None:
    """The form's code comes back to the page's own script; another code does not."""
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null", "Authorization": ""}
    with client.open("/sign-in", "POST", f"code={client.gate.token}".encode(), form) as answer:
        assert answer.status == 200
        assert f'content="{client.gate.token}"' in answer.read().decode()
    for body in (b"code=%22%3E%3Cscript%3E", b"", b"code=" + b"x" * 100_000, b"\xff\xfe"):
        with client.open("/sign-in", "POST", body, form) as answer:
            assert answer.status in (401, 413)
            assert "<script>" not in answer.read().decode()


def test_topics() -> None:
    """A topic is read while somebody looks, once for all of them, and by nobody afterwards."""
    counter = Counter()
    with serving(site_of(environment(sources={"status": counter.read}))) as client:
        assert counter.readers == 0
        with client.stream(f"{BASE}/stream") as first, client.stream(f"{BASE}/stream") as second:
            assert [next(first)["topic"], next(second)["topic"]] == ["status", "status"]
            assert counter.readers == 1
        wait_until(lambda: counter.readers == 0)
        with client.stream(f"{BASE}/stream") as again:
            assert next(again)["topic"] == "status"
        assert counter.started == 2


def test_a_slow_reader_gets_the_latest() -> None:
    """A reader that sleeps gets one document for all that it has missed, however many there were."""
    counter = Counter()
    with serving(site_of(environment(sources={"status": counter.read}))) as client:
        with client.stream(f"{BASE}/stream") as documents:
            before = next(documents)["data"]["number"]
            time.sleep(1)
            numbers = [document["data"]["number"] for document in itertools.islice(documents, 20)]
        assert numbers == sorted(set(numbers))
        assert before < numbers[0]


def test_a_problem_comes_and_goes() -> None:
    """What keeps a topic from being read is shown until it can be read again."""
    tries = itertools.count()

    def read(publish: Publish, ended: threading.Event) -> None:
        if next(tries) == 0:
            raise ComposeplatError("the cluster can't be reached", "check the network")
        publish("status", {})
        ended.wait()

    with serving(site_of(environment(sources={"status": read}))) as client, client.stream(f"{BASE}/stream") as found:
        assert next(found) == {
            "topic": "problem", "data": {"message": "the cluster can't be reached", "hint": "check the network"}
        }  # fmt: skip
        rest = {document["topic"]: document["data"] for document in itertools.islice(found, 2)}
        assert rest == {"problem": {"message": "", "hint": ""}, "status": {}}


def test_the_problem_of_another_topic() -> None:
    """A topic that can be read again does not hide what keeps another one from being read."""
    may_read, tries = threading.Event(), itertools.count()

    def fail(_publish: Publish, ended: threading.Event) -> None:
        if may_read.is_set():
            ended.wait()
        raise ComposeplatError("you may not list events")

    def read(publish: Publish, ended: threading.Event) -> None:
        may_read.wait()
        if next(tries) == 0:
            raise ComposeplatError("the cluster can't be reached")
        publish("status", {})
        ended.wait()

    sources = {"events": fail, "status": read}
    with serving(site_of(environment(sources=sources))) as client, client.stream(f"{BASE}/stream") as found:
        assert next(found)["data"]["message"] == "you may not list events"
        may_read.set()
        assert next(row for row in found if row["topic"] == "status")
        with client.stream(f"{BASE}/stream") as again:
            rows = {row["topic"]: row["data"] for row in itertools.islice(again, 2)}
    assert rows["problem"]["message"] == "you may not list events"


def test_the_problem_of_an_hour_ago() -> None:
    """A page that comes back after a while no longer shows the problem that there was when it went."""
    problem = "the cluster can't be reached"
    of_others = set(threading.enumerate())

    def read(publish: Publish, ended: threading.Event) -> None:
        if problem:
            raise ComposeplatError(problem)
        publish("status", {})
        ended.wait()

    with serving(site_of(environment(sources={"status": read}))) as client:
        with client.stream(f"{BASE}/stream") as found:
            assert next(found)["data"]["message"] == problem
        wait_until(lambda: "ui-status" not in {thread.name for thread in set(threading.enumerate()) - of_others})
        problem = ""
        with client.stream(f"{BASE}/stream") as found:
            rows = {row["topic"]: row["data"] for row in itertools.islice(found, 2)}
    assert rows == {"problem": {"message": "", "hint": ""}, "status": {}}


def test_a_topic_that_fails_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure it is read again soon, however many others there were while the page was open."""
    monkeypatch.setattr("composeplat.ui.topics._MIN_RETRY_S", 0.01)
    monkeypatch.setattr("composeplat.ui.topics._MAX_RETRY_S", 0.2)
    starts, ends = [], []

    def read(publish: Publish, ended: threading.Event) -> None:
        starts.append(time.monotonic())
        publish("status", {"number": len(starts)})
        ended.wait(0.25)
        ends.append(time.monotonic())
        raise ComposeplatError("the cluster can't be reached")

    with serving(site_of(environment(sources={"status": read}))) as client, client.stream(f"{BASE}/stream"):
        wait_until(lambda: len(starts) > 8)
    pauses = [start - end for end, start in zip(ends, starts[1:], strict=False)]
    # On a machine that does much else, one of them may be long.
    assert min(pauses[5:]) < 0.1


def test_a_name_that_is_no_utf8() -> None:
    """A file whose name has other bytes is shown by an escape; the topic was not read any more."""

    def read(publish: Publish, ended: threading.Event) -> None:
        publish("definition", {"files": ["\udcff ü.yaml"]})
        ended.wait()

    with serving(site_of(environment(sources={"definition": read}))) as client, client.stream(f"{BASE}/stream") as rows:
        assert next(rows) == {"topic": "definition", "data": {"files": ["\udcff ü.yaml"]}}


def test_a_bug_is_reported() -> None:
    """A topic that ends with an error of ours is not silent; the others continue."""
    counter = Counter()

    def read(_publish: Publish, _ended: threading.Event) -> None:
        raise KeyError("no such thing")

    sources = {"status": counter.read, "events": read}
    with serving(site_of(environment(sources=sources))) as client, client.stream(f"{BASE}/stream") as found:
        problem = next(row["data"]["message"] for row in found if row["topic"] == "problem")
        assert problem == "events is not read any more: KeyError in platform"
        assert next(row for row in found if row["topic"] == "status")


def test_logs() -> None:
    """Lines come in batches, of the services and with the tail that were asked for."""
    logs, started = LogLines(count=12_000), time.monotonic()
    with serving(site_of(environment(open_logs=logs.open))) as client:
        with client.stream(f"{BASE}/logs?service=web&service=db&tail=5") as documents:
            batches = [document["lines"] for document in documents]
        assert sum(map(len, batches)) == 12_000
        # At most ten a second, of at most 5,000 lines.
        assert len(batches) < 10 * (time.monotonic() - started) + 5
        assert batches[0][0] == ["2026-01-01T00:00:00.000000000Z", "web", "web-1", "hello 0", False, ""]
        assert logs.asked == [LogRequest(services=("web", "db"), tail=5)]


def test_logs_end_with_their_reader() -> None:
    """Nobody reads lines for a page that is closed, and a reader that stops reading does not fill the memory."""
    logs = LogLines(text="x" * 1000)
    with serving(site_of(environment(open_logs=logs.open))) as client:
        with client.stream(f"{BASE}/logs?tail=") as documents:
            next(documents)
            time.sleep(1.5)
            taken = logs.taken
            assert taken < 100_000
            time.sleep(0.3)
            assert logs.taken < taken + 30_000
        wait_until(logs.is_stopped.is_set)
        assert logs.asked[0].tail is None


def test_long_lines_for_a_reader_that_stops() -> None:
    """Lines of 16 KiB took 320 MB of memory for each stream whose browser does not read."""
    logs = LogLines(text="x" * 16_000)
    with serving(site_of(environment(open_logs=logs.open))) as client, client.stream(f"{BASE}/logs") as documents:
        next(documents)
        time.sleep(2)
        assert logs.taken * 16_000 < 50_000_000


def test_a_tail_of_thousands_of_digits() -> None:
    logs = LogLines()
    with serving(site_of(environment(open_logs=logs.open))) as client:
        with client.stream(f"{BASE}/logs?tail={'9' * 5000}") as documents:
            next(documents)
        assert logs.asked[0].tail == 999_999_999


def test_lines_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that fails when the server has ended is not an error in the terminal."""
    failures: list[object] = []
    monkeypatch.setattr("threading.excepthook", failures.append)
    has_ended = threading.Event()

    class Late(LogLines):
        def lines(self) -> Iterator[Line | str]:
            yield "", "web", "web-1", "hello", False, ""
            has_ended.wait()
            raise ComposeplatError("the cluster can't be reached")

    async def read() -> None:
        async for _ in Batches(Late()).read():
            break

    before = threading.enumerate()
    asyncio.run(read())
    (reader,) = set(threading.enumerate()) - set(before)
    has_ended.set()
    reader.join()
    assert failures == []


def test_streams_beyond_the_fifth(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the six connections of a browser is used in turns: its stream ends soon, and says so."""
    monkeypatch.setattr("composeplat.ui.stream_turns._TURN_S", 0.3)
    logs = LogLines()
    sources = {"status": Counter().read}
    with serving(site_of(environment(open_logs=logs.open, sources=sources))) as client:
        with contextlib.ExitStack() as windows:
            first = windows.enter_context(client.stream(f"{BASE}/stream"))
            for _ in range(4):
                next(windows.enter_context(client.stream(f"{BASE}/stream")))
            with client.stream(f"{BASE}/stream") as status, client.stream(f"{BASE}/logs") as lines:
                for stream in (status, lines):
                    assert list(stream)[-1] == {"topic": "turn", "data": None}
            wait_until(logs.is_stopped.is_set)
            assert next(first)["topic"] == "status"
        with client.stream(f"{BASE}/stream") as again:
            assert all(next(again)["topic"] == "status" for _ in range(100))


def test_unknown_environment(client: Client) -> None:
    with client.open("/api/environments/team/other/stream") as answer:
        assert answer.status == 404


def test_read_only(client: Client) -> None:
    """Without actions, none can be started."""
    status, answer = client.post(f"{BASE}/actions/sleep", {})
    assert (status, "--read-only" in answer["message"]) == (403, True)


@pytest.mark.parametrize(
    "body", [b"[]", b"{", b"null", b'{"services": "web"}', b'{"preview_id": 1}', b"\xff", b"[" * 60_000]
)
def test_invalid_body(body: bytes) -> None:
    changed = environment(arguments=lambda *_: ["false"])
    with serving(site_of(changed)) as client:
        headers = {"Content-Type": "application/json"}
        with client.open(f"{BASE}/actions/sleep", "POST", body, headers) as answer:
            assert answer.status == 400


@pytest.mark.parametrize("name", ["web\0", "\ud800", "", 7, None])
def test_what_no_service_is_called(name: object) -> None:
    """A name that no process can get, or no service can have, is refused with a message."""
    with serving(site_of(environment(arguments=lambda *_: ["false"]))) as client:
        status, answer = client.post(f"{BASE}/actions/restart", {"services": [name]})
        assert (status, "service" in answer["message"]) == (400, True)


@pytest.mark.parametrize("path", ["/%00", "/js/%00.js", f"/{'a' * 300}", "/%ff", "/js", "/%ed%a0%80"])
def test_a_file_that_no_page_has(client: Client, path: str) -> None:
    with client.open(path) as answer:
        assert answer.status == 404


def test_large_body() -> None:
    with serving(site_of(environment(arguments=lambda *_: ["false"]))) as client:
        headers = {"Content-Type": "application/json"}
        with client.open(f"{BASE}/actions/sleep", "POST", b" " * 100_000, headers) as answer:
            assert answer.status == 413
