"""Names of hosts that no Kubernetes object can have: found, and replaced by `platform init`."""

from __future__ import annotations

import pytest

from composeplat.compatibility.host_rules import replace_host
from tests.compatibility.test_check import check
from tests.compatibility.test_fixes import fix
from tests.conftest import Project

TEXT = "services:\n  my_db: {{image: db}}\n  app: {{image: app, {}}}\n"
NAMED = "names the host 'my_db'"


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        pytest.param("pg://my_db:5432?d=my_db", "pg://my-db:5432?d=my_db", id="a-url-and-its-database"),
        pytest.param("pg://u:p@my_db/my_db", "pg://u:p@my-db/my_db", id="after-a-user"),
        pytest.param("a:1,my_db:2", "a:1,my-db:2", id="before-a-port"),
        pytest.param("http://my_db_2:80 http://my_db.net x_my_db:1", "", id="other-names"),
        pytest.param("my_db", "", id="a-word"),
        pytest.param("MY_DB:80", "", id="another-case"),
        pytest.param("/data/my_db:80", "", id="a-path"),
    ],
)
def test_replaced(text: str, replaced: str) -> None:
    """A name is a host in a URL and before a port."""
    assert replace_host(text, "command", "my_db") == (replaced or text)


@pytest.mark.parametrize(
    ("app", "place", "lines"),
    [
        pytest.param("environment: {URL: 'pg://u:$P@my_db/my_db'}", (".environment.URL", ""),
                     ['      URL: "pg://u:$P@my-db/my_db"'], id="a-url"),
        pytest.param("environment: ['DB_HOST=my_db', 'DB_NAME=my_db']", (".environment", " (DB_HOST)"),
                     ["      DB_HOST: my-db"], id="a-list"),
        pytest.param("env_file: app.env", ("", " (DB_HOST)"), ["      DB_HOST: my-db"], id="an-env-file"),
        pytest.param("env_file: url.env", ("", " (URL)"), [], id="a-url-in-an-env-file"),
        pytest.param("command: [wait, 'my_db:5432']", (".command", ""), [], id="a-command"),
        pytest.param("volumes: ['./app.conf:/app.conf']", ("", " (app.conf)"), [], id="a-file"),
    ],
)  # fmt: skip
def test_unresolvable_host(project: Project, app: str, place: tuple[str, str], lines: list[str]) -> None:
    """What addresses the service by its written name has a warning; a variable that the file sets is set again."""
    files = {
        "app.env": "DB_HOST=my_db\n",
        "url.env": "URL=pg://u:hunter2@my_db",
        "app.conf": "proxy_pass http://my_db:80;\n",
    }
    folder = project({"compose.yaml": TEXT.format(app), **files}, P="hunter2")
    messages = [f.diagnostic.message for f in check(folder).all_findings if f.diagnostic.code == "unresolvable-host"]
    entries = fix(folder)

    assert messages == [f"services.app{place[0]} {NAMED}{place[1]}, which is 'my-db' in a cluster"]
    assert entries == (["services:", "  app:", "    environment:", *lines] if lines else [])


def test_nothing_is_left(project: Project) -> None:
    """With the entries the variable has the name that resolves, and another check finds nothing."""
    folder = project({"compose.yaml": TEXT.format("environment: ['URL=pg://my_db:5432']")})
    folder.write({"compose.platform.yaml": "\n".join(fix(folder))})

    assert folder.read().loaded.project.services["app"].variables["URL"] == "pg://my-db:5432"
    assert [f.diagnostic.code for f in check(folder).all_findings] == ["name-normalized"]


def test_names_that_resolve(project: Project) -> None:
    """Another case is the same host, and a database of the name is none."""
    text = "services:\n  DB: {image: db}\n  app: {image: app, environment: {DB_HOST: DB, URL: 'http://DB:80'}}\n"

    assert [f.diagnostic.code for f in check(project(text)).all_findings] == ["name-normalized"]
