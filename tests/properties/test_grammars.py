"""The small grammars: each gives a value or says what it wants, and what is shown is read as it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from composeplat.compose.port_values import MAX_PORT, parse_port, parse_port_range
from composeplat.compose.values import (
    BadValue,
    UserText,
    clean_sub_path,
    clean_target,
    parse_bool,
    parse_cpus,
    parse_duration,
    parse_image,
    parse_int,
    parse_mount,
    parse_size,
    parse_user,
    show_cpus,
    show_size,
    split_command,
    whole_seconds,
)
from tests.properties.trees import texts

PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": parse_bool,
    "int": parse_int,
    "duration": parse_duration,
    "size": parse_size,
    "decimal size": lambda text: parse_size(text, decimal=True),
    "cpus": parse_cpus,
    "port range": parse_port_range,
    "port": parse_port,
    "mount": parse_mount,
    "target": clean_target,
    "sub path": clean_sub_path,
    "words": split_command,
    "user": parse_user,
    "image": parse_image,
}

#: Pieces that the grammars are made of, and some that they are not.
PIECES = st.lists(
    st.sampled_from((
        "0", "1", "9", "80", "65535", "65536", "1000", "1.5", ".", "-", "+", ":", "/", "//", "[", "]", "::1", "k",
        "m", "g", "Mi", "ib",
        "B", "s", "ms", "us", "µs", "h", "w", "e", "x", "ro", ",", "z", "udp", "tcp", "127.0.0.1",
        "localhost", "root", "a", "A", "_", "@sha256:",
        "a" * 64, "..", "~", "C:\\", " ", "\n", "\t", "'", '"', "\\", "#", "$", "é",
        "\u0661", "\0", "yes", "true", "nan", "inf",
    )),
    max_size=6,
).map("".join)  # fmt: skip


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
@given(text=st.one_of(texts, PIECES))
def test_a_value_or_what_is_wanted(parse: Callable[[str], Any], text: str) -> None:
    """Any text gives a value, or the one error, which shows what is wanted and not what was found."""
    wanted = "must be"
    try:
        parse(text)
    except BadValue as error:
        wanted = str(error)

    assert re.match(r"must (be|have|name|mount|not)", wanted)
    assert len(wanted) < 200


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_sizes_come_back(size: int) -> None:
    """A size is shown so that both grammars read it as it was."""
    assert size == parse_size(show_size(size))
    assert size == parse_size(show_size(size), decimal=True)


@given(st.integers(min_value=0, max_value=10**9 - 1))
def test_cpus_come_back(milli: int) -> None:
    """An amount of cpus is shown so that it is read as it was."""
    assert milli == parse_cpus(show_cpus(milli))


@given(st.integers(min_value=0, max_value=10**6), st.sampled_from("kmgt"))
def test_size_suffixes_agree(number: int, unit: str) -> None:
    """Docker's short, long and Kubernetes's suffix are one unit, in either case."""
    sizes = {
        parse_size(f"{number}{suffix}")
        for suffix in (unit, unit.upper(), f"{unit}b", f"{unit.upper()}iB", f"{unit.upper()}i")
    }

    assert len(sizes) == 1


amounts = st.decimals(min_value=0, max_value=10**6, places=3)


@given(amounts, amounts, st.sampled_from(("k", "m", "g", "Ki", "Mi", "Gi")))
def test_more_is_more_bytes(decimal: Decimal, other: Decimal, unit: str) -> None:
    """Of two sizes of a unit the larger number has no fewer bytes."""
    less, more = sorted((decimal, other))

    assert parse_size(f"{less}{unit}") <= parse_size(f"{more}{unit}")


@given(amounts, amounts, st.sampled_from(("", "m")))
def test_more_is_more_cpus(decimal: Decimal, other: Decimal, unit: str) -> None:
    """The same for cpus."""
    less, more = sorted((decimal, other))

    assert parse_cpus(f"{less}{unit}") <= parse_cpus(f"{more}{unit}")


@given(amounts, amounts, st.sampled_from(("ms", "s", "m")))
def test_longer_is_more_seconds(decimal: Decimal, other: Decimal, unit: str) -> None:
    """The same for durations, and for the whole seconds they become."""
    less, more = (parse_duration(f"{amount}{unit}") for amount in sorted((decimal, other)))

    assert less <= more
    assert whole_seconds(less, lowest=0) <= whole_seconds(more, lowest=0)


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from(("h", "m", "s", "ms"))), min_size=1, max_size=4))
def test_durations_add_up(parts: list[tuple[int, str]]) -> None:
    """A duration of several parts is their sum."""
    expected = sum(parse_duration(f"{number}{unit}") for number, unit in parts)

    assert expected == parse_duration("".join(f"{number}{unit}" for number, unit in parts))


@given(st.integers(0, 10**6))
def test_whole_seconds_never_wait_less(milliseconds: int) -> None:
    """Rounding goes up, and by less than a second."""
    nanoseconds = parse_duration(f"{milliseconds}ms")

    assert 0 <= whole_seconds(nanoseconds, lowest=0) * 10**9 - nanoseconds < 10**9


ports = st.integers(min_value=1, max_value=MAX_PORT)
protocols = st.sampled_from(("", "/tcp", "/udp", "/sctp", "/UDP"))


@given(ports, ports, protocols)
def test_ports_come_back(published: int, target: int, protocol: str) -> None:
    """Both numbers of a pair, and its protocol, are read as they were written."""
    port = parse_port(f"{published}:{target}{protocol}")

    assert port.pairs == ((published, target),)
    assert port.protocol == (protocol[1:].lower() or "tcp")
    assert parse_port(f"{target}{protocol}").pairs == ((None, target),)


@given(st.integers(1, MAX_PORT - 255), st.integers(1, MAX_PORT - 255), st.integers(0, 255))
def test_ranges_of_ports(published: int, target: int, length: int) -> None:
    """Two ranges of a length are paired one by one."""
    port = parse_port(f"{published}-{published + length}:{target}-{target + length}")

    expected = tuple((published + i, target + i) for i in range(length + 1))
    assert expected == port.pairs


steps = st.text(st.sampled_from("abc.-_ é"), min_size=1, max_size=6).filter(lambda step: step not in (".", ".."))
targets = st.lists(steps, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(targets, st.sampled_from(("", ":ro", ":rw", ":ro,z")), st.sampled_from(("data", "./a", "/a/b", "~/a", "C:\\a")))
def test_mounts_come_back(target: str, options: str, source: str) -> None:
    """A mount's source, path and right to write are read as they were written."""
    mount = parse_mount(f"{source}:{target}{options}")

    assert (source, target, "ro" in options) == (mount.source, mount.target, mount.read_only)
    assert parse_mount(target).target == target


@given(st.lists(st.sampled_from(("a", "b", "", ".", "..", "c d")), max_size=6))
def test_targets_stay_below_the_root(parts: list[str]) -> None:
    """A target that is taken is a plain path, and cleaning it again changes nothing."""
    try:
        target = clean_target("/" + "/".join(parts))
    except BadValue:
        assert ".." in parts or not set(parts) - {"", "."}
    else:
        assert target == clean_target(target)
        assert not set(target.split("/")[1:]) & {"", ".", ".."}


@given(st.lists(texts, max_size=5))
def test_quoted_args_are_parsed_again(args: list[str]) -> None:
    """Words that are quoted as a shell wants them are split as they were."""
    quoted = " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in args)

    assert tuple(args) == split_command(quoted)


ids = st.integers(min_value=0, max_value=2**31 - 1)


@given(ids, ids)
def test_users_come_back(uid: int, gid: int) -> None:
    """Numbers of a user and a group are read as they were written."""
    assert parse_user(f"{uid}") == UserText(uid=uid, gid=None)
    assert parse_user(f"{uid}:{gid}") == UserText(uid=uid, gid=gid)


@given(
    st.sampled_from(("", "registry.example.com/", "localhost:5000/", "[::1]:5000/", "10.0.0.1/")),
    st.from_regex(r"\A[a-z0-9]+([._-][a-z0-9]+){0,2}(/[a-z0-9]+){0,2}\Z"),
    st.from_regex(r"\A(:[A-Za-z0-9_][A-Za-z0-9._-]{0,20})?\Z"),
    st.sampled_from(("", "@sha256:" + "0a" * 32)),
)
def test_images_come_back(host: str, name: str, tag: str, digest: str) -> None:
    """An image of the registries' grammar is taken as it stands."""
    assert f"{host}{name}{tag}{digest}" == parse_image(f"{host}{name}{tag}{digest}")
