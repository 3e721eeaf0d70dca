"""Which files a program in a container could not write or delete, and why; and how the others get there all the same.

Owns the messages of ``tar`` and ``rm``, of GNU, busybox and others: GNU's ``tar`` continues after a failure, busybox's
ends. They are not trusted. Where one names no file that was sent, the archive is split; a file that is in doubt counts
as refused, and is sent once more.
Must not run a program: its caller does.
"""

from __future__ import annotations

import posixpath
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from composeplat.diagnostics import ComposeplatError, join_and_count, quoted, truncate

Refused = dict[str, str]
"""The reasons, by path."""

#: Each is a request. Files without one come first the next time.
_MAX_ATTEMPTS = 8
_MAX_SHOWN_PATHS = 3
_MAX_REASON_LENGTH = 200
_CONTINUED = "previous errors"
#: That the clock of the container is behind.
_WARNING = "time stamp"
#: The characters before a path in a message, and after it.
_STARTS, _ENDS = " '\"\u2018", ":'\"\u2019"
#: A container can send a line of quotes.
_MAX_PLACES = 64
#: These keep every file of the folder from being written.
_OF_FOLDER = ("Permission denied", "Read-only file system")
_OWN = "let the user of the container own the files: COPY --chown"
_HINTS = (
    ("permi", _OWN),
    # GNU's tar has this also for a file that it may not remove.
    ("file exists", f"{_OWN}; or a folder has its name there, and has to be removed"),
    ("directory", "remove what has its name there, or the name of its folder"),
    ("read-only", "sync into a volume or a tmpfs, or remove read_only"),
    ("busy", "a mounted file can't be replaced: write action: sync+restart"),
    ("space|quota|wrote only", "make room in the container or its volume"),
)
_ESCAPES = {char: f"\\{letter}" for char, letter in zip("\a\b\f\n\r\t\v\\:", "abfnrtv\\:", strict=True)}


def describe_refusals(refused: Mapping[str, str], action: str) -> Iterator[str]:
    """Yield a message for each reason: the files, and what there is to do."""
    for reason in dict.fromkeys(refused.values()):
        paths = [quoted(path) for path, why in refused.items() if why == reason]
        hint = next((f"; {fix}" for pattern, fix in _HINTS if re.search(pattern, reason.lower())), "")
        yield f"can't {action} {join_and_count(paths, _MAX_SHOWN_PATHS)}, and tries again later: {reason}{hint}"


# an archive -----------------------------------------------------------------------------------------------------------


def unpack_in_parts(archive: Path, scratch: Path, run: Callable[[Path], str]) -> Refused:
    """Unpack the files of an archive that can be written; ``run`` unpacks one, and returns the program's messages.

    ``scratch`` is the path of a file that parts of the archive are written to.
    """
    complaint = run(archive)
    if not complaint:
        return {}
    with tarfile.open(archive) as tar:
        pending = [tar.getnames()]
    if not pending[0]:
        raise ComposeplatError(_reason(complaint))
    refused = Refused()
    attempts = 1
    while pending:
        part = pending.pop()
        if complaint:
            pending += _judge(part, complaint, refused)
            pending = [left for names in pending if (left := [name for name in names if name not in refused])]
        if pending and attempts == _MAX_ATTEMPTS:
            untried = [name for names in reversed(pending) for name in names]
            return {**dict.fromkeys(untried, next(reversed(refused.values()), _reason(complaint))), **refused}
        if pending:
            _select(archive, set(pending[-1]), scratch)
            complaint = run(scratch)
            attempts += 1
    return refused


def _judge(part: Sequence[str], complaint: str, refused: Refused) -> list[list[str]]:
    """Add the refused files of a part; return those that have to be tried, in parts, the first of them last."""
    found, named = read_refusals(complaint, part)
    if not found:
        if len(part) == 1:
            refused[part[0]] = _reason(complaint)
            return []
        middle = len(part) // 2
        return [list(part[middle:]), list(part[:middle])]
    refused.update(found)
    if _CONTINUED in complaint:
        return []
    places = {name: place for place, name in enumerate(part)}
    last = max((places[name] for name in named), default=min(places[name] for name in found))
    closed = {posixpath.dirname(name): reason for name, reason in found.items() if reason in _OF_FOLDER}
    rest = list(part[last + 1 :])
    for name in rest:
        if posixpath.dirname(name) in closed:
            refused.setdefault(name, closed[posixpath.dirname(name)])
    return [rest]


def _select(archive: Path, names: set[str], chosen: Path) -> None:
    with tarfile.open(archive) as before, tarfile.open(chosen, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member in before:
            if member.name in names:
                tar.addfile(member, before.extractfile(member) if member.isreg() else None)


# messages -------------------------------------------------------------------------------------------------------------


def read_refusals(complaint: str, paths: Sequence[str]) -> tuple[Refused, set[str]]:
    """Return the paths that were refused, and which of them have a message of their own; none if any is in doubt."""
    known = {each for path in paths for each in (path, *_parents(path))}
    shown = {form: each for each in known for form in _forms(each)}
    own, found, named = set(paths), Refused(), set[str]()
    for line in complaint.split("\n"):
        if not line.strip() or _CONTINUED in line or _WARNING in line:
            continue
        path, rest = _find(line, shown)
        if not path:
            return {}, set()
        reason = _reason(rest)
        if path in own:
            named.add(path)
            found.setdefault(path, reason)
        else:
            found.update({each: reason for each in paths if each.startswith(f"{path}/") and each not in found})
    return found, named


def _parents(path: str) -> Iterator[str]:
    while (path := posixpath.dirname(path)) and path != "/":
        yield path


def _forms(path: str) -> set[str]:
    """Return how messages show a path: as it is, or as GNU's ``tar`` does, with UTF-8 or without."""
    return {path, _escaped(path, 0x10FFFF), _escaped(path, 0x7F)}


def _escaped(path: str, last: int) -> str:
    def show(char: str) -> str:
        if char in _ESCAPES:
            return _ESCAPES[char]
        is_plain = " " <= char != "\x7f" and ord(char) <= last
        return char if is_plain else "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))

    return "".join(map(show, path))


def _find(line: str, shown: Mapping[str, str]) -> tuple[str, str]:
    """Find the longest path in a line; return it, and the rest of the line."""
    starts = [0, *(place + 1 for place, char in enumerate(line) if char in _STARTS)][:_MAX_PLACES]
    ends = [*(place for place, char in enumerate(line) if char in _ENDS), len(line)][:_MAX_PLACES]
    places = [(end - start, start, end) for start in starts for end in ends if line[start:end] in shown]
    if not places:
        return "", ""
    _, start, end = max(places)
    return shown[line[start:end]], line[end:]


def _reason(text: str) -> str:
    """Return the end of a message: the reason, which follows the path and the action that failed."""
    line = text.strip().partition("\n")[0]
    return truncate(line.rpartition(": ")[2].strip(_ENDS + " "), _MAX_REASON_LENGTH)
