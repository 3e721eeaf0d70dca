"""A project of Docker Compose, moved to a cluster by ``platform check``, ``init`` and ``deploy``."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment, fetch, until

TEXT = """\
services:
  store:
    image: busybox:1.37
    command: {sleep}
    stop_grace_period: 0
    scale: 1
    volumes: ["./store:/srv/store", "/var/run/docker.sock:/var/run/docker.sock"]
  updates:
    image: containrrr/watchtower
    volumes: ["/var/run/docker.sock:/var/run/docker.sock"]
"""


def test_data_is_kept(environment: Environment) -> None:
    """A project that can't be deployed as it is can be after `init`, and keeps its data when its pod is replaced.

    A tool for Docker is left out.
    """
    environment.write(TEXT.format(sleep=SLEEP))
    environment.platform("deploy").expect(3)
    before = environment.platform("check", "--offline", "--json").expect(3).json
    environment.platform("init", "--yes", "--offline").expect(0)
    after = environment.platform("check", "--json").expect(1).json

    environment.platform("deploy").expect(0)
    environment.exec("store-0", "sh", "-c", "echo kept > /srv/store/file")
    environment.write(TEXT.format(sleep=SLEEP).replace("scale: 1", "environment: {CHANGED: 'yes'}"))
    environment.platform("deploy").expect(0)

    assert environment.exec("store-0", "cat", "/srv/store/file") == "kept\n"
    assert (before["verdict"], after["verdict"]) == ("cannot-run", "lost")
    assert [finding["code"] for finding in after["services"][0]["findings"]] == ["removed-mount"]
    assert [note for note in after["notes"] if "could not" in note] == []
    assert after["services"][0]["kind"] == "StatefulSet"


def test_full_mode_is_turned_on(environment: Environment) -> None:
    """After `init` the keys that only full mode honors have their effect in real pods, one of them by its profile."""
    text = f"""\
services:
  web: {{image: 'busybox:1.37', command: {SLEEP}, stop_grace_period: 0, secrets: [key], tmpfs: /scratch}}
  tools: {{image: 'busybox:1.37', command: {SLEEP}, stop_grace_period: 0, profiles: [tools], read_only: true}}
secrets: {{key: {{file: ./key.txt}}}}
"""
    environment.write(text)
    environment.write("of the file", "key.txt")
    before = environment.platform("check", "--offline").expect(1).stdout
    environment.platform("init", "--yes", "--offline").expect(0)
    environment.platform("deploy", "--profile", "tools").expect(0)

    def ask(service: str, script: str) -> str:
        return environment.exec(environment.pods(service)[0]["metadata"]["name"], "sh", "-c", script)

    assert ask("tools", "touch /new 2>/dev/null || echo read-only") == "read-only\n"
    assert "4 keys are honored by full mode: --full or x-platform: {full: true}\n" in before
    seen = ask("web", "cat /run/secrets/key; mount | grep -o '/scratch type tmpfs'")
    assert seen == "of the file/scratch type tmpfs\n"
    assert "full: true" in (environment.folder / "compose.platform.yaml").read_text()


def test_the_cluster_s_rules(environment: Environment) -> None:
    """The rules of a real namespace and the classes of a real cluster are findings, before anything is deployed."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": environment.namespace, "labels": labels}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": environment.namespace}}
    with environment.api() as api:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        api.apply({**quota, "spec": {"hard": {"limits.memory": "1Gi", "pods": "1"}}})
    environment.write(
        "services: {web: {image: 'busybox:1.37', scale: 2, volumes: ['d:/d', '/e']}}\nvolumes: {d: {class: fast}}\n"
    )

    found = environment.platform("check", "--json").expect(1).json
    findings = [*found["services"][0]["findings"], *found["findings"]]

    assert sorted(finding["code"] for finding in findings) == [
        "no-storage-class",
        "over-quota",
        "over-quota",
        "pod-security-level",
    ]
    assert {finding["effect"] for finding in findings} == {"cannot-run"}
    assert environment.objects("apps/v1", "StatefulSet") == []


PORTS = """\
x-server: &server
  image: busybox:1.37
  command: sh -c 'cd /tmp && echo found > index.html && httpd -p 8080 && httpd -f -p 9090'
  stop_grace_period: 0
services:
  hidden: {{<<: *server, expose: ["8080"]}}
  listed: {{<<: *server, expose: ["8080", "9090"]}}
  app:
    image: busybox:1.37
    command: {sleep}
    environment: {{HIDDEN: "http://hidden:9090/", LISTED: "http://listed:9090/"}}
    stop_grace_period: 0
"""


def test_ports_that_others_use(environment: Environment) -> None:
    """A port that a service does not list is not reached by its name, as the check says."""
    environment.write(PORTS.format(sleep=SLEEP))
    found = environment.platform("check", "--json").expect(1).json
    environment.platform("deploy").expect(0)
    (app,) = environment.pods("app")

    def ask(variable: str) -> str:
        return environment.exec(app["metadata"]["name"], "sh", "-c", f"timeout 2 wget -qO- ${variable} || echo lost")

    until(lambda: ask("LISTED") == "found\n")
    assert ask("HIDDEN") == "lost\n"
    codes = {service["service"]: [f["code"] for f in service["findings"]] for service in found["services"]}
    assert codes == {"hidden": ["unreachable-port"], "listed": [], "app": []}


def test_rest_of_a_quota(environment: Environment) -> None:
    """What others use of a real quota is not left; what the environment uses is. A limit range limits pods."""
    inside = {"namespace": environment.namespace}
    limits = [{"type": "Container", "default": {"memory": "64Mi"}, "max": {"memory": "1Gi"}}]
    with environment.api() as api:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace}})
        for kind, spec in (
            ("ResourceQuota", {"hard": {"services": "2", "limits.memory": "1Gi"}}),
            ("LimitRange", {"limits": limits}),
            ("Service", {"ports": [{"port": 80}]}),
        ):
            api.apply({"apiVersion": "v1", "kind": kind, "metadata": {"name": "other", **inside}, "spec": spec})
    quota = "ResourceQuota"
    until(lambda: environment.get("v1", quota, "other")["status"].get("used", {}).get("services") == "1")  # type: ignore[index]
    web = f"web: {{image: 'busybox:1.37', command: {SLEEP}, stop_grace_period: 0}}"
    environment.deploy(f"services:\n  {web}\n").expect(0)
    until(lambda: environment.get("v1", quota, "other")["status"]["used"]["services"] == "2")  # type: ignore[index]
    first = environment.platform("check", "--json").expect(1).json
    environment.write(f"services:\n  {web}\n  b: {{image: 'busybox:1.37', mem_limit: 2g}}\n")
    second = environment.platform("check", "--json").expect(1).json

    default = "services.web sets no limit, and gets one from a limit range of the namespace: memory 64Mi"
    assert [f["message"] for f in first["services"][0]["findings"]] == [default]
    assert first["findings"] == []
    assert [f["message"] for f in second["services"][1]["findings"]] == [
        "services.b has a memory limit of 2Gi; limit range 'other' allows at most 1Gi"
    ]
    assert {f["message"] for f in second["findings"]} == {
        "services need 2112Mi of limits.memory; quota 'other' has 1Gi",
        "services need 2 of services; quota 'other' has 2, and others use 1 of it",
    }


PROXIED = """\
services:
  web:
    image: busybox:1.37
    command: sh -c 'mkdir -p /srv && cd /srv && echo page > index.html && httpd -f -p 8080'
    stop_grace_period: 0
    labels:
      traefik.http.routers.web.rule: Host(`shop.example.com`)
      traefik.http.services.web.loadbalancer.server.port: 8080
  the_api:
    image: busybox:1.37
    command: sh -c 'mkdir -p /srv/api && cd /srv && echo orders > api/index.html && httpd -f -p 3000'
    stop_grace_period: 0
    labels:
      - traefik.http.routers.api.rule=Host(`shop.example.com`) && PathPrefix(`/api`)
      - traefik.http.services.api.loadbalancer.server.port=3000
  admin:
    image: busybox:1.37
    command: sh -c 'mkdir -p /srv && cd /srv && echo admin > index.html && httpd -f -p 80'
    stop_grace_period: 0
    environment: {VIRTUAL_HOST: admin.example.com, VIRTUAL_PORT: '80'}
"""


def test_addresses_of_a_proxy(environment: Environment) -> None:
    """Services with an address from a proxy have it from the cluster after `init`, with the paths of one host."""
    environment.write(PROXIED)
    before = environment.platform("deploy").expect(0).stdout
    environment.platform("init", "--yes", "--offline").expect(0)
    urls = environment.platform("deploy").expect(0).stdout.split()

    assert before == ""
    admin, web = sorted(url for url in urls if not url.endswith("/api"))
    until(lambda: fetch(environment, admin) == "admin\n")
    until(lambda: fetch(environment, web) == "page\n")
    until(lambda: fetch(environment, f"{web}/api/") == "orders\n")


def test_the_own_name_of_a_server(environment: Environment) -> None:
    """A program that listens at its own name gets the address of its pod by it after `init`, and none before."""
    service = f"image: busybox:1.37, command: {SLEEP} --rpc-addr=node, stop_grace_period: 0, expose: [80]"
    environment.write(f"services: {{node: {{{service}}}}}\n")
    environment.platform("deploy").expect(0)

    def own_name() -> tuple[str, str]:
        (pod,) = environment.pods("node")
        asked = environment.exec(pod["metadata"]["name"], "sh", "-c", "ping -c 1 -W 1 node | head -1")
        return asked.partition("(")[2].partition(")")[0], pod["status"]["podIP"]

    before = own_name()
    leads_to = environment.get("v1", "Service", "node")["spec"]["clusterIP"]  # type: ignore[index]
    environment.platform("init", "--yes", "--offline").expect(0)
    environment.platform("deploy").expect(0)

    assert before[0] == leads_to != before[1]
    assert own_name()[0] == own_name()[1]


def test_urls_of_this_machine(environment: Environment) -> None:
    """A page whose API was a published port of this machine has the URL that the API is served at, after `init`.

    That is at the port of HTTPS, which this cluster has elsewhere.
    """
    server = "sh -c 'mkdir -p /srv/v1 && cd /srv && echo orders > v1/index.html && httpd -f -p 80'"
    environment.write(
        f"""\
services:
  api: {{image: 'busybox:1.37', command: {server}, ports: ['8000:80'], stop_grace_period: 0}}
  page:
    image: busybox:1.37
    command: {SLEEP}
    stop_grace_period: 0
    environment: {{API_URL: '${{API_URL:-http://localhost:8000}}/v1/'}}
"""
    )
    environment.platform("init", "--yes", "--offline").expect(0)
    (url,) = environment.platform("deploy").expect(0).stdout.split()
    (page,) = environment.pods("page")
    written = environment.exec(page["metadata"]["name"], "sh", "-c", "echo $API_URL").strip()

    assert written == f"{url.rpartition(':')[0]}/v1/"
    until(lambda: fetch(environment, written) == "orders\n")


def test_a_command_that_ends(environment: Environment) -> None:
    """It is restarted until the deploy fails; after `init` it is a job, which tries again until it succeeds."""
    server = "sh -c 'sleep 5; mkdir -p /srv && cd /srv && echo made > file && httpd -f -p 80'"
    environment.write(
        f"""\
services:
  store: {{image: 'busybox:1.37', command: {server}, expose: [80], stop_grace_period: 0}}
  setup:
    image: busybox:1.37
    command: sh -c 'wget -qO- http://store/file && echo done'
    depends_on: [store]
    stop_grace_period: 0
  app:
    image: busybox:1.37
    command: {SLEEP}
    depends_on: {{setup: {{condition: service_healthy}}}}
    stop_grace_period: 0
"""
    )
    before = environment.platform("deploy").expect(1)
    environment.platform("init", "--yes", "--offline").expect(0)
    environment.platform("deploy").expect(0)

    assert "ends by itself, with exit status 0" in before.stderr
    assert environment.platform("logs", "setup", "--no-prefix").expect(0).stdout.endswith("made\ndone\n")
    assert len(environment.pods("app")) == 1
