"""Shell completion: what is offered where, out of which files, how fast, and in which form.

``test_completion_shells.py`` presses Tab in the shells themselves.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from composeplat.cli.completion import offers_for, split_line
from tests.conftest import VARIABLES, Folder, Outcome, Project, run

SHOP = "services: {web: {image: nginx}, worker: {image: nginx}, db: {image: postgres}}\nvolumes: {data: {}}\n"
KUBECONFIG = """\
contexts:
- {name: kind-two, context: {cluster: a}}
- {name: 'arn:aws:eks:one:7:cluster/x', context: {cluster: a}}
"""


@pytest.fixture
def shop(project: Project) -> Iterator[Folder]:
    folder = project(SHOP)
    with contextlib.chdir(folder.path):
        yield folder


def offered(*args: str) -> list[str]:
    return [value for value, _ in offers_for(list(args))[1]]


def asked(*args: str, folder: Path, shell: str = "zsh", **variables: str) -> Outcome:
    """Ask as the script of a shell does."""
    return run(*args, folder=folder, stdin=None, timeout=60, _PLATFORM_COMPLETE=shell, **variables)


def test_a_folder_in_the_place_of_the_env_file(shop: Folder) -> None:
    """Services are offered beside a virtual environment that is named `.env`."""
    (shop.path / ".env").mkdir()

    assert offered("deploy", "w") == ["web", "worker"]


# what may stand where -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("de", ["deploy", "destroy"], id="command"),
        pytest.param("cluster ", ["start", "stop", "prune", "status", "logs"], id="command of a group"),
        pytest.param("help de", ["deploy", "destroy"], id="command whose help is asked for"),
        pytest.param("help cluster st", ["start", "stop", "status"], id="command of a group whose help is asked for"),
        pytest.param("help status ", [], id="nothing more to ask for"),
        pytest.param("nonsense ", [], id="unknown command"),
        pytest.param("--v", ["--version"], id="option of the whole"),
        pytest.param("deploy --re", ["--registry", "--rerun-jobs", "--refresh", "--replace-volume"], id="options"),
        pytest.param("deploy --no-w", ["--no-wait"], id="negative option"),
        pytest.param("deploy --dry-run --dr", [], id="option given before"),
        pytest.param("deploy -f compose.yaml --fil", ["--file", "--fill-image"], id="option that repeats"),
        pytest.param("deploy --progress ", ["auto", "tty", "plain", "quiet", "json"], id="choices"),
        pytest.param("deploy --progress=pl", ["--progress=plain"], id="choices behind an equals sign"),
        pytest.param("config --format j", ["json"], id="choices in a form of their own"),
        pytest.param("completion ", ["bash", "zsh", "fish"], id="choices of an argument"),
        pytest.param("deploy ", ["web", "worker", "db"], id="services"),
        pytest.param("deploy w", ["web", "worker"], id="services that begin so"),
        pytest.param("deploy web ", ["worker", "db"], id="service named before"),
        pytest.param("deploy --name x --strict -n y w", ["web", "worker"], id="options before"),
        pytest.param("deploy -qvn web ", ["web", "worker", "db"], id="letters in one word, the last with a value"),
        pytest.param("deploy -nweb ", ["web", "worker", "db"], id="value in the same word"),
        pytest.param("deploy -- w", ["web", "worker"], id="behind dashes"),
        pytest.param("down ", ["web", "worker", "db"], id="service to give back"),
        pytest.param("down web ", [], id="one service at most"),
        pytest.param("ps ", ["web", "worker", "db"], id="command that is not listed"),
        pytest.param("logs -f ", ["web", "worker", "db"], id="letter without a value here"),
        pytest.param("exec web -", [], id="the command's own options"),
        pytest.param("exec -", None, id="options before a service"),
        pytest.param("up web -- w", [], id="the command's own words"),
        pytest.param("variables unset ", [], id="variables, for which a cluster would be asked"),
        pytest.param("deploy --replace-volume ", ["data"], id="volumes"),
        pytest.param("cp w", ["web:", "worker:"], id="service to copy from"),
        pytest.param("cp w ", ["web:", "worker:", "db:"], id="service to copy to"),
        pytest.param("cp web:/", [], id="path in a container"),
        pytest.param("deploy --name ", [], id="a text of one's own"),
    ],
)
def test_completions(line: str, expected: list[str] | None) -> None:
    """Only valid arguments are offered."""
    given = offered(*split_line(line))

    assert expected == given if expected is not None else "--no-tty" in given


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("deploy -f ", "files", id="definition"),
        pytest.param("deploy --env-file=", "files", id="env file"),
        pytest.param("status --kubeconfig x", "files", id="kubeconfig"),
        pytest.param("render -o ", "folders", id="output"),
        pytest.param("deploy --name ", "words", id="no path"),
        pytest.param("cp web:/a ", "files", id="copied out to a path"),
        pytest.param("cp ./w", "files", id="copied in from a path"),
        pytest.param("cp x", "starts-or-files", id="copied from a service or a path"),
    ],
)
def test_paths_are_left_to_the_shell(line: str, expected: str) -> None:
    """Where a path is meant, the answer says so, and the shell completes it."""
    assert (expected, []) == offers_for(split_line(line))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("platform deploy ", ["platform", "deploy", ""], id="a new word"),
        pytest.param("platform  de", ["platform", "de"], id="in a word"),
        pytest.param('p -f \'a b\' "c\\"d" e\\ f', ["p", "-f", "a b", 'c"d', "e f"], id="quotes"),
        pytest.param("p 'a b", ["p", "a b"], id="open quote"),
        pytest.param("p '' x", ["p", "", "x"], id="empty word"),
        pytest.param("p \\", ["p", ""], id="backslash at the end"),
    ],
)
def test_lines_are_split_as_a_shell_does(line: str, expected: list[str]) -> None:
    """A line becomes words, of which the last is being typed."""
    assert expected == split_line(line)


# out of which files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "args", "expected"),
    [
        pytest.param({"compose.yaml": SHOP}, [], ["web", "worker", "db"], id="found"),
        pytest.param(
            {"compose.yml": "services: {a: {}}", "compose.override.yml": "services: {a: {}, b: {}}"},
            [],
            ["a", "b"],
            id="override",
        ),
        pytest.param({"x.yaml": "services: {x: {}}", "compose.yaml": SHOP}, ["-f", "x.yaml"], ["x"], id="named"),
        pytest.param(
            {"x.yaml": "services: {x: {}}", "y.yaml": "services: {y: {}}"},
            ["--file=x.yaml", "-fy.yaml"],
            ["x", "y"],
            id="two named",
        ),
        pytest.param({"a b.yaml": "services: {x: {}}"}, ["-f", "a b.yaml"], ["x"], id="space in a name"),
        pytest.param(
            {"compose.yaml": "include: [more.yaml]\nservices: {a: {}}", "more.yaml": "services: {b: {}}"},
            [],
            ["b", "a"],
            id="include",
        ),
        pytest.param(
            {"compose.yaml": "include: ['${MORE}.yaml']", "s.env": "MORE=m", "m.yaml": "services: {b: {}}"},
            ["--env-file", "s.env"],
            ["b"],
            id="include by an env file",
        ),
        pytest.param(
            {"compose.yaml": SHOP, "compose.override.yaml": "services: {web: !reset null}"},
            [],
            ["worker", "db"],
            id="taken away",
        ),
        pytest.param({".env": "COMPOSE_FILE=x.yaml", "x.yaml": "services: {x: {}}"}, [], ["x"], id="named in .env"),
        pytest.param({"compose.yaml": SHOP}, ["-f", "-"], [], id="standard input"),
        pytest.param({"compose.yaml": SHOP}, ["-f", "none.yaml"], [], id="missing"),
        pytest.param({"x": ""}, [], [], id="no definition"),
        pytest.param(
            {"compose.yaml": "services:\n  a: {image: x}\n  b: {image: x}\n  c: [\n"}, [], ["a", "b"], id="broken"
        ),
        pytest.param({"compose.yaml": "services: [a, b]"}, [], [], id="no mapping"),
        pytest.param(
            {"compose.yaml": "services: {'a b': {}, '$(id)': {}, 'x;y': {}, \"n\\nl\": {}, '*': {}, ok.1-2_3: {}}"},
            [],
            ["ok.1-2_3"],
            id="names that a shell would take otherwise",
        ),
    ],
)
def test_services_of_the_definition(
    project: Project, files: dict[str, str], args: list[str], expected: list[str]
) -> None:
    """Services are those of the definition that the line so far names; of one that can't be read, what can be."""
    outcome = asked("deploy", *args, "", folder=project(files).path)

    assert (["words", *expected], "", 0) == (outcome.stdout.splitlines(), outcome.stderr, outcome.status)


JOBS = "services: {web: {}}\njobs: {backup: {profiles: [night]}, clean: }"


@pytest.mark.parametrize("command", ["run", "logs", "status"])
@pytest.mark.parametrize("more", ["", "\ninclude: [p.yaml]"])
def test_jobs_of_the_definition(project: Project, command: str, more: str) -> None:
    """A job is named as a service is, also in a file that includes others."""
    folder = project({"compose.yaml": f"x-platform: {{full: true}}\n{JOBS}{more}", "p.yaml": "services: {db: {}}"})
    expected = ["web", "clean", "backup"] if not more else ["web", "db", "clean", "backup"]

    names = asked(command, "", folder=folder.path).stdout.splitlines()

    assert ["words", *sorted(expected)] == [names[0], *sorted(names[1:])]
    assert asked("deploy", "--profile", "n", folder=folder.path).stdout == "words\nnight\n"


def test_a_service_of_a_provider_is_not_offered(project: Project) -> None:
    """It has no pods, so no command takes its name."""
    folder = project("services: {web: {image: x}, db: {provider: {type: x}}, both: {image: x, provider: {type: x}}}\n")

    assert asked("logs", "", folder=folder.path).stdout == "words\nweb\nboth\n"


WATCHED = "services: {a: {develop: {watch: [{path: ., action: rebuild}]}}, b: {develop: {}}, c: {extends: a}, d: {}}"


@pytest.mark.parametrize("more", ["", "\ninclude: [more.yaml]"])
def test_services_that_can_be_watched(project: Project, more: str) -> None:
    """To ``watch`` only those are offered that have rules, or may have those of another service."""
    folder = project({"compose.yaml": f"x-platform: {{full: true}}\n{WATCHED}{more}", "more.yaml": "services: {e: {}}"})

    assert asked("watch", "", folder=folder.path).stdout == "words\na\nc\n"
    assert asked("watch", "a", "", folder=folder.path).stdout == "words\nc\n"
    assert asked("logs", "d", folder=folder.path).stdout == "words\nd\n"


PROFILES = "services: {a: {profiles: [tools, '$X', 7]}, b: {profiles: [tools, more]}, c: {}}"


@pytest.mark.parametrize(
    ("files", "args", "expected"),
    [
        pytest.param({"compose.yaml": PROFILES}, ["--profile", ""], ["tools", "7", "more"], id="found"),
        pytest.param({"compose.yaml": PROFILES}, ["--profile=m"], ["--profile=more"], id="equals-sign"),
        pytest.param({"compose.yaml": PROFILES}, ["--profile", "tools", "--profile", "m"], ["more"], id="repeated"),
        pytest.param(
            {"compose.yaml": "x-platform: {full: true}\ninclude: [p.yaml]", "p.yaml": PROFILES.replace("$X", "x")},
            ["--profile", ""],
            ["tools", "x", "7", "more"],
            id="included-in-full-mode",
        ),
        pytest.param(
            {"compose.yaml": "x-platform: {full: true}\ninclude: [p.yaml]", "p.yaml": PROFILES.replace("$X", "x")},
            [""],
            ["c", "a", "b"],
            id="services-of-profiles",
        ),
        pytest.param({"compose.yaml": "services: {a: {profiles: {b: c}}, b: [], c: }"}, ["--profile="], [], id="none"),
    ],
)
def test_profiles_of_the_definition(
    project: Project, files: dict[str, str], args: list[str], expected: list[str]
) -> None:
    """Profiles are those of all services, also of included files; a service whose profile is off can be named."""
    assert asked("deploy", *args, folder=project(files).path).stdout.splitlines() == ["words", *expected]


def test_services_of_a_folder_above(project: Project) -> None:
    """A definition is found from the folders below it too."""
    folder = project({"compose.yaml": SHOP, "sub/x": ""})

    assert asked("up", "", folder=folder.path / "sub").stdout == "words\nweb\nworker\ndb\n"


def test_services_of_a_variable(project: Project) -> None:
    """The shell's own variables name files as for a command."""
    folder = project({"compose.yaml": SHOP, "x.yaml": "services: {x: {}}"})

    assert asked("up", "", folder=folder.path, COMPOSE_FILE="x.yaml").stdout == "words\nx\n"


@pytest.mark.parametrize("name", ["$PLACE/x.yaml", "~/x.yaml"])
def test_a_name_as_it_is_typed(project: Project, name: str) -> None:
    """A shell gives words before it has put anything into them; that is done for the names of files."""
    folder = project({"sub/x.yaml": "services: {x: {}}"})
    place = str(folder.path / "sub")

    assert asked("deploy", "-f", name, "", folder=folder.path, PLACE=place, HOME=place).stdout == "words\nx\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(["restart", ""], "words\nweb\n", id="no-option"),
        pytest.param(["cp", ""], "starts-or-files\nweb\\:\n", id="no-option-of-cp"),
        pytest.param(["restart", "--", ""], "words\n--yes\nweb\n", id="a-name"),
    ],
)
def test_a_service_that_would_be_an_option(project: Project, line: list[str], expected: str) -> None:
    """A service with the name of an option is not offered where it would be read as one."""
    folder = project({"compose.yaml": "services: {--yes: {image: x}, web: {image: x}}"})

    assert asked(*line, folder=folder.path).stdout == expected


HOSTILE = {
    "huge": b"services:\n" + b"  a: {image: x}\n" * 400_000,
    "deep": b"services: " + b"[" * 100_000,
    "bomb": b"a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
    + b"".join(b"%c: &%c [%s]\n" % (n, n, b", ".join(9 * [b"*%c" % (n - 1)])) for n in b"bcdefghij"),
    "circle": b"services: &a\n  web: *a\n",
    "included circle": b"include: [compose.yaml]\n",
    "bytes": bytes(range(256)),
    "UTF-16": "services: {web: {}}".encode("utf-16"),
    "empty": b"",
}


@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in HOSTILE.items()])
def test_hostile_files(project: Project, content: bytes) -> None:
    """Whatever a file holds, an answer comes, and no word of an error."""
    outcome = asked("deploy", "", folder=project({"compose.yaml": content}).path)

    assert (outcome.stderr, outcome.status) == ("", 0)
    assert outcome.stdout in ("", "words\n", "words\nweb\n")


def test_a_pipe_is_not_waited_for(project: Project) -> None:
    """A file that would never end is not read."""
    folder = project({})
    os.mkfifo(folder.path / "compose.yaml")

    assert asked("deploy", "", folder=folder.path).stdout == "words\n"


def test_contexts(project: Project) -> None:
    """Contexts are those of the kubeconfig that the line names."""
    folder = project({"kube.yaml": KUBECONFIG})
    args = ("status", "--kubeconfig", "kube.yaml", "--context", "")

    assert asked(*args, folder=folder.path).stdout.replace("\\", "") == "words\narn:aws:eks:one:7:cluster/x\nkind-two\n"


def test_contexts_of_the_variable(project: Project) -> None:
    """Without one named, they are those of the kubeconfig that `kubectl` uses."""
    folder = project({"kube.yaml": KUBECONFIG})

    given = asked("status", "--context=k", folder=folder.path, KUBECONFIG=str(folder.path / "kube.yaml")).stdout

    assert given == "words\n--context=kind-two\n"


def test_no_kubeconfig(project: Project) -> None:
    """Without a kubeconfig there is nothing to offer."""
    outcome = asked("status", "--context", "", folder=project({}).path)

    assert (outcome.stdout, outcome.stderr) == ("words\n", "")


def test_parts_of_the_cluster(project: Project, tmp_path: Path) -> None:
    """The parts whose logs there are."""
    for name in ("etcd.log", "kubelet.log", "kubelet.log.1"):
        (tmp_path / "cluster" / "logs").mkdir(parents=True, exist_ok=True)
        (tmp_path / "cluster" / "logs" / name).touch()
    given = asked("cluster", "logs", "", folder=project({}).path, COMPOSEPLAT_CLUSTER=str(tmp_path)).stdout

    assert given == "words\netcd\nkubelet\n"


# how fast -------------------------------------------------------------------------------------------------------------

MOST_SECONDS = 0.150
HEAVY = {
    "typer", "click", "rich", "pulumi", "grpc", "ssl", "urllib3", "jinja2",
    "difflib", "hashlib", "logging", "subprocess", "tempfile",
}  # fmt: skip


def _seconds(*args: str, folder: Path) -> float:
    """The processor's time that one answer takes: a busy machine makes a clock say anything."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from composeplat.cli.app import main; main()", *args],
        cwd=folder,
        env={**VARIABLES, "_PLATFORM_COMPLETE": "zsh"},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


def test_services_come_at_once(project: Project) -> None:
    """Nobody waits for the names of services: 150 milliseconds, as the median of some runs."""
    services = "".join(f"  service-{n}: {{image: nginx, ports: ['80'], environment: {{A: b}}}}\n" for n in range(30))
    folder = project(f"services:\n{services}").path

    assert statistics.median(_seconds("deploy", "", folder=folder) for _ in range(7)) <= MOST_SECONDS


@pytest.mark.parametrize("args", [["dep"], ["deploy", "--progress", ""], ["deploy", ""]], ids=" ".join)
def test_modules_that_a_completion_loads(project: Project, args: list[str]) -> None:
    """An answer loads neither the commands nor what they need."""
    script = (
        "import sys, composeplat.cli.app as one; one.main();"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        cwd=project(SHOP).path,
        env={**VARIABLES, "_PLATFORM_COMPLETE": "zsh"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith("words\n")
    assert "composeplat" in done.stderr.split()
    assert HEAVY & {*done.stderr.split()} == set()


# shells ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "args", "expected"),
    [
        pytest.param("zsh", ["cluster", "sto"], "words\nstop:Stop the local cluster; its data stays.\n", id="zsh"),
        pytest.param("fish", ["cluster", "sto"], "words\nstop\tStop the local cluster; its data stays.\n", id="fish"),
        pytest.param("bash", ["sto", "platform cluster sto"], "words\nstop\n", id="bash"),
        pytest.param("bash", ["", "platform cluster st --x"], "words\n", id="bash with nothing to offer"),
        pytest.param(
            "bash", ["pl", "platform deploy --progress=pl"], "words\nplain\n", id="bash behind an equals sign"
        ),
        pytest.param("bash", ["", "platform"], None, id="bash with a line of one word"),
        pytest.param("zsh", [], None, id="no word"),
        pytest.param("bash", [], None, id="no line"),
        pytest.param("csh", ["sto"], None, id="unknown shell"),
    ],
)
def test_answers(project: Project, shell: str, args: list[str], expected: str | None) -> None:
    """Each shell is answered in its own form, and never with an error."""
    outcome = asked(*args, folder=project({}).path, shell=shell)

    assert (outcome.stderr, outcome.status) == ("", 0)
    if expected is not None:
        assert outcome.stdout == expected


def test_a_colon_is_escaped_for_zsh(project: Project) -> None:
    """In an answer to zsh a colon of a name is escaped: its meaning is behind one that is not."""
    folder = project({"kube.yaml": KUBECONFIG})

    given = asked("status", "--kubeconfig", "kube.yaml", "--context", "a", folder=folder.path).stdout

    assert given == "words\narn\\:aws\\:eks\\:one\\:7\\:cluster/x\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script(project: Project, shell: str) -> None:
    """The script of a shell asks for it, and says no word of this machine."""
    outcome = project({}).run("completion", shell).assert_success()

    assert f"_PLATFORM_COMPLETE={shell}" in outcome.stdout
    assert outcome.stdout.splitlines()[0] in (f"# {shell} completion for platform", "#compdef platform")
    assert sys.prefix not in outcome.stdout
