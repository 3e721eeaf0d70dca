"""What the package promises about itself: its names, what it loads, what it opens, and that everything is explained."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import typer.main

import composeplat
from composeplat.cli.app import app
from tests.conftest import ROOT, VARIABLES, Folder, Project

# names ----------------------------------------------------------------------------------------------------------------


def test_public_names() -> None:
    """These names are the promise of the package: adding or removing one is a decision."""
    assert composeplat.__all__ == [
        "__version__",
        "ComposeEndpoints",
        "ComposeNetwork",
        "ComposeService",
        "ComposeStack",
        "ComposeVolume",
        "ComposeplatError",
        "Diagnostic",
        "InvalidDefinition",
        "Loaded",
        "Plan",
        "Request",
        "Service",
        "Settings",
        "load_definition",
        "make_plan",
        "render_yaml",
    ]


@pytest.mark.parametrize("name", composeplat.__all__)
def test_public_name(name: str) -> None:
    """Each name is available from the package."""
    assert getattr(composeplat, name) is not None


def test_listed_names() -> None:
    """``dir`` lists the names, for editors and ``help``, and imports none of their modules."""
    script = (
        f"import composeplat, sys; print({{*{composeplat.__all__}}} <= {{*dir(composeplat)}}, 'pulumi' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert shown.stdout == "True False\n"


def test_types_of_public_names() -> None:
    """A type checker finds each name where it lives: without it, all would be of type ``Any``."""
    tree = ast.parse(Path(str(composeplat.__file__)).read_text())
    (branch,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in branch.body if isinstance(node, ast.ImportFrom)]
    found = {
        alias.asname: getattr(importlib.import_module(str(i.module)), alias.name) for i in imports for alias in i.names
    }

    assert found == {name: getattr(composeplat, name) for name in composeplat.__all__ if name != "__version__"}


def test_public_names_of_a_fresh_process(project: Project) -> None:
    """A program that starts with them gets functions and classes, not the modules of the same names."""
    names = ", ".join(name for name in composeplat.__all__ if name != "__version__")
    script = f"""
from pathlib import Path
from composeplat import {names}
import composeplat.compose.load, composeplat.plan, composeplat.render.manifests, composeplat.compose.options
from composeplat import {names}
print(*(callable(one) for one in ({names})))
print(load_definition(Request(folder=Path.cwd())).project.services["web"].image)
"""

    output = _python(script, project("services: {web: {image: nginx}}")).stdout.splitlines()

    assert output[0].split() == ["True"] * (len(composeplat.__all__) - 1)
    assert output[1] == "nginx"


def test_unknown_name() -> None:
    """Another name can't, as from any module."""
    with pytest.raises(AttributeError, match="module 'composeplat' has no attribute 'unknown'"):
        composeplat.unknown  # type: ignore[attr-defined]  # noqa: B018 -- the access is what is tested


# what is loaded -------------------------------------------------------------------------------------------------------

HEAVY = ("pulumi", "grpc", "rich", "pydantic")


def test_heavy_packages_are_there() -> None:
    """The heavy packages could be loaded here: without them, the next test would hold of any code."""
    assert [name for name in ("pulumi", "grpc", "rich") if importlib.util.find_spec(name) is None] == []


@pytest.mark.parametrize(
    "args",
    [
        pytest.param("--help", id="help"),
        pytest.param("render --help", id="help-of-a-command"),
        pytest.param("render", id="render"),
        pytest.param("render --no-such-option", id="usage-error"),
        pytest.param("render -f invalid.yaml", id="invalid"),
        pytest.param("config", id="config"),
        pytest.param("config --variables", id="variables"),
    ],
)
def test_modules_that_a_command_loads(project: Project, args: str) -> None:
    """Reading and rendering load no Pulumi, no gRPC, and nothing to draw or check models with."""
    folder = project(
        {"compose.yaml": "services: {web: {image: nginx, env_file: a.env}}", "a.env": "A=1", "invalid.yaml": ""}
    )
    script = """
import sys, composeplat.cli.app
try:
    composeplat.cli.app.main()
except SystemExit:
    pass
print("loaded:", *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""

    loaded = set(_python(script, folder, *args.split()).stderr.rpartition("loaded: ")[2].split())

    assert "composeplat" in loaded
    assert loaded.isdisjoint(HEAVY)


def _python(script: str, folder: Folder, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *args],
        cwd=folder.path,
        # What Python compiles as it imports is nothing that the program opens.
        env={**VARIABLES, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )


# what is opened -------------------------------------------------------------------------------------------------------

SHOP = {
    "compose.yaml": """\
include: [more/more.yaml]
services:
  web: {image: nginx, ports: ['8080:80'], env_file: web.env, volumes: ['./conf:/etc/conf'], depends_on: [db]}
  app: {build: ./app, volumes: ['./app/source:/source']}
endpoints: [{path: /, service: web, port: 80}]
""",
    "compose.override.yaml": "services: {web: {scale: 2}}",
    ".env": "A=1\n",
    "more/more.yaml": "services: {db: {image: postgres, volumes: ['data:/data']}}\nvolumes: {data: {}}",
    "web.env": "B=2\n",
    "conf/a": "1",
    "conf/sub/b": "2",
    "app/Dockerfile": "FROM scratch",
    "app/source/main": "3",
    "unrelated": "4",
}

WATCH = """
import json, os, sys
opened, python = [], (sys.prefix, sys.base_prefix, os.environ["PYTHONPATH"] + "/composeplat")

def watch(event, args):
    if event == "open" or event.split(".")[0] in ("os", "socket", "subprocess", "shutil", "tempfile"):
        if event == "open" and (isinstance(args[0], int) or os.path.abspath(args[0]).startswith(python)):
            return  # what is open already, and Python's own modules
        opened.append([event, *(str(arg) for arg in args[:2])])
"""


def test_rendering_opens_only_files_of_the_project(project: Project) -> None:
    """Rendering opens the files that the definition names, to read them; host folders are listed, builds are not."""
    folder = project(SHOP)
    script = f"""{WATCH}
import composeplat.cli.app
sys.addaudithook(watch)
try:
    composeplat.cli.app.main()
finally:
    json.dump(opened, sys.stderr)
"""

    opened = json.loads(_python(script, folder, "render", "--domain", "example.com").stderr)

    read = {
        path for event, path, mode in (entry for entry in opened if entry[0] == "open") if mode in ("r", "rb", "None")
    }
    inside = {str(Path(path).resolve().relative_to(folder.path.resolve())) for path in read if _is_inside(path, folder)}
    assert inside == {
        ".env",
        "compose.override.yaml",
        "compose.yaml",
        "conf/a",
        "conf/sub/b",
        "more/more.yaml",
        "web.env",
    }
    assert [entry for entry in opened if entry[0] == "open" and not _is_inside(entry[1], folder)] == []
    assert {entry[0] for entry in opened} <= {"open", "os.scandir", "os.listdir"}
    assert {Path(entry[1]).name for entry in opened if entry[0] == "os.scandir"} == {"conf", "source", "sub"}


def _is_inside(path: str, folder: Folder) -> bool:
    return (folder.path / path).resolve().is_relative_to(folder.path.resolve())


def test_pure_stages_open_no_file(project: Project) -> None:
    """From nodes to text nothing is opened, started or asked of the machine; reading, the control, does open."""
    folder = project(SHOP)
    script = f"""{WATCH}
from pathlib import Path
from composeplat.compose.origins import Origins
from composeplat.compose.check import check_project
from composeplat.diagnostics import Report
from composeplat.compose.load import read, load
from composeplat.compose.parse import Context, parse_project
from composeplat.plan import make_plan
from composeplat.render.manifests import render_files, render_json, render_yaml
from composeplat.compose.options import Request

request = Request(folder=Path.cwd(), domain="example.com")
loaded = load(request)
make_plan(loaded.project, loaded.settings, loaded.origins, Report())  # imports what is imported late

sys.addaudithook(watch)
reading = read(request)
control = list(opened)
opened.clear()

origins, report = Origins(), Report()
project = parse_project(reading.document, Context(report, reading.variables, origins))
check_project(project, origins, report)
plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
texts = [render_yaml(plan), render_json(plan), render_files(plan)]
pure = list(opened)
assert project.services and plan.objects and all(texts) and not loaded.report.errors
json.dump([control, pure], sys.stderr)
"""

    control, pure = json.loads(_python(script, folder).stderr)

    assert pure == []
    assert "compose.yaml" in {Path(entry[1]).name for entry in control}


# what is explained ----------------------------------------------------------------------------------------------------


def _commands() -> Iterator[tuple[str, Any]]:
    whole: Any = typer.main.get_command(app)
    yield "platform", whole
    yield from whole.commands.items()


def test_commands_have_help() -> None:
    """Every command says what it does, and every option what it is for, in a sentence."""
    silent = [name for name, command in _commands() if not (command.help or "").strip().endswith(".")]
    silent += [
        f"{name} {'/'.join(option.opts)}"
        for name, command in _commands()
        for option in command.params
        if option.param_type_name == "option" and not (option.help or "").strip().endswith(".")
    ]

    assert len(list(_commands())) > 2
    assert silent == []


MODULES = sorted((ROOT / "composeplat").rglob("*.py"))


def test_imports_are_of_dependencies() -> None:
    """Every package that a module imports is installed with the wheel, and not only with a tool of development.

    The page's server alone may import those of its extra.
    """
    pins = (ROOT / "requirements" / "runtime.txt").read_text()
    installed = set(re.findall(r"^([\w.-]+)==", pins, re.MULTILINE))
    known = packages_distributions()
    used = {
        name.partition(".")[0]: path
        for path in MODULES
        if path.parent.name != "ui"
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _imported(node)
    }
    foreign = used.keys() - sys.stdlib_module_names - {"composeplat"}

    assert {name for name in foreign if not installed & {found.lower() for found in known.get(name, [])}} == set()


def test_the_page_without_its_extra() -> None:
    """The command and an export need no package of the extra: only the modules of the server import them."""
    needing = {
        path.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _imported(node)
        if name.partition(".")[0] in ("starlette", "uvicorn", "anyio")
    }

    assert needing == {"connections.py", "server.py", "serving.py"}


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_have_a_docstring(module: Path) -> None:
    """Every module says first, in a sentence, what it owns."""
    docstring = ast.get_docstring(ast.parse(module.read_text())) or ""

    first, _, _ = docstring.partition("\n\n")
    assert first.strip().endswith((".", "::", ":"))


@pytest.mark.timeout(400)  # on a machine that does much else
def test_every_module_can_be_imported_alone() -> None:
    """No module needs another one to have been imported before it."""
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in MODULES]
    script = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
    script += "    for loaded in [m for m in sys.modules if m.startswith('composeplat')]: del sys.modules[loaded]\n"

    done = subprocess.run(
        [sys.executable, "-c", script, *names],
        env=VARIABLES,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""


# rooms ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((ROOT / "composeplat" / "system").glob("*.py")), ids=lambda path: path.stem)
def test_system_knows_no_room_above_it(path: Path) -> None:
    """No module of ``system`` names Compose, Kubernetes or Pulumi, nor a program that goes with them."""
    text = path.read_text().lower().replace("composeplat", "").replace("composing", "")

    assert [word for word in ("compose", "docker", "buildkit", "kube", "pulumi", "cluster") if word in text] == []


@pytest.mark.parametrize("path", sorted((ROOT / "composeplat" / "components").glob("*.py")), ids=lambda path: path.stem)
def test_components_do_not_import_the_package(path: Path) -> None:
    """The package imports components for programs: one that imported the package in turn would close a cycle."""
    imports = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom))

    assert [alias.name for node in imports if node.module == "composeplat" for alias in node.names] == []


# what the page on the architecture claims -----------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "architecture.md").read_text()
ENTRY_ROOMS = ("cli", "components")
"""Only these read the process environment. ``toolchain.pin`` is a script of its own."""


def _rows(page: str) -> set[str]:
    """List the rooms and modules that have a row in the tables of the page."""
    section = page.partition("\n## The rooms\n")[2].partition("\n## ")[0]
    cells = re.findall(r"(?m)^\| (`[^|]*) \|", section)
    return {name for cell in cells for name in re.findall(r"`([a-z_/]+)`", cell)}


def _is_described(path: Path, rows: set[str]) -> bool:
    """A module has a row, or a package within its room has one; one row is for all modules of commands."""
    name = path.relative_to(ROOT / "composeplat").with_suffix("")
    packages = [str(parent) for parent in name.parents if len(parent.parts) > 1]
    is_command = name.parts[0] == "cli" and path.is_file() and "@app.command(" in path.read_text()
    return is_command or not rows.isdisjoint([str(name), *packages])


@pytest.mark.parametrize("path", [path for path in MODULES if path.stem != "__init__"], ids=lambda path: path.stem)
def test_every_module_has_a_row(path: Path) -> None:
    """docs/architecture.md describes each module, and each room."""
    assert _is_described(path, _rows(PAGE))
    assert _room(path).removesuffix(".py") in _rows(PAGE)


def test_every_row_has_a_module() -> None:
    """docs/architecture.md names no room or module that does not exist."""
    package = ROOT / "composeplat"
    missing = {name for name in _rows(PAGE) if not (package / name).is_dir() and not (package / f"{name}.py").is_file()}

    assert len(_rows(PAGE)) > 100
    assert missing == set()


def test_a_missing_row_is_found() -> None:
    """A module without a row, and a row without a module, are found."""
    page = "\n## The rooms\n\n| `cli/app`, `gone` | x |\n\n## Words\n\n| `names` | x |\n"
    room = ROOT / "composeplat" / "cli"

    assert _rows(page) == {"cli/app", "gone"}
    assert [_is_described(room / f"{name}.py", _rows(page)) for name in ("app", "errors", "deploy")] == [
        True,
        False,
        True,
    ]


def _room(path: Path) -> str:
    return path.relative_to(ROOT / "composeplat").parts[0]


def _attributes(path: Path) -> set[str]:
    """List what a module uses of ``os`` and ``sys``, and the names that it uses."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    used = {
        f"{node.value.id}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return used | {node.id for node in nodes if isinstance(node, ast.Name)}


def _users(*names: str) -> set[str]:
    return {str(path.relative_to(ROOT)) for path in MODULES if _attributes(path) & set(names)}


def test_process_environment() -> None:
    """Only the rooms that processes enter read the environment of the process."""
    others = {name for name in _users("os.environ", "os.getenv") if name.split("/")[1] not in ENTRY_ROOMS}

    assert others <= {"composeplat/toolchain/pin.py"}


def test_end_of_the_process() -> None:
    """Only the command line ends the process."""
    others = {
        name for name in _users("sys.exit", "os._exit", "SystemExit", "exit") if not name.startswith("composeplat/cli/")
    }

    assert others <= {"composeplat/toolchain/pin.py"}


def test_named_modules_exist() -> None:
    """The page names no module that is gone."""
    rooms = "|".join(sorted({_room(path) for path in MODULES if _room(path).isidentifier()}))
    named = set(re.findall(rf"`((?:{rooms})/\w+(?:/\w+)*)`", PAGE))

    assert len(named) > 100
    assert [name for name in sorted(named) if not any((ROOT / "composeplat").glob(f"{name}*"))] == []


def test_modules_are_named() -> None:
    """The page has a row for each module; modules of a command or a section have none."""
    tables = ("cli/", "compose/parse/", "engine/operations/")
    modules = [path.relative_to(ROOT / "composeplat").with_suffix("").as_posix() for path in MODULES]
    missing = [name for name in modules if "/" in name and not name.endswith("__init__") and f"`{name}`" not in PAGE]

    assert [name for name in missing if not name.startswith(tables)] == []
