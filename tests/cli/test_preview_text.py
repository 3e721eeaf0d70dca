"""What a preview says: each part of the file with what changes, why, and without a word of what is confidential."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from composeplat import progress
from composeplat.cli.operations import Planned, failure_rows, report_publications, show_failures, stack_for
from composeplat.cli.preview import change_rows, changes_summary, changes_text, with_own_name
from composeplat.cluster.access import Access
from composeplat.cluster.cause import Cause
from composeplat.codes.causes import CauseCode
from composeplat.engine.events import Change, Difference, Operation
from composeplat.engine.outcomes import Failure, Outcome
from composeplat.engine.plan_parts import Parts
from composeplat.engine.preflight import rename_replaced
from composeplat.engine.target import Target
from composeplat.names import is_dns_label
from composeplat.plan import Plan
from composeplat.publication import ToCache
from tests.conftest import Project
from tests.steps import count_steps

TEXT = """\
services:
  My_Web:
    image: nginx
    ports: ['8080:80']
    environment: {A: b}
    command: [serve, --fast]
  db: {image: postgres, volumes: ['My_Data:/data']}
volumes: {My_Data: {}}
"""
CHAIN = "urn:pulumi:team::demo::composeplat:index:ComposeStack$composeplat:index:Service$kubernetes:apps/v1:Deployment"


@pytest.fixture
def plan(project: Project) -> Plan:
    made = project(TEXT).read(namespace="team").plan
    assert made is not None
    return made


def change(operation: Operation, kind: str, key: str, *differences: Difference, kept: bool = False) -> Change:
    """A change of the object under a key of the plan."""
    name = key.partition("/")[2]
    urn = f"{CHAIN}::demo-{key}"
    return Change(operation=operation, urn=urn, kind=kind, name=name, differences=differences, kept=kept)


IMAGE = "spec.template.spec.containers[0].image"
SELECTOR = "spec.selector.matchLabels.a"
CHANGES = [
    change(Operation.UPDATE, "Deployment", "workload/my-web", Difference(path=IMAGE, old="nginx:1", new="nginx:2")),
    change(Operation.REPLACE, "StatefulSet", "workload/db", Difference(path=SELECTOR, old="x", new="y", replaces=True)),
    change(Operation.CREATE, "Secret", "environment/my-web"),
    change(Operation.CREATE, "Ingress", "endpoint/my-web"),
    change(Operation.DELETE, "PersistentVolumeClaim", "claim/my-data", kept=True),
    change(Operation.DELETE, "ConfigMap", "files/my-web"),
]

# the text -------------------------------------------------------------------------------------------------------------


def test_text(plan: Plan) -> None:
    """Changes stand under the part of the file they belong to, each with a sign, a word and the reasons.

    Pulumi's order differs from run to run.
    """
    assert changes_text(CHANGES[::-1], plan, diff=False) == changes_text(CHANGES, plan, diff=False)
    assert changes_text(CHANGES, plan, diff=False).splitlines() == [
        "endpoint my-web",
        "  + create Ingress my-web",
        "service My_Web",
        "  + create Secret my-web",
        "  - delete ConfigMap my-web",
        "  ~ update Deployment my-web: image nginx:1 → nginx:2",
        "service db",
        "  ! replace StatefulSet db: spec.selector.matchLabels.a x → y (can't be changed in place: " + SELECTOR + ")",
        "volume My_Data",
        "  - keep in the cluster, out of the state PersistentVolumeClaim my-data",
    ]


def test_text_with_differences(plan: Plan) -> None:
    """Below a change each property stands with what it was and what it will be, as far as there is either."""
    differences = (
        Difference(path=IMAGE, old="nginx:1", new="nginx:2"),
        Difference(path="metadata.labels", new={"a": "b"}),
        Difference(path="spec.replicas", old=2),
    )

    text = changes_text([change(Operation.UPDATE, "Deployment", "workload/my-web", *differences)], plan, diff=True)

    assert text.splitlines()[1:] == [
        "  ~ update Deployment my-web: image nginx:1 → nginx:2; metadata.labels; replicas 2 → (none)",
        "      spec.template.spec.containers[0].image",
        "        - nginx:1",
        "        + nginx:2",
        "      metadata.labels",
        "        + {'a': 'b'}",
        "      spec.replicas",
        "        - 2",
    ]


def test_many_reasons_for_a_replacement(plan: Plan) -> None:
    """Of what can't be changed in place three properties are named, which says enough."""
    differences = [Difference(path=f"spec.{name}", old=1, new=2, replaces=name != "a") for name in "edcba"]

    (_, line) = changes_text(
        [change(Operation.REPLACE, "Job", "workload/db", *differences)], plan, diff=False
    ).splitlines()

    assert line.endswith(" (can't be changed in place: spec.b, spec.c, spec.d)")


def test_no_changes(plan: Plan) -> None:
    """Where nothing changes, nothing is written."""
    assert changes_text([], plan, diff=True) == ""


def test_text_can_not_steer_the_terminal(plan: Plan) -> None:
    """Control characters of names and values reach no terminal."""
    escaped = Difference(path="spec.a\x07", old="b\x1b[2J", new="c\x07")

    text = changes_text([change(Operation.UPDATE, "Job", "workload/x\x1b[2J", escaped)], plan, diff=True)

    assert text.splitlines() == [
        "service x\\x1b[2J",
        "  ~ update Job x\\x1b[2J: spec.a\\x07 b\\x1b[2J → c\\x07",
        "      spec.a\\x07",
        "        - b\\x1b[2J",
        "        + c\\x07",
    ]


@pytest.mark.parametrize(
    ("shell", "colored"),
    [
        pytest.param({}, True, id="terminal"),
        pytest.param({"NO_COLOR": "1"}, False, id="no-color"),
        pytest.param({"NO_COLOR": ""}, True, id="empty-no-color"),
        pytest.param({"TERM": "dumb"}, False, id="dumb-terminal"),
    ],
)
def test_color(plan: Plan, monkeypatch: pytest.MonkeyPatch, shell: dict[str, str], *, colored: bool) -> None:
    """On a terminal each sign has its color."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm", **shell}.items():
        monkeypatch.setenv(name, value)
    control, terminal = os.openpty()
    with open(terminal, "w", encoding="utf-8") as stream, monkeypatch.context() as within:
        within.setattr(sys, "stdout", stream)
        text = changes_text(CHANGES, plan, diff=False)
    os.close(control)

    signs = ["\x1b[32m+\x1b[0m", "\x1b[33m~\x1b[0m", "\x1b[35m!\x1b[0m", "\x1b[31m-\x1b[0m"]
    assert [colored] * 4 == [sign in text for sign in signs]
    assert colored == ("\x1b" in text)


@pytest.mark.parametrize(
    ("key", "part"),
    [
        pytest.param("workload/my-web", "service My_Web", id="workload"),
        pytest.param("environment/my-web", "service My_Web", id="environment"),
        pytest.param("image/db", "service db", id="image"),
        pytest.param("claim/my-data", "volume My_Data", id="volume"),
        pytest.param("endpoint/my-web-80", "endpoint my-web-80", id="endpoint"),
        pytest.param("service/gone", "service gone", id="a-service-that-left-the-file"),
        pytest.param("claim/gone", "volume gone", id="a-volume-that-left-the-file"),
    ],
)
def test_part_of(plan: Plan, key: str, part: str) -> None:
    """An object belongs to a part of the file, under the name that the file has for it."""
    assert part == str(Parts(plan).part_of(change(Operation.UPDATE, "Service", key)))


def test_many_changes(project: Project) -> None:
    """The work for a change does not grow with the number of services: ten times as many take ten times as long."""

    def steps(services: int) -> int:
        names = [f"app{number}" for number in range(services)]
        text = "services:\n" + "".join(f"  {name}: {{image: nginx, ports: ['80']}}\n" for name in names)
        plan = project(text).read().plan
        assert plan is not None
        keys = [f"{kind}/{name}" for kind in ("workload", "alias", "claim") for name in names]
        changes = [change(Operation.UPDATE, "Service", key) for key in keys]
        return count_steps(lambda: (change_rows(changes, plan), changes_text(changes, plan, diff=False)))

    assert steps(200) < 10.5 * steps(20)


# the end --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "kept", "lines"),
    [
        pytest.param([], [], ["no changes, 1.2 s"], id="none"),
        pytest.param(CHANGES[:1], [], ["1 to update, 1.2 s"], id="one"),
        pytest.param(
            CHANGES,
            ["my-data"],
            [
                "volume my-data is no longer used; it and its data stay in the cluster",
                "2 to create, 1 to update, 1 to replace, 1 to delete, 1.2 s",
            ],
            id="of-every-kind",
        ),
        pytest.param(
            CHANGES[4:5],
            ["my-data"],
            ["volume my-data is no longer used; it and its data stay in the cluster", "no changes, 1.2 s"],
            id="a-volume-alone",
        ),
    ],
)
def test_end(changes: list[Change], kept: list[str], lines: list[str]) -> None:
    """The end counts the changes, and says which volumes stay though the file does not have them any more."""
    assert lines == changes_summary(changes, Outcome(kept=kept, seconds=1.24)).splitlines()


def test_notes_at_the_end() -> None:
    """What is to be known besides the changes is before their number."""
    ended = changes_summary(CHANGES[:1], Outcome(notes=["volume data is made anew"], seconds=1.24))

    assert ended.splitlines() == ["volume data is made anew", "1 to update, 1.2 s"]


# JSON -----------------------------------------------------------------------------------------------------------------


def test_change_rows(plan: Plan) -> None:
    """For programs each change is a row; what stays in the cluster says so."""
    assert change_rows([CHANGES[0], CHANGES[4]], plan) == [
        {
            "part": {"type": "service", "name": "My_Web"},
            "operation": "update",
            "kind": "Deployment",
            "name": "my-web",
            "reasons": ["image nginx:1 → nginx:2"],
        },
        {
            "part": {"type": "volume", "name": "My_Data"},
            "operation": "delete",
            "kind": "PersistentVolumeClaim",
            "name": "my-data",
            "reasons": [],
            "kept": True,
        },
    ]


def test_change_rows_with_differences(plan: Plan) -> None:
    """With differences each row has them in full."""
    (row,) = change_rows(CHANGES[1:2], plan, diff=True)

    assert row["differences"] == [{"path": SELECTOR, "old": "x", "new": "y", "replaces": True}]


# a Service under another name -----------------------------------------------------------------------------------------

RENAMED = (
    Difference(path="metadata.name", old="web", new="web-replaced", replaces=True),
    Difference(path="spec.clusterIP", old="10.0.0.1", new="None", replaces=True),
)


def test_a_service_that_a_preview_renamed() -> None:
    """A Service that was previewed under another name is reported under its own, and its name is no difference."""
    renamed = change(Operation.REPLACE, "Service", "service/web-replaced", *RENAMED)

    assert replace(renamed, name="web", differences=RENAMED[1:]) == with_own_name(renamed)


@pytest.mark.parametrize("length", [54, 55, 63])
def test_a_service_with_a_long_name(project: Project, length: int) -> None:
    """The name of the preview is one that the API server accepts; shown is the one of the file."""
    name = "w" * length
    plan = project(f"services: {{{name}: {{image: x}}}}").read().plan
    assert plan is not None
    live = [{"metadata": {"name": name}, "spec": {"clusterIP": "10.0.0.1"}}]
    renamed = next(found for found in rename_replaced(plan, live).objects if found.kind == "Service")
    found = replace(change(Operation.REPLACE, "Service", f"service/{name}"), name=renamed.name)

    assert is_dns_label(renamed.name)
    assert renamed.name.endswith("-replaced")
    assert with_own_name(found).name == name


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE, Operation.DELETE])
def test_a_service_of_such_a_name(operation: Operation) -> None:
    """A Service that is not replaced may have such a name."""
    own = change(operation, "Service", "service/web-replaced")

    assert own == with_own_name(own)


# failures -------------------------------------------------------------------------------------------------------------

FAILURE = Failure(
    source="my-web-0",
    service="My_Web",
    cause=Cause(
        code=CauseCode.CRASH_LOOP,
        message="ends again and again: exit 1, hunter2",
        hint="look at hunter2",
        origin=("command",),
        pod="my-web-0",
    ),
    lines=("starting with hunter2", "a\x1b[2J\tb"),
)


@pytest.fixture
def planned(project: Project, hide: Callable[[list[str]], None]) -> Planned:
    reading = project(TEXT).read(namespace="team")
    assert reading.plan is not None
    hide(["hunter2"])
    target = Target(access=Access(host="127.0.0.1", port=9), kubeconfig="")
    return Planned(reading.plan.with_confidential(("hunter2",)), reading.loaded, target)


def test_show_failures(planned: Planned, capsys: pytest.CaptureFixture[str]) -> None:
    """A failure is reported at its place in the file, with the last lines of its log, all masked."""
    show_failures([FAILURE], planned, as_json=False)

    assert capsys.readouterr().err.splitlines() == [
        "compose.yaml:6:14: error: services.My_Web: ends again and again: exit 1, [secret] [deploy-failed]",
        "  hint: look at [secret]",
        "  the last lines of my-web-0:",
        "    starting with [secret]",
        "    a\tb",
    ]


def test_show_failures_as_json(planned: Planned, capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON a failure is one object a line, without the log."""
    show_failures([FAILURE], planned, as_json=True)

    (line,) = capsys.readouterr().err.splitlines()
    shown = json.loads(line)
    assert (shown["line"], shown["column"], shown["path"]) == (6, 14, "services.My_Web.command")
    assert shown["message"] == "services.My_Web: ends again and again: exit 1, [secret]"


BUILT = """\
services:
  web:
    build: .
    volumes:
      - ./sql:/sql
      - data:/data
volumes: {data: {}}
"""


@pytest.fixture
def built(project: Project) -> Planned:
    reading = (
        project(BUILT).write({"Dockerfile": "FROM x\n", "sql/a": ""}).read(namespace="team", registry="r.example.com")
    )
    assert reading.plan is not None
    return Planned(reading.plan, reading.loaded, Target(access=Access(host="127.0.0.1", port=9), kubeconfig=""))


def failing(code: CauseCode) -> Failure:
    return Failure(
        service="web", cause=Cause(code=code, message="failed", exit_status=1), lines=("no file",), source="p"
    )


LEFT_OUT = (
    "compose.yaml:5:9: note: services.web.volumes[0] is a host volume of a service that is built: it is for"
    " development, and not deployed [not-deployed]"
)


@pytest.mark.parametrize(
    ("code", "more"),
    [
        pytest.param(
            CauseCode.JOB_FAILED, [LEFT_OUT, "  hint: copy it into the image: COPY in the Dockerfile"], id="container"
        ),
        pytest.param(CauseCode.IMAGE_NOT_PULLED, [], id="no-container"),
    ],
)
def test_omitted_volumes(built: Planned, capsys: pytest.CaptureFixture[str], code: CauseCode, more: list[str]) -> None:
    """Where a service with `build` fails, its host volumes are named, which its container does not have."""
    show_failures([failing(code)], built, as_json=False)

    assert capsys.readouterr().err.splitlines()[1:] == ["  the last lines of p:", "    no file", *more]
    assert len(failure_rows(Outcome(failures=[failing(code)]), built)[0]["omitted_volumes"]) == bool(more)  # type: ignore[arg-type]


def test_a_failure_that_is_not_final(built: Planned) -> None:
    """It is reported as the work continues, as a warning with all that a failure has."""
    shown: list[progress.Event] = []
    with progress.use_handler(shown.append):
        stack_for(built).warn(failing(CauseCode.JOB_RETRIED))

    (event,) = shown
    assert isinstance(event, progress.SessionEvent)
    assert event.message.splitlines()[0] == "compose.yaml:3:5: warning: services.web: failed [job-retry]"
    assert LEFT_OUT in event.message.splitlines()
    assert (event.data["event"], event.data["log_lines"], event.is_important) == ("warning", ["no file"], True)
    assert not event.is_in_session


def test_a_publication_is_reported_before_the_work(built: Planned) -> None:
    """The deploy that follows is waited for, so it has signs of life."""
    shown: list[progress.Event] = []
    with progress.use_handler(shown.append):
        report_publications(built, [ToCache(store="s3", images={"shop-p": ("p",)})])

    (event,) = shown
    assert isinstance(event, progress.SessionEvent)
    assert (event.data["event"], event.is_in_session) == ("publish", False)


def test_failure_rows(planned: Planned) -> None:
    """A failure as a row has all that is known of it."""
    assert failure_rows(Outcome(failures=[FAILURE]), planned) == [
        {
            "service": "My_Web",
            "code": "crash-loop",
            "message": "ends again and again: exit 1, hunter2",
            "hint": "look at hunter2",
            "pod": "my-web-0",
            "log_lines": ["starting with hunter2", "a\x1b[2J\tb"],
            "omitted_volumes": [],
        }
    ]
