"""Write the generated parts of the pages beside this script: diagnostics.md, keys.md and reference.md.

Owns what stands between the markers there, and one small definition for each diagnostic code.
The messages shown are not written by hand: each definition is read, and what is said of it is put into the page.
The reference is made of the commands themselves, and so is ``composeplat/cli/grammar.json``, which says to shell
completion what may stand where on a command line, ``composeplat/cli/help_pages.json``, from which help is shown, and
``composeplat/components/schema.json``, which SDKs are made of.

``python docs/generate.py`` writes them; with ``--check`` it only says which are out of date, with status 1.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main

from composeplat import __version__
from composeplat.cli.commands import app, load_guides
from composeplat.cli.compose_commands import INSTEAD
from composeplat.cli.help_pages import record_page
from composeplat.cli.help_text import SECTIONS
from composeplat.codes import BY_KEY, CODES, Effect
from composeplat.components.provider_schema import make_schema
from composeplat.compose.keys import ROWS, Handling, Row
from composeplat.compose.load import load
from composeplat.compose.options import Request
from composeplat.compose.parse.kompose_labels import LABELS as KOMPOSE_LABELS
from composeplat.diagnostics import ComposeplatError, Diagnostic, Severity
from composeplat.plan import make_plan
from composeplat.plan.security import check_image_users

DOCS = Path(__file__).resolve().parent
GRAMMAR = DOCS.parent / "composeplat" / "cli" / "grammar.json"
HELP_PAGES = GRAMMAR.with_name("help_pages.json")
SCHEMA = DOCS.parent / "composeplat" / "components" / "schema.json"
_GENERATED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """Files that are read for a message; the first is the one shown, and not shown where it says nothing."""

    files: Mapping[str, str | bytes]
    shown: bool = True
    named: tuple[str, ...] = ()
    domain: str = "example.com"
    pod_security: str = ""


def _compose(text: str, **more: str) -> Example:
    return Example({"compose.yaml": text, **{name.replace("__", "."): content for name, content in more.items()}})


_FULL = "x-platform: {full: true}\nservices:\n  web:\n    image: nginx\n"
_WEB = "services:\n  web:\n    image: nginx\n"

#: What is said of a cluster, as a run against one said it; tests/deploy holds these words.
CLUSTER_MESSAGES = {
    "missing-object": "compose.yaml:4:14: error: secrets.a is external, and Secret 'shop-a' is not in namespace 'demo'"
    " [missing-object]",
    "import-conflict": "compose.yaml:4:9: error: volumes.data can't take over PersistentVolumeClaim 'data', which"
    " belongs to Helm release 'shop' [import-conflict]",
    "ownership-conflict": "compose.yaml:3:8: error: services.app needs the name of Service 'app', which is in namespace"
    " 'demo' already and belongs to someone else [ownership-conflict]",
    "volume-replacement": "compose.yaml:4:17: error: volumes.data can't be changed without losing its data:"
    " the file changes its size from 1Gi to 100Mi [volume-replacement]",
    "provider-refused": "compose.yaml:3:22: error: services.db.provider.type would run the program 'awesomecloud'"
    " on this machine, which is not allowed [provider-refused]",
    "provider-failed": "compose.yaml:3:15: error: services.db.provider is given by the program 'awesomecloud',"
    " which ended with status 1 [provider-failed]",
    "provided-variables": "compose.yaml:6:3: warning: services.db sets variables of web that only 'platform deploy'"
    " knows: their Secret db-provided is not printed [provided-variables]",
    "no-sync-path": "compose.yaml:2:3: error: services.web has no host volume, so there is nothing to develop it with"
    " [no-sync-path]",
    "unbuilt-image": "compose.yaml:5:9: warning: services.web.volumes[0] needs an image that only 'platform deploy'"
    " builds, as the service mounts 80 files, 40 KiB: kubectl can't run it [unbuilt-image]",
    "unread-image": "compose.yaml:3:12: note: services.web.image names 'shop/web', which is denied by its registry"
    " [unread-image]",
    "own-name-listener": "compose.yaml:5:24: warning: services.broker.environment.KAFKA_LISTENERS makes it listen at"
    " 'broker', its own name, which in a cluster is not the pod's address [own-name-listener]",
    "unshared-base": "compose.yaml:3:5: warning: services.cron.build.additional_contexts.shop-base is missing: the"
    " Dockerfile uses this image, which 'web' builds, and it would be pulled [unshared-base]",
    "image-volume": "compose.yaml:3:12: warning: services.db.image names an image with a volume at"
    " /var/lib/postgresql/data: without a mount, it is lost with the pod [image-volume]",
    "unreachable-port": "compose.yaml:2:3: warning: services.queue is addressed at port 5672 by 'app' (AMQP_URL); in a"
    " cluster its name leads to 15672 only [unreachable-port]",
    "ending-command": "compose.yaml:8:17: warning: services.bucket.entrypoint ends by itself, and a service without"
    " 'restart' is a server, which is started again each time [ending-command]",
    "docker-only-host": "compose.yaml:4:21: warning: services.app.environment.LLM_URL names host.docker.internal, which"
    " leads to this machine in Docker alone [docker-only-host]",
    "local-url": "compose.yaml:4:21: warning: services.app.environment.API_URL leads browsers to 'api' by a URL of this"
    " machine, which publishes ports in Docker alone [local-url]",
    "local-host": "compose.yaml:4:21: warning: services.web.environment.ALLOWED_HOSTS names this machine, and not"
    " the host for which browsers ask in a cluster [local-host]",
    "unresolvable-host": "compose.yaml:4:21: warning: services.app.environment.DB_URL names the host 'my_db', which is"
    " 'my-db' in a cluster [unresolvable-host]",
    "unexposed-port": "compose.yaml:4:14: warning: services.web.ports[0] names port 8080 of the container, and its"
    " image exposes 80 [unexposed-port]",
    "wrong-architecture": "compose.yaml:3:12: warning: services.web.image names an image for arm64, and the nodes are"
    " amd64 [wrong-architecture]",
    "no-storage-class": "compose.yaml:4:15: warning: services.db.volumes[0] needs a default storage class, which the"
    " cluster does not have [no-storage-class]",
    "no-ingress-class": "compose.yaml:2:3: warning: services.web has a URL that no one answers: the cluster has no"
    " default ingress class [no-ingress-class]",
    "no-load-balancer": "compose.yaml:5:5: warning: services.web.x-expose may get no address: no cloud or program of"
    " this cluster is known to give any to LoadBalancers [no-load-balancer]",
    "no-metrics-server": "compose.yaml:6:5: warning: services.web.x-autoscale needs a metrics server, which the cluster"
    " does not have: the number of pods stays the smallest [no-metrics-server]",
    "pod-security-level": "compose.yaml:2:3: warning: services.web is refused by namespace 'shop', whose Pod Security"
    " level is 'restricted' [pod-security-level]",
    "policy-violation": "compose.yaml:2:3: error: services.web, by Deployment 'web', violates policy 'version' of"
    " 'team': Images have a version: 'busybox' has none [policy-violation]",
    "policy-advice": "compose.yaml:2:3: warning: services.web, by Deployment 'web', breaks policy 'limits' of 'team':"
    " Memory is limited: it has no limit [policy-advice]",
    "over-quota": "compose.yaml:2:3: warning: services.web sets no limits.memory, which quota 'team' requires of each"
    " pod [over-quota]",
    "limit-range": "compose.yaml:2:3: warning: services.web has a memory limit of 2Gi; limit range 'team' allows at"
    " most 1Gi [limit-range]",
    "default-limit": "compose.yaml:2:3: warning: services.web sets no limit, and gets one from a limit range of the"
    " namespace: memory 512Mi [default-limit]",
    "job-retry": "compose.yaml:3:28: warning: services.app: failed with exit status 3 in try 1 of 7, and tries again"
    " [job-retry]",
    "deploy-failed": "compose.yaml:3:28: error: services.app: crashes with exit status 4 (2 times) [deploy-failed]",
}

EXAMPLES: dict[str, Example] = {
    "no-compose-file": Example({}, shown=False),
    "unreadable-file": _compose(f"{_WEB}    env_file: web.env\n"),
    "multiple-compose-files": Example({"compose.yaml": _WEB, "docker-compose.yml": _WEB}, shown=False),
    "invalid-utf8": Example({"compose.yaml": b"services:\n  web:\n    image: nginx # caf\xe9\n"}, shown=False),
    "invalid-character": Example({"compose.yaml": f"{_WEB}    command: 'a\x07b'\n"}, shown=False),
    "invalid-yaml": _compose("services:\n  web:\n    image: nginx\n   restart: always\n"),
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
    "non-string-key": _compose("services:\n  1:\n    image: nginx\n"),
    "invalid-merge-key": _compose("services:\n  web:\n    <<: nginx\n    image: nginx\n"),
    "unknown-tag": _compose("services:\n  web:\n    image: !secret nginx\n"),
    "invalid-interpolation": _compose("services:\n  web:\n    image: nginx:${1}\n"),
    "required-variable": _compose("services:\n  web:\n    image: nginx:${TAG:?choose one}\n"),
    "unset-variable": _compose("services:\n  web:\n    image: nginx${SUFFIX}\n"),
    "invalid-env-file": _compose(f"{_WEB}    env_file: web.env\n", web__env='GREETING="hello\n'),
    "invalid-type": _compose(f"{_WEB}    ports: 80\n"),
    "invalid-value": _compose(f"{_WEB}    scale: two\n"),
    "missing-key": _compose(f"{_WEB}    ports:\n      - published: 8080\n"),
    "conflicting-keys": _compose(
        f"{_WEB}    healthcheck:\n      test: curl -f http://localhost\n      http: {{path: /, port: 80}}\n"
    ),
    "overridden-key": _compose(f"{_WEB}    scale: 2\n    deploy:\n      replicas: 3\n"),
    "no-image": _compose("services:\n  web:\n    restart: always\n"),
    "no-services": _compose("volumes:\n  data:\n"),
    "unsupported-key": _compose(f"{_WEB}    container_name: front\n"),
    "no-effect": _compose(f"{_WEB}    ports:\n      - 192.168.1.5:8080:80\n"),
    "redundant-key": _compose(f"{_WEB}    container_name: web\n    networks: [front]\nnetworks:\n  front:\n"),
    "ignored-key": _compose(f"{_WEB}    develop:\n      watch: []\n"),
    "unknown-key": _compose(f"{_WEB}    scael: 2\n"),
    "unused-volume": _compose(f"{_WEB}volumes:\n  data:\n"),
    "unused-config": _compose(f"{_FULL}configs:\n  site:\n    content: hello\n"),
    "unused-secret": _compose(f"{_FULL}secrets:\n  password:\n    file: ./password.txt\n"),
    "unreadable-mount": _compose(
        f"{_FULL}    user: '1000'\n    configs: [{{source: site, mode: 0400}}]\nconfigs: {{site: {{content: hello}}}}\n"
    ),
    "not-deployed": _compose(f"{_WEB}    build: .\n    volumes:\n      - .:/app\n"),
    "derived-image": Example(
        {"compose.yaml": f"{_WEB}    volumes:\n      - ./pictures.tar:/pictures.tar\n", "pictures.tar": 300_000 * b"x"}
    ),
    "name-normalized": _compose("services:\n  my_app:\n    image: nginx\n"),
    "invalid-name": _compose("services:\n  9lives:\n    image: nginx\n"),
    "name-conflict": _compose("services:\n  my-app:\n    image: nginx\n  my_app:\n    image: nginx\n"),
    "invalid-patch": _compose(
        f"{_FULL}    x-kubernetes:\n      patch:\n        Deployment:\n          metadata: {{name: site}}\n"
    ),
    "exposed-never-public": _compose(f"{_FULL}    x-expose: {{type: NodePort, ports: [5432]}}\n"),
    "undefined-service": _compose(f"{_WEB}    depends_on: [database]\n"),
    "low-memory-limit": _compose(f"{_WEB}    mem_limit: 512\n"),
    "text-as-test": _compose(f"{_WEB}    healthcheck:\n      test: CMD curl -f localhost\n"),
    "optional-service": _compose(
        f"{_WEB}    depends_on:\n      databse: {{required: false}}\n  database: {{image: postgres}}\n"
    ),
    "inactive-service": _compose(
        f"x-platform: {{full: true}}\n{_WEB}    depends_on: [db]\n  db:\n    image: postgres\n    profiles: [data]\n"
    ),
    "undefined-network": _compose(f"x-platform:\n  full: true\n{_WEB}    networks: [front]\n"),
    "undefined-volume": _compose(f"{_WEB}    volumes: [data:/data]\n"),
    "undefined-config": _compose(f"{_FULL}    configs: [site]\n"),
    "undefined-secret": _compose(f"{_FULL}    secrets: [password]\n"),
    "undefined-port": _compose(f'{_WEB}    ports: ["80"]\nendpoints:\n  - path: /\n    service: web\n    port: 8080\n'),
    "dependency-cycle": _compose(
        "services:\n  a:\n    image: nginx\n    depends_on: [b]\n  b:\n    image: nginx\n    depends_on: [a]\n"
    ),
    "extends-cycle": _compose(
        "x-platform: {full: true}\nservices:\n  a:\n    extends: b\n    image: nginx\n  b:\n    extends: a\n"
    ),
    "undefined-model": _compose(f"x-platform: {{full: true}}\n{_WEB}    models: [llm]\n"),
    "provided-service": _compose(f"{_FULL}    depends_on: [db]\n  db:\n    provider: {{type: awesomecloud}}\n"),
    "pod-conflict": _compose(
        "x-platform: {full: true}\nservices:\n  a:\n    image: nginx\n    network_mode: service:b\n"
        "  b:\n    image: nginx\n    network_mode: service:a\n"
    ),
    "include-cycle": _compose(f"include: [more.yaml]\n{_WEB}", more__yaml="include: [compose.yaml]\n"),
    "not-a-job": _compose(
        f"{_WEB}    depends_on:\n      db:\n        condition: service_completed_successfully\n"
        "  db:\n    image: postgres\n    restart: always\n"
    ),
    "kompose-label": _compose(f"{_WEB}    labels:\n      kompose.service.type: headless\n"),
    "swarm-template": _compose(f"{_WEB}    environment:\n      NODE_ID: '{{{{.Task.Slot}}}}'\n"),
    "windows-path": _compose(f"{_WEB}    volumes:\n      - C:\\shop\\data:/data\n"),
    "inferred-job": _compose(
        f"{_WEB}    depends_on:\n      migrate:\n        condition: service_completed_successfully\n"
        "  migrate:\n    image: app\n"
    ),
    "unsupported-update-policy": _compose(f"{_WEB}    labels:\n      dev.platform.com/update: on-delete\n"),
    "request-above-limit": _compose(f"{_WEB}    mem_limit: 64m\n    mem_reservation: 128m\n"),
    "non-numeric-user": _compose(f"{_WEB}    user: www-data\n"),
    "needs-cluster-setting": Example(
        {"compose.yaml": f"x-platform: {{full: true}}\n{_WEB}    sysctls:\n      net.core.somaxconn: 1024\n"}
    ),
    "pod-security-violation": Example({"compose.yaml": f"{_WEB}    user: root\n"}, pod_security="restricted"),
    "unknown-user": Example({"compose.yaml": _WEB}, pod_security="restricted"),
    "job-with-ports": _compose(f"{_WEB}    restart: 'no'\n    ports: ['8080:80']\n"),
    "on-failure-job": _compose(f"{_WEB}    restart: on-failure\n"),
    "no-traffic-diversion": _compose(f"{_WEB}    deploy:\n      endpoint_mode: dnsrr\n"),
    "duplicate-mount": _compose(
        f"{_WEB}    volumes:\n      - data:/data\n      - {{type: tmpfs, target: /data/.}}\nvolumes:\n  data:\n"
    ),
    "forbidden-path": _compose(f"{_WEB}    volumes:\n      - /var/run/docker.sock:/var/run/docker.sock\n"),
    "outside-project": _compose(f"{_WEB}    volumes:\n      - ../shared:/usr/share/nginx/html\n"),
    "host-data": _compose(f"{_WEB}    build: .\n    volumes:\n      - ./db:/var/lib/mysql\n"),
    "windows-line-ends": Example(
        {
            "compose.yaml": f"{_WEB}    entrypoint: /run.sh\n    volumes:\n      - ./run.sh:/run.sh\n",
            "run.sh": b"#!/bin/sh\r\nexec nginx\r\n",
        }
    ),
    "not-in-image": _compose(f"{_WEB}    build: ./app\n    volumes:\n      - ./nginx.conf:/etc/nginx/nginx.conf:ro\n"),
    "removed-mount": Example(
        {
            "compose.platform.yaml": "services:\n  web:\n    volumes:\n      - !reset /var/run/docker.sock\n",
            "compose.yaml": f"{_WEB}    volumes:\n      - /var/run/docker.sock:/var/run/docker.sock\n",
        }
    ),
    "missing-path": _compose(f"{_WEB}    volumes:\n      - ./pages:/usr/share/nginx/html\n"),
    "sensitive-port": _compose('services:\n  db:\n    image: postgres\n    ports: ["5432:5432"]\n'),
    "no-network-isolation": _compose(
        "services:\n  web:\n    image: nginx\n    networks: [front]\n  db:\n    image: postgres\n    networks: [back]\n"
    ),
    "loopback-port": _compose(f"{_WEB}    ports:\n      - 127.0.0.1:8080:80\n"),
    "non-http-port": _compose('services:\n  git:\n    image: gitea\n    ports: ["2022:22"]\n'),
    "no-domain": Example(
        {"compose.yaml": f'{_WEB}    ports: ["80"]\nendpoints:\n  - path: /\n    service: web\n    port: 80\n'},
        domain="",
    ),
    "port-without-url": Example({"compose.yaml": f'{_WEB}    ports: ["8080:80"]\n'}, domain=""),
    "hostname-truncated": _compose(
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
        request = Request(files=example.named, folder=folder, domain=example.domain, pod_security=example.pod_security)
        try:
            loaded = load(request)
        except ComposeplatError as error:
            return [("no-compose-file", f"error: {error}\n  hint: {error.hint}")]
        make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
        check_image_users(loaded.project, loaded.settings, loaded.origins, loaded.report, lambda _: {})
        return [(d.code, _line(d).replace(str(folder), "/home/ann/demo")) for d in loaded.report.sorted()]


def _line(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    line = f"{span.source.name}:{span.line}:{span.column}: {diagnostic.severity}: {diagnostic.message}"
    hint = f"\n  hint: {diagnostic.hint}" if diagnostic.hint else ""
    return f"{line} [{diagnostic.code}]{hint}"


# the pages ------------------------------------------------------------------------------------------------------------


_EFFECTS = {Effect.NONE: "-", Effect.CHANGED: "changed", Effect.LOST: "lost", Effect.CANNOT_RUN: "can't run"}


def _codes() -> Iterator[str]:
    yield "| Code | Severity | Service | Meaning |"
    yield "|---|---|---|---|"
    for name, code in CODES.items():
        effect = Effect.CANNOT_RUN if code.severity is Severity.ERROR else code.effect
        shown = "[by key](keys.md)" if name in BY_KEY else _EFFECTS[effect]
        yield f"| [`{name}`](#{name}) | {code.severity} | {shown} | {_cell(code.meaning)} |"
    for name, code in CODES.items():
        yield f"\n## {name}\n\n**{str(code.severity).capitalize()}.** {code.meaning}\n{code.fix}\n"
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
_HANDLING = {
    Handling.SUPPORTED: "used",
    Handling.EXTENSION: "used; only here",
    Handling.WARNED: "warned, no effect",
    Handling.DEEP: "warned, and each of its fields",
    Handling.IGNORED: "ignored",
    Handling.UNREAD: "no effect, as its block",
}


def _keys() -> Iterator[str]:
    sections: dict[str, list[Row]] = {}
    for row in ROWS:
        sections.setdefault(row.section, []).append(row)
    first = True
    for section, rows in sections.items():
        yield ("" if first else "\n") + f"## {_TITLES.get(section) or f'`{section}`'}\n"
        first = False
        yield "| Key | Handling | Full mode | Service |"
        yield "|---|---|---|---|"
        for row in sorted(rows, key=lambda row: (not row.handling.is_used, row.key)):
            note = f": {row.why}" if row.why else ""
            full = _HANDLING[row.full] if row.full else "-"
            yield f"| `{row.key}` | {_HANDLING[row.handling]}{_cell(note)} | {full} | {_EFFECTS[row.effect]} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# the commands ---------------------------------------------------------------------------------------------------------


@functools.cache
def commands() -> dict[str, Any]:
    """Every command that is listed in a help, by its whole name, in the order of the listing."""
    whole: Any = typer.main.get_command(app)
    found = {"platform": whole}
    for name in (name for names in SECTIONS.values() for name in names):
        command = whole.commands[name]
        found[f"platform {name}"] = command
        found |= {f"platform {name} {inner}": one for inner, one in getattr(command, "commands", {}).items()}
    return found


def hidden_commands() -> dict[str, Any]:
    """Other names of commands, which no help lists, by their whole names."""
    whole: Any = typer.main.get_command(app)
    return {f"platform {name}": command for name, command in whole.commands.items() if command.hidden}


def _context(path: str, command: Any) -> Any:
    """What a command knows while its line is read; the names of the option for help come from above."""
    above = path.rpartition(" ")[0]
    parent = _context(above, commands()[above]) if above else None
    return command.make_context(_last(path), [], parent=parent, resilient_parsing=True)


def _parameters(path: str, command: Any, kind: str) -> list[Any]:
    return [one for one in command.get_params(_context(path, command)) if one.param_type_name == kind]


def _reference() -> Iterator[str]:
    for number, (path, command) in enumerate(commands().items()):
        yield ("\n" if number else "") + f"## {path}\n\n{command.help}\n"
        usage = " ".join((path, *command.collect_usage_pieces(_context(path, command))))
        yield f"```text\n{usage}\n```\n"
        yield from _inner_commands(path, command)
        yield from _rows("Argument", path, command)
        yield from _rows("Option", path, command)
        guide = load_guides()[_short(path)]
        lines = "\n".join(line for what, words in guide.examples.items() for line in (f"# {what}", words))
        yield f"```text\n{lines}\n```\n"
        described = "" if hasattr(command, "commands") else f"[commands.md](commands.md#{path.replace(' ', '-')})"
        page = "" if guide.page == "commands.md" else f"[{guide.page}]({guide.page})"
        more = " and ".join(one for one in (described, page) if one)
        yield f"More: {more}; [exit statuses](commands.md#exit-statuses)."


def _short(path: str) -> str:
    return path.removeprefix("platform ")


def _inner_commands(path: str, command: Any) -> Iterator[str]:
    if not hasattr(command, "commands"):
        return
    yield "| Command | Does |\n|---|---|"
    for name in (one for one in commands() if one.rpartition(" ")[0] == path):
        yield f"| [`{name}`](#{name.replace(' ', '-')}) | {_cell(commands()[name].get_short_help_str(500))} |"
    yield ""


def _rows(title: str, path: str, command: Any) -> Iterator[str]:
    parameters = _parameters(path, command, title.lower())
    if not parameters:
        return
    yield f"| {title} | Meaning |\n|---|---|"
    context = _context(path, command)
    for one in parameters:
        names = [one.make_metavar(context)] if title == "Argument" else [*_spellings(one, context)]
        yield f"| {', '.join(f'`{_cell(name)}`' for name in names)} | {_cell(_meaning(one))} |"
    yield ""


def _spellings(option: Any, context: Any) -> Iterator[str]:
    value = "" if option.is_flag else f" {option.make_metavar(context).strip('<>')}"
    for name in sorted((*option.opts, *option.secondary_opts), key=lambda name: name.startswith("--")):
        yield f"{name}{value}"


def _meaning(parameter: Any) -> str:
    """The help, and what the parser holds besides."""
    words = parameter.help or ""
    if parameter.param_type_name == "option" and not parameter.is_flag and parameter.default and parameter.show_default:
        words += f" Default: `{parameter.default:g}`." if _is_number(parameter) else f" Default: `{parameter.default}`."
    if (least := getattr(parameter.type, "min", None)) is not None:
        words += f" At least {least}."
    if getattr(parameter, "multiple", False) and "repeat" not in words:
        words += " May repeat."
    return words + (" Required." if parameter.required else "")


def _is_number(parameter: Any) -> bool:
    return isinstance(parameter.default, int | float)


def grammar() -> str:
    """What may stand where on a command line, for shell completion."""
    found = commands()
    data = {
        path: {
            "help": command.get_short_help_str(500),
            "commands": [_last(one) for one in found if one.rpartition(" ")[0] == path],
            "options_first": not _context(path, command).allow_interspersed_args,
            "arguments": [
                {"value": _values_of(one), "repeats": one.nargs == -1} for one in _parameters(path, command, "argument")
            ],
            "options": [
                {
                    "names": sorted((*one.opts, *one.secondary_opts)),  # those of help come in any order
                    "value": None if one.is_flag else _values_of(one),
                    "repeats": one.multiple,
                    "help": one.help,
                }
                for one in _parameters(path, command, "option")
            ],
        }
        for path, command in (found | hidden_commands()).items()
    }
    return json.dumps(data, indent=1) + "\n"


def help_pages() -> str:
    """The help of each command, as the calls that write it."""
    found = commands() | hidden_commands()
    return json.dumps({path: record_page(one, _context(path, one)) for path, one in found.items()}, indent=1) + "\n"


def _last(path: str) -> str:
    return path.rpartition(" ")[2]


def _values_of(parameter: Any) -> Any:
    """What a value is: a list of choices, the kind of what it names, or ``text`` for anything else."""
    choices = getattr(parameter.type, "choices", None)
    if choices:
        return [str(one) for one in choices]
    if "SERVICE" in (parameter.metavar or ""):
        return "services"
    if (parameter.metavar or "") in ("SOURCE", "TARGET"):
        return "places"
    if "--replace-volume" in parameter.opts:
        return "volumes"
    for option, kind in (("--context", "contexts"), ("--profile", "profiles")):
        if option in parameter.opts:
            return kind
    if re.fullmatch(r"[a-z]+(\|[a-z]+)+", parameter.metavar or ""):
        return parameter.metavar.split("|")
    return {"FILE": "files", "DIR": "folders", "PART": "parts"}.get(parameter.metavar or "", "text")


def _kompose() -> Iterator[str]:
    yield "| Label | Instead |"
    yield "|---|---|"
    for label, text in KOMPOSE_LABELS.items():
        yield f"| `{label}` | {_cell(text)} |"


def _compose_commands() -> Iterator[str]:
    yield "| `docker compose` | Type | It |"
    yield "|---|---|---|"
    for command, (instead, text) in INSTEAD.items():
        yield f"| `{command}` | `{instead}` | {_cell(text)} |"


_PARTS = {"codes": _codes, "compose": _compose_commands, "keys": _keys, "kompose": _kompose, "reference": _reference}


def generated(text: str) -> str:
    """Give a page with what stands between its markers made anew."""
    return _GENERATED.sub(lambda m: m[1] + "\n" + "\n".join(_PARTS[m[2]]()) + "\n\n" + m[3], text)


def out_of_date() -> dict[Path, str]:
    """The pages that are not as they would be generated, with what they should be."""
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    made = {path: generated(text) for path, text in pages.items()} | {
        GRAMMAR: grammar(),
        HELP_PAGES: help_pages(),
        SCHEMA: make_schema(__version__),
    }
    return {path: text for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text}


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
