"""Files: what is refused before it is read, host content, and writing a folder."""

from __future__ import annotations

import io
import os
import socket
import tempfile
from pathlib import Path

import pytest

from composeplat.compose.load.host_content import read_host_content
from composeplat.compose.model import MAX_HOST_BYTES, MAX_HOST_FILES, HostContent, HostFile
from composeplat.system.files import (
    Unreadable,
    is_system_path,
    read_bytes,
    read_standard_input,
    write_folder,
)
from composeplat.system.project_root import ProjectRoot

MEMORY = Path("/dev") / "shm"


def reason(path: Path, limit: int = 100) -> str:
    with pytest.raises(Unreadable) as caught:
        read_bytes(path, limit=limit)
    return caught.value.reason


# reading --------------------------------------------------------------------------------------------------------------


def test_read(tmp_path: Path) -> None:
    """An ordinary file up to the limit is read, through links too."""
    (tmp_path / "file").write_bytes(b"x" * 100)
    (tmp_path / "link").symlink_to("file")

    assert read_bytes(tmp_path / "link", limit=100) == b"x" * 100


def test_larger_than_the_limit(tmp_path: Path) -> None:
    """A file above the limit is refused."""
    (tmp_path / "file").write_bytes(b"x" * (1024 * 1024 + 1))

    assert reason(tmp_path / "file", limit=1024 * 1024) == "is larger than 1 MiB"


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition that is read again, as before a cluster is started, is the same; another input is another one."""
    for content in (b"services: {}", b"", b"x" * 101):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        if len(content) > 100:
            for _ in range(2):
                with pytest.raises(Unreadable, match="is larger than"):
                    read_standard_input(limit=100)
        else:
            assert [read_standard_input(limit=100), read_standard_input(limit=100)] == [content, content]


def test_what_is_no_file(tmp_path: Path) -> None:
    """What is no ordinary file is refused, and a pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to("circle")

    assert reason(tmp_path) == "is a folder, not a file"
    assert reason(tmp_path / "pipe") == "is not an ordinary file"
    assert reason(tmp_path / "file" / "below") == "does not exist"
    assert reason(tmp_path / "none") == "does not exist"
    assert reason(tmp_path / "circle") == "can't be read (too many levels of symbolic links)"
    assert reason(tmp_path / "a\0b") == "is not a possible path"


@pytest.mark.parametrize("path", ["/proc/self/environ", "/dev/zero", "/sys/kernel", "/proc/../proc/self/environ"])
def test_files_of_the_system(path: str) -> None:
    """Nothing of the running machine is read, whatever the path looks like."""
    assert reason(Path(path)) == "is a file of the system, not of a project"


@pytest.mark.skipif(not os.access(MEMORY, os.W_OK), reason="no files in memory")
def test_a_file_in_memory() -> None:
    """A kubeconfig or an env file that must be on no disk may lie there."""
    with tempfile.NamedTemporaryFile(dir=MEMORY) as stream:
        stream.write(b"secret")
        stream.flush()
        assert read_bytes(Path(stream.name), limit=100) == b"secret"


def test_link_to_a_file_of_the_system(tmp_path: Path) -> None:
    """A link does not help either."""
    (tmp_path / "link").symlink_to("/proc/self/environ")

    assert reason(tmp_path / "link") == "is a file of the system, not of a project"


# host volumes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", True),
        ("/var/run/docker.sock", True),
        ("/proc", True),
        ("/etc/passwd", True),
        ("/usr/share/x", True),
        ("/etcetera", False),
        ("/home/me/etc", False),
        ("/var/www", False),
    ],
)
def test_system_path(path: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """Paths that belong to the machine are known."""
    assert expected is is_system_path(Path(path))


@pytest.mark.parametrize(
    ("path", "project", "expected"),
    [
        ("/var/lib/jenkins/workspace/app/conf", "/var/lib/jenkins/workspace/app", False),
        ("/usr/src/app", "/usr/src/app", False),
        (f"{MEMORY}/app/conf", f"{MEMORY}/app", False),
        ("/var/lib/jenkins/secrets", "/var/lib/jenkins/workspace/app", True),
        ("/var/lib/jenkins/workspace/app/../../secrets", "/var/lib/jenkins/workspace/app", True),
        ("/etc/shadow", "/etc", True),
        ("/proc/self/environ", "/proc/self", True),
        ("/etc/shadow", "/", True),
    ],
)
def test_a_project_in_a_folder_of_the_system(path: str, project: str, *, expected: bool) -> None:
    """A workspace of Jenkins, for example, has paths of its own; those beside it are the machine's."""
    assert expected is is_system_path(Path(path), (project,))


def make(folder: Path, **files: tuple[bytes, int]) -> Path:
    folder.mkdir()
    for name, (content, mode) in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    return folder


def test_a_file(tmp_path: Path) -> None:
    """One file is its content and its mode."""
    folder = make(tmp_path / "p", run=(b"#!", 0o755))

    assert read_host_content(folder / "run", ProjectRoot(str(folder))) == HostContent(
        is_folder=False, files=(HostFile("", 0o755, b"#!"),)
    )


def test_a_folder(tmp_path: Path) -> None:
    """A folder is its files, sorted, below folders too; an empty folder has none."""
    folder = make(tmp_path / "p", b=(b"2", 0o644), a__c=(b"1", 0o600))
    (folder / "empty").mkdir()

    assert read_host_content(folder, ProjectRoot(str(tmp_path))) == HostContent(
        is_folder=True, files=(HostFile("a/c", 0o600, b"1"), HostFile("b", 0o644, b"2"))
    )
    assert read_host_content(folder / "empty", ProjectRoot(str(tmp_path))) == HostContent(is_folder=True, files=())


def test_links_within_the_project(tmp_path: Path) -> None:
    """A link to another file of the project is that file."""
    folder = make(tmp_path / "p", real=(b"x", 0o644))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "link").symlink_to("../p/real")

    assert read_host_content(tmp_path / "m", ProjectRoot(str(tmp_path))).files == (HostFile("link", 0o644, b"x"),)
    assert read_host_content(folder / "real", ProjectRoot(str(tmp_path))).files == (HostFile("", 0o644, b"x"),)


def refusal(path: Path, project: Path) -> str:
    with pytest.raises(Unreadable) as caught:
        read_host_content(path, ProjectRoot(str(project)))
    return caught.value.reason


def test_links_that_lead_out(tmp_path: Path) -> None:
    """A link out of the project is refused, whether it is mounted or lies in what is mounted."""
    (tmp_path / "secret").write_text("x")
    folder = make(tmp_path / "p")
    (folder / "link").symlink_to("../secret")

    assert refusal(folder, folder) == "holds 'link', a link to a file outside the project"
    assert refusal(folder / "link", folder) == "is outside the project"


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    """Links to nothing, to themselves and to a folder around them are refused by name."""
    for number, target in enumerate(("none", "link", ".")):
        folder = make(tmp_path / str(number))
        (folder / "link").symlink_to(target)

    assert refusal(tmp_path / "0", tmp_path) == "holds 'link', a broken or cyclic link"
    assert refusal(tmp_path / "1", tmp_path) == "holds 'link', a broken or cyclic link"
    assert refusal(tmp_path / "2", tmp_path) == "holds 'link', a broken or cyclic link"


def test_links_to_folders(tmp_path: Path) -> None:
    """A link to a folder of the project is a folder with the same files, also behind a second link."""
    folder = make(tmp_path / "p", lib__a=(b"1", 0o644))
    (folder / "lib64").symlink_to("lib")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "all").symlink_to("../p")
    same = (("lib/a", b"1"), ("lib64/a", b"1"))

    for top, prefix in ((folder, ""), (tmp_path / "m", "all/")):
        files = read_host_content(top, ProjectRoot(str(tmp_path))).files
        assert files == tuple(HostFile(f"{prefix}{name}", 0o644, content) for name, content in same)


def test_folders_that_link_to_each_other(tmp_path: Path) -> None:
    """A cycle of several links is found, and so are more links than a tree can have in earnest."""
    folder = make(tmp_path / "p", a__x=(b"", 0o644), b__x=(b"", 0o644))
    (folder / "a" / "to").symlink_to("../b")
    (folder / "b" / "to").symlink_to("../a")
    wide = make(tmp_path / "w")
    for level in range(20):
        (wide / str(level)).mkdir()
        for name in ("left", "right"):
            (wide / str(level) / name).symlink_to(f"../{level + 1}")
    (wide / "20").mkdir()

    assert refusal(folder, folder) == "holds 'b/to/to', a broken or cyclic link"
    assert refusal(wide, wide) == "holds more than 1000 links to folders"


def test_sockets_and_pipes(tmp_path: Path) -> None:
    """What is no file is refused, mounted or within a folder."""
    folder = make(tmp_path / "p")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))

        assert refusal(folder, tmp_path) == "holds 'pipe', a socket, pipe or device"
        assert refusal(tmp_path / "s", tmp_path) == "is a socket, pipe or device, not a file"


def test_content_above_the_limits(tmp_path: Path) -> None:
    """Content too large or too many for a Secret is not read: only the fact is kept."""
    large = make(tmp_path / "large", file=(b"x" * (MAX_HOST_BYTES + 1), 0o644))
    many = make(tmp_path / "many", **{f"f{n}": (b"", 0o644) for n in range(MAX_HOST_FILES + 1)})

    assert read_host_content(large, ProjectRoot(str(tmp_path))) == HostContent(is_folder=True, files=None)
    assert read_host_content(large / "file", ProjectRoot(str(tmp_path))) == HostContent(is_folder=False, files=None)
    assert read_host_content(many, ProjectRoot(str(tmp_path))) == HostContent(is_folder=True, files=None)


def test_content_at_the_limits(tmp_path: Path) -> None:
    """Up to the limits it is read."""
    large = make(tmp_path / "large", file=(b"x" * MAX_HOST_BYTES, 0o644))
    many = make(tmp_path / "many", **{f"f{n}": (b"", 0o644) for n in range(MAX_HOST_FILES)})

    assert len((read_host_content(large, ProjectRoot(str(tmp_path))).files or ())[0].content) == MAX_HOST_BYTES
    assert len(read_host_content(many, ProjectRoot(str(tmp_path))).files or ()) == MAX_HOST_FILES


# writing --------------------------------------------------------------------------------------------------------------


def test_write_folder(tmp_path: Path) -> None:
    """Files are written with the mark, earlier ones of ours go, and nothing else is touched."""
    out = tmp_path / "new" / "out"
    write_folder(out, {"a.yaml": "1\n", "b.yaml": "2\n"}, mark="# ours")
    (out / "theirs.yaml").write_text("# not ours\n")
    (out / "note.txt").write_text("# ours\n")

    write_folder(out, {"b.yaml": "3\n", "c.yaml": "4\n"}, mark="# ours")

    assert {path.name: path.read_text() for path in sorted(out.iterdir())} == {
        "b.yaml": "# ours\n3\n",
        "c.yaml": "# ours\n4\n",
        "note.txt": "# ours\n",
        "theirs.yaml": "# not ours\n",
    }


def test_write_folder_over_a_file_of_others(tmp_path: Path) -> None:
    """A folder in the way is left, and nothing half written stays behind."""
    (tmp_path / "a.yaml").mkdir()

    with pytest.raises(OSError, match="Is a directory"):
        write_folder(tmp_path, {"a.yaml": "1\n"}, mark="# ours")

    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


@pytest.mark.parametrize("text", ["kind: Service\n", "", "# ours, and mine\n"])
def test_write_folder_keeps_what_others_wrote(tmp_path: Path, text: str) -> None:
    """A file without the mark is not replaced, even if it has the name of one of ours; none is written then."""
    (tmp_path / "b.yaml").write_text(text)

    with pytest.raises(OSError, match=r"it has another 'b.yaml', which would be lost"):
        write_folder(tmp_path, {"a.yaml": "1\n", "b.yaml": "2\n"}, mark="# ours")

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"b.yaml": text}


def test_write_folder_with_other_line_ends(tmp_path: Path) -> None:
    """A file of ours whose lines git has given the ends of Windows is still ours."""
    (tmp_path / "a.yaml").write_bytes(b"# ours\r\n1\r\n")
    write_folder(tmp_path, {"a.yaml": "2\n"}, mark="# ours")

    assert (tmp_path / "a.yaml").read_text() == "# ours\n2\n"
