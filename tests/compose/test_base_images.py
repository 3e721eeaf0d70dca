"""Dockerfiles that use the image of another service."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from composeplat.compose.load.base_images import base_images, check_base_images
from composeplat.compose.origins import Checker
from composeplat.diagnostics import Severity
from tests.conftest import Project, lines

BASE = "services:\n  base: {build: ./base, image: 'team/base:1'}\n  app: "


@pytest.mark.parametrize(
    ("text", "images"),
    [
        (
            "FROM a\nFROM --platform=linux/arm64 b:1 AS c\nFROM C\nCOPY --chown=1 --from=d x y\nCOPY --from=0 x y\n",
            "a b:1 d",
        ),
        (
            "ARG A=one\nARG B='two'\nARG C\nARG D\nFROM $A\nFROM ${B}:x\nFROM ${C:-three}\nFROM ${D}\n",
            "one two:x three given",
        ),
        ("from docker.io/library/a:latest as b\r\nFROM \\\n docker.io/t/c\n", "a t/c"),
        ("FROM a\nARG D=x\nRUN echo FROM b\n# FROM c\nCOPY . --from=d\n", "a"),
        ("ARG A\nFROM $A\n", ""),
        ("", ""),
    ],
)
def test_the_images_of_a_dockerfile(text: str, images: str) -> None:
    """Stages and their numbers are no images, and arguments before the first stage have their values."""
    assert " ".join(base_images(text, {"D": "given"})) == images


@pytest.mark.parametrize(
    ("app", "names"),
    [
        pytest.param("{build: ./app}", ["team/base:1"], id="from"),
        pytest.param("{build: ./marked}", ["team/base:1"], id="a-byte-order-mark"),
        pytest.param("{build: ./copied}", ["team/base:1"], id="copied-from"),
        pytest.param("{build: {context: ./named, args: {BASE: 'team/base:1'}}}", ["team/base:1"], id="an-argument"),
        pytest.param(
            "{build: {context: ., dockerfile_inline: FROM docker.io/team/base:1}}", ["team/base:1"], id="inline"
        ),
        pytest.param("{build: {context: ./app, additional_contexts: ['team/base:1=service:base']}}", [], id="mended"),
        pytest.param("{build: ./app, image: 'team/base:1'}", [], id="its-own"),
        pytest.param("{build: ./named}", [], id="an-argument-without-a-value"),
        pytest.param("{build: 'https://example.com/app.git'}", [], id="an-address"),
        pytest.param("{image: 'team/base:1'}", [], id="no-build"),
    ],
)
def test_warnings(project: Project, app: str, names: list[str]) -> None:
    """An image that another service builds is warned of, unless it is given to the build."""
    loaded = project({"compose.yaml": BASE + app, **DOCKERFILES}).read().loaded
    check_base_images(Checker(loaded.project, loaded.origins, loaded.report), loaded.root)

    found = [d for d in loaded.report.at_least(Severity.WARNING) if d.code == "unshared-base"]
    assert lines(found) == [
        f"compose.yaml:3:16: warning: services.app.build.additional_contexts.{name} is missing: the Dockerfile uses"
        " this image, which 'base' builds, and it would be pulled [unshared-base]"
        for name in names
    ]


DOCKERFILES: Mapping[str, str] = {
    "base/Dockerfile": "FROM busybox\n",
    "app/Dockerfile": "FROM team/base:1\n",
    "marked/Dockerfile": "\ufeffFROM team/base:1\n",
    "copied/Dockerfile": "FROM busybox\nCOPY --from=team/base:1 /a /a\n",
    "named/Dockerfile": "ARG BASE\nFROM $BASE\n",
}


@pytest.mark.parametrize("build", ["./app", "{context: app}", "{context: app, additional_contexts: ['x=./base']}"])
def test_init(project: Project, build: str) -> None:
    """`platform init` gives the build the image of the service; nothing is left then."""
    folder = project({"compose.yaml": f"{BASE}{{build: {build}}}", **DOCKERFILES})

    assert folder.run("init", "--yes").status == 0
    written = (folder.path / "compose.platform.yaml").read_text(encoding="utf-8")
    assert written.endswith(
        "services:\n  app:\n    build:\n      additional_contexts:\n        # The image that base builds.\n"
        "        team/base:1: service:base\n"
    )
    assert "unshared-base" not in folder.run("check", "--offline").stdout
