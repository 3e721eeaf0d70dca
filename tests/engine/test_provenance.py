"""Which project an environment was made from: what is refused, and the message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from composeplat.cluster.api import Api
from composeplat.compose.project_id import ProjectId
from composeplat.engine.preflight import Key, LiveState
from composeplat.engine.provenance import (
    Claim,
    OtherProject,
    check_project,
    describe_siblings,
    note_project,
    other_environments,
    record_key,
    recorded_project,
)
from tests.cluster.objects import Answer, Server, refusal

MINE, THEIRS = ProjectId("mine", "b/app on ada"), ProjectId("theirs", "github.com/acme/app")
RENAME = "give this project a name of its own with --name or the key 'name'"
MEANT = "if it is meant all the same"
TAKEN = "make the environment this project's with"
CLAIM = Claim(project=MINE, name_from_folder=True)


def record(name: str, key: str = "mine", **more: str) -> dict[Key, dict[str, Any]]:
    annotations = {
        "dev.platform.com/project": key,
        "dev.platform.com/project-description": "x",
        "dev.platform.com/project-of": name,
        **more,
    }
    return {record_key(name): {"metadata": {"name": record_key(name)[1], "annotations": annotations}}}


def check(known: ProjectId | None, claim: Claim = CLAIM, command: str = "deploy", *, take_over: bool = False) -> None:
    check_project(known, claim, "app", "team", command=command, take_over=take_over)


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (
            "deploy",
            f"{RENAME}; or {TAKEN} --take-over, which deletes what this file does not have",
        ),
        (
            "destroy",
            f"{RENAME}; or {MEANT}: platform destroy --name app …; platform deploy --take-over makes it this project's",
        ),
    ],
)
def test_another_project(command: str, hint: str) -> None:
    """A name that came from the folder alone is not enough: both projects and the fix are named."""
    with pytest.raises(OtherProject) as caught:
        check(THEIRS, command=command)

    assert str(caught.value) == (
        "environment 'app' in namespace 'team' was made from another project, github.com/acme/app; this one is"
        " b/app on ada, and its folder alone gives it that name"
    )
    assert caught.value.hint == hint


def test_projects_that_may_continue() -> None:
    """The same project continues, and so does a name that was given, a taking over, and what nothing is known of."""
    check(MINE)
    check(None)
    check(THEIRS, take_over=True)
    check(THEIRS, Claim(project=MINE, name_from_folder=False))


@pytest.mark.parametrize("head", [None, {}, {"metadata": {}}, {"metadata": {"annotations": None}}])
def test_no_record(head: dict[str, Any] | None) -> None:
    """A ConfigMap that names no project is no record."""
    assert recorded_project(head) is None


@pytest.mark.parametrize("annotations", [None, {"other": "x"}])
def test_a_record_without_its_annotations(annotations: dict[str, str] | None) -> None:
    """A deploy writes them again: other projects' folders of the same name would be let in for good."""
    key = record_key("app")
    live_state = LiveState(object_metadata={key: {"metadata": {"name": key[1], "annotations": annotations}}})
    with Server() as server, Api(server.access) as api:
        server.answers = {"/api/v1/namespaces/team/configmaps": refusal(409, "already exists")}
        server.otherwise = Answer()
        assert note_project(api, live_state, CLAIM, "app", "team") == ""

    (request,) = server.asked
    sent = json.loads(request.body)
    assert (request.method, request.path.partition("?")[0]) == (
        "PATCH",
        "/api/v1/namespaces/team/configmaps/platform-project.app",
    )
    assert recorded_project(sent) == MINE


def test_a_record_that_others_wrote() -> None:
    """Whatever is in a record, it plays no tricks on a terminal and does not fill it."""
    text = "\x1b[2J" + "x" * 1000
    found = recorded_project(
        record("app", **{"dev.platform.com/project-description": text})["ConfigMap", "platform-project.app"]
    )

    assert found is not None
    assert "\x1b" not in found.description
    assert len(found.description) == 300


def test_environments_of_one_project() -> None:
    """Others of the namespace that were made from the same project are known; other projects' are not."""
    object_metadata = {**record("a"), **record("b"), **record("c", "theirs"), **record("app"), **record("--volumes")}

    assert other_environments(LiveState(object_metadata=object_metadata), "app", CLAIM) == ["a", "b"]


def test_other_environments_are_reported_once() -> None:
    """They are reported when an environment is made, and not again: nothing is deleted that nobody named."""
    first, many = record("old"), {key: head for number in range(7) for key, head in record(f"e{number}").items()}

    assert describe_siblings(LiveState(object_metadata=first), "app", CLAIM) == (
        "old was made from this project too, and stays; if the name was changed: platform destroy --name old"
    )
    assert describe_siblings(LiveState(object_metadata=many), "app", CLAIM) == (
        "e0, e1, e2, e3, e4 and 2 more were made from this project too, and stay; if the name was changed:"
        " platform destroy --name e0"
    )
    assert describe_siblings(LiveState(object_metadata={**first, **record("app")}), "app", CLAIM) == ""
    assert describe_siblings(LiveState(), "app", CLAIM) == ""
