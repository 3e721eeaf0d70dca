"""Where the command line meets the engine: what an outcome becomes, as words, as JSON and as an exit status.

The engine's operations are replaced by ones that give an outcome.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from composeplat.cluster.cause import Cause
from composeplat.codes.causes import CauseCode
from composeplat.diagnostics import ComposeplatError, MissingPiece, Report, Source, Span
from composeplat.engine.events import Change, Difference, Operation, Violation
from composeplat.engine.outcomes import DeployOptions, Failure, Outcome as Came, Refused
from composeplat.engine.stack import Stack
from tests.cli.conftest import TEXT, Seam, data
from tests.registry.test_image_facts import put_config
from tests.registry_server import Registry, serving
from tests.schemas import checked

WHERE = "demo in namespace team"
CHAIN = "urn:pulumi:team::demo::composeplat:index:ComposeStack$composeplat:index:Service$kubernetes:apps/v1"
IMAGE = Difference(path="spec.template.spec.containers[0].image", old="a", new="b")
CHANGES = [
    Change(operation=Operation.UPDATE, urn=f"{CHAIN}:Deployment::demo-workload/web", kind="Deployment", name="web",
           differences=(IMAGE,)),
    Change(operation=Operation.CREATE, urn=f"{CHAIN}:Service::demo-service/db", kind="Service", name="db"),
]  # fmt: skip
FAILED = Failure(
    service="web",
    cause=Cause(code=CauseCode.CRASH_LOOP, message="crashes with hunter2", hint="see its logs", pod="web-1"),
    lines=("it is hunter2\x1b[31m", "the end"),
    source="web-1",
)


OPERATIONS = {
    "deploy": "deploy.deploy", "preview": "preview.preview", "build": "build.build", "destroy": "destroy.destroy",
    "refresh": "refresh.refresh", "sleep": "sleep.sleep", "wake": "sleep.wake", "restart": "restart.restart",
}  # fmt: skip
PLANNED = ("deploy", "preview")
each_command = pytest.mark.parametrize("command", OPERATIONS)


def args_of(command: str) -> tuple[str, ...]:
    """A command with the options that it can't do without here."""
    domain = ("--domain=example.com",) if command in PLANNED else ()
    registry = ("--registry=r.example.com",) if command in (*PLANNED, "build") else ()
    return (command, *domain, *registry)


# all of them ----------------------------------------------------------------------------------------------------------


@each_command
def test_nothing_to_do(seam: Seam, command: str) -> None:
    """An outcome without anything in it is no failure, is reported in a line, and meets the schema."""
    seam.gives(OPERATIONS[command], Came(seconds=1.25))
    outcome = seam.platform(*args_of(command))
    found = data(seam.platform(*args_of(command), "--json"))

    assert (outcome.status, outcome.stdout) == (0, "")
    assert outcome.stderr.endswith(NOTHING[command] + "\n")
    assert (found["environment"], found["namespace"]) == ("demo", "team")


NOTHING = {
    "deploy": f"deployed {WHERE}: nothing changed, 1.2 s",
    "preview": "no changes, 1.2 s",
    "build": "no image changed, 1.2 s",
    "destroy": f"there is nothing of {WHERE} to delete",
    "refresh": "nothing was changed outside platform, 1.2 s",
    "sleep": f"there was nothing to put to sleep in {WHERE}",
    "wake": f"nothing was asleep in {WHERE}",
    "restart": f"nothing to restart in {WHERE}",
}


@each_command
@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(ComposeplatError("it is locked", "wait"), 1, id="failed"),
        pytest.param(MissingPiece("no Pulumi", "install it"), 4, id="missing"),
    ],
)
def test_an_error(seam: Seam, command: str, error: ComposeplatError, status: int) -> None:
    """What stops an operation is reported with its fix, and ends with the error's own status."""
    seam.gives(OPERATIONS[command], error)
    outcome = seam.platform(*args_of(command))

    assert (outcome.status, outcome.stdout) == (status, "")
    assert outcome.stderr.endswith(f"error: {error}\n  hint: {error.hint}\n")


@each_command
def test_an_interrupt(seam: Seam, command: str) -> None:
    """Ctrl-C ends with its status, and without a word of ours."""
    seam.gives(OPERATIONS[command], KeyboardInterrupt())
    outcome = seam.platform(*args_of(command))

    assert (outcome.status, outcome.stdout) == (130, "")
    assert "Traceback" not in outcome.stderr


@each_command
def test_a_wrong_file(seam: Seam, command: str) -> None:
    """A definition with a mistake reaches no operation."""
    seam.gives(OPERATIONS[command], Came())
    (seam.folder / "compose.yaml").write_text("services: {web: {image: 7, scale: many}}")
    outcome = seam.platform(*args_of(command))

    assert (outcome.status, outcome.stdout, seam.asked) == (3, "", [])
    assert "compose.yaml:1:35: error: services.web.scale" in outcome.stderr


@pytest.mark.parametrize("command", ["deploy", "preview", "build"])
def test_a_refusal(seam: Seam, command: str) -> None:
    """What is in the way is reported at its place, and that nothing was changed; a warning beside it stays one."""
    report = Report()
    report.add("no-effect", _span(seam), ("services",), "services has no effect")
    report.add("deploy-failed", _span(seam), ("services", "web"), "services.web stands in the way", "move it")
    seam.gives(OPERATIONS[command], Refused(report))
    outcome = seam.platform(*args_of(command))

    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr.splitlines()[-5:] == [
        "compose.yaml:1:1: error: services.web stands in the way [deploy-failed]",
        "  hint: move it",
        "compose.yaml:1:1: warning: services has no effect [no-effect]",
        "1 error, 1 warning",
        "nothing was changed",
    ]


VIOLATIONS = [
    Violation(urn=f"{CHAIN}:Deployment::demo-workload/web", pack="team", policy="no-latest", level="mandatory",
              message="hunter2 has no version\x1b[31m"),
    Violation(urn=f"{CHAIN}:Deployment::demo-workload/db", pack="team", policy="limits", level="advisory",
              message="no limit"),
]  # fmt: skip
REFUSED_LINES = [
    (
        "compose.yaml:2:3: error: services.web, by Deployment 'web', violates policy 'no-latest' of 'team': [secret]"
        " has no version\\x1b[31m [policy-violation]"
    ),
    "  hint: change the definition, or ask those who own the policy pack",
    (
        "compose.yaml:6:3: warning: services.db, by Deployment 'db', breaks policy 'limits' of 'team': no limit"
        " [policy-advice]"
    ),
]
ENDS = {
    "deploy": f"a policy refuses {WHERE}; nothing was changed",
    "preview": "no changes, 1.2 s",
}


@pytest.mark.parametrize("command", PLANNED)
def test_a_policy(seam: Seam, command: str) -> None:
    """A mandatory policy is an error with its place and status 1, an advisory one a warning; both are in the JSON."""
    seam.gives(OPERATIONS[command], Came(violations=VIOLATIONS, seconds=1.25))
    refused = seam.platform(*args_of(command))
    as_json = seam.platform(*args_of(command), "--json")
    seam.gives(OPERATIONS[command], Came(violations=VIOLATIONS[1:]))
    warned = seam.platform(*args_of(command))

    assert refused.status == as_json.status == 1
    assert refused.stderr.splitlines()[-4:] == [*REFUSED_LINES, ENDS[command]]
    rows = checked(json.loads(as_json.stdout))["policy_violations"]
    assert [(row["path"], row["policy"], row["level"]) for row in rows] == [
        ("services.web", "no-latest", "mandatory"), ("services.db", "limits", "advisory"),
    ]  # fmt: skip
    assert "hunter2" not in as_json.stdout + as_json.stderr
    assert warned.status == 0
    assert REFUSED_LINES[2] in warned.stderr


def test_flags_of_pulumi(seam: Seam) -> None:
    """The options reach the engine as the variables of Pulumi's own, and win over those of the shell."""
    seam.gives(OPERATIONS["deploy"], Came())
    flags = ("--policy-pack", "a", "--policy-pack", "b", "--policy-pack-config", "c.json")
    seam.platform(*args_of("deploy"), *flags, PULUMI_OPTION_OTEL_TRACES="http://a", PULUMI_OPTION_POLICY_PACK="x")

    (_, stack, _, _), = seam.asked  # fmt: skip
    found = {name: value for name, value in stack.variables.items() if name.startswith("PULUMI_OPTION_")}
    assert found == {
        "PULUMI_OPTION_POLICY_PACK": "a,b", "PULUMI_OPTION_POLICY_PACK_CONFIG": "c.json",
        "PULUMI_OPTION_OTEL_TRACES": "http://a",
    }  # fmt: skip


def test_policies_without_pulumi(seam: Seam) -> None:
    """The objects alone are printed without Pulumi, which would check them: that nothing is refused says nothing."""
    outcome = seam.platform("deploy", "--dry-run", "--policy-pack", "a")

    assert (outcome.status, outcome.stdout) == (2, "")
    assert "Invalid value for --policy-pack: is not checked by --dry-run: platform preview does" in outcome.stderr


def _span(seam: Seam) -> Span:
    return Span(Source("compose.yaml", seam.folder / "compose.yaml", TEXT), 1)


FAILURE_SUMMARY = "1 service failed after 0 s"


@pytest.mark.parametrize("command", ["deploy", "build", "wake"])
def test_a_failure(seam: Seam, command: str) -> None:
    """A service that fails is reported at its place with its last lines, none of them confidential, and ends with 1."""
    seam.gives(OPERATIONS[command], Came(failures=[FAILED], urls=("https://web.example.com",), images={"own": "o:1"}))
    outcome = seam.platform(*args_of(command))
    lines = outcome.stderr.splitlines()
    start = next(number for number, line in enumerate(lines) if "crashes" in line)

    assert (outcome.status, outcome.stdout) == (1, "")
    assert lines[start : start + 5] == [
        "compose.yaml:3:5: error: services.web: crashes with [secret] [deploy-failed]",
        "  hint: see its logs",
        "  the last lines of web-1:",
        "    it is [secret]",
        "    the end",
    ]
    ends = {"deploy": [f"{FAILURE_SUMMARY}; the state has the other changes"], "wake": [FAILURE_SUMMARY], "build": []}
    assert lines[start + 5 :] == ends[command]


@pytest.mark.parametrize("command", ["deploy", "build", "wake"])
def test_a_failure_for_programs(seam: Seam, command: str) -> None:
    """The same as JSON: the outcome is printed, and the status is 1 all the same."""
    seam.gives(OPERATIONS[command], Came(failures=[FAILED]))
    outcome = seam.platform(*args_of(command), "--json")
    found = data(outcome)

    assert outcome.status == 1
    assert found["status"] == "failed"
    assert found["failures"] == [
        {
            "service": "web",
            "code": "crash-loop",
            "message": "crashes with [secret]",
            "hint": "see its logs",
            "pod": "web-1",
            "log_lines": ["it is [secret]\x1b[31m", "the end"],
            "omitted_volumes": [],
        }
    ]


@each_command
def test_quiet(seam: Seam, command: str) -> None:
    """Without progress, only the result is reported."""
    seam.gives(OPERATIONS[command], Came(seconds=1.25))

    assert seam.platform(*args_of(command), "--quiet").stderr == NOTHING[command] + "\n"


def test_quiet_beside_events(seam: Seam) -> None:
    """It wins over --progress json as a whole: no line is JSON among others that are not."""
    seam.gives(OPERATIONS["deploy"], Came(failures=[FAILED]))

    quiet = seam.platform(*args_of("deploy"), "--quiet")
    both = seam.platform(*args_of("deploy"), "--progress", "json", "--quiet")
    assert both.stderr.splitlines()[:-1] == quiet.stderr.splitlines()[:-1] != []


# deploy ---------------------------------------------------------------------------------------------------------------


def test_a_deploy(seam: Seam) -> None:
    """The addresses are the result; what changed, what stays and what was removed is reported beside it."""
    claim = Change(operation=Operation.DELETE, urn="urn", kind="PersistentVolumeClaim", name="old", kept=True)
    seam.gives("deploy.deploy", Came(
        changes=[*CHANGES, claim], counts={"create": 1, "update": 2, "replace": 3, "delete": 5, "same": 5},
        kept=["old"], removed=["Service/stray"],
        urls=("https://web.example.com", "https://hunter2.example.com"), seconds=2.5,
    ))  # fmt: skip
    outcome = seam.platform(*args_of("deploy"))

    assert (outcome.status, outcome.stdout) == (0, "https://web.example.com\nhttps://hunter2.example.com\n")
    assert outcome.stderr.splitlines()[-3:] == [
        "volume old is no longer used; it and its data stay in the cluster",
        "removed Service/stray, which the file does not have",
        f"deployed {WHERE}: 1 created, 2 updated, 3 replaced, 4 deleted, 2.5 s",
    ]


def test_a_deploy_for_programs(seam: Seam) -> None:
    """JSON alone is printed: each change with its part of the file and its reasons, without the values."""
    seam.gives("deploy.deploy", Came(changes=CHANGES, kept=["old"], urls=("https://web.example.com",), seconds=2.55))

    assert data(seam.platform(*args_of("deploy"), "--json")) == {
        "schema": "platform/deploy/1", "environment": "demo", "namespace": "team", "status": "done",
        "changes": [
            {"part": {"type": "service", "name": "db"}, "operation": "create", "kind": "Service", "name": "db",
             "reasons": []},
            {"part": {"type": "service", "name": "web"}, "operation": "update", "kind": "Deployment", "name": "web",
             "reasons": ["image a → b"]},
        ],
        "kept_volumes": ["old"], "urls": ["https://web.example.com"], "failures": [], "policy_violations": [],
        "seconds": 2.5,
    }  # fmt: skip


def test_options_of_a_deploy(seam: Seam) -> None:
    """The options reach the engine, and so does the builder, as a variable."""
    seam.gives("deploy.deploy", Came())
    args = ("web", "--no-wait", "--timeout=7", "--rerun-jobs", "--refresh", "--replace-volume=kept", "--no-build")
    seam.platform(*args_of("deploy"), *args, "--safe-checkpoints", "--builder=mine").assert_success()

    assert seam.options == DeployOptions(
        services=("web",), wait=False, timeout=7, rerun_jobs=True, refresh=True, replaced_volumes=("kept",),
        safe_checkpoints=True, build=False,
    )  # fmt: skip
    assert seam.asked[0][1].variables["BUILDX_BUILDER"] == "mine"


def test_messages_of_the_engine(seam: Seam) -> None:
    """A note of the engine is a line, without what is confidential."""

    def act(stack: Stack, *_: Any) -> Came:
        stack.note("created namespace hunter2")
        return Came()

    seam.patch.setattr("composeplat.engine.operations.deploy.deploy", act)

    assert "created namespace [secret]\n" in seam.platform(*args_of("deploy")).stderr


def test_volumes_of_images(seam: Seam) -> None:
    """A volume that only the image declares is a warning of the deploy, not only of a check."""
    with serving(Registry()) as registry:
        put_config(registry, "db", {"architecture": "amd64", "config": {"Volumes": {"/data": {}}}})
        (seam.folder / "compose.yaml").write_text(f"services: {{db: {{image: {registry.host}/db}}}}")
        seam.gives("deploy.deploy", Came())
        lines = seam.platform(*args_of("deploy")).stderr.splitlines()

    assert lines[0] == (
        "compose.yaml:1:24: warning: services.db.image names an image with a volume at /data: without a mount, "
        "it is lost with the pod [image-volume]"
    )


def test_a_password_that_is_a_name(seam: Seam) -> None:
    """A password that a name of the file contains is not masked: that would reveal it, and hide the name."""
    text = "services: {wiki: {image: example/wiki:postgres, environment: {PASSWORD: $PASSWORD, WIKI_KEY: $WIKI_KEY}}}"
    (seam.folder / "compose.yaml").write_text(text)

    def act(stack: Stack, *_: Any) -> Came:
        stack.note("created namespace wiki-postgres-hunter2")
        return Came()

    seam.patch.setattr("composeplat.engine.operations.deploy.deploy", act)
    outcome = seam.platform(*args_of("deploy"), WIKI_KEY="postgres")

    assert "created namespace wiki-postgres-[secret]\n" in outcome.stderr


# preview --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "changes", "status"),
    [
        ((), CHANGES, 0),
        (("--expect-no-changes",), CHANGES, 5),
        (("--expect-no-changes",), [], 0),
        (("--expect-no-changes", "--json"), CHANGES, 5),
    ],
    ids=["changes", "unexpected", "none", "json"],
)
def test_the_status_of_a_preview(seam: Seam, args: tuple[str, ...], changes: list[Change], status: int) -> None:
    """Changes are no failure but where none were expected."""
    seam.gives("preview.preview", Came(changes=changes))

    assert seam.platform(*args_of("preview"), *args).status == status


def test_a_preview(seam: Seam) -> None:
    """The changes are the result, by part of the file; with --diff each property."""
    seam.gives("preview.preview", Came(changes=CHANGES, counts={"same": 3}, kept=["old"], notes=["a note"], seconds=2))
    outcome, differing = seam.platform(*args_of("preview")), seam.platform(*args_of("preview"), "--diff")

    assert outcome.stdout.splitlines() == [
        "service db",
        "  + create Service db",
        "service web",
        "  ~ update Deployment web: image a → b",
    ]
    assert differing.stdout.splitlines()[4:7] == [
        "      spec.template.spec.containers[0].image",
        "        - a",
        "        + b",
    ]
    assert outcome.stderr.splitlines()[-3:] == [
        "volume old is no longer used; it and its data stay in the cluster",
        "a note",
        "1 to create, 1 to update, 2.0 s",
    ]


def test_a_preview_for_programs(seam: Seam) -> None:
    """JSON has each difference, what stays, and how much is unchanged."""
    seam.gives("preview.preview", Came(changes=CHANGES[:1], counts={"same": 3}, kept=["old"], notes=["a note"]))
    found = data(seam.platform(*args_of("preview"), "--json"))

    assert found["changes"][0]["differences"] == [{"path": IMAGE.path, "old": "a", "new": "b", "replaces": False}]
    assert (found["kept_volumes"], found["notes"], found["unchanged"]) == (["old"], ["a note"], 3)


# build ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "args"), [(1, "built 1 image"), (2, "built 2 images")])
def test_a_build(seam: Seam, count: int, args: str) -> None:
    """The names of all images are the result, and how many were built is reported."""
    change = Change(operation=Operation.CREATE, urn="a", kind="Image", name="own")
    other = Change(operation=Operation.CREATE, urn="b", kind="Service", name="own")
    images = {"own": "r.example.com/demo-own@sha256:ab", "web": "r.example.com/web"}
    seam.gives("build.build", Came(changes=[*[change] * count, other], images=images, seconds=3))
    outcome = seam.platform(*args_of("build"))

    assert (outcome.status, outcome.stdout.splitlines()) == (0, list(images.values()))
    assert outcome.stderr.splitlines()[-1] == f"{args}, 3.0 s"
    assert data(seam.platform(*args_of("build"), "--json"))["images"] == images


def test_options_of_a_build(seam: Seam) -> None:
    """The services and --force reach the engine, and no domain is wanted."""
    seam.gives("build.build", Came())
    seam.platform("build", "own", "--force", "--registry=r.example.com").assert_success()

    assert (seam.asked[0][2][1], seam.asked[0][3]) == (("own",), {"force": True})


# destroy --------------------------------------------------------------------------------------------------------------


def test_a_destroy(seam: Seam) -> None:
    """What was deleted is counted, without images and what is kept; volumes that stay are named."""
    gone = Change(operation=Operation.DELETE, urn="a", kind="Service", name="db")
    image = Change(operation=Operation.DELETE, urn="b", kind="Image", name="own")
    stays = Change(operation=Operation.DELETE, urn="c", kind="PersistentVolumeClaim", name="kept", kept=True)
    seam.gives("destroy.destroy", Came(changes=[gone, image, stays], removed=["Job/stray"], kept=["kept"], seconds=4))
    outcome = seam.platform("destroy")

    assert (outcome.status, outcome.stdout) == (0, "")
    assert outcome.stderr.splitlines()[-2:] == [
        f"destroyed {WHERE}: 2 objects deleted, 4.0 s",
        "volume kept and its data stay; the next deploy uses them, --volumes deletes them",
    ]
    found = data(seam.platform("destroy", "--json"))
    assert (found["deleted"], found["kept_volumes"], found["seconds"]) == (2, ["kept"], 4)


def test_destroy_of_an_environment_with_a_volume_that_left_the_file(seam: Seam) -> None:
    """The next deploy does not use it."""
    seam.gives("destroy.destroy", Came(removed=["Job/stray"], kept=["kept", "old (1Gi)"], unused=["old (1Gi)"]))

    assert seam.platform("destroy").stderr.splitlines()[-2:] == [
        "volume kept and its data stay; the next deploy uses them, --volumes deletes them",
        "volume old (1Gi) and its data stay; no service of the file uses it, --volumes deletes them",
    ]


def test_destroy_names_the_volumes_it_deletes(seam: Seam) -> None:
    seam.gives("destroy.destroy", Came(removed=["PersistentVolumeClaim/data"], deleted_volumes=["data (1Gi)"]))

    assert seam.platform("destroy", "--volumes", "--yes").stderr.splitlines()[-2:] == [
        f"destroyed {WHERE}: 1 object deleted, 0.0 s",
        "volume data (1Gi) and its data are deleted",
    ]
    found = data(seam.platform("destroy", "--volumes", "--yes", "--json"))
    assert (found["kept_volumes"], found["deleted_volumes"]) == ([], ["data (1Gi)"])


@pytest.mark.parametrize(
    ("args", "asked"),
    [
        ((), {"volumes": False, "wait": True}),
        (("--volumes", "--yes", "--no-wait"), {"volumes": True, "wait": False}),
    ],
)
def test_options_of_a_destroy(seam: Seam, args: tuple[str, ...], asked: dict[str, bool]) -> None:
    """The options reach the engine."""
    seam.gives("destroy.destroy", Came())
    seam.platform("destroy", *args).assert_success()

    assert seam.asked[0][3] == asked


def test_data_is_not_deleted_without_a_word(seam: Seam) -> None:
    """Without a terminal --volumes wants --yes, and nothing is begun."""
    seam.gives("destroy.destroy", Came())
    outcome = seam.platform("destroy", "--volumes")

    assert (outcome.status, seam.asked) == (1, [])
    assert "--volumes deletes all data of demo in namespace team" in outcome.stderr


# refresh --------------------------------------------------------------------------------------------------------------


def test_a_refresh(seam: Seam) -> None:
    """Each object that is otherwise is a line of the result; what to do about it is reported."""
    gone = Change(operation=Operation.DELETE, urn=f"{CHAIN}:Service::demo-service/db", kind="Service", name="db")
    seam.gives("refresh.refresh", Came(changes=[CHANGES[0], gone], seconds=1))
    outcome, shown = seam.platform("refresh"), seam.platform("refresh", "--preview")

    assert outcome.stdout.splitlines() == ["Service db is gone", "Deployment web was changed: image a → b"]
    assert outcome.stderr.splitlines()[-2:] == [
        "2 objects differ from what was deployed, 1.0 s",
        "the state is updated; 'platform deploy' restores the objects",
    ]
    assert shown.stderr.splitlines()[-1] == "2 objects differ from what was deployed, 1.0 s"
    assert [item[3] for item in seam.asked] == [{"preview_only": False}, {"preview_only": True}]
    assert len(data(seam.platform("refresh", "--json"))["changes"]) == 2

    seam.gives("refresh.refresh", Came(changes=[gone], seconds=1))
    assert seam.platform("refresh").stderr.startswith("1 object differs from what was deployed, 1.0 s\n")


# sleep and wake -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("command", "args"), [("sleep", "sleeps"), ("wake", "is awake")])
def test_sleep_and_wake(seam: Seam, command: str, args: str) -> None:
    """What was laid down or woken is reported, and what was left alone."""
    seam.gives(OPERATIONS[command], Came(services=("db", "web"), developed=("own",), seconds=1))
    outcome = seam.platform(command, "--no-wait", "--timeout=9")
    found = data(seam.platform(command, "--json"))

    assert (outcome.status, outcome.stdout) == (0, "")
    assert outcome.stderr.splitlines()[-2:] == [
        "own is under development, and was not changed",
        f"{WHERE} {args}: db, web, 1.0 s",
    ]
    assert (found["services"], found["in_development"]) == (["db", "web"], ["own"])
    asked = {key: value for key, value in seam.asked[0][3].items() if key != "in_order"}
    assert asked == {"wait": False, "timeout": 9}


@pytest.mark.parametrize(
    ("in_shell", "in_file", "in_order"),
    [
        pytest.param(None, None, False, id="default"),
        pytest.param(None, "true", True, id="on"),
        pytest.param(None, "false", False, id="off"),
        pytest.param("false", "true", False, id="shell-over-file"),
    ],
)
def test_whether_services_wake_in_order(
    seam: Seam, in_shell: str | None, in_file: str | None, *, in_order: bool
) -> None:
    """The order of depends_on holds for waking only where the flag says so; the shell's beats that of .env."""
    seam.gives("sleep.wake", Came())
    flag = "OKTETO_COMPOSE_DEPENDS_ON_ENABLED"
    if in_file is not None:
        (seam.folder / ".env").write_text(f"{flag}={in_file}\n")
    seam.platform("wake", **({flag: in_shell} if in_shell else {})).assert_success()

    assert seam.asked[0][3]["in_order"] == in_order
