"""The entries of ``compose.platform.yaml`` that mend findings: what they say, and that they mend."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.compatibility.entries import Entry, yaml_text
from composeplat.compatibility.fixes import Fixes
from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.compatibility.platform_file import add_entries, entry_lines
from composeplat.registry.image_config import ImageFacts
from tests.compatibility.test_check import check
from tests.conftest import Folder, Project
from tests.steps import count_steps


def fix(folder: Folder, images: ImageAnswers | None = None, **more: Any) -> list[str]:
    entries = [entry for finding in check(folder, images, **more).all_findings for entry in finding.fix]
    return entry_lines(dict.fromkeys(entries))


def service(*volumes: str, image: str = "postgres") -> str:
    return f"services: {{db: {{image: {image}, volumes: [{', '.join(repr(volume) for volume in volumes)}]}}}}"


@pytest.mark.parametrize(
    ("volume", "item", "name"),
    [
        pytest.param("./empty:/srv/x", "empty:/srv/x", "empty", id="an-empty-folder"),
        pytest.param("./gone:/srv/x", "gone:/srv/x", "gone", id="a-missing-folder"),
        pytest.param("./full:/var/lib/postgresql/data", "full:/var/lib/postgresql/data", "full", id="a-full-folder"),
        pytest.param("./data:/srv/x", "db-data:/srv/x", "db-data", id="a-vague-name"),
        pytest.param("./Ü:/srv/x", "db-data:/srv/x", "db-data", id="a-name-that-is-none"),
        pytest.param("../gone:/srv/x", "gone:/srv/x", "gone", id="outside-the-project"),
        pytest.param("/var/lib/pg:/var/lib/postgresql", "pg:/var/lib/postgresql", "pg", id="data-at-a-system-path"),
        pytest.param("${DIR}:/srv/x", "db-x:/srv/x", "db-x", id="a-path-from-a-variable"),
        pytest.param("./gone:/etc/x.d", "gone:/etc/x.d", "gone", id="a-folder-with-a-suffix"),
        pytest.param("./db:/srv/x", "db-data:/srv/x", "db-data", id="the-name-of-the-service"),
        pytest.param(f"${{DIR}}{'/d' * 30}:/srv/x", "db-x:/srv/x", "db-x", id="a-long-text"),
    ],
)
def test_named_volume(project: Project, volume: str, item: str, name: str) -> None:
    """A host folder with data gets a named volume at its path; with it, nothing is lost."""
    folder = project({"compose.yaml": service(volume), "full/PG_VERSION": "17"}, DIR="./secret-place")
    (folder.path / "empty").mkdir()
    lines = fix(folder)

    assert lines == ["services:", "  db:", "    volumes:", f"      - {item}", "volumes:", f"  {name}:"]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize("name", ["2024", "1e3", "null", "true"])
def test_names_that_yaml_reads_as_other_values(project: Project, name: str) -> None:
    """A volume or a variable with the name of a number or of another value is written as a text."""
    keys = f"image: x, volumes: ['./{name}:/srv'], environment: {{'null': 'tcp://my_db:1'}}"
    folder = project(f"services:\n  web: {{{keys}}}\n  my_db: {{image: y}}\n")
    lines = fix(folder)

    assert lines[-1] == f'  "{name}":'
    assert '      "null": tcp://my-db:1' in lines
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert [finding.diagnostic.code for finding in check(folder).all_findings] == ["name-normalized"]


def test_findings_about_one_text(project: Project) -> None:
    """Several findings about one variable or command have one entry, with all changes: two would be a duplicate key."""
    text = """
services:
  my_db: {image: postgres}
  web: {image: nginx, ports: ['3000:80']}
  app:
    image: app
    environment:
      TARGETS: 'http://my_db:5432,http://localhost:3000,http://host.docker.internal:3000'
      ALLOWED_HOSTS: 'http://my_db:80,http://localhost:3000'
    command: [run, '--db=my_db:5432', '--public-url=http://localhost:3000']
"""
    folder = project(text)
    lines = fix(folder, domain="example.org")
    url = "https://web-${PLATFORM_NAMESPACE}.${PLATFORM_DOMAIN}"

    assert lines == [
        "services:",
        "  app:",
        "    environment:",
        f'      TARGETS: "http://my-db:5432,{url},http://web:80"',
        f'      ALLOWED_HOSTS: "http://my-db:80,{url}"',
        f'    command: ["run", "--db=my-db:5432", "--public-url={url}"]',
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    left = check(folder, domain="example.org").all_findings
    assert [finding.diagnostic.code for finding in left] == ["name-normalized"]


@pytest.mark.parametrize("present", [("html/a",), ()])
def test_data_that_another_service_reads(project: Project, present: tuple[str, ...]) -> None:
    """A service that reads the data of another one gets the same volume, read-only as its mount is."""
    text = """
services:
  web: {image: nginx, volumes: ['./html:/srv:ro']}
  wp: {image: 'wordpress:fpm', volumes: ['./html:/var/www/html']}
"""
    folder = project({"compose.yaml": text, **dict.fromkeys(present, "")})
    lines = fix(folder)

    assert sorted(line.strip() for line in lines if line.startswith("      - ")) == [
        "- wp-html:/srv:ro",
        "- wp-html:/var/www/html",
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize(("target", "hint"), [("none", "take it out"), ("/beside", "the project is")])
def test_something_in_a_folder(project: Project, target: str, hint: str) -> None:
    """A folder of the project stays mounted because of one file in it; data gets its named volume all the same."""
    files = {"compose.yaml": service("./app:/srv", image="busybox"), "app/main": "", "app/sub/x": ""}
    folder = project(files)
    (folder.path / "app" / "sub" / "link").symlink_to(target)
    (finding,) = check(folder).all_findings
    folder.write({"compose.yaml": service("./app:/var/lib/postgresql/data")})

    assert finding.fix == ()
    assert finding.diagnostic.hint.startswith(hint)
    assert finding.diagnostic.hint.endswith(", or hide it with a volume at '/srv/sub'")
    assert fix(folder)[3] == "      - db-app:/var/lib/postgresql/data"
    folder.write({"compose.yaml": service("./app:/srv", "/srv/sub", image="busybox")})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize(
    ("keys", "entries"),
    [
        pytest.param("", ['    entrypoint: ["/e", "$$a"]', '    command: ["c"]'], id="both"),
        pytest.param("command: own", ['    entrypoint: ["/e", "$$a"]'], id="own-command"),
        pytest.param("entrypoint: []", [], id="reset-entrypoint"),
        pytest.param("build: .", [], id="built"),
    ],
)
def test_process_of_an_image(project: Project, keys: str, entries: list[str]) -> None:
    """The program that limits are set for is that of the image; with the entries the limits have an effect."""
    folder = project(
        {"compose.yaml": f"services:\n  web: {{image: x, ulimits: {{nofile: 9}}, {keys}}}\n", "Dockerfile": ""}
    )
    folder.write({"compose.override.yaml": "x-platform: {full: true}\n"})
    images: ImageAnswers = {"x": ImageFacts(user="", volumes=(), ports=(), entrypoint=("/e", "$a"), command=("c",))}
    lines = fix(folder, images)

    assert lines == (["services:", "  web:", *entries] if entries else [])
    if entries:
        folder.write({"compose.platform.yaml": "\n".join(lines)})
        assert check(folder, images).all_findings == ()
        assert folder.read().loaded.project.services["web"].entrypoint == ("/e", "$a")


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param("./gone:/srv/x:ro", id="read-only"),
        pytest.param("./nginx.conf:/etc/nginx.conf", id="a-missing-file"),
        pytest.param("./gone:$TARGET", id="a-target-from-a-variable"),
        pytest.param("../file.conf:/etc/file.conf", id="a-file-outside-the-project"),
        pytest.param("./Caddyfile:/etc/caddy/Caddyfile", id="a-missing-file-without-a-suffix"),
        pytest.param("./.env:/app/.env", id="a-missing-env-file"),
        pytest.param("~/.npmrc:/root/.npmrc", id="a-missing-file-of-the-home-folder"),
    ],
)
def test_no_fix(project: Project, volume: str) -> None:
    """Files have to be there; and the value of a variable is not written."""
    assert fix(project(service(volume), TARGET="/srv/secret")) == []


def test_file_outside_the_project(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file of this machine is no data, whatever its name is: a volume there would be a folder."""
    outside = tmp_path_factory.mktemp("home") / "config"
    outside.write_text("")
    folder = project(service(f"{outside}:/root/.kube/config", f"{outside}:/var/lib/postgresql/config"))

    assert fix(folder) == []
    assert [f.diagnostic.code for f in check(folder).all_findings] == ["outside-project", "outside-project"]
    assert all(f.diagnostic.hint.startswith("the project is") for f in check(folder).all_findings)


_NOT_COPIED = "the present files are not copied"


@pytest.mark.parametrize(
    ("volume", "image", "comment"),
    [
        ("/opt/x:/srv/x", "busybox", f"What is written here is kept; {_NOT_COPIED}."),
        ("/opt/x:/config", "linuxserver/sonarr", f"The LinuxServer.io image keeps its data here; {_NOT_COPIED}."),
        ("/var/lib/pg:/var/lib/postgresql", "postgres", f"PostgreSQL keeps its data here; {_NOT_COPIED}."),
        ("./gone:/srv/x", "busybox", "What is written here is kept."),
    ],
)
def test_files_that_are_not_copied(project: Project, volume: str, image: str, comment: str) -> None:
    """A folder that is not opened can have files, which the volume in its place does not have."""
    ((entry, _),) = [f.fix for f in check(project(service(volume, image=image))).all_findings]

    assert entry.reason == comment


def test_system_path(project: Project) -> None:
    """The mount of a system path is removed, in the short and in the long form."""
    text = "services: {a: {image: x, volumes: ['/run/docker.sock:/s:ro', {type: bind, source: /proc, target: /p q}]}}"
    folder = project(text)
    lines = fix(folder)

    assert lines == ["services:", "  a:", "    volumes:", "      - !reset /s", '      - !reset "/p q"']
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert folder.read().messages == []
    assert folder.read().loaded.project.services["a"].mounts == ()
    found = check(folder)
    assert [(f.effect, f.diagnostic.span.source.name, f.diagnostic.span.line) for f in found.all_findings] == [
        ("lost", "compose.platform.yaml", 4), ("lost", "compose.platform.yaml", 5),
    ]  # fmt: skip
    assert found.all_findings[1].diagnostic.message == (
        "services.a.volumes[1] removes a mount that Docker Compose has: '/proc'"
    )


def test_a_clock_that_is_left_out(project: Project) -> None:
    """The entry and the note of the time zone's files name the variable."""
    path = "/etc/localtime"
    folder = project(f"services: {{web: {{image: x, volumes: ['{path}:{path}:ro', '/proc:/p']}}}}")
    entries = [entry for finding in check(folder).all_findings for entry in finding.fix]
    folder.write({"compose.platform.yaml": "\n".join(entry_lines(dict.fromkeys(entries)))})

    assert [entry.reason for entry in entries] == [
        "A cluster has no path of this machine: the variable TZ sets the time zone.",
        "A cluster has no path of this machine: this mount is left out.",
    ]
    assert [finding.diagnostic.hint for finding in check(folder).all_findings] == [
        "set the time zone by a variable: environment: {TZ: Europe/Berlin}",
        "check that the service works without it",
    ]


def test_names_of_volumes(project: Project) -> None:
    """A folder has one volume for all services; another folder of its name, or a declared volume, has another."""
    text = """\
services:
  a: {image: x, volumes: ['./one/cache:/c', './two/cache:/d', './taken:/e']}
  b: {image: x, volumes: ['./one/cache:/c']}
volumes: {taken: }
"""
    assert [line.strip() for line in fix(project(text))] == [
        "services:", "a:", "volumes:", "- cache:/c", "- a-cache:/d", "- a-taken:/e", "b:", "volumes:", "- cache:/c",
        "volumes:", "cache:", "a-cache:", "a-taken:",
    ]  # fmt: skip


def test_names_that_kubernetes_sees_as_the_same(project: Project) -> None:
    """A name is taken if a declared volume has it in the cluster."""
    text = "services: {a: {image: x, volumes: ['./my-cache:/c', 'my_cache:/d']}}\nvolumes: {my_cache: }"

    assert fix(project(text))[-1] == "  a-my-cache:"


def test_size(project: Project) -> None:
    """A folder of more than half a GiB gets a volume of twice its size."""
    folder = project(service("./full:/var/lib/postgresql/data"))
    (folder.path / "full").mkdir()
    with (folder.path / "full" / "big").open("wb") as stream:
        stream.truncate(600 * 1024**2)

    assert fix(folder)[-1] == "  full: {size: 2Gi}"


def test_image_volumes(project: Project) -> None:
    """A volume that only the image declares gets a named volume."""
    images = {"x": ImageFacts(volumes=("/var/lib/x", "/data"))}

    assert fix(project("services: {db: {image: x}}"), images) == [
        "services:", "  db:", "    volumes:", "      - x:/var/lib/x", "      - db-data:/data",
        "volumes:", "  x:", "  db-data:",
    ]  # fmt: skip


@pytest.mark.parametrize("other", ["nginx", "wp"])
def test_an_image_volume_of_another_service(project: Project, other: str) -> None:
    """A volume that only the image of another service declares is mounted by ``volumes_from``, in the same run."""
    images: ImageAnswers = {"wp": ImageFacts(user="", volumes=("/html",), ports=(), entrypoint=(), command=())}
    folder = project(f"services: {{web: {{image: {other}, volumes_from: ['wp:ro']}}, wp: {{image: wp}}}}")
    lines = fix(folder, images)

    assert lines == [
        "services:",
        "  web:",
        "    volumes_from: !reset null",
        "    volumes:",
        "      - wp-html:/html:ro",
        "  wp:",
        "    volumes:",
        "      - wp-html:/html",
        "volumes:",
        "  wp-html:",
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder, images).all_findings == ()
    more = f"services: {{web: {{image: {other}, volumes_from: [wp]}}, wp: {{image: wp, scale: 2}}}}"
    assert "    volumes_from: !reset null" not in fix(project(more), images)


@pytest.mark.parametrize("folder_of_data", ["/var/lib/postgresql", "/var/lib/postgresql/data"])
@pytest.mark.parametrize(
    ("keys", "line"),
    [
        pytest.param("volumes_from: [db]", "      - pg:{}", id="of another service"),
        pytest.param(
            "tmpfs: ['{}:size=1g']", "      - {{type: tmpfs, target: {}, tmpfs: {{size: 1g}}}}", id="in memory"
        ),
    ],
)
def test_image_volumes_at_other_mounts(project: Project, folder_of_data: str, keys: str, line: str) -> None:
    """Where another entry mounts something, an image's own volume gets none: it would hide that, or be a duplicate."""
    own = keys.format(folder_of_data)
    text = f"services:\n  db: {{image: x, volumes: ['./pg:{folder_of_data}']}}\n  own: {{image: postgres, {own}}}\n"
    volumes = ("/var/lib/postgresql/data",)
    images: ImageAnswers = {"postgres": ImageFacts(user="", volumes=volumes, ports=(), entrypoint=(), command=())}
    folder = project(text)
    lines = fix(folder, images)
    start = lines.index("  own:")

    assert lines[start + 2 : start + 4] == ["    volumes:", line.format(folder_of_data)]
    assert lines[start + 4 :] == ["volumes:", "  pg:"]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder, images).all_findings == ()


def test_image_volumes_of_several_pods(project: Project) -> None:
    """Several pods have a volume each: one that they share would have the data of all of them."""
    images = {"x": ImageFacts(volumes=("/data",))}

    assert fix(project("services: {db: {image: x, scale: 2}}"), images) == [
        "services:", "  db:", "    volumes:", "      - /data",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "written"),
    [("data:/a", "data:/a"), ("a b", '"a b"'), ("no", '"no"'), ("1", '"1"'), ("a: b", '"a: b"'), ("#x", '"#x"')],
)
def test_yaml_text(text: str, written: str) -> None:
    """A text is quoted where YAML would read another value."""
    assert yaml_text(text) == written


def test_entries_for_the_same_mount_are_written_once(project: Project) -> None:
    """Two findings with the same entry give it once."""
    found = check(project(service("./gone:/x")))
    entries = [entry for finding in found.all_findings for entry in (*finding.fix, *finding.fix)]

    assert add_entries("", entries, "f").count("- gone:/x") == 1


PROFILES = "services: {web: {image: nginx}, seed: {image: busybox, profiles: [seed]}}"
NEEDED = "services: {web: {image: nginx, depends_on: [seed]}, seed: {image: busybox, profiles: [seed]}}"


def test_a_service_of_a_profile(project: Project) -> None:
    """A service that Compose starts only with its profile is left out; then nothing is left to mend."""
    folder = project({"compose.yaml": PROFILES})
    lines = fix(folder)

    assert lines == ["services:", "  seed: !reset null"]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


def test_a_service_of_a_profile_that_another_needs(project: Project) -> None:
    assert fix(project({"compose.yaml": NEEDED})) == []


def test_a_service_of_a_chosen_profile(project: Project) -> None:
    assert fix(project({"compose.yaml": PROFILES, ".env": "COMPOSE_PROFILES=dev,seed\n"})) == []


SECRETS = """
services:
  db: {image: postgres, secrets: [password, {source: key, target: keys/db}], DB}
secrets:
  password: {file: password.txt}
  key: {file: ./key.txt}
"""


def test_secrets(project: Project) -> None:
    """The files of secrets are mounted where Compose puts them."""
    folder = project({"compose.yaml": SECRETS.replace(", DB", ""), "password.txt": "a", "key.txt": "b"})
    lines = fix(folder)

    assert lines == [
        "services:",
        "  db:",
        "    secrets: !reset null",
        "    volumes:",
        "      - ./password.txt:/run/secrets/password:ro",
        "      - ./key.txt:/run/secrets/keys/db:ro",
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


def test_a_secret_of_an_included_file(project: Project) -> None:
    """Its path is relative to the folder of its file; the entry is in the first folder."""
    files = {"db/compose.yaml": SECRETS.replace(", DB", ""), "db/password.txt": "a", "db/key.txt": "b"}
    folder = project({"compose.yaml": "include: [db/compose.yaml]", **files})
    lines = fix(folder)

    assert [line.strip() for line in lines if "/run/secrets" in line] == [
        "- ./db/password.txt:/run/secrets/password:ro",
        "- ./db/key.txt:/run/secrets/keys/db:ro",
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize("path", ["~/key.txt", "../key.txt", "/srv/key.txt", "./keys/../key.txt"])
def test_the_path_of_a_secret(project: Project, path: str) -> None:
    """A path of the home folder, and one with dots, stays one; outside the project, a mount would be an error."""
    folder = project(SECRETS.replace(", DB", "").replace("./key.txt", path))
    written = next(line.strip().replace('"', "") for line in fix(folder, allow_outside=True) if "keys/db" in line)

    assert written == f"- {path.replace('keys/../', '')}:/run/secrets/keys/db:ro"
    assert bool(fix(folder)) == ("keys" in path)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SECRETS.replace("DB", "build: ."), id="a-service-that-is-built"),
        pytest.param(SECRETS.replace(", DB", "").replace("./key.txt", "$FILE"), id="a-path-from-a-variable"),
        pytest.param(SECRETS.replace(", DB", "").replace("file: ./key.txt", "environment: KEY"), id="of-a-variable"),
        pytest.param(SECRETS.replace(", DB", "").replace("source: key", "source: other"), id="not-declared"),
    ],
)
def test_secrets_that_have_no_mount(project: Project, text: str) -> None:
    files = {"compose.yaml": text, "password.txt": "a", "key.txt": "b", "Dockerfile": "FROM scratch"}
    assert fix(project(files, FILE="./key.txt")) == []


VOLUMES_OF_OTHERS = """
services:
  app: {image: app, volumes: ['www:/www', 'conf:/conf:ro', '/var/run/docker.sock:/tmp/docker.sock:ro']}
  web: {image: nginx, volumes_from: [app:MODE], volumes: ['own:/conf']}
volumes: {www: , conf: , own: }
"""


@pytest.mark.parametrize(("mode", "end"), [("ro", ":ro"), ("rw", "")])
def test_volumes_of_another_service(project: Project, mode: str, end: str) -> None:
    """A service has the named volumes of the other one, but where it has a mount of its own."""
    folder = project(VOLUMES_OF_OTHERS.replace("MODE", mode))
    lines = fix(folder)

    assert [line.strip() for line in lines[lines.index("  web:") + 1 :]] == [
        "volumes_from: !reset null",
        "volumes:",
        f"- www:/www{end}",
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert {f.diagnostic.code for f in check(folder).all_findings} == {"removed-mount"}


@pytest.mark.parametrize(
    "change",
    [
        ("www:/www", "/www"),
        ("www:/www", "./files:/www"),
        ("www:/www", "$A:/www"),
        ("app:MODE", "container:app"),
        ("[app:MODE]", "[web]"),
    ],
)
def test_volumes_of_another_service_that_have_no_entry(project: Project, change: tuple[str, str]) -> None:
    """No other pod can have an anonymous volume; a copied folder and the value of a variable are not written."""
    text = VOLUMES_OF_OTHERS.replace(*change).replace("MODE", "ro")

    assert "volumes_from" not in "".join(fix(project({"compose.yaml": text, "files/a": ""}, A="own")))


def test_volumes_that_another_service_gets(project: Project) -> None:
    """A service has also the volumes that take the places of the other one's host folders, by the same run of init."""
    text = """
services:
  app: {image: app, volumes: ['./gone:/www', './gone/log:/log', 'own:/own']}
  web: {image: nginx, volumes_from: [app]}
volumes: {own: }
"""
    folder = project(text)
    lines = fix(folder)

    log = "{type: volume, source: gone, target: /log, volume: {subpath: log}}"
    assert mounts_of(lines) == sorted(["gone:/www", log] * 2 + ["own:/own"])
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        ("tmpfs: /run", ["tmpfs: !reset null", "volumes:", "  - {type: tmpfs, target: /run}"]),
        (
            "tmpfs: ['/run:size=64m,mode=755', /tmp]",
            [
                "tmpfs: !reset null",
                "volumes:",
                "  - {type: tmpfs, target: /run, tmpfs: {size: 64m}}",
                "  - {type: tmpfs, target: /tmp}",
            ],
        ),
        (
            "shm_size: 1gb",
            ["shm_size: !reset null", "volumes:", "  - {type: tmpfs, target: /dev/shm, tmpfs: {size: 1gb}}"],
        ),
    ],
)
def test_memory(project: Project, keys: str, lines: list[str]) -> None:
    """Folders in memory are mounted, and nothing is left to mend."""
    folder = project(f"services: {{a: {{image: x, {keys}}}}}")
    written = fix(folder)

    assert written == ["services:", "  a:", *(f"    {line}" for line in lines)]
    folder.write({"compose.platform.yaml": "\n".join(written)})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        pytest.param("", ["volumes:", "  - {type: tmpfs, target: /dev/shm}"], id="alone"),
        pytest.param(
            "shm_size: 1gb,",
            ["shm_size: !reset null", "volumes:", "  - {type: tmpfs, target: /dev/shm, tmpfs: {size: 1gb}}"],
            id="with-a-size",
        ),
        pytest.param(
            "shm_size: $SIZE,", ["volumes:", "  - {type: tmpfs, target: /dev/shm}"], id="with-a-size-of-a-variable"
        ),
    ],
)
def test_shared_memory_of_this_machine(project: Project, keys: str, lines: list[str]) -> None:
    """The pod's own memory takes the place of this machine's."""
    folder = project(f"services: {{a: {{image: x, {keys} volumes: ['/dev/shm:/dev/shm']}}}}", SIZE="1gb")
    written = fix(folder)

    assert written == ["services:", "  a:", *(f"    {line}" for line in lines)]
    folder.write({"compose.platform.yaml": "\n".join(written)})
    assert [f.diagnostic.code for f in check(folder).all_findings] == (["unsupported-key"] if "$" in keys else [])


def test_shared_memory_beside_another_mount(project: Project) -> None:
    """Where a service mounts a folder in the place of the shared memory, that has no size: two mounts are an error."""
    folder = project("services: {a: {image: x, shm_size: 1gb, volumes: ['./gone:/dev/shm']}}")
    lines = fix(folder)

    assert lines == ["services:", "  a:", "    volumes:", "      - gone:/dev/shm", "volumes:", "  gone:"]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert [finding.diagnostic.code for finding in check(folder).all_findings] == ["unsupported-key"]


def test_shared_memory_in_full_mode(project: Project) -> None:
    """Full mode has memory of that size there by itself, once the mount is gone."""
    text = "services: {a: {image: x, shm_size: 1gb, volumes: ['/dev/shm:/dev/shm']}}\nx-platform: {full: true}"
    folder = project(text)
    written = fix(folder)

    assert written == ["services:", "  a:", "    volumes:", "      - !reset /dev/shm"]
    folder.write({"compose.platform.yaml": "\n".join(written)})
    assert folder.read().messages == []


@pytest.mark.parametrize("keys", ["tmpfs: $FOLDER", "tmpfs: ['/run:ro']", "tmpfs: run", "shm_size: $FOLDER"])
def test_memory_that_is_not_mounted(project: Project, keys: str) -> None:
    """The value of a variable is not written, and no mount that means something else."""
    assert fix(project(f"services: {{a: {{image: x, {keys}}}}}", FOLDER="/secret")) == []


@pytest.mark.parametrize(
    ("environment", "entries"),
    [
        pytest.param("['A:B=x y']", ["A:B: !reset null", 'A__B: "x y"'], id="a-list"),
        pytest.param("{'A:B': 1}", ["A:B: !reset null", 'A__B: "1"'], id="a-mapping"),
        pytest.param("['A:B=p/$HIDDEN/$$x']", ["A:B: !reset null", 'A__B: "p/$HIDDEN/$$x"'], id="a-secret-value"),
        pytest.param("['A:0:B C=1', 'A:0:D=1']", ["A:0:D: !reset null", 'A__0__D: "1"'], id="another-name"),
        pytest.param("['$HIDDEN:B=1']", [], id="a-name-from-a-variable"),
        pytest.param("['A:B']", [], id="no-value-in-a-list"),
        pytest.param("{'A:B': }", [], id="no-value-in-a-mapping"),
        pytest.param("{'A:B': 1, A__B: 2}", [], id="both-names"),
    ],
)
def test_names_of_dotnet(project: Project, environment: str, entries: list[str]) -> None:
    """A setting of .NET gets the name that Kubernetes accepts, and its value as the file has it."""
    folder = project(f"services: {{a: {{image: x, environment: {environment}}}}}", HIDDEN="s3cret")
    lines = fix(folder)

    assert lines == (
        ["services:", "  a:", "    environment:", *(f"      {line}" for line in entries)] if entries else []
    )
    if len(entries) == 2 and "0" not in environment:
        folder.write({"compose.platform.yaml": "\n".join(lines)})
        found = folder.read()
        assert found.messages == []
        assert list(found.loaded.project.services["a"].environment) == ["A__B"]


def test_host_in_a_variable_of_dotnet(project: Project) -> None:
    """A host in the value gets its name in the cluster in the same run: another one keeps what is written."""
    text = "services: {a: {image: x, environment: ['A:B=http://b.c:80']}, b.c: {image: x, expose: [80]}}"

    assert fix(project(text))[3:] == ["      A:B: !reset null", "      A__B: http://b-c:80"]


def test_urls_in_a_variable_of_dotnet(project: Project) -> None:
    """So do the hosts of Docker and the URLs of this machine, of which nothing is left after the run."""
    keys = "image: x, environment: {'A:Api': 'http://host.docker.internal:3000', 'A:Public': 'http://localhost:3000/x'}"
    folder = project(f"services: {{a: {{{keys}}}, web: {{image: x, ports: ['3000:80']}}}}")
    lines = fix(folder, domain="example.org")

    assert lines[3:] == [
        "      A:Api: !reset null",
        "      A__Api: http://web:80",
        "      A:Public: !reset null",
        '      A__Public: "https://web-${PLATFORM_NAMESPACE}.${PLATFORM_DOMAIN}/x"',
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder, domain="example.org").all_findings == ()


def test_an_image_without_an_entrypoint(project: Project) -> None:
    """Its command is the program."""
    folder = project("x-platform: {full: true}\nservices: {web: {image: x, ulimits: {nofile: 9}}}")

    assert fix(folder, {"x": ImageFacts(command=("c",))})[2:] == ["    entrypoint: []", '    command: ["c"]']
    assert fix(folder, {"x": ImageFacts()}) == []


_RESTARTED = "    restart: unless-stopped"


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        pytest.param("restart: on-failure, ports: [80]", _RESTARTED, id="ports"),
        pytest.param("restart: 'on-failure:3', healthcheck: {test: a}", _RESTARTED, id="a check"),
        pytest.param(
            "restart: always, deploy: {restart_policy: {condition: on-failure}}, expose: [80]",
            "        condition: any",
            id="of deploy",
        ),
        pytest.param("restart: on-failure}, app: {image: x, command: 'http://web:80'", _RESTARTED, id="an address"),
        pytest.param("restart: on-failure}, app: {image: x, environment: {A_HOST: web}", _RESTARTED, id="a host"),
        pytest.param("restart: on-failure}, app: {image: x, environment: {NAME: web}", "", id="no server"),
        pytest.param(
            "restart: on-failure, labels: {traefik.http.routers.a.rule: a}", _RESTARTED, id="a route of a proxy"
        ),
        pytest.param("restart: on-failure, environment: [VIRTUAL_HOST=a.example]", _RESTARTED, id="a host of a proxy"),
        pytest.param("restart: on-failure, labels: {traefik.enable: 'false'}", "", id="another label"),
    ],
)
def test_server_that_is_restarted_after_failures(project: Project, keys: str, line: str) -> None:
    """A service with a port, also one by which others address it, or a health check is no job: it is restarted."""
    folder = project(f"services: {{web: {{image: x, {keys}}}}}")
    lines = fix(folder)

    assert lines[-1:] == ([line] if line else [])
    if line:
        folder.write({"compose.platform.yaml": "\n".join(lines)})
        found = check(folder)
        assert (found.services[0].kind, fix(folder)) == ("Deployment", [])


@pytest.mark.parametrize(
    ("keys", "is_restarted"),
    [
        ("volumes: ['d:/data/db']", True),
        ("volumes: ['d:/data/db'], command: [--replSet, rs0]", True),
        ("volumes: ['d:/data/db'], command: mongod --auth", True),
        ("volumes: ['d:/data/db'], command: mongorestore", False),
        ("volumes: ['d:/data/db'], entrypoint: [backup]", False),
        ("volumes: ['d:/data/db:ro']", False),
        ("volumes: ['d:/srv/data']", False),
    ],
)
def test_server_that_keeps_data(project: Project, keys: str, *, is_restarted: bool) -> None:
    """The program of an image that has its data is no job; another program with the data may be one."""
    folder = project(f"services: {{db: {{image: mongo, restart: on-failure, {keys}}}}}\nvolumes: {{d: }}\n")

    assert fix(folder)[-1:] == ([_RESTARTED] if is_restarted else [])


def test_job_that_has_a_port(project: Project) -> None:
    """What another service waits for to complete stays a job."""
    text = """
services:
  migrate: {image: x, restart: on-failure, ports: [80]}
  web: {image: x, depends_on: {migrate: {condition: service_completed_successfully}}}
"""
    assert fix(project(text)) == []


RULE = "traefik.http.routers.web.rule"
HOST = f"{RULE}=Host(`a.b`) || Host(`c.d`)"
PORT = "traefik.http.services.web.loadbalancer.server.port"
MIDDLEWARES = "traefik.http.routers.web.middlewares"


@pytest.mark.parametrize(
    ("keys", "port"),
    [
        pytest.param(f"labels: {{{RULE}: Host(`a.b`), {PORT}: 8080}}", 8080, id="traefik"),
        pytest.param("labels: {traefik.frontend.rule: 'Host:a.b', traefik.port: 8080}", 8080, id="traefik-1"),
        pytest.param(f"deploy: {{labels: ['{HOST}', {PORT}=8080]}}", 8080, id="of-swarm"),
        pytest.param("labels: {caddy: 'a.b, www.a.b', caddy.reverse_proxy: '{{upstreams 8080}}'}", 8080, id="caddy"),
        pytest.param("labels: {caddy: 'https://a.b', caddy.reverse_proxy: '{{upstreams}}'}", 80, id="the-port-of-http"),
        pytest.param("environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: 8080}", 8080, id="nginx-proxy"),
        pytest.param("environment: {VIRTUAL_HOST: a.b}, expose: [8080]", 8080, id="a-port-that-it-lists"),
        pytest.param(
            "environment: {VIRTUAL_HOST: a.b, VIRTUAL_PATH: /}, image: exposing", 3000, id="that-of-the-image"
        ),
    ],
)
def test_the_route_of_a_proxy(project: Project, keys: str, port: int) -> None:
    """A service that a proxy opens to all is published at the port which the proxy is given."""
    image = "" if "image:" in keys else "image: a, "
    folder = project({"compose.yaml": f"services: {{web: {{{image}{keys}}}}}"})
    images: ImageAnswers = {"exposing": ImageFacts(user="", volumes=(), ports=((3000, "tcp"),))}
    lines = fix(folder, images)

    assert [line.strip() for line in lines] == ["services:", "web:", "ports:", f'- "{port}:{port}"']
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder, images).all_findings == ()
    plan = folder.read().plan
    assert plan is not None
    (published,) = plan.endpoints
    assert published.routes == (("web", port),)


@pytest.mark.parametrize(
    ("web", "api"),
    [
        pytest.param(
            f"labels: ['{HOST}', '{PORT}=8080']",
            f"labels: ['{RULE}=(Host(`a.b`) || Host(`c.d`)) && PathPrefix(`/api/`)', '{PORT}=3000']",
            id="traefik",
        ),
        pytest.param(
            f"labels: ['{RULE}=PathPrefix(`/`)', '{PORT}=8080']",
            f"labels: ['{RULE}=PathPrefix(`/api/`)', '{PORT}=3000']",
            id="without-hosts",
        ),
        pytest.param(
            "labels: {traefik.frontend.rule: 'Host:a.b', traefik.port: 8080}",
            "labels: {traefik.frontend.rule: 'Host:a.b;PathPrefix:/api/', traefik.port: 3000}",
            id="traefik-1",
        ),
        pytest.param(
            "environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: 8080}",
            "environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: 3000, VIRTUAL_PATH: /api/}",
            id="nginx-proxy",
        ),
    ],
)
def test_services_with_one_address(project: Project, web: str, api: str) -> None:
    """Services that a proxy gives paths of one host are routes of one endpoint."""
    folder = project({"compose.yaml": f"services:\n  the_api: {{image: a, {api}}}\n  web: {{image: a, {web}}}\n"})
    lines = fix(folder)

    assert [line.strip() for line in lines[-3:]] == [
        "web:",
        "- {path: /api/, service: the_api, port: 3000}",
        "- {path: /, service: web, port: 8080}",
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert {found.diagnostic.code for found in check(folder).all_findings} <= {"name-normalized"}
    plan = folder.read().plan
    assert plan is not None
    (endpoint,) = plan.endpoints
    assert (endpoint.name, sorted(endpoint.routes)) == ("web", [("the_api", 3000), ("web", 8080)])


@pytest.mark.parametrize("number", [5432, 25])
def test_a_route_to_a_port_that_is_not_published(project: Project, number: int) -> None:
    """A port on the list of databases gets its URL as a route, as the proxy serves it by HTTP."""
    keys = f"environment: {{VIRTUAL_HOST: a.b, VIRTUAL_PORT: {number}}}"
    folder = project({"compose.yaml": f"services: {{web: {{image: a, {keys}}}}}"})
    lines = fix(folder)

    assert lines[-1].strip() == f"- {{path: /, service: web, port: {number}}}"
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(f"{{image: a, labels: ['{HOST}', '{PORT}=80'], ports: ['80:80']}}", id="a-published-service"),
        pytest.param(f"{{image: a, labels: ['{HOST} && PathPrefix(`/api`)', '{PORT}=80']}}", id="the-same-path"),
    ],
)
def test_an_address_that_can_not_be_shared(project: Project, other: str) -> None:
    """Beside a service that is published itself, or has the same path, a path can't be a route of the same host."""
    rule = "(Host(`a.b`) || Host(`c.d`)) && PathPrefix(`/api`)"
    other = other.replace(f"{HOST} &&", f"{RULE}=(Host(`a.b`) || Host(`c.d`)) &&")
    text = f"services:\n  api: {{image: a, labels: ['{RULE}={rule}', '{PORT}=3000']}}\n  other: {other}\n"

    assert fix(project({"compose.yaml": text})) == []


def test_ports_beside_the_route_of_a_proxy(project: Project) -> None:
    """With the port that is published, the name of the service leads to listed ports only: others are listed too."""
    text = """
services:
  web: {image: a, environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: 8080}}
  worker: {image: a, environment: {METRICS: 'http://web:9100/'}}
"""
    folder = project({"compose.yaml": text})
    lines = fix(folder)

    assert [line.strip() for line in lines[2:]] == ["ports:", '- "8080:8080"', "expose:", '- "9100"']
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


def test_a_server_that_is_restarted_and_published(project: Project) -> None:
    """A server with `on-failure` that a proxy opens is no job after one run, and has its URL."""
    keys = "restart: on-failure, environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: 80}"
    folder = project({"compose.yaml": f"services: {{web: {{image: a, {keys}}}}}"})
    lines = fix(folder)

    assert sorted(line.strip() for line in lines[2:]) == ['- "80:80"', "ports:", "restart: unless-stopped"]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


@pytest.mark.parametrize(
    ("keys", "port"),
    [
        pytest.param("image: n8nio/n8n, ports: ['80:5678']", 5678, id="n8n"),
        pytest.param("image: apache/superset, ports: ['8088:8088'], expose: [9]", 8088, id="superset"),
        pytest.param("image: n8nio/n8n, ports: ['80:5678', '81:81']", 0, id="another-port"),
        pytest.param("image: debugger, ports: ['5678:5678']", 0, id="another-program"),
        pytest.param("image: n8nio/n8n, ports: ['5432:5432']", 0, id="a-database"),
    ],
)
def test_the_page_of_a_program(project: Project, keys: str, port: int) -> None:
    """A program whose page is at a port on the list of databases gets a route to it."""
    folder = project({"compose.yaml": f"services: {{app: {{{keys}}}}}"})
    lines = fix(folder)

    expected = ["endpoints:", "app:", f"- {{path: /, service: app, port: {port}}}"] if port else []
    assert [line.strip() for line in lines] == expected
    if port:
        folder.write({"compose.platform.yaml": "\n".join(lines)})
        plan = folder.read().plan
        assert plan is not None
        assert [endpoint.routes for endpoint in plan.endpoints] == [(("app", port),)]
        assert fix(folder) == []


@pytest.mark.parametrize("endpoints", ["[{route}]", "{{rules: [{route}]}}", "{{n8n: {{rules: [{route}]}}}}"])
@pytest.mark.parametrize("keys", ["image: n8n, ports: ['5678:5678']", f"image: a, labels: ['{HOST}', '{PORT}=5678']"])
def test_a_route_beside_endpoints_in_another_form(project: Project, endpoints: str, keys: str) -> None:
    """Endpoints without names, or with settings, get no route of a list: files with both forms can't be merged."""
    route = "{path: /, service: web, port: 80}"
    text = (
        f"services: {{n8n: {{{keys}}}, web: {{image: x, ports: [80]}}}}\nendpoints: {endpoints.format(route=route)}\n"
    )

    assert fix(project({"compose.yaml": text}), domain="example.com") == []


def test_a_route_to_a_service_with_a_name_that_is_no_text(project: Project) -> None:
    """A name that YAML takes for a boolean is in quotes."""
    keys = "environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: 5432}"
    folder = project({"compose.yaml": f"services: {{'true': {{image: a, {keys}}}}}"})
    lines = fix(folder)

    assert lines[-1].strip() == '- {path: /, service: "true", port: 5432}'
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


def test_harmless_middlewares_of_a_route(project: Project) -> None:
    """A redirect to HTTPS, wherever it is defined, leaves the route open to all."""
    text = f"""
services:
  web: {{image: a, labels: ['{HOST}', '{PORT}=80', '{MIDDLEWARES}=secure@docker, small']}}
  other:
    image: a
    labels:
      - traefik.http.middlewares.secure.redirectscheme.scheme=https
      - traefik.http.middlewares.small.compress=true
"""
    assert '      - "80:80"' in fix(project({"compose.yaml": text}))


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(f"labels: ['{HOST}', '{PORT}=80', '{MIDDLEWARES}=login']", id="a-login"),
        pytest.param(
            "labels: {traefik.frontend.rule: 'Host:a.b', traefik.port: 80, traefik.frontend.auth.basic: 'a:b'}",
            id="a-login-of-v1",
        ),
        pytest.param("labels: {caddy: a.b/x, caddy.reverse_proxy: '{{upstreams 80}}'}", id="a-path-of-caddy"),
        pytest.param(
            "labels: {caddy: a.b, caddy.reverse_proxy: '/x/* {{upstreams 80}}'}, expose: [80]", id="a-matcher"
        ),
        pytest.param(
            "labels: {caddy: a.b, caddy.reverse_proxy: '{{upstreams 80}}', caddy.basicauth.me: x}",
            id="a-login-of-caddy",
        ),
        pytest.param("labels: {caddy: a.b, caddy.reverse_proxy: '{{upstreams https 443}}'}, expose: [443]", id="tls"),
        pytest.param("environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: 80, VIRTUAL_PROTO: https}", id="tls-of-nginx"),
        pytest.param("environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: 80, VIRTUAL_PATH: '~^/a'}", id="a-pattern"),
        pytest.param(f"labels: [{RULE}=HostRegexp(`.+`), '{PORT}=80']", id="hosts-by-a-pattern"),
        pytest.param(f"labels: ['{RULE}=Host(`a.b`) && Path(`/a`)', '{PORT}=80']", id="one-path"),
        pytest.param(f"labels: ['{RULE}=Host(`a.b`) && ClientIP(`10.0.0.0/8`)', '{PORT}=80']", id="some-clients"),
        pytest.param(f"restart: 'no', labels: ['{HOST}', '{PORT}=80']", id="a-job"),
        pytest.param("environment: {VIRTUAL_HOST: a.b, VIRTUAL_PORT: '$NUMBER'}", id="a-port-from-a-variable"),
        pytest.param("environment: {VIRTUAL_HOST: a.b}, expose: [80, 81]", id="several-ports"),
        pytest.param("environment: {VIRTUAL_HOST: a.b}", id="a-port-that-is-not-known"),
    ],
)
def test_a_route_that_stays_without_an_entry(project: Project, keys: str) -> None:
    """What a proxy does not open to all is not published, nor a port that the file does not say."""
    folder = project({"compose.yaml": f"services: {{web: {{image: a, {keys}}}}}"}, NUMBER="39157")

    (finding,) = [found for found in check(folder).all_findings if found.diagnostic.code == "no-effect"]
    assert finding.fix == ()


def test_many_routes_of_a_proxy(project: Project) -> None:
    """The work grows with the services, and not with their square: each route and each middleware is read once."""

    def work(count: int) -> int:
        text = "services:\n" + "".join(
            f"  s{n}: {{image: a, labels: ['{RULE}=Host(`s{n}.b`)', '{PORT}=80', '{MIDDLEWARES}=m{n}',"
            f" traefik.http.middlewares.m{n}.compress=true]}}\n"
            for n in range(count)
        )
        read = project(text).read()
        assert read.plan is not None
        fixes = Fixes(read.loaded, read.plan, {})
        found = [diagnostic for diagnostic in read.loaded.report.sorted() if diagnostic.code == "no-effect"]
        entries: list[tuple[Entry, ...]] = []
        steps = count_steps(lambda: entries.extend(map(fixes.entries_for, found)))
        assert len(found) == count
        assert all(entries)
        return steps

    assert work(40) < 3 * work(20)


def mounts_of(lines: list[str]) -> list[str]:
    return sorted(line.strip(" -") for line in lines if line.startswith("      - "))


_LIBRARY = """
services:
  films: {image: busybox, volumes: ['/srv/lib:/lib']}
  loader: {image: busybox, volumes: ['/srv/lib/in/films:/in']}
  page: {image: nginx, volumes: ['/srv/lib/out:/srv:ro']}
"""


@pytest.mark.parametrize("base", ["/srv/lib", "${LIBRARY}"])
def test_a_folder_within_the_folder_of_another_service(project: Project, base: str) -> None:
    """A folder within another one that becomes a volume is a folder of this volume, read-only as its mount is."""
    folder = project({"compose.yaml": _LIBRARY.replace("/srv/lib", base)}, LIBRARY="/srv/secret-place")
    lines = fix(folder)

    assert mounts_of(lines) == [
        "films-lib:/lib",
        "{type: volume, source: films-lib, target: /in, volume: {subpath: in/films}}",
        "{type: volume, source: films-lib, target: /srv, read_only: true, volume: {subpath: out}}",
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert check(folder).all_findings == ()


def test_a_folder_within_another_one_whose_name_comes_from_a_variable(project: Project) -> None:
    """A path in a volume that only a variable has is in no entry: the folder has a volume of its own."""
    text = _LIBRARY.replace("/srv/lib/in/films", "/srv/lib/${PART}")

    assert mounts_of(fix(project({"compose.yaml": text}, PART="secret")))[:2] == ["films-lib:/lib", "loader-in:/in"]


def test_data_in_a_copied_folder(project: Project) -> None:
    """A service that mounts a folder around the data of another one, as a backup does, gets that one's volume in it."""
    text = """
services:
  db: {image: postgres, volumes: ['./data/db:/var/lib/postgresql/data']}
  app: {image: busybox, volumes: ['./data/app:/app']}
  backup: {image: busybox, volumes: ['./data:/backup/:ro', './data/db:/db:ro']}
  source: {image: busybox, volumes: ['.:/project:ro']}
  built: {image: shop, build: ., volumes: ['./data:/data']}
"""
    folder = project({"compose.yaml": text, "data/app/x": "x", "Dockerfile": "FROM scratch"})
    lines = fix(folder)

    messages = [str(f.diagnostic) for f in check(folder).all_findings if f.diagnostic.path[1:2] == ("backup",)]
    assert messages[-1] == (
        "compose.yaml:5:38: warning: services.backup.volumes[0] mounts a folder with the data of 'db' in it: "
        "what is written there is not seen here [host-data]"
    )
    assert mounts_of(lines) == [
        "db-data:/backup/db:ro",
        "db-data:/db:ro",
        "db-data:/var/lib/postgresql/data",
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert [found for found in check(folder).all_findings if found.diagnostic.code != "not-deployed"] == []


def test_data_at_a_system_path_that_others_use(project: Project) -> None:
    """Other services get the volume of a program's data too, or a folder of it; they don't lose the mount."""
    text = """
services:
  db: {image: postgres, volumes: ['/var/lib/pg:/var/lib/postgresql/data']}
  dump: {image: postgres, volumes: ['/var/lib/pg:/data:ro']}
  clean: {image: busybox, volumes: ['/var/lib/pg:/all', '/var/lib/pg/log:/log', '/var/lib/other:/other']}
"""
    folder = project(text)
    lines = fix(folder)

    assert mounts_of(lines) == [
        "!reset /other",
        "pg:/all",
        "pg:/data:ro",
        "pg:/var/lib/postgresql/data",
        "{type: volume, source: pg, target: /log, volume: {subpath: log}}",
    ]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert [f.diagnostic.code for f in check(folder).all_findings] == ["removed-mount"]


def test_the_size_of_a_volume_with_a_folder_within(project: Project) -> None:
    """A volume that several entries declare has one size in all of them."""
    text = """
services:
  db: {image: postgres, volumes: ['./pg:/var/lib/postgresql/data']}
  page: {image: busybox, volumes: ['./pg/log:/log', './pg:/all:ro']}
"""
    folder = project({"compose.yaml": text, "pg/PG_VERSION": "17", "pg/log/.gitkeep": ""})
    with (folder.path / "pg" / "base").open("w") as file:
        file.truncate(700 * 2**20)

    assert fix(folder)[-2:] == ["volumes:", "  pg: {size: 2Gi}"]


@pytest.mark.parametrize(("profiles", "entry"), [("gpu", "URL: http://on-gpu:80"), ("", "")])
def test_the_name_of_a_service_that_is_not_started(project: Project, profiles: str, entry: str) -> None:
    """A name that services of several profiles have is that of the one which Compose starts, if it starts any."""
    text = """
services:
  web: {image: x, environment: {URL: 'http://model:80'}}
  on-cpu: {image: x, container_name: model, profiles: [cpu]}
  on-gpu: {image: x, container_name: model, profiles: [gpu]}
"""
    lines = fix(project({"compose.yaml": text}, COMPOSE_PROFILES=profiles))

    assert [line.strip() for line in lines if "URL" in line] == [entry] * bool(entry)
    assert "  on-cpu: !reset null" in lines
