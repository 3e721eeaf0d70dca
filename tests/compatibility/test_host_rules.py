"""Names of hosts that no Kubernetes object can have: found, and replaced by `platform init`."""

from __future__ import annotations

import time

import pytest

from composeplat.compatibility.entries import yaml_text
from composeplat.compatibility.host_rules import check_hosts, renamed_hosts, replace_hosts
from composeplat.compatibility.platform_file import entry_lines
from composeplat.compose.origins import Checker
from composeplat.diagnostics import Report
from composeplat.render.manifests import to_yaml
from tests.compatibility.test_check import check
from tests.compatibility.test_fixes import fix
from tests.conftest import Project
from tests.steps import count_steps

TEXT = "services:\n  my_db: {{image: db}}\n  app: {{image: app, {}}}\n"
NAMED = "names the host 'my_db'"
SET = "    environment:"


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        pytest.param("pg://my_db:5432?d=my_db", "pg://my-db:5432?d=my_db", id="a-url-and-its-database"),
        pytest.param("pg://u:p@my_db/my_db", "pg://u:p@my-db/my_db", id="after-a-user"),
        pytest.param("a:1,my_db:2", "a:1,my-db:2", id="before-a-port"),
        pytest.param("http://my_db_2:80 http://my_db.net x_my_db:1", "", id="other-names"),
        pytest.param("my_db", "", id="a-word"),
        pytest.param("ask http://my_db.", "ask http://my-db.", id="the-end-of-a-sentence"),
        pytest.param("ping -h h -h my_db", "ping -h h -h my-db", id="after-another-host"),
        pytest.param("MY_DB:80", "", id="another-case"),
        pytest.param("/data/my_db:80", "", id="a-path"),
        pytest.param("pg_isready -h my_db -d my_db", "pg_isready -h my-db -d my_db", id="an-option"),
        pytest.param("check\n--host\nmy_db", "check\n--host\nmy-db", id="an-option-of-a-list"),
        pytest.param("--host=my_db --hosts=my_db", "--host=my-db --hosts=my_db", id="an-option-with-its-value"),
        pytest.param("pg://${H:-my_db}/${D:-my_db}", "pg://${H:-my-db}/${D:-my_db}", id="a-default-in-a-url"),
        pytest.param("u@${H-my_db} ${H:-my_db}:${P}", "u@${H-my-db} ${H:-my-db}:${P}", id="a-default-before-a-port"),
        pytest.param("${D:-my_db}", "", id="a-default-that-may-be-no-host"),
    ],
)
def test_replaced(text: str, replaced: str) -> None:
    """A name is a host in a URL and before a port."""
    assert replace_hosts(text, "command", {"my_db": "my-db"}) == (replaced or text)


def test_a_default(project: Project) -> None:
    """A variable of the container whose default is the name alone gets an entry, with its own variable."""
    variables = "{DB_HOST: '${DB_HOST:-my_db}', NAME: '${NAME-my_db}'}"
    lines = fix(project(f"services: {{my_db: {{image: db}}, app: {{image: app, environment: {variables}}}}}"))

    assert [line.strip() for line in lines if "my" in line] == ['DB_HOST: "${DB_HOST:-my-db}"']


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        pytest.param("command: 'wait my_db:1 $$A ${B}'", 'command: "wait my-db:1 $$A ${B}"', id="a-text"),
        pytest.param("command: [wait, -h, my_db, my_db]", 'command: ["wait", "-h", "my-db", "my_db"]', id="a-list"),
        pytest.param("entrypoint: [wait, 'my_db:1']", 'entrypoint: ["wait", "my-db:1"]', id="an-entrypoint"),
        pytest.param("healthcheck: {test: 'ask -h my_db'}", 'test: "ask -h my-db"', id="a-health-check"),
        pytest.param('command: [sh, -c, "a\\nb my_db:1"]', "", id="lines"),
    ],
)
def test_arguments(project: Project, keys: str, line: str) -> None:
    """A command is written again as a whole, as merging needs it; variables stay."""
    folder = project(TEXT.format(keys))
    lines = fix(folder)

    assert [text.strip() for text in lines if "my" in text and "app" not in text] == ([line] if line else [])


def test_addresses(project: Project) -> None:
    """An address that the file gives to a service is no address of a pod; the name of the service is its host."""
    db = "{image: db, networks: {n: {ipv4_address: 10.9.0.2}}}"
    keys = "environment: {URL: 'pg://10.9.0.2:5432', NET: 10.9.0.2/24}, extra_hosts: ['main:10.9.0.2', 'o:10.9.0.3']"
    folder = project(f"services: {{db: {db}, app: {{image: app, networks: [n], {keys}}}}}\nnetworks: {{n: }}\n")
    found = [f.diagnostic for f in check(folder, full=True).all_findings if f.diagnostic.code == "unresolvable-host"]

    assert [(d.message, d.hint) for d in found] == [
        ("services.app.environment.URL names the host '10.9.0.2', which is 'db' in a cluster", "write 'db'"),
        (
            "services.app.extra_hosts gives 'main' the address of 'db', which is another one in a cluster",
            "leave it out, and write 'db' wherever 'main' is used",
        ),
    ]


def test_many_hosts(project: Project) -> None:
    """The work grows with the texts, and not with the texts times the names that each could have."""

    def work(count: int) -> int:
        services = {f"s_{n}": {"image": "a", "environment": [f"URL=http://s_{n}:80"]} for n in range(count)}
        loaded = project(to_yaml({"services": services})).read().loaded
        renamed, report = renamed_hosts(loaded), Report()
        steps = count_steps(lambda: check_hosts(Checker(loaded.project, loaded.origins, report), renamed))
        assert len(report.sorted()) == count
        return steps

    assert work(80) < 5 * work(20)


@pytest.mark.parametrize(
    ("app", "place", "lines"),
    [
        pytest.param("environment: {URL: 'pg://u:$P@my_db/my_db'}", (".environment.URL", ""),
                     [SET, '      URL: "pg://u:$P@my-db/my_db"'], id="a-url"),
        pytest.param("environment: ['DB_HOST=my_db', 'DB_NAME=my_db']", (".environment.DB_HOST", ""),
                     [SET, "      DB_HOST: my-db"], id="a-list"),
        pytest.param("env_file: app.env", (".env_file.DB_HOST", ""), [SET, "      DB_HOST: my-db"], id="an-env-file"),
        pytest.param("env_file: url.env", (".env_file.URL", ""), [], id="a-url-in-an-env-file"),
        pytest.param("command: [wait, 'my_db:5432']", (".command", ""),
                     ['    command: ["wait", "my-db:5432"]'], id="a-command"),
        pytest.param("entrypoint: [wait, 'my_db:5432']", (".entrypoint", ""),
                     ['    entrypoint: ["wait", "my-db:5432"]'], id="an-entrypoint"),
        pytest.param("healthcheck: {test: [CMD, ask, -h, my_db]}", (".healthcheck", ""),
                     ["    healthcheck:", '      test: ["CMD", "ask", "-h", "my-db"]'], id="a-health-check"),
        pytest.param("volumes: ['./app.conf:/app.conf']", (".volumes[0]", " (app.conf)"), [], id="a-file"),
    ],
)  # fmt: skip
def test_unresolvable_host(project: Project, app: str, place: tuple[str, str], lines: list[str]) -> None:
    """What addresses the service by its written name has a warning; what the file sets is set again."""
    files = {
        "app.env": "DB_HOST=my_db\n",
        "url.env": "URL=pg://u:hunter2@my_db",
        "app.conf": "proxy_pass http://my_db:80;\n",
    }
    folder = project({"compose.yaml": TEXT.format(app), **files}, P="hunter2")
    messages = [f.diagnostic.message for f in check(folder).all_findings if f.diagnostic.code == "unresolvable-host"]
    entries = fix(folder)

    assert messages == [f"services.app{place[0]} {NAMED}{place[1]}, which is 'my-db' in a cluster"]
    assert entries == (["services:", "  app:", *lines] if lines else [])


@pytest.mark.parametrize("address", ["the-db", "the_db"])
@pytest.mark.parametrize("keys", ["container_name: {}", "hostname: {}", "networks: {{default: {{aliases: [{}]}}}}"])
@pytest.mark.parametrize("full", [False, True])
def test_further_names(project: Project, address: str, keys: str, *, full: bool) -> None:
    """Names beside that of a service resolve in full mode only, and never with an underscore."""
    text = "services:\n  db: {image: db, %s}\n  app: {image: app, environment: {A: '%s:1', DB_HOST: %s}}\n"
    folder = project(text % (keys.format(address), address, address) + "networks: {default: }\n")
    found = [f for f in check(folder, full=full).all_findings if f.diagnostic.code == "unresolvable-host"]
    written = [str(entry.line) for finding in found for entry in finding.fix]

    assert written == ([] if full and address == "the-db" else ["A: db:1", "DB_HOST: db"])


@pytest.mark.parametrize("name", ["the-db", "the_db"])
@pytest.mark.parametrize("full", [False, True])
def test_names_of_links(project: Project, name: str, *, full: bool) -> None:
    """A service knows another one by the alias of a link, which resolves in full mode, and never with an underscore."""
    app = f"{{image: app, links: ['db:{name}'], environment: {{A: 'pg://{name}/x'}}}}"
    findings = check(project(f"services: {{db: {{image: db}}, app: {app}}}"), full=full).all_findings
    found = [finding for finding in findings if finding.diagnostic.code == "unresolvable-host"]

    assert [str(entry.line) for finding in found for entry in finding.fix] == (
        [] if full and name == "the-db" else ["A: pg://db/x"]
    )


@pytest.mark.parametrize(("alias", "is_renamed"), [("auth.example.com", False), ("auth.local", True), ("my.x1", True)])
def test_an_alias_that_may_be_public(project: Project, alias: str, *, is_renamed: bool) -> None:
    """A proxy has the public name as an alias; a URL with it, such as that of an issuer of tokens, stays."""
    proxy = f"{{image: proxy, networks: {{n: {{aliases: ['{alias}']}}}}}}"
    app = f"{{image: app, networks: [n], environment: {{ISSUER: 'https://{alias}/realms/a'}}}}"
    folder = project(f"services: {{proxy: {proxy}, app: {app}}}\nnetworks: {{n: }}\n")

    assert [line.strip() for line in fix(folder) if "ISSUER" in line] == (
        ["ISSUER: https://proxy/realms/a"] if is_renamed else []
    )


@pytest.mark.parametrize("links", ["a:x_db, b:x_db", "a:b", "a", "a:db.example.com"])
def test_a_link_that_names_no_host(project: Project, links: str) -> None:
    """The alias of two services, that of another service, none at all, and one that may be public."""
    services = ", ".join(
        f"s{n}: {{image: i, links: ['{link}'], environment: {{A_HOST: '{link.partition(':')[2]}'}}}}"
        for n, link in enumerate(links.split(", "))
    )
    found = check(project(f"services: {{a: {{image: a}}, b: {{image: b}}, {services}}}")).all_findings

    assert "unresolvable-host" not in [finding.diagnostic.code for finding in found]


@pytest.mark.parametrize("address", ["demo-db-1", "demo_db_1", "tasks.db"])
@pytest.mark.parametrize("full", [False, True])
def test_names_of_containers(project: Project, address: str, *, full: bool) -> None:
    """Compose's own names of containers are hosts for Docker, and Swarm's; no pod has them."""
    text = (
        f"name: shop\nservices:\n  db: {{image: db}}\n  app: {{image: app, environment: {{A: 'pg://{address}/x'}}}}\n"
    )
    found = [f for f in check(project(text), full=full).all_findings if f.diagnostic.code == "unresolvable-host"]

    assert [str(entry.line) for finding in found for entry in finding.fix] == ["A: pg://db/x"]


def test_a_further_name_that_resolves(project: Project) -> None:
    """A service of this name is meant, and another case is the same host."""
    text = "services: {db: {image: a, container_name: DB}, a: {image: a, environment: {DB_HOST: DB}}}"

    assert "unresolvable-host" not in [f.diagnostic.code for f in check(project(text)).all_findings]


@pytest.mark.parametrize("name", ["localhost", "db.example.com"])
def test_a_host_name_of_no_container(project: Project, name: str) -> None:
    """An address of the container itself, or one that may be public, is left as it is."""
    text = f"services: {{db: {{image: a, hostname: {name}}}, a: {{image: a, environment: {{DB_HOST: {name}}}}}}}"

    assert "unresolvable-host" not in [f.diagnostic.code for f in check(project(text)).all_findings]


@pytest.mark.parametrize("other", ["{B: b}", "[B=b]"])
def test_a_variable_of_several_files(project: Project, other: str) -> None:
    """The place is that of the variable, also where another file sets others of the service."""
    folder = project(TEXT.format("environment: {A: 'pg://my_db:1'}"))
    folder.write({"compose.override.yml": f"services: {{app: {{environment: {other}}}}}"})
    (span,) = (f.diagnostic.span for f in check(folder).all_findings if f.diagnostic.code == "unresolvable-host")

    assert (span.source.name, span.line) == ("compose.yaml", 3)


def test_each_finding_has_its_own_entry(project: Project) -> None:
    """An entry mends the finding that it is shown with, and no other."""
    text = "services:\n  my_db: {image: a}\n  app: {image: a, env_file: a.env, environment: {A_HOST: my_db}}\n"
    folder = project({"compose.yaml": text, "a.env": "B_HOST=my_db\nC_URL=x://my_db\n"})
    found = [f for f in check(folder).all_findings if f.diagnostic.code == "unresolvable-host"]

    assert {(str(f.diagnostic.path[-1]), *(entry.line for entry in f.fix)) for f in found} == {
        ("A_HOST", "A_HOST: my-db"),
        ("B_HOST", "B_HOST: my-db"),
        ("C_URL",),
    }


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


@pytest.mark.parametrize(
    ("keys", "place", "named"),
    [
        ("environment: {URL: 'http://host.docker.internal:11434'}", "environment.URL", "host.docker.internal"),
        ("environment: {ADDRESS: '172.17.0.1:80'}", "environment.ADDRESS", "172.17.0.1"),
        ("command: [--server, gateway.docker.internal]", "command", "gateway.docker.internal"),
        ("volumes: ['./a.conf:/a.conf']", "volumes[0]", "127.0.0.11 (a.conf)"),
    ],
)
def test_hosts_of_docker(project: Project, keys: str, place: str, named: str) -> None:
    """Its gateway and its DNS server are in no cluster."""
    folder = project({"compose.yaml": f"services: {{web: {{image: a, {keys}}}}}", "a.conf": "resolver 127.0.0.11;"})
    (found,) = [f for f in check(folder).all_findings if f.diagnostic.code == "docker-only-host"]

    assert found.diagnostic.message.startswith(f"services.web.{place} names {named}, which ")


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("host.docker.internal:5433/x", "write 'my-db:5432': this port of the machine is that of the service"),
        (
            "host.docker.internal 172.17.0.1:80",
            "run what listens there as a service, or write an address that pods reach",
        ),
    ],
)
def test_a_published_port_of_this_machine(project: Project, address: str, hint: str) -> None:
    """A service that others reach by its published port has an address of its own."""
    text = TEXT.format(f"environment: {{URL: 'pg://{address}'}}").replace("db}", "db, ports: ['5433:5432']}")
    found = [f.diagnostic for f in check(project(text)).all_findings if f.diagnostic.code == "docker-only-host"]

    assert {d.hint for d in found} == {hint}


@pytest.mark.parametrize(
    ("written", "entry"),
    [
        pytest.param("pg://host.docker.internal:5433/x", "pg://my-db:5432/x", id="a URL"),
        pytest.param("${DB:-172.17.0.1:5433},a:1", "${DB:-my-db:5432},a:1", id="a default"),
        pytest.param("pg://host.docker.internal:99/x", "", id="another port"),
        pytest.param("$FROM_ELSEWHERE", "", id="a value from elsewhere"),
    ],
)
def test_entry_for_a_published_port_of_this_machine(project: Project, written: str, entry: str) -> None:
    """The address of the service is written; with it, the finding is gone."""
    text = TEXT.format(f"environment: {{URL: '{written}'}}").replace("db}", "db, ports: ['5433:5432']}")
    folder = project({"compose.yaml": text, ".env": "FROM_ELSEWHERE=host.docker.internal:5433\n"})
    found = [f for f in check(folder).all_findings if f.diagnostic.code == "docker-only-host"]
    lines = entry_lines([line for finding in found for line in finding.fix])

    assert [line.strip() for line in lines[3:]] == ([f"URL: {yaml_text(entry)}"] if entry else [])
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    left = [f for f in check(folder).all_findings if f.diagnostic.code == "docker-only-host"]
    assert len(left) == (0 if entry else 1)


def test_hosts_in_a_config(project: Project) -> None:
    """Full mode mounts configs, whose hosts are found at their place, and do not keep it off."""
    more = "configs: {c: {content: 'http://my_db:80 http://host.docker.internal'}}\n"
    folder = project(TEXT.format("configs: [{source: c, target: /etc/a.conf}]") + more)
    found = [f.diagnostic for f in check(folder, full=True).all_findings if f.diagnostic.code.endswith("-host")]

    assert [d.message.partition(",")[0] for d in found] == [
        "services.app.configs[0] names host.docker.internal (a.conf)",
        f"services.app.configs[0] {NAMED} (a.conf)",
    ]
    folder.run("init", "--yes")
    assert "full: true" in (folder.path / "compose.platform.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("keys", "full"),
    [
        ("environment: {URL: 'http://my-host.docker.internal.example.com'}", False),
        ("environment: {URL: '127.0.0.110 1172.17.0.1'}", False),
        ("volumes: ['./a.conf:/a.conf']", False),
        ("environment: {A: host.docker.internal}, extra_hosts: ['host.docker.internal:192.0.2.1']", True),
    ],
)
def test_hosts_that_are_not_of_docker(project: Project, keys: str, *, full: bool) -> None:
    """Longer names and addresses are others, comments are not read, and full mode gives a host its address."""
    text = f"services: {{web: {{image: a, {keys}}}}}"
    folder = project({"compose.yaml": text, "a.conf": "# resolver 127.0.0.11;\n"})

    assert "docker-only-host" not in [f.diagnostic.code for f in check(folder, full=full).all_findings]


@pytest.mark.parametrize("name", ["compose.prod.yml", "deploy/docker-compose.yaml", "README.md"])
def test_files_that_configure_no_program(project: Project, name: str) -> None:
    """The Compose files and pages of a mounted project say how it is used, and no program reads its hosts there."""
    text = TEXT.format("volumes: ['.:/srv'], environment: {URL: 'pg://my_db:80'}").replace("db}", "db, expose: [80]}")
    folder = project({"compose.yaml": text, name: "- http://my_db:81 http://host.docker.internal\n"})
    folder.run("init", "--yes")
    (found,) = check(folder).all_findings

    assert found.diagnostic.code == "name-normalized"


def test_a_file_of_empty_lines(project: Project) -> None:
    """It is searched in an instant: the comments were looked for from each line on to the end, for a minute."""
    text = "services: {web: {image: a, volumes: ['./a.conf:/a.conf']}}"
    folder = project({"compose.yaml": text, "a.conf": "\n" * 100_000 + "resolver 127.0.0.11;"})
    began = time.monotonic()
    codes = [f.diagnostic.code for f in check(folder).all_findings]

    assert "docker-only-host" in codes
    assert time.monotonic() - began < 10
