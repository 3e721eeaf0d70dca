"""The pages say what is so: generated parts are fresh, examples give what is shown, links lead somewhere.

The pages mark their examples with comments, which a reader does not see:

- ``<!-- example: platform render … -->``: the block that follows is a ``compose.yaml``, and this is run beside it;
- ``<!-- file: NAME -->``: the block that follows is a file beside it;
- ``<!-- gives -->``: the block that follows shows objects, or parts of them, among those the command prints;
- ``<!-- prints -->``: the block that follows is all that the command prints;
- ``<!-- says -->``: the block that follows is all that the command says on standard error. Without it, it says nothing.

A list that is shown is shown whole; a mapping may leave keys out.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from composeplat.cli.app import app
from composeplat.cli.console import as_data
from composeplat.codes import CODES
from composeplat.compose.discovery import MAX_DEFINITION_BYTES, MAX_ENV_FILE_BYTES
from composeplat.compose.load.documents import MAX_INCLUDES
from composeplat.compose.model import MAX_HOST_BYTES, MAX_HOST_FILES
from composeplat.compose.yaml_reader import MAX_DEPTH, MAX_NODES
from composeplat.diagnostics import Diagnostic, Exit, Source, Span
from composeplat.plan.never_public import NEVER_PUBLIC
from tests.conftest import ROOT, Project
from tests.in_process import run_here
from tests.page_commands import RUN, read_steps, unmarked

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/README.md")])
COMMANDS_PAGE = ROOT / "docs" / "commands.md"
REFERENCE_PAGE = ROOT / "docs" / "reference.md"

_MARK = re.compile(r"<!-- (example|file|gives|prints|says)(?:: (.*?))? -->\n+```\w*\n(.*?)```", re.DOTALL)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_GENERATED = re.compile(r"<!-- generated: .*?<!-- end of generated -->", re.DOTALL)
_MESSAGE = re.compile(r"^\S+:\d+:\d+: \w+: .*$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@dataclass
class Example:
    """A definition on a page, the command that is run on it, and what the page says results."""

    page: str
    line: int
    command: str
    files: dict[str, str]
    gives: list[dict[str, Any]] = field(default_factory=list)
    prints: str | None = None
    title: str = ""


def read_examples(text: str, page: str) -> Iterator[Example]:
    example: Example | None = None
    for found in _MARK.finditer(text):
        mark, argument, content = found.groups()
        if mark == "example":
            if example:
                yield example
            line = text.count("\n", 0, found.start()) + 1
            example = Example(page, line, argument, {"compose.yaml": content})
            continue
        if example is None:
            continue
        if mark == "file":
            example.files[argument] = content
        elif mark == "gives":
            example.gives += [document for document in yaml.safe_load_all(content) if document]
        elif mark == "prints":
            example.prints = content
        else:
            example.title = content
    if example:
        yield example


EXAMPLES = [
    pytest.param(example, id=f"{example.page}:{example.line}")
    for page in PAGES
    for example in read_examples(page.read_text(), page_id(page))
]


def missing_from(shown: Any, real: Any, where: str = "") -> list[str]:
    """Where the real thing is not as shown."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return [m for key, value in shown.items() for m in missing_from(value, real.get(key), f"{where}.{key}")]
    if isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        return [
            m for i, (s, r) in enumerate(zip(shown, real, strict=True)) for m in missing_from(s, r, f"{where}[{i}]")
        ]
    return [] if shown == real and type(shown) is type(real) else [f"{where}: shown {shown!r}, is {real!r}"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: Example, project: Project) -> None:
    """A definition on a page gives the objects, output and messages that the page shows."""
    args = shlex.split(example.command)
    outcome = run_here(*args[1:], folder=project(dict(example.files)).path)

    assert args[0] == "platform"
    assert example.title == outcome.stderr
    assert outcome.status in (Exit.DONE, Exit.INVALID)
    assert (outcome.status == Exit.INVALID) == (": error: " in example.title)
    if example.prints is not None:
        assert example.prints == outcome.stdout
    real = (
        {} if not example.gives else {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(outcome.stdout)}
    )
    for shown in example.gives:
        key = (shown["kind"], shown["metadata"]["name"])
        assert key in real
        assert missing_from(shown, real[key]) == []


def test_difference_is_seen() -> None:
    """What is shown and is not so is found, at any depth."""
    assert missing_from({"a": [{"b": 1}]}, {"a": [{"b": 2, "c": 3}]}) == [".a[0].b: shown 1, is 2"]


def test_left_out_is_fine() -> None:
    """A mapping may be shown in part, a list may not."""
    assert missing_from({"a": 1}, {"a": 1, "b": 2}) == []
    assert missing_from([1], [1, 2]) == [": shown [1], is [1, 2]"]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_definition_is_run(page: Path) -> None:
    """No block of YAML is on a page without being run or compared."""
    text = _GENERATED.sub("", page.read_text())
    marked = len([m for m in _MARK.finditer(text) if "```yaml" in m[0]])

    assert marked == len([f for f in _FENCE.findall(text) if f.startswith("```yaml")])


def test_the_recordings_are_current() -> None:
    """The sessions that pages show are those that were recorded, and show the messages of today."""
    done = subprocess.run(
        [sys.executable, "docs/record.py", "--check"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_generated_parts_are_fresh() -> None:
    """`make docs` has been run since a code, a key or a message changed."""
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.stdout + done.stderr == ""
    assert done.returncode == 0


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_messages_are_real(page: Path) -> None:
    """A message that a page shows outside an example is one that docs/diagnostics.md has from a run."""
    real = "".join(_GENERATED.findall((ROOT / "docs" / "diagnostics.md").read_text()))
    text = _MARK.sub("", _GENERATED.sub("", page.read_text()))

    assert [line for line in _MESSAGE.findall(text) if line not in real] == []


def test_every_code_is_explained() -> None:
    """docs/diagnostics.md has a heading for each code, so that a link to it holds."""
    headings = _HEADING.findall((ROOT / "docs" / "diagnostics.md").read_text())

    assert [code for code in CODES if code not in headings] == []


def _commands() -> dict[str, Any]:
    """The commands by name, those of a group as "group command"; which library's they are is typer's affair."""
    group: Any = typer.main.get_command(app)
    commands: dict[str, Any] = {}
    for name, command in group.commands.items():
        within = getattr(command, "commands", None)
        commands |= {f"{name} {inner}": item for inner, item in within.items()} if within else {name: command}
    return commands


def _section(text: str, heading: str) -> str:
    """The text below a heading, up to the next one of its level."""
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, heading
    return rest.partition("\n## ")[0]


def test_commands_of_a_group_are_looked_at() -> None:
    """What a group holds is checked one by one, and the group itself is no command."""
    assert sorted(n for n in _commands() if "cluster" in n) == [
        "cluster logs", "cluster prune", "cluster start", "cluster status", "cluster stop",
    ]  # fmt: skip


@pytest.mark.parametrize("name", _commands())
def test_every_command_is_described(name: str) -> None:
    """docs/commands.md has a section for each command, which leads to its options in docs/reference.md."""
    anchor = f"platform {'status' if name == 'ps' else name}".replace(" ", "-")

    assert f"[options](reference.md#{anchor})" in _section(COMMANDS_PAGE.read_text(), f"platform {name}")


@pytest.mark.parametrize("name", sorted({*_commands()} - {"ps"}))
def test_every_option_is_documented(name: str) -> None:
    """docs/reference.md has a section for each command, with a row for each of its options."""
    rows = " ".join(re.findall(r"^\| (.*?) \|", _section(REFERENCE_PAGE.read_text(), f"platform {name}"), re.MULTILINE))
    options = [o for p in _commands()[name].params for o in (*p.opts, *p.secondary_opts) if o.startswith("-")]

    assert [option for option in (*options, "--help") if not re.search(rf"`{option}[` ]", rows)] == []


@pytest.mark.parametrize("name", sorted({*_commands()} - {"ps"}))
def test_every_option_is_explained(name: str) -> None:
    """docs/commands.md says something about each option, in the section of its command or with the shared ones."""
    page = COMMANDS_PAGE.read_text()
    text = _section(page, f"platform {name}") + _section(page, "Options that commands share")
    options = [[o for o in (*p.opts, *p.secondary_opts) if o.startswith("-")] for p in _commands()[name].params]

    assert [names for names in options if names and not any(re.search(rf"`{n}[` ]", text) for n in names)] == []


def test_no_option_is_made_up() -> None:
    """docs/commands.md names no option that no command has."""
    real = {o for command in _commands().values() for p in command.params for o in (*p.opts, *p.secondary_opts)} | {
        "--version",
        "--help",
    }
    named = set(re.findall(r"`(--[a-z-]+)", COMMANDS_PAGE.read_text()))

    assert named - real == set()


def test_every_variable_is_documented() -> None:
    """docs/commands.md names each environment variable that the code reads."""
    name = re.compile(
        r"\"((?:COMPOSE|COMPOSEPLAT|OKTETO|PLATFORM)_[A-Z_]+|KUBECONFIG|NO_COLOR|NO_PROXY|BROWSER"
        r"|BUILDX_BUILDER|BUILDX_CONFIG|DOCKER_[A-Z]+)\""
    )
    sources = [path.read_text() for path in (ROOT / "composeplat").rglob("*.py")]
    read = {found for source in sources for found in name.findall(source)}
    page = COMMANDS_PAGE.read_text()

    assert {"COMPOSE_FILE", "COMPOSEPLAT_CACHE"} <= read
    assert sorted(variable for variable in read if f"`{variable}`" not in page) == []


def test_every_folder_of_ours_is_documented() -> None:
    """docs/deploying.md has a row for what lies in the data folder and in the cache."""
    sources = "".join(path.read_text() for path in sorted((ROOT / "composeplat").rglob("*.py")))
    engine = "".join((ROOT / "composeplat" / "engine" / name).read_text() for name in ("backend.py", "builder.py"))
    cache = (ROOT / "composeplat" / "toolchain" / "cache.py").read_text()
    data = re.findall(r"data(?:_folder)?(?:\([\w.]*\))?\.path / \"([\w-]+)\"", sources)
    data += re.findall(r"self\.path / \"([\w-]+)\"", engine)
    cached = re.findall(r"cache(?:_folder\([\w.]*\)|\.folder) / \"([\w-]+)\"", sources)
    cached += re.findall(r"self\.folder / \"([\w.-]+)\"", cache)
    section = _section((ROOT / "docs" / "deploying.md").read_text(), "State")
    rows = re.findall(r"`([\w.-]+)", " ".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)))

    assert {"logs", "pulumi", "up", "machine-id"} <= set(data)
    assert {"tools", "ports", "go"} <= set(cached)
    assert sorted({*data, *cached} - {*rows}) == []


def test_every_exit_status_is_documented() -> None:
    """docs/commands.md has a row for each exit status."""
    page = COMMANDS_PAGE.read_text()

    assert [status.value for status in Exit if f"\n| {status.value} |" not in page] == []


def test_every_field_of_a_json_message_is_documented() -> None:
    """docs/commands.md has a row for each field of a message as JSON."""
    diagnostic = Diagnostic(code="invalid-value", span=Span(Source("compose.yaml", Path())), path=(), message="x")
    section = COMMANDS_PAGE.read_text().partition("### Messages as JSON")[2]
    fields = json.loads(json.dumps(as_data(diagnostic, strict=False)))

    assert [name for name in fields if f"| `{name}` |" not in section] == []


@pytest.mark.parametrize("command", sorted(command for command in _commands() if command != "ps"))
def test_every_field_of_the_json_is_documented(command: str) -> None:
    """The section of a command, or one that it leads to, names each field of its JSON."""
    schema = ROOT / "docs" / "schemas" / f"{command.partition(' ')[0]}.json"
    options = {option for parameter in _commands()[command].params for option in parameter.opts}
    if "--json" not in options or not schema.is_file():
        return
    page = COMMANDS_PAGE.read_text()
    section = _section(page, "platform state show" if command.startswith("state") else f"platform {command}")
    linked = [_section(page, name.replace("-", " ")) for name in re.findall(r"\]\(#(platform-\w+)\)", section)]
    if "living.md" in section:
        linked.append((ROOT / "docs" / "living.md").read_text())
    text = "".join([section, *linked])

    assert sorted(name for name in _fields(json.loads(schema.read_text())) if f"`{name}`" not in text) == []


def _fields(schema: Any) -> set[str]:
    """Return the names of all fields, at each depth."""
    if isinstance(schema, list):
        return {name for part in schema for name in _fields(part)}
    if not isinstance(schema, dict):
        return set()
    inner = {name for key, part in schema.items() if key != "properties" for name in _fields(part)}
    return inner.union(*({name} | _fields(part) for name, part in schema.get("properties", {}).items()))


def test_every_port_that_is_never_public_is_listed() -> None:
    """docs/kubernetes.md lists the ports that `ports` never makes public."""
    (listed,) = re.findall(
        r"never makes a port of this list public.*?: ([0-9, ]+)\.", (ROOT / "docs" / "kubernetes.md").read_text()
    )

    assert [int(port) for port in listed.split(", ")] == sorted(NEVER_PUBLIC)


@pytest.mark.parametrize(
    ("page", "limit"),
    [
        ("compose-file.md", f"{MAX_DEFINITION_BYTES // 1024**2} MiB together"),
        ("compose-file.md", f"an env file {MAX_ENV_FILE_BYTES // 1024**2} MiB"),
        ("compose-file.md", f"{MAX_NODES:,} nodes and {MAX_DEPTH} levels"),
        ("compose-file.md", f"more than {MAX_INCLUDES} includes"),
        ("kubernetes.md", f"Up to {MAX_HOST_BYTES // 1024} KiB and {MAX_HOST_FILES} files"),
    ],
)
def test_limits_are_those_of_the_code(page: str, limit: str) -> None:
    """A limit that a page names is the one that holds."""
    assert limit in (ROOT / "docs" / page).read_text()


def test_every_example_is_listed() -> None:
    """README.md links each example."""
    readme = (ROOT / "README.md").read_text()

    assert [
        p.name for p in sorted((ROOT / "examples").iterdir()) if f"(examples/{p.name}/README.md)" not in readme
    ] == []


def _anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as a forge makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text)}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    """A relative link leads to a file that is there, and to a heading in it."""
    dead = []
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page if not path else page.parent / path
        if not target.exists() or (anchor and anchor not in _anchors(_FENCE.sub("", target.read_text()))):
            dead.append(link)

    assert dead == []


#: Where the work stands: no page for readers, and gone when the work is done.
PLAN = ROOT / "docs" / "PLAN.md"


@pytest.mark.parametrize("page", sorted({*(ROOT / "docs").glob("*.md")} - {PLAN}), ids=page_id)
def test_readme_lists_every_page(page: Path) -> None:
    """README.md links each page of docs/."""
    assert f"({page_id(page)})" in (ROOT / "README.md").read_text()


def test_the_sidebar_has_every_page() -> None:
    """docs/site/sidebar.toml has each page once: those of docs/, the examples and what contributors read."""
    sidebar = tomllib.loads((ROOT / "docs" / "site" / "sidebar.toml").read_text())
    front_page = {ROOT / "README.md"}
    benchmarks = ROOT / "benchmarks" / "README.md"

    assert sorted(page for pages in sidebar.values() for page in pages) == sorted(
        page_id(page) for page in {*PAGES, benchmarks} - front_page - {PLAN}
    )


def _written() -> list[Any]:
    """What README.md says that one may write for a service, and the kinds of objects that it says results."""
    table = (ROOT / "README.md").read_text().partition("| You write |")[2].partition("\n\n")[0]
    cells = [row.split(" | ") for row in table.splitlines()[2:]]
    assert cells
    return [
        pytest.param(key, set(re.findall(r"\b(?:[A-Z][a-z]+){1,3}\b", row[1])), id=key)
        for row in cells
        for key in re.findall(r"`([a-z_]+: [^`]*)`", row[0])
    ]


@pytest.mark.parametrize(("key", "kinds"), _written())
def test_keys_and_their_objects(key: str, kinds: set[str], project: Project) -> None:
    """Each line of the front page's table is applied without a word, and gives the objects that are beside it."""
    service = {"image": "nginx:1.27", **yaml.safe_load(key)}
    definition = {"services": {"web": service, "db": {"image": "postgres:17"}}, "volumes": {"data": {}}}
    folder = project(
        {"compose.yaml": yaml.safe_dump(definition), "web.env": "A=1", "conf/a": "x", "api/Dockerfile": ""}
    )
    reading = folder.read(namespace="team")

    assert reading.messages == []
    assert reading.plan
    made = {manifest.kind for manifest in reading.plan.objects if "web" in manifest.name or manifest.name == "data"}
    # An image is no object, and the other way to make an endpoint is chosen by an option.
    assert kinds - {"HTTPRoute"} <= made


# commands -------------------------------------------------------------------------------------------------------------

#: What an example's page shows without a mark: these lines are found and run by tests/test_examples.py and
#: tests/deploy/test_examples.py.
_OF_EXAMPLES = re.compile(r"(?:[A-Z_]+=\S+ )*platform (?:render|deploy)\b")
_SPAN = re.compile(r"(?<!`)`(platform [^`]+)`")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_block_of_commands_is_run(page: Path) -> None:
    """No shell block is on a page without being run, or saying why it is not."""
    text = page.read_text()
    lines = text.splitlines()
    blocks = {step.line: step.content.splitlines() for step in read_steps(text)}
    left = [
        line
        for line in unmarked(text)
        if page.parent.parent.name != "examples" or not all(_OF_EXAMPLES.match(block) for block in blocks[line])
    ]

    assert [f"{page_id(page)}:{line}: {lines[line]}" for line in left] == []


def test_programs_of_blocks_exist() -> None:
    """A block that says which tests run it names a file that is there."""
    named = [step.argument for page in PAGES for step in read_steps(page.read_text()) if step.mark == "run by"]

    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_few_blocks_are_not_run() -> None:
    """What is not run stays the exception, one in four at most."""
    marks = [step.mark for page in PAGES for step in read_steps(page.read_text())]

    assert len([mark for mark in marks if mark in RUN]) > 3 * marks.count("not run")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("```sh\nls\n```\n", [1], id="no mark"),
        pytest.param("<!-- run -->\n```sh\nls\n```\n", [], id="run"),
        pytest.param("<!-- not run -->\n```sh\nls\n```\n", [2], id="no reason"),
        pytest.param("<!-- not run: it can't be -->\n\n```sh\nls\n```\n", [], id="reason"),
        pytest.param("<!-- runs -->\n```sh\nls\n```\n", [2], id="misspelt"),
        pytest.param("```text\nls\n```\n", [], id="no commands"),
        pytest.param("<!-- run -->\n```sh\nls\n```\n\n```bash\nls\n```\n", [6], id="the second"),
    ],
)
def test_a_block_without_a_mark_is_found(text: str, expected: list[int]) -> None:
    """A block of commands needs a mark that is one, with a reason where it is not run."""
    assert expected == unmarked(text)


def test_quotations_are_right() -> None:
    """What a page shows of a file is there, as it is shown."""
    quoted = [(page, step) for page in PAGES for step in read_steps(page.read_text()) if step.mark == "from"]

    assert quoted
    assert [
        f"{page_id(page)}:{step.line}"
        for page, step in quoted
        if step.content not in (ROOT / step.argument).read_text()
    ] == []


def test_steps_of_a_workflow_are_commands_of_its_page() -> None:
    """What a workflow runs is what the page runs otherwise, line by line, but for the credential."""
    steps = list(read_steps((ROOT / "docs" / "ci.md").read_text()))
    (workflow,) = [yaml.safe_load(step.content) for step in steps if step.argument == ".github/workflows/branch.yaml"]
    typed = {line for step in steps if step.mark == "run" for line in step.content.splitlines()}
    ran = [row["run"] for job in workflow["jobs"].values() for row in job["steps"] if "run" in row]

    assert len(ran) == 3
    assert [line for text in ran[1:] for line in text.splitlines() if line not in typed] == []


def _spans() -> list[Any]:
    """Each command that stands within a text or a table, once for each page."""
    found = {
        (page_id(page), span)
        for page in PAGES
        for span in _SPAN.findall(_FENCE.sub("", page.read_text()).replace("\\|", "|"))
    }
    return [pytest.param(span, id=f"{page}: {span}") for page, span in sorted(found)]


@pytest.mark.parametrize("span", _spans())
def test_a_command_in_a_text_exists(span: str) -> None:
    """What a text calls a command of ours is one: its name and its options are known to the command line."""
    first = re.split(" (?:&&|>) ", span)[0]

    assert problem_with([word for word in shlex.split(first)[1:] if word != "…"]) == ""


def problem_with(args: list[str]) -> str:
    """What the command line has against these words, but for arguments that are left out; nothing is run."""
    group: Any = typer.main.get_command(app)
    command, name = group, "platform"
    while hasattr(command, "commands") and args and not args[0].startswith("-"):
        name = args.pop(0)
        if name == "COMMAND":
            return ""
        if name == "help" and command is group:
            continue
        if name not in command.commands:
            return f"no command {name}"
        command = command.commands[name]
    options = {option: param for param in command.params for option in (*param.opts, *param.secondary_opts)}
    for word in args:
        if word == "--":
            break
        if word.startswith("-") and word.partition("=")[0] not in {*options, "--help", "-h"}:
            return f"{name} has no option {word}"
    return ""


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param("deploy --no-such", "deploy has no option --no-such", id="option"),
        pytest.param("deplow", "no command deplow", id="command"),
        pytest.param("cluster begin", "no command begin", id="command of a group"),
        pytest.param("up web -- pytest -x", "", id="behind the dashes"),
        pytest.param("variables set", "", id="arguments left out"),
    ],
)
def test_a_wrong_command_is_found(args: str, expected: str) -> None:
    """A command or an option that does not exist is noticed."""
    assert expected == problem_with(args.split())


def test_the_page_of_real_projects() -> None:
    """docs/real-projects.md has a row for each project that `make real` deploys, the example shop among them."""
    folders = (ROOT / "tests" / "real" / "projects", ROOT / "tests" / "real" / "corpus")
    projects = ["shop", *(project.name for folder in folders for project in folder.iterdir())]
    page = (ROOT / "docs" / "real-projects.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)

    assert sorted(projects) == sorted(rows)
