"""`platform watch` before it begins, and its messages."""

from __future__ import annotations

import json

import pytest

from composeplat.cli.watch import watch_message
from tests.cli.conftest import Seam
from tests.cluster.objects import Answer

RULES = """\
x-platform: {full: true}
services:
  web:
    build: ./own
    develop: {watch: [{path: ./own, action: sync, target: /app}]}
  db: {image: example/db}
"""
ARGS = ("--domain=example.com", "--registry=r.example.com")


@pytest.fixture
def watched(seam: Seam) -> Seam:
    (seam.folder / "compose.yaml").write_text(RULES)
    return seam


@pytest.mark.parametrize("command", [("watch",), ("up", "--watch")], ids=["watch", "up"])
def test_without_full_mode(watched: Seam, command: tuple[str, ...]) -> None:
    """Without full mode there are no rules, and the message says how to turn it on."""
    (watched.folder / "compose.yaml").write_text(RULES.replace("true", "false"))
    outcome = watched.platform(*command, *ARGS)

    assert outcome.status == 1
    assert outcome.stderr.endswith(
        "error: develop.watch is read in full mode alone, which is off\n"
        "  hint: platform watch --full, or x-platform: {full: true} in the Compose file\n"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param((), "no service has rules in develop.watch", id="no-service"),
        pytest.param(("db",), "service 'db' has no rules in develop.watch", id="the-named-one"),
        pytest.param(("dv",), "there is no service 'dv'", id="none-of-that-name"),
    ],
)
def test_without_rules(watched: Seam, args: tuple[str, ...], message: str) -> None:
    """Without a rule there is nothing to watch, and the message shows one."""
    if not args:
        (watched.folder / "compose.yaml").write_text("services: {web: {image: example/web}}")
    outcome = watched.platform("watch", "--full", *args, *ARGS)

    assert outcome.status == 1
    assert f"error: {message}\n" in outcome.stderr


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param("../../elsewhere", "watches a path outside the project: '../../elsewhere'", id="outside"),
        pytest.param("/proc", "watches a system path of this machine: '/proc'", id="system-path"),
        pytest.param("./none", "watches a path that does not exist: './none'", id="missing"),
        pytest.param(
            "./link/a", "watches a link, or a path behind one, which is not followed: './link/a'", id="behind-a-link"
        ),
    ],
)
def test_paths_that_are_not_watched(watched: Seam, path: str, message: str) -> None:
    """What a sync refuses, a watch refuses too, at its line, before anything is deployed."""
    watched.gives("deploy.deploy", KeyboardInterrupt())
    (watched.folder / "own" / "a").write_text("")
    (watched.folder / "link").symlink_to("own")
    (watched.folder / "compose.yaml").write_text(RULES.replace("path: ./own", f"path: {path}"))
    outcome = watched.platform("watch", "--deploy", *ARGS)

    assert (outcome.status, watched.asked) == (3, [])
    assert f"compose.yaml:5:30: error: services.web.develop.watch[0].path {message} [" in outcome.stderr


def test_rules_without_effect(watched: Seam) -> None:
    """If no rule can have an effect, the warnings say why."""
    (watched.folder / "compose.yaml").write_text(RULES.replace("build: ./own", "image: a/b").replace("sync", "rebuild"))
    outcome = watched.platform("watch", *ARGS)

    assert outcome.status == 1
    assert "has no effect: the service has no 'build' section" in outcome.stderr
    assert "error: no rule in develop.watch can have an effect\n" in outcome.stderr


def test_a_deploy_comes_first(watched: Seam) -> None:
    """With --deploy the named services are deployed, and `up --watch` deploys them always; Ctrl-C ends it."""
    watched.gives("deploy.deploy", KeyboardInterrupt())
    outcome = watched.platform("watch", "--deploy", "web", *ARGS)

    assert (outcome.status, watched.options.services) == (130, ("web",))
    assert "syncs with web in cluster 'here', namespace team: './own'\n" in outcome.stderr

    watched.asked.clear()
    assert watched.platform("up", "--watch", *ARGS).status == 130
    assert watched.options.services == ()


@pytest.mark.parametrize("command", [("watch", "--deploy"), ("up", "--watch")], ids=" ".join)
def test_services_of_profiles(watched: Seam, command: tuple[str, ...]) -> None:
    """A service that is named is active, whichever its profile, and not the first one alone."""
    watched.gives("deploy.deploy", KeyboardInterrupt())
    (watched.folder / "compose.yaml").write_text(RULES.replace("  web:", "  web: &web").replace(
        "  db:", "  other: {<<: *web, profiles: [late]}\n  db:"
    ))  # fmt: skip

    assert watched.platform(*command, "web", "other", *ARGS).status == 130
    assert watched.options.services == ("web", "other")


@pytest.mark.parametrize(("environment", "is_deployed"), [("demo", True), ("other", False)])
def test_a_workload_of_another_environment(watched: Seam, environment: str, *, is_deployed: bool) -> None:
    """One of the same name does not count: the deploy that comes first names the conflict."""

    def watch(_: object) -> None:
        raise KeyboardInterrupt

    watched.gives("deploy.deploy", KeyboardInterrupt())
    watched.patch.setattr("composeplat.dev.watch_session.WatchSession.run", watch)
    labels = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": environment}
    web = {"metadata": {"name": "web", "namespace": "team", "labels": labels}}
    watched.server.answers["/apis/apps/v1/namespaces/team/deployments/web"] = Answer(json.dumps(web).encode())

    assert watched.platform("watch", *ARGS).status == 130
    assert (watched.asked == []) == is_deployed


@pytest.mark.parametrize("args", [("--forward", "80"), ("--down-on-exit",)], ids=" ".join)
def test_a_watch_is_no_session(watched: Seam, args: tuple[str, ...]) -> None:
    """`up --watch` refuses the options of a session."""
    outcome = watched.platform("up", "--watch", *ARGS, *args)

    assert outcome.status == 2
    assert "takes services, and no options of a session" in outcome.stderr


COPIED = {"event": "copied", "service": "web", "pods": ["web-1"], "files": 1, "deleted": 0, "new_pods": False}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({**COPIED, "seconds": 0.21}, "web: copied 1 file in web-1, 0.2 s"),
        (
            {**COPIED, "pods": ["a", "b"], "files": 2, "deleted": 3, "seconds": 1},
            "web: copied 2 files and deleted 3 files in 2 pods, 1.0 s",
        ),
        ({**COPIED, "new_pods": True, "seconds": 1}, "web: copied 1 file in web-1, which is new, 1.0 s"),
        ({**COPIED, "pods": [], "seconds": 1}, ""),
        (
            {"event": "watching", "service": "web", "path": "/shop/src", "action": "sync"},
            "web: watching src (sync)",
        ),
        (
            {"event": "executed", "service": "web", "pod": "p", "status": 0, "output": ""},
            "web: the command of sync+exec ran in p",
        ),
        (
            {"event": "executed", "service": "web", "pod": "p", "status": 2, "output": "no"},
            "web: the command failed in p with status 2: no",
        ),
        (
            {"event": "replaced-pods", "services": ["a", "b"], "action": "rebuild", "done": False},
            "a, b: rebuild failed; a change tries it again",
        ),
        ({"event": "replaced-pods", "services": ["a"], "action": "rebuild", "done": True}, ""),
        (
            {"event": "watch-problem", "service": "web", "path": "/shop/src/out", "reason": "it leads out"},
            "web: src/out: it leads out",
        ),
        ({"event": "watch-problem", "service": "web", "path": "", "reason": "why"}, "web: why"),
    ],
    ids=str,
)
def test_messages(event: dict[str, object], message: str) -> None:
    """What people see of an event."""
    assert watch_message(event, "/shop") == message
