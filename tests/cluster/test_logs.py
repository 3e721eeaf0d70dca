"""Logs: which lines are new, which are asked for, and in what order they come."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from queue import Queue

import pytest

from composeplat.cli.logs import select_pods
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.log_cursor import Cursor, parse_time
from composeplat.cluster.log_lines import MAX_PART_BYTES, LogPart, join_parts, split_lines
from composeplat.cluster.logs import Follower, LogLine, LogQuery, read_logs
from composeplat.cluster.snapshot import Object, logged_init_statuses
from composeplat.names import SERVICES_ANNOTATION
from tests.cluster.objects import (
    NAMESPACE,
    Answer,
    Server,
    deployment,
    given,
    no_server,
    pod,
    refusal,
    replica_set,
    running,
    until,
    with_sidecar,
)

LINES = [
    "2025-06-01T12:00:00.100000001Z one",
    "2025-06-01T12:00:00.2Z two",
    "2025-06-01T12:00:01.2Z three",
    "2025-06-01T12:00:03Z four",
]


def texts(cursor: Cursor, lines: list[str]) -> list[str]:
    return [taken[1] for taken in map(cursor.take, map(LogPart, lines)) if taken]


def started(service: str = "web", suffix: str = "x7k2p") -> Object:
    manifest = pod(replica_set(deployment(service)), suffix, state=running(), ready=True)
    manifest["metadata"]["labels"] = {"dev.platform.com/service": service}
    manifest["status"]["containerStatuses"][0]["containerID"] = "containerd://1"
    return manifest


def log_of(name: str, query: str = "") -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/log?container=web&timestamps=true{query}"


# moments --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("1970-01-01T00:01:00Z", (60, "000000000"), id="whole"),
        pytest.param("1970-01-01T00:01:00.5Z", (60, "500000000"), id="a-digit"),
        pytest.param("1970-01-01T00:01:00.000000001Z", (60, "000000001"), id="nanoseconds"),
        pytest.param("1970-01-01T02:01:00.25+02:00", (60, "250000000"), id="east"),
        pytest.param("1969-12-31T19:01:00.25-05:00", (60, "250000000"), id="west"),
        pytest.param("1970-01-01T00:01:00", None, id="no-zone"),
        pytest.param("1970-01-01", None, id="a-day"),
        pytest.param("failed", None, id="a-word"),
        pytest.param("1970-01-01T00:01:00.xZ", None, id="no-digits"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_moments(text: str, parts: tuple[int, str] | None) -> None:
    """A moment is read to the nanosecond, in every zone."""
    assert parts == parse_time(text)


# the cursor -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", range(1, 5))
def test_a_second_reading(read: int) -> None:
    """Wherever a reading broke off, the next one gives exactly what was not there before."""
    cursor = Cursor()
    before = texts(cursor, LINES[:read])
    cursor.begin()
    again = [line for line in LINES if line[:19] >= cursor.since[:19]]
    assert before + texts(cursor, again) == ["one", "two", "three", "four"]


def test_the_same_line_twice() -> None:
    """Lines that are equal to the nanosecond are counted: none is lost for being like another."""
    cursor = Cursor()
    texts(cursor, LINES[:1] * 2)
    cursor.begin()
    assert texts(cursor, LINES[:1] * 3) == ["one"]


def test_lines_out_of_order() -> None:
    """Two streams of a container may change places: neither is lost, at first and after a break."""
    mixed = [LINES[1], LINES[0], LINES[2], LINES[1].replace("two", "late")]
    cursor = Cursor()
    assert texts(cursor, mixed) == ["two", "one", "three", "late"]
    cursor.begin()
    assert texts(cursor, mixed) == []


def test_a_break_between_lines_out_of_order() -> None:
    """A line that is older than the last one that was read, and was not read, is new."""
    cursor = Cursor()
    texts(cursor, [LINES[1]])
    cursor.begin()
    assert texts(cursor, [LINES[1], LINES[0]]) == ["one"]


def test_the_same_reading_thrice() -> None:
    """What came after one break is known after the next."""
    cursor = Cursor()
    texts(cursor, LINES[:2])
    cursor.begin()
    texts(cursor, LINES[:3])
    cursor.begin()
    assert texts(cursor, LINES[:4]) == ["four"]


def test_unrequested_services() -> None:
    """Lines before those that were asked for do not come in by a second reading."""
    cursor = Cursor()
    texts(cursor, [LINES[1]])
    cursor.leave_out_before((parse_time(LINES[1].split()[0])) or (0, ""))
    cursor.begin()
    assert texts(cursor, LINES) == ["three", "four"]


def test_messages_of_the_kubelet() -> None:
    """What has no moment is no line of the container."""
    assert Cursor().take(LogPart("unable to retrieve container logs for containerd://1")) is None


def test_an_empty_line() -> None:
    """A line without text is a line."""
    assert Cursor().take(LogPart("2025-06-01T12:00:00Z ")) == ("2025-06-01T12:00:00Z", "")


# long lines -----------------------------------------------------------------------------------------------------------

TIME = "2025-06-01T12:00:00.100000001Z"


def taken_text(cursor: Cursor, text: str, pieces: Iterable[bytes] | None = None) -> str:
    """What a cursor takes of a log that is read as a whole, or that comes in pieces."""
    parts = split_lines(text) if pieces is None else join_parts(pieces)
    return "".join(taken[1] for taken in map(cursor.take, parts) if taken)


@pytest.mark.parametrize("size", [0, 1, MAX_PART_BYTES // 4, *range(MAX_PART_BYTES - 40, MAX_PART_BYTES + 5), 50_000])
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("letter", ["a", "ä", "語"])
def test_parts_of_a_line(size: int, end: str, letter: str) -> None:
    """A line has the same parts in whatever pieces it comes, none of them too long, and no character is cut."""
    line = f"{TIME} {letter * size}{end}"
    parts = list(split_lines(line))

    for length in (1000, 7777, MAX_PART_BYTES, MAX_PART_BYTES + 6000):
        raw = line.encode()
        assert list(join_parts(raw[at : at + length] for at in range(0, len(raw), length))) == parts
    assert "".join(part.text for part in parts) == line.removesuffix("\n")
    assert max(len(part.text.encode()) for part in parts) < MAX_PART_BYTES + 4
    assert [part.is_first for part in parts] == [True] + [False] * (len(parts) - 1)
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [bool(end)]


def test_a_line_without_an_end() -> None:
    """It continues where it ended before, however often it is read again, also where that was within a part."""
    cursor = Cursor()
    log = f"{TIME} {'a' * 40_000}"
    found = [taken_text(cursor, log)]
    for more in ("b" * 30_000, "c" * 5, "d" * 70_000, "\n", f"{TIME[:-1]}2Z new\n"):
        log += more
        cursor.begin()
        found.append(taken_text(cursor, log, [line.encode() for line in log.splitlines(keepends=True)]))
    assert found == ["a" * 40_000, "b" * 30_000, "c" * 5, "d" * 70_000, "", "new"]


def test_a_long_line_again() -> None:
    """A long line that had an end is dropped with all of its parts, also beside one that has none yet."""
    cursor = Cursor()
    log = f"{TIME} {'a' * 100_000}\n{TIME[:-1]}2Z {'b' * 20_000}"
    assert len(taken_text(cursor, log)) == 120_000
    cursor.begin()
    assert taken_text(cursor, f"{log}{'c' * 10}") == "c" * 10


@pytest.mark.parametrize(
    ("line", "since"),
    [
        pytest.param("2025-06-01T12:00:05.9Z x", "2025-06-01T12:00:04Z", id="utc"),
        pytest.param("2025-06-01T14:00:05.9+02:00 x", "2025-06-01T12:00:04Z", id="another-zone"),
    ],
)
def test_since(line: str, since: str) -> None:
    """It is asked from a second before the last line on."""
    cursor = Cursor()
    cursor.take(LogPart(line))
    assert since == cursor.since


def test_since_of_nothing() -> None:
    """Before the first line all is wanted."""
    assert Cursor().since == ""


# reading --------------------------------------------------------------------------------------------------------------


def test_lines_of_two_pods() -> None:
    """They come in the order of time, each with its service and pod; separators within a line do not part it."""
    first, second = started(suffix="aaaaa"), started(suffix="bbbbb")
    names = [str(manifest["metadata"]["name"]) for manifest in (first, second)]
    answers = {
        log_of(names[0]): Answer(b"2025-06-01T12:00:00.5Z a\n2025-06-01T12:00:02Z c\x0b\xe2\x80\xa8c\n"),
        log_of(names[1]): Answer(b"2025-06-01T12:00:00.75Z b\n"),
    }
    with Server(answers) as server, Api(server.access) as api:
        lines = list(read_logs(api, NAMESPACE, [first, second], LogQuery()))
    assert lines == [
        LogLine(service="web", pod=names[0], time="2025-06-01T12:00:00.5Z", text="a"),
        LogLine(service="web", pod=names[1], time="2025-06-01T12:00:00.75Z", text="b"),
        LogLine(service="web", pod=names[0], time="2025-06-01T12:00:02Z", text="c\x0b\u2028c"),
    ]


def test_large_logs_are_no_lists_of_lines() -> None:
    """All lines of all containers were in memory at once, which took five times the size of the logs."""
    text = "".join(
        f"2025-06-01T12:00:{number // 1000:02}.{number % 1000:03}Z {'x' * 100}\n" for number in range(20_000)
    )

    class Read(Api):
        def text(self, path: str) -> str:
            return text if "/log?" in path else ""

    with Server() as server, Read(server.access) as api:
        tracemalloc.start()
        try:
            count = sum(1 for _ in read_logs(api, NAMESPACE, [started(suffix=end) for end in "abc"], LogQuery()))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (count, peak < len(text) / 2) == (60_000, True)


def test_lines_of_a_container_that_others_added() -> None:
    """They come with its name; those of the service without."""
    made = with_sidecar(started(suffix="aaaaa"), "web")
    for number, status in enumerate(made["status"]["containerStatuses"]):
        status["containerID"] = f"containerd://{number}"
    answer = Answer(b"2025-06-01T12:00:00Z a\n")
    with Server(otherwise=answer) as server, Api(server.access) as api:
        lines = list(read_logs(api, NAMESPACE, [made], LogQuery()))
    assert sorted((line.service, line.container) for line in lines) == [("web", ""), ("web", "a-mesh")]


def test_lines_of_init_containers() -> None:
    """Those of hooks and of containers that others added come with the name; those that fill volumes write nothing."""
    made = started(suffix="aaaaa")
    names = ("platform-fill", "pre-start-0", "linkerd-proxy")
    made["spec"]["initContainers"] = [{"name": name} for name in names]
    made["status"]["initContainerStatuses"] = [{"name": name, "containerID": f"containerd://{name}"} for name in names]
    with Server(otherwise=Answer(b"2025-06-01T12:00:00Z a\n")) as server, Api(server.access) as api:
        lines = list(read_logs(api, NAMESPACE, [made], LogQuery()))
    assert [(line.service, line.container) for line in lines] == [
        ("web", "pre-start-0"),
        ("web", "linkerd-proxy"),
        ("web", ""),
    ]


def test_the_init_containers_of_a_service_in_the_pods_of_another() -> None:
    """Of the services of a pod, those that are asked for are shown with their hooks alone."""
    made = started()
    made["metadata"]["annotations"] = {SERVICES_ANNOTATION: "web,api"}
    made["spec"]["containers"].append({"name": "api", "image": "api:1"})
    names = ("platform-tools", "pre-start-0", "pre-start-0-api")
    made["spec"]["initContainers"] = [{"name": name} for name in names]
    made["status"]["initContainerStatuses"] = [{"name": name} for name in names]
    made["status"]["containerStatuses"].append({"name": "api"})

    found = {
        service: [status["name"] for shown in select_pods([made], [service]) for status in logged_init_statuses(shown)]
        for service in ("web", "api")
    }

    assert found == {"web": ["pre-start-0"], "api": ["pre-start-0-api"]}


def test_lines_of_a_one_off_pod() -> None:
    """Their service is the one that it was made from; it is in none itself."""
    manifest = started()
    manifest["metadata"]["labels"] = {"dev.platform.com/run": "web"}
    with Server(otherwise=Answer(b"2025-06-01T12:00:00.5Z a\n")) as server, Api(server.access) as api:
        (line,) = list(read_logs(api, NAMESPACE, [manifest], LogQuery()))
    assert (line.service, line.is_one_off) == ("web", True)


@pytest.mark.parametrize(
    ("asked", "query"),
    [
        pytest.param(LogQuery(), "", id="all"),
        pytest.param(LogQuery(tail=5), "&tailLines=5", id="tail"),
        pytest.param(LogQuery(since_seconds=600), "&sinceSeconds=600", id="so-long"),
        pytest.param(LogQuery(since="2025-06-01T12:00:00Z"), "&sinceTime=2025-06-01T12%3A00%3A00Z", id="moment"),
        pytest.param(LogQuery(since_seconds=60, tail=5), "&sinceSeconds=60&tailLines=5", id="both"),
    ],
)
def test_what_is_asked(asked: LogQuery, query: str) -> None:
    """The server is asked for no more than is wanted."""
    manifest = started()
    with Server(otherwise=Answer(b"")) as server, Api(server.access) as api:
        assert list(read_logs(api, NAMESPACE, [manifest], asked)) == []
    assert server.paths[-1] == log_of(manifest["metadata"]["name"], query)


def test_since_within_a_second() -> None:
    """The server counts in seconds; what is a part of one too early is left out."""
    body = "".join(f"{line}\n" for line in LINES).encode()
    with Server(otherwise=Answer(body)) as server, Api(server.access) as api:
        lines = list(read_logs(api, NAMESPACE, [started()], LogQuery(since="2025-06-01T12:00:00.200000000Z")))
    assert [line.text for line in lines] == ["two", "three", "four"]


def test_no_cluster_to_follow() -> None:
    """A cluster that was never there is an error, and not waited for."""
    with no_server() as access:
        follower = Follower(access=access, namespace=NAMESPACE, asked=LogQuery(), path=f"/{NAMESPACE}")
        with pytest.raises(ApiError, match="can't be reached: connection refused"):
            next(follower.lines())


@pytest.mark.parametrize("status", [400, 404])
def test_a_pod_that_goes_away(status: int) -> None:
    """A pod that has no log any more, or none yet, is not read."""
    with Server(otherwise=refusal(status, "gone")) as server, Api(server.access) as api:
        assert list(read_logs(api, NAMESPACE, [started()], LogQuery())) == []


def test_a_node_that_does_not_answer() -> None:
    """The logs of pods on other nodes are read all the same; without any, the failure is an error."""
    first, second = started(suffix="aaaaa"), started(suffix="bbbbb")
    lost = refusal(500, "dial tcp 10.0.0.7:10250: i/o timeout")
    notes: list[str] = []
    read = Answer(f"{LINES[0]}\n".encode())
    answers = {log_of(first["metadata"]["name"]): lost, log_of(second["metadata"]["name"]): read}
    with Server(answers) as server, Api(server.access) as api:
        lines = list(read_logs(api, NAMESPACE, [first, second], LogQuery(), notes.append))
        with pytest.raises(ApiError, match="i/o timeout"):
            list(read_logs(api, NAMESPACE, [first], LogQuery()))
    assert [line.text for line in lines] == ["one"]
    assert notes == [f"the log of {first['metadata']['name']} can't be read: dial tcp 10.0.0.7:10250: i/o timeout"]


def test_a_container_that_never_started() -> None:
    """Nothing is asked about it."""
    with Server() as server, Api(server.access) as api:
        assert list(read_logs(api, NAMESPACE, [pod(replica_set(deployment()))], LogQuery())) == []
    assert server.paths == []


# following ------------------------------------------------------------------------------------------------------------

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@dataclass(slots=True)
class SilentServer(Server):
    """Each followed log has one line more than the one before, and is silent then."""

    follows: int = 0
    is_mute: bool = False
    """Nothing is answered at all."""
    stays_mute: Queue[Object | None] = field(default_factory=Queue)

    def answer(self, path: str) -> Answer:
        if self.is_mute:
            return Answer(before=self.stays_mute)
        if "previous=true" in path:
            return refusal(400, "previous terminated container not found")
        if "follow=true" not in path:
            return Server.answer(self, path)
        self.follows += 1
        sent: Queue[bytes | None] = Queue()
        for line in LINES[: self.follows]:
            sent.put(f"{line}\n".encode())
        return Answer(lines=sent)


@pytest.fixture
def silent_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SilentServer]:
    monkeypatch.setattr("composeplat.cluster.api._MAX_WATCH_SILENCE_S", 0.3)
    monkeypatch.setattr("composeplat.cluster.api._TIMEOUT_S", 0.3)
    monkeypatch.setattr("composeplat.cluster.logs._RETRY_AFTER_S", 0.05)
    empty: Queue[Object | None] = Queue()
    answers = {PODS: given(started(), version="5")}
    with SilentServer(answers, otherwise=Answer(b""), watches={PODS: Answer(events=empty)}) as server:
        yield server
        empty.put(None)


def follower_of(server: Server, notes: list[str]) -> Follower:
    return Follower(access=server.access, namespace=NAMESPACE, path=PODS, asked=LogQuery(), note=notes.append)


def test_connections_that_become_silent(silent_server: SilentServer) -> None:
    """Once the watch is silent for long, logs are read over new connections: no line is lost, and none comes twice."""
    notes: list[str] = []
    follower = follower_of(silent_server, notes)
    lines = follower.lines()

    texts = [line.text for line in islice(lines, len(LINES))]
    until(lambda: silent_server.follows > len(LINES) + 1)
    follower.stop()
    assert (texts, list(lines), notes) == (["one", "two", "three", "four"], [], [])


def test_long_lines_for_a_slow_reader(silent_server: SilentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a reader of followed logs is bounded in bytes, too: 10,000 lines could have 160 MiB."""
    read: list[int] = []

    def written(*_: object) -> Iterator[LogPart]:
        for number in range(20_000):
            read.append(number)
            yield LogPart(f"2025-06-01T12:00:00.{number:09}Z x")

    monkeypatch.setattr(Api, "lines", written)
    follower = follower_of(silent_server, [])
    next(follower.lines())
    time.sleep(1)
    follower.stop()
    assert len(read) * MAX_PART_BYTES < 32 * 1024 * 1024


def test_a_server_that_becomes_silent(silent_server: SilentServer) -> None:
    """If the new connection is silent too, that is reported once, and again after an answer."""
    notes: list[str] = []
    follower = follower_of(silent_server, notes)
    lines = follower.lines()
    assert next(lines).text == "one"

    for line in LINES[1:3]:
        before, silent_server.is_mute = len(notes), True
        until(partial(lambda count: len(notes) > count, before))
        until(partial(lambda count: len(silent_server.asked) > count, len(silent_server.asked) + 2))
        silent_server.is_mute = False
        assert next(lines).text == line.split()[1]

    follower.stop()
    address = f"http://127.0.0.1:{silent_server.port}"
    assert notes == [f"the API server at {address} does not answer: no data within 0 s; trying again"] * 2
