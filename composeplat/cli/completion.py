"""Completion of command lines: the answer to a shell when Tab is pressed.

Owns the protocol with the scripts of :mod:`composeplat.cli.scripts`, and which arguments are valid at a position.
Must not import typer or the modules of commands: a shell waits, and those imports take longer than all the rest.
So it knows the commands from ``grammar.json``, which ``docs/generate.py`` writes from the commands themselves.

Errors are never shown: a name that can't be read within the time limit is not offered.
An answer's first line is ``words``, ``starts``, to which the user adds, ``files`` or ``folders``, which the shell
completes, or ``starts-or-files``, which is both.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_TIME_LIMIT_S = 3.0
_MAX_FILE_BYTES = 1024 * 1024
_MAX_CUTS = 3
#: The services with rules in ``develop.watch``.
_WATCHED = "watched"

Option = dict[str, Any]


def answer(shell: str, args: list[str]) -> None:
    """Print the completions of a line; print nothing after an error, and after the time limit.

    bash passes the word that it completes, as it splits it, and the line; others pass the arguments of ``platform``.
    """
    lines: list[str] = []
    with suppress(Exception, _TooLate):
        signal.signal(signal.SIGALRM, _raise_too_late)
        signal.setitimer(signal.ITIMER_REAL, _TIME_LIMIT_S)
        seen = args[0] if shell == "bash" else ""
        typed = (split_line(args[1])[1:] if shell == "bash" else args) or [""]
        kind, offers = offers_for(typed)
        lines = [kind, *(_format_offer(shell, value, meaning, typed[-1], seen) for value, meaning in offers)]
        signal.setitimer(signal.ITIMER_REAL, 0)
    with suppress(OSError, AttributeError):  # the reader has gone, or standard output is closed
        sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode())
        sys.stdout.buffer.flush()


class _TooLate(BaseException):
    """The time limit is exceeded. Code that reads files must not catch it as an error of its own."""


def _raise_too_late(*_: object) -> None:
    raise _TooLate


def _format_offer(shell: str, value: str, meaning: str, word: str, seen: str) -> str:
    """Format an offer for its shell: bash replaces only the text after the last ``=`` or ``:`` of a word."""
    if shell == "bash":
        return value[len(word) - len(seen) :] if word.endswith(seen) else value
    meaning = meaning.partition("\n")[0]
    if shell == "zsh":
        return value.replace("\\", "\\\\").replace(":", "\\:") + (f":{meaning}" if meaning else "")
    return f"{value}\t{meaning}"


def split_line(line: str) -> list[str]:
    """Split a line like a shell; the last argument is the character that is being typed, and may have an open quote."""
    args, arg, quote, inside = [], "", "", False
    characters = iter(line)
    for character in characters:
        if quote:
            if character == quote:
                quote = ""
            else:
                arg += next(characters, "") if character == "\\" and quote == '"' else character
        elif character in "'\"":
            quote, inside = character, True
        elif character.isspace():
            if arg or inside:
                args.append(arg)
            arg, inside = "", False
        else:
            arg += next(characters, "") if character == "\\" else character
    return [*args, arg]


# positions on a line --------------------------------------------------------------------------------------------------


def read_grammar() -> dict[str, Any]:
    grammar: dict[str, Any] = json.loads(Path(__file__).with_name("grammar.json").read_text(encoding="utf-8"))
    return grammar


def offers_for(args: list[str]) -> tuple[str, list[tuple[str, str]]]:
    """List the completions of the last argument, each with its help."""
    grammar = read_grammar()
    line = Line(grammar)
    # ``platform help status`` is ``platform status --help``.
    is_help = args[0] == "help" and len(args) > 1
    for arg in args[is_help:-1]:
        line.read(arg)
    word = args[-1]
    if line.command is None or (is_help and not line.command["commands"]):
        return "words", []
    if line.waiting:
        return _values(line.waiting["value"], "", word, line)
    if word.startswith("-") and not line.only_arguments:
        name, equals, typed = word.partition("=")
        if equals:
            option = line.option(name)
            value = option["value"] if option else None
            return _values(value, f"{name}=", typed, line)
        return "words", list(line.options_left(word))
    if line.command["commands"]:
        names = [(name, grammar[f"{line.path} {name}"]["help"]) for name in line.command["commands"]]
        return "words", _starting(word, names)
    return _values(line.argument(), "", word, line)


class Line:
    """The part of a line before the argument that is being typed."""

    def __init__(self, grammar: dict[str, Any]) -> None:
        self._grammar = grammar
        self.path = "platform"
        self.command: dict[str, Any] | None = grammar[self.path]
        self.waiting: Option | None = None
        """An option that lacks its value."""
        self.only_arguments = False
        self.arguments: list[str] = []
        self._given: list[tuple[Option, str]] = []

    def read(self, word: str) -> None:
        if self.command is None:
            return
        if self.waiting:
            self._given.append((self.waiting, word))
            self.waiting = None
        elif self.only_arguments or not word.startswith("-") or word == "-":
            self._read_argument(word)
        elif word == "--":
            self.only_arguments = True
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            self._read_option(name, value if equals else None)
        else:
            self._read_letters(word[1:])

    def _read_argument(self, word: str) -> None:
        if self.command and self.command["commands"]:
            self.path = f"{self.path} {word}"
            self.command = self._grammar.get(self.path)
        elif self.command:
            self.arguments.append(word)
            self.only_arguments = self.only_arguments or self.command["options_first"]

    def _read_option(self, name: str, value: str | None) -> None:
        option = self.option(name)
        if option and (option["value"] is None or value is not None):
            self._given.append((option, value or ""))
        else:
            self.waiting = option

    def _read_letters(self, letters: str) -> None:
        """Read short options in one argument: the first that takes a value takes all letters after it."""
        for at, letter in enumerate(letters, start=1):
            option = self.option(f"-{letter}")
            takes_value = option is not None and option["value"] is not None
            self._read_option(f"-{letter}", (letters[at:] or None) if takes_value else None)
            if takes_value:
                return

    def option(self, name: str) -> Option | None:
        return next((option for option in (self.command or {})["options"] if name in option["names"]), None)

    def given(self, name: str) -> list[str]:
        return [value for option, value in self._given if name in option["names"]]

    def options_left(self, start: str) -> Iterator[tuple[str, str]]:
        used = [option for option, _ in self._given]
        for option in (self.command or {})["options"]:
            if option["repeats"] or option not in used:
                yield from ((name, option["help"]) for name in option["names"] if name.startswith(start))

    def argument(self) -> Any:
        """Return the kind of values of the next argument; None after the last argument."""
        kinds = (self.command or {})["arguments"]
        place = len(self.arguments)
        if place < len(kinds):
            return kinds[place]["value"]
        return kinds[-1]["value"] if kinds and kinds[-1]["repeats"] else None


def _values(kind: Any, before: str, word: str, line: Line) -> tuple[str, list[tuple[str, str]]]:
    if kind in ("files", "folders"):
        return kind, []
    if kind == "places":
        return _places(word, line)
    names: Iterable[str] = kind if isinstance(kind, list) else ()
    if kind == "services":
        names = [name for name in _services(line) if name not in line.arguments]
    elif kind in ("volumes", "profiles"):
        names = names_in(kind, line)
    elif kind == "contexts":
        names = _contexts(line)
    elif kind == "parts":
        names = _parts(line)
    return "words", [(before + name, meaning) for name, meaning in _starting(word, [(name, "") for name in names])]


def _services(line: Line) -> list[str]:
    """List the services that can be named here: a name such as ``--yes`` is an option, unless it is after ``--``."""
    names = names_in(_WATCHED if line.path == "platform watch" else "services", line)
    return names if line.only_arguments else [name for name in names if not name.startswith("-")]


def _places(word: str, line: Line) -> tuple[str, list[tuple[str, str]]]:
    """Offer a service, to which a path in its container is added, or a path here: exactly one of two is a service."""
    from composeplat.dev.file_copy import split_place

    if split_place(word)[0]:
        # The path is one in the container.
        return "words", []
    before = [bool(split_place(argument)[0]) for argument in line.arguments]
    if True in before or word.startswith((".", "/", "~")):
        return "files", []
    services = _starting(word, [(f"{name}:", "") for name in _services(line)])
    return "starts" if before else "starts-or-files", services


def _starting(word: str, offers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, meaning) for name, meaning in offers if name.startswith(word) and _is_harmless(name)]


def _is_harmless(name: str) -> bool:
    """Check that a shell gives no character of a name a meaning: the name is inserted unquoted."""
    return bool(name) and all(character.isalnum() or character in "._-:/@+" for character in name)


# names in the files ---------------------------------------------------------------------------------------------------


def names_in(section: str, line: Line) -> list[str]:
    """List the services, volumes or profiles of the definition that the line names, else of the current folder's.

    Services can be limited to those that can be watched.
    """
    files = [_path(path) for path in line.given("--file")]
    env_files = [_path(path) for path in line.given("--env-file")]
    if "-" in files:  # standard input is the terminal
        return []
    quick = None if env_files else _names_without_merge(section, files)
    return _names_loaded(section, files, env_files) if quick is None else quick


def _path(word: str) -> str:
    return os.path.expanduser(os.path.expandvars(word))


def _names_without_merge(section: str, named: list[str]) -> list[str] | None:
    """List the names by the keys of the files; return None if only a merge can list them, as with includes."""
    from composeplat.compose.discovery import MAX_ENV_FILE_BYTES, find_compose_files
    from composeplat.compose.nodes import Mapping
    from composeplat.compose.yaml_reader import NodeCount
    from composeplat.system import files

    if not named:
        if any(os.environ.get(name) for name in ("COMPOSE_FILE", "COMPOSE_ENV_FILES")):
            return None
        own = Path(".env")
        if os.path.isfile(own) and b"COMPOSE_" in files.read_bytes(own, limit=MAX_ENV_FILE_BYTES):
            return None
    found = None if named else find_compose_files(Path.cwd())
    names: dict[str, None] = {}
    count = NodeCount()
    for path in named or (found.files if found else ()):
        for node in _read(Path(path), count):
            if not isinstance(node, Mapping):
                continue
            listed = [entry for part in _parts_of(section) if (entry := node.get(part)) is not None]
            mappings = [entries for entries in listed if isinstance(entries, Mapping)]
            if "include" in node or any(entry.tag for entry in listed) or _has_tags(mappings):
                return None
            found_names = [name for entries in mappings for name in _names_of(entries, section)]
            names.update(dict.fromkeys(_profiles_of(node) if section == "profiles" else found_names))
    return list(names)


def _parts_of(section: str) -> tuple[str, ...]:
    """Return the keys of a definition that have such names: a job is named as a service is."""
    return ("services", "jobs") if section in ("services", "profiles", _WATCHED) else (section,)


def _names_of(entries: Any, section: str) -> list[str]:
    """List the names of entries, without services that have no pods, as a provider gives them."""
    found = [(key.text, entry) for key, entry in entries if not _is_provided(_keys(entry))]
    return [name for name, entry in found if section != _WATCHED or _may_be_watched(entry)]


def _is_provided(keys: Iterable[str]) -> bool:
    return "provider" in keys and "image" not in keys


def _may_be_watched(entry: Any) -> bool:
    """Whether a service has rules in ``develop.watch``, or may have those of the one that it extends."""
    keys = _keys(entry)
    return "extends" in keys or ("develop" in keys and "watch" in _keys(entry.get("develop")))


def _keys(entry: Any) -> Iterable[str]:
    return getattr(entry, "entries", ())


def _has_tags(mappings: Iterable[Any]) -> bool:
    return any(entry.tag for entries in mappings for _, entry in entries)


def _profiles_of(document: Any) -> list[str]:
    from composeplat.compose.load.profiles import read_profiles
    from composeplat.diagnostics import Report

    return [profile for profiles in read_profiles(document, Report()).values() for profile in profiles]


def _read(path: Path, count: Any) -> list[Any]:
    """Read the documents of a file; of a file that is not valid YAML, the part before the error."""
    from composeplat.compose.yaml_reader import StopReading, decode, read_nodes
    from composeplat.diagnostics import Report, Source
    from composeplat.system import files

    try:
        content = files.read_bytes(path, limit=_MAX_FILE_BYTES)
    except files.Unreadable:
        return []
    for _ in range(_MAX_CUTS):
        report = Report()
        try:
            return read_nodes(decode(content, lambda text: Source(str(path), path.parent, text), report), report, count)
        except StopReading:
            rows = content.splitlines()
            sound = min(report.sorted()[0].span.line, len(rows)) - 1
            content = b"\n".join(rows[:sound]) + b"\n"
    return []


def _names_loaded(section: str, files: list[str], env_files: list[str]) -> list[str]:
    """List the names like a command: with includes and merges."""
    from composeplat.compose.load import read
    from composeplat.compose.nodes import Mapping
    from composeplat.compose.options import Request

    request = Request(files=tuple(files), env_files=tuple(env_files), folder=Path.cwd(), shell=dict(os.environ))
    reading = read(request)
    document = reading.document
    if section == "profiles":
        inactive = [profile for profiles in reading.inactive.values() for profile in profiles]
        return list(dict.fromkeys((*_profiles_of(document), *inactive)))
    listed = [document.get(part) for part in _parts_of(section)] if isinstance(document, Mapping) else []
    inactive = list(reading.inactive) if section in ("services", _WATCHED) else []
    names = [name for entries in listed if isinstance(entries, Mapping) for name in _names_of(entries, section)]
    return [*names, *inactive]


def _parts(line: Line) -> list[str]:
    from composeplat.local.layout import make_layout
    from composeplat.local.part_logs import logged_parts

    return logged_parts(make_layout(os.environ, simulated=bool(line.given("--simulated"))).logs)


def _contexts(line: Line) -> list[str]:
    from composeplat.cluster.kubeconfig import read_kubeconfig

    named = line.given("--kubeconfig")
    return sorted(read_kubeconfig(os.environ, _path(named[-1]) if named else "").contexts)
