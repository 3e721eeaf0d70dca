"""How the builder is run: with which arguments, files and folders.

Pure, but for ``prepare_builder``, which makes the folders and files that the builder may reach.
The builder is root of a user namespace, whose users are nobody of the machine, so it has its own folders beside the
cluster's closed ones.
The steps of builds have a network of their own, as a stranger's Dockerfile must not reach what listens on the machine's
loopback; ``frontdoor builder`` makes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.local.builder_registries import certificate_files, registry_tables
from composeplat.local.docker_settings import RegistrySettings
from composeplat.local.layout import BUILD_USER, HOST_NETWORK, Layout
from composeplat.system.files import Unreadable, read_bytes

#: The range of the steps' addresses, and where names are resolved for them; both are known to ``frontdoor builder``.
_STEP_RANGE = "198.19.255.0/24"
_RESOLVER = "198.19.254.3"
_MTU = 65520
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
#: The variable that names a file with the authorities that programs trust, and the builder's copy of it.
_AUTHORITIES, _AUTHORITIES_FILE = "SSL_CERT_FILE", "authorities.pem"
_MAX_AUTHORITIES_BYTES = 8 * 1024 * 1024
#: Network plugins that act in the network of steps, and those that need no network.
_PLUGINS_IN_NETWORK, _PLUGINS = ("ptp",), ("loopback", "host-local")


def builder_arguments(layout: Layout, frontdoor: str, slirp4netns: str) -> tuple[str, ...]:
    run = layout.build_run
    network = HOST_NETWORK if layout.build_network == HOST_NETWORK else slirp4netns or "none"
    return (
        frontdoor,
        "builder",
        str(run),
        str(BUILD_USER),
        network,
        str(run / "buildkitd"),
        "--config",
        str(run / "buildkitd.toml"),
    )


def builder_environment(layout: Layout, search_path: str, user: Mapping[str, str]) -> dict[str, str]:
    """Runc keeps its notes below ``XDG_RUNTIME_DIR``; base images come through the user's proxy."""
    run = layout.build_run
    proxies = {name: user[name] for proxy in _PROXIES for name in (proxy, proxy.lower()) if user.get(name)}
    authorities = {_AUTHORITIES: str(run / _AUTHORITIES_FILE)} if user.get(_AUTHORITIES) else {}
    return {"PATH": search_path, "HOME": str(run / "state"), "XDG_RUNTIME_DIR": str(run), **proxies, **authorities}


def builder_files(layout: Layout, cni: str, registries: RegistrySettings) -> dict[Path, str]:
    """The files the builder reads: path -> text."""
    run = layout.build_run
    is_host = layout.build_network == HOST_NETWORK
    config = _BUILDKIT.format(
        run=run,
        entitlements='"network.host"' if is_host else "",
        network='networkMode = "host"' if is_host else _STEPS.format(run=run),
        limit=_LIMIT.format(limit=layout.disk_limit, kept=layout.disk_limit // 4) if layout.disk_limit else "",
        dns="" if is_host else f'[dns]\n  nameservers = ["{_RESOLVER}"]\n',
        registries=registry_tables(layout, registries),
    )
    inside = f"nsenter --net={run / 'steps.net'} -- "
    scripts = dict.fromkeys(_PLUGINS_IN_NETWORK, inside) | dict.fromkeys(_PLUGINS, "")
    return {
        run / "buildkitd.toml": config,
        run / "steps.conflist": json.dumps(_network(), indent=1),
        **{run / "cni" / name: f'#!/bin/sh\nexec {prefix}{cni}/{name} "$@"\n' for name, prefix in scripts.items()},
    }


def _network() -> dict[str, object]:
    """Each step is joined by a wire of its own, so that steps don't see one another."""
    wire = {
        "type": "ptp",
        "mtu": _MTU,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": _STEP_RANGE}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {"cniVersion": "1.0.0", "name": "builds", "plugins": [wire]}


def builder_mounts(layout: Layout, buildkitd: str) -> list[list[str]]:
    """Commands that mount content of closed folders where the builder can reach it, within the cluster's namespaces."""
    run = layout.build_run
    plugins = str(run / "cni")
    return [
        ["mount", "--bind", str(layout.build_data), str(run / "state")],
        ["mount", "--bind", buildkitd, str(run / "buildkitd")],
        # Most machines forbid programs below /run, and the network plugins are scripts there.
        ["mount", "--bind", plugins, plugins],
        ["mount", "-o", "remount,bind,exec,nosuid,nodev", plugins],
    ]


def prepare_builder(layout: Layout, user: Mapping[str, str], registries: RegistrySettings) -> None:
    """Make the builder the owner of its folders, and of their content.

    It can't reach the files with authorities and certificates, which may be in closed folders: it gets copies.
    """
    run = layout.build_run
    if user.get(_AUTHORITIES):
        (run / _AUTHORITIES_FILE).write_bytes(_read_authorities(Path(user[_AUTHORITIES])))
    for path, content in certificate_files(layout, registries).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for folder in (layout.build_data, run / "state"):
        folder.mkdir(parents=True, exist_ok=True)
    (run / "buildkitd").touch()
    for path in (layout.build_data, run, *run.rglob("*")):
        os.chown(path, BUILD_USER, BUILD_USER)
        path.chmod(0o700 if path.is_dir() or path.parent.name == "cni" else 0o600)


def _read_authorities(path: Path) -> bytes:
    try:
        return read_bytes(path, limit=_MAX_AUTHORITIES_BYTES)
    except Unreadable as error:
        raise MissingPiece(f"{_AUTHORITIES} names a file that can't be read: {path} {error}", "correct it") from error


_STEPS = """\
networkMode = "cni"
  cniConfigPath = "{run}/steps.conflist"
  cniBinaryPath = "{run}/cni\""""

# Without a limit it keeps a fifth of the disk free, and at most 100 GB of layers.
_LIMIT = """\
  reservedSpace = "{kept}"
  maxUsedSpace = "{limit}"
  minFreeSpace = "20%"
"""

_BUILDKIT = """\
root = "{run}/state"
insecure-entitlements = [{entitlements}]
[grpc]
  address = ["unix://{run}/buildkit.sock"]
[otel]
  socketPath = "{run}/otel.sock"
[worker.oci]
  enabled = true
  rootless = true
  snapshotter = "auto"
{limit}  {network}
[worker.containerd]
  enabled = false
{dns}{registries}"""
