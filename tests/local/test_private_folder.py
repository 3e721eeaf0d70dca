"""A cluster's folder is its user's alone: others can't reach the volumes in it, nor put another in its place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.local.cluster import LocalCluster
from composeplat.local.layout import Layout
from composeplat.local.private_folder import make_private, remove_folder, secure_folder
from composeplat.system.locks import Locked, try_lock


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder(tmp_path: Path) -> None:
    """The folder is made closed, and so is the one it is made in; what was there before stays as it is."""
    tmp_path.chmod(0o755)

    secure_folder(tmp_path / "named" / "cluster", {})

    assert [mode(path) for path in (tmp_path, tmp_path / "named", tmp_path / "named" / "cluster")] == [
        0o755, 0o700, 0o700,
    ]  # fmt: skip


def test_a_folder_of_before(tmp_path: Path) -> None:
    """A cluster's folder that was made open is closed: its volumes are open to all users of containers."""
    (tmp_path / "cluster").mkdir(mode=0o755)

    secure_folder(tmp_path / "cluster", {})

    assert mode(tmp_path / "cluster") == 0o700


@pytest.mark.parametrize("character", ['"', "\\", ":", ",", "\n"])
def test_a_path_that_containerd_can_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, character: str) -> None:
    """A start says so before programs are built: its configuration was broken, or pods could not be mounted."""
    folder = tmp_path / f"a{character}b" / "cluster"
    monkeypatch.setattr("os.geteuid", lambda: 0)
    cluster = LocalCluster(Layout(folder=folder, run=tmp_path / "run"), {})

    with pytest.raises(ComposeplatError, match=r"which containerd can't have in it$"):
        cluster.start()
    assert not folder.parent.exists()


def test_in_a_folder_of_all(tmp_path: Path) -> None:
    """In a folder like /tmp, where nobody can rename what is another's, a cluster can be."""
    tmp_path.chmod(0o1777)

    secure_folder(tmp_path / "named" / "cluster", {})

    assert mode(tmp_path / "named" / "cluster") == 0o700
    assert mode(tmp_path) == 0o1777


def test_below_a_folder_that_anybody_can_change(tmp_path: Path) -> None:
    """Where anybody could put another folder in its place, no cluster is made."""
    (tmp_path / "open" / "named").mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)

    with pytest.raises(ComposeplatError) as caught:
        secure_folder(tmp_path / "open" / "named" / "cluster", {})

    assert str(caught.value) == (
        f"can't use '{tmp_path}/open/named/cluster' for a cluster: any user can write to '{tmp_path}/open'"
    )
    assert caught.value.hint == (
        "name another folder with COMPOSEPLAT_CLUSTER, in one of your own;"
        f" or remove their access: chmod o-w {tmp_path}/open"
    )


@pytest.mark.parametrize(("made", "reason"), [("link", "(not a directory|too many levels.*)"), ("file", "file exists")])
def test_what_is_no_folder(tmp_path: Path, made: str, reason: str) -> None:
    """A link that somebody left there is not followed, and a file is none."""
    place = tmp_path / "cluster"
    if made == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o755)
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.touch()

    with pytest.raises(ComposeplatError, match=f"^can't use '{place}' for a cluster: {reason}$"):
        secure_folder(place, {})

    if made == "link":
        assert mode(tmp_path / "elsewhere") == 0o755


ROOT_ALONE = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away: run the tests as root")


@ROOT_ALONE
def test_a_folder_of_another_user(tmp_path: Path) -> None:
    """A folder that another user made is refused: root would run what lies in it."""
    (tmp_path / "cluster").mkdir(mode=0o700)
    os.chown(tmp_path / "cluster", 65534, 65534)

    with pytest.raises(ComposeplatError, match=r"for a cluster: it belongs to another user$"):
        secure_folder(tmp_path / "cluster", {})


@ROOT_ALONE
def test_in_a_folder_of_another_user(tmp_path: Path) -> None:
    """Its owner could put another folder in its place, so a cluster is refused; who used sudo may do all anyway."""
    (tmp_path / "theirs").mkdir(mode=0o755)
    os.chown(tmp_path / "theirs", 1234, 1234)

    with pytest.raises(ComposeplatError) as caught:
        secure_folder(tmp_path / "theirs" / "named" / "cluster", {"SUDO_UID": "0"})

    assert str(caught.value) == (
        f"can't use '{tmp_path}/theirs/named/cluster' for a cluster: the owner of '{tmp_path}/theirs' can replace it"
    )
    secure_folder(tmp_path / "theirs" / "named" / "cluster", {"SUDO_UID": "1234", "SUDO_GID": "x"})


@ROOT_ALONE
def test_in_a_folder_of_a_group(tmp_path: Path) -> None:
    """A group that can write to a folder above could do so too."""
    (tmp_path / "shared").mkdir()
    os.chown(tmp_path / "shared", 0, 1234)
    (tmp_path / "shared").chmod(0o775)

    with pytest.raises(ComposeplatError, match=rf": a group can write to '{tmp_path}/shared'$") as caught:
        secure_folder(tmp_path / "shared" / "named" / "cluster", {})

    assert caught.value.hint.endswith(f"; or remove its access: chmod g-w {tmp_path}/shared")
    secure_folder(tmp_path / "shared" / "named" / "cluster", {"SUDO_UID": "1234", "SUDO_GID": "1234"})


@ROOT_ALONE
def test_what_another_user_left_in_it(tmp_path: Path) -> None:
    """A link or a file of another user, from when the folder was open, is named and not used."""
    (tmp_path / "cluster").mkdir(mode=0o777)
    (tmp_path / "cluster" / "etc").symlink_to("/etc")
    os.chown(tmp_path / "cluster" / "etc", 1234, 1234, follow_symlinks=False)

    with pytest.raises(ComposeplatError, match=r" for a cluster: 'etc' in it belongs to another user$"):
        secure_folder(tmp_path / "cluster", {})


def test_users_outside_this_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a user namespace, such as of a container without root, folders above seem to be nobody's: nobody is in it."""
    monkeypatch.setattr("composeplat.local.private_folder._is_nobody_here", lambda user: user == os.geteuid())
    monkeypatch.setattr("composeplat.local.private_folder._trusted", lambda _: ({0}, {0}))

    secure_folder(tmp_path / "named" / "cluster", {})

    assert mode(tmp_path / "named" / "cluster") == 0o700


def test_the_folder_of_sockets(tmp_path: Path) -> None:
    """It is closed at once; a link in its place is refused."""
    make_private(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path)

    assert mode(tmp_path / "run") == 0o700
    with pytest.raises(ComposeplatError, match=r"/link' for a cluster: (not a directory|too many levels.*)$"):
        make_private(tmp_path / "link")


def test_a_deletion_keeps_others_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start waits until the data of a cluster is gone: it would be left with a part of it."""
    folder = tmp_path / "clusters" / "cluster"
    layout = Layout(folder=folder, run=tmp_path / "run-of-a-test")
    steps: list[str] = []

    def remove(folder: Path, last: str) -> None:
        with pytest.raises(Locked), try_lock(layout.lock):
            pass
        steps.append(last)
        remove_folder(folder, last)

    monkeypatch.setattr("composeplat.local.cluster.remove_folder", remove)
    LocalCluster(layout, {}).delete()

    assert steps == ["lock"]
    assert not folder.exists()


def test_what_is_removed_last(tmp_path: Path) -> None:
    """The lock of a folder is there as long as anything else in it."""
    folder = tmp_path / "folder"
    (folder / "etcd" / "member").mkdir(parents=True)
    (folder / ".hidden").touch()
    (folder / "lock").touch()

    remove_folder(folder, last="lock")

    assert not folder.exists()
    remove_folder(folder, last="lock")


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    """In the place of a volume there may be a link: what it leads to stays."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "volume").symlink_to("kept")

    remove_folder(tmp_path / "volume")

    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]
