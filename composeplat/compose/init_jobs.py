"""Hooks of ``pre_start`` that run once for all replicas of a service: each is a job that the service waits for.

Owns which hooks these are, and the job that each becomes: a service of the model, with the image, the variables and the
volumes of the one whose hook it runs.
Must not know Kubernetes. It comes last, as a job has what its service has read, and no rule is to report it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from composeplat.compose.extension_model import Extensions
from composeplat.compose.model import (
    ANONYMOUS,
    HOST,
    NEVER,
    Dependency,
    DependencyCondition,
    Mount,
    Project,
    Service,
    User,
)
from composeplat.compose.network_model import Networking
from composeplat.compose.origins import Checker
from composeplat.compose.pod_model import ContainerOptions, InitHook, SharedPod
from composeplat.compose.rollout_model import Placement, Scheduling
from composeplat.diagnostics import PathKey
from composeplat.names import MAX_LABEL_LENGTH, clean


def with_init_jobs(checker: Checker) -> Project:
    """Return the project with a job for each hook that runs once, before a service with several replicas."""
    project = checker.project
    services: dict[str, Service] = {}
    waits: dict[str, tuple[Dependency, ...]] = {}
    for service in project.services.values():
        jobs = list(_jobs(checker, service)) if _has_several_pods(project.services[service.pod_owner]) else []
        services.update({job.name: job for job in jobs})
        services[service.name] = _with_jobs(service, jobs)
        if jobs:
            waits[service.pod_owner] = (*waits.get(service.pod_owner, ()), _completed(jobs[-1].name))
    for name, more in waits.items():
        services[name] = replace(services[name], depends_on=(*services[name].depends_on, *more))
    return replace(project, services=services) if waits else project


def without_init_jobs(project: Project) -> Project:
    """Return the project with the services of the definition alone."""
    services = {name: service for name, service in project.services.items() if not service.container.hook_of}
    return replace(project, services=services)


def _has_several_pods(service: Service) -> bool:
    """Whether a hook in each pod of a service would run more than once; a run of a schedule has hooks of its own."""
    has_replicas = service.replicas > 1 or service.is_global or service.extensions.autoscale is not None
    return has_replicas and service.scheduling.schedule is None


def _with_jobs(service: Service, jobs: list[Service]) -> Service:
    """Return the service without the hooks that jobs run."""
    names = {job.name for job in jobs}
    hooks = tuple(
        replace(hook, in_job=hook.once and _job_name(service, index) in names)
        for index, hook in enumerate(service.container.pre_start)
    )
    if not jobs:
        return service
    gone = {key for hook in hooks if hook.in_job for key in hook.variables.values()}
    return replace(
        service,
        container=replace(service.container, pre_start=hooks),
        variables={name: value for name, value in service.variables.items() if name not in gone},
    )


def _jobs(checker: Checker, service: Service) -> Iterator[Service]:
    pod = checker.project.services[service.pod_owner]
    depends_on, hooks = pod.depends_on, service.container.pre_start
    for index, hook in enumerate(hooks):
        if not hook.once:
            continue
        path, name = ("services", service.name, "pre_start", index), _job_name(service, index)
        if name in checker.project.services or len(clean(name)) > MAX_LABEL_LENGTH:
            message = f"runs in a job that would be named '{name}', which is too long or the name of a service"
            checker.add("name-conflict", path, message, "rename the service")
            continue
        if any(not before.once for before in hooks[:index]):
            message = "runs before those that each replica runs: it runs once, before any of them starts"
            checker.add("no-effect", path, message, "move it before them, or write per_replica: true")
        checker.origins.copy(("services", name), path)
        _copy_image(checker, (*path, "image") if hook.image else ("services", service.name, "image"), name)
        yield _in_place_of_pod(_job(service, hook, name, depends_on), pod)
        depends_on = (*depends_on, _completed(name))


def _copy_image(checker: Checker, path: PathKey, name: str) -> None:
    """Record where the image of a job is written; a build has none."""
    if checker.origins.has(*path):
        checker.origins.copy(("services", name, "image"), path)


def _job_name(service: Service, index: int) -> str:
    return f"{service.name}-pre-start-{index}"


def is_init_job(name: str, service: str) -> bool:
    """Check for the name of a job that runs a hook of a service."""
    index = name.rpartition("-")[2]
    return index.isdecimal() and name == f"{service}-pre-start-{index}"


def _completed(name: str) -> Dependency:
    return Dependency(service=name, condition=DependencyCondition.COMPLETED)


def _job(service: Service, hook: InitHook, name: str, depends_on: tuple[Dependency, ...]) -> Service:
    """Return the job of a hook: what is not named here is that of the service, such as resources and networks."""
    variables = _variables(service, hook)
    return replace(
        service if not hook.image else _with_image(service, hook),
        name=name,
        command=hook.command or None,
        environment=variables,
        variables=variables,
        user=_user(service, hook),
        mounts=tuple(_mounts(service, hook)),
        depends_on=depends_on,
        container=_container(service, hook),
        ports=(),
        public=False,
        health_check=None,
        restart=NEVER,
        max_attempts=None,
        replicas=1,
        update_policy="",
        extensions=Extensions(),
        pod=SharedPod(),
        watch=(),
        labels={},
        annotations={},
        working_dir=hook.working_dir or ("" if hook.image else service.working_dir),
    )


def _in_place_of_pod(job: Service, pod: Service) -> Service:
    """Return the job on the nodes and in the networks of the pods that wait for it, which may be another service's."""
    names = replace(pod.container.names, hosts=job.container.names.hosts)
    return replace(
        job,
        networks=pod.networks,
        networking=Networking(mode=pod.networking.mode),
        node_selector=pod.node_selector,
        service_account=pod.service_account,
        scheduling=Scheduling(placement=Placement(constraints=pod.scheduling.placement.constraints)),
        container=replace(
            job.container,
            names=names,
            platform=pod.container.platform,
            runtime=pod.container.runtime,
            sysctls=pod.container.sysctls,
            host_users=pod.container.host_users,
        ),
    )


def _with_image(service: Service, hook: InitHook) -> Service:
    return replace(service, image=hook.image, build=None, entrypoint=None, working_dir="")


def _user(service: Service, hook: InitHook) -> User | None:
    own = User(uid=hook.uid, gid=hook.gid)
    return own if own != User() else None if hook.image else service.user


def _variables(service: Service, hook: InitHook) -> dict[str, str]:
    of_hooks = service.container.hook_environment
    shared = {name: value for name, value in service.variables.items() if name not in of_hooks}
    return shared | {name: service.variables[key] for name, key in hook.variables.items() if key in service.variables}


def _mounts(service: Service, hook: InitHook) -> Iterator[Mount]:
    """Yield the mounts of a job: not those that each pod has for itself, nor those for development alone.

    The image of the service fills its volumes, and that of a hook does not.
    """
    for mount in service.mounts:
        if mount.kind != ANONYMOUS and (mount.kind != HOST or service.build is None):
            yield replace(mount, no_copy=mount.no_copy or bool(hook.image))


def _container(service: Service, hook: InitHook) -> ContainerOptions:
    return replace(
        service.container,
        privileged=hook.privileged,
        stdin_open=False,
        tty=False,
        pre_start=(),
        post_start=(),
        pre_stop=(),
        hook_environment={},
        stop_signal="",
        limits=(),
        hook_of=service.name,
        image_of="" if hook.image else service.name,
    )
