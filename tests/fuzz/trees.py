"""Make definitions at random out of the keys that exist: they get further into the reader than random bytes do."""

from __future__ import annotations

from random import Random
from typing import Any

from composeplat.compose.keys import SECTIONS
from composeplat.render.manifests import to_yaml
from tests.fuzz.target import BORDER

SCALARS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 80, 65536, 2**40, 0.5, "", " ", "a", "web", "db", "data", "nginx", "no", "always",
    "on-failure:3", "80:80", "8080-8090:80-90/udp", "[::1]:80:80", "data:/data", "./a:/a:ro", "/a", "/", "../..:/a",
    "~/x:/y", "512m", "1.5Gi", "250m", "30s", "1h30m", "vip", "dnsrr", "CMD", "CMD-SHELL", "NONE", "A=b", "A=", "=",
    "$SET", "${SET}", "${NUMBER}", "${EMPTY:-80}", "${NONE:?must}", "${NONE", "$$SET", "$(id)", "${A:-${B:-c}}",
    "service_healthy", "service_completed_successfully", "recreate", "on-delete", "rolling", "root", "1000:1000",
    "more", "compose.yaml", ".env",
    "tcp", "bind", "tmpfs", "volume", "npipe", "raw", "/a/b/../c", "é", "日本", "\x1b[31m",
    "\0", "a\nb\n", "x" * 300, "dev.platform.com/update", "C:\\a:/b", "ReadWriteMany", "https://example.com/a.git#b",
)  # fmt: skip
NAMES = ("web", "db", "data", "My_Web", "a", "dev.platform.com/update", "x-a", "size", "rules", "${SET}", "", "1", "é")
TAGS = ("", "", "", "", "", "", "!reset ", "!override ", "&a ", "*a ", "!!str ", "<<: ")


def definitions(random: Random) -> bytes:
    """Make a definition, sometimes with one laid over it, an env file and a file to be named."""
    parts = [definition(random)]
    if random.random() < 0.3:
        parts.append(definition(random))
        if random.random() < 0.5:
            parts.append(b"SET=b\nA=$SET\nB='c'\n")
            parts.append(definition(random) if random.random() < 0.5 else b"A=1\nB\n")
    return BORDER.join(parts)


def definition(random: Random) -> bytes:
    made = section(random, "")
    services = made.setdefault("services", {})
    if isinstance(services, dict) and random.random() < 0.9:
        web = services.setdefault("web", {})
        if isinstance(web, dict):
            web.setdefault("image", "nginx")
    text = to_yaml(made)
    if random.random() < 0.2:
        args = text.split(": ")
        args[random.randrange(len(args))] += random.choice(TAGS)
        text = ": ".join(args)
    return text.encode("utf-8", "replace")


def section(random: Random, pattern: str) -> dict[str, Any]:
    """Make a mapping of some keys of a section."""
    keys = list(SECTIONS[pattern])
    chosen = random.sample(keys, min(len(keys), random.choice((1, 1, 2, 3, 5))))
    return {key: value(random, f"{pattern}.{key}".lstrip(".")) for key in chosen}


def value(random: Random, path: str) -> Any:
    """Make a value that fits its key, more often than not."""
    if path in SECTIONS and random.random() < 0.8:
        return section(random, path)
    entry = f"{path}.*"
    if entry in SECTIONS and random.random() < 0.8:
        entries = [
            section(random, entry) if random.random() < 0.7 else scalar(random)
            for _ in range(random.choice((1, 1, 2, 3)))
        ]
        if path in ("services", "volumes", "services.*.depends_on") or random.random() < 0.2:
            return {random.choice(NAMES): item for item in entries}
        return entries
    return anything(random)


def anything(random: Random, depth: int = 0) -> Any:
    match random.randrange(10 if depth < 3 else 7):
        case 7:
            return [anything(random, depth + 1) for _ in range(random.randrange(3))]
        case 8:
            return {random.choice(NAMES): anything(random, depth + 1) for _ in range(random.randrange(3))}
        case 9:
            return [scalar(random) for _ in range(random.randrange(4))]
        case _:
            return scalar(random)


def scalar(random: Random) -> Any:
    return random.choice(SCALARS)
