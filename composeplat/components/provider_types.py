"""The inputs and outputs of the components for programs in every language.

Owns their names, types and descriptions; ``schema.json`` beside this module is made of them, by ``make docs``.
An input that may be an output of another resource has the type ``Input``; any other decides the plan, so it is plain.
A setting without a description here has that of the command line's option.

Without ``from __future__ import annotations``: Pulumi's analyzer reads types, not texts.
"""

from typing import TypedDict

from pulumi import Input, Output


class RegistryLogin(TypedDict):
    """A login for a registry of images."""

    address: str
    """The registry's host, with its port if it has one."""
    username: Input[str]
    """The user, or what the registry takes for one."""
    password: Input[str]
    """The password or token."""


class SettingArgs(TypedDict, total=False):
    environment_name: str
    """The name of the environment; by default the name of the resource."""
    namespace: Input[str]
    """The namespace of the objects, which must exist; by default `kubernetes:namespace` of the configuration, else that
    of the context that Pulumi uses."""
    full: bool
    profiles: list[str]
    endpoint_domain: Input[str]
    registry: Input[str]
    ingress_class: str
    gateway: str
    tls_secret: str
    tls_issuer: str
    pod_security: str
    fill_image: str
    pull_secret: bool
    allow_outside: bool
    variables: dict[str, Input[str]]
    """The variables for `${NAME}`, instead of those of the shell that runs Pulumi."""
    builder: str
    registries: list[Input[RegistryLogin]]
    """Logins for registries, instead of those of the Docker configuration."""


class ComposeStackArgs(SettingArgs, total=False):
    file: str
    """The Compose file, relative to the working folder of the program; by default a file is looked for."""
    files: list[str]
    """Several Compose files, instead of `file`: later ones are merged into earlier ones."""
    env_files: list[str]
    """Env files, instead of `.env`; relative to the working folder of the program."""
    images: dict[str, Input[str]]
    """Other images for services, by the services' names, instead of those of the file and of builds."""
    timeout: float
    waits: bool
    """Whether services wait for the conditions of `depends_on` in the cluster of the kubeconfig; if not, Pulumi waits.
    By default true, but false with a Kubernetes provider, with an output as `namespace`, or if the configuration has
    `kubernetes:cluster` or the text of a kubeconfig."""


class RequiredServiceArgs(TypedDict):
    compose: str
    """The keys of the service, as they would be below its name in a Compose file. Documents after `---` are parts of a
    Compose file, such as `volumes`. Paths are relative to the working folder of the program."""


class ServiceArgs(SettingArgs, RequiredServiceArgs, total=False):
    service_name: str
    """The name of the service in the cluster; by default the name of the resource."""


class ServiceResult(TypedDict):
    """A service of a Compose file."""

    name: str
    """The name in the cluster, which is its DNS name for pods of the same namespace."""
    address: str
    """The DNS name for pods of every namespace."""
    ports: list[int]
    """The ports of the address."""
    urls: list[str]
    """The HTTPS addresses that lead to the service."""


class ComposeStackResult(TypedDict):
    """The services, volumes and endpoints of a Compose file."""

    # Most SDKs have one secret or unknown value make the whole output so: what may be either is an output of its own.

    namespace: Output[str]
    """The namespace of the objects."""
    urls: Output[list[str]]
    """The HTTPS addresses of the endpoints."""
    services: Output[dict[str, ServiceResult]]
    """The services, by their names in the Compose file."""
    claims: Output[dict[str, str]]
    """The names of the PersistentVolumeClaims, by the names of the volumes in the Compose file."""
    images: Output[dict[str, str]]
    """The references of the images, by the names of the services; of a built image, by digest."""
    digests: Output[dict[str, str]]
    """The digests of the images, by the names of the services; empty for one that the file does not name by digest."""
    env: Output[dict[str, dict[str, str]]]
    """The environment variables of the file, by the names of the services, as a secret."""


class SingleServiceResult(ServiceResult):
    """A service alone, from the keys that it would have in a Compose file."""

    namespace: Output[str]
    """The namespace of the objects."""
    claims: Output[dict[str, str]]
    """The names of the PersistentVolumeClaims, by the names of the volumes."""
    image: Output[str]
    """The reference of the image; of a built image, by digest."""
    digest: Output[str]
    """The digest of the image; empty if it is not built and named without one."""
    env: Output[dict[str, str]]
    """The environment variables, as a secret."""
