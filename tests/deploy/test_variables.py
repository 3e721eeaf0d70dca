"""`platform variables`: kept in the namespace, used by every command, and the secret ones seen nowhere."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import split_log_path
from tests.deploy.conftest import PLATFORM, SLEEP, Environment, Ran
from tests.terminal import Terminal

HEAD = f"x-app: &app {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\nservices:\n"
PLANTED = "hunter2-of-the-namespace"
NAME = "platform-variables"


def variables(environment: Environment, *args: str, value: str = "") -> Ran:
    began = time.monotonic()
    done = subprocess.run(
        [str(PLATFORM), "variables", *args, "--namespace", environment.namespace], cwd=environment.folder,
        env=environment.variables, capture_output=True, text=True, check=False, timeout=60, input=value,
    )  # fmt: skip
    stderr, log = split_log_path(done.stderr)
    return Ran(done.returncode, done.stdout, stderr, time.monotonic() - began, log)


def value_of(environment: Environment, name: str) -> str:
    """A variable of the service 'web', as its container sees it."""
    (pod,) = environment.pods("web")
    return environment.exec(pod["metadata"]["name"], "sh", "-c", f'echo "${name}"').rstrip("\n")


def test_set_list_and_unset(environment: Environment) -> None:
    """A namespace that is not there is made; what is a secret is never shown."""
    set_plain = variables(environment, "set", "TAG=1.37").expect()
    variables(environment, "set", "COLOR", value="blue\n").expect()
    variables(environment, "set", "PIN", "--secret", value=PLANTED).expect()
    variables(environment, "set", "DB_PASSWORD", value=PLANTED).expect()

    assert set_plain.stderr == f"set TAG in namespace {environment.namespace}; the next deploy uses it\n"
    assert variables(environment, "list").expect().stdout == (
        "NAME         VALUE\nCOLOR        blue\nDB_PASSWORD  ********\nPIN          ********\nTAG          1.37\n"
    )
    removed = variables(environment, "unset", "COLOR", "DB_PASSWORD", "TAG").expect()
    assert removed.stderr == f"removed COLOR, DB_PASSWORD, TAG from namespace {environment.namespace}\n"
    assert variables(environment, "list", "--json").expect().json == {
        "schema": "platform/variables/1",
        "namespace": environment.namespace,
        "object": f"Secret/{NAME}",
        "variables": [{"name": "PIN", "value": "********", "secret": True}],
    }


def test_secret_to_plain_and_plain_to_secret(environment: Environment) -> None:
    """What was reported the last time holds."""
    for args in (("set", "A=1"), ("set", "B", "--secret"), ("set", "A", "--secret"), ("set", "B=2")):
        variables(environment, *args, value="x").expect()

    found = variables(environment, "list", "--json").expect().json["variables"]

    assert {row["name"]: row["value"] for row in found} == {"A": "********", "B": "2"}


def test_nothing_is_removed_if_a_variable_is_missing(environment: Environment) -> None:
    """A name that is not there is an error that lists those that are."""
    variables(environment, "set", "A=1").expect()

    ran = variables(environment, "unset", "A", "B").expect(1)

    assert (
        f"error: there is no variable 'B' in namespace '{environment.namespace}'\n  hint: variables are: A\n"
        == ran.stderr
    )
    assert ran.log
    assert len(variables(environment, "list", "--json").expect().json["variables"]) == 1


def test_no_variables(environment: Environment) -> None:
    """A namespace without any, and one that is not there, have an empty list."""
    ran = variables(environment, "list").expect()
    assert (ran.stdout, ran.stderr) == ("", f"namespace {environment.namespace} has no variables\n")


def test_typed_on_a_terminal(environment: Environment) -> None:
    """A secret that is typed does not appear on the screen."""
    args = [str(PLATFORM), "variables", "set", "PIN", "--secret", "--namespace", environment.namespace]
    terminal = Terminal(args, folder=environment.folder, env=environment.variables)
    terminal.until("Value of PIN")
    terminal.type(PLANTED)

    assert PLANTED not in terminal.rest()
    assert terminal.status() == 0
    environment.deploy(HEAD + "  web: {<<: *app, environment: {A: '${PIN}'}}\n").expect()
    assert value_of(environment, "A") == PLANTED


def test_precedence(environment: Environment) -> None:
    """The shell wins over `.env`, which wins over the namespace, which wins over a default."""
    for name in ("ONE", "TWO", "THREE"):
        variables(environment, "set", f"{name}=namespace").expect()
    environment.write("TWO=file\nTHREE=file\n", ".env")
    text = HEAD + (
        "  web: {<<: *app, environment: ['A=${ONE:-default}', 'B=${TWO}', 'C=${THREE}', 'D=${FOUR:-default}',"
        " 'E=${PLATFORM_NAMESPACE}']}\n"
    )
    environment.write(text)
    environment.platform("deploy", THREE="shell").expect()

    found = [value_of(environment, name) for name in "ABCDE"]
    assert found == ["namespace", "file", "shell", "default", environment.namespace]


def test_a_required_variable_of_the_namespace(environment: Environment) -> None:
    """A variable of the namespace is enough for `${NAME:?}`; what asks no cluster does not know it."""
    environment.write(HEAD + "  web: {<<: *app, image: 'busybox:${TAG:?which one}'}\n")
    environment.deploy().expect(3)
    variables(environment, "set", "TAG=1.37").expect()

    environment.deploy().expect()
    for command in ("preview", "refresh", "sleep", "wake", "destroy"):
        environment.platform(command).expect()

    assert "[required-variable]" in environment.platform("render").expect(3).stderr
    assert "[required-variable]" in environment.platform("deploy", "--dry-run").expect(3).stderr


def test_flags(environment: Environment) -> None:
    """Both feature flags may be set for all environments of a namespace."""
    variables(environment, "set", "OKTETO_COMPOSE_VOLUME_AFFINITY_ENABLED=false").expect()
    variables(environment, "set", "OKTETO_COMPOSE_DEPENDS_ON_ENABLED=true").expect()
    text = HEAD + (
        "  db: {<<: *app, command: \"sh -c 'sleep 3; exec nc -ll -p 7777 -e cat'\", expose: [7777],"
        " volumes: ['data:/data']}\n"
        "  web: {<<: *app, volumes: ['data:/data'], depends_on: {db: {condition: service_healthy}}}\n"
        "volumes: {data: {}}\n"
    )
    environment.deploy(text).expect()

    pods = [manifest["spec"]["template"]["spec"] for manifest in environment.objects("apps/v1", "StatefulSet")]
    assert [pod.get("affinity") for pod in pods] == [None, None]
    environment.platform("sleep").expect()
    environment.platform("wake").expect()
    begun, waited = (environment.started_at(name) for name in ("db", "web"))
    assert begun < waited


def test_nobody_takes_them_away(environment: Environment) -> None:
    """They belong to the namespace: neither a deploy that tidies up nor a destroy touches them."""
    variables(environment, "set", "A=1").expect()
    environment.deploy(HEAD + "  web: *app\n").expect()
    assert f"Secret/{NAME}" in environment.names()

    environment.platform("destroy", "--volumes", "--yes").expect()

    assert {f"Secret/{NAME}"} == environment.names()
    secret = environment.get("v1", "Secret", NAME)
    assert secret is not None
    assert secret["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "composeplat"}


@contextlib.contextmanager
def command_lines() -> Iterator[set[str]]:
    """All command lines of the machine while something continues."""
    seen: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    seen.add(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


SECRETIVE = (
    HEAD
    + """
  web:
    <<: *app
    environment: {A: "${PIN}", B: "x-${PIN}-${ROUND:-1}"}
    labels: {note: "${PIN}"}
  once:
    <<: *app
    restart: "no"
    command: sh -c "echo it is ${PIN}; exit ${END:-3}"
"""
)


def test_a_planted_secret(environment: Environment) -> None:
    """Its value is in no output, not in the state, and on no command line; the container has it."""
    with command_lines() as seen:
        output = [variables(environment, "set", "PIN", "--secret", value=PLANTED).expect()]
        environment.write(SECRETIVE)
        output.append(environment.platform("deploy", "-v", "--timeout", "60").expect(1))
        output.append(environment.platform("deploy", "--json", "--timeout", "60").expect(1))
        assert "    it is [secret]\n" in output[1].stderr
        environment.write(SECRETIVE.replace(":-3", ":-0"))
        output.append(environment.platform("preview", "--diff").expect())
        output.append(environment.platform("preview", "--json").expect())
        output.append(environment.platform("deploy", "--json").expect())
        output.append(environment.platform("preview", "--diff", ROUND="2").expect())
        with environment.api() as api:
            path = f"/apis/apps/v1/namespaces/{environment.namespace}/deployments/web"
            api.patch(path, {"metadata": {"annotations": {"note": f"not {PLANTED}"}}})
        output += [environment.platform(*args).expect() for args in (
            ("refresh",), ("sleep",), ("wake",), ("sleep", "--json"), ("wake", "--json"), ("preview", "--diff"),
        )]  # fmt: skip
        output.append(variables(environment, "list", "--json"))
        assert value_of(environment, "A") == PLANTED
        state = json.dumps(environment.state())
        output.append(environment.platform("destroy").expect())

    assert [item for item in output if PLANTED in item.stdout + item.stderr] == []
    assert PLANTED not in state
    kept = [path for path in Path(environment.variables["COMPOSEPLAT_DATA"]).rglob("*") if path.is_file()]
    assert len(kept) > 3
    assert [str(path) for path in kept if PLANTED.encode() in path.read_bytes()] == []
    assert any(" up " in line for line in seen)
    # The program in the container has it in its own command, as the file says.
    own = {f"sh -c echo it is {PLANTED}; exit {status}" for status in (3, 0)}
    assert [line for line in seen if PLANTED in line and line.strip() not in own] == []


@pytest.mark.parametrize(
    ("args", "value", "message"),
    [
        pytest.param(("set", "2ND=x"), "", "error: '2ND' can't be a variable's name\n", id="name"),
        pytest.param(
            ("set", "PLATFORM_NAMESPACE=x"), "",
            "error: PLATFORM_NAMESPACE can't be stored in a namespace: it selects the namespace or the files\n",
            id="namespace",
        ),
        pytest.param(
            ("set", "PIN=x", "--secret"), "",
            "error: the value of PIN is a secret by --secret, and a command line can be seen by others\n",
            id="secret",
        ),
        pytest.param(
            ("set", "API_TOKEN=x"), "",
            "error: the value of API_TOKEN is a secret by its name, and a command line can be seen by others\n",
            id="secret-by-name",
        ),
    ],
)  # fmt: skip
def test_refused(environment: Environment, args: tuple[str, ...], value: str, message: str) -> None:
    """What can't be kept, or must not be on a command line, is a mistake in the use; nothing is kept."""
    ran: Any = variables(environment, *args, value=value).expect(2)

    assert ran.stderr.startswith(message)
    assert variables(environment, "list").expect().stdout == ""
