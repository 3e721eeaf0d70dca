"""The table of the cluster's parts holds together, and the controllers decide rightly: no cluster needed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from composeplat.cluster.api import Api
from composeplat.diagnostics import MissingPiece
from composeplat.local import controllers
from composeplat.local.base_images import is_static
from composeplat.local.builder import builder_environment, builder_files, prepare_builder
from composeplat.local.certificates import make_certificates
from composeplat.local.cgroups import check_cgroups, make_cgroups, remove_cgroups
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.containerd import note_other_version
from composeplat.local.controllers import Controllers, routes
from composeplat.local.docker_settings import RegistrySettings
from composeplat.local.kernel import load_modules
from composeplat.local.layout import PROVISIONER, HostPorts, Layout, make_layout
from composeplat.local.metrics import Registration, metrics_objects
from composeplat.local.networks import egress_problem, find_slirp4netns, network_commands
from composeplat.local.packages import missing_optional_packages, missing_packages, search_path
from composeplat.local.parts import Part, Programs, make_files, make_parts
from composeplat.local.simulated import SimulatedCluster
from composeplat.local.states import Status
from composeplat.local.supervisor import Network
from composeplat.local.volumes import (
    CLAIMS,
    VOLUMES,
    Volumes,
    failure_event,
    is_released,
    is_to_grow,
    is_waiting,
    volume_for,
)
from tests.cluster.objects import Server, given

PROGRAMS = Programs(
    kube="/t/kube", coredns="/t/coredns", registry="/t/registry", frontdoor="/t/frontdoor", buildkitd="/t/buildkitd",
    containerd="/t/containerd", shim="/t/shim", python="/t/python", cni="/t/cni", search_path="/bin",
    mirror="/t/mirror", environment={"HTTPS_PROXY": "http://proxy:1"},
    registries=RegistrySettings(insecure=("plain.example.com:5000", "10.0.0.0/8"), hosts=("plain.example.com:5000",)),
)  # fmt: skip
LAYOUT = Layout(folder=Path("/data"), run=Path("/run/composeplat"))


def part(name: str) -> Part:
    return next(part for part in make_parts(LAYOUT, PROGRAMS) if part.name == name)


@pytest.mark.parametrize(("nodes", "threads"), [(0, ["policies"]), (3, [])])
def test_a_simulated_cluster_leaves_the_packet_filter_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int, threads: list[str]
) -> None:
    """It has no network of its own, so the filter is the machine's, and its pods send nothing."""
    layout = replace(LAYOUT, folder=tmp_path)
    cluster = SimulatedCluster(layout, {}, nodes)
    parts = cluster.parts(PROGRAMS) if nodes else make_parts(layout, PROGRAMS)
    (args,) = [found.args for found in parts if found.name == "controllers"]
    (tmp_path / "keys").mkdir()
    for name in ("token", "ca.crt"):
        (tmp_path / "keys" / name).write_text("x")
    started: list[str] = []
    monkeypatch.setattr("sys.argv", args[3:])
    monkeypatch.setattr(controllers, "start_thread", lambda name, *_: started.append(name))
    monkeypatch.setattr(controllers, "register_metrics", lambda *_: None)
    monkeypatch.setattr(controllers, "reconcile_forever", lambda _: None)

    controllers.main()

    assert started == threads


def test_plain_http_leads_to_the_port_of_this_machine() -> None:
    """The ingress listens on port 443 in the cluster's network, which this machine may have at another port."""
    layout = replace(LAYOUT, host_ports=HostPorts(https=8443))

    assert next(part for part in make_parts(layout, PROGRAMS) if part.name == "ingress").args[-1] == "8443"


def test_parts_start_after_what_they_need() -> None:
    """Each part comes after the parts it needs."""
    seen: set[str] = set()
    for part in make_parts(LAYOUT, PROGRAMS):
        assert set(part.needs) <= seen, part.name
        seen.add(part.name)


def test_only_the_front_process_listens_on_the_machine() -> None:
    """Each part with the machine's network listens on loopback or a socket alone."""
    outside = [part for part in make_parts(LAYOUT, PROGRAMS) if part.network is Network.HOST]

    assert [part.name for part in outside] == ["ports-outside", "mirror", "buildkitd"]
    assert list(part("ports-outside").args[3::2]) == [
        "tcp:127.0.0.1:16443", "own+1800000000:127.0.0.1:5000", "tcp:127.0.0.1:443", "tcp:127.0.0.1:80",
        "own+1800000000:127.0.0.2:5000",
    ]  # fmt: skip


def test_every_port_has_its_socket() -> None:
    """A connection from outside comes out inside, at the port of the same name."""
    inside = dict(zip(part("ports-inside").args[2::2], part("ports-inside").args[3::2], strict=True))
    outside = part("ports-outside").args

    assert inside[outside[4]] == "tcp:127.0.0.1:6443"
    assert inside[outside[-3]] == "tcp:127.0.0.1:80"


def test_the_way_to_the_mirror() -> None:
    """The node alone reaches the mirror, through a socket; only the mirror has the user's proxies and logins."""
    inside = dict(zip(part("ports-inside").args[2::2], part("ports-inside").args[3::2], strict=True))
    files = make_files(LAYOUT, PROGRAMS, "T")

    assert inside["own:127.0.0.1:10260"] == "unix:/run/composeplat/mirror.sock"
    assert part("mirror").args == (
        "/t/mirror", "/run/composeplat/mirror.sock", "/data/mirror", str(10 * 1024**3), "/etc/docker/certs.d",
        "plain.example.com:5000", "10.0.0.0/8",
    )  # fmt: skip
    # The builder reaches it by another port, which other users of the machine can't use.
    assert part("ports-outside").args[-2:] == ("own+1800000000:127.0.0.2:5000", "unix:/run/composeplat/mirror.sock")
    assert part("mirror").environment == {"HTTPS_PROXY": "http://proxy:1", "PATH": "/bin"}
    for registry, first in {
        "_default": {},
        "docker.io": {"http://127.0.0.1:5000": {"capabilities": ["pull", "resolve"]}},
    }.items():
        hosts = tomllib.loads(files[LAYOUT.etc / "hosts" / registry / "hosts.toml"])
        assert hosts == {"server": "http://127.0.0.1:10260", "host": first}
    found = make_parts(LAYOUT, PROGRAMS)
    # The builder pulls base images.
    assert [part.name for part in found if "HTTPS_PROXY" in (part.environment or {})] == ["mirror", "buildkitd"]


def test_what_the_builder_gets_of_the_user(tmp_path: Path) -> None:
    """The builder has the proxies, and a copy of the authorities; nothing else of the variables is passed on."""
    layout = Layout(folder=tmp_path / "data", run=tmp_path / "run")
    given = tmp_path / "ca.crt"
    given.write_text("an authority")
    user = {"https_proxy": "http://proxy:1", "NO_PROXY": "local", "SSL_CERT_FILE": str(given), "TOKEN": "t"}
    layout.build_run.mkdir()

    prepare_builder(layout, user, RegistrySettings(certificates=tmp_path))
    found = builder_environment(layout, "/bin", user)

    copy = layout.build_run / "authorities.pem"
    assert copy.read_text() == "an authority"
    assert found == {
        "PATH": "/bin", "HOME": str(layout.build_run / "state"), "XDG_RUNTIME_DIR": str(layout.build_run),
        "https_proxy": "http://proxy:1", "NO_PROXY": "local", "SSL_CERT_FILE": str(copy),
    }  # fmt: skip


def test_authorities_that_are_not_there(tmp_path: Path) -> None:
    """A file that is not there is named before the cluster is started."""
    layout = Layout(folder=tmp_path / "data", run=tmp_path / "run")
    with pytest.raises(MissingPiece, match=r"SSL_CERT_FILE names a file that can.t be read: /no/ca\.crt"):
        prepare_builder(layout, {"SSL_CERT_FILE": "/no/ca.crt"}, RegistrySettings(certificates=tmp_path))


def test_the_registry_comes_first() -> None:
    """Pods and builds look for what docker.io names in the local registry first, which few may write to."""
    files = make_files(LAYOUT, PROGRAMS, "T")

    node = files[LAYOUT.etc / "hosts" / "docker.io" / "hosts.toml"]
    assert node.index('[host."http://127.0.0.1:5000"]') < len(node)
    config = tomllib.loads(files[LAYOUT.build_run / "buildkitd.toml"])
    assert config["registry"]["docker.io"] == {"mirrors": ["127.0.0.1:5000", "127.0.0.2:5000"]}
    assert config["registry"]["quay.io"] == {"mirrors": ["127.0.0.2:5000"]}
    assert config["registry"]["plain.example.com:5000"] == {
        "mirrors": ["127.0.0.2:5000"], "insecure": True, "http": True,
    }  # fmt: skip
    assert {host for host, table in config["registry"].items() if table == {"http": True}} == {
        "localhost:5000", "127.0.0.1:5000", "127.0.0.2:5000",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("build_network", "slirp4netns", "network", "mode", "entitlements"),
    [
        pytest.param("own", "/t/slirp4netns", "/t/slirp4netns", "cni", [], id="own"),
        pytest.param("own", "", "none", "cni", [], id="no way out"),
        pytest.param("host", "/t/slirp4netns", "host", "host", ["network.host"], id="asked"),
    ],
)
def test_the_network_of_builds(
    build_network: str, slirp4netns: str, network: str, mode: str, entitlements: list[str]
) -> None:
    """Steps have this machine's network only where it was asked for, and then a Compose file may name it too."""
    layout = replace(LAYOUT, build_network=build_network)
    programs = replace(PROGRAMS, slirp4netns=slirp4netns)
    (args,) = (part.args for part in make_parts(layout, programs) if part.name == "buildkitd")
    config = tomllib.loads(make_files(layout, programs, "T")[layout.build_run / "buildkitd.toml"])

    assert args[1:5] == ("builder", "/run/composeplat-build", "1800000000", network)
    assert config["worker"]["oci"]["networkMode"] == mode
    assert config["insecure-entitlements"] == entitlements
    assert ("dns" in config) == (mode == "cni")


def test_the_plugins_of_the_steps_network() -> None:
    """What joins a step acts in the steps' network; what gives out addresses acts where it is."""
    files = make_files(LAYOUT, PROGRAMS, "T")
    scripts = {path.name: text.splitlines()[1] for path, text in files.items() if path.parent.name == "cni"}

    assert scripts["ptp"] == 'exec nsenter --net=/run/composeplat-build/steps.net -- /t/cni/ptp "$@"'
    assert scripts["host-local"] == 'exec /t/cni/host-local "$@"'
    assert json.loads(files[LAYOUT.build_run / "steps.conflist"])["plugins"][0]["type"] == "ptp"


def test_the_builder_reaches_its_own_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The builder's folders are its own, and closed to all others; programs that it gets can be run."""
    owners: dict[Path, int] = {}
    monkeypatch.setattr("composeplat.local.builder.os.chown", lambda path, user, _: owners.update({Path(path): user}))
    layout = Layout(folder=tmp_path / "cluster", run=tmp_path / "run")
    (tmp_path / "certs.d" / "registry.example.com:5000").mkdir(parents=True)
    for name in ("ca.crt", "client.cert", "client.key", "notes.txt"):
        (tmp_path / "certs.d" / "registry.example.com:5000" / name).write_text(f"the {name}")
    registries = RegistrySettings(certificates=tmp_path / "certs.d", hosts=("registry.example.com:5000",))
    for path, text in builder_files(layout, "/t/cni", registries).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    prepare_builder(layout, {}, registries)

    assert set(owners.values()) == {1_800_000_000}
    certificates = "certs.d/registry.example.com:5000"
    modes = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in owners}
    assert modes == {
        "cluster/builder": 0o700, "run-build": 0o700, "run-build/state": 0o700, "run-build/cni": 0o700,
        "run-build/cni/ptp": 0o700, "run-build/cni/loopback": 0o700, "run-build/cni/host-local": 0o700,
        "run-build/certs.d": 0o700, f"run-build/{certificates}": 0o700, f"run-build/{certificates}/ca.crt": 0o600,
        f"run-build/{certificates}/client.cert": 0o600, f"run-build/{certificates}/client.key": 0o600,
        "run-build/buildkitd": 0o600, "run-build/buildkitd.toml": 0o600, "run-build/steps.conflist": 0o600,
    }  # fmt: skip


def test_why_builds_have_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing device and a missing program are distinguished, each with its fix."""
    device = tmp_path / "tun"
    monkeypatch.setattr("composeplat.local.networks._TUN", str(device))

    assert egress_problem("/nowhere") == f"there is no {device}: modprobe tun, then restart the cluster"
    device.touch()
    assert egress_problem("/nowhere") == (
        "slirp4netns is not installed: platform setup --cluster --install, then restart the cluster"
    )
    (tmp_path / "slirp4netns").touch(mode=0o755)
    assert egress_problem(str(tmp_path)) == ""


def test_containerd_listens_where_the_cluster_is() -> None:
    """containerd, its shim and its plugins have the cluster's own paths: none that another containerd may use."""
    config = tomllib.loads(make_files(LAYOUT, PROGRAMS, "T")[LAYOUT.etc / "containerd.toml"])
    plugins = config["plugins"]

    assert config["version"] == 3
    assert (config["root"], config["state"]) == ("/data/containerd", "/run/composeplat/containerd")
    assert config["grpc"]["address"] == "/run/composeplat/containerd.sock"
    assert plugins["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"]["runc"]["runtime_path"] == "/t/shim"
    assert plugins["io.containerd.nri.v1.nri"] == {"disable": True}


def test_containerd_finds_the_shims_of_pods_when_it_starts_again() -> None:
    """A containerd that starts again looks on PATH for the shims of pods, and would end them: ours is first there."""
    assert (part("containerd").environment or {})["PATH"] == "/t:/bin"


def test_pulled_images_are_written_to_the_disk() -> None:
    """The files of an image are written to the disk before containerd records it as pulled."""
    config = tomllib.loads(make_files(LAYOUT, PROGRAMS, "T")[LAYOUT.etc / "containerd.toml"])
    images = config["plugins"]["io.containerd.cri.v1.images"]

    assert (images["image_pull_with_sync_fs"], images["use_local_image_pull"]) == (True, True)


@pytest.mark.parametrize(
    ("files", "notes"),
    [
        pytest.param({}, [], id="new cluster"),
        pytest.param({"containerd/data": ""}, ["an earlier version"], id="of a system package"),
        pytest.param({"containerd/data": "", "containerd-version": "2.2.0\n"}, ["2.2.0"], id="of other pins"),
        pytest.param({"containerd/data": "", "containerd-version": "2.2.6\n"}, [], id="the same"),
    ],
)
def test_another_containerd_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], notes: list[str]
) -> None:
    """A cluster that another containerd ran names the new version and the kept data; the next start says nothing."""
    messages: list[str] = []
    monkeypatch.setattr("composeplat.local.containerd.progress.note", messages.append)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for _ in range(2):
        note_other_version(Layout(folder=tmp_path, run=tmp_path), "2.2.6")

    kept = "volumes and pulled images of the cluster are kept"
    assert messages == [f"containerd 2.2.6 replaces {before}: {kept}" for before in notes]


@pytest.mark.parametrize(
    ("egress", "slirp4netns", "leads_out"),
    [
        pytest.param(True, "/t/slirp4netns", True, id="usual"),
        pytest.param(True, "", False, id="no way out"),
        pytest.param(False, "/t/slirp4netns", False, id="not wanted"),
    ],
)
def test_the_egress_of_pods(*, egress: bool, slirp4netns: str, leads_out: bool) -> None:
    """Where something leads out, names of other machines are resolved too; a name without a dot is the cluster's."""
    layout, programs = replace(LAYOUT, egress=egress), replace(PROGRAMS, slirp4netns=slirp4netns)
    found = [part.args for part in make_parts(layout, programs) if part.name == "egress"]
    corefile = make_files(layout, programs, "T")[layout.etc / "Corefile"]

    assert found == [("/t/frontdoor", "egress", "/t/slirp4netns", "/proc/1/ns/net")] * leads_out
    assert ("  forward . 198.51.100.3\n  reload\n" in corefile) == leads_out
    assert ("template IN ANY" in corefile) == leads_out


def test_the_chains_of_the_egress() -> None:
    """They come before those of Services, and the route before that of the node, which is for Services alone."""
    commands = [" ".join(command) for command in network_commands()]

    out = commands.index("iptables -A FORWARD -o tap0 -j PLATFORM-EGRESS")
    assert out < commands.index("iptables -A FORWARD -d 198.19.0.0/16 -j DROP")
    assert "iptables -A FORWARD -i tap0 -j PLATFORM-EGRESS-IN" in commands
    assert "ip route add default dev node metric 4096" in commands


@pytest.mark.parametrize(
    ("build_network", "egress", "note"),
    [
        pytest.param("own", True, "build steps have no network, and pods reach no other machine: ", id="both"),
        pytest.param("own", False, "build steps have no network: ", id="builds"),
        pytest.param("host", True, "pods reach no other machine: ", id="pods"),
        pytest.param("host", False, "", id="none"),
    ],
)
def test_who_has_no_egress(
    *,
    build_network: str,
    egress: bool,
    note: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The note says who has none, and why."""
    device = tmp_path / "tun"
    monkeypatch.setattr("composeplat.local.networks._TUN", str(device))
    fix = f"there is no {device}: modprobe tun, then restart the cluster"

    assert not find_slirp4netns(replace(LAYOUT, build_network=build_network, egress=egress), "/nowhere")
    assert capsys.readouterr().err == (f"{note}{fix}\n" if note else "")


def test_a_running_cluster_keeps_its_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that does not ask for networks takes those that the cluster runs with."""
    layout = Layout(folder=tmp_path, run=tmp_path)
    monkeypatch.setattr("composeplat.local.cluster_kind.make_layout", lambda *_, **__: layout)
    before = local_cluster({}).layout
    layout.settings_file.write_text('{"build_network": "host", "egress": false}')
    after, asked = local_cluster({}).layout, local_cluster({}, build_network="own", egress=True).layout

    assert [(found.build_network, found.egress) for found in (before, after, asked)] == [
        ("own", True), ("host", False), ("own", True),
    ]  # fmt: skip
    layout.settings_file.write_text("no JSON")
    assert local_cluster({}).layout.egress


def test_files_hold_no_blanks() -> None:
    """Every configuration file is filled in; those of JSON can be read."""
    files = make_files(LAYOUT, PROGRAMS, "T")

    assert not [path for path, text in files.items() if "{folder}" in text or "{run}" in text]
    assert json.loads(files[LAYOUT.kubeconfig])["users"][0]["user"] == {"token": "T"}
    assert json.loads(files[LAYOUT.etc / "kubelet.yaml"])["cgroupRoot"] == "/composeplat"


def test_the_cluster_is_not_ready_without_dns() -> None:
    """A DNS that ends at once was ready each time that it was started."""
    assert part("coredns").ready == "tcp:192.0.2.10:53"


def test_a_folder_with_a_space() -> None:
    """Its path is one word in every file: the cluster's DNS did not run there."""
    layout = replace(LAYOUT, folder=Path("/my data, too"))
    files = make_files(layout, PROGRAMS, "T")

    (kubeconfig,) = re.findall(r"^ *kubeconfig (.+)$", files[layout.etc / "Corefile"], re.MULTILINE)
    assert shlex.split(kubeconfig) == ["/my data, too/etc/kubeconfig"]
    storage = yaml.safe_load(files[layout.etc / "registry.yaml"])["storage"]
    assert storage == {"filesystem": {"rootdirectory": "/my data, too/registry"}}
    assert tomllib.loads(files[layout.etc / "containerd.toml"])["root"] == "/my data, too/containerd"


def test_whom_the_kubelet_answers() -> None:
    """Nobody without a name, and only what the API server allows."""
    kubelet = json.loads(make_files(LAYOUT, PROGRAMS, "T")[LAYOUT.etc / "kubelet.yaml"])

    assert kubelet["authentication"]["anonymous"] == {"enabled": False}
    assert kubelet["authentication"]["webhook"] == {"enabled": True}
    assert kubelet["authorization"] == {"mode": "Webhook"}


def test_the_way_to_the_metrics() -> None:
    """metrics-server listens on loopback and checks the kubelet's name; the API server identifies itself to it."""
    server, api = part("metrics-server").args, part("kube-apiserver").args

    assert {"--bind-address=127.0.0.1", "--kubelet-certificate-authority=/data/keys/ca.crt"} < set(server)
    assert "--authorization-kubeconfig=/data/etc/kubeconfig" in server
    assert "--requestheader-client-ca-file=/data/keys/front-proxy-ca.crt" in api
    assert "--requestheader-allowed-names=front-proxy-client" in api
    kubelet = json.loads(make_files(LAYOUT, PROGRAMS, "T")[LAYOUT.etc / "kubelet.yaml"])
    assert kubelet["tlsCertFile"] == "/data/keys/kubelet.crt"


def test_the_cluster_is_ready_without_metrics() -> None:
    """Only metrics-server starts when the rest is ready, and nothing needs it."""
    parts = make_parts(LAYOUT, PROGRAMS)

    assert [part.name for part in parts if part.starts_after] == ["metrics-server"]
    assert not [part.name for part in parts if "metrics-server" in part.needs]
    late = {"ready": False, "starts": 9, "required": False}
    status = Status(running=True, parts={"kubelet": {"ready": True, "starts": 1, "required": True}, "late": late})
    assert (status.broken, status.most_starts) == ([], 1)


class Recorder:
    """An API server that records its requests."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def apply(self, manifest: dict[str, Any]) -> None:
        self.calls.append(f"apply {manifest['kind']}")

    def delete(self, path: str) -> None:
        self.calls.append(f"delete {path}")


def test_metrics_are_registered_while_they_are_served(tmp_path: Path) -> None:
    """An APIService whose server is down would keep namespaces from being deleted: it is there only while one runs."""
    api, states = Recorder(), tmp_path / "parts.json"
    registration = Registration(cast("Api", api), states, metrics_objects(b"authority"))
    deleted = ["delete /apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"]
    applied = ["apply ClusterRole", "apply Service", "apply APIService"]
    made: list[list[str]] = []
    for ready in (None, False, True, True, False):
        if ready is not None:
            states.write_text(json.dumps({"metrics-server": {"ready": ready}}))
        api.calls.clear()
        registration.update()
        made.append(list(api.calls))

    assert made == [deleted, [], applied, [], deleted]


def test_a_second_cluster_has_its_own_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster in another folder shares neither sockets nor cgroup with the usual one."""
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    usual, other = make_layout({"HOME": "/h"}), make_layout({"HOME": "/h", "COMPOSEPLAT_CLUSTER": "/x"})

    assert (Path("/h/.local/share/composeplat/cluster"), "composeplat") == (usual.folder, usual.cgroup)
    assert Path("/x/cluster") == other.folder
    assert usual.run != other.run
    assert usual.cgroup != other.cgroup
    assert len(str(other.buildkit_socket)) < 100


def test_ports_are_remembered(tmp_path: Path) -> None:
    """Ports that were chosen at a start hold for the commands after it."""
    environment = {"COMPOSEPLAT_CLUSTER": str(tmp_path)}
    folder = make_layout(environment).folder
    folder.mkdir(parents=True)
    (folder / "ports.json").write_text('{"api": 1234, "https": 8443, "unknown": 1}')

    ports = local_cluster(environment, ports={"https": 9443}).layout.host_ports

    assert (ports.api, ports.https, ports.registry) == (1234, 9443, 5000)


def test_no_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without root one sentence says so, and what to use instead."""
    monkeypatch.setattr("composeplat.local.cluster.os.geteuid", lambda: 1000)

    with pytest.raises(MissingPiece, match="the local cluster needs root") as caught:
        LocalCluster(Layout(folder=tmp_path, run=tmp_path), {}).start()

    assert "kind, k3d or Docker Desktop" in caught.value.hint


def test_not_linux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On another system one sentence says so."""
    monkeypatch.setattr("composeplat.local.cluster.sys.platform", "darwin")

    with pytest.raises(MissingPiece, match="the local cluster runs on Linux only"):
        LocalCluster(Layout(folder=tmp_path, run=tmp_path), {}).start()


def test_missing_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Packages that are missing are all named at once, with the command that installs them."""
    monkeypatch.setattr("composeplat.local.cluster.os.geteuid", lambda: 0)
    for check in ("check_cgroups", "check_ports"):
        monkeypatch.setattr(f"composeplat.local.cluster.{check}", lambda *_: None)
    monkeypatch.setattr("composeplat.local.packages._SYSTEM_FOLDERS", "")
    monkeypatch.setattr("composeplat.local.packages._CNI_FOLDERS", ())

    with pytest.raises(
        MissingPiece, match="packages that are not installed: busybox-static containernetworking"
    ) as caught:
        LocalCluster(Layout(folder=tmp_path, run=tmp_path), {"PATH": "/nowhere"}).start()

    assert caught.value.hint.startswith("platform setup --cluster --install, or: apt-get install busybox-static")


def test_the_compiler_comes_with_headers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where Pulumi may have to be built, gcc is installed with what it compiles against; a start needs neither."""
    monkeypatch.setattr("composeplat.local.packages._SYSTEM_FOLDERS", "")
    monkeypatch.setattr("composeplat.local.packages._C_HEADER", str(tmp_path / "stdlib.h"))

    assert missing_optional_packages({"PATH": "/nowhere"}) == {"gcc", "libc6-dev", "slirp4netns"}
    (tmp_path / "stdlib.h").touch()
    assert missing_optional_packages({"PATH": "/nowhere"}) == {"gcc", "slirp4netns"}
    assert "gcc" not in missing_packages({"PATH": "/nowhere"})


def test_certificates_are_valid_before_they_are_made(tmp_path: Path) -> None:
    """A machine's clock that was ahead at the first start can be set back: the certificates are valid since 2020."""
    layout = Layout(folder=tmp_path / "o'clock $HOME", run=tmp_path)
    make_certificates(layout, {"PATH": os.defpath})
    names = sorted(path.stem for path in layout.keys.glob("*.crt"))
    before = {name: (layout.keys / f"{name}.crt").read_bytes() for name in names}
    make_certificates(layout, {"PATH": os.defpath})

    assert {"api", "api-to-kubelet", "ca", "etcd", "etcd-ca", "kubelet"} <= set(names)
    assert {name: (layout.keys / f"{name}.crt").read_bytes() for name in names} == before
    for name in names:
        command = ["openssl", "x509", "-noout", "-startdate", "-in", str(layout.keys / f"{name}.crt")]
        assert subprocess.check_output(command, text=True) == "notBefore=Jan  1 00:00:00 2020 GMT\n"
    assert [path.name for path in layout.keys.iterdir() if path.is_dir() or path.suffix == ".new"] == []


# cgroups --------------------------------------------------------------------------------------------------------------


def test_cgroups_of_one_tree(tmp_path: Path) -> None:
    """Where all controllers share a tree, those that are there are passed on."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    (tmp_path / "cgroup.subtree_control").write_text("")
    make_cgroups("pods", tmp_path)

    assert (tmp_path / "pods" / "cgroup.subtree_control").read_text() == "+pids"


def test_a_machine_without_cgroups_gets_one_tree(tmp_path: Path) -> None:
    """Where nothing is mounted for cgroups, version 2 is; if that fails, the message has the reason."""
    root = tmp_path / "cgroup"
    root.mkdir()
    commands = tmp_path / "bin"
    commands.mkdir()
    mount = commands / "mount"
    mount.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/args; echo cpu memory pids > "$4/cgroup.controllers"\n')
    mount.chmod(0o755)
    make_cgroups("pods", root, f"{commands}:/bin:/usr/bin")

    assert (tmp_path / "args").read_text() == f"-t cgroup2 cgroup2 {root}\n"
    assert (root / "pods").is_dir()


def test_cgroups_that_can_not_be_mounted(tmp_path: Path) -> None:
    """A machine without cgroups, on which they can't be mounted, is named with the reason."""
    mount = tmp_path / "mount"
    mount.write_text("#!/bin/sh\necho 'mount: permission denied' >&2; exit 32\n")
    mount.chmod(0o755)
    root = tmp_path / "cgroup"
    root.mkdir()
    with pytest.raises(MissingPiece) as caught:
        make_cgroups("pods", root, str(tmp_path))

    assert str(caught.value) == f"no cgroups are mounted at {root}, and mounting them failed: mount: permission denied"


def test_missing_cgroup_controllers(tmp_path: Path) -> None:
    """A kernel that was started without a controller is named with the fix, before anything is made."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io pids")
    with pytest.raises(MissingPiece) as caught:
        make_cgroups("pods", tmp_path)
    with pytest.raises(MissingPiece, match="controllers that are missing"):
        check_cgroups(tmp_path)

    assert str(caught.value) == (f"the local cluster needs cgroup controllers that are missing in {tmp_path}: memory")
    assert caught.value.hint == (
        "enable them on the kernel's command line, for example with cgroup_enable=memory; "
        "in a container, give it the cgroups of its host"
    )
    assert not (tmp_path / "pods").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_cgroups_that_can_not_be_written(tmp_path: Path) -> None:
    """As in a container without privileges; with a tree for each controller, only the root is like that."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path], check=True)
    try:
        (tmp_path / "cpu").mkdir()
        (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
        check_cgroups(tmp_path)
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        with pytest.raises(MissingPiece, match="can't write to"):
            check_cgroups(tmp_path)
        subprocess.run(["mount", "-o", "remount,rw", tmp_path], check=True)
        (tmp_path / "cgroup.controllers").unlink()
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        check_cgroups(tmp_path)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_modules_of_the_kernel_are_loaded(tmp_path: Path) -> None:
    """Modules that are not built in are asked for, also where nothing loads them by itself."""
    modprobe = tmp_path / "modprobe"
    modprobe.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/args\n')
    modprobe.chmod(0o755)
    load_modules(str(tmp_path), tmp_path / "args")

    assert (tmp_path / "args").read_text() == "--quiet --all br_netfilter overlay tun\n"


def test_kernel_without_the_filter_of_bridges(tmp_path: Path) -> None:
    """Without the module that lets pods connect to services, the start says so."""
    with pytest.raises(MissingPiece) as caught:
        load_modules(str(tmp_path), tmp_path / "bridge-nf-call-iptables")

    assert str(caught.value) == (
        "the kernel's module br_netfilter is not loaded, without which pods can't connect to services"
    )
    assert caught.value.hint == "modprobe br_netfilter, in a container on its host"


def test_cgroups_of_many_trees(tmp_path: Path) -> None:
    """Where each controller has a tree, each gets the group, and sets of processors are filled."""
    for name in ("cpu", "cpuset", "unified"):
        (tmp_path / name).mkdir()
    (tmp_path / "cpuset" / "pods").mkdir()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1")
    (tmp_path / "cpuset" / "pods" / "cpuset.cpus").write_text("")
    make_cgroups("pods", tmp_path)

    assert (tmp_path / "cpu" / "pods").is_dir()
    assert not (tmp_path / "unified" / "pods").exists()
    assert (tmp_path / "cpuset" / "pods" / "cpuset.cpus").read_text() == "0-1"


def test_cgroups_are_removed_with_what_is_in_them(tmp_path: Path) -> None:
    """Groups within the group go too, and others stay."""
    (tmp_path / "cpu" / "pods" / "one" / "two").mkdir(parents=True)
    (tmp_path / "cpu" / "others").mkdir()
    remove_cgroups("pods", tmp_path)

    assert [path.name for path in (tmp_path / "cpu").iterdir()] == ["others"]


# controllers ----------------------------------------------------------------------------------------------------------


def claim(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "data",
            "namespace": "demo",
            "uid": "u1",
            "annotations": {"volume.kubernetes.io/selected-node": "local"},
        },
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def test_a_claim_waits_until_it_has_a_volume() -> None:
    """A claim of our class is filled when a pod wants it, and once."""
    unwanted = claim()
    unwanted["metadata"]["annotations"] = {}

    assert is_waiting(claim())
    assert not is_waiting(claim(volumeName="pvc-u1"))
    assert not is_waiting(claim(storageClassName="other"))
    assert not is_waiting(unwanted)


def test_a_volume_is_a_folder_for_its_claim() -> None:
    """The volume is a folder of this node, for that claim alone, and goes with it."""
    volume = volume_for(claim(), Path("/data/volumes"))

    assert volume["spec"]["local"]["path"] == "/data/volumes/pvc-u1"
    assert tuple(volume["spec"]["claimRef"][key] for key in ("namespace", "name", "uid")) == ("demo", "data", "u1")
    assert is_released({**volume, "status": {"phase": "Released"}})
    assert not is_released({**volume, "status": {"phase": "Bound"}})


def test_a_volume_with_folders_in_folders_is_removed(tmp_path: Path) -> None:
    """A copy of a folder into itself makes so many; no other volume, and no route, waits for its removal."""
    volume = volume_for(claim(), tmp_path)
    top = Path(volume["spec"]["local"]["path"])
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("src", dir_fd=folder)
        inner = os.open("src", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    deleted: list[str] = []
    api: Any = SimpleNamespace(delete=deleted.append)
    objects: Any = SimpleNamespace(
        items=lambda path: [] if path == CLAIMS else [{**volume, "status": {"phase": "Released"}}]
    )
    Volumes(api, objects, tmp_path).reconcile()

    assert (deleted, top.exists()) == ([f"{VOLUMES}/pvc-u1"], False)


def test_a_volume_that_somebody_else_made_stays() -> None:
    """A volume of our class with a folder or server of its own is not removed here."""
    spec = {"storageClassName": "local", "persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": "/srv"}}

    assert not is_released({"metadata": {"name": "theirs"}, "spec": spec, "status": {"phase": "Failed"}})
    # One that was written after the example of ours has its annotation too.
    metadata = {"name": "theirs", "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}}
    assert not is_released({"metadata": metadata, "spec": spec, "status": {"phase": "Released"}})


def test_a_volume_of_the_other_class_is_a_mount() -> None:
    """Its folder is inside the mount, so that no pod writes beside it while it is not mounted."""
    volume = volume_for(claim(storageClassName="local-sized"), Path("/data/volumes"))

    assert is_waiting(claim(storageClassName="local-sized"))
    assert volume["spec"]["local"]["path"] == "/data/volumes/pvc-u1/mount/data"
    assert volume["spec"]["storageClassName"] == "local-sized"


@pytest.mark.parametrize(("has", "grows"), [("1Gi", False), ("1024Mi", False), ("512Mi", True), ("2Gi", False)])
def test_a_claim_grows_when_it_asks_for_more(has: str, *, grows: bool) -> None:
    """A bound claim of our class that asks for more than it has grows; it never shrinks."""
    bound = {**claim(), "status": {"phase": "Bound", "capacity": {"storage": has}}}

    assert is_to_grow(bound) == grows
    assert not is_to_grow({**bound, "status": {"phase": "Pending"}})


def test_the_event_of_a_volume_that_can_t_be_made() -> None:
    """The reason is an event of the claim; a full disk is named as such."""
    full, other = (failure_event(claim(), OSError(number, "no")) for number in (28, 1))

    assert full["message"] == "the disk of the local cluster has no space for it: platform cluster status"
    assert (other["message"], other["involvedObject"]["uid"]) == ("[Errno 1] no", "u1")


def ingress(*paths: tuple[str, str, int], **spec: Any) -> dict[str, Any]:
    listed = [
        {"path": path, "backend": {"service": {"name": name, "port": {"number": port}}}} for path, name, port in paths
    ]
    return {
        "metadata": {"namespace": "demo"},
        "spec": {"rules": [{"host": "a.localhost", "http": {"paths": listed}}], **spec},
    }


def service(name: str, address: str) -> dict[str, Any]:
    ports = [{"name": "tcp-80", "port": 80}]
    return {"metadata": {"namespace": "demo", "name": name}, "spec": {"clusterIP": address, "ports": ports}}


def endpoints(name: str, *, ready: bool) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "demo", "labels": {"kubernetes.io/service-name": name}},
        "ports": [{"name": "tcp-80", "port": 8080}],
        "endpoints": [{"addresses": ["198.18.0.7"], "conditions": {"ready": ready}}],
    }


def targets(found: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(route["path"], route["target"]) for route in found]


def test_longer_paths_come_first() -> None:
    """A route leads to the service's address, the longest path first."""
    item = ingress(("/", "web", 80), ("/api", "api", 80))
    services = [service("web", "198.19.0.5"), service("api", "None")]
    slices = [endpoints("web", ready=True), endpoints("api", ready=True)]

    assert targets(routes([item], services, slices)) == [("/api", "198.18.0.7:8080"), ("/", "198.19.0.5:80")]


def test_a_route_to_nothing_has_no_target() -> None:
    """Where no pod is ready, no port fits or no service is there, the route says so."""
    item = ingress(("/", "web", 80), ("/b", "web", 81), ("/c", "none", 80))

    found = routes([item], [service("web", "198.19.0.5")], [endpoints("web", ready=False)])
    assert targets(found) == [("/b", ""), ("/c", ""), ("/", "")]


def test_a_route_to_a_port_without_a_name() -> None:
    """Slices have an empty name for it, and Services none."""
    web, slice_of_web = service("web", "198.19.0.5"), endpoints("web", ready=True)
    del web["spec"]["ports"][0]["name"]
    slice_of_web["ports"][0]["name"] = ""

    found = routes([ingress(("/", "web", 80))], [web], [slice_of_web])
    assert targets(found) == [("/", "198.19.0.5:80")]


def test_a_route_to_addresses_that_people_wrote() -> None:
    """An endpoint without the condition is ready, as for kube-proxy."""
    slice_of_web = endpoints("web", ready=True)
    slice_of_web["endpoints"][0]["conditions"] = {}

    found = routes([ingress(("/", "web", 80))], [service("web", "198.19.0.5")], [slice_of_web])
    assert targets(found) == [("/", "198.19.0.5:80")]


@pytest.mark.parametrize(("address", "target"), [("198.19.0.5", "198.19.0.5:80"), ("None", "198.18.0.7:80")])
def test_a_route_to_endpoints_without_a_port(address: str, target: str) -> None:
    """A port of a slice without a number is any: that of the Service is the one that is meant."""
    slice_of_web = endpoints("web", ready=True)
    del slice_of_web["ports"][0]["port"]

    found = routes([ingress(("/", "web", 80))], [service("web", address)], [slice_of_web])
    assert targets(found) == [("/", target)]


def test_others_ingresses_are_left_alone(tmp_path: Path) -> None:
    """An ingress of another class is not served, and its status is another controller's."""
    theirs, ours = ingress(("/", "web", 80), ingressClassName="nginx"), ingress(("/", "web", 80))
    for name, found in (("theirs", theirs), ("ours", ours)):
        found["metadata"] |= {"name": name, "resourceVersion": "3"}
    answers = {"/apis/networking.k8s.io/v1/ingresses": given(theirs, ours, version="5")}
    with Server(answers=answers, otherwise=given()) as server, Api(server.access) as api:
        Controllers(api, tmp_path).reconcile()

    assert routes([theirs], [], []) == []
    patched = [request.path for request in server.asked if request.method == "PATCH"]
    assert patched == ["/apis/networking.k8s.io/v1/namespaces/demo/ingresses/ours/status"]


def test_static_and_dynamic_programs_are_distinguished() -> None:
    """A program that asks for an interpreter needs libraries, and makes no base image."""
    assert not is_static(Path("/bin/ls").resolve().read_bytes())
    assert not is_static(b"#!/bin/sh\n")


@pytest.mark.parametrize("environment", [{}, {"PATH": ""}], ids=["unset", "empty"])
def test_no_program_of_the_current_folder_is_run(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without PATH only the folders of the system are searched: the programs of the cluster run as root."""
    (tmp_path / "planted").write_text("#!/bin/sh\n")
    (tmp_path / "planted").chmod(0o755)
    monkeypatch.chdir(tmp_path)

    assert shutil.which("planted", path=search_path(environment)) is None
    assert shutil.which("sh", path=search_path(environment)) is not None
