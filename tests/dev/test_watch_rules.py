"""The rules of `develop.watch` as folders: which patterns count, and where a file is in the container."""

from __future__ import annotations

import pytest

from composeplat.compose.dockerignore import IgnoreRules
from composeplat.compose.model import HOST, NAMED, Build, Mount, Service
from composeplat.compose.watch_model import WatchAction, WatchRule
from composeplat.dev.watch_rules import WatchedFolder, make_watched_folder, relocate_patterns

SYNC = WatchRule(action=WatchAction.SYNC, path="/shop/web/src", target="/app")
GIT = "**/.[gG][iI][tT]"


def folder(
    rule: WatchRule = SYNC, *mounts: Mount, build: Build | None = None, is_file: bool = False, dockerignore: str = ""
) -> WatchedFolder:
    service = Service(name="web", build=build, mounts=mounts)
    return make_watched_folder(service, rule, is_file=is_file, dockerignore=dockerignore, project=("/shop",))


def own(found: WatchedFolder) -> tuple[str, ...]:
    """The patterns before those of editors and git."""
    return found.ignores[: found.ignores.index("**/*~")]


def test_a_folder_is_copied_below_its_target() -> None:
    """A path in the folder is one below the target, with and without a final slash; links in the project are links."""
    found = folder()

    assert (found.local, found.within, found.in_container("a/b")) == ("/shop/web/src", "/shop", "/app/a/b")
    assert found.ignores[-1] == GIT


@pytest.mark.parametrize(
    ("target", "expected"),
    [pytest.param("/etc/app.conf", "/etc/app.conf", id="a-name"), pytest.param("/etc/", "/etc/a[1].conf", id="folder")],
)
def test_a_file_is_copied_to_its_target(target: str, expected: str) -> None:
    """Of the folder of a file only the file counts; a target with a final slash is a folder."""
    found = folder(WatchRule(action=WatchAction.SYNC, path="/shop/a[1].conf", target=target), is_file=True)

    assert (found.local, found.in_container("a[1].conf")) == ("/shop", expected)
    assert own(found) == ("**", "!a\\[1\\].conf")


def test_patterns_of_a_rule() -> None:
    """The rule's own patterns come after those of .dockerignore, so that they win."""
    rule = WatchRule(
        action=WatchAction.REBUILD, path="/shop/web", ignore=("./gen/", "!gen/kept"), include=("./*.py", "**/x/")
    )
    found = folder(rule, build=Build(context="/shop/web"), dockerignore="# no\n\n*.md\r\n!/README.md\n")

    assert own(found) == ("*.md", "!README.md", "gen", "!gen/kept")
    assert found.includes == ("*.py", "**/x")


def test_files_of_editors_are_left_out() -> None:
    """What vim, Emacs and PyCharm write beside a file is no change of the folder; names that look like it are."""
    rules = IgnoreRules.parse(folder().ignores)
    names = ["a~", "b/.a.py.swp", "4913", ".#a", "#a#", "a.py___jb_tmp___", ".idea", ".git"]

    assert [
        name for name in [*names, ".a.swap", "a.swp", "#a", "a#", ".gitignore"] if rules.ignores(rules.match(name))
    ] == names


def test_volumes_below_the_target_are_left_out() -> None:
    """A sync does not write into volumes below its target; a host volume of a built service is none."""
    mounts = (
        Mount(kind=NAMED, source="m", target="/app/node_modules/"),
        Mount(kind=HOST, source="/x", target="/app/h"),
    )

    assert own(folder(SYNC, *mounts, build=Build(context="/other"))) == ("node_modules",)
    assert own(folder(SYNC, *mounts)) == ("h", "node_modules")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param("*.md", [], id="only-at-the-top"),
        pytest.param("**/*.md", ["**/*.md"], id="anywhere"),
        pytest.param("web/src/gen", ["gen"], id="by-its-path"),
        pytest.param("*/src/*.md", ["*.md"], id="by-a-wildcard"),
        pytest.param("web", ["**"], id="all-of-it"),
        pytest.param("**/src", ["**", "**/src"], id="all-of-it-by-its-name"),
        pytest.param("!web/src/kept", ["!kept"], id="not-ignored"),
        pytest.param("/web/./src/a", ["a"], id="cleaned"),
        pytest.param("api/src", [], id="another-folder"),
        pytest.param("**/src/**/x", ["**/src/**/x", "**/x"], id="several"),
    ],
)
def test_patterns_of_a_folder_above(pattern: str, expected: list[str]) -> None:
    """What a pattern of the build context means in a folder of it."""
    assert sorted(relocate_patterns([pattern], "/shop", "/shop/web/src")) == sorted(expected)


def test_patterns_of_other_folders() -> None:
    """Patterns of a context below the folder begin with its path, and those of a folder beside it don't count."""
    assert relocate_patterns(["*.md", "!a"], "/shop/web", "/shop") == ["web/*.md", "!web/a"]
    assert relocate_patterns(["*.md"], "/shop/web", "/shop/api") == []
    assert relocate_patterns(["*.md"], "/shop/web/", "/shop/web") == ["*.md"]
