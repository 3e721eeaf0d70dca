"""What builds need of this machine, looked for before anything is changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from composeplat.compose.load import context_links
from composeplat.compose.load.build_inputs import check_builds, secrets_of_files
from composeplat.compose.model import Build, BuildSecret
from composeplat.diagnostics import Report
from tests.conftest import Folder, Project, lines

DOCKERFILE = "FROM busybox AS base\nFROM --platform=linux/amd64 \\\n  base as Test\nFROM busybox\n"
FILES = {
    "app/Dockerfile": DOCKERFILE, "app/docker/Web": DOCKERFILE, "app/docker/Marked": f"\ufeff{DOCKERFILE}",
    "key": "k", "bin": b"\xff", "common/a": "",
}  # fmt: skip


def checked(project: Project, build: str, rest: str = "", **shell: str) -> list[str]:
    folder = project({"compose.yaml": f"services:\n  web:\n    build: {build}\n{rest}", **FILES})
    (folder.path / "file").write_text("")
    return messages_of(type(folder)(folder.path, shell))


def messages_of(folder: Folder) -> list[str]:
    reading = folder.read()
    assert reading.plan is not None, reading.messages
    report = Report()
    check_builds(reading.plan.own_builds, reading.loaded.origins, report)
    return lines(report.sorted())


@pytest.mark.parametrize(
    "build",
    [
        pytest.param("./app", id="a folder with a Dockerfile"),
        pytest.param("{context: app, dockerfile: docker/Web}", id="another Dockerfile"),
        pytest.param("{context: app, target: test}", id="a stage, in any case of letters"),
        pytest.param("{context: app, target: '2'}", id="a stage by its number"),
        pytest.param("{context: app, dockerfile: docker/Marked, target: base}", id="a byte order mark"),
        pytest.param("{context: common, dockerfile_inline: FROM a AS b, target: b}", id="a Dockerfile in the file"),
        pytest.param(
            "{context: common, dockerfile_inline: '# syntax=example.com/other', target: b}", id="another language"
        ),
        pytest.param("'https://example.com/shop.git#main:app'", id="an address"),
        pytest.param("{context: app, additional_contexts: {a: ./common, b: 'docker-image://x'}}", id="more contexts"),
        pytest.param("{context: app, ssh: [default, 'one=./key']}", id="keys"),
    ],
)
def test_what_is_there(build: str, project: Project) -> None:
    """Nothing is reported where all is there, or can't be seen from here."""
    assert checked(project, build) == []


@pytest.mark.parametrize(
    ("build", "message"),
    [
        pytest.param(
            "./gone",
            "3:12: error: services.web.build names a folder that does not exist: './gone' [missing-path]",
            id="a folder that is not there",
        ),
        pytest.param(
            "./file",
            "3:12: error: services.web.build names a folder that is no folder: './file' [missing-path]",
            id="a file for a folder",
        ),
        pytest.param(
            "./common",
            "3:12: error: services.web.build names a folder whose Dockerfile does not exist [missing-path]",
            id="a folder without a Dockerfile",
        ),
        pytest.param(
            "{context: app, dockerfile: Gone}",
            "3:39: error: services.web.build.dockerfile names a file that does not exist: 'Gone' [missing-path]",
            id="a Dockerfile that is not there",
        ),
        pytest.param(
            "{context: app, dockerfile: docker}",
            "3:39: error: services.web.build.dockerfile names a file that is a folder, not a file: 'docker'"
            " [unreadable-file]",
            id="a folder for a Dockerfile",
        ),
        pytest.param(
            "{context: app, target: prod}",
            "3:35: error: services.web.build.target names a stage that the Dockerfile does not have: 'prod'"
            " [invalid-value]",
            id="a stage that is not there",
        ),
        pytest.param(
            "{context: app, target: '3'}",
            "3:35: error: services.web.build.target names a stage that the Dockerfile does not have: '3'"
            " [invalid-value]",
            id="a number above the stages",
        ),
        pytest.param(
            "{context: app, target: '²'}",
            "3:35: error: services.web.build.target names a stage that the Dockerfile does not have: '²'"
            " [invalid-value]",
            id="a digit that is no number",
        ),
        pytest.param(
            "{context: 'https://example.com/shop.git', dockerfile: docker/Web}",
            "3:66: error: services.web.build.dockerfile can't be named where the context is an address [invalid-value]",
            id="a Dockerfile in an address",
        ),
        pytest.param(
            "{context: app, additional_contexts: {a: ./gone}}",
            "3:52: error: services.web.build.additional_contexts.a names a folder that does not exist: './gone'"
            " [missing-path]",
            id="another context that is not there",
        ),
    ],
)
def test_what_is_missing(build: str, message: str, project: Project) -> None:
    """What a build would fail for is reported at its place in the file."""
    assert checked(project, build) == [f"compose.yaml:{message}"]


def test_a_key_that_is_not_there(project: Project) -> None:
    """A key for ssh that does not exist is reported with its path."""
    (message,) = checked(project, "{context: app, ssh: ['one=./key,./gone']}")

    assert message.startswith("compose.yaml:3:33: error: services.web.build.ssh[0] names a key that does not exist: '/")


def test_secrets(project: Project) -> None:
    """A secret's file must be text that is there, and its variable set."""
    rest = "secrets: {a: {file: gone}, b: {file: bin}, c: {environment: C}, d: {environment: D}, e: {file: key}}\n"

    found = checked(project, "{context: app, secrets: [a, b, c, d, e]}", rest, D="set")

    assert [message.partition(": error: ")[2].partition(": '")[0] for message in found] == [
        "services.web.build.secrets[0] reads a file that does not exist",
        "services.web.build.secrets[1] reads a file that is no text",
        "services.web.build.secrets[2] reads a variable that is not set: C [required-variable]",
    ]


def test_a_secret_in_the_place_of_a_variable(project: Project) -> None:
    """A value that is written as the name of a variable is in no message, and no variable of the list."""
    rest = "secrets: {a: {environment: '${A}'}}\n"

    (found,) = checked(project, "{context: app, secrets: [a]}", rest, A="s3cret")
    loaded = project({}, A="s3cret").read().loaded

    assert "reads a variable that is not set: '${A}' (after substitution) [required-variable]" in found
    assert [reference.name for reference in loaded.references] == ["A"]


def test_one_path_that_two_keys_have(project: Project) -> None:
    """An alias stands where its anchor does: what is wrong with it for each of its keys is reported there."""
    build = "{context: app, dockerfile: &d docker, secrets: [*d]}"

    found = checked(project, build, "secrets: {docker: {file: app/docker}}\n")

    assert [message.partition(", not")[0] for message in found] == [
        "compose.yaml:3:39: error: services.web.build.dockerfile names a file that is a folder",
        "compose.yaml:3:39: error: services.web.build.secrets[0] reads a file that is a folder",
    ]


def test_secrets_of_files(tmp_path: Path) -> None:
    """The secrets that are in files are read, to be hidden; one that is no text, or not there, is not read."""
    (tmp_path / "token").write_text("s3cret\n")
    (tmp_path / "bin").write_bytes(b"\xff")
    secrets = [BuildSecret(name=name, file=str(tmp_path / name)) for name in ("token", "bin", "gone")]
    secrets.append(BuildSecret(name="b", variable="B", value="of a variable"))

    assert secrets_of_files(Build(secrets=tuple(secrets))) == ("s3cret\n",)


@pytest.mark.parametrize(("size", "is_read"), [(1024 * 1024, True), (1024 * 1024 + 1, False)])
def test_the_largest_dockerfile(project: Project, size: int, *, is_read: bool) -> None:
    """A Dockerfile of 1 MiB is looked at; a larger one is refused."""
    FILES["app/docker/Large"] = DOCKERFILE.ljust(size, "#")
    try:
        (message,) = checked(project, "{context: app, dockerfile: docker/Large, target: none}")
    finally:
        del FILES["app/docker/Large"]

    assert ("names a stage that the Dockerfile does not have" in message) is is_read


def test_secrets_of_a_job(project: Project) -> None:
    """The build of a job has the secrets of the file, as that of a service has."""
    job = "{build: {context: app, secrets: [a, {source: c, target: d}]}, triggers: {manual: true}}"
    text = f"jobs: {{web: {job}}}\nsecrets: {{a: {{file: key}}, c: {{environment: C}}}}\n"

    read = project({"compose.yaml": text, "app/Dockerfile": "FROM x", "key": "k"}).read(full=True)

    assert read.messages == []
    assert read.plan is not None
    (image,) = read.plan.images
    assert [(secret.name, secret.source) for secret in image.build.secrets] == [("a", "a"), ("d", "c")]


# links that would be read without end ---------------------------------------------------------------------------------


def linked(project: Project, target: str, **files: str) -> list[str]:
    """The messages of a build whose context has a link."""
    folder = project({"compose.yaml": "services: {web: {build: app}}\n", "app/logs/a": "", **FILES, **files})
    os.mkfifo(folder.path / "pipe")
    (folder.path / "app" / "logs" / "odd").symlink_to(target)
    return messages_of(folder)


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/stdout", "../../pipe", "/proc/self/fd/1", "/dev/fd/2"])
def test_a_link_without_an_end(target: str, project: Project) -> None:
    """Pulumi's provider reads what a link leads to, so the build would never end."""
    (message,) = linked(project, target)

    assert message == (
        "compose.yaml:1:25: error: services.web.build names a folder with a link to a pipe or device, which would be"
        " read without end: 'logs/odd' [unreadable-file]"
    )


def test_a_link_in_another_context(project: Project) -> None:
    """Each folder counts, with an ignore file of its own: that of the Dockerfile is for the main context alone."""
    text = "services: {web: {build: {context: app, additional_contexts: {a: ./a, b: ./b}}}}\n"
    ignored = {"app/Dockerfile.dockerignore": "odd", "a/.dockerignore": "odd"}
    folder = project({"compose.yaml": text, **FILES, **ignored, "b/.dockerignore": "other"})
    for name in ("app", "a", "b"):
        (folder.path / name / "odd").symlink_to("/dev/zero")

    (message,) = messages_of(folder)
    assert message == (
        "compose.yaml:1:73: error: services.web.build.additional_contexts.b names a folder with a link to a pipe or"
        " device, which would be read without end: 'odd' [unreadable-file]"
    )


def test_a_context_of_many_services(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is walked once for each set of ignore files; each service has its message."""
    walked: list[tuple[str, object]] = []

    def walk(folder: str, ignore_files: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        walked.append((Path(folder).name, ignore_files))
        return iter([("logs", "/dev/zero")])

    monkeypatch.setattr(context_links, "links_and_empty_folders", walk)
    monkeypatch.setattr(context_links, "_is_endless", bool)
    text = "services: {a: {build: app}, b: {build: app}, c: {build: {context: app, dockerfile: docker/Web}}}\n"
    reading = project({"compose.yaml": text, **FILES}).read()
    assert reading.plan is not None
    report = Report()
    check_builds(reading.plan.own_builds, reading.loaded.origins, report)

    own = ("Dockerfile.dockerignore", ".dockerignore")
    assert walked == [("app", own), ("app", ("docker/Web.dockerignore", ".dockerignore"))]
    assert [found.path[1] for found in report.sorted()] == ["a", "b", "c"]


@pytest.mark.parametrize("target", ["/dev/null", "/nowhere", "a", ".", "odd", "/etc/hostname"])
def test_a_link_with_an_end(target: str, project: Project) -> None:
    """Other links are kept as they are."""
    assert linked(project, target) == []


@pytest.mark.parametrize(
    "text", ["logs", "/logs/odd", "# all\n**/o*\n", "lo?s/**", "*", "*\n!logs\nlogs/odd", "**/odd\n!odd"]
)
def test_an_ignore_file_leaves_the_link_out(text: str, project: Project) -> None:
    """The last pattern that matches the link, or a folder that it is in, decides."""
    assert linked(project, "/dev/zero", **{"app/.dockerignore": text}) == []


@pytest.mark.parametrize(
    "text",
    [
        "odd",
        "logs/odd/more",
        "*\n!logs",
        "!logs/odd",
        "logs\n!logs/odd",
        pytest.param("**/" * 5000 + "b*", id="many folders"),
    ],
)
def test_an_ignore_file_that_names_other_files(text: str, project: Project) -> None:
    """The ignore file of the Dockerfile comes before that of the context."""
    files = {"app/.dockerignore": "logs", "app/Dockerfile.dockerignore": text}
    assert len(linked(project, "/dev/zero", **files)) == 1


def test_a_secret_whose_file_a_variable_names(project: Project) -> None:
    """The message has the path as the file writes it, and not the value of the variable."""
    (message,) = checked(
        project, "{context: app, secrets: [{source: s}]}", "secrets: {s: {file: $FILE}}\n", FILE="gone"
    )

    assert message == (
        "compose.yaml:3:37: error: services.web.build.secrets[0] reads a file that does not exist:"
        " '$FILE' (after substitution) [unreadable-file]"
    )
