"""A cluster's folder is its user's alone: others can't reach the volumes in it, nor put another in its place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.local.private_folder import secure_folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder(tmp_path: Path) -> None:
    """The folder is made closed, and so is the one it is made in; what was there before stays as it is."""
    tmp_path.chmod(0o755)

    secure_folder(tmp_path / "named" / "cluster")

    assert [mode(path) for path in (tmp_path, tmp_path / "named", tmp_path / "named" / "cluster")] == [
        0o755, 0o700, 0o700,
    ]  # fmt: skip


def test_a_folder_of_before(tmp_path: Path) -> None:
    """A cluster's folder that was made open is closed: its volumes are open to all users of containers."""
    (tmp_path / "cluster").mkdir(mode=0o755)

    secure_folder(tmp_path / "cluster")

    assert mode(tmp_path / "cluster") == 0o700


def test_in_a_folder_of_all(tmp_path: Path) -> None:
    """In a folder like /tmp, where nobody can rename what is another's, a cluster can be."""
    tmp_path.chmod(0o1777)

    secure_folder(tmp_path / "named" / "cluster")

    assert mode(tmp_path / "named" / "cluster") == 0o700
    assert mode(tmp_path) == 0o1777


def test_below_a_folder_that_anybody_can_change(tmp_path: Path) -> None:
    """Where anybody could put another folder in its place, no cluster is made."""
    (tmp_path / "open" / "named").mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)

    with pytest.raises(ComposeplatError) as caught:
        secure_folder(tmp_path / "open" / "named" / "cluster")

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
        secure_folder(place)

    if made == "link":
        assert mode(tmp_path / "elsewhere") == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away: run the tests as root")
def test_a_folder_of_another_user(tmp_path: Path) -> None:
    """A folder that another user made is refused: root would run what lies in it."""
    (tmp_path / "cluster").mkdir(mode=0o700)
    os.chown(tmp_path / "cluster", 65534, 65534)

    with pytest.raises(ComposeplatError, match=r"for a cluster: it belongs to another user$"):
        secure_folder(tmp_path / "cluster")
