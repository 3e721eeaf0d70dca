"""Small grammars: durations, sizes, CPUs, ports, mounts, commands, ``NAME=value``.

Owns how a text is parsed to a value, and the error :class:`BadValue`, which says what is expected.
Must not know YAML, spans or Kubernetes objects: each function takes a text and returns a value, so that a test is a
table of texts.
An error never contains the text, which may be a variable's value; only the caller knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from composeplat.compose.command_args import split_args
from composeplat.compose.placeholders import LateNumber, has_placeholder, is_placeholder, replace_placeholders
from composeplat.system.records import record

MAX_COMMAND = 1024 * 1024
_MAX_INT = 2**31 - 1
_MAX_QUANTITY = 2**63 - 1


class BadValue(ValueError):
    """The text does not match the grammar.

    The argument says what is expected, ``known`` what may have been meant, and ``hint`` how to fix it otherwise.
    """

    def __init__(self, expected: str, known: Iterable[str] = (), *, hint: str = "") -> None:
        super().__init__(expected)
        self.known, self.hint = tuple(known), hint


# numbers and booleans -------------------------------------------------------------------------------------------------

_TRUE = {"true", "yes", "y", "on"}
_FALSE = {"false", "no", "n", "off"}


def parse_bool(text: str) -> bool:
    """Read a boolean as Compose does after substitution: ``yes`` and ``on`` count too."""
    lower = text.lower()
    if lower in _TRUE:
        return True
    if lower in _FALSE:
        return False
    raise BadValue("must be true or false")


_INT = re.compile(r"[+-]?[0-9]{1,20}\Z")


def parse_int(text: str, *, lowest: int = 0, highest: int = _MAX_INT) -> int:
    expected = f"must be a whole number from {lowest} to {highest}"
    if highest == _MAX_INT:
        expected = "must be a whole number" + (" of at least 0" if lowest == 0 else f" of at least {lowest}")
    if not _INT.match(text):
        raise BadValue(expected)
    number = int(text)
    if not lowest <= number <= highest:
        raise BadValue(expected)
    return number


_WHOLE = re.compile(r"([+-]?[0-9]{1,20})\.0{1,20}\Z", re.ASCII)


def parse_whole(text: str, *, highest: int = _MAX_INT) -> int:
    """Read a whole number that may have a fraction of zeros, as programs write it: ``3.0``."""
    found = _WHOLE.match(text)
    return parse_int(found[1] if found else text, highest=highest)


def parse_count(text: str, *, highest: int) -> int:
    """Read a number of pods. One that only Pulumi knows counts as several."""
    return LateNumber(2, text) if is_placeholder(text) else parse_whole(text, highest=highest)


_BILLION = 10**9


def _parse_billionths(text: str) -> int:
    """Read a number with at most nine digits after its point, exactly; the decimal module takes 3 ms to import."""
    whole, _, fraction = text.partition(".")
    return int(whole or "0") * _BILLION + int(fraction.ljust(9, "0"))


def _divide_rounding_up(number: int, divisor: int) -> int:
    return -(-number // divisor)


# durations ------------------------------------------------------------------------------------------------------------

_DURATION = re.compile(r"(?:[0-9]{1,10}|(?:[0-9]{1,12}(?:\.[0-9]{1,9})?(?:us|µs|ms|ns|s|m|h|d|w))+)\Z", re.ASCII)
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|µs|ms|ns|s|m|h|d|w)?")
_NANOSECONDS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "w": 604800 * 10**9,
}


def parse_duration(text: str) -> int:
    """Read a duration such as ``1m30s`` as nanoseconds, rounded up; a number without a unit is seconds."""
    if not _DURATION.match(text):
        raise BadValue("must be a duration such as 30s, 500ms or 1m30s, or a number of seconds")
    parts = _DURATION_PART.findall(text)
    nanoseconds = _divide_rounding_up(
        sum(_parse_billionths(number) * _NANOSECONDS[unit or "s"] for number, unit in parts), _BILLION
    )
    if nanoseconds > _MAX_INT * _NANOSECONDS["s"]:
        raise BadValue(f"must be a duration of at most {_MAX_INT} seconds")
    return nanoseconds


def whole_seconds(nanoseconds: int, *, lowest: int) -> int:
    """Round up to whole seconds, the unit of Kubernetes."""
    return max(lowest, _divide_rounding_up(nanoseconds, _NANOSECONDS["s"]))


def parse_seconds(text: str) -> int:
    """Read a duration as whole seconds, rounded up."""
    return whole_seconds(parse_duration(text), lowest=0)


# quantities -----------------------------------------------------------------------------------------------------------

_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)\s?([a-zA-Z]{0,3})\Z", re.ASCII)
_BINARY = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_DOCKER_SUFFIX = re.compile(r"([kmgtp]?)(?:ib?|b)?\Z", re.IGNORECASE)
_KUBERNETES_DECIMAL = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def parse_size(text: str, *, decimal: bool = False) -> int:
    """Read a size as bytes: Docker's ``512m``, ``1gb`` and Kubernetes's ``512Mi``.

    ``M`` is Docker's mebibyte in Compose's own keys. With ``decimal`` an upper-case suffix is a power of ten: the
    extension keys use Kubernetes quantities.
    """
    expected = "must be a size such as 512m, 1g or 512Mi"
    match = _SIZE.match(text)
    if not match:
        raise BadValue(expected)
    number, suffix = match[1], match[2]
    if decimal and suffix in _KUBERNETES_DECIMAL and suffix != "k":
        factor = 1000 ** _KUBERNETES_DECIMAL[suffix]
    else:
        unit = _DOCKER_SUFFIX.match(suffix)
        if not unit or suffix.lower() in ("i", "ib"):
            raise BadValue(expected)
        factor = 1024 ** _BINARY[unit[1].lower()]
    if not suffix and "." in number:
        raise BadValue("must be a whole number of bytes, or have a unit such as m or Mi")
    size = _divide_rounding_up(_parse_billionths(number) * factor, _BILLION)
    if size > _MAX_QUANTITY:
        raise BadValue("must be a size below 8 exbibytes")
    return size


def parse_volume_size(text: str) -> int:
    size = parse_size(text, decimal=True)
    if size == 0:
        raise BadValue("must be a size above 0")
    return size


def parse_memory(text: str) -> int:
    """Read a limit of memory in Compose's own keys; 0 and -1 mean no limit."""
    return 0 if text == "-1" else parse_size(text)


_CPUS = re.compile(r"(?=\.?[0-9])[0-9]{0,9}(?:\.[0-9]{0,9})?\Z")


def parse_cpus(text: str) -> int:
    """Read CPUs as thousandths: ``0.5`` and ``500m`` are 500."""
    number = text.removesuffix("m")
    if not _CPUS.match(number):
        raise BadValue("must be a number of cpus such as 0.5, 2 or 250m")
    thousandths = 1 if number != text else 1000
    return _divide_rounding_up(_parse_billionths(number) * thousandths, _BILLION)


def show_size(size: int) -> str:
    """Write bytes as the shortest exact Kubernetes quantity."""
    for suffix, power in (("Pi", 5), ("Ti", 4), ("Gi", 3), ("Mi", 2), ("Ki", 1)):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{suffix}"
    return str(size)


def show_cpus(milli: int) -> str:
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


# volumes --------------------------------------------------------------------------------------------------------------


@record(kw_only=True)
class MountText:
    """A volume in its short form, ``source:target:options``; an anonymous volume has no source."""

    source: str
    target: str
    read_only: bool = False
    no_copy: bool = False
    unsupported: tuple[str, ...] = ()


def is_host_path(source: str) -> bool:
    """Whether the source of a mount is a host path, not a volume's name; as in Compose."""
    return source.startswith((".", "/", "~")) or re.match(r"[a-zA-Z]:[\\/]", source) is not None


def parse_mount(text: str) -> MountText:
    expected = "must be a volume such as data:/var/lib/data, ./conf:/etc/conf:ro or /cache"
    # A single letter is a volume's name, unless the rest can only be the path of a Windows drive.
    drive = re.match(r"[a-zA-Z]:(?:\\|/.*:[/\\])", text)
    head = text[:2] if drive else ""
    parts = text[len(head) :].split(":")
    parts[0] = head + parts[0]
    if not all(parts):
        raise BadValue(expected)
    match parts:
        case [target]:
            return MountText(source="", target=clean_target(target))
        case [source, target]:
            options = []
        case [source, target, text_of_options]:
            options = text_of_options.split(",")
        case _:
            raise BadValue(expected)
    return MountText(
        source=source,
        target=clean_target(target),
        read_only="ro" in options,
        no_copy="nocopy" in options,
        unsupported=tuple(o for o in options if o not in ("ro", "rw", "nocopy", "copy")),
    )


def parse_path(text: str) -> str:
    """Refuse an empty text, which names no file; joined to a folder it would name that."""
    if not text:
        raise BadValue("must be a path on this machine")
    return text


def is_address(text: str) -> bool:
    """Check for a file on another machine, which Compose fetches."""
    return "://" in text or text.startswith(("git@", "oci:"))


def clean_target(text: str) -> str:
    """Normalize an absolute path inside a container."""
    if not text.startswith("/"):
        raise BadValue("must mount at an absolute path inside the container")
    if ":" in text or "\0" in text:
        raise BadValue("must mount at a path without ':'")
    steps: list[str] = []
    for step in text.split("/"):
        if step == "..":
            raise BadValue("must mount at a path without '..'")
        if step not in ("", "."):
            steps.append(step)
    if not steps:
        raise BadValue("must not mount at '/', which is the container itself")
    return "/" + "/".join(steps)


def parse_working_dir(text: str) -> str:
    """Refuse a relative path, with which no container starts; an output may be any path."""
    if text and not text.startswith("/") and not has_placeholder(text):
        raise BadValue("must be an absolute path in the container")
    return text


def clean_sub_path(text: str) -> str:
    if has_placeholder(text) or text.startswith("/") or ".." in text.split("/"):
        raise BadValue("must be a relative path without '..'")
    return "/".join(step for step in text.split("/") if step not in ("", "."))


_MODE = re.compile(r"(?:0o?)?([0-7]{1,4})\Z", re.ASCII)


def parse_mode(text: str) -> int:
    """Read the mode of a file or folder, in octal."""
    match = _MODE.match(text)
    if not match:
        raise BadValue("must have a mode of octal digits, such as 1777 or 0o755")
    return int(match[1], 8)


# commands and pairs ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def split_command(text: str) -> tuple[str, ...]:
    """Split a command into arguments, as a shell does."""
    if len(text) > MAX_COMMAND:
        raise BadValue(f"must be a command of at most {MAX_COMMAND // 1024 // 1024} MiB")
    try:
        return split_args(text)
    except ValueError as error:
        raise BadValue(f"must be a command that a shell can split ({error})") from error


def split_pair(text: str) -> tuple[str, str | None]:
    """Split ``NAME=value``; a bare NAME has no value."""
    name, equals, value = text.partition("=")
    return name, value if equals else None


def parse_known(text: str) -> str:
    """Refuse an output."""
    if has_placeholder(text):
        raise BadValue("must be known when the plan is made")
    return text


_USER = re.compile(r"[^:]*(?::[^:]*)?\Z")
_ID = re.compile(r"[0-9]{1,20}\Z", re.ASCII)


@record(kw_only=True)
class UserText:
    """The numbers of a ``user:group``, and the names, whose numbers the image has."""

    uid: int | None
    gid: int | None
    user_name: str = ""
    group_name: str = ""


def parse_user(text: str) -> UserText:
    """Read ``user[:group]``; each half is a number, ``root`` for 0, or a name.

    As in Docker, a user that is empty beside a colon is root: that is left of variables which are not set.
    """
    user, colon, group = parse_known(text).partition(":")
    if not _USER.match(text) or not (user or colon):
        raise BadValue("must be a user such as 1000, 1000:1000 or root")
    user = user or "root"
    names = ["" if half == "root" or _ID.match(half) else half for half in (user, group)]
    return UserText(uid=_parse_id(user), gid=_parse_id(group), user_name=names[0], group_name=names[1])


def _parse_id(text: str) -> int | None:
    if text == "root":
        return 0
    number = int(text) if _ID.match(text) else None
    if number is not None and number > _MAX_INT:
        raise BadValue(f"must have numbers of at most {_MAX_INT}")
    return number


_IMAGE = re.compile(
    r"(?:(?:[a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127})?(?:@[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-fA-F0-9]{32,})?\Z",
    re.ASCII,
)
_MAX_IMAGE_CHARS = 512
_NO_IMAGE = "must be an image such as nginx, nginx:1.27 or registry.example.com/team/app:1.0"


def parse_image(text: str) -> str:
    """Check an image reference."""
    known = replace_placeholders(text, "x")
    if len(known) <= _MAX_IMAGE_CHARS and _IMAGE.match(known):
        return text
    lower = known.lower()
    differs_in_case = known != lower and _IMAGE.match(lower)
    raise BadValue("must be in lower case, except for its tag" if differs_in_case else _NO_IMAGE)
