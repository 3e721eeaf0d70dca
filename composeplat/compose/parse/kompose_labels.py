"""Labels of kompose, and the keys and options that do here what they do there.

Owns a row for each label of kompose.
Must not parse their values: a label stays an annotation, as every label does, and a warning says what to write. It is
apart because the table is long, and the page about kompose is generated from it.
"""

from __future__ import annotations

PREFIX = "kompose."

_CLASS = "use the option --ingress-class"
_CRON = "use x-schedule in full mode (--full), which makes the service a CronJob"
_HEALTH_CHECK = "use healthcheck: it is the readiness probe"
_HPA = (
    "use x-autoscale in full mode (--full), or deploy.replicas; deploys keep the number of pods that a"
    " HorizontalPodAutoscaler of your own sets"
)
_INIT = (
    "make it a service with restart: 'no', and wait for it: depends_on with condition: service_completed_successfully"
)
_LIVENESS = "use healthcheck.http with path and port, and x-okteto-liveness: true"
_LOAD_BALANCER = "use x-expose with type: LoadBalancer in full mode (--full), or write a Service of your own"
_READINESS_HTTP = "use healthcheck.http with path and port"
_SUB_PATH = "use the long form under volumes: {type: volume, source: NAME, target: PATH, sub_path: FOLDER}"
_TCP = "use healthcheck.test with a command that connects, such as nc -z localhost PORT"

LABELS: dict[str, str] = {
    "kompose.controller.port.expose": "'ports' gives a URL over HTTPS; for a port of a node, use x-expose with type:"
    " NodePort in full mode (--full)",
    "kompose.controller.type": "leave it out: a named or anonymous volume makes a StatefulSet, restart: 'no' a Job,"
    " anything else a Deployment; in full mode (--full) deploy.mode: global makes a DaemonSet",
    "kompose.cronjob.backoff_limit": _CRON,
    "kompose.cronjob.concurrency_policy": _CRON,
    "kompose.cronjob.schedule": _CRON,
    "kompose.hpa.cpu": _HPA,
    "kompose.hpa.memory": _HPA,
    "kompose.hpa.replicas.max": _HPA,
    "kompose.hpa.replicas.min": _HPA,
    "kompose.image-pull-policy": "leave it out: built images are deployed by digest, and Kubernetes pulls a tag other"
    " than latest if a node does not have it",
    "kompose.image-pull-secret": "use the option --pull-secret",
    "kompose.init.containers.command": _INIT,
    "kompose.init.containers.image": _INIT,
    "kompose.init.containers.name": _INIT,
    "kompose.security-context.fsgroup": "use user: 'UID:GID'",
    "kompose.service.expose": "publish the port, as in '8080:80', and name a domain with --domain; or use endpoints",
    "kompose.service.expose.ingress-class-name": _CLASS,
    "kompose.service.expose.tls-secret": "use the option --tls-secret or --tls-issuer",
    "kompose.service.external-traffic-policy": "write a Service of type LoadBalancer of your own",
    "kompose.service.group": "leave it out: each service has its own pods, and others reach it by its name",
    "kompose.service.healthcheck.liveness.http_get_path": _LIVENESS,
    "kompose.service.healthcheck.liveness.http_get_port": _LIVENESS,
    "kompose.service.healthcheck.liveness.tcp_port": f"{_TCP}, and x-okteto-liveness: true",
    "kompose.service.healthcheck.readiness.disable": "use healthcheck.x-okteto-readiness: false",
    "kompose.service.healthcheck.readiness.http_get_path": _READINESS_HTTP,
    "kompose.service.healthcheck.readiness.http_get_port": _READINESS_HTTP,
    "kompose.service.healthcheck.readiness.interval": _HEALTH_CHECK,
    "kompose.service.healthcheck.readiness.retries": _HEALTH_CHECK,
    "kompose.service.healthcheck.readiness.start_period": _HEALTH_CHECK,
    "kompose.service.healthcheck.readiness.tcp_port": _TCP,
    "kompose.service.healthcheck.readiness.test": _HEALTH_CHECK,
    "kompose.service.healthcheck.readiness.timeout": _HEALTH_CHECK,
    "kompose.service.nodeport.port": "use x-expose with type: NodePort in full mode (--full); 'ports' gives a URL over"
    " HTTPS",
    "kompose.service.suffix-lb": _LOAD_BALANCER,
    "kompose.service.suffix-lb-tcp": _LOAD_BALANCER,
    "kompose.service.suffix-lb-udp": _LOAD_BALANCER,
    "kompose.service.type": "use deploy.endpoint_mode: dnsrr for headless, and 'ports' for a URL over HTTPS;"
    " x-expose in full mode (--full) for nodeport and loadbalancer",
    "kompose.serviceaccount-name": "use x-service-account",
    "kompose.volume.size": "use driver_opts.size of the volume under the top-level 'volumes'",
    "kompose.volume.storage-class-name": "use driver_opts.class of the volume under the top-level 'volumes'",
    "kompose.volume.sub-path": _SUB_PATH,
    "kompose.volume.subpath": _SUB_PATH,
    "kompose.volume.type": "use NAME:PATH for a PersistentVolumeClaim, ./PATH:PATH for files of the project, and"
    " {type: tmpfs, target: PATH} for memory",
}
_UNKNOWN = "see docs/from-kompose.md"


def replacement_of(label: str) -> str:
    """Return the key to write instead of a label of kompose."""
    return LABELS.get(label, _UNKNOWN)
