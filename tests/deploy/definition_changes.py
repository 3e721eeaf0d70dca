"""Random changes of a definition, as people make them, each of which leaves one that can be deployed.

Owns the changes, and what each has to take along so that the definition stays valid.
Must not know a cluster: a definition comes in, and a line about its change goes out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

NAMES = ("api", "web", "db", "worker", "mail", "cache")
PROGRAM = {"image": "busybox:1.37", "command": "sleep 100000", "stop_grace_period": 0, "init": True}
Definition = dict[str, Any]
Services = dict[str, dict[str, Any]]
#: Keys of the pod, which a service in the pod of another one can't have.
_KEYS_OF_PODS = (
    "networks",
    "ports",
    "expose",
    "scale",
    "deploy",
    "hostname",
    "container_name",
    "extra_hosts",
    "dns_search",
)
#: Values of keys that come and go alone.
_VALUES: tuple[tuple[str, Any], ...] = (
    ("read_only", True),
    ("tmpfs", ["/srv"]),
    ("shm_size", "10m"),
    ("user", "1000"),
    ("working_dir", "/"),
    ("extra_hosts", ["a:10.1.1.1"]),
    ("dns_search", ["x.example.com"]),
    ("tty", True),
    ("stop_signal", "SIGINT"),
    ("cpus", "0.01"),
    ("mem_limit", "32m"),
    ("annotations", {"a": "b"}),
)


def initial() -> Definition:
    services: dict[str, Any] = {name: dict(PROGRAM) for name in NAMES[:5]}
    services["db"]["volumes"] = ["data:/data"]
    services["web"]["ports"] = ["80"]
    services["web"]["command"] = "httpd -f -p 80"
    return {
        "x-platform": {"full": True},
        "services": services,
        "volumes": {"data": {}},
        "configs": {"app": {"content": "one"}},
        "secrets": {"key": {"environment": "KEY"}},
    }


def pick_service(pick: random.Random, definition: Definition, *without: str) -> str:
    names: list[str] = sorted(definition["services"].keys() - set(without))
    return pick.choice(names)


def change_variable(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"]))
    value = pick.choice(["red", "blue", "${TAG}", "$$(A)"])
    definition["services"][name]["environment"] = {"COLOR": value, pick.choice("AB"): "1"}
    return f"environment of {name}: {value}"


def change_scale(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"].keys() - {"once"}))
    definition["services"][name]["scale"] = scale = pick.randrange(3)
    return f"scale of {name}: {scale}"


def change_label(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"]))
    definition["services"][name]["labels"] = {"team": pick.choice("abc")}
    return f"labels of {name}"


def change_dependencies(pick: random.Random, definition: Definition) -> str:
    """A service depends on some of those whose name comes before."""
    services = definition["services"]
    name = pick.choice(sorted(services))
    before = [other for other in sorted(services) if other < name and other != "once"]
    chosen = pick.sample(before, min(len(before), pick.randrange(3)))
    condition = {"condition": "service_started", "restart": pick.random() < 0.5}
    services[name]["depends_on"] = {other: dict(condition) for other in chosen}
    return f"depends_on of {name}: {chosen}"


def change_files(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"]))
    service = definition["services"][name]
    service["configs"] = ["app"] if pick.random() < 0.6 else []
    service["secrets"] = ["key"] if pick.random() < 0.4 else []
    return f"files of {name}: {service['configs']} {service['secrets']}"


def change_config(pick: random.Random, definition: Definition) -> str:
    definition["configs"]["app"]["content"] = content = pick.choice(["one", "two", "three"])
    return f"content of the config: {content}"


def change_volumes(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(["worker", "mail", "cache"])
    if name not in definition["services"]:
        return "nothing"
    volumes = pick.choice([[], ["./conf:/etc/conf"], [f"{name}:/data"], ["/scratch"]])
    definition["services"][name]["volumes"] = volumes
    definition["volumes"].setdefault(name, {})
    return f"volumes of {name}: {volumes}"


def change_ports(pick: random.Random, definition: Definition) -> str:
    service = definition["services"]["web"]
    service["ports"] = ports = pick.choice([["80"], ["8080:80"], ["80", "8081:81/udp"]])
    service["expose"] = pick.choice([[], ["9000"]])
    return f"ports of web: {ports}"


def change_networks(pick: random.Random, definition: Definition) -> str:
    name = pick.choice(sorted(definition["services"]))
    networks = pick.choice([["default"], ["back"], ["back", "default"]])
    definition["networks"] = {"back": {}, "default": {}}
    definition["services"][name]["networks"] = networks
    return f"networks of {name}: {networks}"


def change_job(pick: random.Random, definition: Definition) -> str:
    """A Job comes, changes or leaves."""
    if "once" in definition["services"] and pick.random() < 0.5:
        del definition["services"]["once"]
        return "no job"
    definition["services"]["once"] = {**PROGRAM, "restart": "no", "command": pick.choice(["true", "echo a"])}
    return "a job"


def change_presence(_pick: random.Random, definition: Definition) -> str:
    """A service comes or leaves."""
    services = definition["services"]
    if "cache" not in services:
        services["cache"] = dict(PROGRAM)
        return "cache comes"
    del services["cache"]
    for service in services.values():
        service.get("depends_on", {}).pop("cache", None)
    return "cache leaves"


def change_kind(pick: random.Random, definition: Definition) -> str:
    """A DaemonSet or a Deployment."""
    name = pick_service(pick, definition, "db", "web", "once", "nightly")
    service = definition["services"][name]
    if pick.random() < 0.5:
        service.pop("deploy", None)
        return f"mode of {name}: none"
    service["deploy"] = {"mode": pick.choice(["global", "replicated"])}
    return f"mode of {name}: {service['deploy']['mode']}"


def change_health(pick: random.Random, definition: Definition) -> str:
    """A health check comes or leaves, and dependents wait for it or not."""
    name = pick_service(pick, definition, "once", "nightly")
    service = definition["services"][name]
    if service.pop("healthcheck", None):
        return f"no health check of {name}"
    service["healthcheck"] = {"test": ["CMD", "true"], "interval": "1s", "start_period": "1s"}
    for other in definition["services"].values():
        if name in other.get("depends_on", {}):
            other["depends_on"][name]["condition"] = pick.choice(["service_healthy", "service_started"])
    return f"a health check of {name}"


def change_pod(_pick: random.Random, definition: Definition) -> str:
    """A service moves into the pod of another one, or out of it."""
    services = definition["services"]
    if services["mail"].pop("network_mode", None):
        return "mail has its own pod"
    services["mail"]["network_mode"] = f"service:{'api' if 'api' in services else 'app'}"
    return "mail is in another pod"


def change_hooks(pick: random.Random, definition: Definition) -> str:
    name, key = pick_service(pick, definition, "once", "nightly"), pick.choice(["post_start", "pre_stop", "pre_start"])
    service = definition["services"][name]
    if not service.pop(key, None):
        service[key] = [{"command": pick.choice(["true", "echo a"])}]
    return f"{key} of {name}: {service.get(key)}"


def change_names(pick: random.Random, definition: Definition) -> str:
    name, key = pick_service(pick, definition, "once", "nightly"), pick.choice(["container_name", "hostname"])
    service = definition["services"][name]
    if not service.pop(key, None):
        service[key] = f"{name}-{pick.choice('xy')}"
    return f"{key} of {name}: {service.get(key)}"


def change_profile(pick: random.Random, definition: Definition) -> str:
    services = definition["services"]
    name = pick.choice(sorted({"worker", "mail", "cache"} & services.keys()))
    if not services[name].pop("profiles", None):
        services[name]["profiles"] = ["off"]
    return f"profiles of {name}: {services[name].get('profiles')}"


def change_field(pick: random.Random, definition: Definition) -> str:
    name, (key, value) = pick_service(pick, definition), pick.choice(_VALUES)
    service = definition["services"][name]
    if not service.pop(key, None):
        service[key] = value
    return f"{key} of {name}: {service.get(key)}"


def change_schedule(pick: random.Random, definition: Definition) -> str:
    """A CronJob comes or leaves."""
    services = definition["services"]
    if services.pop("nightly", None):
        return "no schedule"
    schedule = pick.choice(["0 3 1 1 *", "0 4 1 1 *"])
    services["nightly"] = {**PROGRAM, "command": "true", "restart": "no", "x-schedule": schedule}
    return f"a schedule: {schedule}"


def change_isolation(pick: random.Random, definition: Definition) -> str:
    definition["networks"] = {"back": pick.choice([{}, {"internal": True}]), "default": {}}
    return f"networks: {definition['networks']}"


def change_service_name(_pick: random.Random, definition: Definition) -> str:
    services: Services = definition["services"]
    old, new = ("api", "app") if "api" in services else ("app", "api")
    services[new] = services.pop(old)
    for service in services.values():
        if old in service.get("depends_on", {}):
            service["depends_on"][new] = service["depends_on"].pop(old)
        if service.get("network_mode") == f"service:{old}":
            service["network_mode"] = f"service:{new}"
    return f"{old} is {new} now"


EDITS: tuple[Callable[[random.Random, Definition], str], ...] = (
    change_variable,
    change_scale,
    change_label,
    change_dependencies,
    change_files,
    change_config,
    change_volumes,
    change_ports,
    change_networks,
    change_job,
    change_presence,
    change_kind,
    change_health,
    change_pod,
    change_hooks,
    change_names,
    change_profile,
    change_field,
    change_schedule,
    change_isolation,
    change_service_name,
)


# what a change takes along --------------------------------------------------------------------------------------------


def settle(definition: Definition) -> None:
    """Take out the keys that others exclude now."""
    services: Services = definition["services"]
    for name, service in services.items():
        _settle_pod(services, name, service)
        if service.get("deploy", {}).get("mode") == "global":
            service["volumes"] = []
            service.pop("scale", None)
        if "container_name" in service:
            service.pop("scale", None)
        if any(":/data" in volume for volume in service.get("volumes", ())):
            service["scale"] = min(service.get("scale", 1), 1)
    for name, service in services.items():
        _settle_dependencies(services, name, service)


def _settle_pod(services: Services, name: str, service: dict[str, Any]) -> None:
    target = service.get("network_mode", "").removeprefix("service:")
    if not target:
        return
    owner = services.get(target, {})
    if not owner or owner.get("profiles") or owner.get("deploy", {}).get("mode") == "global":
        del service["network_mode"]
        return
    for key in _KEYS_OF_PODS:
        service.pop(key, None)
    for dependency, dependent in ((name, owner), (target, service)):
        dependent.get("depends_on", {}).pop(dependency, None)
    owner.pop("scale", None)


def _settle_dependencies(services: Services, name: str, service: dict[str, Any]) -> None:
    """Keep those that are there and come before by name, so that there is no cycle."""
    for other, how in list(service.get("depends_on", {}).items()):
        found = services.get(other, {})
        if not found or found.get("profiles") or other >= name or other == "nightly":
            del service["depends_on"][other]
        elif "healthcheck" not in found:
            how["condition"] = "service_started"
