"""Loading: which files and variables count, what the environment is named, and what includes bring in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from composeplat.compose.load import NoDefinition, load_definition
from composeplat.diagnostics import InvalidDefinition, Severity
from tests.conftest import Folder, Project, Reading

WEB = "services: {web: {image: nginx}}\n"


def image(reading: Reading, service: str = "web") -> str:
    assert reading.messages == []
    return reading.loaded.project.services[service].image


def variables(reading: Reading, service: str = "web") -> dict[str, str]:
    assert reading.messages == []
    return dict(reading.loaded.project.services[service].variables)


# the environment's name -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "shell", "text", "expected"),
    [
        pytest.param("given", {"COMPOSE_PROJECT_NAME": "shell"}, "name: file\n", "given", id="option"),
        pytest.param("", {"COMPOSE_PROJECT_NAME": "shell"}, "name: file\n", "shell", id="variable"),
        pytest.param("", {}, "name: file\n", "file", id="file"),
        pytest.param("", {}, "", "demo", id="folder"),
        pytest.param("", {"COMPOSE_PROJECT_NAME": ""}, "", "demo", id="empty-variable"),
        pytest.param("", {"X": "from-x"}, "name: ${X}\n", "from-x", id="variable-in-the-file"),
        pytest.param("My App!", {}, "", "my-app", id="made-a-label"),
        pytest.param("", {}, "name: My_App\n", "my-app", id="name-of-the-file-made-a-label"),
    ],
)
def test_name(project: Project, option: str, shell: Mapping[str, str], text: str, expected: str) -> None:
    """The environment is named by the option, the variable, the file, or the folder, in this order."""
    reading = project(text + WEB, **shell).read(name=option)

    assert expected == reading.loaded.settings.environment
    assert reading.loaded.settings.name_from_folder is (expected == "demo")
    assert reading.messages == []


def test_name_from_the_env_file(project: Project) -> None:
    """The variable may be in the env file."""
    reading = project({"compose.yaml": "name: file\n" + WEB, ".env": "COMPOSE_PROJECT_NAME=env\n"}).read(name="")

    assert reading.loaded.settings.environment == "env"


def test_name_of_a_later_file(project: Project) -> None:
    """A later file names the environment."""
    reading = project({"a.yaml": "name: a\n" + WEB, "b.yaml": "name: b\n"}).read("a.yaml", "b.yaml", name="")

    assert reading.loaded.settings.environment == "b"


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param(("name: !reset null",), "demo", id="reset"),
        pytest.param(("name: !reset []",), "demo", id="reset-with-a-list"),
        pytest.param(("name: !reset null", "name: c"), "c", id="set-after-a-reset"),
        pytest.param(("name: !reset b",), "b", id="reset-with-a-name"),
        pytest.param(("name: !override b",), "b", id="override"),
        pytest.param(("name: ",), "a", id="nothing"),
    ],
)
def test_a_name_that_a_later_file_resets(project: Project, later: tuple[str, ...], expected: str) -> None:
    """Without the earlier one, the environment is named by the folder."""
    files = {f"{number}.yaml": f"{text}\n{WEB}" for number, text in enumerate(("name: a", *later))}

    reading = project(files).read(*files, name="")

    assert (reading.loaded.settings.environment, reading.messages) == (expected, [])
    assert reading.loaded.settings.name_from_folder is (expected == "demo")


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param("x-platform: {full: !reset null}", False, id="key"),
        pytest.param("x-platform: !reset null", False, id="block"),
        pytest.param("x-platform: !reset {full: true}", False, id="block-with-a-value"),
        pytest.param("x-platform: !override {}", False, id="another-block"),
        pytest.param("x-platform: {full: }", True, id="nothing"),
        pytest.param("x-platform: {full: !override true}", True, id="override"),
    ],
)
def test_full_mode_that_a_later_file_resets(project: Project, later: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """A file can turn off what an earlier one turns on."""
    files = {"a.yaml": f"x-platform: {{full: true}}\n{WEB}", "b.yaml": f"{later}\n"}

    assert project(files).read(*files).loaded.settings.full is expected


@pytest.mark.parametrize(("text", "kind"), [("[prod]", "a list"), ("{prod: }", "a mapping")])
def test_a_name_that_is_no_text(project: Project, text: str, kind: str) -> None:
    """It is an error: the folder's name would be that of another environment."""
    reading = project(f"name: {text}\n{WEB}").read(name="")

    assert reading.messages == [f"compose.yaml:1:7: error: name must be a text, not {kind} [invalid-type]"]


def test_no_name(project: Project) -> None:
    """A name of which nothing can stand is an error at its place."""
    assert project("name: '!!!'\n" + WEB).read(name="").messages == [
        "compose.yaml:1:7: error: the environment's name has no letter or digit [invalid-name]"
    ]


@pytest.mark.parametrize(
    ("shell", "more", "expected"),
    [
        ({}, {}, "default"),
        ({}, {"context_namespace": "context"}, "context"),
        ({"PLATFORM_NAMESPACE": "shell"}, {"context_namespace": "context"}, "shell"),
        ({"PLATFORM_NAMESPACE": "shell"}, {"namespace": "option"}, "option"),
    ],
)
def test_namespace(project: Project, shell: Mapping[str, str], more: Mapping[str, str], expected: str) -> None:
    """The namespace is the option's, the variable's, or the context's, in this order."""
    assert expected == project(WEB, **shell).read(**more).loaded.settings.namespace


# which files ----------------------------------------------------------------------------------------------------------


def test_override_file(project: Project) -> None:
    """An override file counts where no file is named, and not where one is."""
    folder = project({"compose.yaml": WEB, "compose.override.yml": "services: {web: {image: over}}"})

    assert image(folder.read()) == "over"
    assert image(folder.read("compose.yaml")) == "nginx"


def test_passed_over(project: Project) -> None:
    """A second file of a default name is reported of, and not read."""
    reading = project({"compose.yaml": WEB, "docker-compose.yml": "services: ["}).read()

    assert reading.messages == [
        "compose.yaml:1:1: warning: also found 'docker-compose.yml', which is not read [multiple-compose-files]"
    ]


def test_parents(project: Project) -> None:
    """From a folder below, the definition above is read, with paths relative to it."""
    folder = project({"compose.yaml": "services: {web: {image: nginx, env_file: a.env}}", "a.env": "A=1\n"})
    (folder.path / "x" / "y").mkdir(parents=True)

    below = Folder(folder.path / "x" / "y")

    assert variables(below.read()) == {"A": "1"}
    assert below.read(name="").loaded.settings.environment == "demo"


def test_no_definition(tmp_path: Path) -> None:
    """Without any definition, what was looked for is reported."""
    with pytest.raises(NoDefinition) as caught:
        Folder(tmp_path).read()

    assert str(caught.value) == (
        "no Compose file here or in a folder above: looked for"
        " compose.yaml, compose.yml, docker-compose.yaml, docker-compose.yml"
    )


@pytest.mark.parametrize("address", ["https://example.com/a.yaml", "oci://example.com/a", "git@example.com:a.git"])
def test_a_definition_of_another_machine(project: Project, address: str) -> None:
    """A file that Compose would fetch is refused by its own name."""
    with pytest.raises(NoDefinition) as caught:
        project(WEB).read("compose.yaml", address)

    assert str(caught.value) == f"the Compose file must be on this machine, not '{address}'"


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        pytest.param({"COMPOSE_FILE": "a.yaml"}, "a", id="one"),
        pytest.param({"COMPOSE_FILE": "a.yaml:b.yaml"}, "b", id="two"),
        pytest.param({"COMPOSE_FILE": "a.yaml,b.yaml", "COMPOSE_PATH_SEPARATOR": ","}, "b", id="separator"),
        pytest.param({"COMPOSE_FILE": ""}, "nginx", id="empty"),
    ],
)
def test_compose_file(project: Project, shell: Mapping[str, str], expected: str) -> None:
    """The variable names the files where no option does."""
    files = {
        "compose.yaml": WEB,
        "a.yaml": "services: {web: {image: a}}",
        "b.yaml": "services: {web: {image: b}}",
    }

    assert expected == image(project(files, **shell).read())
    assert image(project(files, **shell).read("compose.yaml")) == "nginx"


def test_compose_file_from_the_env_file(project: Project) -> None:
    """The variable may be in the env file of the folder we are in."""
    folder = project({"deploy/a.yaml": WEB, ".env": "COMPOSE_FILE=deploy/a.yaml\n"})

    assert image(folder.read()) == "nginx"


def test_paths_are_relative_to_the_first_file(project: Project) -> None:
    """Of several files, the folder of the first counts for all."""
    folder = project(
        {
            "a/one.yaml": WEB,
            "b/two.yaml": "services: {web: {env_file: x.env}}",
            "a/x.env": "FROM=a\n",
            "b/x.env": "FROM=b\n",
        }
    )

    assert variables(folder.read("a/one.yaml", "b/two.yaml")) == {"FROM": "a"}
    assert folder.read("a/one.yaml", "b/two.yaml").loaded.folder == folder.path / "a"


def test_an_env_file_by_two_paths(project: Project) -> None:
    """A file that an included one names too is one, in its first place; `./` makes it another, as in Compose."""
    folder = project(
        {
            "compose.yaml": "include: [part/a.yaml]\nservices: {web: {env_file: x.env}, api: {env_file: ./x.env}}",
            "part/a.yaml": "services:\n  web: &web {image: nginx, env_file: [../x.env, y.env]}\n  api: *web\n",
            "x.env": "A=x\n",
            "part/y.env": "A=y\n",
        }
    )

    services = folder.read().loaded.project.services
    assert {name: service.variables for name, service in services.items()} == {"web": {"A": "y"}, "api": {"A": "x"}}


def test_standard_input(project: Project) -> None:
    """A dash is standard input, with paths relative to where we stand."""
    folder = project({"x.env": "A=1\n"})

    reading = folder.read("-", standard_input=b"services: {web: {image: nginx, env_file: x.env, public: perhaps}}")

    assert variables(folder.read("-", standard_input=b"services: {web: {image: x, env_file: x.env}}")) == {"A": "1"}
    assert reading.messages == [
        "<stdin>:1:57: error: services.web.public must be true or false, not 'perhaps' [invalid-value]"
    ]


def test_files_that_can_not_be_read(project: Project) -> None:
    """Every file that can't be read is reported, and nothing is reported about what it may have held."""
    folder = project({"compose.yaml": "services: {web: {depends_on: [elsewhere]}}", "folder/x": ""})

    assert folder.read("compose.yaml", "none.yaml", "folder").messages == [
        "none.yaml:1:1: error: 'none.yaml' does not exist [unreadable-file]",
        "folder:1:1: error: 'folder' is a folder, not a file [unreadable-file]",
    ]


def test_empty_file(project: Project) -> None:
    """A file without content has no services."""
    assert project("# nothing\n").read().messages == [
        "compose.yaml:1:1: error: the definition has no services [no-services]"
    ]


# variables ------------------------------------------------------------------------------------------------------------

TAGGED = "services: {web: {image: 'app:${TAG:-default}'}}"


def test_shell_over_env_file_over_platform(project: Project) -> None:
    """The shell's value wins over the env file's, and both over the platform's."""
    with_file = {"compose.yaml": TAGGED, ".env": "TAG=file\n"}

    assert image(project(TAGGED).read()) == "app:default"
    assert image(project(TAGGED).read(platform={"TAG": "platform"})) == "app:platform"
    assert image(project(with_file).read(platform={"TAG": "platform"})) == "app:file"
    assert image(project(with_file, TAG="shell").read(platform={"TAG": "platform"})) == "app:shell"


def test_env_file_beside_the_definition(project: Project) -> None:
    """The env file is that of the definition's folder, not of where we stand."""
    folder = project({"a/compose.yaml": TAGGED, "a/.env": "TAG=beside\n", ".env": "TAG=here\n"})

    assert image(folder.read("a/compose.yaml")) == "app:beside"


@pytest.mark.parametrize("shell", [{}, {"COMPOSE_FILE": "a/b.yaml"}])
def test_env_file_here_of_a_definition_that_a_variable_names(project: Project, shell: Mapping[str, str]) -> None:
    """Where COMPOSE_FILE names it, the env file of where we stand wins over the one beside the definition."""
    text = "services: {web: {image: 'app:${TAG}', command: '$OTHER $BOTH'}}"
    beside = {"a/b.yaml": text, "a/.env": "TAG=beside\nOTHER=other\nBOTH=$TAG-$OTHER\n"}
    here = {".env": "TAG=here\n" + ("" if shell else "COMPOSE_FILE=a/b.yaml\n")}

    assert image(project(beside | here, **shell).read()) == "app:here"
    assert project(beside | here, **shell).read().loaded.project.services["web"].command == ("other", "here-other")
    assert image(project({"a/b.yaml": TAGGED} | here, **shell).read()) == "app:here"


def test_env_file_here_below_the_definition(project: Project) -> None:
    """Without an option that names the definition, the env file of where we stand wins over that of the definition."""
    folder = project({"compose.yaml": TAGGED, ".env": "TAG=beside\n", "a/.env": "TAG=here\n"})

    assert image(folder.read(folder=folder.path / "a")) == "app:here"
    assert image(folder.read("../compose.yaml", folder=folder.path / "a")) == "app:beside"


def test_no_env_file_beside_the_definition(project: Project) -> None:
    """Where the definition's folder has none, none counts."""
    folder = project({"a/compose.yaml": TAGGED, ".env": "TAG=here\n"})

    assert image(folder.read("a/compose.yaml")) == "app:default"


def test_a_folder_in_the_place_of_an_env_file(project: Project) -> None:
    """A folder `.env` is usually a virtual environment, and no env file; beside an included file too."""
    files = {"compose.yaml": "include: [part/compose.yaml]", "part/compose.yaml": WEB, ".env/a": "", "part/.env/a": ""}

    assert project(files).read().messages == []


def test_a_line_of_an_env_file_before_the_platform(project: Project) -> None:
    """A variable of the platform is below those of env files, also where another line refers to it."""
    env = "TAG=file\nIMAGE=app:$TAG\nUSED=$OTHER\n"
    platform = {"TAG": "platform", "OTHER": "platform"}
    web = "services: {web: {image: '$IMAGE', command: $USED}}"

    own = project({"compose.yaml": web, ".env": env}).read(platform=platform)
    included = project({"compose.yaml": "include: [part/a.yaml]", "part/a.yaml": web, "part/.env": env})

    for reading in (own, included.read(platform=platform)):
        assert image(reading) == "app:file"
        assert reading.loaded.project.services["web"].command == ("platform",)


def test_named_env_files(project: Project) -> None:
    """Named env files take the place of the one beside the definition, later ones over earlier ones."""
    files = {
        "compose.yaml": "services: {web: {image: 'app:${TAG}', command: '$OTHER'}}",
        ".env": "TAG=beside\n",
        "one.env": "TAG=one\nOTHER=from-one\n",
        "two.env": "TAG=two\n",
    }

    reading = project(files).read(env_files=("one.env", "two.env"))

    assert image(reading) == "app:two"
    assert reading.loaded.project.services["web"].command == ("from-one",)
    assert image(project(files, COMPOSE_ENV_FILES="two.env,one.env").read()) == "app:one"
    assert image(project(files, COMPOSE_ENV_FILES="one.env", OTHER="x").read(env_files=("two.env",))) == "app:two"


def test_a_line_of_an_env_file_before_earlier_files(project: Project) -> None:
    """A later env file refers to its own lines before those of earlier files, as the definition does."""
    files = {
        "compose.yaml": "services: {web: {image: '$IMAGE', command: $USED}}",
        "including.yaml": "include: [{path: compose.yaml, env_file: [one.env, two.env]}]",
        "one.env": "TAG=one\nOTHER=from-one\n",
        "two.env": "TAG=two\nIMAGE=app:$TAG\nUSED=$OTHER\n",
    }
    folder = project(files)

    named = folder.read(env_files=("one.env", "two.env"))
    included = folder.read("including.yaml")
    by_shell = project(files, COMPOSE_ENV_FILES="one.env,two.env").read()

    for reading in (named, included, by_shell):
        assert image(reading) == "app:two"
        assert reading.loaded.project.services["web"].command == ("from-one",)
    assert image(project(files, TAG="shell").read(env_files=("one.env", "two.env"))) == "app:shell"


def test_a_named_env_file_that_is_missing(project: Project) -> None:
    """An env file that is named must be there."""
    assert project(TAGGED).read(env_files=("none.env",)).messages == [
        "none.env:1:1: error: 'none.env' does not exist [unreadable-file]"
    ]


def test_env_file_switched_off(project: Project) -> None:
    """The env file beside the definition can be left out."""
    files = {"compose.yaml": TAGGED, ".env": "TAG=file\n"}

    assert image(project(files, COMPOSE_DISABLE_ENV_FILE="1").read()) == "app:default"
    assert image(project(files, COMPOSE_DISABLE_ENV_FILE="false").read()) == "app:file"


def test_a_mistake_in_the_env_file(project: Project) -> None:
    """A mistake in the env file is reported once, at its place."""
    assert project({"compose.yaml": TAGGED, ".env": "TAG=1\nwhat is this\n"}).read().messages == [
        ".env:2:1: error: the line is not NAME=value [invalid-env-file]"
    ]


def test_built_in_variables(project: Project) -> None:
    """The environment's name, namespace and domain can be used in the file."""
    text = """\
services:
  web:
    image: nginx
    environment:
      - NAMES=${PLATFORM_NAME} ${PLATFORM_NAMESPACE} ${PLATFORM_DOMAIN} ${COMPOSE_PROJECT_NAME}
"""

    seen = variables(project(text).read(name="shop", namespace="team", domain="example.com"))

    assert seen == {"NAMES": "shop team example.com shop"}


def test_built_in_variables_in_the_name(project: Project) -> None:
    """The name of the environment may have the namespace and the domain in it."""
    text = 'name: "shop-${PLATFORM_NAMESPACE}-${PLATFORM_DOMAIN}"\n' + WEB

    reading = project(text).read(name="", namespace="team", domain="example.com")

    assert (reading.loaded.settings.environment, reading.messages) == ("shop-team-example-com", [])


@pytest.mark.parametrize(
    ("env_file", "given", "expected"),
    [
        pytest.param("H=$PLATFORM_NAMESPACE.$PLATFORM_DOMAIN", {}, "team.example.com", id="both"),
        pytest.param("H=$PLATFORM_NAMESPACE\nPLATFORM_NAMESPACE=own", {}, "own", id="set-below"),
        pytest.param("PLATFORM_NAMESPACE=own\nH=$PLATFORM_NAMESPACE", {}, "own", id="set-above"),
        pytest.param(
            "H=$PLATFORM_DOMAIN\nPLATFORM_DOMAIN=$PLATFORM_NAMESPACE.example.org",
            {},
            "team.example.org",
            id="domain-of-the-namespace",
        ),
        pytest.param(
            "PLATFORM_NAMESPACE=pr-${PLATFORM_NAMESPACE:-1}\nH=${PLATFORM_NAMESPACE}", {}, "pr-1", id="of-itself"
        ),
        pytest.param("H=$PLATFORM_NAMESPACE", {"PLATFORM_NAMESPACE": "shell"}, "shell", id="shell"),
        pytest.param("H='$PLATFORM_NAMESPACE'", {}, "$PLATFORM_NAMESPACE", id="literal"),
    ],
)
@pytest.mark.parametrize("name", [".env", "named.env"])
def test_the_place_in_env_files(
    project: Project, name: str, env_file: str, given: dict[str, str], expected: str
) -> None:
    """Env files of the project may refer to the namespace and the domain, which they may set themselves."""
    folder = project(
        {"compose.yaml": "services: {web: {image: nginx, environment: [H]}}", name: f"{env_file}\n"}, **given
    )
    options = {"env_files": (name,)} if name != ".env" else {}

    reading = folder.read(domain="", context_namespace="team", default_domain="example.com", **options)

    assert variables(reading) == {"H": expected}
    assert reading.loaded.settings.namespace == (expected if expected in ("own", "pr-1", "shell") else "team")


def test_a_domain_that_is_not_set_in_the_env_file(project: Project) -> None:
    """A variable of the place without a value is one that is not set."""
    text = "services: {web: {image: 'app:${H:-none}'}}"
    folder = project({"compose.yaml": text, ".env": "H=$PLATFORM_DOMAIN\n"})

    (message,) = folder.read(domain="").messages

    assert message.startswith(".env:1:1: warning: the value of 'H' refers to a variable that is not set")


def test_the_place_in_the_name_of_a_file(project: Project) -> None:
    """The env file may name the Compose files by the namespace."""
    folder = project({"team.yaml": WEB, ".env": "COMPOSE_FILE=$PLATFORM_NAMESPACE.yaml\n"})

    assert image(folder.read(namespace="team")) == "nginx"


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param({}, True, id="default"),
        pytest.param({"platform": "false"}, False, id="platform"),
        pytest.param({"platform": "false", "file": "true"}, True, id="file-over-platform"),
        pytest.param({"file": "false"}, False, id="file"),
        pytest.param({"file": "false", "shell": "true"}, True, id="shell-over-file"),
        pytest.param({"shell": "0"}, False, id="shell"),
    ],
)
def test_feature_flag(project: Project, layers: Mapping[str, str], expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """Volume affinity can be switched off in the shell, the env file or the platform's variables, in this order."""
    name = "OKTETO_COMPOSE_VOLUME_AFFINITY_ENABLED"
    text = "services: {a: {image: x, volumes: ['data:/d']}, b: {image: x, volumes: ['data:/d']}}\nvolumes: {data: {}}"
    shell = {name: layers["shell"]} if "shell" in layers else {}
    platform = {name: layers["platform"]} if "platform" in layers else {}
    folder = project(text, **shell)
    if "file" in layers:
        folder.write({".env": f"{name}={layers['file']}\n"})

    reading = folder.read(platform=platform)

    assert expected is reading.loaded.settings.volume_affinity
    assert expected is ("affinity" in reading.pod("StatefulSet", "a"))


def test_booleans_in_the_environment(project: Project) -> None:
    """They are in lower case as in Compose, also when files are merged; texts and numbers stay as they are."""
    written = "{A: True, B: 'True', C: FALSE, D: \"${T}\", E: Yes, F: tRue, G: !!str True, H: 1.10, I: 022}"
    expected = {"A": "true", "B": "True", "C": "false", "D": "True", "E": "Yes", "F": "tRue", "G": "True"}
    expected |= {"H": "1.10", "I": "022"}
    text = f"services: {{web: {{image: nginx, environment: {written}, labels: {{x: True}}}}}}\n"
    single = project(text, T="True").read()
    override = "services: {web: {environment: [J=True], labels: [y=True]}}\n"
    merged = project({"compose.yaml": text, "compose.override.yaml": override}, T="True").read()

    assert variables(single) == expected
    assert variables(merged) == {**expected, "J": "True"}
    assert single.loaded.project.services["web"].labels == {"x": "true"}
    assert merged.loaded.project.services["web"].labels == {"x": "true", "y": "True"}


def test_environment_over_env_files(project: Project) -> None:
    """Later env files win over earlier ones, and ``environment`` over all, also with an empty or absent value."""
    folder = project(
        {
            "compose.yaml": """\
services:
  web:
    image: nginx
    env_file: [one.env, {path: two.env}, {path: none.env, required: false}]
    environment: {A: own, B: '', C: , SHELL_SET: }
""",
            "one.env": "A=1\nB=1\nC=1\nD=1\nE=1\n",
            "two.env": "E=2\n",
        },
        SHELL_SET="shell",
    )

    assert variables(folder.read()) == {"A": "own", "B": "", "D": "1", "E": "2", "SHELL_SET": "shell"}


def test_raw_env_file(project: Project) -> None:
    """The raw format takes a value as it stands."""
    folder = project(
        {
            "compose.yaml": "services: {web: {image: nginx, env_file: [{path: a.env, format: raw}]}}",
            "a.env": "A='$B'\n",
        }
    )

    assert variables(folder.read()) == {"A": "'$B'"}


# includes -------------------------------------------------------------------------------------------------------------


def test_include_under_own(project: Project) -> None:
    """What is included lies under what the file itself says; its name does not count."""
    folder = project(
        {
            "compose.yaml": "include: [inner.yaml]\nservices: {web: {image: own}}",
            "inner.yaml": "name: inner\nservices: {web: {image: inner, command: run}, db: {image: postgres}}",
        }
    )

    reading = folder.read(name="")

    assert image(reading) == "own"
    assert image(reading, "db") == "postgres"
    assert reading.loaded.project.services["web"].command == ("run",)
    assert reading.loaded.settings.environment == "demo"


def test_two_includes(project: Project) -> None:
    """The first include that sets a key wins, and its services come first."""
    files = {
        "compose.yaml": "include: [a.yaml, b.yaml]\nservices: {own: {image: own}}",
        "a.yaml": "services: {web: {image: a, environment: {A: a, X: a}}, a: {image: a}}",
        "b.yaml": "services: {b: {image: b}, web: {image: b, user: '1', environment: {B: b, X: b}}}",
    }

    reading = project(files).read()

    assert image(reading) == "a"
    assert variables(reading) == {"A": "a", "B": "b", "X": "a"}
    assert list(reading.loaded.project.services) == ["web", "a", "b", "own"]


def test_tags_of_an_included_file(project: Project) -> None:
    """They are applied among its own files, and change neither another include nor the including file."""
    files = {
        "compose.yaml": "include: [{path: [a.yaml, o.yaml]}, b.yaml]\nservices: {web: {environment: {OWN: 1}}}",
        "a.yaml": "services: {web: {image: a, command: [a], environment: {A: 1}}}",
        "o.yaml": "services: {web: {command: !reset null, environment: !override {O: 1}}}",
        "b.yaml": "services: {web: {image: b, command: [b], environment: {B: 1}}}",
    }

    reading = project(files).read()

    assert variables(reading) == {"OWN": "1", "O": "1", "B": "1"}
    assert reading.loaded.project.services["web"].command == ("b",)


@pytest.mark.parametrize("include", ["!reset [a.yaml]", "[!reset a.yaml, b.yaml]", "!reset"])
def test_a_reset_include(include: str, project: Project) -> None:
    """What has the tag `!reset` is not included, and need not be there."""
    text = f"include: {include}\nservices: {{own: {{image: own}}}}"

    reading = project({"compose.yaml": text, "b.yaml": "services: {own: {image: b}}"}).read()

    assert reading.messages == []
    assert list(reading.loaded.project.services) == ["own"]


def test_what_two_includes_both_include(project: Project) -> None:
    """It is taken once: lists that are appended stay as they are."""
    files = {
        "compose.yaml": "include: [a.yaml, b.yaml]",
        "a.yaml": "include: [db.yaml]\nservices: {a: {image: a}}",
        "b.yaml": "include: [db.yaml]\nservices: {b: {image: b}}",
        "db.yaml": "services: {db: {image: db, post_start: [{command: [migrate]}]}}",
    }

    reading = project(files).read(full=True)

    assert [hook.command for hook in reading.loaded.project.services["db"].container.post_start] == [("migrate",)]


def test_paths_of_an_included_file(project: Project) -> None:
    """Paths in an included file are relative to its own folder, or to the one that is given."""
    files = {
        "compose.yaml": "include: [inner/compose.yaml]",
        "given.yaml": "include: [{path: inner/compose.yaml, project_directory: other}]",
        "inner/compose.yaml": "services: {web: {image: nginx, env_file: x.env}}",
        "inner/x.env": "FROM=inner\n",
        "other/x.env": "FROM=other\n",
    }

    assert variables(project(files).read()) == {"FROM": "inner"}
    assert variables(project(files).read("given.yaml")) == {"FROM": "other"}


def test_variables_of_an_included_file(project: Project) -> None:
    """An included file has its own env file, under ours; another one can be named."""
    files = {
        "compose.yaml": "include: [inner/compose.yaml]",
        "named.yaml": "include: [{path: inner/compose.yaml, env_file: named.env}]",
        "inner/compose.yaml": TAGGED,
        "inner/.env": "TAG=inner\n",
        "named.env": "TAG=named\n",
    }

    assert image(project(files).read()) == "app:inner"
    assert image(project(files).read("named.yaml")) == "app:named"
    assert image(project(files, TAG="shell").read()) == "app:shell"
    assert image(project({**files, ".env": "TAG=ours\n"}).read()) == "app:ours"


def test_variables_of_an_included_file_stay_there(project: Project) -> None:
    """What an included file's env file sets is not seen outside of it."""
    folder = project(
        {
            "compose.yaml": f"include: [inner/compose.yaml]\n{TAGGED.replace('web', 'own')}",
            "inner/compose.yaml": TAGGED,
            "inner/.env": "TAG=inner\n",
        }
    )

    assert image(folder.read(), "own") == "app:default"


BARE = """\
services:
  app: {build: {context: ., args: [PASSWORD]}, environment: [PASSWORD, "E=${PASSWORD}"]}
  other: {image: nginx, environment: {PASSWORD: }, secrets: [p]}
secrets: {p: {environment: PASSWORD}}
"""


def test_bare_names_in_an_included_file(project: Project) -> None:
    """A name without a value is looked up where ``${NAME}`` is: in the env file of the included file too."""
    folder = project(
        {
            "compose.yaml": "include: [sub/compose.yaml]\nservices: {web: {image: nginx, environment: [PASSWORD]}}",
            "sub/compose.yaml": BARE,
            "sub/.env": "PASSWORD=hunter22\n",
            "sub/Dockerfile": "FROM scratch\n",
        }
    )

    reading = folder.read(full=True)
    services = reading.loaded.project.services

    assert reading.messages == []
    assert dict(services["app"].variables) == {"PASSWORD": "hunter22", "E": "hunter22"}
    assert dict(services["other"].variables) == {"PASSWORD": "hunter22"}
    assert dict(services["web"].variables) == {}
    assert services["app"].build is not None
    assert services["app"].build.args == {"PASSWORD": "hunter22"}
    assert reading.loaded.project.secrets["p"].content == b"hunter22"
    assert "hunter22" in reading.loaded.references.confidential


def test_bare_names_of_a_file_that_is_included_twice(project: Project) -> None:
    """A name without a value has that of the first include, as all that two includes set."""
    files = {
        "compose.yaml": "include: [{path: web.yaml, env_file: one.env}, {path: web.yaml, env_file: two.env}]",
        "web.yaml": "services: {web: {image: nginx, environment: [A, B]}}",
        "one.env": "A=one\nB=one\n",
        "two.env": "A=two\n",
    }

    assert variables(project(files).read()) == {"A": "one", "B": "one"}


def test_several_files_of_one_include(project: Project) -> None:
    """The files of one entry are laid over one another."""
    folder = project(
        {
            "compose.yaml": "include: [{path: [a.yaml, b.yaml]}]",
            "a.yaml": "services: {web: {image: a, command: run}}",
            "b.yaml": "services: {web: {image: b}}",
        }
    )

    assert image(folder.read()) == "b"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"compose.yaml": "include: [none.yaml]\n" + WEB},
            "compose.yaml:1:11: error: include[0] names 'none.yaml', which does not exist [unreadable-file]",
            id="missing",
        ),
        pytest.param(
            {"compose.yaml": "include: [compose.yaml]\n" + WEB},
            "compose.yaml:1:11: error: include[0] includes a file that is already being included [include-cycle]",
            id="itself",
        ),
        pytest.param(
            {"compose.yaml": "include: [a.yaml]\n" + WEB, "a.yaml": "include: [./compose.yaml]"},
            "a.yaml:1:11: error: include[0] includes a file that is already being included [include-cycle]",
            id="circle",
        ),
        pytest.param(
            {"compose.yaml": "include: ['https://example.com/a.yaml']\n" + WEB},
            "compose.yaml:1:11: error: include[0] must be a file on this machine [invalid-value]",
            id="address",
        ),
        pytest.param(
            {"compose.yaml": "include: [{env_file: x}]\n" + WEB},
            "compose.yaml:1:11: error: include[0] must have a 'path' [missing-key]",
            id="no-path",
        ),
        pytest.param(
            {"compose.yaml": "include: [{path: a.yaml, env_file: '${P:-no}.env'}]\n" + WEB, "a.yaml": WEB},
            (
                "compose.yaml:1:36: error: include[0].env_file names '${P:-no}.env' (after substitution), which does"
                " not exist [unreadable-file]"
            ),
            id="env-file",
        ),
    ],
)
def test_mistakes_in_an_include(project: Project, files: Mapping[str, str], expected: str) -> None:
    """A wrong include is reported at its place."""
    assert [expected] == project(files).read().messages


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        pytest.param(
            "services: {web: {image: x, volumes: [{type: bind, source: '${F}', target: /x}]}}",
            "services.web.volumes[0].source",
            "a path on this machine",
            id="bind",
        ),
        pytest.param(
            "services: {web: {image: x, env_file: '${F}'}}",
            "services.web.env_file",
            "a path on this machine",
            id="env-file",
        ),
        pytest.param(
            "services: {web: {image: x, env_file: [{path: '${F}'}]}}",
            "services.web.env_file[0].path",
            "a path on this machine",
            id="env-file-long",
        ),
        pytest.param(
            "services: {web: {image: x, label_file: '${F}'}}",
            "services.web.label_file",
            "a path on this machine",
            id="label-file",
        ),
        pytest.param(
            "services: {web: {image: x, secrets: [s]}}\nsecrets: {s: {file: '${F}'}}",
            "secrets.s.file",
            "a path on this machine",
            id="secret",
        ),
        pytest.param(
            "services: {web: {image: x, secrets: [s]}}\nsecrets: {s: {environment: '${F}'}}",
            "secrets.s.environment",
            "the name of a variable",
            id="variable-of-a-secret",
        ),
        pytest.param(
            "services: {web: {image: x, develop: {watch: [{action: rebuild, path: '${F}'}]}}}",
            "services.web.develop.watch[0].path",
            "a path on this machine",
            id="watch",
        ),
        pytest.param("include: ['${F}']\n" + WEB, "include[0]", "a path on this machine", id="include"),
        pytest.param(
            "include: [{path: a.yaml, env_file: ['${F}']}]\n" + WEB,
            "include[0].env_file[0]",
            "a path on this machine",
            id="env-file-of-an-include",
        ),
        pytest.param(
            "services: {web: {image: x, extends: {file: '${F}', service: a}}}",
            "services.web.extends.file",
            "a path on this machine",
            id="extends",
        ),
    ],
)
def test_an_empty_text_is_no_path(project: Project, text: str, key: str, expected: str) -> None:
    """A path from a variable that is not set is an error at its place, and does not count as absent."""
    reading = project({"compose.yaml": text, "a.yaml": "services: {}"}).read(full=True)

    (error,) = reading.loaded.report.at_least(Severity.ERROR)
    assert error.message == f"{key} must be {expected}, not '${{F}}' (after substitution)"
    assert error.hint == "F is not set or empty, so the value is empty"


def test_a_mistake_in_an_included_file(project: Project) -> None:
    """A mistake in an included file names that file."""
    folder = project(
        {
            "compose.yaml": "include: [inner/a.yaml]\n" + WEB,
            "inner/a.yaml": "services: {db: {image: x, public: perhaps}}",
        }
    )

    assert folder.read().messages == [
        "inner/a.yaml:1:35: error: services.db.public must be true or false, not 'perhaps' [invalid-value]"
    ]


def test_a_link_to_an_inactive_service(project: Project) -> None:
    """The fix has no key that 'links' lacks."""
    text = "services: {web: {image: x, links: [db]}, db: {image: y, profiles: [p]}}"
    (error,) = project(text).read(full=True).loaded.report.at_least(Severity.ERROR)

    assert error.hint == "turn it on with --profile p or COMPOSE_PROFILES=p"


# errors that follow from others ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "services: {web: {image: x, volumes: ['data:/d']}}\nvolumes: [data]",
            "volumes must be a mapping, not a list",
            id="volumes",
        ),
        pytest.param(
            "services: {web: {image: x, configs: [c]}}\nconfigs: [c]",
            "configs must be a mapping, not a list",
            id="configs",
        ),
        pytest.param(
            "services: {web: {image: x, secrets: [s]}}\nsecrets: [s]",
            "secrets must be a mapping, not a list",
            id="secrets",
        ),
        pytest.param(
            "services: {web: {image: x, networks: [n]}}\nnetworks: [n]",
            "networks must be a mapping, not a list",
            id="networks",
        ),
        pytest.param(
            "services: {web: {image: x, models: [m]}}\nmodels: [m]", "models must be a mapping, not a list", id="models"
        ),
        pytest.param(
            "services: {web: {image: x, volumes: 'd:/d', labels: {dev.platform.com/update: on-delete}}}",
            "services.web.volumes must be a list, not the text 'd:/d'",
            id="update-policy",
        ),
        pytest.param(
            "services: {web: {image: x, healthcheck: {test: a, x-okteto-readiness: false, x-okteto-liveness: maybe}}}",
            "services.web.healthcheck.x-okteto-liveness must be true or false, not 'maybe'",
            id="probes",
        ),
        pytest.param(
            "services: {web: {image: x, env_file: [{path: none.env, required: maybe}]}}",
            "services.web.env_file[0].required must be true or false, not 'maybe'",
            id="env-file",
        ),
        pytest.param(
            "services: {web: {image: 'x:${TAG:?}'}}", "the variable 'TAG' must be set", id="variable-of-a-text"
        ),
        pytest.param(
            "services: {web: {image: x, ports: [{target: 80, protocol: '${P:?}'}]}}",
            "the variable 'P' must be set",
            id="variable-of-a-choice",
        ),
    ],
)
def test_an_error_has_no_others_behind_it(project: Project, text: str, expected: str) -> None:
    """A section that could not be read is one error, and its users have none."""
    errors = project(text).read(full=True).loaded.report.at_least(Severity.ERROR)

    assert [error.message for error in errors] == [expected]


# embedding ------------------------------------------------------------------------------------------------------------


def test_load_definition(project: Project) -> None:
    """A program that embeds the reader gets a sound project or an exception with the report."""
    assert load_definition(project(WEB).request()).project.services["web"].image == "nginx"
    with pytest.raises(InvalidDefinition) as caught:
        load_definition(project("services: {web: {}}").request())

    assert caught.value.report.errors == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("./a", "/base/a"),
        ("../a", "/a"),
        ("a/./b/..", "/base/a"),
        ("/etc/x", "/etc/x"),
        ("~/a", "/home/me/a"),
        ("~", "/home/me"),
        ("~other/a", "/base/~other/a"),
    ],
)
def test_host_path(source: str, expected: str) -> None:
    """A host path is relative to the definition's folder, or to the home of who runs the tool."""
    text = f"services: {{web: {{build: ., volumes: [{{type: bind, source: '{source}', target: /x}}]}}}}"
    folder = Folder(Path("/base"), {"HOME": "/home/me"})

    loaded = folder.read("-", standard_input=text.encode()).loaded

    assert expected == loaded.project.services["web"].mounts[0].source


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("0755", 0o755),
        ("0o755", 0o755),
        ("'755'", 0o755),
        ("'$MODE'", 0o755),
        ("$MODE", 0o755),
        ("493", 0o755),
        ("1023", 0o1777),
    ],
)
def test_modes(written: str, mode: int, project: Project) -> None:
    """A mode is octal, but a plain number without a leading zero is decimal, as Compose reads it."""
    text = f"""
services:
  web:
    image: nginx
    volumes: [{{type: tmpfs, target: /a, tmpfs: {{mode: {written}}}}}]
    configs: [{{source: a, mode: {written}}}]
configs: {{a: {{content: x}}}}
"""
    reading = project(text, MODE="755").read(full=True)
    web = reading.loaded.project.services["web"]

    assert web.mounts[0].folder is not None
    assert web.mounts[0].folder.mode == mode
    # A file has no special bits: 1023 is an error there.
    assert web.file_mounts[0].mode == (mode if mode <= 0o777 else 0o444)
