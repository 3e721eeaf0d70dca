"""The check of a definition: findings with their effects, verdicts, explanations."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.cluster.capabilities import Capabilities, Classes
from composeplat.codes import Effect
from composeplat.compatibility.check import make_check
from composeplat.compatibility.findings import Check
from composeplat.compatibility.full_mode import honored_in
from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.plan import make_plan
from composeplat.registry.image_config import ImageFacts
from composeplat.render.manifests import to_yaml
from tests.conftest import Folder, Project
from tests.steps import count_steps

NOTHING = Capabilities()


def check(folder: Folder, images: ImageAnswers | None = None, offered: Capabilities = NOTHING, **more: Any) -> Check:
    loaded = folder.read(**more).loaded
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    return make_check(loaded, plan, images or {}, offered)


def verdicts(found: Check) -> dict[str, str]:
    return {service.service: service.verdict.value for service in found.services}


def messages(found: Check) -> list[tuple[str, str, str]]:
    return [(f.effect.value, f.diagnostic.code, f.diagnostic.message) for f in found.all_findings]


@pytest.mark.parametrize(
    ("keys", "verdict", "codes"),
    [
        ("restart: always", "as-written", []),
        ("container_name: web", "as-written", []),
        ("container_name: other", "changed", ["unsupported-key"]),
        ("privileged: true", "lost", ["unsupported-key"]),
        ("gpus: all", "lost", ["ignored-key"]),
        ("develop: {}", "as-written", []),
        ("ports: ['127.0.0.1:80:80']", "changed", ["loopback-port"]),
        ("ports: ['5432:5432']", "changed", ["sensitive-port"]),
        ("scale: two", "cannot-run", ["invalid-value"]),
        ("volumes: ['/run/docker.sock:/s']", "cannot-run", ["forbidden-path"]),
        ("volumes: ['under_score:/d']", "as-written", []),
        ("environment: {A: $UNSET}", "as-written", ["unset-variable"]),
    ],
)
def test_verdict(project: Project, keys: str, verdict: str, codes: list[str]) -> None:
    """The worst effect of a service's findings is its verdict; notes without an effect are no findings."""
    found = check(project(f"services: {{web: {{image: x, {keys}}}, other: {{image: y}}}}\nvolumes: {{under_score: }}"))

    assert verdicts(found) == {"web": verdict, "other": "as-written"}
    assert [finding.diagnostic.code for finding in found.all_findings] == codes
    assert found.verdict == verdict
    assert found.is_valid == (verdict != "cannot-run")


def test_findings_of_the_file(project: Project) -> None:
    """A finding outside of services counts for the whole, and for no service."""
    found = check(project("services: {web: {image: x}}\nvolumes: {d: {external: true}}"))

    assert [finding.diagnostic.code for finding in found.findings] == ["unsupported-key"]
    assert verdicts(found) == {"web": "as-written"}
    assert found.verdict is Effect.LOST


def test_the_file_of_variables_that_services_name(project: Project) -> None:
    """A mistake in `.env` is one finding, also where services have the file as their own."""
    found = check(project({"compose.yaml": "services: {web: {image: x, env_file: .env}}", ".env": "A=a$b\n"}))

    assert [finding.diagnostic.code for finding in found.all_findings] == ["unset-variable"]


def test_declarations(project: Project) -> None:
    """Secrets that no service uses are lost by none; one that uses them has the finding."""
    text = "services: {web: {image: x, KEYS}}\nsecrets: {s: {file: s}}"

    assert messages(check(project(text.replace("KEYS", "")))) == []
    assert [code for _, code, _ in messages(check(project(text.replace("KEYS", "secrets: [s]"))))] == [
        "unsupported-key"
    ]


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        (
            "stop_signal: SIGINT",
            "nothing to do, unless the program needs this signal: it gets SIGTERM, or that of its image",
        ),
        ("privileged: true", ""),
        (
            "depends_on: {b: {condition: service_started, restart: true}}",
            "'platform restart' restarts services in the order of 'depends_on'",
        ),
        ("links: [b, 'b:b']", "for their order: depends_on: [b]"),
        ("links: ['b:c']", "write the name of the service wherever the other one is used"),
    ],
)
def test_hint(project: Project, keys: str, hint: str) -> None:
    """A key without effect has a hint, and full mode may honor it."""
    (finding,) = check(project(f"services: {{a: {{image: x, {keys}}}, b: {{image: y}}}}")).all_findings

    assert finding.effect is (Effect.LOST if "privileged" in keys else Effect.CHANGED)
    if hint:
        assert finding.diagnostic.hint == f"{hint}; or use full mode (--full), which honors it"
    else:
        assert finding.diagnostic.hint == "full mode (--full) honors it"


def test_profiles(project: Project) -> None:
    """A profile matters only for a service that Docker Compose would not start."""
    text = """\
services:
  web: {image: x, depends_on: [needed]}
  needed: {image: x, profiles: [a]}
  chosen: {image: x, profiles: [b]}
  other: {image: x, profiles: [c]}
"""

    assert verdicts(check(project(text, COMPOSE_PROFILES="b"))) == {
        "web": "as-written", "needed": "as-written", "chosen": "as-written", "other": "changed",
    }  # fmt: skip


def test_jobs(project: Project) -> None:
    """Jobs have no effect by default, and are CronJobs in full mode."""
    text = "services:\n  web: {image: nginx}\njobs:\n  backup: {image: busybox, triggers: {manual: true}}\n"

    found = check(project({"compose.yaml": text}))

    assert verdicts(found) == {"web": "as-written"}
    assert [finding.diagnostic.path for finding in found.findings] == [("jobs",)]
    full = check(project({"compose.yaml": f"x-platform: {{full: true}}\n{text}"}))
    assert [(service.service, service.kind) for service in full.services] == [
        ("web", "Deployment"),
        ("backup", "CronJob"),
    ]


def test_shared_anchor(project: Project) -> None:
    """Each service that has a key from an anchor has the finding."""
    text = "x-base: &base {privileged: true}\nservices:\n  a: {<<: *base, image: x}\n  b: {<<: *base, image: x}\n"

    assert verdicts(check(project(text))) == {"a": "lost", "b": "lost"}


def test_invalid_file(project: Project) -> None:
    """A file that can't be read is a finding, and has no services."""
    found = check(project("services: [\n"))

    assert (found.services, found.is_valid, found.verdict) == ((), False, Effect.CANNOT_RUN)


def test_data_of_a_built_service(project: Project) -> None:
    """One finding says that the data is lost; the note that the volume is not deployed is left out."""
    found = check(project({"compose.yaml": "services: {web: {build: ., volumes: ['./up:/up']}}", "Dockerfile": ""}))

    assert [finding.diagnostic.code for finding in found.all_findings] == ["host-data"]


# images ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("image: db", ["image-volume", "image-volume"]),
        ("image: db, volumes: ['/data']", ["image-volume"]),
        ("image: db, volumes: ['d:/data', 'e:/logs/']", []),
        ("image: db, volumes: ['d:/data', 'e:/logs/x']", ["image-volume"]),
        ("image: db, volumes: ['d:/data/', {type: tmpfs, target: /logs}]", []),
        ("image: db, restart: 'no'", []),
        ("image: gone", []),
    ],
)
def test_image_volumes(project: Project, keys: str, expected: list[str]) -> None:
    """A volume of the image that nothing covers is lost with the pod, but in a Job."""
    images: ImageAnswers = {"db": ImageFacts(volumes=("/data", "/logs")), "gone": "is not in its registry"}
    found = check(project(f"services: {{db: {{{keys}}}}}\nvolumes: {{d: , e: }}"), images)

    assert [finding.diagnostic.code for finding in found.all_findings] == expected


def test_image_volume_in_part(project: Project) -> None:
    """A mount below the volume does not keep the rest of it."""
    text = "services: {db: {image: db, volumes: ['d:/logs/x']}}\nvolumes: {d: }"
    (found,) = check(project(text), {"db": ImageFacts(volumes=("/logs",))}).all_findings

    assert found.diagnostic.message == (
        "services.db.image names an image with a volume at /logs: only what is mounted below it is kept"
    )


def test_unread_images(project: Project) -> None:
    """Images that can't be read are named once for each reason."""
    text = "services: {a: {image: x}, b: {image: x}, c: {image: y}, d: {image: z}}"
    gone, denied = "is not in its registry", "is denied by its registry"

    assert check(project(text), {"x": gone, "y": gone, "z": denied}).notes == (
        "each of 2 images ('x', 'y') is not in its registry",
        "services.d.image names 'z', which is denied by its registry",
    )


def test_url_without_a_domain(project: Project) -> None:
    """The explanation names no domain that was only assumed."""
    found = check(project("services: {web: {image: x, ports: ['80:80']}}"), domain="domain.invalid")

    assert [s.text for s in found.services[0].explain() if s.topic == "url"] == [
        "https://web-default.DOMAIN, with the domain of the cluster, to port 80"
    ]


def test_urls_of_shared_endpoints(project: Project) -> None:
    """The explanation has the URLs that lead to the service, each with its port, and none of another service."""
    services = "{web: {image: x, ports: ['80']}, api: {image: x, ports: ['81', '82']}}"
    routes = [("/", "web", 80), ("/api", "api", 81), ("/admin", "api", 82)]
    endpoints = ", ".join(f"{{path: {path}, service: {name}, port: {port}}}" for path, name, port in routes)
    found = check(project(f"services: {services}\nendpoints: {{front: [{endpoints}]}}"))

    assert {row.service: [s.text for s in row.explain() if s.topic == "url"] for row in found.services} == {
        "web": ["https://front-default.example.com, to port 80"],
        "api": [
            "https://front-default.example.com/api, to port 81",
            "https://front-default.example.com/admin, to port 82",
        ],
    }


def test_user_of_an_image(project: Project) -> None:
    """With --pod-security restricted, the user of the image counts."""
    found = check(project("services: {web: {image: x}}"), {"x": ImageFacts(user="")}, pod_security="restricted")

    assert [finding.diagnostic.code for finding in found.all_findings] == ["pod-security-violation"]
    assert found.verdict is Effect.CANNOT_RUN


# the cluster ----------------------------------------------------------------------------------------------------------


BASELINE = (
    "services.web.cap_add adds NET_ADMIN, which namespace 'default' refuses: its Pod Security level is 'baseline'"
)
STORED = "services: {db: {image: x, volumes: ['d:/d', /a]}}\nvolumes: {d: {class: fast}}"
PUBLIC = "services: {web: {image: x, ports: ['8080:80']}}"
LACKS_METRICS = "the cluster does not have: the number of pods stays the smallest"
NO_PROVIDER = "no cloud or program of this cluster is known to give any to LoadBalancers"
EXPOSED = """
x-platform: {full: true}
services: {web: {image: nginx, x-expose: {type: LoadBalancer, ports: [80]}}}
"""
SCALED = "x-platform: {full: true}\nservices: {web: {image: nginx, x-autoscale: {max: 2, memory: 90m}}}\n"
PLAIN = "services: {web: {image: x}, job: {image: y, restart: 'no'}}"


@pytest.mark.parametrize(
    ("text", "offered", "expected"),
    [
        pytest.param(STORED, Capabilities(), [], id="not-asked"),
        pytest.param(
            STORED,
            Capabilities(storage=Classes(names=("slow",))),
            [
                "services.db.volumes[0] needs storage class 'fast', which the cluster does not have",
                "services.db.volumes[1] needs a default storage class, which the cluster does not have",
            ],
            id="storage-classes",
        ),
        pytest.param(STORED, Capabilities(storage=Classes(names=("fast",), default="fast")), [], id="storage"),
        pytest.param(
            PUBLIC,
            Capabilities(ingress=Classes(names=("nginx",))),
            ["services.web has a URL that no one answers: the cluster has no default ingress class"],
            id="no-default-ingress",
        ),
        pytest.param(PUBLIC, Capabilities(ingress=Classes(names=("n",), default="n")), [], id="ingress"),
        pytest.param(PLAIN, Capabilities(ingress=Classes()), [], id="nothing-public"),
        pytest.param(
            SCALED,
            Capabilities(has_metrics=False),
            [f"services.web.x-autoscale needs a metrics server, which {LACKS_METRICS}"],
            id="no-metrics",
        ),
        pytest.param(SCALED, Capabilities(has_metrics=True), [], id="metrics"),
        pytest.param(
            EXPOSED,
            Capabilities(has_load_balancers=False),
            [f"services.web.x-expose may get no address: {NO_PROVIDER}"],
            id="no-load-balancers",
        ),
        pytest.param(EXPOSED, Capabilities(has_load_balancers=True), [], id="load-balancers"),
        pytest.param(SCALED, Capabilities(has_load_balancers=False), [], id="no-load-balancers-needed"),
        pytest.param(PLAIN, Capabilities(has_metrics=False), [], id="no-metrics-needed"),
        pytest.param(
            "services: {web: {image: x, cap_add: [NET_ADMIN]}, b: {image: x, cap_add: [CHOWN]}}",
            Capabilities(pod_security="baseline"),
            [
                BASELINE,
            ],
            id="baseline",
        ),
        pytest.param(
            "services: {web: {image: x}}",
            Capabilities(pod_security="restricted"),
            ["services.web is refused by namespace 'default', whose Pod Security level is 'restricted'"],
            id="restricted",
        ),
        pytest.param(PLAIN, Capabilities(pod_security="privileged"), [], id="privileged"),
        pytest.param(
            PLAIN,
            Capabilities(architectures=frozenset(("amd64", "s390x"))),
            ["services.job.image names an image for arm64, and the nodes are amd64, s390x"],
            id="architectures",
        ),
    ],
)  # fmt: skip
def test_cluster(project: Project, text: str, offered: Capabilities, expected: list[str]) -> None:
    """A need of the environment that the cluster does not meet is a finding."""
    images = {
        "y": ImageFacts(architectures=frozenset(("arm64",))),
        "x": ImageFacts(architectures=frozenset(("amd64",))),
    }

    assert [message for _, _, message in messages(check(project(text), images, offered))] == expected


# explanations ---------------------------------------------------------------------------------------------------------


def test_explanation(project: Project) -> None:
    """Each decision about a service has a statement, with the line that it comes from."""
    text = """\
services:
  db: {image: x}
  web:
    image: nginx
    scale: 2
    ports: ["8080:80", "81"]
    volumes: ["data:/data", "./a:/a", /cache, {type: tmpfs, target: /t}]
    depends_on: {db: {condition: service_healthy}}
volumes: {data: {size: 2Gi}}
"""
    (_, web) = check(project({"compose.yaml": text, "a": "x"})).services

    assert [(s.topic, s.text, s.span.line if s.span else 0) for s in web.explain()] == [
        ("kind", "StatefulSet, as it mounts the volume 'data'", 7),
        ("restart", "always, the default", 0),
        ("image", "nginx", 4),
        ("replicas", "2", 5),
        ("address", "web:8080/tcp, to port 80 of the container", 6),
        ("address", "web:81/tcp", 6),
        ("url", "https://web-default.example.com, to port 80", 0),
        ("volume", "/data: volume 'data', 2Gi", 7),
        ("volume", "/a: 1 file of this machine, copied, read-only", 7),
        ("volume", "/cache: a volume for each pod, 1Gi", 7),
        ("volume", "/t: in memory", 7),
        ("waits for", "db, until it is healthy", 8),
    ]


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ("image: x", "Deployment, as it mounts no named or anonymous volume"),
        ("image: x, volumes: [/d]", "StatefulSet, as it mounts the anonymous volume at /d"),
        ("image: x, restart: on-failure", "Job, as restart is 'on-failure'"),
    ],
)
def test_kind(project: Project, keys: str, kind: str) -> None:
    """The kind of the workload comes with its reason."""
    (web,) = check(project(f"services: {{web: {{{keys}}}}}")).services

    assert web.explain()[0].text == kind


def test_the_job_of_a_hook_is_no_service(project: Project) -> None:
    """A difference is reported once, for the service whose hook it is: the file has no other to change."""
    keys = "build: ./gone, scale: 2, volumes: ['./data:/data'], pre_start: [{command: a}, {image: y, command: b}]"

    found = check(project(f"x-platform: {{full: true}}\nservices: {{web: {{{keys}}}}}"))

    assert verdicts(found) == {"web": "lost"}
    assert [code for _, code, _ in messages(found)] == ["host-data"]


# full mode ------------------------------------------------------------------------------------------------------------


def test_many_keys_of_full_mode(project: Project) -> None:
    """The work grows with the keys that full mode honors, and not with their square."""

    def work(count: int) -> int:
        services = {f"s{n}": {"image": "a", "privileged": True, "devices": ["/dev/kvm"]} for n in range(count)}
        folder = project(to_yaml({"services": services}))
        default, full = check(folder), check(folder)
        document = folder.read().loaded.document
        return count_steps(lambda: honored_in(full, default, document))

    assert work(80) < 5 * work(20)


def test_the_names_that_compose_gives(project: Project) -> None:
    """The name of a volume in the cluster is no finding, also where the file has the one that Compose gives it."""
    text = """
name: shop
x-platform: {full: true}
services: {web: {image: x, volumes: ['d:/d'], secrets: [s]}}
volumes: {d: {name: shop_d}}
secrets: {s: {file: ./s, name: shop_s}}
"""
    folder = project({"compose.yaml": text, "s": "secret"})

    assert messages(check(folder)) == []
