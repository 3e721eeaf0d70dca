"""What the entries of an operation add up to, whatever lies in the file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from composeplat.engine.operation_document import (
    MAX_TEXT_CHARS,
    Operation,
    OperationState,
    add_lines,
    entry_line,
    entry_of,
)
from composeplat.progress import Conclusion, Event, Note, Phase, Result, ServiceProgress, SessionEvent, Step, Transfer
from composeplat.system.processes import ProcessId

PROCESS = ProcessId.from_pid(os.getpid())
STARTED, LATER, ENDED = (f"2026-11-25T09:30:0{second}.000Z" for second in (0, 1, 2))
BEGIN: dict[str, Any] = {
    "event": "begin",
    "operation": "deploy",
    "user": "ann",
    "started": STARTED,
    "process": PROCESS.to_data(),
}
SERVICE: dict[str, Any] = {
    "event": "service",
    "service": "web",
    "phase": "waiting",
    "message": "pulling nginx",
    "seconds": 1.5,
    "updated": LATER,
}
STEP: dict[str, Any] = {"event": "step", "name": "waiting for pods", "phase": "started", "seconds": 0, "updated": LATER}
END: dict[str, Any] = {"event": "end", "state": "done", "ended": ENDED, "error": []}


def lines(*entries: Mapping[str, Any]) -> list[bytes]:
    return b"".join(map(entry_line, entries)).split(b"\n")


def document(*entries: Mapping[str, Any]) -> dict[str, Any]:
    found = add_lines(lines(BEGIN, *entries))
    assert found is not None
    return found.document()


def test_a_running_operation() -> None:
    found = document(SERVICE, STEP, {"event": "note", "message": "created namespace team"})

    assert found == {
        "operation": "deploy",
        "user": "ann",
        "pid": os.getpid(),
        "started": STARTED,
        "ended": "",
        "state": "running",
        "services": {"web": {"phase": "waiting", "message": "pulling nginx", "seconds": 1.5, "updated": LATER}},
        "steps": [{"name": "waiting for pods", "phase": "started", "seconds": 0.0, "updated": LATER}],
        "notes": ["created namespace team"],
    }


def test_the_latest_phase_counts() -> None:
    found = document(SERVICE, {**SERVICE, "phase": "ready"}, STEP, {**STEP, "phase": "done", "seconds": 3})

    assert found["services"]["web"]["phase"] == "ready"
    assert [(step["phase"], step["seconds"]) for step in found["steps"]] == [("done", 3)]


def test_an_operation_that_ended_well() -> None:
    found = document({**SERVICE, "phase": "ready"}, END, {**SERVICE, "phase": "failed"})

    assert (found["state"], found["ended"], found["notes"]) == ("done", ENDED, [])
    assert found["services"]["web"]["phase"] == "ready", "nothing counts after the end"


def test_a_failed_operation_has_its_reasons() -> None:
    """A service that was rolled back is ready again, and still the cause."""
    failed = {**SERVICE, "phase": "failed", "message": "exits with status 1"}
    ended = {**END, "state": "failed", "error": ["can't reach the cluster"]}

    found = document({"event": "note", "message": "rolling back"}, failed, {**SERVICE, "phase": "ready"}, ended)

    assert found["state"] == "failed"
    assert found["services"]["web"]["phase"] == "ready"
    assert found["notes"] == ["rolling back", "web: exits with status 1", "can't reach the cluster"]


def test_a_warning_is_a_note() -> None:
    found = document({"event": "warning", "service": "once", "message": "failed, and is tried again"})

    assert found["notes"] == ["once: failed, and is tried again"]


def test_notes_and_steps_are_limited() -> None:
    notes = [{"event": "note", "message": f"note {number}"} for number in range(500)]
    steps = [{**STEP, "name": f"step {number}"} for number in range(500)]

    found = document(*notes, *steps)

    assert (len(found["notes"]), found["notes"][-1]) == (200, "note 499")
    assert (len(found["steps"]), found["steps"][-1]["name"]) == (200, "step 499")


def test_the_fewest_entries_add_up_to_the_same() -> None:
    operation = add_lines(
        lines(
            BEGIN,
            *([SERVICE] * 50),
            {**SERVICE, "phase": "failed", "message": "no such image"},
            {**SERVICE, "phase": "ready", "message": ""},
            {**SERVICE, "service": "db"},
            STEP,
            {"event": "note", "message": "a note"},
            {**END, "state": "failed", "error": ["it failed"]},
        )
    )
    assert operation is not None
    entries = list(operation.entries())

    again = add_lines(lines(*entries))

    assert again is not None
    assert again.document() == operation.document()
    assert len(entries) == 7


# hostile entries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{" * 100_000,
        b'{"event": "service", "service": "web", "phase": "wai',
        b"[1, 2]",
        b"null",
        b"1e999",
        b"9" * 10_000,
        b'{"event": "service", "service": ["web"], "phase": "failed"}',
        b'{"event": "service", "service": "", "phase": "failed"}',
        b'{"event": "service", "service": "web", "phase": "exploded"}',
        b'{"event": "service", "service": "web", "phase": {}}',
        b'{"event": "step", "name": 1, "phase": "done"}',
        b'{"event": "note", "message": ["a"]}',
        b'{"event": "warning", "message": "a"}',
        b'{"event": "end", "state": "running"}',
        b'{"event": "end", "state": []}',
        b'{"event": "of another version"}',
        json.dumps(BEGIN | {"operation": "destroy"}).encode(),
    ],
    ids=range(20),
)
def test_an_entry_that_can_not_be_read_is_skipped(line: bytes) -> None:
    found = add_lines([*lines(BEGIN, SERVICE), line, *lines(STEP)])

    assert found is not None
    assert found.document() == document(SERVICE, STEP)


@pytest.mark.parametrize("seconds", ["NaN", "Infinity", "-1", "1e999", "true", '"1"', "[]", "null", "9" * 400])
def test_a_number_that_is_none(seconds: str) -> None:
    text = json.dumps({**SERVICE, "seconds": 4321}).replace("4321", seconds)
    found = add_lines([*lines(BEGIN), text.encode()])

    assert found is not None
    assert found.document() == document({**SERVICE, "seconds": 0.0})


def test_texts_and_times_that_are_none() -> None:
    hostile = {**SERVICE, "service": "w\ud800" + "x" * 5000, "message": "\udcff" * 5000, "updated": "yesterday"}

    found = document(hostile, {**END, "ended": "9999-12-31T23:59:59-23:00", "error": "text"})

    ((name, row),) = found["services"].items()
    assert (len(name), len(row["message"]), row["updated"]) == (MAX_TEXT_CHARS, MAX_TEXT_CHARS, "")
    assert (found["ended"], found["notes"]) == ("", [])
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"{}",
        entry_line(SERVICE),
        entry_line({**BEGIN, "process": {"pid": "1"}}),
        entry_line({**BEGIN, "event": "start"}),
    ],
    ids=["nothing", "empty", "a service", "no process", "another event"],
)
def test_without_a_begin_there_is_no_operation(first: bytes) -> None:
    assert add_lines([first, *lines(SERVICE)]) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.dictionaries(
    st.sampled_from(["event", "service", "name", "phase", "message", "seconds", "state", "ended", "error", "updated"]),
    VALUES | st.sampled_from(["service", "step", "note", "warning", "end", "failed", "ready", "done"]),
)


@given(st.lists(ENTRIES))
def test_any_entries_make_a_document_that_can_be_sent(entries: list[dict[str, Any]]) -> None:
    found = add_lines(lines(BEGIN, *entries))

    assert found is not None
    again = add_lines(lines(*found.entries()))
    assert again is not None
    assert again.document() == found.document()
    json.dumps(found.document(), allow_nan=False, ensure_ascii=False).encode()


# entries of events ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "entry"),
    [
        (
            ServiceProgress(service="web", phase=Phase.READY, message="2 of 2", seconds=1.26),
            {"event": "service", "service": "web", "phase": "ready", "message": "2 of 2", "seconds": 1.3},
        ),
        (Step(name="asking"), {"event": "step", "name": "asking", "phase": "started", "seconds": 0.0}),
        (Note("a" * 5000), {"event": "note", "message": "a" * MAX_TEXT_CHARS}),
        (
            SessionEvent(
                {"event": "warning", "service": "once", "message": "m", "log_lines": ["l"]}, "text", is_important=True
            ),
            {"event": "warning", "service": "once", "message": "m"},
        ),
        (SessionEvent({"event": "publication"}, "text", is_important=False), None),
        (Transfer(name="pulumi", done_bytes=1), None),
        (Conclusion("deployed"), None),
        (Result({"schema": "platform/deploy/1"}), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_events_that_count(event: Event, entry: Mapping[str, object] | None) -> None:
    assert entry_of(event) == entry


def test_an_operation_is_read_as_it_was_written() -> None:
    operation = Operation("wake", "ann", STARTED, PROCESS)
    operation.add({**END, "state": OperationState.INTERRUPTED})

    (first, *more) = lines(*operation.entries())

    found = add_lines([first, *more])
    assert found is not None
    assert (found.operation, found.state, found.process) == ("wake", OperationState.INTERRUPTED, PROCESS)
