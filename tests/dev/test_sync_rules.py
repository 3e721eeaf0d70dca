"""Host volumes as sync paths, and the grammar of ignore files."""

from __future__ import annotations

import pytest

from composeplat.compose.model import ANONYMOUS, HOST, NAMED, Mount, Service
from composeplat.dev.sync_rules import (
    ALWAYS_IGNORED,
    HostKind,
    SyncPath,
    plan_sync,
    read_stignore,
    with_ignore_files,
)

GIT = "**/.[gG][iI][tT]"


def host(source: str, target: str, *, read_only: bool = False) -> Mount:
    return Mount(kind=HOST, source=source, target=target, read_only=read_only)


def service(*mounts: Mount) -> Service:
    return Service(name="web", mounts=mounts)


def test_a_folder_is_a_sync_path() -> None:
    """A host folder is synced to where it is mounted, without its history."""
    expected = (SyncPath(local="/src", remote="/app", within="/src", ignores=(GIT,)),)
    assert expected == plan_sync(service(host("/src", "/app")), {"/src": HostKind.FOLDER})


def test_a_file_is_a_sync_path() -> None:
    """A single file is synced as one."""
    paths = plan_sync(service(host("/src/nginx.conf", "/etc/nginx.conf")), {"/src/nginx.conf": HostKind.FILE})
    assert [(path.remote, path.is_file) for path in paths] == [("/etc/nginx.conf", True)]


def test_special_files_are_left_out() -> None:
    """A socket, or a path that is not there, can't be synced."""
    assert plan_sync(service(host("/run/x.sock", "/x.sock")), {"/run/x.sock": None}) == ()


def test_a_read_only_mount_goes_one_way() -> None:
    """What may not be changed in the container is not brought back."""
    (path,) = plan_sync(service(host("/src", "/app", read_only=True)), {"/src": HostKind.FOLDER})
    assert path.one_way


def test_a_part_of_a_folder_is_synced_with_it() -> None:
    """A host path that the folder has at the same place anyway is not synced a second time."""
    kinds = {"/src": HostKind.FOLDER, "/src/conf": HostKind.FOLDER}
    paths = plan_sync(service(host("/src", "/app"), host("/src/conf", "/app/conf")), kinds)
    assert [(path.remote, path.ignores) for path in paths] == [("/app", (GIT,))]


def test_another_folder_below_is_synced_by_itself() -> None:
    """A host path that comes from elsewhere is left out of the folder that it is mounted in."""
    kinds = {"/src": HostKind.FOLDER, "/other": HostKind.FOLDER}
    paths = plan_sync(service(host("/src", "/app"), host("/other", "/app/conf")), kinds)
    expected = [("/app", (GIT, "conf")), ("/app/conf", (GIT,))]
    assert expected == [(path.remote, path.ignores) for path in paths]


@pytest.mark.parametrize("kind", [pytest.param(NAMED, id="named"), pytest.param(ANONYMOUS, id="anonymous")])
def test_a_volume_below_a_folder_is_left_out_of_it(kind: str) -> None:
    """What a volume holds, such as installed packages, is not overwritten from here."""
    mount = Mount(kind=kind, source="modules", target="/app/node_modules/")
    (path,) = plan_sync(service(host("/src", "/app"), mount), {"/src": HostKind.FOLDER})
    assert path.ignores == (GIT, "node_modules")


def test_a_sibling_with_the_same_beginning_is_not_below() -> None:
    """``/app-data`` is not in ``/app``."""
    mount = Mount(kind=NAMED, source="data", target="/app-data")
    (path,) = plan_sync(service(host("/src", "/app"), mount), {"/src": HostKind.FOLDER})
    assert path.ignores == (GIT,)


def test_marks_of_patterns_in_a_path_stand_for_themselves() -> None:
    """A folder whose name has a star in it is left out by that name alone."""
    mount = Mount(kind=NAMED, source="data", target="/app/a*[b]")
    (path,) = plan_sync(service(host("/src", "/app"), mount), {"/src": HostKind.FOLDER})
    assert path.ignores == (GIT, "a\\*\\[b\\]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("node_modules", ["**/node_modules"], id="everywhere"),
        pytest.param("/build", ["build"], id="anchored"),
        pytest.param("logs/", ["**/logs"], id="folder"),
        pytest.param("(?d)*.tmp", ["**/*.tmp"], id="a-flag-without-a-meaning-here"),
        pytest.param("(?d)(?i)*.tmp", ["**/*.[tT][mM][pP]"], id="any-case"),
        pytest.param("(?i)/Ä\\a[^b-d]{x,1}", ["[Ää]\\a[^b-dB-D][xX]", "[Ää]\\a[^b-dB-D]1"], id="any-case-of-parts"),
        pytest.param("!keep\n*", ["**/*", "!**/keep"], id="first-fits"),
        pytest.param("!(?i)keep", ["!**/[kK][eE][eE][pP]"], id="flag-after-negation"),
        pytest.param("// note\n# note\n\nx", ["**/x"], id="comments"),
        pytest.param("*.{o,so}", ["**/*.o", "**/*.so"], id="choice"),
        pytest.param("{a,b}/{c,d}", ["**/a/c", "**/a/d", "**/b/c", "**/b/d"], id="two-choices"),
        pytest.param("**/deep", ["**/deep"], id="deep-already"),
        pytest.param("{a,b}" * 9, ["**/" + "{a,b}" * 9], id="too-many-choices"),
    ],
)
def test_stignore_patterns_become_dockers(text: str, expected: list[str]) -> None:
    """The same files are meant, in the grammar and order of the other."""
    assert expected == read_stignore(text)


def test_the_file_about_syncing_wins() -> None:
    """What ``.dockerignore`` leaves out of builds can be brought back for developing."""
    path = with_ignore_files(
        SyncPath(local="/src", remote="/app", ignores=(GIT,)), {".dockerignore": "tests", ".stignore": "!/tests"}
    )
    assert path.ignores == (GIT, "tests", "!tests", *ALWAYS_IGNORED)


def test_links_are_followed_no_further_than_a_container_may_have_put_them() -> None:
    """In the project and in what is synced no link is followed; the way there, and a file elsewhere, are the user's."""
    mounts = (
        host("/p/app", "/app"),
        host("/p/app/sub", "/sub"),
        host("/p/f", "/f"),
        host("/o/d", "/o"),
        host("/e", "/e"),
    )
    kinds = dict.fromkeys(("/p/app", "/p/app/sub", "/o/d"), HostKind.FOLDER) | dict.fromkeys(
        ("/p/f", "/e"), HostKind.FILE
    )
    paths = plan_sync(service(*mounts), kinds, ("/p",))
    assert {path.local: path.within for path in paths} == {
        "/p/app": "/p", "/p/app/sub": "/p", "/p/f": "/p", "/o/d": "/o/d", "/e": "",
    }  # fmt: skip


def test_ignore_files_are_never_synced() -> None:
    """A container that changed them would decide what is brought here; no pattern of theirs brings them back."""
    path = with_ignore_files(SyncPath(local="/s", remote="/a"), {".stignore": "!.stignore\n!.dockerignore"})
    assert path.ignores[-2:] == ALWAYS_IGNORED
