"""The codes of messages about images and about a cluster.

Apart from the other codes, as no definition alone raises them.
"""

from __future__ import annotations

from composeplat.codes.code import Code, Effect, Severity

_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE
_CHANGED, _LOST, _CANNOT_RUN = Effect.CHANGED, Effect.LOST, Effect.CANNOT_RUN

CLUSTER_CODES: dict[str, Code] = {
    # the check of images and of the cluster
    "unshared-base": Code(
        _W,
        "A Dockerfile uses an image that another service builds: it is pulled from a registry, not built before.",
        "Name the service in 'additional_contexts'.",
        many=True,
        effect=_LOST,
    ),
    "unread-image": Code(
        _N, "The registry of an image could not be asked about it.", "Log in to the registry, or correct the name."
    ),
    "image-volume": Code(
        _W,
        "An image declares a volume that the service does not mount: its data is lost with the pod.",
        "Mount a named volume there, if the data matters.",
        many=True,
        effect=_LOST,
    ),
    "unreachable-port": Code(
        _W,
        "Other services address a port that the service does not list: its name leads to its listed ports only.",
        "Add the port to 'expose'.",
        effect=_LOST,
    ),
    "unresolvable-host": Code(
        _W,
        "A service addresses another one by a name that no object in a cluster has, so it does not resolve.",
        "Write the name that the service has in a cluster.",
        effect=_LOST,
        many=True,
    ),
    "own-name-listener": Code(
        _W,
        "A program listens at the name of its own service, or finds itself by it: in a cluster, that is its Service.",
        "Let it listen at 0.0.0.0, or set deploy.endpoint_mode: dnsrr.",
        effect=_LOST,
        many=True,
    ),
    "ending-command": Code(
        _W,
        "A command ends by itself, and its service has no 'restart': it is a server, which is started again each time.",
        "Set restart: 'no', which makes it a job.",
        effect=_LOST,
        many=True,
    ),
    "docker-only-host": Code(
        _W,
        "A service addresses the machine that it runs on, or a DNS server, by a name that only Docker has.",
        "Run what listens there as a service, or write an address that pods reach.",
        effect=_LOST,
        many=True,
    ),
    "local-url": Code(
        _W,
        "A URL of this machine leads browsers to a published port of Docker; in a cluster the service has another URL.",
        "Write the URL that the service has in a cluster.",
        effect=_LOST,
        many=True,
    ),
    "local-host": Code(
        _W,
        "A program answers for names of this machine, and not for the host by which browsers reach it in a cluster.",
        "Add the host of its URL to the variable.",
        effect=_LOST,
        many=True,
    ),
    "unexposed-port": Code(
        _W,
        "A service names a port of its container that its image does not expose, and the image exposes others.",
        "Use a port that the image exposes, unless the program is set to listen on this one.",
        many=True,
    ),
    "wrong-architecture": Code(
        _W,
        "An image is for other architectures than those of the cluster's nodes.",
        "Use an image for these nodes.",
        effect=_CANNOT_RUN,
    ),
    "no-storage-class": Code(
        _W,
        "The cluster does not have the storage class that a volume needs.",
        "Set 'class' of the volume to one that exists.",
        effect=_CANNOT_RUN,
    ),
    "no-ingress-class": Code(
        _W,
        "No ingress controller serves the URLs of a service.",
        "Choose one with --ingress-class, or install one.",
        effect=_LOST,
    ),
    "no-metrics-server": Code(
        _W,
        "A service is scaled by its use of CPU or memory, and the cluster has no metrics server.",
        "Install metrics-server.",
        effect=_LOST,
    ),
    "no-load-balancer": Code(
        _W,
        "A service asks for a LoadBalancer, and nothing in the cluster seems to give it an address.",
        "Use type: NodePort, or install a program that gives addresses.",
        effect=_LOST,
    ),
    "policy-violation": Code(
        _E,
        "A mandatory policy of a policy pack refuses a resource.",
        "Change the definition, or ask those who own the policy pack.",
    ),
    "policy-advice": Code(
        _W,
        "A resource is not as an advisory policy of a policy pack wants it, or a policy has changed it.",
        "Change the definition, or ignore this.",
    ),
    "pod-security-level": Code(
        _W,
        "The Pod Security level of the namespace refuses a service.",
        "Deploy with --pod-security restricted, or into another namespace.",
        many=True,
        effect=_CANNOT_RUN,
    ),
    "over-quota": Code(
        _W,
        "A quota of the namespace refuses a service, or all of them together.",
        "Set requests and limits, use less, or have the quota raised.",
        many=True,
        effect=_CANNOT_RUN,
    ),
    "limit-range": Code(
        _W,
        "A limit range of the namespace refuses a request or limit of a service.",
        "Change it under 'resources'.",
        many=True,
        effect=_CANNOT_RUN,
    ),
    "default-limit": Code(
        _W,
        "A limit range of the namespace limits a service that sets no limit itself.",
        "Set limits under 'resources', if it needs more.",
        effect=_CHANGED,
    ),
    # the cluster
    "ownership-conflict": Code(
        _E,
        "The namespace has an object of a required name that belongs to someone else.",
        "Take it over with 'platform import', rename the service or volume, or deploy into another namespace.",
        many=True,
    ),
    "import-conflict": Code(
        _E,
        "An object can't be taken over: it belongs to a tool, or would lose its data or its address.",
        "See the reason given.",
        many=True,
    ),
    "missing-object": Code(
        _E,
        "An external object or a RuntimeClass is missing, or an object lacks the key that a service reads.",
        "Create it, or correct its name or key.",
        many=True,
    ),
    "volume-replacement": Code(
        _E,
        "The change would recreate a volume, which deletes its data.",
        "Undo the change, or allow it with --replace-volume.",
    ),
    "provider-refused": Code(
        _E,
        "A service is given by a program of your machine, which may not run, or is not there.",
        "Allow it with --allow-providers, if you trust the program, or install it.",
    ),
    "provider-failed": Code(
        _E, "The program that gives a service failed.", "See the reason given, and run it by hand.", many=True
    ),
    "deploy-failed": Code(
        _E,
        "Something that a service needs could not be created, or does not run.",
        "See the reason given, and the lines below it.",
        many=True,
    ),
    "job-retry": Code(
        _W,
        "A pod of a Job failed, and the Job retries.",
        "See the reason given, and the lines below it; nothing to do where a later try passes.",
        many=True,
    ),
    "no-sync-path": Code(
        _E,
        "The service has no host volume, so 'platform up' does not know which files to sync.",
        "Add a host volume, such as .:/app.",
    ),
}
