"""The users and groups of images, read from their layers."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from composeplat.registry import image_users
from composeplat.registry.image_users import ImageUsers, read_image_users
from tests.registry_server import Registry, serving

PASSWD = (
    b"root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1001::/home/node:/bin/sh\nnode:x:7:7::/:\nbroken\nodd:x:-1:0::/:\n"
)
GROUP = b"root:x:0:\nstaff:x:50:node\n"
USERS = {"root": (0, 0), "node": (1000, 1001)}
GROUPS = {"root": 0, "staff": 50}

Read = Callable[..., dict[str, ImageUsers]]


def layer(files: Mapping[str, bytes | None], *, compressed: bool = True) -> bytes:
    """A layer with files; None is a symbolic link."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.pax_headers = {"comment": "a header of its own before the file" * 40}
            entry.size = len(content or b"")
            if content is None:
                entry.type, entry.linkname = tarfile.SYMTYPE, "elsewhere"
            archive.addfile(entry, io.BytesIO(content or b""))
    return gzip.compress(output.getvalue()) if compressed else output.getvalue()


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry


BASE = layer({"bin/sh": b"x" * 2000, "etc/passwd": PASSWD, "etc/group": GROUP})


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_users(wanted: str, *names: str, needs_numbers: bool = False) -> dict[str, ImageUsers]:
        variables = {"HOME": str(tmp_path)}
        return read_image_users({wanted: names}, tmp_path / "users", variables, needs_numbers=needs_numbers)

    return read_users


@pytest.mark.parametrize("compressed", [True, False])
def test_names_of_a_layer(read: Read, *, compressed: bool) -> None:
    """The first line of a name counts, and lines without numbers are left out."""
    files = {"./etc/passwd": PASSWD, "etc/group": GROUP}
    with serving(Registry()) as registry:
        registry.push(
            "app", user="root", layers=[layer({}), layer(files, compressed=compressed), layer({"srv/a": b""})]
        )
        name = f"{registry.host}/app"

        assert read(name, "node") == {name: ImageUsers(default="root", users=USERS, groups=GROUPS)}


@pytest.mark.parametrize(
    ("last", "users"),
    [
        ({"etc/passwd": b"app:x:5:6::/:\n"}, {"app": (5, 6)}),
        ({"etc/.wh.passwd": b""}, {}),
        ({".wh.etc": b""}, {}),
        ({"etc/.wh..wh..opq": b"", "etc/hosts": b""}, {}),
        ({"etc/.wh.hosts": b"", "srv/.wh.passwd": b""}, USERS),
    ],
)
def test_the_last_layer_counts(read: Read, last: Mapping[str, bytes], users: Mapping[str, tuple[int, int]]) -> None:
    """A file of a later layer replaces or deletes that of one before."""
    with serving(Registry()) as registry:
        registry.push("app", layers=[BASE, layer(last)])
        (found,) = read(f"{registry.host}/app", "node").values()

    assert found.users == users


def test_no_more_layers_than_needed(read: Read) -> None:
    """Layers below the files are not read, nor any for the user that the image has anyway, unless by number."""
    with serving(Registry()) as registry:
        registry.push("app", user="node", layers=[layer({"large": b"large"}), BASE])
        name = f"{registry.host}/app"

        assert read(name, "node") == {name: ImageUsers(default="node")}
        first = len(registry.asked)
        assert read(name, "node", needs_numbers=True)[name].users == USERS
        blobs = [path for path, _ in registry.asked[first:] if "/blobs/" in path]

    assert first == 2  # the manifest and the configuration
    assert len(blobs) == 2  # the configuration and the upper layer


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"\x28\xb5\x2f\xfd zstd",
        gzip.compress(b"no archive" * 100),
        BASE[: len(BASE) // 2],
        gzip.decompress(BASE)[:700],
        gzip.compress(_entry("large", 8 * 1024**3).tobuf(tarfile.PAX_FORMAT)),
        gzip.compress(_entry("etc/passwd", -1).tobuf(tarfile.GNU_FORMAT) + bytes(4096)),
        layer({"etc/passwd": None}),
        layer({"etc/passwd": b"\n" * (1024 * 1024 + 1)}),
    ],
)
def test_a_layer_that_can_not_be_read(read: Read, wrong: bytes) -> None:
    """Nothing is known then, and it is not tried again for a time."""
    with serving(Registry()) as registry:
        registry.push("app", layers=[BASE, wrong] if wrong else [wrong])
        name = f"{registry.host}/app"
        found = read(name, "node")
        asked = len(registry.asked)

        assert found == ({} if wrong else {name: ImageUsers(users={})})
        assert read(name, "node") == found
        assert len(registry.asked) - asked == (2 if wrong else 0)


def test_a_bomb_ends_with_the_deadline(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer of zeros that never ends costs time up to the deadline."""
    monkeypatch.setattr(image_users, "LAYERS_TIMEOUT_S", 0.3)
    with serving(Registry()) as registry:
        registry.push(
            "app", layers=[gzip.compress(_entry("large", 8 * 1024**3).tobuf(tarfile.GNU_FORMAT) + bytes(2**28))]
        )
        began = time.monotonic()

        assert read(f"{registry.host}/app", "node") == {}
        assert time.monotonic() - began < 5


def test_the_cache(read: Read, tmp_path: Path) -> None:
    """A tag is read once a day, its layers where the content has changed; without its registry, the last users hold."""
    with serving(Registry()) as registry:
        registry.push("app", layers=[BASE])
        name = f"{registry.host}/app"
        found = read(name, "node")
        asked = len(registry.asked)
        assert read(name, "node") == found
        assert len(registry.asked) == asked

        expire(tmp_path / "users")
        assert read(name, "node") == found
        assert len(registry.asked) - asked == 2  # no layer

        expire(tmp_path / "users")
        registry.push("app", layers=[layer({"etc/passwd": b"node:x:1:2::/:\n"})])
        changed = read(name, "node")
        assert changed[name].users == {"node": (1, 2)}
        expire(tmp_path / "users")

    assert read(name, "node") == changed
    assert read(f"{name}:other", "node") == {}


def test_a_digest_is_read_once(read: Read, tmp_path: Path) -> None:
    """The content behind a digest never changes."""
    with serving(Registry()) as registry:
        name = f"{registry.host}/app@{registry.push('app', layers=[BASE])}"
        read(name, "node")
        expire(tmp_path / "users")
        asked = len(registry.asked)

        assert read(name, "node")[name].users == USERS
        assert len(registry.asked) == asked


def test_a_damaged_cache(read: Read, tmp_path: Path) -> None:
    """A file of the cache that is no entry is read again."""
    with serving(Registry()) as registry:
        registry.push("app", layers=[BASE])
        name = f"{registry.host}/app"
        found = read(name, "node")
        (path,) = (tmp_path / "users").iterdir()
        for text in ("", "[]", "{}", '{"users": 5}'):
            path.write_text(text)
            assert read(name, "node") == found


def expire(folder: Path) -> None:
    for path in folder.iterdir():
        entry = json.loads(path.read_text())
        path.write_text(json.dumps({**entry, "until": 0}))
