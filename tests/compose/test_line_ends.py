"""Scripts with the line ends of Windows, mounted or in a build context."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from composeplat.compose.load.line_ends import check_built_scripts, dockerfile_programs, interpreter_of
from composeplat.compose.origins import Checker
from composeplat.diagnostics import Severity
from tests.conftest import Project, lines

SH = b"#!/bin/sh\r\nexec nginx\r\n"
HINT = "save it with line ends of Linux (LF); in git: '*.sh text eol=lf' in .gitattributes"
ENTRY = 'FROM nginx\r\nCOPY . /app\r\nENTRYPOINT ["/app/docker/run.sh", "--x"]\r\n'


@pytest.mark.parametrize(
    ("content", "program"),
    [
        (b"#!/bin/sh\r\necho\r\n", "/bin/sh"),
        (b"#! /usr/bin/env bash\r\n", "/usr/bin/env bash"),
        (b"#!/bin/sh\necho\r\n", ""),
        (b"#!/bin/sh", ""),
        (b"echo\r\n", ""),
        (b"\x7fELF\r\n", ""),
        (b"#!" + b"x" * 500 + b"\r\n", ""),
    ],
)
def test_the_first_line_decides(content: bytes, program: str) -> None:
    """Only a program whose name would end with a carriage return is none."""
    assert interpreter_of(content) == program


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ('FROM x\nENTRYPOINT ["/run.sh", "a"]\nCMD ["b"]\n', ["/run.sh", "a", "b"]),
        ("FROM x\r\nentrypoint  ./run.sh \\\r\n  --fast\r\n", ["./run.sh", "--fast"]),
        ('FROM x\nCMD {"a": "b"}\nCMD 3\n', []),
        ("FROM x\nRUN echo ENTRYPOINT x\n", []),
    ],
)
def test_the_programs_of_a_dockerfile(text: str, programs: list[str]) -> None:
    """Both forms, continued lines, and line ends of Windows, which BuildKit reads too."""
    assert list(dockerfile_programs(text)) == programs


@pytest.mark.parametrize(
    ("files", "messages"),
    [
        pytest.param(
            {"compose.yaml": "services: {web: {image: nginx, volumes: ['./init:/init', './x.py:/x.py']}}",
             "init/a.sh": SH, "init/b.sh": b"#!/bin/sh\n\r\n", "x.py": b"#!/usr/bin/python3\r\n"},
            [("compose.yaml:1:42: warning: services.web.volumes[0] mounts a script with line ends of Windows, 'a.sh':"
             " no image has its program '/bin/sh\\r' [windows-line-ends]")],
            id="a-mounted-shell-script",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {image: x, entrypoint: /x.py, volumes: ['./x.py:/x.py']}}",
             "x.py": b"#!/usr/bin/env python3\r\n"},
            [("compose.yaml:1:57: warning: services.web.volumes[0] mounts a script with line ends of Windows, 'x.py':"
             " no image has its program '/usr/bin/env python3\\r' [windows-line-ends]")],
            id="a-mounted-program",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {build: .}}", "Dockerfile": ENTRY, "docker/run.sh": SH},
            [("compose.yaml:1:25: warning: services.web.build has a script with line ends of Windows, 'docker/run.sh':"
             " no image has its program '/bin/sh\\r' [windows-line-ends]")],
            id="the-entrypoint-of-a-dockerfile",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {build: app, command: ./start.sh now}}",
             "app/Dockerfile": "FROM nginx\n", "app/start.sh": SH},
            [("compose.yaml:1:25: warning: services.web.build has a script with line ends of Windows, 'start.sh':"
             " no image has its program '/bin/sh\\r' [windows-line-ends]")],
            id="the-command-of-the-service",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {build: .}}", "Dockerfile": ENTRY + "RUN dos2unix /app/docker/*.sh\n",
             "docker/run.sh": SH},
            [],
            id="a-dockerfile-that-converts",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {build: .}}", "Dockerfile": ENTRY, "docker/run.sh": b"#!/bin/sh\n"},
            [],
            id="a-dockerfile-alone",
        ),
        pytest.param(
            {"compose.yaml": "services: {web: {build: {context: ., dockerfile_inline: 'FROM x'}, command: ../run.sh}}",
             "run.sh": SH},
            [],
            id="a-path-that-climbs",
        ),
    ],
)  # fmt: skip
def test_warnings(project: Project, files: Mapping[str, str | bytes], messages: list[str]) -> None:
    """What can't run is warned of at its place; what may run, or is converted, is not."""
    loaded = project(files).read().loaded
    check_built_scripts(Checker(loaded.project, loaded.origins, loaded.report), loaded.root)

    assert lines(loaded.report.at_least(Severity.WARNING)) == messages
    hints = {d.hint for d in loaded.report.sorted() if d.code == "windows-line-ends"}
    assert hints == ({HINT} if messages else set())


def test_the_command_warns(project: Project) -> None:
    """``platform check`` lists the script of a build; rendering, which needs no sources, does not read it."""
    folder = project({"compose.yaml": "services: {web: {build: .}}", "Dockerfile": ENTRY, "docker/run.sh": SH})

    assert "'docker/run.sh': no image has its program" in folder.run("check", "--offline").stdout
    assert "windows-line-ends" not in folder.run("render").stderr


def test_a_definition_without_its_sources(project: Project) -> None:
    """Where the context is missing or an address, nothing is read."""
    text = "services: {web: {build: 'https://example.com/app.git'}, api: {build: ./gone, command: /run.sh}}"

    loaded = project(text).read().loaded
    check_built_scripts(Checker(loaded.project, loaded.origins, loaded.report), loaded.root)

    assert lines(loaded.report.at_least(Severity.WARNING)) == []
