"""Volumes are filled with the content of the image as Docker does it, and programs that are not root can write."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from composeplat.cluster.kinds import kind_path
from composeplat.local.cluster import LocalCluster
from composeplat.local.images import File, Image, push
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import FRONTDOOR
from tests.deploy.conftest import SLEEP, Environment, until
from tests.musl_busybox import can_be_built, musl_busybox

#: Owners, modes, a link, a folder, and a name with a dot.
CONTENT = {
    "data/": File(mode=0o750, uid=70, gid=71),
    "data/seed": File(b"from the image\n", 0o640, uid=70, gid=71),
    "data/.hidden": File(b"", 0o600),
    "data/inner/": File(mode=0o2770, uid=5, gid=6),
    "data/inner/deep": File(b"deep\n", 0o444),
    "data/link": File(link="seed"),
}
LISTING = """\
/data 70:71 750
/data/.hidden 0:0 600
/data/inner 5:6 2770
/data/inner/deep 0:0 444
/data/link 0:0 777
/data/seed 70:71 640
"""
LIST = ("sh", "-c", "find /data | sort | xargs stat -c '%n %u:%g %a'")


@pytest.fixture(scope="module")
def images(cluster: LocalCluster) -> str:
    """The registry with the images of these tests, by the prefix of their names."""
    registry = ("127.0.0.1", cluster.layout.host_ports.registry)
    path = shutil.which("busybox") or ""
    busybox = File(Path(path).read_bytes())
    names = subprocess.run([path, "--list"], capture_output=True, text=True, check=True).stdout.split()
    shell = {"bin/busybox": busybox, **{f"bin/{name}": File(link="busybox") for name in names if name != "busybox"}}
    frontdoor = File(Toolchain(os.environ).need(FRONTDOOR).path.read_bytes())
    command = ("sh", "-c", SLEEP.removeprefix("sh -c '").removesuffix("'"))
    push(Image(files={**shell, **CONTENT, "tmp/": File()}, command=command), "filled:1", registry)
    push(Image(files={"frontdoor": frontdoor, **CONTENT}, entrypoint=("/frontdoor", "pause")), "bare:1", registry)
    owned = {"var/lib/db/": File(mode=0o700, uid=1000, gid=1000), "www/page": File(b"page\n", 0o640, uid=1000)}
    push(Image(files={**shell, **owned, "tmp/": File()}, command=command, user="1000:1000"), "unprivileged:1", registry)
    if can_be_built():
        program = File(musl_busybox(Toolchain(os.environ).cache.folder).read_bytes())
        links = {f"bin/{name}": File(link="busybox") for name in ("flock", "setfattr")}
        push(Image(files={"bin/busybox": program, **links}), "busybox-musl:1", registry)
    return f"localhost:{registry[1]}"


def in_pod(environment: Environment, service: str, *command: str) -> str:
    (pod,) = environment.pods(service)
    return environment.exec(pod["metadata"]["name"], *command)


def test_a_volume_is_filled_once(environment: Environment, images: str) -> None:
    """Named and anonymous volumes get the image's content; the next start brings nothing back."""
    text = f"""
services:
  app:
    image: {images}/filled:1
    environment: {{RUN: "${{RUN:-1}}"}}
    stop_grace_period: 0
    volumes: ["data:/data", "/data/inner", "bare:/unknown", "new:/nocopy:nocopy"]
  other:
    image: {images}/filled:1
    stop_grace_period: 0
    volumes:
      - {{type: volume, source: none, target: /data/, volume: {{nocopy: true}}}}
      - {{type: volume, source: parts, target: /parts, sub_path: a/b}}
      - {{type: volume, source: parts, target: /data/inner, sub_path: c}}
volumes: {{data: {{}}, bare: {{}}, new: {{}}, none: {{}}, parts: {{}}}}
"""
    environment.deploy(text).expect()

    assert in_pod(environment, "app", *LIST) == LISTING
    assert in_pod(environment, "app", "sh", "-c", "ls -A /unknown /nocopy; cat /data/inner/deep") == (
        "/nocopy:\n\n/unknown:\ndeep\n"
    )
    assert in_pod(environment, "other", "sh", "-c", "cd /data; stat -c '%n %u:%g %a' inner inner/*; ls") == (
        "inner 5:6 2770\ninner/deep 0:0 444\ninner\n"
    )
    in_pod(environment, "app", "sh", "-c", "rm -r /data/seed /data/link; echo own > /data/own; rm /data/inner/*")
    environment.platform("deploy", RUN="2").expect()
    assert in_pod(environment, "app", "sh", "-c", "cd /data; ls -A; cat own") == ".hidden\ninner\nown\nown\n"
    assert in_pod(environment, "app", "ls", "-A", "/data/inner") == ""


def test_an_image_needs_no_shell(environment: Environment, images: str) -> None:
    """What a program without a shell has at the path is in the volume; the default busybox fills it, if it is built."""
    text = f"""
services:
  bare: {{image: "{images}/bare:1", volumes: ["data:/data"], stop_grace_period: 0}}
  reader:
    image: {images}/filled:1
    depends_on: [bare]
    volumes: ["data:/data:nocopy"]
    stop_grace_period: 0
volumes: {{data: {{}}}}
"""
    filled_by = ("--fill-image", f"{images}/busybox-musl:1") if can_be_built() else ()
    environment.deploy(text, *filled_by).expect()
    assert in_pod(environment, "reader", *LIST) == LISTING
    (pod,) = environment.pods("bare")
    with environment.api() as api:
        log = f"{kind_path('v1', 'Pod', environment.namespace)}/{pod['metadata']['name']}/log?container=platform-fill"
        assert api.text(log) == ""


def test_programs_that_are_not_root_can_write(environment: Environment, images: str) -> None:
    """By the image's user and by `user`, to folders of the image and to new ones, on storage of root's with 0755."""
    text = f"""
x-app: &app {{image: "{images}/unprivileged:1", stop_grace_period: 0, environment: {{RUN: "${{RUN:-1}}"}}}}
services:
  by-image: {{<<: *app, volumes: ["one:/var/lib/db", "/new"]}}
  by-user: {{<<: *app, user: "999:998", volumes: ["two:/var/new", "own:/own:nocopy"]}}
volumes: {{one: {{}}, two: {{}}, own: {{}}}}
"""
    environment.deploy(text).expect()

    by_image = in_pod(environment, "by-image", "sh", "-c", "cd /var/lib/db; touch a /new/a; stat -c %u:%g:%a . /new")
    assert by_image == "1000:1000:700\n0:0:1777\n"
    by_user = in_pod(environment, "by-user", "sh", "-c", "cd /var/new; touch a /own/a; stat -c %u:%g:%a . /own")
    assert by_user == "999:998:755\n999:998:755\n"
    # PostgreSQL closes its folder like this, and refuses to start where somebody opens it again.
    in_pod(environment, "by-user", "chmod", "700", "/var/new")
    environment.platform("deploy", RUN="2").expect()
    assert in_pod(environment, "by-user", "sh", "-c", "stat -c %u:%g:%a /var/new /var/new/a; touch /var/new/b") == (
        "999:998:700\n999:998:644\n"
    )


def test_jobs_and_several_pods_at_once(environment: Environment, images: str) -> None:
    """Three pods that start on one new volume find all of it; a job has its volume filled too."""
    text = f"""
services:
  many: {{image: "{images}/filled:1", scale: 3, volumes: ["data:/data"], stop_grace_period: 0}}
  job:
    image: {images}/filled:1
    restart: "no"
    command: sh -ec 'cat /data/seed /data/inner/deep'
    volumes: ["jobs:/data", "/data/inner"]
volumes: {{data: {{}}, jobs: {{}}}}
"""
    environment.deploy(text).expect()

    pods = until(lambda: len(found := environment.pods("many")) == 3 and found)
    assert [environment.exec(pod["metadata"]["name"], *LIST) for pod in pods] == [LISTING] * 3
    job = environment.objects("batch/v1", "Job")[0]
    assert job["status"]["succeeded"] == 1
    assert environment.platform("logs", "job", "--no-prefix").stdout == "from the image\ndeep\n"


def test_volumes_with_data_stay_as_they_are(environment: Environment, images: str) -> None:
    """Of a volume that has anything in it, nothing is filled and no owner changes."""
    app = "stop_grace_period: 0, volumes: ['data:/data']"
    before = f"services:\n  app: {{image: 'busybox:1.37', command: \"{SLEEP}\", {app}}}\n"
    environment.deploy(f"{before}volumes: {{data: {{}}}}\n").expect()
    in_pod(environment, "app", "sh", "-c", "echo mine > /data/seed; chmod 711 /data")
    environment.deploy(f"services: {{app: {{image: '{images}/filled:1', {app}}}}}\nvolumes: {{data: {{}}}}\n").expect()
    assert in_pod(environment, "app", *LIST) == "/data 0:0 711\n/data/seed 0:0 644\n"


def test_a_restricted_namespace(environment: Environment, images: str) -> None:
    """Without root in any container, the program's own user fills its volume, and can write to it."""
    enforce = {"pod-security.kubernetes.io/enforce": "restricted"}
    with environment.api() as api:
        api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace, "labels": enforce}}
        )
    environment.deploy(
        f"services: {{app: {{image: '{images}/unprivileged:1', user: '1000', stop_grace_period: 0,"
        " volumes: ['data:/www', '/new', 'more:/www/more'], environment: {RUN: \"${RUN:-1}\"}}}\n"
        "volumes: {data: {}, more: {}}\n",
        "--pod-security",
        "restricted",
    ).expect()
    assert in_pod(environment, "app", "sh", "-c", "cat /www/page; rm /www/page; touch /new/a /www/more/a") == "page\n"
    environment.platform("deploy", "--pod-security", "restricted", RUN="2").expect()
    assert in_pod(environment, "app", "sh", "-c", "ls -A /www /new; stat -c %u:%g:%a /new/a /new") == (
        "/new:\na\n\n/www:\nmore\n1000:1000:644\n0:1000:2775\n"
    )


def test_the_image_that_fills_can_not_be_pulled(environment: Environment, images: str) -> None:
    """The message is at the volumes, and names the option that names another."""
    failed = environment.deploy(
        f"services:\n  app:\n    image: {images}/filled:1\n    volumes: [/data]\n", "--fill-image", f"{images}/none:1"
    ).expect(1)

    assert (
        f"compose.yaml:4:14: error: services.app: image '{images}/none:1' can't be pulled:"
        " there is no such image in its registry [deploy-failed]\n"
        "  hint: it fills new volumes: name one that the cluster can pull, with --fill-image\n" in failed.stderr
    )
