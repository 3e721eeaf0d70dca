"""What the page reads while it is open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from composeplat.cli.ui_documents import log_row
from composeplat.cli.ui_live import LiveEnvironment
from composeplat.cli.ui_sources import Place, follow_status
from composeplat.cluster.access import Access
from composeplat.cluster.logs import LogLine
from composeplat.cluster.snapshot import Snapshot
from composeplat.cluster.watching import Ages
from composeplat.names import SERVICE_LABEL
from composeplat.ui.site import LogRequest


def test_a_failure_that_counts_only_after_a_while() -> None:
    """The status is read so often, also without a change, that nothing seen before is forgotten."""
    ages, ended, seen = Ages(), threading.Event(), []
    snapshot = Snapshot(age=ages.age)

    def read(_: object = None) -> list[Any]:
        seen.append((time.monotonic(), snapshot.age("unscheduled/uid")))
        if len(seen) == 4:
            ended.set()
        return []

    reader: Any = SimpleNamespace(read=read, read_again=read, latest=snapshot, problem="", stop=lambda: None)
    follow_status(Place(Access(host="127.0.0.1", port=1), "team", "shop"), reader, lambda *_: None, ended)

    (first, _), *_, (last, age) = seen
    assert age >= 0.9 * (last - first)


def test_a_problem_before_a_new_definition() -> None:
    """The problem of a reader ends with it: that of the next definition has none to take back."""
    published: list[tuple[str, object]] = []
    reader: Any = SimpleNamespace(
        read=list, read_again=list, latest=Snapshot(), problem="the cluster can't be reached", stop=lambda: None
    )
    place = Place(Access(host="127.0.0.1", port=1), "team", "shop")
    current = iter([True, False])
    follow_status(place, reader, lambda *found: published.append(found), threading.Event(), lambda: next(current))

    problems = [document for topic, document in published if topic == "problem"]
    assert problems == [{"message": "the cluster can't be reached", "hint": ""}, {"message": "", "hint": ""}]


def test_logs_of_a_service_that_is_added() -> None:
    """All services are followed, those that the definition gets meanwhile too, and those that it no longer has."""

    def select() -> list[str]:
        pods = [{"metadata": {"name": f"{name}-1", "labels": {SERVICE_LABEL: name}}} for name in "abc"]
        return [pod["metadata"]["name"] for pod in follower.select(pods)]

    def view(names: dict[str, str]) -> Any:
        return SimpleNamespace(namespace="team", environment="shop", names=names)

    live = LiveEnvironment.__new__(LiveEnvironment)
    place = Place(Access(host="127.0.0.1", port=1), "team", "shop")
    vars(live).update(_choice=None, _place=place, _view=view({"a": "A"}))
    environment = live.site(read_only=True).find("team", "shop")
    assert environment is not None
    follower = vars(environment.open_logs(LogRequest(services=(), tail=None)))["_follower"]
    assert select() == ["a-1"]
    vars(live).update(_view=view({"b": "B"}))

    assert select() == ["a-1", "b-1"]


def test_a_secret_with_a_color_in_it(hide: Callable[[list[str]], None]) -> None:
    """A log line has no control sequences, so a secret is masked that one had been within."""
    hide(["hunter2-hunter2"])
    line = LogLine(service="web", pod="web-1", time="", text="key=hunter2\x1b[31m-hunter2\x1b[0m.")

    assert log_row(line, {}) == ("", "web", "web-1", "key=[secret].", False, "")
