"""Layers of images from a hostile registry: whatever they are, they are read or refused."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import tarfile
from collections.abc import Iterator

from hypothesis import given, strategies as st

from composeplat.registry.image_config import READ_ERRORS
from composeplat.registry.layer_files import read_files
from composeplat.system.deadline import Deadline

WANTED = ("etc/passwd", "etc/group")
NAMES = st.sampled_from([*WANTED, "./etc/passwd", "/etc/group", "etc/.wh.passwd", ".wh.etc", "etc/.wh..wh..opq", "a"])
KINDS = st.sampled_from([*tarfile.SUPPORTED_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE, b"?"])


@st.composite
def archives(draw: st.DrawFn) -> bytes:
    """Entries of all kinds and sizes, with content that need not fit, and some bytes changed."""
    content = bytearray()
    for _ in range(draw(st.integers(0, 4))):
        entry = tarfile.TarInfo(draw(NAMES))
        entry.type, entry.size = draw(KINDS), draw(st.sampled_from([0, 5, 512, 600, 10**7, -1, 8 * 1024**3]))
        content += entry.tobuf(tarfile.GNU_FORMAT) + draw(st.binary(max_size=600)).ljust(1024, b"\0")
    for place in draw(st.lists(st.integers(0, len(content) - 1), max_size=2)) if content else ():
        content[place] = draw(st.integers(0, 255))
    return gzip.compress(content) if draw(st.booleans()) else bytes(content)


@given(st.lists(st.one_of(archives(), st.binary(max_size=2000)), max_size=3))
def test_any_layers_are_read_or_refused(layers: list[bytes]) -> None:
    """No other error, and nothing but the wanted files."""

    @contextlib.contextmanager
    def open_layer(content: bytes) -> Iterator[io.BufferedReader]:
        yield io.BufferedReader(io.BytesIO(content))

    with contextlib.suppress(*READ_ERRORS):
        found = read_files([functools.partial(open_layer, layer) for layer in layers], WANTED, Deadline(10))
        assert set(found) <= set(WANTED)
