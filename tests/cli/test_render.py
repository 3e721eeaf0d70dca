"""``platform render``: every option, the forms of output, exit statuses, and what never happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from composeplat.render.manifests import FILE_MARK
from tests.conftest import Folder, Project
from tests.in_process import run_here

SHOP = """\
services:
  web: {image: nginx, ports: ['8080:80']}
  app: {build: ./app}
"""


def objects(folder: Folder, *args: str, **shell: str) -> dict[str, dict[str, Any]]:
    """The objects that a run in this process prints, by kind and name."""
    outcome = run_here("render", *args, folder=folder.path, **shell).assert_success()
    return {f"{o['kind']}/{o['metadata']['name']}": o for o in yaml.safe_load_all(outcome.stdout)}


# output ---------------------------------------------------------------------------------------------------------------


def test_yaml(project: Project) -> None:
    """The objects are printed as YAML documents, and nothing is reported."""
    outcome = project("services: {web: {image: nginx}}").run("render").assert_success()

    assert [o["kind"] for o in yaml.safe_load_all(outcome.stdout)] == ["Service", "Deployment"]
    assert outcome.stderr == ""


def test_json(project: Project) -> None:
    """With --json they are one JSON List."""
    outcome = project("services: {web: {image: nginx}}").run("render", "--json").assert_success()

    listed = json.loads(outcome.stdout)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert [o["kind"] for o in listed["items"]] == ["Service", "Deployment"]


def test_same_bytes(project: Project) -> None:
    """The same input gives the same bytes, whatever the hashes of this process's texts are."""
    folder = project(
        {
            "compose.yaml": """\
services:
  a: {image: x, environment: {B: b, A: a}, volumes: ['data:/d', './conf:/conf'], labels: {z: '1', y: '2'}}
  b: {image: x, volumes: ['data:/d', 'more:/m'], cap_add: [B, A], depends_on: [c, a]}
  c: {image: x, volumes: ['more:/m'], ports: ['80:80', '81:81']}
volumes: {more: {}, data: {}}
""",
            "conf/b": "1",
            "conf/a": "2",
        }
    )

    outcomes = [folder.run("render", "--domain", "example.com", PYTHONHASHSEED=seed) for seed in ("1", "2", "3")]

    assert len({outcome.assert_success().stdout for outcome in outcomes}) == 1


def test_folder(project: Project) -> None:
    """With -o, each group is a file; stale files of ours go, and others' stay."""
    folder = project(SHOP)
    out = folder.path / "out"
    out.mkdir()
    (out / "service-gone.yaml").write_text(f"{FILE_MARK}\n---\n")
    (out / "service-mine.yaml").write_text("# mine\n")
    (out / "README.md").write_text(f"{FILE_MARK}\n")

    outcome = folder.run("render", "--domain", "example.com", "-o", "out").assert_success()

    assert outcome.stdout == ""
    assert outcome.stderr == "wrote 3 files into out\n"
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md",
        "endpoint-web.yaml",
        "service-app.yaml",
        "service-mine.yaml",
        "service-web.yaml",
    ]
    assert (out / "service-mine.yaml").read_text() == "# mine\n"
    assert (out / "service-web.yaml").read_text().startswith(f"{FILE_MARK}\n---\napiVersion: v1\n")


def test_some_services(project: Project) -> None:
    """They come with what they depend on, and in a folder the files of the others stay."""
    folder = project("services: {db: {image: a}, web: {image: b, depends_on: [db]}, other: {image: c}}")
    printed = folder.run("render", "web").assert_success().stdout
    names = {document["metadata"]["name"] for document in yaml.safe_load_all(printed)}
    for args in ((), ("other",)):
        folder.run("render", *args, "-o", "out").assert_success()

    assert names == {"db", "web"}
    found = {path.name for path in (folder.path / "out").iterdir()}
    assert found == {"service-db.yaml", "service-web.yaml", "service-other.yaml"}
    unknown = folder.run("render", "wbe")
    assert (unknown.status, unknown.stdout) == (1, "")
    assert "wbe" in unknown.stderr


def test_the_folder_has_the_printed_objects(project: Project) -> None:
    """The files hold the same objects as the output."""
    folder = project(SHOP)
    printed = folder.run("render", "--domain", "example.com").assert_success().stdout

    folder.run("render", "--domain", "example.com", "--output", "new/out").assert_success()

    names = ("service-web", "service-app", "endpoint-web")
    written = [(folder.path / "new" / "out" / f"{name}.yaml").read_text() for name in names]
    assert "".join(text.removeprefix(f"{FILE_MARK}\n") for text in written) == printed


def test_folder_that_can_not_be_written(project: Project) -> None:
    """A file in the folder's place is reported, and ends with status 1."""
    folder = project({"compose.yaml": SHOP, "out": "a file"})

    outcome = folder.run("render", "-o", "out")

    assert outcome.status == 1
    assert outcome.stdout == ""
    assert outcome.stderr.splitlines()[-2:] == [
        "error: can't write into 'out': file exists",
        "  hint: choose another folder with -o",
    ]


def test_nothing_is_written_of_an_invalid_definition(project: Project) -> None:
    """An invalid definition leaves an earlier output as it is."""
    folder = project(SHOP)
    folder.run("render", "-o", "out").assert_success()
    before = {path.name: path.read_bytes() for path in (folder.path / "out").iterdir()}
    folder.write({"compose.yaml": "services: {other: {image: nginx, scale: two}}"})

    folder.run("render", "-o", "out").assert_invalid()

    assert before == {path.name: path.read_bytes() for path in (folder.path / "out").iterdir()}


# options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--file", "-f"])
def test_file(project: Project, option: str) -> None:
    """Files can be named, and lie over one another."""
    folder = project({"a.yaml": "services: {web: {image: a}}", "b.yaml": "services: {web: {image: b}}"})

    found = objects(folder, option, "a.yaml", option, "b.yaml")

    assert found["Deployment/web"]["spec"]["template"]["spec"]["containers"][0]["image"] == "b"


def test_standard_input(project: Project) -> None:
    """A dash is standard input."""
    outcome = project({}).run("render", "-f", "-", stdin=b"services: {web: {image: nginx}}").assert_success()

    assert "name: web\n" in outcome.stdout


def test_env_file(project: Project) -> None:
    """Variables can be read from named files."""
    folder = project({"compose.yaml": "services: {web: {image: 'x:${TAG}'}}", "a.env": "TAG=1\n", "b.env": "TAG=2\n"})

    found = objects(folder, "--env-file", "a.env", "--env-file", "b.env")

    assert found["Deployment/web"]["spec"]["template"]["spec"]["containers"][0]["image"] == "x:2"


def test_name(project: Project) -> None:
    """The environment can be named."""
    found = objects(project(SHOP), "--name", "stage")

    assert found["Deployment/web"]["metadata"]["labels"]["app.kubernetes.io/instance"] == "stage"


@pytest.mark.parametrize(
    ("args", "shell", "expected"),
    [
        (("--namespace", "team"), {}, "team"),
        (("-n", "team"), {}, "team"),
        (("-n", "team"), {"PLATFORM_NAMESPACE": "other"}, "team"),
        ((), {"PLATFORM_NAMESPACE": "other"}, "other"),
        ((), {}, "default"),
    ],
)
def test_namespace(project: Project, args: tuple[str, ...], shell: dict[str, str], expected: str) -> None:
    """The namespace is the option's or the variable's."""
    found = objects(project(SHOP), *args, **shell)

    assert {o["metadata"]["namespace"] for o in found.values()} == {expected}


def test_namespace_of_the_context(project: Project) -> None:
    """Without either it is the one of the kubeconfig's current context."""
    config = "current-context: a\ncontexts: [{name: a, context: {namespace: team}}]\n"
    folder = project({"compose.yaml": SHOP, "config": config})

    found = objects(folder, KUBECONFIG=str(folder.path / "config"))

    assert {o["metadata"]["namespace"] for o in found.values()} == {"team"}


def test_domain(project: Project) -> None:
    """Endpoints get their hosts under the domain."""
    for args, shell in ((("--domain", "Example.COM."), {}), ((), {"PLATFORM_DOMAIN": "example.com"})):
        found = objects(project(SHOP), *args, **shell)

        assert found["Ingress/web"]["spec"]["rules"][0]["host"] == "web-default.example.com"


def test_ingress_options(project: Project) -> None:
    """The class, and a secret or an issuer for the certificate, go into the Ingresses."""
    args = ("--domain", "example.com", "--ingress-class", "fast")

    by_secret = objects(project(SHOP), *args, "--tls-secret", "wildcard")["Ingress/web"]
    by_issuer = objects(project(SHOP), *args, "--tls-issuer", "public")["Ingress/web"]

    hosts = ["web-default.example.com"]
    assert by_secret["spec"]["ingressClassName"] == "fast"
    assert by_secret["spec"]["tls"] == [{"hosts": hosts, "secretName": "wildcard"}]
    assert by_issuer["spec"]["tls"] == [{"hosts": hosts, "secretName": "web-tls"}]
    assert by_issuer["metadata"]["annotations"] == {"cert-manager.io/cluster-issuer": "public"}


@pytest.mark.parametrize(
    ("gateway", "expected"),
    [
        ("edge", {"name": "edge"}),
        ("infra/edge", {"name": "edge", "namespace": "infra"}),
        ("edge:https", {"name": "edge", "sectionName": "https"}),
        ("infra/edge:https", {"name": "edge", "namespace": "infra", "sectionName": "https"}),
    ],
)
def test_gateway(project: Project, gateway: str, expected: dict[str, str]) -> None:
    """With a gateway, endpoints are HTTPRoutes of it, and no Ingress is made."""
    found = objects(project(SHOP), "--domain", "example.com", "--gateway", gateway)

    assert found["HTTPRoute/web"]["spec"]["parentRefs"] == [expected]
    assert "Ingress/web" not in found


def test_registry(project: Project) -> None:
    """Built images are named under the registry."""
    found = objects(project(SHOP), "--registry", "registry.example.com/team")

    image = found["Deployment/app"]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == "registry.example.com/team/demo-app"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (
            ("--namespace", "Team"),
            (
                "error: --namespace (or PLATFORM_NAMESPACE) must be a name of at most 63 lowercase letters, digits and"
                " '-', with no '-' at either end"
            ),
        ),
        *(
            (
                ("--gateway", text),
                "error: --gateway (or PLATFORM_GATEWAY) must be NAME or NAMESPACE/NAME, with :LISTENER or without",
            )
            for text in ("a/b/c", "a:", "/a", "a:b:c", ":b")
        ),
        (
            ("--tls-secret", "A_b"),
            (
                "error: --tls-secret (or PLATFORM_TLS_SECRET) must be the secret's name, in lowercase letters, digits,"
                " '-' and '.'"
            ),
        ),
        (
            ("--domain", "a b"),
            "error: --domain (or PLATFORM_DOMAIN) must be a DNS name such as apps.example.com",
        ),
        (
            ("--registry", "https://example.com"),
            "error: --registry (or PLATFORM_REGISTRY) must be HOST or HOST/PATH in lower case, without a scheme",
        ),
        (
            ("--registry", "example.com/Team"),
            "error: --registry (or PLATFORM_REGISTRY) must be HOST or HOST/PATH in lower case, without a scheme",
        ),
    ],
)
def test_options_that_no_cluster_takes(project: Project, args: tuple[str, ...], expected: str) -> None:
    """An option that could never be a name in a cluster is a mistake of use."""
    outcome = run_here("render", *args, folder=project(SHOP).path)

    assert (outcome.status, outcome.stdout, outcome.stderr.splitlines()) == (2, "", [expected])


@pytest.mark.parametrize(
    ("shell", "text", "layer"), [({"PLATFORM_DOMAIN": "a b"}, "", "shell"), ({}, "PLATFORM_DOMAIN=a b\n", ".env")]
)
def test_a_setting_that_a_variable_has(project: Project, shell: Mapping[str, str], text: str, layer: str) -> None:
    """The error names where it comes from, which may be the namespace; the option would be no help."""
    outcome = project({"compose.yaml": SHOP, ".env": text}, **shell).run("render")

    message = f"error: PLATFORM_DOMAIN ({layer}) must be a DNS name such as apps.example.com"
    assert (outcome.status, outcome.stdout, outcome.stderr.splitlines()) == (2, "", [message])


@pytest.mark.parametrize(
    ("shell", "text", "layer"),
    [
        ({"PLATFORM_FULL": "fasle"}, "", "shell"),
        ({}, "PLATFORM_FULL=no!\n", ".env"),
        ({"PLATFORM_ALLOW_OUTSIDE": "2"}, "", "shell"),
        ({"PLATFORM_LOCAL": "ture"}, "", "shell"),
        ({"OKTETO_COMPOSE_VOLUME_AFFINITY_ENABLED": "flase"}, "", "shell"),
        ({"OKTETO_COMPOSE_DEPENDS_ON_ENABLED": "ture"}, "", "shell"),
    ],
)
def test_a_setting_that_is_no_boolean(project: Project, shell: Mapping[str, str], text: str, layer: str) -> None:
    """A typo is an error: it would leave on what the variable was to prevent, such as full mode by the file itself."""
    folder = project("x-platform: {full: true}\nservices: {web: {image: nginx}}").write({".env": text})

    outcome = run_here("render", folder=folder.path, **shell)

    name = next(iter(shell), "PLATFORM_FULL")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.splitlines() == [f"error: {name} ({layer}) must be true or false"]


@pytest.mark.parametrize(
    ("args", "shell"),
    [
        (("--gateway", "edge", "--tls-secret", "wildcard"), {}),
        (("--gateway", "edge", "--tls-issuer", "public"), {}),
        (("--gateway", "edge"), {"PLATFORM_TLS_ISSUER": "public"}),
        (("--tls-secret", "wildcard"), {"PLATFORM_GATEWAY": "edge"}),
    ],
)
def test_a_certificate_for_a_gateway(project: Project, args: tuple[str, ...], shell: dict[str, str]) -> None:
    """The certificate of an HTTPRoute is the Gateway's: naming another one is a mistake of use."""
    outcome = run_here("render", *args, folder=project(SHOP).path, **shell)

    assert (outcome.status, outcome.stdout, outcome.stderr.splitlines()) == (
        2,
        "",
        [
            "error: --tls-secret and --tls-issuer are for Ingresses; with --gateway its listener has the certificate",
            "  hint: leave them out, PLATFORM_TLS_SECRET and PLATFORM_TLS_ISSUER too",
        ],
    )


# messages -------------------------------------------------------------------------------------------------------------

TYPO = "services: {web: {image: nginx, comand: x, isolation: y, uts: host}}"


def test_warnings(project: Project) -> None:
    """Warnings are printed on standard error, and the objects are printed."""
    outcome = project(TYPO).run("render").assert_success()

    assert "kind: Deployment" in outcome.stdout
    assert outcome.stderr.splitlines() == [
        "compose.yaml:1:43: warning: services.web.isolation is not supported and has no effect [unsupported-key]",
        "  hint: it is for containers of Windows",
        "1 warning",
    ]


@pytest.mark.parametrize("option", ["--verbose", "-v"])
def test_verbose(project: Project, option: str) -> None:
    """With -v the notes are reported too: unknown keys, with what may be meant, and ignored ones."""
    outcome = run_here("render", option, folder=project(TYPO).path).assert_success()

    assert outcome.stderr.splitlines() == [
        ("compose.yaml:1:32: note: services.web.comand is not a key that Compose or this tool knows [unknown-key]"),
        "  hint: did you mean 'command'?",
        "compose.yaml:1:43: warning: services.web.isolation is not supported and has no effect [unsupported-key]",
        "  hint: it is for containers of Windows",
        "compose.yaml:1:57: note: services.web.uts is ignored [ignored-key]",
        "1 warning, 2 notes",
    ]


def test_strict(project: Project) -> None:
    """With --strict warnings and unknown keys are errors; what is ignored on purpose is not."""
    outcome = project(TYPO).run("render", "--strict").assert_invalid()

    assert outcome.stderr.splitlines() == [
        ("compose.yaml:1:32: error: services.web.comand is not a key that Compose or this tool knows [unknown-key]"),
        "  hint: did you mean 'command'?",
        "compose.yaml:1:43: error: services.web.isolation is not supported and has no effect [unsupported-key]",
        "  hint: it is for containers of Windows",
        "2 errors",
    ]


def test_strict_without_a_finding(project: Project) -> None:
    """A clean definition passes --strict, with what is ignored on purpose."""
    outcome = project("services: {web: {image: nginx, uts: host}}").run("render", "--strict").assert_success()

    assert outcome.stderr == ""


def test_json_diagnostics(project: Project) -> None:
    """With --json-diagnostics each message is one JSON object on a line of standard error."""
    outcome = project(TYPO).run("render", "--json-diagnostics", "-v").assert_success()

    found = [json.loads(line) for line in outcome.stderr.splitlines()]
    assert [(row["severity"], row["code"]) for row in found] == [
        ("note", "unknown-key"),
        ("warning", "unsupported-key"),
        ("note", "ignored-key"),
    ]
    assert found[0] == {
        "file": "compose.yaml",
        "line": 1,
        "column": 32,
        "length": 6,
        "severity": "note",
        "code": "unknown-key",
        "path": "services.web.comand",
        "message": "services.web.comand is not a key that Compose or this tool knows",
        "hint": "did you mean 'command'?",
    }


def test_json_diagnostics_under_strict(project: Project) -> None:
    """Under --strict the severity is the one that counts."""
    outcome = project(TYPO).run("render", "--json-diagnostics", "--strict").assert_invalid()

    assert [json.loads(line)["severity"] for line in outcome.stderr.splitlines()] == ["error", "error"]


# exit statuses --------------------------------------------------------------------------------------------------------


def test_invalid(project: Project) -> None:
    """An invalid definition ends with 3, all errors reported, and nothing printed."""
    outcome = project("services: {web: {scale: two}, db: {image: X}}").run("render").assert_invalid()

    assert [line.rpartition("[")[2] for line in outcome.stderr.splitlines() if ": error: " in line] == [
        "no-image]",
        "invalid-value]",
        "invalid-value]",
    ]
    assert outcome.stderr.splitlines()[-1] == "3 errors"


def test_invalid_in_the_plan(project: Project) -> None:
    """So does one whose network can't be planned."""
    text = "services: {web: {image: nginx}}\nendpoints: [{path: /, service: web, port: 80}]"

    outcome = project(text).run("render", "--domain", "example.com").assert_invalid()

    assert "[undefined-port]" in outcome.stderr


@pytest.mark.parametrize("command", ["render", "config"])
def test_everything_is_reported_in_one_run(project: Project, command: str) -> None:
    """Mistakes of every stage come at once: of merging, of a key, of the whole, of the plan."""
    text = """\
services:
  web: {image: nginx, scale: two, volumes: [/a, /a]}
  api: {image: nginx, depends_on: [gone]}
  db: {image: postgres, ports: ["5432:5432"]}
endpoints: [{path: /, service: api, port: 80}, {path: /db, service: db, port: 80}]
"""

    outcome = project(text).run(command, "--domain", "example.com").assert_invalid()

    assert [line for line in outcome.stderr.splitlines() if not line.startswith("  hint:")] == [
        (
            "compose.yaml:2:30: error: services.web.scale must be a whole number from 0 to 10000, not 'two'"
            " [invalid-value]"
        ),
        (
            "compose.yaml:2:49: error: services.web.volumes[1] mounts at the same path as another volume of this"
            " service: '/a' [duplicate-mount]"
        ),
        (
            "compose.yaml:3:36: error: services.api.depends_on[0] names 'gone', which is not a service of the"
            " definition [undefined-service]"
        ),
        (
            "compose.yaml:4:33: warning: services.db.ports[0] is not made public: it is on the list of ports of"
            " databases and debuggers [sensitive-port]"
        ),
        (
            "compose.yaml:5:13: error: endpoints[0] routes to port '80', which service 'api' does not have"
            " [undefined-port]"
        ),
        "compose.yaml:5:48: error: endpoints[1] routes to port '80', which service 'db' does not have [undefined-port]",
        "5 errors, 1 warning",
    ]


def test_no_definition(project: Project) -> None:
    """No definition ends with 3 and the names that were looked for."""
    outcome = project({}).run("render").assert_invalid()

    assert outcome.stderr.splitlines() == [
        (
            "error: no Compose file here or in a folder above: looked for compose.yaml, compose.yml,"
            " docker-compose.yaml, docker-compose.yml"
        ),
        "  hint: name one with -f, or go to the folder that has one",
    ]


def test_no_definition_as_json(project: Project) -> None:
    """With --json-diagnostics this is one JSON object too, without a place."""
    outcome = project({}).run("render", "--json-diagnostics").assert_invalid()

    assert json.loads(outcome.stderr) == {
        "severity": "error",
        "code": "no-compose-file",
        "message": (
            "no Compose file here or in a folder above: looked for compose.yaml, compose.yml,"
            " docker-compose.yaml, docker-compose.yml"
        ),
        "hint": "name one with -f, or go to the folder that has one",
    }


def test_missing_file(project: Project) -> None:
    """A named file that is not there ends with 3."""
    outcome = project({}).run("render", "-f", "none.yaml").assert_invalid()

    assert outcome.stderr.splitlines() == [
        "none.yaml:1:1: error: 'none.yaml' does not exist [unreadable-file]",
        "1 error",
    ]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--no-such-option",), "Error: No such option: --no-such-option"),
        (("--name",), "Error: Option '--name' requires an argument."),
    ],
)
def test_usage(project: Project, args: tuple[str, ...], expected: str) -> None:
    """A mistake of use ends with 2 and says what is wrong."""
    outcome = run_here("render", *args, folder=project(SHOP).path)

    assert (outcome.status, outcome.stdout, outcome.stderr.splitlines()[-1]) == (2, "", expected)


def test_a_reader_that_closes_the_pipe(project: Project) -> None:
    """When the reader of the output goes early, nothing is reported and nothing is wrong."""
    folder = project("services:\n" + "".join(f"  s{n}: {{image: nginx}}\n" for n in range(300)))
    read, write = os.pipe()
    os.close(read)

    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-c", "from composeplat.cli.app import main; main()", "render"],
            cwd=folder.path,
            stdout=gone,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    assert (done.returncode, done.stderr) == (0, b"")


def test_an_image_that_kubectl_can_not_run(project: Project) -> None:
    """Host content above an object's limits makes an image that is not there yet: said at the mount, not under -v."""
    files = {f"site/{number}": b"x" * 512 for number in range(80)}
    text = (
        "services:\n  web:\n    image: nginx\n    volumes:\n      - ./one:/one\n      - ./site:/site\n"
        "  api: {image: nginx, volumes: ['./one:/one']}\n"
    )

    outcome = run_here("render", folder=project({"compose.yaml": text, "one": "1", **files}).path).assert_success()

    error, hint, _ = outcome.stderr.splitlines()
    assert error == (
        "compose.yaml:6:9: warning: services.web.volumes[1] needs an image that only 'platform deploy' builds, as the"
        " service mounts 81 files, 41 KiB: kubectl can't run it [unbuilt-image]"
    )
    assert hint == (
        "  hint: deploy it, mount at most 64 files and 256 KiB a service, or use a named volume or an image of your own"
    )
    assert "image: demo-web\n" in outcome.stdout


def test_a_file_with_a_colon(project: Project) -> None:
    """The warning about a file that no pod can mount names it."""
    text = "services: {web: {image: nginx, volumes: ['./site:/site']}}"

    outcome = run_here("render", folder=project({"compose.yaml": text, "site/a:b": "1"}).path).assert_success()

    error, hint, _ = outcome.stderr.splitlines()
    assert error == (
        "compose.yaml:1:42: warning: services.web.volumes[0] needs an image that only 'platform deploy' builds, as the"
        " service mounts 'a:b', whose name has a colon: kubectl can't run it [unbuilt-image]"
    )
    assert hint == "  hint: deploy it, rename the file, or use a named volume or an image of your own"
