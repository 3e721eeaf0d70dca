"""Small mistakes of writing, which make a text a mapping or a list: one error each, whose hint says what to write."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.test_fixes import messages_and_hints, service

SPACE = "a ': ' makes it a mapping: leave out the space, or quote the text"
RESTART = (
    "error: services.web.restart must be 'always', 'unless-stopped', 'any', 'no', 'none', 'never', 'on-failure' or"
    " 'on-failure:N', not"
)
NO_TARGET = "must have a 'target', the path inside the container"
KEY = "error: a key must be text, not"
NAME = "must have a name of letters, digits, '_', '-' and '.', not beginning with a digit, not"


@pytest.mark.parametrize(
    ("keys", "error", "hint"),
    [
        ("volumes: [./data: /data]", f"error: services.web.volumes[0] {NO_TARGET}", SPACE),
        ("volumes: [{source: data}]", f"error: services.web.volumes[0] {NO_TARGET}", ""),
        ("volumes: [{taget: /data}]", f"error: services.web.volumes[0] {NO_TARGET}", "did you mean 'target'?"),
        (
            "restart: unless_stopped",
            f"{RESTART} 'unless_stopped'",
            "did you mean 'unless-stopped'?",
        ),
        (
            "restart: onfailure:3",
            f"{RESTART} 'onfailure:3'",
            "did you mean 'on-failure'?",
        ),
        ("volumes: [1: /data]", f"{KEY} '1'", "leave out the space after the ':'"),
        ("ports: [8080: 80]", f"{KEY} '8080'", "leave out the space after the ':'"),
        ("expose: [80: 80]", f"{KEY} '80'", "leave out the space after the ':'"),
        ("command: [echo: hello]", "error: services.web.command[0] must be a text, not a mapping", SPACE),
        (
            "cap_add: ['A', B: ]",
            "error: services.web.cap_add[1] must be a text, not a mapping",
            "leave out the ':' at its end",
        ),
        (
            "depends_on: [db: {condition: service_started}]",
            "error: services.web.depends_on[0] must be a text, not a mapping",
            "leave out the '-' to write a mapping",
        ),
        (
            "environment: ['A:b']",
            f"error: services.web.environment[0] {NAME} 'A:b'",
            "write '=' after the name, not ':'",
        ),
        (
            "environment: ['A: b']",
            f"error: services.web.environment[0] {NAME} 'A: b'",
            "write '=' after the name, not ':'",
        ),
        (
            "environment: ['A:b=c']",
            f"error: services.web.environment[0] {NAME} 'A:b'",
            "write 'A__b': .NET reads '__' as ':'",
        ),
        ("environment: {1: a}", f"{KEY} '1'", 'quote it: "1"'),
        ("hostname: {{ name }}", f"{KEY} a mapping", "quote a text that begins with '{' or '['"),
    ],
)
def test_an_entry_of_another_type(project: Project, keys: str, error: str, hint: str) -> None:
    """A missing or superfluous space, '-' or ':' is the only error."""
    assert [found for found in messages_and_hints(project, service(keys)) if "error" in found[0]] == [(error, hint)]


@pytest.mark.parametrize(
    ("keys", "hint"),
    [("stop_signal: SIGTREM", "did you mean 'SIGTERM'?"), ("pull_policy: allways", "did you mean 'always'?")],
)
def test_a_typo_in_full_mode(project: Project, keys: str, hint: str) -> None:
    """The word that was meant is the hint."""
    (reported,) = project(service(keys)).read(full=True).loaded.report.sorted()
    assert (reported.code, reported.hint) == ("invalid-value", hint)


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        (
            "services:\nweb:\n  image: nginx\n",
            "error: the definition has no services",
            "'web' looks like a service: put it under 'services:', indented",
        ),
        (
            "services:\n  web:\n    image nginx\n    ports: [80]\n",
            "error: not YAML: mapping values are not allowed in this context",
            "look for a missing ':' in the line above; or this line is indented further than its neighbours",
        ),
        (
            "services:\n  web:\n    image: nginx\n    command: echo a: b\n",
            "error: not YAML: mapping values are not allowed in this context",
            "quote a value that contains ': '",
        ),
        (
            "services:\n  web:\n    image: nginx\n    user: *\n",
            "error: not YAML: did not find expected alphabetic or numeric character",
            "quote a value that starts with '*' or '&'",
        ),
        (
            "services:\n  web:\n    image: nginx\n   \tuser: a\n",
            "error: not YAML: found a tab character that violates indentation",
            "indent with spaces",
        ),
        (
            'services:\n  web:\n    image: nginx\n    command: ["npm", "start"\n    user: a\n',
            "error: not YAML: did not find expected ',' or ']'",
            "close the '[' of line 4, or put a ',' between its entries",
        ),
        (
            "services:\n  web:\n    image: nginx\n    build: {context: .\n    user: a\n",
            "error: not YAML: did not find expected ',' or '}'",
            "close the '{' of line 4, or put a ',' between its entries",
        ),
        (
            "services:\n  web:\n    image: nginx\n    environment: [A=1, B=${B:-2}]\n",
            "error: not YAML: did not find expected ',' or ']'",
            "within '[', quote an entry that has '${'",
        ),
        (
            "services:\n  web:\n    image: nginx\n    environment: {A: 1, B: x${B}}\n",
            "error: not YAML: did not find expected ',' or '}'",
            "within '{', quote an entry that has '${'",
        ),
        (
            "services:\n  web:\n    image: nginx\n    environment:\n      - A=1\n      B: 2\n",
            "error: not YAML: did not find expected '-' indicator",
            "begin each entry of the list of line 5 with '-'; a key beside the list is indented less",
        ),
        (
            "services:\n  - name: web\n    image: nginx\n",
            "error: services must be a mapping, not a list",
            "write its name as a key: 'web:', with the others indented below it",
        ),
        (
            "services: {web: {image: nginx}}\nvolumes:\n  - data\n",
            "error: volumes must be a mapping, not a list",
            "write each name as a key: 'data:'",
        ),
    ],
)
def test_the_layout_of_the_file(project: Project, text: str, error: str, hint: str) -> None:
    """A mistake that YAML sees elsewhere has the hint of the usual cause."""
    assert messages_and_hints(project, text) == [(error, hint)]
