"""The output of ``platform history`` for a namespace, and the questions and refusals of ``platform rollback``."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from composeplat.engine.events import Change, Difference, Operation, Violation
from composeplat.engine.operations.rollback import Target, notes_of
from composeplat.engine.outcomes import Outcome as Came
from composeplat.engine.revisions import ImageChange, PartChange, Result, Revision
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan, VolumePlan
from tests.cli.conftest import Seam, data
from tests.cluster.objects import given, refusal
from tests.schemas import checked

SECRETS = "/api/v1/namespaces/team/secrets"
FIRST = Revision(
    number=1, command="deploy", result=Result.DONE, who="ann@laptop", seconds=3.2, commit="a" * 40, branch="main",
    dirty=False, changes=(PartChange(type="service", name="web", operation="create"),), has_values=True,
)  # fmt: skip
SECOND = Revision(
    number=2, command="deploy", result=Result.FAILED, who="cleo (GitHub Actions)", seconds=61.0, commit="b" * 40,
    branch="cart", dirty=True, services=("web",),
    changes=(
        PartChange(type="service", name="web", operation="update", images=(ImageChange("a:1", "a:2"),)),
        PartChange(type="volume", name="kept", operation="create"),
    ),
)  # fmt: skip
THIRD = Revision(number=10, command="rollback", result=Result.APPLIED, who="", rolled_back_to=1, omitted_changes=2)


def secret(revision: Revision, *, name: str = "", text: str | None = None) -> dict[str, Any]:
    metadata = {
        "name": name or f"platform-history.demo.{revision.number}",
        "creationTimestamp": f"2026-03-01T12:00:{revision.number:02}Z",
        "annotations": {"dev.platform.com/revision": revision.to_text() if text is None else text},
    }
    return {"metadata": metadata}


@pytest.fixture
def kept(seam: Seam) -> Seam:
    """An environment with three revisions, beside other Secrets."""
    seam.server.answers[SECRETS] = given(
        secret(FIRST),
        secret(THIRD),
        secret(SECOND),
        secret(FIRST, name="platform-history.other.7"),
        secret(FIRST, name="platform-history.demo.x"),
        secret(FIRST, name="platform-history.demo.8", text="{"),
        {"metadata": {"name": "platform-history.demo.9"}},
    )
    return seam


def test_the_list(kept: Seam) -> None:
    """The newest is first; secrets that are no revisions of the environment are left out."""
    outcome = kept.platform("history", TZ="UTC").assert_success()

    assert outcome.stdout == (
        "REVISION  STARTED              WHO                    COMMIT          RESULT   CHANGES\n"
        "10        2026-03-01 12:00:10  -                      -               applied "
        " rolled back to 1; 2 more changes\n"
        "2         2026-03-01 12:00:02  cleo (GitHub Actions)  bbbbbbbb* cart  failed  "
        " created volume kept; updated web\n"
        "1         2026-03-01 12:00:01  ann@laptop             aaaaaaaa main   done     created web\n"
    )
    assert f"{SECRETS}?labelSelector=dev.platform.com/history-of%3Ddemo" in kept.server.paths


def test_the_list_for_programs(kept: Seam) -> None:
    """With everything that is kept of each; the time is in UTC."""
    found = data(kept.platform("history", "--json"))["revisions"]

    assert [row["revision"] for row in found] == [10, 2, 1]
    assert found[1] == {
        "revision": 2, "command": "deploy", "services": ["web"], "result": "failed", "started": "2026-03-01T12:00:02Z",
        "seconds": 61.0, "who": "cleo (GitHub Actions)", "commit": "b" * 40, "branch": "cart", "dirty": True,
        "rolled_back_to": None, "omitted_changes": 0, "can_roll_back": False,
        "changes": [
            {
                "part": {"type": "service", "name": "web"}, "operation": "update",
                "images": [{"old": "a:1", "new": "a:2"}],
            },
            {"part": {"type": "volume", "name": "kept"}, "operation": "create", "images": []},
        ],
    }  # fmt: skip
    assert [row["can_roll_back"] for row in found] == [False, False, True]
    assert data(kept.platform("history", "1", "--json"))["revisions"] == found[2:]


def test_one_revision(kept: Seam) -> None:
    """In full, with the images before and after it."""
    assert kept.platform("history", "2", TZ="UTC").assert_success().stdout == (
        "revision:            2\n"
        "command:             platform deploy web\n"
        "started:             2026-03-01 12:00:02, 61.0 s\n"
        "who:                 cleo (GitHub Actions)\n"
        f"commit:              {'b' * 40}* cart\n"
        "result:              failed\n"
        "can roll back to it: no\n"
        "updated service web\n"
        "  image a:1 → a:2\n"
        "created volume kept\n"
    )
    assert "rolled back to:      1\n" in kept.platform("history", "10").stdout


def test_no_history(seam: Seam) -> None:
    """An environment that was never deployed has none."""
    outcome = seam.platform("history").assert_success()

    assert (outcome.stdout, outcome.stderr) == ("", "demo has no history in namespace team: platform deploy\n")
    assert data(seam.platform("history", "--json"))["revisions"] == []


@pytest.mark.parametrize("command", ["history", "rollback"])
def test_a_revision_that_is_not_there(kept: Seam, command: str) -> None:
    """The numbers that there are are listed."""
    outcome = kept.platform(command, "99")

    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr == "error: there is no revision 99 of this environment\n  hint: there are: 10, 2, 1\n"


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5"])
@pytest.mark.parametrize("command", ["history", "rollback"])
def test_no_number(seam: Seam, command: str, number: str) -> None:
    """It is a mistake of usage."""
    assert seam.platform(command, number).status == 2


def test_secrets_that_may_not_be_listed(seam: Seam) -> None:
    """It is status 4, with the missing permission."""
    seam.server.answers[SECRETS] = refusal(403, "no")

    outcome = seam.platform("history")

    assert (outcome.status, outcome.stdout) == (4, "")
    assert "can't read the history: you may not list secrets in namespace 'team'" in outcome.stderr


def test_texts_of_others_are_harmless(seam: Seam) -> None:
    """Control characters are shown as such, on one line, and no secret is shown."""
    bad = replace(FIRST, who="a\x1b[2Jb\nhunter2", branch="\x1b]0;x\x07\u202e")
    seam.server.answers[SECRETS] = given(secret(bad))

    outcomes = [seam.platform("history"), seam.platform("history", "1"), seam.platform("history", "--json")]

    for outcome in outcomes:
        assert "\x1b" not in outcome.stdout
        assert "hunter2" not in outcome.stdout
    assert len(outcomes[0].stdout.splitlines()) == 2
    assert "a\\x1b[2Jb [secret]" in outcomes[0].stdout
    assert "\u202e" not in outcomes[0].stdout + outcomes[1].stdout


# roll back ------------------------------------------------------------------------------------------------------------

CHANGE = Change(
    operation=Operation.UPDATE, urn="urn:pulumi:team::demo::t::demo-workload/web", kind="Deployment", name="web",
    differences=(Difference(path="spec.replicas", old=1, new=2),),
)  # fmt: skip


@pytest.fixture
def ready(seam: Seam) -> Seam:
    """An environment that can be rolled back to its first revision."""

    def find_target(stack: Stack, *_: object) -> Target:
        stack.hide_secrets([("PASSWORD", "old-password")])
        return Target(FIRST, Plan(environment="demo", namespace="team"))

    seam.patch.setattr("composeplat.engine.operations.rollback.find_target", find_target)
    seam.gives("rollback.preview", Came(changes=[CHANGE], notes=["a note with old-password"]))
    seam.gives("rollback.apply", Came(changes=[CHANGE], counts={"update": 1}, seconds=2))
    return seam


PREVIEW = "service web\n  ~ update Deployment web: replicas 1 → 2\n"


def test_a_rollback_without_a_terminal(ready: Seam) -> None:
    """It needs ``--yes``, and the preview comes first; a secret of the revision is masked."""
    outcome = ready.platform("rollback")

    assert (outcome.status, outcome.stdout) == (1, PREVIEW)
    assert outcome.stderr == (
        "a note with [secret]\n1 to update, 0.0 s\n"
        "error: a rollback changes demo in namespace team, and there is no terminal to confirm that on\n"
        "  hint: give --yes, or --dry-run\n"
    )
    assert [name for name, *_ in ready.asked] == ["rollback.preview"]


def test_a_rollback(ready: Seam) -> None:
    """With the preview, and the result."""
    outcome = ready.platform("rollback", "--yes", "--no-wait", "--timeout", "9").assert_success()

    assert outcome.stdout == PREVIEW
    assert outcome.stderr.endswith("rolled back demo in namespace team to revision 1: 1 updated, 2.0 s\n")
    options = ready.asked[1][2][1]
    assert (options.rolled_back_to, options.build, options.wait, options.timeout) == (1, False, False, 9)


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1), ("", 1)])
def test_the_question(ready: Seam, answer: str, status: int) -> None:
    """On a terminal it asks, and anything but a yes changes nothing."""
    asked: list[str] = []

    def confirm(question: str, *, default: bool, err: bool) -> bool:
        asked.append(question)
        return err and (answer == "y" or default)

    ready.patch.setattr("composeplat.cli.questions.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    ready.patch.setattr("typer.confirm", confirm)

    outcome = ready.platform("rollback")

    assert outcome.status == status
    assert asked == ["Roll demo in namespace team back to revision 1?"]
    assert ("not confirmed: nothing was changed" in outcome.stderr) == (status == 1)
    assert len(ready.asked) == 2 - status


def test_a_policy_that_refuses(ready: Seam) -> None:
    """The rollback ends after the preview, and the document says why."""
    violation = Violation(pack="rules", policy="p", level="mandatory", message="no", urn=CHANGE.urn)
    ready.gives("rollback.preview", Came(changes=[CHANGE], violations=[violation]))

    outcome = ready.platform("rollback", "--yes")

    assert outcome.status == 1
    assert outcome.stderr.endswith("a policy refuses demo in namespace team; nothing was changed\n")
    assert [name for name, *_ in ready.asked] == ["rollback.preview"]

    for arg in ("--yes", "--dry-run"):
        document = checked(json.loads(ready.platform("rollback", arg, "--json").stdout))
        assert (document["status"], document["changes"], document["rolled_back_to"]) == ("failed", [], 1)
        assert [row["policy"] for row in document["policy_violations"]] == ["p"]


def test_a_rollback_for_programs(ready: Seam) -> None:
    """The document has the changes."""
    found = data(ready.platform("rollback", "--yes", "--json"))

    assert (found["status"], found["rolled_back_to"], len(found["changes"])) == ("done", 1, 1)
    assert found["notes"] == ["a note with [secret]"]


def test_a_dry_run(ready: Seam) -> None:
    """It asks nothing and changes nothing."""
    outcome = ready.platform("rollback", "--dry-run", "--diff").assert_success()
    found = data(ready.platform("rollback", "--dry-run", "--json"))

    assert outcome.stdout == PREVIEW + "      spec.replicas\n        - 1\n        + 2\n"
    assert found["status"] == "previewed"
    assert found["changes"][0]["differences"] == [{"path": "spec.replicas", "old": 1, "new": 2, "replaces": False}]
    assert {name for name, *_ in ready.asked} == {"rollback.preview"}


def test_nothing_to_change_after_one_that_was_killed(ready: Seam) -> None:
    """It runs all the same: without it, the history would end with one that is unfinished."""
    target = Target(FIRST, Plan(environment="demo", namespace="team"), completes_another=True)
    ready.patch.setattr("composeplat.engine.operations.rollback.find_target", lambda *_: target)
    ready.gives("rollback.preview", Came())
    ready.gives("rollback.apply", Came())

    ready.platform("rollback", "--dry-run").assert_success()
    assert [name for name, *_ in ready.asked] == ["rollback.preview"]
    outcome = ready.platform("rollback", "--yes").assert_success()

    assert outcome.stderr.endswith("rolled back demo in namespace team to revision 1: nothing changed, 0.0 s\n")
    assert [name for name, *_ in ready.asked][1:] == ["rollback.preview", "rollback.apply"]


def test_nothing_to_change(ready: Seam) -> None:
    """An environment that is as in the revision is left alone, without a question."""
    ready.gives("rollback.preview", Came())

    outcome = ready.platform("rollback").assert_success()

    assert (outcome.stdout, outcome.stderr) == ("", "demo in namespace team is as in revision 1: nothing was changed\n")


def test_notes() -> None:
    """A job that runs again is named, and so are the volumes whose data stays."""
    job = replace(CHANGE, kind="Job", name="migrate", operation=Operation.REPLACE)
    volumes = (VolumePlan(name="kept", cluster_name="kept", objects=()),)
    target = Target(FIRST, Plan(environment="demo", namespace="team", volumes=volumes))

    assert notes_of(target, [CHANGE, job, replace(job, operation=Operation.UPDATE)]) == [
        "job migrate runs again, as it was in revision 1",
        "the data of volumes (kept) stays as it is: a rollback never changes data",
    ]
    assert notes_of(replace(target, plan=Plan(environment="demo", namespace="team")), [CHANGE]) == []


def test_a_document_of_another_version(kept: Seam) -> None:
    """A revision that a later version wrote is left out."""
    text = json.dumps({**json.loads(FIRST.to_text()), "format": 2})
    kept.server.answers[SECRETS] = given(secret(FIRST, text=text), secret(SECOND))

    assert [row["revision"] for row in data(kept.platform("history", "--json"))["revisions"]] == [2]
