"""The fix that the log of a failed container shows."""

from __future__ import annotations

import pytest

from composeplat.cluster.cause import Cause
from composeplat.codes.causes import CauseCode
from composeplat.engine.failure_logs import with_logged_fix

CRASH = Cause(code=CauseCode.CRASH_LOOP, message="crashes with exit status 1", logs=True)
FIX = (
    "/run.sh is there, but not the program in its first line: install that, or save the script with line ends of"
    " Linux (LF)"
)


@pytest.mark.parametrize(
    ("lines", "hint"),
    [
        pytest.param(["starting", "exec /run.sh: no such file or directory"], FIX, id="no-interpreter"),
        pytest.param(["exec /run.sh: no such file or directory", "more"], "", id="not-the-last-line"),
        pytest.param(["cat: /run.sh: no such file or directory"], "", id="a-program-says-so"),
        pytest.param([], "", id="no-log"),
    ],
)
def test_a_script_without_its_program(lines: list[str], hint: str) -> None:
    """The runtime's last line means the first line of the script, which is most often one of Windows."""
    assert with_logged_fix(CRASH, lines).hint == hint


def test_a_known_fix_stays() -> None:
    """A cause that has a fix keeps it."""
    cause = Cause(code=CauseCode.CRASH_LOOP, message="x", hint="known")

    assert with_logged_fix(cause, ["exec /run.sh: no such file or directory"]) is cause
