"""The script that is made of a page's blocks: what it types, what it waits for, and when it fails."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.page_commands import is_stable, make_script, read_steps


def type_page(text: str, folder: Path) -> tuple[int, dict[str, str]]:
    """Run a page's script; gives its status, and what each block printed by its line."""
    outputs = folder / "outputs"
    outputs.mkdir()
    (folder / "script").write_text(make_script(list(read_steps(text)), "page.md", outputs))
    done = subprocess.run(["bash", "script"], cwd=folder, capture_output=True, check=False, timeout=100)
    return done.returncode, {path.name: path.read_text() for path in outputs.iterdir()}


def block(mark: str, content: str, language: str = "sh") -> str:
    return f"<!-- {mark} -->\n```{language}\n{content}\n```\n"


def test_blocks_share_a_shell(tmp_path: Path) -> None:
    """A variable and a folder of one block are there in the next one, and each block's output is apart."""
    text = block("run", "export A=1\nmkdir x\ncd x") + block("run", 'echo "$A $(basename "$PWD")"')

    status, outputs = type_page(text, tmp_path)

    assert status == 0
    assert (outputs["2.out"], outputs["8.out"]) == ("", "1 x\n")


def test_files_are_written(tmp_path: Path) -> None:
    """A block that is a file is there for the commands, as it is on the page."""
    text = block("file: a/b.txt", "$HOME `x` 'y'", "text") + block("run", "cat a/b.txt")

    assert type_page(text, tmp_path)[1]["6.out"] == "$HOME `x` 'y'\n"


def test_a_definition_is_a_file_too(tmp_path: Path) -> None:
    """An example of a definition is the compose.yaml that commands after it find."""
    text = block("example: platform render", "services: {}", "yaml") + block("run", "cat compose.yaml")

    assert type_page(text, tmp_path)[1]["6.out"] == "services: {}\n"


def test_a_command_that_fails_ends_the_page(tmp_path: Path) -> None:
    """The status is that of the command, and nothing after it is typed."""
    text = block("run", "(exit 7)\necho not here") + block("run", "echo nor here")

    status, outputs = type_page(text, tmp_path)

    assert status == 7
    assert (outputs["steps"], outputs["2.out"]) == ("page.md:0\npage.md:2\n", "")


def test_a_command_is_ended_after_its_text(tmp_path: Path) -> None:
    """What continues until one ends it gets Ctrl-C after its words, and may end with the status of an interrupt."""
    going = "trap 'echo over; exit 130' INT\necho it is ready\nwhile :; do sleep 0.1; done"
    text = block("run until: it is ready", going) + block("run", "echo next")

    status, outputs = type_page(text, tmp_path)

    assert status == 0
    assert (outputs["2.out"], outputs["8.out"]) == ("it is ready\nover\n", "next\n")


def test_a_command_that_never_prints_its_text_fails(tmp_path: Path) -> None:
    """What ends before it has said them fails the page."""
    status, outputs = type_page(block("run until: it is ready", "echo it is late"), tmp_path)

    assert status == 1
    assert outputs["2.err"] == "it is late\nit never said: it is ready\n"


def test_a_command_that_ends_badly_fails(tmp_path: Path) -> None:
    """What answers Ctrl-C with another status than an interrupt's fails the page."""
    going = "trap 'exit 3' INT\necho it is ready\nwhile :; do sleep 0.1; done"

    assert type_page(block("run until: it is ready", going), tmp_path)[0] == 1


def test_a_command_continues_beside_others(tmp_path: Path) -> None:
    """What continues beside what follows is ended after it."""
    going = "trap 'touch over; exit' INT\necho it is ready\nwhile :; do sleep 0.1; done"
    text = block("run beside: it is ready", going) + block("run", "test ! -e over")

    assert type_page(text, tmp_path)[0] == 0
    assert (tmp_path / "over").exists()


def test_unused_blocks_are_left_out(tmp_path: Path) -> None:
    """A block that is not run, or has no mark, is not typed."""
    text = block("not run: no", "exit 3") + "```sh\nexit 4\n```\n"

    assert type_page(text, tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        pytest.param("web  sha256:0c6b9e1d4a77", "web sha256:ffffffffffff", id="digest"),
        pytest.param("web-x7k2p | GET /", "web-m2n9c | GET /", id="pod in a log"),
        pytest.param("Pod/web-6d5f7c9b48-8qzrd", "Pod/web-6dfcd6b45b-wlvg8", id="pod"),
        pytest.param("ready  12s", "ready   1.5 s", id="time"),
        pytest.param("https://web-demo.localhost/x", "https://web-demo.localhost:28002/x", id="port"),
    ],
)
def test_values_of_a_run_are_not_compared(shown: str, real: str) -> None:
    """Digests, names of pods, times and the port of endpoints are another in each run."""
    assert is_stable(shown) == is_stable(real)


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        pytest.param("web  ready  1/1", "web  ready  0/1", id="number"),
        pytest.param("https://web-demo.localhost", "https://web-team.localhost", id="host"),
        pytest.param("Hello.\nvisit 1", "Hello.", id="line"),
    ],
)
def test_other_differences_are_seen(shown: str, real: str) -> None:
    """What a page shows is compared in all else."""
    assert is_stable(shown) != is_stable(real)
