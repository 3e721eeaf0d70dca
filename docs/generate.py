"""Write the generated parts of the pages beside this script: diagnostics.md and keys.md.

Owns what stands between the markers there, and one small definition for each diagnostic code.
The messages shown are not written by hand: each definition is read, and what is said of it is put into the page.

``python docs/generate.py`` writes the pages; with ``--check`` it only says which are out of date, with status 1.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from composeplat.codes import CODES
from composeplat.diagnostics import ComposeplatError, Diagnostic
from composeplat.keys import ROWS, Handling, Row
from composeplat.load import load
from composeplat.plan import make_plan
from composeplat.request import Request

DOCS = Path(__file__).resolve().parent
_GENERATED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """Files that are read for a message; the first is the one shown, and not shown where it says nothing."""

    files: Mapping[str, str | bytes]
    shown: bool = True
    named: tuple[str, ...] = ()
    domain: str = "example.com"


def _compose(text: str, **more: str) -> Example:
    return Example({"compose.yaml": text, **{name.replace("__", "."): content for name, content in more.items()}})


_WEB = "services:\n  web:\n    image: nginx\n"

#: What is said of a cluster, as a run against one said it; tests/deploy holds these words.
CLUSTER_MESSAGES = {
    "foreign-object": "compose.yaml:3:8: error: services.app needs the name of Service 'app', which is in namespace"
    " 'demo' already and belongs to someone else [foreign-object]",
    "volume-change": "compose.yaml:4:17: error: volumes.data can't be changed without losing its data:"
    " the file changes its size from 1Gi to 100Mi [volume-change]",
    "no-sync-path": "compose.yaml:2:3: error: services.web has no host volume, so there is nothing to develop it with"
    " [no-sync-path]",
    "deploy-failed": "compose.yaml:3:28: error: services.app: crashes with exit status 4 (2 times) [deploy-failed]",
}

EXAMPLES: dict[str, Example] = {
    "no-definition": Example({}, shown=False),
    "unreadable-file": _compose(f"{_WEB}    env_file: web.env\n"),
    "several-files": Example({"compose.yaml": _WEB, "docker-compose.yml": _WEB}, shown=False),
    "not-utf8": Example({"compose.yaml": b"services:\n  web:\n    image: nginx # caf\xe9\n"}, shown=False),
    "bad-character": Example({"compose.yaml": f"{_WEB}    command: 'a\x07b'\n"}, shown=False),
    "bad-yaml": _compose("services:\n  web:\n    image: nginx\n   restart: always\n"),
    "too-deep": Example({"compose.yaml": "x-deep: " + 101 * "[" + 101 * "]" + "\n"}, shown=False),
    "too-large": Example({"compose.yaml": "x-large: [" + 400_000 * "a," + "a]\n"}, shown=False),
    "too-many-aliases": Example(
        {
            "compose.yaml": "x-a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n"
            + "".join(
                f"x-{name}: &{name} [{', '.join(10 * [f'*{before}'])}]\n"
                for before, name in zip("abcdef", "bcdefg", strict=True)
            )
        },
        shown=False,
    ),
    "recursive-alias": _compose("x-circle: &circle\n  inner: *circle\n"),
    "duplicate-key": _compose(f"{_WEB}    scale: 1\n    scale: 2\n"),
    "bad-key": _compose("services:\n  1:\n    image: nginx\n"),
    "bad-merge": _compose("services:\n  web:\n    <<: nginx\n    image: nginx\n"),
    "unknown-tag": _compose("services:\n  web:\n    image: !secret nginx\n"),
    "bad-variable": _compose("services:\n  web:\n    image: nginx:${1}\n"),
    "required-variable": _compose("services:\n  web:\n    image: nginx:${TAG:?choose one}\n"),
    "unset-variable": _compose("services:\n  web:\n    image: nginx${SUFFIX}\n"),
    "bad-env-file": _compose(f"{_WEB}    env_file: web.env\n", web__env='GREETING="hello\n'),
    "wrong-type": _compose(f"{_WEB}    ports: 80\n"),
    "bad-value": _compose(f"{_WEB}    scale: two\n"),
    "missing-key": _compose(f"{_WEB}    ports:\n      - published: 8080\n"),
    "conflicting-keys": _compose(
        f"{_WEB}    healthcheck:\n      test: curl -f http://localhost\n      http: {{path: /, port: 80}}\n"
    ),
    "overridden-key": _compose(f"{_WEB}    scale: 2\n    deploy:\n      replicas: 3\n"),
    "no-image": _compose("services:\n  web:\n    restart: always\n"),
    "no-services": _compose("volumes:\n  data:\n"),
    "unsupported-key": _compose(f"{_WEB}    container_name: front\n"),
    "no-effect": _compose(f"{_WEB}    ports:\n      - 127.0.0.1:8080:80\n"),
    "ignored-key": _compose(f"{_WEB}    develop:\n      watch: []\n"),
    "unknown-key": _compose(f"{_WEB}    scael: 2\n"),
    "left-out": _compose(f"{_WEB}volumes:\n  data:\n"),
    "derived-image": Example(
        {"compose.yaml": f"{_WEB}    volumes:\n      - ./pictures.tar:/pictures.tar\n", "pictures.tar": 300_000 * b"x"}
    ),
    "name-cleaned": _compose("services:\n  my_app:\n    image: nginx\n"),
    "bad-name": _compose("services:\n  9lives:\n    image: nginx\n"),
    "name-clash": _compose("services:\n  my-app:\n    image: nginx\n  my_app:\n    image: nginx\n"),
    "unknown-service": _compose(f"{_WEB}    depends_on: [database]\n"),
    "unknown-volume": _compose(f"{_WEB}    volumes: [data:/data]\n"),
    "unknown-port": _compose(f'{_WEB}    ports: ["80"]\nendpoints:\n  - path: /\n    service: web\n    port: 8080\n'),
    "dependency-cycle": _compose(
        "services:\n  a:\n    image: nginx\n    depends_on: [b]\n  b:\n    image: nginx\n    depends_on: [a]\n"
    ),
    "include-cycle": _compose(f"include: [more.yaml]\n{_WEB}", more__yaml="include: [compose.yaml]\n"),
    "not-a-job": _compose(
        f"{_WEB}    depends_on:\n      db:\n        condition: service_completed_successfully\n"
        "  db:\n    image: postgres\n"
    ),
    "update-policy": _compose(f"{_WEB}    labels:\n      dev.platform.com/update: on-delete\n"),
    "above-limit": _compose(f"{_WEB}    mem_limit: 64m\n    mem_reservation: 128m\n"),
    "user-name": _compose(f"{_WEB}    user: www-data\n"),
    "on-failure-job": _compose(f"{_WEB}    restart: on-failure\n"),
    "divert-off": _compose(f"{_WEB}    deploy:\n      endpoint_mode: dnsrr\n"),
    "mount-clash": _compose(
        f"{_WEB}    volumes:\n      - data:/data\n      - {{type: tmpfs, target: /data/.}}\nvolumes:\n  data:\n"
    ),
    "refused-path": _compose(f"{_WEB}    volumes:\n      - /var/run/docker.sock:/var/run/docker.sock\n"),
    "missing-path": _compose(f"{_WEB}    volumes:\n      - ./pages:/usr/share/nginx/html\n"),
    "never-public": _compose('services:\n  db:\n    image: postgres\n    ports: ["5432:5432"]\n'),
    "no-domain": Example(
        {"compose.yaml": f'{_WEB}    ports: ["80"]\nendpoints:\n  - path: /\n    service: web\n    port: 80\n'},
        domain="",
    ),
    "not-public": Example({"compose.yaml": f'{_WEB}    ports: ["8080:80"]\n'}, domain=""),
    "host-shortened": _compose(
        f'{_WEB}    ports: ["80"]\nendpoints:\n  a-name-that-together-with-the-namespace-is-longer-than-dns-takes:\n'
        "    - path: /\n      service: web\n      port: 80\n"
    ),
}


def messages_of(example: Example) -> list[tuple[str, str]]:
    """Read a definition, and give the code and text of everything said of it."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "demo"
        folder.mkdir()
        for name, content in example.files.items():
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        request = Request(files=example.named, folder=folder, domain=example.domain)
        try:
            loaded = load(request)
        except ComposeplatError as error:
            return [("no-definition", f"error: {error}\n  hint: {error.hint}")]
        make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
        return [(d.code, _line(d)) for d in loaded.report.sorted()]


def _line(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    line = f"{span.source.name}:{span.line}:{span.column}: {diagnostic.severity}: {diagnostic.message}"
    hint = f"\n  hint: {diagnostic.hint}" if diagnostic.hint else ""
    return f"{line} [{diagnostic.code}]{hint}"


# the pages ------------------------------------------------------------------------------------------------------------


def _codes() -> Iterator[str]:
    yield "| Code | Severity | Meaning |"
    yield "|---|---|---|"
    for name, code in CODES.items():
        yield f"| [`{name}`](#{name}) | {code.severity} | {_cell(code.meaning)} |"
    for name, code in CODES.items():
        yield f"\n## {name}\n\n**{str(code.severity).capitalize()}.** {code.meaning}\n{code.way_out}\n"
        if name in CLUSTER_MESSAGES:
            yield f"```text\n{CLUSTER_MESSAGES[name]}\n```"
            continue
        example = EXAMPLES[name]
        if example.shown:
            yield f"```yaml\n{next(iter(example.files.values()))!s}```\n"
        said = [text for code_of, text in messages_of(example) if code_of == name]
        if not said:
            raise LookupError(f"the example of {name} does not raise it")
        yield "```text\n" + "\n".join(said) + "\n```"


_TITLES = {"": "The whole file"}
_WORDS = {
    Handling.SUPPORTED: "used",
    Handling.EXTENSION: "used; only here",
    Handling.WARNED: "warned, no effect",
    Handling.DEEP: "warned, and each of its fields",
    Handling.IGNORED: "ignored",
}


def _keys() -> Iterator[str]:
    sections: dict[str, list[Row]] = {}
    for row in ROWS:
        sections.setdefault(row.section, []).append(row)
    first = True
    for section, rows in sections.items():
        yield ("" if first else "\n") + f"## {_TITLES.get(section) or f'`{section}`'}\n"
        first = False
        yield "| Key | What becomes of it |"
        yield "|---|---|"
        for row in sorted(rows, key=lambda row: (not row.handling.is_used, row.key)):
            note = f": {row.why}" if row.why else ""
            yield f"| `{row.key}` | {_WORDS[row.handling]}{_cell(note)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_PARTS = {"codes": _codes, "keys": _keys}


def generated(text: str) -> str:
    """Give a page with what stands between its markers made anew."""
    return _GENERATED.sub(lambda m: m[1] + "\n" + "\n".join(_PARTS[m[2]]()) + "\n\n" + m[3], text)


def out_of_date() -> dict[Path, str]:
    """The pages that are not as they would be generated, with what they should be."""
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    return {path: made for path, text in pages.items() if (made := generated(text)) != text}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where a page is out of date")
    check = parser.parse_args().check
    stale = out_of_date()
    for path, text in stale.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        print(f"docs: {path.name} {'is out of date: run make docs' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
