"""Small files that unfold to much, and large ones: refused by a line, soon and in little memory."""

from __future__ import annotations

import itertools
import string

import pytest

from tests.bad_input.measured import measured
from tests.conftest import Project

SERVICES = "services: {web: {image: nginx}}\n"
DEPTH = 10_000


def alias_bomb(fold: int, levels: int) -> str:
    """Each list holds the one before it ``fold`` times."""
    names = string.ascii_lowercase[:levels]
    lists = (f"x-{name}: &{name} [{', '.join([f'*{before}'] * fold)}]\n" for before, name in itertools.pairwise(names))
    return "x-a: &a {k: v}\n" + "".join(lists) + SERVICES


def merge_bomb(levels: int) -> str:
    """Each mapping merges the one before it twice, and adds a key."""
    levels_above = (f"x-{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}], k{i}: v}}\n" for i in range(1, levels))
    return "x-0: &m0 {k0: v}\n" + "".join(levels_above) + SERVICES


def filled(text: str, unit: str, size: int) -> str:
    return text + unit * ((size - len(text)) // len(unit))


REFUSED = {
    "an alias bomb of threes": (alias_bomb(3, 11), "too-many-aliases"),
    "an alias bomb of nines": (alias_bomb(9, 10), "too-many-aliases"),
    "a mapping that is merged a hundred thousand times": (
        "x-wide: &wide {" + ", ".join(f"k{i}: v" for i in range(1000)) + "}\n"
        "x-merged: {<<: [" + ", ".join(["*wide"] * 100_000) + "]}\n" + SERVICES,
        "too-many-aliases",
    ),
    "a long text that is repeated a thousand times": (
        "x-text: &text " + "a" * 1_000_000 + "\nservices:\n"
        + "".join(f"  web{i}: {{image: nginx, labels: {{text: *text}}}}\n" for i in range(1000)),
        "too-many-aliases",
    ),
    "twelve thousand mounts without a target": (
        "services:\n  web:\n    image: nginx\n    volumes:\n" + "".join(f"    - {{a{i}: b}}\n" for i in range(12_000)),
        "missing-key",
    ),
    "an anchor that holds itself": ("x-loop: &loop [*loop]\n" + SERVICES, "recursive-alias"),
    "an anchor that holds itself in a mapping": ("x-loop: &loop {a: {b: *loop}}\n" + SERVICES, "recursive-alias"),
    "an anchor that merges itself": ("x-loop: &loop {<<: *loop}\n" + SERVICES, "recursive-alias"),
    "brackets ten thousand deep": (SERVICES + "x: " + "[" * DEPTH + "]" * DEPTH, "too-deep"),
    "braces ten thousand deep": (SERVICES + "x: " + "{a: " * DEPTH + "}" * DEPTH, "too-deep"),
    "lists ten thousand deep": (SERVICES + "x:\n  " + "- " * DEPTH + "a", "too-deep"),
    "mappings two thousand deep, a line each": ("".join(" " * i + "a:\n" for i in range(2000)) + SERVICES, "too-deep"),
    "aliases that nest what is deep already": (
        "x-0: &d0 " + "[" * 90 + "]" * 90 + "\n"
        + "".join(f"x-{i}: &d{i} {'[' * 90}*d{i - 1}{']' * 90}\n" for i in range(1, 20))
        + SERVICES,
        "too-deep",
    ),
    "a brace that is never closed, ten thousand times": (SERVICES + "x: " + "{" * DEPTH, "too-deep"),
    "a million different keys, as many as fit": (
        SERVICES + "".join(f"k{i:x}:\n" for i in range(500_000)),
        "too-large",
    ),
    "a million items": (filled(SERVICES + "x: [", "a,", 2_000_000), "too-large"),
    "a hundred thousand equal keys": (SERVICES + "x: {" + "a: b, " * 90_000 + "}", "duplicate-key"),
    "a hundred thousand directives": (
        "".join(f"%TAG !t{i}! x\n" for i in range(100_000)) + "---\n" + SERVICES,
        "invalid-yaml",
    ),
    "more ports than any service has": (
        "services: {web: {image: nginx, ports: ["
        + ", ".join(f'"{10_000 + i}-{10_255 + i}:{20_000 + i}-{20_255 + i}"' for i in range(1000))
        + "]}}",
        "invalid-value",
    ),
    "a command of two million words": (
        "services: {web: {image: nginx, command: '" + "a " * 2_000_000 + "'}}",
        "invalid-value",
    ),
    "six hundred services that all wait for each other": (
        "x-all: &all [" + ", ".join(f"s{i}" for i in range(600)) + "]\nservices:\n"
        + "".join(f"  s{i}: {{image: nginx, depends_on: *all}}\n" for i in range(160))
        + "".join(f"  s{i}: {{image: nginx}}\n" for i in range(160, 600)),
        "dependency-cycle",
    ),
    "eight hundred services, whose builds misspell each other": (
        "services:\n"
        + "".join(f"  s-{i}: {{build: {{additional_contexts: {{a: 'service:z-{i}'}}}}}}\n" for i in range(800)),
        "undefined-service",
    ),
    "services with keys that nobody knows, and one mistake": (
        "services: {web: {image: nginx, replicas: 1, scale: many, "
        + ", ".join(f"hostnam{i}: a" for i in range(40_000))
        + "}}",
        "invalid-value",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED)
def test_refused(text: str, code: str, project: Project) -> None:
    """A bomb is refused by its code, within two seconds and two hundred megabytes."""
    measured(project(text), "render").assert_refused(code)


@pytest.mark.parametrize("name", ["compose.yaml", ".env", "vars.env", "more.yaml"])
def test_a_file_of_fifty_megabytes(name: str, project: Project) -> None:
    """A file that is far too large is refused without being read, whichever part it plays."""
    text = "services: {web: {image: nginx, env_file: vars.env}}\ninclude: [more.yaml]\n"
    folder = project({"compose.yaml": text, "vars.env": "A=b\n", "more.yaml": "x-more: a\n"})
    with (folder.path / name).open("ab") as stream:
        stream.truncate(50 * 1024 * 1024)

    outcome = measured(folder, "render").assert_refused("unreadable-file")

    assert " is larger than " in outcome.stderr


def test_fifty_megabytes_on_standard_input(project: Project) -> None:
    """Standard input has the same limit as a file."""
    outcome = project({}).run("render", "-f", "-", stdin=b"#" * 50 * 1024 * 1024)

    outcome.assert_invalid()
    expected = "<stdin>:1:1: error: '<stdin>' is larger than 4 MiB [unreadable-file]\n1 error\n"
    assert expected == outcome.stderr


def test_merge_bomb_comes_to_nothing(project: Project) -> None:
    """A mapping that merges another twice holds it once: what doubles elsewhere stays small, and is read."""
    outcome = measured(project(merge_bomb(30)), "render").assert_took_little()

    outcome.assert_success()


def test_includes_share_the_limits_of_one_file(project: Project) -> None:
    """A large file that is included again and again counts each time."""
    folder = project({"compose.yaml": f"include: [{'more.yaml, ' * 90}]", "more.yaml": "x: [" + "a," * 90_000 + "]"})

    measured(folder, "render").assert_refused("too-large")


def test_included_bytes_share_the_limit_of_one_file(project: Project) -> None:
    """A long file that is included again and again counts each time."""
    folder = project({"compose.yaml": f"include: [{'more.yaml, ' * 90}]", "more.yaml": "#" * 1_000_000})

    outcome = measured(folder, "render").assert_refused("unreadable-file")

    assert "names 'more.yaml', which makes the definition larger than 4 MiB [unreadable-file]\n" in outcome.stderr


def test_includes_that_double(project: Project) -> None:
    """Files that each include the next one twice end at the most includes a definition may have."""
    files = {f"f{i}.yaml": f"include: [f{i + 1}.yaml, f{i + 1}.yaml]" for i in range(40)}
    folder = project({"compose.yaml": "include: [f0.yaml]", **files, "f40.yaml": SERVICES})

    measured(folder, "render").assert_refused("invalid-value")


def test_a_chain_of_includes(project: Project) -> None:
    """A hundred files that include one another in a row are no matter of the stack."""
    files = {f"f{i}.yaml": f"include: [f{i + 1}.yaml]" for i in range(99)}
    folder = project({"compose.yaml": "include: [f0.yaml]", **files, "f99.yaml": SERVICES})

    measured(folder, "render").assert_success()


def doubling(levels: int) -> str:
    return "A0=0123456789\n" + "".join(f"A{i}=$A{i - 1}$A{i - 1}\n" for i in range(1, levels))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(doubling(40), id="that-double"),
        pytest.param("A=" + "a" * 500_000 + "\n" + "".join(f"B{i}=x$A\n" for i in range(20_000)), id="that-repeat"),
    ],
)
def test_variables_that_hold_each_other(text: str, project: Project) -> None:
    """Variables that unfold to far more than is written are refused."""
    folder = project({"compose.yaml": SERVICES, ".env": text})

    measured(folder, "render").assert_refused("invalid-env-file")


def test_a_variable_that_is_used_everywhere(project: Project) -> None:
    """What variables put into a definition has a limit."""
    text = SERVICES + "x: [" + "'x$BIG', " * 50_000 + "]"
    folder = project({"compose.yaml": text, ".env": "BIG=" + "a" * 900_000})

    measured(folder, "render").assert_refused("too-large")


def test_an_env_file_of_spaces(project: Project) -> None:
    """A long run of spaces is passed in one go."""
    folder = project({"compose.yaml": SERVICES, ".env": "A=x" + " " * 900_000 + "y\n"})

    measured(folder, "render").assert_success()


def test_a_dense_graph_of_dependencies(project: Project) -> None:
    """Services that each wait for all those after them are put in order soon."""
    chain = "".join(f"x-{i}: &d{i} {{<<: *d{i + 1}, s{i}: }}\n" for i in range(248, -1, -1))
    services = "".join(f"  s{i}: {{image: nginx, depends_on: *d{i + 1}}}\n" for i in range(249))
    folder = project(f"x-249: &d249 {{s249: }}\n{chain}services:\n{services}  s249: {{image: nginx}}\n")

    outcome = measured(folder, "config", "--services")

    outcome.assert_success()
    assert outcome.seconds < 2.0
    assert outcome.stdout.split() == [f"s{i}" for i in range(249, -1, -1)]


def test_a_definition_at_the_limits_is_read(project: Project) -> None:
    """What stays below the limits is read: they refuse no honest file."""
    services = "".join(f"  web{i}: {{<<: *web, labels: {{name: web{i}}}}}\n" for i in range(300))
    folder = project(f"x-web: &web {{image: nginx, ports: [80], environment: {{A: b, C: d}}}}\nservices:\n{services}")

    measured(folder, "config", "--services").assert_success()
