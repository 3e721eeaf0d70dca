"""Images are built as their sections say, and run by digest; host content goes into pods."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from composeplat.compose.load.repository import find_commit
from composeplat.local.packages import search_path
from tests.compose.test_repository import git, repository
from tests.deploy.conftest import PORTS, SLEEP, Environment, fetch, until
from tests.deploy.docker import users_builder
from tests.deploy.test_no_change import SWITCH, asks_pulumi
from tests.registry_server import Answer, Registry, serving

HEAD = f'x-app: &app {{command: "{SLEEP}", stop_grace_period: 0}}\n'

DOCKERFILE = "FROM busybox:1.37\nCOPY . /app/\n"


def pod_of(environment: Environment, service: str) -> str:
    (pod,) = environment.pods(service)
    return str(pod["metadata"]["name"])


def read(environment: Environment, service: str, path: str) -> str:
    return environment.exec(pod_of(environment, service), "cat", path)


def image_of(environment: Environment, service: str) -> str:
    found = environment.get("apps/v1", "Deployment", service)
    assert found is not None
    return str(found["spec"]["template"]["spec"]["containers"][0]["image"])


def changes(environment: Environment, **shell: str) -> list[str]:
    """What a deploy would change: ``update Image/web``."""
    ran = environment.platform("preview", "--json", "--debug", **shell).expect()
    found = ran.json
    if not asks_pulumi(ran):
        whole = environment.platform("preview", "--json", **shell, **{SWITCH: "false"}).expect().json
        assert whole["changes"] == found["changes"]
    return sorted(f"{row['operation']} {row['kind']}/{row['name'].rpartition('/')[2]}" for row in found["changes"])


def state_text(environment: Environment) -> str:
    return json.dumps(environment.state())


def test_no_program_of_a_repository_in_a_context_runs(environment: Environment) -> None:
    """A build context may be a git repository whose configuration names a program, such as a partial clone's."""
    environment.write(f"{HEAD}services:\n  web: {{<<: *app, build: ./web}}\n")
    environment.write(DOCKERFILE, "web/Dockerfile")
    ran, program = environment.folder.parent / "ran", environment.folder.parent / "program"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    program.chmod(0o755)
    tree = repository(environment.folder / "web")
    found = find_commit(tree)
    assert found
    for name, value in {"url": str(tree), "promisor": "true", "uploadpack": str(program)}.items():
        git(tree, "config", f"remote.origin.{name}", value)
    (tree / ".git" / "objects" / found.hash[:2] / found.hash[2:]).unlink()

    environment.platform("build").expect()

    assert not ran.exists()


# by digest ------------------------------------------------------------------------------------------------------------


def test_only_changed_services_are_built_and_rolled_out(environment: Environment) -> None:
    """Workloads run by digest; neither a new time nor an ignored file rolls one, and a source rolls its own alone.

    An ignore file of the Dockerfile's own comes before the context's.
    """
    api = "{context: api, dockerfile: docker/Api}"
    environment.write(f"{HEAD}services:\n  web: {{<<: *app, build: ./web}}\n  api: {{<<: *app, build: {api}}}\n")
    environment.write(DOCKERFILE, "web/Dockerfile")
    environment.write(DOCKERFILE, "api/docker/Api")
    environment.write("*.log\n", "web/.dockerignore")
    environment.write("text\n", "api/.dockerignore")
    environment.write("*.log\ndocker\n.dockerignore\n", "api/docker/Api.dockerignore")
    for name in ("web", "api"):
        environment.write("1\n", f"{name}/text")
        environment.write("1\n", f"{name}/run.log")
    environment.platform("deploy").expect()
    before = {name: pod_of(environment, name) for name in ("web", "api")}
    assert image_of(environment, "web").startswith(f"localhost:{PORTS['registry']}/env-web:latest@sha256:")
    assert environment.exec(before["web"], "ls", "/app").split() == ["Dockerfile", "text"]
    assert environment.exec(before["api"], "ls", "-A", "/app").split() == ["text"]

    assert changes(environment) == []
    for name in ("web", "api"):
        environment.write("2\n", f"{name}/run.log")
        environment.write("1\n", f"{name}/new.log" if name == "web" else "api/docker/new")
    assert not asks_pulumi(environment.platform("preview", "--debug").expect())
    os.utime(environment.folder / "web" / "text", (1_000_000, 1_000_000))
    assert asks_pulumi(environment.platform("preview", "--debug").expect())
    assert changes(environment) == []

    environment.write("2\n", "web/text")
    assert changes(environment) == ["update Deployment/web", "update Image/web"]
    environment.platform("deploy").expect()

    assert read(environment, "web", "/app/text") == "2\n"
    assert pod_of(environment, "api") == before["api"]


def test_links_folders_and_names_of_a_context(environment: Environment) -> None:
    """A link that leads elsewhere and a new empty folder build an image, in a folder whose name is not ASCII too."""
    environment.write("services:\n  web: {build: ./größe}\n")
    environment.write(DOCKERFILE, "größe/Dockerfile")
    context = environment.folder / "größe"
    for name in ("one", "two"):
        (context / name).mkdir()
        environment.write("1\n", f"größe/{name}/text")
    (context / "current").symlink_to("one")

    def build() -> str:
        return str(environment.platform("build", "--json").expect().json["images"]["web"])

    first = build()
    assert build() == first
    (context / "current").unlink()
    (context / "current").symlink_to("two")
    second = build()
    (context / "uploads").mkdir()
    assert len({first, second, build()}) == 3


def test_from_source_to_answer(environment: Environment) -> None:
    """What is built answers at its address; a changed source answers again, and a build that fails leaves the old."""
    command = "sh -c 'trap true TERM; httpd -p 8080 -h /app; sleep 1000000 & wait; true'"
    environment.write(
        f'services:\n  web: {{build: ./web, command: "{command}", ports: ["8080:8080"], stop_grace_period: 0}}\n'
        f'  api: {{build: ./api, command: "{SLEEP}", stop_grace_period: 0}}\n'
    )
    for name in ("web", "api"):
        environment.write(DOCKERFILE, f"{name}/Dockerfile")
        environment.write(f"{name} 1\n", f"{name}/index.html")
    url = environment.platform("deploy").expect().stdout.strip().rpartition(":")[0]
    until(lambda: title(environment, url, "web 1\n"))
    before = pod_of(environment, "api")

    environment.write("web 2\n", "web/index.html")
    environment.platform("deploy").expect()
    until(lambda: title(environment, url, "web 2\n"))
    assert pod_of(environment, "api") == before

    runs = pod_of(environment, "web")
    environment.write("web 3\n", "web/index.html")
    environment.write(f"{DOCKERFILE}RUN exit 3\n", "web/Dockerfile")
    environment.write("api 2\n", "api/index.html")
    environment.platform("deploy").expect(1)
    assert title(environment, url, "web 2\n")
    assert (pod_of(environment, "web"), pod_of(environment, "api")) == (runs, before)


def title(environment: Environment, url: str, text: str) -> bool:
    """Return whether an address answers with a text; while a pod is ended at once, it may answer nothing at all."""
    with contextlib.suppress(OSError):
        return fetch(environment, url) == text
    return False


def test_side_by_side(environment: Environment) -> None:
    """Builds continue at the same time, each with its progress: here none ends before both are under way."""
    both, goes_on = threading.Barrier(2), threading.Event()
    asked: list[str] = []

    def gate(path: str, _: str) -> Answer:
        asked.append(path)
        both.wait(60)
        return (200, {}, b"") if goes_on.wait(60) else (500, {}, b"")

    environment.write("services: {web: {build: ./web}, api: {build: ./api}}\n")
    with serving(Registry(gate=gate)) as meeting:
        for name in ("web", "api"):
            # The builder itself fetches what ADD names: its steps don't reach this machine.
            environment.write(f"FROM busybox:1.37\nADD http://{meeting.host}/{name} /\n", f"{name}/Dockerfile")
        process = environment.start("build")
        assert process.stderr is not None
        output: set[str] = set()
        while not {"api: building\n", "web: building\n"} <= output:
            output.add(process.stderr.readline())
            assert "" not in output, output
        until(lambda: len(asked) == 2)
        goes_on.set()
        _, rest = process.communicate(timeout=100)

    assert process.returncode == 0, rest
    assert {"api: built", "web: built"} <= set(rest.splitlines())


# the message about a build --------------------------------------------------------------------------------------------

SECRET = {"SECRET": "variable-in-clear"}
EVERYTHING = (
    HEAD
    + """
services:
  web:
    <<: *app
    build:
      context: ./web
      dockerfile_inline: |
        FROM base AS wanted
        ARG MODE
        ARG TOKEN
        COPY text /all/context
        COPY --from=shared common /all/shared
        COPY --from=tools /bin/busybox /all/tools
        RUN --network=none echo $$MODE > /all/mode
        RUN test $${#TOKEN} = 17
        RUN --mount=type=secret,id=file cat /run/secrets/file | wc -c > /all/file
        RUN --mount=type=secret,id=renamed test "$$(cat /run/secrets/renamed)" = "$$(echo variable)-in-"clear
        RUN grep -c db.internal /etc/hosts > /all/hosts
        FROM busybox:1.37 AS unwanted
        RUN false
      target: wanted
      args: {MODE: fast, TOKEN: argument-in-clear}
      labels: {shop.team: web}
      additional_contexts:
        base: service:api
        shared: ./shared
        tools: docker-image://busybox:1.37
      secrets: [file, {source: variable, target: renamed}]
      extra_hosts: ["db.internal=198.18.7.7"]
      cache_from: ["REGISTRY/cache"]
      cache_to: ["type=registry,ref=REGISTRY/cache,mode=max"]
      network: default
      tags: ["REGISTRY/shop/web:extra"]
      no_cache: true
  api:
    <<: *app
    build: ./api
    depends_on: [web]
secrets:
  file: {file: ./secret.txt}
  variable: {environment: SECRET}
"""
)


def test_everything_that_buildkit_knows(environment: Environment) -> None:
    """Each key of a build is applied, with the image of another service as a base; secrets are not in the state."""
    registry = f"localhost:{PORTS['registry']}"
    environment.write(EVERYTHING.replace("REGISTRY", registry))
    environment.write("FROM busybox:1.37\nRUN mkdir /all && echo base > /all/base\n", "api/Dockerfile")
    environment.write("context\n", "web/text")
    environment.write("shared 1\n", "shared/common")
    environment.write("*\n!text\n", "web/.dockerignore")
    environment.write("file-in-clear", "secret.txt")

    ran = environment.platform("deploy", **SECRET).expect()

    found = {
        name: read(environment, "web", f"/all/{name}").strip()
        for name in ("base", "context", "shared", "mode", "file", "hosts")
    }
    assert found == {
        "base": "base",
        "context": "context",
        "shared": "shared 1",
        "mode": "fast",
        "file": "13",
        "hosts": "1",
    }
    assert tags("shop/web") == ["extra"]
    assert tags("cache") == ["latest"]
    assert labels("env-web")["shop.team"] == "web"
    assert "in-clear" not in state_text(environment) + ran.stdout + ran.stderr
    environment.write(EVERYTHING.replace("REGISTRY", registry).replace("argument-in-clear", "argument-2-in-clear"))
    environment.write("file-2-in-clear", "secret.txt")
    shown = environment.platform("preview", "--diff", SECRET="variable-2-in-clear").expect()  # noqa: S106 -- a test's
    assert "buildArgs" in shown.stdout
    assert "in-clear" not in shown.stdout + shown.stderr
    environment.write(EVERYTHING.replace("REGISTRY", registry))
    environment.write("file-in-clear", "secret.txt")

    # A file that only an additional context has, and that the ignore file of the context would leave out.
    environment.write("shared 2\n", "shared/common")
    assert changes(environment, **SECRET) == ["update Deployment/web", "update Image/web"]

    # A base that changes takes along what is built on it.
    environment.write("FROM busybox:1.37\nRUN mkdir /all && echo base 2 > /all/base\n", "api/Dockerfile")
    environment.platform("deploy", **SECRET).expect()
    assert [read(environment, "web", f"/all/{name}") for name in ("base", "shared")] == ["base 2\n", "shared 2\n"]


def test_several_platforms_run_by_digest(environment: Environment) -> None:
    """An image for several platforms is pushed whole, and the node takes its own."""
    busybox = shutil.which("busybox", path=search_path(os.environ))
    assert busybox
    (environment.folder / "web").mkdir()
    shutil.copy(busybox, environment.folder / "web" / "busybox")
    environment.write("FROM scratch\nCOPY busybox /bin/sleep\n", "web/Dockerfile")
    environment.write(
        "services:\n  web:\n    command: [/bin/sleep, '1000']\n    stop_grace_period: 0\n"
        "    build: {context: web, platforms: [linux/amd64, linux/arm64]}\n"
    )
    environment.platform("deploy").expect()

    platforms = [row["platform"]["architecture"] for row in ask_registry("env-web/manifests/latest")["manifests"]]
    assert sorted(platforms) == ["amd64", "arm64"]
    assert "@sha256:" in image_of(environment, "web")


def ask_registry(path: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", PORTS["registry"], timeout=10)
    kinds = ("oci.image.index.v1", "oci.image.manifest.v1", "docker.distribution.manifest.v2")
    connection.request("GET", f"/v2/{path}", headers={"Accept": ", ".join(f"application/vnd.{k}+json" for k in kinds)})
    answer: dict[str, Any] = json.load(connection.getresponse())
    connection.close()
    return answer


def tags(name: str) -> list[str]:
    found: list[str] = ask_registry(f"{name}/tags/list")["tags"]
    return found


def labels(name: str) -> dict[str, str]:
    config = ask_registry(f"{name}/manifests/latest")["config"]["digest"]
    found: dict[str, str] = ask_registry(f"{name}/blobs/{config}")["config"]["Labels"]
    return found


# keys and networks ----------------------------------------------------------------------------------------------------


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[str]:
    """An agent of ssh with one key; gives its socket."""
    path = tmp_path / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    until(path.exists)
    make_key(tmp_path / "agents")
    variables = {**os.environ, "SSH_AUTH_SOCK": str(path)}
    subprocess.run(["ssh-add", "-q", tmp_path / "agents"], env=variables, check=True, stderr=subprocess.DEVNULL)
    yield str(path)
    process.terminate()
    process.wait()


def make_key(path: Path) -> None:
    args = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
    subprocess.run(args, check=True)


def fingerprint(key: Path) -> str:
    listed = subprocess.run(["ssh-keygen", "-l", "-f", f"{key}.pub"], capture_output=True, text=True, check=True)
    return listed.stdout.split()[1]


def copy_with_libraries(program: str, folder: Path) -> None:
    """Copy a program of this machine, with what it needs to run, below a folder."""
    path = shutil.which(program)
    assert path
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    for source in (path, *re.findall(r"(/\S+) \(0x", listed)):
        target = folder / source.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def test_ssh(environment: Environment, agent: str) -> None:
    """A step may ask the user's agent, and one that is made of a key beside the file; neither key is in the image."""
    copy_with_libraries("ssh-add", environment.folder / "web" / "tools")
    make_key(environment.folder / "own")
    environment.write(
        "FROM busybox:1.37\nCOPY tools/ /\nRUN --mount=type=ssh ssh-add -l >/agents\n"
        'RUN --mount=type=ssh,id=one ssh-add -l >/own\nRUN test -z "$SSH_AUTH_SOCK"\n',
        "web/Dockerfile",
    )
    environment.write(f"{HEAD}services:\n  web: {{<<: *app, build: {{context: web, ssh: [default, one=own]}}}}\n")

    environment.platform("deploy", SSH_AUTH_SOCK=agent).expect()

    shown = [read(environment, "web", f"/{name}").split()[1] for name in ("agents", "own")]
    assert shown == [fingerprint(environment.folder.parent / "agents"), fingerprint(environment.folder / "own")]
    key = (environment.folder / "own").read_text().splitlines()[2]
    assert key not in state_text(environment)


def test_networks(environment: Environment) -> None:
    """With `none` a step has no network; `host` is refused, as only who starts the cluster gives it away."""
    address = f"http://127.0.0.1:{PORTS['registry']}/v2/"
    text = "services:\n  web: {build: {context: web, network: %s}}\n"
    environment.write(f"FROM busybox:1.37\nRUN wget -qO- {address}\n", "web/Dockerfile")

    environment.write(text % "none")
    ran = environment.platform("build").expect(1)
    assert f"a step ended with exit status 1: RUN wget -qO- {address}" in ran.stderr

    environment.write(text % "host")
    ran = environment.platform("build", "--force").expect(1)
    assert "can't be built: the builder 'composeplat' does not allow its steps the network 'host'" in ran.stderr
    assert "on the local cluster: platform cluster start --build-network host" in ran.stderr


def test_proxies_of_docker(environment: Environment) -> None:
    """Steps have the `proxies` of Docker's configuration, unless the file gives the argument."""
    users_builder(environment, {"proxies": {"default": {"httpProxy": "http://p.example.com:1", "noProxy": "there"}}})
    environment.write("services:\n  web: {build: {context: web, args: {NO_PROXY: here}}}\n")
    environment.write("FROM busybox:1.37\nRUN echo of $HTTP_PROXY, not $NO_PROXY; false\n", "web/Dockerfile")

    assert "of http://p.example.com:1, not here\n" in environment.platform("build").expect(1).stderr


# host content ---------------------------------------------------------------------------------------------------------

HOST = """
services:
  web:
    image: busybox:1.37
    command: %s
    stop_grace_period: 0
    ports: ["8080"]
    volumes: [%s]
"""


def test_one_file_of_an_image_is_replaced(environment: Environment) -> None:
    """A server's configuration file is the project's, and what the image has beside it stays."""
    command = "sh -c 'trap true TERM; httpd -p 8080 -c /etc/httpd.conf -h /; sleep 1000000 & wait; true'"
    environment.write(HOST % (f'"{command}"', '"./httpd.conf:/etc/httpd.conf:ro"'))
    environment.write("E404:/etc/group\n", "httpd.conf")
    environment.deploy().expect()
    before = pod_of(environment, "web")

    assert environment.exec(before, "ls", "/etc").split().count("passwd") == 1
    assert environment.exec(before, "cat", "/etc/httpd.conf") == "E404:/etc/group\n"


@pytest.mark.parametrize(
    ("size", "images"),
    [
        pytest.param(100, [], id="small", marks=pytest.mark.endurance),
        pytest.param(2_000_000, ["Image/web"], id="large"),
    ],
)
def test_a_folder_is_laid_over_the_image(size: int, images: list[str], environment: Environment) -> None:
    """Files keep their bytes and modes, in nested folders too, through a Secret as through an image of their own."""
    content = bytes(range(256)) * (size // 256 + 1)
    folder = environment.folder / "site"
    (folder / "inner").mkdir(parents=True)
    (folder / "data.bin").write_bytes(content)
    (folder / "inner" / "run.sh").write_text("#!/bin/sh\necho $0\n")
    (folder / "inner" / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("inner/run.sh")
    (folder / ".dockerignore").write_text("*\n")
    environment.write("beside\n", "other.txt")
    environment.deploy(HOST % (f'"{SLEEP}"', '"./site:/etc", "./other.txt:/etc/other.txt"')).expect()
    pod = pod_of(environment, "web")

    script = (
        "sha256sum < /etc/data.bin; stat -Lc %a /etc/inner/run.sh /etc/data.bin; /etc/inner/run.sh; cat /etc/other.txt"
    )
    assert environment.exec(pod, "sh", "-c", f"{script}; ls /etc/passwd; cat /etc/link | wc -l").splitlines() == [
        f"{hashlib.sha256(content).hexdigest()}  -", "755", "644", "/etc/inner/run.sh", "beside", "/etc/passwd", "2",
    ]  # fmt: skip
    assert changes(environment) == []
    assert built(environment) == images

    (folder / "inner" / "run.sh").write_text("#!/bin/sh\necho again\n")
    environment.deploy().expect()
    assert pod != pod_of(environment, "web")
    assert environment.exec(pod_of(environment, "web"), "/etc/inner/run.sh") == "again\n"


def built(environment: Environment) -> list[str]:
    found = (row["urn"] for row in environment.state()["resources"] if row["type"].startswith("docker-build:index:"))
    return [f"Image/{urn.rpartition('/')[2]}" for urn in found]


@pytest.mark.parametrize(
    ("volume", "refused"),
    [
        pytest.param("./out:/data", "'./out:/data' [forbidden-path]", id="a link out of the project"),
        pytest.param("./large:/data", "'./large:/data' [outside-project]", id="a link in a large folder"),
        pytest.param("/var/run/docker.sock:/s", "'/var/run/docker.sock:/s' [forbidden-path]", id="the engine's socket"),
    ],
)
def test_forbidden_files(volume: str, refused: str, environment: Environment) -> None:
    """A link that leads out of the project and the socket of the engine are refused before anything changes."""
    (environment.folder / "out").symlink_to("/etc/hostname")
    (environment.folder / "large").mkdir()
    (environment.folder / "large" / "a.bin").write_bytes(bytes(2_000_000))
    (environment.folder / "large" / "z").symlink_to("/etc/hostname")

    ran = environment.deploy(HOST % (f'"{SLEEP}"', f'"{volume}"')).expect(3)

    assert refused in ran.stderr
    assert environment.names() == set()


# builders -------------------------------------------------------------------------------------------------------------


def test_an_unknown_builder(environment: Environment) -> None:
    """A builder that buildx does not know is reported so, with those that it does know."""
    users_builder(environment)
    environment.write("services: {web: {build: ./web}}\n")
    environment.write(DOCKERFILE, "web/Dockerfile")

    ran = environment.platform("build", "--builder", "yours").expect(4)

    assert "error: buildx has no builder 'yours'\n  hint: builders are: mine\n" in ran.stderr


def test_an_engine_that_does_not_run(environment: Environment) -> None:
    """Docker's own engine may be named for a builder, and where it does not run that is reported."""
    environment.write("services: {web: {build: ./web}}\n")
    environment.write(DOCKERFILE, "web/Dockerfile")

    ran = environment.platform("build", "--builder", "default", DOCKER_HOST="tcp://127.0.0.1:9").expect(1)

    assert ran.stderr.count(": error: ") == 1
    assert "services.web: can't be built: the builder 'default' does not answer" in ran.stderr
