"""Host volumes that hold data."""

from __future__ import annotations

import pytest

from composeplat.compose.data_paths import find_program, looks_like_file
from tests.conftest import Project
from tests.in_process import run_here
from tests.steps import count_steps

LOST = "what is written there is lost with the pod [host-data]"


@pytest.mark.parametrize(
    ("path", "image", "program"),
    [
        ("/var/lib/postgresql/data", "postgres:17", "PostgreSQL"),
        ("/var/lib/postgresql/18/docker", "postgres:18", "PostgreSQL"),
        ("/var/lib/mysql", "mariadb", "MySQL or MariaDB"),
        ("/data", "redis:7-alpine", "Redis"),
        ("/data", "quay.io/minio/minio", "MinIO"),
        ("/data", "busybox", ""),
        ("/bitnami/postgresql", "bitnami/postgresql", "the Bitnami image"),
        ("/var/www/html", "nextcloud:fpm", "Nextcloud"),
        ("/var/www/html", "php:apache", ""),
        ("/etc/postgresql", "postgres", ""),
        ("/config", "lscr.io/linuxserver/sonarr:latest", "the LinuxServer.io image"),
        ("/config", "jellyfin/jellyfin", "Jellyfin"),
        ("/config", "nginx", ""),
        ("/data", "ghcr.io/immich-app/immich-server:release", "Immich"),
        ("/data", "ghcr.io/immich-app/immich-machine-learning:release", ""),
        ("/usr/src/paperless/consume", "ghcr.io/paperless-ngx/paperless-ngx", "Paperless"),
        ("/usr/src/paperless/scripts", "ghcr.io/paperless-ngx/paperless-ngx", ""),
        ("/etc/pihole", "pihole/pihole", "Pi-hole"),
    ],
)
def test_programs(path: str, image: str, program: str) -> None:
    """A path is one of a program's data, for some of them only in its own image."""
    assert find_program(path, image) == program


def test_names_of_files() -> None:
    """Some files have no suffix; folders such as those of hidden settings have none either."""
    files = "/etc/caddy/Caddyfile /x/Dockerfile2 /app/.env /app/.env.local /root/.npmrc /etc/mongo-keyfile"
    more = "/root/.ssh/id_rsa /root/.gitconfig /etc/passwd /docker-entrypoint /a.conf /run/secrets/db_password"
    folders = (
        "/data",
        "/root/.aws",
        "/root/.ssh",
        "/etc/conf.d",
        "/Profiles",
        "/profile",
        "/srv/files",
        "/run/secrets",
    )

    assert [path for path in f"{files} {more}".split() if not looks_like_file(path)] == []
    assert [path for path in folders if looks_like_file(path)] == []


@pytest.mark.parametrize("keys", ["image: postgres", "build: ."])
def test_data_of_a_program(project: Project, keys: str) -> None:
    """A folder at the path of a program's data is warned of, whatever is in it, in a built service too."""
    text = f"services: {{db: {{{keys}, volumes: ['./pg:/var/lib/postgresql/data']}}}}"
    reading = project({"compose.yaml": text, "pg/PG_VERSION": "17", "Dockerfile": ""}).read()

    (message,) = reading.messages
    assert message.endswith(f"mounts a folder of this machine where PostgreSQL keeps its data: {LOST}")


def test_data_at_a_system_path(project: Project) -> None:
    """A program's data at a path of the system gets a volume from `init`: it is not left out as other such mounts."""
    text = "services: {dns: {image: pihole/pihole, volumes: ['/etc/pihole/:/etc/pihole/']}}"
    outcome = run_here("init", "--yes", "--offline", folder=project(text).path)

    assert (
        "+      # Pi-hole keeps its data here; the present files are not copied.\n+      - pihole:/etc/pihole\n"
        in outcome.stdout
    )


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param("./pg:/var/lib/mysql:ro", id="read-only"),
        pytest.param("./pg/PG_VERSION:/var/lib/mysql/my.cnf", id="a-file"),
        pytest.param("./pg:/etc/mysql", id="files-to-ship"),
    ],
)
def test_no_data(project: Project, volume: str) -> None:
    """What is read-only, a file, or a folder of files at another path is no data."""
    text = f"services: {{db: {{image: mysql, volumes: ['{volume}']}}}}"

    assert project({"compose.yaml": text, "pg/PG_VERSION": "17"}).read().messages == []


@pytest.mark.parametrize("keys", ["image: app", "build: ."])
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([".gitkeep"], f"with '.gitkeep' alone: {LOST}"),
        ([".gitignore", ".keep"], f"with '.gitignore' and '.keep' alone: {LOST}"),
        ([".gitkeep", "data.csv"], ""),
    ],
)
def test_folders_that_git_keeps(project: Project, keys: str, names: list[str], expected: str) -> None:
    """Git has no empty folders: one with a file that only keeps it is as an empty one."""
    text = f"services: {{web: {{{keys}, volumes: ['./data:/data']}}}}"
    files = {f"data/{name}": "" for name in names}
    reading = project({"compose.yaml": text, "Dockerfile": "", **files}).read()

    assert [message.partition("of this machine ")[2] for message in reading.messages] == [expected] * bool(expected)


def test_volumes_that_would_be_one(project: Project) -> None:
    """Two folders of one name are not to become one volume, nor a folder and a volume of the definition."""
    text = """
        services:
          a: {image: postgres, volumes: ["./a/data:/var/lib/postgresql/data"]}
          b: {image: redis, volumes: ["./b/data:/data", "./keep:/keep", "./once:/once"]}
          c: {image: redis, volumes: ["./once:/once", "keep:/data"]}
        volumes: {keep: }
    """
    reading = project({"compose.yaml": text}).read()

    hints = [message.hint.partition("/")[0].rpartition("'")[2] for message in reading.loaded.report.sorted()]
    assert hints == ["a-data:", "b-data:", "b-keep:", "once:", "once:"]


def test_missing_folder_that_is_read_only(project: Project) -> None:
    """Nothing is kept in a folder that is read-only."""
    reading = project({"compose.yaml": "services: {a: {image: nginx, volumes: ['./certs:/certs:ro']}}"}).read()

    (message,) = reading.loaded.report.sorted()
    assert message.hint == "create the folder: its files are copied, read-only"


def test_built_service(project: Project) -> None:
    """Of the host volumes of a built service, folders without a file are warned of, and files and sources are not."""
    text = "services: {web: {build: ., volumes: ['.:/app', './gone:/a', './empty:/b', './x.conf:/c/x.conf']}}"
    folder = project({"compose.yaml": text, "Dockerfile": ""})
    (folder.path / "empty").mkdir()

    assert [message.partition("warning: ")[2] for message in folder.read().messages] == [
        f"services.web.volumes[1] mounts a folder that does not exist on this machine: {LOST}",
        f"services.web.volumes[2] mounts an empty folder of this machine: {LOST}",
    ]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        ("./app", ["volumes[0]", "volumes[1]"]),
        (".", []),
        ("{context: ./app, additional_contexts: {conf: ./conf}}", ["volumes[1]"]),
        ("https://example.com/app.git", ["volumes[0]", "volumes[1]", "volumes[2]"]),
    ],
)
def test_files_outside_the_context(project: Project, build: str, expected: list[str]) -> None:
    """A built service has files neither here nor in its image if they are outside the build context."""
    text = f"services: {{web: {{build: {build}, volumes: ['./conf:/c:ro', './x.conf:/x.conf', './app/src:/src:ro']}}}}"
    files = {"app/Dockerfile": "", "Dockerfile": "", "app/src/a": "", "conf/a": "", "x.conf": ""}
    found = project({"compose.yaml": text, **files}).read().loaded.report.sorted()

    assert [str(d).split()[2].removeprefix("services.web.") for d in found if d.code == "not-in-image"] == expected


@pytest.mark.parametrize(
    ("volume", "hint"),
    [
        ("/var/run/docker.sock:/s", "there is no Docker socket in a cluster"),
        ("/etc/localtime:/etc/localtime:ro", "leave it out, and set the time zone by a variable"),
        ("/proc:/host:ro", "a cluster has no path of this machine"),
        ("../x:/x", "copy it into the image"),
    ],
)
def test_what_no_image_can_have(project: Project, volume: str, hint: str) -> None:
    """The hint is not to copy a system path into an image."""
    text = f"services: {{web: {{build: ., volumes: ['{volume}']}}}}"
    found = project({"compose.yaml": text, "Dockerfile": ""}).read().loaded.report.sorted()

    assert [d.hint.startswith(hint) for d in found if d.code == "not-in-image"] == [True]


@pytest.mark.parametrize(
    ("volume", "is_kept"),
    [
        ("../x:/x", True),
        ("../x:/x:ro", False),
        ("../x:/etc/x.conf", False),
        ("./tool:/usr/bin/tool", False),
    ],
)
def test_what_a_program_may_write(project: Project, volume: str, *, is_kept: bool) -> None:
    """The hint about a folder outside the context has a named volume too; not for a file, which a volume is not."""
    text = f"services: {{web: {{build: ./app, volumes: ['{volume}']}}}}"
    folder = project({"compose.yaml": text, "app/Dockerfile": "", "tool": ""})
    (hint,) = (found.hint for found in folder.read().loaded.report.sorted() if found.code == "not-in-image")

    assert ("to keep what is written there, use a named volume: 'x:/x'" in hint) == is_kept
    assert ("named volume" in hint) == is_kept


MAGIC = "SQLite format 3\0"


@pytest.mark.parametrize(
    ("volume", "service", "found"),
    [
        ("./app.db:/app/app.db", "image: a", "a database of this machine"),
        ("./app.db:/app/app.db", "build: .", "a database of this machine"),
        ("./app.db:/app/app.db:ro", "image: a", ""),
        ("./zone.db:/etc/bind/zone.db", "image: a", ""),
        ("./data:/app/data", "image: a", "a folder of this machine with 'a.db' and 'a.db-wal' alone"),
        ("./data:/app/data", "build: .", ""),
        ("./lite:/app/data", "build: .", "a folder of this machine with 'a.sqlite3' alone"),
        ("./zones:/etc/bind", "image: a", ""),
        ("./mixed:/app", "image: a", ""),
    ],
)
def test_databases(project: Project, volume: str, service: str, found: str) -> None:
    """A database of SQLite is data; a file of that name with something else is not, and code is beside others."""
    files = {
        "Dockerfile": "",
        "app.db": MAGIC,
        "zone.db": "$TTL 1",
        "data/a.db": MAGIC,
        "data/a.db-wal": "x",
        "lite/a.sqlite3": MAGIC,
        "zones/zone.db": "$TTL 1",
        "mixed/a.db": MAGIC,
        "mixed/app.py": "x",
    }
    folder = project({"compose.yaml": f"services: {{web: {{{service}, volumes: ['{volume}']}}}}", **files})
    report = folder.read().loaded.report.sorted()

    assert [d.message for d in report if d.code == "host-data"] == (
        [f"services.web.volumes[0] mounts {found}: what is written there is lost with the pod"] if found else []
    )
    folder.run("init", "--yes")
    written = folder.path / "compose.platform.yaml"
    assert written.exists() == found.startswith("a folder")


def test_outside_the_project(project: Project) -> None:
    """Whether a folder outside the project exists is not looked up; the image can't have it."""
    text = "services: {web: {build: ., volumes: ['../gone:/app/data']}}"

    assert project({"compose.yaml": text, "Dockerfile": ""}).read().codes == ["not-in-image"]


def test_refused_data(project: Project) -> None:
    """A data folder outside the project is refused, and the fix begins with the named volume."""
    (error,) = (
        project("services: {db: {image: mysql, volumes: ['/srv/db:/var/lib/mysql']}}").read().loaded.report.sorted()
    )

    assert error.code == "outside-project"
    assert error.hint.startswith(
        "to keep the data of MySQL or MariaDB: 'db:/var/lib/mysql', with 'db:' under the top-level 'volumes'; otherwise"
    )


def test_nothing_is_published(project: Project) -> None:
    """A command that publishes nothing does not warn."""
    text = "services: {web: {build: ., volumes: ['./gone:/app/data']}}"

    assert project({"compose.yaml": text, "Dockerfile": ""}).read(publishes=False).messages == []


@pytest.mark.parametrize(
    ("user", "places"),
    [
        ("'1000'", ["0] has mode 0600 in 'key'", "1] has mode 0640"]),
        ("'1000:1000'", ["0] has mode 0600 in 'key'", "1] has mode 0640"]),
        ("'1000:0'", ["0] has mode 0600 in 'key'"]),
        ("'0'", []),
        ("root", []),
        ("''", []),
    ],
)
def test_files_that_the_user_cannot_read(project: Project, user: str, places: list[str]) -> None:
    """Files of a pod belong to root, so that one with a mode for its owner alone is closed to any other user."""
    text = f"services: {{web: {{image: a, user: {user}, volumes: ['./conf:/c', './one:/one', './conf/cert:/d']}}}}"
    folder = project({"compose.yaml": text, "conf/key": "k", "conf/cert": "c", "one": "1"})
    for name, mode in (("conf/key", 0o600), ("one", 0o640)):
        (folder.path / name).chmod(mode)

    assert [message.partition("volumes[")[2] for message in folder.read().messages] == [
        f"{place} and belongs to root, so that user 1000 of the service can't read it [unreadable-mount]"
        for place in places
    ]


def test_files_of_a_built_service(project: Project) -> None:
    """A host volume that is not deployed is not read by anyone."""
    text = "services: {web: {build: ., user: '1000', volumes: ['./key:/key']}}"
    folder = project({"compose.yaml": text, "key": "k", "Dockerfile": ""})
    (folder.path / "key").chmod(0o600)

    assert folder.read().messages == []


SHARED = """
services:
  wp: {image: 'wordpress:fpm', volumes: ['./html:/var/www/html']}
  cron: {image: 'wordpress:cli', volumes: ['./html:/var/www/html']}
  web: {image: nginx, volumes: ['./html:/var/www/html:ro', './web.conf:/etc/nginx/conf.d/web.conf']}
  backup: {build: ., volumes: ['./html:/html', './web.conf:/web.conf']}
"""


def test_data_that_other_services_read(project: Project) -> None:
    """A folder that holds data is warned of at each other mount of it, with the first service that writes it."""
    found = project({"compose.yaml": SHARED, "html/a": "", "web.conf": "", "Dockerfile": ""}).read().messages

    message = "mounts a folder that holds the data of 'wp': what is written there is not seen here [host-data]"
    assert all(text.endswith(LOST) for text in found[:2])
    assert [text.partition("warning: ")[2] for text in found[2:]] == [
        f"services.web.volumes[0] {message}",
        f"services.backup.volumes[0] {message}",
    ]


def test_many_services_that_read_data(project: Project) -> None:
    """Ten times the services take ten times the work."""

    def steps(count: int) -> int:
        services = "".join(f"  s{i}: {{image: nginx, volumes: ['./html:/srv:ro']}}\n" for i in range(count))
        text = f"services:\n  wp: {{image: 'wordpress:fpm', volumes: ['./html:/var/www/html']}}\n{services}"
        folder = project({"compose.yaml": text, "html/a": ""})
        return count_steps(lambda: folder.read().messages)

    assert steps(200) < 12 * steps(20)
