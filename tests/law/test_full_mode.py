"""The table of keys against the page that says what full mode honors.

Owns the keys of that page as data, so that the comparison with the table needs no page.
"""

from __future__ import annotations

import re

import pytest

from composeplat.compose.keys import ROWS, Handling
from tests.conftest import shared
from tests.law.tables import SERVICE, Key


def _keys(section: str, keys: str) -> set[Key]:
    return {(section, key) for key in keys.split()}


HONORED: set[Key] = {
    *_keys("", "configs secrets networks jobs models"),
    *_keys(
        SERVICE,
        "profiles extends label_file configs secrets networks container_name hostname domainname links extra_hosts"
        " dns dns_search dns_opt network_mode pid ipc tmpfs shm_size read_only privileged tty stdin_open group_add"
        " sysctls security_opt userns_mode runtime platform init stop_signal pull_policy pull_refresh_after ulimits"
        " devices gpus cpu_quota cpu_period cpu_shares storage_opt post_start pre_stop pre_start develop"
        " provider models x-schedule x-autoscale x-expose x-kubernetes x-devices x-endpoint",
    ),
    *_keys("services.*.deploy", "mode placement update_config"),
    *_keys("services.*.deploy.resources.reservations", "devices generic_resources"),
    *_keys("services.*.depends_on.*", "restart"),
    *_keys("services.*.volumes.*.tmpfs", "mode"),
    *_keys("services.*.volumes.*.volume", "labels"),
    *_keys("volumes.*", "external name x-kubernetes"),
}

#: Keys of the page that have no meaning on Kubernetes, or that the default mode honors.
WARNED: set[Key] = {
    *_keys(
        SERVICE,
        "logging attach credential_spec isolation oom_kill_disable oom_score_adj mac_address blkio_config cgroup"
        " cgroup_parent uts link_local_ips use_api_socket cpuset pids_limit memswap_limit",
    ),
    *_keys("services.*.healthcheck", "start_interval"),
    *_keys("services.*.deploy.restart_policy", "delay window"),
    *_keys("services.*.volumes.*.bind", "propagation"),
}


def names_of_page() -> set[str]:
    """Return every key that the page names in its first column."""
    text = shared("full-mode.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    quoted = [name for line in rows for name in re.findall(r"`([^`]+)`", line.strip("| ").split(" | ")[0])]
    quoted += re.findall(r"`(x-[a-z]+)", "".join(rows))
    paths = [name.split(":")[0].split("=")[0] for name in quoted if not name.startswith(("-", "COMPOSE_"))]
    return {step.rstrip("…*") for path in paths for step in re.split(r"[./]", path) if step}


@pytest.mark.shared
def test_the_page_names_the_same_keys() -> None:
    """Each key of the page is listed here, and each key here is one of the page."""
    sections = {"deploy", "depends_on", "restart_policy", "resources", "reservations", "healthcheck", "volumes", "bind"}
    sections |= {"labels", "nocopy", "driver_opts", "type", "service", "oom_", "watch", "size"}
    listed = {key for _, key in HONORED | WARNED}
    page = names_of_page()

    assert sorted(name for name in page - listed - sections) == []
    assert sorted(name for name in listed - page if not any(name.startswith(part) for part in ("oom_", "cgroup"))) == []


def test_the_table_honors_keys_of_the_page() -> None:
    """The rows with another handling in full mode are keys of the page, or within the block of one."""
    rows = {(row.section, row.key) for row in ROWS if row.full is not None and row.full.is_used}

    assert {(section, key) for section, key in rows - HONORED if section not in OWN_SECTIONS} == set()


def test_keys_without_a_meaning_are_warned_of() -> None:
    """A key that has no meaning on Kubernetes is warned of in full mode, with the reason."""
    rows = {(row.section, row.key): row for row in ROWS}
    found = {key: rows[key].handling_in(full=True) for key in WARNED}

    assert found == dict.fromkeys(WARNED, Handling.WARNED)
    assert sorted(key for key in WARNED if not rows[key].why) == []


#: Sections of keys within those of the page.
OWN_SECTIONS = {
    "services.*.x-kubernetes",
    "volumes.*.x-kubernetes",
    "endpoints.x-kubernetes",
    "endpoints",
    "services.*.x-expose",
    "services.*.develop",
    "services.*.develop.watch.*",
    "services.*.develop.watch.*.exec",
    "services.*.x-autoscale",
    "services.*.devices.*",
    "services.*.models.*",
    "services.*.provider",
    "models.*",
    "services.*.volumes.*",
    "services.*.volumes.*.image",
    "services.*.x-schedule",
    "jobs.*",
    "jobs.*.triggers",
    "jobs.*.triggers.schedule.*",
    "services.*.deploy.placement",
    "services.*.deploy.placement.preferences.*",
    "services.*.deploy.update_config",
    "services.*.gpus.*",
    "services.*.deploy.resources.reservations.devices.*",
    "services.*.deploy.resources.reservations.generic_resources.*",
    "services.*.deploy.resources.reservations.generic_resources.*.discrete_resource_spec",
    "networks.*",
    "networks.*.external",
    "volumes.*.external",
    "configs.*.external",
    "secrets.*.external",
    "services.*.networks.*",
    "services.*.configs.*",
    "services.*.secrets.*",
    "configs.*",
    "secrets.*",
}
