"""Messages that people meet first: each says what was found, and a fix that works as it stands."""

from __future__ import annotations

import pytest

from composeplat.diagnostics import Severity
from tests.conftest import Project


def messages_and_hints(project: Project, text: str, **shell: str) -> list[tuple[str, str]]:
    """The errors and warnings of a definition that has an empty folder beside it, with their hints."""
    folder = project({"compose.yaml": text}, **shell)
    (folder.path / "empty").mkdir(exist_ok=True)
    found = folder.read().loaded.report.at_least(Severity.WARNING)
    return [(str(diagnostic).partition(": ")[2].rpartition(" [")[0], diagnostic.hint) for diagnostic in found]


def service(keys: str) -> str:
    return f"services: {{web: {{image: nginx, {keys}}}}}"


@pytest.mark.parametrize(
    ("keys", "message", "hint"),
    [
        pytest.param(
            "environment: [Asia/Tokyo]",
            "error: services.web.environment[0] must have a name of letters, digits, '_', '-' and '.', not beginning"
            " with a digit, not 'Asia/Tokyo'",
            "write NAME=value, or leave it out",
            id="no name",
        ),
        pytest.param(
            "environment: ['A = 1']",
            "error: services.web.environment[0] must have a name of letters, digits, '_', '-' and '.', not beginning"
            " with a digit, not 'A '",
            "leave out the spaces around '='",
            id="a space before the sign",
        ),
        pytest.param(
            "volumes: ['./pgdata:/var/lib/postgresql/data']",
            "error: services.web.volumes[0] mounts a host path that does not exist:"
            " './pgdata:/var/lib/postgresql/data'",
            "to keep data: 'pgdata:/var/lib/postgresql/data', with 'pgdata:' under the top-level 'volumes'; to ship"
            " files: create the folder, they are copied, read-only",
            id="a missing folder",
        ),
        pytest.param(
            "volumes: ['./nginx.conf:/etc/nginx/nginx.conf']",
            "error: services.web.volumes[0] mounts a host path that does not exist:"
            " './nginx.conf:/etc/nginx/nginx.conf'",
            "create the file: it is copied, read-only",
            id="a missing file",
        ),
        pytest.param(
            "volumes: ['${PLACE}:/data']",
            "error: services.web.volumes[0] mounts a host path that does not exist: '${PLACE}:/data' (after"
            " substitution)",
            "to keep data: 'data:/data', with 'data:' under the top-level 'volumes'; to ship files:"
            " create the folder, they are copied, read-only",
            id="a missing path from a variable",
        ),
        pytest.param(
            "volumes: ['./src:/srv/${PLACE}']",
            "error: services.web.volumes[0] mounts a host path that does not exist: './src:/srv/${PLACE}' (after"
            " substitution)",
            "to keep data: 'data:/path/in/the/container', with 'data:' under the top-level 'volumes'; to ship files:"
            " create the folder, they are copied, read-only",
            id="a missing path that is mounted where a variable says",
        ),
        pytest.param(
            "volumes: [{type: bind, source: './${PLACE}', target: /data}]",
            "error: services.web.volumes[0] mounts a host path that does not exist: './${PLACE}' (after substitution)",
            "to keep data: 'data:/data', with 'data:' under the top-level 'volumes'; to ship files: create the folder,"
            " they are copied, read-only",
            id="the same in the long form",
        ),
        pytest.param(
            "volumes: ['./empty:/var/lib/app']",
            "warning: services.web.volumes[0] mounts an empty folder of this machine: what is written there is lost"
            " with the pod",
            "to keep it, use a named volume: 'empty:/var/lib/app', with 'empty:' under the top-level 'volumes'",
            id="an empty folder",
        ),
        pytest.param(
            "volumes: ['./empty:/var/lib/mysql']",
            "warning: services.web.volumes[0] mounts a folder of this machine where MySQL or MariaDB keeps its data:"
            " what is written there is lost with the pod",
            "to keep it, use a named volume: 'empty:/var/lib/mysql', with 'empty:' under the top-level 'volumes'",
            id="a folder with the data of a program",
        ),
        pytest.param(
            "volumes: ['/var/lib/mysql:/var/lib/mysql']",
            "error: services.web.volumes[0] mounts a system path of this machine: '/var/lib/mysql:/var/lib/mysql'",
            "to keep the data of MySQL or MariaDB: 'mysql:/var/lib/mysql', with 'mysql:' under the top-level"
            " 'volumes'; otherwise a cluster has no path of this machine: use a named volume, or a folder of the"
            " project",
            id="data at a system path",
        ),
        pytest.param(
            "volumes: ['/var/run/docker.sock:/var/run/docker.sock:ro']",
            "error: services.web.volumes[0] mounts a system path of this machine:"
            " '/var/run/docker.sock:/var/run/docker.sock:ro'",
            "there is no Docker socket in a cluster; in place of a proxy such as Traefik, use 'endpoints'",
            id="the socket of Docker",
        ),
        pytest.param(
            "volumes: ['/proc:/host/proc']",
            "error: services.web.volumes[0] mounts a system path of this machine: '/proc:/host/proc'",
            "a cluster has no path of this machine: use a named volume, or a folder of the project",
            id="another system path",
        ),
        pytest.param(
            "volumes: ['/dev/shm:/dev/shm']",
            "error: services.web.volumes[0] mounts a system path of this machine: '/dev/shm:/dev/shm'",
            "for the pod's own memory, mount {type: tmpfs, target: /dev/shm}",
            id="shared memory",
        ),
        pytest.param(
            "labels: {dev.platform.com/update: on-delete}",
            "error: services.web.labels.dev.platform.com/update must be 'rolling' or 'recreate' on a Deployment, not"
            " 'on-delete'",
            "a service without a named or anonymous volume is a Deployment; 'recreate' ends its pods first",
            id="an update policy of StatefulSets",
        ),
        pytest.param(
            "volumes: [/data], labels: {dev.platform.com/update: recreate}",
            "error: services.web.labels.dev.platform.com/update must be 'rolling' or 'on-delete' on a StatefulSet, not"
            " 'recreate'",
            "a service with a named or anonymous volume is a StatefulSet; 'on-delete' waits for the pod to be deleted",
            id="an update policy of Deployments",
        ),
        pytest.param(
            "labels: {dev.platform.com/update: blue}",
            "error: services.web.labels.dev.platform.com/update must be 'rolling' or 'recreate' on a Deployment, not"
            " 'blue'",
            "",
            id="no update policy",
        ),
    ],
)
def test_a_fix(project: Project, keys: str, message: str, hint: str) -> None:
    """The message says what was found, and the hint what to write."""
    assert messages_and_hints(project, service(keys), PLACE="./secret") == [(message, hint)]


@pytest.mark.parametrize(
    ("device", "hint"),
    [
        ("nvidia.com/gpu=all", "write gpus: [{driver: nvidia.com/gpu, count: 1}]"),
        ("/dev/kvm", "name the resource: x-devices: {/dev/…: example.com/device}"),
        ("$PLACE=all", "name the resource: x-devices: {/dev/…: example.com/device}"),
    ],
)
def test_a_device_without_a_resource(project: Project, device: str, hint: str) -> None:
    """A name of CDI has the resource in it; the value of a variable is not shown."""
    text = f"{service(f'devices: [{device}]')}\nx-platform: {{full: true}}\n"

    assert [found for _, found in messages_and_hints(project, text, PLACE="example.com/hidden")] == [hint]


@pytest.mark.parametrize(
    ("image", "shell", "hint"),
    [
        pytest.param("q:${TAG}", {}, "TAG is not set or empty, so the tag is empty", id="a tag that is not set"),
        pytest.param("q:${TAG}", {"TAG": ""}, "TAG is not set or empty, so the tag is empty", id="an empty tag"),
        pytest.param("${NAME}", {}, "NAME is not set or empty, so the value is empty", id="a whole image"),
        pytest.param("${NAME-}", {"NAME": ""}, "NAME is not set or empty, so the value is empty", id="set to nothing"),
        pytest.param("q:$A.$B.$A", {}, "A, B are not set or empty, so the value is empty", id="several"),
        pytest.param("q:${TAG}", {"TAG": "1 2"}, "", id="a tag that is none"),
        pytest.param("q:${TAG:-}", {}, "TAG is not set or empty, so the tag is empty", id="a default that is empty"),
        pytest.param("q:${TAG:-a b}", {}, "", id="a default that is wrong"),
    ],
)
def test_an_unset_variable_is_named_where_it_makes_a_value_wrong(
    project: Project, image: str, shell: dict[str, str], hint: str
) -> None:
    """That an image can't be read is reported with the variable that left a hole in it."""
    text = f"services: {{web: {{image: '{image}'}}}}"
    want = "must be an image such as nginx, nginx:1.27 or registry.example.com/team/app:1.0"
    errors = [
        messages_and_hint
        for messages_and_hint in messages_and_hints(project, text, **shell)
        if messages_and_hint[0].startswith("error")
    ]

    assert errors == [(f"error: services.web.image {want}, not '{image}' (after substitution)", hint)]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        pytest.param(
            "version: '1'\nweb:\n  image: nginx\ndb:\n  build: .\nnotes: {}\n",
            "'web', 'db' look like services: put them under 'services:', indented; the file has Compose's first format",
            id="two",
        ),
        pytest.param(
            "\n".join(f"s{number}: {{image: nginx}}" for number in range(9)),
            "'s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7' … look like services: put them under 'services:', indented;"
            " the file has Compose's first format",
            id="nine",
        ),
        pytest.param(
            "web: {image: nginx}",
            "'web' looks like a service: put it under 'services:', indented; the file has Compose's first format",
            id="one",
        ),
        pytest.param("volumes: {data: {}}", "add a service such as  web: {image: nginx}", id="none"),
        pytest.param("service: {web: {image: nginx}}", "did you mean 'services'?", id="a typo"),
    ],
)
def test_services_at_the_top_level(project: Project, text: str, hint: str) -> None:
    """A file of Compose's first version has its services there: they are named, with the place for them."""
    assert messages_and_hints(project, text) == [("error: the definition has no services", hint)]


@pytest.mark.parametrize("services", ["", "services:\n", "services: {}\n"])
def test_services_at_the_top_level_have_one_message(project: Project, services: str) -> None:
    """The error names them all: none is an unknown key as well, as a typo beside them is."""
    read = project({"compose.yaml": f"{services}web: {{image: nginx}}\ndb: {{build: .}}\nvolums: {{}}\n"}).read()

    assert [(found.code, found.path) for found in read.loaded.report.at_least(Severity.NOTE)] == [
        ("no-services", ("services",)),
        ("unknown-key", ("volums",)),
    ]


@pytest.mark.parametrize(
    ("service", "hint"),
    [
        pytest.param("imge: nginx", "did you mean 'image'?", id="image"),
        pytest.param("ports: [80], biuld: .", "did you mean 'build'?", id="build"),
        pytest.param("ports: [80], colour: red", "set one of them", id="another key"),
    ],
)
def test_a_typo_in_place_of_an_image(project: Project, service: str, hint: str) -> None:
    """A key that is nearly the missing one is probably meant."""
    message = "error: services.web has neither 'image' nor 'build'"

    assert messages_and_hints(project, f"services: {{web: {{{service}}}}}") == [(message, hint)]


def test_keys_that_are_not_indented(project: Project) -> None:
    """Keys of a service that are as far left as its name are services to YAML: the hint says what to do."""
    hint = "is a key of a service: indent it further than the service's name"

    assert messages_and_hints(project, "services:\n  web:\n  image: nginx\n  ports:\n  - 80\n") == [
        ("error: services.web must be a mapping, not nothing", ""),
        ("error: services.image must be a mapping, not the text 'nginx'", f"'image' {hint}"),
        ("error: services.ports must be a mapping, not a list", f"'ports' {hint}"),
    ]


@pytest.mark.parametrize(
    ("service", "hint"),
    [("image:nginx", "write a space after the ':'"), ("nginx:1.27", "")],
)
def test_no_space_after_a_colon(project: Project, service: str, hint: str) -> None:
    """YAML reads a text there, where a mapping is expected."""
    message = f"error: services.web must be a mapping, not the text '{service}'"

    assert messages_and_hints(project, f"services:\n  web:\n    {service}\n") == [(message, hint)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param('services:\n  web:\n    image: "nginx\n    ports: [80]\n', (3, 12), id="double"),
        pytest.param("services:\n  web:\n    command: [sh, -c, 'echo]\n    image: nginx", (3, 23), id="single"),
    ],
)
def test_a_quote_that_is_never_closed(project: Project, text: str, place: tuple[int, int]) -> None:
    """The place is where it was opened, not the end of the file where the reader noticed."""
    (error,) = project(text).read().loaded.report.sorted()

    assert place == (error.span.line, error.span.column)
    assert error.message == "not YAML: a quote opened on line 3 is never closed"
    assert error.hint == "close it on its line, or put the whole value in the other kind of quotes"


def test_a_text_where_a_list_is_wanted(project: Project) -> None:
    """What was meant can be written as it stands, unless a variable made it."""
    message = "error: services.web.ports must be a list, not the text"

    assert messages_and_hints(project, service("ports: '80:80'")) == [
        (f"{message} '80:80'", "write a list: ports: ['80:80']")
    ]
    assert messages_and_hints(project, service("ports: '${P}'"), P="80") == [
        (f"{message} '${{P}}' (after substitution)", "")
    ]
    assert messages_and_hints(project, service("depends_on: db")) == [
        (
            "error: services.web.depends_on must be a list or a mapping, not the text 'db'",
            "write a list: depends_on: ['db']",
        )
    ]
    lines = "services:\n  web:\n    image: a\n    environment:\n      A=1\n      B=2 3\n"
    hints = [messages_and_hints(project, text)[0][1] for text in (lines, lines.replace(" 3", ""))]
    assert hints == [f"write a list: environment: [{listed}]" for listed in ("'A=1 B=2 3'", "'A=1', 'B=2'")]
    assert messages_and_hints(project, "include: shared.yaml\n" + service("scale: 1")) == [
        ("error: include must be a list of files, not the text 'shared.yaml'", "write a list: include: ['shared.yaml']")
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        pytest.param("compse.yml", "there are: 'compose.yaml', 'prod.yml'", id="a slip"),
        pytest.param("x.txt", "there is: 'notes.txt'", id="another kind"),
        pytest.param("nowhere/x.yml", "", id="a folder that is not there"),
        pytest.param("x.toml", "", id="nothing of its kind"),
    ],
)
def test_a_file_that_is_not_there(project: Project, name: str, hint: str) -> None:
    """A file named with -f that does not exist is reported with those that do."""
    folder = project({"compose.yaml": service("scale: 1"), "prod.yml": "", "notes.txt": ""})
    (error,) = (
        diagnostic for diagnostic in folder.read(name).loaded.report.sorted() if diagnostic.code == "unreadable-file"
    )

    assert (error.message, error.hint) == (f"'{name}' does not exist", hint)


def test_a_tab_that_indents(project: Project) -> None:
    """YAML's own words for it say nothing of tabs."""
    (error,) = project("services:\n\tweb: {image: nginx}\n").read().loaded.report.sorted()

    assert (error.message, error.hint) == ("not YAML: the line is indented with a tab", "indent with spaces")


@pytest.mark.parametrize(
    "dependency", ["[redis_cache]", "{redis_cache: {condition: service_started, required: false}}"]
)
def test_a_dependency_that_is_nearly_a_service(project: Project, dependency: str) -> None:
    """Of many services, the first eight are listed, so the one that is meant is named before."""
    services = "\n".join(f"  s{number}: {{image: nginx}}" for number in range(9))
    text = f"services:\n{services}\n  redis-cache: {{image: redis}}\n  a: {{image: a, depends_on: {dependency}}}\n"
    ((_, hint),) = messages_and_hints(project, text)

    assert "did you mean 'redis-cache'? services are: s0, s1, s2, s3, s4, s5, s6, s7 …" in hint


def test_the_services_that_a_route_could_lead_to(project: Project) -> None:
    """The first eight services are named: a definition may have hundreds."""
    services = "\n".join(f"  s{number}: {{image: nginx}}" for number in range(9))
    (found,) = messages_and_hints(project, f"services:\n{services}\nendpoints: [{{path: /, service: x, port: 80}}]\n")

    assert found[1] == "services are: s0, s1, s2, s3, s4, s5, s6, s7"


@pytest.mark.parametrize("path", ["/a/./b", "/a/../b", "/a//b", "/a%2Fb"])
def test_a_route_path_that_proxies_read_otherwise(project: Project, path: str) -> None:
    """A path that one proxy shortens and another does not is refused."""
    services = "services: {web: {image: nginx, ports: ['80']}}"
    (found,) = messages_and_hints(project, f"{services}\nendpoints: [{{path: '{path}', service: web, port: 80}}]\n")

    assert "must be a path of an address, without '//', '/./', '/../', '%2F', '?' or spaces" in found[0]
