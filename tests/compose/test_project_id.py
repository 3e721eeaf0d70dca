"""Which project an environment was made from: clones are one project, other folders of the same name are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.compose.project_id import Machine, local_remote, normal_remote, project_id

HERE, THERE = Machine(id="m-1", host="ada"), Machine(id="m-2", host="bob")
URL = "https://github.com/acme/shop.git"


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/acme/shop.git",
        "https://github.com/acme/shop",
        "https://github.com/acme/shop/",
        "https://GitHub.com:443/acme//shop.git/",
        "https://x-access-token:ghs_secret@github.com/acme/shop.git",
        "https://ann:a[b#c?d@e@github.com/acme/shop.git",
        "git@github.com:acme/shop.git",
        "github.com:acme/shop",
        "git@github.com:/acme/shop.git",
        "ssh://git@github.com/acme/shop.git",
        "ssh://git@github.com:22/acme/shop.git",
        "git://github.com/acme/shop",
    ],
)
def test_spellings_of_one_remote(remote: str) -> None:
    """However a remote is written and anyone who's credentials are in it, it is the same one."""
    assert normal_remote(remote) == "github.com/acme/shop"


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("ssh://git@git.example.com:2222/acme/shop", "git.example.com:2222/acme/shop"),
        ("https://github.com/Acme/shop", "github.com/Acme/shop"),
        ("https://host/a%20b", "host/a b"),
        ("git@[2001:db8::1]:acme/shop.git", "[2001:db8::1]/acme/shop"),
        ("https://host:port/a", "host/a"),
        ("https://[host/a", "host/a"),
        ("ssh://host:" + "9" * 5000 + "/a", "host/a"),
    ],
)
def test_other_remotes(remote: str, expected: str) -> None:
    """Another port, host or path is another repository."""
    assert normal_remote(remote) == expected


@pytest.mark.parametrize(
    "remote", ["/srv/git/shop.git", "../shop.git", "file:///srv/git/shop.git", "./a:b", "", "https://host", "host:"]
)
def test_remotes_of_this_machine(remote: str) -> None:
    """A path of this machine says nothing elsewhere."""
    assert normal_remote(remote) == ""


@pytest.mark.parametrize(
    ("remote", "path"),
    [
        ("/srv/shop.git", "/srv/shop.git"),
        ("../shop.git", "/work/shop.git"),
        ("file:///srv/a%20b", "/srv/a b"),
        ("file://[/a", "/a"),
    ],
)
def test_local_remote(remote: str, path: str) -> None:
    """A relative path is from the work tree."""
    assert local_remote(remote, Path("/work/clone")) == Path(path)


def test_one_project_on_two_machines() -> None:
    """Two clones are one project, wherever they lie and however they were cloned."""
    here = project_id(Path("/home/ada/shop"), HERE, work_tree=Path("/home/ada/shop"), remote=URL)
    there = project_id(Path("/srv/x"), THERE, work_tree=Path("/srv/x"), remote="git@github.com:acme/shop.git")

    assert here == there
    assert here.description == "github.com/acme/shop"


def test_two_folders_of_one_repository() -> None:
    """Folders of one repository are projects of their own, also where they have the same name."""
    tree = Path("/home/ada/all")
    first, second = (project_id(tree / name / "app", HERE, work_tree=tree, remote=URL) for name in "ab")

    assert first.key != second.key
    assert (first.description, second.description) == (
        "github.com/acme/shop, folder a/app", "github.com/acme/shop, folder b/app",
    )  # fmt: skip


def test_two_folders_of_one_name() -> None:
    """Without a repository the machine and the whole path count, and only the path's end is reported."""
    first, second = (project_id(Path(f"/home/ada/secret/{name}/app"), HERE) for name in "ab")

    assert first.key != second.key
    assert (first.description, second.description) == ("a/app on ada", "b/app on ada")
    assert "secret" not in f"{first}{second}"


def test_one_path_on_two_machines() -> None:
    """The same path elsewhere is another project."""
    assert project_id(Path("/app"), HERE).key != project_id(Path("/app"), THERE).key


def test_a_repository_without_a_remote() -> None:
    """A repository that was never pushed is reported by its path, as a folder is."""
    tree = Path("/home/ada/shop")

    assert project_id(tree, HERE, work_tree=tree) == project_id(tree, HERE)


def test_clones_of_a_path() -> None:
    """Clones of a repository on this machine are one project here, and another one elsewhere."""
    ids = [
        project_id(Path(tree), machine, work_tree=Path(tree), remote=remote)
        for tree, machine, remote in (
            ("/a/shop", HERE, "/srv/shop.git"),
            ("/b/shop", HERE, "file:///srv/shop.git"),
            ("/a/shop", THERE, "/srv/shop.git"),
        )
    ]

    assert ids[0] == ids[1]
    assert ids[0].key != ids[2].key
    assert ids[0].description == "srv/shop.git on ada"


def test_a_folder_of_the_system() -> None:
    """The root of all folders has a description too."""
    assert project_id(Path("/"), HERE).description == "/ on ada"
