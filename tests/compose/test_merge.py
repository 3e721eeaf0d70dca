"""One definition over another: places kept, tags carried out; the rules of keys are held by Compose's own vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from composeplat.compose.merge import apply_tags, merge
from composeplat.compose.nodes import Mapping, Node, to_plain
from composeplat.compose.yaml_reader import read_nodes
from composeplat.diagnostics import Report, Source
from tests.conftest import Project, lines


def node(text: str, name: str) -> Node:
    report = Report()
    (made,) = read_nodes(Source(name, Path(), text, order=int(name[0])), report)
    assert lines(report.sorted()) == []
    return made


def merged(base: str, *overs: str) -> tuple[Any, list[str]]:
    """Lay texts over one another and give the whole, with the messages."""
    report = Report()
    whole = node(base, "1.yaml")
    for number, over in enumerate(overs, start=2):
        whole = merge(whole, node(over, f"{number}.yaml"), report)
    return to_plain(apply_tags(whole)), lines(report.sorted())


def service(base: str, *overs: str) -> Any:
    """The same for one service's keys, written in flow style."""
    whole, messages = merged(*(f"services: {{web: {{{text}}}}}" for text in (base, *overs)))
    assert messages == []
    return whole["services"].get("web")


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        pytest.param("image: a", "image: b", {"image": "b"}, id="text-replaced"),
        pytest.param("image: a", "scale: 2", {"image": "a", "scale": 2}, id="keys-joined"),
        pytest.param("image: a", "image: ", {"image": "a"}, id="nothing-changes-nothing"),
        pytest.param("image: ", "image: a", {"image": "a"}, id="nothing-below"),
        pytest.param("command: [a, b]", "command: [c]", {"command": ["c"]}, id="command-replaced"),
        pytest.param("command: a", "command: [c]", {"command": ["c"]}, id="command-of-another-form"),
        pytest.param("entrypoint: [a]", "entrypoint: [b]", {"entrypoint": ["b"]}, id="entrypoint-replaced"),
        pytest.param(
            "command: a, entrypoint: [b]",
            "command: , entrypoint: ~",
            {"command": None, "entrypoint": None},
            id="those-of-the-image-again",
        ),
        pytest.param(
            "healthcheck: {test: [CMD, a], retries: 2}",
            "healthcheck: {test: [CMD, b]}",
            {"healthcheck": {"test": ["CMD", "b"], "retries": 2}},
            id="test-replaced",
        ),
        pytest.param(
            "environment: {A: 1, B: 2}",
            "environment: [B=3, C=4]",
            {"environment": ["A=1", "B=3", "C=4"]},
            id="environment-by-name",
        ),
        pytest.param(
            "environment: [A=1, A=2, B=2]",
            "environment: [A=1, B=1, B=2]",
            {"environment": ["A=1", "B=2"]},
            id="the-last-of-a-name-in-each",
        ),
        pytest.param("labels: {a: 1}", "labels: {a: 2}", {"labels": ["a=2"]}, id="labels-by-name"),
        pytest.param("env_file: a", "env_file: [b, a]", {"env_file": ["a", "b"]}, id="env-files-once"),
        pytest.param("ports: ['80']", "ports: ['81']", {"ports": ["80", "81"]}, id="ports-appended"),
        pytest.param(
            "ports: ['80:80']",
            "ports: ['80:80/tcp']",
            {"ports": ["80:80/tcp"]},
            id="ports-once",
        ),
        pytest.param(
            "volumes: ['one:/x', 'two:/y']",
            "volumes: ['three:/x/']",
            {"volumes": ["three:/x/", "two:/y"]},
            id="volumes-by-target",
        ),
        pytest.param(
            "volumes: ['one:/x']",
            "volumes: [{type: volume, source: b, target: /x}]",
            {"volumes": [{"type": "volume", "source": "b", "target": "/x"}]},
            id="volumes-of-another-form",
        ),
        pytest.param(
            "volumes: ['one:/x']",
            "volumes: [{type: volume, source: two, target: /x/.}]",
            {"volumes": [{"type": "volume", "source": "two", "target": "/x/."}]},
            id="volumes-whose-targets-are-written-differently",
        ),
        pytest.param(
            "tmpfs: ['/t:size=64m', /u]",
            "tmpfs: ['/t:size=128m']",
            {"tmpfs": ["/t:size=128m", "/u"]},
            id="tmpfs-by-path",
        ),
        pytest.param("tmpfs: '/t:size=64m'", "tmpfs: /t", {"tmpfs": ["/t"]}, id="tmpfs-of-another-form"),
        pytest.param("cap_add: [A]", "cap_add: [A, B]", {"cap_add": ["A", "B"]}, id="capabilities-once"),
        pytest.param(
            "build: .",
            "build: {target: t}",
            {"build": {"context": ".", "target": "t"}},
            id="build-of-another-form",
        ),
        pytest.param(
            "depends_on: [a]",
            "depends_on: {b: {condition: service_healthy}}",
            {"depends_on": {"a": {"condition": "service_started"}, "b": {"condition": "service_healthy"}}},
            id="dependencies-of-another-form",
        ),
        pytest.param(
            "deploy: {replicas: 1, endpoint_mode: vip}",
            "deploy: {replicas: 2}",
            {"deploy": {"replicas": 2, "endpoint_mode": "vip"}},
            id="mappings-joined",
        ),
        pytest.param(
            "devices: ['/dev/a:/dev/x', /dev/y]",
            "devices: [{source: /dev/b, target: /dev/x}, '/dev/c:/dev/y']",
            {"devices": [{"source": "/dev/b", "target": "/dev/x"}, "/dev/c:/dev/y"]},
            id="devices-of-another-form",
        ),
        pytest.param(
            "gpus: all", "gpus: [{count: 2}]", {"gpus": [{"count": "all"}, {"count": 2}]}, id="gpus-of-another-form"
        ),
        pytest.param("gpus: all", "gpus: all", {"gpus": "all"}, id="gpus-of-one-form"),
        pytest.param("gpus: all", "gpus: ", {"gpus": "all"}, id="gpus-of-nothing"),
        pytest.param(
            "build: {ulimits: {nofile: 5, nproc: {soft: 1, hard: 2}}}",
            "build: {ulimits: {nofile: {soft: 3, hard: 4}, nproc: 6}}",
            {"build": {"ulimits": {"nofile": {"soft": 3, "hard": 4}, "nproc": 6}}},
            id="limits-of-a-build-of-another-form",
        ),
        pytest.param(
            "build: {ssh: [default, a=./x]}",
            "build: {ssh: {a: ./y, b: ./z}}",
            {"build": {"ssh": ["default", "a=./y", "b=./z"]}},
            id="agents-of-another-form",
        ),
        pytest.param(
            "build: {ssh: {default: , a: ./x}}",
            "build: {ssh: [a=./y]}",
            {"build": {"ssh": ["a=./y", "default"]}},
            id="agents-of-a-mapping",
        ),
        pytest.param(
            "build: {ssh: [a=./x, b=./x]}",
            "build: {ssh: [a=./y]}",
            {"build": {"ssh": ["a=./y", "b=./x"]}},
            id="agents-by-name",
        ),
        pytest.param(
            "build: {no_cache_filter: a}",
            "build: {no_cache_filter: [b]}",
            {"build": {"no_cache_filter": ["b"]}},
            id="stages-of-another-form",
        ),
        pytest.param(
            "provider: {type: x, options: {a: 1, b: 1}}",
            "provider: {options: {a: [2, 3], b: 2}}",
            {"provider": {"type": "x", "options": {"a": [2, 3], "b": 2}}},
            id="options-of-a-provider-of-another-form",
        ),
        pytest.param("x-list: [1]", "x-list: [2]", {"x-list": [1, 2]}, id="any-list-appended"),
    ],
)
def test_rule(base: str, over: str, expected: dict[str, Any]) -> None:
    """Each key is replaced, joined or appended as Compose does."""
    assert expected == service(base, over)


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        pytest.param("ports: ['80'], image: a", "ports: !reset []", {"image": "a"}, id="reset-list"),
        pytest.param("image: a, scale: 2", "scale: !reset null", {"image": "a"}, id="reset-text"),
        pytest.param("image: a", "ports: !reset []", {"image": "a"}, id="reset-of-nothing"),
        pytest.param("ports: ['80']", "ports: !override ['81']", {"ports": ["81"]}, id="override-list"),
        pytest.param(
            "environment: {A: 1}", "environment: !override {B: 2}", {"environment": {"B": 2}}, id="override-mapping"
        ),
        pytest.param(
            "deploy: {replicas: 1, endpoint_mode: vip}",
            "deploy: {replicas: !reset null}",
            {"deploy": {"endpoint_mode": "vip"}},
            id="reset-inside",
        ),
        pytest.param(
            "environment: {A: 1, B: 2}, labels: {a: b, c: d}",
            "environment: {A: !reset null}, labels: {a: !reset gone}",
            {"environment": ["B=2"], "labels": ["c=d"]},
            id="reset-of-an-entry",
        ),
        pytest.param(
            "environment: [A=1, B=2], build: {args: {A: 1}}",
            "environment: {A: !reset null}, build: {args: {A: !reset null}}",
            {"environment": ["B=2"], "build": {"args": []}},
            id="reset-of-an-item",
        ),
        pytest.param(
            "sysctls: {a: 1, b: 2}", "sysctls: {a: !reset null}", {"sysctls": ["b=2"]}, id="reset-of-a-sysctl"
        ),
        pytest.param(
            "extra_hosts: ['a:10.0.0.1', 'a=10.0.0.2', 'ab:10.0.0.3']",
            "extra_hosts: {a: !reset [], c: [10.0.0.4]}",
            {"extra_hosts": ["ab:10.0.0.3", "c=10.0.0.4"]},
            id="reset-of-a-host",
        ),
        pytest.param(
            "depends_on: [a, b]",
            "depends_on: [!reset a]",
            {"depends_on": {"b": {"condition": "service_started"}}},
            id="reset-of-a-dependency",
        ),
    ],
)
def test_tags(base: str, over: str, expected: dict[str, Any]) -> None:
    """``!reset`` takes a key away, ``!override`` replaces it as a whole."""
    assert expected == service(base, over)


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        pytest.param("labels: [a=1]", "labels: {a: 2}", {"labels": ["a=2"]}, id="labels"),
        pytest.param("external: true", "external: {name: x}", {"external": True, "name": "x"}, id="name-added"),
        pytest.param("external: {name: x}", "external: true", {"external": True, "name": "x"}, id="name-kept"),
        pytest.param("external: {name: x}", "external: {name: y}", {"external": True, "name": "y"}, id="name-replaced"),
        pytest.param("external: {name: x}", "external: false", {"external": False, "name": "x"}, id="not-external"),
        pytest.param("external: {name: x}", "name: y", {"external": True, "name": "y"}, id="name-of-its-own"),
    ],
)
@pytest.mark.parametrize("section", ["networks", "volumes", "secrets", "configs"])
def test_objects_of_another_form(section: str, base: str, over: str, expected: dict[str, Any]) -> None:
    """Both forms of ``labels`` and ``external`` are merged, as Compose does."""
    assert merged(f"{section}: {{a: {{{base}}}}}", f"{section}: {{a: {{{over}}}}}") == ({section: {"a": expected}}, [])


def test_agents_of_two_folders(project: Project) -> None:
    """A key of a build is relative to the folder of its file."""
    files = {
        "compose.yaml": "include: [part/compose.yaml]\nservices: {web: {build: {ssh: {b: ./k}}}}",
        "part/compose.yaml": "services: {web: {build: {context: ., ssh: [a=./k]}}}",
    }
    folder = project(files)

    build = folder.read().loaded.project.services["web"].build

    assert build is not None
    assert build.ssh == (f"a={folder.path}/part/k", f"b={folder.path}/k")


def test_reset_of_a_service() -> None:
    """A whole service can be taken away."""
    whole, _ = merged("services: {a: {image: x}, b: {image: y}}", "services: {b: !reset null}")

    assert whole == {"services": {"a": {"image": "x"}}}


def test_a_third_file_sets_what_a_second_has_reset() -> None:
    """What is reset may be set again by a later file."""
    assert service("ports: ['80']", "ports: !reset []", "ports: ['81']") == {"ports": ["81"]}
    once = service("environment: {A: 1}", "environment: {A: !reset null}", "environment: {A: 3}")
    assert once == {"environment": ["A=3"]}


@pytest.mark.parametrize(
    ("reset", "later", "expected"),
    [
        pytest.param("deploy: !reset {}", "deploy: {replicas: 2}", {"deploy": {"replicas": 2}}, id="mapping"),
        pytest.param("deploy: !reset {scale: 1}", "deploy: {replicas: 2}", {"deploy": {"replicas": 2}}, id="value"),
        pytest.param("deploy: !reset null", "deploy: {replicas: 2}", {"deploy": {"replicas": 2}}, id="null"),
        pytest.param("ports: !reset ['80']", "ports: ['81']", {"ports": ["81"]}, id="list"),
        pytest.param("environment: !reset {B: 2}", "environment: [A=1]", {"environment": ["A=1"]}, id="variables"),
        pytest.param("depends_on: !reset [a]", "depends_on: {b: }", {"depends_on": {"b": None}}, id="dependencies"),
        pytest.param("deploy: !reset {a: 1}", "deploy: ", {}, id="nothing"),
    ],
)
def test_a_third_file_has_nothing_of_what_a_second_has_reset(reset: str, later: str, expected: dict[str, Any]) -> None:
    """What a later file sets is there, and nothing of the value that has the tag."""
    base = "deploy: {endpoint_mode: vip}, ports: ['79'], environment: {C: 3}, depends_on: [c], image: x"
    keys = base.split(", ")
    others = ", ".join(key for key in keys if key.partition(":")[0] != reset.partition(":")[0])

    found = service(base, reset, later)

    assert found == {**service(others), **expected}


def test_reset_beside_a_merge_key() -> None:
    """A reset removes what earlier files have, and the anchor's value takes its place."""
    base = "services: {web: {image: a, ports: ['80'], command: a}}"
    over = """
x-web: &web {ports: ['81'], command: b}
services: {web: {<<: *web, ports: !reset [], command: !reset null, image: c}}
"""
    whole, messages = merged(base, over)

    assert messages == []
    assert whole["services"]["web"] == {"image": "c", "ports": ["81"], "command": "b"}


def test_reset_in_one_file() -> None:
    """A reset in the only file leaves the key out."""
    assert merged("a: 1\nb: !reset 2") == ({"a": 1}, [])


def test_equal_entries_in_one_file() -> None:
    """In one file, too, the later of two entries of one name holds."""
    assert service("environment: [A=1, B=2, A=3]") == {"environment": ["A=3", "B=2"]}


def test_kinds_that_do_not_fit() -> None:
    """A list over a text is an error at the list, and the first file's value holds."""
    whole, messages = merged("services: {web: {image: a, ports: ['80']}}", "services: {web: {image: [b], ports: x}}")

    assert whole == {"services": {"web": {"image": "a", "ports": ["80"]}}}
    assert messages == [
        f"2.yaml:1:{column}: error: services.web.{key} must be {want}, as in the file it overrides, not {found}"
        " [invalid-type]"
        for column, key, want, found in (
            (25, "image", "a single value", "a list"),
            (37, "ports", "a list", "the text 'x'"),
        )
    ]


def test_a_list_as_a_value(project: Project) -> None:
    """Only a host has several addresses: elsewhere a list as a value stays one, and is an error as in one file."""
    files = {
        "compose.yaml": "services: {web: {image: x, labels: {a: [y, z]}, extra_hosts: {h: [10.0.0.1, 10.0.0.2]}}}",
        "compose.override.yaml": "services: {web: {labels: {b: c}, extra_hosts: {g: [10.0.0.3]}}}",
    }

    assert project(files).read(full=True).messages == [
        "compose.yaml:1:40: error: services.web.labels[0] must be a text NAME=value, not a list [invalid-type]"
    ]


def test_places_are_kept() -> None:
    """What a later file sets is blamed there, what it leaves is blamed where it was."""
    whole = merge(node("a: {b: 1, c: 2}", "1.yaml"), node("a: {b: 3}", "2.yaml"), Report())
    assert isinstance(whole, Mapping)
    inner = whole.get("a")
    assert isinstance(inner, Mapping)

    assert [(key.span.source.name, value.span.source.name) for key, value in (whole.entries["a"], *inner)] == [
        ("1.yaml", "1.yaml"),
        ("2.yaml", "2.yaml"),
        ("1.yaml", "1.yaml"),
    ]


def test_the_inputs_stay_as_they_are() -> None:
    """Merging makes new nodes: an anchor's node may stand elsewhere too."""
    base, over = node("a: {b: [1]}", "1.yaml"), node("a: {b: [2], c: 3}", "2.yaml")

    merge(base, over, Report())

    assert to_plain(base) == {"a": {"b": [1]}}
    assert to_plain(over) == {"a": {"b": [2], "c": 3}}


def test_values_that_were_substituted(project: Project) -> None:
    """A variable's value is merged, and what is written without one stays as it is written."""
    folder = project(
        {
            "a.yaml": "services: {web: {image: x, environment: {A: '$TAG', B: 1.0, C: '$$5'}}}",
            "b.yaml": "services: {web: {environment: {D: '${TAG}!', E: 010}}}",
        },
        TAG="one",
    )
    web = folder.read("a.yaml", "b.yaml").loaded.project.services["web"]

    assert dict(web.environment) == {"A": "one", "B": "1.0", "C": "$5", "D": "one!", "E": "010"}


def test_removed_mounts_of_other_files(project: Project) -> None:
    """Docker Compose reads the other files too, so a mount that they remove is none there either."""
    files = {
        "compose.yaml": "services: {web: {image: x, volumes: ['/proc:/p']}}",
        "compose.override.yaml": "services: {web: {volumes: [!reset /p]}}",
    }

    assert project(files).read().notes == []


def test_an_entry_of_both(project: Project) -> None:
    """What both lists have is once in the merged one; a path is that of its file."""
    rule = "services: {web: {image: x, develop: {watch: [{action: sync, path: src, target: /src}]}}}"
    files = {"a/one.yaml": rule, "a/two.yaml": rule, "part/c.yaml": rule, "c.yaml": f"include: [part/c.yaml]\n{rule}"}

    same = project(files).read("a/one.yaml", "a/two.yaml", full=True).loaded
    other = project(files).read("c.yaml", full=True).loaded

    assert [rule.path for rule in same.project.services["web"].watch] == [f"{same.folder}/src"]
    assert [rule.path for rule in other.project.services["web"].watch] == [
        f"{other.folder}/part/src",
        f"{other.folder}/src",
    ]
