"""The log of a run: its file, its size, what is in it and what never is; and the report for an issue."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import tarfile
from importlib import import_module
from pathlib import Path

import pytest

from composeplat import progress
from composeplat.cli import run_log
from composeplat.cli.commands import MODULES
from composeplat.cli.run_log import LogFile, environment_mask, log_files
from composeplat.cli.selection import command_name
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.outcomes import Outcome as Came
from tests.cli.conftest import Seam
from tests.cluster.objects import Answer
from tests.conftest import Project
from tests.in_process import run_here

TOKEN = {"GITHUB_TOKEN": "hunter2-token"}


def logs(seam: Seam) -> list[Path]:
    return log_files(seam.folder / "data" / "logs")


def test_a_deploy_leaves_a_log(seam: Seam) -> None:
    """It has the command, the versions, the requests to the cluster and the events; it is for its owner's eyes."""
    seam.gives("deploy.deploy", Came(seconds=1))

    outcome = seam.platform("deploy", "--domain", "example.com", "--namespace", "team")

    (path,) = logs(seam)
    text = path.read_text()
    assert (outcome.status, outcome.log) == (0, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "platform deploy namespace='team' domain='example.com'" in text
    assert ", Python 3." in text
    assert "composeplat.cluster.api: GET /api/v1/namespaces/team/" in text
    assert 'event {"event": "result", "schema": "platform/deploy/1"' in text
    assert "ended after " in text


def test_a_failure_names_its_log(seam: Seam) -> None:
    """A failed command shows the path on standard error; the log has the traceback with its causes."""
    error = ComposeplatError("it is locked", "wait")
    error.__cause__ = KeyError("why hunter2")
    seam.gives("deploy.deploy", error)

    outcome = seam.platform("deploy", "--domain", "example.com", "--namespace", "team")

    assert (outcome.status, outcome.log) == (1, str(logs(seam)[0]))
    text = Path(outcome.log).read_text()
    assert "KeyError: 'why [secret]'" in text
    assert "The above exception was the direct cause" in text
    assert text.count("Traceback (most recent call last)") >= 1


def test_a_look_leaves_none(seam: Seam) -> None:
    """A command that changes nothing has a log only where it fails, so that the logs of deploys stay."""
    seam.platform("status", "--namespace", "team")
    assert logs(seam) == []

    failed = seam.platform("exec", "web", "sh", "--namespace", "team")
    assert [str(path) for path in logs(seam)] == [failed.log]


def test_a_log_has_the_name_of_the_command(seam: Seam) -> None:
    """It is the name that users type: that of ``exec`` was "execute"."""
    failed = seam.platform("exec", "--namespace", "team", "web", "sh")

    assert "-exec-" in Path(failed.log).name
    assert "platform exec service='web' command='…' namespace='team'" in Path(failed.log).read_text()


@pytest.mark.parametrize(
    "args",
    [
        ("exec", "web", "echo", "hunter2"),
        ("run", "web", "echo", "hunter2"),
        ("run", "--entrypoint", "echo hunter2", "web"),
        ("run", "-e", "A=hunter2", "web"),
        ("deploy", "--otel-traces", "https://traces.example.com/?key=hunter2"),
    ],
)
def test_options_that_may_be_secrets(seam: Seam, args: tuple[str, ...]) -> None:
    """The log says that they were given, and not what they were."""
    seam.gives("deploy.deploy", ComposeplatError("it is locked"))
    command, *given = args
    failed = seam.platform(command, "--namespace", "team", *given)

    text = Path(failed.log).read_text()
    assert "='…'" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("module", sorted(set(MODULES.values()) - {"cluster", "state", "variables"}))
def test_a_function_has_the_name_of_its_command(module: str) -> None:
    """The name in the log is made from the function's; ``ps`` is logged as what it is for."""
    commands = import_module(f"composeplat.cli.{module}").app.registered_commands

    assert {command_name(command.callback) for command in commands} == {command.name for command in commands} - {"ps"}


def test_a_mistake_in_the_file_leaves_none(seam: Seam) -> None:
    """What is wrong with a definition is reported at its place: a log would say no more."""
    (seam.folder / "compose.yaml").write_text("services: {web: {image: 1, build: [}}")

    assert seam.platform("deploy").status == 3
    assert logs(seam) == []


def test_debug(seam: Seam) -> None:
    """With --debug the same lines are on standard error as the command runs, masked, and progress is lines."""
    seam.gives("deploy.deploy", Came(seconds=1))

    stderr = seam.platform("deploy", "--domain", "example.com", "--debug").stderr

    assert "INFO    composeplat: platform deploy" in stderr
    assert "DEBUG   composeplat.cluster.api: GET /" in stderr
    assert "hunter2" not in stderr


def test_debug_for_programs(seam: Seam) -> None:
    """Beside JSON events the lines are events as well."""
    seam.gives("deploy.deploy", Came(seconds=1))

    stderr = seam.platform("deploy", "--domain", "example.com", "--debug", "--progress", "json").stderr

    kinds = {json.loads(line).get("event") for line in stderr.splitlines()}
    assert {"debug", "result"} <= kinds


@pytest.mark.parametrize("command", [("--version",), ("render",), ("config",), ("completion", "bash")])
def test_no_cluster_no_log(project: Project, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Commands that need no cluster write no log."""
    run_here(*command, folder=project("services: {web: {image: nginx}}").path, COMPOSEPLAT_DATA=str(tmp_path / "data"))

    assert not (tmp_path / "data").exists()


def test_at_most_so_many_files(tmp_path: Path) -> None:
    """The oldest logs go, so that there are never more than the limit."""
    for number in range(run_log.MAX_FILES + 5):
        file = LogFile(tmp_path / f"{number:03}.log")
        file.write("line")
        file.close()

    names = [path.name for path in log_files(tmp_path)]
    assert (len(names), names[0]) == (run_log.MAX_FILES, f"{run_log.MAX_FILES + 4:03}.log")


def test_at_most_so_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go where all together are too large."""
    monkeypatch.setattr(run_log, "MAX_FOLDER_BYTES", 3000)
    monkeypatch.setattr(run_log, "MAX_FILE_BYTES", 1000)
    for number in range(5):
        (tmp_path / f"{number}.log").write_text("x" * 900)

    LogFile(tmp_path / "9.log").write("line")

    assert [path.name for path in log_files(tmp_path)] == ["9.log", "4.log", "3.log"]


def test_a_log_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that says much ends its log at the limit, and continues."""
    monkeypatch.setattr(run_log, "MAX_FILE_BYTES", 100)
    file = LogFile(tmp_path / "a.log")

    for _ in range(20):
        file.write("x" * 30)

    assert file.path.read_text().splitlines()[-1] == "the log is full: further lines are left out"
    assert file.path.stat().st_size < 200


def test_nowhere_to_write(tmp_path: Path) -> None:
    """Where no log can be written, there is none, and the command continues."""
    (tmp_path / "logs").write_text("")
    file = LogFile(tmp_path / "logs" / "a.log")

    file.write("line")

    assert not file.exists


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        pytest.param({"API_TOKEN": "hunter2"}, "a hunter2", id="by-its-name"),
        pytest.param({"HTTPS_PROXY": "http://me:hunter2@proxy:3128"}, "to http://me:hunter2@proxy", id="in-a-url"),
        pytest.param({"DBS": "a=redis://:hunter2@a;b=redis://:other@b"}, "to redis://:hunter2@a", id="first-of-two"),
        pytest.param({"DBS": "a=redis://:other@a;b=redis://:hunter2@b"}, "to redis://:hunter2@b", id="last-of-two"),
        pytest.param({"DBS": "http://:x@a,http://:hunter2@b,http://:y@c"}, "to http://:hunter2@b", id="between-two"),
        pytest.param({"ASK": "http://me:hunter2@a or root@b"}, "to http://me:hunter2@a", id="before-an-address"),
        pytest.param({"DBS": "s3://a,postgres://db/x?password=hunter2"}, "no hunter2", id="parameter-of-the-last"),
        pytest.param({"STATE": "postgres://db/x?password=hunter2"}, "wrong password hunter2", id="in-a-parameter"),
        pytest.param({"AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=hunter2"}, "?sig=hunter2&sv=1", id="in-a-signature"),
    ],
)
def test_the_environment_is_masked(variables: dict[str, str], text: str) -> None:
    """Secrets of the environment are in no log, whether the definition uses them or not."""
    assert "hunter2" not in environment_mask(variables).text(text)


def test_lines_before_the_secrets_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is logged before the definition is read is masked too: it waits until then."""
    monkeypatch.setenv("COMPOSEPLAT_DATA", str(tmp_path))
    with progress.forget_values(), run_log.run_log("deploy", {}, is_kept=True) as log:
        logging.getLogger("composeplat.some").info("early hunter2")
        before = log.path.exists()
        progress.hide(["hunter2"])
        logging.getLogger("composeplat.some").info("late hunter2")
        after = log.path.exists()

    assert (before, after) == (False, True)
    assert "early [secret]" in log.path.read_text()
    assert "late [secret]" in log.path.read_text()


def test_a_bug_report(seam: Seam) -> None:
    """It packs versions, the plan without values, and the last logs; what it packs is listed before."""
    seam.gives("deploy.deploy", ComposeplatError("failed with hunter2"))
    failed = seam.platform("deploy", "--domain", "example.com", "--namespace", "team")
    (seam.folder / ".env").write_text("MORE_SECRET=hunter2-more\n")

    outcome = seam.platform("bug-report", "--namespace", "team", **TOKEN)

    archive = seam.folder / outcome.stdout.strip()
    with tarfile.open(archive) as packed:
        texts = {member.name.partition("/")[2]: packed.extractfile(member).read().decode() for member in packed}  # type: ignore[union-attr]
    log = f"logs/{os.path.basename(failed.log)}"
    assert sorted(texts) == [log, "plan.json", "versions.json"]
    for name in texts:
        assert f"  {name}  " in outcome.stderr
    assert json.loads(texts["plan.json"])["services"]["web"]["Deployment"] == 1
    assert json.loads(texts["versions.json"])["platform"]
    assert "hunter2" not in "".join(texts.values()) + outcome.stderr
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600


def test_a_bug_report_on_a_full_disk(seam: Seam) -> None:
    """Nothing is left that looks like an archive."""

    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    seam.patch.setattr("tarfile.TarFile.addfile", fill)
    outcome = seam.platform("bug-report", "-o", "report.tar.gz")

    assert outcome.status == 1
    assert "error: can't write 'report.tar.gz': no space left on device\n" in outcome.stderr
    assert not (seam.folder / "report.tar.gz").exists()


def test_a_data_folder_that_a_log_makes_is_private(tmp_path: Path) -> None:
    """The log may be the first file of the data folder, which holds the passphrase later."""
    file = LogFile(tmp_path / "share" / "composeplat" / "logs" / "a.log")

    file.write("line")
    file.close()

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file.path, file.path.parent, file.path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


def test_no_log_where_others_can_write(tmp_path: Path) -> None:
    """In a folder that others can write in they could have made the folder of logs: no log is written there."""
    tmp_path.chmod(0o777)
    file = LogFile(tmp_path / "logs" / "a.log")

    file.write("line")

    assert (file.exists, list(tmp_path.iterdir())) == (False, [])


def test_a_user_without_a_home(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a home folder, as in a container whose user has no entry, a run has no log, and says what it misses."""

    def find_no_user(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", find_no_user)
    folder = project("services: {web: {image: nginx}}").path
    checked = run_here("check", "--offline", folder=folder, XDG_DATA_HOME="")
    listed = run_here("setup", "--check", folder=folder, XDG_DATA_HOME="")

    assert (checked.status, checked.stderr) == (0, "")
    assert (listed.status, listed.stderr) == (
        4, "error: this user has no home folder\n  hint: set HOME to a folder that can be written\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    "args",
    [
        ("state", "move", "own", "postgres://me:xyzzy-password@db.example.com/state"),
        ("run", "--entrypoint", "login xyzzy-password", "nobody"),
    ],
)
def test_arguments_that_are_secret(seam: Seam, args: tuple[str, ...]) -> None:
    """A password in an argument is in no log, which an issue may have; that of a URL is refused besides."""
    seam.server.answers["/api/v1/namespaces/kube-system"] = Answer(b'{"metadata": {"uid": "one"}}')
    assert seam.platform(*args).status in (1, 2)

    (path,) = logs(seam)
    assert "xyzzy" not in path.read_text()
    assert f"platform {args[0]}" in path.read_text()
