"""``platform check`` and ``platform init``, with and without a cluster and a registry."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Seam, data
from tests.cluster.objects import Answer, given, refusal
from tests.conftest import ROOT, Folder, Outcome, Project
from tests.in_process import run_here
from tests.registry.test_image_facts import put_config
from tests.registry_server import Registry, serving
from tests.schemas import checked
from tests.terminal import Terminal

SHOP = """\
name: shop
services:
  web: {image: nginx, ports: ["8080:80"]}
  db:
    image: postgres
    volumes: ["./pg:/var/lib/postgresql/data"]
"""
TEXT = """\
SERVICE  KIND        VERDICT
web      Deployment  runs as written
db       Deployment  lost

db
  compose.yaml:6:15: lost: services.db.volumes[0] mounts a folder of this machine where PostgreSQL keeps its data:\
 what is written there is lost with the pod [host-data]
    in compose.platform.yaml, where 'platform init' writes it:
      services:
        db:
          volumes:
            # PostgreSQL keeps its data here.
            - pg:/var/lib/postgresql/data
      volumes:
        # Of 1Gi, unless you set 'size'.
        pg:

Not asked
  images and the cluster were not asked: --offline

1 of 2 services run as written, 1 with something lost; 'platform init' mends 1 finding
"""
WRITTEN = """\
# Laid over the Compose file by `platform`; `docker compose` does not read it.
# `platform init` wrote it. Edit it: another run adds what is missing, and keeps the rest.
services:
  db:
    volumes:
      # PostgreSQL keeps its data here.
      - pg:/var/lib/postgresql/data
volumes:
  # Of 1Gi, unless you set 'size'.
  pg:
"""
NAME = "compose.platform.yaml"


@pytest.fixture
def shop(project: Project) -> Folder:
    folder = project(SHOP)
    (folder.path / "pg").mkdir()
    return folder


def platform(folder: Folder, *args: str, **shell: str) -> Outcome:
    return run_here(*args, "--offline", folder=folder.path, **shell)


# check ----------------------------------------------------------------------------------------------------------------


def test_entries_of_shared_lines(project: Project) -> None:
    """A finding of several services from one line is printed once, with the entry of the first; init has all."""
    text = """\
x-app: &app {image: x, volumes: ["./x:/srv"]}
services:
  a: *app
  b: *app
  c: {image: x, volumes: ["./other:/srv"]}
"""
    folder = project(text)
    printed = platform(folder, "check").stdout

    assert printed.count("[missing-path]") == 2
    assert (
        """
a, b, from shared lines
  compose.yaml:1:34: can't run: services.a.volumes[0] mounts a host path that does not exist: './x:/srv' [missing-path]
    in compose.platform.yaml, where 'platform init' writes it, here for a:
      services:
        a:
          volumes:
            # What is written here is kept.
            - x:/srv
      volumes:
        # Of 1Gi, unless you set 'size'.
        x:

"""
        in printed
    )
    assert platform(folder, "init", "--yes").assert_success().stdout.count("- x:/srv") == 2


def test_shared_lines(project: Project) -> None:
    """A finding that several services have from one line is shown once, and an entry that mends several too."""
    text = """\
x-base: &base
  image: x
  privileged: true
services:
  a: *base
  b: *base
  c:
    image: x
    profiles: [tools]
    hostname: c
"""
    assert (
        platform(project(text), "check").stdout
        == """\
SERVICE  KIND        VERDICT  FULL MODE
a        Deployment  lost     honors 1 key
b        Deployment  lost     honors 1 key
c        Deployment  changed  honors 2 keys

c
  compose.yaml:9:5: changed: services.c.profiles is not supported and has no effect [unsupported-key]
    in compose.platform.yaml, where 'platform init' writes it:
      services:
        # Docker Compose starts it only with its profile.
        c: !reset null
    or: full mode (--full) honors it
  compose.yaml:10:5: changed: services.c.hostname is not supported and has no effect [unsupported-key]
    mended by the same entry

a, b, from shared lines
  compose.yaml:3:3: lost: services.a.privileged is not supported and has no effect [unsupported-key]
    hint: full mode (--full) honors it

Not asked
  images and the cluster were not asked: --offline

0 of 3 services run as written, 1 changed, 2 with something lost; 'platform init' mends 2 findings
3 keys are honored by full mode: --full or x-platform: {full: true}
"""
    )


def test_text(shop: Folder) -> None:
    """A table of verdicts, then each finding with its place and its fix; status 1 if something differs."""
    assert platform(shop, "check") == Outcome(1, TEXT, "")


def test_runs_as_written(project: Project) -> None:
    """Status 0 only if every service runs as written."""
    outcome = platform(project("services: {web: {image: nginx}}"), "check").assert_success()

    assert outcome.stdout.endswith("\n1 of 1 services run as written\n")


def test_invalid_definition(project: Project) -> None:
    """A definition with errors is checked too, and has status 3."""
    outcome = platform(project("services: {web: {image: nginx, scale: x}, db: {image: x}}"), "check")

    assert outcome.status == 3
    assert "web      Deployment  can't run\ndb       Deployment  runs as written\n" in outcome.stdout


def test_a_folder_outside_the_project(project: Project) -> None:
    """An empty volume can take its place, or its files are allowed."""
    folder = project("services: {web: {image: busybox, volumes: ['/opt/files:/srv', '/opt/db:/var/lib/mysql']}}")
    lines = platform(folder, "check").stdout.splitlines()

    assert "            - web-files:/srv" in lines
    move = f"the project is '{folder.path}': move the file there, or allow it with --allow-outside"
    assert [line.startswith("    or: ") for line in lines if line.endswith(move)] == [True, True]


def test_json(shop: Folder) -> None:
    """The document matches its schema, and has the lines of each fix."""
    found = data(platform(shop, "check", "--json"))

    assert (found["verdict"], found["valid"], found["findings"]) == ("lost", True, [])
    assert {service["service"]: service["verdict"] for service in found["services"]} == {
        "web": "as-written",
        "db": "lost",
    }
    (finding,) = found["services"][1]["findings"]
    assert (finding["effect"], finding["code"], finding["path"]) == ("lost", "host-data", "services.db.volumes[0]")
    assert finding["fix"][-1] == "  pg:"


def test_explain(shop: Folder) -> None:
    """One service is shown, with the line behind each decision."""
    outcome = platform(shop, "check", "--explain", "web").assert_success()

    assert "  kind      Deployment, as it mounts no named or anonymous volume\n" in outcome.stdout
    assert "  image     nginx  (compose.yaml:3:16)\n" in outcome.stdout
    assert "\ndb" not in outcome.stdout


def test_a_service_that_a_provider_gives(project: Project) -> None:
    """By default it has no image; in full mode its program was not run, which a command that names it says."""
    folder = project("services: {web: {image: x, depends_on: [db]}, db: {provider: {type: x}}}")

    assert "has neither 'image' nor 'build' [no-image]" in platform(folder, "check").stdout
    full = platform(folder, "check", "--full").assert_success().stdout
    assert "  the program that gives services.db was not run: deploy with --allow-providers\n" in full
    named = platform(folder, "check", "--full", "--explain", "db")
    assert (named.status, named.stdout) == (1, "")
    assert "service 'db' has no pods: its provider gives it, outside of the cluster" in named.stderr


def test_explain_unknown_service(shop: Folder) -> None:
    """An unknown service gets a suggestion."""
    outcome = platform(shop, "check", "--explain", "wep")

    assert (outcome.status, outcome.stdout) == (1, "")
    assert "there is no service 'wep'\n  hint: did you mean 'web'?" in outcome.stderr


def test_values_of_variables_are_hidden(project: Project) -> None:
    """Neither findings nor fixes have the value of a variable."""
    text = "services: {web: {image: nginx, volumes: ['${PLACE}:/srv/data', './x:${TARGET}']}}"
    outcome = platform(project(text), "check", PLACE="./hunter2", TARGET="/hunter2")

    assert "hunter2" not in outcome.stdout + outcome.stderr


def test_json_with_a_secret_that_is_a_word(project: Project) -> None:
    """A confidential value that is a word of JSON does not break the document."""
    text = "services: {web: {image: nginx, environment: {A_SECRET: $A_SECRET}}}"

    shell = {"A_SECRET": "true"}

    assert data(platform(project(text), "check", "--json", **shell))["valid"] is True


def test_registry(project: Project) -> None:
    """The images are read from their registries; one that can't be read has no effect."""
    with serving(Registry()) as registry:
        put_config(registry, "db", {"architecture": "amd64", "config": {"Volumes": {"/data": {}}}})
        text = f"services: {{db: {{image: {registry.host}/db}}, web: {{image: {registry.host}/gone}}}}"
        found = data(run_here("check", "--json", folder=project(text).path))

    assert [[f["code"] for f in service["findings"]] for service in found["services"]] == [["image-volume"], []]
    assert found["notes"][1:] == [
        f"services.web.image names '{registry.host}/gone', which is not in its registry",
    ]


def test_cluster(seam: Seam) -> None:
    """A reachable cluster is asked, with the variables of its namespace; nothing is changed there."""
    (seam.folder / "compose.yaml").write_text("services: {db: {build: ./own, volumes: ['d:/d']}}\nvolumes: {d: }")
    seam.server.answers["/apis/storage.k8s.io/v1/storageclasses"] = given()
    seam.server.answers["/apis/networking.k8s.io/v1/ingressclasses"] = refusal(403, "forbidden")
    seam.server.answers["/api/v1/namespaces/team"] = Answer(b'{"metadata": {"name": "team"}}')
    found = data(seam.platform("check", "--json"))

    (service,) = found["services"]
    assert [(f["code"], f["effect"]) for f in service["findings"]] == [("no-storage-class", "cannot-run")]
    assert found["notes"] == ["ingress classes could not be read: forbidden"]
    assert {request.method for request in seam.server.asked} == {"GET"}


def test_unreachable_cluster(seam: Seam) -> None:
    """A cluster that does not answer is a note."""
    config = json.loads((seam.folder / "kubeconfig").read_text())
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1"
    (seam.folder / "kubeconfig").write_text(json.dumps(config))
    (seam.folder / "compose.yaml").write_text("services: {db: {build: ./own}}")
    found = data(seam.platform("check", "--json"))

    assert found["verdict"] == "as-written"
    assert [note.partition(":")[0] for note in found["notes"]] == ["no cluster was asked"]


# init -----------------------------------------------------------------------------------------------------------------


def test_init(shop: Folder) -> None:
    """The file is written after its difference was shown; then nothing is lost, and another run changes nothing."""
    outcome = platform(shop, "init", "--yes").assert_success()

    assert outcome.stdout == f"--- /dev/null\n+++ {NAME}\n@@ -0,0 +1,10 @@\n" + "".join(
        f"+{line}\n" for line in WRITTEN.splitlines()
    )
    assert (shop.path / NAME).read_text() == WRITTEN
    assert shop.read().messages == []
    assert "StatefulSet/db" in shop.read().names
    assert platform(shop, "init", "--yes") == Outcome(0, "", f"{NAME} needs no change\n")
    assert sorted(os.listdir(shop.path)) == [NAME, "compose.yaml", "pg"]


def test_dry_run(shop: Folder) -> None:
    """A dry run shows the difference, and writes nothing."""
    outcome = platform(shop, "init", "--dry-run").assert_success()

    assert "+      - pg:/var/lib/postgresql/data\n" in outcome.stdout
    assert not (shop.path / NAME).exists()


def test_without_a_terminal(shop: Folder) -> None:
    """Without a terminal and without --yes, nothing is written."""
    outcome = platform(shop, "init")

    assert outcome.status == 1
    assert "there is no terminal to confirm that on\n  hint: give --yes too\n" in outcome.stderr
    assert not (shop.path / NAME).exists()


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("", 0), ("n", 1)])
def test_question(shop: Folder, answer: str, status: int) -> None:
    """On a terminal the command asks before it writes."""
    env = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "XDG_DATA_HOME": str(shop.path.parent)}
    code = "from composeplat.cli.app import main; main()"
    terminal = Terminal([sys.executable, "-c", code, "init", "--offline"], folder=shop.path, env=env)
    terminal.until(f"Write {NAME}? [Y/n]:")
    terminal.type(answer)

    assert terminal.status() == status
    assert (shop.path / NAME).exists() == (status == 0)


def test_edits_are_kept(shop: Folder) -> None:
    """Another run adds what is missing, and keeps the user's lines and comments."""
    shop.write({NAME: "# mine\nservices:\n  web:\n    scale: 2  # two\nvolumes:\n  pg: {size: 9Gi}\n"})
    platform(shop, "init", "--yes").assert_success()

    assert (shop.path / NAME).read_text() == (
        "# mine\nservices:\n  web:\n    scale: 2  # two\n  db:\n    volumes:\n      # PostgreSQL keeps its data here.\n"
        "      - db-pg:/var/lib/postgresql/data\nvolumes:\n  pg: {size: 9Gi}\n"
        "  # Of 1Gi, unless you set 'size'.\n  db-pg:\n"
    )


def test_other_spelling(shop: Folder) -> None:
    """A platform file with the other ending is the one that is extended."""
    shop.write({"compose.platform.yml": "# mine\n"})
    platform(shop, "init", "--yes").assert_success()

    assert (shop.path / "compose.platform.yml").read_text().startswith("# mine\nservices:\n")
    assert not (shop.path / NAME).exists()


def test_named_files(shop: Folder) -> None:
    """With -f, the platform file is read for the difference, and the message says how to read it."""
    first = platform(shop, "init", "--yes", "-f", "compose.yaml").assert_success()
    second = platform(shop, "init", "--yes", "-f", "compose.yaml").assert_success()

    hint = f"it is read only if you name it: add --file {NAME} after the other files\n"
    assert hint in first.stderr
    assert (second.stdout, second.stderr) == ("", f"{NAME} needs no change\n{hint}")


@pytest.mark.parametrize("where", ["shell", ".env"])
def test_files_of_a_variable(shop: Folder, where: str) -> None:
    """With COMPOSE_FILE, of the shell or of `.env`, the platform file is read beside the named files, not alone."""
    named = "compose.yaml:more.yaml"
    lines = ["TAG=17", f"COMPOSE_FILE={named}"][: 1 if where == "shell" else 2]
    shop.write({"more.yaml": "services: {more: {image: busybox, restart: always}}", ".env": "\n".join(lines)})
    shell = {"COMPOSE_FILE": named} if where == "shell" else {}
    first = platform(shop, "init", "--yes", **shell).assert_success()
    second = platform(shop, "init", "--yes", **shell).assert_success()
    of_all = platform(shop, "init", "--yes", COMPOSE_FILE=f"{named}:{NAME}").assert_success()

    assert f"it is read only if COMPOSE_FILE names it: add {NAME} to it\n" in first.stderr
    assert "mend the error" not in first.stderr
    assert second.stderr.startswith(f"{NAME} needs no change\n")
    assert of_all.stderr.startswith(f"{NAME} needs no change\n")


def test_files_of_a_variable_in_another_folder(project: Project) -> None:
    """The message has the path of the platform file from here, which makes the variable complete."""
    text = "services: {db: {image: postgres, volumes: ['./pg:/var/lib/postgresql/data']}}"
    folder = project({"docker/base.yaml": text, ".env": "COMPOSE_FILE=docker/base.yaml"})
    first = platform(folder, "init", "--yes").assert_success()
    second = platform(folder, "init", "--yes").assert_success()

    hint = f"it is read only if COMPOSE_FILE names it: add docker/{NAME} to it\n"
    assert first.stderr == f"wrote {NAME}\n{hint}"
    assert second.stderr == f"{NAME} needs no change\n{hint}"
    folder.write({".env": f"COMPOSE_FILE=docker/base.yaml:docker/{NAME}"})
    assert platform(folder, "init", "--yes").assert_success().stderr == f"{NAME} needs no change\n"
    platform(folder, "check").assert_success()


@pytest.mark.parametrize("where", ["elsewhere.yaml", "gone.yaml"])
def test_link(shop: Folder, tmp_path: Path, where: str) -> None:
    """A link is not followed, and not replaced."""
    (tmp_path / "elsewhere.yaml").write_text("services: {}\n")
    (shop.path / NAME).symlink_to(tmp_path / where)
    outcome = platform(shop, "init", "--yes")

    assert outcome.status in (1, 3)
    assert (tmp_path / "elsewhere.yaml").read_text() == "services: {}\n"
    assert not (tmp_path / "gone.yaml").exists()


def test_flow_style(shop: Folder) -> None:
    """A file that an entry can't be added to stays, and the message has the line."""
    shop.write({NAME: "services: {web: {scale: 2}}\n"})
    outcome = platform(shop, "init", "--yes")

    assert outcome.status == 1
    assert "add it yourself: - pg:/var/lib/postgresql/data" in outcome.stderr
    assert (shop.path / NAME).read_text() == "services: {web: {scale: 2}}\n"


def test_findings_without_an_entry(project: Project) -> None:
    """Findings without an entry are counted, with their services."""
    text = "services: {web: {image: x, pids_limit: 9, credential_spec: {file: x}, logging: {}}}"
    outcome = platform(project(text), "init", "--yes")

    nothing = f"there is nothing to write to {NAME}\n"
    assert outcome == Outcome(0, "", f"{nothing}1 finding is left (web): 'platform check' lists them\n")


def test_files_of_a_variable_in_a_folder_with_a_colon(project: Project) -> None:
    """The separator of the variable may be in the path of the project."""
    folder = Folder(project({"a:b/compose.yaml": SHOP, "a:b/more.yaml": "services: {}"}).path / "a:b")
    named = "compose.yaml:more.yaml"
    platform(folder, "init", "--yes", COMPOSE_FILE=named).assert_success()

    assert platform(folder, "init", "--yes", COMPOSE_FILE=named).stderr.startswith(f"{NAME} needs no change\n")


def test_shared_lines_without_an_entry(project: Project) -> None:
    """An error that several services have from one line is counted once, as in the messages of a deploy."""
    text = "services: {a: &a {image: 'x:'}, b: *a}"
    outcome = platform(project(text), "init", "--yes")

    left = "1 finding is left (a, b): 'platform check' lists them\nbefore a deploy, mend the error (a, b)\n"
    assert outcome == Outcome(0, "", f"there is nothing to write to {NAME}\n{left}")


def test_rules_of_another_kind_of_workload(project: Project) -> None:
    """With a volume the service is a StatefulSet: what that does not allow is counted after the file is written."""
    text = "services: {db: {image: x, volumes: ['./gone:/d'], labels: {dev.platform.com/update: recreate}}}"
    outcome = platform(project(text), "init", "--yes")

    assert (
        outcome.stderr
        == f"wrote {NAME}\n1 finding is left (db): 'platform check' lists them\nbefore a deploy, mend the error (db)\n"
    )


# full mode ------------------------------------------------------------------------------------------------------------

KEYS = """\
services:
  web:
    image: x
    tty: true
    volumes: ["./data:/var/lib/postgresql/data"]
  debug: {image: x, profiles: [tools], privileged: true, volumes: ["./more:/var/lib/mysql"]}
"""
ON = """\
# Laid over the Compose file by `platform`; `docker compose` does not read it.
# `platform init` wrote it. Edit it: another run adds what is missing, and keeps the rest.
x-platform:
  # Honors keys that have no effect otherwise: tty, profiles, privileged.
  full: true
services:
  web:
    volumes:
      # PostgreSQL keeps its data here.
      - web-data:/var/lib/postgresql/data
  debug:
    volumes:
      # MySQL or MariaDB keeps its data here.
      - more:/var/lib/mysql
volumes:
  # Of 1Gi, unless you set 'size'.
  web-data:
  # Of 1Gi, unless you set 'size'.
  more:
"""


def honored(folder: Folder, *args: str) -> tuple[bool, list[tuple[str, int]]]:
    found = checked(json.loads(platform(folder, "check", "--json", *args).stdout))
    findings = [*found["findings"], *(finding for service in found["services"] for finding in service["findings"])]
    return found["full"], [(f["path"], f["line"]) for f in findings if f["honored_in_full"]]


def test_keys_that_full_mode_honors(project: Project) -> None:
    """Each has its place; an explanation has those of its service; in full mode there are none left."""
    folder = project(KEYS)
    services = ["services.web.tty", "services.debug.profiles", "services.debug.privileged"]

    assert honored(folder) == (False, list(zip(services, [4, 6, 6], strict=True)))
    assert honored(folder, "--full", "--profile=*") == (True, [])
    explained = platform(folder, "check", "--explain", "web").stdout
    assert re.search(r"full mode +would honor services\.web\.tty  \(compose\.yaml:4:5\)", explained)
    assert "1 key is honored by full mode: --full or x-platform: {full: true}\n" in explained
    assert "0 of 1 services run as written in full mode, " in platform(folder, "check", "--full").stdout


@pytest.mark.parametrize(
    ("keys", "other"),
    [
        ("container_name: a_b", "container_name: a-b"),
        ("extra_hosts: ['h:host-gateway']", "extra_hosts: ['h:host-gateway', 'g:10.0.0.1']"),
        ("devices: [/dev/kvm]", "devices: [/dev/kvm], x-devices: {/dev/kvm: example.com/kvm}"),
        ("network_mode: 'container:db'", "network_mode: 'service:db'"),
    ],
)
def test_values_that_full_mode_does_not_honor(project: Project, keys: str, other: str) -> None:
    """A key counts as honored only with a value that full mode honors."""
    text = "services: {web: {image: x, KEYS}, db: {image: y}}"
    places = [("services.web." + other.partition(":")[0], 1)]

    assert honored(project(text.replace("KEYS", keys))) == (False, [])
    assert honored(project(text.replace("KEYS", other)))[1][:1] == places


def test_networks_that_keep_apart(project: Project) -> None:
    """Networks count as honored where they keep services apart."""
    text = "services: {a: {image: x, networks: [n]}, b: {image: x, networks: [NAME]}}\nnetworks: {n: , m: }"

    assert honored(project(text.replace("NAME", "m"))) == (False, [("services.a.networks", 1)])
    assert honored(project(text.replace("NAME", "n"))) == (False, [])


def test_full_mode_is_turned_on(project: Project) -> None:
    """Where nothing is lost by it, the file turns it on, and has entries for services of all profiles."""
    folder = project(KEYS)
    platform(folder, "init", "--yes").assert_success()

    assert (folder.path / NAME).read_text() == ON
    assert honored(folder) == (True, [])
    assert platform(folder, "check", "--profile=*").assert_success()
    assert platform(folder, "init", "--yes") == Outcome(0, "", f"{NAME} needs no change\n")


def test_full_mode_with_named_files(project: Project) -> None:
    """With -f, another run finds the services whose profiles are off, as only the platform file turns full mode on."""
    folder = project(KEYS)
    platform(folder, "init", "--yes", "-f", "compose.yaml").assert_success()

    assert platform(folder, "init", "--yes", "-f", "compose.yaml").stderr.startswith(f"{NAME} needs no change\n")


def test_services_that_all_have_profiles(project: Project) -> None:
    """Compose starts none of them without a profile: none is left out, and each is mended."""
    folder = project("services: {a: {image: x, profiles: [dev], volumes: [./data:/data]}}")
    platform(folder, "init", "--yes").assert_success()

    assert "!reset" not in (folder.path / NAME).read_text()
    assert run_here("config", "--quiet", folder=folder.path).assert_success()


@pytest.mark.parametrize("edit", ["full: false", "full: ${NO:-no}"])
def test_the_user_s_mode_is_kept(project: Project, edit: str) -> None:
    """Another run keeps what the user says about the mode; without full mode the entries are those of the other."""
    folder = project({"compose.yaml": KEYS, NAME: f"x-platform:\n  {edit}\n"})
    outcome = platform(folder, "init", "--yes").assert_success()

    written = (folder.path / NAME).read_text()
    assert written.startswith(f"x-platform:\n  {edit}\nservices:\n")
    assert "debug: !reset null" in written
    assert "full mode" not in outcome.stderr


@pytest.mark.parametrize(
    ("keys", "more", "reason"),
    [
        pytest.param(
            "extra_hosts: ['h:no.address']",
            "",
            "compose.yaml:1: services.web.extra_hosts[0] ",
            id="an-error-of-full-mode",
        ),
        pytest.param("container_name: other", "", "compose.yaml:1:", id="an-alias-clash"),
        pytest.param("volumes: ['d:/d']", "volumes: {d: {external: true}}", "volumes.d needs P", id="external"),
        pytest.param("secrets: [s]", "secrets: {s: {external: true}}", "secrets.s needs Secret 's' in", id="secret"),
        pytest.param("gpus: all", "", "services.web.gpus needs nodes for it", id="nodes"),
        pytest.param(
            "deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}",
            "",
            "services.web.deploy.resources.reservations.devices needs nodes for it",
            id="reserved-devices",
        ),
        pytest.param(
            "deploy: {resources: {reservations: {devices: [{capabilities: [gpu], device_ids: ['0']}]}}}",
            "",
            "services.web.deploy.resources.reservations.devices needs nodes for it",
            id="devices-by-number",
        ),
        pytest.param("sysctls: {kernel.msgmax: '1'}", "", "compose.yaml:1:", id="a-setting-of-the-cluster"),
    ],
)
def test_full_mode_stays_off(project: Project, keys: str, more: str, reason: str) -> None:
    """The message has what would be lost by full mode, which the file does not turn on; --full asks for it."""
    folder = project(f"services: {{web: {{image: x, tty: true, {keys}}}, other: {{image: x}}}}\n{more}")
    outcome = platform(folder, "init", "--yes").assert_success()

    assert outcome.stderr.startswith("full mode stays off, which honors 2 keys (tty, ")
    assert f"\n  {reason}" in outcome.stderr
    assert not (folder.path / NAME).exists()
    platform(folder, "init", "--yes", "--full").assert_success()
    assert "\n  full: true\n" in (folder.path / NAME).read_text()


def test_full_mode_for_a_service_in_the_network_of_another(project: Project) -> None:
    """Without it, the traffic of the service would not pass the other one; that both start together is less."""
    web = "{image: x, network_mode: 'service:vpn', depends_on: [vpn]}"
    folder = project(f"services: {{web: {web}, vpn: {{image: y}}}}\n")
    platform(folder, "init", "--yes").assert_success()

    assert "\n  full: true\n" in (folder.path / NAME).read_text()


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("devices: [/dev/ttyUSB0, '/dev/kvm:/dev/kvm']", id="paths-of-devices"),
        pytest.param("deploy: {placement: {constraints: [node.role == manager]}}", id="roles-of-swarm"),
    ],
)
def test_what_chooses_no_nodes(project: Project, keys: str) -> None:
    """A key without effect in full mode too neither turns it on nor keeps it off."""
    folder = project(f"services: {{web: {{image: x, tty: true, {keys}}}, alone: {{image: x, {keys}}}}}")
    platform(folder, "init", "--yes").assert_success()

    assert "Honors keys that have no effect otherwise: tty.\n" in (folder.path / NAME).read_text()

    folder = project({"compose.yaml": f"services: {{web: {{image: x, {keys}}}}}", NAME: ""})
    assert f"{NAME} needs no change\n" in platform(folder, "init", "--yes").assert_success().stderr


@pytest.mark.parametrize(
    ("hosts", "entry"),
    [("['h:host-gateway', 'g:10.0.0.1']", "- !reset h:host-gateway"), ("{h: host-gateway}", "h: !reset null")],
)
def test_this_machine_as_a_host(project: Project, hosts: str, entry: str) -> None:
    """An entry for this machine, an error of full mode, is left out; nothing else of the definition prevents it."""
    folder = project(f"services: {{web: {{image: x, tty: true, extra_hosts: {hosts}}}}}")
    platform(folder, "init", "--yes").assert_success()

    honored = "tty, extra_hosts" if "10.0.0.1" in hosts else "tty"
    assert (
        (folder.path / NAME).read_text().split("\n", 2)[2]
        == f"""x-platform:
  # Honors keys that have no effect otherwise: {honored}.
  full: true
services:
  web:
    extra_hosts:
      # A pod has no gateway to this machine: this entry is left out.
      {entry}
"""
    )
    folder.run("render", "--strict").assert_success()


def test_this_machine_as_the_only_host(project: Project) -> None:
    """Full mode would honor nothing, so it is no reason to turn it on."""
    folder = project("services: {web: {image: x, extra_hosts: [h:host-gateway]}}")

    assert "nothing to write" in platform(folder, "init", "--yes").assert_success().stderr


def test_a_provider_does_not_turn_full_mode_on(project: Project) -> None:
    """It would take the service's container away, and run a program instead."""
    folder = project("services: {web: {image: x, provider: {type: x}}}")
    outcome = platform(folder, "init", "--yes").assert_success()

    assert outcome.stderr.startswith("full mode stays off, which honors 1 key (provider):\n")
    assert "\n  services.web would be a program of this machine: --allow-providers\n" in outcome.stderr


def test_full_mode_has_no_effect(project: Project) -> None:
    """A key that full mode does not honor for this service is no reason to turn it on, and is lost by neither mode."""
    folder = project("services: {queue: {image: x, hostname: queue, volumes: ['data:/data']}}\nvolumes: {data: }\n")

    assert platform(folder, "init", "--yes") == Outcome(0, "", f"there is nothing to write to {NAME}\n")
    for arguments in ((), ("--full",)):
        found = json.loads(platform(folder, "check", "--json", *arguments).stdout)
        assert [service["verdict"] for service in found["services"]] == ["changed"]


def test_invalid_yaml(project: Project) -> None:
    """A file that can't be read is an error, and nothing is written."""
    folder = project("services: [\n")
    outcome = platform(folder, "init", "--yes")

    assert (outcome.status, outcome.stdout) == (3, "")
    assert "[invalid-yaml]" in outcome.stderr
    assert os.listdir(folder.path) == ["compose.yaml"]


def test_the_page(project: Project) -> None:
    """The page about moving in shows the file that is written."""
    page = (ROOT / "docs" / "moving-in.md").read_text()
    definition, written = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    folder = project(definition)
    platform(folder, "init", "--yes").assert_success()

    assert (folder.path / NAME).read_text() == written
