"""Names that are too long, foreign, or made to do harm: a Kubernetes name or an error, and nothing is ever run."""

from __future__ import annotations

import pytest

from composeplat.names import is_dns_label
from composeplat.render.manifests import to_yaml
from tests.conftest import Project
from tests.in_process import run_here

CANT = "can't be converted to a Kubernetes name"
BAD_NAMES = {
    "three hundred letters": "a" * 300,
    "a letter": "日本",
    "an emoji": "🐳",
    "a newline": "a\nb",
    "a newline and a message": "a\ncompose.yaml:1:1: error: b",
    "a path": "../x",
    "a command": "a;rm -rf",
    "a template": "{{7*7}}",
    "a substitution of a shell": "$(id)",
    "a substitution of ours": "${HOME}",
    "backquotes": "`id`",
    "markup": "[red]a[/red]",
    "a tag": "<{%a%}>",
    "an escape": "a\x1b[31mb",
    "an escape of one byte": "a\x9b31mb",
    "a title for the terminal": "\x1b]0;a\x07",
    "a turn of the direction": "a\u202eb",
    "a delete": "a\x7f",
    "a NUL": "a\0b",
    "nothing": "",
    "a space": " ",
    "dashes": "---",
    "a quote": "a'b\"c",
    "a backslash": "a\\b",
}


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
@pytest.mark.parametrize("section", ["services", "volumes"])
def test_refused(section: str, name: str, project: Project) -> None:
    """The name is an error at its place, reported in one line without a control character."""
    text = to_yaml({"services": {"web": {"image": "nginx"}}, section: {name: {"image": "nginx"}}})

    (message,) = project(text).read().messages

    assert message.startswith("compose.yaml:")
    assert message.endswith(f" {CANT} [invalid-name]")
    assert message.isprintable()


@pytest.mark.parametrize("section", ["services", "volumes", "networks"])
def test_variable_in_a_key(section: str, project: Project) -> None:
    """A key is never substituted, and the hint says so: templates for `envsubst` have such keys."""
    text = to_yaml({"services": {"web": {"image": "nginx"}}} | {section: {"$NAME": {"image": "x"}}})
    report = project(text).read(full=True).loaded.report

    (hint,) = {found.hint for found in report.sorted() if found.code == "invalid-name"}
    assert hint == "write the name itself: variables are not substituted in keys"


@pytest.mark.parametrize("name", [*BAD_NAMES.values(), "a" * 300 + ".b", "A B", "a.b"])
@pytest.mark.parametrize("option", ["--strict", "-v", "--json-diagnostics"])
def test_no_escape_reaches_the_terminal(option: str, name: str, project: Project) -> None:
    """Whatever a name holds, wherever it stands, standard error gets printable lines alone."""
    named = {name: {name: name}}
    web = {"image": name, "labels": {name: name}, "depends_on": [name], "environment": {name: name}, name: name}
    definition = {
        "name": name, name: name, "networks": named, "volumes": {name: named}, "endpoints": {name: [{"service": name}]},
        "services": {"web": web, name: {"image": "nginx", "ports": [name], "volumes": [f"{name}:/a"], "restart": name}},
    }  # fmt: skip
    outcome = run_here("render", option, folder=project(to_yaml(definition)).path)

    outcome.assert_invalid()
    assert [line for line in outcome.stderr.split("\n") if not line.isprintable()] == []


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("WEB", "web"),
        ("my_web", "my-web"),
        ("my web", "my-web"),
        ("my.web", "my-web"),
        ("Web_", "web"),
        ("a" * 63, "a" * 63),
    ],
)
def test_cleaned(name: str, cleaned: str, project: Project) -> None:
    """A name that only differs in letters of the same meaning is cleaned, and reported so."""
    reading = project(to_yaml({"services": {name: {"image": "nginx"}}})).read()

    expected = [] if name == cleaned else ["name-normalized"]
    assert expected == reading.codes
    assert [f"Service/{cleaned}", f"Deployment/{cleaned}"] == reading.names
    assert is_dns_label(cleaned)


@pytest.mark.parametrize(
    ("first", "second", "cleaned"),
    [("my_web", "my-web", "my-web"), ("web", "Web", "web"), ("a.b", "a b", "a-b"), ("_web", "web", "web")],
)
@pytest.mark.parametrize("section", ["services", "volumes"])
def test_names_that_meet(section: str, first: str, second: str, cleaned: str, project: Project) -> None:
    """Two names that are one after cleaning are an error."""
    entries: dict[str, object] = {first: {"image": "nginx"}, second: {"image": "nginx"}}
    definition = {"services": {"other": {"image": "nginx"}}, section: entries}

    messages = project(to_yaml(definition)).read().messages

    (clash,) = [message for message in messages if message.endswith("[name-conflict]")]
    assert clash.endswith(
        f" error: {section}.{second} and {section}.{first} would both be named '{cleaned}' [name-conflict]"
    )


@pytest.mark.parametrize("name", ["../x", "a;rm -rf", "$(id)", "日本 web", "🐳 a", "a\nb", "\x1b[31mred", "A" * 300])
def test_the_environment(name: str, project: Project) -> None:
    """The environment's own name is made a label of whatever is left of it."""
    settings = project("services: {web: {image: nginx}}").read(name=name).loaded.settings

    assert is_dns_label(settings.environment)


@pytest.mark.parametrize("name", ["---", "日本", "🐳", "../..", "${}"])
def test_the_environment_without_a_letter(name: str, project: Project) -> None:
    """A name of which nothing is left is an error."""
    reading = project("services: {web: {image: nginx}}").read(name=name)

    assert reading.codes == ["invalid-name"]
    assert reading.messages[0].endswith("the environment's name has no letter or digit [invalid-name]")


def test_values_are_not_run_or_read_again(project: Project) -> None:
    """A value that looks like a command or a variable reaches the container as it stands."""
    folder = project(
        "services: {web: {image: nginx, environment: {A: $A, B: '$$A', C: '$$(id)'}, labels: {a: $A}}}",
        A="${B} $(id) `id` {{7*7}}",
    )

    loaded = folder.read().loaded

    expected = {"A": "${B} $(id) `id` {{7*7}}", "B": "$A", "C": "$(id)"}
    assert expected == loaded.project.services["web"].variables
    assert loaded.project.services["web"].labels == {"a": "${B} $(id) `id` {{7*7}}"}
