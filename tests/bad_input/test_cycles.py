"""Cycles: of dependencies, of files that include each other, of variables."""

from __future__ import annotations

import pytest

from composeplat.compose.load.documents import MAX_INCLUDES
from tests.conftest import Project


def services(**dependencies: str) -> str:
    """One service a line, with the services it waits for."""
    lines = (f"  {name}: {{image: nginx, depends_on: [{waits_for}]}}\n" for name, waits_for in dependencies.items())
    return "services:\n" + "".join(lines)


def closes(line: int, column: int, path: str, cycle: str) -> str:
    return f"compose.yaml:{line}:{column}: error: {path} closes a cycle: {cycle} [dependency-cycle]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(services(a="a"), [closes(2, 34, "services.a.depends_on[0]", "a -> a")], id="of itself"),
        pytest.param(services(a="b", b="a"), [closes(3, 34, "services.b.depends_on[0]", "a -> b -> a")], id="of two"),
        pytest.param(
            services(a="b", b="c", c="a"),
            [closes(4, 34, "services.c.depends_on[0]", "a -> b -> c -> a")],
            id="of three",
        ),
        pytest.param(
            services(a="b", b="a", c="d", d="c", e="e"),
            [
                closes(3, 34, "services.b.depends_on[0]", "a -> b -> a"),
                closes(5, 34, "services.d.depends_on[0]", "c -> d -> c"),
                closes(6, 34, "services.e.depends_on[0]", "e -> e"),
            ],
            id="several",
        ),
        pytest.param(
            services(a="b, c", b="a", c="a"),
            [
                closes(3, 34, "services.b.depends_on[0]", "a -> b -> a"),
                closes(4, 34, "services.c.depends_on[0]", "a -> c -> a"),
            ],
            id="two that meet",
        ),
        pytest.param(
            services(a="b", b="c", c="b"),
            [closes(4, 34, "services.c.depends_on[0]", "b -> c -> b")],
            id="behind another",
        ),
        pytest.param(
            services(**{f"s{i}": f"s{(i + 1) % 30}" for i in range(30)}),
            [
                closes(
                    31,
                    36,
                    "services.s29.depends_on[0]",
                    "s0 -> s1 -> s2 -> s3 -> s4 -> s5 -> s6 -> s7 -> … -> s28 -> s29 -> s0",
                )
            ],
            id="of thirty",
        ),
        pytest.param(
            services(**{f"s{i}": f"s{(i + 1) % 11}" for i in range(11)}),
            [closes(12, 36, "services.s10.depends_on[0]", f"{' -> '.join(f's{i}' for i in range(11))} -> s0")],
            id="of eleven",
        ),
        pytest.param(
            services(**{f"s{i}": f"s{(i + 1) % 12}" for i in range(12)}),
            [
                closes(
                    13,
                    36,
                    "services.s11.depends_on[0]",
                    "s0 -> s1 -> s2 -> s3 -> s4 -> s5 -> s6 -> s7 -> … -> s10 -> s11 -> s0",
                )
            ],
            id="of twelve",
        ),
        pytest.param(services(a="b, c", b="d", c="d", d=""), [], id="none: two ways to one service"),
    ],
)
def test_dependencies(text: str, expected: list[str], project: Project) -> None:
    """Each cycle is reported once, where it closes."""
    assert expected == project(text).read().messages


def test_a_long_chain_of_dependencies(project: Project) -> None:
    """A chain of services is no matter of the stack."""
    text = services(**{f"s{i}": f"s{i + 1}" for i in range(3000)}, s3000="")

    reading = project(text).read()

    assert reading.messages == []


def test_dependencies_by_variables(project: Project) -> None:
    """A cycle that variables make is a cycle."""
    folder = project(services(a="'$B'", b="a"), B="b")

    expected = [closes(3, 34, "services.b.depends_on[0]", "a -> b -> a")]
    assert expected == folder.read().messages


SERVICE = "services: {web: {image: nginx}}\n"
FILES = {
    "itself": (
        {"compose.yaml": SERVICE + "include: [compose.yaml]"},
        "compose.yaml:2:11: error: include[0] includes a file that is already being included [include-cycle]",
    ),
    "itself by another way": (
        {"compose.yaml": SERVICE + "include: [sub/../compose.yaml]", "sub/a": ""},
        "compose.yaml:2:11: error: include[0] includes a file that is already being included [include-cycle]",
    ),
    "two": (
        {"compose.yaml": SERVICE + "include: [more.yaml]", "more.yaml": "include: [compose.yaml]"},
        "more.yaml:1:11: error: include[0] includes a file that is already being included [include-cycle]",
    ),
    "three, in the long form": (
        {
            "compose.yaml": SERVICE + "include: [{path: [a.yaml]}]",
            "a.yaml": "include:\n- path: b.yaml\n",
            "b.yaml": "include:\n- path: [c.yaml, a.yaml]\n",
            "c.yaml": "x-c: d\n",
        },
        "b.yaml:2:18: error: include[0].path[1] includes a file that is already being included [include-cycle]",
    ),
    "by a link": (
        {"compose.yaml": SERVICE + "include: [link.yaml]"},
        "compose.yaml:2:11: error: include[0] includes a file that is already being included [include-cycle]",
    ),
    "by a link to a folder": (
        {"compose.yaml": SERVICE + "include: [link/compose.yaml]"},
        "compose.yaml:2:11: error: include[0] includes a file that is already being included [include-cycle]",
    ),
}


@pytest.mark.parametrize(("files", "message"), FILES.values(), ids=FILES)
def test_includes(files: dict[str, str], message: str, project: Project) -> None:
    """A file that is being included can't be included again, whatever it is called."""
    folder = project(files)
    (folder.path / "link.yaml").symlink_to("compose.yaml")
    (folder.path / "link").symlink_to(".")

    expected = [message]
    assert expected == folder.read().messages


def test_a_file_that_is_included_twice(project: Project) -> None:
    """Two ways to one file are no cycle."""
    files = {
        "compose.yaml": "include: [a.yaml, b.yaml]",
        "a.yaml": "include: [c.yaml]",
        "b.yaml": "include: [c.yaml]",
        "c.yaml": SERVICE,
    }

    assert project(files).read().messages == []


UNSET = ".env:1:1: warning: the value of 'A' refers to a variable that is not set; an empty string is used"


@pytest.mark.parametrize(
    ("env", "expected", "value"),
    [
        pytest.param("A=$A\n", [UNSET], "", id="of itself"),
        pytest.param("A=x${A:-y}\n", [], "xy", id="of itself, with a default"),
        pytest.param("A=$B\nB=$A\n", [UNSET], "", id="of two"),
        pytest.param("A=one\nA=${A}two\n", [], "onetwo", id="of an earlier line"),
        pytest.param("A='$A'\n", [], "$A", id="as it stands"),
        pytest.param("A='${B}'\nB='${A}'\n", [], "${B}", id="of two, as they stand"),
    ],
)
def test_variables(env: str, expected: list[str], value: str, project: Project) -> None:
    """A variable sees what is above it, once: what is put in is never read again."""
    text = "services: {web: {image: nginx, labels: {a: '$A'}}}"
    reading = project({"compose.yaml": text, ".env": env}).read()

    assert [f"{message} [unset-variable]" for message in expected] == reading.messages
    annotations = reading.object("Deployment", "web")["metadata"]["annotations"]
    assert value == annotations["a"]


def test_how_many_files_may_be_included(project: Project) -> None:
    """The number of includes is limited, with those of included files; the first above the limit is reported."""
    half = MAX_INCLUDES // 2
    files = {f"{n}.yaml": "services: {web: {image: nginx}}\n" for n in range(MAX_INCLUDES)}
    listed = ", ".join(f"{n}.yaml" for n in range(1, half + 1))
    more = ", ".join(f"{n}.yaml" for n in range(half + 1, MAX_INCLUDES))
    files["1.yaml"] += f"include: [{more}]\n"
    text = files["0.yaml"] + f"include: [{listed}"

    assert project({**files, "compose.yaml": f"{text}, 0.yaml]"}).read().messages == []
    (message,) = project({**files, "compose.yaml": f"{text}, 0.yaml,\n 0.yaml]"}).read().messages
    assert message == (
        f"compose.yaml:3:2: error: include[{half + 1}] exceeds the limit of {MAX_INCLUDES} includes [invalid-value]"
    )
