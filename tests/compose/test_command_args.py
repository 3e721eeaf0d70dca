"""Commands are split as the standard library splits them, in a time that grows with their length."""

from __future__ import annotations

import contextlib
import shlex
import time

import pytest
from hypothesis import given, strategies as st

from composeplat.compose.command_args import split_args


@given(st.text(st.sampled_from("ab \t\r\n'\"\\é日\0$#"), max_size=30))
def test_as_the_standard_library(text: str) -> None:
    """Any text gives the same arguments, or the same reason."""
    try:
        expected: object = tuple(shlex.split(text))
    except ValueError as error:
        expected = str(error).lower()
    try:
        found: object = split_args(text)
    except ValueError as error:
        found = str(error)

    assert found == expected


@pytest.mark.parametrize("text", ["x", "x ", "'", '"', "\\", '"a\\', "'' ", '"\\" ', "\\\\ "])
def test_long_commands(text: str) -> None:
    """A megabyte of anything takes seconds at most: a time that grows with the square would be half a minute."""
    began = time.process_time()
    with contextlib.suppress(ValueError):
        split_args((text * 1024 * 1024)[: 1024 * 1024])
    assert time.process_time() - began < 5
