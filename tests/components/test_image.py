"""How a build is reported to Pulumi's provider, and how host content is laid out for one."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest

from composeplat.components.image import copy_host_content
from composeplat.components.program import declare
from composeplat.components.stack import ComposeStack
from composeplat.compose.load.context_links import links_and_empty_folders
from composeplat.engine.pulumi_args import part_of_images
from tests.components.test_stack import SECRET, run
from tests.conftest import Folder, Project

DOCKERFILES = {"Dockerfile": "FROM x AS t\n", "api/Dockerfile": "FROM x\n", "common/a": "1", "token.txt": "of the file"}


def inputs(project: Project, build: str, rest: str = "", **more: Any) -> dict[str, Any]:
    """The inputs of the one image that is built."""
    folder: Folder = project({"compose.yaml": f"services: {{web: {{build: {build}}}}}\n{rest}", **DOCKERFILES, **more})
    file = folder.path / "compose.yaml"
    registered = run(lambda: ComposeStack("shop", file=file, registry="localhost", variables={"V": "of it"}))
    return registered.inputs("Image", "image/web")


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        pytest.param("{context: ., target: t}", {"target": "t"}, id="target"),
        pytest.param("{context: ., labels: {a: b}}", {"labels": {"a": "b"}}, id="labels"),
        pytest.param("{context: ., network: host}", {"network": "host"}, id="network"),
        pytest.param("{context: ., no_cache: true, pull: true}", {"noCache": True, "pull": True}, id="no cache, pull"),
        pytest.param("{context: ., platforms: [linux/arm64]}", {"platforms": ["linux/arm64"]}, id="platforms"),
        pytest.param(
            "{context: ., platforms: [linux/arm/v7]}", {"platforms": ["linux/arm/v7"]}, id="a variant of a processor"
        ),
        pytest.param("{context: ., extra_hosts: [a=1.2.3.4]}", {"addHosts": ["a=1.2.3.4"]}, id="hosts"),
        pytest.param("{context: ., cache_from: [x.io/a]}", {"cacheFrom": [{"raw": "x.io/a"}]}, id="cache from"),
        pytest.param("{context: ., cache_to: ['type=inline']}", {"cacheTo": [{"raw": "type=inline"}]}, id="cache to"),
        pytest.param("{context: ., ssh: [default]}", {"ssh": [{"id": "default"}]}, id="the agent of ssh"),
        pytest.param(
            "{context: ., tags: [a, x.io/b:1]}",
            {"tags": ["localhost/shop-web", "localhost/a", "x.io/b:1"]},
            id="tags",
        ),
        pytest.param(
            "{dockerfile_inline: FROM a}", {"dockerfile": {"inline": "FROM a"}}, id="a Dockerfile in the file"
        ),
        pytest.param(
            "{context: ., additional_contexts: {a: 'docker-image://b'}}",
            {"context": {"named": {"a": {"location": "docker-image://b"}}}},
            id="an image as a context",
        ),
    ],
)
def test_each_key_comes_to_the_provider(build: str, expected: dict[str, Any], project: Project) -> None:
    """Each key of a build is an input of the resource."""
    found = inputs(project, build)
    found["context"].pop("location")

    assert expected == {name: found[name] for name in expected}


def test_a_login_in_the_address_of_a_context(project: Project) -> None:
    """An address with a token or a password is encrypted, as a further context too; one with a user of ssh is not."""
    found = inputs(project, "{context: 'https://t0ken@x.io/a.git', additional_contexts: {b: 'ssh://git@x.io/b.git'}}")
    assert found["context"]["location"] == {**SECRET, "value": "https://t0ken@x.io/a.git"}
    assert found["context"]["named"] == {"b": {"location": "ssh://git@x.io/b.git"}}

    found = inputs(project, "{context: ., additional_contexts: {b: 'https://a:b@x.io/b.git'}}")
    assert found["context"]["named"]["b"]["location"]["value"] == "https://a:b@x.io/b.git"


def test_the_key_of_the_store_of_a_cache(project: Project) -> None:
    """The key of a store that is written in the file is encrypted; a cache without a key is not."""
    cache = "type=s3,bucket=b,secret_access_key=of the store"
    found = inputs(project, f"{{context: ., cache_to: ['{cache}'], cache_from: ['type=s3,bucket=b']}}")

    assert found["cacheTo"] == [{"raw": {**SECRET, "value": cache}}]
    assert found["cacheFrom"] == [{"raw": "type=s3,bucket=b"}]


def test_a_confidential_variable_in_a_build(project: Project) -> None:
    """The value of a variable with a secret-looking name is encrypted, in whichever key of a build it is."""
    build = "{context: ., labels: {a: b-$TOKEN}, additional_contexts: {c: 'https://x.io/b.git?t=$TOKEN'}, target: t}"
    folder = project({"compose.yaml": f"services: {{web: {{build: {build}}}}}", **DOCKERFILES})
    file, variables = folder.path / "compose.yaml", {"TOKEN": "of the program"}
    registered = run(lambda: ComposeStack("shop", file=file, registry="localhost", variables=variables))
    found = registered.inputs("Image", "image/web")

    assert found["labels"] == {"a": {**SECRET, "value": "b-of the program"}}
    assert found["context"]["named"]["c"]["location"] == {**SECRET, "value": "https://x.io/b.git?t=of the program"}
    assert found["target"] == "t"


def test_a_key_for_ssh(project: Project, tmp_path: Path) -> None:
    """A key for ssh is handed on by its path."""
    assert inputs(project, "{context: ., ssh: ['a=key']}", key="k")["ssh"] == [
        {"id": "a", "paths": [f"{tmp_path}/demo/key"]}
    ]


def test_only_requested_rows_are_reported(project: Project) -> None:
    """A plain build says where it is, and no more."""
    found = inputs(project, ".")

    assert sorted(found) == ["buildOnPreview", "context", "network", "push", "tags"]


def test_secrets_are_marked(project: Project) -> None:
    """Secrets of files and variables are handed on by value, as secrets."""
    rest = "secrets: {a: {file: token.txt}, b: {environment: V}}"

    found = inputs(project, "{context: ., secrets: [a, {source: b, target: c}]}", rest)

    assert found["secrets"] == {**SECRET, "value": {"a": "of the file", "c": "of it"}}


def test_images_alone(project: Project) -> None:
    """For a build nothing of the cluster is registered, not even its provider, and no image that is left alone."""
    web = "{build: ., ports: ['80:8080'], volumes: ['data:/data']}"
    text = f"services: {{web: {web}, api: {{build: .}}}}\nvolumes: {{data: {{}}}}\n"
    plan = project({"compose.yaml": text, **DOCKERFILES}).read(name="shop", registry="localhost").plan
    assert plan is not None

    part = part_of_images(plan.images_only, plan.images_for(["web"]))
    registered = run(lambda: declare(plan.images_only, cluster="one", gate=None, builder="", needed=part))

    assert registered.names == [
        ("composeplat:index:ComposeStack", "shop"),
        ("composeplat:index:Service", "shop-service/web"),
        ("docker-build:index:Image", "shop-image/web"),
    ]


def test_logins_that_are_given(project: Project) -> None:
    """Logins come to the provider by registry, their passwords as secrets, and are in no other input."""
    folder = project({"compose.yaml": "services: {web: {build: .}}", **DOCKERFILES})
    given = [
        {"address": "https://r.example.com", "username": "ann", "password": "s3cret"},
        {"address": "docker.io", "username": "bob", "password": "hidden"},
    ]

    registered = run(
        lambda: ComposeStack(
            "shop", file=folder.path / "compose.yaml", registry="r.example.com", variables={}, registries=given
        )
    )

    found = registered.inputs("Image", "image/web")
    assert found.pop("registries") == [
        {"address": "r.example.com", "username": "ann", "password": {**SECRET, "value": "s3cret"}},
        {"address": "docker.io", "username": "bob", "password": {**SECRET, "value": "hidden"}},
    ]
    assert "s3cret" not in str(found)
    assert "s3cret" not in str(registered.inputs("Deployment", "web"))


def test_logins_that_are_given_are_the_pods_too(project: Project) -> None:
    """With a pull secret asked for, pods are given that login, as a secret."""
    folder = project({"compose.yaml": "services: {web: {image: r.example.com/web}}"})
    given = [{"address": "r.example.com", "username": "ann", "password": "s3cret"}]

    registered = run(
        lambda: ComposeStack(
            "shop", file=folder.path / "compose.yaml", variables={}, registries=given, pull_secret=True, waits=False
        )
    )

    data = registered.inputs("Secret", "pull/web")["data"]
    assert {key: data[key] for key in SECRET} == SECRET
    config = json.loads(base64.b64decode(data["value"][".dockerconfigjson"]))
    assert config["auths"]["r.example.com"]["password"] == "s3cret"  # noqa: S105 -- a test's


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(lambda: "r.example.com/web:1", id="text"),
        pytest.param(lambda: pulumi.Output.from_input("r.example.com/web:1"), id="output"),
    ],
)
def test_logins_of_images_that_are_given(project: Project, image: Callable[[], Any]) -> None:
    """The login for an image that the program gives comes with the pods, and the file's own needs none."""
    folder = project({"compose.yaml": "services: {web: {image: nginx}, db: {image: postgres}}"})
    given = [{"address": "r.example.com", "username": "ann", "password": "s3cret"}]
    more: dict[str, Any] = {"variables": {}, "registries": given, "pull_secret": True, "waits": False}

    registered = run(lambda: ComposeStack("shop", file=folder.path / "compose.yaml", images={"web": image()}, **more))

    pods = {name: registered.inputs("Deployment", name)["spec"]["template"]["spec"] for name in ("web", "db")}
    assert pods["web"]["imagePullSecrets"] == [{"name": "web-pull"}]
    assert "imagePullSecrets" not in pods["db"]
    data = registered.inputs("Secret", "pull/web")["data"]["value"][".dockerconfigjson"]
    assert list(json.loads(base64.b64decode(data))["auths"]) == ["r.example.com"]


def test_a_late_tag(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry of an image whose tag is an output is known, and Docker's login for it is found."""
    auth = base64.b64encode(b"ann:s3cret").decode()
    config = json.dumps({"auths": {"r.example.com": {"auth": auth}}})
    folder = project({"compose.yaml": "services: {web: {image: 'r.example.com/web:${TAG}'}}", "config.json": config})
    monkeypatch.setenv("DOCKER_CONFIG", str(folder.path))
    more: dict[str, Any] = {"registries": [{"address": "other", "username": "a", "password": "b"}], "waits": False}

    def program() -> ComposeStack:
        tag = pulumi.Output.from_input("1")
        return ComposeStack("shop", file=folder.path / "compose.yaml", variables={"TAG": tag}, pull_secret=True, **more)

    data = run(program).inputs("Secret", "pull/web")["data"]["value"][".dockerconfigjson"]
    assert list(json.loads(base64.b64decode(data))["auths"]) == ["r.example.com"]


def test_logins_of_docker(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker's configuration and its helper are those of the process, whatever variables a program gives."""
    helper = '#!/bin/sh\nprintf \'{"Username": "ann", "Secret": "%s"}\' "$FROM_PROCESS"\n'
    folder = project({"compose.yaml": "services: {web: {image: r.example.com/web}}", "docker-credential-box": helper})
    (folder.write({"config.json": '{"credsStore": "box"}'}).path / "docker-credential-box").chmod(0o755)
    for name, value in (("PATH", f"{folder.path}:{os.environ['PATH']}"), ("FROM_PROCESS", "s3cret")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DOCKER_CONFIG", str(folder.path))
    file = folder.path / "compose.yaml"

    registered = run(lambda: ComposeStack("shop", file=file, variables={"A": "b"}, pull_secret=True, waits=False))

    config = json.loads(base64.b64decode(registered.inputs("Secret", "pull/web")["data"]["value"][".dockerconfigjson"]))
    assert config["auths"]["r.example.com"]["password"] == "s3cret"  # noqa: S105 -- a test's


def test_a_login_without_a_password(project: Project) -> None:
    """A login that is not whole ends the program with a sentence."""
    file = project({"compose.yaml": "services: {web: {image: x}}"}).path / "compose.yaml"

    with pytest.raises(pulumi.RunError, match=r"^an entry of 'registries' has no 'password'"):
        run(lambda: ComposeStack("shop", file=file, registries=[{"address": "x", "username": "ann"}], waits=False))


def test_a_base_is_registered_first(project: Project) -> None:
    """An image that is built on another service's comes after it, anyone who waits for whom, and by its digest."""
    text = (
        "services:\n  web: {build: {context: ., additional_contexts: {base: 'service:api', b: 'service:plain'}}}\n"
        "  api: {build: ./api, depends_on: [web]}\n  plain: {image: busybox}\n"
    )
    file = project({"compose.yaml": text, **DOCKERFILES}).path / "compose.yaml"

    found = run(lambda: ComposeStack("shop", file=file, registry="localhost", variables={}, waits=False))

    named = found.inputs("Image", "image/web")["context"]["named"]
    assert named == {
        "b": {"location": "docker-image://busybox"},
        "base": {"location": "docker-image://localhost/shop-web@sha256:0123"},
    }
    assert [urn.rpartition("::")[2] for urn in found.request("Image", "image/web").dependencies] == ["shop-image/api"]


def test_contexts_that_the_provider_would_not_see_change(project: Project) -> None:
    """Where an ignore file hides other contexts from the provider, an argument that nobody reads shows of them."""
    build = "{context: ., additional_contexts: {a: ./common}}"

    seen = inputs(project, build)
    first = inputs(project, build, **{".dockerignore": "*\n"})
    again = inputs(project, build, **{".dockerignore": "*\n"})
    changed = inputs(project, build, **{".dockerignore": "*\n", "common/a": "2"})

    assert "buildArgs" not in seen
    assert list(first["buildArgs"]["value"]) == ["CONTEXTS_FINGERPRINT"]
    assert first["buildArgs"] == again["buildArgs"] != changed["buildArgs"]


def test_a_folder_whose_name_is_not_ascii(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The builder gets it by a link in the cache, which always has the same name; a further context too."""
    monkeypatch.setenv("COMPOSEPLAT_CACHE", str(tmp_path / "cache"))
    build = "{context: ./größe, additional_contexts: {a: ./größe/ü, b: ./api}}"
    files = {"größe/Dockerfile": "FROM x", "größe/ü/a": "1"}

    first, again = (inputs(project, build, **files)["context"] for _ in range(2))

    folder = tmp_path / "demo"
    links = [Path(found["location"]) for found in (first, first["named"]["a"])]
    assert [link.readlink() for link in links] == [folder / "größe", folder / "größe" / "ü"]
    assert str(links).isascii()
    assert first["named"]["b"]["location"] == str(folder / "api")
    assert again == first


def test_a_cache_that_takes_no_link(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the program with a sentence."""
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("COMPOSEPLAT_CACHE", str(tmp_path / "cache"))

    with pytest.raises(pulumi.RunError, match=r"^the build context '.*/größe' can't be linked in the cache: "):
        inputs(project, "./größe", **{"größe/Dockerfile": "FROM x"})


def fingerprint(project: Project, links: dict[str, str], *folders: str, build: str = ".", ignore: str = "") -> str:
    """The argument that shows of links and folders in the build context; empty without one."""
    made = project({"compose.yaml": f"services: {{web: {{build: {build}}}}}\n", **DOCKERFILES, ".dockerignore": ignore})
    for folder in folders:
        (made.path / folder).mkdir(parents=True, exist_ok=True)
    for name, target in links.items():
        (made.path / name).symlink_to(target)
    found = run(lambda: ComposeStack("shop", file=made.path / "compose.yaml", registry="localhost", variables={}))
    shutil.rmtree(made.path)
    return str(
        found.inputs("Image", "image/web").get("buildArgs", {"value": {}})["value"].get("CONTEXTS_FINGERPRINT", "")
    )


def test_links_and_empty_folders_of_a_context(project: Project) -> None:
    """A link that leads elsewhere builds an image, although the contents behind it are the same; so does a folder."""
    before = fingerprint(project, {"current": "api"})
    after = fingerprint(project, {"current": "common"})
    dangling = [fingerprint(project, {"current": f"/srv/{number}"}) for number in (1, 2)]
    with_folder = fingerprint(project, {"current": "common"}, "uploads")

    assert len({"", before, after, *dangling, with_folder}) == 6
    assert fingerprint(project, {"current": "api"}) == before


def test_contexts_of_several_images(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that several images are built from is walked and read once, and again in the next run."""
    walked: list[str] = []
    read: list[str] = []

    def walk(folder: str, ignore_files: Iterable[str]) -> Iterator[tuple[str, str]]:
        walked.append(f"{Path(folder).name}/{' '.join(ignore_files)}")
        return links_and_empty_folders(folder, ignore_files)

    def paths(folder: str) -> list[str]:
        read.append(Path(folder).name)
        return [f"{folder}/a"]

    monkeypatch.setattr("composeplat.components.build_contexts.links_and_empty_folders", walk)
    monkeypatch.setattr("composeplat.components.build_contexts._paths", paths)
    build = "{context: ., additional_contexts: {a: ./common}}"
    text = "services:\n" + "".join(f"  s{number}: {{build: {build}}}\n" for number in range(3))
    made = project({"compose.yaml": text, **DOCKERFILES, ".dockerignore": "x\n"})
    for _ in range(2):
        run(lambda: ComposeStack("shop", file=made.path / "compose.yaml", registry="localhost", variables={}))
        assert walked == ["demo/Dockerfile.dockerignore .dockerignore", "common/.dockerignore"]
        assert read == ["common"]
        walked.clear()
        read.clear()


def test_links_of_a_further_context(project: Project) -> None:
    """Links of a further context count too, by the ignore file in that context."""
    build = "{context: ./api, additional_contexts: {a: .}}"
    first, second = (fingerprint(project, {"current": target}, build=build) for target in ("api", "common"))

    assert "" != first != second
    assert not fingerprint(project, {"current": "api"}, build=build, ignore="current\n")


def test_ignored_links_and_folders(project: Project) -> None:
    """What the ignore file leaves out builds nothing; a folder of which all files are ignored is empty."""
    ignored = "node_modules\n*.tmp\n!node_modules/.bin/keep\n"

    assert not fingerprint(project, {"a.tmp": "x"}, "node_modules/cache", ignore=ignored)
    assert fingerprint(project, {"a.tmp": "x", "b": "x"}, ignore=ignored)
    assert fingerprint(project, {"node_modules/.bin/keep": "x"}, "node_modules/.bin", ignore=ignored)
    assert fingerprint(project, {"logs/1.tmp": "x"}, "logs", ignore="**/*.tmp\n")


@pytest.mark.parametrize("target", ["/dev/stdout", "/proc/self/fd/2", "/dev/zero", "pipe"])
def test_a_link_that_the_provider_would_read_for_ever(target: str, project: Project, tmp_path: Path) -> None:
    """It ends the program with its place, unless it is ignored."""
    os.mkfifo(tmp_path / "pipe")
    target = str(tmp_path / "pipe") if target == "pipe" else target

    with pytest.raises(pulumi.RunError, match=r"with a link to a pipe or device, .*: 'run\.log'"):
        fingerprint(project, {"run.log": target})
    shutil.rmtree(tmp_path / "demo")
    assert not fingerprint(project, {"run.log": target}, ignore="*.log\n")
    assert fingerprint(project, {"run.log": "/dev/null"})


def test_a_file_of_another_context_that_can_not_be_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left to the builder, which may not need it."""

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("composeplat.components.build_contexts.hashlib.file_digest", refuse)
    build = "{context: ., additional_contexts: {a: ./common}}"

    assert "buildArgs" in inputs(project, build, **{".dockerignore": "*\n"})


def test_host_content_is_laid_out_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and folders stand under their numbers, with their modes, links followed, and what was there before gone."""
    monkeypatch.setenv("COMPOSEPLAT_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "source"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "run").write_text("x")
    (source / "inner" / "run").chmod(0o755)
    (source / "link").symlink_to("inner/run")
    (tmp_path / "one").write_text("1")

    copy_host_content("localhost/shop-web", (str(tmp_path / "one"), str(tmp_path / "one")))
    folder = Path(copy_host_content("localhost/shop-web", (str(source), str(tmp_path / "one"))))

    found = {
        str(path.relative_to(folder)): path.lstat().st_mode & 0o777 for path in folder.rglob("*") if not path.is_dir()
    }
    assert found == {"0/inner/run": 0o755, "0/link": 0o755, "1": (tmp_path / "one").stat().st_mode & 0o777}
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_host_content_without_what_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a volume hides of one path is left out of that path alone; it may be a link to anything."""
    monkeypatch.setenv("COMPOSEPLAT_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "source"
    for name in ("a/b", "b"):
        (source / name).mkdir(parents=True)
        (source / name / "file").write_text("x")
    (source / "a" / "link").symlink_to("/nowhere")

    folder = Path(copy_host_content("owner", (str(source), str(source / "b")), {0: {"a/b", "a/link"}}))

    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == ["0/b/file", "1/file"]


def test_host_content_that_nobody_lays_out_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was laid out long ago is removed, leavings of killed runs too, but for what is in use."""
    monkeypatch.setenv("COMPOSEPLAT_CACHE", str(tmp_path))
    (tmp_path / "one").write_text("1")
    old, held, fresh = (Path(copy_host_content(name, (str(tmp_path / "one"),))) for name in ("old", "held", "fresh"))
    left = old.with_name(".0123.999")
    other = shutil.copytree(old, old.with_name("other"))
    left.mkdir()
    for folder in (held, left, other):
        os.utime(folder, (1_000_000, 1_000_000))

    copy_host_content("another", (str(tmp_path / "one"),))

    assert [folder.exists() for folder in (held, fresh, left, other)] == [True, True, False, False]


def test_host_content_that_went_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is not there any more ends the program with a sentence."""
    monkeypatch.setenv("COMPOSEPLAT_CACHE", str(tmp_path))

    with pytest.raises(pulumi.RunError, match=r"^host content for image 'localhost/shop' can't be copied: "):
        copy_host_content("localhost/shop", (str(tmp_path / "gone"),))


def test_host_content_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed run of the same number left half laid out is not part of the content; what is recent stays."""
    monkeypatch.setenv("COMPOSEPLAT_CACHE", str(tmp_path))
    (tmp_path / "one").write_text("1")
    folder = Path(copy_host_content("owner", (str(tmp_path / "one"),)))
    recent = shutil.copytree(folder, folder.with_name("recent"))
    half = folder.with_name(f".{folder.name}.{os.getpid()}")
    half.mkdir()
    (half / "secret").touch()

    assert sorted(path.name for path in Path(copy_host_content("owner", (str(tmp_path / "one"),))).iterdir()) == ["0"]
    assert recent.exists()
