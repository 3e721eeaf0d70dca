"""The page of an environment, in a real browser: a deploy from begin to end, a failure, logs, actions, and strangers.

Without a browser, which `make extras` installs, these tests are skipped.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser import PROGRAMS
from tests.deploy.conftest import PORTS, SLEEP, Environment, until
from tests.deploy.test_access import restrict
from tests.deploy.test_up import SH, Up
from tests.devtools import Tab, open_tab

BROWSER = next((path for path in map(shutil.which, PROGRAMS) if path), "")
pytestmark = pytest.mark.skipif(not BROWSER, reason="needs a browser: make extras")

MAIN = "document.getElementById('main').innerText"
HOSTILE = "<img src=x onerror=alert(1)> \\033[31mred\\033[0m </script><script>alert(2)</script>"
SECRET = {"API_TOKEN": "hidden-text-1"}
SHOP = f"""
services:
  db:
    image: busybox
    command: "{SLEEP}"
    stop_grace_period: 0s
  web:
    image: busybox
    command:
      - sh
      - -c
      - trap exit TERM; i=0; while :; do i=$$((i+1)); echo "$$HOSTNAME line $$i"; sleep 0.2; done
    stop_grace_period: 0s
    depends_on: [db]
    environment:
      API_TOKEN: ${{API_TOKEN}}
"""


@dataclass
class Ui:
    """A running `platform ui`, and the tab that shows its page."""

    process: subprocess.Popen[str]
    url: str
    code: str
    tab: Tab

    @property
    def errors(self) -> list[str]:
        """What the page wrote to the console, but for the answer to the request without a code."""
        return [error for error in self.tab.errors if "401 (Unauthorized)" not in error]

    def sign_in(self) -> None:
        """Open the page of an environment."""
        self.enter_code()
        self.tab.wait_for("document.querySelector('nav') !== null")

    def enter_code(self) -> None:
        """Enter the code, as a user without a browser of the terminal does."""
        self.tab.open(self.url)
        self.tab.wait_for("document.getElementById('code') !== null")
        self.tab.run(f"document.getElementById('code').value = {json.dumps(self.code)}")
        self.tab.run("document.querySelector('form button').click()")
        self.tab.wait_for("document.querySelector('form') === null")

    def show(self, route: str) -> None:
        self.tab.run(f"location.hash = '#/{route}'")

    def wait_for(self, text: str) -> None:
        self.tab.wait_for(f"{MAIN}.includes({json.dumps(text)})")

    def click(self, text: str) -> None:
        """Press the last button with a text, which is that of a dialog if there is one."""
        found = f"[...document.querySelectorAll('button')].filter((b) => b.innerText.trim() === {json.dumps(text)})"
        self.tab.wait_for(f"{found}.some((b) => !b.ariaDisabled)")
        self.tab.run(f"{found}.filter((b) => !b.ariaDisabled).at(-1).click()")

    def connections(self, port: int) -> int:
        """Count the open connections of the process to a port of this machine."""
        opened = set()
        for entry in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                opened.add(entry.readlink().name)
        tables = "".join(Path(f"/proc/{self.process.pid}/net/{name}").read_text() for name in ("tcp", "tcp6"))
        rows = [line.split() for line in tables.splitlines()]
        return sum(f"socket:[{row[9]}]" in opened and row[2].endswith(f":{port:04X}") for row in rows if len(row) > 9)


@contextlib.contextmanager
def ui(environment: Environment, folder: Path, *args: str, **variables: str) -> Iterator[Ui]:
    process = environment.start("ui", "--no-browser", *args, **variables)
    assert process.stdout is not None
    url, code = (process.stdout.readline().partition(":")[2].strip() for _ in range(2))
    if not code:
        pytest.fail("\n".join(process.communicate()))
    with open_tab(BROWSER, folder / "browser") as tab:
        yield Ui(process, url, code, tab)
    process.send_signal(signal.SIGINT)
    process.wait(20)


def test_a_deploy_from_begin_to_end(environment: Environment, tmp_path: Path) -> None:
    """A deploy of another terminal is on the page while it runs; what the page knows is what the terminal shows."""
    environment.write(SHOP)
    with ui(environment, tmp_path, **SECRET) as page:
        page.sign_in()
        page.wait_for("not deployed")
        deploy = environment.start("deploy", **SECRET)
        page.tab.wait_for(f"{MAIN}.includes('Deploy') && document.getElementById('operation') !== null")
        phases: set[str] = set()
        reads = (
            "[...document.querySelectorAll('.phases li')].map((row) => row.innerText.replace(/\\s+/g, ' ')).join('|')"
        )
        while deploy.poll() is None:
            phases.add(str(page.tab.run(reads)))
        assert deploy.returncode == 0, deploy.communicate()
        page.wait_for("1/1")
        page.tab.wait_for("[...document.querySelectorAll('tbody tr')].every((row) => /ready/.test(row.innerText))")
        seen = " ".join(phases)
        assert "applying" in seen
        assert "waiting" in seen
        status = environment.platform("status", "--json", **SECRET).expect().json["services"]
        rows = page.tab.run("[...document.querySelectorAll('tbody th')].map((cell) => cell.innerText)")
        assert sorted(rows) == sorted(row["service"] for row in status)
        page.show("history")
        page.wait_for("done")
        page.show("variables")
        page.wait_for("API_TOKEN")
        assert SECRET["API_TOKEN"] not in str(page.tab.run("document.documentElement.outerHTML"))
        assert page.errors == []


def test_a_failure_is_understood(environment: Environment, tmp_path: Path) -> None:
    """The page alone says what fails, why, at which line, and with which log lines."""
    environment.write(
        "services:\n"
        "  web:\n"
        "    image: busybox\n"
        '    command: ["sh", "-c", "echo no route to the queue; exit 3"]\n'
        "    stop_grace_period: 0s\n"
    )
    environment.platform("deploy").expect(1)
    with ui(environment, tmp_path) as page:
        page.sign_in()
        page.wait_for("exit status 3")
        page.wait_for("no route to the queue")
        page.tab.run("document.querySelector('.problem .place').click()")
        page.tab.wait_for("document.querySelector('.line.is-marked') !== null")
        marked = str(page.tab.run("document.querySelector('.line.is-marked').innerText"))
        assert "exit 3" in marked
        page.show("service/web")
        page.wait_for("CrashLoopBackOff")
        page.show("events")
        page.wait_for("BackOff")
        environment.write((environment.folder / "compose.yaml").read_text().replace("exit 3", "sleep 1000"))
        page.show("file/compose.yaml?line=4")
        page.wait_for("sleep 1000")
        good = (environment.folder / "compose.yaml").read_text()
        for text in ("services: [", "services: {web: {image: busybox, ports: [x]}}"):
            environment.write(text)
            page.wait_for(text)
            page.wait_for("error:")
        environment.write(good)
        page.wait_for("sleep 1000")
        assert "ports" not in str(page.tab.run(MAIN))


def test_logs_through_a_restart(environment: Environment, tmp_path: Path) -> None:
    """Lines of the pods before and after a restart that the page started; the page asks first."""
    environment.deploy(SHOP).expect()
    (before,) = environment.pods("web")
    with ui(environment, tmp_path) as page:
        page.sign_in()
        page.show("logs")
        page.wait_for(f"{before['metadata']['name']} line")
        page.show("")
        page.click("Restart…")
        assert environment.pods("web")[0]["metadata"]["name"] == before["metadata"]["name"]
        page.click("Restart")
        names = until(
            lambda: {pod["metadata"]["name"] for pod in environment.pods("web")} - {before["metadata"]["name"]}
        )
        page.show("logs")
        page.wait_for(f"{names.pop()} line")


def test_deploy_after_its_preview(environment: Environment, tmp_path: Path) -> None:
    """The page compares, shows each object, and deploys what it has shown; sleep and wake are asked for again."""
    environment.write(SHOP)
    with ui(environment, tmp_path) as page:
        page.sign_in()
        page.show("changes")
        page.click("Compare with the cluster")
        page.wait_for("to create")
        page.wait_for("Deployment")
        assert environment.names() == set()
        page.click("Deploy these changes…")
        page.click("Deploy")
        until(lambda: len(environment.pods()) == 2)
        page.show("")
        page.tab.wait_for("[...document.querySelectorAll('tbody tr')].every((row) => /ready/.test(row.innerText))")
        page.click("Sleep…")
        page.click("Sleep")
        page.wait_for("asleep")
        page.click("Wake…")
        page.click("Wake")
        until(lambda: len(environment.pods()) == 2)


def test_read_only(environment: Environment, tmp_path: Path) -> None:
    """The page offers no action, and the server starts none for a request that the page would not send."""
    environment.deploy(SHOP).expect()
    with ui(environment, tmp_path, "--read-only") as page:
        page.sign_in()
        page.tab.wait_for("document.querySelector('tbody') !== null")
        assert "Restart…" not in str(page.tab.run("document.body.innerText"))
        status = request(page, f"/api/environments/{environment.namespace}/env/actions/sleep", "{}")
        assert status == 403
        assert len(environment.pods()) == 2


def request(page: Ui, path: str, body: str) -> int:
    """Send a request with the page's own code, from its own origin."""
    page.tab.run(
        f"""fetch({json.dumps(path)}, {{method: 'POST', body: {json.dumps(body)}, headers: {{
        'Content-Type': 'application/json', Authorization: 'Bearer ' + sessionStorage.getItem('token')}}}})
        .then((answer) => {{ window.answered = answer.status; }})"""
    )
    return int(page.tab.wait_for("window.answered"))


def test_hostile_log_lines(environment: Environment, tmp_path: Path) -> None:
    """A line is text, whatever it looks like."""
    environment.deploy(
        "services:\n  web:\n    image: busybox\n    stop_grace_period: 0s\n    command: |\n"
        f"      sh -c 'trap exit TERM; while :; do printf \"{HOSTILE}\\\\n\"; sleep 0.2; done'\n"
    ).expect()
    with ui(environment, tmp_path) as page:
        page.sign_in()
        page.show("logs")
        page.wait_for("<img src=x onerror=alert(1)> red </script><script>alert(2)</script>")
        assert page.tab.run("document.querySelector('#main img, #main script')") is None
        assert page.errors == []


def test_nothing_is_asked_while_nobody_looks(environment: Environment, tmp_path: Path) -> None:
    """The page that is shown holds watches; once it is left, the process has no connection to the API server."""
    environment.deploy(SHOP).expect()
    port = PORTS["api"]
    with ui(environment, tmp_path) as page:
        page.sign_in()
        page.show("logs")
        page.wait_for(" line ")
        until(lambda: page.connections(port) > 3)
        page.tab.open("about:blank")
        until(lambda: page.connections(port) == 0, seconds=15)
        page.tab.open(page.url)
        page.tab.wait_for("document.querySelector('tbody') !== null")
        until(lambda: page.connections(port) > 3)


# strangers ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def other_site(folder: Path, script: str) -> Iterator[str]:
    """Serve a page of another origin of this machine, with a script of its own."""
    folder.mkdir()
    (folder / "index.html").write_text(f"<!doctype html><title>evil</title><script>{script}</script>")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/index.html"
        finally:
            server.shutdown()
            thread.join()


ATTACKS = """
const target = TARGET;
const attacks = {
  read: () => fetch(target + 'api/page').then((answer) => answer.text()),
  blind: () => fetch(target + ACTION, {method: 'POST', mode: 'no-cors', body: '{}'}).then((answer) => answer.type),
  json: () => fetch(target + ACTION, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'}),
  code: () => fetch(target + 'api/page', {headers: {Authorization: 'Bearer ' + CODE}}).then((answer) => answer.text()),
  script: () => new Promise((resolve, reject) => { const tag = document.createElement('script');
    tag.onload = resolve; tag.onerror = () => reject(new Error('refused')); tag.src = target + 'js/app.js';
    document.head.append(tag); }),
  frame: () => new Promise((resolve, reject) => { const tag = document.createElement('iframe'); tag.src = target;
    tag.onload = () => resolve(tag.contentDocument ? 'shown' : 'foreign');
    document.documentElement.append(tag); }),
  socket: () => new Promise((resolve, reject) => {
    const socket = new WebSocket(target.replace('http', 'ws') + 'api/page');
    socket.onopen = () => resolve('opened'); socket.onerror = () => reject(new Error('refused')); }),
};
window.results = {};
for (const [name, attack] of Object.entries(attacks)) {
  const note = (result) => { window.results[name] = result; };
  attack().then((value) => note('done: ' + value), () => note('refused'));
}
"""


def test_pages_of_other_sites(environment: Environment, tmp_path: Path) -> None:
    """Another page in the same browser reads nothing, starts nothing and shows nothing, even if it knew the code."""
    environment.deploy(SHOP).expect()
    with ui(environment, tmp_path) as page:
        page.sign_in()
        action = f"api/environments/{environment.namespace}/env/actions/sleep"
        values = {"TARGET": page.url, "ACTION": action, "CODE": page.code}
        script = functools.reduce(lambda text, row: text.replace(row[0], json.dumps(row[1])), values.items(), ATTACKS)
        with other_site(tmp_path / "site", script) as url:
            page.tab.open(url)
            page.tab.wait_for("Object.keys(window.results).length === 7")
            results = page.tab.run("window.results")
            framed = str(page.tab.run("document.querySelector('iframe').contentDocument?.body.innerText ?? ''"))
        assert results.pop("blind") in ("refused", "done: opaque")
        assert results.pop("frame") != "done: shown" or not framed
        assert set(results.values()) == {"refused"}, results
        assert len(environment.pods()) == 2


def test_a_code_is_refused(environment: Environment, tmp_path: Path) -> None:
    """Without the code the page shows nothing of the environment, and says where the code is."""
    environment.deploy(SHOP).expect()
    with ui(environment, tmp_path) as page:
        page.tab.open(page.url)
        page.tab.wait_for("document.getElementById('code') !== null")
        page.tab.run("document.getElementById('code').value = 'not-the-code'")
        page.tab.run("document.querySelector('form button').click()")
        page.tab.wait_for("document.body.innerText.includes('This code is not right')")
        assert environment.namespace not in str(page.tab.run("document.body.innerText"))


def test_the_file_that_signs_in(environment: Environment, tmp_path: Path) -> None:
    """The browser of this user is signed in by a private file; no address has the code, and the file goes away."""
    environment.deploy(SHOP).expect()
    with ui(environment, tmp_path) as page:
        (path,) = (Path(environment.variables["COMPOSEPLAT_DATA"]) / "ui").iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o077 == 0
        # The form of the file is sent at once, so that the page of the file is not waited for.
        page.tab.call("Page.navigate", url=path.as_uri())
        page.tab.wait_for("document.querySelector('tbody') !== null")
        entries = page.tab.call("Page.getNavigationHistory")["entries"]
        assert page.code not in json.dumps([*entries, page.tab.requests])
        assert page.tab.run("location.href").rstrip("#/") == page.url.rstrip("/")
        command_lines = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if _is_readable(p)]
        assert not any(page.code.encode() in line for line in command_lines)
        page.process.send_signal(signal.SIGTERM)
        page.process.wait(20)
        assert not path.exists()


def _is_readable(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


def test_export(environment: Environment, tmp_path: Path) -> None:
    """The page as files has what the cluster says, and needs no server; a second export replaces it."""
    environment.deploy(SHOP).expect()
    environment.write(SHOP + "  new:\n    image: busybox\n    command: 'true'\n")
    for _ in range(2):
        environment.platform("ui", "--export", "page").expect()
    with open_tab(BROWSER, tmp_path / "browser") as tab:
        tab.open((environment.folder / "page" / "index.html").as_uri())
        tab.wait_for("[...document.querySelectorAll('tbody tr')].some((row) => /ready/.test(row.innerText))")
        tab.run("location.hash = '#/changes'")
        tab.wait_for(f"{MAIN}.includes('to create')")
        tab.run("location.hash = '#/logs'")
        tab.wait_for(f"{MAIN}.includes(' line ')")
        assert tab.errors == []


def test_export_without_a_cluster(environment: Environment, tmp_path: Path) -> None:
    """A pull request need not reach a cluster: the page has the definition, and says what it lacks."""
    environment.write(SHOP)
    environment.platform("ui", "--export", "page", KUBECONFIG=os.devnull).expect()
    with open_tab(BROWSER, tmp_path / "browser") as tab:
        tab.open((environment.folder / "page" / "index.html").as_uri())
        tab.wait_for("document.body.innerText.includes('no cluster was read')")


# a cluster ------------------------------------------------------------------------------------------------------------


def test_all_environments(environment: Environment, tmp_path: Path) -> None:
    """Without a Compose file, the page lists what is deployed, and shows each environment as it changes."""
    environment.deploy(SHOP).expect()
    (environment.folder / "compose.yaml").unlink()
    with ui(environment, tmp_path, "--all") as page:
        page.enter_code()
        namespace = environment.namespace
        row = f"[...document.querySelectorAll('tbody tr')].find((row) => row.innerText.includes('{namespace}'))"
        page.tab.wait_for(f"/2 ready/.test(({row})?.innerText ?? '')")
        page.tab.run(f"({row}).querySelector('a').click()")
        page.tab.wait_for("[...document.querySelectorAll('tbody th')].map((cell) => cell.innerText).includes('web')")
        page.tab.run("location.hash = location.hash.replace(/\\/?$/, '/logs')")
        page.wait_for(" line ")
        page.tab.run("location.hash = location.hash.replace('/logs', '/history')")
        page.wait_for("created service web")
        assert page.errors == []
        assert request(page, f"/api/environments/{namespace}/env/actions/sleep", "{}") == 403
        environment.write(SHOP)
        environment.platform("destroy", "--yes").expect()
        page.show("")
        page.tab.wait_for(f"({row}) === undefined")


def test_a_development_session(environment: Environment, tmp_path: Path) -> None:
    """Who develops a service is on the page while the session lasts."""
    (environment.folder / "src").mkdir()
    environment.deploy(SHOP.replace("    depends_on", "    volumes: ['./src:/app']\n    depends_on")).expect()
    with ui(environment, tmp_path) as page:
        page.sign_in()
        page.wait_for("1/1")
        terminal = Up(environment, "web", *SH)
        terminal.prompt()
        page.wait_for("in development by ")
        assert terminal.leave() == 0
        environment.platform("down", "web").expect()
        page.tab.wait_for("[...document.querySelectorAll('tbody tr')].every((row) => /ready/.test(row.innerText))")


def test_environments_that_may_be_listed(environment: Environment, tmp_path: Path) -> None:
    """If you may not list objects in all namespaces, the page says so, and shows those of your contexts."""
    account = restrict(environment, ["get", "list", "watch"])
    environment.deploy(SHOP).expect()
    with ui(environment, tmp_path, "--all", KUBECONFIG=str(account)) as page:
        page.enter_code()
        page.tab.wait_for("document.body.innerText.includes('you may not list')")
        page.tab.wait_for(f"{MAIN}.includes('{environment.namespace}') && {MAIN}.includes('2 ready')")
