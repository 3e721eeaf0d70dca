"""Whole definitions made of the keys that exist: read to an end, rendered the same each time, and printed resolved."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from composeplat.compose.load import Loaded, Request, load
from composeplat.compose.resolved import resolved_definition
from composeplat.plan import make_plan
from composeplat.render.manifests import render_yaml, to_yaml
from tests.fuzz.target import read_to_the_end
from tests.fuzz.trees import definitions

randoms = st.randoms(use_true_random=False)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """One folder for all examples, each of which writes its own files."""
    made = Path(tempfile.mkdtemp())
    (made / "conf").mkdir()
    (made / "conf" / "app.conf").write_text("a = $b\n")
    yield made
    shutil.rmtree(made)


@given(random=randoms)
def test_any_definition_is_read(folder: Path, random: Random) -> None:
    """Nothing is raised, and two readings are the same."""
    read_to_the_end(definitions(random), folder)


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


args = st.text(st.sampled_from("ab$(){}:-=/.,'\"\\ é日0189#"), max_size=12)
pairs = st.dictionaries(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,6}\Z"), args, max_size=3)
scalars = one_of(
    "1.50", "+5", "1e3", "0x1f", "True", "yes", "~", "null", "007", "-0", "0.00001", "1_000", "12:30:45", "a b"
)

#: Services without a mistake in them, texts as they would be in a file.
sound_services = st.fixed_dictionaries(
    {"image": one_of("nginx", "nginx:1.27", "registry.example.com/a/b:c")},
    optional={
        "command": st.one_of(st.lists(args, min_size=1, max_size=3), one_of("a 'b c'", "echo hi")),
        "entrypoint": st.lists(args, min_size=1, max_size=3),
        "environment": st.one_of(pairs, pairs.map(lambda found: [f"{name}={value}" for name, value in found.items()])),
        "env_file": one_of(
            "vars.env", ["vars.env"], [{"path": "vars.env", "required": True}], [{"path": "none", "required": False}]
        ),
        "labels": pairs,
        "annotations": pairs,
        "ports": one_of(
            [80],
            ["8080:80"],
            ["8080-8082:80-82/udp"],
            [{"target": 80, "published": "8080", "name": "web"}],
            ["127.0.0.1:9000:9"],
        ),
        "expose": one_of([81], ["82-84/tcp"]),
        "volumes": one_of(
            ["data:/data"],
            ["/cache"],
            ["./conf:/conf:ro"],
            [{"type": "tmpfs", "target": "/t", "tmpfs": {"size": "64m"}}],
            [
                {"type": "npipe", "source": "a", "target": "/b"},
                "data:/d",
                {"type": "bind", "source": "./conf", "target": "/c"},
            ],
            [{"type": "volume", "source": "data", "target": "/data", "volume": {"subpath": "a/b"}}, "/a/b", "/a-b"],
        ),
        "healthcheck": one_of(
            {"test": "a $$ b"},
            {"test": ["CMD", "a", "$$(b)"], "interval": "1m30s"},
            {"http": {"path": "/", "port": 80}},
            {"disable": True},
        ),
        "restart": one_of("always", "no", "on-failure:3", "unless-stopped"),
        "scale": one_of(0, 1, 3),
        "deploy": one_of(
            {"replicas": 2},
            {"resources": {"limits": {"cpus": "0.5", "memory": "512M"}}},
            {"endpoint_mode": "dnsrr"},
            {"labels": {"a": "b"}},
        ),
        "resources": one_of({"requests": {"cpu": "250m", "memory": "0.25Gi"}, "limits": {"cpu": 2}}),
        "mem_limit": one_of("1g", 1073741824),
        "cpus": one_of(0.5, "1.25", 2),
        "stop_grace_period": one_of("1m", 5, "90s"),
        "user": one_of("1000:1000", 1000, "root"),
        "working_dir": args.map("/{}".format),
        "cap_add": one_of(["ALL"], ["NET_ADMIN", "CAP_SYS_TIME"]),
        "x-node-selector": one_of({"disk": "ssd"}),
        "public": st.booleans(),
        "container_name": args,
    },
)
built_services = st.fixed_dictionaries(
    {
        "build": one_of(
            ".",
            {"context": "./app", "args": {"A": "$$B", "C": "d"}, "target": "x"},
            {"context": "https://example.com/a.git#b"},
            {"args": ["A=b"], "dockerfile": "D"},
        )
    },
    optional={"image": one_of("a/b:c"), "volumes": one_of(["./conf:/conf"], ["data:/d", "./a:/b"]), "labels": pairs},
)
sound_definitions = st.fixed_dictionaries(
    {
        "services": st.fixed_dictionaries(
            {"web": sound_services}, optional={"db": sound_services, "my_app": built_services}
        ),
        "volumes": one_of(
            {"data": None},
            {"data": {"driver_opts": {"size": "2Gi"}}},
            {"data": {"size": "1g", "labels": {"a": "1.50"}}},
        ),
    },
    optional={"name": one_of("demo", "My Shop"), "x-any": args},
)


def rendered(folder: Path, text: str) -> tuple[Loaded, str]:
    """Load and render a definition that should have no errors."""
    (folder / "compose.yaml").write_text(text)
    (folder / "vars.env").write_text("FROM_FILE=a$$b\nQUOTED='c d'\n")
    (folder / "compose.override.yaml").unlink(missing_ok=True)
    (folder / ".env").unlink(missing_ok=True)
    loaded = load(Request(folder=folder, domain="example.com"))
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    return loaded, render_yaml(plan)


def assert_comes_back(folder: Path, text: str) -> None:
    loaded, first = rendered(folder, text)
    if loaded.report.errors:
        return
    resolved = to_yaml(resolved_definition(loaded))
    again, second = rendered(folder, resolved)

    assert not again.report.errors, again.report.sorted()
    assert first == second
    assert resolved == to_yaml(resolved_definition(again))


@given(definition=sound_definitions)
def test_the_resolved_definition_gives_the_same(folder: Path, definition: dict[str, Any]) -> None:
    """What ``platform config`` prints is rendered as the definition was, and printed the same again."""
    assert_comes_back(folder, to_yaml(escaped(definition)))


def escaped(tree: Any) -> Any:
    """Double dollar signs, as the texts are meant as they stand; keys are never substituted."""
    match tree:
        case str():
            return tree.replace("$", "$$")
        case dict():
            return {key: escaped(value) for key, value in tree.items()}
        case list():
            return [escaped(item) for item in tree]
        case _:
            return tree


@given(random=randoms)
def test_the_resolved_definition_of_any_gives_the_same(folder: Path, random: Random) -> None:
    """The same for definitions made of any keys, where they happen to be sound."""
    (folder / "more").unlink(missing_ok=True)
    assert_comes_back(folder, definitions(random).split(b"\n%%%%\n")[0].decode())


@given(label=scalars, style=one_of("{}", "'{}'", '"{}"', "[{}]"))
def test_scalars_stay_as_they_are_written(folder: Path, label: str, style: str) -> None:
    """A scalar that some reader takes for a number or boolean is the same text after two readings."""
    written = style.format(label)
    key = f"command: {written}" if style == "[{}]" else f"labels: {{a: {written}}}"
    assert_comes_back(folder, f"services: {{web: {{image: nginx, {key}}}}}\n")


def test_the_sound_definitions_are_sound(folder: Path) -> None:
    """Most definitions made here have no error: otherwise the round trip would show nothing."""
    sound = 0
    seen = 0

    @given(definition=sound_definitions)
    def count(definition: dict[str, Any]) -> None:
        nonlocal sound, seen
        loaded, _ = rendered(folder, to_yaml(escaped(definition)))
        seen += 1
        sound += not loaded.report.errors

    count()

    assert sound > seen / 2
