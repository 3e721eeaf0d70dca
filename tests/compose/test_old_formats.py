"""Keys of Swarm, and paths of Windows: each message says what to write instead."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.test_fixes import messages_and_hints, service

DRIVE = (
    "to keep data: 'data:/d', with 'data:' under the top-level 'volumes';"
    " to ship files: move them into the project, './data:/d'"
)
LINUX = "pods run Linux containers: mount it at a path such as /data"


_FULL_MODE = "use full mode (--full), which honors it"
_MOUNT = "mount its file under 'volumes', in a service without 'build'"


@pytest.mark.parametrize(
    ("volume", "fix"),
    [
        (r"C:\data:/d", DRIVE),
        ("c:/shop/data:/d:ro", DRIVE),
        ("//c/Users/ann/data:/d", DRIVE),
        (r"\\server\share\data:/d", DRIVE),
        (r".\conf:/etc/x", "write './conf:/etc/x'"),
        (r"..\conf\a:/etc/x:ro", "write '../conf/a:/etc/x'"),
        (r"conf\a:/etc/x", "write './conf/a:/etc/x'"),
        (r"./x:C:\app", LINUX),
        (r"data:C:\app:ro", LINUX),
        (r"C:\app", LINUX),
        ("C:/x:C:/y", LINUX),
        (r"\\.\pipe\docker_engine:\\.\pipe\docker_engine", "there is no Docker engine in a cluster"),
    ],
)
def test_a_volume_of_windows(project: Project, volume: str, fix: str) -> None:
    """A drive is no volume's name, and a backslash parts folders."""
    error = f"error: services.web.volumes[0] has a path of Windows: '{volume}'"
    assert messages_and_hints(project, service(f"volumes: ['{volume}']")) == [(error, fix)]


def test_a_letter_is_a_volume_s_name_where_it_is_declared(project: Project) -> None:
    """As in Compose: `c:/data` mounts volume `c`, and where there is none, the message thinks of the drive."""
    text = service("volumes: ['c:/data']")
    assert messages_and_hints(project, f"{text}\nvolumes: {{c: }}") == []
    ((_, hint),) = messages_and_hints(project, text)
    assert hint == (
        "declare the volume under the top-level 'volumes', or write './…' for a host path;"
        " a drive of Windows is on no other machine"
    )


@pytest.mark.parametrize(
    ("keys", "key", "text", "fix"),
    [
        (r"env_file: .\a.env", "env_file", r".\a.env", "write './a.env'"),
        (r"env_file: [{path: 'D:\a.env'}]", "env_file[0].path", r"D:\a.env", "move it into the project"),
        (r"build: app\web", "build", r"app\web", "write './app/web'"),
        (
            r"volumes: [{type: bind, source: 'D:\x', target: /d}]",
            "volumes[0].source",
            r"D:\x",
            "move it into the project",
        ),
    ],
)
def test_other_paths_of_windows(project: Project, keys: str, key: str, text: str, fix: str) -> None:
    """Env files, build contexts and the long form of a volume."""
    assert messages_and_hints(project, service(keys))[0] == (
        f"error: services.web.{key} has a path of Windows: '{text}'",
        fix,
    )


@pytest.mark.parametrize("build", [r"app\web", r"{context: .\app\web, dockerfile: Dockerfile}"])
def test_a_build_context_of_windows(project: Project, build: str) -> None:
    """It is the only error: the Dockerfile is looked for in the folder that is meant."""
    folder = project({"compose.yaml": service(f"build: {build}"), "app/web/Dockerfile": ""})
    printed = folder.run("check").stdout
    assert (printed.count("can't run:"), printed.count("[windows-path]")) == (1, 1)


def test_a_path_of_windows_from_a_variable(project: Project) -> None:
    """The fix has nothing of the variable's value."""
    fix = "write '/' between folders, and a path in the project"
    assert messages_and_hints(project, service("volumes: ['${PLACE}:/d']"), PLACE=r"C:\secret") == [
        ("error: services.web.volumes[0] has a path of Windows: '${PLACE}:/d' (after substitution)", fix)
    ]


@pytest.mark.parametrize(
    "socket", ["//var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"]
)
def test_the_socket_of_an_engine(socket: str, project: Project) -> None:
    """Two slashes at the start, as shells of Windows write them, are one."""
    (found,) = messages_and_hints(project, service(f"volumes: ['{socket}:/var/run/docker.sock']"))
    assert found[1] == "there is no Docker socket in a cluster; in place of a proxy such as Traefik, use 'endpoints'"


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        ("deploy: {mode: global}", "set deploy.replicas, or write a DaemonSet of your own"),
        ("deploy: {mode: replicated-job}", "set restart: 'no', which makes the service a Job"),
        (
            "deploy: {placement: {constraints: [node.labels.disk==ssd, node.platform.arch == x86_64, node.role != a]}}",
            "write x-node-selector: {disk: ssd, kubernetes.io/arch: amd64}",
        ),
        (
            "deploy: {placement: {constraints: [node.role == manager]}}",
            "x-node-selector chooses nodes by their labels; leave it out for any node",
        ),
        (
            "deploy: {placement: {constraints: ['node.labels.disk == ${DISK-}']}}",
            "x-node-selector chooses nodes by their labels; leave it out for any node",
        ),
        (
            "deploy: {placement: {preferences: [{spread: node.labels.zone}]}}",
            "x-node-selector chooses nodes by their labels; leave it out for any node",
        ),
        (
            "deploy: {update_config: {order: start-first}}",
            "the label dev.platform.com/update sets the update policy: rolling, recreate or on-delete",
        ),
        ("deploy: {rollback_config: {parallelism: 1}}", "to roll back, deploy the earlier definition"),
        (
            "configs: [site]",
            f"{_MOUNT}: './FILE:/site:ro'; or {_FULL_MODE}",
        ),
        (
            "configs: [{source: site, target: /etc/site}]",
            f"{_MOUNT}: './FILE:/etc/site:ro'; or {_FULL_MODE}",
        ),
        (
            "secrets: [token]",
            f"{_MOUNT}: './FILE:/run/secrets/token:ro'; or {_FULL_MODE}",
        ),
    ],
)
def test_a_key_of_swarm(project: Project, keys: str, fix: str) -> None:
    """The warning says what has its effect here, before it names full mode."""
    (hint,) = [hint for _, hint in messages_and_hints(project, service(keys), DISK="ssd")]

    assert hint.removesuffix(_OR_FULL_MODE) == fix.removesuffix(_OR_FULL_MODE)


def test_the_default_mode_needs_nothing(project: Project) -> None:
    assert messages_and_hints(project, service("deploy: {mode: replicated}")) == []


_OR_FULL_MODE = "; or use full mode (--full), which honors it"
_HOSTNAME = "the program reads the name of its pod from HOSTNAME; with volumes it ends in a number, from 0"
_ALONE = "write the path in the container alone: each pod gets a volume of its own"


@pytest.mark.parametrize(
    ("keys", "key", "template", "fix"),
    [
        ("environment: {A: 'n-{{.Task.Slot}}'}", "environment.A", ".Task.Slot", _HOSTNAME),
        ("environment: ['A={{ .Service.Name }}']", "environment[0]", ".Service.Name", "write the value"),
        (
            "environment: {A: '{{index .Service.Labels \"a.b\"}}'}",
            "environment.A",
            ".Service.Labels",
            "write the value",
        ),
        (
            "environment: {A: '{{.Node.Hostname}}'}",
            "environment.A",
            ".Node.Hostname",
            "the name of the node is not known in a pod; that of the pod is in HOSTNAME",
        ),
    ],
)
def test_a_template_of_swarm_in_a_variable(project: Project, keys: str, key: str, template: str, fix: str) -> None:
    """The warning has the template, and nothing else of the value."""
    message = f"has a template that only Docker Swarm fills in, {{{{{template}}}}}: the text stays as it is"
    assert messages_and_hints(project, service(keys)) == [(f"warning: services.web.{key} {message}", fix)]


@pytest.mark.parametrize(
    ("keys", "key", "fix"),
    [
        ("volumes: ['d-{{.Task.Slot}}:/d']", "volumes[0]", _ALONE),
        ("volumes: ['/mnt/{{.Node.Hostname}}:/d']", "volumes[0]", _ALONE),
        (
            "volumes: [{type: volume, source: 'd-{{.Task.Slot}}', target: /d}]",
            "volumes[0].source",
            _ALONE,
        ),
        (
            "volumes: [{type: bind, source: ./d, target: '/{{.Service.Name}}'}]",
            "volumes[0].target",
            "write the value",
        ),
    ],
)
def test_a_template_of_swarm_in_a_mount(project: Project, keys: str, key: str, fix: str) -> None:
    """It is an error, as pods that have volumes of their own would share one."""
    (found,) = messages_and_hints(project, service(keys))
    assert found[0].startswith(f"error: services.web.{key} has a template that only Docker Swarm fills in, {{{{.")
    assert found[1] == fix


_IN_FULL_MODE = "or use full mode (--full), which honors it"


def test_a_template_of_swarm_as_hostname(project: Project) -> None:
    assert messages_and_hints(project, service("hostname: 'web-{{.Task.Slot}}'")) == [
        (
            "warning: services.web.hostname is not supported and has no effect",
            f"leave it out: {_HOSTNAME}; {_IN_FULL_MODE}",
        )
    ]


def test_templates_of_other_programs(project: Project) -> None:
    """A text in two braces may be the program's own."""
    assert messages_and_hints(project, service("environment: {A: '{{ .Name }} {{.Task.Slots}} {{.Values.x}}'}")) == []
