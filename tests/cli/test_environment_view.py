"""What the commands show that look at a deployed environment: tables that fit, lines of logs, JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from composeplat.cli.console import clean_line, write_output
from composeplat.cli.endpoints import endpoints_document, has_display
from composeplat.cli.environment_view import fit_table
from composeplat.cli.events import events_document, events_table
from composeplat.cli.logs import Printer, parse_since
from composeplat.cli.status import status_document, status_screen
from composeplat.cluster.endpoints import Address
from composeplat.cluster.events import EnvironmentEvent
from composeplat.cluster.logs import LogLine, LogQuery
from composeplat.cluster.status import StatusRow
from composeplat.compose.values import BadValue

NOW = datetime(2025, 6, 1, 12, 10, tzinfo=UTC)
WEB = StatusRow(
    service="web", kind="Deployment", state="ready", ready=2, desired=2, restarts=0, image=f"sha256:{'ab' * 32}",
    created="2025-06-01T12:00:00Z", urls=("https://web.example.com",), problem="", hint="", pods=("web-1", "web-2"),
)  # fmt: skip
DB = StatusRow(
    service="a-database-with-a-long-name", kind="StatefulSet", state="failing", ready=0, desired=1, restarts=4,
    image="", created="", urls=(), problem="crashes with exit status 3 (5 times)", hint="see its logs", pods=(),
)  # fmt: skip
HAPPENING = EnvironmentEvent(
    time="2025-06-01T12:05:00Z", count=3, warning=True, service="web", object="Pod/web-7d4b9c6f58-x7k2p",
    reason="BackOff", message="Back-off restarting failed container web in pod web-7d4b9c6f58-x7k2p",
)  # fmt: skip


def screen(width: int | None, *, color: bool = False) -> list[str]:
    return status_screen("shop", "team", [WEB, DB], NOW, urls=WEB.urls, width=width, color=color).splitlines()


# status ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "table"),
    [
        pytest.param(
            40,
            [
                "SERVICE                   STATE    READY",
                "web                       ready    2/2",
                "a-database-with-a-long-…  failing  0/1",
            ],
            id="40",
        ),
        pytest.param(
            80,
            [
                "SERVICE                      KIND         STATE    READY  RESTARTS  AGE",
                "web                          Deployment   ready    2/2    0         10m",
                "a-database-with-a-long-name  StatefulSet  failing  0/1    4         -",
            ],
            id="80",
        ),
        pytest.param(
            200,
            [
                "SERVICE                      KIND         STATE    READY  RESTARTS  AGE  IMAGE",
                "web                          Deployment   ready    2/2    0         10m  sha256:abababababab",
                "a-database-with-a-long-name  StatefulSet  failing  0/1    4         -    -",
            ],
            id="200",
        ),
    ],
)
def test_status_fits(width: int, table: list[str]) -> None:
    """A narrow terminal does without columns; what is left is cut with a sign."""
    assert table == screen(width)[2:5]


def test_status_without_a_terminal() -> None:
    """All is there, and problems and addresses below."""
    assert screen(200) == screen(None)
    assert screen(None)[5:] == [
        "",
        "Problems",
        "  a-database-with-a-long-name: crashes with exit status 3 (5 times) (see its logs)",
        "",
        "Addresses",
        "  https://web.example.com",
    ]


def test_status_with_its_reason() -> None:
    """Below a problem are the last lines that show it, and what its container lacks, each with its place."""
    place = {"path": "services.web.volumes[0]", "file": "compose.yaml", "line": 5, "column": 9}
    row = replace(
        WEB,
        problem="failed with exit status 1",
        lines=("1", "2", "3", "4", "\x1b[31m5\x1b[0m", "\tat main"),
        left_out=(place,),
    )
    shown = status_screen("shop", "team", [row], NOW, urls=WEB.urls, width=None, color=False)

    assert shown.split("Problems\n")[1].split("\n\n")[0].splitlines() == [
        "  web: failed with exit status 1",
        *(f"    {number}" for number in range(2, 6)),
        "    \tat main",
        "    left out of its container: services.web.volumes[0] (compose.yaml:5:9)",
    ]


def test_status_with_a_long_line(hide: Callable[[list[str]], None]) -> None:
    """A line of a log, which may have megabytes, is cut as in the message of a deploy; a secret is masked before."""
    hide(["hunter2"])
    row = replace(WEB, problem="failed", lines=("x" * 497 + "hunter2" + "y" * 1_000_000,))
    shown = status_screen("shop", "team", [row], NOW, urls=(), width=None, color=False)

    assert shown.splitlines()[-1] == f"    {'x' * 497}[se"


def test_status_in_colors() -> None:
    """Only the state has a color, even where a service is called as a state is."""
    rows = [WEB, DB]
    plain = status_screen("shop", "team", rows, NOW, urls=WEB.urls, width=None, color=False)
    colored = status_screen("shop", "team", rows, NOW, urls=WEB.urls, width=None, color=True)
    assert colored == plain.replace(" ready ", " \x1b[32mready\x1b[0m ").replace(
        " failing ", " \x1b[31mfailing\x1b[0m "
    )


def test_status_in_colors_of_a_name_that_is_cut() -> None:
    """The state has its color in a narrow terminal too."""
    assert screen(40, color=True)[4].startswith("a-database-with-a-long-…  \x1b[31mfailing\x1b[0m")


def test_status_as_json() -> None:
    """The form that programs read."""
    assert status_document("shop", "team", [WEB]) == {
        "schema": "platform/status/1",
        "environment": "shop",
        "namespace": "team",
        "services": [
            {
                "service": "web",
                "kind": "Deployment",
                "state": "ready",
                "ready": 2,
                "desired": 2,
                "restarts": 0,
                "image": f"sha256:{'ab' * 32}",
                "created": "2025-06-01T12:00:00Z",
                "urls": ["https://web.example.com"],
                "problem": "",
                "hint": "",
                "pods": ["web-1", "web-2"],
                "log_lines": [],
                "omitted_volumes": [],
                "code": "",
                "pod_status": [],
                "developer": "",
            }
        ],
    }


# tables ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [10, 20, 40, 80, 200])
def test_no_line_is_wider(width: int) -> None:
    """Whatever is in a table, no line is wider than the terminal."""
    rows = [("A", "BB", "C"), ("x" * 50, "y", "z" * 120), ("\x1b[31m", "line\nline", "")]
    assert max(map(len, fit_table(rows, width).splitlines())) <= width


def test_escapes_in_a_table() -> None:
    """A cell can't color a terminal or end a line."""
    assert fit_table([("A",), ("\x1b[31mred\nmore",)], None) == "A\n\\x1b[31mred more\n"


# events and endpoints -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "line"),
    [
        pytest.param(40, "5m   BackOff  Back-off restarting faile…", id="40"),
        pytest.param(80, "5m   web      Pod/web-7d4b9c6f58-x7k2p  BackOff  Back-off restarting failed con…", id="80"),
        pytest.param(
            None,
            f"5m   web      Pod/web-7d4b9c6f58-x7k2p  BackOff  {HAPPENING.message} (3 times)",
            id="no-terminal",
        ),
    ],
)
def test_events_fit(width: int | None, line: str) -> None:
    """The message is cut first."""
    assert line == events_table([HAPPENING], NOW, width=width, color=False).splitlines()[1]


def test_warnings_have_a_color() -> None:
    """A warning stands out."""
    assert events_table([HAPPENING], NOW, width=None, color=True).splitlines()[1].startswith("\x1b[33m5m ")


def test_events_as_json() -> None:
    """The form that programs read."""
    assert events_document("shop", "team", [HAPPENING]) == {
        "schema": "platform/events/1",
        "environment": "shop",
        "namespace": "team",
        "events": [
            {
                "time": "2025-06-01T12:05:00Z",
                "count": 3,
                "type": "Warning",
                "service": "web",
                "object": "Pod/web-7d4b9c6f58-x7k2p",
                "reason": "BackOff",
                "message": HAPPENING.message,
            }
        ],
    }


def test_endpoints_as_json() -> None:
    """The form that programs read; services are called as the definition calls them."""
    address = Address(endpoint="site", url="https://site.example.com", service="web", port=80)
    assert endpoints_document("shop", "team", [address], {"web": "Web"}) == {
        "schema": "platform/endpoints/1",
        "environment": "shop",
        "namespace": "team",
        "endpoints": [{"name": "site", "url": "https://site.example.com", "service": "Web", "port": 80}],
    }


@pytest.mark.parametrize(
    ("environment", "system", "seen"),
    [
        pytest.param({}, "linux", False, id="none"),
        pytest.param({"DISPLAY": ":0"}, "linux", True, id="x"),
        pytest.param({"WAYLAND_DISPLAY": "w"}, "linux", True, id="wayland"),
        pytest.param({"BROWSER": "w3m"}, "linux", True, id="named"),
        pytest.param({}, "darwin", True, id="mac"),
    ],
)
def test_whether_a_browser_is_seen(environment: dict[str, str], system: str, *, seen: bool) -> None:
    """Without a display no browser is started, unless one is named."""
    assert seen is has_display(environment, system)


# logs -----------------------------------------------------------------------------------------------------------------


def line(pod: str = "web-7d4b9c6f58-x7k2p", service: str = "web", text: str = "hello") -> LogLine:
    return LogLine(service=service, pod=pod, time="2025-06-01T12:00:00.5Z", text=text)


def printer(*, timestamps: bool = False, prefix: bool = True, color: bool = False, only: bool = False) -> Printer:
    names = {"web": "web"} if only else {"web": "web", "my-db": "my_db"}
    return Printer(
        names=names, every=("web", "my_db", "api"), timestamps=timestamps, prefix=prefix,
        color=color,
    )  # fmt: skip


def test_prefixes_are_of_one_width() -> None:
    """A prefix has the service and the end of the pod's name, and all are as wide."""
    assert printer().show(line()) == "web-x7k2p   | hello\n"
    assert printer().show(line("my-db-0", "my-db")) == "my_db-0     | hello\n"


def test_a_pod_with_a_shortened_name() -> None:
    """Of a job with a name of 62 letters, Kubernetes leaves out the dash before the end of the pod's name."""
    name = "j" * 62
    shown = Printer(names={name: name}, every=(name,)).show(line(f"{name[:58]}x7k2p", name))
    assert shown == f"{name}-x7k2p | hello\n"


def test_a_run_has_its_name() -> None:
    """A line of a one-off pod says so, with the end of the pod's name, and later prefixes are as wide."""
    shown = printer()
    one_off = LogLine(service="web", pod="web-run-ab12cd", time="", text="migrated", is_one_off=True)
    assert shown.show(one_off) == "web-run-ab12cd | migrated\n"
    assert shown.show(line()) == "web-x7k2p      | hello\n"


def test_a_container_that_others_added() -> None:
    """Its lines are distinguished from those of the service."""
    added = LogLine(service="web", pod="web-7d4b9c6f58-x7k2p", time="", text="GET /", container="a-mesh")
    assert printer().show(added) == "web-x7k2p/a-mesh | GET /\n"


def test_lines_alone() -> None:
    """Without a prefix there is the line, and its moment if that is wanted."""
    assert printer(prefix=False).show(line()) == "hello\n"
    assert printer(prefix=False, timestamps=True).show(line()) == "2025-06-01T12:00:00.5Z hello\n"


def test_a_service_keeps_its_color() -> None:
    """The color is the same whichever services are shown, and not that of another."""
    both, alone = printer(color=True), printer(color=True, only=True)
    assert both.show(line())[:5] == alone.show(line())[:5] == "\x1b[32m"
    assert both.show(line("my-db-0", "my-db"))[:5] == "\x1b[33m"


def test_secrets_are_hidden(hide: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]) -> None:
    """A confidential value is not shown, even if it was colored within."""
    hide(["hunter2"])

    write_output(printer(prefix=False).show(line(text="is hun\x1b[1mter2")))

    assert capsys.readouterr().out == "is [secret]\n"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("plain ünï 日本 🙂", "plain ünï 日本 🙂", id="text"),
        pytest.param("a\tb", "a\tb", id="tab"),
        pytest.param("\x1b[1;31mred\x1b[0m", "red", id="color"),
        pytest.param("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\y", "xy", id="title"),
        pytest.param("\x1b[2J\x1b[Hgone\x1bc", "gone", id="clear"),
        pytest.param("\x9b31mred", "red", id="one-byte"),
        pytest.param("50%\r100%\r\x08\x00\x7f", "50%100%", id="controls"),
        pytest.param("a\u202eb\u2028c", "abc", id="directions"),
        pytest.param("\x1b", "", id="escape-alone"),
    ],
)
def test_control_characters(text: str, clean: str) -> None:
    """Nothing that a terminal obeys is left of a line."""
    assert clean == clean_line(text)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        pytest.param("", LogQuery(), id="all"),
        pytest.param("10m", LogQuery(since_seconds=600), id="duration"),
        pytest.param("1h30m", LogQuery(since_seconds=5400), id="two-units"),
        pytest.param("90", LogQuery(since_seconds=90), id="seconds"),
        pytest.param("1ms", LogQuery(since_seconds=1), id="rounded-up"),
        pytest.param("2025-06-01T12:00:00Z", LogQuery(since="2025-06-01T12:00:00.000000000Z"), id="moment"),
        pytest.param("0001-01-01T00:00:00Z", LogQuery(since="0001-01-01T00:00:00.000000000Z"), id="the-zero-of-go"),
        pytest.param("2025-06-01T14:00:00.5+02:00", LogQuery(since="2025-06-01T12:00:00.500000000Z"), id="zone"),
    ],
)
def test_since(text: str, asked: LogQuery) -> None:
    """A duration, or a moment."""
    assert asked == parse_since(text)


@pytest.mark.parametrize("text", ["yesterday", "2025-06-01", "2025-06-01T12:00:00", "-5m"])
def test_since_of_nonsense(text: str) -> None:
    """Anything else is refused, with what is wanted."""
    with pytest.raises(BadValue, match=r"^must be a duration such as 10m, or a time such as 2025-06-01T12:00:00Z$"):
        parse_since(text)
