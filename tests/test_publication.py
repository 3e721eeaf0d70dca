"""What leaves this machine is listed before it goes: which files and images, and where to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from composeplat.diagnostics import quoted
from composeplat.publication import image_publications, leaving_machine, publications, sync_publication
from tests.conftest import Project
from tests.schemas import checked_event

TEXT = """\
name: shop
services:
  web:
    image: nginx
    env_file: [web.env, {path: none.env, required: false}]
    volumes: ["./conf:/etc/conf:ro", "./motd:/etc/motd", "data:/data"]
  api:
    build: {context: ./api, tags: ["other.example.com/api:1"], cache_to: ["type=registry,ref=cache.example.com/api"]}
    env_file: [web.env, "${F}"]
    volumes: ["./api:/app"]
  large: {image: nginx, volumes: ["./many:/many"]}
volumes: {data: {}}
"""
FILES = {
    "compose.yaml": TEXT,
    "web.env": "PASSWORD=never-shown\n",
    "other.env": "A=1",
    "conf/a": "12345",
    "conf/b/c": "1234",
    "motd": "1",
    "api/Dockerfile": "FROM nginx\n",
    **{f"many/{number}": "" for number in range(65)},
}


def publication_texts(project: Project, *services: str, **more: Any) -> list[str]:
    reading = project(FILES, F="other.env").read(registry="registry.example.com/team", namespace="demo")
    assert reading.plan is not None, reading.messages
    return [
        publication.text for publication in publications(reading.loaded, reading.plan, services, context="prod", **more)
    ]


def test_all_of_it(project: Project) -> None:
    """Files and env files go to a namespace of a cluster, images to registries: their own, of tags and of caches."""
    assert publication_texts(project) == [
        (
            "sends to cluster 'prod', namespace demo: 3 files of './conf', './motd' (10 B); env files './web.env',"
            " '${F}'; variables of the shell: 'F'"
        ),
        "sends to registry registry.example.com: images team/demo-api, of './api'; team/demo-large, of './many'",
        "sends to registry other.example.com: image api:1, of './api'",
        "sends to registry cache.example.com: image api, of './api'",
    ]


@pytest.mark.parametrize(
    "cache",
    ["new.example.com/api", "TYPE=registry,REF=new.example.com/api", '"type=registry","ref=new.example.com/api"'],
)
def test_a_cache_in_any_form(project: Project, cache: str) -> None:
    """It may be an image alone; keys may be in upper case, and options in quotes: BuildKit takes each."""
    text = f"services: {{api: {{build: {{context: ., cache_to: ['{cache}']}}}}}}\n"
    reading = project({"compose.yaml": text, "Dockerfile": "FROM x\n"}).read(registry="r.example.com")
    assert reading.plan is not None, reading.messages

    found = [item.text for item in publications(reading.loaded, reading.plan, (), context="prod")]

    assert "sends to registry new.example.com: image api, of '.'" in found


@pytest.mark.parametrize(
    ("cache", "store"),
    [
        ("type=s3,region=eu-1,bucket=builds,secret_access_key=KEY", "of S3, bucket builds"),
        (
            "TYPE=s3,region=r,bucket=b,endpoint_url=https://me:KEY@minio.example.com:9000/x",
            "of S3, bucket b at minio.example.com:9000",
        ),
        (
            "type=azblob,name=c,account_url=https://a.blob.example.com,secret_access_key=KEY",
            "of Azure, at a.blob.example.com",
        ),
        ("type=gha,scope=main", "of GitHub Actions"),
    ],
)
def test_a_cache_in_no_registry(project: Project, cache: str, store: str) -> None:
    """Buckets and GitHub get the layers of an image too; the list has no key of them."""
    text = f"services: {{api: {{build: {{context: ., cache_to: ['{cache}']}}}}}}\n"
    reading = project({"compose.yaml": text, "Dockerfile": "FROM x\n"}).read(registry="r.example.com")
    assert reading.plan is not None, reading.messages
    found = publications(reading.loaded, reading.plan, (), context="prod")

    assert [item.text for item in found][1:] == [f"sends to build cache {store}: image api, of '.'"]
    assert "KEY" not in str([item.data for item in found])
    assert checked_event(json.dumps(found[1].data)) == found[1].data


def test_what_leaves_although_the_cluster_is_local(project: Project) -> None:
    """The local cluster's registry is on this machine; another one of `build.tags`, and a cache, are not."""
    text = "services: {api: {build: {context: ., tags: [other.example.com/api], cache_to: ['type=gha']}}}\n"
    reading = project({"compose.yaml": text, "Dockerfile": "FROM x\n"}).read(registry="localhost:5000")
    assert reading.plan is not None, reading.messages
    found = publications(reading.loaded, reading.plan, (), context="local")

    assert [item.text for item in leaving_machine(found)] == [
        "sends to registry other.example.com: image api, of '.'",
        "sends to build cache of GitHub Actions: image api, of '.'",
    ]


def test_some_services(project: Project) -> None:
    """Of services that are not deployed nothing is listed, nor are images where none is built."""
    assert publication_texts(project, "web", builds=False) == [
        (
            "sends to cluster 'prod', namespace demo: 3 files of './conf', './motd' (10 B); env file './web.env';"
            " variables of the shell: 'F'"
        )
    ]


def test_variables_of_the_shell(project: Project) -> None:
    """Every variable of the shell that the file names is listed, with or without a dollar sign; those of others not."""
    text = "services: {web: {image: 'nginx:${TAG}', environment: {MINE_TOO: , OWN: $MINE, NOT_SET: }}}"
    folder = project({"compose.yaml": text, ".env": "MINE=1"}, TAG="1", MINE_TOO="never-shown", OTHER="1")
    reading = folder.read(namespace="demo")
    assert reading.plan is not None

    (sent,) = publications(reading.loaded, reading.plan, context="prod")

    assert sent.text == "sends to cluster 'prod', namespace demo: variables of the shell: 'TAG', 'MINE_TOO'"


def test_nothing_of_this_machine(project: Project) -> None:
    """A definition that names no file and builds no image sends nothing but itself."""
    reading = project("services: {web: {image: nginx}}").read()
    assert reading.plan is not None

    assert publications(reading.loaded, reading.plan, context="prod") == ()


def test_outside_the_project(project: Project) -> None:
    """A file outside the project, once that is allowed, is named in full."""
    folder = project("services: {web: {image: nginx, volumes: ['../beside:/b']}}")
    (folder.path.parent / "beside").write_text("1")
    reading = folder.read(allow_outside=True)
    assert reading.plan is not None

    (sent,) = publications(reading.loaded, reading.plan, context="prod")

    assert sent.text.endswith(f"1 file of {quoted(f'{folder.path.parent}/beside')} (1 B)")


def test_many_names(project: Project) -> None:
    """Of many names the first few are shown, and how many more there are; a program is reported all."""
    services = "".join(f"  s{number}: {{build: ./api}}\n" for number in range(7))
    reading = project({**FILES, "compose.yaml": f"services:\n{services}"}).read(registry="r.example.com")
    assert reading.plan is not None

    (sent,) = image_publications(reading.loaded, reading.plan.images, context="prod")

    assert sent.text.endswith("; demo-s4, of './api'; and 2 more")
    assert len(sent.images) == 7


def test_for_programs(project: Project) -> None:
    """A program is reported the same as data."""
    reading = project(FILES, F="other.env").read(registry="registry.example.com/team", namespace="demo")
    assert reading.plan is not None

    first, second, *_ = publications(reading.loaded, reading.plan, ("web", "large"), context="prod")

    assert [first.data, second.data] == [
        {
            "event": "publish", "to": "cluster", "name": "prod", "namespace": "demo", "files": 3, "bytes": 10,
            "sources": ["./conf", "./motd"], "env_files": ["./web.env"],
            "variables": ["F"],
        },
        {
            "event": "publish", "to": "registry", "name": "registry.example.com",
            "images": [{"image": "team/demo-large", "sources": ["./many"]}],
        },
    ]  # fmt: skip


def test_synced_folders(project: Project) -> None:
    """The publication of a session names the synced folders and the cluster."""
    loaded = project(FILES, F="other.env").read().loaded
    service = loaded.project.services["api"]

    sent = sync_publication(loaded, service, "demo", [service.mounts[0].source], context="prod")

    assert sent.text == "syncs with api in cluster 'prod', namespace demo: './api'"


def test_images_for_nodes(project: Project) -> None:
    """An image that is loaded into the nodes goes to no registry, but its cache does."""
    reading = project(FILES, F="other.env").read(load_policy="Never", namespace="demo")
    assert reading.plan is not None

    found = image_publications(reading.loaded, reading.plan.images, context="kind-dev")

    assert [sent.text for sent in found] == [
        "loads into the nodes of cluster 'kind-dev': images demo-api, of './api'; demo-large, of './many'",
        "sends to registry cache.example.com: image api, of './api'",
    ]
    assert found[0].data["to"] == "nodes"
