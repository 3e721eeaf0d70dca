"""The revisions of a history: their form, which others may have written, how many are kept, where a rollback goes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.engine.events import Change, Difference, Operation
from composeplat.engine.revisions import (
    MAX_REVISIONS,
    ImageChange,
    PartChange,
    Result,
    Revision,
    choose_target,
    find_revision,
    leaves_failure,
    left_out,
    limit_changes,
    parse_number,
    part_changes,
    surplus,
)
from tests.conftest import Project

GOOD = Revision(number=3, command="deploy", result=Result.DONE, who="ann@host", started="now", has_values=True)
WHOLE = replace(
    GOOD,
    seconds=2.5,
    commit="a" * 40,
    branch="main",
    dirty=True,
    services=("web",),
    rolled_back_to=1,
    changes=(PartChange(type="service", name="web", operation="update", images=(ImageChange("a:1", "a:2"),)),),
    omitted_changes=2,
)


def revision(number: int, result: Result = Result.DONE, *, has_values: bool = True) -> Revision:
    return replace(GOOD, number=number, result=result, has_values=has_values)


# the form -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [GOOD, WHOLE])
def test_a_revision_is_read_as_it_was_written(written: Revision) -> None:
    """Its number and its time are those of the object that has it."""
    assert Revision.from_text(written.to_text(), number=3, started="now") == written
    assert "now" not in written.to_text()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"result": "great"},
        {"who": 1},
        {"who": None},
        {"changes": [{"type": "service", "name": "web", "operation": "explode", "images": []}]},
        {"changes": [{"type": "service", "name": "web", "operation": "same", "images": []}]},
        {"changes": [1]},
        {"changes": 1},
        {"services": [1]},
        {"seconds": "x"},
        {"seconds": float("nan")},
        {"rolled_back_to": "x"},
        {"omitted_changes": float("inf")},
        {"commit": []},
    ],
)
def test_no_revision(change: dict[str, Any]) -> None:
    """A text by others, or by another version, is none: it is left out, and nothing fails."""
    text = json.dumps({**json.loads(WHOLE.to_text()), **change})

    assert Revision.from_text(text, number=3, started="now") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", '"x"', "[" * 100_000])
def test_no_json_object(text: str) -> None:
    """It is no revision either."""
    assert Revision.from_text(text, number=1, started="") is None


def test_texts_are_cut() -> None:
    """A name of any length is shown in part."""
    text = json.dumps({**json.loads(WHOLE.to_text()), "branch": "x" * 5000})

    found = Revision.from_text(text, number=1, started="")

    assert found is not None
    assert found.branch == "x" * 199 + "…"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("12", 12),
        ("0", None),
        ("01", None),
        ("-1", None),
        ("", None),
        ("x", None),
        ("\u0661", None),
        ("9" * 10, None),
    ],
)
def test_numbers(text: str, number: int | None) -> None:
    """The end of an object's name is a number, or the object is no revision."""
    assert parse_number(text) == number


# changes --------------------------------------------------------------------------------------------------------------


def change(key: str, operation: Operation, kind: str, *differences: Difference, kept: bool = False) -> Change:
    name = key.partition("/")[2]
    return Change(
        operation=operation, urn=f"urn:pulumi:team::demo::t::demo-{key}", kind=kind, name=name,
        differences=differences, kept=kept,
    )  # fmt: skip


def test_changes_by_part(project: Project) -> None:
    """The changes of a service's objects are one, under its name in the file, with the images."""
    plan = (
        project(
            "services: {My_Web: {image: a, ports: ['80']}, db: {image: b, volumes: ['data:/d']}}\nvolumes: {data: {}}\n"
        )
        .read()
        .plan
    )
    assert plan
    image = Difference(path="spec.template.spec.containers[0].image", old="a:1", new="a:2")
    other = Difference(path="spec.replicas", old=1, new=2)

    found = part_changes(
        [
            change("workload/my-web", Operation.UPDATE, "Deployment", other, image),
            change("service/my-web", Operation.CREATE, "Service"),
            change("workload/db", Operation.DELETE, "StatefulSet"),
            change("service/db", Operation.DELETE, "Service"),
            change("workload/job", Operation.REPLACE, "Job"),
            change("environment/job", Operation.UPDATE, "Secret"),
            change("claim/data", Operation.DELETE, "PersistentVolumeClaim", kept=True),
            change("claim/more", Operation.CREATE, "PersistentVolumeClaim"),
        ],
        plan,
    )  # fmt: skip

    assert found == [
        PartChange(type="service", name="My_Web", operation="update", images=(ImageChange("a:1", "a:2"),)),
        PartChange(type="service", name="db", operation="delete"),
        PartChange(type="service", name="job", operation="replace"),
        PartChange(type="volume", name="more", operation="create"),
    ]


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.DELETE])
def test_an_object_beside_a_service(project: Project, operation: Operation) -> None:
    """A service that gets or loses its environment or autoscaler is neither created nor deleted."""
    plan = project("services: {web: {image: a}}\n").read().plan
    assert plan
    beside = [
        change("environment/web", operation, "Secret"),
        change("autoscaler/web", operation, "HorizontalPodAutoscaler"),
    ]

    assert part_changes(beside, plan) == [PartChange(type="service", name="web", operation="update")]
    whole = [*beside, change("service/web", operation, "Service")]
    assert part_changes(whole, plan) == [PartChange(type="service", name="web", operation=str(operation))]


def test_many_changes() -> None:
    """A revision keeps the first of them, and how many more there were."""
    changes = [PartChange(type="service", name=str(number), operation="create") for number in range(501)]

    assert limit_changes(changes) == (tuple(changes[:500]), 1)
    assert limit_changes(changes[:3]) == (tuple(changes[:3]), 0)


def test_changes_that_an_annotation_has_no_room_for() -> None:
    """The API server refuses more than 256 KiB of annotations: a deploy of many services was in no history."""
    images = (ImageChange("a" * 200, "b" * 200),) * 2
    changes = [PartChange(type="service", name=f"s{n}", operation="update", images=images) for n in range(400)]
    kept, omitted = limit_changes(changes)

    text = replace(GOOD, changes=kept, omitted_changes=omitted).to_text()
    assert 150_000 < len(text) < 256 * 1024
    assert (len(kept) + omitted, kept) == (400, tuple(changes[: len(kept)]))


# where a rollback goes ------------------------------------------------------------------------------------------------


def test_the_default_is_the_last_good_one_before_the_newest() -> None:
    """Whether the newest ended well or not; one that did not end well is never chosen."""
    first, second, failed = revision(1), revision(2), revision(3, Result.FAILED)

    assert choose_target([second, first], None) == first
    assert choose_target([failed, second, first], None) == second
    assert choose_target([revision(4), failed, second, first], None) == second
    assert choose_target([revision(3), revision(2, Result.APPLIED), first], None).number == 2
    assert choose_target([revision(3), revision(2, has_values=False), first], None) == first


def test_one_that_nothing_waited_for_and_that_was_rolled_back() -> None:
    """It may never have become ready: a second rollback leaves it out, unless its number is given."""
    first, applied, back = revision(1), revision(2, Result.APPLIED), replace(revision(3), command="rollback")
    failed = replace(revision(3, Result.FAILED), command="rollback")

    assert choose_target([back, applied, first], None) == first
    assert left_out([back, applied, first], first) == [applied]
    assert choose_target([replace(back, number=4), failed, applied, first], None) == first
    assert choose_target([back, applied, first], 2) == applied
    assert choose_target([revision(4), back, applied, first], None) == back
    assert choose_target([back, applied], None) == applied
    assert left_out([revision(3), applied, first], first) == []


@pytest.mark.parametrize("revisions", [[], [revision(1)], [revision(2), revision(1, Result.FAILED)]])
def test_nothing_to_roll_back_to(revisions: list[Revision]) -> None:
    """Without an earlier good revision the error says so."""
    with pytest.raises(ComposeplatError) as caught:
        choose_target(revisions, None)

    assert str(caught.value) == "there is no earlier revision to roll back to"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (revision(2, Result.FAILED), "revision 2 failed, so nothing of it is known to work"),
        (revision(2, Result.INTERRUPTED), "revision 2 was interrupted, so it is incomplete"),
        (revision(2, Result.UNFINISHED), "revision 2 has not finished, or was killed"),
        (
            revision(2, has_values=False),
            "revision 2 is kept without its objects, which were too large or could not be read",
        ),
        (
            replace(revision(2, has_values=False), command="destroy"),
            "revision 2 destroyed the environment: there is nothing to roll back to",
        ),
    ],
)
def test_a_revision_that_is_not_one_to_roll_back_to(found: Revision, message: str) -> None:
    """It is refused, with the reason and the numbers of the others."""
    with pytest.raises(ComposeplatError) as caught:
        choose_target([revision(3), found, revision(1)], 2)

    assert str(caught.value) == message
    assert caught.value.hint == "revisions to roll back to: 3, 1"


def of(number: int, result: Result, *services: str) -> Revision:
    """A revision of some services after a failure: it has no objects to roll back to."""
    return replace(revision(number, result, has_values=False), services=services)


@pytest.mark.parametrize(
    ("revisions", "chosen", "expected"),
    [
        ([], (), False),
        ([revision(1)], ("web",), False),
        ([revision(2, Result.FAILED), revision(1)], (), True),
        ([revision(2, Result.FAILED), revision(1)], ("web", "db"), True),
        ([of(3, Result.DONE, "web"), revision(2, Result.FAILED), revision(1)], (), True),
        ([of(2, Result.FAILED, "db"), revision(1)], ("web",), True),
        ([of(2, Result.INTERRUPTED, "db"), revision(1)], ("web", "db"), False),
        ([of(3, Result.DONE, "web"), of(2, Result.FAILED, "db"), revision(1)], ("db",), False),
        ([of(4, Result.DONE, "db"), of(3, Result.DONE, "web"), of(2, Result.FAILED, "db"), revision(1)], (), False),
        ([of(3, Result.FAILED, "db"), of(2, Result.DONE, "db"), revision(1)], (), True),
        ([of(3, Result.DONE, "web"), of(2, Result.DONE), revision(1, Result.FAILED)], (), False),
        ([of(12, Result.DONE, "web"), of(11, Result.DONE, "web"), revision(1)], (), True),
        ([of(12, Result.DONE, "web"), of(11, Result.DONE, "web")], (), True),
        ([of(2, Result.DONE, "web"), of(1, Result.DONE, "db")], (), False),
    ],
)
def test_what_a_failed_deployment_has_left(
    revisions: list[Revision], chosen: tuple[str, ...], *, expected: bool
) -> None:
    """A deployment of all mends each failure, one of some services theirs; one that is not kept counts as failed."""
    assert leaves_failure(revisions, chosen) is expected


def test_a_revision_of_some_services_after_a_failure_of_others() -> None:
    """Its reason is that, and not the size of its objects."""
    found = [revision(4), of(3, Result.DONE, "web"), revision(2, Result.FAILED), revision(1)]

    with pytest.raises(ComposeplatError, match="revision 3 left services alone that a deployment before it had failed"):
        choose_target(found, 3)
    with pytest.raises(ComposeplatError, match="revision 2 is kept without its objects"):
        choose_target([revision(3), of(2, Result.DONE, "web"), revision(1)], 2)


def test_a_number_that_is_not_there() -> None:
    """The error lists the numbers that are."""
    with pytest.raises(ComposeplatError) as caught:
        find_revision([revision(3), revision(2)], 99)
    assert str(caught.value) == "there is no revision 99 of this environment"
    assert caught.value.hint == "there are: 3, 2"
    with pytest.raises(ComposeplatError) as caught:
        choose_target([], 1)
    assert caught.value.hint == "there is none yet: platform deploy"
    assert find_revision([revision(3)], 3).number == 3
    assert choose_target([revision(3), revision(1)], 3).number == 3


# how many are kept ----------------------------------------------------------------------------------------------------


def test_as_many_are_kept() -> None:
    """The oldest go."""
    numbers = range(1, MAX_REVISIONS + 3)

    assert [found.number for found in surplus([revision(number) for number in numbers])] == [2, 1]
    assert surplus([revision(number) for number in range(1, MAX_REVISIONS + 1)]) == []


def test_the_last_good_one_is_kept() -> None:
    """However many failed after it."""
    failed = [revision(number, Result.FAILED) for number in range(3, MAX_REVISIONS + 4)]

    assert [found.number for found in surplus([revision(1), revision(2), *failed])] == [3, 1]
