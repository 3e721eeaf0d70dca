"""``platform rollback``: an earlier revision is deployed again, and data stays as it is."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from composeplat.cluster.kinds import kind_path
from composeplat.names import LABEL_PREFIX
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_history import changes, history, project, secrets
from tests.terminal import Terminal

YES = ("rollback", "--yes")
ANNOTATION = f"{LABEL_PREFIX}/revision"


def image(environment: Environment, service: str) -> str:
    workload = environment.get("apps/v1", "Deployment", service)
    assert workload
    return str(workload["spec"]["template"]["spec"]["containers"][0]["image"])


def running(environment: Environment, service: str) -> str:
    """The name of the pod of a service that runs."""

    def find() -> str:
        pods = [pod for pod in environment.pods(service) if pod["status"]["phase"] == "Running"]
        return str(pods[0]["metadata"]["name"]) if len(pods) == 1 else ""

    return str(until(find))


def shop(token: str, *, more: str = "", volume: str = "data") -> str:
    return (
        "services:\n"
        f"  web:\n    build: ./web\n    stop_grace_period: 0\n    environment: {{API_TOKEN: '{token}'}}\n"
        "    depends_on: [db]\n"
        f"  db:\n    image: busybox\n    command: {SLEEP}\n    stop_grace_period: 0\n"
        f"    volumes: ['{volume}:/data']\n"
        f"{more}"
        f"volumes: {{{volume}: {{}}}}\n"
    )


def build(environment: Environment, text: str) -> None:
    environment.write(f"FROM busybox:1.37\nRUN echo {text} > /text\nCMD {SLEEP}\n", "web/Dockerfile")


OLD = f'  old: {{image: busybox, command: "{SLEEP}", stop_grace_period: 0}}\n'
NEW = OLD.replace("old:", "new:")


def test_an_earlier_revision_runs_again(environment: Environment) -> None:
    """Its images by digest, its values and its services; data stays, and the next preview shows the file's changes."""
    build(environment, "one")
    environment.deploy(shop("token-one", more=OLD)).expect()
    first = image(environment, "web")
    environment.exec(running(environment, "db"), "sh", "-c", "echo one > /data/text")
    build(environment, "two")
    environment.deploy(shop("token-two", more=NEW)).expect()
    assert image(environment, "web") != first
    environment.exec(running(environment, "db"), "sh", "-c", "echo two > /data/text")

    shown = environment.platform("rollback", "--dry-run").expect()
    assert image(environment, "web") != first
    done = environment.platform(*YES).expect()

    # Pulumi reports services in any order.
    assert sorted(done.stdout.splitlines()) == sorted(shown.stdout.splitlines())
    assert "~ update Deployment web: its variables or files; image " in shown.stdout
    assert "+ create Deployment old" in shown.stdout
    assert "- delete Deployment new" in shown.stdout
    assert "the data of volumes (data) stays as it is: a rollback never changes data\n" in done.stderr
    assert "token-one" not in done.stdout + done.stderr
    assert "rolled back env in namespace" in done.stderr
    assert image(environment, "web") == first
    web = running(environment, "web")
    assert environment.exec(web, "sh", "-c", "cat /text; echo $API_TOKEN") == "one\ntoken-one\n"
    assert environment.exec(running(environment, "db"), "cat", "/data/text") == "two\n"
    assert {"Deployment/old", "Service/old", "PersistentVolumeClaim/data"} <= environment.names()
    assert "Deployment/new" not in environment.names()
    last = history(environment)[0]
    assert (last["command"], last["rolled_back_to"], last["result"]) == ("rollback", 1, "done")
    assert changes(last) == {"web": "update", "old": "create", "new": "delete"}

    pending = environment.platform("preview", "--json").expect().json["changes"]
    assert {(change["operation"], change["kind"], change["name"]) for change in pending} == {
        ("update", "Deployment", "web"), ("update", "Secret", "web-env"), ("create", "Deployment", "new"),
        ("create", "Service", "new"), ("delete", "Deployment", "old"), ("delete", "Service", "old"),
    }  # fmt: skip
    again = environment.platform(*YES, "--json").expect().json
    assert again["rolled_back_to"] == 2
    environment.platform("preview", "--expect-no-changes").expect()
    assert "token-one" not in json.dumps(environment.state())


@pytest.mark.endurance
def test_nothing_is_built(environment: Environment) -> None:
    """Neither for the rollback nor for the deploy after it: the builder is not asked."""
    build(environment, "one")
    environment.deploy(shop("a")).expect()
    build(environment, "two")
    environment.deploy().expect()
    nobody = {"BUILDX_BUILDER": "nobody", "DOCKER_HOST": "tcp://127.0.0.1:1"}

    environment.platform(*YES, **nobody).expect()
    second = environment.deploy().expect()

    assert "building" not in second.stderr
    assert environment.exec(running(environment, "web"), "cat", "/text") == "two\n"


def test_volumes_stay(environment: Environment) -> None:
    """One that was added since stays with its data, one that left the file is used again, and none shrinks."""
    environment.deploy(shop("a").replace("build: ./web", f"image: busybox\n    command: {SLEEP}")).expect()
    environment.exec(running(environment, "db"), "sh", "-c", "echo kept > /data/text")
    other = shop("a", volume="other").replace("build: ./web", f"image: busybox\n    command: {SLEEP}")
    environment.deploy(other).expect()
    environment.exec(running(environment, "db"), "sh", "-c", "echo more > /data/text")

    done = environment.platform(*YES).expect()

    assert "PersistentVolumeClaim/other" in environment.names()
    assert "volume other" in done.stderr
    assert environment.exec(running(environment, "db"), "cat", "/data/text") == "kept\n"
    environment.deploy().expect()
    assert environment.exec(running(environment, "db"), "cat", "/data/text") == "more\n"


def job(version: str, message: str = "x") -> str:
    return (
        f"services:\n  job: {{image: busybox, restart: 'no', command: echo {version}, stop_grace_period: 0}}\n"
        f'  web: {{image: busybox, command: "{SLEEP}", stop_grace_period: 0, environment: {{A: {message}}}}}\n'
    )


@pytest.mark.endurance
def test_jobs(environment: Environment) -> None:
    """One that has changed runs again, which the preview says; an unchanged one does not."""
    environment.deploy(job("one")).expect()
    environment.deploy(job("two")).expect()
    replaced = environment.platform("rollback", "--yes").expect()
    assert "job job runs again, as it was in revision 1\n" in replaced.stderr
    assert environment.platform("logs", "job").expect().stdout.endswith("| one\n")
    environment.deploy(job("one", "y")).expect()
    began = environment.started_at("job")

    same = environment.platform("rollback", "1", "--yes").expect()

    assert "runs again" not in same.stderr
    assert environment.started_at("job") == began


def test_refusals(environment: Environment) -> None:
    """A revision that failed, that is not there, or that somebody has changed is not applied."""
    environment.deploy(project(web="busybox:1.37")).expect()
    refused = environment.platform("rollback").expect(1)
    assert "there is no earlier revision to roll back to" in refused.stderr
    environment.deploy("services: {web: {image: busybox, command: no-such-program, stop_grace_period: 0}}\n").expect(1)

    failed = environment.platform("rollback", "2", "--yes").expect(1)
    absent = environment.platform("rollback", "99", "--yes").expect(1)

    assert "revision 2 failed, so nothing of it is known to work" in failed.stderr
    assert "hint: revisions to roll back to: 1" in failed.stderr
    assert "there is no revision 99 of this environment\n  hint: there are: 2, 1" in absent.stderr
    forge(environment, "1")
    forged = environment.platform("rollback", "1", "--yes").expect(1)
    assert "the objects of revision 1 were not written with the state of this environment" in forged.stderr
    assert image(environment, "web") == "busybox"


def forge(environment: Environment, number: str) -> None:
    """Change the objects of a revision, as somebody who may write Secrets can."""
    found = secrets(environment)[number]
    objects = base64.b64decode(found["data"]["objects"])
    data = {**found["data"], "objects": base64.b64encode(objects[:-1] + b"x").decode()}
    with environment.api() as api:
        api.patch(f"/api/v1/namespaces/{environment.namespace}/secrets/{found['metadata']['name']}", {"data": data})


@pytest.mark.endurance
def test_the_revision_of_another_number(environment: Environment) -> None:
    """Objects are sealed with their number: an old revision can't be put in the place of a later one."""
    environment.deploy(project(web="busybox:1.37")).expect()
    environment.deploy(project(web="busybox")).expect()
    environment.deploy(project(web="busybox", more="busybox")).expect()
    kept = secrets(environment)
    with environment.api() as api:
        path = f"/api/v1/namespaces/{environment.namespace}/secrets/platform-history.{environment.name}.2"
        api.patch(path, {"data": kept["1"]["data"]})

    environment.platform("rollback", "2", "--yes").expect(1)
    environment.platform("rollback", "1", "--yes").expect()


def test_after_a_failed_deploy(environment: Environment) -> None:
    """The last revision that ended well runs again; a failing rollback is a failed revision, with the reason."""
    environment.deploy(project(web="busybox:1.37")).expect()
    environment.deploy("services: {web: {image: busybox, command: no-such-program, stop_grace_period: 0}}\n").expect(1)

    environment.platform(*YES).expect()

    assert image(environment, "web") == "busybox:1.37"
    assert history(environment)[0]["rolled_back_to"] == 1


@pytest.mark.endurance
def test_the_question(environment: Environment) -> None:
    """On a terminal it asks after the preview."""
    environment.deploy(project(web="busybox:1.37")).expect()
    environment.deploy(project(web="busybox")).expect()
    refused = environment.platform("rollback").expect(1)
    assert "there is no terminal to confirm that on\n  hint: give --yes, or --dry-run" in refused.stderr
    assert image(environment, "web") == "busybox"

    terminal = Terminal(environment.command_line("rollback"), folder=environment.folder, env=environment.variables)
    terminal.until("back to revision 1? [y/N]")
    terminal.type("y")

    assert terminal.status() == 0
    assert image(environment, "web") == "busybox:1.37"


@pytest.mark.endurance
def test_an_image_that_is_gone(environment: Environment) -> None:
    """The rollback fails as a deploy does, at once and with the reason."""
    environment.deploy(project(web="busybox:1.37")).expect()
    environment.deploy(project(web="example.invalid/gone:1"), "--no-wait").expect()
    environment.deploy(project(web="busybox")).expect()

    failed = environment.platform("rollback", "2", "--yes", "--timeout", "30").expect(1)

    assert "example.invalid" in failed.stderr
    assert history(environment)[0]["result"] == "failed"


@pytest.mark.endurance
def test_one_that_nothing_waited_for(environment: Environment) -> None:
    """A second rollback does not return to it, and says how."""
    environment.deploy(project(web="busybox:1.37")).expect()
    environment.deploy(project(web="example.invalid/gone:1"), "--no-wait").expect()
    environment.platform(*YES).expect()

    second = environment.platform(*YES).expect()

    assert image(environment, "web") == "busybox:1.37"
    assert "revision 2 is left out: " in second.stderr
    assert "platform rollback 2\n" in second.stderr
    assert "is as in revision 1: nothing was changed\n" in second.stderr


@pytest.mark.endurance
def test_some_services_after_a_failed_deploy_of_all(environment: Environment) -> None:
    """A rollback does not go to what the failed one has left of the others."""
    environment.deploy(project(web="busybox:1.37", db="busybox:1.37")).expect()
    environment.deploy(project(web="example.invalid/gone:1", db="example.invalid/gone:1"), "--timeout", "30").expect(1)
    environment.deploy(project(web="busybox", db="example.invalid/gone:1"), "web").expect()
    assert [(row["result"], row["can_roll_back"]) for row in history(environment)] == [
        ("done", False), ("failed", False), ("done", True),
    ]  # fmt: skip
    refused = environment.platform("rollback", "3", "--yes").expect(1)
    assert "revision 3 left services alone that a deployment before it had failed with\n" in refused.stderr

    environment.platform(*YES).expect()

    assert [image(environment, name) for name in ("web", "db")] == ["busybox:1.37"] * 2
    assert history(environment)[0]["rolled_back_to"] == 1


def test_another_machine_rolls_back(environment: Environment, tmp_path: Path) -> None:
    """With the same backend and passphrase, and without anything of the first one's data folder."""
    backend = tmp_path / "share"
    backend.mkdir()
    shared = {"PULUMI_BACKEND_URL": f"file://{backend}", "PULUMI_CONFIG_PASSPHRASE": "shared"}
    for tag in ("busybox:1.37", "busybox"):
        environment.write(project(web=tag))
        environment.platform("deploy", **shared).expect()
    elsewhere = {**shared, "COMPOSEPLAT_DATA": str(tmp_path / "elsewhere")}

    environment.platform(*YES, **elsewhere).expect()

    assert image(environment, "web") == "busybox:1.37"
    assert environment.exec(running(environment, "web"), "sh", "-c", "echo $TOKEN") == "busybox:1.37\n"
    wrong = environment.platform("rollback", "2", "--yes", **{**elsewhere, "PULUMI_CONFIG_PASSPHRASE": "wrong"})
    assert wrong.expect(4).stderr.count("error: the state is encrypted with another passphrase") == 1


@pytest.mark.endurance
def test_a_passphrase_that_was_changed(environment: Environment) -> None:
    """There is no way back to revisions from before it, which the error says; later ones are as ever."""
    environment.deploy(project(web="busybox:1.37")).expect()
    environment.deploy(project(web="busybox")).expect()
    environment.platform("state", "passphrase").expect()

    refused = environment.platform(*YES).expect(1)

    assert "the objects of revision 1 were not written with the state of this environment" in refused.stderr
    assert image(environment, "web") == "busybox"
    environment.deploy(project(web="busybox:1.37")).expect()
    environment.deploy(project(web="busybox")).expect()
    environment.platform(*YES).expect()
    assert image(environment, "web") == "busybox:1.37"


def test_a_rollback_that_is_killed(environment: Environment) -> None:
    """Run again, it ends what the first one began."""
    environment.deploy(project(a="busybox:1.37", b="busybox:1.37", c="busybox:1.37")).expect()
    environment.deploy(project(a="busybox", b="busybox", d="busybox")).expect()
    killed = environment.start(*YES)
    until(lambda: image(environment, "a") == "busybox:1.37" or image(environment, "b") == "busybox:1.37")
    killed.kill()
    killed.communicate()

    environment.platform("rollback", "1", "--yes").expect()

    assert [image(environment, name) for name in "abc"] == ["busybox:1.37"] * 3
    assert environment.names() >= {"Deployment/c"}
    assert "Deployment/d" not in environment.names()
    assert [row["result"] for row in history(environment)][:2] == ["done", "unfinished"]


@pytest.mark.endurance
def test_a_rollback_that_is_killed_after_its_last_change(environment: Environment) -> None:
    """Run again, it has nothing to change, and ends well in the history."""
    environment.deploy(project(a="busybox:1.37")).expect()
    environment.deploy(project(a="busybox")).expect()
    environment.platform(*YES).expect()
    newest = secrets(environment)["3"]
    recorded = {**json.loads(newest["metadata"]["annotations"][ANNOTATION]), "result": "unfinished"}
    with environment.api() as api:
        path = f"{kind_path('v1', 'Secret', environment.namespace)}/{newest['metadata']['name']}"
        api.patch(path, {"metadata": {"annotations": {ANNOTATION: json.dumps(recorded)}}})

    environment.platform("rollback", "1", "--yes").expect()

    assert [row["result"] for row in history(environment)][:2] == ["done", "unfinished"]


@pytest.mark.endurance
def test_one_service_was_deployed(environment: Environment) -> None:
    """The revision of a deploy of one service has the others as they ran."""
    environment.deploy(project(a="busybox:1.37", b="busybox:1.37")).expect()
    environment.write(project(a="busybox", b="busybox"))
    environment.platform("deploy", "a").expect()
    environment.deploy(project(c="busybox")).expect()

    environment.platform("rollback", "2", "--yes").expect()

    assert (image(environment, "a"), image(environment, "b")) == ("busybox", "busybox:1.37")
    assert "Deployment/c" not in environment.names()
    environment.platform("status").expect()
