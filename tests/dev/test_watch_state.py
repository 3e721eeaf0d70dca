"""What a watch remembers: the files that an image lacks, and the work that is due."""

from __future__ import annotations

from composeplat.compose.watch_model import WatchAction, WatchExec, WatchRule
from composeplat.dev.folder_watch import FolderChange
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.dev.watch_state import Changes, FailedCopies, RetryTimer, WatchState


def watched(action: WatchAction, service: str = "web") -> WatchedFolder:
    command = WatchExec(command=("reload",)) if action is WatchAction.SYNC_EXEC else None
    rule = WatchRule(action=action, path="/src", target="/app" if action.has_target else "", command=command)
    return WatchedFolder(service=service, rule=rule, local="/src")


def state(*actions: WatchAction) -> WatchState:
    return WatchState([watched(action) for action in actions])


def test_a_sync_is_copied_at_once_and_remembered() -> None:
    """What is copied now is the change; a new container gets all of them, each path as it is now."""
    found = state(WatchAction.SYNC)

    found.note(FolderChange(0, ("a", "b")))
    now = found.note(FolderChange(0, ("c",), ("a",)))

    assert now is not None
    assert (now.present, now.deleted) == ([(0, "c")], [(0, "a")])
    assert found.services["web"].copied == Changes({(0, "a"): False, (0, "b"): True, (0, "c"): True})
    assert found.take_work() is None


def test_folders_without_permissions_are_remembered() -> None:
    """A folder on a file system that keeps no permissions is known from its first event on, also without a change."""
    found = state(WatchAction.SYNC, WatchAction.SYNC)
    assert found.without_modes == frozenset()

    found.note(FolderChange(1, is_first=True, keeps_modes=False))
    found.note(FolderChange(0, ("a",)))
    assert found.without_modes == {1}


def test_commands_of_the_rules_that_changed() -> None:
    """Only the rules of changed files run their commands, each once."""
    found = state(WatchAction.SYNC, WatchAction.SYNC_EXEC)

    changed = Changes({(1, "a"): True, (1, "b"): False})

    assert found.commands_for(Changes({(0, "a"): True}), Changes()) == []
    assert found.commands_for(changed, Changes()) == [found.folders[1]]


def test_a_command_waits_for_files_that_failed() -> None:
    """A command that reads what was synced runs once all of it is there."""
    found = state(WatchAction.SYNC_EXEC, WatchAction.SYNC_EXEC)

    changed = Changes({(0, "a"): True, (1, "a"): True, (1, "b"): True})
    assert found.commands_for(changed, Changes({(1, "b"): True})) == [found.folders[0]]


def test_what_a_container_lacks() -> None:
    """A later copy replaces what failed before; what failed longest ago is tried last."""
    failed = FailedCopies()
    a, b, c = (Changes({(0, name): True}) for name in "abc")

    failed.note("pod", Changes({**a.paths, **b.paths}), a)
    failed.note("other", a, a)
    assert failed.lacking == {"pod": a, "other": a}
    failed.note("pod", c, c)
    assert list(failed.lacking["pod"].paths) == [(0, "c"), (0, "a")]
    failed.note("pod", Changes({(0, "a"): False}), Changes())
    assert failed.lacking["pod"] == c
    failed.forget_others(["pod"])
    failed.note("pod", c, Changes())
    assert failed.lacking == {}


def test_a_message_that_is_no_news() -> None:
    """The last messages about a container are known until a copy has brought all that it lacks."""
    failed, a = FailedCopies(), Changes({(0, "a"): True})

    assert [failed.is_news("pod", [text]) for text in ("full", "full", "refused")] == [True, False, True]
    failed.note("pod", a, Changes())
    assert failed.is_news("pod", ["refused"])


def test_pauses_between_retries() -> None:
    """They grow, and are short again after a save; a container that takes nothing has longer ones."""
    timer = RetryTimer()
    assert timer.left_s(0) is None

    found = []
    for is_first in (True, *[False] * 6, True):
        timer.start(100, 0.1, is_first=is_first)
        found.append(timer.left_s(100))
    assert found == [5, 10, 20, 40, 80, 160, 160, 5]
    assert timer.left_s(200) == 0
    timer.start(100, 120, is_first=False)
    assert timer.left_s(100) == 1200
    timer.stop()
    assert timer.left_s(100) is None


def test_a_build_takes_the_changes_along() -> None:
    """A build includes a restart; its image has what was copied, and what changes meanwhile is kept."""
    found = state(WatchAction.RESTART, WatchAction.REBUILD, WatchAction.SYNC, WatchAction.SYNC_RESTART)
    for number in range(4):
        found.note(FolderChange(number, ("a",)))

    work = found.take_work()
    assert work is not None
    assert (work.services, work.action) == (("web",), WatchAction.REBUILD)
    assert not found.services["web"].copied
    assert not found.services["web"].mounted
    assert found.take_work() is None

    found.note(FolderChange(2, ("b",), ("a",)))
    found.give_back(work)
    assert found.services["web"].copied == Changes({(2, "a"): False, (2, "b"): True})
    assert found.services["web"].mounted == Changes({(3, "a"): True})


def test_restarts_of_several_services_are_one_work() -> None:
    """Builds come first, then restarts, each for all services that have one."""
    found = WatchState(
        [watched(WatchAction.RESTART, "a"), watched(WatchAction.REBUILD, "b"), watched(WatchAction.RESTART, "c")]
    )
    for number in range(3):
        found.note(FolderChange(number, ("x",)))

    works = [found.take_work() for _ in range(3)]

    assert [(work.services, work.action) for work in works if work] == [
        (("b",), WatchAction.REBUILD), (("a", "c"), WatchAction.RESTART),
    ]  # fmt: skip


def test_a_scan_without_changes_is_nothing() -> None:
    """The first look at a folder does not restart a service."""
    found = state(WatchAction.RESTART)

    assert found.note(FolderChange(0, is_first=True)) is None
    assert found.take_work() is None
