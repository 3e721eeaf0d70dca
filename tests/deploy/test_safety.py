"""Nothing is lost and nothing leaked: kills, interrupts, two at once, objects of others, secrets, leavings."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from composeplat.cluster.kinds import kind_path
from composeplat.plan.fingerprint import HASH_ANNOTATION, SALT_ANNOTATION
from composeplat.system.processes import session_members
from tests.conftest import ENDURANCE, has_long_round
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_access import kubectl

HEAD = f"x-app: &app {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\nservices:\n"
SEVERAL = (
    HEAD
    + "  keeper: {<<: *app, volumes: ['data:/data'], environment: {A: b}}\n"
    + "  once: {<<: *app, restart: 'no', command: 'true'}\n"
    + "".join(f"  app-{n}: {{<<: *app, ports: ['80{n:02}'], depends_on: [keeper]}}\n" for n in range(4))
    + "volumes: {data: {}}\n"
)
#: What the file above is in the cluster.
WANTED = {
    "StatefulSet/keeper", "Job/once", "Service/keeper", "Service/once", "Secret/keeper-env",
    "PersistentVolumeClaim/data", *(f"Deployment/app-{n}" for n in range(4)), *(f"Service/app-{n}" for n in range(4)),
}  # fmt: skip
ROUNDS = 30 if ENDURANCE else 3


def engine_of(environment: Environment) -> int | None:
    """The process of the engine that a deploy has started."""
    notes = list(Path(environment.variables["COMPOSEPLAT_DATA"]).glob("stacks/*/*/*/running.json"))
    try:
        text = notes[0].read_text()
        return int(text.partition('"pid": ')[2].partition(",")[0])
    except (IndexError, OSError, ValueError):
        return None


@has_long_round
@pytest.mark.parametrize("victim", ["platform", "engine"])
@pytest.mark.parametrize("more", [{}, {"PULUMI_SKIP_CHECKPOINTS": "true"}], ids=["checkpoints", "one-checkpoint"])
def test_killed_at_any_moment(
    environment: Environment, victim: str, more: dict[str, str], record_property: Callable[[str, object], None]
) -> None:
    """After a kill -9 the next deploy needs no help, and leaves no orphan, no double and nothing pending."""
    environment.write(SEVERAL)
    seed = int(time.time())
    record_property("seed", seed)
    moments = random.Random(seed)  # noqa: S311 -- nothing is kept secret by it
    for _ in range(max(1, ROUNDS // 3)):
        process = environment.start("deploy", **more)
        until(lambda: engine_of(environment), seconds=20)
        group = engine_of(environment)
        time.sleep(moments.uniform(0, 4))
        if victim == "platform":
            process.kill()
        elif group is not None:
            with_kill(group)
        process.communicate()
        environment.deploy().expect()

        assert environment.names() == WANTED, seed
        assert environment.state().get("pending_operations", []) == [], seed
        assert group is None or until(lambda g=group: session_members(g) == []), seed  # type: ignore[misc]
        environment.platform("preview", "--expect-no-changes").expect()
        environment.platform("destroy", "--volumes", "--yes").expect()
        assert environment.names() == set(), seed


def with_kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_interrupted(environment: Environment) -> None:
    """Ctrl-C ends a deploy in order, with status 130, and the next one continues."""
    text = HEAD + (
        "  slow: {<<: *app, healthcheck: {test: [CMD, 'false'], interval: 600s, start_period: 600s}}\n"
        "  web: {<<: *app, depends_on: {slow: {condition: service_healthy}}}\n"
    )
    environment.write(text)
    process = environment.start("deploy")
    until(lambda: environment.pods("slow"))
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=60)

    assert process.returncode == 130, output
    assert time.monotonic() - began < 20
    assert "continues from there" in output
    assert environment.state().get("pending_operations", []) == []
    environment.deploy(HEAD + "  slow: *app\n  web: *app\n").expect()


def test_two_at_once(environment: Environment) -> None:
    """Of two deploys at once one is refused, with the other's number; the state is sound."""
    environment.write(SEVERAL)
    first = environment.start("deploy")
    until(lambda: engine_of(environment), seconds=20)
    second = environment.platform("deploy").expect(1)
    _, output = first.communicate(timeout=100)

    assert f"is busy: process {first.pid} has been running 'deploy' since" in second.stderr
    assert first.returncode == 0, output
    environment.platform("preview", "--expect-no-changes").expect()


def test_objects_of_others(environment: Environment) -> None:
    """An object of someone else under a name that is needed is named before anything changes, and not touched."""
    environment.deploy(HEAD + "  other: *app\n").expect()
    with environment.api() as api:
        theirs = {
            "apiVersion": "v1", "kind": "Secret", "data": {"theirs": "eWVz"},
            "metadata": {"name": "app-files", "namespace": environment.namespace},
        }  # fmt: skip
        api.apply(theirs)
    environment.write("a", "index.html")
    ran = environment.deploy(HEAD + "  app: {<<: *app, volumes: ['./index.html:/index.html']}\n").expect(1)

    assert (
        f"services.app needs the name of Secret 'app-files', which is in namespace '{environment.namespace}'"
        " already and belongs to someone else [ownership-conflict]" in ran.stderr
    )
    assert "Deployment/app" not in environment.names()
    found = environment.get("v1", "Secret", "app-files")
    assert found is not None
    assert found["data"] == {"theirs": "eWVz"}


def test_changes_that_replace(environment: Environment) -> None:
    """What can't be changed in place is recreated, and a preview says so; removed services go."""
    environment.deploy(HEAD + "  app: {<<: *app, ports: [80]}\n  old: *app\n").expect()
    environment.write(HEAD + "  app: {<<: *app, ports: [80], deploy: {endpoint_mode: dnsrr}}\n")
    shown = environment.platform("preview").expect()
    environment.deploy().expect()

    assert "  ! replace Service app:" in shown.stdout
    assert "  - delete Deployment old\n" in shown.stdout
    service = environment.get("v1", "Service", "app")
    assert service is not None
    assert service["spec"]["clusterIP"] == "None"
    assert environment.names() == {"Service/app", "Deployment/app"}
    environment.deploy(HEAD + "  app: {<<: *app, ports: [80]}\n").expect()
    service = environment.get("v1", "Service", "app")
    assert service is not None
    assert service["spec"]["clusterIP"] != "None"


def test_state_that_was_cut(environment: Environment) -> None:
    """A state file that can't be read is restored from a copy; one that is gone is recreated from the labels.

    Pulumi's own metadata files beside it, which a kill could leave empty, are removed where they can't be read.
    """
    environment.deploy(SEVERAL).expect()
    state = Path(environment.variables["COMPOSEPLAT_DATA"]) / "state"
    (path,) = state.glob("*/.pulumi/stacks/env/*.json")
    path.with_name(f"{path.name}.attrs").write_text("")
    (path.parents[2] / "meta.yaml.attrs").write_text("")
    environment.deploy().expect()
    path.write_text(path.read_text()[:500])
    environment.deploy().expect()
    assert environment.names() == WANTED
    path.unlink()
    shown = environment.platform("preview").expect().stderr
    environment.deploy().expect()

    assert f"{len(WANTED)} objects are shown as new, and there already: the state does not know them; " in shown
    assert environment.names() == WANTED
    environment.platform("preview", "--expect-no-changes").expect()


def test_a_state_out_of_order(environment: Environment) -> None:
    """A state that Pulumi refuses, as a resource comes before its dependency, is repaired by the next deploy."""
    environment.deploy(SEVERAL).expect()
    state = Path(environment.variables["COMPOSEPLAT_DATA"]) / "state"
    (path,) = state.glob("*/.pulumi/stacks/env/*.json")
    found = json.loads(path.read_text())
    resources = found["checkpoint"]["latest"]["resources"]
    dependent = next(resource for resource in resources if resource.get("dependencies"))
    resources.remove(dependent)
    place = next(i for i, resource in enumerate(resources) if resource["urn"] in dependent["dependencies"])
    resources.insert(place, dependent)
    path.write_text(json.dumps(found))

    assert "platform refresh repairs the state" in environment.platform("preview").expect(1).stderr
    assert "repaired the state: " in environment.deploy().expect().stderr
    environment.platform("preview", "--expect-no-changes").expect()


def test_an_interrupted_destroy_with_finalizers_of_others(environment: Environment) -> None:
    """A preview says what is being deleted; a deploy waits until it is gone, and creates it, whatever the state has."""
    environment.deploy(f"{HEAD}  app: {{<<: *app, environment: {{A: b}}}}\n").expect()
    held = ("Secret/app-env", "Deployment/app")

    def set_finalizers(finalizers: list[str] | None) -> None:
        with environment.api() as api:
            for kind, name in (entry.split("/") for entry in held):
                path = kind_path({"Secret": "v1"}.get(kind, "apps/v1"), kind, environment.namespace)
                api.patch(f"{path}/{name}", {"metadata": {"finalizers": finalizers}})

    def is_ending(version: str, kind: str, name: str) -> bool:
        return "deletionTimestamp" in (environment.get(version, kind, name) or {"metadata": {}})["metadata"]

    set_finalizers(["example.com/held"])
    destroy = environment.start("destroy", "--yes")
    until(lambda: is_ending("v1", "Secret", "app-env") and is_ending("apps/v1", "Deployment", "app"))
    for _ in range(2):
        destroy.send_signal(signal.SIGINT)
        time.sleep(0.5)
    destroy.communicate(timeout=120)

    shown = environment.platform("preview").expect().stderr
    assert "being deleted: " in shown
    assert all(f"{kind} '{name}'" in shown for kind, name in (entry.split("/") for entry in held))
    assert "; a deploy waits until they are gone" in shown
    assert "a deploy adopts" not in shown
    deploy = environment.start("deploy")
    time.sleep(3)
    assert deploy.poll() is None
    set_finalizers(None)
    _, stderr = deploy.communicate(timeout=120)

    assert deploy.returncode == 0, stderr
    assert {*held, "Service/app"} <= environment.names()
    environment.platform("preview", "--expect-no-changes").expect()


def test_a_state_that_knows_nothing_of_the_environment(environment: Environment, tmp_path: Path) -> None:
    """A deploy with a new state replaces no pod and runs no job again, although the values have a salt."""
    text = f"""{HEAD}
  app: {{<<: *app, environment: {{PIN: '1234'}}}}
  db: {{<<: *app, volumes: ['data:/data'], environment: {{PIN: '1234'}}}}
  once: {{<<: *app, restart: "no", command: "true", environment: {{PIN: '1234'}}}}
volumes: {{data: {{}}}}
"""
    environment.deploy(text).expect()
    before = {pod["metadata"]["uid"] for pod in environment.pods()}
    other = {"COMPOSEPLAT_DATA": str(tmp_path / "other")}
    environment.platform("deploy", **other).expect()

    assert {pod["metadata"]["uid"] for pod in environment.pods()} == before
    shown = environment.platform("preview", "--expect-no-changes", **other).expect()
    assert "another state" not in shown.stderr


def test_two_machines_with_a_state_each(environment: Environment, tmp_path: Path) -> None:
    """Each sees what the other has deployed since, and what its own deploy would change and delete of that."""
    other = {"COMPOSEPLAT_DATA": str(tmp_path / "other")}
    text = f"{HEAD}  app: {{<<: *app, environment: {{A: 'first'}}}}\n"
    changed = text.replace("first", "second") + "  more: {<<: *app, environment: {A: b}}\n"
    environment.deploy(text).expect()
    environment.write(changed)
    environment.platform("deploy", **other).expect()
    environment.write(text)
    shown = environment.platform("preview", "--expect-no-changes").expect(5)
    deployed = environment.platform("deploy").expect()

    assert ": 2 updated, 3 deleted, " in deployed.stderr
    newest = environment.platform("history", "--json").expect().json["revisions"][0]
    changes = [(found["part"]["name"], found["operation"]) for found in newest["changes"]]
    assert changes == [("app", "update"), ("more", "delete")]
    assert "was deployed with another state or passphrase: this state is compared with the cluster" in shown.stderr
    assert shown.stdout.splitlines() == [
        "service app",
        "  ~ update Deployment app: its variables or files",
        "  ~ update Secret app-env: data.A",
        "service more",
        "  - delete Deployment more",
        "  - delete Secret more-env",
        "  - delete Service more",
    ]
    secret = environment.get("v1", "Secret", "app-env")
    assert secret is not None
    assert secret["data"] == {"A": base64.b64encode(b"first").decode()}
    assert environment.names() == {"Deployment/app", "Service/app", "Secret/app-env"}
    environment.platform("preview", "--expect-no-changes").expect()
    environment.platform("preview", "--expect-no-changes", **other).expect()


def test_destroyed_by_another_machine(environment: Environment, tmp_path: Path) -> None:
    """A machine whose state still has the objects deletes nothing, says so, and leaves nothing in the history."""
    other = {"COMPOSEPLAT_DATA": str(tmp_path / "other")}
    text = f"{HEAD}  app: {{<<: *app, volumes: ['data:/data']}}\nvolumes: {{data: {{}}}}\n"
    environment.deploy(text).expect()
    environment.platform("deploy", **other).expect()
    environment.platform("destroy").expect()
    shown = environment.platform("destroy", **other).expect()
    revisions = environment.platform("history", "--json").expect().json["revisions"]

    assert f"there is nothing of {environment.name} in " in shown.stderr
    assert [found["command"] for found in revisions].count("destroy") == 1


def test_deleted_by_hand(environment: Environment) -> None:
    """What someone deleted in the cluster is made again, and a preview says so."""
    environment.deploy(HEAD + "  app: *app\n").expect()
    with environment.api() as api:
        api.delete(f"/apis/apps/v1/namespaces/{environment.namespace}/deployments/app")
    shown = environment.platform("preview").expect()
    environment.deploy().expect()

    assert "  + create Deployment app" in shown.stdout
    assert environment.pods("app") != []


def test_changed_by_hand(environment: Environment) -> None:
    """A failed deploy names the fields of its pods that others have changed, and the option that undoes it.

    The pods of before serve on, and the status says so.
    """
    environment.deploy(HEAD + "  app: *app\n  other: *app\n").expect()
    (old,) = environment.pods("app")
    where = ("--namespace", environment.namespace)
    kubectl(environment, *where, "set", "image", "deployment/app", "app=busybox:missing")
    kubectl(environment, *where, "scale", "deployment/other", "--replicas=2")
    failed = environment.deploy().expect(1)
    status = environment.platform("status").expect()
    environment.platform("deploy", "--refresh").expect()

    change = "Deployment 'app' was changed by kubectl-set: spec.template.spec.containers[app].image"
    assert f"{change}; platform deploy --refresh undoes that" in failed.stderr
    assert "Deployment 'other'" not in failed.stderr
    assert f"{old['metadata']['name']} still runs the old revision" in status.stdout
    (pod,) = environment.pods("app")
    assert pod["spec"]["containers"][0]["image"] == "busybox:1.37"


def holders_of(environment: Environment, *texts: str) -> list[str]:
    """The files of ours that hold one of some texts, plain or as the data of a Secret."""
    sought = [form for text in texts for form in (text, base64.b64encode(text.encode()).decode())]
    paths = Path(environment.variables["COMPOSEPLAT_DATA"]).rglob("*")
    files = {str(path): path.read_text(errors="replace") for path in paths if path.is_file() and not path.is_symlink()}
    return [path for path, text in files.items() if any(item in text for item in sought)]


def test_secrets_are_nowhere(environment: Environment) -> None:
    """A secret value is in the cluster's Secret, and not in any output, file of ours, or process's arguments."""
    planted = "planted-5fd1c0a7"
    text = HEAD + (
        "  app: {<<: *app, environment: {DB_PASSWORD: '${DB_PASSWORD}'}}\n"
        "  job: {<<: *app, restart: 'no', command: \"sh -c 'echo ${DB_PASSWORD}; exit 1'\"}\n"
    )
    environment.write(text)
    environment.write(f"DB_PASSWORD={planted}\n", ".env")
    output, seen = "", set[str]()
    for args in (
        ("preview", "--diff"),
        ("preview", "--json"),
        ("deploy",),
        ("deploy", "--json"),
        ("refresh", "--json"),
    ):
        process = environment.start(*args)
        while process.poll() is None:
            shown = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
            seen |= set(shown.splitlines())
            time.sleep(0.2)
        output += "".join(process.communicate())
    # The job's own program, which runs on this machine for a moment.
    seen -= {f"sh -c echo {planted}; exit 1"}
    holding = holders_of(environment, planted)

    secret = environment.get("v1", "Secret", "app-env")
    assert secret is not None
    assert secret["data"]["DB_PASSWORD"] == base64.b64encode(planted.encode()).decode()
    assert "[secret]" in output
    assert planted not in output
    assert not [line for line in seen if planted in line]
    assert holding == []


def test_files_are_nowhere(environment: Environment) -> None:
    """What a mounted file holds is in the cluster's Secret alone, not in the state, its history or its copies.

    It was plain in a ConfigMap, and so in the state, and in the state's copies after the environment was destroyed.
    """
    first, second = "planted-1c6e0b52", "planted-77ab93f0"
    text = HEAD + "  app: {<<: *app, volumes: ['./secrets/db.txt:/run/secrets/db']}\n"
    environment.write(first, "secrets/db.txt")
    output = "".join(f"{ran.stdout}{ran.stderr}" for ran in (environment.deploy(text).expect(),))
    environment.write(second, "secrets/db.txt")
    for args in (("preview", "--diff"), ("preview", "--json"), ("deploy", "--json"), ("refresh", "--json")):
        ran = environment.platform(*args).expect()
        output += ran.stdout + ran.stderr
    secret = environment.get("v1", "Secret", "app-files")
    (pod,) = environment.pods("app")
    mounted = environment.exec(pod["metadata"]["name"], "cat", "/run/secrets/db")
    environment.platform("destroy", "--yes").expect()

    assert secret is not None
    assert secret["data"] == {"run_secrets_db": base64.b64encode(second.encode()).decode()}
    assert mounted == second
    assert not [value for value in (first, second) if value in output]
    assert holders_of(environment, first, second) == []


def test_the_config_hash_reveals_no_value(environment: Environment) -> None:
    """A weak value can't be tried by who reads pods: what shows its change is keyed with a salt that is in the Secret.

    The salt stays when a value changes, so that only what changed is rolled.
    """
    text = HEAD + "  app: {<<: *app, environment: {PIN: '1234'}}\n  other: {<<: *app, environment: {PIN: '1234'}}\n"

    def shown() -> dict[str, str]:
        return {
            manifest["metadata"]["name"]: manifest["spec"]["template"]["metadata"]["annotations"][HASH_ANNOTATION]
            for manifest in environment.objects("apps/v1", "Deployment")
        }

    def salt() -> str:
        secret = environment.get("v1", "Secret", "app-env")
        assert secret is not None
        return str(secret["metadata"]["annotations"][SALT_ANNOTATION])

    environment.deploy(text).expect()
    before, salt_before = shown(), salt()
    rendered = environment.platform("render").expect().stdout
    environment.platform("refresh").expect()
    environment.platform("preview", "--expect-no-changes").expect()
    environment.deploy(text.replace("'1234'", "'9876'", 1)).expect()
    after = shown()

    assert len(set(before.values())) == 2
    assert salt() == salt_before
    assert after["app"] != before["app"]
    assert after["other"] == before["other"]
    assert not [item for item in before.values() if item in rendered]
