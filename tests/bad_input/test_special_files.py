"""What is no ordinary file, in every place that names one: refused before it is read, without waiting."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from composeplat.compose.load import load
from composeplat.compose.load.build_inputs import check_builds
from composeplat.compose.options import Request
from composeplat.plan import make_plan
from tests.conftest import Folder, Project, Reading

SERVICES = "services: {web: {image: nginx}}\n"
NOBODY = 65534
LONG = f"./{'n' * 300}/app"


def make_folder(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    # A socket's path must be short: it is bound from where it stands.
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def link_to(target: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.symlink_to(target)

    return make


def make_nothing(path: Path) -> None:
    assert not path.exists()


SYSTEM = "is a file of the system, not of a project"
KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a folder": (make_folder, "is a folder, not a file"),
    "a pipe": (make_pipe, "is not an ordinary file"),
    "a socket": (make_socket, "is not an ordinary file"),
    "a device without end": (link_to("/dev/zero"), SYSTEM),
    "a terminal": (link_to("/dev/tty"), SYSTEM),
    "the process's own environment": (link_to("/proc/self/environ"), SYSTEM),
    "a link to itself": (link_to("odd"), "can't be read (too many levels of symbolic links)"),
    "nothing": (make_nothing, "does not exist"),
}


def as_definition(folder: Folder) -> Reading:
    return folder.read("odd")


def as_override(folder: Folder) -> Reading:
    return folder.write({"compose.yaml": SERVICES}).read("compose.yaml", "odd")


def as_named_env_file(folder: Folder) -> Reading:
    return folder.write({"compose.yaml": SERVICES}).read(env_files=("odd",))


def as_env_file(folder: Folder) -> Reading:
    return folder.write({"compose.yaml": "services: {web: {image: nginx, env_file: odd}}"}).read()


def as_include(folder: Folder) -> Reading:
    return folder.write({"compose.yaml": SERVICES + "include: [odd]"}).read()


def as_env_file_of_include(folder: Folder) -> Reading:
    text = SERVICES + "include: [{path: more.yaml, env_file: odd}]"
    return folder.write({"compose.yaml": text, "more.yaml": "services: {db: {image: postgres}}"}).read()


ROLES: dict[str, tuple[Callable[[Folder], Reading], str]] = {
    "definition": (as_definition, "odd:1:1: error: 'odd' {reason} [unreadable-file]"),
    "override": (as_override, "odd:1:1: error: 'odd' {reason} [unreadable-file]"),
    "named env file": (as_named_env_file, "odd:1:1: error: 'odd' {reason} [unreadable-file]"),
    "env file of a service": (
        as_env_file,
        "compose.yaml:1:42: error: services.web.env_file names a file that {reason}: 'odd' [unreadable-file]",
    ),
    "include": (
        as_include,
        "compose.yaml:2:11: error: include[0] names 'odd', which {reason} [unreadable-file]",
    ),
    "env file of an include": (
        as_env_file_of_include,
        "compose.yaml:2:39: error: include[0].env_file names 'odd', which {reason} [unreadable-file]",
    ),
}
#: A link is followed before its place is left.
OUTSIDE = "compose.yaml:2:39: error: include[0].env_file names 'odd', which is outside the project [outside-project]"


@pytest.mark.parametrize(("make", "reason"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("read", "message"), ROLES.values(), ids=ROLES)
def test_refused(
    make: Callable[[Path], None], reason: str, read: Callable[[Folder], Reading], message: str, project: Project
) -> None:
    """The file is refused with its reason, at the place that names it."""
    folder = project({})
    make(folder.path / "odd")

    is_outside = read is as_env_file_of_include and reason == SYSTEM
    expected = [OUTSIDE if is_outside else message.format(reason=reason)]
    assert expected == read(folder).messages


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("nothing", "a link to itself", "a folder")])
def test_env_file_beside_the_definition(kind: str, project: Project) -> None:
    """A ``.env`` that is no ordinary file is refused too; a folder is none, as in Compose."""
    make, reason = KINDS[kind]
    folder = project(SERVICES)
    make(folder.path / ".env")

    expected = [f".env:1:1: error: '.env' {reason} [unreadable-file]"]
    assert expected == folder.read().messages


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/dev/zero", SYSTEM),
        ("/proc/self/environ", SYSTEM),
        ("/proc/self/../self/mem", SYSTEM),
        ("/sys/kernel/notes", SYSTEM),
        ("/dev/../dev/./stdin", SYSTEM),
        ("a\0b", "is not a possible path"),
        ("a" * 5000, "can't be read (file name too long)"),
        ("compose.yaml/below", "does not exist"),
    ],
)
def test_paths_of_the_system(path: str, reason: str, project: Project) -> None:
    """A path of the system is refused by what it leads to, however it is written."""
    folder = project({"compose.yaml": SERVICES + f"include: [{path!r}]".replace("\\x00", "\\0").replace("'", '"')})

    (message,) = folder.read().messages

    assert message.startswith("compose.yaml:2:11: error: include[0] names '")
    assert message.endswith(f", which {reason} [unreadable-file]")


HOST_VOLUMES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (make_pipe, "is a socket, pipe or device, not a file"),
    "a socket": (make_socket, "is a socket, pipe or device, not a file"),
    "a device": (link_to("/dev/zero"), "leads to a system path"),
    "the process's own environment": (link_to("/proc/self/environ"), "leads to a system path"),
    "a link to itself": (link_to("odd"), "can't be read (too many levels of symbolic links)"),
    "a link out of the folder": (link_to("../beside"), "is outside the project"),
}


@pytest.mark.parametrize(("make", "reason"), HOST_VOLUMES.values(), ids=HOST_VOLUMES)
def test_host_volume(make: Callable[[Path], None], reason: str, project: Project) -> None:
    """A host volume that is no file or folder of the project is refused."""
    folder = project('services: {web: {image: nginx, volumes: ["./odd:/odd"]}}')
    (folder.path.parent / "beside").write_text("not yours\n")
    make(folder.path / "odd")

    expected = [
        (
            f"compose.yaml:1:42: error: services.web.volumes[0] mounts a host path that {reason}: './odd:/odd'"
            f" [{'outside-project' if 'outside' in reason else 'forbidden-path'}]"
        )
    ]
    assert expected == folder.read().messages


@pytest.mark.parametrize(
    "path", ["/", "/proc", "/proc/self/environ", "/var/run/docker.sock", "/dev/zero", "/etc/passwd", "/sys/../etc"]
)
def test_host_volume_of_the_system(path: str, project: Project) -> None:
    """A host volume of a system path is refused before anyone looks at it."""
    text = f'services: {{web: {{image: nginx, volumes: ["{path}:/odd"]}}}}'

    expected = [
        (
            "compose.yaml:1:42: error: services.web.volumes[0] mounts a system path of this machine:"
            f" '{path}:/odd' [forbidden-path]"
        )
    ]
    assert expected == project(text).read().messages


def test_host_volume_of_a_project_in_a_folder_of_the_system(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace below `/var/lib`, as Jenkins has it, is a project as any other; what is beside it is not read."""
    text = 'services: {web: {image: nginx, volumes: ["./conf:/a", "../beside:/b"]}}'
    folder = project({"compose.yaml": text, "conf/a": "x"})
    (folder.path.parent / "beside").write_text("not yours\n")
    monkeypatch.setattr("composeplat.system.files.SYSTEM_PATHS", (str(folder.path.parent),))

    expected = [
        (
            "compose.yaml:1:55: error: services.web.volumes[1] mounts a system path of this machine: '../beside:/b'"
            " [forbidden-path]"
        )
    ]
    assert expected == folder.read().messages


def test_host_volume_that_is_missing(project: Project) -> None:
    """A host path that is not there is an error, and is not made."""
    folder = project('services: {web: {image: nginx, volumes: ["./odd:/odd"]}}')

    expected = [
        (
            "compose.yaml:1:42: error: services.web.volumes[0] mounts a host path that does not exist: './odd:/odd'"
            " [missing-path]"
        )
    ]
    assert expected == folder.read().messages
    assert not (folder.path / "odd").exists()


INSIDE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (make_pipe, "holds 'odd', a socket, pipe or device"),
    "a socket": (make_socket, "holds 'odd', a socket, pipe or device"),
    "a link to itself": (link_to("odd"), "holds 'odd', a broken or cyclic link"),
    "a link to nothing": (link_to("none"), "holds 'odd', a broken or cyclic link"),
    "a link to its own folder": (link_to("."), "holds 'odd', a broken or cyclic link"),
    "a link out of the folder": (link_to("../../beside"), "holds 'odd', a link to a file outside the project"),
    "a link to a system file": (link_to("/etc/passwd"), "holds 'odd', a link to a file outside the project"),
    "a device": (link_to("/dev/zero"), "holds 'odd', a link to a file outside the project"),
}


@pytest.mark.parametrize(("make", "reason"), INSIDE.values(), ids=INSIDE)
def test_inside_a_host_volume(make: Callable[[Path], None], reason: str, project: Project) -> None:
    """A folder that holds what must not be read is refused, with the name of it."""
    folder = project({"compose.yaml": 'services: {web: {image: nginx, volumes: ["./conf:/odd"]}}', "conf/a": "a\n"})
    (folder.path.parent / "beside").write_text("not yours\n")
    make(folder.path / "conf" / "odd")

    expected = [
        (
            f"compose.yaml:1:42: error: services.web.volumes[0] mounts a host path that {reason}: './conf:/odd'"
            f" [{'outside-project' if 'outside' in reason else 'forbidden-path'}]"
        )
    ]
    assert expected == folder.read().messages


@pytest.mark.parametrize("make", [make for make, _ in INSIDE.values()], ids=INSIDE)
def test_what_is_not_published_is_no_error(make: Callable[[Path], None], project: Project) -> None:
    """A link that a container had put into a folder made `down` and `destroy` refuse the definition."""
    folder = project({"compose.yaml": 'services: {web: {image: nginx, volumes: ["./conf:/odd"]}}', "conf/a": "a\n"})
    make(folder.path / "conf" / "odd")
    loaded = load(Request(folder=folder.path, publishes=False))
    assert not loaded.report.errors
    assert make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report).services
    assert not loaded.report.errors


def test_link_on_the_way_to_a_host_volume(project: Project) -> None:
    """A path that leaves the project by a link in its middle is refused as one at its end is."""
    folder = project('services: {web: {image: nginx, volumes: ["./way/secret:/odd"]}}')
    outside = folder.path.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("not yours\n")
    (folder.path / "way").symlink_to(outside)

    expected = [
        (
            "compose.yaml:1:42: error: services.web.volumes[0] mounts a host path that is outside the project:"
            " './way/secret:/odd' [outside-project]"
        )
    ]
    assert expected == folder.read().messages


def test_name_that_is_no_text(project: Project) -> None:
    """A file whose name is not UTF-8 can't be named in a manifest."""
    folder = project({"compose.yaml": 'services: {web: {image: nginx, volumes: ["./conf:/odd"]}}', "conf/a": "a\n"})
    (folder.path / "conf" / os.fsdecode(b"\xff")).touch()

    expected = [
        (
            "compose.yaml:1:42: error: services.web.volumes[0] mounts a host path that holds a file whose name is not"
            " UTF-8 text: './conf:/odd' [forbidden-path]"
        )
    ]
    assert expected == folder.read().messages


# what this user may not read ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """Be a user who may read nothing of the folder, where we are one who may read everything."""
    us = os.geteuid()
    if us == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(us)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "services: {web: {image: nginx, env_file: odd}}",
            (
                "<stdin>:1:42: error: services.web.env_file names a file that may not be read by this user: 'odd'"
                " [unreadable-file]"
            ),
        ),
        (
            "include: [odd]\n" + SERVICES,
            "<stdin>:1:11: error: include[0] names 'odd', which may not be read by this user [unreadable-file]",
        ),
        (
            'services: {web: {image: nginx, volumes: ["./odd:/odd"]}}',
            (
                "<stdin>:1:42: error: services.web.volumes[0] mounts a host path that may not be read by this user:"
                " './odd:/odd' [forbidden-path]"
            ),
        ),
    ],
)
def test_no_permission(text: str, message: str, project: Project) -> None:
    """A file that this user may not read is an error that says so."""
    folder = project({"odd": "A=b\n"})
    (folder.path / "odd").chmod(0)
    folder.path.chmod(0o700)

    with without_rights():
        messages = folder.read("-", standard_input=text.encode()).messages

    expected = [message]
    assert expected == messages


@pytest.mark.parametrize(
    ("build", "rights", "message"),
    [
        ("./app", without_rights, "names a folder that may not be read by this user: './app'"),
        (LONG, contextlib.nullcontext, f"names a folder that can't be read (file name too long): '{LONG[:59]}…'"),
    ],
)
def test_a_build_context_that_may_not_be_looked_at(
    build: str, rights: Callable[[], AbstractContextManager[None]], message: str, project: Project
) -> None:
    """A build context in a folder that this user may not open, as root has made it, is an error that says so."""
    folder = project({"compose.yaml": f"services: {{web: {{build: {build}}}}}", "app/Dockerfile": ""})
    loaded = folder.read().loaded
    builds = {name: service.build for name, service in loaded.project.services.items() if service.build}
    folder.path.chmod(0o700)

    with rights():
        check_builds(builds, loaded.origins, loaded.report)

    (error,) = loaded.report.sorted()
    assert (error.message, error.hint) == (f"services.web.build {message}", "")


def test_a_database_in_a_folder_that_may_not_be_looked_at(project: Project) -> None:
    """A built service can mount a database of a folder that a container has made for root alone."""
    text = "services: {web: {build: ., volumes: ['./data/app.db:/app.db']}}"
    folder = project({"data/app.db": "", "Dockerfile": ""})
    folder.path.chmod(0o700)

    with without_rights():
        messages = folder.read("-", standard_input=text.encode()).messages

    assert messages == []


def refusing(function: Callable[..., Any], refused: Path) -> Callable[..., Any]:
    """Let a function of the system fail for one path: tests may run as a user who may read everything."""

    def call(path: Any, *args: Any) -> Any:
        if path == refused:
            raise PermissionError(errno.EACCES, "refused")
        return function(path, *args)

    return call


def test_no_permission_within_a_host_volume(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may not be read is named: the folder, as a container may have made it, or a file in it."""
    text = "services: {web: {image: nginx, volumes: ['./data:/data', './conf:/conf', './data:/ro:ro']}}"
    folder = project({"data/a": "", "conf/a": "", "conf/b": ""})
    for name, refused in (("scandir", folder.path / "data"), ("open", folder.path / "conf" / "b")):
        monkeypatch.setattr(os, name, refusing(getattr(os, name), refused))

    found = folder.read("-", standard_input=text.encode()).loaded.report.sorted()

    assert [(error.message.partition(" that ")[2], error.hint) for error in found] == [
        (
            "may not be read by this user: './data:/data'",
            (
                "to keep data: 'data:/data', with 'data:' under the top-level 'volumes'; to ship files:"
                " make them readable, they are copied, read-only"
            ),
        ),
        ("holds 'b', which may not be read by this user: './conf:/conf'", "take it out of the folder"),
        ("may not be read by this user: './data:/ro:ro'", "make it readable"),
    ]


def test_no_permission_to_look_around(project: Project) -> None:
    """Where this user may not look, there is no definition."""
    folder = project(SERVICES)
    folder.path.chmod(0)

    with without_rights(), pytest.raises(Exception, match="no Compose file here or in a folder above"):
        folder.read()

    folder.path.chmod(0o700)


@pytest.mark.parametrize("args", [("-f", "odd"), ("--env-file", "odd", "-f", "compose.yaml")])
def test_the_command_does_not_wait_for_a_pipe(args: tuple[str, ...], project: Project) -> None:
    """Nobody writes into the pipe, and the command ends at once."""
    folder = project(SERVICES)
    os.mkfifo(folder.path / "odd")

    outcome = folder.run("render", *args, timeout=60).assert_invalid()

    assert outcome.stderr == "odd:1:1: error: 'odd' is not an ordinary file [unreadable-file]\n1 error\n"
