"""The fields of a pod that come from the keys of containers in full mode, apart from its security contexts."""

from __future__ import annotations

from collections.abc import Iterable

from composeplat.compose.model import Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker
from composeplat.compose.pod_model import NameOptions
from composeplat.names import clean
from composeplat.plan.desired import Manifest
from composeplat.plan.folder_modes import check_folder_modes
from composeplat.plan.init_hooks import check_init_hooks
from composeplat.plan.process_limits import check_process_limits

_HOST_NAMESPACES = {"pid": "hostPID", "ipc": "hostIPC"}


def add_pod_options(spec: Manifest, service: Service) -> None:
    """Add the fields of the options to a pod's spec."""
    options = service.container
    spec.update(_own_name(service))
    spec.update(_resolver(options.names))
    spec.update({_HOST_NAMESPACES[name]: True for name in sorted(options.host_namespaces)})
    if options.init and "pid" not in options.host_namespaces:
        # The first process is then the pod's own, which reaps orphans.
        spec["shareProcessNamespace"] = True
    if options.host_users is not None:
        spec["hostUsers"] = options.host_users
    if options.runtime:
        spec["runtimeClassName"] = options.runtime


def pull_policy(service: Service) -> Manifest:
    """Plan when a node pulls the image of a service."""
    policies = {"always": "Always", "never": "Never", "missing": "IfNotPresent"}
    found = policies.get(service.container.pull)
    return {"imagePullPolicy": found} if found else {}


# names ----------------------------------------------------------------------------------------------------------------


def join_aliases(aliases: Iterable[Manifest]) -> list[Manifest]:
    """Join the entries of the hosts file that have one address: the API server refuses an address that comes twice."""
    names: dict[str, dict[str, None]] = {}
    for alias in aliases:
        names.setdefault(alias["ip"], {}).update(dict.fromkeys(alias["hostnames"]))
    return [{"ip": address, "hostnames": list(found)} for address, found in names.items()]


def host_aliases(service: Service) -> list[Manifest]:
    """Plan the entries of a pod's hosts file, by address; a pod's name with its domain leads to the pod."""
    names = service.container.names
    has_domain = names.domain and service.workload_kind != "StatefulSet"
    own = [(f"{names.hostname}.{names.domain}", "127.0.0.1")] if has_domain else []
    return join_aliases({"ip": address, "hostnames": [name]} for name, address in (*own, *names.hosts))


def _own_name(service: Service) -> Manifest:
    """Plan a pod's host name, which has no domain: Pulumi's provider does not know ``hostnameOverride``."""
    hostname = service.container.names.hostname
    return {"hostname": hostname} if hostname and service.workload_kind != "StatefulSet" else {}


def _resolver(names: NameOptions) -> Manifest:
    options = [{"name": name, **({} if value is None else {"value": value})} for name, value in names.resolver_options]
    fields = {"nameservers": list(names.servers), "options": options, "searches": list(names.searches)}
    config = {name: value for name, value in fields.items() if value}
    return {**({"dnsConfig": config} if config else {}), **({"dnsPolicy": "None"} if names.servers else {})}


def check_container_options(checker: Checker, service: Service, settings: Settings) -> None:
    """Report the options that the service's kind of workload or its namespace leaves without effect."""
    check_folder_modes(checker, service, settings)
    check_process_limits(checker, service)
    check_init_hooks(checker, service, settings)
    if service.workload_kind == "StatefulSet":
        for key in ("hostname", "domainname"):
            path = ("services", service.name, key)
            if service.container.names.hostname and checker.origins.has(*path):
                others = {alias for alias in service.networking.aliases if alias != clean(service.name)}
                is_alias = key == "hostname" and service.networking.hostname in others
                effect = "is the name that others reach it by, and not its own" if is_alias else "has no effect"
                message = f"{effect}: a StatefulSet names its own pods, '{clean(service.name)}-0' first"
                hint = "" if is_alias else "leave it out; "
                checker.add("no-effect", path, message, f"{hint}a service is a StatefulSet because of its volume")
