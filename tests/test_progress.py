"""Progress events: they all go through one sink, which masks confidential values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from composeplat import progress
from composeplat.cli.console import (
    diagnostics_text,
    show_error,
    show_report,
    table,
    write_json,
    write_message,
    write_output,
)
from composeplat.cli.options import ProgressMode
from composeplat.cli.progress_output import make_renderer
from composeplat.diagnostics import ComposeplatError, Report, Source, Span, printable
from composeplat.progress import Mask, Phase, event_data

# the mask -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        pytest.param("a hunter2 b", "a [secret] b", id="within"),
        pytest.param("hunter2hunter2", "[secret][secret]", id="twice"),
        pytest.param("xhunter2-longerx", "x[secret]x", id="the-longer-one"),
        pytest.param("hunter 2", "hunter 2", id="another-text"),
        pytest.param("", "", id="empty"),
    ],
)
def test_mask(text: str, cleaned: str) -> None:
    """Confidential values are taken out of texts wherever they stand; of one within another nothing is left."""
    assert cleaned == Mask(("hunter2-longer", "hunter2")).text(text)


def test_no_mask() -> None:
    """Without confidential values a text stays as it is."""
    assert Mask(()).text("hunter2") == "hunter2"


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        pytest.param("hunter2", "[secret]", id="text"),
        pytest.param({"a": {"b": "x hunter2"}}, {"a": {"b": "x [secret]"}}, id="mapping"),
        pytest.param(["hunter2", ("hunter2",)], ["[secret]", ["[secret]"]], id="lists"),
        pytest.param([1, 2.5, True, None], [1, 2.5, True, None], id="no-texts"),
    ],
)
def test_mask_of_data(value: Any, cleaned: Any) -> None:
    """The same for what becomes JSON, however deep it stands."""
    assert cleaned == Mask(("hunter2",)).data(value)


def test_mask_again() -> None:
    """A masked text stays as it is, though a value is a part of the mask."""
    mask = Mask(("secret", "secrets"))

    assert mask.text(mask.text("secrets, secret")) == "[secret], [secret]"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('say "hi"\\n', id="in-json"),
        pytest.param("grüße\n", id="with-a-newline"),
        pytest.param("a\x1b[2Jb", id="with-a-control-character"),
    ],
)
def test_mask_of_other_forms(text: str) -> None:
    """A value is found as messages and JSON write it."""
    mask = Mask((text,))

    for form in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        assert mask.text(form) == '"[secret]"'
    assert mask.text(printable(text)) == "[secret]"


def test_the_kind_of_an_event_is_kept() -> None:
    """A value that is a word of this project does not make an event another one."""
    assert Mask(("note", "failed")).data({"event": "note", "message": "failed"}) == {
        "event": "note",
        "message": "[secret]",
    }


# the sink -------------------------------------------------------------------------------------------------------------

PLANTED = 'hunter2-"quoted"'
REPORT = Report()
REPORT.add("invalid-value", Span(Source("compose.yaml", Path(), f"a: {PLANTED}"), 1, 1, 1), ("a",), PLANTED, PLANTED)
DATA: dict[str, object] = {"event": "warning", "log_lines": [PLANTED], "more": {"deep": [{"text": PLANTED}]}}
EVENTS: dict[str, progress.Event] = {
    "service": progress.ServiceProgress(service=PLANTED, phase=Phase.WAITING, message=f"needs {PLANTED}"),
    "failed": progress.ServiceProgress(service="web", phase=Phase.FAILED, message=PLANTED),
    "step": progress.Step(name=f"asking {PLANTED}"),
    "step-done": progress.Step(name=f"asking {PLANTED}", phase=Phase.DONE),
    "transfer": progress.Transfer(name=PLANTED, done_bytes=1),
    "note": progress.Note(PLANTED),
    "conclusion": progress.Conclusion(PLANTED),
    "result": progress.Result({"schema": "platform/deploy/1", "failures": [DATA]}),
    "session": progress.SessionEvent(DATA, f"failed: {PLANTED}", is_important=True),
    "finished": progress.Finished(),
}
WRITERS: dict[str, Callable[[], object]] = {
    "message": lambda: write_message(f"{PLANTED}\n"),
    "output": lambda: write_output(f"{PLANTED}\n"),
    "json": lambda: write_json(DATA),
    "table": lambda: write_output(table([("NAME",), (PLANTED,)])),
    "report": lambda: show_report(REPORT),
    "report-json": lambda: show_report(REPORT, as_json=True),
    "diagnostics": lambda: write_message(diagnostics_text(REPORT.sorted())),
    "error": lambda: show_error(ComposeplatError(PLANTED, PLANTED)),
    "error-json": lambda: show_error(ComposeplatError(PLANTED, PLANTED), as_json=True),
}


def show(mode: ProgressMode, event: progress.Event) -> None:
    renderer = make_renderer(mode)
    with progress.use_handler(renderer.handle):
        progress.emit(event)
    renderer.tick()
    renderer.end()


#: Every way to show every kind of event, and every other way to write; a kind that has no case fails a test.
WAYS: dict[str, Callable[[], object]] = {
    **{f"{mode}-{name}": partial(show, mode, event) for mode in ProgressMode for name, event in EVENTS.items()},
    **WRITERS,
}
#: These are not shown at all.
SILENT = {
    *(f"{mode}-finished" for mode in ProgressMode),
    *(f"{mode}-result" for mode in ProgressMode if mode is not ProgressMode.JSON),
    *(f"quiet-{name}" for name in ("service", "failed", "step", "step-done", "note")),
    # A line for it comes after ten seconds alone, or beside its step.
    *(f"{mode}-transfer" for mode in ProgressMode if mode is not ProgressMode.JSON),
    "json-conclusion",
}


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    with progress.forget_values():
        yield


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_in_everything(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is shown in whatever way has the mask in the place of a confidential value."""
    progress.hide([PLANTED])

    WAYS[way]()

    shown = "".join(capsys.readouterr())
    assert "hunter2" not in shown
    assert ("[secret]" in shown) is (way not in SILENT)


@pytest.mark.parametrize("way", sorted(WAYS.keys() - SILENT))
def test_without_the_sink(way: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the sink alone that masks: the test above fails without it, in each of its cases."""
    progress.hide([PLANTED])
    monkeypatch.setattr(Mask, "text", lambda _, text: text)

    WAYS[way]()

    assert "hunter2" in "".join(capsys.readouterr())


def test_each_kind_has_a_case() -> None:
    """A kind of event that is added gets a case here."""
    assert {type(event) for event in EVENTS.values()} == set(progress.Event.__args__)


def test_without_a_handler(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nobody handles events they are lines on standard error, masked as well."""
    progress.hide([PLANTED])

    progress.note(PLANTED)

    assert capsys.readouterr().err == "[secret]\n"


def test_values_are_forgotten() -> None:
    """What one command hides is not hidden in the next one's results."""
    with progress.forget_values():
        progress.hide([PLANTED])

    assert progress.masked_text(PLANTED) == PLANTED


def test_to_json(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON for programs is indented UTF-8, and what JSON has no word for is text."""
    write_json({"a": ["grüße", Exception("x")]})

    assert capsys.readouterr().out == '{\n  "a": [\n    "grüße",\n    "x"\n  ]\n}\n'


def test_people_and_programs() -> None:
    """Programs get a result, people a conclusion."""
    found: Any = [event_data(progress.Conclusion("done")), event_data(progress.Result({"status": "done"}))]

    assert found == [None, {"event": "result", "status": "done"}]
