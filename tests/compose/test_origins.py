"""The side table from parts of the model to places in the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.compose.model import Project
from composeplat.compose.nodes import Scalar
from composeplat.compose.origins import Checker, Origins
from composeplat.diagnostics import Report, Source, Span
from tests.conftest import lines

SOURCE = Source("compose.yaml", Path())


def node(line: int, text: str = "x", written: str | None = None) -> Scalar:
    # Two texts that are equal but not one show that a variable was put in.
    return Scalar(Span(SOURCE, line, 3), text, written or text, is_substituted=written is not None)


@pytest.fixture
def origins() -> Origins:
    made = Origins()
    made.put((), node(1))
    made.put(("services", "web"), node(3), node(2, "web"))
    made.put(("services", "web", "image"), node(4, "nginx", "${IMAGE}"), node(4, "image"))
    made.put_alias(("services", "web", "mounts", 0), node(6, "a:/b"), ("services", "web", "volumes", 0))
    return made


def test_a_value(origins: Origins) -> None:
    """A path leads to its value's place."""
    assert origins.at("services", "web", "image").line == 4


def test_the_nearest_parent(origins: Origins) -> None:
    """What the definition does not write is blamed on what holds it."""
    assert origins.at("services", "web", "scale").line == 3
    assert origins.at("volumes").line == 1


def test_a_key(origins: Origins) -> None:
    """A message about a whole entry names its key; without one, its value."""
    assert origins.key_at("services", "web").line == 2
    assert origins.key_at("services", "web", "mounts", 0).line == 6


def test_nothing_the_cause() -> None:
    """Where there is no definition at all, that is our mistake."""
    with pytest.raises(LookupError):
        Origins().at("services")


def test_what_is_shown(origins: Origins) -> None:
    """A value is quoted as the file writes it, never as variables made it; without a value, by its path."""
    assert origins.shown("services", "web", "image") == "'${IMAGE}' (after substitution)"
    assert origins.shown("services", "web", "mounts", 1) == "'services.web.mounts[1]'"


def test_substituted(origins: Origins) -> None:
    """Whether a value came from a variable is known."""
    assert origins.is_substituted("services", "web", "image")
    assert not origins.is_substituted("services", "web")
    assert not origins.is_substituted("services", "web", "scale")


def test_a_message_names_the_path_as_written(origins: Origins) -> None:
    """A part of the model with a path of its own is reported under the definition's."""
    report = Report()
    checker = Checker(Project(services={}, volumes={}), origins, report)

    checker.add("undefined-volume", ("services", "web", "mounts", 0), "mounts nothing")
    checker.add("invalid-name", ("services", "web"), "is no name", at_key=True)

    assert lines(report.sorted()) == [
        "compose.yaml:2:3: error: services.web is no name [invalid-name]",
        "compose.yaml:6:3: error: services.web.volumes[0] mounts nothing [undefined-volume]",
    ]
