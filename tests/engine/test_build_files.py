"""The files of builds: which count, by their contents or by their times, and which can't be looked at."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from composeplat.compose.model import Build
from composeplat.engine import build_files
from composeplat.engine.build_files import Doubt, _Place, _Reader, digests_of
from composeplat.engine.no_change_check import doubt_about_changes_since
from composeplat.plan.desired import ImageBuild


def content(folder: Path) -> str:
    return _Reader().digest(_Place(path=str(folder)))


def test_the_files_of_a_build_count(tmp_path: Path) -> None:
    """Content, mode, time, name and links of the files of a context count."""
    folder = tmp_path / "context"
    (folder / "sub").mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    digests = [content(folder)]
    assert content(folder) == digests[0]

    (folder / "Dockerfile").write_text("FROM scratch \n")
    digests.append(content(folder))
    (folder / "Dockerfile").chmod(0o700)
    digests.append(content(folder))
    os.utime(folder / "Dockerfile", (1, 1))
    digests.append(content(folder))
    (folder / "sub" / "new").touch()
    digests.append(content(folder))
    (folder / "sub" / "new").rename(folder / "sub" / "other")
    digests.append(content(folder))
    (folder / "link").symlink_to("sub")
    digests.append(content(folder))
    assert len(set(digests)) == len(digests)


def test_a_dockerfile_outside_of_its_context(tmp_path: Path) -> None:
    """A Dockerfile that is not in the context counts, and so does the ignore file beside it."""
    (tmp_path / "app").mkdir()
    build = Build(context=str(tmp_path / "app"), dockerfile="../Dockerfile")
    image = ImageBuild(service="web", reference="r/web", build=build)
    digests = []
    for name in ("Dockerfile", "Dockerfile.dockerignore"):
        for text in ("a", "b"):
            (tmp_path / name).write_text(text)
            digests.append(digests_of([image]))

    assert all(found not in digests[:number] for number, found in enumerate(digests))


def ignored_context(folder: Path, ignored: str) -> ImageBuild:
    """A build of a folder with files that its ignore file leaves out."""
    for name in ("node_modules/a/index.js", "src/keep.ts", "src/debug.log", "Dockerfile"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1")
    (folder / ".dockerignore").write_text(ignored)
    return ImageBuild(service="web", reference="r/web", build=Build(context=str(folder)))


def test_ignored_files_of_a_build_do_not_count(tmp_path: Path) -> None:
    """A build gets no ignored file, so one may change, appear and leave; a small and a large context."""
    image = ignored_context(tmp_path, "node_modules\n**/*.log\n.git\nDockerfile\n")
    before = digests_of([image])
    (tmp_path / "node_modules" / "a" / "index.js").write_text("2")
    (tmp_path / "node_modules" / "b").mkdir()
    (tmp_path / "src" / "debug.log").unlink()
    (tmp_path / "src" / "other.log").write_text("2")
    (tmp_path / ".git").mkdir()

    assert digests_of([image]) == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / "src" / "keep.ts").write_text("2"), id="content"),
        pytest.param(lambda folder: (folder / "src" / "new.ts").touch(), id="new"),
        pytest.param(lambda folder: (folder / "src" / "keep.ts").unlink(), id="gone"),
        pytest.param(lambda folder: (folder / "src").chmod(0o700), id="mode of a folder"),
        pytest.param(lambda folder: (folder / "Dockerfile").write_text("2"), id="ignored Dockerfile"),
        pytest.param(lambda folder: (folder / ".dockerignore").write_text("node_modules\n"), id="ignore file"),
        pytest.param(lambda folder: (folder / "Dockerfile.dockerignore").write_text("*"), id="ignore file of its own"),
        pytest.param(lambda folder: (folder / "node_modules" / "kept").mkdir(), id="exception"),
    ],
)
def test_changes_beside_ignored_files_count(tmp_path: Path, change: Callable[[Path], object]) -> None:
    """All that the build gets counts, with the Dockerfile and the ignore files, which may be ignored themselves."""
    image = ignored_context(tmp_path, "node_modules\n**/*.log\n*ocker*\n!node_modules/kept\n")
    before = digests_of([image])

    change(tmp_path)

    assert digests_of([image]) != before


def test_a_file_that_was_away_beside_ignored_files(tmp_path: Path) -> None:
    """It may have been away while the last run read the context: ignored files change the folder's time."""
    image = ignored_context(tmp_path, "**/*.log\n")
    before = digests_of([image])

    (tmp_path / "src" / "keep.ts").rename(tmp_path / "away")
    (tmp_path / "away").rename(tmp_path / "src" / "keep.ts")

    assert digests_of([image]) != before


def test_large_contexts_with_ignored_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only times are compared, those of ignored files and of their folders do not count, also not as recent."""
    monkeypatch.setattr(build_files, "_MAX_BYTES_READ", 0)
    image = ignored_context(tmp_path, "**/*.log\n")
    monkeypatch.setattr(build_files, "_RECENT_NS", 50_000_000)
    time.sleep(0.1)
    before = digests_of([image])
    (tmp_path / "src" / "debug.log").write_text("2")
    (tmp_path / "src" / "new.log").touch()

    assert digests_of([image]) == before
    (tmp_path / "src" / "keep.ts").write_text("2")
    with pytest.raises(Doubt, match="just now"):
        digests_of([image])


def test_when_a_file_of_a_build_was_changed_last(tmp_path: Path) -> None:
    """Each change of what the build gets counts, with the content behind links; an ignored file does not."""
    (tmp_path / "outside").write_text("1")
    image = ignored_context(tmp_path / "app", "**/*.log\n")
    (tmp_path / "app" / "link").symlink_to("../outside")
    kept = tmp_path / "app" / "src" / "keep.ts"
    changes: list[Callable[[], object]] = [
        lambda: kept.write_text("2"),
        lambda: os.utime(kept, (1, 1)),
        lambda: kept.chmod(0o600),
        lambda: kept.rename(kept.with_name("other.ts")),
        (tmp_path / "app" / "node_modules" / "a" / "index.js").unlink,
        lambda: (tmp_path / "outside").write_text("2"),
    ]
    for change in changes:
        time.sleep(0.05)
        began = time.time_ns()
        assert doubt_about_changes_since(began, [image]) == ""
        (tmp_path / "app" / "src" / "debug.log").write_text(str(began))
        (tmp_path / "app" / "src" / f"{began}.log").touch()
        assert doubt_about_changes_since(began, [image]) == ""
        change()
        assert doubt_about_changes_since(began, [image]) == "files of a build have changed during the run"


def test_patterns_that_builders_may_read_otherwise(tmp_path: Path) -> None:
    """A pattern that BuildKit takes as a regular expression leaves out nothing here; such an exception ends all."""
    (tmp_path / "ab").mkdir()
    image = ignored_context(tmp_path, "a[b]/*\nnode_modules\n")
    before = digests_of([image])
    (tmp_path / "node_modules" / "new").touch()
    assert digests_of([image]) == before
    (tmp_path / "ab" / "new").touch()
    assert digests_of([image]) != before

    (tmp_path / ".dockerignore").write_text("node_modules\n![n]ew\n")
    before = digests_of([image])
    (tmp_path / "node_modules" / "other").touch()
    assert digests_of([image]) != before


def test_further_contexts_are_not_ignored(tmp_path: Path) -> None:
    """The ignore file of the context is for that alone."""
    image = ignored_context(tmp_path / "app", "*.log\n")
    (tmp_path / "more").mkdir()
    image = replace(image, build=replace(image.build, additional_contexts={"more": str(tmp_path / "more")}))
    before = digests_of([image])

    (tmp_path / "more" / "a.log").touch()

    assert digests_of([image]) != before


def test_files_that_are_not_read(tmp_path: Path) -> None:
    """Missing files are a doubt, and so is a link to a folder where links are followed."""
    with pytest.raises(Doubt, match="can't be read"):
        content(tmp_path / "missing")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Doubt, match="behind a link"):
        _Reader().digest(_Place(path=str(tmp_path), follows=True))


def test_large_builds_are_compared_by_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is not read where there is too much; its times count, but for one that was changed just now."""
    folder = tmp_path / "context"
    folder.mkdir()
    with (folder / "large").open("wb") as stream:
        stream.truncate(65 * 1024 * 1024)
    with pytest.raises(Doubt, match="just now"):
        content(folder)
    monkeypatch.setattr(build_files, "_RECENT_NS", 0)
    first = content(folder)
    assert content(folder) == first

    # Another content, with the times and the size set to what they were.
    before = (folder / "large").stat()
    time.sleep(0.02)
    with (folder / "large").open("r+b") as stream:
        stream.write(b"x")
    os.utime(folder / "large", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (folder / "large").stat().st_mtime_ns == before.st_mtime_ns
    assert content(folder) != first

    (folder / "large").rename(folder / "other")
    digests = [first, content(folder)]
    (tmp_path / "outside").write_text("a")
    (folder / "link").symlink_to("../outside")
    digests.append(content(folder))
    time.sleep(0.02)
    (tmp_path / "outside").write_text("b")
    digests.append(content(folder))
    assert len(set(digests)) == len(digests)
    monkeypatch.setattr(build_files, "_MAX_FILES", 1)
    with pytest.raises(Doubt, match="too many"):
        content(folder)


def test_small_builds_are_read_beside_a_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is to read is shared: the files that still fit are read."""
    monkeypatch.setattr(build_files, "_MAX_BYTES_READ", 10)
    for name in ("small", "large", "later"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"1" * (100 if name == "large" else 4))
    reader = _Reader()
    # A folder has a size of its own.
    monkeypatch.setattr(reader, "_bytes", (tmp_path / "small").stat().st_size + 4)
    reader.digest(_Place(path=str(tmp_path / "small")))
    with pytest.raises(Doubt, match="just now"):
        reader.digest(_Place(path=str(tmp_path / "later")))


def test_a_context_of_two_services_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size counts once too: the same files must not be too many for the second service."""
    (tmp_path / "file").write_bytes(b"1" * 10)
    reader = _Reader()
    monkeypatch.setattr(reader, "_bytes", tmp_path.stat().st_size + 10)

    assert reader.digest(_Place(path=str(tmp_path))) == reader.digest(_Place(path=str(tmp_path)))
