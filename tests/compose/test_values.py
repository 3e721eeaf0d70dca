"""The small grammars, each as a table of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from composeplat.compose.port_values import pair_ports, parse_port, parse_port_range
from composeplat.compose.values import (
    BadValue,
    MountText,
    clean_sub_path,
    clean_target,
    is_host_path,
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
    split_pair,
    whole_seconds,
)


def reason(parse: Callable[..., object], *args: Any, **options: Any) -> str:
    """What a grammar says it wants of a text that it refuses."""
    with pytest.raises(BadValue) as caught:
        parse(*args, **options)
    return str(caught.value)


# numbers and booleans -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("true", True, id="yaml-true"),
        pytest.param("TRUE", True, id="any-case"),
        pytest.param("yes", True, id="yes"),
        pytest.param("y", True, id="y"),
        pytest.param("on", True, id="on"),
        pytest.param("false", False, id="yaml-false"),
        pytest.param("No", False, id="no"),
        pytest.param("n", False, id="n"),
        pytest.param("off", False, id="off"),
    ],
)
def test_bool(text: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """Compose's words for true and false are booleans."""
    assert expected is parse_bool(text)


@pytest.mark.parametrize("text", ["", "1", "0", "maybe", " true"])
def test_no_bool(text: str) -> None:
    """Nothing else is a boolean, numbers included."""
    assert reason(parse_bool, text) == "must be true or false"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("007", 7, id="leading-zeros"),
        pytest.param("+3", 3, id="plus"),
        pytest.param("2147483647", 2147483647, id="largest"),
    ],
)
def test_int(text: str, expected: int) -> None:
    """A whole number in decimal digits is read."""
    assert expected == parse_int(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("1.0", id="fraction"),
        pytest.param("1e3", id="exponent"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("1_000", id="underscore"),
        pytest.param("-1", id="below-the-lowest"),
        pytest.param("2147483648", id="above-the-highest"),
        pytest.param("\uff19", id="digit-of-another-script"),
        pytest.param("9" * 5000, id="very-long"),
        pytest.param("1\n", id="newline"),
    ],
)
def test_no_int(text: str) -> None:
    """What is no whole number of at least 0 is refused, by what is wanted and never by the text."""
    assert reason(parse_int, text) == "must be a whole number of at least 0"


def test_int_within_limits() -> None:
    """A number outside its limits is refused with both."""
    assert reason(parse_int, "11", lowest=1, highest=10) == "must be a whole number from 1 to 10"


def test_int_with_a_lower_limit() -> None:
    """A number below its lowest is refused with that."""
    assert reason(parse_int, "1", lowest=2) == "must be a whole number of at least 2"


# durations ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("30s", 30, id="seconds"),
        pytest.param("1m30s", 90, id="minutes-and-seconds"),
        pytest.param("1h", 3600, id="hours"),
        pytest.param("1d", 86400, id="days"),
        pytest.param("1w", 604800, id="weeks"),
        pytest.param("500ms", 0.5, id="milliseconds"),
        pytest.param("1.5s", 1.5, id="fraction"),
        pytest.param("10us", 0.00001, id="microseconds"),
        pytest.param("5ns", 0.000000005, id="nanoseconds"),
        pytest.param("90", 90, id="a-bare-number-is-seconds"),
        pytest.param("0", 0, id="zero"),
        pytest.param("1s1m", 61, id="any-order"),
    ],
)
def test_duration(text: str, expected: float) -> None:
    """A duration is a sum of numbers with units, in nanoseconds."""
    assert parse_duration(text) == round(expected * 10**9)


def test_duration_in_micro_seconds_with_the_micro_sign() -> None:
    """Go writes microseconds with a micro sign, and so may a definition."""
    assert parse_duration("10µs") == 10_000


def test_duration_below_a_nanosecond() -> None:
    """A fraction of a nanosecond is rounded up, and only once for all parts."""
    assert [parse_duration(text) for text in ("0.1ns", "0.5ns0.5ns", "0.000000001s0.1ns")] == [1, 1, 2]


@pytest.mark.parametrize("text", ["", "s", "1 s", "-1s", "-1", "1x", "1S", "1.5", ".5s", "1.s", "soon"])
def test_no_duration(text: str) -> None:
    """What is no duration is refused by what is wanted."""
    want = "must be a duration such as 30s, 500ms or 1m30s, or a number of seconds"
    assert reason(parse_duration, text) == want


def test_longest_duration() -> None:
    """What Kubernetes can't count in 32 bits is refused."""
    assert reason(parse_duration, "4000w") == "must be a duration of at most 2147483647 seconds"


@pytest.mark.parametrize(
    ("text", "lowest", "expected"),
    [
        pytest.param("1.2s", 1, 2, id="up"),
        pytest.param("2s", 1, 2, id="whole"),
        pytest.param("0", 1, 1, id="at-least"),
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("1ns", 0, 1, id="tiny"),
    ],
)
def test_whole_seconds(text: str, lowest: int, expected: int) -> None:
    """Seconds are rounded up, and never below the lowest."""
    assert expected == whole_seconds(parse_duration(text), lowest=lowest)


# quantities -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1024", 1024, id="bytes"),
        pytest.param("1b", 1, id="b"),
        pytest.param("512m", 512 * 1024**2, id="docker-m"),
        pytest.param("512M", 512 * 1024**2, id="docker-upper-case"),
        pytest.param("512mb", 512 * 1024**2, id="docker-mb"),
        pytest.param("1gb", 1024**3, id="docker-gb"),
        pytest.param("512Mi", 512 * 1024**2, id="kubernetes-mi"),
        pytest.param("512MiB", 512 * 1024**2, id="mib"),
        pytest.param("1.5g", 3 * 512 * 1024**2, id="fraction"),
        pytest.param("64 k", 65536, id="a-space"),
        pytest.param("2t", 2 * 1024**4, id="tera"),
        pytest.param("0", 0, id="zero"),
    ],
)
def test_size(text: str, expected: int) -> None:
    """Docker's and Kubernetes's sizes are bytes."""
    assert expected == parse_size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("512M", 512_000_000, id="upper-case-is-decimal"),
        pytest.param("1G", 1_000_000_000, id="giga"),
        pytest.param("1K", 1000, id="kilo"),
        pytest.param("512Mi", 512 * 1024**2, id="mebi"),
        pytest.param("512m", 512 * 1024**2, id="lower-case-stays-docker"),
        pytest.param("1k", 1024, id="lower-case-k-stays-docker"),
    ],
)
def test_decimal_size(text: str, expected: int) -> None:
    """In the keys that speak Kubernetes an upper-case suffix is a power of ten."""
    assert expected == parse_size(text, decimal=True)


@pytest.mark.parametrize("text", ["", "m", "-1m", "1x", "1mm", "1 gbb", "0x10", "1e3", "1i", "1ib", "1,5g"])
def test_no_size(text: str) -> None:
    """What is no size is refused by what is wanted."""
    assert reason(parse_size, text) == "must be a size such as 512m, 1g or 512Mi"


def test_size_of_a_fraction_of_bytes() -> None:
    """Half a byte is a forgotten unit."""
    assert reason(parse_size, "1.5") == "must be a whole number of bytes, or have a unit such as m or Mi"


def test_largest_size() -> None:
    """A size that 64 bits can't hold is refused."""
    assert reason(parse_size, "9000p") == "must be a size below 8 exbibytes"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2", 2000, id="whole"),
        pytest.param("0.5", 500, id="fraction"),
        pytest.param(".5", 500, id="no-leading-zero"),
        pytest.param("250m", 250, id="milli"),
        pytest.param("0.0001", 1, id="up"),
        pytest.param("0", 0, id="zero"),
    ],
)
def test_cpus(text: str, expected: int) -> None:
    """Cpus are counted in thousandths, rounded up."""
    assert expected == parse_cpus(text)


@pytest.mark.parametrize("text", ["", "m", ".", "-1", "1e3", "inf", "nan", "1u", "half", "1_0", " 1"])
def test_no_cpus(text: str) -> None:
    """What is no number of cpus is refused, infinity included."""
    assert reason(parse_cpus, text) == "must be a number of cpus such as 0.5, 2 or 250m"


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param(1024**3, "1Gi", id="gibi"),
        pytest.param(512 * 1024**2, "512Mi", id="mebi"),
        pytest.param(1024, "1Ki", id="kibi"),
        pytest.param(1000, "1000", id="bytes"),
        pytest.param(0, "0", id="zero"),
        pytest.param(3 * 1024**5, "3Pi", id="pebi"),
    ],
)
def test_show_size(size: int, expected: str) -> None:
    """A size is written with the largest unit that is exact."""
    assert expected == show_size(size)


@pytest.mark.parametrize(("milli", "expected"), [(500, "500m"), (2000, "2"), (1, "1m"), (0, "0")])
def test_show_cpus(milli: int, expected: str) -> None:
    """Cpus are written whole where they are."""
    assert expected == show_cpus(milli)


# ports ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pairs", "protocol", "host_ip"),
    [
        pytest.param("80", ((None, 80),), "tcp", "", id="bare"),
        pytest.param("8080:80", ((8080, 80),), "tcp", "", id="mapped"),
        pytest.param("53:53/udp", ((53, 53),), "udp", "", id="protocol"),
        pytest.param("53/UDP", ((None, 53),), "udp", "", id="upper-case-protocol"),
        pytest.param("127.0.0.1:8080:80", ((8080, 80),), "tcp", "127.0.0.1", id="address"),
        pytest.param("127.0.0.1::80", ((None, 80),), "tcp", "127.0.0.1", id="address-without-a-port"),
        pytest.param("0:80", ((None, 80),), "tcp", "", id="any-port"),
        pytest.param("[::1]:8080:80", ((8080, 80),), "tcp", "::1", id="ipv6"),
        pytest.param("::1:8080:80", ((8080, 80),), "tcp", "::1", id="ipv6-without-brackets"),
        pytest.param("localhost:8080:80", ((8080, 80),), "tcp", "localhost", id="localhost"),
        pytest.param("3000-3002", ((None, 3000), (None, 3001), (None, 3002)), "tcp", "", id="range"),
        pytest.param("9000-9001:80-81", ((9000, 80), (9001, 81)), "tcp", "", id="two-ranges"),
        pytest.param("9000-9005:80", ((9000, 80),), "tcp", "", id="many-to-one"),
    ],
)
def test_port(text: str, pairs: tuple[tuple[int | None, int], ...], protocol: str, host_ip: str) -> None:
    """Compose's short form of a port is pairs of published and target."""
    port = parse_port(text)

    assert (pairs, protocol, host_ip) == (port.pairs, port.protocol, port.host_ip)


_PORT = "must be a port such as 80, 8080:80, 127.0.0.1:8080:80 or 53:53/udp"
_RANGE = "must be a whole number from 1 to 65535"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", _PORT, id="empty"),
        pytest.param("http", _PORT, id="word"),
        pytest.param("0", _RANGE, id="zero"),
        pytest.param("65536", _RANGE, id="too-high"),
        pytest.param("8080:", _PORT, id="no-target"),
        pytest.param("81-80", "must be a range from a lower port to a higher one", id="backwards"),
        pytest.param("1-1000", "must name at most 256 ports in one range", id="long-range"),
        pytest.param("1-3:5-6", "must have ranges of the same length on both sides", id="uneven"),
        pytest.param("80/icmp", "must have a protocol of tcp, udp or sctp after the '/'", id="protocol"),
        pytest.param("80/", "must have a protocol of tcp, udp or sctp after the '/'", id="no-protocol"),
        pytest.param("[::1:80", _PORT, id="open-bracket"),
        pytest.param("[::1]:1:2:3", _PORT, id="too-many"),
        pytest.param("bad ip:80:80", _PORT, id="address"),
        pytest.param("A B", _PORT, id="never-repeated"),
    ],
)
def test_no_port(text: str, expected: str) -> None:
    """A wrong port is refused with the first thing that is wrong."""
    assert reason(parse_port, text) == expected


def test_published_range_for_one_target() -> None:
    """A range of host ports for one target is remembered: its rest is left out, and that is reported."""
    assert parse_port("9000-9005:80").from_range
    assert parse_port("8000-9999:80").pairs == ((8000, 80),)
    assert not parse_port("9000:80").from_range


def test_port_range() -> None:
    """A range holds both its ends."""
    assert range(80, 83) == parse_port_range("80-82")


def test_pairs_of_one_target() -> None:
    """The first of several host ports leads to the one target."""
    assert pair_ports(range(9000, 9003), range(80, 81)) == ((9000, 80),)


# volumes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("/data", MountText(source="", target="/data"), id="anonymous"),
        pytest.param("data:/data", MountText(source="data", target="/data"), id="named"),
        pytest.param("./conf:/etc/conf", MountText(source="./conf", target="/etc/conf"), id="host"),
        pytest.param("data:/data:ro", MountText(source="data", target="/data", read_only=True), id="read-only"),
        pytest.param("data:/data:rw", MountText(source="data", target="/data"), id="read-write"),
        pytest.param(
            "data:/data:ro,z",
            MountText(source="data", target="/data", read_only=True, unsupported=("z",)),
            id="unsupported",
        ),
        pytest.param(
            "data:/data:U,noexec",
            MountText(source="data", target="/data", unsupported=("U", "noexec")),
            id="options of other tools",
        ),
        pytest.param("C:\\conf:/etc", MountText(source="C:\\conf", target="/etc"), id="windows"),
        pytest.param("data:/a//b/./c/", MountText(source="data", target="/a/b/c"), id="cleaned"),
    ],
)
def test_mount(text: str, expected: MountText) -> None:
    """Compose's short form of a volume is source, target and options."""
    assert expected == parse_mount(text)


_MOUNT = "must be a volume such as data:/var/lib/data, ./conf:/etc/conf:ro or /cache"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", _MOUNT, id="empty"),
        pytest.param("data:/b:ro:x", _MOUNT, id="too-many"),
        pytest.param(":/data", _MOUNT, id="no-source"),
        pytest.param("data:", _MOUNT, id="no-target"),
        pytest.param("data", "must mount at an absolute path inside the container", id="relative"),
        pytest.param("data:here", "must mount at an absolute path inside the container", id="relative-target"),
        pytest.param("data:/a/../b", "must mount at a path without '..'", id="climbs"),
        pytest.param("data:/", "must not mount at '/', which is the container itself", id="root"),
    ],
)
def test_no_mount(text: str, expected: str) -> None:
    """A wrong volume is refused with the first thing that is wrong."""
    assert reason(parse_mount, text) == expected


def test_target_with_a_colon() -> None:
    """Kubernetes accepts no colon in a path."""
    assert reason(clean_target, "/a:b") == "must mount at a path without ':'"


@pytest.mark.parametrize(("text", "expected"), [("a/b", "a/b"), ("./a//b/", "a/b"), ("", "")])
def test_sub_path(text: str, expected: str) -> None:
    """A path below a volume is written without what is empty in it."""
    assert expected == clean_sub_path(text)


@pytest.mark.parametrize("text", ["/a", "..", "a/../b"])
def test_no_sub_path(text: str) -> None:
    """A path below a volume can't leave it."""
    assert reason(clean_sub_path, text) == "must be a relative path without '..'"


@pytest.mark.parametrize(
    ("source", "expected"),
    [("./a", True), ("..", True), ("/a", True), ("~/a", True), ("C:\\a", True), ("data", False), ("a/b", False)],
)
def test_host_path(source: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """What begins like a path is one; anything else is a volume's name."""
    assert expected is is_host_path(source)


# words, users, images -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("serve --port 80", ("serve", "--port", "80"), id="words"),
        pytest.param("sh -c 'a && b'", ("sh", "-c", "a && b"), id="quotes"),
        pytest.param('a "b c"d', ("a", "b cd"), id="joined"),
        pytest.param("a && b", ("a", "&&", "b"), id="no-shell"),
        pytest.param("a # b", ("a", "#", "b"), id="no-comment"),
        pytest.param("", (), id="empty"),
        pytest.param("''", ("",), id="an-empty-word"),
    ],
)
def test_messages(text: str, expected: tuple[str, ...]) -> None:
    """A command is split as a shell splits it, and not run in one."""
    assert expected == split_command(text)


def test_unclosed_quote() -> None:
    """A quote that is never closed is refused."""
    assert reason(split_command, "echo 'a") == "must be a command that a shell can split (no closing quotation)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("A=b", ("A", "b")), ("A=", ("A", "")), ("A", ("A", None)), ("A=b=c", ("A", "b=c")), ("=b", ("", "b"))],
)
def test_pair(text: str, expected: tuple[str, str | None]) -> None:
    """A pair is split at its first equals sign."""
    assert expected == split_pair(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000", (1000, None, "", "")),
        ("1000:2000", (1000, 2000, "", "")),
        ("0", (0, None, "", "")),
        ("root", (0, None, "", "")),
        ("root:root", (0, 0, "", "")),
        ("0:root", (0, 0, "", "")),
        ("root:5", (0, 5, "", "")),
        ("5:root", (5, 0, "", "")),
        ("www-data", (None, None, "www-data", "")),
        ("www-data:root", (None, 0, "www-data", "")),
        ("www-data:33", (None, 33, "www-data", "")),
        ("1000:staff", (1000, None, "", "staff")),
        ("www-data:staff", (None, None, "www-data", "staff")),
        (":", (0, None, "", "")),
        (":5", (0, 5, "", "")),
        (":staff", (0, None, "", "staff")),
        ("5:", (5, None, "", "")),
    ],
)
def test_user(text: str, expected: tuple[int | None, int | None, str, str]) -> None:
    """Each half is a number or root, which is 0; another name takes nothing from the number beside it.

    An empty user is root, and an empty group is that of the user.
    """
    read = parse_user(text)

    assert expected == (read.uid, read.gid, read.user_name, read.group_name)


@pytest.mark.parametrize("text", ["", "1:2:3", "a:b:c"])
def test_no_user(text: str) -> None:
    """A user is one or two halves."""
    assert reason(parse_user, text) == "must be a user such as 1000, 1000:1000 or root"


def test_largest_user() -> None:
    """A number that Kubernetes does not take is refused."""
    assert reason(parse_user, "2147483648") == "must have numbers of at most 2147483647"


@pytest.mark.parametrize(
    "text",
    [
        "nginx",
        "nginx:1.27",
        "team/app",
        "registry.example.com/team/app:1.0",
        "registry.example.com:5000/app",
        "localhost:5000/app@sha256:" + "a" * 64,
        "[::1]:5000/app",
        "a__b/c-d.e",
    ],
)
def test_image(text: str) -> None:
    """A reference that registries take is taken as it stands."""
    assert text == parse_image(text)


@pytest.mark.parametrize(
    "text",
    ["", "nginx:", ":1.27", "nginx:1.27:2", "a b", "app@sha256:abc", "-a", "a/", "n" * 600, "nginx\n"],
)
def test_no_image(text: str) -> None:
    """A reference that no registry takes is refused."""
    want = "must be an image such as nginx, nginx:1.27 or registry.example.com/team/app:1.0"
    assert reason(parse_image, text) == want


@pytest.mark.parametrize("text", ["Nginx", "ghcr.io/Team/app:V1"])
def test_the_letter_case_of_an_image(text: str) -> None:
    """Of an image that only its letters' case keeps from a registry, the message says so."""
    assert reason(parse_image, text) == "must be in lower case, except for its tag"


def test_the_longest_command() -> None:
    """A command of 1 MiB is split; a longer one is refused before it is looked at."""
    assert split_command("x" * 1024 * 1024) == ("x" * 1024 * 1024,)
    assert reason(split_command, "x" * (1024 * 1024 + 1)) == "must be a command of at most 1 MiB"
