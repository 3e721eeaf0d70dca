"""A preview and a deploy without a change need no Pulumi; a table has all that makes them ask it again."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.snapshot import is_ready
from composeplat.local.cluster import LocalCluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import PULUMI
from tests.conftest import for_endurance
from tests.deploy.conftest import PLATFORM, SLEEP, Environment, Ran, an_environment, until
from tests.deploy.test_up import up_args

SWITCH = "PLATFORM_SKIP_UNCHANGED"
SECRET = "hunter2-of-the-file"  # noqa: S105
FILES = {
    "compose.yaml": f"""\
x-app: &app {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
services:
  web:
    <<: *app
    command: httpd -f -p 80
    ports: ['18080:80']
    env_file: web.env
    volumes: ['./conf:/etc/conf', 'data:/data']
    configs: [app]
  api: {{<<: *app, environment: {{TAG: "${{TAG:-1}}"}}, labels: {{team: a}}}}
  once: {{<<: *app, restart: "no", command: "true"}}
volumes: {{data: {{}}}}
configs: {{app: {{file: app.conf}}}}
""",
    "web.env": f"DB_PASSWORD={SECRET}\n",
    "conf/a.conf": "a\n",
    "app.conf": "a\n",
}
Broken = tuple[tuple[str, ...], Mapping[str, str]]
Breaker = Callable[[Environment], AbstractContextManager[Broken]]
NOTHING: Broken = ((), {})


@pytest.fixture(scope="module")
def shop(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """One environment for all breakers; each begins with a deploy of the same files."""
    folder = tmp_path_factory.mktemp("shop")
    with an_environment(cluster, folder, tmp_path_factory.mktemp("private")) as made:
        made.variables["PLATFORM_FULL"] = "true"
        yield made


def write_files(environment: Environment) -> None:
    for name, text in FILES.items():
        environment.write(text, name)


def asks_pulumi(ran: Ran) -> bool:
    """Whether a run with ``--debug`` started Pulumi."""
    return re.search(r"running \S*/pulumi ", ran.stderr) is not None


def preview(environment: Environment, *args: str, **more: str) -> Ran:
    return environment.platform("preview", "--debug", *args, **more)


#: Namespaces whose objects and state are as `settle` left them.
_DEPLOYED: set[str] = set()


def settle(environment: Environment) -> None:
    """Deploy the files where something else was deployed, so that the next run needs no Pulumi."""
    write_files(environment)
    if environment.namespace in _DEPLOYED and not asks_pulumi(preview(environment, "--expect-no-changes")):
        return
    environment.deploy().expect()
    _DEPLOYED.add(environment.namespace)
    # After some changes only a run without changes shows that there are none, and something may still be ending.
    runs: list[str] = []
    while asks_pulumi(ran := preview(environment, "--expect-no-changes").expect()):
        runs.append(ran.stderr)
        assert len(runs) < 3, "\n".join(line for text in runs for line in text.splitlines() if "Pulumi" in line)


def record_of(environment: Environment) -> Path:
    (folder,) = Path(environment.variables["COMPOSEPLAT_DATA"]).glob(
        f"stacks/*/{environment.name}/{environment.namespace}"
    )
    return folder / "unchanged.json"


# what a run without Pulumi prints -------------------------------------------------------------------------------------


def comparable(ran: Ran) -> tuple[int, str, list[str]]:
    """The output of a run without its times, and without the lines that name a step which takes long."""
    times = re.compile(r"\d+\.\d+ s\b|\"seconds\": [\d.]+")
    # The order in which Pulumi finds services unchanged is any.
    lines = [line for line in times.sub("TIME", ran.stderr).splitlines() if not line.endswith("…")]
    return ran.status, times.sub("TIME", ran.stdout), sorted(lines)


@pytest.mark.parametrize(
    "args",
    [
        ("preview", "--json"),
        ("preview", "--diff", "--progress", "json"),
        ("deploy",),
        *for_endurance(
            ("preview",),
            ("preview", "--expect-no-changes"),
            ("deploy", "--json"),
            ("deploy", "--progress", "json"),
            ("deploy", "--progress", "plain"),
        ),
    ],
    ids=" ".join,
)
def test_the_same_output(shop: Environment, args: tuple[str, ...]) -> None:
    """Status, text, JSON and events are those of a run of Pulumi."""
    settle(shop)
    fast = shop.platform(*args).expect()
    assert record_of(shop).exists()
    slow = shop.platform(*args, **{SWITCH: "false"}).expect()

    assert comparable(fast) == comparable(slow)


def test_after_a_first_deploy(environment: Environment) -> None:
    """The first run after a deploy that created everything needs no Pulumi."""
    environment.write(f"services: {{web: {{image: 'busybox:1.37', command: \"{SLEEP}\", environment: {{A: b}}}}}}")
    environment.deploy("", "--debug").expect()
    ran = preview(environment, "--expect-no-changes").expect()

    assert not asks_pulumi(ran), ran.stderr


def test_a_deploy_without_pulumi(shop: Environment) -> None:
    """A deploy too needs no Pulumi, and leaves the record for the next."""
    settle(shop)
    ran = shop.deploy("", "--debug").expect()

    assert not asks_pulumi(ran)
    assert "nothing changed" in ran.stderr
    assert ran.stdout.startswith("https://web-")
    assert not asks_pulumi(shop.deploy("", "--debug").expect())


@pytest.mark.parametrize("command", ["preview", "deploy"])
def test_no_module_of_pulumi(shop: Environment, command: str) -> None:
    """A run that needs no Pulumi does not load its SDK either, which takes longer than all the rest."""
    settle(shop)
    loads = re.compile(r"^import time: .*\| +(pulumi|grpc|google)\b", re.MULTILINE)

    assert loads.search(shop.platform(command, PYTHONPROFILEIMPORTTIME="1").expect().stderr) is None
    slow = shop.platform(command, PYTHONPROFILEIMPORTTIME="1", **{SWITCH: "false"}).expect()
    assert loads.search(slow.stderr) is not None


def test_the_switch(shop: Environment) -> None:
    """The variable that is false makes a run ask Pulumi, and the reason is in the log."""
    settle(shop)
    ran = preview(shop, **{SWITCH: "false"}).expect()

    assert asks_pulumi(ran)
    assert f"Pulumi has to look for changes: {SWITCH} is false" in ran.stderr


def test_a_record_without_secrets(shop: Environment) -> None:
    """The record has digests of values alone, and nobody else can read it."""
    settle(shop)
    text = record_of(shop).read_text()

    assert record_of(shop).stat().st_mode & 0o777 == 0o600
    for secret in (SECRET, base64.b64encode(SECRET.encode()).decode()):
        assert secret not in text
    for group in ("inputs", "objects"):
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in json.loads(text)[group].values())


# what breaks it -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def deleted(shop: Environment) -> Iterator[Broken]:
    with shop.api() as api:
        api.delete(f"/api/v1/namespaces/{shop.namespace}/services/web")
    yield NOTHING


def patched(path: str, change: dict[str, Any], back: dict[str, Any] | None = None) -> Breaker:
    """An object that was changed by hand."""

    @contextlib.contextmanager
    def broken(shop: Environment) -> Iterator[Broken]:
        with shop.api() as api:
            api.patch(path.format(shop.namespace), change)
            yield NOTHING
            api.patch(path.format(shop.namespace), back or {})

    return broken


def written(name: str, text: str) -> Breaker:
    """A file with another content."""

    @contextlib.contextmanager
    def broken(shop: Environment) -> Iterator[Broken]:
        shop.write(text, name)
        yield NOTHING

    return broken


def given(*args: str, **more: str) -> Breaker:
    """Another argument or variable."""

    @contextlib.contextmanager
    def broken(_shop: Environment) -> Iterator[Broken]:
        yield args, more

    return broken


def after(*args: str) -> Breaker:
    """A command that ran in between."""

    @contextlib.contextmanager
    def broken(shop: Environment) -> Iterator[Broken]:
        shop.platform(*args).expect()
        yield NOTHING

    return broken


@contextlib.contextmanager
def slept(shop: Environment) -> Iterator[Broken]:
    shop.platform("sleep").expect()
    shop.platform("wake").expect()
    yield NOTHING


def variables(shop: Environment, *args: str) -> None:
    command = [str(PLATFORM), "variables", *args, "--namespace", shop.namespace]
    subprocess.run(command, cwd=shop.folder, env=shop.variables, check=True, capture_output=True)


@contextlib.contextmanager
def stored_variable(shop: Environment) -> Iterator[Broken]:
    variables(shop, "set", "TAG=2")
    yield NOTHING
    variables(shop, "unset", "TAG")


@contextlib.contextmanager
def another_version(shop: Environment) -> Iterator[Broken]:
    folder = shop.folder.parent / "packages"
    (folder / "pulumi_policy-99.0.0.dist-info").mkdir(parents=True, exist_ok=True)
    yield (), {"PYTHONPATH": str(folder)}


@contextlib.contextmanager
def failed_run(shop: Environment) -> Iterator[Broken]:
    shop.write(FILES["compose.yaml"].replace("'busybox:1.37'", "'busybox:no-such-tag'"))
    shop.platform("deploy", "--timeout", "1").expect(1)
    write_files(shop)
    yield NOTHING


@contextlib.contextmanager
def killed_run(shop: Environment) -> Iterator[Broken]:
    """A deploy that is killed before Pulumi has changed anything."""
    record, process = record_of(shop), shop.start("deploy", "--refresh")
    until(lambda: not record.exists(), seconds=30)
    process.kill()
    process.communicate()
    yield NOTHING


@contextlib.contextmanager
def developed(shop: Environment) -> Iterator[Broken]:
    with subprocess.Popen(
        up_args(shop, "web", "--", "sleep", "600"), cwd=shop.folder, env=shop.variables, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        until(lambda: shop.get("apps/v1", "Deployment", "web-platform-up"), seconds=60)
        yield NOTHING
        process.send_signal(signal.SIGINT)
    shop.platform("down", "web")


@contextlib.contextmanager
def refreshed_by_pulumi(shop: Environment) -> Iterator[Broken]:
    """Pulumi itself, which writes the same state again."""
    folder, data = record_of(shop).parent, Path(shop.variables["COMPOSEPLAT_DATA"])
    (state,) = data.glob("state/*")
    variables = {
        **shop.variables, "PULUMI_BACKEND_URL": f"file://{state}", "PULUMI_HOME": str(data / "pulumi"),
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(data / "passphrase"),
    }  # fmt: skip
    program = str(Toolchain(os.environ).need(PULUMI).path)
    args = [program, "refresh", "--yes", "--non-interactive", "--stack", shop.namespace]
    subprocess.run(args, cwd=folder, env=variables, check=True, capture_output=True, timeout=120)
    yield NOTHING


@contextlib.contextmanager
def locked_by_pulumi(shop: Environment) -> Iterator[Broken]:
    """Another machine's run, which is under way."""
    (state,) = Path(shop.variables["COMPOSEPLAT_DATA"]).glob("state/*")
    lock = state / f".pulumi/locks/organization/{shop.name}/{shop.namespace}/someone.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text('{"pid": 1, "username": "someone", "hostname": "elsewhere"}')
    yield NOTHING
    lock.unlink()


@contextlib.contextmanager
def another_key(shop: Environment) -> Iterator[Broken]:
    """A record that was made with another key."""
    passphrase = Path(shop.variables["COMPOSEPLAT_DATA"]) / "passphrase"
    kept = passphrase.read_text()
    variables = {"PULUMI_CONFIG_PASSPHRASE": kept}
    passphrase.write_text("another")
    yield (), variables
    passphrase.write_text(kept)


@contextlib.contextmanager
def broken_record(shop: Environment) -> Iterator[Broken]:
    record_of(shop).write_text("{")
    yield NOTHING


DEPLOYMENT = "/apis/apps/v1/namespaces/{}/deployments/api"
SERVICE = "/api/v1/namespaces/{}/services/web"
SECRET_OBJECT = "/api/v1/namespaces/{}/secrets/web-env"  # noqa: S105
COMPOSE = FILES["compose.yaml"]


@contextlib.contextmanager
def a_policy_pack(shop: Environment) -> Iterator[Broken]:
    shop.write("name: team\nruntime: none\n", "policies/PulumiPolicy.yaml")
    yield ("--policy-pack", "policies"), {}


@contextlib.contextmanager
def a_policy_pack_by_variable(shop: Environment) -> Iterator[Broken]:
    with a_policy_pack(shop):
        yield (), {"PULUMI_OPTION_POLICY_PACK": "policies"}


#: Nothing answers there.
TRACES = "grpc://127.0.0.1:1"
#: All that must make a preview ask Pulumi: how it comes, and a part of the reason in the log.
#: First what a run is given, which leaves the objects and the state as they are.
GIVEN: dict[str, tuple[Breaker, str]] = {
    "the compose file is changed": (written("compose.yaml", COMPOSE.replace("team: a", "team: b")), "plan"),
    "a service is added": (written("compose.yaml", COMPOSE.replace("  once:", "  more: *app\n  once:")), "plan"),
    "a service is removed": (written("compose.yaml", re.sub("  once: .*\n", "", COMPOSE)), "plan"),
    "a file of a bind mount is changed": (written("conf/a.conf", "b\n"), "service-web"),
    "a file of a bind mount is added": (written("conf/b.conf", "b\n"), "service-web"),
    "an env file is changed": (written("web.env", "DB_PASSWORD=other\n"), "service-web"),
    "a config is changed": (written("app.conf", "b\n"), "config-app, service-web"),
    "a variable of the shell is set": (given(TAG="2"), "service-api"),
    "a variable of .env is set": (written(".env", "TAG=2\n"), "service-api"),
    "a variable of the namespace is set": (stored_variable, "service-api"),
    "a setting is given": (given("--domain", "example.org"), "changed since the last run: plan"),
    "a variable of Pulumi is set": (given(PULUMI_DISABLE_PROVIDER_PREVIEW="true"), "variables"),
    "a policy pack is checked": (a_policy_pack, "Pulumi has to run for PULUMI_OPTION_POLICY_PACK"),
    "a policy pack is checked by a variable": (a_policy_pack_by_variable, "run for PULUMI_OPTION_POLICY_PACK"),
    "traces are sent": (given("--otel-traces", TRACES), "run for PULUMI_OPTION_OTEL_TRACES"),
    "traces are sent by a variable": (given(PULUMI_OPTION_OTEL_TRACES=TRACES), "run for PULUMI_OPTION_OTEL_TRACES"),
    "a service is named": (given("api"), "the option services is given"),
    "jobs shall run again": (given("--rerun-jobs"), "the option rerun_jobs is given"),
    "a volume shall be replaced": (given("--replace-volume", "data"), "the option replaced_volumes is given"),
    "another version": (another_version, "versions"),
    "another run holds Pulumi's lock": (locked_by_pulumi, "another run of Pulumi holds the lock"),
    "another key": (another_key, "changed since the last run: "),
}
#: Then what has changed in the cluster, in the state or in the record.
FOUND: dict[str, tuple[Breaker, str]] = {
    "an object is deleted": (deleted, "changed in the cluster: Service/web"),
    "the spec of a workload is edited": (
        patched(DEPLOYMENT, {"spec": {"replicas": 2}}),
        "changed in the cluster: Deployment/api",
    ),
    "an annotation is edited": (
        patched(DEPLOYMENT, {"metadata": {"annotations": {"team": "b"}}}),
        "changed in the cluster: Deployment/api",
    ),
    "a cluster service is edited": (
        patched(SERVICE, {"spec": {"sessionAffinity": "ClientIP"}}),
        "changed in the cluster: Service/web",
    ),
    "a secret is edited": (
        patched(SECRET_OBJECT, {"data": {"DB_PASSWORD": "eA=="}}),
        "changed in the cluster: Secret/web-env",
    ),
    "a label is removed": (
        patched(
            SERVICE,
            {"metadata": {"labels": {"dev.platform.com/environment": None}}},
            {"metadata": {"labels": {"dev.platform.com/environment": "env"}}},
        ),
        "changed in the cluster: Service/web",
    ),
    "a label is added": (
        patched(SERVICE, {"metadata": {"labels": {"mine": "1"}}}),
        "changed in the cluster: Service/web",
    ),
    "a run failed": (failed_run, "there is no record of a run that ended well"),
    "a run was killed": (killed_run, " of a run that "),
    "it sleeps": (after("sleep"), "there is no record of a run that ended well"),
    "it slept and is awake": (slept, "there is no record of a run that ended well"),
    "a service is under development": (developed, "changed in the cluster: |there is no record"),
    "the state is refreshed": (after("refresh"), "there is no record of a run that ended well"),
    "Pulumi wrote the state": (refreshed_by_pulumi, "the state has changed since the last run"),
    "the record is broken": (broken_record, "there is no record of a run that ended well"),
    "it is destroyed": (after("destroy", "--yes"), "there is no record of a run that ended well"),
}
BREAKERS = {**GIVEN, **FOUND}


@pytest.mark.parametrize("name", BREAKERS)
def test_what_breaks_it(shop: Environment, name: str) -> None:
    """Everything in the table makes the next run ask Pulumi, for the reason that the log has."""
    (shop.folder / ".env").unlink(missing_ok=True)
    (shop.folder / "conf/b.conf").unlink(missing_ok=True)
    settle(shop)
    if name in FOUND:
        _DEPLOYED.discard(shop.namespace)
    breaker, reason = BREAKERS[name]
    with breaker(shop) as (args, more):
        ran = preview(shop, *args, **more)

    # An object that is not ours any more is refused before Pulumi runs.
    assert asks_pulumi(ran) or "[ownership-conflict]" in ran.stderr, ran.stderr
    (why,) = re.findall("Pulumi has to look for changes: (.*)", ran.stderr)
    assert re.search(reason, why)


def test_another_machine(environment: Environment, tmp_path: Path) -> None:
    """A deploy or a refresh of another machine with the same state makes this one ask Pulumi."""
    environment.write(f"services: {{api: {{image: 'busybox:1.37', command: \"{SLEEP}\", environment: [TAG]}}}}")
    shared = {"PULUMI_BACKEND_URL": f"file://{tmp_path / 'shared'}", "PULUMI_CONFIG_PASSPHRASE": "a"}
    other = {**shared, "COMPOSEPLAT_DATA": str(tmp_path / "other")}
    (tmp_path / "shared").mkdir()
    environment.platform("deploy", TAG="1", **shared).expect()
    assert not asks_pulumi(preview(environment, "--expect-no-changes", TAG="1", **shared).expect())

    environment.platform("refresh", **other).expect()
    assert asks_pulumi(preview(environment, "--expect-no-changes", TAG="1", **shared).expect())
    assert not asks_pulumi(preview(environment, "--expect-no-changes", TAG="1", **shared).expect())
    environment.platform("deploy", TAG="2", **other).expect()
    assert asks_pulumi(preview(environment, "--expect-no-changes", TAG="1", **shared).expect(5))
    environment.platform("deploy", TAG="1", **other).expect()
    assert asks_pulumi(preview(environment, "--expect-no-changes", TAG="1", **shared).expect())


def test_a_build(environment: Environment) -> None:
    """The files, arguments and secrets of a build make a run ask Pulumi, which alone knows whether it builds."""
    environment.write("FROM busybox:1.37\nARG A\nCOPY a b /\n", "app/Dockerfile")
    environment.write("1", "app/a")
    environment.write("1", "app/b")
    environment.write("1", "secret")
    environment.write(
        f'services: {{web: {{build: {{context: app, args: [A], secrets: [s]}}, command: "{SLEEP}"}}}}\n'
        "secrets: {s: {file: secret}}\n"
    )
    environment.platform("deploy", A="1").expect()
    assert not asks_pulumi(preview(environment, "--expect-no-changes", A="1").expect())
    assert not asks_pulumi(environment.platform("deploy", "--debug", A="1").expect())
    preview(environment, "--expect-no-changes", A="1", **{SWITCH: "false"}).expect()

    assert asks_pulumi(preview(environment, "--expect-no-changes", A="2").expect(5))
    for name in ("app/a", "app/Dockerfile", "secret"):
        preview(environment, "--expect-no-changes", A="1").expect()
        path = environment.folder / name
        before = path.read_text()
        path.write_text(before.replace("1", "2") + "\n")
        assert asks_pulumi(preview(environment, "--expect-no-changes", A="1").expect(5)), name
        path.write_text(before)
    assert asks_pulumi(environment.platform("deploy", "--build", "--debug", A="1").expect())


def test_a_file_that_changes_during_a_build(environment: Environment) -> None:
    """The image may have its other content, although it is as before when the next run looks, with its time."""
    environment.write("FROM busybox:1.37\nRUN sleep 3\nCOPY a /\n", "app/Dockerfile")
    environment.write("1", "app/a")
    environment.write(f'services: {{web: {{build: app, command: "{SLEEP}"}}}}\n')
    path = environment.folder / "app" / "a"
    before = path.stat()
    process = environment.start("deploy")
    time.sleep(2)
    path.write_text("2")
    path.write_text("1")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    output = process.communicate(timeout=200)
    assert process.returncode == 0, output

    assert asks_pulumi(preview(environment, "--expect-no-changes").expect())
    assert not asks_pulumi(preview(environment, "--expect-no-changes").expect())


def test_a_service_that_is_not_ready(environment: Environment) -> None:
    """A deploy without a change waits and fails as with Pulumi; a preview does not look at pods."""
    environment.write(
        f"services: {{web: {{image: 'busybox:1.37', command: \"{SLEEP}\", healthcheck: "
        "{test: [CMD, test, '!', -e, /tmp/broken], interval: 1s, retries: 1}}}"
    )
    environment.deploy().expect()
    (pod,) = environment.pods("web")
    environment.exec(pod["metadata"]["name"], "touch", "/tmp/broken")  # noqa: S108
    until(lambda: not is_ready(environment.pods("web")[0]))

    assert not asks_pulumi(preview(environment, "--expect-no-changes").expect())
    failed = environment.deploy("", "--debug", "--timeout", "3").expect(1)
    assert asks_pulumi(failed)
    assert "error: services.web: " in failed.stderr


def test_a_credential_that_is_refused(environment: Environment, tmp_path: Path) -> None:
    """A run with a credential that the cluster refuses ends as with Pulumi."""
    environment.deploy(f"services: {{web: {{image: 'busybox:1.37', command: \"{SLEEP}\"}}}}").expect()
    access = environment.cluster.access
    entry = {"server": access.address, "certificate-authority": access.authority}
    config = {
        "current-context": "a",
        "clusters": [{"name": "a", "cluster": entry}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {"token": "expired"}}],
    }
    (tmp_path / "expired").write_text(json.dumps(config))
    ends = [
        environment.platform("preview", "--kubeconfig", str(tmp_path / "expired"), **{SWITCH: switch})
        for switch in ("true", "false")
    ]

    assert ends[0].status == 4
    assert comparable(ends[0]) == comparable(ends[1])


def test_a_busy_environment(environment: Environment) -> None:
    """While another operation runs, a run that needs no Pulumi is refused too."""
    environment.deploy(f"services: {{web: {{image: 'busybox:1.37', command: \"{SLEEP}\"}}}}").expect()
    assert not asks_pulumi(preview(environment).expect())
    with (record_of(environment).parent / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = environment.platform("preview").expect(1)

    assert "is busy" in refused.stderr
