"""What every test may ask for: a project made of a few files, run for real.

``project({"compose.yaml": ...})`` gives a folder with ``.load()``, ``.plan()`` and ``.run("render", ...)``.
``run`` starts the command in a process of its own with a clean environment, so that what the machine has by luck
(variables, a kubeconfig) is never part of a test.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from composeplat.compose.load import Loaded, Request, load
from composeplat.diagnostics import Diagnostic, Severity
from composeplat.plan import Plan, make_plan
from tests import left_out, own_data

# A shell ignores SIGINT for what it runs in the background, and nohup SIGHUP: so would all programs of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
DOMAIN = "example.com"
#: All that a run of the command has in its environment, unless it is given more.
VARIABLES = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "XDG_DATA_HOME": own_data.DATA_HOME}
#: `make endurance` sets it.
ENDURANCE = os.environ.get("ENDURANCE") == "1"

own_data.protect()
# How long an example takes is the machine's affair: on a busy one, an ordinary example can take several times as long.
hypothesis.settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any-machine")


def split_log_path(stderr: str) -> tuple[str, str]:
    """Split what was written to standard error into the line that names the log, if there is one, and the rest."""
    found = _LOG_PATH.search(stderr)
    return (stderr.replace(found[0], ""), found[1]) if found else (stderr, "")


_LOG_PATH = re.compile(r'(?:\{"event": "note", "message": ")?log of this run: (/\S+\.log)(?:"\})?\r?\n')


@dataclass(frozen=True)
class Outcome:
    """What a run of the command gave."""

    status: int
    stdout: str
    stderr: str
    """Without the line that names the log of a failed run, which is another one each time."""
    log: str = field(default="", kw_only=True)
    """The path in that line."""

    @classmethod
    def of(cls, status: int, stdout: str, stderr: str) -> Outcome:
        rest, path = split_log_path(stderr)
        return cls(status, stdout, rest, log=path)

    def assert_success(self) -> Outcome:
        assert self.status == 0, self.stderr
        return self

    def assert_invalid(self) -> Outcome:
        assert self.status == 3, (self.status, self.stderr)
        assert self.stdout == ""
        assert "Traceback" not in self.stderr
        return self


@dataclass(frozen=True)
class Reading:
    """A loaded definition with its plan, where it has one."""

    loaded: Loaded
    plan: Plan | None

    @property
    def messages(self) -> list[str]:
        """Errors and warnings, as lines."""
        return lines(self.loaded.report.at_least(Severity.WARNING))

    @property
    def notes(self) -> list[str]:
        return lines([d for d in self.loaded.report.sorted() if d.severity is Severity.NOTE])

    @property
    def codes(self) -> list[str]:
        return [d.code for d in self.loaded.report.at_least(Severity.WARNING)]

    def object(self, kind: str, name: str) -> dict[str, Any]:
        assert self.plan is not None, self.messages
        return next(o.manifest for o in self.plan.objects if (o.kind, o.name) == (kind, name))

    def container(self, kind: str, name: str) -> dict[str, Any]:
        containers: list[dict[str, Any]] = self.pod(kind, name)["containers"]
        return containers[0]

    def pod(self, kind: str, name: str) -> dict[str, Any]:
        spec: dict[str, Any] = self.object(kind, name)["spec"]["template"]["spec"]
        return spec

    @property
    def names(self) -> list[str]:
        """``Kind/name`` of every object, in order."""
        assert self.plan is not None, self.messages
        return [f"{o.kind}/{o.name}" for o in self.plan.objects]


def lines(diagnostics: list[Diagnostic]) -> list[str]:
    return [
        f"{d.span.source.name}:{d.span.line}:{d.span.column}: {d.severity}: {d.message} [{d.code}]" for d in diagnostics
    ]


@dataclass(frozen=True)
class Folder:
    """A folder with a definition in it."""

    path: Path
    shell: Mapping[str, str] = field(default_factory=dict)

    def write(self, files: Mapping[str, str | bytes]) -> Folder:
        for name, content in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        return self

    def request(self, *files: str, **more: Any) -> Request:
        request = Request(files=files, folder=self.path, shell=dict(self.shell), name="demo", domain=DOMAIN)
        return replace(request, **more)

    def read(self, *files: str, **more: Any) -> Reading:
        loaded = load(self.request(*files, **more))
        plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
        return Reading(loaded, None if loaded.report.errors else plan)

    def run(self, *args: str, stdin: bytes | None = None, timeout: float = 240, **shell: str) -> Outcome:
        return run(*args, folder=self.path, stdin=stdin, timeout=timeout, **{**self.shell, **shell})


def run(*args: str, folder: Path, stdin: bytes | None = None, timeout: float = 240, **shell: str) -> Outcome:
    """Run the command in a folder, with nothing in its environment but what is given."""
    done = subprocess.run(
        [sys.executable, "-c", "from composeplat.cli.app import main; main()", *args],
        cwd=folder,
        env={**VARIABLES, **shell},
        input=b"" if stdin is None else stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Outcome.of(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


Project = Callable[..., Folder]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Make a folder with files; a single text is its ``compose.yaml``."""

    def make(files: str | Mapping[str, str | bytes], **shell: str) -> Folder:
        folder = tmp_path / "demo"
        folder.mkdir(exist_ok=True)
        return Folder(folder, shell).write({"compose.yaml": files} if isinstance(files, str) else files)

    return make


def has_long_round(test: Callable[..., None]) -> Callable[..., None]:
    """Let `make endurance` run this test too, with more rounds, which ``ENDURANCE`` chooses."""
    return pytest.mark.endurance(test) if ENDURANCE else test


def for_endurance(*values: object) -> list[Any]:
    """Values of ``parametrize`` for `make endurance` alone: every run takes the others beside them."""
    return [pytest.param(value, marks=pytest.mark.endurance) for value in values]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write what the golden cases expect anew")


def shared(*parts: str) -> Path:
    """A file of the test data that lies beside the project, for tests marked ``shared``."""
    return SHARED.joinpath(*parts)


# tests that a run leaves out ------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out.note_collected(config, items)
    if not SHARED.exists():
        left_out.leave_out(config, items)
    if not ENDURANCE:
        long = [item for item in items if item.get_closest_marker("endurance")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    left_out.receive_from_worker(node)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out.report(terminalreporter, config)
