"""The settings of a deployment, as one table that every entry point reads.

Owns a row for each setting: its type and default, its command-line option, environment variable, Pulumi configuration
key and ``ComposeStack`` argument, its help text, and the check of its value.
Must not know which entry point gave a value, or read the environment: variables come in with a :class:`Request`.

It is apart so that a setting is added in one place: the command line, plain Pulumi and ``platform eject`` go through
the table, and a test compares the signature of ``ComposeStack`` and the pages with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any

from composeplat.compose.values import BadValue, parse_image
from composeplat.compose.variables import Variables
from composeplat.names import is_dns_label, is_dns_name, split_gateway
from composeplat.registry.credentials import Login
from composeplat.system.records import record

#: In the place of the domain of a cluster that is not asked; no name ends with it.
UNKNOWN_DOMAIN = "domain.invalid"
DEFAULT_TIMEOUT_S = 300.0

Value = str | bool | float | tuple[str, ...]


@record(kw_only=True)
class Setting:
    """A row of the table: where a setting can be given, and which values are valid."""

    name: str = ""
    default: Value
    help: str
    metavar: str | None = None
    short_option: str = ""
    minimum: float | None = None
    may_be_output: bool = False
    """Whether the argument may be an output of another resource."""
    is_rendered: bool = False
    """Whether it changes the objects that ``platform render`` prints."""
    variable: str = ""
    is_shell_only: bool = False
    """Whether the variable counts from the shell alone: an env file comes with the project."""
    config_key: str = ""
    """In Pulumi's configuration, after ``composeplat:``."""
    argument: str = ""
    """Of ``ComposeStack``; the name of the setting unless given."""
    is_valid: Callable[[str], bool] = lambda _: True
    requirement: str = ""
    """What a valid value is: a message says "must be" before it."""
    normalize: Callable[[str], str] = str

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    def resolve(self, given: Value, variables: Variables, fallback: str = "") -> Value:
        """Return the given value, else the variable's, else the fallback."""
        if isinstance(self.default, bool):
            return given or variables.switch(self.variable, default=bool(fallback) or self.default)
        if isinstance(self.default, str):
            from_variable = variables.lookup(self.variable) if self.variable else ""
            return self.normalize(str(given) or from_variable or fallback)
        if isinstance(self.default, tuple):
            return given or split_names(variables.lookup(self.variable))
        return given


def split_names(text: str | None) -> tuple[str, ...]:
    """Split a list of names that a variable has, with commas between them."""
    return tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))


def _setting(*, default: Value, **row: Any) -> Any:
    return field(default=default, metadata={"setting": Setting(default=default, **row)})


def _is_gateway(text: str) -> bool:
    namespace, name, listener = split_gateway(text)
    given = [name, *([namespace] if "/" in text else []), *([listener] if ":" in text else [])]
    return all(map(is_dns_name, given))


def _is_image(text: str) -> bool:
    try:
        return bool(parse_image(text))
    except BadValue:
        return False


def _is_registry(text: str) -> bool:
    return _is_image(f"{text}/image")


@record(kw_only=True)
class Options:
    """The settings as they are given; each field is a row of the table."""

    allow_outside: bool = _setting(
        default=False,
        help="Allow files outside the project in the Compose file.",
        variable="PLATFORM_ALLOW_OUTSIDE",
        is_shell_only=True,
        config_key="allowOutside",
    )
    namespace: str = _setting(
        default="",
        help="Kubernetes namespace.",
        metavar="NAME",
        short_option="-n",
        variable="PLATFORM_NAMESPACE",
        config_key="namespace",
        may_be_output=True,
        is_valid=is_dns_label,
        requirement="a name of at most 63 lowercase letters, digits and '-', with no '-' at either end",
    )
    full: bool = _setting(
        default=False,
        help="Honor all keys of Compose that Kubernetes can serve.",
        is_rendered=True,
        variable="PLATFORM_FULL",
        config_key="full",
    )
    profile: tuple[str, ...] = _setting(
        default=(),
        help="Full mode: deploy the services of this profile too; may repeat; * is all.",
        metavar="NAME",
        is_rendered=True,
        variable="COMPOSE_PROFILES",
        config_key="profiles",
        argument="profiles",
    )
    domain: str = _setting(
        default="",
        help="Domain of the endpoints' hosts.",
        metavar="DOMAIN",
        is_rendered=True,
        variable="PLATFORM_DOMAIN",
        config_key="domain",
        may_be_output=True,
        argument="endpoint_domain",
        is_valid=is_dns_name,
        requirement="a DNS name such as apps.example.com",
        normalize=lambda text: text.lower().strip("."),
    )
    ingress_class: str = _setting(
        default="",
        help="Class of the Ingresses.",
        metavar="NAME",
        is_rendered=True,
        variable="PLATFORM_INGRESS_CLASS",
        config_key="ingressClass",
        is_valid=is_dns_name,
        requirement="the class's name, in lowercase letters, digits, '-' and '.'",
    )
    gateway: str = _setting(
        default="",
        help="Create HTTPRoutes for this Gateway instead of Ingresses.",
        metavar="[NAMESPACE/]NAME[:LISTENER]",
        is_rendered=True,
        variable="PLATFORM_GATEWAY",
        config_key="gateway",
        is_valid=_is_gateway,
        requirement="NAME or NAMESPACE/NAME, with :LISTENER or without",
    )
    tls_secret: str = _setting(
        default="",
        help="Secret with the endpoints' certificate.",
        metavar="NAME",
        is_rendered=True,
        variable="PLATFORM_TLS_SECRET",
        config_key="tlsSecret",
        is_valid=is_dns_name,
        requirement="the secret's name, in lowercase letters, digits, '-' and '.'",
    )
    tls_issuer: str = _setting(
        default="",
        help="cert-manager ClusterIssuer for the endpoints' certificates.",
        metavar="NAME",
        is_rendered=True,
        variable="PLATFORM_TLS_ISSUER",
        config_key="tlsIssuer",
        is_valid=is_dns_name,
        requirement="the issuer's name, in lowercase letters, digits, '-' and '.'",
    )
    pod_security: str = _setting(
        default="",
        help="Create pods that a restricted namespace admits.",
        metavar="restricted",
        is_rendered=True,
        variable="PLATFORM_POD_SECURITY",
        config_key="podSecurity",
        is_valid=lambda text: text == "restricted",
        requirement="'restricted'",
    )
    fill_image: str = _setting(
        default="",
        help="Image with a static busybox, which fills new volumes.",
        metavar="IMAGE",
        is_rendered=True,
        variable="PLATFORM_FILL_IMAGE",
        config_key="fillImage",
        is_valid=_is_image,
        requirement="an image such as registry.example.com/busybox:1.37-musl",
    )
    registry: str = _setting(
        default="",
        help="Registry that built images are pushed to.",
        metavar="HOST[/PATH]",
        is_rendered=True,
        variable="PLATFORM_REGISTRY",
        config_key="registry",
        may_be_output=True,
        is_valid=_is_registry,
        requirement="HOST or HOST/PATH in lower case, without a scheme",
        normalize=lambda text: text.rstrip("/"),
    )
    builder: str = _setting(
        default="", help="Build images with this builder of buildx.", metavar="NAME", config_key="builder"
    )
    pull_secret: bool = _setting(
        default=False,
        help="Let pods pull with the logins of your Docker configuration.",
        variable="PLATFORM_PULL_SECRET",
        config_key="pullSecret",
    )
    timeout: float = _setting(
        default=DEFAULT_TIMEOUT_S,
        help="Stop waiting after this many seconds.",
        metavar="SECONDS",
        minimum=1,
        config_key="timeout",
    )

    def options(self) -> dict[str, Any]:
        """Return the settings by name, to make another value of them."""
        return {name: getattr(self, name) for name in SETTINGS}


def _table() -> dict[str, Setting]:
    rows: dict[str, Setting] = {f.name: f.metadata["setting"] for f in fields(Options)}
    return {name: replace(row, name=name, argument=row.argument or name) for name, row in rows.items()}


SETTINGS = _table()


@record(kw_only=True)
class Request(Options):
    """Everything that one reading of a definition takes, as plain values; nothing else is read from the process."""

    files: tuple[str, ...] = ()
    """The files of ``-f``; ``-`` is standard input; if empty, a file of a default name is looked for."""
    folder: Path
    """The folder that the command runs in."""
    env_files: tuple[str, ...] = ()
    env_contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The contents of those env files that can be read only once, by their paths."""
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The contents of files of the definition that are not on the disk yet, by their paths."""
    name: str = ""
    """The environment's name."""
    shell: Mapping[str, str] = field(default_factory=dict)
    """The variables of the process, or those that a program gives instead."""
    process: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables of the process if ``shell`` may be others: by them Docker's logins and their helpers are found."""
    platform: Mapping[str, str] = field(default_factory=dict)
    """The variables that the namespace keeps."""
    outside_option: str = SETTINGS["allow_outside"].option
    """How the user can allow files outside the project; messages name it."""
    context_namespace: str = ""
    """The namespace of the kubeconfig's current context: the default."""
    default_domain: str = ""
    """The cluster's own domain."""
    default_registry: str = ""
    """The cluster's own registry."""
    build_platforms: tuple[str, ...] = ()
    """The platforms of builds that name none; empty for that of the builder."""
    default_ingress_class: str = ""
    """The cluster's own ingress class."""
    load_policy: str = ""
    """The pull policy of images that are loaded into the nodes; empty for a cluster without a way to load them."""
    named_services: tuple[str, ...] = ()
    """The services that the command names: their profiles are active."""
    publishes: bool = True
    """Whether content of host volumes and env files may be published; if not, unreadable content is no error."""
    logins: Mapping[str, Login] = field(default_factory=dict, repr=False)
    """Logins by registry; they win over those of the Docker configuration."""
    standard_input: bytes | None = None
    """The content of ``-``, where that is not the process's standard input."""
    snippet_of: str = ""
    """The service whose keys are the first document of ``-``; empty for a whole definition."""


@record(kw_only=True)
class Settings(Options):
    """The settings after variables and defaults are applied and every value is checked: what the plan is made with."""

    environment: str
    """The environment's name, a DNS label."""
    name_from_folder: bool = False
    """Whether the name is the folder's: another project's folder may have the same name."""
    logins: Mapping[str, Login] = field(default_factory=dict, repr=False)
    """Logins for pulling, by registry."""
    build_platforms: tuple[str, ...] = ()
    """The platforms of builds that name none; empty for that of the builder."""
    load_policy: str = ""
    """The pull policy of built images that are loaded into the nodes; empty if they are pushed to a registry."""
    volume_affinity: bool = True
    wake_in_order: bool = False


def hint_of_file(argument: str) -> str:
    """Return the hint for a Compose file that was given as a service; empty for another name."""
    return f"use an option for a Compose file: --file {argument}" if argument.endswith((".yaml", ".yml")) else ""
