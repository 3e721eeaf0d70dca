"""Files outside the project: each place of a definition that names one is refused, before the file is opened.

Such files were published without a word: ``env_file: ../x`` and ``~/.aws:/aws`` became objects of the cluster, or an
image in the registry.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from composeplat.diagnostics import quoted
from composeplat.system.files import Unreadable, read_bytes
from composeplat.system.project_root import ProjectRoot
from tests.conftest import Folder, Project

CONTENT = "KEY=do-not-publish\n"
WEB = "services: {web: {image: nginx}}\n"


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder beside the project, with files that are not its."""
    folder = tmp_path / "beside"
    folder.mkdir()
    for name in ("a.env", ".env", "Dockerfile"):
        (folder / name).write_text(CONTENT)
    (folder / "more.yaml").write_text("services: {db: {image: postgres}}\n")
    return folder


PLACES = {
    "env file": (
        "services: {web: {image: x, env_file: %s/a.env}}",
        "1:38",
        "services.web.env_file names a file that is",
    ),
    "env file, long form": (
        "services: {web: {image: x, env_file: [{path: %s/a.env, required: false}]}}",
        "1:39",
        "services.web.env_file[0] names a file that is",
    ),
    "host volume": (
        "services: {web: {image: x, volumes: ['%s:/d']}}",
        "1:38",
        "services.web.volumes[0] mounts a host path that is",
    ),
    "host volume, a file": (
        "services: {web: {image: x, volumes: ['%s/a.env:/d']}}",
        "1:38",
        "services.web.volumes[0] mounts a host path that is",
    ),
    "host volume, long form": (
        "services: {web: {image: x, volumes: [{type: bind, source: %s, target: /d}]}}",
        "1:38",
        "services.web.volumes[0] mounts a host path that is",
    ),
    "include": (WEB + "include: [%s/more.yaml]", "2:11", "include[0] names {shown}, which is"),
    "env file of an include": (
        WEB + "include: [{path: more.yaml, env_file: %s/a.env}]",
        "2:39",
        "include[0].env_file names {shown}, which is",
    ),
}


@pytest.mark.parametrize("shown", ["../beside", "{absolute}"])
@pytest.mark.parametrize(("text", "place", "message"), PLACES.values(), ids=PLACES)
def test_what_this_program_would_read(
    text: str, place: str, message: str, shown: str, project: Project, beside: Path
) -> None:
    """A file outside the project is refused where it is named; however that is written."""
    written = shown.replace("{absolute}", str(beside))
    folder = project({"compose.yaml": text.replace("%s", written), "more.yaml": WEB})

    reading = folder.read()

    (found,) = reading.messages
    name = quoted(f"{written}/{'a.env' if 'env_file' in text else 'more.yaml'}")
    assert found.startswith(f"compose.yaml:{place}: error: {message.replace('{shown}', name)} outside the project")
    assert found.endswith("[outside-project]")
    (diagnostic,) = reading.loaded.report.sorted()
    assert f"the project is '{folder.path}'" in diagnostic.hint
    assert "--allow-outside" in diagnostic.hint
    assert "do-not-publish" not in repr(reading)


def test_the_home_folder(project: Project, beside: Path) -> None:
    """What is written with ``~`` is looked for in the home folder, and refused there."""
    folder = project("services: {web: {image: x, volumes: ['~/beside:/d']}}", HOME=str(beside.parent))

    (message,) = folder.read().messages
    assert message == (
        "compose.yaml:1:38: error: services.web.volumes[0] mounts a host path that is outside the project:"
        " '~/beside:/d' [outside-project]"
    )


BUILDS = {
    "context": ("../beside", "1:25", "services.web.build"),
    "Dockerfile": ("{context: ., dockerfile: ../beside/Dockerfile}", "1:50", "services.web.build.dockerfile"),
    "further context": (
        "{context: ., additional_contexts: {a: ../beside}}",
        "1:63",
        "services.web.build.additional_contexts.a",
    ),
    "images in a folder": (
        "{context: ., additional_contexts: {a: 'oci-layout://../beside:v1'}}",
        "1:63",
        "services.web.build.additional_contexts.a",
    ),
    "secret": ("{context: ., secrets: [s]}", "1:48", "services.web.build.secrets[0]"),
    "secret in the long form": ("{context: ., secrets: [{source: s}]}", "1:48", "services.web.build.secrets[0]"),
    "key for ssh": ("{context: ., ssh: ['a=../beside/key']}", "1:44", "services.web.build.ssh[0]"),
    "cache that is read": (
        "{context: ., cache_from: ['type=local,src=../beside']}",
        "1:51",
        "services.web.build.cache_from[0]",
    ),
    "cache with a key in upper case": (
        "{context: ., cache_to: ['type=local,DEST=../beside']}",
        "1:49",
        "services.web.build.cache_to[0]",
    ),
    "cache with quotes": (
        """{context: ., cache_from: ['"type=local","src=../beside"']}""",
        "1:51",
        "services.web.build.cache_from[0]",
    ),
    "cache that is written": (
        "{context: ., cache_to: ['type=local,dest=../beside']}",
        "1:49",
        "services.web.build.cache_to[0]",
    ),
}


@pytest.mark.parametrize(("build", "place", "key"), BUILDS.values(), ids=BUILDS)
def test_what_a_build_would_read(build: str, place: str, key: str, project: Project, beside: Path) -> None:
    """A build neither reads nor writes outside the project; that is reported without a build, by every command."""
    assert beside.is_dir()
    text = f"services: {{web: {{build: {build}}}}}\nsecrets: {{s: {{file: ../beside/a.env}}}}\n"
    folder = project({"compose.yaml": text, "Dockerfile": "FROM x\n"})

    (message,) = [item for item in folder.read().messages if "[outside-project]" in item]

    assert message.startswith(f"compose.yaml:{place}: error: {key} names a path outside the project: '")
    assert "../beside" in message
    assert folder.read(allow_outside=True).messages == [item for item in folder.read().messages if item != message]


def link_env(folder: Folder, beside: Path) -> None:
    (folder.path / ".env").symlink_to(beside / ".env")


def link_definition(folder: Folder, beside: Path) -> None:
    (folder.path / "compose.yaml").unlink()
    (folder.path / "compose.yaml").symlink_to(beside / "more.yaml")


def link_override(folder: Folder, beside: Path) -> None:
    (folder.path / "compose.override.yaml").symlink_to(beside / "more.yaml")


def name_in_env(folder: Folder, beside: Path) -> None:
    folder.write({".env": f"COMPOSE_FILE=compose.yaml:{beside}/more.yaml\n"})


@pytest.mark.parametrize(
    ("arrange", "name"),
    [
        pytest.param(link_env, ".env", id="env file"),
        pytest.param(link_definition, "compose.yaml", id="definition"),
        pytest.param(link_override, "compose.override.yaml", id="override"),
        pytest.param(name_in_env, "{beside}/more.yaml", id="named in the env file"),
    ],
)
def test_what_is_found_by_itself(
    arrange: Callable[[Folder, Path], None], name: str, project: Project, beside: Path
) -> None:
    """What nobody named may be a link: it must lie in the project too."""
    folder = project({"compose.yaml": WEB})
    arrange(folder, beside)
    name = name.replace("{beside}", str(beside))

    assert folder.read().messages == [f"{name}:1:1: error: {quoted(name)} is outside the project [outside-project]"]
    assert folder.read(allow_outside=True).messages == []


def test_who_only_looks(project: Project, beside: Path) -> None:
    """To look at an environment, or to take it down, no file outside is opened, and none is in the way."""
    text = "services: {web: {image: x, env_file: %s/a.env, volumes: ['%s:/d']}, api: {build: %s}}"
    folder = project(text.replace("%s", str(beside)))

    reading = folder.read(publishes=False)

    assert reading.messages == []
    assert "do-not-publish" not in repr(reading)
    assert folder.read().codes == ["outside-project"] * 3


def test_what_the_user_names(project: Project, beside: Path) -> None:
    """Files that the user names may lie anywhere: with an option, or in a variable of the shell."""
    folder = project({"compose.yaml": WEB})
    shell = {"COMPOSE_FILE": f"compose.yaml:{beside}/more.yaml", "COMPOSE_ENV_FILES": f"{beside}/a.env"}

    assert folder.read("compose.yaml", f"{beside}/more.yaml", env_files=(f"{beside}/a.env",)).messages == []
    assert sorted(Folder(folder.path, shell).read().loaded.project.services) == ["db", "web"]


def test_anywhere_in_the_work_tree(project: Project, beside: Path) -> None:
    """A file beside the Compose file's folder is the project's where both are in one git work tree."""
    folder = project("services: {web: {image: nginx, env_file: ../beside/a.env}}")
    (beside.parent / ".git").mkdir()

    assert folder.read().messages == []


@pytest.mark.parametrize(
    ("options", "shell", "status"),
    [
        pytest.param("render", {}, 3, id="not a file of the project"),
        pytest.param("render --allow-outside", {}, 0, id="an option"),
        pytest.param("config --allow-outside", {}, 0, id="an option of config"),
        pytest.param("render", {"PLATFORM_ALLOW_OUTSIDE": "true"}, 0, id="a variable of the shell"),
        pytest.param("render", {"PLATFORM_ALLOW_OUTSIDE": "false"}, 3, id="not a variable that says no"),
    ],
)
def test_who_allows_it(options: str, shell: dict[str, str], status: int, project: Project, beside: Path) -> None:
    """The user alone allows files outside the project: a ``.env`` comes with it."""
    assert beside.is_dir()
    text = "services: {web: {image: nginx, env_file: ../beside/a.env}}"

    ran = project({"compose.yaml": text, ".env": "PLATFORM_ALLOW_OUTSIDE=true\n"}, **shell).run(*options.split())

    assert ran.status == status, ran.stderr
    assert ("[outside-project]" in ran.stderr) is (status == 3)
    assert "do-not-publish" not in ran.stderr


@pytest.mark.parametrize("source", ["/srv", "~", ".."])
def test_a_large_folder_is_not_walked(
    source: str, project: Project, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder outside the project is refused without a look at what is in it."""
    folder = project(f"services: {{web: {{image: nginx, volumes: ['{source}:/d']}}}}", HOME=str(beside.parent))
    listed: list[str] = []
    scan = os.scandir

    def scandir(path: str) -> object:
        listed.append(os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    (message,) = folder.read().messages

    assert message.endswith(f"mounts a host path that is outside the project: '{source}:/d' [outside-project]")
    assert listed == []


def test_a_link_that_comes_in_between(tmp_path: Path, beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that a link takes the place of, after it was looked at and before it is opened, is not read."""
    folder = tmp_path / "demo"
    folder.mkdir()
    file = folder / "a.env"
    file.write_text("A=1\n")
    opened = os.open

    def swapped(path: Path, flags: int) -> int:
        file.unlink()
        file.symlink_to(beside / "a.env")
        return opened(path, flags)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(Unreadable, match="is outside the project"):
        read_bytes(file, limit=100, root=ProjectRoot(str(folder)))
