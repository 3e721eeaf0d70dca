"""Data stays: through destroy, through changes of a service, through a volume that leaves the file."""

from __future__ import annotations

import pytest

from composeplat.cluster.kinds import kind_path
from tests.conftest import for_endurance
from tests.deploy.conftest import SLEEP, Environment, until
from tests.terminal import Terminal

HEAD = f"x-app: &app {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\nservices:\n"
KEEPER = HEAD + "  keeper: {<<: *app, volumes: ['data:/data']}\nvolumes: {data: {}}\n"


def write(environment: Environment) -> None:
    environment.exec(environment.pods("keeper")[0]["metadata"]["name"], "sh", "-c", "echo precious > /data/file")


def read(environment: Environment, service: str = "keeper") -> str:
    return environment.exec(environment.pods(service)[0]["metadata"]["name"], "cat", "/data/file")


def test_destroy_and_deploy(environment: Environment) -> None:
    """Destroy leaves volumes, and only them, and says so; the next deploy finds the data."""
    environment.deploy(KEEPER).expect()
    write(environment)
    gone = environment.platform("destroy").expect()

    assert "volume data (1Gi) and its data stay" in gone.stderr
    assert environment.names() == {"PersistentVolumeClaim/data"}
    assert environment.pods() == []
    environment.deploy().expect()
    assert read(environment) == "precious\n"


def test_volume_leaves_the_file_and_comes_back(environment: Environment) -> None:
    """A volume that is not in the file any more stays, with a message, and is taken up when it comes back."""
    environment.deploy(KEEPER).expect()
    write(environment)
    environment.write(HEAD + "  keeper: *app\n")
    shown = environment.platform("preview").expect()
    left = environment.deploy().expect()

    assert "- keep in the cluster, out of the state PersistentVolumeClaim data" in shown.stdout
    assert "volume data is no longer used; it and its data stay in the cluster" in left.stderr
    assert "Deployment/keeper" in environment.names()
    environment.deploy(KEEPER).expect()
    assert read(environment) == "precious\n"


def test_an_anonymous_volume_leaves_the_file(environment: Environment) -> None:
    """Its claim stays as well, and is named: no later deploy uses it, as the service is gone."""
    text = HEAD + "  web: *app\n"
    environment.deploy(text + "  db: {<<: *app, volumes: ['/data']}\n  app: {<<: *app, volumes: ['/data']}\n").expect()
    environment.write(text + "  app: {<<: *app, volumes: ['/data']}\n")

    shown = environment.platform("preview").expect()
    left = environment.deploy().expect()

    assert "volume anonymous-data-db-0 is no longer used; it and its data stay in the cluster\n" in shown.stderr
    assert "volume anonymous-data-db-0 is no longer used; it and its data stay in the cluster\n" in left.stderr
    assert "anonymous-data-app" not in shown.stdout + left.stderr


def test_destroy_of_what_is_gone(environment: Environment) -> None:
    """Objects that somebody has deleted already are neither named nor counted."""
    environment.deploy(KEEPER).expect()
    with environment.api() as api:
        api.delete(f"{kind_path('apps/v1', 'StatefulSet', environment.namespace)}/keeper")
    until(lambda: environment.get("apps/v1", "StatefulSet", "keeper") is None)

    gone = environment.platform("destroy").expect()

    assert "StatefulSet/keeper" not in gone.stderr
    assert "deleted Service/keeper\n" in gone.stderr
    assert ": 1 object deleted, " in gone.stderr


def named(service: str) -> str:
    """A file whose service writes to its volume when it starts and, some seconds after it is asked to, ends."""
    trap = 'trap "sleep 4; echo ended >> /data/file; exit" TERM'
    return (
        f"services:\n  {service}:\n    image: busybox\n    volumes: ['data:/data']\n"
        f"    command: sh -c 'echo started >> /data/file; {trap}; while :; do sleep 0.2; done'\n"
        "volumes: {data: {}}\n"
    )


def test_a_service_gets_another_name(environment: Environment) -> None:
    """Its old pods have ended before the new ones start: two databases on one volume would destroy it."""
    environment.deploy(named("db")).expect()
    environment.write(named("other"))
    limited = environment.deploy("", "other").expect()
    assert "db is not in the file, and still writes to a volume of other: platform deploy ends it\n" in limited.stderr
    environment.deploy(named("db")).expect()

    renamed = environment.deploy(named("database")).expect()

    assert "database takes over a volume of db, whose pods end first\n" in renamed.stderr
    assert read(environment, "database").endswith("ended\nstarted\n")
    environment.platform("preview", "--expect-no-changes").expect()


def test_a_deploy_is_killed_while_the_old_pods_end(environment: Environment) -> None:
    """The next deploy waits for them as well, although nothing but them is left of the old workload."""
    environment.deploy(named("db")).expect()
    environment.write(named("database"))
    killed = environment.start("deploy")
    assert killed.stderr is not None
    while "whose pods end first" not in (line := killed.stderr.readline()):
        assert line, killed.wait()
    until(lambda: not environment.pods("db"))
    killed.kill()

    again = environment.deploy().expect()

    assert "database takes over a volume of db, whose pods end first\n" in again.stderr
    assert read(environment, "database") == "started\nended\nstarted\n"
    environment.platform("preview", "--expect-no-changes").expect()


def test_the_kind_of_a_workload_changes(environment: Environment) -> None:
    """From StatefulSet to Deployment to Job and back, and under another name, the data is the same."""
    environment.deploy(KEEPER).expect()
    write(environment)
    job = (
        HEAD
        + "  keeper: {<<: *app, restart: 'no', command: cat /data/file, volumes: ['data:/data']}\nvolumes: {data: {}}\n"
    )
    plain = HEAD + "  keeper: *app\n  other: {<<: *app, volumes: ['data:/data']}\nvolumes: {data: {}}\n"

    environment.deploy(job).expect()
    assert "Job/keeper" in environment.names()
    assert "StatefulSet/keeper" not in environment.names()
    environment.deploy(plain).expect()
    assert {"Deployment/keeper", "StatefulSet/other"} <= environment.names()
    assert read(environment, "other") == "precious\n"
    environment.deploy(KEEPER).expect()
    assert read(environment) == "precious\n"
    assert "StatefulSet/other" not in environment.names()


def test_a_change_that_would_lose_data_is_refused(environment: Environment) -> None:
    """Another storage class or a smaller size is refused before anything changes; --replace-volume allows it."""
    environment.deploy(KEEPER).expect()
    write(environment)
    environment.write(KEEPER.replace("data: {}", "data: {driver_opts: {size: 100Mi}}") + "x-more: 1\n")
    refused = environment.platform("deploy").expect(1)

    assert (
        "compose.yaml:4:17: error: volumes.data can't be changed without losing its data:"
        " the file changes its size from 1Gi to 100Mi [volume-replacement]" in refused.stderr
    )
    assert "nothing was changed" in refused.stderr
    assert read(environment) == "precious\n"
    shown = environment.platform("preview", "--replace-volume", "data").expect()
    assert "! replace PersistentVolumeClaim data: size 1Gi → 100Mi\n" in shown.stdout
    assert "volume data will be replaced and its data deleted; keeper will be replaced with it" in shown.stderr
    replaced = environment.platform("deploy", "--replace-volume", "data").expect()
    assert ": 2 replaced, " in replaced.stderr
    claim = environment.get("v1", "PersistentVolumeClaim", "data")
    assert claim is not None
    assert claim["spec"]["resources"]["requests"]["storage"] == "100Mi"
    assert environment.exec("keeper-0", "ls", "/data") == ""

    write(environment)
    again = environment.platform("deploy", "--replace-volume", "data").expect()
    assert "volume data stays as it is: the file does not change it" in again.stderr
    assert read(environment) == "precious\n"
    unknown = environment.platform("deploy", "--replace-volume", "dta").expect(1)
    assert "there is no volume 'dta' to replace" in unknown.stderr


def test_destroy_with_volumes(environment: Environment) -> None:
    """--volumes deletes data only when it is confirmed."""
    environment.deploy(KEEPER).expect()
    refused = environment.platform("destroy", "--volumes").expect(1)
    assert "there is no terminal to confirm that on" in refused.stderr
    assert "PersistentVolumeClaim/data" in environment.names()

    args = environment.command_line("destroy", "--volumes")
    terminal = Terminal(args, folder=environment.folder, env=environment.variables)
    assert "  volume data (1Gi)" in terminal.until("Type the environment's name to continue")
    terminal.type(environment.name)

    assert "volume data (1Gi) and its data are deleted" in terminal.rest()
    assert terminal.status() == 0
    assert environment.names() == set()


@pytest.mark.parametrize("again", ["destroy", *for_endurance("")])
def test_anonymous_volumes_are_kept(environment: Environment, again: str) -> None:
    """An anonymous volume's data is there after a change and after a destroy."""
    text = HEAD + "  keeper: {<<: *app, volumes: ['/data'], environment: {A: '${A:-1}'}}\n"
    environment.deploy(text).expect()
    write(environment)
    if again:
        environment.platform(again).expect()
    environment.platform("deploy", A="2").expect()

    assert read(environment) == "precious\n"
